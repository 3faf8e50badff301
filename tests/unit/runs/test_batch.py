"""Runs by the batch: the same verdicts as live, each question paid once, and all adds up."""

from __future__ import annotations

import json
import random
from contextlib import asynccontextmanager, contextmanager

import pytest

from evenhand.errors import Interrupted, NoVerdicts, UsageError
from evenhand.runs.batch import BatchOptions
from evenhand.runs.stores import open_archive
from evenhand.store.verify import verify
from tests.batch_provider import KEYS, PROVIDERS, BatchProvider, Faults, fitting
from tests.cases import cases
from tests.provider import valid_reply
from tests.sentences import refused
from tests.suites import judged, pairs, prepared, samples, stored, write_pairs, write_suite

FOUND_AGAIN = {
    **{f"lost, {name}": (name, {"create": ["lost"]}) for name in PROVIDERS},
    "429": ("openai", {"create": ["busy", "busy"]}),
    "502 upload": ("openai", {"upload": ["broken"]}),
    "502 create": ("openai", {"create": ["broken"]}),
    "502 state": ("openai", {"state": ["broken", "broken"]}),
    "502 download": ("openai", {"download": ["broken", "broken"]}),
}


KEY = "sk-of-the-tests-0123456789"


UNITS = 20


ENV = dict.fromkeys(KEYS.values(), KEY)


PRICE = {"input": 1, "output": 2}


@asynccontextmanager
async def judged_by(folder, units, provider="openai", **faults):
    """A suite of samples whose judge is at a provider of batches with these faults."""
    async with BatchProvider(faults=Faults(**faults)) as server:
        write_suite(folder, units, server.judge(provider, price=PRICE))
        yield server


async def by_batch(folder, env=ENV, **options):
    """Judge a suite by the batch, in this process."""
    batch = BatchOptions(**{"then_live": 0, "look_first": 0.001, **options})
    summary = await judged(folder, env, batch=batch)
    _adds_up(folder, summary)
    return summary


def _adds_up(folder, summary):
    """planned = verdicts + failures + pending, and no money is held for what has ended."""
    counts = summary.counts
    assert counts.planned == counts.verdicts + sum(counts.failures.values()) + counts.pending
    archive = open_archive("sqlite:evenhand.db", folder)
    try:
        assert verify(archive) == []
        held = sum(batch.reserved for batch in archive.batches() if batch.is_open)
        assert summary.spent.reserved == held
    finally:
        archive.close()


def told(folder):
    """The judgments in the store, without what differs between stores."""
    return [json.loads(json.dumps(row, default=str)) for row in stored(folder)]


def contradicting(request):
    """Prefers whichever comes first, of some topics in every round; of the others none."""
    reply = valid_reply(request, request["schema"])
    texts = request["messages"][-1]["content"]
    is_odd = "Topic 1" in texts
    for criterion in reply["criteria"].values():
        criterion["mark"] = "A+" if is_odd else "tie"
    return json.dumps(reply | {"winner": "A" if is_odd else "tie"})


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_run_by_the_batch_is_the_run_that_is_live(tmp_path, provider):
    async with BatchProvider() as server:
        judge = server.judge(provider, price=PRICE, repeats=2)
        for name in ("live", "batch"):
            write_suite(tmp_path / name, UNITS, judge)
        live = await judged(tmp_path / "live", ENV)
        server.paid.clear()
        batch = await by_batch(tmp_path / "batch")
        assert server.live == 2 * UNITS
    assert (batch.counts, batch.stopped) == (live.counts, None)
    assert told(tmp_path / "batch") == told(tmp_path / "live")
    assert server.paid.total() == 2 * UNITS
    assert batch.tally.sent == 2 * UNITS
    assert batch.json()["usage"] == live.json()["usage"]
    assert batch.json()["usage"]["cached_tokens"] == 2 * UNITS * 40
    # A loopback is no provider's own address: the full price.
    share = 2 if provider == "azure" else 1
    assert batch.spent.cost == pytest.approx(live.spent.cost / share, rel=0.01)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_both_orders_go_first_and_contradictions_after_them(tmp_path, provider):
    rows = pairs(12)
    async with BatchProvider(contradicting) as server:
        for name in ("live", "batch"):
            write_pairs(tmp_path / name, rows, server.judge(provider))
        await judged(tmp_path / "live", ENV)
        summary = await by_batch(tmp_path / "batch")
        sizes = [len(batch.requests) for batch in server.batches.values()]
    assert summary.counts.pending == 0
    assert told(tmp_path / "batch") == told(tmp_path / "live")
    # Topics 1, 10 and 11 contradict themselves in each of three rounds.
    assert sizes == [24, 6, 6]


