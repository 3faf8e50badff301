"""Rows that hold a conversation: a list of messages, as chat models take and give them, in place of
a question, or of a question and its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from evenhand.data.files import LISTED
from evenhand.data.recognise import recognise
from evenhand.errors import DataError
from evenhand.kinds.messages import fill_question, is_conversation
from evenhand.kinds.rows import RowError, TableForm
from evenhand.words import Sentence, few


class Conversation(NamedTuple):
    """A column of messages."""

    column: str
    question: str
    answer: str
    has_question: bool
    """False where a question stands beside it, too, which must be the same."""
    has_answer: bool
    """False where the answer has a column of its own: it is the last turn."""

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
        if not self.has_answer and isinstance(messages, list):
            answer = {"role": "assistant", "content": row.pop(self.answer, None)}
            messages = [*messages, *([] if _holds(messages[-1:], answer) else [answer])]
        row["messages"] = messages
        if not is_conversation(messages):
            raise DataError(Sentence("kinds.not_messages"), where=where)
        try:
            fill_question(row, self.question, self.answer, column=self.column)
        except RowError as error:
            raise DataError(error.args[0], where=where) from None


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
    return Conversation(chosen[0], *asked, *(field not in there for field in asked))
