"""A judge that is the user's own function: `python/module:function`.

    async def f(messages, schema, params) -> str

`messages` is a list of `{"role", "content"}`, `params` has temperature, max_tokens, seed, round,
repeat and reask. The function may raise the call errors of `evenhand.errors`; whatever else it
raises or returns, and where it never does, costs one call and never the run: it runs in threads of
its own. What it raises comes back as a value, for some exceptions (SystemExit, KeyboardInterrupt)
end an event loop that they pass through, and one (StopIteration) is lost in a future. What never
returns is left behind in its thread, which keeps no process from ending; the event loop of the run,
and Ctrl-C with it, never wait for it. The text of its module is part of its identity."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import importlib.util
import inspect
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable, Hashable, Mapping
from contextlib import suppress
from contextvars import copy_context
from functools import cached_property, partial
from importlib.machinery import all_suffixes
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
from evenhand.judges.sampling import sampling, storable

ADVICE = "Name it as python/module:function; the module lies in the suite's folder or is installed."


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
        self.name = name
        self.account: Hashable = ("python", target)
        self._temperature, self._max_tokens, self._seed = temperature, max_tokens, seed
        self._seconds, self._runner = attempt_seconds, UserCodeRunner()
        module, _, function = target.partition(":")
        if not all(part.isidentifier() for part in (*module.split("."), function)):
            raise UsageError(f"{quoted(target)} is not module:function", advice=ADVICE)
        self._module, self._name, self._folder = module, function, folder
        self._file = str(_source_file(module, folder) or "")
        self.identity: Mapping[str, Any] = {
            "provider": "python",
            "function": target,
            "source": _source_hash(self._file),
            "temperature": temperature,
            "max_tokens": max_tokens,
            "seed": seed,
        }

    def load(self) -> None:
        """Import the function; raises UsageError."""
        self._function  # noqa: B018 - it is loaded when it is looked at

    @cached_property
    def _function(self) -> Callable[..., Any]:
        module = _imported(self._module, self._folder)
        function: Callable[..., Any] | None = getattr(module, self._name, None)
        if not callable(function):
            fault = f"there is no function {quoted(self._name)}"
            raise UsageError(fault, where=module.__file__ or self._module, advice=ADVICE)
        return function

    async def answer(self, question: Question) -> Reply:
        """What the function returns, or JudgeCrashed with where it went wrong."""
        messages = [message.json() for message in question.messages]
        schema = question.schema.value if question.schema else None
        params = self._params(question)
        sampled = {k: params[k] for k in ("temperature", "seed") if params[k] is not None}
        function = self._function
        try:
            async with asyncio.timeout(self._seconds):
                outcome = await self._runner.call(function, messages, schema, params)
        except TimeoutError:
            await self._runner.leave_stuck()
            fault = f"{self.name} did not return within {self._seconds:g} s"
            raise CallLost("timeout", fault, billed=True) from None
        return Reply(text=storable(self._text(outcome)), model=self.name, sampling=sampled)

    async def close(self) -> None:
        """End the thread that the function ran in."""
        self._runner.close()

    def _text(self, outcome: Outcome) -> str:
        """The text that a call came to; raises JudgeCrashed, or a call error of the function's."""
        value, error = outcome
        if isinstance(error, CallError | EvenhandError):
            raise error
        if error is not None:
            raise JudgeCrashed(self._crash(error)) from error
        if inspect.iscoroutine(value):
            value.close()  # or its end would be told as never awaited
        if not issubclass(type(value), str):
            raise JudgeCrashed(f"{self.name} returned {type(value).__name__}, not str")
        # A subclass may say anything about itself, and no store takes it.
        return str.__str__(value)

    def _params(self, question: Question) -> dict[str, Any]:
        place = (question.round, question.repeat)
        temperature, seed = sampling(*place, self._temperature, self._seed)
        return {
            "temperature": temperature,
            "max_tokens": self._max_tokens,
            "seed": seed,
            "round": question.round,
            "repeat": question.repeat,
            "reask": question.reask,
        }

    def _crash(self, error: BaseException) -> str:
        return f"{self.name} failed at {_location(error, self._file)}: {_fault(error)}"


def _source_file(name: str, folder: Path) -> Path | None:
    """Where a module lies, found without running anything of it; None for one without a file.
    Raises UsageError where there is none of that name."""
    parts = name.split(".")
    for place in (folder.resolve(), *map(Path, sys.path)):
        module = place.joinpath(*parts)
        for path in (module.with_suffix(ending) for ending in all_suffixes()):
            if path.is_file():
                return path
        if (package := module / "__init__.py").is_file():
            return package
    if importlib.util.find_spec(parts[0]) is None:
        fault = f"there is no module {quoted(name)}"
        raise UsageError(fault, where=str(folder.resolve()), advice=ADVICE)
    return None


def _imported(name: str, folder: Path) -> ModuleType:
    place = str(folder.resolve())
    if place not in sys.path:
        sys.path.insert(0, place)
    file = Path(place, f"{name}.py")
    try:
        return _loaded(name, file) if file.is_file() else importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name == name:
            fault = f"there is no module {quoted(name)}"
            raise UsageError(fault, where=place, advice=ADVICE) from None
        raise _unimportable(error, file) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _unimportable(error, file) from error


