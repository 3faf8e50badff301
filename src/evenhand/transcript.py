"""Transcripts: conversations in numbered turns, and which of them are judged.

A judge is shown every turn under a line with its number, its speaker and a code that stands in no
turn, so that no text can pass for a turn of its own. Quotes stand in one part of one turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Literal, NamedTuple, get_args

from msgspec import Struct, to_builtins
from msgspec.structs import replace

Speaker = Literal["system", "user", "assistant", "tool"]
SPEAKERS: tuple[Speaker, ...] = get_args(Speaker)
Judged = Literal["last", "conversation", "tool_calls"]
"""The last turn of the assistant, all of its turns, or its tool calls alone."""
CODE_BYTES = 2


class ToolCall(Struct, frozen=True):
    """A call of a tool: its name, and its arguments as JSON."""

    name: str
    arguments: str

    @property
    def text(self) -> str:
        return f"{self.name} {self.arguments}".rstrip()


class Turn(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one party says at once."""

    role: Speaker
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    tool: str = ""
    """The name of the tool whose result it is, where that is known."""


class Part(NamedTuple):
    """The text of a turn, or its tool calls."""

    number: int
    """The number of its turn, counted from one."""
    turn: Turn
    text: str
    start: int
    """The offset in the turn."""
    is_calls: bool
    is_judged: bool


class Transcript(Struct, frozen=True, dict=True):
    """A conversation, at least one turn of which is the assistant's."""

    turns: tuple[Turn, ...]
    judged: Judged = "last"

    @cached_property
    def parts(self) -> Sequence[Part]:
        """Return all parts in their order."""
        return list(self._parts())

    def _parts(self) -> Iterator[Part]:
        last = max(
            (n for n, turn in enumerate(self.turns, 1) if turn.role == "assistant"), default=0
        )
        for number, turn in enumerate(self.turns, 1):
            is_spoken = number == last if self.judged == "last" else turn.role == "assistant"
            if turn.text or not turn.calls:
                is_judged = is_spoken and self.judged != "tool_calls"
                yield Part(number, turn, turn.text, 0, is_calls=False, is_judged=is_judged)
            if turn.calls:
                calls, start = "\n".join(call.text for call in turn.calls), len(turn.text)
                # A line break stands between the text of a turn and its calls.
                start += bool(turn.text)
                yield Part(number, turn, calls, start, is_calls=True, is_judged=is_spoken)

    @property
    def judged_parts(self) -> Sequence[Part]:
        """Return the parts that are judged; none where no tool is called and calls are judged."""
        return [part for part in self.parts if part.is_judged]

    @property
    def text(self) -> str:
        """Return what is judged as one text."""
        return "\n\n".join(part.text for part in self.judged_parts)

    @property
    def first_judged(self) -> int:
        """Return the number of the first turn that is judged."""
        return next((part.number for part in self.parts if part.is_judged), len(self.turns))

    @property
    def question(self) -> str:
        """Return the text of the first user's turn; empty without one."""
        asked = (turn.text for turn in self.turns if turn.role == "user" and turn.text.strip())
        return next(asked, "")

    @property
    def is_plain(self) -> bool:
        """Return True if a question and its answer are all of it, and the answer is judged."""
        roles = [turn.role for turn in self.turns]
        has_calls = any(turn.calls for turn in self.turns)
        return roles == ["user", "assistant"] and self.judged == "last" and not has_calls

    def show(self, code: str, first: int, after: int | None = None) -> str:
        """Return the turns from one number on, up to another one, as a judge is shown them."""
        return "\n\n".join(
            f"[{part.number} {code}] {_heading(part)}:\n{part.text}"
            for part in self.parts
            if part.number >= first and (after is None or part.number < after)
        )

    def map_answers(self, change: Callable[[str], str]) -> Transcript:
        """Return the transcript with what the assistant and the tools say changed."""
        return replace(self, turns=tuple(_change(turn, change) for turn in self.turns))


def _heading(part: Part) -> str:
    words = [part.turn.role, part.turn.tool, "calls" if part.is_calls else ""]
    return " ".join(filter(None, words)) + (", judged" if part.is_judged else "")


def _change(turn: Turn, change: Callable[[str], str]) -> Turn:
    if turn.role not in ("assistant", "tool"):
        return turn
    calls = tuple(replace(call, arguments=change(call.arguments)) for call in turn.calls)
    return replace(turn, text=change(turn.text), calls=calls)


def texts_of(*transcripts: Transcript | None) -> list[str]:
    """Return the texts of all parts."""
    return [part.text for each in transcripts if each is not None for part in each.parts]


def turn_code(*transcripts: Transcript) -> str:
    """Return hexadecimal digits that stand in no turn of some transcripts, the same whichever
    comes first."""
    names = (turn.tool for each in transcripts for turn in each.turns)
    joined = "\0".join(sorted((*texts_of(*transcripts), *names)))
    size = CODE_BYTES
    while (code := _digest(joined, size)) in joined and size < blake2b.MAX_DIGEST_SIZE:
        size *= 2
    return code


def _digest(text: str, size: int) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).hexdigest()


def count_shared_turns(transcripts: Iterable[Transcript]) -> int:
    """Return the number of turns that transcripts begin with alike, none of them judged."""
    several = list(transcripts)
    most = min(each.first_judged for each in several) - 1
    for number in range(most):
        if len({each.turns[number] for each in several}) > 1:
            return number
    return most


def to_plain(transcript: Transcript | None) -> object:
    """Return a transcript as it is stored."""
    return None if transcript is None else to_builtins(transcript)