async def test_what_is_left_below_the_bound_is_asked_live(tmp_path):
    async with BatchProvider() as server:
        for units, batches in ((8, []), (20, [12])):
            write_suite(tmp_path, units, server.judge("openai"))
            summary = await by_batch(tmp_path, then_live=9)
            assert (server.live, sizes(server), summary.counts.verdicts) == (8, batches, units)


async def test_a_wave_is_cut_into_batches_of_the_size_allowed(tmp_path):
    async with judged_by(tmp_path, UNITS, looks=2) as server:
        summary = await by_batch(tmp_path, requests_most=6)
    assert (sizes(server), summary.counts.verdicts) == ([6, 6, 6, 2], UNITS)


def breaking(request):
    """Keeps the contract when it is asked again."""
    return fitting(request) if len(request["messages"]) > 2 else "{}"


async def test_re_asks_are_a_wave_of_their_own(tmp_path):
    async with BatchProvider(breaking) as server:
        write_suite(tmp_path, UNITS, server.judge("anthropic"))
        summary = await by_batch(tmp_path)
    assert [len(batch.requests) for batch in server.batches.values()] == [UNITS, UNITS]
    assert (summary.counts.verdicts, summary.tally.reasks) == (UNITS, UNITS)


class Once:
    """A change of the lines of the first batch alone."""

    def __init__(self, change):
        self._change, self._is_due = change, True

    def __call__(self, lines):
        due, self._is_due = self._is_due, False
        return self._change(lines) if due else lines


def missing(lines):
    return lines[::2]


def half_expired(lines):
    return [(i, 0, "batch_expired") if n % 2 else (i, s, b) for n, (i, s, b) in enumerate(lines)]


def overloaded(lines):
    error = {"error": {"message": "internal error", "type": "server_error"}}
    return [(i, 500, error) if n % 2 else (i, s, b) for n, (i, s, b) in enumerate(lines)]


LINES = {
    "unordered": lambda lines: random.Random(7).sample(lines, len(lines)),
    "doubled": lambda lines: [line for line in lines for _ in range(2)],
    "unknown": lambda lines: [("somebody-elses", 200, {"choices": []}), *lines, ("", 200, {})],
    "missing": missing,
    "status_code 0": lambda lines: [(lines[0][0], 0, None), *lines[1:]],
    "half expired": half_expired,
    "errors": overloaded,
}


@pytest.mark.parametrize("provider", ["openai", "anthropic", "google", "openrouter"])
@pytest.mark.parametrize("fault", LINES)
async def test_lines_may_come_in_any_order_twice_or_not_at_all(tmp_path, provider, fault):
    server, summary = await ran(tmp_path, 9, provider, 1, lines=Once(LINES[fault]))
    assert (summary.counts.verdicts, summary.counts.pending) == (9, 0)
    assert (len(server.paid), set(server.paid.values())) == (9, {1})
    assert (summary.spent.calls, len(server.batches)) == (9, 1)


