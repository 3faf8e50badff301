"""A judge that is the user's own function: `python/module:function`.

    async def f(messages, schema, params) -> str

Asked for an answer that is to be judged, it may also return a list of messages: the conversation of
an agent.

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
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from evenhand.errors import (
    CallError,
    CallLost,
    EvenhandError,
    JudgeCrashed,
    UsageError,
    quote,
)
from evenhand.exchange import Judge, Question, Reply
from evenhand.jsontext import dump
from evenhand.judges.providers import JudgeOptions, Provider
from evenhand.text import replace_surrogates
from evenhand.words import Sentence

BEAT_SECONDS = 1.0
"""A loop that has not taken a turn for so long is held up by what runs in it."""
T = TypeVar("T")
UserFunction = Callable[..., Coroutine[Any, Any, Any]]


class PythonJudge(Judge):
    """The user's function. It is imported by `load`, or by the first question, never before: its
    identity comes from the file as it lies there."""

    def __init__(self, provider: Provider, options: JudgeOptions, target: str) -> None:
        module, _, function = target.partition(":")
        if not all(part.isidentifier() for part in (*module.split("."), function)):
            raise UsageError(Sentence("judges.not_module_function", target=target))
        self.name = options.name
        self.account: Hashable = (provider.name, target)
        self._settings: dict[str, Any] = {
            "temperature": options.temperature,
            "max_tokens": options.max_tokens,
            "seed": options.seed,
        }
        self._seconds, self._runner = options.attempt_seconds, UserCodeRunner()
        self._module, self._name, self._folder = module, function, options.folder.resolve()
        self._file = _find_source(module, self._folder)
        self.identity: Mapping[str, Any] = {
            "provider": provider.name,
            "function": target,
            "source": _hash_source(self._file),
            **self._settings,
        }

    def load(self) -> None:
        """Import the function; raises UsageError."""
        self._function  # noqa: B018 - it is loaded when it is looked at

    @cached_property
    def _function(self) -> UserFunction:
        module = _import(self._module, self._folder, self._file)
        function: UserFunction | None = getattr(module, self._name, None)
        if not callable(function):
            raise UsageError(Sentence("judges.no_function", name=self._name), where=self._file)
        if not inspect.iscoroutinefunction(function):
            raise UsageError(Sentence("judges.not_async", name=self._name), where=self._file)
        return function

    async def answer(self, question: Question) -> Reply:
        """Return the function's reply, or raise JudgeCrashed with where it went wrong."""
        temperature, seed = question.sampling(self._settings["temperature"], self._settings["seed"])
        params = {
            **self._settings,
            "temperature": temperature,
            "seed": seed,
            "round": question.round,
            "repeat": question.repeat,
            "reask": question.reask,
        }
        messages = [message.json() for message in question.messages]
        schema = question.schema.value if question.schema else None
        try:
            outcome = await self._runner.call(
                self._seconds, self._function, messages, schema, params
            )
        except TimeoutError:
            message = f"{self.name} did not return within {self._seconds:g} s"
            raise CallLost("timeout", message, billed=True) from None
        sampled = {k: params[k] for k in ("temperature", "seed") if params[k] is not None}
        return Reply(
            text=replace_surrogates(self._text(outcome, question.wants_answer)),
            model=self.name,
            sampling=sampled,
        )

    async def close(self) -> None:
        """End the thread that the function ran in."""
        self._runner.close()

    def _text(self, outcome: CallOutcome, may_be_messages: bool) -> str:
        """Return the text of a call; raises JudgeCrashed, or a call error of the function's."""
        value, error = outcome
        if isinstance(error, CallError | EvenhandError):
            raise error
        if error is not None:
            where = _location(error, self._file)
            raise JudgeCrashed(f"{self.name} failed at {where}: {_describe(error)}") from error
        if inspect.iscoroutine(value):
            value.close()  # or its end would be told as never awaited
        if may_be_messages and isinstance(value, list):
            return dump(value)
        # Not isinstance: a class may pretend. A subclass of str is taken as its text.
        if not issubclass(type(value), str):
            raise JudgeCrashed(f"{self.name} returned {type(value).__name__}, not str")
        return str.__str__(value)


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

    async def call(self, seconds: float, function: UserFunction, *arguments: Any) -> CallOutcome:
        """Return the outcome of a coroutine function. Raises TimeoutError; then the next call has
        another thread if this one is held up."""

        async def work() -> CallOutcome:
            try:
                return CallOutcome(await function(*arguments))
            except BaseException as error:
                return CallOutcome(error=error)

        loop = self._running_loop()
        try:
            return await _wait(seconds, work(), loop)
        except TimeoutError:
            try:
                await _wait(BEAT_SECONDS, asyncio.sleep(0), loop)
            except TimeoutError:
                if self._loop is loop:
                    self._loop = self._thread = None
            raise

    def close(self) -> None:
        """End the loop, if it still takes turns."""
        loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is not None and thread is not None:
            with suppress(RuntimeError):  # its thread has ended
                loop.call_soon_threadsafe(loop.stop)
            thread.join(BEAT_SECONDS)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None or self._thread is None or not self._thread.is_alive():
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=_run_loop, args=(self._loop,), daemon=True)
            self._thread.start()
        return self._loop


async def _wait(seconds: float, work: Coroutine[Any, Any, T], loop: Any) -> T:
    """Return the result of a coroutine in another thread's loop. Raises TimeoutError."""
    async with asyncio.timeout(seconds):
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
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
    package, *parts = name.split(".")
    spec = PathFinder.find_spec(package, [str(folder)]) or importlib.util.find_spec(package)
    for part in parts:
        spec = spec and PathFinder.find_spec(part, spec.submodule_search_locations or ())
    if spec is None:
        raise UsageError(Sentence("judges.no_module", name=name), where=str(folder))
    return spec.origin or ""


def _hash_source(file: str) -> str:
    try:
        data = Path(file).read_bytes()
    except OSError:
        return ""
    return f"blake2b:{hashlib.blake2b(data, digest_size=32).hexdigest()}"


def _import(name: str, folder: Path, file: str) -> Any:
    """Return the module, of the suite's folder first, even if one of that name was imported for
    another suite. Raises UsageError."""
    sys.path[:] = [str(folder), *(path for path in sys.path if path != str(folder))]
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", file) != file:
        del sys.modules[name]
    try:
        return importlib.import_module(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise UsageError(
            Sentence("judges.import_failed", reason=_describe(error)), where=_location(error, file)
        ) from error


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
        words = quote(error)
    except Exception:
        words = "without words that could be read"
    return f"{type(error).__name__}: {words}"
