"""The embedded judge, as the parent process sees it: a child that is started when first asked.

One question at a time. Whatever ends a question early (a timeout, a crash, a cancelled task) ends
the child too, and the next question starts a new one, so no child ever works on a question that
nobody waits for.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

from msgspec.structs import replace

from evenhand import limits
from evenhand.errors import (
    CallRejected,
    JudgeCrashed,
    ModelMissing,
    ProviderRefused,
    UsageError,
    quoted,
)
from evenhand.exchange import Message, Question, Reply, Style, Usage
from evenhand.judges.embedded import models, weights
from evenhand.judges.embedded.runtime import Threads
from evenhand.judges.embedded.walk import VERSION
from evenhand.judges.embedded.weights import Notify
from evenhand.judges.sampling import sampling

CAVEAT = "This judge is an embedded model: for trying things out, not validated for real decisions."
# -P: a file of the working folder must not pass for a module.
COMMAND = (sys.executable, "-P", "-m", "evenhand.judges.embedded.child")
# Where things are, how text is spelt, how threads wait; SYSTEMROOT and the like are for Windows.
ENVIRONMENT = re.compile(
    "PATH|HOME|LANG|LC_[A-Z]+|TZ|TMPDIR|TEMP|TMP|VIRTUAL_ENV|LD_LIBRARY_PATH|DYLD_LIBRARY_PATH"
    "|PYTHON[A-Z0-9]*|(OMP|GOMP|KMP)_[A-Z_]+|SYSTEMROOT|WINDIR|USERPROFILE"
)
# The share of the cores that a Linux container may use.
QUOTA = Path("/sys/fs/cgroup/cpu.max")
# More threads than this gain nothing on models this small.
THREADS_MOST = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The file a judge runs, what the suite calls it, and its SHA-256."""

    name: str
    path: Path | None
    """None where it is yet to be fetched."""
    sha256: str
    unavailable_reason: ModelMissing | None = None


def open_embedded(
    name: str,
    *,
    temperature: float | None = None,
    max_tokens: int = limits.MAX_TOKENS,
    seed: int = 0,
    notify: Notify | None = None,
) -> EmbeddedJudge:
    """The judge `embedded`, `embedded/NAME` or `embedded/FILE.gguf`. Starts nothing yet."""
    return EmbeddedJudge(
        _weights(name, notify or _silent),
        temperature=temperature or 0.0,
        max_tokens=max_tokens,
        seed=seed,
    )


def _turns(messages: Sequence[Message]) -> list[dict[str, str]]:
    """A conversation as it goes to the child."""
    return [message.json() for message in messages]


