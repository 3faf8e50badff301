"""Published pairwise verdicts in both orders, settled here: every figure is the published one.

Where a publication counts conflicts otherwise than we do, the function that counts says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from statistics import fmean
from typing import Any

import pytest

from evenhand.kinds.pairwise.verdict import Order, PairPass, Winner, agrees, settle
from evenhand.stats.pairwise import Judged, pair_figures
from evenhand.units import named_pair_id
from tests.published.data import anchor, records
from tests.published.recorded import Asked, judged, passes, reply, topic, winner

Labelled = list[tuple[dict[str, Any], Judged]]


def pair_pass(order: Order, winner: Winner) -> PairPass:
    """A pass of which only the winner is published."""
    return PairPass(round=1, order=order, judge="", flags=(), reask=0, problems=(), winner=winner)


# autoj.pairwise: 1,392 pairs, the second order not mapped back

AUTOJ_GROUPS = (
    "Summarization",
    "Exam Questions",
    "Code",
    "Rewriting",
    "Creative Writing",
    "Functional Writing",
    "General Communication",
    "NLP Tasks",
    "Overall",
)
AUTOJ_LABELS = ("A", "B", "tie")


@pytest.fixture(scope="module")
def autoj() -> Labelled:
    rows = records("autoj/pairwise.jsonl.gz")
    replies = {
        Asked(str(row["i"]), order): reply(AUTOJ_LABELS[row[f"autoj_order_{order}"]])
        for row in rows
        for order in ("12", "21")
    }
    found = judged([topic(row["i"], "1", "2") for row in rows], replies)
    return list(zip(rows, found, strict=True))


@pytest.mark.parametrize("group", AUTOJ_GROUPS)
def test_autoj_pairwise(group: str, autoj: Labelled) -> None:
    published = anchor("autoj.pairwise")
    of = [(row, one) for row, one in autoj if group in (row["group"], "Overall")]
    right = [winner(one) == AUTOJ_LABELS[row["label"]] for row, one in of]
    consistency = pair_figures(one for _, one in of).consistency
    ours = [100 * fmean(right), 100 * consistency.value]
    assert ours == pytest.approx(published["value"][group], abs=published["tolerance"])
    assert consistency.n == len(of)


def test_autoj_pairwise_leaves_no_group_and_no_pair_out(autoj: Labelled) -> None:
    assert set(AUTOJ_GROUPS) == set(anchor("autoj.pairwise")["value"])
    assert {row["group"] for row, _ in autoj} == set(AUTOJ_GROUPS) - {"Overall"}
    assert len(autoj) == 1392


def test_autoj_single(autoj: Labelled) -> None:
    published = anchor("autoj.single")
    right = [passes(one)["12"] == AUTOJ_LABELS[row["label"]] for row, one in autoj]
    assert 100 * fmean(right) == pytest.approx(published["value"], abs=published["tolerance"])


# llmbar.all: 195 published rows, winners already mapped back

LLMBAR_SUBSETS = ("LLMBar/Natural", "LLMBar/Adversarial/Neighbor", "LLMBar/Adversarial/GPTInst")
LLMBAR_COUNTS = ("n", "correct_ab", "correct_ba", "correct_both", "equal")
SIDES = {"1": "A", "2": "B", "": None}


def llmbar_counts(rows: Sequence[dict[str, Any]]) -> Counter[str]:
    """The counts of one evaluator. There two unread replies count as equal; here a reply that
    cannot be read is no pass, and they are added beside the settling."""
    found = Counter(n=len(rows))
    for row in rows:
        keys = ("label", "winner_order_ab", "winner_order_ba")
        label, first, second = (SIDES[row[key]] for key in keys)
        found["correct_ab"] += first == label
        found["correct_ba"] += second == label
        if first and second:
            made = (pair_pass(order="12", winner=first), pair_pass(order="21", winner=second))
            found["correct_both"] += settle([made]).winner == label
            found["equal"] += agrees(made)
        else:
            found["equal"] += first == second
    return found


@pytest.fixture(scope="module")
def llmbar() -> dict[tuple[str, str], Counter[str]]:
    grouped: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in records("llmbar/verdicts.csv.gz"):
        grouped.setdefault((row["subset"], row["evaluator"]), []).append(row)
    return {key: llmbar_counts(rows) for key, rows in grouped.items()}


@pytest.mark.parametrize("subset", LLMBAR_SUBSETS)
def test_llmbar_all(subset: str, llmbar: dict[tuple[str, str], Counter[str]]) -> None:
    published = {
        row["evaluator"]: {name: int(row[name]) for name in LLMBAR_COUNTS}
        for row in records("llmbar/published_statistics.csv")
        if row["subset"] == subset
    }
    ours = {
        evaluator: {name: counts[name] for name in LLMBAR_COUNTS}
        for (of, evaluator), counts in llmbar.items()
        if of == subset
    }
    assert ours == published
    assert len(ours) == anchor("llmbar.all")["value"]["rows"] / len(LLMBAR_SUBSETS)


@pytest.mark.parametrize("number", range(3), ids=LLMBAR_SUBSETS)
def test_llmbar_paper_gpt4_vanilla(
    number: int, llmbar: dict[tuple[str, str], Counter[str]]
) -> None:
    published = anchor("llmbar.paper.gpt4_vanilla")
    counts = llmbar[LLMBAR_SUBSETS[number], "GPT-4/Vanilla_NoRules"]
    accuracy = (counts["correct_ab"] + counts["correct_ba"]) / 2 / counts["n"]
    ours = [100 * accuracy, 100 * counts["equal"] / counts["n"]]
    assert ours == pytest.approx(published["value"][number], abs=published["tolerance"])


# prd.gpt4_heatmap and rakuda_v1.win_rate: all pairs of several models, both orders pooled

PRD_MODELS = ("gpt4", "claude", "vicuna-13b", "gpt35", "bard")
RAKUDA_MODELS = (
    "rinna/japanese-gpt-neox-3.6b",
    "rinna/japanese-gpt-neox-3.6b-instruction-sft-v2",
    "rinna/japanese-gpt-neox-3.6b-instruction-ppo",
    "izumi-lab/stormy-7b-10ep",
    "cyberagent/open-calm-7b",
    "gpt-3.5-turbo-0301:20230614",
)
SCORES = {1: "A", 2: "B", 3: "tie"}
SHARES = {"A": 1.0, "tie": 0.5, "B": 0.0}


def tournament(name: str, models: Sequence[str], first: str, second: str) -> list[Judged]:
    """All pairs of the models on every question; each record is one pass of one of them."""
    rows, replies = records(name), dict[Asked, str]()
    for row in rows:
        pair = named_pair_id(str(row["question_id"]), (row[first], row[second]))
        order = "12" if row[first] < row[second] else "21"
        replies[Asked(pair, order)] = reply(SCORES[row["score"]])
    questions = sorted({row["question_id"] for row in rows})
    assert len(replies) == len(rows) == len(questions) * len(models) * (len(models) - 1)
    return judged([topic(question, *models) for question in questions], replies)


def pooled(one: Judged) -> float:
    """The first candidate's share. There each pass counts by itself, so that a win against a tie
    is three quarters; here it is uncertain, a half."""
    found = winner(one)
    if found == "uncertain":
        return fmean(SHARES[made] for made in passes(one).values())
    return SHARES[found]


@pytest.fixture(scope="module")
def prd() -> list[Judged]:
    return tournament("prd/ratings_gpt4.jsonl.gz", PRD_MODELS, "first", "second")


@pytest.fixture(scope="module")
def rakuda() -> list[Judged]:
    name = "rakuda_ja/rakuda_v1_matches.jsonl.gz"
    return tournament(name, RAKUDA_MODELS, "model1_id", "model2_id")


@pytest.mark.parametrize(("row", "column"), list(combinations(PRD_MODELS, 2)))
def test_prd_gpt4_heatmap(row: str, column: str, prd: list[Judged]) -> None:
    published = anchor("prd.gpt4_heatmap")
    i, j = PRD_MODELS.index(row), PRD_MODELS.index(column)
    both = [published["value"][i][j], published["value"][j][i]]
    shares = [
        pooled(one) if one.candidates[0] == row else 1 - pooled(one)
        for one in prd
        if set(one.candidates) == {row, column}
    ]
    ours = [fmean(shares), 1 - fmean(shares)]
    assert ours == pytest.approx(both, abs=published["tolerance"])
    assert len(shares) == 80


@pytest.mark.parametrize("model", RAKUDA_MODELS)
def test_rakuda_v1_win_rate(model: str, rakuda: list[Judged]) -> None:
    published = anchor("rakuda_v1.win_rate")
    wins = [pooled(one) for one in rakuda if one.candidates[0] == model]
    losses = [1 - pooled(one) for one in rakuda if one.candidates[1] == model]
    ours = fmean(wins + losses)
    assert ours == pytest.approx(published["value"][model], abs=published["tolerance"])
    assert len(wins + losses) == 200


# judgebench: one judge and three reward models in both orders, the second not mapped back

JUDGEBENCH_GROUPS = ("Knowledge", "Reasoning", "Math", "Coding", "Overall")
JUDGEBENCH_JUDGES = (
    "o1-mini-2024-09-12",
    "Ray2333_GRM-Gemma-2B-rewardmodel-ft",
    "Skywork_Skywork-Reward-Gemma-2-27B",
    "internlm_internlm2-20b-reward",
)
DECISIONS = {"A>B": "A", "B>A": "B", "A=B": "tie"}
COLUMNS = {"12": "decision_order_ab", "21": "decision_order_ba"}


@pytest.fixture(scope="module")
def judgebench() -> dict[str, Labelled]:
    found: dict[str, Labelled] = {}
    for judge in JUDGEBENCH_JUDGES:
        every = records("judgebench/decisions.csv.gz")
        rows = [row for row in every if row["judge_model"] == judge]
        replies = {
            Asked(row["pair_id"], order): reply(DECISIONS[row[column]])
            for row in rows
            for order, column in COLUMNS.items()
        }
        made = judged([topic(row["pair_id"], "A", "B") for row in rows], replies)
        found[judge] = list(zip(rows, made, strict=True))
    return found


def is_right(one: Judged, label: str) -> bool:
    """Whether a pair is won by the right one. There a win against a tie is a win; here it is
    uncertain."""
    if winner(one) == "uncertain":
        return set(passes(one).values()) == {label, "tie"}
    return winner(one) == label


@pytest.mark.parametrize("group", JUDGEBENCH_GROUPS)
@pytest.mark.parametrize("judge", JUDGEBENCH_JUDGES)
def test_judgebench(judge: str, group: str, judgebench: dict[str, Labelled]) -> None:
    published = anchor(f"judgebench.{judge}")
    right = [
        is_right(one, DECISIONS[row["label"]])
        for row, one in judgebench[judge]
        if group in (row["category"], "Overall")
    ]
    value = published["value"][JUDGEBENCH_GROUPS.index(group)]
    assert 100 * fmean(right) == pytest.approx(value, abs=published["tolerance"])


# What hangs on turning the second order back


@pytest.mark.parametrize(
    ("judge", "contradictions"), list(zip(JUDGEBENCH_JUDGES[1:], (0, 3, 0), strict=True))
)
def test_a_judge_that_scores_each_answer_alone_never_depends_on_the_order(
    judge: str, contradictions: int, judgebench: dict[str, Labelled]
) -> None:
    """A reward model never sees two answers at once. The three contradictions are in the file."""
    figures = pair_figures(one for _, one in judgebench[judge])
    assert figures.settled == Counter(stable=350 - contradictions, uncertain=contradictions)
    assert figures.first_slot.value == pytest.approx(0.5, abs=contradictions / 350)


def test_autoj_pairwise_is_far_off_where_the_second_order_is_taken_as_it_stands() -> None:
    rows = records("autoj/pairwise.jsonl.gz")
    as_they_stand = [
        tuple(
            pair_pass(order=order, winner=AUTOJ_LABELS[row[f"autoj_order_{order}"]])
            for order in ("12", "21")
        )
        for row in rows
    ]
    _, consistency = anchor("autoj.pairwise")["value"]["Overall"]
    assert 100 * fmean(agrees(made) for made in as_they_stand) < consistency - 50
