"""A judge that is the user's own function: `python/module:function`.

    async def f(messages, schema, params) -> str

`messages` is a list of `{"role", "content"}`, `params` has temperature, max_tokens, seed, round,
repeat and reask. The function may raise the call errors of `evenhand.errors`; whatever else
it raises or returns, and where it never does, costs one call and never the run: it runs apart. The
text of its module is part of its identity.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Hashable, Mapping
from functools import cached_property
from importlib.machinery import all_suffixes
from pathlib import Path
from types import ModuleType
from typing import Any

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
from evenhand.judges.apart import Apart, Outcome
from evenhand.judges.sampling import sampling, storable

ADVICE = "Name it as python/module:function; the module lies in the suite's folder or is installed."


class PythonJudge:
    """The user's function. It is imported by `load`, or by the first question, never before: its
    identity comes from the file as it lies there."""

    style: Style = "full"
    slots: int | None = None
    caveat: str = ""
    lacks: ProviderRefused | None = None

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
        self._seconds, self._apart = attempt_seconds, Apart()
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
                outcome = await self._apart.call(function, messages, schema, params)
        except TimeoutError:
            await self._apart.leave_stuck()
            fault = f"{self.name} did not return within {self._seconds:g} s"
            raise CallLost("timeout", fault, billed=True) from None
        return Reply(text=storable(self._text(outcome)), model=self.name, sampling=sampled)

    async def close(self) -> None:
        """End the thread that the function ran in."""
        self._apart.close()

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
