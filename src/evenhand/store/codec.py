"""Judgments and calls as rows, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Annotated, Any, NamedTuple

from msgspec import Meta, Struct

from evenhand import jsontext
from evenhand.exchange import Reply, Usage
from evenhand.judgment import JudgmentText
from evenhand.store.keys import ROW_TAG, digest, row_digest
from evenhand.store.ports import Call, StoredJudgment
from evenhand.storedtext import StoredText, stored_object

CALL_COLUMNS = (
    "key, run, judge, reply, finish, model, odds, sampling,"
    " input_tokens, output_tokens, cached_tokens, cost, input_most, output_most, claimed,"
    " stored_tokens, reasoning"
)

_Number = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
"""What SQLite can hold."""


class CallRow(NamedTuple):
    """CALL_COLUMNS, the digest of all of them and the time."""

    key: str
    run: str
    judge: str
    reply: str
    finish: str
    model: str
    odds: str
    sampling: str
    input_tokens: _Number | None
    output_tokens: _Number | None
    cached_tokens: _Number
    cost: _Number | None
    input_most: _Number | None
    output_most: _Number | None
    claimed: str | None
    stored_tokens: _Number | None
    reasoning: str | None
    digest: str
    at: str


def call_row(call: Call, at: str) -> CallRow:
    """A call that was recorded at a time as a row of `calls`."""
    reply, usage, most = call.reply, call.reply.usage, call.most
    odds = jsontext.compact(reply.odds) if reply.odds else ""
    sampling = _sampling_text(reply.sampling)
    columns = (
        call.key,
        call.run,
        call.judge,
        reply.text,
        reply.finish,
        reply.model,
        odds,
        sampling,
        usage.input_tokens,
        usage.output_tokens,
        usage.cached_tokens,
        call.cost,
        most.input_tokens,
        most.output_tokens,
        usage.implausible or None,
        usage.cache_write_tokens or None,
        reply.reasoning or None,
    )
    return CallRow(*columns, _call_digest(columns, at), at)


def _sampling_text(sampling: Mapping[str, Any]) -> str:
    """What was sent of temperature and seed. A judge of the user's own may put anything there: its
    reply is paid for, and is kept whatever it says."""
    try:
        return _usual_sampling(*chain.from_iterable(sampling.items()))
    except (TypeError, ValueError):
        return jsontext.compact({str(name): _writable(sampling[name]) for name in sampling})


@lru_cache(maxsize=16, typed=True)
def _usual_sampling(*parts: str | float) -> str:
    """Names and values in turn: alike for most calls."""
    return jsontext.compact(dict(zip(parts[::2], parts[1::2], strict=True))) if parts else ""


def _writable(value: object) -> object:
    """A value, or its text where JSON has none such."""
    try:
        jsontext.compact(value)
    except (TypeError, ValueError):
        return repr(value)
    return value


def _call_digest(columns: Sequence[Any], at: str) -> str:
    """Return the digest of a call; that of one without stored tokens or reasoning is as it was
    before these were kept."""
    end = len(columns)
    while end > len(columns) - 2 and columns[end - 1] is None:
        end -= 1
    return row_digest(*columns[:end], at)


def is_altered(columns: Sequence[Any], stored: object, at: str) -> bool:
    """Whether a call is not what was recorded, by its columns, its digest and its time. Calls of
    earlier versions have a digest of the reply alone."""
    if not isinstance(stored, str) or not isinstance(columns[3], str):
        return True
    if stored.startswith(ROW_TAG):
        return _call_digest(columns, at) != stored
    return digest(columns[3]) != stored


def row_call(row: tuple[Any, ...]) -> Call:
    """The call of a row of CALL_COLUMNS."""
    key, run, judge, text, finish, model, odds, sampling, *tokens, cached, cost = row[:-5]
    *bound, claimed, stored, reasoning = row[-5:]
    reply = Reply(
        text=text,
        finish=finish,
        usage=Usage(
            input_tokens=tokens[0],
            output_tokens=tokens[1],
            cached_tokens=cached,
            cache_write_tokens=stored or 0,
            implausible=claimed or "",
        ),
        model=model,
        odds=stored_object(odds, "a call") if odds else {},
        sampling=stored_object(sampling, "a call") if sampling else {},
        reasoning=reasoning or "",
    )
    most = Usage(input_tokens=bound[0], output_tokens=bound[1])
    return Call(key, run, judge, reply, cost, most)


JUDGMENT_COLUMNS = "judging, unit, judge, repeat, status, reason, calls, reasks, body"


def judgment_row(judging: int, stored: StoredJudgment) -> tuple[Any, ...]:
    """JUDGMENT_COLUMNS, and their digest."""
    status, reason, body = stored.text
    columns = (
        *(judging, stored.unit, stored.judge, stored.repeat, status, reason),
        *(len(stored.calls), stored.reasks, body),
    )
    return (*columns, row_digest(*columns))


class _Calls(Struct):
    """All that the ledger itself reads of a judgment."""

    calls: tuple[str, ...]


_calls: StoredText[_Calls] = StoredText(_Calls, "a judgment")


def row_judgment(row: tuple[Any, ...]) -> StoredJudgment:
    """The judgment of a row of unit, judge, repeat, status, reason, reasks, body."""
    unit, judge, repeat, status, reason, reasks, body = row
    text = JudgmentText(status, reason, body)
    return StoredJudgment(unit, judge, repeat, _calls.read(body).calls, reasks, text)
