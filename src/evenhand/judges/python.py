"""A judge that is the user's own function: `python/module:function`.

    async def f(messages, schema, params) -> str

`messages` is a list of `{"role", "content"}`, `params` has temperature, max_tokens, seed, round,
repeat and reask. The function may raise the call errors of `evenhand.errors`; anything else that it
raises or returns, and a call that never ends, costs one call and never the run. The text of its
module is part of its identity."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import importlib.util
import inspect
import sys
import threading
import traceback
from collections.abc import Callable, Coroutine, Hashable, Mapping
from contextlib import suppress
from functools import cached_property
from importlib.machinery import PathFinder
from itertools import accumulate
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from evenhand import limits
from evenhand.errors import (
    CallError,
    CallLost,
    EvenhandError,
    JudgeCrashed,
    ProviderRefused,
    UsageError,
    quoted,
)
from evenhand.exchange import Question, Reply, Style
from evenhand.text import replace_surrogates

ADVICE = "Name it as python/module:function; the module lies in the suite's folder or is installed."
BEAT_SECONDS = 1.0
"""A loop that has not taken a turn for so long is held up by what runs in it."""
UserFunction = Callable[..., Coroutine[Any, Any, Any]]


class PythonJudge:
    """The user's function. It is imported by `load`, or by the first question, never before: its
    identity comes from the file as it lies there."""

    style: Style = "full"
    slots: int | None = None
    caveat: str = ""
    unavailable_reason: ProviderRefused | None = None

    def __init__(
        self,
        name: str,
        target: str,
        *,
        folder: Path,
        temperature: float | None = None,
        max_tokens: int = limits.MAX_TOKENS,
        seed: int | None = None,
        attempt_seconds: float = limits.ATTEMPT_SECONDS,
    ) -> None:
        module, _, function = target.partition(":")
        if not all(part.isidentifier() for part in (*module.split("."), function)):
            raise UsageError(f"{quoted(target)} is not module:function", advice=ADVICE)
        self.name = name
        self.account: Hashable = ("python", target)
        self._temperature, self._max_tokens, self._seed = temperature, max_tokens, seed
        self._seconds, self._runner = attempt_seconds, UserCodeRunner()
        self._module, self._name, self._folder = module, function, folder.resolve()
        self._file = _find_source(module, self._folder)
        self.identity: Mapping[str, Any] = {
            "provider": "python",
            "function": target,
            "source": _hash_source(self._file),
            "temperature": temperature,
            "max_tokens": max_tokens,
            "seed": seed,
        }

    def load(self) -> None:
        """Import the function; raises UsageError."""
        self._function  # noqa: B018 - it is loaded when it is looked at

    @cached_property
    def _function(self) -> UserFunction:
        module = _import(self._module, self._folder)
        function: UserFunction | None = getattr(module, self._name, None)
        where = module.__file__ or self._module
        if not callable(function):
            raise UsageError(
                f"there is no function {quoted(self._name)}", where=where, advice=ADVICE
            )
        if not inspect.iscoroutinefunction(function):
            raise UsageError(
                f"{quoted(self._name)} is no coroutine function",
                where=where,
                advice="Write `async def`; await asyncio.to_thread(...) for work that blocks.",
            )
        return function

    async def answer(self, question: Question) -> Reply:
        """Return the function's reply, or raise JudgeCrashed with where it went wrong."""
        params = self._params(question)
        messages = [message.json() for message in question.messages]
        schema = question.schema.value if question.schema else None
        coroutine = self._runner.call(self._function, messages, schema, params)
        try:
            async with asyncio.timeout(self._seconds):
                outcome = await coroutine
        except TimeoutError:
            await self._runner.leave_if_stuck()
            message = f"{self.name} did not return within {self._seconds:g} s"
            raise CallLost("timeout", message, billed=True) from None
        sampled = {k: params[k] for k in ("temperature", "seed") if params[k] is not None}
        return Reply(
            text=replace_surrogates(self._text(outcome)), model=self.name, sampling=sampled
        )

    async def close(self) -> None:
        """End the thread that the function ran in."""
        self._runner.close()

    def _text(self, outcome: CallOutcome) -> str:
        """Return the text of a call; raises JudgeCrashed, or a call error of the function's."""
        value, error = outcome
        if isinstance(error, CallError | EvenhandError):
            raise error
        if error is not None:
            where = _location(error, self._file)
            raise JudgeCrashed(f"{self.name} failed at {where}: {_describe(error)}") from error
        if inspect.iscoroutine(value):
            value.close()  # or its end would be told as never awaited
        if not issubclass(type(value), str):
            raise JudgeCrashed(f"{self.name} returned {type(value).__name__}, not str")
        # A subclass may say anything about itself, and no store takes it.
        return str.__str__(value)

    def _params(self, question: Question) -> dict[str, Any]:
        temperature, seed = question.sampling(self._temperature, self._seed)
        return {
            "temperature": temperature,
            "max_tokens": self._max_tokens,
            "seed": seed,
            "round": question.round,
            "repeat": question.repeat,
            "reask": question.reask,
        }


