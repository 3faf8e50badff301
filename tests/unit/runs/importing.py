"""Rows to import, and what the store made of them."""

from __future__ import annotations

import asyncio
import json

from evenhand.data.write import write
from evenhand.judgment import Judgment
from evenhand.runs.imports import ImportRequest, import_judgments
from evenhand.runs.recorded import recorded_run

Judgments = dict[tuple[str, str, int], Judgment]


def import_files(store, files, kind, **options):
    """Import files as a command does."""
    request = ImportRequest(tables=files, kind=kind, **options)
    return asyncio.run(import_judgments(store, request))


class Importer:
    """Imports rows, and reads back what the store made of them."""

    def __init__(self, store, folder):
        self.store, self.folder = store, folder

    def __call__(self, kind, rows, **options):
        write(self.folder / "rows.jsonl", rows)
        return import_files(self.store, [self.folder / "rows.jsonl"], kind, **options)

    @property
    def recorded(self):
        return recorded_run(self.store.archive, self.store.archive.runs()[0])

    @property
    def judgments(self):
        run = self.recorded
        found = self.store.archive.judgments(run.scope)
        return {(u.id, run.names[one.judge], one.repeat): run.judgment(one) for u, one in found}

    @property
    def bodies(self):
        return [json.loads(unit.body) for unit in self.store.archive.units(self.recorded.scope)]


def vote(first, second, winner, **more):
    return {"unit": "q", "judge": "j", "first": first, "second": second, "winner": winner, **more}


def score(unit, value, dimension="d", **more):
    return {"unit": unit, "judge": "j", "dimension": dimension, "score": value, **more}
