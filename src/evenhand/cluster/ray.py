"""Workers as actors on a cluster of Ray, for one run: Ray starts them and starts them anew, the
store is where they meet. This process watches, and ends them."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, redirect_stdout
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlunsplit

from evenhand.cluster.actor import RayWorker, Versions, versions_here
from evenhand.engine.stop import Stop
from evenhand.errors import StoppedEarly, UsageError
from evenhand.ledger.postgres.address import split_user
from evenhand.limits import LOOK_AGAIN_MOST
from evenhand.runs.judge import Crew

CPUS = 0.1
"""What a worker asks of its node: it waits for answers most of the time."""
RESTARTS = 10
"""So often a worker that died is started anew, on another node if need be."""
LEAVING_SECONDS = 60.0
"""A worker that was told to leave has so long to wait for its calls under way."""
QUIET_SECONDS = 30.0
"""After so long without a worker that could be started, that is said."""
SEEING_SECONDS = 10.0
"""After the last worker has ended, the end of the run is seen within so long, or has not come."""
PROBE_SECONDS = 60
_OPEN, _SHUT, _ABSENT = 0, 3, 4
_PROBE = f"""
import sys
from ray._raylet import GcsClient
from ray.exceptions import AuthenticationError
try:
    GcsClient(address=sys.argv[1]).internal_kv_keys(b"", namespace=None, timeout=10)
except AuthenticationError:
    sys.exit({_SHUT})
except Exception:
    sys.exit({_ABSENT})
