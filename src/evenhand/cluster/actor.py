"""A worker as an actor of Ray. What Ray is given of it, and keeps in objects, logs and dashboard,
is the address of the store without its password, the id of the run, and an exit code: keys and the
password come from the environment of the node, units and replies from the store and go there."""

from __future__ import annotations

import asyncio
import platform
import threading
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from evenhand.errors import EvenhandError, Interrupted

if TYPE_CHECKING:
    from evenhand.cluster.worker import WorkerLoop

BUG = 70
"""The exit code of what should not have happened."""


class Versions(NamedTuple):
    """What has to be the same wherever a run is judged."""

    evenhand: str
    ray: str
    python: str


def versions_here() -> Versions:
    """Those of this process; of Python what tells whether it can read what another has written."""
    python = ".".join(platform.python_version_tuple()[:2])
    return Versions(version("evenhand"), version("ray"), python)


class RayWorker:
    """The loop of a worker, for one run."""

    def __init__(self, url: str, run: str) -> None:
        from evenhand.cluster.plan import Surroundings
        from evenhand.cluster.worker import Orders, WorkerLoop
        from evenhand.judges.environment import environment
        from evenhand.judges.trust import Trust, TrustedHosts
        from evenhand.runs.stores import open_store

        self._loop: WorkerLoop | None = None
        self.events: asyncio.AbstractEventLoop | None = None
        self._ended = threading.Event()
        try:
            store = open_store(url, must_exist=True)
            trust = Trust(TrustedHosts(), tell=lambda line: None)
            here = Surroundings(folder=Path(), environment=environment(), trust=trust)
            self._loop = WorkerLoop(store, here, Orders(run=run))
            self._fault = ""
        except EvenhandError as error:
            self._fault = str(error)

    def versions(self) -> tuple[str, ...]:
        return tuple(versions_here())

    def fault(self) -> str:
        """Why nothing can be judged here: the store cannot be opened; empty where it can."""
        return self._fault

    def work(self) -> int:
        """Judge to the end of the run; an exit code. What went wrong is told in the store."""
        from evenhand.engine.loop import run_in_loop

        if self._loop is None:
            return EvenhandError.exit_code
        try:
            cause = run_in_loop(_worked(self, self._loop))
        except EvenhandError as error:
            return error.exit_code
        except Exception:
            return BUG  # its words, and what they may quote, stay out of Ray's logs
        finally:
            self._ended.set()
        return 0 if cause is None else cause.exit_code

    def leave(self) -> None:
        """Hand everything back, and end; done when that is done."""
        if self._loop is None or self.events is None or self._ended.is_set():
            return
        with suppress(RuntimeError):  # the event loop has ended meanwhile
            self.events.call_soon_threadsafe(self._loop.leave, Interrupted("interrupted"))
        self._ended.wait()


async def _worked(worker: RayWorker, loop: WorkerLoop) -> EvenhandError | None:
    """Not a method: Ray runs a class that has a coroutine in an event loop of its own."""
    worker.events = asyncio.get_running_loop()
    return await loop.work()
