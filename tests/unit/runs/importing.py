"""Rows to import, and what the store made of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evenhand.data.columns import Rows
from evenhand.data.write import write
from evenhand.judgment import Judgment
from evenhand.runs.imports import ImportRequest, ImportResult, import_judgments
from evenhand.runs.recorded import Recorded, recorded_run
from evenhand.store.ledger import Store

Judgments = dict[tuple[str, str, int], Judgment]


def import_files(
    store: Store, files: Sequence[Path | Rows], kind: str, **options: Any
) -> ImportResult:
    """Import files as a command does."""
    request = ImportRequest(tables=files, kind=kind, **options)
    return asyncio.run(import_judgments(store, request))


class Importer:
    """Imports rows, and reads back what the store made of them."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.store, self.folder = store, folder

    def __call__(self, kind: str, rows: list[dict[str, Any]], **options: Any) -> ImportResult:
        write(self.folder / "rows.jsonl", rows)
        return import_files(self.store, [self.folder / "rows.jsonl"], kind, **options)

    @property
    def recorded(self) -> Recorded:
        return recorded_run(self.store.archive, self.store.archive.runs()[0])

    @property
    def judgments(self) -> Judgments:
        run = self.recorded
        found = self.store.archive.judgments(run.scope)
        return {(u.id, run.names[one.judge], one.repeat): run.judgment(one) for u, one in found}

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(unit.body) for unit in self.store.archive.units(self.recorded.scope)]


def vote(first: str, second: str, winner: str, **more: Any) -> dict[str, Any]:
    return {"unit": "q", "judge": "j", "first": first, "second": second, "winner": winner, **more}


def score(unit: str, value: Any, dimension: str = "d", **more: Any) -> dict[str, Any]:
    return {"unit": unit, "judge": "j", "dimension": dimension, "score": value, **more}
