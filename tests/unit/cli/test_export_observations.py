"""Observations of judged and of imported runs: in the store, its views, files and Python."""

from __future__ import annotations

import csv
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import evenhand
from evenhand.data.read import read_rows
from evenhand.kinds.pairwise.verdict import measure_judgment as measure_votes
from evenhand.kinds.rubric.verdict import measure_judgment as measure_scores
from evenhand.observation import observe_scores, observe_votes
from evenhand.runs.recorded import find_run
from evenhand.runs.stores import open_archive
from tests.suites import pairs, write_pairs, write_suite
from tests.unit.cli.conftest import NEWEST, CallCommand

VOTES = """unit,judge,first,second,winner,area
q1,j,a,b,a,code
q1,j,b,a,a,code
q2,j,a,b,tie,prose
q2,j,b,a,?,prose
"""
SCORES = """unit,judge,model,dimension,score,failure_tags
q1,j,m1,clear,3,B
q1,j,m1,true,4,
q1,j,m2,clear,5,
q1,j,m2,true,,
"""


def view(folder: Path, run: str, name: str = "observations") -> list[dict[str, Any]]:
    """The rows of a view that are about a run."""
    connection = sqlite3.connect(folder / "evenhand.db")
    connection.row_factory = sqlite3.Row
    rows = connection.execute(f"SELECT * FROM {name} WHERE run = ?", [run]).fetchall()
    connection.close()
    return [dict(row) for row in rows]


def sorted_rows(rows: Any) -> list[str]:
    return sorted(json.dumps(dict(row)) for row in rows)


@pytest.mark.parametrize(("kind", "text"), [("votes", VOTES), ("scores", SCORES)])
def test_an_import_stores_what_its_judgments_say_when_they_are_measured_again(
    call: CallCommand, tmp_path: Path, kind: str, text: str
) -> None:
    (tmp_path / "t.csv").write_text(text)
    run = call("import", "t.csv", "--kind", kind, "--json").json["run"]
    archive = open_archive("sqlite:evenhand.db", tmp_path)
    recorded = find_run(archive, run)
    for _, stored in archive.judgments(recorded.scope):
        judgment = recorded.judgment(stored)
        if kind == "votes":
            measured = list(observe_votes(measure_votes(judgment)))
        else:
            scored = measure_scores(judgment)
            measured = list(observe_scores(scored, {}, "ABCDE")) if scored else []
        kept = json.loads(stored.text.observations)
        assert kept == json.loads(json.dumps([list(_fields(each)) for each in measured]))
    archive.close()
    assert view(tmp_path, run)


def _fields(observation: Any) -> tuple[Any, ...]:
    names = ("measure", "value", "points", "max_points", "pass_number", "position")
    return tuple(getattr(observation, name) for name in names)


def test_votes_in_the_views(call: CallCommand, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(VOTES)
    run = call("import", "t.csv", "--kind", "votes", "--json").json["run"]
    rows = [row for row in view(tmp_path, run) if row["measure"] == "winner"]
    settled = {(row["unit"], row["subject"]): row["value"] for row in rows if not row["pass"]}
    assert settled == {("q1", "a"): 1.0, ("q1", "b"): 0.0}
    shown = {(row["pass"], row["subject"]): row["position"] for row in rows if row["unit"] == "q1"}
    assert shown[1, "a"] == 1 and shown[1, "b"] == 2 and shown[2, "a"] == 2
    fields = {
        (row["unit"], row["field"]): row["value"] for row in view(tmp_path, run, "unit_fields")
    }
    assert fields["q2", "area"] == "prose" and fields["q1", "topic"] == "q1"


def test_scores_in_the_views(call: CallCommand, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(SCORES)
    run = call("import", "t.csv", "--kind", "scores", "--json").json["run"]
    rows = {(row["unit"], row["measure"]): row for row in view(tmp_path, run)}
    # Nobody says on which scale: points are kept, and no share.
    assert rows["q1/m1", "clear"]["points"] == 3 and rows["q1/m1", "clear"]["value"] is None
    assert rows["q1/m1", "tag:B"]["value"] == 1 and rows["q1/m2", "tag:B"]["value"] == 0
    assert ("q1/m2", "true") not in rows
    fields = {
        (row["unit"], row["field"]): row["value"] for row in view(tmp_path, run, "unit_fields")
    }
    assert fields["q1/m2", "model"] == "m2" and fields["q1/m2", "unit"] == "q1"


@pytest.mark.parametrize("is_pairs", [True, False])
def test_exported_observations_are_those_of_the_view(
    call: CallCommand, tmp_path: Path, is_pairs: bool
) -> None:
    if is_pairs:
        write_pairs(tmp_path, pairs(4))
    else:
        write_suite(tmp_path, 4)
    run = call("run", "--json").json["run"]
    expected = sorted_rows(view(tmp_path, run))
    for name in ("o.jsonl", "o.parquet"):
        assert call("export", run, "--observations", "-o", name).code == 0
        found = [row.value for row in read_rows(tmp_path / name)]
        assert [list(row) for row in found[:1]] == [list(json.loads(expected[0]))]
        assert len(found) == len(expected)
        assert sum(row["value"] or 0 for row in found) == pytest.approx(
            sum(json.loads(row)["value"] or 0 for row in expected)
        )
    assert call("export", run, "--observations", "-o", "o.csv").code == 0
    with (tmp_path / "o.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == len(expected)
    assert sorted_rows(evenhand.open(run).observations()) == expected
    frame = evenhand.open(run).observations().to_pandas()
    assert len(frame) == len(expected) and "measure" in frame.columns


def test_selected_units_alone_are_exported(call: CallCommand, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(VOTES)
    call("import", "t.csv", "--kind", "votes")
    call("export", NEWEST, "--observations", "--where", "area=prose", "-o", "o.jsonl")
    lines = (tmp_path / "o.jsonl").read_text().splitlines()
    assert {json.loads(line)["unit"] for line in lines} == {"q2"}
    refused = call("export", NEWEST, "--observations", "--full", "-o", "p.jsonl")
    assert refused.code == 2
