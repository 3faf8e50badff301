"""Published win rates and ratings, through `evenhand import` and `evenhand leaderboard`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest

from evenhand.stats.ranking.length import Anchored, length_controlled
from tests.published.data import Call, anchor, fed, folder, imported, records

ANNOTATIONS = "alpacaeval/annotations_compact.csv.gz"
LEADERBOARD = "alpacaeval/leaderboard_published.csv"
PANDALM = "pandalm/testset.jsonl.gz"
AT_EQUAL_LENGTH = [
    "FuseChat-Llama-3.1-8B-Instruct",
    "FuseChat-Llama-3.2-1B-Instruct",
    "FuseChat-Llama-3.2-3B-Instruct",
    "FuseChat-Qwen-2.5-7B-Instruct",
    "NullModel",
    "Qwen-14B-Chat",
    "alpaca-7b",
    "claude-2.1",
    "claude-instant-1.2",
    "claude",
    "falcon-7b-instruct",
    "gemma-2b-it",
    "gpt-3.5-turbo-0301",
    "gpt-3.5-turbo-1106",
    "gpt4_gamed",
    "minotaur-13b",
    "oasst-rlhf-llama-33b",
    "oasst-sft-pythia-12b",
    "phi-2-sft",
    "phi-2",
    "pythia-12b-mix-sft",
    "text_davinci_001",
    "ultralm-13b",
    "vicuna-13b-v1.5",
    "vicuna-7b",
]


def board(call: Call, *arguments: str) -> dict[str, dict[str, Any]]:
    """The rows of a leaderboard by candidate."""
    found = call("leaderboard", *arguments)
    return {row["candidate"]: row for row in found["rows"]}


def vote(unit: Any, judge: str, first: str, second: str, winner: str) -> dict[str, Any]:
    return {"unit": unit, "judge": judge, "first": first, "second": second, "winner": winner}


def preferred(row: Mapping[str, str]) -> float:
    """AlpacaEval's preference from 0 to 1; 0 stands for a draw there, and nothing is unknown."""
    given = float(row["preference"] or "nan")
    return 0.5 if given == 0 else given - 1


def test_alpacaeval_leaderboard(call: Call) -> None:
    published = records(LEADERBOARD)
    for judge in dict.fromkeys(row["annotator"] for row in published):
        rows = (
            {
                "unit": row["row"],
                "judge": judge,
                "first": "the baseline",
                "second": row["model"],
                "preference": repr(preferred(row)) if row["preference"] else "",
            }
            for row in records(ANNOTATIONS)
            if row["annotator"] == judge
        )
        imported(call, "votes", rows)
        found = board(call, "--bootstrap", "0")
        for row in (row for row in published if row["annotator"] == judge):
            one = found[row["model"]]
            assert 100 * one["win_rate"] == pytest.approx(float(row["win_rate"]), abs=1e-6)
            assert 100 * one["se"] == pytest.approx(float(row["standard_error"]), abs=1e-6)
            counts = [float(row[name]) for name in ("n_wins", "n_wins_base", "n_draws", "n_total")]
            assert [one["wins"], one["losses"], one["ties"], one["n"]] == counts
            assert one["low"] < one["win_rate"] < one["high"]
    assert len(published) == anchor("alpacaeval.leaderboard")["value"]["rows"] == 63


@pytest.mark.parametrize("model", AT_EQUAL_LENGTH)
def test_alpacaeval_at_equal_length(model: str) -> None:
    gamed = records("alpacaeval/df_gamed.csv.gz")

    def column(name: str) -> np.ndarray:
        return np.array([float(row[name]) for row in gamed])

    difficulty: dict[int, float] = {}
    for row in gamed:
        difficulty.setdefault(int(row["index"]), float(row["instruction_difficulty"]))
    own = [
        row
        for row in records(ANNOTATIONS)
        if row["annotator"] == "weighted_alpaca_eval_gpt4_turbo" and row["model"] == model
    ]
    found = length_controlled(
        np.array([preferred(row) for row in own]),
        np.array([float(row["len_output_1"]) - float(row["len_output_2"]) for row in own]),
        difficulty=np.array([difficulty[int(row["row"])] for row in own]),
        anchored=Anchored(
            preference=column("preference"),
            length=column("std_delta_len"),
            difficulty=column("instruction_difficulty"),
        ),
    )
    published = anchor(f"alpacaeval.lc.{model}")
    assert found is not None
    assert 100 * found.win_rate == pytest.approx(published["value"], abs=published["tolerance"])


def test_no_length_controlled_anchor_is_left_out() -> None:
    anchors = json.loads((folder() / "anchors.json").read_text(encoding="utf-8"))
    there = [one["id"] for one in anchors if one["id"].startswith("alpacaeval.lc.")]
    assert there == [f"alpacaeval.lc.{model}" for model in AT_EQUAL_LENGTH]


