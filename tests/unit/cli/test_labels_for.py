"""`import --for RUN`: labels as people have them, for pairs that a run already knows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.suites import pair_row, pairs, stored, write_pairs
from tests.unit.cli.conftest import CallCommand

LABELS = """pair_id,annotator,preference
p0,ann,1
p1,ann,2
p2,ann,tie
p3,ann,2
p0,bob,1
p1,bob,1
"""


def judged(call: CallCommand, folder: Path, number: int = 6) -> str:
    """A run whose verdicts are A, B, tie in turn."""
    write_pairs(folder, pairs(number))
    run: str = call("run", "--json").json["run"]
    return run


def test_labels_join_the_pairs_of_a_run(call: CallCommand, tmp_path: Path) -> None:
    run = judged(call, tmp_path)
    (tmp_path / "labels.csv").write_text(LABELS)
    said = call("import", "labels.csv", "--for", run, "--json").json
    assert (said["rows"], said["units"], said["judges"]) == (6, 4, 2)
    assert (said["verdicts"], said["failures"]) == (6, {})
    rows = stored(tmp_path, said["run"])
    winners = {(row["unit"], row["judge"]): row["output"]["winner"] for row in rows}
    assert winners == {
        ("p0", "human/ann"): "A",
        ("p1", "human/ann"): "B",
        ("p2", "human/ann"): "tie",
        ("p3", "human/ann"): "B",
        ("p0", "human/bob"): "A",
        ("p1", "human/bob"): "A",
    }
    # They are about the same pairs, texts and all.
    about = call("show", said["run"], "p1", "--json").json["unit"]
    assert about == call("show", run, "p1", "--json").json["unit"]


def test_agreement_between_judge_and_labels(call: CallCommand, tmp_path: Path) -> None:
    run = judged(call, tmp_path)
    (tmp_path / "labels.csv").write_text(LABELS)
    labels = call("import", "labels.csv", "--for", run, "--json").json["run"]
    ann = call("agreement", run, "--against", f"{labels}:human/ann", "--json").json
    # The judge says A, B, tie, A of p0 to p3; Ann A, B, tie, B.
    (row,) = ann["rows"]
    assert (row["agreement"]["value"], row["n"]) == (0.75, 4)
    assert row["confusion"] == {
        "labels": ["c1", "c2", "tie"],
        "counts": [[1, 1, 0], [0, 1, 0], [0, 0, 1]],
    }
    both = call("agreement", run, "--against", labels)
    assert both.code == 0, both.err
    printed = call("import", "labels.csv", "--for", run).out
    assert f"next: evenhand agreement {run} --against {labels}" in printed


@pytest.mark.parametrize(
    ("written", "winner"),
    [
        ("1", "A"),
        ("2", "B"),
        ("A", "A"),
        ("b", "B"),
        ("tie", "tie"),
        ("1.5", "tie"),
        ("c1", "A"),
        ("c2", "B"),
        ("A лучше", "A"),
        ("ничья", "tie"),
        ("平局", "tie"),
        ("引き分け", "tie"),
        ("candidate B", "B"),
    ],
)
def test_a_preference_is_read_as_people_write_it(
    call: CallCommand, tmp_path: Path, written: str, winner: str
) -> None:
    run = judged(call, tmp_path, 1)
    row = {"unit": "p0", "rater": "ann", "label": written}
    (tmp_path / "labels.jsonl").write_text(json.dumps(row, ensure_ascii=False) + "\n")
    labels = call("import", "labels.jsonl", "--for", run, "--json").json["run"]
    (judgment,) = stored(tmp_path, labels)
    assert judgment["output"]["winner"] == winner


def test_what_cannot_be_read_is_a_failed_judgment(call: CallCommand, tmp_path: Path) -> None:
    run = judged(call, tmp_path)
    rows = [("p0", "7"), ("p1", ""), ("p2", "c9"), ("p3", "1")]
    text = "pair_id,annotator,winner\n" + "".join(f"{unit},ann,{say}\n" for unit, say in rows)
    (tmp_path / "labels.csv").write_text(text)
    said = call("import", "labels.csv", "--for", run, "--json").json
    assert (said["verdicts"], said["failures"]) == (1, {"empty": 1, "schema": 2})
    assert said["unreadable"] == {"7": 1, "c9": 1}


def test_who_was_shown_first_may_be_said(call: CallCommand, tmp_path: Path) -> None:
    run = judged(call, tmp_path)
    text = "pair_id,annotator,first,preference,explanation\np0,ann,c2,1,So it is.\np1,ann,c1,1,\n"
    (tmp_path / "labels.csv").write_text(text)
    labels = call("import", "labels.csv", "--for", run, "--json").json["run"]
    first, second = stored(tmp_path, labels)
    # What was shown first to Ann is the second candidate of the file.
    assert (first["output"]["winner"], first["passes"][0]["order"]) == ("B", "21")
    assert first["passes"][0]["explanation"] == "So it is."
    assert (second["output"]["winner"], second["passes"][0]["order"]) == ("A", "12")


def test_pairs_of_a_topic_are_found_by_their_candidates(call: CallCommand, tmp_path: Path) -> None:
    write_pairs(tmp_path, [pair_row("q", 3, 2, 1)])
    run = call("run", "--json").json["run"]
    text = "pair_id,annotator,first,second,preference\nq,ann,c3,c1,2\nq#c1~c2,ann,,,1\n"
    (tmp_path / "labels.csv").write_text(text)
    labels = call("import", "labels.csv", "--for", run, "--json").json["run"]
    winners = {row["unit"]: row["output"]["winner"] for row in stored(tmp_path, labels)}
    assert winners == {"q#c1~c3": "A", "q#c1~c2": "A"}


def test_labels_of_other_pairs_are_left_out_and_told(call: CallCommand, tmp_path: Path) -> None:
    run = judged(call, tmp_path)
    (tmp_path / "labels.csv").write_text(LABELS + "elsewhere,ann,1\n")
    said = call("import", "labels.csv", "--for", run)
    assert said.code == 0
    assert "1 row about units that run" in said.err
    (tmp_path / "others.csv").write_text("pair_id,annotator,preference\nelsewhere,ann,1\n")
    none = call("import", "others.csv", "--for", run)
    assert none.code == 3
    assert "none of the labels is about a unit of run" in none.err
    assert "p0" in none.err


def test_what_does_not_fit_is_refused(call: CallCommand, tmp_path: Path) -> None:
    run = judged(call, tmp_path)
    (tmp_path / "labels.csv").write_text(LABELS)
    assert call("import", "labels.csv").code == 2
    assert call("import", "labels.csv", "--for", run, "--kind", "scores").code == 2
    (tmp_path / "bare.csv").write_text("pair_id,annotator,remark\np0,ann,1\n")
    bare = call("import", "bare.csv", "--for", run)
    assert bare.code == 3
    assert '"winner"' in bare.err
    (tmp_path / "nameless.csv").write_text("annotator,winner\nann,1\n")
    assert call("import", "nameless.csv", "--for", run).code == 3
    # Nobody named: people all the same.
    (tmp_path / "anonymous.csv").write_text("pair_id,winner\np0,1\n")
    labels = call("import", "anonymous.csv", "--for", run, "--json").json["run"]
    assert [row["judge"] for row in stored(tmp_path, labels)] == ["human"]


def test_a_zero_is_not_guessed_at(call: CallCommand, tmp_path: Path) -> None:
    """Some write 0 for a tie, others for the first of two."""
    run = judged(call, tmp_path, 1)
    rows = (
        {"unit": "p0", "rater": who, "label": label} for who, label in (("ann", "0"), ("bo", "1"))
    )
    (tmp_path / "labels.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    labels = call("import", "labels.jsonl", "--for", run, "--json").json["run"]
    statuses = {row["judge"]: row["status"] for row in stored(tmp_path, labels)}
    assert statuses == {"human/ann": "failure", "human/bo": "verdict"}


def test_who_stood_first_must_be_a_candidate(call: CallCommand, tmp_path: Path) -> None:
    run = judged(call, tmp_path, 1)
    (tmp_path / "labels.jsonl").write_text(
        '{"unit": "p0", "rater": "ann", "label": "1", "first": "C2"}\n'
    )
    told = call("import", "labels.jsonl", "--for", run)
    assert told.code == 3
    assert '"C2"' in told.err


def test_labels_that_were_exported_and_imported_again_meet_those_they_were(
    call: CallCommand, tmp_path: Path
) -> None:
    names = [{"id": name, "text": f"An answer worth {n}."} for n, name in enumerate("xyz", 3)]
    topics = [{"id": f"t{i}", "topic": "Which?", "candidates": names} for i in range(3)]
    write_pairs(tmp_path, topics)
    run = call("run", "--json").json["run"]
    (tmp_path / "labels.csv").write_text("pair_id,winner\nt0#x~y,1\nt1#x~z,2\n")
    call("import", "labels.csv", "--for", run)
    call("export", "labels", "-o", "m.jsonl")
    call("import", "m.jsonl", "--kind", "objects", "--judge", "again", "--name", "back")
    said = call("agreement", "back", "--against", "labels", "--json")
    assert said.code == 0, said.err
    assert (said.json["rows"][0]["n"], said.json["rows"][0]["agreement"]["value"]) == (2, 1.0)


def test_why_units_of_one_id_do_not_join_is_said(call: CallCommand, tmp_path: Path) -> None:
    for name, candidates, winner in (
        ("a", "x,y", "first"),
        ("b", "p,q", "first"),
        ("c", "x,y", "?"),
    ):
        rows = f"u,j,{candidates},{winner}\nonly-{name},j,{candidates},first\n"
        (tmp_path / f"{name}.csv").write_text(f"unit,judge,first,second,winner\n{rows}")
        assert call("import", f"{name}.csv", "--kind", "votes").code == 0
    error = " ".join(call("agreement", "a", "--against", "b").err.split())
    assert '"u" compares "x" and "y" here, "p" and "q" there' in error
    error = " ".join(call("agreement", "a", "--against", "c").err.split())
    assert 'Both sides have "u", but no unit has a verdict on both' in error


def test_labels_have_the_language_of_their_run(call: CallCommand, tmp_path: Path) -> None:
    write_pairs(tmp_path, pairs(3), language="ru")
    run = call("run", "--json").json["run"]
    (tmp_path / "labels.csv").write_text("pair_id,winner\np0,1\np1,ничья\n")
    assert call("import", "labels.csv", "--for", run).code == 0
    assert call("show", "labels").code == call("report", "labels").code == 0
    assert call("agreement", run, "--against", "labels").code == 0
