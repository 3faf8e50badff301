"""Rows that hold a conversation: a list of messages, as chat models take and give them.

The last message of the assistant is the answer, what precedes it the question: the text of one
message, or a transcript of several. What the system was told is kept as the unit's context. Rows
that hold question and answer of their own are left alone; `messages` are then what was said
earlier.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, cast

from msgspec import Struct

from evenhand import jsontext
from evenhand.data.recognise import fold, recognise, usual_names
from evenhand.errors import DataError, quoted
from evenhand.kinds.rows import TableForm

_SYSTEM, _ASSISTANT = "System", "Assistant"
_ROLES = {
    **dict.fromkeys(("user", "human", "prompter", "question"), "User"),
    **dict.fromkeys(("assistant", "gpt", "bot", "chatgpt", "model", "ai"), _ASSISTANT),
    **dict.fromkeys(("system", "developer"), _SYSTEM),
    **dict.fromkeys(("tool", "function", "observation", "tool_response"), "Tool"),
    **dict.fromkeys(("function_call", "tool_call"), "Assistant, calling a tool"),
}
"""What the speakers of a conversation are called in data, and in a transcript."""
_CALLS = ("tool_calls", "function_call")
CONTEXT = "context"


class Said(NamedTuple):
    """A message: whose it is, and its text."""

    role: str
    text: str


class Conversation(Struct, frozen=True):
    """The columns of a table whose messages, one after the other, are a conversation; the fields
    that they fill."""

    columns: tuple[str, ...]
    question: str
    answer: str
    """Empty where the answer stands in a column of its own."""
    has_system: bool = False
    """Whether the system was told anything."""

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the fields that are filled in every row."""
        return (self.question, self.answer) if self.answer else (self.question,)

    @property
    def meanings(self) -> dict[str, str]:
        """For people: by field what it is filled with."""
        names = " and ".join(map(quoted, self.columns))
        answer = {self.answer: f"the assistant's last message in {names}"}
        before = "what precedes the answer" if self.answer else "all"
        question = {self.question: f"{before} in {names}"}
        context = {CONTEXT: "what the system was told"} if self.has_system else {}
        return (answer if self.answer else {}) | question | context

    def fill(self, row: dict[str, Any], where: str) -> None:
        """Put question, answer and context into a row, in place of its messages; raises
        DataError."""
        messages: list[Said] = []
        for column in self.columns:
            part = self._part(row, column, where)
            # An answer's column may hold the whole conversation, the question's its beginning.
            messages = part if part[: len(messages)] == messages else messages + part
        for column in self.columns:
            del row[column]
        if self.answer:
            row[self.answer] = self._last(messages, where)
            messages = messages[:-1]
        turns = [message for message in messages if message.role != _SYSTEM]
        if not turns:
            raise _unclear(self.columns, "nothing was asked in", where)
        row[self.question] = _transcript(turns)
        _keep_context(row, [message.text for message in messages if message.role == _SYSTEM])

    def _part(self, row: Mapping[str, Any], column: str, where: str) -> list[Said]:
        """Return the messages of a column; raise DataError where it holds no list of messages."""
        messages = row.get(column)
        if not is_conversation(messages):
            raise DataError(
                f"the field {quoted(column)} is no list of messages",
                where=where,
                advice='A message is {"role": "user", "content": "..."}, in every row.',
            )
        return [
            _said(message, f"{column}[{place}]", where)
            for place, message in enumerate(cast("list[Any]", messages))
        ]

    def _last(self, messages: Sequence[Said], where: str) -> str:
        if messages[-1].role != _ASSISTANT:
            raise _unclear(self.columns, "nobody answered the last message of", where)
        return messages[-1].text


def _unclear(columns: Sequence[str], what: str, where: str) -> DataError:
    return DataError(
        f"{what} {' and '.join(map(quoted, columns))}",
        where=where,
        advice="The answer that is judged is the assistant's, at the end, after a question; or put"
        ' it into a column of its own, "answer".',
    )


def _transcript(turns: Sequence[Said]) -> str:
    """Return the text of one turn, or several with their speakers."""
    if len(turns) == 1:
        return turns[0].text
    return "\n\n".join(f"{turn.role}: {turn.text}" for turn in turns)


def _keep_context(row: dict[str, Any], texts: Sequence[str]) -> None:
    """Put what the system was told before the context that a row has."""
    spoken = [text for text in texts if text.strip()]
    own = row.get(CONTEXT)
    if not spoken:
        return
    if own is None or isinstance(own, str):
        row[CONTEXT] = "\n\n".join([*spoken, *([own] if own and own.strip() else [])])
    else:
        row[CONTEXT] = [*spoken, *(own if isinstance(own, list) else [own])]


def is_conversation(value: object) -> bool:
    """Return True if a value is a list of messages, in one of the two forms in use."""
    if not isinstance(value, list) or not value:
        return False
    return all(_is_message(message) for message in cast("list[object]", value))


def _is_message(message: object) -> bool:
    return isinstance(message, dict) and (
        ("role" in message and ("content" in message or any(call in message for call in _CALLS)))
        or ("from" in message and "value" in message)
    )


