"""Whole runs: each fault of a judge ends as the specification says, and the sums hold whatever
comes."""

import asyncio
import json
import shutil
import socket
import tempfile
import warnings
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

import evenhand
from evenhand.engine.stop import Stop
from evenhand.errors import (
    CallLost,
    CallRejected,
    Interrupted,
    JudgeCrashed,
    NoVerdicts,
    ProviderRefused,
    StoppedEarly,
)
from evenhand.exchange import Reply, Usage
from evenhand.limits import JOIN_SECONDS
from evenhand.runs.early_stop import AHEAD
from tests import provider as p
from tests.cases import cases
from tests.postgres import new_store_url
from tests.sentences import is_told
from tests.suites import (
    GOOD,
    JUDGE,
    Scripted,
    at,
    evenhand_here,
    good_reply,
    judged,
    prepared,
    samples,
    stored,
    with_judges,
    write_rows,
    write_suite,
)
from tests.suites import evenhand as evenhand_apart

ONE_BY_ONE = {"concurrency": 1}

# Faults of a provider


def escaped_surrogate(text):
    """With half of a pair as an escape inside the reply's own JSON."""
    return p.surrogate(text).replace("\ud83d", "\\ud83d")


def spaced(text):
    """The same object, written otherwise."""
    return json.dumps(dict(reversed(json.loads(text).items())), indent=3)


def choosing(*changes):
    """An answer with several choices, each the reply with a change of its own."""

    async def behaviour(call):
        text = json.dumps(p.valid_reply(call.body, call.schema))
        bodies = [json.loads(p.completion(change(text))) for change in changes]
        choices = [choice for body in bodies for choice in body["choices"]]
        return web.json_response(bodies[0] | {"choices": choices})

    return behaviour


NO_REPAIRS = {"settings": {"repairs": 0}}
ABSURD = p.completion("{}").replace(b'"prompt_tokens": 900', b'"prompt_tokens": %d' % 10**30)
CHANGES = "fenced thinking with_meta surrogate key_extra in_prose doubled key_twice key_missing"
BEHAVIOURS = {name: p.valid(getattr(p, name)) for name in CHANGES.split()} | {
    "HTML": p.HTML,
    "escaped": p.valid(escaped_surrogate),
    "scored_nan": p.valid(p.scored(float("nan"))),
    "scored_off": p.valid(p.scored(4)),
    "made_up": p.valid(p.quoting("stands nowhere")),
    "cut": p.valid(p.cut_short, finish="length"),
    "filtered": p.saying("", finish="content_filter"),
    "equal_choices": choosing(str, str),
    "two_choices": choosing(str, p.otherwise),
    "spaced_choice": choosing(str, spaced),
    "refusing_choice": choosing(str, lambda _: "I cannot judge this."),
}


@cases
async def test_a_fault_ends_as_the_specification_says(tmp_path, ends, calls, script, settings):
    behaviours = [BEHAVIOURS.get(name) or getattr(p, name)(*rest) for name, *rest in script]
    async with p.Provider(behaviours) as provider:
        write_suite(tmp_path, 1, at(provider.url), **settings or {})
        summary = await judged(tmp_path)
    told, rows = summary.json(), stored(tmp_path)
    failures, pending = told["failures"], told["pending"]
    assert told["planned"] == 1 == told["verdicts"] + sum(failures.values()) + pending
    assert told["calls"] == len(provider.calls) == (calls or told["calls"])
    if ends.isdecimal():
        assert (summary.stopped.exit_code, pending, rows) == (int(ends), 1, [])
        return
    assert (summary.stopped, pending) == (None, 0)
    if told["verdicts"]:
        assert [fix["code"] for fix in rows[0]["fixes"]] == ([ends] if ends else [])
    else:
        assert (failures, rows[0]["output"]) == ({ends: 1}, None)


