"""Runs of pairs for tests: judges by name, figures, settling again, and stopping on the way."""

from contextlib import contextmanager

from evenhand.errors import Interrupted
from evenhand.results.observations import observe
from evenhand.runs.recorded import find_run
from evenhand.runs.settle import settle_run
from evenhand.runs.stores import open_archive, open_store
from evenhand.stats.pairwise import summarise_pairs
from tests.suites import (
    judged,
    prepared,
)

EXPECTED = ["A", "B", "tie"]


def judge(name, **rest):
    return {"model": f"python/judge:{name}", **rest}


def figures(folder, run="latest"):
    store = open_archive("sqlite:evenhand.db", folder)
    try:
        return summarise_pairs(observe(store, find_run(store, run), "uncertain"))
    finally:
        store.close()


async def settled_again(folder):
    store = open_store("sqlite:evenhand.db", folder, must_exist=True)
    try:
        return await settle_run(find_run(store.archive, "latest"), store)
    finally:
        store.close()


def check_sums(summary):
    told = summary.json()
    failed = sum(told["failures"].values())
    assert told["planned"] == told["verdicts"] + failed + told["pending"]


class Interrupting:
    """Throws the switch, as Ctrl-C does, once so many replies were given."""

    def __init__(self, after):
        self.after = after

    @contextmanager
    def watch(self, tally, planned, stop):
        self.tally, self.stop = tally, stop
        yield

    def __call__(self):
        if self.tally.sent == self.after:
            self.stop.request(Interrupted("interrupted"))


async def interrupted(folder, stop_after):
    """A run of one worker that is stopped after so many calls, and the same run to its end."""
    interrupting, ready = Interrupting(stop_after), prepared(folder, limits={"concurrency": 1})
    for setup in ready.setups:
        setup.judge.answer = _counting(setup.judge.answer, interrupting)
    first = await judged(ready, watch=interrupting.watch)
    assert first.stopped is not None
    assert first.counts.failures == {}
    check_sums(first)
    again = await judged(prepared(folder, limits={"concurrency": 1}))
    assert again.counts.pending == 0
    check_sums(again)
    return first, again


def _counting(answer, interrupting):
    async def counted(question):
        reply = await answer(question)
        interrupting()
        return reply

    return counted
