"""Chat formats: messages as tokens, without running the template a weights file brings.

A template inside a GGUF file is a program of unknown origin and is never read. The format is chosen
by which control tokens the vocabulary has. Only what stands in the table below becomes control
tokens; the text of a message is tokenised as plain text, whatever it looks like.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evenhand.exchange import Message

Tokenise = Callable[[str, bool], Sequence[int]]
"""Text to tokens; the flag says if control tokens in it are such."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatFormat:
    """The marks of turns in one family of models: `{role}` is the turn's speaker."""

    name: str
    needs: tuple[str, ...]
    turn: str
    close: str
    assistant: str = "assistant"
    system: bool = True
    """There is a turn for the system; without one its text opens the first user turn."""


CHATML = ChatFormat(
    name="chatml",
    needs=("<|im_start|>", "<|im_end|>"),
    turn="<|im_start|>{role}\n",
    close="<|im_end|>\n",
)
FORMATS = (
    CHATML,
    ChatFormat(
        name="llama3",
        needs=("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
        turn="<|start_header_id|>{role}<|end_header_id|>\n\n",
        close="<|eot_id|>",
    ),
    ChatFormat(
        name="gemma",
        needs=("<start_of_turn>", "<end_of_turn>"),
        turn="<start_of_turn>{role}\n",
        close="<end_of_turn>\n",
        assistant="model",
        system=False,
    ),
    ChatFormat(
        name="phi3",
        needs=("<|user|>", "<|assistant|>", "<|end|>"),
        turn="<|{role}|>\n",
        close="<|end|>\n",
    ),
)


def choose_format(tokenise: Tokenise) -> ChatFormat:
    """Return the format whose control tokens the vocabulary has; else ChatML."""
    for form in FORMATS:
        if all(len(tokenise(token, True)) == 1 for token in form.needs):
            return form
    return CHATML


def prompt(
    messages: Sequence[Message], form: ChatFormat, tokenise: Tokenise, start: Sequence[int] = ()
) -> tuple[int, ...]:
    """Return the messages as tokens, with the judge's turn opened at the end."""
    tokens = list(start)
    for role, content in _turns(messages, form):
        tokens += tokenise(form.turn.format(role=role), True)
        tokens += tokenise(content, False)
        tokens += tokenise(form.close, True)
    tokens += tokenise(form.turn.format(role=form.assistant), True)
    return tuple(tokens)


def _turns(messages: Sequence[Message], form: ChatFormat) -> list[tuple[str, str]]:
    turns: list[tuple[str, str]] = []
    waiting = ""
    for message in messages:
        if message.role == "system" and not form.system:
            waiting += f"{message.content}\n\n"
            continue
        role = form.assistant if message.role == "assistant" else message.role
        turns.append((role, waiting + message.content))
        waiting = ""
    return turns
