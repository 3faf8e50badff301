"""The line of progress."""

from evenhand.engine.prices import PICO
from evenhand.engine.progress import Progress, Tally
from evenhand.words import words
from tests.sentences import is_told
from tests.unit.engine.virtual import Clock

SAY = words("en", plain=True)


def test_progress_is_one_line_of_what_matters():
    clock, tally = Clock(), Tally(verdicts=10)
    progress = Progress(tally, 100, clock)
    assert progress.line(SAY) == "10/100 judged"
    clock.now += 30
    tally.verdicts, tally.failures, tally.reasks, tally.cost = 38, 2, 1, PICO // 4
    parts = progress.line(SAY).split(", ")
    assert parts[:3] == ["40/100 judged", "1.0/s", "$0.25"]
    assert is_told(parts[3], "runs.failed", n=2) and is_told(parts[4], "runs.reasked", n=1)
    assert is_told(parts[5], "runs.minutes_left", minutes=1, seconds=0)
    tally.verdicts, tally.actors = 98, ["a: 1 judged, 2 taken", "starting"]
    assert progress.line(SAY).endswith(", 2 actors (a: 1 judged, 2 taken; starting)")


def test_progress_counts_what_is_left_out_beside_what_is_judged():
    clock, tally = Clock(), Tally()
    progress = Progress(tally, 80, clock)
    clock.now += 10
    tally.verdicts, tally.failures, tally.left_out = 9, 1, 10
    assert progress.line(SAY).startswith("10/70 judged, 1.0/s, 1 failed, ")
    assert is_told(progress.line(SAY), "runs.left_out", n=10)
    tally.verdicts, tally.left_out = 35, 44
    assert progress.line(SAY).startswith("36/36 judged") and progress.done == progress.planned
