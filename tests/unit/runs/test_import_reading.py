"""However the rows of a table are read, at hand or from the disk, they come to the same run."""

from __future__ import annotations

import asyncio
import csv
import gzip
import io
import json
import random
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from evenhand.data.foreign.shaping import Shaping
from evenhand.data.write import write
from evenhand.runs.imports import Options, import_files
from evenhand.runs.imports.forms import BLANK
from evenhand.runs.recorded import recorded_run
from evenhand.runs.stores import open_store
from evenhand.store.ports import Store
from tests.unit.runs.importing import Importer, score, vote

ODD_VOTES: list[dict[str, Any]] = [
    vote("x", "y", winner, unit=f"q{unit}", judge=judge, **more)
    for unit in range(7)
    for judge in ("j", "k")
    for winner, more in (
        ("first", {"preference": 0, "n": 1}),
        ("first", {"preference": 0.0, "n": 1.0}),
        ("tie", {"n": True, "explanation": "alike"}),
        ("?", {"n": "1", "sample": "2"}),
        ("second", {"n": [1], "criterion": "C1", "first_answer": "long " * 90}),
    )
]
ODD_SCORES: list[dict[str, Any]] = [
    score(f"q{unit}", value, dimension, model=model, n=n)
    for unit in range(7)
    for model in ("a", "b")
    for value, dimension, n in ((4, "d", 1), (4.0, "e", 1.0), ("", "f", True), ("yes", "g", "1"))
]


def stored(store: Store) -> list[Any]:
    """All that a store holds of its last run."""
    run = recorded_run(store.archive, store.archive.runs()[0])
    judgments = [(unit.id, one.judge, one.text) for unit, one in store.archive.judgments(run.scope)]
    return [run.id, list(store.archive.units(run.scope)), judgments]


@pytest.mark.parametrize(("kind", "rows"), [("votes", ODD_VOTES), ("scores", ODD_SCORES)])
def test_what_was_worked_out_before_and_forgotten_is_worked_out_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, rows: list[dict[str, Any]]
) -> None:
    """Also where rows of a unit lie apart."""
    shuffled = random.Random(5).sample(rows, len(rows))
    write(tmp_path / "rows.jsonl", shuffled)
    runs: list[list[Any]] = []
    for name, kept in (("all.db", 1 << 16), ("few.db", 2)):
        monkeypatch.setattr("evenhand.runs.imports.memo.MEMO_ENTRIES", kept)
        monkeypatch.setattr("evenhand.runs.imports.forms._FORMS", kept)
        with closing(open_store(f"sqlite:{name}", tmp_path)) as store:
            found = asyncio.run(import_files(store, [tmp_path / "rows.jsonl"], kind))
            runs.append([*stored(store), found.json()])
    assert runs[0] == runs[1]


@pytest.mark.parametrize("kept", [1 << 16, 2])
@pytest.mark.parametrize("voters", ["", "voter"])
def test_cells_that_are_read_where_they_stand_come_to_what_rows_come_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int, voters: str
) -> None:
    """Units that come back, several pairs on one, odd spellings, columns that are renamed."""
    rows = [
        *(vote("x", "y", "A", unit=f"q{i % 5}", why="so", area=f"a{i % 3}") for i in range(12)),
        *(vote("y", "x", "?", unit=f" q{i} ", judge="k", why="", area="") for i in range(9)),
        *(vote("x", "z", "z", unit=f"q{i}", judge="l", why="=1+1", area="a b,c") for i in range(3)),
        vote("x", "x", "tie", why="", area=""),
    ]
    table = [
        row | {"pass": i % 2, "criterion": "C1" if i == 3 else ""} for i, row in enumerate(rows)
    ]
    write(tmp_path / "rows.csv", table)
    monkeypatch.setattr("evenhand.runs.imports.memo.MEMO_ENTRIES", kept)
    runs: list[list[Any]] = []
    for name, missing in (("cells.db", ()), ("rows.db", ("in no cell",))):
        shaping = Shaping(columns={"explanation": "why"}, missing=missing)
        options = Options(shaping=shaping, voters=voters)
        with closing(open_store(f"sqlite:{name}", tmp_path)) as store:
            found = asyncio.run(import_files(store, [tmp_path / "rows.csv"], "votes", options))
            runs.append([*stored(store)[1:], found.json() | {"run": ""}])
    assert runs[0] == runs[1]
    assert runs[0][-1]["rows"] == len(rows)


