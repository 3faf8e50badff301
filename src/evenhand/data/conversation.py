"""Rows that hold a conversation: a list of messages, as chat models take and give them.

The last message is the answer, the last one of the user before it the question, and what else was
said earlier is context. Rows that hold question and answer of their own are left alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from evenhand.data.recognise import recognise
from evenhand.errors import DataError, quote
from evenhand.jsontext import dump
from evenhand.kinds.rows import TableForm, is_given

_ASSISTANT = ("assistant", "gpt", "model")
_USER = ("user", "human")


class Turns(NamedTuple):
    """A column of messages, and the fields that it fills: empty is one with a column of its own."""

    column: str
    question: str
    answer: str

    @property
    def fields(self) -> dict[str, str]:
        """Return the fields that are filled in every row, each with its meaning for people."""
        meanings = {self.answer: "the last message in", self.question: "the user's last message in"}
        return {f: f"{text} {quote(self.column)}" for f, text in meanings.items() if f}

    def fill(self, row: dict[str, Any], where: str) -> None:
        """Put question, answer and context into a row, in place of its messages; raises
        DataError."""
        turns = self._read_turns(row.pop(self.column, None), where)
        if self.answer:
            role, row[self.answer] = turns.pop()
            if role not in _ASSISTANT:
                raise self._unclear("nobody answered the last message of", where)
        if self.question:
            asked = [at for at, (role, _) in enumerate(turns) if role in _USER]
            if not asked:
                raise self._unclear("nothing was asked in", where)
            _, row[self.question] = turns.pop(asked[-1])
        if turns:
            earlier = "\n\n".join(f"{role.capitalize()}: {text}" for role, text in turns)
            own = row.get("context")
            further = own if isinstance(own, list) else [own] if is_given(own) else []
            row["context"] = [earlier, *further] if further else earlier

    def _read_turns(self, messages: object, where: str) -> list[tuple[str, str]]:
        """Return the role and the text of each message."""
        turns = [_read_turn(one) for one in messages] if isinstance(messages, list) else []
        if not turns or None in turns:
            raise DataError(
                f"the field {quote(self.column)} is no list of messages of text",
                where=where,
                advice='A message is {"role": "user", "content": "..."}; leave out what is an image'
                " or a sound.",
            )
        return [turn for turn in turns if turn]

    def _unclear(self, what: str, where: str) -> DataError:
        return DataError(
            f"{what} {quote(self.column)}",
            where=where,
            advice="The answer that is judged is the assistant's, at the end, after a question; or"
            ' put it into a column of its own, "answer".',
        )


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
    return (str(role).casefold(), "\n".join(texts)) if are_texts else None


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
    there = {*texts, *own, *recognise(texts, own, form, where).columns}
    question, answer = (field if field not in there else "" for field in asked)
    chosen = [mapped[field] for field in asked if mapped.get(field) in columns] or columns
    if not question and not answer:
        return None
    if len(set(chosen)) > 1:
        raise DataError(
            f"a row holds {len(columns)} conversations: {', '.join(map(quote, columns))}",
            where=where,
            advice=f'Say which is judged: [columns] answer = "{columns[0]}" in the suite, or init'
            f" --map answer={columns[0]}",
        )
    return Turns(chosen[0], question, answer)