async def test_what_a_batch_does_not_bring_back_is_asked_live(tmp_path):
    server, summary = await ran(tmp_path, 12, then_live=1, lines=half_expired, expired=True)
    assert (summary.counts.verdicts, server.live, len(server.batches)) == (12, 6, 1)
    assert set(server.paid.values()) == {1}
    # What is not answered live either fails.
    live = ["broken"] * 1000
    server, summary = await ran(tmp_path / "lost", 4, then_live=1, lines=missing, live=live)
    assert (summary.counts.verdicts, dict(summary.counts.failures)) == (2, {"transport": 2})


async def test_without_live_calls_what_no_batch_answers_stays_pending(tmp_path):
    async with judged_by(tmp_path, 12, lines=lambda lines: []) as server:
        assert [ending(await by_batch(tmp_path)) for _ in range(2)] == [5, 5]
    assert (server.live, len(server.batches)) == (0, 1)


def prefixed(lines):
    return [(f"batch_req_{i}", s, b) for i, s, b in lines]


def in_capitals(lines):
    return [(i.upper(), s, b) for i, s, b in lines]


def null(lines):
    return [(None, s, b) for _, s, b in lines]


def nameless(lines):
    return [({}, s, b) for _, s, b in lines]


def asked(server):
    """Questions that were paid for, by the batch or live."""
    return sum(len(batch.requests) for batch in server.batches.values()) + server.live


@pytest.mark.parametrize("change", [prefixed, in_capitals, null, nameless])
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_batch_of_which_nothing_can_be_matched_ends_the_run(tmp_path, provider, change):
    async with judged_by(tmp_path, UNITS, provider, lines=change) as server:
        for _ in range(3):
            summary = await by_batch(tmp_path, then_live=1)
            assert ending(summary) == 4
            assert (summary.counts.pending, asked(server)) == (UNITS, UNITS)
    [kept] = tmp_path.glob("evenhand-*-results.jsonl")
    assert str(kept) in summary.stopped.advice and "batch_0" in summary.stopped.what
    assert len(kept.read_bytes().splitlines()) == UNITS
    # It may be billed.
    assert summary.spent.reserved > 0


@pytest.mark.parametrize("provider", ["openai", "azure", "anthropic"])
@pytest.mark.parametrize(("raw", "code"), [(b"", 5), (b"<html>please log in</html>", 4)])
async def test_answers_that_are_counted_and_not_there_yet_are_waited_for(
    tmp_path, provider, raw, code
):
    """Results that cannot be read are read by the next run too."""
    async with judged_by(tmp_path, UNITS, provider, raw=raw) as server:
        summary = await by_batch(tmp_path, then_live=1)
        assert (ending(summary), summary.counts.pending, asked(server)) == (code, UNITS, UNITS)
        assert summary.spent.reserved > 0
        server.faults.raw = None
        done = await by_batch(tmp_path, then_live=1)
    assert (done.counts.verdicts, asked(server)) == (UNITS, UNITS)


async def test_of_a_batch_with_some_ids_that_are_not_ours_the_rest_is_asked_live(
    tmp_path,
):
    def half(lines):
        return [*lines[:5], *prefixed(lines[5:])]

    server, summary = await ran(tmp_path, UNITS, "google", 1, lines=half)
    assert summary.counts.verdicts == UNITS
    assert (server.live, asked(server)) == (UNITS - 5, 2 * UNITS - 5)


async def test_the_strange_batch_of_one_run_does_not_end_another(tmp_path):
    async with BatchProvider(faults=Faults(lines=Once(prefixed))) as server:
        write_suite(tmp_path, 6, server.judge("openai"), name="first")
        assert (await by_batch(tmp_path)).stopped is not None
        write_suite(tmp_path, samples(UNITS)[6:], server.judge("openai"), name="second")
        summary = await by_batch(tmp_path)
    assert (summary.stopped, summary.counts.verdicts) == (None, UNITS - 6)