def _said(message: Mapping[str, Any], place: str, where: str) -> Said:
    role = _role(message)
    text = _text(message.get("content", message.get("value")))
    calls = [message[call] for call in _CALLS if message.get(call)]
    if calls and role == _ASSISTANT:
        role, text = _ROLES["tool_call"], "\n".join([*([text] if text else []), _written(calls)])
    if not role or text is None:
        raise DataError(
            f"{place} has no text of somebody" if role else f"{place} does not say whose it is",
            where=where,
            advice="Only text is judged: leave out what is an image or a sound.",
        )
    return Said(role, text)


def _role(message: Mapping[str, Any]) -> str:
    """Whose a message is, as a transcript calls it; empty where it does not say."""
    name = message.get("role", message.get("from"))
    return _ROLES.get(name.casefold(), name.capitalize()) if isinstance(name, str) else ""


def _text(content: object) -> str | None:
    """Return the text of a message, in one piece or in parts; None where it has something else."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    texts = [_part(part) for part in cast("list[object]", content)]
    return None if None in texts else "\n".join(cast("list[str]", texts))


def _part(part: object) -> str | None:
    text = cast("dict[str, Any]", part).get("text") if isinstance(part, dict) else part
    return text if isinstance(text, str) else None


def _written(calls: Sequence[object]) -> str:
    return "\n".join(jsontext.dump(call) for call in calls)


def find_conversation(
    sample: Sequence[Mapping[str, Any]],
    mapped: Mapping[str, str],
    form: TableForm,
    where: str,
) -> Conversation | None:
    """Return the conversation that rows hold in place of a question, or of question and answer;
    None where both have columns of their own. `mapped` are the fields that the user has named, each
    with its column, or an empty name where it is a constant. Raise DataError where two would
    fit."""
    columns = _columns(sample, mapped, form)
    if not columns or any(form.several in row for row in sample if form.several):
        return None
    is_named = any(mapped.get(field) in columns for field in (form.question, form.answer))
    texts = _texts(sample, columns, mapped, form, where)
    if len(texts) == 2 and not is_named:
        return None
    answer = "" if form.answer in texts else form.answer
    chosen = _chosen(columns, mapped, form, where)
    conversation = Conversation(chosen, form.question, answer, _has_system(sample, chosen))
    if form.question in texts and not is_named:
        _require_alike(conversation, sample, texts[form.question], where)
    return conversation


def _has_system(sample: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> bool:
    messages = (
        message
        for row in sample
        for column in columns
        if is_conversation(row.get(column))
        for message in row[column]
    )
    return any(_role(message) == _SYSTEM for message in messages)


def _texts(
    sample: Sequence[Mapping[str, Any]],
    conversations: Collection[str],
    mapped: Mapping[str, str],
    form: TableForm,
    where: str,
) -> dict[str, str]:
    """Return, of question and answer, those that have a column of their own, with its name."""
    names = dict.fromkeys(name for row in sample for name in row if name not in conversations)
    own = {field: name for field, name in mapped.items() if name not in conversations}
    guesses = recognise(list(names), own, form, where).columns
    columns = {**{name: name for name in names}, **guesses, **own}
    return {field: columns[field] for field in (form.question, form.answer) if field in columns}


def _columns(
    sample: Sequence[Mapping[str, Any]], mapped: Mapping[str, str], form: TableForm
) -> list[str]:
    """Return the columns that hold messages and were not named for another field."""
    others = {mapped[field] for field in mapped if field not in (form.question, form.answer)}
    names = dict.fromkeys(name for row in sample for name in row if name not in others)
    return [name for name in names if any(is_conversation(row.get(name)) for row in sample)]


def _chosen(
    columns: Sequence[str], mapped: Mapping[str, str], form: TableForm, where: str
) -> tuple[str, ...]:
    """Return the columns of one conversation: the only one, the one that was named, or a beginning
    and its end, as `prompt` and `completion` are."""
    parts: list[str] = []
    is_named = False
    for field, key in ((form.question, "question"), (form.answer, "answer")):
        names = set(usual_names(key))
        fits = [column for column in columns if fold(column) in names]
        if mapped.get(field) in columns:
            fits, is_named = [mapped[field]], True
        parts += fits if len(fits) == 1 else []
    if parts and (is_named or len(parts) == len(columns)):
        return tuple(dict.fromkeys(parts))
    if len(columns) == 1:
        return (columns[0],)
    example = next(column for column in columns if [column] != parts)
    raise DataError(
        f"a row holds {len(columns)} conversations: {', '.join(map(quoted, columns))}",
        where=where,
        advice=f'Say which is judged: [columns] answer = "{example}" in the suite, or init'
        f" --map answer={example}",
    )


def _require_alike(
    conversation: Conversation, sample: Sequence[Mapping[str, Any]], column: str, where: str
) -> None:
    """Refuse a column with questions that the conversations beside it do not hold."""
    for row in sample:
        filled = dict(row)
        conversation.fill(filled, where)
        if str(row.get(column, "")).strip() not in filled[conversation.question]:
            names = [column, *conversation.columns]
            raise DataError(
                f"{' and '.join(map(quoted, names))} hold different questions",
                where=where,
                advice=f'Say which is meant: [columns] question = "{names[1]}" in the suite, or'
                f" init --map question={names[1]}",
            )