def _loaded(name: str, file: Path) -> ModuleType:
    """The suite's own file, even where a module of that name was imported for another suite."""
    imported = sys.modules.get(name)
    if imported is not None and imported.__file__ == str(file):
        return imported
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


def _unimportable(error: BaseException, file: Path) -> UsageError:
    fault = f"the module cannot be imported: {_fault(error)}"
    return UsageError(fault, where=_location(error, str(file)), advice="Correct it, and run again.")


def _location(error: BaseException, file: str) -> str:
    """`file:line` where `error` arose: the deepest line of the user's own file, if one is in it."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    in_file = [frame for frame in frames if frame.filename == file]
    deepest = next(reversed(in_file or frames), None)
    return f"{deepest.filename}:{deepest.lineno}" if deepest else file


def _fault(error: BaseException) -> str:
    """An exception in words, also one whose own words cannot be had."""
    try:
        words = quoted(error)
    except Exception:
        words = "without words that could be read"
    return f"{type(error).__name__}: {words}"


def _source_hash(file: str) -> str:
    try:
        data = Path(file).read_bytes()
    except OSError:
        return ""
    return f"blake2b:{hashlib.blake2b(data, digest_size=32).hexdigest()}"


BEAT_SECONDS = 1.0
"""A loop that has not taken a turn for so long is held up by what runs in it."""


class Outcome(NamedTuple):
    """The end of a call: a value, or what it raised."""

    value: Any = None
    error: BaseException | None = None


class UserCodeRunner:
    """Calls functions: each plain one in a thread of its own, all coroutines in the event loop of
    one thread, so that what they share (a client, a lock) stays in one loop."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    async def call(self, function: Callable[..., Any], *arguments: Any) -> Outcome:
        """Return what the function came to; a coroutine that it returns is awaited once."""
        if inspect.iscoroutinefunction(function):
            return await self._await_there(partial(function, *arguments))
        outcome = await _in_thread(function, arguments)
        is_awaitable = outcome.error is None and inspect.isawaitable(outcome.value)
        return await self._await_there(lambda: outcome.value) if is_awaitable else outcome

    async def leave_stuck(self) -> None:
        """After a call that took too long: begin anew with the next one, if the loop of the
        coroutines does not take another turn."""
        loop = self._loop
        if loop is None:
            return
        beat = asyncio.Event()
        here = asyncio.get_running_loop()
        with suppress(RuntimeError):  # the loop is closed: its thread has ended
            loop.call_soon_threadsafe(here.call_soon_threadsafe, beat.set)
        try:
            async with asyncio.timeout(BEAT_SECONDS):
                await beat.wait()
        except TimeoutError:
            if self._loop is loop:
                self._loop = self._thread = None

    def close(self) -> None:
        """End the loop of the coroutines, if it still takes turns."""
        loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None:
            return
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(loop.stop)
        thread.join(BEAT_SECONDS)

    async def _await_there(self, begin: Callable[[], Awaitable[Any]]) -> Outcome:
        loop, here = self._running(), asyncio.get_running_loop()
        ended: asyncio.Future[Outcome] = here.create_future()
        tasks: list[asyncio.Task[None]] = []

        async def work() -> None:
            _resolve(here, ended, await _catch(begin))

        loop.call_soon_threadsafe(
            lambda: tasks.append(loop.create_task(work())), context=copy_context()
        )
        try:
            return await ended
        except asyncio.CancelledError:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])
            raise

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None or self._thread is None or not self._thread.is_alive():
            self._loop = asyncio.new_event_loop()
            self._thread = _thread(_run_loop, self._loop)
        return self._loop


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        # What a task of the user's own raises on its way out ends this thread alone.
        with suppress(BaseException):
            loop.run_forever()
    finally:
        with suppress(BaseException):
            loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


async def _in_thread(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Outcome:
    here, context = asyncio.get_running_loop(), copy_context()
    ended: asyncio.Future[Outcome] = here.create_future()

    def work() -> None:
        try:
            outcome = Outcome(context.run(function, *arguments))
        except BaseException as error:
            outcome = Outcome(error=error)
        _resolve(here, ended, outcome)

    _thread(work)
    return await ended


async def _catch(begin: Callable[[], Awaitable[Any]]) -> Outcome:
    try:
        return Outcome(await begin())
    except BaseException as error:
        return Outcome(error=error)


def _thread(work: Callable[..., None], *arguments: Any) -> threading.Thread:
    thread = threading.Thread(target=work, args=arguments, name="evenhand-judge", daemon=True)
    thread.start()
    return thread


def _resolve(
    loop: asyncio.AbstractEventLoop, ended: asyncio.Future[Outcome], outcome: Outcome
) -> None:
    """Hand an outcome to the loop that waits for it, if it still does."""

    def resolve() -> None:
        if not ended.done():
            ended.set_result(outcome)

    with suppress(RuntimeError):
        loop.call_soon_threadsafe(resolve)