def own_votes(model: str) -> Iterator[dict[str, str]]:
    """The votes on a model against the baseline, as a tidy table."""
    for row in records(ANNOTATIONS):
        if row["annotator"] == "weighted_alpaca_eval_gpt4_turbo" and row["model"] == model:
            yield {
                "unit": row["row"],
                "judge": "gpt-4-turbo",
                "first": "the baseline",
                "second": row["model"],
                "preference": repr(preferred(row)),
                "first_length": row["len_output_1"],
                "second_length": row["len_output_2"],
            }


def test_the_board_controls_length_without_what_only_alpacaeval_knows(call: Call) -> None:
    """Without difficulties and gamed rows the figure is another one; both correct the same way."""
    model = "FuseChat-Llama-3.2-1B-Instruct"
    imported(call, "votes", own_votes(model))
    said = call("leaderboard", "--length-controlled", "--bootstrap", "0")
    found = {row["candidate"]: row for row in said["rows"]}[model]
    published = anchor(f"alpacaeval.lc.{model}")["value"]
    assert 100 * found["length_controlled"] == pytest.approx(published, abs=3)
    assert found["length_controlled"] < found["win_rate"] - 0.01
    assert any("no figures of AlpacaEval" in note for note in said["notes"])


@pytest.mark.parametrize("model", ["FuseChat-Llama-3.2-1B-Instruct", "NullModel"])
def test_the_board_has_alpacaevals_figure_with_its_difficulties_and_anchors(
    call: Call, model: str
) -> None:
    imported(call, "votes", own_votes(model))
    gamed = str(folder() / "alpacaeval" / "df_gamed.csv.gz")
    files = ("--difficulty", gamed, "--anchors", gamed)
    said = call("leaderboard", *files, "--bootstrap", "0")
    found = {row["candidate"]: row for row in said["rows"]}
    own, other = found[model], found["the baseline"]
    published = anchor(f"alpacaeval.lc.{model}")
    value = 100 * own["length_controlled"]
    assert value == pytest.approx(published["value"], abs=published["tolerance"])
    assert own["length_controlled_low"] < own["length_controlled"] < own["length_controlled_high"]
    assert 100 - 100 * other["length_controlled"] == pytest.approx(value, abs=0.5)
    assert not any("AlpacaEval" in note for note in said["notes"])


def test_llmfao_golden_ratings(call: Call) -> None:
    # A unit for each vote keeps the order of the file, on which Elo depends.
    columns = ("--set", "unit={row}", "--map", "judge=worker")
    sides = ("--map", "first=left", "--map", "second=right")
    told = fed(call, "llmfao/crowd_comparisons.csv.gz", "votes", *columns, *sides)
    assert told["verdicts"] == told["rows"] == 8931
    found = board(call, "--ties", "half", "--elo", "--bootstrap", "0")
    golden: dict[str, dict[str, float]] = {}
    for row in records("llmfao/golden_ratings.csv"):
        golden.setdefault(row["algorithm"], {})[row["item"]] = float(row["score"])
    names = {"average_win_rate": "average_win_rate", "counting": "points", "elo": "elo"}
    assert len(found) == anchor("llmfao.golden")["value"]["rows"] == 59
    for algorithm, column in names.items():
        mine = {name: row[column] for name, row in found.items()}
        assert mine == pytest.approx(golden[algorithm], abs=1e-6, rel=1e-6)
    logs = {name: np.log(score) for name, score in golden["bradley_terry"].items()}
    middle = float(np.mean(list(logs.values())))
    assert np.exp(-middle) == pytest.approx(65.35003, rel=1e-6)
    expected = {name: float(value - middle) for name, value in logs.items()}
    assert {name: row["rating"] for name, row in found.items()} == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("prompt", ["only_answers", "only_crit"])
def test_russian_ratings(call: Call, prompt: str) -> None:
    won = {"M": "first", "R": "second"}
    verdicts = [row for row in records("ru_pairwise_bt/verdicts.csv.gz") if row["prompt"] == prompt]
    imported(
        call,
        "votes",
        (vote(r["item"], "qwen3", r["model"], r["baseline"], won[r["winner"]]) for r in verdicts),
    )
    at = "gigachat_max_26.20_uncen"
    found = board(call, "--scale", "elo", "--anchor", at, "--bootstrap", "200")
    published = anchor(f"ru_bt.{prompt}")
    mine = {name: found[name]["rating"] for name in published["value"]}
    assert mine == pytest.approx(published["value"], abs=published["tolerance"])
    assert found[at]["rating"] == 1000
    assert all(found[name]["rating_low"] < mine[name] < found[name]["rating_high"] for name in mine)


