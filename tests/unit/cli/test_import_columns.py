"""Tables whose columns go by other names that are usual, and those of which nothing is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.cli.conftest import CallCommand

TABLES = {
    "arena": (
        "votes",
        "question_id,model_a,model_b,winner\n1,x,y,x\n2,x,y,y\n",
        {"unit": "question_id", "first": "model_a", "second": "model_b"},
    ),
    "rated": (
        "scores",
        "ID,Rater,Rating\n1,ann,4\n2,bob,5\n",
        {"unit": "ID", "judge": "Rater", "score": "Rating"},
    ),
    "spaced": (
        "votes",
        "item id,model 1,model 2,verdict\n1,x,y,tie\n",
        {"unit": "item id", "first": "model 1", "second": "model 2", "winner": "verdict"},
    ),
    "russian": (
        "scores",
        "номер вопроса,оценщик,критерий,балл\n1,аня,ясность,4\n",
        {"unit": "номер вопроса", "judge": "оценщик", "dimension": "критерий", "score": "балл"},
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_usual_names_are_read_and_said(call: CallCommand, tmp_path: Path, name: str) -> None:
    kind, text, columns = TABLES[name]
    (tmp_path / "t.csv").write_text(text)
    judge = () if "judge" in columns else ("--judge", "people")
    said = call("import", "t.csv", "--kind", kind, *judge, "--json")
    assert said.json["columns"] == columns and said.json["failures"] == {}
    assert all(f'{field} = "{column}"' in said.err for field, column in columns.items())


def test_a_name_that_the_user_gives_goes_before_a_usual_one(
    call: CallCommand, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text("id,item,rater,rating\nq1,i1,ann,3\n")
    said = call("import", "t.csv", "--kind", "scores", "--map", "unit=item", "--json").json
    assert said["columns"] == {"judge": "rater", "score": "rating"}
    assert call("show", said["run"], "i1").code == 0


def test_a_table_of_which_nothing_is_known_lists_its_columns(
    call: CallCommand, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text("foo,bar\n1,2\n")
    refused = call("import", "t.csv", "--kind", "votes").err
    assert 'the columns are: "foo", "bar"; rename one: --map first=COLUMN' in refused
