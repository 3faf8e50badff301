"""Published tables by SQL alone: verdicts beside labels, both orders in one row, voters that nobody
tells apart, rows of several annotators."""

from __future__ import annotations

from statistics import fmean

import numpy as np
import pytest

from evenhand.stats.length import Anchored, length_controlled
from tests.published.data import anchor, expected, fed, queried, records, side_of
from tests.published.test_agreement import alpacafarm, with_others

ANNOTATIONS = "alpacaeval/annotations_compact.csv.gz"
LEADERBOARD = "alpacaeval/leaderboard_published.csv"
WEIGHTED = "weighted_alpaca_eval_gpt4_turbo"


def by_judge(call, line):
    """The rows of an agreement by judge."""
    rows = call(f"agreement {line}")["rows"]
    return {row["judge"]: row for row in rows if row["judge"]}


def hits(row):
    """How often both sides said the same."""
    return round(row["agreement"]["value"] * row["agreement"]["n"])


# alpacaeval: comparisons of all models by four annotators in one table


def alpacaeval(call, annotator):
    sql = (
        "select annotator, 'baseline' as generator_1, model as generator_2, \"row\" as index,"
        " preference, len_output_1 as first_length, len_output_2 as second_length, dataset"
        f" from FILE where annotator = '{annotator}'"
    )
    return queried(call, ANNOTATIONS, "alpacaeval", sql)["run"]


def is_as_published(row, published):
    rates = [100 * row["win_rate"], 100 * row["se"]]
    counts = [row[name] for name in ("wins", "losses", "ties", "n")]
    names = ("n_wins", "n_wins_base", "n_draws", "n_total")
    return rates == pytest.approx(
        [float(published[name]) for name in ("win_rate", "standard_error")], abs=1e-6
    ) and counts == [float(published[name]) for name in names]


def test_alpacaeval_leaderboard(call):
    published = records(LEADERBOARD)
    assert len(published) == anchor("alpacaeval.leaderboard")["value"]["rows"] == 63
    for annotator in dict.fromkeys(row["annotator"] for row in published):
        board = call(f"leaderboard {alpacaeval(call, annotator)}")
        rows = {row["candidate"]: row for row in board["rows"]}
        own = {row["model"]: row for row in published if row["annotator"] == annotator}
        assert [name for name in own if not is_as_published(rows[name], own[name])] == []


def test_alpacaeval_win_rates_at_equal_length_from_python():
    """With AlpacaEval's difficulties of instructions and annotations of gamed baselines."""
    gamed = records("alpacaeval/df_gamed.csv.gz")
    anchors = Anchored(
        preference=column(gamed, "preference"),
        length=column(gamed, "std_delta_len"),
        difficulty=column(gamed, "instruction_difficulty"),
    )
    difficulty = {row["index"]: float(row["instruction_difficulty"]) for row in reversed(gamed)}
    weighted = [row for row in records(ANNOTATIONS) if row["annotator"] == WEIGHTED]
    models = list(dict.fromkeys(row["model"] for row in weighted))
    assert len(models) == 25
    for model in models:
        rows = [row for row in weighted if row["model"] == model and row["row"] in difficulty]
        found = length_controlled(
            column(rows, "preference") - 1,
            column(rows, "len_output_1") - column(rows, "len_output_2"),
            difficulty=np.array([difficulty[row["row"]] for row in rows]),
            anchored=anchors,
        )
        assert found is not None and found.low < found.win_rate < found.high
        assert 100 * found.win_rate == expected(f"alpacaeval.lc.{model}")


def column(rows, name):
    """The numbers of a column; nan where there is none."""
    return np.array([float(row[name]) if row[name] else np.nan for row in rows])


# mtbench: an author who voted twice on a pair is two voters in the publication


def test_mtbench_majorities_of_votes_whoever_gave_them(call):
    pair = "question_id, turn, least(model_a, model_b), greatest(model_a, model_b)"
    sql = (
        "select * replace ('voter ' || row_number() over"
        f" (partition by {pair} order by n) as judge)"
        " from (select *, row_number() over () as n from FILE) order by n"
    )
    human = queried(call, "mtbench/human_votes.jsonl.gz", "fastchat", sql)["run"]
    gpt4 = fed(call, "mtbench/gpt4_pair.jsonl.gz", "fastchat")["run"]
    for ties, name in (("keep", "kappa_with_ties"), ("drop", "kappa_no_ties")):
        row = call(f"agreement {human} --against {gpt4} --majority --ties {ties}")["rows"][0]
        value = anchor(f"mtbench.majority.{name}")["value"]
        assert row["kappa"]["value"] == expected(f"mtbench.majority.{name}", "kappa")
        assert row["agreement"]["value"] == pytest.approx(value["raw"], abs=0.0005)
        assert row["n"] == value["n"]
    alpha, ident = (
        call(f"agreement {human}")["rows"][0]["alpha"],
        "mtbench.human_krippendorff_alpha",
    )
    assert alpha["value"] == expected(ident, "alpha")
    assert alpha["n"] == anchor(ident)["value"]["units"]


