"""The same rows in any format come to the same judgments, and odd cells are kept as they are."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from evenhand.data.write import write
from evenhand.runs.recorded import recorded_run
from evenhand.runs.stores import open_store
from evenhand.store.ledger import Store
from tests.unit.runs.importing import Importer, import_files, score, vote

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


@pytest.mark.parametrize("ending", ["csv", "tsv.gz", "jsonl", "json", "parquet"])
def test_the_same_votes_in_any_format_come_to_the_same_judgments(
    tmp_path: Path, ending: str
) -> None:
    rows = [
        {"unit": f"q{i}", "judge": "j", "first": a, "second": b, "winner": w, "area": 'it\'s "x"'}
        for i in range(30)
        for (a, b), w in ((("x", "y"), "first"), (("y", "x"), ("x", "tie", "?")[i % 3]))
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
        import_files(store, [path], "votes")
        outcomes = Counter(
            json.loads(text.body)["output"] is None or json.loads(text.body)["output"]["settled"]
            for _, _, text in stored(store)[2]
        )
        bodies = {unit.id: unit.body for unit in stored(store)[1]}
    assert outcomes == {"stable": 10, "uncertain": 10, True: 10}
    assert json.loads(bodies["q7"])["meta"] == {"area": 'it\'s "x"'}