class EmbeddedJudge:
    """Implements `evenhand.exchange.Judge`."""

    style: Style = "compact"
    slots: int | None = 1
    caveat = CAVEAT

    def __init__(self, model: Weights, *, temperature: float, max_tokens: int, seed: int) -> None:
        self.name = model.name
        self.account: Hashable = ("embedded", str(model.path or model.name))
        self._path = model.path
        self.unavailable_reason: ProviderRefused | None = model.unavailable_reason
        self._temperature, self._max_tokens, self._seed = temperature, max_tokens, seed
        self.identity: Mapping[str, Any] = {
            "provider": "embedded",
            "weights": model.sha256,
            "runtime": f"xllamacpp {version('xllamacpp')}",
            "walk": VERSION,
            "temperature": temperature,
            "max_tokens": max_tokens,
            "seed": seed,
        }
        self._lock = asyncio.Lock()
        self._child: _Child | None = None

    async def answer(self, question: Question) -> Reply:
        """Answer by the child process; raises CallRejected, JudgeCrashed or ProviderRefused."""
        if self.unavailable_reason:
            raise self.unavailable_reason
        async with self._lock:
            try:
                child = self._child or await self._start()
                request = self._request(question)
                line = await child.ask({"ask": request}, limits.EMBEDDED_ANSWER_SECONDS)
                self._refuse_altered(line)
                sampled = {name: float(request[name]) for name in ("temperature", "seed")}
                return replace(_reply(line, self.name), sampling=sampled)
            except CallRejected:
                raise
            except BaseException:
                await self._stop()
                raise

    def load(self) -> None:
        """Nothing to bring in."""

    async def close(self) -> None:
        """End the child."""
        async with self._lock:
            await self._stop()

    async def _start(self) -> _Child:
        self._child = await _Child.spawned()
        line = await self._child.ask({"load": self._load()}, limits.EMBEDDED_LOAD_SECONDS)
        self._refuse_altered(line)
        if "failed" in line:
            raise ProviderRefused(
                f"the model {quoted(self._path)} could not be loaded: {quoted(line['failed'])}",
                advice=f"Check the file; `evenhand models get {models.DEFAULT}` fetches one.",
            )
        return self._child

    def _refuse_altered(self, line: Mapping[str, Any]) -> None:
        """Raise where the child found other weights than those the judge's identity names."""
        if "altered" not in line:
            return
        assert self._path is not None
        weights.forget(self._path)
        raise ProviderRefused(
            f"the model {quoted(self._path)} is not what it was: {line['altered']}",
            advice="Fetch it again (`evenhand models get`), or run again to go by the new file.",
        )

    async def _stop(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            await child.end()

    def _load(self) -> dict[str, Any]:
        identity = self.identity
        return {
            "path": str(self._path),
            "sha256": identity["weights"],
            "threads": threads()._asdict(),
            "model": f"{identity['weights']} {identity['runtime']}",
            "priors": str(weights.cache_home() / "priors"),
        }

    def _request(self, question: Question) -> dict[str, Any]:
        place = (question.round, question.repeat)
        temperature, seed = sampling(*place, self._temperature, self._seed)
        return {
            "temperature": temperature,
            "seed": seed,
            "max_tokens": self._max_tokens,
            "drawn": question.round > 1,
            "messages": _turns(question.messages),
            "neutral": _turns(question.neutral or ()),
            "schema": question.schema.value if question.schema else None,
        }


class _Child:
    """The child process and the pipe to it."""

    def __init__(self, process: Process, log: IO[bytes]) -> None:
        self._process, self._log = process, log

    @classmethod
    async def spawned(cls) -> _Child:
        log = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            process = await asyncio.create_subprocess_exec(
                *COMMAND,
                stdin=PIPE,
                stdout=PIPE,
                stderr=log,
                limit=limits.REPLY_BYTES,
                env=_environment(),
            )
        except BaseException:
            log.close()
            raise
        return cls(process, log)

    async def ask(self, line: Mapping[str, Any], silence: float) -> dict[str, Any]:
        """Say one line and wait for the answer; every sign of life renews the patience."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write((json.dumps(line) + "\n").encode())
            await self._process.stdin.drain()
            while True:
                # Not wait_for: in Python 3.11 it can swallow a cancellation.
                async with asyncio.timeout(silence):
                    answer = await self._line()
                if "beat" not in answer:
                    return answer
        except TimeoutError:
            raise JudgeCrashed(f"the model said nothing for {silence:.0f} s") from None
        except (OSError, ValueError) as error:
            raise JudgeCrashed(f"the model's process failed: {error}{self._last_words()}") from None

    async def _line(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line.endswith(b"\n"):
            raise JudgeCrashed(f"the model's process died{self._last_words()}")
        parsed: dict[str, Any] = json.loads(line)
        return parsed

    def _last_words(self) -> str:
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, self._log.tell() - 2000))
        lines = self._log.read().decode(errors="replace").split("\n")
        words = [line.strip() for line in lines if line.strip()]
        return f": {quoted(words[-1])}" if words else ""

    async def end(self) -> None:
        """Kill it and see it gone."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()
        self._log.close()


def _environment() -> dict[str, str]:
    """The variables that a child is given: what Python and the runtime need, and no key."""
    return {name: value for name, value in os.environ.items() if ENVIRONMENT.fullmatch(name)}


def threads() -> Threads:
    """Threads to compute with, unless EVENHAND_EMBEDDED_THREADS says: all cores for a prompt, all
    but one for token after token, where a single busy neighbour would stall the others."""
    setting = os.environ.get("EVENHAND_EMBEDDED_THREADS", "")
    if setting.isdecimal() and int(setting) > 0:
        return Threads(prompt=int(setting), token=int(setting))
    cores = min(THREADS_MOST, _cores())
    return Threads(prompt=cores, token=max(1, cores - 1))


def _cores() -> int:
    """Cores this process may use, by its affinity and by the quota of its container."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        quota, period = QUOTA.read_text(encoding="ascii").split()
        return max(1, min(allowed or 1, round(int(quota) / int(period))))
    except (OSError, ValueError):  # no such file, or "max"
        return allowed or 1


def _weights(name: str, notify: Notify) -> Weights:
    which = "" if name == "embedded" else re.sub(r"^embedded[/:]", "", name)
    if which.endswith(".gguf"):
        return _own_file(which, notify)
    model = models.named(which or models.DEFAULT)
    path = models.find(model.name, notify)
    short = "embedded" if model.name == models.DEFAULT else f"embedded/{model.name}"
    lacks = ModelMissing(
        f"the embedded model {model.name} is not here",
        advice=f"Fetch it ({model.download / 1e6:.0f} MB): evenhand models get {model.name}",
    )
    return Weights(
        name=short, path=path, sha256=model.sha256, unavailable_reason=None if path else lacks
    )


def _own_file(file: str, notify: Notify) -> Weights:
    path = Path(file).expanduser()
    if not path.is_file():
        raise UsageError(
            f"there is no model file {quoted(file)}",
            advice="Give the path of a GGUF file: embedded/FILE.gguf",
        )
    sha256 = weights.remembered_sha256(path, notify)
    return Weights(name=f"embedded/{file}", path=path.resolve(), sha256=sha256)


def _silent(message: str) -> None:
    pass


def _reply(line: Mapping[str, Any], model: str) -> Reply:
    match line:
        case {"reply": reply}:
            usage = Usage(**reply["usage"])
            text, finish, odds = reply["text"], reply["finish"], reply["odds"]
            return Reply(text=text, finish=finish, usage=usage, model=model, odds=odds)
        case {"overflow": why}:
            raise CallRejected("context_overflow", str(why))
        case {"unfit": why}:
            raise CallRejected("schema", str(why))
        case _:
            raise JudgeCrashed(f"the model's process said {quoted(line)}")
