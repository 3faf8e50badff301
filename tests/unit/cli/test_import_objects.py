"""`import --kind objects`: what teams stored of verdicts, and `--for RUN` of scores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.suites import pairs, stored, write_pairs, write_suite
from tests.unit.cli.conftest import CallCommand

GRADE = {
    "task_name": "t",
    "task_type": "fact",
    "inferred_task_type": None,
    "weights": {"logic_and_fact": 60, "constraint_adherence": 30, "helpfulness_and_creativity": 10},
    "score": {"logic_and_fact": 50, "constraint_adherence": 20, "helpfulness_and_creativity": 5},
    "total_score": 75,
    "reasoning": {},
    "critical_fail": False,
    "critical_fail_reason": None,
    "confidence": "high",
}


@pytest.mark.parametrize("name", ["o.jsonl", "o.txt"])
def test_verdicts_of_pairs_come_back(call: CallCommand, tmp_path: Path, name: str) -> None:
    write_pairs(tmp_path, pairs(6))
    run = call("run", "--json").json["run"]
    call("export", run, "-o", name)
    said = call("import", name, "--kind", "objects", "--judge", "team", "--json").json
    assert (said["units"], said["verdicts"], said["failures"]) == (6, 6, {})
    winners = [
        {row["unit"]: row["output"]["winner"] for row in stored(tmp_path, each)}
        for each in (run, said["run"])
    ]
    assert winners[0] == winners[1]


def test_scores_come_back_and_agree_with_themselves(call: CallCommand, tmp_path: Path) -> None:
    write_suite(tmp_path, 6)
    run = call("run", "--json").json["run"]
    named = [json.dumps({"unit": row["unit"]} | row["output"]) for row in stored(tmp_path, run)]
    (tmp_path / "o.jsonl").write_text("\n".join(named))
    said = call("import", "o.jsonl", "--kind", "objects", "--judge", "team", "--json").json
    scores = [
        {row["unit"]: row["output"]["scores"] for row in stored(tmp_path, each)}
        for each in (run, said["run"])
    ]
    assert scores[0] == scores[1] and len(scores[0]) > 1
    found = call("agreement", run, "--against", said["run"], "--json").json
    assert found["rows"][0]["agreement"]["value"] == 1


def test_grades_and_objects_that_are_none(call: CallCommand, tmp_path: Path) -> None:
    bad = GRADE | {"task_name": "u", "score": "seventy"}
    high = GRADE | {"task_name": "v", "score": GRADE["score"] | {"logic_and_fact": 61}}  # type: ignore[operator]
    (tmp_path / "g.jsonl").write_text("".join(json.dumps(one) + "\n" for one in (GRADE, bad, high)))
    assert "--judge NAME" in call("import", "g.jsonl", "--kind", "objects").err
    said = call("import", "g.jsonl", "--kind", "objects", "--judge", "team", "--json").json
    assert (said["verdicts"], said["failures"]) == (1, {"out_of_range": 1, "schema": 1})
    (row,) = [row for row in stored(tmp_path, said["run"]) if row["output"]]
    assert row["output"] == GRADE
    assert call("show", said["run"]).code == 0
    (tmp_path / "n.jsonl").write_text('{"a": 1}\n')
    refused = call("import", "n.jsonl", "--kind", "objects", "--judge", "team")
    assert refused.code == 3 and "no output object" in refused.err


def scored(call: CallCommand, folder: Path) -> tuple[str, list[dict[str, object]]]:
    """A run of samples, and its rows."""
    write_suite(folder, 6)
    run = call("run", "--json").json["run"]
    return run, [row for row in stored(folder, run) if row["output"]]


def test_labels_of_scores_join_by_id(call: CallCommand, tmp_path: Path) -> None:
    run, rows = scored(call, tmp_path)
    names = list(rows[0]["output"]["scores"])  # type: ignore[index]
    lines = [",".join(["unit", "annotator", *names])]
    for row in rows:
        scores = [str(row["output"]["scores"][name]["score"]) for name in names]  # type: ignore[index]
        lines.append(",".join([str(row["unit"]), "ann", *scores]))
    (tmp_path / "labels.csv").write_text("\n".join([*lines, f"elsewhere,ann{',1' * len(names)}"]))
    said = call("import", "labels.csv", "--for", run)
    assert said.code == 0 and "1 row about units that run" in said.err
    labels = call("import", "labels.csv", "--for", run, "--json").json
    assert (labels["units"], labels["failures"]) == (len(rows), {})
    found = call("agreement", run, "--against", labels["run"], "--json").json
    assert found["rows"][0]["agreement"]["value"] == 1
    about = call("show", labels["run"], str(rows[0]["unit"]), "--json").json["unit"]
    assert about == call("show", run, str(rows[0]["unit"]), "--json").json["unit"]


def test_labels_of_scores_join_by_question_and_variant(call: CallCommand, tmp_path: Path) -> None:
    run, rows = scored(call, tmp_path)
    units = {
        str(row["unit"]): call("show", run, str(row["unit"]), "--json").json["unit"] for row in rows
    }
    name = next(iter(rows[0]["output"]["scores"]))  # type: ignore[call-overload]
    ident, unit = next(iter(units.items()))
    label = {
        "question": unit["question"],
        **unit["meta"],
        "rater": "bo",
        "dimension": name,
        "score": 99,
    }
    (tmp_path / "l.jsonl").write_text(
        json.dumps(label) + "\n" + json.dumps(label | {"score": 1}) + "\n"
    )
    said = call("import", "l.jsonl", "--for", run, "--json")
    assert said.code == 0, said.err
    # 99 is off the scale of the dimension.
    assert (said.json["units"], said.json["failures"]) == (1, {"out_of_range": 1})
    assert {row["unit"] for row in stored(tmp_path, said.json["run"])} == {ident}
    alike = [one for one in units.values() if one["question"] == unit["question"]]
    if len(alike) > 1:
        (tmp_path / "l.jsonl").write_text(
            json.dumps({"question": unit["question"], "score": 1}) + "\n"
        )
        refused = call("import", "l.jsonl", "--for", run)
        assert refused.code == 3 and "several units" in refused.err


def test_a_preference_off_its_scale_is_a_failed_row(call: CallCommand, tmp_path: Path) -> None:
    rows = [{"pair_id": f"p{n}", "winner": "B", "preference": n} for n in (0.75, 1, 7, -1)]
    (tmp_path / "o.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    given = ("import", "o.jsonl", "--kind", "objects", "--judge", "team")
    said = call(*given, "--json").json
    assert (said["verdicts"], said["failures"]) == (2, {"out_of_range": 2})
    assert call("leaderboard", said["run"]).code == 0
    assert "preference: 7 is not from 0 to 1" in "".join(call(*given)[1:3])
