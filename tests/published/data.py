"""Published records of judges, and what was published about them.

They lie outside the project, in the folder that EVENHAND_PUBLISHED names, else in `shared/data`
beside the project's root. Without them a test that asks for them is skipped and says so.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

BESIDE = Path(__file__).parents[3] / "shared" / "data"


def folder() -> Path:
    """Where the records are; skips the test where they are not."""
    found = Path(os.environ.get("EVENHAND_PUBLISHED") or BESIDE)
    if not (found / "anchors.json").is_file():
        pytest.skip(f"no published records in {found}; EVENHAND_PUBLISHED may name their folder")
    return found


@cache
def records(name: str) -> list[dict[str, Any]]:
    """The records of one .jsonl, .jsonl.gz, .csv or .csv.gz file."""
    path = folder() / name
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="") as lines:
        if ".csv" in path.suffixes:
            return list(csv.DictReader(lines))
        return [json.loads(line) for line in lines]


@cache
def anchor(ident: str) -> dict[str, Any]:
    """One published target: its value, definition and tolerance."""
    anchors = json.loads((folder() / "anchors.json").read_text(encoding="utf-8"))
    return next(one for one in anchors if one["id"] == ident)
