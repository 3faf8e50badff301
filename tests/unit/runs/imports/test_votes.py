"""Votes to judgments: which rows make one, its verdict, and its figures."""

from __future__ import annotations

import random

from evenhand.kinds.pairwise.unit import load_pair
from evenhand.kinds.pairwise.verdict import pair_passes
from evenhand.results.observations import observe
from evenhand.stats.pairwise import summarise_pairs
from tests.cases import cases
from tests.unit.runs.importing import vote

UNCERTAIN = ("uncertain", "uncertain")


def outcomes(judgments):
    outputs = [one.output or {"winner": one.reason, "settled": ""} for one in judgments.values()]
    return [[one["winner"], one["settled"]] for one in outputs]


@cases
def test_orders_are_settled_as_a_pass_pair(imported, rows, expected):
    """Each row: the order, the winner, the pass and the sample, which is a repeat of its own."""
    votes = []
    for row in rows.split():
        order, winner, *more = row.split(":")
        given = {k: v for k, v in zip(("pass", "sample"), more, strict=False) if v}
        votes.append(vote(*order, winner, **given))
    found = imported("votes", votes)
    assert outcomes(imported.judgments) == expected
    assert found.json()["repeats"] == imported.recorded.judges[0].repeats == len(expected)


def test_comments_stand_by_their_criteria_which_may_differ_between_judgments(imported):
    rows = [vote("a", "b", "a", criterion="C1", explanation="More precise.")]
    imported("votes", [*rows, vote("a", "b", "tie", criterion="C2")])
    (judgment,) = imported.judgments.values()
    first = pair_passes(judgment)[0]
    assert (first.criteria["C1"].comment, first.explanation) == ("More precise.", "")
    assert imported.recorded.criteria == ["C1", "C2"]
    rows = [vote("a", "b", "a", criterion="C1"), vote("b", "a", "a", criterion="C2")]
    imported("votes", [*rows, vote("a", "b", "b", criterion="C3", judge="k")])
    assert figures(imported).votes.settled == {"stable": 1, "one_order": 1}


def test_a_unit_with_several_pairs_names_them(imported):
    # In the last pair of q c is shown first, though a has the first place among the three.
    orders = ("ba", "ac", "ab", "bc", "ca")
    rows = [vote(*pair, min(pair), criterion="C1") for pair in orders]
    found = imported(
        "votes", [*rows, vote("a", "a", "first", **{"pass": 1}), vote("a", "b", "a", unit="r")]
    )
    # By the order of their names, so that another run about the same pairs has the same ids.
    ids = ["q#a~b", "q#a~c", "q#b~c", "q#a~a", "r#a~b"]
    assert [body["id"] for body in imported.bodies] == ids
    assert found.json()["candidates"] == ["a", "b", "c"]
    pairs = [load_pair(u.body) for u in imported.store.archive.units(imported.recorded.scope)]
    assert [p.first.id + p.second.id for p in pairs] == ["ba", "ac", "bc", "aa", "ab"]
    assert [p.row for p in pairs] == list("qqqqr")
    front = next(iter(figures(imported).fronts.values()))
    assert (front.front, front.pareto, front.complete) == (["a"], ["a"], True)


def test_every_row_is_accounted_for(imported):
    """Against a count by hand: no row is lost or merged, whatever the order of the file."""
    draw = random.Random(5)
    rows = [
        vote(*draw.sample("abc", 2), draw.choice(["first", "second", "tie", "?"]), unit=f"q{i % 9}")
        | {"judge": draw.choice("jk"), "sample": draw.choice(["", "0", "1"])}
        for i in range(400)
    ]
    found = imported("votes", rows)
    groups = {}
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


def test_votes_bring_what_was_judged_and_why(imported):
    texts = {"question": "Why?", "first_answer": " Because. ", "second_answer": "So."}
    said = ["Assistant 1 says more.", "Assistant 1 is shorter."]
    rows = [vote("a", "b", "a", explanation=said[0], **texts)]
    imported("votes", [*rows, vote("b", "a", "b", explanation=said[1])])
    (body,) = imported.bodies
    assert body["topic"] == "Why?" and body["meta"] == {} and body["lengths"] == [10, 3]
    assert [candidate["text"] for candidate in body["candidates"]] == [" Because. ", "So."]
    (judgment,) = imported.judgments.values()
    assert [pass_.explanation for pass_ in pair_passes(judgment)] == said
    assert judgment.output and judgment.output["notes"] == said[0]
    # Both are shown, once each.
    kind, (unit,) = imported.recorded.kind, imported.store.archive.units(imported.recorded.scope)
    (page,) = kind.present(kind.load(unit.body), [judgment]).judgments
    assert [str(page.blocks).count(text) for text in said] == [1, 1]


def figures(imported):
    return summarise_pairs(observe(imported.store.archive, imported.recorded, "uncertain"))


def test_there_is_no_front_over_several_units_of_a_topic(imported):
    rows = [
        {"question_id": "q", "judge": "j", "model_a": a, "model_b": b}
        | {"winner": "model_a", "turn": turn}
        for a, b in ("ab", "bc", "ca")
        for turn in (1, 2)
    ]
    imported("fastchat", rows)
    assert imported.bodies[0]["id"] == "q/1#a~b"
    assert imported.bodies[0]["meta"] == {"unit": "q", "turn": 1}
    assert {body["row"] for body in imported.bodies} == {"q"}
    assert figures(imported).fronts == {}
