"""What a table whose columns have other names is answered with."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.unit.cli.conftest import CallCommand

TABLES = {
    "arena": (
        "votes",
        "question_id,model_a,model_b,winner\n1,x,y,model_a\n2,x,y,model_b\n",
        "--map unit=question_id --map first=model_a --map second=model_b",
    ),
    "rated": (
        "scores",
        "ID,Rater,Rating\n1,ann,4\n2,bob,5\n",
        "--map unit=ID --map judge=Rater --map score=Rating",
    ),
    "spaced": (
        "votes",
        "item id,model 1,model 2,verdict\n1,x,y,A\n",
        "--map unit='item id' --map first='model 1' --map second='model 2' --map winner=verdict",
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_the_flags_that_would_read_a_table_are_given_whole(
    call: CallCommand, tmp_path: Path, name: str
) -> None:
    kind, text, flags = TABLES[name]
    (tmp_path / "t.csv").write_text(text)
    refused = call("import", "t.csv", "--kind", kind)
    assert refused.code == 3 and f"rename: {flags}" in " ".join(refused.err.split())
    judge = () if "judge=" in flags else ("--judge", "people")
    assert call("import", "t.csv", "--kind", kind, *shlex.split(flags), *judge).code == 0


def test_a_table_of_which_nothing_is_known_lists_its_columns(
    call: CallCommand, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text("foo,bar\n1,2\n")
    refused = call("import", "t.csv", "--kind", "votes").err
    assert 'the columns are: "foo", "bar"; rename one: --map first=COLUMN' in refused
