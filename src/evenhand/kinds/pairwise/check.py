"""The pairwise contract applied to one reply: what it says of its two slots, or the breaches.

The output is in the terms the judge used: `A` is the candidate it saw first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from evenhand import jsontext
from evenhand.errors import quoted
from evenhand.judgment import Problem, Reason
from evenhand.kinds.check import Checked, Inspection
from evenhand.kinds.pairwise.form import MARKS, WINNERS
from evenhand.kinds.pairwise.table import (
    Ambiguous,
    Broken,
    LineReading,
    TableReply,
    UnknownHeader,
    UnreadCell,
    header,
    nearest_line,
    prose_of,
    read_reply,
)
from evenhand.kinds.pairwise.verdict import (
    SETTLINGS,
    CriterionReply,
    PairReply,
    PairVerdict,
)
from evenhand.kinds.phrases import guesses_source, join_reasons, opens_with_refusal
from evenhand.kinds.protocol import Words
from evenhand.kinds.reply import JudgedText, Unreadable, read, without_thinking

_ASKED = ("criteria", "explanation", "winner")
_INNER = ("first_meets", "second_meets", "comment", "mark")
_SETTLED = ("pair_id", "winner", "criteria")
_VERDICT = ("candidates", "settled", "rounds", "unstable", "notes", "meta", "odds", "preference")
_BESIDE = (*_VERDICT, "judge", "repeat")
NOTES_TELL = 24
"""Shorter notes may be alike by chance."""


def check_reply(
    text: str | bytes,
    criteria: Sequence[str],
    words: Words,
    finish: str = "stop",
    *,
    topic: str = "",
    judged: JudgedText | None = None,
    is_compact: bool = False,
    tables: bool = False,
    elsewhere: bool = False,
) -> Checked[PairReply]:
    """Hold one reply to the contract. A compact form asks for marks alone; `tables` says that the
    prompt asked for a verdict-table line; a reply made `elsewhere` may be a line too, and an object
    is then held to the whole form. What the topic speaks of is no guess at a source."""
    inner = ("mark",) if is_compact or tables else _INNER
    check = _Check(words, criteria, inner, topic, is_line=tables, has_reasons=not is_compact)
    judged = judged or JudgedText()
    if not check.is_whole(finish):
        return check.done(None)
    reading = read(text)
    if isinstance(reading, Unreadable):
        line = check.line_instead(reading, text, judged, tables=tables or elsewhere)
        return check.done(None if line is None else check.table(line, tables or elsewhere))
    if check.is_copied(reading, judged):
        return check.done(None)
    if reading.wrapped:
        check.fix("unwrapped", "")
    value = _in_asked_form(reading.value, criteria) if tables else reading.value
    return check.done(check.reply(value))


def _in_asked_form(value: dict[str, Any], criteria: Sequence[str]) -> dict[str, Any]:
    """A reply in the form of a settled verdict, or of a table's columns, in the form asked for."""
    rest = {name: part for name, part in value.items() if name not in (*_SETTLED, *_BESIDE)}
    marks = value.get("criteria")
    if marks is None:
        marks = {c: rest.pop(c) for c in criteria if c in rest}
    if isinstance(marks, dict):
        cells = cast("dict[str, Any]", marks).items()
        marks = {c: {"mark": cell} if isinstance(cell, str) else cell for c, cell in cells}
    explanation = {"explanation": value["explanation"]} if "explanation" in value else {}
    notes = {"notes": value["notes"]} if "notes" in value else {}
    winner = {"winner": value["winner"]} if "winner" in value else {}
    return {"criteria": marks, **rest, **(explanation or notes), **winner}


def check_verdict(
    value: dict[str, Any], criteria: Sequence[str], words: Words
) -> Checked[PairVerdict]:
    """What is wrong with a settled verdict in the form that an export has it."""
    check = _Check(words, criteria, ())
    check.keys(value, _SETTLED, "", allowed=_BESIDE)
    check.one_of(value, "winner", (*WINNERS, "uncertain"), "")
    check.beside(value)
    marks = check.object_at(value.get("criteria", {}), "criteria") or {}
    # Votes made elsewhere name a winner and need not say by what.
    check.keys(marks, criteria if marks else (), "criteria.")
    for name in marks:
        check.one_of(marks, name, MARKS, "criteria.", kind="mark_unknown")
    return check.done(None)