def test_scores_that_are_read_where_they_stand_come_to_what_rows_come_to(tmp_path: Path) -> None:
    """Units that come back, scores that are none, reasons, a column that tells units apart."""
    rows = [
        score(f"q{i % 5}", ("4", "yes", "", "n/a", "2.50")[i % 5], f"d{i % 2}", model=f"m{i % 3}")
        | {"evidence": "a, b" if i == 4 else "", "rationale": "so" if i == 7 else "", "repeat": ""}
        for i in range(60)
    ]
    write(tmp_path / "rows.csv", rows)
    runs: list[list[Any]] = []
    for name, missing in (("cells.db", ()), ("rows.db", ("in no cell",))):
        options = Options(shaping=Shaping(missing=missing))
        with closing(open_store(f"sqlite:{name}", tmp_path)) as store:
            found = asyncio.run(import_files(store, [tmp_path / "rows.csv"], "scores", options))
            runs.append([*stored(store)[1:], found.json() | {"run": ""}])
    assert runs[0] == runs[1]
    assert runs[0][-1]["rows"] == len(rows) and runs[0][-1]["key"] == ["unit", "model"]


def test_values_that_are_equal_and_written_otherwise_are_kept_apart(imported: Importer) -> None:
    imported("votes", ODD_VOTES)
    metas = {json.dumps(body["meta"]) for body in imported.bodies}
    assert metas == {'{"n": 1}'}
    preferences = [
        json.loads(text.body)["passes"][0].get("preference")
        for text in (one[2] for one in stored(imported.store)[2])
        if text.status == "verdict"
    ]
    assert {json.dumps(one) for one in preferences} >= {"0", "0.0"}
    imported("scores", ODD_SCORES)
    scores = [json.dumps(one.output["scores"]) for one in imported.judgments.values() if one.output]
    assert all('"score": 4,' in text and '"score": 4.0,' in text for text in scores)


@pytest.mark.parametrize("kind", ["votes", "scores"])
def test_a_text_that_looks_like_a_blank_of_a_form_does_no_harm(
    imported: Importer, kind: str
) -> None:
    odd = BLANK
    row = vote(odd, "y", odd, judge=odd) if kind == "votes" else score(odd, 3, odd, judge=odd)
    imported(kind, [row | {"area": odd}])
    ((unit, judge, _),) = imported.judgments
    (judgment,) = imported.judgments.values()
    assert judge == odd and unit == ("q" if kind == "votes" else odd)
    assert judgment.output is not None and judgment.output["meta"] == {"area": odd}


@pytest.mark.parametrize("ending", ["csv", "tsv.gz", "jsonl", "json", "parquet"])
def test_the_same_votes_in_any_format_come_to_the_same_judgments(
    tmp_path: Path, ending: str
) -> None:
    rows = [
        {"unit": f"q{i}", "judge": "j", "first": a, "second": b, "winner": w, "area": 'it\'s "x"'}
        for i in range(30)
        for (a, b), w in ((("x", "y"), "A"), (("y", "x"), ("B", "tie", "?")[i % 3]))
    ]
    path = tmp_path / f"rows.{ending}"
    if ending == "tsv.gz":
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), delimiter="\t")
        writer.writeheader()
        writer.writerows(rows)
        path.write_bytes(gzip.compress(text.getvalue().encode()))
    else:
        write(path, rows)
    with closing(open_store("sqlite:store.db", tmp_path)) as store:
        asyncio.run(import_files(store, [path], "votes"))
        outcomes = Counter(
            json.loads(text.body)["output"] is None or json.loads(text.body)["output"]["settled"]
            for _, _, text in stored(store)[2]
        )
        bodies = {unit.id: unit.body for unit in stored(store)[1]}
    assert outcomes == {"stable": 10, "uncertain": 10, True: 10}
    assert json.loads(bodies["q7"])["meta"] == {"area": 'it\'s "x"'}
