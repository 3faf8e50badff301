"""Published agreement of judges with people and with each other, through `evenhand import` and
`evenhand agreement`; what is published and the command does not have is worked out here."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any

import numpy as np
import pytest

from tests.published.data import anchor, expected, fed, imported, queried, records

Rows = Iterable[Mapping[str, Any]]


def row_of(call, line, **wanted):
    """The row of `evenhand agreement` with these values; without any the first."""
    rows = call(f"agreement {line}")["rows"]
    return next(row for row in rows if all(row[k] == v for k, v in wanted.items()))


def take(call, rows):
    """The id of the run that votes make."""
    return imported(call, "votes", rows)["run"]


def query(call, name, kind, sql):
    """The id of the run that a query about a published file makes; FILE is the file."""
    return queried(call, name, kind, sql)["run"]


# mtbench: the files as they are, in FastChat's layout

HUMANS, GPT4 = "mtbench/human_votes.jsonl.gz", "mtbench/gpt4_pair.jsonl.gz"


def mtbench(call):
    return [fed(call, name, "fastchat")["run"] for name in (HUMANS, GPT4)]


def by_turn(call, ties, line):
    """The experts' agreement, as a rounded percentage and the number of comparisons."""
    rows = call(f"agreement {line} --judge expert_* --by turn --ties {ties}")["rows"]
    return {
        row["variant"]: (round(100 * row["agreement"]["value"]), row["n"])
        for row in rows
        if row["variant"]
    }


def published_by_turn(what, ties):
    rule = "with_ties" if ties == "keep" else "no_ties"
    values = {turn: anchor(f"mtbench.t{turn}.{what}.{rule}")["value"] for turn in "12"}
    return {turn: (value["percent_rounded"], value["n"]) for turn, value in values.items()}


@pytest.mark.parametrize("ties", ["keep", "drop"])
def test_mtbench_experts_among_themselves_and_against_gpt4(call, ties):
    human, gpt4 = mtbench(call)
    assert by_turn(call, ties, human) == published_by_turn("human_vs_human", ties)
    ours = by_turn(call, ties, f"{human} --against {gpt4}")
    assert ours == published_by_turn("gpt4_pair_vs_human", ties)


def test_mtbench_merged_without_turn_and_orientation_gives_53_percent(call):
    """The public audit's way, in the test: rows that share question, model_a and model_b, whatever
    the turn, and no two ties agree. Joined by unit and candidates, the figure is 66 %."""
    trap = anchor("mtbench.wrong_merge_trap")["value"]
    verdicts = defaultdict(list)
    for row in records(GPT4):
        verdicts[row["question_id"], row["model_a"], row["model_b"]].append(row["winner"])
    met = [
        row["winner"] == winner != "tie"
        for row in records(HUMANS)
        for winner in verdicts[row["question_id"], row["model_a"], row["model_b"]]
    ]
    assert (len(met), sum(met)) == (trap["rows"], trap["agree_rows"])
    assert round(100 * fmean(met)) == trap["published_percent"]
    human, gpt4 = mtbench(call)
    found = row_of(call, f"{human} --against {gpt4}")
    # Every vote meets the one verdict on its question, turn and pair of models.
    assert found["n"] == 3354
    assert found["units"] == 1814
    assert found["agreement"]["value"] == pytest.approx(0.66, abs=0.005)


# alpacafarm: four votes on every pair, people and seeds of a judge

CHOICES = {"1": "first", "2": "second"}


def alpacafarm(name, voter):
    """The first four votes on every pair, the k-th vote being that of the k-th voter."""
    taken, rows = Counter(), []
    for row in records(name):
        taken[row["pair_id"]] += 1
        if (number := taken[row["pair_id"]]) <= 4:
            rows.append(voted(row["pair_id"], f"{voter} {number}", CHOICES[row["preference"]]))
    return rows


def by_pair(rows):
    votes = defaultdict(list)
    for row in rows:
        votes[row["unit"]].append(row["winner"])
    return votes


def most_of(winners):
    """The most frequent; a split of two to two goes to the second, as there."""
    return "first" if winners.count("first") > len(winners) / 2 else "second"


def majorities(rows):
    return [voted(unit, "majority", most_of(winners)) for unit, winners in by_pair(rows).items()]


def with_others(rows):
    """How often a vote is the majority of the other votes on its pair."""
    return fmean(
        winner == most_of(winners[:place] + winners[place + 1 :])
        for winners in by_pair(rows).values()
        for place, winner in enumerate(winners)
    )


