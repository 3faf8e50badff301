"""What changed most, against the same told of every pair and then sorted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evenhand.stats.compare import Change, Changes, changes
from evenhand.stats.layout import lay_out
from evenhand.stats.observations import Observations
from tests.unit.stats.score_tables import scores_of, votes_of

NUMBER = 3
SCORED = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 5), st.integers(1, 5)), min_size=1, max_size=25
)


def sorted_changes(every: list[Change], dimension: str) -> Changes:
    """The slow way: all of them, sorted; of equal ones those that come first."""
    worse = sorted((c for c in every if c.difference < 0), key=lambda c: c.difference)
    better = sorted((c for c in every if c.difference > 0), key=lambda c: -c.difference)
    return Changes(
        dimension=dimension,
        worst=tuple(worse[:NUMBER]),
        best=tuple(better[:NUMBER]),
        worse=len(worse),
        better=len(better),
        n=len(every),
    )


def every_change(scores: Observations, baseline: str) -> list[Change]:
    """Each question that the baseline and another variant have, by the means of its units."""
    variants, questions = scores.fields["prompt_variant"], scores.fields["question_id"]
    keys = {
        unit: (variants.levels[variants.codes[unit]], questions.levels[questions.codes[unit]])
        for unit in range(len(scores.units))
    }

    def side(variant: str, question: str) -> tuple[float, tuple[str, ...]] | None:
        units = [unit for unit, key in keys.items() if key == (variant, question)]
        values = [float(scores.values[row, 0]) for row, u in enumerate(scores.unit) if u in units]
        names = tuple(scores.units[unit] for unit in units)
        return (sum(values) / len(values), names) if values else None

    found: list[Change] = []
    for variant in variants.levels:
        for question in questions.levels if variant != baseline else ():
            ours, theirs = side(variant, question), side(baseline, question)
            if ours and theirs:
                found.append(Change(variant, ours[0], theirs[0], ours[1], theirs[1]))
    return found


@given(SCORED)
def test_the_scores_that_changed_most_are_those_of_all_changes_sorted(
    rows: list[tuple[str, int, int]],
) -> None:
    table = scores_of(
        [
            {"prompt_variant": variant, "question_id": f"q{question}", "scores": {"clear": score}}
            for variant, question, score in rows
        ]
    )
    laid = lay_out(table, ["prompt_variant"], rows[0][0])
    told = changes(laid, NUMBER)
    every = every_change(table, laid.baseline)
    expected = sorted_changes(every, "clear")
    assert (told.worse, told.better, told.n) == (
        expected.worse,
        expected.better,
        expected.n,
    )
    for most, others in ((told.worst, expected.worst), (told.best, expected.best)):
        assert [change.difference for change in most] == [other.difference for other in others]
        assert set(most) <= set(every)


@given(st.lists(st.tuples(st.sampled_from("bc"), st.sampled_from(["first", "second", "tie"]))))
def test_the_votes_that_were_lost_and_won_come_in_their_order(
    rows: list[tuple[str, str]],
) -> None:
    votes = votes_of(
        [
            {"topic": f"t{number}", "first": "a", "second": candidate, "winner": winner}
            for number, (candidate, winner) in enumerate(rows)
        ]
    )
    if "a" not in votes.candidates:
        return
    told = changes(lay_out(votes, (), "a"), NUMBER)
    lost, won = (
        [
            (candidate, votes.units[number])
            for candidate in votes.candidates
            for number, (name, winner) in enumerate(rows)
            if name == candidate and winner == wanted
        ]
        for wanted in ("first", "second")
    )
    assert (told.worse, told.better, told.n) == (len(lost), len(won), len(rows))
    assert [(c.variant, c.units[0]) for c in told.worst] == lost[:NUMBER]
    assert [(c.variant, c.units[0]) for c in told.best] == won[:NUMBER]