@pytest.mark.parametrize("status", ["nonsense", None, 7, ""], ids=repr)
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_state_that_nobody_knows_is_told_and_the_run_can_be_resumed(
    tmp_path, provider, status
):
    async with judged_by(tmp_path, 4, provider, status=[status]) as server:
        left = await by_batch(tmp_path)
        assert left.stopped.exit_code == 5
        assert left.stopped.key == "engine.batch_state_unknown"
        assert json.dumps(status).strip('"') in left.stopped.what
        server.faults.status = []
        done = await by_batch(tmp_path)
    assert (done.counts.verdicts, asked(server)) == (4, 4)


async def test_a_question_that_does_not_fit_is_a_failure_as_live(tmp_path):
    def too_long(lines):
        error = {"error": {"message": "maximum context length is 8 tokens", "code": "context"}}
        return [*lines[:2], (lines[2][0], 400, error), *lines[3:]]

    server, summary = await ran(tmp_path, 9, lines=too_long)
    assert dict(summary.counts.failures) == {"context_overflow": 1}
    assert (summary.counts.verdicts, len(server.batches)) == (8, 1)


async def test_while_nobody_can_say_if_a_batch_was_made_no_other_is(tmp_path):
    """Its creation was not answered, and the list of batches is not to be had."""
    async with judged_by(tmp_path, 9, create=["lost"], listing=["broken"] * 1000) as server:
        for _ in range(2):
            summary = await by_batch(tmp_path)
            assert (ending(summary), len(server.batches)) == (5, 1) and summary.spent.reserved
        server.faults.listing.clear()
        done = await by_batch(tmp_path)
    assert (done.counts.verdicts, len(server.batches), done.spent.reserved) == (9, 1, 0)


async def test_a_batch_that_may_be_made_is_looked_for_after_a_provider_that_stays_busy(
    tmp_path,
):
    """The first try may have made it, and is listed late: it is not called void."""
    async with judged_by(tmp_path, 9, create=["lost"] + ["busy"] * 1000) as server:
        hidden, server.list_most = server.list_most, 0
        summary = await by_batch(tmp_path)
        assert ending(summary) == 5
        assert summary.spent.reserved > 0
        server.list_most = hidden
        done = await by_batch(tmp_path)
    assert (done.counts.verdicts, len(server.batches), done.spent.reserved) == (9, 1, 0)


@pytest.mark.parametrize("fault", FOUND_AGAIN)
async def test_a_provider_that_stumbles_is_asked_again(tmp_path, fault):
    """A batch whose creation was not answered is found again."""
    provider, faults = FOUND_AGAIN[fault]
    server, summary = await ran(tmp_path, 9, provider, **faults)
    assert (summary.counts.verdicts, len(server.batches)) == (9, 1)
    assert set(server.paid.values()) == {1}


@cases
async def test_a_batch_that_is_refused_as_a_whole_ends_the_run(
    tmp_path, faults, said, advice, batches
):
    server, summary = await ran(tmp_path, 8, **faults)
    assert (ending(summary), summary.counts.pending) == (4, 8)
    assert summary.stopped and said in summary.stopped.what and advice in summary.stopped.advice
    assert (len(server.batches), summary.spent.reserved) == (batches, 0)


async def test_a_batch_that_is_refused_for_a_line_is_sent_without_it(tmp_path):
    refusal = {3: "content_policy violation: this is flagged"}
    server, summary = await ran(tmp_path, 8, refuse=[refusal])
    assert (sizes(server), dict(summary.counts.failures)) == ([8, 7], {"filtered": 1})


async def test_an_endpoint_that_takes_no_schema_is_asked_without(tmp_path):
    def no_schema(lines):
        said = "response_format json_schema is not supported with this model"
        return [(ident, 400, {"error": {"message": said}}) for ident, _, _ in lines]

    server, _ = await ran(tmp_path, 8, lines=Once(no_schema))
    formats = [batch.requests[0][1]["response_format"] for batch in server.batches.values()]
    assert formats[0]["type"] == "json_schema" and formats[1] == {"type": "json_object"}


