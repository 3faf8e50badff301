"""A faulty provider, each fault through a whole run: it ends as the specification says."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests import provider as p
from tests.suites import at, judged, stored, write_suite

ATTEMPTS, ASKED_THRICE = 8, 3


@dataclass(frozen=True)
class Case:
    """A script of the provider and how the one unit ends."""

    name: str
    script: Sequence[p.Behaviour]
    ends: str
    """A fix code or nothing of a verdict, the reason of a failure, the exit code of a stop."""
    calls: int
    settings: dict[str, Any] = field(default_factory=dict)


def verdict(name: str, *script: p.Behaviour, fix: str = "", calls: int = 1, **s: Any) -> Case:
    return Case(name, script, fix, calls, s)


def failure(reason: str, name: str, *script: p.Behaviour, calls: int = 3, **s: Any) -> Case:
    return Case(name, script, reason, calls, s)


def stop(code: int, name: str, *script: p.Behaviour) -> Case:
    return Case(name, script, str(code), 1)


def escaped_surrogate(text: str) -> str:
    """The same as an escape inside the reply's own JSON."""
    return p.surrogate(text).replace("\ud83d", "\\ud83d")


def choosing(*changes: Callable[[str], str]) -> p.Behaviour:
    """An answer with several choices, each the reply with a change of its own."""

    async def behaviour(call: p.Call) -> web.StreamResponse:
        text = json.dumps(p.valid_reply(call.body, call.schema))
        bodies = [json.loads(p.completion(change(text))) for change in changes]
        choices = [choice for body in bodies for choice in body["choices"]]
        return web.json_response(bodies[0] | {"choices": choices})

    return behaviour


def spaced(text: str) -> str:
    """The same object, written otherwise."""
    return json.dumps(dict(reversed(json.loads(text).items())), indent=3)


SHORT = {"attempt_seconds": 0.2, "call_seconds": 0.5}
ABSURD = p.completion("{}").replace(b'"prompt_tokens": 900', b'"prompt_tokens": %d' % 10**30)