def voted(unit, judge, winner):
    return {"unit": unit, "judge": judge, "first": "1", "second": "2", "winner": winner}


def longest(apart=-1):
    """The vote of one who takes the longer output, where lengths differ by more than `apart`."""
    return [
        voted(row["pair_id"], "longest", "first" if longer > 0 else "second")
        for row in records("alpacafarm/pairs.jsonl.gz")
        if abs(longer := len(row["output_1"]) - len(row["output_2"])) > apart
    ]


def test_alpacafarm_longest(call):
    """There a split of two to two goes to the second; as a tie, which is the rule here, it agrees
    with nobody."""
    people = alpacafarm("alpacafarm/human_votes.csv.gz", "human")
    judge, most = take(call, longest()), take(call, majorities(people))
    found = row_of(call, f"{judge} --against {most}")["agreement"]["value"]
    assert found == expected("alpacafarm.longest", "human_agreement")
    human = take(call, people)
    assert row_of(call, f"{judge} --against {human} --majority --ties drop")["n"] == 648 - 148


def test_alpacafarm_gpt4(call):
    people = alpacafarm("alpacafarm/human_votes.csv.gz", "human")
    seeds = alpacafarm("alpacafarm/judge_gpt4_b1.csv.gz", "seed")
    human, judge = take(call, majorities(people)), take(call, seeds)
    rows = call(f"agreement {judge} --against {human}")["rows"]
    each = [row for row in rows if row["judge"] is not None]
    most = take(call, majorities(seeds))
    # Published of the first seed alone, where lengths differ by more than 30 characters.
    long = take(call, longest(30))
    longer = row_of(call, f"{judge} --against {long} --judge 'seed 1'")["agreement"]
    ours = {
        "human_agreement": fmean(row["agreement"]["value"] for row in each),
        "bias": 1 - row_of(call, f"{most} --against {human}")["agreement"]["value"],
        "variance": 1 - with_others(seeds),
        "prefer_longer": longer["value"],
    }
    assert len(each) == 4
    assert ours == expected("alpacafarm.gpt4_b1")


# pandalm: three people on every pair, and a judge against their majority


RESPONSES = "idx as unit, 'response 1' as first, 'response 2' as second"
PANDALM_PEOPLE = (
    f"select {RESPONSES}, judge, cmp_key,"
    " case said when 1 then 'first' when 2 then 'second' when 0 then 'tie' end as winner"
    " from FILE unpivot include nulls (said for judge in (annotator1, annotator2, annotator3))"
    " order by idx, judge"
)


def pandalm_people(call):
    return query(call, "pandalm/testset.jsonl.gz", "votes", PANDALM_PEOPLE)


def test_pandalm_annotators(call):
    run = pandalm_people(call)
    ours = [
        row_of(call, run, judge=f"annotator{i}", other=f"annotator{j}")["kappa"]["value"]
        for i, j in ((1, 2), (1, 3), (2, 3))
    ]
    assert ours == expected("pandalm.iaa")


def test_pandalm_gpt35(call):
    """Published with what could not be read ("garbage") as a tie; as failed judgments, which is the
    rule here, they are left out and counted."""
    people, name = pandalm_people(call), "pandalm/gpt-3.5-turbo.jsonl.gz"
    said = (
        "case gpt_result when '1' then 'first' when '2' then 'second' when 'garbage' then {}"
        " else 'tie' end"
    )
    sql = f"select {RESPONSES}, 'gpt' as judge, {said} as winner from FILE"
    tied = query(call, name, "votes", sql.format("'tie'"))
    found = row_of(call, f"{tied} --against {people} --majority")
    # Macro means over first, second and tie, from the table of what met what.
    counts = np.array(found["confusion"]["counts"], float)
    right, said, meant = counts.diagonal(), counts.sum(axis=1), counts.sum(axis=0)
    precision, recall, f1 = right / said, right / meant, 2 * right / (said + meant)
    ours = [found["agreement"]["value"], precision.mean(), recall.mean(), f1.mean()]
    assert [100 * value for value in ours] == expected("pandalm.gpt35")
    failed = query(call, name, "votes", sql.format("null"))
    kept = call(f"agreement {failed} --against {people} --majority")
    unread = sum(row["gpt_result"] == "garbage" for row in records(name))
    assert kept["failures"]["run"] == kept["units"]["only_against"] == unread > 0


# Scores: alpha.codings, summeval, unieval


