"""Calls, units and judgments for the contract of ledgers."""

from msgspec import Raw

from evenhand.exchange import Reply, Usage
from evenhand.judgment import Evidence, Failure, Fix, Pass, Verdict, write_judgment
from evenhand.kinds.rubric.verdict import RubricVerdict
from evenhand.manifest import (
    JudgingRecord,
    Manifest,
)
from evenhand.store.ports import Call, IncomingUnit, StoredJudgment
from evenhand.store.rows import CALL_TAG


def key(number):
    return f"{CALL_TAG}{number:040x}"


def incoming(number, body="{}", where="a.jsonl"):
    return IncomingUnit(f"u{number}", f"{where}:{number + 1}", body)


def units_of(number, body="{}"):
    return [incoming(i, body) for i in range(number)]


def call(number, run="run1", cost=5, text="reply"):
    usage = Usage(input_tokens=7, output_tokens=3, cached_tokens=1, cache_write_tokens=number % 3)
    thought = "thought\0" * (number % 2)
    odds = {"a": {"x": -0.5}}
    reply = Reply(text=text, usage=usage, model="m", finish="length", odds=odds, reasoning=thought)
    return Call(key(number), run, "judge", reply, cost)


def of(unit, outcome, *calls, repeat=0):
    text = write_judgment(outcome, calls)
    return StoredJudgment(unit.no, 0, repeat, calls, len(calls) // 2, text)


VERDICT = Verdict(
    value=RubricVerdict(meta_json=Raw('{"n":1}'), scores={}, failure_tags=(), notes=""),
    evidence=(Evidence("d", 1, 4, "exact"),),
    fixes=(Fix("unwrapped", ""),),
    flags=("snapped",),
    passes=(Pass(reask=0, problems=()),),
)
FAILED = Failure(reason="schema", detail="wrong")
LOST = Failure(reason="transport", detail="lost")


def every_call(stored):
    return stored.calls


OTHER = Manifest(judging=JudgingRecord(protocol="q"))
"""Of another judging."""


def ids(store, scope):
    return [unit.id for unit in store.archive.units(scope)]
