"""Judgments reshaped by SQL on their way in: the recipes of docs/sql.md run as they stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.conftest import NEWEST, CallCommand

PAGE = Path(__file__).parents[3] / "docs" / "sql.md"
RECIPES = re.findall(r"```sql\n-- (\w+): (\w+)\.csv.*\n([^`]*)```", PAGE.read_text("utf-8"))
TABLES = {
    "wide": "unit,judge,clear,correct\nq1,j,3,4\nq2,j,5,\n",
    "judges": "question_id,model,ann,bob\nq1,m1,3,4\nq1,m2,2,2\n",
    "arena": "id,model_a,model_b,pick\n1,x,y,A\n2,x,y,=\n3,x,y,?\n",
    "bare": "winner\nold\nnew\ntie\n",
    "orders": "id,winner_ab,winner_ba\n1,A,A\n2,A,B\n",
    "scores": "unit,judge,score\nq1,j,1\nq2,j,2\n",
    "areas": "unit,area\nq1,code\n",
    "grades": "unit,judge,model,score\nq1,j,a,4\nq1,j,b,5\nq2,j,a,3\nq2,j,b,3\n",
}
FOUND: dict[str, dict[str, Any]] = {
    "wide": {"units": 2, "verdicts": 2, "missing_scores": {"correct": 1}},
    "judges": {"units": 2, "judges": 2, "verdicts": 4, "key": ["unit", "model"]},
    "arena": {"verdicts": 2, "failures": {"empty": 1}, "candidates": ["x", "y"]},
    "bare": {"units": 3, "verdicts": 3, "candidates": ["new", "old"]},
    "orders": {"settled": {"stable": 1, "uncertain": 1}},
    "scores": {"units": 2, "verdicts": 2},
    "grades": {"units": 2, "verdicts": 2, "candidates": ["a", "b"]},
}


@pytest.fixture(autouse=True)
def tables(tmp_path: Path) -> None:
    for name, text in TABLES.items():
        (tmp_path / f"{name}.csv").write_text(text)


def test_every_recipe_is_tried() -> None:
    assert [name for _, name, _ in RECIPES] == list(FOUND)


@pytest.mark.parametrize(("kind", "name", "sql"), RECIPES)
def test_a_recipe_gives_what_it_says(call: CallCommand, kind: str, name: str, sql: str) -> None:
    command = ("import", "--kind", kind, "--sql", sql, "--json")
    done = call(*command)
    assert done.code == 0, done.err
    assert {key: done.json[key] for key in FOUND[name]} == FOUND[name]
    assert done.json["name"] == "query" and call(*command).json["run"] == done.json["run"]


def test_the_columns_of_a_second_table_are_fields(call: CallCommand) -> None:
    sql = "select * from 'scores.csv' left join 'areas.csv' using (unit) order by unit"
    call("import", "--kind", "scores", "--sql", sql, "--name", "joined")
    assert call("show", NEWEST, "--where", "area=code", "--json").json["verdicts"] == 1


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("--sql", "select nothing from 'scores.csv'"), 2, "the query cannot be run"),
        (("--sql", "select * from 'none.csv'"), 2, "the query cannot be run"),
        (("--sql", "select 1 as a"), 3, "there is no column"),
        (("--sql", ""), 2, "takes one query"),
        (("--sql", "-- nothing"), 2, "takes one query"),
        (("--sql", "select 1; select 2"), 2, "takes one query"),
        (("--sql", "create table votes as select 1"), 2, "takes one query"),
        (("--sql", "copy (select 1) to 'written.csv'"), 2, "takes one query"),
        (("scores.csv", "--sql", "select 1"), 2, "names its files itself"),
    ],
)
def test_a_query_that_gives_no_judgments_is_refused(
    call: CallCommand, arguments: tuple[str, ...], code: int, says: str
) -> None:
    done = call("import", "--kind", "votes", *arguments)
    assert (done.code, says in done.err) == (code, True), done.err
