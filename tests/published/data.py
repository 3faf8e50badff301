"""Published records of judges, and what was published about them.

They lie outside the project, in the folder that EVENHAND_PUBLISHED names, else in `shared/data`
beside the project's root. Without them a test that asks for them is skipped and says so.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., dict[str, Any]]
"""Calls a command with `--json`, and gives what it printed."""
BESIDE = Path(__file__).parents[3] / "shared" / "data"


def folder():
    """Where the records are; skips the test where they are not."""
    place = Path(os.environ.get("EVENHAND_PUBLISHED") or BESIDE)
    if not (place / "anchors.json").is_file():
        pytest.skip(f"no published records in {place} (EVENHAND_PUBLISHED names another folder)")
    return place


@cache
def records(name):
    """The records of one .jsonl, .jsonl.gz, .csv or .csv.gz file."""
    path = folder() / name
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="") as lines:
        if ".csv" in path.suffixes:
            return list(csv.DictReader(lines))
        return [json.loads(line) for line in lines]


@cache
def anchor(ident):
    """One published target: its value, definition and tolerance."""
    anchors = json.loads((folder() / "anchors.json").read_text(encoding="utf-8"))
    return next(one for one in anchors if one["id"] == ident)


def expected(ident, *keys):
    """What was published, or a part of it, within its tolerance."""
    target = anchor(ident)
    value = target["value"]
    for key in keys:
        value = value[key]
    return pytest.approx(value, abs=target["tolerance"])


def imported(call, kind, rows, *arguments):
    """The rows as a run, through a file as `import` takes it."""
    listed = list(rows)
    with Path(f"{kind}.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(listed[0]))
        writer.writeheader()
        writer.writerows(listed)
    return call(f"import {kind}.csv --kind {kind}", *arguments)


def fed(call, name, kind, *options):
    """A published file as it is as a run: what is said of it are options of the command alone."""
    return call(f"import --kind {kind}", str(folder() / name), *options)


def queried(call, name, kind, sql, *options):
    """A published file as a run by way of a query, in which FILE is the file."""
    return call(f"import --kind {kind} --sql", of_file(sql, name), *options)


def of_file(sql, name):
    """A query about a published file."""
    return sql.replace("FILE", f"'{folder() / name}'")


def side_of(column):
    """SQL: the side that the label of an arena names, whichever way it is written."""
    labels = {
        "first": ("A>B", "A>>B", "B<A", "B<<A"),
        "second": ("B>A", "B>>A", "A<B", "A<<B"),
        "tie": ("A=B", "B=A"),
    }
    cases = (
        f"when {column} in ({', '.join(map(repr, spelled))}) then '{side}'"
        for side, spelled in labels.items()
    )
    return f"case {' '.join(cases)} else {column} end"
