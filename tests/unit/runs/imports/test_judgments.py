"""Votes and scores to judgments: of some rows, all that the store holds of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

CASES = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))


@pytest.mark.parametrize("title", CASES)
def test_rows_become_these_judgments(imported, title):
    case = CASES[title]
    assert told(imported, imported(case["kind"], case["rows"])) == case["told"]


def told(imported, tally):
    """Return what an import says, and all that the store made of its rows, but what is empty."""
    judgments = [
        {"unit": unit, "judge": judge, "repeat": repeat, **_judgment(one)}
        for (unit, judge, repeat), one in imported.judgments.items()
    ]
    said = {name: value for name, value in tally.json().items() if name not in ("run", "name")}
    said["judgments"], said["bodies"] = [_filled(one) for one in judgments], imported.bodies
    return json.loads(json.dumps(said))


def _filled(values):
    return {name: value for name, value in values.items() if value not in (None, "", [], ())}


def _judgment(one):
    names = ("output", "reason", "detail", "flags")
    passes = [
        _filled({"problems": len(each.problems)} | {name: getattr(each, name) for name in _PASS})
        for each in one.passes
    ]
    evidence = [[each.dimension, each.start, each.end, each.match] for each in one.evidence]
    told = {name: getattr(one, name) for name in names}
    return told | {"passes": passes, "evidence": evidence}


_PASS = ("order", "winner", "preference", "marks")
