"""The views of a store that users read with SQL: `observations` and `unit_fields`, and the queries
of docs/store.md."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.postgres import new_store_url, shared_server
from tests.suites import CRITERIA, stored, write_answers, write_pairs, write_suite
from tests.unit.cli.conftest import CallCommand

DOCS = Path(__file__).parents[3] / "docs" / "store.md"
COLUMNS = [
    "run",
    "unit",
    "judge",
    "repeat",
    "pass",
    "position",
    "subject",
    "opponent",
    "measure",
    "value",
    "points",
    "max_points",
]
FIRST = {"model": "python/judge:first"}


def query(sql: str, **values: Any) -> list[dict[str, Any]]:
    with closing(sqlite3.connect("evenhand.db")) as store:
        store.row_factory = sqlite3.Row
        return [dict(row) for row in store.execute(sql, values)]


def test_scores_are_shares_of_their_scale(call: CallCommand, tmp_path: Path) -> None:
    write_suite(tmp_path, 3)
    run = call("run", "--json").json["run"]
    rows = query("SELECT * FROM observations WHERE run = :run", run=run)
    assert list(rows[0]) == COLUMNS
    outputs = {row["unit"]: row["output"]["scores"] for row in stored(tmp_path)}
    for unit, scores in outputs.items():
        own = {row["measure"]: row for row in rows if row["unit"] == unit}
        for name, score in scores.items():
            assert (own[name]["points"], own[name]["max_points"]) == (score["score"], 5)
            assert own[name]["value"] == (score["score"] - 1) / 4  # the rubric goes from 1 to 5
        shares = [own[name]["value"] for name in scores]
        assert own["overall"]["value"] == pytest.approx(sum(shares) / len(shares))
        assert {name for name in own if name.startswith("tag:")}
    fields = query("SELECT * FROM unit_fields WHERE run = :run", run=run)
    assert {row["field"] for row in fields} >= {"model", "language", "length"}


def test_grades_are_told_out_of_their_weights(call: CallCommand, tmp_path: Path) -> None:
    write_answers(tmp_path, 4)
    run = call("run", "--json").json["run"]
    for judged in stored(tmp_path):
        sql = "SELECT measure, value FROM observations WHERE run = :run AND unit = :unit"
        own = {row["measure"]: row["value"] for row in query(sql, run=run, unit=judged["unit"])}
        assert own["overall"] == judged["output"]["total_score"] / 100
        assert own["critical_fail"] == judged["output"]["critical_fail"]


def test_votes_are_seen_from_both_sides(call: CallCommand, tmp_path: Path) -> None:
    write_pairs(tmp_path, 4)
    run = call("run", "--json").json["run"]
    settled = "SELECT * FROM observations WHERE run = :run AND pass = 0"
    rows = query(settled, run=run)
    assert {row["measure"] for row in rows} == {"winner", "uncertain", *CRITERIA}
    for row in rows:
        (other,) = (
            there
            for there in rows
            if (there["unit"], there["measure"]) == (row["unit"], row["measure"])
            and there["subject"] == row["opponent"]
        )
        is_mirrored = row["measure"] != "uncertain"
        assert other["value"] == (1 - row["value"] if is_mirrored else row["value"])
    winners = {row["unit"]: row["output"]["winner"] for row in stored(tmp_path)}
    shares = {"A": 1, "B": 0, "tie": 0.5}
    for unit, winner in winners.items():
        # Both sides come in the order of the view: the first candidate's first.
        value = next(r["value"] for r in rows if r["unit"] == unit and r["measure"] == "winner")
        assert value == shares[winner]


def test_a_judge_that_prefers_what_it_reads_first_is_seen_in_the_passes(
    call: CallCommand, tmp_path: Path
) -> None:
    write_pairs(tmp_path, 3, FIRST)
    run = call("run", "--json").json["run"]
    passes = "SELECT position, value FROM observations WHERE run = :run AND pass > 0"
    rows = query(f"{passes} AND measure = 'winner'", run=run)
    assert rows and all(row["value"] == (row["position"] == 1) for row in rows)
    uncertain = "SELECT avg(value) AS share FROM observations WHERE measure = 'uncertain'"
    assert query(uncertain) == [{"share": 1.0}]


@pytest.mark.parametrize("write", [write_suite, write_pairs, write_answers])
def test_settled_and_copied_runs_have_the_same_rows(
    call: CallCommand, tmp_path: Path, write: Any
) -> None:
    write(tmp_path, 3)
    call("run")
    sql = (
        f"SELECT {', '.join(COLUMNS)} FROM observations"
        " ORDER BY unit, pass, subject, measure, position"
    )
    fields = "SELECT * FROM unit_fields ORDER BY unit, field"
    before = [_plain(query(statement)) for statement in (sql, fields)]
    assert all(before)
    with closing(sqlite3.connect("evenhand.db", isolation_level=None)) as store:
        store.execute("UPDATE judgments SET observations = '[]'")
    assert not query(sql) and call("store", "verify").code == 6
    assert call("settle").code == 0
    assert [_plain(query(statement)) for statement in (sql, fields)] == before
    url = new_store_url()
    assert call("store", "copy", "sqlite:evenhand.db", url).code == 0
    schema, server = url.partition("schema=")[2], shared_server()
    for statement, there in zip((sql, fields), before, strict=True):
        found = server.execute(re.sub(r"FROM (\w+)", rf"FROM {schema}.\1", statement))
        assert sorted(map(repr, map(tuple, found))) == sorted(map(repr, there))


def _plain(rows: Iterable[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in rows]


@pytest.mark.parametrize("write", [write_suite, write_pairs])
def test_the_queries_of_the_docs_run(call: CallCommand, tmp_path: Path, write: Any) -> None:
    write(tmp_path, 3)
    run = call("run", "--json").json["run"]
    queries = re.findall(r"```sql\n(.+?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert len(queries) == 5
    answered = [bool(query(sql, run=run)) for sql in queries]
    # Nobody has prompt variants here; two ask for votes, the last for scores.
    has_votes = write is write_pairs
    assert answered == [True, False, has_votes, has_votes, not has_votes]