def test_alpacafarm_of_each_pair_the_first_four_votes_count(call):
    sql = (
        "select pair_id as unit, '1' as first, '2' as second, preference as winner,"
        " 'human ' || row_number() over (partition by pair_id order by n) as judge"
        " from (select *, row_number() over () as n from FILE) order by n"
    )
    run = queried(call, "alpacafarm/human_votes.csv.gz", "votes", sql)["run"]
    people = alpacafarm("alpacafarm/human_votes.csv.gz", "human")
    assert call(f"agreement {run} --judge", "human [1-4]")["rows"][0]["n"] == 6 * 648
    boards = [call(f"leaderboard {run} --judge", f"human {k}")["rows"] for k in range(1, 5)]
    rates = [row["win_rate"] for rows in boards for row in rows if row["candidate"] == "1"]
    alike = with_others(people)
    ours = {"human_agreement": alike, "variance": 1 - alike}
    assert len(people) == 4 * 648
    assert ours | {"prefer_1": fmean(rates)} == expected("alpacafarm.humans")


# llmbar, judgebench, autoj: labels stand beside verdicts, so that a table is taken in twice

LLMBAR = "llmbar/verdicts.csv.gz"


def test_llmbar_counts_of_all_evaluators(call):
    """Winners are mapped back already, and named as the candidates are. There two unread replies
    count as equal; here they are a failed judgment, and counted as such."""
    about = "subset || ' ' || i as unit, subset, '{0}' as first, '{1}' as second"
    straight, turned = about.format(1, 2), about.format(2, 1)
    sql = f"select {straight}, 'label' as judge, label as winner from FILE"
    label = queried(call, LLMBAR, "votes", f"{sql} where evaluator = 'GPT-4/Swap'")["run"]
    sql = f"select {straight}, evaluator as judge, {{}} as winner from FILE"
    runs = {
        f"correct_{order}": queried(call, LLMBAR, "votes", sql.format(f"winner_order_{order}"))[
            "run"
        ]
        for order in ("ab", "ba")
    }
    # An order that cannot be read is a tie, unless neither can.
    said = "case when {0} is null and {1} is not null then 'tie' else {0}::varchar end"
    orders = [("winner_order_ab", "winner_order_ba"), ("winner_order_ba", "winner_order_ab")]
    both = " union all ".join(
        f"select {sides}, evaluator as judge, {said.format(*columns)} as winner from FILE"
        for sides, columns in zip((straight, turned), orders, strict=True)
    )
    runs["correct_both"] = queried(call, LLMBAR, "votes", both)["run"]
    published = records("llmbar/published_statistics.csv")
    counts = {}
    for subset in dict.fromkeys(row["subset"] for row in published):
        part = f"--where subset={subset}"
        for name, run in runs.items():
            for judge, row in by_judge(call, f"{run} --against {label} {part}").items():
                counts.setdefault((subset, judge), {})[name] = hits(row)
        shown = call(f"show {runs['correct_both']} {part}")
        for judge, figures in shown["pairwise"]["judges"].items():
            consistency = figures["consistency"]
            unread = shown["selected"]["units"] - consistency["n"]
            equal = round(consistency["value"] * consistency["n"]) + unread
            counts[subset, judge] |= {"equal": equal, "n": shown["selected"]["units"]}
    names = ("correct_ab", "correct_ba", "correct_both", "equal", "n")
    assert counts == {
        (row["subset"], row["evaluator"]): {name: int(row[name]) for name in names}
        for row in published
    }
    assert len(counts) == anchor("llmbar.all")["value"]["rows"]
    subsets = ("LLMBar/Natural", "LLMBar/Adversarial/Neighbor", "LLMBar/Adversarial/GPTInst")
    for place, subset in enumerate(subsets):
        own = counts[subset, "GPT-4/Vanilla_NoRules"]
        accuracy = (own["correct_ab"] + own["correct_ba"]) / 2
        ours = [100 * accuracy / own["n"], 100 * own["equal"] / own["n"]]
        assert ours == expected("llmbar.paper.gpt4_vanilla", place)