class _Check(Inspection):
    def __init__(
        self,
        words: Words,
        criteria: Sequence[str],
        inner: Sequence[str],
        topic: str = "",
        *,
        is_line: bool = False,
        has_reasons: bool = False,
    ) -> None:
        super().__init__(words)
        self.criteria, self.inner, self.topic = criteria, inner, topic
        self.is_line, self.has_reasons = is_line, has_reasons

    def reply(self, value: dict[str, Any]) -> PairReply:
        """The reply's object, every part of it there."""
        if "pair_id" in value:
            # The judge never saw one.
            self.fix("meta", "pair_id")
        # Where the prompt asked for a line, notes stand for the explanation, and may be left out.
        name = "notes" if self.is_line and "explanation" not in value else "explanation"
        due = tuple(key for key in _ASKED if not (self.is_line and key == "explanation"))
        self.keys(value, due, "", allowed=("pair_id", name))
        explanation = value.get(name, "")
        if self.typed(explanation, str, "text", name) and name != "notes" and name in value:
            self._reason(explanation, name)
        criteria = self._criteria(value.get("criteria", {}))
        reply = PairReply(criteria, explanation, self._choice(value, "winner", WINNERS, ""))
        self._remarks(reply)
        return reply

    def line_instead(
        self, reading: Unreadable, text: str | bytes, judged: JudgedText, *, tables: bool
    ) -> LineReading | None:
        """The judge's verdict-table line in a reply without an object; where there is none, what is
        wrong is noted."""
        is_closed = reading.code == "ambiguous" or reading.kind == "bad_text"
        if isinstance(text, bytes) or is_closed:
            self.unreadable(reading)
            return None
        line = read_reply(text, self.criteria, judged)
        may_be_near = tables and reading.kind == "not_json"
        if line is None and may_be_near:
            line = nearest_line(text, self.criteria)
        if line is None and may_be_near:
            self.breach("not_in_form", "not_json")
        elif line is None or (reading.kind == "prose_around" and not tables):
            self.unreadable(reading)
        elif reading.kind == "prose_around" and not _has_braces(line, text):
            self.breach("two_verdicts", "ambiguous")
        elif self.is_own(line, text, judged):
            return line
        return None

    def is_own(self, line: LineReading, text: str, judged: JudgedText) -> bool:
        """Whether a line is the judge's: not one that it shows while it refuses, or quotes from a
        candidate."""
        spoken, prose = without_thinking(text) or "", prose_of(text)
        if opens_with_refusal(spoken):
            self.breach("refused", "refused")
            return False
        if not isinstance(line, TableReply):
            return True
        is_telling = any(map(str.isalnum, prose)) or len(line.notes or "") >= NOTES_TELL
        if is_telling and judged.holds_line(line.text):
            self.breach("copied", "ambiguous")
            return False
        return True

    def _reason(self, text: str, path: str) -> None:
        if self.has_reasons:
            self.reason(text, path)

    def _remarks(self, reply: PairReply) -> None:
        """Flag what contradicts itself, and guesses at who wrote an answer."""
        for name, criterion in reply.criteria.items():
            if _is_against(criterion):
                self.flags.append(f"mark_contradicts:{name}")
        comments = [criterion.comment for criterion in reply.criteria.values()]
        texts = [text for text in (reply.explanation, *comments) if isinstance(text, str)]
        reasons = join_reasons(texts)
        if guesses_source(reasons, self.topic):
            self.flags.append("guesses_source")

    def beside(self, value: dict[str, Any]) -> None:
        """What a settled verdict may hold beside its winner and marks."""
        for name, kind, called in (
            ("notes", str, "text"),
            ("judge", str, "text"),
            ("meta", dict, "object"),
            ("odds", dict, "object"),
        ):
            if name in value:
                self.typed(value[name], kind, called, name)
        candidates = value.get("candidates", ["", ""])
        if not _is_texts(candidates) or len(candidates) != 2:
            self.wrong("candidates", value, "must be a list of two texts")
        for name in ("rounds", "repeat"):
            if not _is_count(value.get(name, 0)):
                self.wrong(name, value, "must be a whole number, 0 or more")
        if not _is_share(value.get("preference", 0)):
            self.wrong("preference", value, "must be a number from 0 to 1")
        if not self._is_some_criteria(value.get("unstable", [])):
            self.wrong("unstable", value, f"must be a list of some of {', '.join(self.criteria)}")
        self._settled(value)

    def _is_some_criteria(self, value: object) -> bool:
        return _is_texts(value) and set(cast("list[str]", value)) <= set(self.criteria)

    def _settled(self, value: dict[str, Any]) -> None:
        if "settled" not in value:
            return
        settled, winner = value["settled"], value.get("winner")
        code: Reason = "out_of_range" if isinstance(settled, str) else "schema"
        if settled not in SETTLINGS:
            self.wrong("settled", value, f"must be one of: {', '.join(SETTLINGS)}", code)
        elif "winner" in value and (settled == "uncertain") != (winner == "uncertain"):
            self.wrong("settled", value, f"contradicts the winner {jsontext.dump(winner)}", code)

    def wrong(self, name: str, value: dict[str, Any], why: str, code: Reason = "schema") -> None:
        """A breach that no judge is ever told of, so in English alone."""
        written = quoted(jsontext.dump(value[name]))[1:-1]
        self.problems.append(Problem(code, name, f"{name}: {written} {why}."))

    def table(self, line: LineReading, tables: bool) -> PairReply | None:
        """A verdict-table line in the place of the object."""
        if not tables:
            self.breach("table_instead", "not_json")
        elif isinstance(line, Ambiguous):
            self.breach("two_verdicts", "ambiguous")
        elif isinstance(line, Broken):
            for cell in line.cells:
                self._unread(cell)
        elif isinstance(line, UnknownHeader):
            allowed = header(self.criteria)
            self.breach("header_unknown", "schema", value=line.text.strip(), allowed=allowed)
        else:
            return self._of_line(line)
        return None

    def _unread(self, cell: UnreadCell) -> None:
        if not cell.text:
            self._blank(cell.column)
            return
        written, allowed = jsontext.dump(cell.text), ", ".join(cell.allowed)
        self.breach("cell_unknown", "out_of_range", cell.column, value=written, allowed=allowed)

    def _blank(self, column: str) -> None:
        if column == "winner":
            allowed = ", ".join(WINNERS)
            self.breach("winner_unknown", "schema", column, value='""', allowed=allowed)
        else:
            self.breach("cell_blank", "schema", column, allowed=", ".join(MARKS))

    def _of_line(self, line: TableReply) -> PairReply:
        for name, word in (("winner", line.winner), *line.marks.items()):
            if word is None:
                self._blank(name)
        for name in line.mended:
            self.fix("unwrapped", name)
        criteria = {c: CriterionReply(None, None, None, line.marks[c]) for c in self.criteria}
        reply = PairReply(criteria, line.notes or "", line.winner)
        self._remarks(reply)
        return reply

    def _criteria(self, value: object) -> dict[str, CriterionReply]:
        criteria = self.object_at(value, "criteria")
        if criteria is None:
            return {}
        self.keys(criteria, self.criteria, "criteria.")
        return {
            c: self._criterion(criteria[c], f"criteria.{c}") for c in self.criteria if c in criteria
        }

    def _criterion(self, value: object, path: str) -> CriterionReply:
        criterion = self.object_at(value, path)
        if criterion is None:
            return CriterionReply(None, None, None, None)
        if _is_whole(criterion):
            self._reason(criterion["comment"], f"{path}.comment")
            return CriterionReply(**criterion)
        self.keys(criterion, self.inner, f"{path}.", allowed=_INNER)
        for name, kind, called in (
            ("first_meets", bool, "boolean"),
            ("second_meets", bool, "boolean"),
            ("comment", str, "text"),
        ):
            if name in criterion:
                self.typed(criterion[name], kind, called, f"{path}.{name}")
        if isinstance(criterion.get("comment"), str):
            self._reason(criterion["comment"], f"{path}.comment")
        mark = self._choice(criterion, "mark", MARKS, f"{path}.")
        first, second, comment = (criterion.get(name) for name in _INNER[:-1])
        return CriterionReply(first, second, comment, mark)

    def _choice(self, value: dict[str, Any], name: str, allowed: Sequence[str], path: str) -> Any:
        """The value under a name, which must be one of some, in whatever case."""
        chosen = value.get(name)
        spelled = chosen.strip().casefold() if isinstance(chosen, str) else None
        for word in allowed:
            if word.casefold() == spelled and word != chosen:
                self.fix("unwrapped", f"{path}{name}")
                return word
        return self.one_of(value, name, allowed, path)

    def one_of(
        self,
        value: dict[str, Any],
        name: str,
        allowed: Sequence[str],
        path: str,
        kind: str = "",
    ) -> Any:
        """The value under a name, which must be one of some."""
        choice = value.get(name)
        if name in value and choice not in allowed:
            self.breach(
                kind or f"{name}_unknown",
                "out_of_range" if isinstance(choice, str) else "schema",
                f"{path}{name}",
                value=jsontext.dump(choice),
                allowed=", ".join(allowed),
            )
        return choice


def _has_braces(line: LineReading, text: str) -> bool:
    """Return True if all braces of a reply stand in its one line: an object beside it may be
    another verdict."""
    return isinstance(line, TableReply) and "{" not in text.replace(line.text, "")


def _is_against(criterion: CriterionReply) -> bool:
    """Whether a mark is not what its own yes and no say: the one that alone meets it is better."""
    if criterion.first_meets is None or criterion.first_meets == criterion.second_meets:
        return False
    return criterion.mark != ("A+" if criterion.first_meets else "B+")


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_whole(criterion: dict[str, Any]) -> bool:
    """Whether there is nothing to say about a criterion: nearly always."""
    return (
        len(criterion) == len(_INNER)
        and criterion.get("mark") in MARKS
        and type(criterion.get("first_meets")) is type(criterion.get("second_meets")) is bool
        and type(criterion.get("comment")) is str
    )
