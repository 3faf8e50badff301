"""An import as a whole: the files it reads, what it refuses, and what its run remembers."""

from __future__ import annotations

import csv
import gzip
import io
import json

import pytest

from evenhand.data.write import write
from evenhand.errors import DataError, UsageError
from tests.sentences import refused
from tests.unit.runs.importing import import_files, score, vote


def test_rows_without_a_unit_or_a_judge_are_an_error(imported):
    with refused(DataError, "data.no_column", '"unit"(.|\n)*"unti"(.|\n)*--map unit='):
        imported("scores", [{"judge": "j", "score": 1, "unti": "q"}])
    with refused(DataError, "data.cell_empty", '"unit"'):
        imported("scores", [score("", 1)])
    with refused(DataError, "data.no_judge_column", '"judge"(.|\n)*--judge NAME'):
        imported("scores", [{"unit": "q", "score": 1}])
    assert imported("scores", [{"unit": "q", "score": 1}], judge="me").tally.verdicts == 1
    assert imported.recorded.names == ["me"]


def test_importing_again_gives_the_same_run(imported):
    rows = [vote("a", "b", "a")]
    first = imported("votes", rows)
    again = imported("votes", rows)
    assert first.json() == again.json() and len(imported.store.archive.runs()) == 1
    other = [imported("votes", rows, **o).run for o in ({"on_conflict": "tie"}, {"name": "x"})]
    changed = imported("votes", [vote("a", "b", "b")]).run
    assert len({first.run, *other, changed}) == 4


def test_what_a_run_remembers(imported):
    imported("votes", [vote("a", "b", "a")], on_conflict="split")
    run = imported.recorded
    assert (run.imported, run.kind_name, run.row.name) == (True, "pairwise", "rows")
    source = run.manifest.judging.source
    assert source.on_conflict == "split"
    assert run.manifest.imported.files == ("rows.jsonl",)
    counts = run.counts(imported.store.archive)
    assert (counts.planned, counts.verdicts, counts.pending) == (1, 1, 0)
    imported("scores", [score("q", 1)])
    assert imported.recorded.kind_name == "rubric"


def test_votes_and_scores_in_one_import_are_refused(store, tmp_path):
    pair = {"question_id": 1, "model_a": "a", "model_b": "b", "winner": "tie", "judge": "j"}
    write(tmp_path / "a.jsonl", [pair])
    write(tmp_path / "b.jsonl", [{"question_id": 1, "model": "a", "score": 3, "judge": "j"}])
    with refused(DataError, "runs.mixed_rows", "b.jsonl:1: .*a.jsonl:1"):
        import_files(store, [tmp_path / "a.jsonl", tmp_path / "b.jsonl"], "fastchat")
    assert store.archive.runs() == []


def test_several_files_are_one_run(store, tmp_path):
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for path, order in zip(files, ("xy", "yx"), strict=True):
        write(path, [vote(*order, "x")])
    found = import_files(store, files, "votes")
    assert (found.name, found.tally.units, found.tally.settled["stable"]) == ("a", 1, 1)
    files[1].write_text("unit,judge,first,second,winner\n")
    with refused(DataError, "data.file_without_rows", "b.csv"):
        import_files(store, files, "votes")
    with refused(UsageError, "data.no_file", "vote.csv"):
        import_files(store, [tmp_path / "vote.csv"], "votes")


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_of_several_rows_that_are_wrong_the_first_is_told(tmp_path, imported, ending):
    """Whatever is wrong with those after it, and though they are read together."""
    good, path = vote("a", "b", "a"), tmp_path / f"rows.{ending}"
    for first in ("judge", "second"):
        bad = [good | {name: ""} for name in (first, "unit", "second", "judge")]
        write(path, [*[good] * 250, *bad])
        with refused(DataError, "data.cell_empty", f'"{first}"') as raised:
            import_files(imported.store, [path], "votes")
        assert raised.value.where == f"{path}:{252 if ending == 'csv' else 251}"
    if ending == "jsonl":
        write(path, [*[good] * 300, {k: v for k, v in good.items() if k != "second"}])
        with refused(DataError, "data.no_column", '"second"') as raised:
            import_files(imported.store, [path], "votes")
        assert raised.value.where == f"{path}:301"


def test_values_that_are_equal_and_written_otherwise_are_kept_apart(imported):
    odd = [{"preference": 0, "n": 1}, {"preference": 0.0, "n": 1.0}, {"n": "1", "sample": "2"}]
    odd += [{"n": True, "explanation": "alike"}, {"n": [1], "criterion": "C1"}]
    imported(
        "votes", [vote("x", "y", "first", unit=f"q{i}", **more) for i in range(7) for more in odd]
    )
    assert {json.dumps(body["meta"]) for body in imported.bodies} == {'{"n": 1}'}
    judgments = imported.store.archive.judgments(imported.recorded.scope)
    passes = [json.loads(one.text.body)["passes"][0] for _, one in judgments]
    assert {json.dumps(one.get("preference")) for one in passes} >= {"0", "0.0"}
    values = [(4, "d", 1), (4.0, "e", 1.0), ("", "f", True), ("yes", "g", "1")]
    imported("scores", [score(f"q{i}", v, name, n=n) for i in range(7) for v, name, n in values])
    scores = [json.dumps(one.output["scores"]) for one in imported.judgments.values() if one.output]
    assert all('"score": 4,' in text and '"score": 4.0,' in text for text in scores)


def test_the_same_votes_in_any_format_come_to_the_same_judgments(tmp_path, imported):
    area = 'it\'s "x"'
    rows = [
        vote(*order, winner, unit=f"q{i}", area=area)
        for i in range(30)
        for order, winner in (("xy", "first"), ("yx", ("x", "tie", "?")[i % 3]))
    ]
    found = []
    for ending in ("csv", "tsv.gz", "jsonl", "json", "parquet"):
        path = tmp_path / f"rows.{ending}"
        if ending == "tsv.gz":
            lines = [list(rows[0]), *(row.values() for row in rows)]
            text = io.StringIO()
            csv.writer(text, delimiter="\t").writerows(lines)
            path.write_bytes(gzip.compress(text.getvalue().encode()))
        else:
            write(path, rows)
        tally = import_files(imported.store, [path], "votes", name=ending).tally
        assert (tally.settled, tally.failures) == ({"stable": 10, "uncertain": 10}, {"schema": 10})
        found.append((imported.bodies, [one.output for one in imported.judgments.values()]))
    assert all(one == found[0] for one in found) and found[0][0][7]["meta"] == {"area": area}


def test_judges_and_units_stand_in_the_order_of_the_file(imported):
    """Judges that vote on few units leave nothing pending."""
    order = [("z", "k"), ("z", "j"), ("y", "k"), ("y", "j"), ("x", "l")]
    imported(
        "votes", [vote("a", "b", "a", unit=u, judge=j) for u, j in (*order[::2], *order[1::2])]
    )
    assert sorted(imported.judgments) == sorted((u, j, 0) for u, j in order)
    assert list(dict.fromkeys(unit for unit, *_ in imported.judgments)) == ["z", "y", "x"]
    assert imported.recorded.counts(imported.store.archive).pending == 0
