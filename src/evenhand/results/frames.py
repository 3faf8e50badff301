"""Judgments as they are worked with in Python: a list, and a table with a column per figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any

from evenhand.errors import UsageError
from evenhand.judgment import Judgment
from evenhand.kinds.kind import Scoring, Voting
from evenhand.notebook import html_table, paragraph
from evenhand.observation import UNCERTAIN, read_observations
from evenhand.results.units import judge_name
from evenhand.runs.recorded import Recorded
from evenhand.store.archive import Archive
from evenhand.store.ports import StoredUnit

ROWS_SHOWN = 20

FlatRows = Callable[[], list[dict[str, Any]]]


class Frame(list[Mapping[str, Any]]):
    """Rows, which may be had as a table of pandas, polars or Arrow."""

    def _flat(self) -> list[dict[str, Any]]:
        return [dict(row) for row in self]

    def to_pandas(self) -> Any:
        """Return a DataFrame of pandas; raise UsageError where it is not installed."""
        return _package("pandas").DataFrame(self._flat())

    def to_polars(self) -> Any:
        """Return a DataFrame of polars; raise UsageError where it is not installed."""
        return _package("polars").DataFrame(self._flat(), infer_schema_length=None)

    def to_arrow(self) -> Any:
        """Return an Arrow table; raise UsageError where pyarrow is not installed."""
        rows = self._flat()
        names = list(dict.fromkeys(name for row in rows for name in row))
        return _package("pyarrow").table({name: [row.get(name) for row in rows] for name in names})

    def _repr_html_(self) -> str:
        rows = self._flat()[:ROWS_SHOWN]
        names = list(dict.fromkeys(name for row in rows for name in row))
        table = html_table(names, [[row.get(name) for name in names] for row in rows])
        rest = len(self) - len(rows)
        return table + (paragraph(f"and {rest:,} more") if rest > 0 else "")


class Judgments(Frame):
    """Every judgment of a run with all that is known about it, as `evenhand export --full`; the
    methods give a table with one row per judgment and one column per score, mark or label."""

    def __init__(self, rows: Iterable[Mapping[str, Any]], flat: FlatRows) -> None:
        super().__init__(rows)
        self._flat_rows = flat

    def _flat(self) -> list[dict[str, Any]]:
        return self._flat_rows()


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise UsageError(f"{name} is not installed", advice=f"pip install {name}") from None


def flat_rows(store: Archive, recorded: Recorded) -> Iterator[dict[str, Any]]:
    """Yield one row per judgment: who judged what, the fields of the unit as `meta.*`, and what was
    found, each figure in a column of its own. Every row has the same first columns."""
    for unit, stored in store.judgments(recorded.scope):
        judgment = recorded.judgment(stored)
        yield {
            "unit": unit.id,
            "judge": judge_name(recorded, stored),
            "repeat": stored.repeat,
            "status": judgment.status,
            "reason": judgment.reason,
            **_figures(recorded.kind.measure, unit, judgment),
            "flags": " ".join(judgment.flags),
        }


def observation_rows(store: Archive, recorded: Recorded) -> Iterator[dict[str, Any]]:
    """Yield the rows of the view `observations` that are about a run: what its judgments say in
    numbers, votes from both sides."""
    for row in store.observations(recorded.scope):
        if row.status is None:
            continue
        judged = {"judge": recorded.names[row.judge], "repeat": row.repeat}
        for seen in read_observations(row.observations):
            sides = [(row.subject, row.opponent, seen.position, seen.value)]
            if row.opponent:
                position = None if seen.position is None else 3 - seen.position
                value = seen.value
                if value is not None and seen.measure != UNCERTAIN:
                    value = 1 - value
                sides.append((row.opponent, row.subject, position, value))
            for subject, opponent, position, value in sides:
                yield {
                    "run": recorded.id,
                    "unit": row.unit,
                    **judged,
                    "pass": seen.pass_number,
                    "position": position,
                    "subject": subject,
                    "opponent": opponent,
                    "measure": seen.measure,
                    "value": value,
                    "points": seen.points,
                    "max_points": seen.max_points,
                }


def _figures(measure: Scoring | Voting, unit: StoredUnit, judgment: Judgment) -> dict[str, Any]:
    if isinstance(measure, Voting):
        return _vote(measure, unit, judgment)
    figures = _labels(measure.unit(unit.body).fields)
    scored = measure.judgment(judgment)
    if scored is None:
        return figures
    figures |= {f"score.{name}": score for name, score in scored.scores.items()}
    if measure.full_marks is not None and scored.total is not None:
        figures["total"] = scored.total * measure.full_marks
    if scored.tags:
        figures["tags"] = " ".join(scored.tags)
    if measure.has_critical_fails:
        figures["critical_fail"] = scored.is_critical
    if measure.has_confidence:
        figures["confidence"] = scored.confidence
    return figures


def _vote(measure: Voting, unit: StoredUnit, judgment: Judgment) -> dict[str, Any]:
    pair, vote = measure.unit(unit.body), measure.judgment(judgment)
    first, second = pair.candidates
    names = {"A": first, "B": second}
    return {
        **_labels(pair.fields),
        "topic": pair.topic,
        "first": first,
        "second": second,
        "winner": names.get(vote.winner or "", vote.winner),
        "settled": vote.settled or None,
        **{f"mark.{name}": mark for name, mark in vote.marks.items()},
    }


def _labels(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name if name == "task_name" else f"meta.{name}": value
        for name, value in fields.items()
        if not isinstance(value, dict | list)
    }
