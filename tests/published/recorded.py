"""Recorded verdicts, asked for as a judge's replies: the adapter from published files to
judgments. It says what a judge saw in which slot and nothing else; turning the orders back,
comparing, settling and counting are the package's.
"""

from __future__ import annotations

import asyncio
import json
from typing import NamedTuple

from evenhand.exchange import Reply
from evenhand.files.protocols import find_protocol
from evenhand.kinds.conversation import JudgingContext
from evenhand.kinds.pairwise.kind import PairwiseProtocol
from evenhand.kinds.pairwise.unit import read_pairs
from evenhand.kinds.pairwise.verdict import measure_judgment
from evenhand.observation import Voted

MARKS = {"A": "A+", "B": "B+", "tie": "tie"}


class Asked(NamedTuple):
    """Which pass of which pair: what a record answers."""

    pair: str
    order: str
    round: int = 1


class Judged(NamedTuple):
    """A pair of a row, and what its judge says of it."""

    row: str
    vote: Voted


def topic(ident, *names):
    """An input row. Its texts stand for the judged ones, which settling never reads."""
    candidates = [{"id": name, "text": f"what {name} answered"} for name in names]
    return {"pair_id": str(ident), "topic": "as published", "candidates": candidates}


def reply(slot):
    """A judge that prefers a slot, `A` being the one it saw first. A record has a verdict and no
    criteria, so the verdict is the only criterion."""
    given = {"first_meets": True, "second_meets": True, "comment": "so", "mark": MARKS[slot]}
    return json.dumps({"criteria": {"overall": given}, "explanation": "so", "winner": slot})


def judged(rows, replies, max_rounds=1):
    """Every pair of these rows, judged by what was recorded, in the order of the rows."""
    pairs = []
    for row in rows:
        # As in a run, every other pair is asked in the order 21 first.
        pairs += read_pairs(row)
    return asyncio.run(_judged(pairs, replies, max_rounds))


async def _judged(pairs, replies, max_rounds):
    async def ask(question):
        return Reply(text=replies[Asked(question.unit, question.order, question.round)])

    protocol, found = _protocol(max_rounds), list[Judged]()
    for pair in pairs:
        judgment = await protocol.judge(pair, JudgingContext(ask=ask))
        found.append(Judged(pair.row, measure_judgment(judgment)))
    return found


def _protocol(max_rounds):
    builtin = find_protocol("pairwise")
    return PairwiseProtocol(
        prompts=builtin.prompts("en"),
        words=builtin.words("en"),
        criteria={"overall": "The better answer on the whole."},
        priority=(),
        max_rounds=max_rounds,
        repairs=0,
    )


def winner(one):
    """The settled winner of a pair with one judge; `failure` where there is none."""
    return one.vote.winner or "failure"