"""
"""Asks a cluster something as a stranger would, without a token."""
_AUTH = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")


def ray_crew(
    address: str,
    workers: int | None,
    store_url: str,
    tell: Callable[[str], None],
    *,
    allow_insecure: bool = False,
) -> Crew:
    """Has workers on a cluster judge a run; raises UsageError where that cannot be. Without a
    number there is one for each node."""
    _require_ray()
    url = without_password(store_url)
    if address != "auto":
        _require_guard(address, allow_insecure=allow_insecure)

    @asynccontextmanager
    async def crew(run: str, stop: Stop) -> AsyncIterator[None]:
        # Ray tells of nodes that died on stdout, which is for the results alone.
        with redirect_stdout(sys.stderr):
            ray = await asyncio.to_thread(_connected, address, allow_insecure)
            try:
                team = _Team(ray, url, run, workers or _nodes(ray), tell, stop)
                async with team.at_work():
                    yield
            finally:
                await asyncio.to_thread(ray.shutdown)

    return crew


def without_password(url: str) -> str:
    """The address of a store as nodes are told it; raises UsageError for one whose password the
    command line holds: Ray keeps that, and shows it."""
    user, parts = split_user(url)
    name, colon, _ = user.removesuffix("@").partition(":")
    query = "&".join(p for p in parts.query.split("&") if not p.startswith("password="))
    if (colon or query != parts.query) and any((user or parts.netloc) in word for word in sys.argv):
        raise UsageError(
            "Ray keeps the command line of this process, and the store's password stands in it",
            advice="Put the password into PGPASSWORD or ~/.pgpass, here and on every node.",
        )
    netloc = f"{name}@{parts.netloc}" if name else parts.netloc
    return urlunsplit((parts.scheme, netloc, parts.path, query, ""))


def _require_ray() -> None:
    if find_spec("ray") is None:
        raise UsageError(
            "--ray needs Ray, which is not installed",
            advice='Install it, here and on every node: pip install "evenhand[ray]"',
        )


def _require_guard(address: str, *, allow_insecure: bool) -> None:
    """Refuse a cluster that answers strangers."""
    if allow_insecure:
        return
    environ = {name: value for name, value in os.environ.items() if name not in _AUTH}
    probe = subprocess.run(  # noqa: S603 - our own words, and an address
        [sys.executable, "-c", _PROBE, address],
        env=environ | {"RAY_AUTH_MODE": "disabled"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=PROBE_SECONDS,
        check=False,
    )
    if probe.returncode == _ABSENT:
        raise UsageError(
            f"no Ray cluster answers at {address}",
            advice="Start one (ray start --head), or name its address, HOST:PORT.",
        )
    if probe.returncode != _SHUT:
        raise UsageError(
            "the Ray cluster answers without a token: whoever reaches it can run code on its nodes,"
            " with their keys",
            advice="Start it with RAY_AUTH_MODE=token on every node; or, on a network where nobody"
            " else is, add --allow-insecure-ray.",
        )


def _connected(address: str, allow_insecure: bool) -> Any:
    """Ray, connected; raises UsageError."""
    import ray

    try:
        context: Any = ray.init(
            address=address, log_to_driver=False, logging_level=logging.ERROR, namespace="evenhand"
        )
    except Exception as error:
        first = str(error).strip().partition("\n")[0][:200]
        raise UsageError(
            f"the Ray cluster at {address} cannot be used: {first}",
            advice="This process must be on a node of the cluster, with the versions of Ray and"
            " Python that it has, and with its token (RAY_AUTH_TOKEN).",
        ) from None
    if address == "auto":
        try:
            _require_guard(context.address_info["gcs_address"], allow_insecure=allow_insecure)
        except UsageError:
            ray.shutdown()
            raise
    return ray


def _nodes(ray: Any) -> int:
    return max(1, sum(bool(node["Alive"]) for node in ray.nodes()))


class _Team:
    """The actors that judge one run."""

    def __init__(
        self,
        ray: Any,
        url: str,
        run: str,
        number: int,
        tell: Callable[[str], None],
        stop: Stop,
    ) -> None:
        self._ray, self._tell, self._stop = ray, tell, stop
        actor = ray.remote(RayWorker).options(
            num_cpus=CPUS,
            max_restarts=RESTARTS,
            max_task_retries=RESTARTS,
            max_concurrency=2,
            scheduling_strategy="SPREAD",
        )
        self._actors = [actor.remote(url, run) for _ in range(number)]

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        """Have them judge; in the end they are told to leave, and ended."""
        watching = asyncio.create_task(self._watched())
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.to_thread(self._end)

    async def _watched(self) -> None:
        try:
            await self._watch()
        except Exception as error:
            name = type(error).__name__
            self._stop.throw(
                StoppedEarly(
                    f"the Ray cluster is lost: {name}",
                    advice="Any host goes on: evenhand worker, or the same command again.",
                )
            )

    async def _watch(self) -> None:
        """Throw the switch where no worker is left, or none is fit."""
        versions = [actor.versions.remote() for actor in self._actors]
        faults = [actor.fault.remote() for actor in self._actors]
        if await self._answered([*versions, *faults]):
            self._require_versions(self._ray.get(versions))
            for fault in dict.fromkeys(filter(None, self._ray.get(faults))):
                self._tell(f"a node cannot open the store: {fault}")
        works = [actor.work.remote() for actor in self._actors]
        while self._ray.wait(works, num_returns=len(works), timeout=0)[1]:  # noqa: ASYNC110 - Ray
            await asyncio.sleep(LOOK_AGAIN_MOST)
        # They end with the run: whoever watches it has the time to see that it is closed.
        await asyncio.sleep(SEEING_SECONDS)
        codes = ", ".join(sorted({str(code) for code in self._ray.get(works)}))
        self._stop.throw(
            StoppedEarly(
                "no worker is left on the cluster, and the run is not at its end (they ended with"
                f" exit code {codes})",
                advice="evenhand runs shows why workers leave a run; run the same command again"
                " to go on.",
            )
        )

    async def _answered(self, references: Sequence[Any]) -> bool:
        waited = 0.0
        while True:
            done, left = self._ray.wait(list(references), num_returns=len(references), timeout=0)
            if not left:
                return True
            await asyncio.sleep(LOOK_AGAIN_MOST)
            waited += LOOK_AGAIN_MOST
            if waited == QUIET_SECONDS and not done:
                self._tell("No worker has been started yet: has the cluster CPUs to spare?")

    def _require_versions(self, versions: Sequence[Sequence[str]]) -> None:
        here = versions_here()
        for there in map(Versions._make, dict.fromkeys(map(tuple, versions))):
            if there != here:
                self._stop.throw(
                    StoppedEarly(
                        f"a node has {_listed(there)}, and this process {_listed(here)}",
                        advice="Install the same versions everywhere; nothing was sent by it.",
                    )
                )

    def _end(self) -> None:
        """Let the workers hand back what they hold, then end them."""
        leaving = [actor.leave.remote() for actor in self._actors]
        self._ray.wait(leaving, num_returns=len(leaving), timeout=LEAVING_SECONDS)
        for actor in self._actors:
            self._ray.kill(actor)


def _listed(versions: Versions) -> str:
    return ", ".join(f"{name} {value}" for name, value in versions._asdict().items())
