"""Votes to judgments: which rows make one, what it comes to, and what figures it gives."""

from __future__ import annotations

import random
from itertools import combinations
from typing import Any

import pytest

from evenhand.kinds.pairwise.unit import load_pair
from evenhand.kinds.pairwise.verdict import pair_passes
from evenhand.results.observations import observe
from evenhand.results.pairs import figures_of_pairs, row_sizes
from evenhand.stats.pairwise import topic_fronts
from tests.unit.runs.importing import Importer, Judgments, vote


def outcomes(judgments: Judgments) -> list[tuple[str, str]]:
    outputs = [one.output or {"winner": one.reason, "settled": ""} for one in judgments.values()]
    return [(one["winner"], one["settled"]) for one in outputs]


def test_both_orders_that_agree_are_one_stable_judgment(imported: Importer) -> None:
    found = imported("votes", [vote("a", "b", "b"), vote("b", "a", "first", area="x")])
    assert (found.tally.rows, found.tally.units, found.tally.verdicts) == (2, 1, 1)
    (judgment,) = imported.judgments.values()
    assert judgment.output == {
        "pair_id": "q",
        "candidates": ["a", "b"],
        "winner": "B",
        "settled": "stable",
        "rounds": 1,
        "criteria": {},
        "unstable": [],
        "notes": "",
        "meta": {},
    }
    assert [(p.order, p.winner) for p in judgment.passes] == [("12", "B"), ("21", "B")]


@pytest.mark.parametrize(
    ("winners", "outcome"),
    [
        (("first", "first"), ("uncertain", "uncertain")),
        (("first", "tie"), ("uncertain", "uncertain")),
        (("tie", "tie"), ("tie", "stable")),
        (("second", "first"), ("B", "stable")),
        (("first",), ("A", "one_order")),
    ],
)
def test_orders_are_settled_as_a_pass_pair(
    imported: Importer, winners: tuple[str, ...], outcome: tuple[str, str]
) -> None:
    orders = (("a", "b"), ("b", "a"))
    imported(
        "votes", [vote(*order, winner) for order, winner in zip(orders, winners, strict=False)]
    )
    assert outcomes(imported.judgments) == [outcome]


def test_rows_in_the_same_order_are_repeats_and_none_is_dropped(imported: Importer) -> None:
    rows = [vote("a", "b", "a"), vote("a", "b", "a"), vote("b", "a", "a"), vote("a", "b", "b")]
    found = imported("votes", rows)
    assert outcomes(imported.judgments) == [("A", "stable"), ("A", "one_order"), ("B", "one_order")]
    assert found.json()["repeats"] == 3
    assert imported.recorded.judges[0].repeats == 3


def test_samples_are_repeats_each_with_its_own_orders(imported: Importer) -> None:
    rows = [
        vote("a", "b", "a", sample=0),
        vote("a", "b", "b", sample=1),
        vote("b", "a", "b", sample=1),
        vote("b", "a", "a", sample=0),
    ]
    imported("votes", rows)
    assert outcomes(imported.judgments) == [("A", "stable"), ("B", "stable")]


def test_a_failed_row_fails_its_judgment_and_says_what_the_other_order_says(
    imported: Importer,
) -> None:
    rows = [vote("a", "b", "a"), vote("b", "a", "neither"), vote("a", "b", "", unit="r")]
    found = imported("votes", [*rows, vote("a", "b", "a", unit="s")])
    assert found.json()["failures"] == {"empty": 1, "schema": 1}
    assert found.json()["planned"] == 3 and found.json()["pending"] == 0
    both, one, _ = imported.judgments.values()
    assert both.reason == "schema"
    assert '"neither"' in both.detail and "order 12 says A" in both.detail
    assert [bool(p.problems) for p in both.passes] == [False, True]
    assert (one.reason, one.detail) == ("empty", "there is no winner")


def test_preferences_are_turned_to_the_second_candidate_and_averaged(imported: Importer) -> None:
    rows = [vote("a", "b", "", preference=0.8), vote("b", "a", "", preference="0.4")]
    imported("votes", rows)
    (judgment,) = imported.judgments.values()
    assert judgment.output is not None and judgment.output["winner"] == "B"
    assert [one.preference for one in judgment.passes] == pytest.approx([0.8, 0.6])
    assert judgment.output["preference"] == pytest.approx(0.7)


