"""Rows that hold a conversation: a list of messages, as chat models take and give them.

The last message is the answer, and all that precedes it the question: the text of one message, or a
transcript of several. Rows that hold question and answer of their own are left alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from evenhand.data.files import LISTED
from evenhand.data.recognise import recognise
from evenhand.errors import DataError
from evenhand.jsontext import dump
from evenhand.kinds.rows import TableForm, is_given
from evenhand.words import Code, Sentence, few

_USER, _ASSISTANT = "User", "Assistant"
_ROLES = {
    **dict.fromkeys(("user", "human", "prompter", "question"), _USER),
    **dict.fromkeys(("assistant", "ai", "bot", "chatgpt", "gpt", "model"), _ASSISTANT),
    **dict.fromkeys(("function_call", "tool_call"), _ASSISTANT),
    **dict.fromkeys(("system", "developer"), "System"),
    **dict.fromkeys(("tool", "function", "observation", "tool_response"), "Tool"),
}
"""By what the speakers are called in data: their names in a transcript."""


class Turns(NamedTuple):
    """A column of messages, and the fields that it fills."""

    column: str
    question: str
    answer: str
    has_answer: bool
    """False where the answer has a column of its own."""
    own_question: str
    """A column with a question beside the messages, which must hold it; empty where none is."""

    @property
    def fields(self) -> dict[str, str]:
        """Return the fields that are filled in every row, each with its meaning for people."""
        if not self.has_answer:
            return {self.question: Sentence("data.all_messages", column=self.column)}
        return {
            self.answer: Sentence("data.last_message", column=self.column),
            self.question: Sentence("data.before_answer", column=self.column),
        }

    def fill(self, row: dict[str, Any], where: str) -> None:
        """Put question and answer into a row, in place of its messages; raises DataError."""
        turns = self._read_turns(row.pop(self.column, None), where)
        role, last = turns[-1]
        if self.has_answer:
            if role != _ASSISTANT:
                raise DataError(Sentence("data.unanswered", column=self.column), where=where)
            row[self.answer] = last
        if role == _ASSISTANT and last == row.get(self.answer):
            turns.pop()
        if not any(role == _USER for role, _ in turns):
            raise DataError(Sentence("data.nothing_asked", column=self.column), where=where)
        transcript = "\n\n".join(f"{role}: {text}" for role, text in turns)
        question = turns[0][1] if len(turns) == 1 else transcript
        own = row.get(self.own_question)
        if is_given(own) and str(own).strip() not in question:
            raise DataError(
                Sentence("data.two_questions", own=self.own_question, column=self.column),
                where=where,
            )
        row[self.question] = question

    def _read_turns(self, messages: object, where: str) -> list[tuple[str, str]]:
        """Return the speaker and the text of each message."""
        turns = [_read_turn(one) for one in messages] if isinstance(messages, list) else []
        if not turns or None in turns:
            raise DataError(Sentence("data.not_messages", column=self.column), where=where)
        for role, _ in filter(None, turns):
            if role.casefold() not in _ROLES:
                raise DataError(
                    Sentence(
                        "data.unknown_role",
                        column=self.column,
                        role=role,
                        roles=Code(", ".join(_ROLES)),
                    ),
                    where=where,
                )
        return [(_ROLES[role.casefold()], text) for role, text in filter(None, turns)]


def is_conversation(value: object) -> bool:
    """Return True if a value is a list of messages, in one of the two forms in use."""
    return isinstance(value, list) and any(
        isinstance(message, dict) and ("role" in message or "from" in message) for message in value
    )


def _read_turn(message: object) -> tuple[str, str] | None:
    """Return the role and the text of a message, with the tools that it calls; None where it has
    none."""
    if not isinstance(message, dict):
        return None
    role = message.get("role", message.get("from"))
    content = message.get("content", message.get("value"))
    parts = content if isinstance(content, list) else [content]
    texts: list[Any] = [part.get("text") if isinstance(part, dict) else part for part in parts]
    if calls := message.get("tool_calls"):
        texts = [*filter(None, texts), dump(calls)]
    are_texts = isinstance(role, str) and all(isinstance(text, str) for text in texts)
    return (str(role), "\n".join(texts)) if are_texts else None


def find_conversation(
    sample: Sequence[Mapping[str, Any]], mapped: Mapping[str, str], form: TableForm, where: str
) -> Turns | None:
    """Return the conversation that rows hold in place of a question, or of question and answer;
    None where both have columns of their own. `mapped` are the fields that the user has named, each
    with its column, or an empty name where it is a constant. Raise DataError where two would
    fit."""
    asked = (form.question, form.answer)
    others = {column for field, column in mapped.items() if field not in asked}
    names = dict.fromkeys(name for row in sample for name in row if name not in others)
    columns = [name for name in names if any(is_conversation(row.get(name)) for row in sample)]
    if not columns or form.several in names:
        return None
    texts = [name for name in names if name not in columns]
    own = {field: column for field, column in mapped.items() if column not in columns}
    guesses = recognise(texts, own, form, where).columns
    named = [field for field in asked if mapped.get(field) in columns]
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
    has_answer = form.answer not in there
    return Turns(chosen[0], *asked, has_answer, there.get(form.question, ""))
