"""The views of a store that users read with SQL: `observations` and `unit_fields`, and the queries
of docs/store.md."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.postgres import new_store_url, shared_server
from tests.suites import CRITERIA, stored, write_answers, write_pairs, write_suite

DOCS = Path(__file__).parents[3] / "docs" / "store.md"
COLUMNS = "run unit judge repeat pass position subject opponent measure value points max_points"


def query(sql, **values):
    with closing(sqlite3.connect("evenhand.db")) as store:
        store.row_factory = sqlite3.Row
        return [dict(row) for row in store.execute(sql, values)]


def measured(unit):
    """The observations of a unit by what they measure."""
    rows = query("SELECT * FROM observations WHERE unit = :unit", unit=unit)
    return {row["measure"]: row for row in rows}


def test_scores_are_shares_of_their_scale(call):
    write_suite(Path(), 3)
    run = call.run()
    (row, *_) = query("SELECT * FROM observations WHERE run = :run", run=run)
    assert " ".join(row) == COLUMNS
    for row in stored(Path()):
        own, scores = measured(row["unit"]), row["output"]["scores"]
        for name, score in scores.items():
            assert (own[name]["points"], own[name]["max_points"]) == (score["score"], 5)
            assert own[name]["value"] == (score["score"] - 1) / 4  # the rubric goes from 1 to 5
        shares = [own[name]["value"] for name in scores]
        assert own["overall"]["value"] == pytest.approx(sum(shares) / len(shares))
        assert any(name.startswith("tag:") for name in own)
    fields = query("SELECT field FROM unit_fields WHERE run = :run", run=run)
    assert {row["field"] for row in fields} >= {"model", "language", "length"}


def test_grades_are_told_out_of_their_weights(call):
    write_answers(Path(), 4)
    call.run()
    for row in stored(Path()):
        own, output = measured(row["unit"]), row["output"]
        assert own["overall"]["value"] == output["total_score"] / 100
        assert own["critical_fail"]["value"] == output["critical_fail"]


def test_votes_are_seen_from_both_sides_and_in_every_pass(call):
    write_pairs(Path(), 4)
    call.run()
    rows = query("SELECT * FROM observations WHERE pass = 0")
    assert {row["measure"] for row in rows} == {"winner", "uncertain", *CRITERIA}
    sides = {(row["unit"], row["measure"], row["subject"]): row["value"] for row in rows}
    for row in rows:
        other = sides[row["unit"], row["measure"], row["opponent"]]
        assert other == (row["value"] if row["measure"] == "uncertain" else 1 - row["value"])
    for row in stored(Path()):
        share = {"A": 1, "B": 0, "tie": 0.5}[row["output"]["winner"]]
        assert sides[row["unit"], "winner", row["output"]["candidates"][0]] == share
    # A judge that prefers what it reads first is seen in the passes.
    write_pairs(Path(), 3, {"model": "python/judge:first"})
    run = call.run()
    rows = query("SELECT * FROM observations WHERE run = :run", run=run)
    passes = [row for row in rows if row["pass"] and row["measure"] == "winner"]
    assert passes and all(row["value"] == (row["position"] == 1) for row in passes)
    assert {row["value"] for row in rows if row["measure"] == "uncertain"} == {1}


def plain(rows):
    return [tuple(row.values()) for row in rows]


@pytest.mark.parametrize("write", [write_suite, write_pairs, write_answers])
def test_settled_and_copied_runs_have_the_same_rows_and_the_queries_of_the_docs_run(call, write):
    write(Path(), 3)
    run = call.run()
    statements = (
        f"SELECT {COLUMNS.replace(' ', ', ')} FROM observations"
        " ORDER BY unit, pass, subject, measure, position",
        "SELECT * FROM unit_fields ORDER BY unit, field",
    )
    before = [plain(query(sql)) for sql in statements]
    queries = re.findall(r"```sql\n(.+?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    # Nobody has prompt variants here; two ask for votes, the last for scores.
    has_votes, has_scores = write is write_pairs, write is write_suite
    answered = [bool(query(sql, run=run)) for sql in queries]
    if write is not write_answers:
        assert answered == [True, False, has_votes, has_votes, has_scores]
    with closing(sqlite3.connect("evenhand.db")) as store, store:
        store.execute("UPDATE judgments SET observations = '[]'")
    assert not query(statements[0]) and call("store verify").code == 6
    call.json("settle")
    assert all(before) and [plain(query(sql)) for sql in statements] == before
    url = new_store_url()
    call.json(f"store copy sqlite:evenhand.db {url}")
    schema, server = url.partition("schema=")[2], shared_server()
    for sql, there in zip(statements, before, strict=True):
        found = server.execute(re.sub(r"FROM (\w+)", rf"FROM {schema}.\1", sql))
        assert sorted(map(repr, map(tuple, found))) == sorted(map(repr, there))
