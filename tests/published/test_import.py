"""Published files through `evenhand.runs.imports`: every row is accounted for, and what they say
comes out; where a published pipeline lost rows, the right count and why it differs."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from evenhand.data.sql import query
from evenhand.observation import OPPONENT_LENGTH, WINNER
from evenhand.results.observations import observe
from evenhand.results.units import full_rows
from evenhand.runs.recorded import recorded_run
from evenhand.runs.stores import open_store
from tests.published.data import anchor, folder, of_file, records, side_of
from tests.unit.runs.importing import import_files


@pytest.fixture
def store(tmp_path):
    opened = open_store("sqlite:store.db", tmp_path)
    yield opened
    opened.close()


def imported(store, path, kind, **options):
    path = path if isinstance(path, Path) else folder() / path
    return import_files(store, [path], kind, **options)


def rows(store):
    return list(full_rows(store.archive, recorded_run(store.archive, store.archive.runs()[0])))


def battles(store):
    """By model: games that the baseline won, that the model won, and ties."""
    found = {}
    for row in rows(store):
        (model,) = set(row["unit"].split("#")[1].split("~")) - {"baseline"}
        said = (one["winner"] for one in row["passes"] if "winner" in one)
        found.setdefault(model, Counter()).update(said)
    return {model: [one["A"], one["B"], one["tie"]] for model, one in found.items()}


def test_every_label_of_the_russian_arena_counts_whichever_way_it_is_written(store):
    order = "select question_id as unit, 'jina' as judge, {} as first, {} as second, {} as winner"
    sides = ("'baseline'", "model")
    games = {"game1_baseline_is_A": sides, "game2_model_is_A": sides[::-1]}
    sql = " union all ".join(
        f"{order.format(*sides, side_of(game))} from FILE" for game, sides in games.items()
    )
    found = import_files(store, [query(of_file(sql, "ru_arena_jina/verdicts.csv.gz"))], "votes")
    assert (found.tally.rows, found.tally.units, found.tally.failures) == (19_000, 9_500, {})
    counted = battles(store)
    assert len(counted) == anchor("ru_arena.dropped_label_trap")["value"]["models"] == 19
    assert all(sum(counts) == 1000 for counts in counted.values())
    # The published counts lack every game labelled A<B: nearly half of what was judged.
    lost = Counter(
        (row["model"], place)
        for row in records("ru_arena_jina/verdicts.csv.gz")
        for place, game in enumerate(reversed(games))
        if row[game] == "A<B"
    )
    names = ("baseline_wins", "model_wins", "ties")
    for row in records("ru_arena_jina/published_battle_counts.csv"):
        published = [int(row[name]) for name in names]
        left = [n - lost[row["model"], place] for place, n in enumerate(counted[row["model"]])]
        assert published == left
    assert sum(lost.values()) > 0.4 * found.tally.rows


REVIEWS = {
    "vicuna80.sums.vicuna-13b_20230322-clean-lang__gpt35_vicuna-13b": "gpt35",
    "vicuna80.sums.vicuna-13b_20230322-clean-lang__bard_vicuna-13b": "bard",
    "vicuna80.sums.vicuna-13b_20230322-clean-lang__alpaca-13b_vicuna-13b": "alpaca-13b",
    "vicuna80.sums.vicuna-13b_20230322-clean-lang__llama-13b_vicuna-13b": "llama-13b",
    "vicuna80.sums.gpt35judge__vicuna-13b-20230322-new-hp-fp16_vicuna-13b-20230322-new-hp-fp16": "",
}


def reviews(store, file):
    """The two scores of each review, by place; -1 means that none was found."""
    order = (
        "select question_id as unit, reviewer_id as judge, 'assistant {place}' as model,"
        " case when score[{place}] < 0 then null else score[{place}] end as score from FILE"
    )
    sql = " union all ".join(order.format(place=place) for place in (1, 2))
    return import_files(store, [query(of_file(sql, file))], "scores")


@pytest.mark.parametrize("ident", REVIEWS)
def test_the_scores_of_the_first_vicuna_table(store, ident):
    target = anchor(ident)
    found = reviews(store, target["files"][0])
    assert (found.tally.rows, found.tally.units) == (160, 160)
    scores = {"assistant 1": {}, "assistant 2": {}}
    for row in rows(store):
        if row["output"] is not None:
            meta = row["output"]["meta"]
            scores[meta["model"]][meta["unit"]] = row["output"]["scores"]["score"]["score"]
    first, second = scores.values()
    assert first.keys() == second.keys()
    assert target["value"] == {
        "sum1": sum(first.values()),
        "sum2": sum(second.values()),
        "wins2": sum(second[unit] > first[unit] for unit in first),
        "loses2": sum(second[unit] < first[unit] for unit in first),
        "ties": sum(second[unit] == first[unit] for unit in first),
        "unparsed": sum(found.tally.failures.values()) // 2,
    }
    if REVIEWS[ident]:
        blog = anchor(f"vicuna80.blog.{REVIEWS[ident]}")["value"]
        assert blog == [sum(first.values()), sum(second.values())]


def test_of_a_review_the_stored_score_is_read_even_where_its_text_says_another(
    store,
):
    """Question 65: the text gives 9/10 to both, the file stores 8 and 8. An import reads what was
    stored, as every figure published about the file did; the text it leaves alone. Question 61 has
    no score in its text, and [-1, -1] in the file: a failure, not two scores of -1."""
    target = anchor("vicuna80.parse_trap")
    reviews(store, target["files"][0])
    found = {"61": [], "65": []}
    for row in rows(store):
        if (unit := row["unit"].split("/")[0]) in found:
            output = row["output"]
            found[unit].append(output["scores"]["score"]["score"] if output else row["reason"])
    assert found["65"] == target["value"]["question_65_stored"]
    assert found["65"] != target["value"]["question_65_text"]
    assert found["61"] == ["empty", "empty"]
    assert target["value"]["question_61_stored"] == [-1, -1]


def test_grades_in_japanese_with_their_doubles(store):
    target = anchor("judge_texts.ja")
    found = imported(store, target["files"][0], "fastchat", judge="gpt-4")
    assert found.tally.rows == target["value"]["rows"]
    assert sum(found.tally.failures.values()) == target["value"]["unparsed"]
    # Four questions were judged twice: repeats, not rows that overwrite each other.
    assert (found.tally.units, found.tally.verdicts, found.tally.repeats) == (560, 564, {0: 2})
    stored = Counter(row["output"]["scores"]["score"]["score"] for row in rows(store))
    written = (
        re.findall(r"\[\[(\d+(?:\.\d+)?)\]\]", row["judgment"])
        for row in records(target["files"][0])
    )
    assert stored == Counter(float(marks[0]) for marks in written)


def test_inconsistent_ties_of_mt_bench_stay_known(store):
    target = anchor("mtbench.inconsistent_rate_all")
    found = imported(store, target["files"][0], "fastchat")
    flagged = [row for row in rows(store) if "inconsistent" in row["flags"]]
    assert all(row["output"]["winner"] == "tie" for row in flagged)
    assert found.tally.verdicts == target["value"]["n"]
    share = len(flagged) / found.tally.verdicts
    assert share == pytest.approx(target["value"]["value"], abs=target["tolerance"])


def test_the_annotations_of_one_model_on_alpacaeval(store):
    name = "alpacaeval/raw_claude-2.1__weighted_alpaca_eval_gpt4_turbo.jsonl.gz"
    found = imported(store, name, "alpacaeval")
    assert (found.tally.rows, found.tally.units, found.tally.verdicts) == (805, 805, 805)
    votes = observe(store.archive, recorded_run(store.archive, store.archive.runs()[0]))
    raw = records(name)
    assert votes.column(WINNER) == pytest.approx([2 - row["preference"] for row in raw])
    assert votes.numbers(OPPONENT_LENGTH).tolist() == [len(row["output_2"]) for row in raw]
