"""Killed or interrupted between the two passes of a pair, or between its rounds."""

import pytest

from tests.crash.watching import DYING, finished, kept, killed_at_random
from tests.provider import child
from tests.suites import PAIR_JUDGE, at, evenhand, write_pairs

PAIRS = 24
CALLS = 6 * PAIRS
"""Every pair takes three rounds of two passes from a judge that always says first."""


@pytest.mark.parametrize("concurrency", [1, 8])
def test_killed_at_random_moments(tmp_path, concurrency, long):
    with child("first", delay=0.01) as url:
        write_pairs(tmp_path, PAIRS, at(url), limits={"concurrency": concurrency})
        kills = {"kills": 15 if long else 3, "concurrency": concurrency}
        told = killed_at_random(tmp_path, url, calls=CALLS, units=PAIRS, **kills)
    assert told["pairwise"]["outcomes"]["uncertain"] == PAIRS


KILLING = (
    PAIR_JUDGE
    + DYING
    + """
def killing(number):
    async def ask(messages, schema, params):
        # The call before it is in the ledger, this one is lost.
        if count() == number and not DEAD.exists():
            die()
        return alike("A")
    return ask

second_pass, second_round, third_round, next_pair = map(killing, (2, 3, 5, 7))
"""
)


@pytest.mark.parametrize(
    ("point", "before"),
    [("second_pass", 1), ("second_round", 2), ("third_round", 4), ("next_pair", 6)],
)
def test_killed_at_a_named_point_pays_only_for_the_call_in_flight(tmp_path, point, before):
    judge = {"model": f"python/judge:{point}"}
    write_pairs(tmp_path, 2, judge, judge=KILLING, limits={"concurrency": 1})
    killed = evenhand("run", cwd=tmp_path)
    assert killed.returncode == -9, killed.stderr
    recorded = kept(tmp_path)
    assert len(recorded) == before
    told = finished(tmp_path, 2)
    assert told["calls"] == 12 - before
    assert recorded.items() <= kept(tmp_path).items()
    assert len((tmp_path / "log").read_text()) == 13
