"""The line of progress."""

from evenhand.engine.prices import PICO
from evenhand.engine.progress import Progress, Tally
from tests.unit.engine.virtual import Clock


def test_progress_is_one_line_of_what_matters():
    clock, tally = Clock(), Tally(verdicts=10)
    progress = Progress(tally, 100, clock)
    assert progress.line() == "10/100 judged"
    clock.now += 30
    tally.verdicts, tally.failures, tally.reasks, tally.cost = 38, 2, 1, PICO // 4
    assert progress.line() == "40/100 judged, 1.0/s, $0.2500, 2 failed, 1 re-asked, 1 min 00 s left"
    tally.verdicts, tally.actors = 98, ["a: 1 judged, 2 taken", "starting"]
    assert progress.line().endswith(", 2 actors (a: 1 judged, 2 taken; starting)")


def test_progress_counts_what_is_left_out_beside_what_is_judged():
    clock, tally = Clock(), Tally()
    progress = Progress(tally, 80, clock)
    clock.now += 10
    tally.verdicts, tally.failures, tally.left_out = 9, 1, 10
    expected = "10/70 judged, 1.0/s, 1 failed, 30 s left, 10 left out by no_self_judging"
    assert progress.line() == expected
    tally.verdicts, tally.left_out = 35, 44
    assert progress.line().startswith("36/36 judged") and progress.done == progress.planned
