"""The pairwise contract: the form of a reply, and the check of one reply against it.

A reply speaks in the terms that the judge used: `A` is the candidate it saw first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from evenhand.judgment import Reason
from evenhand.kinds.pairwise.table import (
    Ambiguous,
    LineReading,
    TableReply,
    UnknownHeader,
    header,
    read_reply,
    split_prose,
)
from evenhand.kinds.pairwise.verdict import (
    MARKS,
    OUTCOMES,
    WINNERS,
    CriterionReply,
    PairReply,
    PairVerdict,
)
from evenhand.kinds.phrases import guesses_source, join_reasons, opens_with_refusal
from evenhand.kinds.prompt import object_of
from evenhand.kinds.protocol import JudgeWords
from evenhand.kinds.reply import (
    ANYTHING,
    TEXT,
    Checked,
    JudgedText,
    ReplyCheck,
    Unreadable,
    allow,
    read,
    without_thinking,
)

EXPLANATION_CHARS = 200
NOTES_TELL = 24
"""Shorter notes may be alike by chance."""
_MARK = {"type": "string", "enum": list(MARKS)}
_CRITERION = object_of(
    first_meets={"type": "boolean"}, second_meets={"type": "boolean"}, comment=TEXT, mark=_MARK
)
ReplyForm = Literal["full", "compact", "table", "external"]
"""The form that a prompt asks for: a compact form has marks alone; where a prompt asks for a table,
the reply is a line of one, or its cells as an object; another tool's is the full form or a line."""


def reply_shape(criteria: Sequence[str]) -> dict[str, Any]:
    """Return a reply as an example."""
    criterion = {"first_meets": True, "second_meets": True, "comment": "...", "mark": "tie"}
    marks = dict.fromkeys(criteria, criterion)
    return {"criteria": marks, "explanation": "...", "winner": "tie"}


def reply_schema(
    criteria: Sequence[str], criterion: Mapping[str, Any] = _CRITERION
) -> dict[str, Any]:
    """Return the schema of a reply."""
    return object_of(
        criteria=object_of(**dict.fromkeys(criteria, criterion)),
        explanation=TEXT,
        winner={"type": "string", "enum": list(WINNERS)},
    )


def compact_schema(
    criteria: Sequence[str],
    leading: str,
    topic: str,
    texts: Sequence[str],
    phrases: Mapping[str, str],
) -> dict[str, Any]:
    """Return the schema for a judge that fills a form by probabilities: it sets the two texts
    against each other as a whole, which is the winner and the mark of the leading criterion; on the
    others it cannot tell them apart."""
    versus = {
        "names": list(WINNERS[:2]),
        "texts": list(texts),
        "topic": topic,
        "better": phrases["versus.better"],
        "worse": phrases["versus.worse"],
    }
    marks = dict.fromkeys(criteria, object_of(mark={"const": "tie"}))
    marks[leading] = object_of(mark={"enum": list(MARKS), "x-versus": versus})
    return object_of(
        criteria=object_of(**marks),
        explanation={**TEXT, "maxLength": EXPLANATION_CHARS},
        winner={"enum": list(WINNERS), "x-versus": versus},
    )


def _checked_schema(criteria: Sequence[str], form: ReplyForm) -> dict[str, Any]:
    """Return the schema that replies are held to: the judge never saw a pair_id."""
    if form in ("full", "external"):
        return allow(reply_schema(criteria), pair_id=ANYTHING)
    return allow(reply_schema(criteria, {**_CRITERION, "required": ["mark"]}), pair_id=ANYTHING)


def check_reply(
    text: str,
    criteria: Sequence[str],
    words: JudgeWords,
    finish: str = "stop",
    *,
    topic: str = "",
    judged: JudgedText | None = None,
    form: ReplyForm = "full",
) -> Checked[PairReply]:
    """Return one reply, or its problems. A source that the topic speaks of is no guess."""
    check = _PairCheck(words, criteria, judged or JudgedText(), form)
    if not check.is_complete(finish):
        return check.result(None)
    reading = read(text)
    if isinstance(reading, Unreadable):
        reply = check.read_line(reading, text)
    else:
        value = check.accept(reading, check.judged)
        reply = None if value is None else check.read_reply(value)
    if reply is not None:
        check.flag_reasons(reply, topic)
    return check.result(reply)