async def test_usage_beyond_belief_is_not_kept(tmp_path):
    """Counts that no call can have are unknown, not zero, and the price is the most possible."""
    async with p.Provider(p.sending(ABSURD)) as provider:
        write_suite(tmp_path, 1, at(provider.url, price={"input": 1, "output": 1}), **NO_REPAIRS)
        summary = await judged(tmp_path)
    assert not any(summary.json()["usage"].values())
    assert summary.spent.cost > 0


async def test_a_provider_that_stays_down_stops_the_run(tmp_path):
    async with p.Provider(p.failing(503)) as provider:
        write_suite(tmp_path, 40, at(provider.url), limits={"concurrency": 4})
        summary = await judged(tmp_path)
        assert summary.stopped.exit_code == 5 and summary.counts.pending > 0
        provider.script = [p.valid()]
        again = await judged(tmp_path)
    assert (again.counts.verdicts, again.counts.pending) == (40, 0)


@pytest.mark.parametrize("units", [1, 10])
async def test_nothing_that_listens_is_told_and_all_is_pending(tmp_path, units):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    write_suite(tmp_path, units, at(f"http://127.0.0.1:{port}/v1"))
    summary = await judged(tmp_path)
    assert isinstance(summary.stopped, StoppedEarly) and str(port) in str(summary.stopped)
    assert (summary.counts.pending, summary.counts.failures) == (units, {})
    assert summary.tally.sent <= 3 * units
    ended = await asyncio.to_thread(evenhand_here, "run", cwd=tmp_path)
    assert ended.returncode == 5 and "127.0.0.1" in ended.stderr


async def test_one_judge_that_never_answers_beside_one_that_does_is_no_complete_run(tmp_path):
    async with p.Provider(p.failing(500, headers={"x-should-retry": "false"})) as provider:
        write_suite(tmp_path, 3, GOOD, at(provider.url))
        ended = await asyncio.to_thread(evenhand_here, "run", cwd=tmp_path)
    assert ended.returncode == 5 and "openai/test-model" in ended.stderr


async def test_what_comes_back_within_the_tries_of_a_call_is_survived(tmp_path):
    """The provider goes away after three answers, and comes back once it was missed."""
    missed, before, after = asyncio.Event(), p.Provider(), p.Provider()
    await before.start()
    port = int(before.url.split(":")[2].split("/")[0])

    async def leaving(call):
        if call.number == 2:
            await next(iter(before._runner.sites)).stop()
        response = await p.valid()(call)
        response.force_close()
        return response

    before.script = [leaving]
    write_suite(tmp_path, 12, at(before.url), limits=ONE_BY_ONE)
    run = asyncio.create_task(
        judged(tmp_path, notice=lambda message: missed.set(), backoff_first=0.5)
    )
    await missed.wait()
    await after.start(port)
    summary = await run
    await before.stop()
    await after.stop()
    assert (summary.stopped, summary.counts.verdicts) == (None, 12)
    assert (len(before.calls), len(after.calls)) == (3, 9)


# Faults of a function

FAULTS = {
    "number 1 ": "sys.exit(3)",
    "number 2 ": "raise KeyboardInterrupt",
    "number 4 ": "raise asyncio.CancelledError",
    "number 5 ": "raise BaseException('all of it')",
    "number 6 ": "return b'{}'",
}
LINES = "".join(f"    if {mark!r} in text: {fault}\n" for mark, fault in FAULTS.items())
MORE = f"""{JUDGE}
import asyncio, sys
asked = []

async def faulty(messages, schema, params):
    text = messages[-1]["content"]
{LINES}    return reply(messages)

async def falling(messages, schema, params):
    if int(re.search(r"number (\\d+)", messages[-1]["content"])[1]) < 20:
        raise ValueError
    return reply(messages)

async def refuse(messages, schema, params):
    return "I cannot help with that.\\x1b[2J\\n" + 200 * "x" + 9 * "\\nno"

async def refuse_some(messages, schema, params):
    asked.append(1)
    return reply(messages) if len(asked) == 1 else "no"

"""


def called(name, **rest):
    return {"model": f"python/judge:{name}", **rest}


def write(folder, units, *judges, **rest):
    """A suite of the judges above, one call at a time."""
    return write_suite(folder, units, *judges, judge=MORE, **{"limits": ONE_BY_ONE} | rest)