def test_llmbar_kappa_is_that_of_the_verdicts(call):
    """The published one compares winners coded 1 and 0 with labels coded 1 and 2, so that every
    verdict for the second output is a disagreement."""
    sql = (
        "select i as unit, '1' as first, '2' as second, '{0}' as judge, {0} as winner from FILE"
        " where subset = 'LLMBar/Natural' and evaluator = 'GPT-4/Swap'"
    )
    judge, label = (
        queried(call, LLMBAR, "votes", sql.format(column))["run"]
        for column in ("winner_order_ab", "label")
    )
    (published,) = (
        row
        for row in records("llmbar/published_statistics.csv")
        if (row["subset"], row["evaluator"]) == ("LLMBar/Natural", "GPT-4/Swap")
    )
    row = call(f"agreement {judge} --against {label}")["rows"][0]
    right = int(published["correct_ab"]) / int(published["n"])
    assert row["agreement"]["value"] == pytest.approx(right)
    assert row["kappa"]["value"] == pytest.approx(0.88, abs=0.005)
    counts = row["confusion"]["counts"]
    # Their way, from the same counts: a verdict "2" is a category 0 that no label has.
    n = sum(map(sum, counts))
    observed = counts[0][0] / n
    chance = sum(counts[0]) / n * (counts[0][0] + counts[1][0]) / n
    wrong = (observed - chance) / (1 - chance)
    assert wrong == pytest.approx(float(published["kappa_False_published"]), abs=1e-9)


JUDGEBENCH = "judgebench/decisions.csv.gz"
REWARD_MODELS = (
    "Ray2333_GRM-Gemma-2B-rewardmodel-ft",
    "Skywork_Skywork-Reward-Gemma-2-27B",
    "internlm_internlm2-20b-reward",
)


def test_judgebench_accuracies(call):
    """A win against a tie is a win there: the mean of what the orders say."""
    order = (
        "select pair_id as unit, category, {} as judge, '{}' as first, '{}' as second, {} as winner"
    )
    sql = " union all ".join(
        f"{order.format('judge_model', *sides, side_of(f'decision_order_{column}'))} from FILE"
        for column, sides in (("ab", "AB"), ("ba", "BA"))
    )
    judges = queried(call, JUDGEBENCH, "votes", sql)["run"]
    sql = f"{order.format(repr('label'), *'AB', side_of('label'))} from FILE"
    label = queried(call, JUDGEBENCH, "votes", f"{sql} where judge_name = 'arena_hard'")["run"]
    accuracies = {}
    for category in ("Knowledge", "Reasoning", "Math", "Coding", ""):
        part = f"--where category={category}" if category else ""
        line = f"{judges} --against {label} --on-conflict split {part}"
        for judge, row in by_judge(call, line).items():
            accuracies.setdefault(judge, []).append(100 * row["agreement"]["value"])
    assert len(accuracies) == 4
    for judge, ours in accuracies.items():
        assert ours == expected(f"judgebench.{judge}")
    # A reward model never sees two answers at once; the three contradictions are in the file.
    shown = call(f"show {judges}")["pairwise"]["judges"]
    contradictions = {name: one["outcomes"]["uncertain"] for name, one in shown.items()}
    assert [contradictions[name] for name in REWARD_MODELS] == [0, 3, 0]


AUTOJ = "autoj/pairwise.jsonl.gz"


def test_autoj_agreement_and_consistency_by_group(call):
    order = (
        "select i as unit, \"group\", '{}' as judge, 'response {}' as first,"
        " 'response {}' as second, case {} when 0 then 'first' when 1 then 'second'"
        " when 2 then 'tie' end as winner from FILE"
    )
    shown = [
        order.format("auto-j", *sides, f"autoj_order_{''.join(sides)}") for sides in ("12", "21")
    ]
    both = queried(call, AUTOJ, "votes", " union all ".join(shown))["run"]
    first = queried(call, AUTOJ, "votes", shown[0])["run"]
    label = queried(call, AUTOJ, "votes", order.format("people", 1, 2, "label"))["run"]
    # There a pair on which the orders differ agrees with no label, here not with a tie alone.
    rows = call(f"agreement {both} --against {label} --on-conflict drop --by group")["rows"]
    agreed = {row["variant"] or "Overall": hits(row) for row in rows}
    board = call(f"leaderboard {both} --by group")
    orders_of = board["by"]["levels"] | {"Overall": board}
    groups = anchor("autoj.pairwise")["value"].keys()
    for group in groups:
        orders_in = orders_of[group]
        right = agreed[group] / orders_in["consistency_n"]
        ours = [100 * right, 100 * orders_in["consistency"]]
        assert ours == expected("autoj.pairwise", group)
    assert agreed.keys() == groups
    single = call(f"agreement {first} --against {label}")["rows"][0]["agreement"]["value"]
    assert 100 * single == expected("autoj.single")
