"""The tree of errors. Exceptions are for "cannot go on"; a judgment that fails is a value.

    EvenhandError
    ├── UsageError          exit 2   a flag, suite or protocol is wrong; nothing was sent
    ├── DataError           exit 3   a data file is wrong; nothing was sent
    ├── ProviderRefused     exit 4   key, model or quota: trying again will not help
    │   ├── KeyMissing               the judge needs a key, and none is set
    │   └── ModelMissing    exit 2   the embedded model is not here yet
    ├── StoppedEarly        exit 5   deadline or provider down; run again to continue
    │   ├── LimitReached             budget or tokens_per_minute: no room for the next call
    │   └── NoVerdicts               all judgments fail
    ├── StoreError          exit 6   the store cannot be opened or is damaged
    │   ├── StoreMissing             there is no store yet
    │   ├── StoreBusy                another process judges the same run
    │   └── ReplyAltered             a reply is not what was recorded
    └── Interrupted         exit 130 Ctrl-C
    CallError               raised by a judge for one call; becomes a failure in the engine
    ├── CallLost            no usable answer: tried again, then `transport` or `timeout`
    ├── CallRejected        this question cannot be answered: a failure at once
    └── JudgeCrashed        the judge's process died: `judge_crash`
    AskAgain                the endpoint refused a request's form; the judge now has another
    NothingRecorded         a judge of recorded replies has none for this unit: it stays pending

Each message says what happened, where, and what to do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, ClassVar

from evenhand.text import visible

if TYPE_CHECKING:
    from evenhand.judgment import Reason

QUOTE_LIMIT = 200

_START = (
    # A path may hold an @, and a store in a file has no password.
    r"(?:(?<![\w+.-])(?!sqlite:)[a-z][a-z0-9+.-]+:/{1,2}|(?<![^\s\"'=(,])//"
    r"|(?<!\w)postgres(?:ql)?:)"
)
_ADDRESS = re.compile(rf"({_START}).*@", re.IGNORECASE | re.DOTALL)
# Advice shows how an address looks, with words in the place of a name and a password.
_PLACEHOLDER = r"(?!/{0,2}(?:USER|me|user:password)@[^\s@]*(?:\s|$))"
_IN_TEXT = re.compile(rf"({_START}){_PLACEHOLDER}\S*@", re.IGNORECASE)
_SETTING = re.compile(r"([?&](?:ssl)?password=)[^&\s]*", re.IGNORECASE)
_HIDDEN = r"\1***"


def hide_in_address(address: str) -> str:
    """Return an address without what stands between its `//` and its last `@`."""
    return _ADDRESS.sub(rf"{_HIDDEN}@", _SETTING.sub(_HIDDEN, address))


def hide_credentials(text: str) -> str:
    """Return a text in which every address is without what stands between its `//` and its last
    `@`; an address ends at white space."""
    if "@" not in text and "password=" not in text:
        return text
    hidden = _IN_TEXT.sub(rf"{_HIDDEN}@", _SETTING.sub(_HIDDEN, text))
    return text if hidden == text else hidden  # a message stays one


def quote(value: object) -> str:
    """Return `value` as it may stand in a message: cut at 200 characters, control characters shown,
    an address without its password."""
    text = hide_in_address(str(value))
    cut = text if len(text) <= QUOTE_LIMIT else text[: QUOTE_LIMIT - 1] + "…"
    visible = "".join(c if c.isprintable() else repr(c)[1:-1] for c in cut)
    return f'"{visible}"'


def nearest(name: str, candidates: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known name that a wrong one was most likely meant to be; None if none is near."""
    from difflib import get_close_matches  # spares every start that goes well

    folded = {candidate.casefold(): candidate for candidate in candidates}
    close = get_close_matches(name.casefold(), folded, n=1, cutoff=cutoff)
    return folded[close[0]] if close else None


class EvenhandError(Exception):
    """An error that ends the command, with its exit code."""

    exit_code: ClassVar[int] = 70

    def __init__(self, what: str, *, where: str = "", advice: str = "") -> None:
        advice = advice or getattr(what, "advice", "")  # a Sentence knows its advice
        self.what, self.where, self.advice = map(hide_credentials, (what, where, advice))
        super().__init__(self.what)

    @property
    def key(self) -> str:
        """Return the key of the message; "" of a text that is none."""
        return getattr(self.what, "key", "")

    def text(self, tell: Callable[[str], str] = str) -> str:
        """Return what happened, where, and what to do, each as `tell` puts it in a language."""
        # The name of a file may hold anything, line breaks too.
        where = tell(self.where).replace("\n", "\\n")
        placed = f"{where}: {tell(self.what)}" if where else tell(self.what)
        return visible(f"{placed}\n  {tell(self.advice)}" if self.advice else placed)

    def __str__(self) -> str:
        return self.text()


class UsageError(EvenhandError):
    exit_code = 2


class DataError(EvenhandError):
    exit_code = 3


class NoRows(DataError):
    """A table that can be read and holds nothing."""


class ProviderRefused(EvenhandError):
    exit_code = 4


class KeyMissing(ProviderRefused):
    pass


class ModelMissing(ProviderRefused):
    exit_code = 2


class StoppedEarly(EvenhandError):
    exit_code = 5


class LimitReached(StoppedEarly):
    """A limit of the suite does not allow the next call, which needs so much money (picodollars; 0
    where it is not about money)."""

    def __init__(self, what: str, *, advice: str = "", amount: int = 0) -> None:
        super().__init__(what, advice=advice)
        self.amount = amount


class NoVerdicts(StoppedEarly):
    """All judgments fail, so the rest is not asked."""


class NoVerdictsWarning(UserWarning):
    """A run from Python has no verdicts, or was stopped because all judgments failed."""


class StoreError(EvenhandError):
    exit_code = 6


class StoreMissing(StoreError):
    pass


class StoreBusy(StoreError):
    pass


class ReplyAltered(StoreError):
    pass


class Interrupted(EvenhandError):
    exit_code = 130


class CallError(Exception):
    """One call that gave no reply. `reason` is the failure it becomes when nothing else helps."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(hide_credentials(message))
        self.reason: Reason = reason


class CallLost(CallError):
    """Overload, reset, timeout, nonsense from a gateway: worth another attempt.

    `billed` says that the request may have reached the model; `retry_after` is the pause in
    seconds that the provider asked for. `is_busy` says that it has too much to do, `is_final` that
    it asks not to be tried again, `is_unreachable` that nobody was there to connect to.
    """

    def __init__(
        self,
        reason: Reason,
        message: str,
        *,
        retry_after: float | None = None,
        billed: bool = False,
        is_busy: bool = False,
        is_final: bool = False,
        is_unreachable: bool = False,
    ) -> None:
        super().__init__(reason, message)
        self.retry_after, self.billed = retry_after, billed
        self.is_busy, self.is_final, self.is_unreachable = is_busy, is_final, is_unreachable


class CallRejected(CallError):
    """The provider will not answer this question, now or later."""


class AskAgain(Exception):
    """The endpoint refused the form of a request. The judge has learnt another: the same question
    may be sent again at once, as a request that counts like any other."""


class NothingRecorded(Exception):
    """There is no recorded reply for this unit, so there is no call and no failure."""


class JudgeCrashed(CallError):
    """The judge's own process died or hung on this question."""

    def __init__(self, message: str) -> None:
        super().__init__("judge_crash", message)