def rakuda(call: Call) -> None:
    columns = ("--map", "unit=question_id", "--map", "winner=score", "--judge", "gpt-3.5")
    sides = ("--map", "first=model1_id", "--map", "second=model2_id")
    fed(call, "rakuda_ja/rakuda_v1_matches.jsonl.gz", "votes", *columns, *sides)


def test_rakuda_win_rates_are_of_all_matches_in_either_order(call: Call) -> None:
    rakuda(call)
    found = board(call, "--on-conflict", "split", "--bootstrap", "0")
    published = anchor("rakuda_v1.win_rate")
    mine = {name: row["win_rate"] for name, row in found.items()}
    assert mine == pytest.approx(published["value"], abs=published["tolerance"])


def test_rakuda_ratings_with_a_position_term(call: Call) -> None:
    rakuda(call)
    found = call("leaderboard", "--position", "--ties", "half", "--bootstrap", "200")
    published = anchor("rakuda_v1.bt_home")
    mine = {row["candidate"]: row["rating"] for row in found["rows"]}
    assert mine == pytest.approx(published["value"], abs=published["tolerance"])
    position = found["position"]
    assert position["term"] == pytest.approx(-0.5207, abs=5e-5) and position["passes"] == 1200
    assert position["low"] < position["term"] < position["high"] < 0


def test_mtbench_verdicts_in_the_order_of_names_have_no_position_term(call: Call) -> None:
    call("import", str(folder() / "mtbench/gpt4_pair.jsonl.gz"), "--kind", "fastchat")
    found = call("leaderboard", "--position", "--bootstrap", "0")
    assert found["position"] is None
    assert any("No position term: all pairs" in note for note in found["notes"])


def test_mtbench_votes_whose_orders_were_drawn_have_one(call: Call) -> None:
    call("import", str(folder() / "mtbench/human_votes.jsonl.gz"), "--kind", "fastchat")
    position = call("leaderboard", "--position", "--bootstrap", "200")["position"]
    assert position["low"] < 0 < position["high"]


def test_peer_judging_by_gpt4(call: Call) -> None:
    columns = ("--map", "unit=question_id", "--map", "winner=score", "--judge", "gpt4")
    fed(call, "prd/ratings_gpt4.jsonl.gz", "votes", *columns)
    found = call("leaderboard", "--on-conflict", "split", "--bootstrap", "0")
    models = ["gpt4", "claude", "vicuna-13b", "gpt35", "bard"]
    at = [found["matrix"]["candidates"].index(model) for model in models]
    heat, published = found["matrix"]["win_rate"], anchor("prd.gpt4_heatmap")
    for row, expected in zip(at, published["value"], strict=True):
        assert [heat[row][column] for column in at] == pytest.approx(expected, abs=1e-9)
    rates = {row["candidate"]: row["win_rate"] for row in found["rows"]}
    published = anchor("prd.gpt4_winrate")
    assert rates == pytest.approx(published["value"], abs=published["tolerance"])


def test_faireval_human_counts(call: Call) -> None:
    columns = ("--map", "unit=question_id", "--map", "winner=human", "--judge", "people")
    sides = ("--set", "first=gpt35", "--set", "second=vicuna-13b")
    fed(call, "vicuna80/faireval_human_gpt35_vs_vicuna13b.csv", "votes", *columns, *sides)
    row = board(call)["gpt35"]
    counts = [row["wins"], row["losses"], row["ties"]]
    assert counts == anchor("vicuna80.faireval.human_counts")["value"]


def pandalm(call: Call) -> None:
    annotators = ("--wide", "judge=annotator1,annotator2,annotator3", "--map", "unit=idx")
    sides = ("--set", "first=response 1", "--set", "second=response 2")
    fed(call, PANDALM, "votes", *annotators, *sides, "--value", "winner:0=tie")


def test_pandalm_majorities(call: Call) -> None:
    pandalm(call)
    panel = call("show", "latest")["pairwise"]["panel"]
    counts = [panel.get(winner, 0) for winner in ("tie", "A", "B")]
    assert counts == anchor("pandalm.label_counts")["value"]
    assert panel.get("uncertain", 0) == 0  # no three-way split


def test_pandalm_majorities_by_pair_of_models(call: Call) -> None:
    pandalm(call)
    published = anchor("pandalm.human_table")["value"]
    assert {row["cmp_key"] for row in records(PANDALM)} == set(published)
    for key, expected in published.items():
        shown = call("show", "latest", "--where", f"cmp_key={key}")["pairwise"]
        stood = shown["candidates"]["response 1"]
        assert [stood["wins"], stood["losses"], stood["ties"]] == expected