class _PairCheck(ReplyCheck):
    def __init__(
        self, words: JudgeWords, criteria: Sequence[str], judged: JudgedText, form: ReplyForm
    ) -> None:
        super().__init__(words)
        self.criteria, self.judged, self.form = criteria, judged, form

    def read_reply(self, value: dict[str, Any]) -> PairReply:
        """Return the reply that an object is."""
        if "pair_id" in value:
            self.fix("meta", "pair_id")
        given = _from_cells(value, self.criteria) if self.form == "table" else value
        found = self.match(given, _checked_schema(self.criteria, self.form))
        explanation = found.get("explanation", "")
        parts = found.get("criteria", {})
        if self.form != "compact":
            if "explanation" in value and "explanation" in found:
                self.require_reason(explanation, "explanation")
            for name, part in parts.items():
                if "comment" in part:
                    part["comment"] = self._read_comment(
                        part["comment"], f"criteria.{name}.comment"
                    )
        replies = {c: CriterionReply(**parts[c]) for c in self.criteria if c in parts}
        return PairReply(replies, explanation, found.get("winner"))

    def _read_comment(self, text: str, path: str) -> str:
        """Return a comment on one line."""
        self.require_reason(text, path)
        lines = [line.strip() for line in text.strip().splitlines()]
        if len(lines) > 1:
            self.fix("unwrapped", path)
        return " ".join(lines) if len(lines) > 1 else text

    def read_line(self, reading: Unreadable, text: str) -> PairReply | None:
        """Return the reply that a verdict-table line is, in the place of an object."""
        may_be_line = reading.code != "ambiguous" and reading.problem != "bad_text"
        line = read_reply(text, self.criteria) if may_be_line else None
        has_object = reading.problem == "prose_around"
        asks_for_line = self.form in ("table", "external")
        if line is not None and asks_for_line:
            return self._read_cells(line, text, has_object)
        if line is not None and not has_object:
            self.problem("table_instead", "not_json")
        elif self.form == "table" and reading.problem in ("not_json", "empty"):
            self.problem("row_missing", reading.code, allowed=header(self.criteria))
        elif asks_for_line and reading.problem == "not_json":
            self.problem("not_in_form", "not_json")
        else:
            self.reject(reading)
        return None

    def _read_cells(self, line: LineReading, text: str, has_object: bool) -> PairReply | None:
        if opens_with_refusal(without_thinking(text) or ""):
            self.problem("refused", "refused")
        elif isinstance(line, UnknownHeader):
            allowed = header(self.criteria)
            self.problem("header_unknown", "schema", value=line.text, allowed=allowed)
        # An object beside a line may be another verdict.
        elif isinstance(line, Ambiguous) or (
            has_object and (line.unread or "{" in text.replace(line.text, ""))
        ):
            self.problem("two_verdicts", "ambiguous")
        elif line.unread:
            for cell in line.unread:
                code: Reason = "out_of_range" if cell.text else "schema"
                self.reject_choice(cell.text, cell.allowed, code, cell.column)
        elif self._is_copied(line, text):
            self.problem("copied", "ambiguous")
        else:
            for name in line.mended:
                self.fix("unwrapped", name)
            criteria = {name: CriterionReply(mark=mark) for name, mark in line.marks.items()}
            return PairReply(criteria, line.notes, line.winner)
        return None

    def _is_copied(self, line: TableReply, text: str) -> bool:
        """Return True if the line stands in what was judged, and the judge says something else."""
        is_quote = any(map(str.isalnum, split_prose(text))) or len(line.notes) >= NOTES_TELL
        return is_quote and self.judged.holds_line(line.text)

    def flag_reasons(self, reply: PairReply, topic: str) -> None:
        """Flag marks that contradict their own yes and no, and guesses at who wrote an answer."""
        for name, part in reply.criteria.items():
            met = (part.first_meets, part.second_meets)
            if None not in met and met[0] != met[1] and part.mark != ("A+" if met[0] else "B+"):
                self.flags.append(f"mark_contradicts:{name}")
        comments = (part.comment or "" for part in reply.criteria.values())
        if guesses_source(join_reasons([reply.explanation, *comments]), topic):
            self.flags.append("guesses_source")


def _from_cells(value: Mapping[str, Any], criteria: Sequence[str]) -> dict[str, Any]:
    """Return an object that has the columns of a verdict table as its keys, in the form of a reply:
    marks may stand under `criteria` or as columns, and notes for the explanation."""
    marks = value.get("criteria", {name: value[name] for name in criteria if name in value})
    if isinstance(marks, dict):
        marks = {name: {"mark": m} if isinstance(m, str) else m for name, m in marks.items()}
    rest = {name: part for name, part in value.items() if name not in (*criteria, "notes")}
    return {"explanation": value.get("notes", ""), **rest, "criteria": marks}


_EXPORTED = ("judge", "meta", "candidates", "settled", "rounds", "repeat", "unstable", "preference")
"""What an export says of a settled verdict beside the contract's own."""


class _VerdictCheck(ReplyCheck):
    ignores_case = False


def check_verdict(
    value: dict[str, Any], criteria: Sequence[str], words: JudgeWords
) -> Checked[PairVerdict]:
    """Return the problems of a settled verdict in the form that an export has it."""
    check, marks = _VerdictCheck(words), object_of(**dict.fromkeys(criteria, _MARK))
    form = object_of(
        pair_id=ANYTHING,
        winner={"type": "string", "enum": list(OUTCOMES)},
        # Votes from another tool name a winner and need not say by what.
        criteria=marks if value.get("criteria") else {"type": "object"},
    )
    check.match(value, allow(form, notes=TEXT, **dict.fromkeys(_EXPORTED, ANYTHING)))
    return check.result(None)
