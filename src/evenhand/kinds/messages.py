"""Messages, as chat models take and give them, in place of a question and its answer.

`read_turns` takes the forms of OpenAI and Anthropic, conversations with `from` and `value`, and the
messages of logs: Inspect's, LangChain's (`type`, or `kwargs` of a constructor) and OpenTelemetry's
(`parts`). What a model thought before it answered is no part of what it said, and is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evenhand import jsontext
from evenhand.kinds.rows import RowError, is_given
from evenhand.transcript import Judged, Speaker, ToolCall, Transcript, Turn
from evenhand.words import Code, Sentence

_CALLS = ("function_call", "tool_call")
_SPEAKERS: dict[str, Speaker] = {
    **dict.fromkeys(("user", "human", "prompter", "question"), "user"),
    **dict.fromkeys(("assistant", "ai", "bot", "chatgpt", "gpt", "model", *_CALLS), "assistant"),
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("tool", "function", "observation", "tool_response"), "tool"),
}
"""By what the speakers are called in data."""
_NO_NAME = re.compile(r"[^\w.:/-]+")
_CLASS_NAME = re.compile(r"message(?:chunk)?$")
"""How the classes of LangChain end that messages are made of."""
_THOUGHTS = ("thinking", "redacted_thinking", "reasoning")
_CALL_PARTS, _RESULT_PARTS = ("tool_use", "tool_call"), ("tool_result", "tool_call_response")


def is_conversation(value: object) -> bool:
    """Return True if a value is a list of messages, in one of the forms in use."""
    return isinstance(value, list) and any(
        isinstance(message, dict) and ("from" in message or "role" in _unwrap(message))
        for message in value
    )


def _unwrap(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message of LangChain with its type or its class as role, any other as it is."""
    if "role" in message or "from" in message:
        return message
    kind, path = message.get("type"), message.get("id")
    if kind == "constructor" and isinstance(path, list) and path:
        kind = path[-1]
    role = _CLASS_NAME.sub("", kind.casefold()) if isinstance(kind, str) else ""
    inner = message.get("kwargs", message.get("data", message))
    is_known = role in _SPEAKERS and role not in _CALLS
    if not is_known or not isinstance(inner, dict) or "content" not in inner:
        return message
    return {**inner, "role": role}


def read_turns(messages: object) -> list[Turn]:
    """Return the turns of a list of messages; raise RowError. A message is one turn, but for the
    results of tools in a user's message, which are turns of their own."""
    if not isinstance(messages, list) or not messages:
        raise RowError(Sentence("kinds.not_messages"))
    tools: dict[str, str] = {}
    """The names of the tools called, by the ids of the calls."""
    turns: list[Turn] = []
    for number, message in enumerate(messages, 1):
        if not isinstance(message, dict):
            raise RowError(Sentence("kinds.no_text_message", number=number))
        turns += _read_message(message, number, tools)
    return turns


def _read_message(message: Mapping[str, Any], number: int, tools: dict[str, str]) -> list[Turn]:
    message = _unwrap(message)
    name = message.get("role", message.get("from"))
    role = _SPEAKERS.get(name.casefold()) if isinstance(name, str) else None
    if role is None:
        roles = Code(", ".join(_SPEAKERS))
        raise RowError(Sentence("kinds.unknown_role", number=number, role=str(name), roles=roles))
    content = message.get("content", message.get("value", message.get("parts")))
    parts = content if isinstance(content, list) else [] if content is None else [content]
    if str(name).casefold() in _CALLS:
        parts = [{"type": "tool_use", **call} for call in _read_call_texts(parts)] or parts
    results: list[Turn] = []
    texts: list[str] = []
    given = message.get("tool_calls")
    calls = [message.get("function_call"), *(given if isinstance(given, list) else [given])]
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind in _CALL_PARTS:
            calls.append(part)
        elif kind in _RESULT_PARTS:
            tool = tools.get(str(part.get("tool_use_id", part.get("id"))), "")
            results.append(Turn(role="tool", text=_read_result(part, number), tool=tool))
        elif kind not in _THOUGHTS:
            texts.append(_text_of(part, number))
    # LangChain keeps the calls of Anthropic's models in both places.
    ids = [call.get("id") if isinstance(call, dict) else None for call in calls]
    calls = [call for at, call in enumerate(calls) if not ids[at] or ids[at] not in ids[:at]]
    read = tuple(_read_call(call, number, tools) for call in calls if call)
    text, tool = "\n".join(filter(None, texts)), ""
    if role == "tool":
        tool = _tool_name(message.get("name")) or tools.get(str(message.get("tool_call_id")), "")
    if results and not text and not read:
        return results
    return [*results, Turn(role=role, text=text, calls=read, tool=tool)]


def _read_result(part: Mapping[str, Any], number: int) -> str:
    """Return what a tool returned: any JSON, or texts in parts."""
    if part.get("type") != "tool_result":
        return jsontext.as_text(part.get("response", part.get("result", "")))
    content = part.get("content")
    parts = content if isinstance(content, list) else [] if content is None else [content]
    return "\n".join(_text_of(part, number) for part in parts)


def _text_of(part: object, number: int) -> str:
    text = part
    if isinstance(part, dict):
        # OpenTelemetry's parts are texts by their type: others hold pictures under the same name.
        text = part.get("content" if part.get("type") == "text" else "text", part.get("text"))
    if not isinstance(text, str):
        raise RowError(Sentence("kinds.no_text_message", number=number))
    return text