class CallOutcome(NamedTuple):
    """The end of a call: a value, or what it raised. A value, because some exceptions (SystemExit,
    KeyboardInterrupt) end an event loop that they pass through."""

    value: Any = None
    error: BaseException | None = None


class UserCodeRunner:
    """Runs coroutines of the user's in the event loop of one daemon thread, so that what they share
    (a client, a lock) stays in one loop, and what never returns keeps no process from ending."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    async def call(self, function: UserFunction, *arguments: Any) -> CallOutcome:
        """Return the outcome of a coroutine function."""
        here = asyncio.get_running_loop()
        ended: asyncio.Future[CallOutcome] = here.create_future()

        def resolve(outcome: CallOutcome) -> None:
            if not ended.done():
                ended.set_result(outcome)

        async def work() -> None:
            try:
                outcome = CallOutcome(await function(*arguments))
            except BaseException as error:
                outcome = CallOutcome(error=error)
            with suppress(RuntimeError):  # nobody waits any more
                here.call_soon_threadsafe(resolve, outcome)

        task = asyncio.run_coroutine_threadsafe(work(), self._running_loop())
        try:
            return await ended
        finally:
            task.cancel()

    async def leave_if_stuck(self) -> None:
        """After a call that took too long: begin anew with the next one, if the loop does not take
        another turn."""
        loop, beat, here = self._loop, asyncio.Event(), asyncio.get_running_loop()
        if loop is None:
            return
        with suppress(RuntimeError):  # the loop is closed: its thread has ended
            loop.call_soon_threadsafe(here.call_soon_threadsafe, beat.set)
        try:
            async with asyncio.timeout(BEAT_SECONDS):
                await beat.wait()
        except TimeoutError:
            if self._loop is loop:
                self._loop = self._thread = None

    def close(self) -> None:
        """End the loop, if it still takes turns."""
        loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is not None and thread is not None:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(loop.stop)
            thread.join(BEAT_SECONDS)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None or self._thread is None or not self._thread.is_alive():
            self._loop = loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=_run_loop, args=(loop,), name="evenhand-judge", daemon=True
            )
            self._thread.start()
        return self._loop


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    # What a task of the user's own raises on its way out ends this thread alone.
    with suppress(BaseException):
        loop.run_forever()
    with suppress(BaseException):
        loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()


def _find_source(name: str, folder: Path) -> str:
    """Return the file of a module, found without running anything of it; empty for one without a
    file. Raises UsageError if there is none of that name."""
    importlib.invalidate_caches()
    path, spec = [str(folder), *sys.path], None
    for part in accumulate(name.split("."), "{}.{}".format):
        spec = PathFinder.find_spec(part, path)
        if spec is None:
            if importlib.util.find_spec(name.partition(".")[0]) is None:
                raise _no_module(name, folder)
            return ""
        path = list(spec.submodule_search_locations or ())
    return spec.origin or "" if spec else ""


def _hash_source(file: str) -> str:
    try:
        data = Path(file).read_bytes()
    except OSError:
        return ""
    return f"blake2b:{hashlib.blake2b(data, digest_size=32).hexdigest()}"


def _import(name: str, folder: Path) -> ModuleType:
    """Return the module, of the suite's folder first. Raises UsageError."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    file = folder / f"{name}.py"
    try:
        return _load_file(name, file) if file.is_file() else importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if isinstance(error, ModuleNotFoundError) and error.name == name:
            raise _no_module(name, folder) from None
        raise UsageError(
            f"the module cannot be imported: {_describe(error)}",
            where=_location(error, str(file)),
            advice="Correct it, and run again.",
        ) from error


def _no_module(name: str, folder: Path) -> UsageError:
    return UsageError(f"there is no module {quoted(name)}", where=str(folder), advice=ADVICE)


def _load_file(name: str, file: Path) -> ModuleType:
    """Return the suite's own file, even if a module of that name was imported for another suite."""
    known = sys.modules.get(name)
    if known is not None and known.__file__ == str(file):
        return known
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _location(error: BaseException, file: str) -> str:
    """Return `file:line` of an error: the deepest line in the user's own file, if one is."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    in_file = [frame for frame in frames if frame.filename == file]
    deepest = next(reversed(in_file or frames), None)
    return f"{deepest.filename}:{deepest.lineno}" if deepest else file


def _describe(error: BaseException) -> str:
    """Return an exception in words, also one whose own words cannot be had."""
    try:
        words = quoted(error)
    except Exception:
        words = "without words that could be read"
    return f"{type(error).__name__}: {words}"
