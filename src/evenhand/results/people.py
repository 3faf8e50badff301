"""The judgments of a run as a table for people: a row per judgment, failures among them, with the
question, the answers, what was decided and why, in the language of the run.

The table is read twice from the store, once for its columns: a column that would be empty in every
row is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from evenhand import jsontext
from evenhand.data.sheet import Sheet, SheetColumn, Value
from evenhand.judgment import Judgment
from evenhand.kinds.blocks import Reason, ShownUnit
from evenhand.kinds.kind import Scoring
from evenhand.observation import VotedUnit
from evenhand.report.html.page import LANGUAGES, Words, words
from evenhand.report.html.units import flag_gloss
from evenhand.report.outcome import unit_outcome
from evenhand.results.units import Selector, judge_name, names_of, question_of, texts_of
from evenhand.runs.recorded import Recorded
from evenhand.store.ports import Archive, StoredJudgment, StoredUnit

NARROW, MIDDLE, WIDE, TEXT = 10, 18, 28, 60
"""Widths of columns, in characters."""
DIGITS = 2
"""After the point: what was rescaled has more, which say nothing."""
_UNIT, _FIELDS, _ANSWERS, _JUDGE, _RESULT, _DIMENSIONS, _MORE = range(7)
_WINNER = "winner"


class _Column(NamedTuple):
    """A column by what it stands among, its header and its width."""

    group: int
    header: str
    width: int


_Row = dict[_Column, Value]


def people_sheet(store: Archive, run: Recorded, is_wanted: Selector) -> Sheet:
    """Return the table of a run, or of those of its judgments that are wanted."""
    maker = _RowMaker(run)
    columns: dict[_Column, None] = {}
    for row in maker.rows(store, is_wanted):
        columns |= dict.fromkeys(column for column, value in row.items() if value not in (None, ""))
    order = sorted(columns, key=lambda column: column.group)
    return Sheet(
        columns=[SheetColumn(column.header, column.width) for column in order],
        rows=([row.get(c) for c in order] for row in maker.rows(store, is_wanted)),
        language=maker.say.language,
    )


class _RowMaker:
    """Rows of one run, in its language."""

    def __init__(self, run: Recorded) -> None:
        language = run.manifest.judging.language
        self.run = run
        self.say: Words = words(language if language in LANGUAGES else "en")
        self.names: Mapping[str, str] = names_of(run, self.say.language)
        self.tags = run.tag_names(self.say.language)
        self.several_repeats = any(group.repeats > 1 for group in run.judge_groups)

    def rows(self, store: Archive, is_wanted: Selector) -> Iterator[_Row]:
        for unit, stored in store.judgments(self.run.scope):
            judgment = self.run.judgment(stored)
            if is_wanted(judgment):
                yield self._row(unit, stored, judgment)

    def _row(self, unit: StoredUnit, stored: StoredJudgment, judgment: Judgment) -> _Row:
        shown = self.run.kind.present(self.run.kind.load(unit.body), [judgment])
        row: _Row = {
            self._column(_UNIT, "unit", MIDDLE): unit.id,
            self._column(_UNIT, "question", TEXT): question_of(shown.unit),
        }
        for name, value in shown.measured.fields.items():
            text = value if isinstance(value, str) else jsontext.as_text(value)
            row[_Column(_FIELDS, name, MIDDLE)] = None if value is None else text
        row |= self._answers(shown)
        row[self._column(_JUDGE, "judge", WIDE)] = judge_name(self.run, stored)
        if self.several_repeats:
            row[self._column(_JUDGE, "repeat", NARROW)] = stored.repeat + 1
        return row | self._result(shown, judgment) | self._dimensions(shown, judgment)

    def _column(self, group: int, key: str, width: int, **values: str) -> _Column:
        return _Column(group, self.say(f"export.{key}", **values), width)

    def _answers(self, shown: ShownUnit) -> _Row:
        texts = {text.short: text.text for text in texts_of(shown.unit) if text.short != "Q"}
        if not isinstance(shown.measured, VotedUnit):
            return {self._column(_ANSWERS, "answer", TEXT): texts.get("A", "")}
        row: _Row = {}
        for side, name in zip("AB", shown.measured.candidates, strict=True):
            row[self._column(_ANSWERS, "candidate", MIDDLE, side=side)] = name
            row[self._column(_ANSWERS, "candidate_answer", TEXT, side=side)] = texts.get(side, "")
        return row

    def _result(self, shown: ShownUnit, judgment: Judgment) -> _Row:
        """Return the cells for the result, and for the reason where there is none."""
        outcome = unit_outcome(self.run.kind, shown.measured, [("", judgment)])
        row: _Row = {
            self._column(_RESULT, "result", MIDDLE): self.say.gloss("verdict", outcome.codes[0]),
            self._column(_RESULT, "why", WIDE): self._why(judgment),
            self._column(_RESULT, "total", NARROW): _rounded(outcome.total),
        }
        if outcome.winner is not None:
            names = dict(zip("AB", outcome.candidates, strict=True))
            row[self._column(_RESULT, "winner", MIDDLE)] = names.get(
                outcome.winner, self.say.gloss("verdict", outcome.winner)
            )
        row[self._column(_MORE, "tags", MIDDLE)] = ", ".join(
            f"{tag} {self.tags.get(tag, '')}".strip() for tag in outcome.tags
        )
        sure = [self.say.gloss("confidence", code) for code in outcome.confidence]
        row[self._column(_MORE, "confidence", NARROW)] = ", ".join(sure)
        row[self._column(_MORE, "notes", WIDE)] = self._notes(judgment)
        flags = [flag_gloss(self.say, flag) or flag for flag in judgment.flags]
        row[self._column(_MORE, "flags", WIDE)] = "; ".join(flags)
        return row

    def _why(self, judgment: Judgment) -> str:
        if judgment.reason is None:
            return judgment.detail
        return f"{self.say.gloss('reason', judgment.reason)} ({judgment.detail})"

    def _notes(self, judgment: Judgment) -> str:
        measure = self.run.kind.measure
        scored = measure.judgment(judgment) if isinstance(measure, Scoring) else None
        return scored.notes if scored else ""

    def _dimensions(self, shown: ShownUnit, judgment: Judgment) -> _Row:
        """Score, evidence and reason of every dimension; of pairs the explanation first."""
        measure, row = self.run.kind.measure, _Row()
        scored = measure.judgment(judgment) if isinstance(measure, Scoring) else None
        scores = scored.scores if scored else {}
        for reason in shown.judgments[0].reasons:
            if isinstance(shown.measured, VotedUnit) and reason.about == _WINNER:
                row[self._column(_RESULT, "explanation", TEXT)] = reason.text
            elif scored is None or reason.about in scores:
                row |= self._dimension(reason, scores.get(reason.about))
            else:
                row[self._column(_RESULT, "critical", WIDE)] = reason.text
        return row

    def _dimension(self, reason: Reason, score: float | None) -> _Row:
        name = self.names.get(reason.about, "")
        says_more = name and name.casefold() != reason.about.casefold()
        title = f"{reason.about} · {name}" if says_more else reason.about
        mark = self.say.gloss("mark", reason.score) if score is None else _rounded(score)
        quotes = "\n".join(f"“{quote}”" for quote in reason.quotes)
        return {
            _Column(_DIMENSIONS, title, NARROW): mark,
            self._column(_DIMENSIONS, "evidence", WIDE, dimension=title): quotes,
            self._column(_DIMENSIONS, "reason", WIDE, dimension=title): reason.text,
        }


def _rounded(value: float | None) -> Value:
    if value is None:
        return None
    return int(value) if value == int(value) else round(value, DIGITS)