def test_criteria_give_marks_and_without_a_verdict_of_the_whole_the_winner(
    imported: Importer,
) -> None:
    rows = [
        vote("a", "b", "a", criterion="C1"),
        vote("a", "b", "tie", criterion="C2"),
        vote("b", "a", "a", criterion="C1"),
        vote("b", "a", "b", criterion="C2"),
    ]
    found = imported("votes", rows)
    (judgment,) = imported.judgments.values()
    # In the second order the marks conflict, which without a priority list is a tie.
    assert [one.winner for one in judgment.passes] == ["A", "tie"]
    assert judgment.passes[0].marks == {"C1": "A+", "C2": "tie"}
    assert judgment.output is not None
    assert judgment.output["criteria"] == {"C1": "A+", "C2": "tie"}
    assert judgment.output["unstable"] == ["C2"] and judgment.output["settled"] == "uncertain"
    assert found.json()["criteria"] == ["C1", "C2"] and imported.recorded.criteria == ["C1", "C2"]


def test_the_verdict_of_the_whole_beats_its_marks_and_a_lost_mark_is_flagged(
    imported: Importer,
) -> None:
    rows = [vote("a", "b", "b"), vote("a", "b", "a", criterion="C1")]
    imported("votes", [*rows, vote("a", "b", "?", criterion="C2")])
    (judgment,) = imported.judgments.values()
    assert judgment.output is not None
    assert (judgment.output["winner"], judgment.output["criteria"]) == ("B", {"C1": "A+"})
    assert judgment.flags == ("marks_missing",)


def test_judgments_with_different_criteria_still_have_figures(imported: Importer) -> None:
    rows = [
        vote("a", "b", "a", criterion="C1"),
        vote("b", "a", "a", criterion="C2"),
        vote("a", "b", "b", criterion="C3", judge="k"),
    ]
    imported("votes", rows)
    run = imported.recorded
    figures = figures_of_pairs(run.kind, imported.store.archive, run.scope, run.judge_groups)
    assert figures.settled == {"stable": 1, "one_order": 1}


def test_a_unit_with_several_pairs_names_them(imported: Importer) -> None:
    rows = [
        vote("b", "a", "a"),
        vote("a", "c", "a"),
        vote("a", "b", "a"),
        vote("a", "b", "a", unit="r"),
    ]
    found = imported("votes", rows)
    # By the order of their names, so that another run about the same pairs has the same ids.
    assert [body["id"] for body in imported.bodies] == ["q#a~b", "q#a~c", "r#a~b"]
    assert found.json()["candidates"] == ["a", "b", "c"]
    pairs = [load_pair(u.body) for u in imported.store.archive.units(imported.recorded.scope)]
    assert [(p.first.id, p.second.id, p.row) for p in pairs] == [
        ("b", "a", "q"),
        ("a", "c", "q"),
        ("a", "b", "r"),
    ]
    sizes = row_sizes(imported.recorded.kind, imported.store.archive, imported.recorded.id)
    assert sizes == {"q": 3}


def test_a_topic_with_several_candidates_has_its_fronts(imported: Importer) -> None:
    # In the last pair c is shown first, though a has the first place among the three.
    rows = [
        vote("a", "b", "a", criterion="C1"),
        vote("b", "c", "b", criterion="C1"),
        vote("c", "a", "a", criterion="C1"),
        vote("a", "a", "first", **{"pass": 1}),
    ]
    imported("votes", rows)
    run = imported.recorded
    figures = figures_of_pairs(run.kind, imported.store.archive, run.scope, run.judge_groups)
    (front,) = figures.fronts.values()
    assert (front.candidates, front.front, front.pareto) == (["a", "b", "c"], ["a"], ["a"])
    assert front.complete


def test_the_fronts_of_a_table_are_those_of_single_judgments(imported: Importer) -> None:
    """Several judges and repeats, marks that one judge lacks, ties, failures, topics of two and of
    four, and a candidate beside itself."""
    chance = random.Random(3)
    rows = [
        vote(
            *pair,
            chance.choice(["first", "second", "tie", "?"]),
            unit=unit,
            judge=judge,
            half=n % 2,
        )
        | ({"criterion": criterion} if criterion else {})
        | ({"pass": 1} if pair[0] == pair[1] else {})
        for unit, names in (("q", "abcd"), ("r", "abcd"), ("s", "ab"), ("t", "abc"))
        for n, pair in enumerate([*combinations(names, 2), ("a", "a")])
        for judge in ("x", "y", "z")
        for criterion in ("", "C1", "C2")
        if criterion != "C2" or judge == "x"
    ]
    imported("votes", rows)
    store, run = imported.store.archive, imported.recorded
    figures = figures_of_pairs(run.kind, store, run.scope, run.judge_groups)
    assert topic_fronts(observe(store, run)) == figures.fronts and len(figures.fronts) >= 3


