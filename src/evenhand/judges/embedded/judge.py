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
from collections.abc import Hashable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

from msgspec import convert

from evenhand import limits
from evenhand.errors import (
    CallRejected,
    JudgeCrashed,
    ModelMissing,
    ProviderRefused,
    UsageError,
    quote,
)
from evenhand.exchange import Judge, Question, Reply, Style
from evenhand.judges.embedded import models
from evenhand.judges.embedded.decoding import VERSION
from evenhand.judges.providers import JudgeOptions, Provider
from evenhand.words import Sentence

CAVEAT = "This judge is an embedded model: for trying things out, not validated for real decisions."
# -P: a file of the working folder must not pass for a module.
COMMAND = (sys.executable, "-P", "-m", "evenhand.judges.embedded.child")
# Where things are, how text is spelt, how threads wait; SYSTEMROOT and the like are for Windows.
ENVIRONMENT = re.compile(
    "PATH|HOME|LANG|LC_[A-Z]+|TZ|TMPDIR|TEMP|TMP|VIRTUAL_ENV|LD_LIBRARY_PATH|DYLD_LIBRARY_PATH"
    "|PYTHON[A-Z0-9]*|(OMP|GOMP|KMP)_[A-Z_]+|SYSTEMROOT|WINDIR|USERPROFILE"
)
# More threads than this gain nothing on models this small.
THREADS_MOST = 8


class EmbeddedJudge(Judge):
    """The judge `embedded`, `embedded/NAME` or `embedded/FILE.gguf`. Opening it starts nothing."""

    style: Style = "compact"
    slots: int | None = 1
    caveat = CAVEAT

    def __init__(self, provider: Provider, options: JudgeOptions, model: str) -> None:
        self.name = options.name
        if provider.is_file(model):
            self._path: Path | None = options.folder / Path(model).expanduser()
            if not self._path.is_file():
                raise UsageError(Sentence("judges.no_model_file", file=model))
            options.notify(Sentence("judges.checking", file=self._path.name))
            sha256 = models.hash_file(self._path)
        else:
            pinned = models.lookup(model or models.DEFAULT)
            self._path, sha256 = models.find(pinned.name), pinned.sha256
            if self._path is None:
                megabytes = round(pinned.download / 1e6)
                self.unavailable_reason = ModelMissing(
                    Sentence("judges.model_missing", name=pinned.name, megabytes=megabytes)
                )
        self.account: Hashable = (provider.name, sha256)
        self._settings: dict[str, Any] = {
            "temperature": options.temperature or 0.0,
            "max_tokens": options.max_tokens,
            "seed": options.seed or 0,
        }
        self.identity: Mapping[str, Any] = {
            "provider": provider.name,
            "weights": sha256,
            "runtime": f"xllamacpp {version('xllamacpp')}",
            "decoding": VERSION,
            **self._settings,
        }
        self._lock = asyncio.Lock()
        self._child: _Child | None = None

    async def answer(self, question: Question) -> Reply:
        """Answer by the child process; raises CallRejected, JudgeCrashed or ProviderRefused."""
        if self.unavailable_reason:
            raise self.unavailable_reason
        temperature, seed = question.sampling(self._settings["temperature"], self._settings["seed"])
        sampling = {"temperature": temperature, "seed": seed}
        request = {
            **sampling,
            "max_tokens": self._settings["max_tokens"],
            "drawn": question.round > 1,
            "messages": [message.json() for message in question.messages],
            "neutral": [message.json() for message in question.neutral or ()],
            "schema": question.schema.value if question.schema else None,
        }
        async with self._lock:
            try:
                child = self._child or await self._start()
                line = await child.ask({"ask": request}, limits.EMBEDDED_ANSWER_SECONDS)
                reply = self._result(line)
            except CallRejected:
                raise
            except BaseException:
                await self._stop()
                raise
        return convert({**reply, "model": self.name, "sampling": sampling}, Reply)

    async def close(self) -> None:
        """End the child."""
        async with self._lock:
            await self._stop()

    async def _start(self) -> _Child:
        self._child = await _Child.start()
        weights = {"path": str(self._path), "sha256": self.identity["weights"]}
        load = {"load": {**weights, "threads": count_threads()}}
        self._result(await self._child.ask(load, limits.EMBEDDED_LOAD_SECONDS))
        return self._child

    async def _stop(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            await child.end()

    def _result(self, line: Mapping[str, Any]) -> Any:
        """Return the result in a line of the child; raises what the line says otherwise."""
        match line:
            case {"ready": result} | {"reply": result}:
                return result
            case {"overflow": reason}:
                raise CallRejected("context_overflow", str(reason))
            case {"unfit": reason}:
                raise CallRejected("schema", str(reason))
            case {"altered": _}:
                raise ProviderRefused(Sentence("judges.model_altered", file=self._path))
            case {"failed": reason}:
                raise ProviderRefused(
                    Sentence(
                        "judges.model_not_loaded",
                        file=self._path,
                        reason=reason,
                        default=models.DEFAULT,
                    )
                )
            case _:
                raise JudgeCrashed(f"the model's process said {quote(line)}")


class _Child:
    """The child process and the pipe to it."""

    def __init__(self, process: Process, log: IO[bytes]) -> None:
        self._process, self._log = process, log

    @classmethod
    async def start(cls) -> _Child:
        """Start it with what Python and the runtime need of the environment, and no key."""
        log = tempfile.TemporaryFile()  # noqa: SIM115
        environment = {n: value for n, value in os.environ.items() if ENVIRONMENT.fullmatch(n)}
        try:
            process = await asyncio.create_subprocess_exec(
                *COMMAND,
                stdin=PIPE,
                stdout=PIPE,
                stderr=log,
                limit=limits.REPLY_BYTES,
                env=environment,
            )
        except BaseException:
            log.close()
            raise
        return cls(process, log)

    async def ask(self, line: Mapping[str, Any], silence: float) -> dict[str, Any]:
        """Send one line and wait for the answer; every sign of life renews the patience. Raises
        JudgeCrashed."""
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
        return f": {quote(words[-1])}" if words else ""

    async def end(self) -> None:
        """Kill it and see it gone."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()
        self._log.close()


def count_threads() -> int:
    """Return the threads to compute with: those of EVENHAND_EMBEDDED_THREADS, else all cores."""
    setting = os.environ.get("EVENHAND_EMBEDDED_THREADS", "")
    if setting.isdecimal() and int(setting) > 0:
        return int(setting)
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    return min(THREADS_MOST, cores)
