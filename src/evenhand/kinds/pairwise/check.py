"""The pairwise contract applied to one reply: what it says of its two slots, or the problems.

The output is in the terms the judge used: `A` is the candidate it saw first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, TypeGuard

from msgspec import UNSET, Meta, ValidationError, convert

from evenhand import jsontext
from evenhand.errors import quoted
from evenhand.judgment import Problem, Reason
from evenhand.kinds.check import Checked, Inspection
from evenhand.kinds.pairwise.table import (
    Ambiguous,
    LineReading,
    TableReply,
    UnknownHeader,
    UnreadCell,
    header,
    read_reply,
    split_prose,
)
from evenhand.kinds.pairwise.verdict import (
    MARKS,
    OUTCOMES,
    SETTLINGS,
    WINNERS,
    CriterionReply,
    PairReply,
    PairVerdict,
)
from evenhand.kinds.phrases import guesses_source, join_reasons, opens_with_refusal
from evenhand.kinds.protocol import Words
from evenhand.kinds.reply import JudgedText, Unreadable, read, without_thinking

_ASKED = ("criteria", "explanation", "winner")
_INNER = {"first_meets": bool, "second_meets": bool, "comment": str, "mark": str}
_ONE_MEETS = ((True, False), (False, True))
_TYPES = {bool: "boolean", str: "text"}
_VERDICT = ("pair_id", "winner", "criteria")
NOTES_TELL = 24
"""Shorter notes may be alike by chance."""
_Count = Annotated[int, Meta(ge=0)]
_BESIDE: dict[str, Any] = {
    "notes": str,
    "judge": str,
    "meta": dict,
    "odds": dict,
    "candidates": tuple[str, str],
    "settled": str,
    "rounds": _Count,
    "repeat": _Count,
    "unstable": list[str],
    "preference": Annotated[float, Meta(ge=0, le=1)],
}
"""What a settled verdict may hold beside its pair, winner and marks."""


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
    is_external: bool = False,
) -> Checked[PairReply]:
    """Return what a reply says, or what is wrong with it. A compact form asks for marks alone;
    `tables` says that the prompt may ask for a verdict-table line; a reply from another tool may
    be a line too, and an object is then held to the whole form. A source that the topic speaks of
    is no guess."""
    check = _ReplyCheck(words, criteria, topic, judged or JudgedText())
    if not check.is_whole(finish):
        return check.done(None)
    reading = read(text)
    if isinstance(reading, Unreadable):
        return check.done(check.line(reading, text, tables=tables or is_external))
    if check.is_copied(reading, check.judged):
        return check.done(None)
    if reading.wrapped:
        check.fix("unwrapped", "")
    if tables:
        return check.done(check.table_object(reading.value))
    inner = ("mark",) if is_compact else tuple(_INNER)
    return check.done(check.reply_object(reading.value, inner, has_reasons=not is_compact))


class _PairCheck(Inspection):
    def __init__(self, words: Words, criteria: Sequence[str]) -> None:
        super().__init__(words)
        self.criteria = criteria

    def choice(
        self,
        value: dict[str, Any],
        name: str,
        allowed: Sequence[str],
        path: str,
        kind: str,
        *,
        is_exact: bool = False,
    ) -> Any:
        """Return the value under a name, which must be one of some words; unless code wrote it, in
        whatever case."""
        chosen = value.get(name)
        if name not in value or chosen in allowed:
            return chosen
        for word in () if is_exact else allowed:
            if isinstance(chosen, str) and chosen.strip().casefold() == word.casefold():
                self.fix("unwrapped", f"{path}{name}")
                return word
        code: Reason = "out_of_range" if isinstance(chosen, str) else "schema"
        about = {"value": jsontext.dump(chosen), "allowed": ", ".join(allowed)}
        self.breach(kind, code, f"{path}{name}", **about)
        return None


class _ReplyCheck(_PairCheck):
    def __init__(
        self, words: Words, criteria: Sequence[str], topic: str, judged: JudgedText
    ) -> None:
        super().__init__(words, criteria)
        self.topic, self.judged = topic, judged

    def reply_object(
        self, value: dict[str, Any], inner: Sequence[str], *, has_reasons: bool
    ) -> PairReply:
        """Return the reply that an object is; `inner` is due of each criterion."""
        if "pair_id" in value:
            self.fix("meta", "pair_id")  # The judge never saw one.
        self.keys(value, _ASKED, "", allowed=("pair_id",))
        explanation = value.get("explanation", "")
        is_text = self.typed(explanation, str, "text", "explanation")
        if is_text and "explanation" in value and has_reasons:
            self.reason(explanation, "explanation")
        criteria = self.object_at(value.get("criteria", {}), "criteria")
        if criteria is not None:
            self.keys(criteria, self.criteria, "criteria.")
        replies = {
            name: self._criterion(criteria[name], f"criteria.{name}", inner, has_reasons)
            for name in self.criteria
            if criteria and name in criteria
        }
        winner = self.choice(value, "winner", WINNERS, "", "winner_unknown")
        return self._flagged(PairReply(replies, explanation, winner))

    def _criterion(
        self, value: object, path: str, inner: Sequence[str], has_reasons: bool
    ) -> CriterionReply:
        criterion = self.object_at(value, path)
        if criterion is None:
            return CriterionReply()
        self.keys(criterion, inner, f"{path}.", allowed=tuple(_INNER))
        for name in ("first_meets", "second_meets", "comment"):
            if name in criterion:
                self.typed(criterion[name], _INNER[name], _TYPES[_INNER[name]], f"{path}.{name}")
        comment = criterion.get("comment")
        if isinstance(comment, str) and has_reasons:
            self.reason(comment, f"{path}.comment")
        mark = self.choice(criterion, "mark", MARKS, f"{path}.", "mark_unknown")
        return CriterionReply(
            criterion.get("first_meets"), criterion.get("second_meets"), comment, mark
        )

    def table_object(self, value: dict[str, Any]) -> PairReply:
        """Return the reply that an object is where the prompt may ask for a table: marks may stand
        under `criteria` or as columns, and the notes for the explanation, or be left out."""
        rest = {
            name: part
            for name, part in value.items()
            if name not in (*_BESIDE, *_VERDICT, "explanation")
        }
        marks = value.get("criteria")
        if marks is None:
            marks = {name: rest.pop(name) for name in self.criteria if name in rest}
        if isinstance(marks, dict):
            marks = {
                name: {"mark": mark} if isinstance(mark, str) else mark
                for name, mark in marks.items()
            }
        explanation = value.get("explanation", value.get("notes", ""))
        winner = {"winner": value["winner"]} if "winner" in value else {}
        asked = {"criteria": marks, "explanation": explanation, **winner, **rest}
        reply = self.reply_object(asked, ("mark",), has_reasons=False)
        if "pair_id" in value:
            self.fix("meta", "pair_id")
        if isinstance(value.get("explanation"), str):
            self.reason(value["explanation"], "explanation")
        for name, criterion in reply.criteria.items():
            if isinstance(criterion.comment, str):
                self.reason(criterion.comment, f"criteria.{name}.comment")
        return reply

    def line(self, reading: Unreadable, text: str | bytes, *, tables: bool) -> PairReply | None:
        """Return the reply that a verdict-table line is, in the place of an object."""
        is_closed = reading.code == "ambiguous" or reading.kind == "bad_text"
        line = None
        if not is_closed and not isinstance(text, bytes):
            line = read_reply(text, self.criteria)
        if line is None or (reading.kind == "prose_around" and not tables):
            if tables and reading.kind == "not_json":
                self.breach("not_in_form", "not_json")
            else:
                self.unreadable(reading)
            return None
        if not tables:
            self.breach("table_instead", "not_json")
            return None
        return self._read_line(line, str(text), reading.kind == "prose_around")

    def _read_line(self, line: LineReading, text: str, has_object: bool) -> PairReply | None:
        if opens_with_refusal(without_thinking(text) or ""):
            self.breach("refused", "refused")
        elif isinstance(line, UnknownHeader):
            allowed = header(self.criteria)
            self.breach("header_unknown", "schema", value=line.text, allowed=allowed)
        elif isinstance(line, Ambiguous) or (has_object and not _holds_braces(line, text)):
            self.breach("two_verdicts", "ambiguous")
        elif line.unread:
            for cell in line.unread:
                self._unread(cell)
        elif self._is_copied_line(line, text):
            self.breach("copied", "ambiguous")
        else:
            for name in line.mended:
                self.fix("unwrapped", name)
            criteria = {name: CriterionReply(mark=mark) for name, mark in line.marks.items()}
            return self._flagged(PairReply(criteria, line.notes, line.winner))
        return None

    def _is_copied_line(self, line: TableReply, text: str) -> bool:
        """Return True if the line stands in what was judged, and the judge says something else."""
        is_quote = any(map(str.isalnum, split_prose(text))) or len(line.notes) >= NOTES_TELL
        return is_quote and self.judged.holds_line(line.text)

    def _unread(self, cell: UnreadCell) -> None:
        about = {"value": jsontext.dump(cell.text), "allowed": ", ".join(cell.allowed)}
        if cell.text:
            self.breach("cell_unknown", "out_of_range", cell.column, **about)
        else:
            kind = "winner_unknown" if cell.column == "winner" else "cell_blank"
            self.breach(kind, "schema", cell.column, **about)

    def _flagged(self, reply: PairReply) -> PairReply:
        """Flag marks that contradict their own yes and no, and guesses at who wrote an answer."""
        for name, criterion in reply.criteria.items():
            first, second = criterion.first_meets, criterion.second_meets
            if (first, second) in _ONE_MEETS and criterion.mark != ("A+" if first else "B+"):
                self.flags.append(f"mark_contradicts:{name}")
        comments = [criterion.comment for criterion in reply.criteria.values()]
        texts = [text for text in (reply.explanation, *comments) if isinstance(text, str)]
        if guesses_source(join_reasons(texts), self.topic):
            self.flags.append("guesses_source")
        return reply


def _holds_braces(line: TableReply, text: str) -> bool:
    """Return True if all braces of a reply stand in its one whole line: an object beside it may be
    another verdict."""
    return not line.unread and "{" not in text.replace(line.text, "")


def check_verdict(
    value: dict[str, Any], criteria: Sequence[str], words: Words
) -> Checked[PairVerdict]:
    """Return the problems of a settled verdict in the form that an export has it."""
    check = _PairCheck(words, criteria)
    check.keys(value, _VERDICT, "", allowed=tuple(_BESIDE))
    check.choice(value, "winner", OUTCOMES, "", "winner_unknown", is_exact=True)
    marks = check.object_at(value.get("criteria", {}), "criteria") or {}
    # Votes from another tool name a winner and need not say by what.
    check.keys(marks, criteria if marks else (), "criteria.")
    for name in marks:
        check.choice(marks, name, MARKS, "criteria.", "mark_unknown", is_exact=True)
    # No judge is ever told of the rest, so it is worded in English alone.
    for code, name, why in _find_wrong_parts(value, criteria):
        written = quoted(jsontext.dump(value.get(name)))[1:-1]
        check.problems.append(Problem(code, name, f"{name}: {written}: {why}"))
    return check.done(None)


def _find_wrong_parts(
    value: dict[str, Any], criteria: Sequence[str]
) -> Iterator[tuple[Reason, str, str]]:
    for name, type_ in _BESIDE.items():
        try:
            convert(value.get(name, UNSET), type_ if name in value else Any)
        except ValidationError as error:
            yield "schema", name, str(error)
    unstable, settled, winner = (value.get(name) for name in ("unstable", "settled", "winner"))
    if _is_list_of_texts(unstable) and not set(unstable) <= set(criteria):
        yield "schema", "unstable", f"must be some of {', '.join(criteria)}"
    if isinstance(settled, str) and settled not in SETTLINGS:
        yield "out_of_range", "settled", f"must be one of {', '.join(SETTLINGS)}"
    elif isinstance(settled, str) and (settled == "uncertain") != (winner == "uncertain"):
        yield "out_of_range", "settled", "contradicts the winner"


def _is_list_of_texts(value: Any) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
