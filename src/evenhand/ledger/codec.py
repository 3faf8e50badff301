"""Judgments and calls as rows, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evenhand import jsontext
from evenhand.exchange import Reply, Usage
from evenhand.judgment import Evidence, Fix, Judgment
from evenhand.ledger.keys import digest
from evenhand.ledger.store import Call, StoredJudgment

CALL_COLUMNS = (
    "key, run, judge, reply, finish, model, odds, sampling,"
    " input_tokens, output_tokens, cached_tokens, cost"
)


def call_row(call: Call, at: str) -> tuple[Any, ...]:
    """The columns of `calls`, the digest of the reply and the time last."""
    reply, usage = call.reply, call.reply.usage
    odds, sampling = (jsontext.compact(it) if it else "" for it in (reply.odds, reply.sampling))
    return (
        *(call.key, call.run, call.judge, reply.text, reply.finish, reply.model, odds, sampling),
        *(usage.input_tokens, usage.output_tokens, usage.cached_tokens, call.cost),
        *(digest(reply.text), at),
    )


def row_call(row: tuple[Any, ...]) -> Call:
    """The call of a row of CALL_COLUMNS."""
    key, run, judge, text, finish, model, odds, sampling, *tokens, cached, cost = row
    reply = Reply(
        text=text,
        finish=finish,
        usage=Usage(input_tokens=tokens[0], output_tokens=tokens[1], cached_tokens=cached),
        model=model,
        odds=jsontext.parse(odds) if odds else {},
        sampling=jsontext.parse(sampling) if sampling else {},
    )
    return Call(key, run, judge, reply, cost)


def judgment_row(stored: StoredJudgment) -> tuple[Any, ...]:
    """The columns of `judgments`."""
    judgment = stored.judgment
    return (
        *(stored.unit, stored.judge, stored.repeat, judgment.status, judgment.reason, stored.basis),
        *(len(stored.calls), stored.reasks, judgment_body(judgment, stored.calls)),
    )


def judgment_body(
    judgment: Judgment, calls: tuple[str, ...] = (), write: Callable[[Any], str] = jsontext.dump
) -> str:
    """The column `body`: all of a judgment but its status and reason."""
    body = {
        "output": judgment.output,
        "detail": judgment.detail,
        "evidence": [[e.dimension, e.start, e.end, e.match] for e in judgment.evidence],
        "fixes": [[fix.code, fix.path] for fix in judgment.fixes],
        "flags": judgment.flags,
        "passes": judgment.passes,
        "calls": calls,
    }
    return write(body)


def row_judgment(row: tuple[Any, ...]) -> StoredJudgment:
    """The judgment of a row of unit, judge, repeat, status, reason, basis, reasks, body."""
    unit, judge, repeat, status, reason, basis, reasks, text = row
    body = jsontext.parse(text)
    judgment = Judgment(
        status=status,
        reason=reason,
        output=body["output"],
        detail=body["detail"],
        evidence=tuple(Evidence(*one) for one in body["evidence"]),
        fixes=tuple(Fix(*one) for one in body["fixes"]),
        flags=tuple(body["flags"]),
        passes=tuple(body["passes"]),
    )
    return StoredJudgment(unit, judge, repeat, basis, tuple(body["calls"]), reasks, judgment)