def test_each_fault_of_a_function_ends_one_judgment_and_the_run_goes_on(tmp_path):
    ended = evenhand_here("run", "--json", cwd=write(tmp_path, 12, called("faulty")))
    told = json.loads(ended.stdout)
    assert (ended.returncode, told["verdicts"], told["pending"]) == (0, 7, 0), ended.stderr
    assert told["failures"] == {"judge_crash": 5}


@pytest.mark.parametrize("is_postgres", [False, True], ids=["file", "postgres"])
@pytest.mark.parametrize("repeats", [1, 2])
async def test_units_that_fail_at_every_start_keep_no_others_from_being_judged(
    tmp_path, is_postgres, repeats
):
    store = {"url": new_store_url() if is_postgres else "sqlite:evenhand.db"}
    write_suite(tmp_path, 60, called("falling", repeats=repeats), judge=MORE, store=store)
    for _ in range(repeats):  # each start comes to the failing units of one repeat more
        first = await judged(tmp_path, limit=20)
        assert first.stopped is not None and first.counts.verdicts == 0
    again, third = await judged(tmp_path), await judged(tmp_path)
    assert again.counts.verdicts == 40 * repeats
    # What failed is tried once in each start, and no more.
    assert 40 * repeats < again.tally.sent <= 60 * repeats
    assert again.counts.verdicts + sum(again.counts.failures.values()) <= again.counts.planned
    assert third.stopped is not None and 0 < third.tally.sent <= 20 * repeats


# Runs in which everything fails


@pytest.mark.parametrize(
    ("width", "judges"), [(1, ["refuse"]), (8, ["refuse"]), (1, ["good", "refuse"])]
)
async def test_a_run_without_verdicts_is_stopped_before_all_of_it_is_paid_for(
    tmp_path, width, judges
):
    """After twenty judgments of one judge, and those that were under way."""
    limits = {"concurrency": width}
    summary = await judged(write(tmp_path, 300, *map(called, judges), limits=limits))
    assert isinstance(summary.stopped, NoVerdicts)
    assert "python/judge:refuse" in summary.stopped.what
    assert 20 <= summary.counts.failures.pop("refused") < 20 + width
    assert summary.counts.failures == {} and summary.counts.pending > 200
    assert (summary.counts.verdicts > 0) is (len(judges) > 1)


def test_the_command_says_why_with_a_reply_what_to_change_and_how_to_go_on(tmp_path):
    said = evenhand_here("run", cwd=write(tmp_path, 30, called("refuse")))
    assert said.returncode == 5
    for part in ("python/judge:refuse", "refused", "| I cannot help", "--retry-failures"):
        assert part in said.stderr
    assert "\x1b" not in said.stderr and said.stderr.count("| no") == 2
    assert max(map(len, said.stderr.splitlines())) < 200


@cases
async def test_what_to_change_depends_on_the_reasons(tmp_path, replies, finish, reasons, advice):
    units = 0

    async def answer(question):
        nonlocal units
        units += question.reask == 0
        return Reply(text=replies[units % len(replies)], finish=finish)

    summary = await judged(with_judges(prepared(write(tmp_path, 30)), Scripted(answer)))
    assert isinstance(summary.stopped, NoVerdicts)
    assert summary.counts.failures == reasons
    assert all(part in str(summary.stopped) for part in (*reasons, advice))


async def test_the_same_command_goes_on_with_the_next_units(tmp_path):
    """Only judgments of the command itself count: whoever has mended something gets on."""
    is_mended = False

    async def answer(question):
        return good_reply(question) if is_mended else Reply(text="no", usage=Usage())

    ready = with_judges(prepared(write(tmp_path, 50)), Scripted(answer))
    await judged(ready)
    again = await judged(ready)
    assert (again.counts.failures, again.counts.pending) == ({"not_json": 40}, 10)
    is_mended = True
    mended = await judged(ready, retry_failures=True)
    assert (mended.stopped, mended.counts.verdicts) == (None, 50)