CASES = [
    # Tried again
    verdict("429", p.busy(), p.valid(), calls=2),
    verdict("429 with Retry-After", p.busy("0.02"), p.valid(), calls=2),
    verdict("429 with Retry-After 0", p.busy("0"), p.valid(), calls=2),
    verdict("500 and 503", p.failing(500), p.failing(503), p.valid(), calls=3),
    verdict("reset in mid-body", p.resetting(), p.valid(), calls=2),
    verdict("reset before the body", p.resetting(b""), p.valid(), calls=2),
    verdict("slow", p.pausing(0.05)),
    verdict("HTML once", p.HTML, p.valid(), calls=2),
    # Never an answer
    failure("transport", "always 503", p.failing(503), calls=ATTEMPTS),
    failure("transport", "always 429 with Retry-After 0", p.busy("0"), calls=ATTEMPTS),
    failure("transport", "HTML with status 200", p.HTML, calls=ATTEMPTS),
    failure("transport", "empty body", p.EMPTY, calls=ATTEMPTS),
    failure("transport", "200 MB body", p.flooding(200), calls=ATTEMPTS),
    failure("transport", "wrong charset", p.WRONG_CHARSET, calls=ATTEMPTS),
    failure("timeout", "never answering", p.never(), calls=0, limits=SHORT),
    failure("context_overflow", "context overflow", p.overflowing(), calls=1),
    # Repaired by code
    verdict("fenced", p.valid(p.fenced), fix="unwrapped"),
    verdict("think tags", p.valid(p.thinking), fix="unwrapped"),
    verdict("meta returned", p.valid(p.with_meta), fix="meta"),
    verdict("lone surrogate, bare", p.valid(p.surrogate)),
    verdict("two equal choices", choosing(str, str)),
    # Asked again
    verdict("repaired by a re-ask", p.valid(p.key_extra), p.valid(), calls=2),
    failure("not_json", "prose around", p.valid(p.in_prose)),
    failure("ambiguous", "two verdicts", p.valid(p.doubled)),
    failure("ambiguous", "two choices", choosing(str, p.otherwise)),
    failure("ambiguous", "two choices of one meaning", choosing(str, spaced)),
    failure("ambiguous", "three choices", choosing(str, str, p.otherwise)),
    failure(
        "not_json", "a choice that refuses", choosing(str, lambda text: "I cannot judge this.")
    ),
    failure("ambiguous", "duplicate key", p.valid(p.key_twice)),
    failure("schema", "extra key", p.valid(p.key_extra)),
    failure("schema", "missing key", p.valid(p.key_missing)),
    failure("not_json", "NaN", p.valid(p.scored(float("nan")))),
    failure("schema", "a score as a word", p.valid(p.scored("four"))),
    failure("out_of_range", "a score off the bands", p.valid(p.scored(4))),
    failure("evidence_missing", "made-up evidence", p.valid(p.quoting("stands nowhere"))),
    failure("meta_changed", "changed meta", p.valid(p.with_meta), settings={"expose_meta": True}),
    failure("refused", "refusal", p.refusing_to_judge()),
    failure("refused", "refusal in words", p.saying("I'm sorry, I cannot judge this.")),
    failure("filtered", "filtered", p.saying("", finish="content_filter")),
    failure("truncated", "cut by length", p.valid(p.cut_short, finish="length")),
    failure("not_json", "lone surrogate, escaped", p.valid(escaped_surrogate)),
    failure("empty", "nothing said", p.saying("")),
    failure("schema", "usage beyond belief", p.sending(ABSURD)),
    failure("schema", "no re-asks allowed", p.saying("{}"), calls=1, settings={"repairs": 0}),
    # The end of the run
    stop(4, "401", p.failing(401)),
    stop(4, "403", p.failing(403)),
    stop(4, "404", p.failing(404)),
    stop(4, "quota", p.out_of_quota()),
    stop(4, "redirect", p.redirecting("http://203.0.113.7/v1/chat/completions")),
    stop(5, "Retry-After of an hour", p.busy("3600")),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_fault_ends_as_the_specification_says(case: Case, tmp_path: Path) -> None:
    async with p.Provider(case.script) as provider:
        write_suite(tmp_path, 1, at(provider.url), **case.settings)
        summary = await judged(tmp_path)
    told = summary.json()
    assert told["planned"] == 1
    assert told["planned"] == told["verdicts"] + sum(told["failures"].values()) + told["pending"]
    assert told["calls"] == len(provider.calls)
    assert not case.calls or told["calls"] == case.calls
    rows = stored(tmp_path)
    if case.ends.isdecimal():
        assert summary.stopped is not None
        assert (summary.stopped.exit_code, told["pending"], rows) == (int(case.ends), 1, [])
        return
    assert summary.stopped is None
    assert told["pending"] == 0
    (row,) = rows
    if row["status"] == "verdict":
        assert [fix["code"] for fix in row["fixes"]] == ([case.ends] if case.ends else [])
    else:
        assert told["failures"] == {case.ends: 1}
        assert row["output"] is None


async def test_a_provider_that_stays_down_stops_the_run(tmp_path: Path) -> None:
    async with p.Provider(p.failing(503)) as provider:
        write_suite(tmp_path, 40, at(provider.url), limits={"concurrency": 4})
        summary = await judged(tmp_path)
        assert summary.stopped is not None
        assert summary.stopped.exit_code == 5
        assert summary.counts.pending > 0
        provider.script = [p.valid()]
        again = await judged(tmp_path)
    assert (again.counts.verdicts, again.counts.pending) == (40, 0)


async def test_reset_usage_is_not_kept(tmp_path: Path) -> None:
    """Counts that no call can have are unknown, not zero, and the price is the most possible."""
    async with p.Provider(p.sending(ABSURD)) as provider:
        price = {"input": 1, "output": 1}
        write_suite(tmp_path, 1, at(provider.url, price=price), settings={"repairs": 0})
        summary = await judged(tmp_path)
    assert not any(summary.json()["usage"].values())
    assert summary.spent.cost > 0