async def test_a_key_of_another_account_is_told_in_words(tmp_path):
    async with BatchProvider(faults=Faults(looks=10**6), owner=KEY) as server:
        write_suite(tmp_path, 8, server.judge("openai"))
        await interrupted(prepared(tmp_path, ENV), tmp_path)
        server.faults.looks = 0
        other = await by_batch(tmp_path, {"OPENAI_API_KEY": "sk-another-0123456789"})
        assert ending(other) == 4 and other.stopped.key == "judges.unknown_batch"
        assert "OPENAI_API_KEY" in str(other.stopped)
        again = await by_batch(tmp_path)
    assert (again.counts.verdicts, len(server.batches)) == (8, 1)


async def interrupted(plan, folder):
    """A run that is stopped while its batches are under way."""
    stops = []

    @contextmanager
    def watch(tally, planned, stop):
        stops.append(stop)
        yield

    def tell(message):
        stops[0].request(Interrupted("interrupted"))

    batch = BatchOptions(then_live=0, look_first=0.001, tell=tell)
    summary = await judged(plan, ENV, batch=batch, watch=watch)
    _adds_up(folder, summary)
    return summary


async def test_ctrl_c_leaves_batches_running_and_the_same_command_goes_on(tmp_path):
    async with judged_by(tmp_path, 8, "anthropic", looks=10**6) as server:
        left = await interrupted(prepared(tmp_path, ENV), tmp_path)
        assert ending(left) == 130
        assert [batch.open for batch in left.open_batches] == [8]
        assert left.spent.reserved > 0
        server.faults.looks = 0
        done = await by_batch(tmp_path)
    assert (done.counts.verdicts, len(server.batches), done.tally.sent) == (8, 1, 0)
    assert done.spent.reserved == 0


async def test_the_whole_batch_is_held_within_the_budget(tmp_path):
    async with BatchProvider() as server:
        judge = server.judge("openai", price=PRICE)
        write_suite(tmp_path, 4, judge, limits={"budget_usd": "0.0001"})
        summary = await by_batch(tmp_path)
        assert ending(summary) == 5 and "budget" in str(summary.stopped) and not server.batches
        write_suite(tmp_path, UNITS, judge, limits={"budget_usd": "0.03"})
        summary = await by_batch(tmp_path)
    assert summary.counts.verdicts == UNITS
    assert len(server.batches) > 1, "what was held bounds a wave; what it really cost is less"
    assert summary.spent.cost <= 3 * 10**10


async def test_no_further_question_is_sent_where_batches_gave_no_verdict(tmp_path):
    """Each batch leaves its last five lines unanswered; nothing else would be asked live."""
    faults = Faults(lines=lambda lines: lines[:-5])
    async with BatchProvider(lambda request: "no", faults) as server:
        write_suite(tmp_path, 40, server.judge("openai"))
        summary = await by_batch(tmp_path, then_live=10)
        assert server.live == 0
    assert isinstance(summary.stopped, NoVerdicts)
    assert summary.counts.failures["not_json"] >= 20
    assert summary.counts.pending > 0


async def ran(folder, units, provider="openai", then_live=0, **faults):
    """Judge samples by the batch of a provider with these faults."""
    async with judged_by(folder, units, provider, **faults) as server:
        return server, await by_batch(folder, then_live=then_live)


def ending(summary):
    return summary.stopped.exit_code


def sizes(server):
    return [len(batch.requests) for batch in server.batches.values()]


async def test_a_judge_without_batches_is_asked_live_beside_one_that_has_them(
    tmp_path,
):
    write_suite(tmp_path, 3)
    with refused(UsageError, "runs.no_batch_judge"):
        await by_batch(tmp_path)
    async with BatchProvider() as server:
        write_suite(tmp_path, 6, server.judge("openai"), {"model": "python/judge:good"})
        summary = await by_batch(tmp_path)
    assert (summary.counts.verdicts, summary.counts.planned) == (12, 12)
    assert (server.live, len(server.batches)) == (0, 1)
