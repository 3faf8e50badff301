"""Rows that hold a conversation: a list of messages, as chat models take and give them, in place of
a question, or of a question and its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from evenhand.data.files import LISTED
from evenhand.data.recognise import fold, recognise, usual_names
from evenhand.errors import DataError
from evenhand.jsontext import dump, parse
from evenhand.kinds.messages import fill_question, is_conversation
from evenhand.kinds.rows import RowError, TableForm, is_given
from evenhand.words import Sentence, few

SYSTEM = "system"


class Conversation(NamedTuple):
    """A column of messages."""

    column: str
    question: str
    answer: str
    has_question: bool
    """False where a question stands beside it, too, which must be the same."""
    has_answer: bool
    """False where the answer has a column of its own: it is the last turn."""
    has_system: bool = False
    """True if the column `system` beside the messages is their first turn, as Anthropic has it."""

    @property
    def fields(self) -> list[str]:
        """Return the fields that need no column."""
        answer = [self.answer] if self.has_answer else []
        return ["messages", *([self.question] if self.has_question else []), *answer]

    @property
    def meaning(self) -> Sentence:
        """Return what the column is taken for, for people."""
        key = "transcript" if self.has_answer else "transcript_and_answer"
        return Sentence(f"data.{key}", column=self.column, answer=self.answer)

    def fill(self, row: dict[str, Any], where: str) -> None:
        """Put the messages of a row, with its answer and its question, where the contract has them;
        raise DataError."""
        messages = row.pop(self.column, None)
        if self.has_question:
            row.pop(self.question, None)
        said = None if self.has_answer else row.pop(self.answer, None)
        if said is not None and isinstance(messages, list):
            answer = {"role": "assistant", "content": said}
            messages = [*messages, *([] if _holds(messages[-1:], answer) else [answer])]
        if self.has_system and isinstance(messages, list) and is_given(row.get(SYSTEM)):
            messages = with_system(row.pop(SYSTEM), messages)
        row["messages"] = messages
        if not is_conversation(messages):
            raise DataError(Sentence("kinds.not_messages"), where=where)
        try:
            fill_question(row, self.question, self.answer, column=self.column)
        except RowError as error:
            raise DataError(error.args[0], where=where) from None


def with_system(system: object, messages: Sequence[Any]) -> list[Any]:
    """Return messages with what stands beside them for the system as their first turn, unless they
    begin with one."""
    first = messages[0] if messages else None
    if not isinstance(first, dict) or first.get("role") == SYSTEM or not is_given(system):
        return [*messages]
    return [{"role": SYSTEM, "content": system}, *messages]


def text_columns(
    sample: Sequence[Mapping[str, Any]], mapped: Mapping[str, str], form: TableForm
) -> list[str]:
    """Return the columns that hold conversations as JSON texts, in all of their cells, as CSV files
    have them. An answer stays a text: it may be JSON itself."""
    names = dict.fromkeys(name for row in sample for name in row)
    answers = usual_names("answer")
    return [
        name
        for name in names
        if (fold(name) not in answers and name != form.answer) or mapped.get("messages") == name
        if (cells := [row[name] for row in sample if is_given(row.get(name))])
        and all(isinstance(cell, str) and is_conversation(parse_text(cell)) for cell in cells)
    ]


def parse_text(value: Any) -> Any:
    """Return the list or the object that a text holds as JSON; any other value as it is."""
    if isinstance(value, str) and value[:20].lstrip().startswith(("[", "{")):
        with suppress(ValueError):
            parsed = parse(value)
            # Half of a surrogate pair, which only an escape can hold, has no UTF-8.
            if "\\u" in value:
                dump(parsed).encode()
            return parsed
    return value


def _holds(messages: Sequence[object], answer: Mapping[str, object]) -> bool:
    """Return True if one of the messages says what the answer does."""
    said = [each for each in messages if isinstance(each, dict)]
    return any(each.get("content", each.get("value")) == answer["content"] for each in said)


def find_conversation(
    sample: Sequence[Mapping[str, Any]], mapped: Mapping[str, str], form: TableForm, where: str
) -> Conversation | None:
    """Return the conversation that rows hold in place of a question, or of question and answer;
    None where both have columns of their own. `mapped` are the fields that the user has named, each
    with its column, or an empty name where it is a constant. Raise DataError where two would
    fit."""
    asked = (form.question, form.answer)
    held = (*asked, "messages")
    others = {column for field, column in mapped.items() if field not in held}
    names = dict.fromkeys(name for row in sample for name in row if name not in others)
    columns = [name for name in names if any(is_conversation(row.get(name)) for row in sample)]
    if not columns or form.several in names:
        return None
    texts = [name for name in names if name not in columns]
    own = {field: column for field, column in mapped.items() if column not in columns}
    guesses = recognise(texts, own, form, where).columns
    named = [field for field in held if mapped.get(field) in columns]
    there = {**{name: name for name in texts}, **guesses, **own}
    there = {field: there[field] for field in asked if field in there and field not in named}
    if len(there) == len(asked):
        return None
    chosen = [mapped[field] for field in named] or columns
    if len(set(chosen)) > 1:
        raise DataError(
            Sentence("data.two_conversations", columns=few(columns, LISTED), first=columns[0]),
            where=where,
        )
    has_system = SYSTEM in names and SYSTEM not in (*mapped, *mapped.values())
    has_question, has_answer = (field not in there for field in asked)
    return Conversation(chosen[0], *asked, has_question, has_answer, has_system)
