"""An import as a whole: the files it reads, what it refuses, and what its run remembers."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.data.write import write
from evenhand.errors import DataError, UsageError
from evenhand.store.ledger import Store
from tests.unit.runs.importing import Importer, import_files, score, vote


def test_judges_and_units_stand_in_the_order_of_the_file(imported: Importer) -> None:
    rows = [
        vote("a", "b", "a", unit=u, judge=j)
        for u, j in (("z", "k"), ("y", "j"), ("z", "j"), ("y", "k"))
    ]
    imported("votes", rows)
    assert list(imported.judgments) == [("z", "k", 0), ("z", "j", 0), ("y", "k", 0), ("y", "j", 0)]


def test_rows_without_a_unit_or_a_judge_are_an_error(imported: Importer) -> None:
    with pytest.raises(DataError, match='there is no column "unit"') as caught:
        imported("scores", [{"judge": "j", "score": 1, "unti": "q"}])
    assert "--map unit=" in caught.value.advice
    assert 'did you mean "unti"?' in caught.value.advice
    with pytest.raises(DataError, match='the column "unit" is empty'):
        imported("scores", [score("", 1)])
    with pytest.raises(DataError, match='there is no column "judge"') as caught:
        imported("scores", [{"unit": "q", "score": 1}])
    assert "--judge NAME" in caught.value.advice
    assert imported("scores", [{"unit": "q", "score": 1}], judge="me").tally.verdicts == 1
    assert imported.recorded.names == ["me"]


def test_importing_again_gives_the_same_run(imported: Importer) -> None:
    rows = [vote("a", "b", "a")]
    first = imported("votes", rows)
    again = imported("votes", rows)
    assert first.json() == again.json() and len(imported.store.archive.runs()) == 1
    other = [imported("votes", rows, **o).run for o in ({"on_conflict": "tie"}, {"name": "x"})]
    changed = imported("votes", [vote("a", "b", "b")]).run
    assert len({first.run, *other, changed}) == 4


def test_what_a_run_remembers(imported: Importer) -> None:
    imported("votes", [vote("a", "b", "a")], on_conflict="split")
    run = imported.recorded
    assert (run.imported, run.kind_name, run.row.name) == (True, "pairwise", "rows")
    source = run.manifest.judging.source
    assert source is not None
    assert source.on_conflict == "split"
    assert run.manifest.imported is not None
    assert run.manifest.imported.files == ("rows.jsonl",)
    counts = run.counts(imported.store.archive)
    assert (counts.planned, counts.verdicts, counts.pending) == (1, 1, 0)
    imported("scores", [score("q", 1)])
    assert imported.recorded.kind_name == "rubric"


def test_judges_that_vote_on_few_units_leave_nothing_pending(imported: Importer) -> None:
    rows = [vote("a", "b", "a", unit=f"q{i}", judge=f"j{i}") for i in range(30)]
    imported("votes", rows)
    assert imported.recorded.counts(imported.store.archive).pending == 0


def test_votes_and_scores_in_one_import_are_refused(store: Store, tmp_path: Path) -> None:
    pair = {"question_id": 1, "model_a": "a", "model_b": "b", "winner": "tie", "judge": "j"}
    write(tmp_path / "a.jsonl", [pair])
    write(tmp_path / "b.jsonl", [{"question_id": 1, "model": "a", "score": 3, "judge": "j"}])
    with pytest.raises(DataError, match="these are scores"):
        import_files(store, [tmp_path / "a.jsonl", tmp_path / "b.jsonl"], "fastchat")
    assert store.archive.runs() == []


def test_several_files_are_one_run(store: Store, tmp_path: Path) -> None:
    for name, order in (("a", ("x", "y")), ("b", ("y", "x"))):
        write(tmp_path / f"{name}.csv", [vote(*order, "x")])
    found = import_files(store, [tmp_path / "a.csv", tmp_path / "b.csv"], "votes")
    assert (found.name, found.tally.units, found.tally.settled["stable"]) == ("a", 1, 1)


def test_a_file_that_is_not_there(store: Store, tmp_path: Path) -> None:
    (tmp_path / "votes.csv").write_text("unit\n")
    with pytest.raises(UsageError, match="there is no file"):
        import_files(store, [tmp_path / "vote.csv"], "votes")


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_of_several_rows_that_are_wrong_the_first_is_told(
    tmp_path: Path, imported: Importer, ending: str
) -> None:
    """Whatever is wrong with those after it, and though they are read together."""
    good, path = vote("a", "b", "a"), tmp_path / f"rows.{ending}"
    for first, says in (("judge", '"judge"'), ("second", '"second" is empty')):
        bad = [good | {name: ""} for name in (first, "unit", "second", "judge")]
        write(path, [*[good] * 250, *bad])
        with pytest.raises(DataError, match=says) as raised:
            import_files(imported.store, [path], "votes")
        assert raised.value.where == f"{path}:{252 if ending == 'csv' else 251}"


def test_a_later_row_without_a_needed_column_is_told(tmp_path: Path, imported: Importer) -> None:
    rows = [vote("a", "b", "a") for _ in range(300)]
    write(
        tmp_path / "rows.jsonl", [*rows, {"unit": "q", "judge": "j", "first": "a", "winner": "a"}]
    )
    with pytest.raises(DataError, match='there is no column "second"') as raised:
        import_files(imported.store, [tmp_path / "rows.jsonl"], "votes")
    assert raised.value.where == f"{tmp_path / 'rows.jsonl'}:301"


def test_a_second_file_without_rows_is_told(tmp_path: Path, imported: Importer) -> None:
    header = "unit,judge,first,second,winner\n"
    (tmp_path / "a.csv").write_text(header + "q,j,a,b,a\n")
    (tmp_path / "b.csv").write_text(header)
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    with pytest.raises(DataError, match="holds no rows"):
        import_files(imported.store, files, "votes")
