"""Judgments as they are worked with in Python: a list, and a table with a column per figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from evenhand.errors import UsageError
from evenhand.judgment import Judgment
from evenhand.kinds.blocks import ShownUnit
from evenhand.kinds.kind import Scoring, Voting
from evenhand.notebook import Shown, ShownTable, text_table
from evenhand.observation import (
    CHECK,
    OVERALL,
    PASSED,
    UNCERTAIN,
    ScoredUnit,
    Voted,
    VotedUnit,
    read_observations,
)
from evenhand.report.terminal.tables import cut
from evenhand.results.units import judge_name, letter_texts, passing_figures, question_of
from evenhand.runs.recorded import Recorded
from evenhand.store.archive import Archive
from evenhand.words import Sentence

ROWS_SHOWN = 20
REASON_SHOWN = 100
"""Columns of a terminal for the first reason of a judgment."""
_BRIEF = (OVERALL, "total", PASSED, "winner", "settled")

FlatRows = Callable[[], list[dict[str, Any]]]


class Frame(Shown, list[Mapping[str, Any]]):
    """Rows, which may be had as a table of pandas."""

    def _flat(self) -> list[dict[str, Any]]:
        return [dict(row) for row in self]

    def to_pandas(self) -> Any:
        """Return a DataFrame of pandas; raise UsageError where it is not installed."""
        try:
            return import_module("pandas").DataFrame(self._flat())
        except ImportError:
            raise UsageError(Sentence("results.no_pandas")) from None

    def _brief(self) -> list[dict[str, Any]]:
        """Return rows for a screen, without what is the same in all of them."""
        rows, differ = self._flat(), set[str]()
        for row in rows:
            differ |= {name for name in row if row[name] != rows[0].get(name)}
        return [{name: row[name] for name in row if name in differ or not rows[1:]} for row in rows]

    def _tables(self) -> Iterator[ShownTable]:
        yield self._table(self._flat())

    def __repr__(self) -> str:
        return text_table(self._table(self._brief()))

    def _table(self, rows: Sequence[Mapping[str, Any]]) -> ShownTable:
        rows = rows[:ROWS_SHOWN]
        names = list(dict.fromkeys(name for row in rows for name in row))
        rest = len(self) - len(rows)
        notes = [Sentence("results.more_rows", n=rest)] if rest > 0 else []
        return ShownTable(names, [[row.get(name) for name in names] for row in rows], notes=notes)


class Judgments(Frame):
    """Every judgment of a run with all that is known about it, as `evenhand export --full`;
    `to_pandas` gives one row per judgment and one column per score, mark, reason or label."""

    def __init__(self, rows: Iterable[Mapping[str, Any]], flat: FlatRows) -> None:
        super().__init__(rows)
        self._flat_rows = flat

    def _flat(self) -> list[dict[str, Any]]:
        return self._flat_rows()

    def _brief(self) -> list[dict[str, Any]]:
        """Return the figures of each judgment with its first reason."""
        return list(map(_brief_row, self._flat()))


def _brief_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a flat row that fit a screen."""
    why = [f"{row['reason']}: {row['detail']}"] if row["reason"] else []
    why += [text for name, text in row.items() if name.startswith("reason.") and text]
    figures = {
        name.removeprefix("score."): value
        for name, value in row.items()
        if name.startswith("score.") or name in _BRIEF
    }
    return {"unit": row["unit"], **figures, "reason": cut(next(iter(why), ""), REASON_SHOWN)}


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
            "detail": judgment.detail,
            **_labels(shown.measured.fields),
            "question": question_of(shown.unit),
            **_figures(kind.measure, shown, judgment),
            **_outcome(stored.text.observations),
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
    texts, unit = letter_texts(shown.unit), shown.measured
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
    if scored.tags:
        figures["tags"] = " ".join(scored.tags)
    if measure.has_critical_fails:
        figures["critical_fail"] = scored.is_critical
    if measure.has_confidence:
        figures["confidence"] = scored.confidence
    return figures


def _outcome(observations: str) -> dict[str, Any]:
    """Return the whole as a share of the scale, and True or False for a pass and for each check by
    code, where they are known."""
    values = {each.measure: each.value for each in read_observations(observations)}
    passing = passing_figures(observations).items()
    whole = {OVERALL: values[OVERALL]} if OVERALL in values else {}
    return whole | {name.replace(CHECK, "check."): is_met for name, is_met in passing}


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