def _read_call_texts(parts: Sequence[object]) -> Iterator[Mapping[str, Any]]:
    """Yield the calls that texts hold as JSON."""
    for part in parts:
        try:
            call = jsontext.parse(part) if isinstance(part, str) else part
        except ValueError:
            continue
        if isinstance(call, dict) and "name" in call:
            yield call


def _read_call(call: object, number: int, tools: dict[str, str]) -> ToolCall:
    """Return a call in the form of OpenAI, of Anthropic, or with `args`; note its id."""
    outer: Mapping[str, Any] = call if isinstance(call, dict) else {}
    inner = outer.get("function", outer)
    if isinstance(inner, str):  # Inspect's
        inner = {**outer, "name": inner}
    name = _tool_name(inner.get("name")) if isinstance(inner, dict) else ""
    if not name:
        raise RowError(Sentence("kinds.no_call", number=number))
    given = (inner.get(key) for key in ("arguments", "input", "args"))
    arguments: Any = next((value for value in given if value is not None), {})
    if outer.get("id") is not None:
        tools[str(outer["id"])] = name
    return ToolCall(name, _normalise(arguments))


def _normalise(arguments: Any) -> str:
    """Return arguments as JSON, spaced alike: as OpenAI sends them, a text, or an object."""
    try:
        return jsontext.dump(jsontext.parse(arguments) if isinstance(arguments, str) else arguments)
    except ValueError:
        return jsontext.as_text(arguments)


def _tool_name(name: object) -> str:
    """Return the name of a tool without signs that could pass for more of its line."""
    return _NO_NAME.sub("_", name.strip()) if isinstance(name, str) else ""


# Rows


def fill_question(
    row: dict[str, Any], question: str, answer: str, several: str = "", column: str = "messages"
) -> None:
    """Fill in the question of a row that holds messages in place of an answer, or of the texts of
    candidates, in place: it is the first user's turn. Messages beside candidates without a question
    are what all of them begin with. A row without such messages is left alone. Raise RowError; it
    calls the messages by their column."""
    candidates = row.get(several) if several else None
    if isinstance(candidates, list):
        if not is_given(row.get(question)) and is_given(row.get("messages")):
            before = row.pop("messages")
            row[several] = [_continue(each, before) for each in candidates]
        holders = [each for each in row[several] if holds_messages(each, "text")]
    else:
        holders = [row] if holds_messages(row, answer) else []
    for number, holder in enumerate(holders):
        turns = Transcript(tuple(read_turns(holder["messages"])))
        asked, own = turns.question, row.get(question)
        if not asked.strip():
            raise RowError(Sentence("kinds.nothing_asked"))
        if is_given(own) and not any(str(own).strip() in turn.text for turn in turns.turns):
            raise RowError(Sentence("kinds.two_questions", own=question, column=column))
        if number == 0:
            row[question] = asked


def _continue(candidate: object, before: object) -> object:
    """Return a candidate with the messages that all candidates begin with."""
    if not isinstance(candidate, dict) or not isinstance(before, list):
        return candidate
    own = candidate.get("messages")
    if own is None:
        own = [{"role": "assistant", "content": candidate.get("text")}]
    rest = {name: value for name, value in candidate.items() if name != "text"}
    return {**rest, "messages": [*before, *own]}


def holds_messages(row: object, answer: str) -> bool:
    """Return True if a row or a candidate has messages in place of its answer."""
    return isinstance(row, Mapping) and row.get(answer) is None and is_given(row.get("messages"))


def has_tool_calls(row: Mapping[str, Any], answer: str, several: str) -> bool:
    """Return True if tools are called in the messages that a row, or one of its candidates, has in
    place of an answer; raise RowError."""
    candidates = row.get(several)
    texts = candidates if isinstance(candidates, list) else ()
    holders = [each for each in texts if holds_messages(each, "text")]
    holders += [row] if holds_messages(row, answer) else []
    return any(turn.calls for holder in holders for turn in read_turns(holder["messages"]))


def read_transcript(messages: object, judged: Judged) -> Transcript:
    """Return a transcript; raise RowError where it has nothing to judge."""
    transcript = Transcript(tuple(read_turns(messages)), judged)
    if not any(turn.role == "assistant" for turn in transcript.turns):
        raise RowError(Sentence("kinds.unanswered"))
    if not transcript.judged_parts:
        raise RowError(Sentence("kinds.no_tool_calls"))
    return transcript


def plain_transcript(question: str, answer: str, judged: Judged) -> Transcript:
    """Return a question and its answer as a transcript."""
    turns = Turn(role="user", text=question), Turn(role="assistant", text=answer)
    return Transcript(turns, judged)


def take_transcript(
    row: dict[str, Any], question: str, answer: str, judged: Judged
) -> tuple[dict[str, Any], Transcript | None]:
    """Return a row with the question and the answer that its messages hold, and the transcript
    where these two are not all of it; a row without such messages as it is. Raise RowError."""
    if not holds_messages(row, answer):
        return row, None
    row = dict(row)
    fill_question(row, question, answer)
    transcript = read_transcript(row.pop("messages"), judged)
    row[answer] = transcript.text
    return row, None if transcript.is_plain else transcript
