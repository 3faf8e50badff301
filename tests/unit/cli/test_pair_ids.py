"""A pair is known by its topic and the names of its candidates: what stands beside it in the data,
and in which order, changes nothing about it."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from evenhand.units import question_hash
from tests.suites import stored, write_rows
from tests.unit.cli.conftest import CallCommand
from tests.unit.cli.tables import suite

WORTHS = {"zeta": 5, "alpha": 3, "mid": 9, "beta": 7}
"""The models in the order of the file, which is not that of their names."""
TOPICS = [f"Question {i}?" for i in range(5)]
Answers = Mapping[str, Mapping[str, str]]
"""By topic and model."""


def answers(*models: str, topics: list[str] = TOPICS) -> Answers:
    """Answers whose worth changes from topic to topic, so that no two pairs come out alike."""
    return {
        topic: {
            model: f"{model} says worth {(WORTHS[model] * (int(topic[9]) + 1)) % 11}."
            for model in models
        }
        for topic in topics
    }


def write_long(folder: Path, data: Answers) -> None:
    with (folder / "a.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["question", "model", "answer"])
        for topic, texts in data.items():
            writer.writerows([topic, model, text] for model, text in texts.items())
    suite(folder, "pairwise", '["a.csv"]')


def write_wide(folder: Path, data: Answers) -> None:
    models = list(next(iter(data.values())))
    with (folder / "a.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["topic", *models])
        writer.writerows([topic, *texts.values()] for topic, texts in data.items())
    names = ", ".join(f'"candidates.{i}.id" = "{model}"' for i, model in enumerate(models, 1))
    columns = "\n".join(f'"candidates.{i}.text" = "{model}"' for i, model in enumerate(models, 1))
    suite(folder, "pairwise", f'[{{ file = "a.csv", {names} }}]', f"[columns]\n{columns}\n")


def list_rows(data: Answers) -> list[dict[str, Any]]:
    return [
        {
            "topic": topic,
            "candidates": [{"id": model, "text": text} for model, text in texts.items()],
        }
        for topic, texts in data.items()
    ]


def write_list(folder: Path, data: Answers) -> None:
    write_rows(folder, list_rows(data), "a.jsonl")
    suite(folder, "pairwise", '["a.jsonl"]')


def write_row_per_pair(folder: Path, data: Answers) -> None:
    """A row for every two candidates of a topic, and none says which topic it is but its text."""
    pairs = [
        {topic: dict(two)}
        for topic, texts in data.items()
        for two in combinations(texts.items(), 2)
    ]
    write_rows(folder, [row for pair in pairs for row in list_rows(pair)], "a.jsonl")
    suite(folder, "pairwise", '["a.jsonl"]')


Write = Callable[[Path, Answers], None]
layouts = pytest.mark.parametrize(
    "write", [write_long, write_wide, write_list, write_row_per_pair], ids=lambda w: w.__name__
)


def winners(folder: Path, run: str = "latest") -> dict[str, str]:
    """Of each pair the name of its winner."""
    said: dict[str, str] = {}
    for row in stored(folder, run):
        output = row["output"]
        names = dict(zip("AB", output["candidates"], strict=True))
        said[row["unit"]] = names.get(output["winner"], output["winner"])
    return said


def ids(*models: str, topics: list[str] = TOPICS) -> set[str]:
    pairs = combinations(sorted(models), 2)
    return {f"{question_hash(topic)}#{a}~{b}" for a, b in pairs for topic in topics}


def assert_nothing_changed(call: CallCommand, run: str, before: str) -> None:
    """Two runs have these pairs in common, and all of them came out alike."""
    said = call("compare", run, "--against", before, "--json")
    assert said.code == 0, said.err
    assert said.json["rows"]
    for row in said.json["rows"]:
        assert (row["difference"], row["outcome"]) == (0, "not enough evidence"), row


@layouts
def test_a_model_that_is_dropped_or_added_leaves_the_other_pairs_as_they_were(
    call: CallCommand, tmp_path: Path, write: Write
) -> None:
    write(tmp_path, answers(*WORTHS))
    every = call("run", "--json").json["run"]
    before = winners(tmp_path)
    assert before.keys() == ids(*WORTHS)
    for dropped in ("zeta", "mid"):
        models = [model for model in WORTHS if model != dropped]
        write(tmp_path, answers(*models))
        ran = call("run", "--json").json
        assert ran["calls"] == 0
        after = winners(tmp_path)
        assert after.keys() == ids(*models)
        assert after == {unit: before[unit] for unit in after}
        assert_nothing_changed(call, ran["run"], every)
    # The dropped one comes back: the first run again, at no cost.
    write(tmp_path, answers(*WORTHS))
    again = call("run", "--json").json
    assert (again["run"], again["calls"]) == (every, 0)


@layouts
def test_of_three_models_two_may_be_left(call: CallCommand, tmp_path: Path, write: Write) -> None:
    write(tmp_path, answers("zeta", "alpha", "mid"))
    every = call("run", "--json").json["run"]
    write(tmp_path, answers("zeta", "alpha"))
    ran = call("run", "--json").json
    assert ran["calls"] == 0
    assert ran["changed"] == {"added": 0, "removed": 10, "changed": 0}
    assert winners(tmp_path).keys() == ids("zeta", "alpha")
    assert_nothing_changed(call, ran["run"], every)


@layouts
def test_another_order_of_rows_and_candidates_is_the_same_run(
    call: CallCommand, tmp_path: Path, write: Write
) -> None:
    write(tmp_path, answers(*WORTHS))
    first = call("run", "--json").json
    before = winners(tmp_path)
    for models, topics in (
        (sorted(WORTHS), TOPICS),
        (list(WORTHS)[::-1], TOPICS[::-1]),
        (list(WORTHS), TOPICS[2:] + TOPICS[:2]),
    ):
        write(tmp_path, answers(*models, topics=topics))
        ran = call("run", "--json").json
        assert (ran["run"], ran["calls"]) == (first["run"], 0)
        assert winners(tmp_path) == before
        assert ran["pairwise"]["fronts"] == first["pairwise"]["fronts"]


def test_rows_of_a_long_table_may_stand_anyhow(call: CallCommand, tmp_path: Path) -> None:
    rows = [
        {"question_id": topic[9], "question": topic, "model": model, "answer": text}
        for topic, texts in answers(*WORTHS).items()
        for model, text in texts.items()
    ]
    # One spelling of a question or the other: which one is shown must not hang on the order.
    rows[3]["question"] = "Question 0, please?"
    suite(tmp_path, "pairwise", '["a.jsonl"]')
    write_rows(tmp_path, rows, "a.jsonl")
    first = call("run", "--json").json
    assert "0#alpha~beta" in winners(tmp_path)
    for order in (rows[::-1], rows[7:] + rows[:7], sorted(rows, key=lambda row: row["answer"])):
        write_rows(tmp_path, order, "a.jsonl")
        again = call("run", "--json").json
        assert (again["run"], again["calls"]) == (first["run"], 0)


def test_a_row_of_two_with_an_id_keeps_it_and_its_first_candidate_is_a(
    call: CallCommand, tmp_path: Path
) -> None:
    rows = [
        {"pair_id": f"p{i}", **row} for i, row in enumerate(list_rows(answers("zeta", "alpha")))
    ]
    write_list(tmp_path, {})
    write_rows(tmp_path, rows, "a.jsonl")
    straight = call("run", "--json").json["run"]
    before = winners(tmp_path)
    assert list(before) == [f"p{i}" for i in range(5)]
    assert {tuple(r["output"]["candidates"]) for r in stored(tmp_path)} == {("zeta", "alpha")}
    for row in rows:
        row["candidates"].reverse()
    write_rows(tmp_path, rows, "a.jsonl")
    turned = call("run", "--json").json
    assert (turned["calls"], turned["changed"]["added"]) == (0, 0)
    assert winners(tmp_path) == before
    assert {tuple(r["output"]["candidates"]) for r in stored(tmp_path)} == {("alpha", "zeta")}
    # A and B have changed places, the winners have not.
    assert_nothing_changed(call, turned["run"], straight)
    agreed = call("agreement", turned["run"], "--against", straight, "--json").json
    assert agreed["rows"][0]["agreement"]["value"] == 1


def test_a_row_with_an_id_is_compared_by_names_when_a_third_candidate_comes_or_goes(
    call: CallCommand, tmp_path: Path
) -> None:
    write_list(tmp_path, {})
    for models in (("zeta", "alpha"), ("mid", "zeta", "alpha")):
        rows = list_rows(answers(*models))
        write_rows(tmp_path, [{"pair_id": row["topic"], **row} for row in rows], "a.jsonl")
        assert call("run").code == 0
    assert "Question 0?#alpha~mid" in winners(tmp_path)
    assert_nothing_changed(call, "latest", "latest~1")
    assert_nothing_changed(call, "latest~1", "latest")


def test_labels_land_on_the_pair_that_they_name(call: CallCommand, tmp_path: Path) -> None:
    """Whatever stood beside it when the label was given, and in which order."""
    write_list(tmp_path, answers(*WORTHS))
    call("run")
    pair = f"{question_hash(TOPICS[0])}#alpha~mid"
    topic = question_hash(TOPICS[1])
    text = (
        f"pair_id,annotator,first,second,preference\n{pair},ann,,,1\n{pair},bob,mid,alpha,1\n"
        f"{topic},ann,zeta,alpha,2\n{topic},bob,alpha,zeta,zeta\n"
    )
    (tmp_path / "labels.csv").write_text(text)
    for models in (list(WORTHS), list(WORTHS)[::-1], ["mid", "alpha", "zeta"]):
        write_list(tmp_path, answers(*models))
        run = call("run", "--json").json["run"]
        labels = call("import", "labels.csv", "--for", run, "--json").json["run"]
        rows = stored(tmp_path, labels)
        said = {
            (row["unit"], row["judge"]): dict(zip("AB", row["output"]["candidates"], strict=True))[
                row["output"]["winner"]
            ]
            for row in rows
        }
        assert said == {
            (pair, "human/ann"): "alpha",
            (pair, "human/bob"): "mid",
            (f"{topic}#alpha~zeta", "human/ann"): "alpha",
            (f"{topic}#alpha~zeta", "human/bob"): "zeta",
        }


def test_a_label_by_names_means_the_one_named_first_where_the_row_has_them_turned(
    call: CallCommand, tmp_path: Path
) -> None:
    write_list(tmp_path, {})
    row = {"pair_id": "q", **list_rows(answers("zeta", "alpha"))[0]}
    write_rows(tmp_path, [row], "a.jsonl")
    run = call("run", "--json").json["run"]
    # As the pair was called when the topic had three candidates.
    (tmp_path / "labels.csv").write_text("pair_id,winner\nq#alpha~zeta,1\n")
    labels = call("import", "labels.csv", "--for", run, "--json").json["run"]
    assert winners(tmp_path, labels) == {"q": "alpha"}


def test_a_label_that_names_another_candidate_is_refused(call: CallCommand, tmp_path: Path) -> None:
    write_list(tmp_path, answers("zeta", "alpha", "mid"))
    run = call("run", "--json").json["run"]
    pair = f"{question_hash(TOPICS[0])}#alpha~zeta"
    (tmp_path / "labels.csv").write_text(f"pair_id,first,second,winner\n{pair},alpha,mid,1\n")
    told = call("import", "labels.csv", "--for", run)
    assert told.code == 3 and '"mid"' in told.err


def test_votes_are_called_as_pairs_are_and_meet_them(call: CallCommand, tmp_path: Path) -> None:
    write_list(tmp_path, answers("zeta", "alpha", "mid"))
    run = call("run", "--json").json["run"]
    lines = [
        f"{question_hash(topic)},ann,{first},{second},first"
        for topic in TOPICS
        for first, second in (("mid", "alpha"), ("zeta", "mid"))
    ]
    (tmp_path / "votes.csv").write_text("\n".join(["unit,judge,first,second,winner", *lines]))
    votes = call("import", "votes.csv", "--kind", "votes", "--json").json["run"]
    called = {row["unit"] for row in stored(tmp_path, votes)}
    assert called < ids("zeta", "alpha", "mid") and len(called) == 10
    agreed = call("agreement", run, "--against", votes, "--json").json
    assert agreed["rows"][0]["n"] == 10


def test_names_are_written_so_that_ids_stay_apart(call: CallCommand, tmp_path: Path) -> None:
    names = ("a~b", "c", "a", "b~c", "x/y#z%")
    candidates = [{"id": name, "text": f"worth {i}"} for i, name in enumerate(names)]
    write_list(tmp_path, {})
    write_rows(tmp_path, [{"id": "q", "topic": "Why?", "candidates": candidates}], "a.jsonl")
    assert call("run").code == 0
    said = winners(tmp_path)
    assert len(said) == 10
    assert {"q#a%7Eb~c", "q#a~b%7Ec", "q#a~x%2Fy%23z%25"} < said.keys()


def test_runs_of_one_question_keep_their_ids_in_any_order(
    call: CallCommand, tmp_path: Path
) -> None:
    rows = [
        {"meta": {"run_id": run}, **row}
        for run in ("r1", "r2")
        for row in list_rows(answers("zeta", "alpha"))
    ]
    for row in rows[5:]:
        row["candidates"][0]["text"] = "worth 0"
    write_list(tmp_path, {})
    write_rows(tmp_path, rows, "a.jsonl")
    first = call("run", "--json").json
    before = winners(tmp_path)
    assert f"r2/{question_hash(TOPICS[0])}#alpha~zeta" in before and len(before) == 10
    write_rows(tmp_path, rows[::-1], "a.jsonl")
    again = call("run", "--json").json
    assert (again["run"], again["calls"]) == (first["run"], 0)
    # Two runs of a question are no two questions.
    rows = call("compare", "latest", "--json").json["rows"]
    assert {(row["n"], row["clusters"]) for row in rows} == {(10, 5)}


def test_rows_that_nothing_tells_apart_have_their_number(call: CallCommand, tmp_path: Path) -> None:
    rows = [*list_rows(answers("zeta", "alpha")), list_rows(answers("alpha", "zeta"))[0]]
    rows[-1]["candidates"][0]["text"] = "worth 1"
    write_list(tmp_path, {})
    write_rows(tmp_path, rows, "a.jsonl")
    assert call("run").code == 0
    topic = question_hash(TOPICS[0])
    assert {f"{topic}#alpha~zeta", f"{topic}#6#alpha~zeta"} < winners(tmp_path).keys()


def test_candidates_without_names_are_known_by_their_places(
    call: CallCommand, tmp_path: Path
) -> None:
    rows = list_rows(answers("zeta", "alpha", "mid"))
    for row in rows:
        row["candidates"] = [{"text": candidate["text"]} for candidate in row["candidates"]]
    write_list(tmp_path, {})
    write_rows(tmp_path, rows, "a.jsonl")
    assert call("run").code == 0
    assert winners(tmp_path).keys() == ids("1", "2", "3")


def test_the_verdict_table_and_the_fronts_go_by_names(call: CallCommand, tmp_path: Path) -> None:
    write_list(tmp_path, answers("zeta", "alpha", "mid"))
    call("run")
    call("export", "latest", "-o", "verdicts.txt")
    table = (tmp_path / "verdicts.txt").read_text().splitlines()[1:]
    names = {"A": 0, "B": 1}
    read: dict[str, str] = {}
    for line in table:
        unit, winner, *_ = line.split(" | ")
        read[unit] = unit.partition("#")[2].split("~")[names[winner]]
    # In the id of a pair A is the one that is named first.
    assert read == winners(tmp_path)
    questions = {question_hash(topic): topic for topic in TOPICS}
    for topic, front in call("leaderboard", "--json").json["fronts"].items():
        assert front["candidates"] == ["alpha", "mid", "zeta"] and front["complete"]
        said = answers("zeta", "alpha", "mid")[questions[topic]]
        best = max(said, key=lambda model: int(said[model].split()[-1].rstrip(".")))
        assert front["front"] == front["pareto"] == [best]
