"""Judgments and calls as rows, and back."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.json import Decoder

from evenhand import jsontext
from evenhand.exchange import Reply, Usage
from evenhand.judgment import JudgmentText
from evenhand.ledger.keys import digest
from evenhand.ledger.ports import Call, StoredJudgment

CALL_COLUMNS = (
    "key, run, judge, reply, finish, model, odds, sampling,"
    " input_tokens, output_tokens, cached_tokens, cost, input_most, output_most"
)


def call_row(call: Call, at: str) -> tuple[Any, ...]:
    """The columns of `calls`, the digest of the reply and the time last."""
    reply, usage, most = call.reply, call.reply.usage, call.most
    odds, sampling = (jsontext.compact(it) if it else "" for it in (reply.odds, reply.sampling))
    return (
        *(call.key, call.run, call.judge, reply.text, reply.finish, reply.model, odds, sampling),
        *(usage.input_tokens, usage.output_tokens, usage.cached_tokens, call.cost),
        *(most.input_tokens, most.output_tokens),
        *(digest(reply.text), at),
    )


def row_call(row: tuple[Any, ...]) -> Call:
    """The call of a row of CALL_COLUMNS."""
    key, run, judge, text, finish, model, odds, sampling, *tokens, cached, cost = row[:-2]
    reply = Reply(
        text=text,
        finish=finish,
        usage=Usage(input_tokens=tokens[0], output_tokens=tokens[1], cached_tokens=cached),
        model=model,
        odds=jsontext.parse(odds) if odds else {},
        sampling=jsontext.parse(sampling) if sampling else {},
    )
    most = Usage(input_tokens=row[-2], output_tokens=row[-1])
    return Call(key, run, judge, reply, cost, most)


def judgment_row(stored: StoredJudgment) -> tuple[Any, ...]:
    """The columns of `judgments` after the judging."""
    status, reason, body = stored.text
    return (
        *(stored.unit, stored.judge, stored.repeat, status, reason),
        *(len(stored.calls), stored.reasks, body),
    )


class _Calls(Struct):
    """All that the ledger itself reads of a judgment."""

    calls: tuple[str, ...]


_calls = Decoder(_Calls)


def row_judgment(row: tuple[Any, ...]) -> StoredJudgment:
    """The judgment of a row of unit, judge, repeat, status, reason, reasks, body."""
    unit, judge, repeat, status, reason, reasks, body = row
    text = JudgmentText(status, reason, body)
    return StoredJudgment(unit, judge, repeat, _calls.decode(body).calls, reasks, text)