async def test_one_verdict_keeps_a_run_going(tmp_path):
    summary = await judged(write(tmp_path, 60, called("refuse_some")))
    assert (summary.stopped, summary.counts.pending, summary.counts.verdicts) == (None, 0, 1)


@pytest.mark.parametrize("units", [3, 20])
def test_a_run_that_has_nothing_left_is_not_stopped(tmp_path, units):
    said = evenhand_here("run", cwd=write(tmp_path, units, called("refuse")))
    assert said.returncode == 1 and is_told(said.stderr, "runs.nothing_judged")
    assert f" {units} failures" in said.stderr


async def test_replies_that_are_recorded_or_in_the_ledger_are_read_to_the_end(tmp_path):
    write(tmp_path / "one", 50, {"model": "replay/replies.jsonl"})
    rows = [{"unit": unit["id"], "reply": "no"} for unit in samples(50)]
    write_rows(tmp_path / "one", rows, "replies.jsonl")
    recorded = await judged(tmp_path / "one")
    assert (recorded.stopped, recorded.counts.failures) == (None, {"not_json": 50})
    for _ in range(3):
        await judged(write(tmp_path / "two", 60, called("refuse")))
    again = await judged(write(tmp_path / "two", 60, called("refuse"), name="again"))
    assert (again.stopped, again.tally.sent) == (None, 0)
    assert again.counts.failures == {"refused": 60}


@pytest.mark.parametrize("units", [3, 50])
def test_from_python_it_is_a_warning(tmp_path, units):
    write(tmp_path, units, called("refuse"))
    with pytest.warns(evenhand.NoVerdictsWarning) as caught:
        run = evenhand.run(tmp_path)
    assert run.summary["failures"] == {"refused": min(units, 20)}
    assert [entry.filename for entry in caught] == [__file__]


async def test_from_async_python_it_is_a_warning(tmp_path):
    write(tmp_path, 3, called("refuse"))
    with pytest.warns(evenhand.NoVerdictsWarning) as caught:
        await evenhand.run_async(tmp_path)
    assert [entry.filename for entry in caught] == [__file__]
    assert is_told(str(caught[0].message), "runs.nothing_judged")


