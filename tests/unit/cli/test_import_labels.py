"""`evenhand import --for RUN`: labels as people have them, for units that a run already knows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.sentences import is_told
from tests.suites import pair_row, pairs, stored, write_pairs, write_rows, write_suite
from tests.unit.cli.conftest import values

LABELS = """pair_id,annotator,preference
p0,ann,1
p1,ann,2
p2,ann,tie
p3,ann,2
p0,bob,1
p1,bob,1
elsewhere,ann,1
"""


@pytest.fixture
def run(call):
    """A run whose verdicts are A, B, tie in turn."""
    write_pairs(Path(), pairs(6))
    return call.run()


def take(call, run, labels):
    """What an import says of labels, as the text of a table or as rows."""
    name, text = "labels.csv", labels
    if not isinstance(labels, str):
        name, text = "labels.jsonl", "\n".join(map(json.dumps, labels))
    Path(name).write_text(text, encoding="utf-8")
    return call.json(f"import {name} --for {run}")


def winners(run):
    rows = stored(Path(), run)
    return {(row["unit"], row["judge"]): row["output"]["winner"] for row in rows if row["output"]}


def test_labels_join_the_pairs_of_a_run_and_agree_with_it(call, run):
    said = take(call, run, LABELS)
    assert values(said, "rows units judges verdicts failures") == [6, 4, 2, 6, {}]
    labels = said["run"]
    said_by = {"human/ann": ("A", "B", "tie", "B"), "human/bob": ("A", "A")}
    assert winners(labels) == {
        (f"p{i}", judge): winner for judge, said in said_by.items() for i, winner in enumerate(said)
    }
    # They are about the same pairs, texts and all.
    about = [call.json(f"show {one} p1")["unit"] for one in (labels, run)]
    assert about[0] == about[1]
    # The judge says A, B, tie, A of p0 to p3; Ann A, B, tie, B.
    (row,) = call.json(f"agreement {run} --against {labels}:human/ann")["rows"]
    assert (row["agreement"]["value"], row["n"]) == (0.75, 4)
    assert row["confusion"] == {
        "labels": ["c1", "c2", "tie"],
        "counts": [[1, 1, 0], [0, 1, 0], [0, 0, 1]],
    }
    printed = call(f"import labels.csv --for {run}")
    assert is_told(printed.err, "cli.rows_left_out", n=1, run=run)
    assert f"evenhand agreement {run} --against {labels}" in printed.out
    call.ok(f"agreement {run} --against {labels}")


def test_a_preference_is_read_as_people_write_it(call, run):
    written = {
        **{"1": "A", "2": "B", "A": "A", "b": "B", "tie": "tie", "1.5": "tie", "c1": "A"},
        **{"c2": "B", "A лучше": "A", "ничья": "tie", "平局": "tie", "引き分け": "tie"},
        "candidate B": "B",
    }
    rows = [{"unit": "p0", "rater": f"n{i}", "label": label} for i, label in enumerate(written)]
    found = winners(take(call, run, rows)["run"])
    assert [found["p0", f"human/n{i}"] for i in range(len(rows))] == list(written.values())


def test_what_cannot_be_read_is_a_failed_judgment(call, run):
    """A zero is not guessed at: some write it for a tie, others for the first of two."""
    said = take(call, run, "pair_id,winner\np0,7\np1,\np2,c9\np3,1\np4,0\n")
    unreadable = {"7": 1, "c9": 1, "0": 1}
    assert values(said, "verdicts failures unreadable") == [
        *(1, {"empty": 1, "schema": 3}, unreadable)
    ]
    # Nobody is named: people all the same.
    assert winners(said["run"]) == {("p3", "human"): "A"}


def test_who_was_shown_first_may_be_said(call, run):
    said = take(
        call,
        run,
        "pair_id,annotator,first,preference,explanation\np0,ann,c2,1,So it is.\np1,ann,c1,1,\n",
    )
    # What was shown first to Ann is the second candidate of the file.
    told = [
        (row["output"]["winner"], row["passes"][0]["order"]) for row in stored(Path(), said["run"])
    ]
    assert told == [("B", "21"), ("A", "12")]
    assert stored(Path(), said["run"])[0]["passes"][0]["explanation"] == "So it is."


def test_what_does_not_fit_is_refused(call, run):
    Path("labels.csv").write_text(LABELS)
    call.refused("import labels.csv")
    call.refused(f"import labels.csv --for {run} --kind scores")
    for table, *says in (
        ("pair_id,annotator,remark\np0,ann,1\n", '"winner"'),
        ("annotator,winner\nann,1\n", '"unit"'),
        ("pair_id,winner\nelsewhere,1\n", run, '"p0"', "--map unit=COLUMN"),
        ("pair_id,winner,first\np0,1,C2\n", '"C2"'),
        ("pair_id,first,second,winner\np0#c1~c2,c1,c3,1\n", '"c3"'),
    ):
        Path("bad.csv").write_text(table)
        call.refused(f"import bad.csv --for {run}", code=3, says=says)


def test_labels_of_topics_are_found_by_their_candidates(call):
    names = [{"id": name, "text": f"An answer worth {n}."} for n, name in enumerate("xyz", 3)]
    write_pairs(
        Path(),
        [{"id": f"t{i}", "topic": "Which?", "candidates": names} for i in range(3)],
        language="ru",
    )
    run = call.run()
    table = "pair_id,first,second,winner\nt0,z,x,2\nt0#x~y,,,1\nt1#x~z,,,ничья\n"
    labels = take(call, run, table)["run"]
    assert {unit: winner for (unit, _), winner in winners(labels).items()} == {
        "t0#x~z": "A",
        "t0#x~y": "A",
        "t1#x~z": "tie",
    }
    # Labels have the language of their run.
    call.ok("show labels")
    call.ok("report labels")
    # Those that were exported and imported again meet those they were.
    call("export labels -o m.jsonl")
    call("import m.jsonl --kind objects --judge again --name back")
    (row, *_) = call.json("agreement back --against labels")["rows"]
    assert (row["n"], row["agreement"]["value"]) == (3, 1.0)


def test_a_label_by_names_means_the_one_named_first_where_the_row_has_them_turned(call):
    row = pair_row("q", 1, 2)
    row["candidates"].reverse()
    write_pairs(Path(), [row])
    # As the pair was called when the topic had three candidates.
    said = take(call, call.run(), "pair_id,winner\nq#c1~c2,1\n")
    (row,) = stored(Path(), said["run"])
    assert row["output"]["candidates"] == ["c2", "c1"] and row["output"]["winner"] == "B"


def test_labels_of_scores_join_by_id_or_by_question_and_fields(call):
    write_suite(Path(), 6)
    run = call.run()
    rows = {row["unit"]: row["output"]["scores"] for row in stored(Path())}
    table = [
        {"unit": unit, "annotator": "ann"} | {name: one["score"] for name, one in scores.items()}
        for unit, scores in rows.items()
    ]
    said = take(call, run, [*table, table[0] | {"unit": "elsewhere"}])
    assert values(said, "units failures") == [len(rows), {}]
    (row, *_) = call.json(f"agreement {run} --against {said['run']}")["rows"]
    assert row["agreement"]["value"] == 1
    about, unit = (call.json(f"show {one} u1")["unit"] for one in (said["run"], run))
    assert about == unit
    label = {"question": unit["question"], **unit["meta"], "dimension": "clear", "score": 99}
    said = take(call, run, [label, label | {"score": 1}])
    # 99 is off the scale of the dimension.
    assert values(said, "units failures") == [1, {"out_of_range": 1}]
    assert {row["unit"] for row in stored(Path(), said["run"])} == {"u1"}


def test_a_question_with_several_answers_names_no_unit(call):
    rows = [{"meta": {"model": m}, "question": "Q?", "model_output": f"Answer {m}."} for m in "ab"]
    write_suite(Path(), rows)
    run = call.run()
    write_rows(Path(), [{"question": "Q?", "dimension": "clear", "score": 1}], "l.jsonl")
    call.refused(f"import l.jsonl --for {run}", code=3, key="runs.several_units", says=[run])
