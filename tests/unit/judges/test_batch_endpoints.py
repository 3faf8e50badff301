"""The batch endpoints of providers: what is asked of them, where a whole run does not show it."""

import asyncio
import json
from contextlib import contextmanager

import pytest

from evenhand.errors import CallLost, Interrupted, ProviderRefused
from evenhand.judges.batch_client import listed_objects, read_lines
from evenhand.runs.batch import BatchOptions
from tests.batch_provider import KEYS, Batch, BatchProvider, Faults
from tests.suites import RUBRIC, evenhand_here, judged, samples, write_suite

UNITS = 20
ENV = dict.fromkeys(KEYS.values(), "sk-of-the-tests-0123456789")


async def by_batch(folder, tell=lambda message: None, **rest):
    options = BatchOptions(then_live=0, look_first=0.001, tell=tell)
    return await judged(folder, ENV, batch=options, **rest)


def test_a_reply_may_hold_signs_that_end_lines_elsewhere():
    """JSON lets them stand as they are: a reply that was cut at one would be paid for again."""
    said = "one\u2028two\u2029three\x85four\x7f"
    file = b"\xef\xbb\xbf" + json.dumps({"text": said}, ensure_ascii=False).encode()
    assert list(read_lines(file + b"\r\n\n{broken\n" + file[3:])) == [{"text": said}] * 2


@pytest.mark.parametrize("values", [3, "ab", {"0": {}}, True], ids=repr)
def test_a_list_of_batches_that_is_none_is_not_taken_for_an_empty_one(values):
    with pytest.raises(CallLost, match="list of batches"):
        listed_objects({"data": values}, "data")
    assert listed_objects({"data": [{"id": "b"}, 3]}, "data") == [{"id": "b"}]
    assert listed_objects({}, "data") == []


@pytest.mark.parametrize("provider", ["anthropic", "openrouter"])
async def test_a_batch_of_somebody_else_is_never_taken_for_an_answer(tmp_path, provider):
    """Batches that carry no name are found by their size; whose they are is seen by their ids."""
    async with BatchProvider(faults=Faults(create=["broken"])) as server:
        others = [(f"theirs-{n}", {}, b"{}") for n in range(UNITS)]
        theirs = Batch("batch_theirs", "", others, asyncio.get_running_loop().time(), "completed")
        theirs.lines = [(ident, 200, {}) for ident, _, _ in others]
        server.batches["batch_theirs"] = theirs
        write_suite(tmp_path, UNITS, server.judge(provider))
        summary = await by_batch(tmp_path)
        assert isinstance(summary.stopped, ProviderRefused)
        assert (summary.counts.pending, summary.spent.calls) == (UNITS, 0)
        forgotten = evenhand_here("batches", "forget", "batch_theirs", cwd=tmp_path)
        assert forgotten.returncode == 0, forgotten.stderr
        done = await by_batch(tmp_path)
    assert (done.counts.verdicts, set(server.paid.values())) == (UNITS, {1})


async def test_openrouter_gets_a_batch_for_each_schema(tmp_path):
    rows = samples(UNITS)
    for row in rows[1::2]:
        row["rubric"] = {"dimensions": RUBRIC["dimensions"][:1]}
    async with BatchProvider() as server:
        write_suite(tmp_path, rows, server.judge("openrouter"))
        summary = await by_batch(tmp_path)
        sizes = [len(batch.requests) for batch in server.batches.values()]
    assert (summary.counts.verdicts, sizes) == (UNITS, [UNITS // 2] * 2)


async def test_two_runs_share_the_batch_that_one_of_them_made(tmp_path):
    """The same questions under another name wait for the batch that holds them."""
    stops = []

    @contextmanager
    def watch(tally, planned, stop):
        stops.append(stop)
        yield

    def interrupt(message):
        stops[0].request(Interrupted("interrupted"))

    async with BatchProvider(faults=Faults(looks=10**6)) as server:
        write_suite(tmp_path, UNITS, server.judge("openai"), name="first")
        await by_batch(tmp_path, interrupt, watch=watch)
        server.faults.looks = 0
        write_suite(tmp_path, UNITS, server.judge("openai"), name="second")
        second = await by_batch(tmp_path)
    assert (second.counts.verdicts, second.tally.sent) == (UNITS, 0)
    assert (len(server.batches), set(server.paid.values())) == (1, {1})