def test_a_run_with_verdicts_gives_no_warning(tmp_path):
    write(tmp_path, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert evenhand.run(tmp_path).summary["verdicts"] == 3


# Whatever comes

UNITS = 12
FATES = {
    "lost": CallLost("transport", "lost"),
    "timeout": CallLost("timeout", "late", billed=True),
    "rejected": CallRejected("context_overflow", "too long"),
    "crash": JudgeCrashed("died"),
    "refused": ProviderRefused("the key is not accepted"),
}
fates = st.lists(
    st.sampled_from(["good", "good", "good", "bad", *FATES, "interrupt"]), min_size=1, max_size=40
)


class Fated:
    """Answers by a script of fates; may throw the switch, as Ctrl-C does."""

    def __init__(self, script):
        self.script, self.stop = iter(script), Stop()

    async def __call__(self, question):
        fate = next(self.script, "good")
        await asyncio.sleep(0)
        if fate in FATES:
            raise FATES[fate]
        if fate == "interrupt":
            self.stop.request(Interrupted("interrupted"))
        return Reply(text="{}") if fate == "bad" else good_reply(question)

    @contextmanager
    def watch(self, tally, planned, stop):
        self.stop = stop
        yield


@given(script=fates, width=st.sampled_from([1, 3, 12]))
def test_the_sums_hold_and_running_again_completes(script, width):
    folder = Path(tempfile.mkdtemp())
    try:
        asyncio.run(complete(folder, script, width))
    finally:
        shutil.rmtree(folder)


async def complete(folder, script, width):
    write_suite(folder, UNITS, limits={"concurrency": width})
    fated, verdicts = Fated(script), {}
    judge = Scripted(fated)
    for _ in range(len(script) + 2):
        ready = with_judges(prepared(folder), judge)
        summary = await judged(ready, watch=fated.watch, retry_failures=True)
        told, kept = summary.json(), stored(folder)
        failed = sum(told["failures"].values())
        assert told["planned"] == told["verdicts"] + failed + told["pending"] == UNITS
        statuses = Counter(row["status"] for row in kept)
        assert statuses == Counter(verdict=told["verdicts"], failure=failed)
        assert (told["pending"] > 0) <= (summary.stopped is not None)
        rows = {row["unit"]: row["output"] for row in kept if row["output"]}
        assert verdicts.items() <= rows.items(), "a verdict that stood is gone or changed"
        verdicts = rows
        if len(verdicts) == UNITS:
            break
    assert len(verdicts) == UNITS


PEAK = """
import atexit, pathlib, re

@atexit.register
def tell():
    status = pathlib.Path("/proc/self/status").read_text()
    pathlib.Path("peak").write_text(re.search(r"VmHWM:\\s+(\\d+) kB", status)[1])
"""


def test_memory_grows_with_the_table_alone(tmp_path, long):
    """With four times as many units, whose texts alone take 15 MB more (30 in the long form), the
    process grows by about twice these: the table is read once, and nothing else is held."""
    few, words, most = (5_000, 400, 64) if long else (125, 8_000, 32)
    peaks = []
    for number in (few, 4 * few):
        rows = [row | {"context": f"{row['id']} " * words} for row in samples(number)]
        limits = {"concurrency": 64}
        folder = write_suite(tmp_path / str(number), rows, judge=JUDGE + PEAK, limits=limits)
        done = evenhand_apart("run", "--json", cwd=folder)
        assert (done.returncode, json.loads(done.stdout)["verdicts"]) == (0, number)
        peaks.append(int((folder / "peak").read_text()) / 1024)
    assert peaks[1] - peaks[0] < most, peaks


@pytest.mark.parametrize("width", [1, 16])
async def test_a_run_answered_by_the_ledger_still_hears_ctrl_c(tmp_path, width):
    limits = {"concurrency": width}
    await judged(write_suite(tmp_path, 50, limits=limits))

    @contextmanager
    def interrupting(tally, planned, stop):
        asyncio.get_running_loop().call_soon(stop.request, Interrupted("interrupted"))
        yield

    # Another judging with the same questions.
    again = write_suite(tmp_path, 50, settings={"repairs": 1}, limits=limits)
    assert (await judged(again, watch=interrupting)).counts.pending > 0


async def test_a_worker_that_is_ahead_is_woken_by_the_end_of_what_it_waits_for(
    tmp_path, monkeypatch
):
    """It does not look again and again."""
    questions = samples(3 * AHEAD)
    rows = [
        row
        | {"id": f"{variant}-{row['id']}", "model_output": f"{variant}: {row['model_output']}"}
        | {"meta": {"question_id": row["id"], "prompt_variant": variant}}
        for row in questions
        for variant in ("v1", "v2")
    ]
    write_suite(
        tmp_path,
        rows,
        limits={"concurrency": 8 * AHEAD},
        compare={"by": "prompt_variant", "baseline": "v1"},
        stop={"until_decided": True},
    )
    held, asked, timers = asyncio.Event(), [], []

    async def answer(question):
        asked.append(question.unit)
        if len(asked) == 1:
            await held.wait()
        return good_reply(question)

    loop = asyncio.get_running_loop()
    call_later = loop.call_later

    def timed(delay, *rest, **more):
        timers.append(delay)
        return call_later(delay, *rest, **more)

    monkeypatch.setattr(loop, "call_later", timed)
    run = asyncio.create_task(judged(with_judges(prepared(tmp_path), Scripted(answer))))
    # The first question has not ended: so many are under way, and no more.
    while len(asked) < 2 * AHEAD and not run.done():
        await asyncio.sleep(0)
    for _ in range(200):
        await asyncio.sleep(0)
    assert len(asked) == 2 * AHEAD
    held.set()
    assert (await run).counts.failures == {}
    assert len(asked) == len(rows)
    # But for the store, which writes judgments that nothing follows.
    assert set(timers) <= {JOIN_SECONDS}
