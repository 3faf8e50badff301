"""Published win rates and ratings, through `evenhand import` and `evenhand leaderboard`."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.results.observations import observe
from evenhand.runs.recorded import recorded_run
from evenhand.runs.stores import open_archive
from evenhand.stats.rating import Matches, rate, vote_matches
from tests.published.data import anchor, expected, queried, records
from tests.published.test_agreement import PANDALM_PEOPLE
from tests.sentences import is_told
from tests.unit.cli.conftest import NEWEST

ANNOTATIONS = "alpacaeval/annotations_compact.csv.gz"
LEADERBOARD = "alpacaeval/leaderboard_published.csv"
PANDALM = "pandalm/testset.jsonl.gz"
NUMBERED = "case score when 1 then 'first' when 2 then 'second' when 3 then 'tie' end"


def board(call, line=""):
    """The rows of a leaderboard by candidate."""
    found = call(f"leaderboard {NEWEST} {line}")
    return {row["candidate"]: row for row in found["rows"]}


def test_the_board_controls_length_without_what_only_alpacaeval_knows(call):
    """Without difficulties and gamed rows the figure is another one; both correct the same way."""
    model = "FuseChat-Llama-3.2-1B-Instruct"
    sql = (
        "select annotator, 'baseline' as generator_1, model as generator_2, \"row\" as index,"
        " preference, len_output_1 as first_length, len_output_2 as second_length, dataset"
        f" from FILE where model = '{model}' and annotator = 'weighted_alpaca_eval_gpt4_turbo'"
    )
    queried(call, ANNOTATIONS, "alpacaeval", sql)
    said = call(f"leaderboard {NEWEST} --length-controlled")
    found = {row["candidate"]: row for row in said["rows"]}[model]
    published = anchor(f"alpacaeval.lc.{model}")["value"]
    assert 100 * found["length_controlled"] == pytest.approx(published, abs=3)
    assert found["length_controlled"] < found["win_rate"] - 0.01
    assert any(is_told(note, "notes.length_not_alpacaeval") for note in said["notes"])


def pass_matches(table):
    """Return what first rounds say in each order: the first is the candidate that was shown
    first."""
    passes = table.passes
    first, second = table.first[passes.row], table.second[passes.row]
    rows = (first != second) & (passes.round == 1) & (passes.position > 0)
    is_turned, won = passes.position[rows] == 2, passes.value[rows]
    first, second = first[rows], second[rows]
    return Matches(
        size=len(table.candidates),
        first=np.where(is_turned, second, first),
        second=np.where(is_turned, first, second),
        won=np.where(is_turned, 1 - won, won),
        tie=won == 0.5,
        topic=table.topic[passes.row][rows],
    )


def plain_ratings(position=False):
    """The ratings of the newest run as published ones are made: nothing is added to the votes, and
    ties are half a win."""
    store = open_archive("sqlite:evenhand.db")
    try:
        votes = observe(store, recorded_run(store, store.runs()[0]))
    finally:
        store.close()
    played = pass_matches(votes) if position else vote_matches(votes, votes.main)
    (found,) = rate(played, "half", position=position, added=0.0)
    names = [votes.candidates[place] for place in found.members.tolist()]
    return dict(zip(names, found.values.tolist(), strict=True)), found


def test_llmfao_golden_ratings(call):
    sql = (
        'select row_number() over () as unit, worker as judge, "left" as first, "right" as second,'
        " case winner when 'left' then 'first' when 'right' then 'second' else winner end as winner"
        " from FILE"
    )
    told = queried(call, "llmfao/crowd_comparisons.csv.gz", "votes", sql)
    assert told["verdicts"] == told["rows"] == 8931
    found = board(call, "--ties half")
    golden = {}
    for row in records("llmfao/golden_ratings.csv"):
        golden.setdefault(row["algorithm"], {})[row["item"]] = float(row["score"])
    names = {"average_win_rate": "average_win_rate", "counting": "points"}
    assert len(found) == anchor("llmfao.golden")["value"]["rows"] == 59
    for algorithm, column in names.items():
        mine = {name: row[column] for name, row in found.items()}
        assert mine == pytest.approx(golden[algorithm], abs=1e-6, rel=1e-6)
    logs = {name: np.log(score) for name, score in golden["bradley_terry"].items()}
    middle = float(np.mean(list(logs.values())))
    assert np.exp(-middle) == pytest.approx(65.35003, rel=1e-6)
    expected = {name: float(value - middle) for name, value in logs.items()}
    assert plain_ratings()[0] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("prompt", ["only_answers", "only_crit"])
def test_russian_ratings(call, prompt):
    sql = (
        "select item as unit, 'qwen3' as judge, model as first, baseline as second,"
        " case winner when 'M' then 'first' when 'R' then 'second' else winner end as winner"
        f" from FILE where prompt = '{prompt}'"
    )
    queried(call, "ru_pairwise_bt/verdicts.csv.gz", "votes", sql)
    at = "gigachat_max_26.20_uncen"
    names, logs = anchor(f"ru_bt.{prompt}")["value"], plain_ratings()[0]
    mine = {name: 1000 + 400 / np.log(10) * (logs[name] - logs[at]) for name in names}
    assert mine == expected(f"ru_bt.{prompt}")
    found = board(call, f"--scale elo --anchor {at}")
    assert found[at]["rating"] == 1000
    # Half a vote between any two that met moves ratings by less than their intervals are wide.
    assert all(found[name]["rating_low"] < mine[name] < found[name]["rating_high"] for name in mine)


def test_rakuda_win_rates_and_ratings_with_a_position_term(call):
    sql = (
        "select question_id as unit, 'gpt-3.5' as judge, model1_id as first, model2_id as second,"
        f" {NUMBERED} as winner from FILE"
    )
    queried(call, "rakuda_ja/rakuda_v1_matches.jsonl.gz", "votes", sql)
    found = board(call, "--on-conflict split")
    rates = {name: row["win_rate"] for name, row in found.items()}
    assert rates == expected("rakuda_v1.win_rate")
    ratings, found = plain_ratings(position=True)
    assert ratings == expected("rakuda_v1.bt_home")
    assert found.position == pytest.approx(-0.5207, abs=5e-5)


def test_peer_judging_by_gpt4(call):
    columns = "question_id as unit, 'gpt4' as judge, first, second"
    sql = f"select {columns}, {NUMBERED} as winner from FILE"
    queried(call, "prd/ratings_gpt4.jsonl.gz", "votes", sql)
    found = call(f"leaderboard {NEWEST} --on-conflict split")
    models = ["gpt4", "claude", "vicuna-13b", "gpt35", "bard"]
    at = [found["matrix"]["candidates"].index(model) for model in models]
    heat = found["matrix"]["win_rate"]
    for row, rates in zip(at, anchor("prd.gpt4_heatmap")["value"], strict=True):
        assert [heat[row][column] for column in at] == pytest.approx(rates, abs=1e-9)
    rates = {row["candidate"]: row["win_rate"] for row in found["rows"]}
    assert rates == expected("prd.gpt4_winrate")


def test_pandalm_majorities_of_all_and_by_pair_of_models(call):
    queried(call, PANDALM, "votes", PANDALM_PEOPLE)
    panel = call(f"show {NEWEST}")["pairwise"]["panel"]
    counts = [panel.get(winner, 0) for winner in ("tie", "A", "B")]
    assert counts == anchor("pandalm.label_counts")["value"]
    assert panel.get("uncertain", 0) == 0  # no three-way split
    published = anchor("pandalm.human_table")["value"]
    assert {row["cmp_key"] for row in records(PANDALM)} == set(published)
    for key, counts in published.items():
        shown = call(f"show {NEWEST} --where", f"cmp_key={key}")["pairwise"]
        stood = shown["candidates"]["response 1"]
        assert [stood["wins"], stood["losses"], stood["ties"]] == counts


def test_faireval_human_counts(call):
    sql = (
        "select question_id as unit, 'people' as judge, 'gpt35' as first, 'vicuna-13b' as second,"
        " human as winner from FILE"
    )
    queried(call, "vicuna80/faireval_human_gpt35_vs_vicuna13b.csv", "votes", sql)
    row = board(call)["gpt35"]
    counts = [row["wins"], row["losses"], row["ties"]]
    assert counts == anchor("vicuna80.faireval.human_counts")["value"]