def test_there_is_no_front_over_several_units_of_a_topic(imported: Importer) -> None:
    rows = [
        {
            "question_id": "q",
            "judge": "j",
            "model_a": a,
            "model_b": b,
            "winner": "model_a",
            "turn": t,
        }
        for a, b in ("ab", "bc", "ca")
        for t in (1, 2)
    ]
    imported("fastchat", rows)
    assert imported.bodies[0]["id"] == "q/1#a~b"
    assert imported.bodies[0]["meta"] == {"unit": "q", "turn": 1}
    assert {body["row"] for body in imported.bodies} == {"q"}
    run = imported.recorded
    figures = figures_of_pairs(run.kind, imported.store.archive, run.scope, run.judge_groups)
    assert figures.fronts == {}


def test_lengths_and_meta_are_those_of_the_first_row(imported: Importer) -> None:
    rows = [vote("b", "a", "a", first_length="12", second_length=7, area="x"), vote("a", "b", "a")]
    imported("votes", rows)
    (body,) = imported.bodies
    assert (body["lengths"], body["meta"]) == ([12, 7], {"area": "x"})


def test_a_candidate_that_meets_itself_goes_by_its_pass(imported: Importer) -> None:
    rows = [vote("a", "a", "first", **{"pass": n}) for n in (1, 2)]
    imported("votes", rows)
    assert outcomes(imported.judgments) == [("uncertain", "uncertain")]


def test_every_row_is_accounted_for(imported: Importer) -> None:
    """Against a count by hand: no row is lost or merged, whatever the order of the file."""
    draw = random.Random(5)
    rows = [
        vote(*draw.sample("abc", 2), draw.choice(["first", "second", "tie", "?"]), unit=f"q{i % 9}")
        | {"judge": draw.choice("jk"), "sample": draw.choice(["", "0", "1"])}
        for i in range(400)
    ]
    found = imported("votes", rows)
    groups: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        pair = tuple(sorted((row["first"], row["second"])))
        groups.setdefault((row["unit"], pair, row["judge"], row["sample"]), []).append(row)
    judgments = failures = 0
    for (_, pair, *_), group in groups.items():
        orders = [[r for r in group if r["first"] == name] for name in pair]
        longest = max(map(len, orders))
        judgments += longest
        failures += sum(
            any(o[k]["winner"] == "?" for o in orders if k < len(o)) for k in range(longest)
        )
    assert found.json()["planned"] == judgments
    assert sum(found.tally.failures.values()) == failures
    assert sum(len(one.passes) for one in imported.judgments.values()) == len(rows)


def test_votes_bring_what_was_judged_and_why(imported: Importer) -> None:
    texts = {"question": "Why?", "first_answer": " Because. ", "second_answer": "So."}
    imported(
        "votes",
        [
            vote("a", "b", "a", explanation="Assistant 1 says more.", **texts),
            vote("b", "a", "b", explanation="Assistant 1 is shorter."),
        ],
    )
    (body,) = imported.bodies
    assert body["topic"] == "Why?" and body["meta"] == {} and body["lengths"] == [10, 3]
    assert [candidate["text"] for candidate in body["candidates"]] == [" Because. ", "So."]
    (judgment,) = imported.judgments.values()
    explanations = [pass_.explanation for pass_ in pair_passes(judgment)]
    assert explanations == ["Assistant 1 says more.", "Assistant 1 is shorter."]
    assert judgment.output and judgment.output["notes"] == "Assistant 1 says more."


def test_both_explanations_of_an_imported_pair_are_shown_once(imported: Importer) -> None:
    rows = [vote("a", "b", "a", explanation="One."), vote("b", "a", "b", explanation="Two.")]
    imported("votes", rows)
    run = imported.recorded
    (unit,) = imported.store.archive.units(run.scope)
    (page,) = run.kind.present(
        run.kind.load(unit.body), list(imported.judgments.values())
    ).judgments
    assert [str(page.blocks).count(text) for text in ("One.", "Two.")] == [1, 1]


def test_the_explanation_of_a_criterion_is_its_comment(imported: Importer) -> None:
    imported("votes", [vote("a", "b", "a", criterion="C1", explanation="More precise.")])
    (judgment,) = imported.judgments.values()
    (pass_,) = pair_passes(judgment)
    assert pass_.criteria["C1"].comment == "More precise." and pass_.explanation == ""