def test_alpha_of_codings(call):
    """Raters are rows there, and units are columns."""
    units = ", ".join(f"unit{k}" for k in range(1, 13))
    sql = (
        "select unit, judge, score from (select *, 'rater ' || row_number() over () as judge"
        f" from FILE) unpivot include nulls (score for unit in ({units})) order by judge, unit"
    )
    run = query(call, "llmfao/krippendorff_codings.csv", "scores", sql)
    assert row_of(call, f"{run} --all")["alpha_nominal"]["value"] == expected("alpha.codings")


BY_ROW = "select row_number() over () as unit, '{}' as judge, {} as score from FILE"
"""Rows of which two files, or two columns, hold the same ones in the same order."""
UNIEVAL = "unieval/topical_chat.jsonl.gz"
ERRORS = ("rmse", "mae", "spearman", "kendall", "pearson")


@pytest.mark.parametrize(
    "name",
    ["relevance.weighted", "relevance.raw", "fluency.weighted", "fluency.raw", "consistency.raw"],
)
def test_summeval(call, name):
    dimension, way = name.split(".")
    odds = f"summeval_geval/qwen__Summeval_{dimension}_logprobs.csv.gz"
    human = query(call, odds, "scores", BY_ROW.format("human", "human"))
    if way == "raw":
        raw = f"summeval_geval/qwen__Summeval_{dimension}_raw.csv.gz"
        judged = query(call, raw, "scores", BY_ROW.format("qwen", "raw_score"))
    else:
        shares = [(score, f"exp(logprob_{score})") for score in range(1, 6)]
        mean = " + ".join(f"{score} * {share}" for score, share in shares)
        whole = " + ".join(share for _, share in shares)
        judged = query(call, odds, "scores", BY_ROW.format("qwen", f"({mean}) / ({whole})"))
    found = row_of(call, f"{judged} --against {human} --all")
    ours = [found["rmse"]["value"] ** 2, *(found[figure]["value"] for figure in ERRORS)]
    assert ours == expected(f"summeval.qwen__Summeval_{name}")


def test_unieval_topical_chat(call):
    for dimension in anchor("unieval.topical_chat")["value"]:
        runs = [
            query(call, UNIEVAL, "scores", BY_ROW.format(side, f"{side}.{dimension}"))
            for side in ("predicted", "human")
        ]
        found = row_of(call, f"{runs[0]} --against {runs[1]} --all")
        ours = [found[name]["value"] for name in ("pearson", "spearman", "kendall")]
        assert ours == expected("unieval.topical_chat", dimension)


# arena_debias: people and a judge on the same battles, and what a part of the labels corrects

ARENA = "arena_debias/claude-opus-4-20250514_vs_gemini-2.5-pro_gpt-4o-mini.jsonl.gz"
OPUS = "claude-opus-4-20250514"


SIDES = {"A": "first", "B": "second", "model_a": "first", "model_b": "second"}


def battles(column, judge, rows):
    """Battles as votes, by who won in a column; of both bad a tie."""
    return [
        {"unit": row["id"], "judge": judge, "first": row["model_a"], "second": row["model_b"]}
        | {"winner": SIDES.get(row[column], "tie" if "tie" in str(row[column]) else row[column])}
        for row in rows
    ]


def arena(call, labelled=None):
    """Claude Opus 4's win rate, with the labels of so many battles drawn at random."""
    judge = take(call, battles("judge_pick", "gpt", records(ARENA)))
    drawn = records(ARENA)
    if labelled is not None:
        drawn = random.Random(labelled).sample(drawn, labelled)
    human = take(call, battles("human_winner", "human", drawn))
    found = call(f"agreement {judge} --against {human}")
    assert found["failures"]["run"] == 1
    return next(row for row in found["corrected"] if row["candidate"] == OPUS)


def test_arena_debias_example(call):
    found = arena(call)
    ours = {"n": found["judged"], "human": found["labels_alone"], "judge": found["naive"]}
    assert ours == expected("arena_debias.example")


@pytest.mark.parametrize("labelled", [80, 160])
def test_arena_debias_a_part_of_the_labels_corrects_the_judge(call, labelled):
    people, found = anchor("arena_debias.example")["value"]["human"], arena(call, labelled)
    assert found["low"] <= people <= found["high"]
    assert abs(found["corrected"] - people) < abs(found["naive"] - people)
    # The judge and the people agree little beyond chance: it counts little, and does no harm.
    assert found["weight"] < 0.5
    assert found["high"] - found["low"] < 1.05 * (found["labels_high"] - found["labels_low"])
