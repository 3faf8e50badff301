"""What a chat completion says.

Nearly all are in one form, which is read in one step, by type. Whatever is in another, however
little, is read as it stands there; both ways give the same where the first gives anything.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, MsgspecError, Struct
from msgspec.json import Decoder
from msgspec.structs import replace

from evenhand.exchange import Finish, Usage
from evenhand.judges.complaint import is_list, is_object
from evenhand.judges.logprobs import Token, token
from evenhand.judges.remote import Decoded, is_surely_bounded, one_reply, text_of
from evenhand.judges.usage import usage_of
from evenhand.limits import TOKENS_MOST

_FINISH: dict[str | None, Finish] = {"length": "length", "content_filter": "filtered"}
_Count = Annotated[int, Meta(ge=0, le=TOKENS_MOST)]


class _InputDetails(Struct, frozen=True, gc=False):
    cached_tokens: _Count | None = None


class _Counts(Struct, frozen=True, gc=False):
    prompt_tokens: _Count | None = None
    completion_tokens: _Count | None = None
    total_tokens: int | None = None
    prompt_tokens_details: _InputDetails | None = None


class _ReplyMessage(Struct, frozen=True, gc=False):
    content: str
    refusal: str | None = None


class _Choice(Struct, frozen=True, gc=False):
    message: _ReplyMessage
    finish_reason: str | None = None
    logprobs: None = None


class _UsualCompletion(Struct, frozen=True, gc=False):
    """One choice, of text alone. Fields that are not here are passed over."""

    choices: tuple[_Choice]
    usage: _Counts | None = None
    model: str | None = None
    provider: str | None = None


_read_usual = Decoder(_UsualCompletion).decode
_DIGITS = frozenset(b"0123456789")
_LONGEST_NUMBER = sys.int_info.default_max_str_digits
"""Digits of a whole number that Python reads; a body that holds a longer one is no JSON."""


def decoded_usual(data: bytes) -> Decoded | None:
    """What a completion in the usual form says; None for any other, and for what is not sure to be
    in it."""
    # A number that is too long would stand in one of these places.
    may_be_long = not _DIGITS.isdisjoint(data[_LONGEST_NUMBER::_LONGEST_NUMBER])
    if may_be_long or not is_surely_bounded(data):
        return None
    try:
        completion = _read_usual(data)
        if not data.isascii():
            data.decode()  # what is passed over must be text, too
    except (MsgspecError, UnicodeError):
        return None
    choice, usage = completion.choices[0], _usual_usage(completion.usage)
    if usage is None or choice.message.refusal or choice.finish_reason == "error":
        return None
    return Decoded(
        text=choice.message.content,
        finish=_FINISH.get(choice.finish_reason, "stop"),
        usage=usage,
        model=_served_by(completion.model or "", completion.provider),
    )


def _usual_usage(counts: _Counts | None) -> Usage | None:
    """None where the counts cannot all be true."""
    if counts is None:
        return Usage()
    read, details = counts.prompt_tokens, counts.prompt_tokens_details
    cached = (details.cached_tokens or 0) if details is not None else 0
    if cached > (read or 0):
        return None
    usage = Usage(input_tokens=read, output_tokens=counts.completion_tokens, cached_tokens=cached)
    return _with_thoughts(usage, counts.total_tokens)


def decoded(body: Any) -> Decoded:
    """What a completion says, from its JSON. Raises one of UNREADABLE where it says nothing."""
    usage = _usage(body.get("usage"))
    model = _served_by(text_of(body.get("model")), text_of(body.get("provider")))
    return one_reply([_chosen(choice, usage, model) for choice in body["choices"]])


def _chosen(choice: Any, usage: Usage, model: str) -> Decoded:
    message = choice["message"]
    finish = choice.get("finish_reason")
    if finish == "error":
        raise KeyError
    refusal = text_of(message.get("refusal"))
    listed = choice.get("logprobs")
    return Decoded(
        text=refusal or _text(message.get("content")),
        finish="refused" if refusal else _FINISH.get(finish, "stop"),
        usage=usage,
        model=model,
        tokens=_tokens(listed) if listed else (),
    )


def _text(content: Any) -> str:
    """The text of a message: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    parts = content if is_list(content) else []
    texts = (p.get("text") for p in parts if is_object(p) and p.get("type") == "text")
    return "".join(t for t in texts if isinstance(t, str))


def _served_by(model: str, host: str | None) -> str:
    """The model that answered, and at OpenRouter the host that ran it: hosts of one model differ
    in precision."""
    return f"{model} via {host}" if host else model


def _usage(counts: Any) -> Usage:
    if not is_object(counts):
        return Usage()
    details = counts.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if is_object(details) else None
    usage = usage_of([counts.get("prompt_tokens")], [counts.get("completion_tokens")], cached)
    return _with_thoughts(usage, counts.get("total_tokens"))


def _with_thoughts(usage: Usage, total: Any) -> Usage:
    """Some services (Grok, Gemini's compatible one) leave thoughts out of `completion_tokens`, and
    bill them: the total has them."""
    if usage.input_tokens is None or usage.output_tokens is None or type(total) is not int:
        return usage
    written = total - usage.input_tokens
    if not usage.output_tokens < written <= TOKENS_MOST:
        return usage
    return replace(usage, output_tokens=written)


def _tokens(listed: Any) -> list[Token]:
    """The tokens of a reply with their alternatives; none where the list is not in order."""
    try:
        return [
            token(_raw(item), item["logprob"], _alternatives(item["top_logprobs"]))
            for item in listed["content"]
        ]
    except (KeyError, TypeError, ValueError, AttributeError):
        return []


def _alternatives(tops: Any) -> list[tuple[bytes, Any]]:
    return [(_raw(top), top["logprob"]) for top in tops]


def _raw(item: Mapping[str, Any]) -> bytes:
    """A token's bytes; where the endpoint lists none, those of its text."""
    raw = item.get("bytes")
    return bytes(raw) if is_list(raw) else item["token"].encode()
