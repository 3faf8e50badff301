"""Judgments as they are worked with in Python: a list, and a table with a column per figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any

from evenhand.errors import UsageError
from evenhand.judgment import Judgment
from evenhand.kinds.blocks import ShownUnit
from evenhand.kinds.kind import Scoring, Voting
from evenhand.notebook import html_table, paragraph
from evenhand.observation import (
    UNCERTAIN,
    ScoredUnit,
    Voted,
    VotedUnit,
    read_observations,
)
from evenhand.results.units import judge_name, question_of, texts_of
from evenhand.runs.recorded import Recorded
from evenhand.store.archive import Archive
from evenhand.words import Sentence

ROWS_SHOWN = 20

FlatRows = Callable[[], list[dict[str, Any]]]


class Frame(list[Mapping[str, Any]]):
    """Rows, which may be had as a table of pandas."""

    def _flat(self) -> list[dict[str, Any]]:
        return [dict(row) for row in self]

    def to_pandas(self) -> Any:
        """Return a DataFrame of pandas; raise UsageError where it is not installed."""
        try:
            return import_module("pandas").DataFrame(self._flat())
        except ImportError:
            raise UsageError(Sentence("results.no_pandas")) from None

    def _repr_html_(self) -> str:
        rows = self._flat()[:ROWS_SHOWN]
        names = list(dict.fromkeys(name for row in rows for name in row))
        table = html_table(names, [[row.get(name) for name in names] for row in rows])
        rest = len(self) - len(rows)
        return table + (paragraph(Sentence("results.more_rows", n=rest)) if rest > 0 else "")


class Judgments(Frame):
    """Every judgment of a run with all that is known about it, as `evenhand export --full`;
    `to_pandas` gives one row per judgment and one column per score, mark, reason or label."""

    def __init__(self, rows: Iterable[Mapping[str, Any]], flat: FlatRows) -> None:
        super().__init__(rows)
        self._flat_rows = flat

    def _flat(self) -> list[dict[str, Any]]:
        return self._flat_rows()


def flat_rows(store: Archive, recorded: Recorded) -> Iterator[dict[str, Any]]:
    """Yield one row per judgment: who judged what, the fields of the unit as `meta.*`, its texts,
    and what was found, each figure in a column of its own. Every row has the same first columns."""
    kind = recorded.kind
    for unit, stored in store.judgments(recorded.scope):
        judgment = recorded.judgment(stored)
        shown = kind.present(kind.load(unit.body), [judgment])
        yield {
            "unit": unit.id,
            "judge": judge_name(recorded, stored),
            "repeat": stored.repeat,
            "status": judgment.status,
            "reason": judgment.reason,
            **_labels(shown.measured.fields),
            "question": question_of(shown.unit),
            **_figures(kind.measure, shown, judgment),
            **_reasons(shown),
            "flags": " ".join(judgment.flags),
        }


def observation_rows(store: Archive, recorded: Recorded) -> Iterator[dict[str, Any]]:
    """Yield the rows of the view `observations` that are about a run, votes from both sides. The
    view itself would have to be read in one piece, or once for every page of units."""
    for row in store.observations(recorded.scope):
        if row.status is None:
            continue
        for seen in read_observations(row.observations):
            same = {
                "run": recorded.id,
                "unit": row.unit,
                "judge": recorded.names[row.judge],
                "repeat": row.repeat,
                "pass": seen.pass_number,
                "position": seen.position,
                "subject": row.subject,
                "opponent": row.opponent,
                "measure": seen.measure,
                "value": seen.value,
                "points": seen.points,
                "max_points": seen.max_points,
            }
            yield same
            if row.opponent:
                value = seen.value
                if value is not None and seen.measure != UNCERTAIN:
                    value = 1 - value
                yield same | {
                    "position": None if seen.position is None else 3 - seen.position,
                    "subject": row.opponent,
                    "opponent": row.subject,
                    "value": value,
                }


def _labels(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name if name == "task_name" else f"meta.{name}": value
        for name, value in fields.items()
        if not isinstance(value, dict | list)
    }


def _figures(measure: Scoring | Voting, shown: ShownUnit, judgment: Judgment) -> dict[str, Any]:
    """Return the answers with their lengths, and what the verdict says."""
    texts, unit = {text.short: text.text for text in texts_of(shown.unit)}, shown.measured
    if isinstance(measure, Voting):
        assert isinstance(unit, VotedUnit), "votes are on pairs"
        return _vote(measure.judgment(judgment), unit, texts)
    assert isinstance(unit, ScoredUnit), "scores are of samples and answers"
    figures: dict[str, Any] = {"answer": texts.get("A"), "length": unit.length}
    scored = measure.judgment(judgment)
    if scored is None:
        return figures
    figures |= {f"score.{name}": score for name, score in scored.scores.items()}
    if measure.full_marks is not None and scored.total is not None:
        figures["total"] = scored.total * measure.full_marks
    if scored.passed is not None:
        figures["pass"] = scored.passed
    if scored.tags:
        figures["tags"] = " ".join(scored.tags)
    if measure.has_critical_fails:
        figures["critical_fail"] = scored.is_critical
    if measure.has_confidence:
        figures["confidence"] = scored.confidence
    return figures


def _vote(vote: Voted, pair: VotedUnit, texts: Mapping[str, str]) -> dict[str, Any]:
    figures: dict[str, Any] = {"topic": pair.topic}
    sides = zip(("first", "second"), "AB", pair.candidates, pair.lengths, strict=True)
    for place, side, name, length in sides:
        figures[place] = name
        figures |= {f"{place}_answer": texts.get(side), f"{place}_length": length}
    winners = dict(zip("AB", pair.candidates, strict=True))
    return {
        **figures,
        "winner": winners.get(vote.winner or "", vote.winner),
        "settled": vote.settled or None,
        **{f"mark.{name}": mark for name, mark in vote.marks.items()},
    }


def _reasons(shown: ShownUnit) -> dict[str, str]:
    """Return the judge's words and quotes about each dimension or criterion, or the winner."""
    cells: dict[str, str] = {}
    for reason in shown.judgments[0].reasons:
        cells[f"reason.{reason.about}"] = reason.text
        if reason.quotes:
            cells[f"quotes.{reason.about}"] = "\n".join(reason.quotes)
    return cells
