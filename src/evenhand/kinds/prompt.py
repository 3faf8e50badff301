"""Prompts: templates filled in one pass, judged text fenced so that it cannot close its fence.

Inserted text is never evaluated and never altered. A fence carries a number derived from a hash
of what it encloses; while a text of the prompt contains it, of all of them, longer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from hashlib import blake2b
from typing import Any, NamedTuple, cast

from evenhand import jsontext
from evenhand.exchange import Message
from evenhand.kinds.shared.rows import is_given

_SECTION = re.compile(r"^<!-- (system|user|again) -->[ \t]*\n", re.MULTILINE)
OPENINGS_KEPT = 16
"""So many beginnings of prompts are kept: a suite has one for each of its rubrics."""
_PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")


@dataclass(frozen=True, slots=True)
class Template:
    """One section of a prompt, cut at its placeholders: literal, name, literal, name, ..."""

    parts: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Template:
        return cls(tuple(_PLACEHOLDER.split(text.strip())))

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self.parts[1::2])

    def partly_filled(self, values: Mapping[str, str]) -> Template:
        """The same with the placeholders filled that there are values for."""
        literals, names = [self.parts[0]], list[str]()
        for name, literal in zip(self.parts[1::2], self.parts[2::2], strict=True):
            if name in values:
                literals[-1] += values[name] + literal
            else:
                names.append(name)
                literals.append(literal)
        parts = [part for both in zip(literals, [*names, ""], strict=True) for part in both]
        return Template(tuple(parts[:-1]))

    def fill(self, values: Mapping[str, str]) -> str:
        """The text with every placeholder replaced; a name without a value becomes nothing."""
        if len(self.parts) == 1:
            return self.parts[0]
        filled = list(self.parts)
        filled[1::2] = [values.get(name, "") for name in filled[1::2]]
        return "".join(filled)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A judge prompt in one language: what it is told once, about each unit, and on a re-ask."""

    system: Template | None
    user: Template
    again: Template
    _openings: Callable[[tuple[tuple[str, str], ...]], _Opening] = field(
        init=False, compare=False, repr=False
    )

    def __post_init__(self) -> None:
        openings = lru_cache(maxsize=OPENINGS_KEPT)(partial(_opening, self.system, self.user))
        object.__setattr__(self, "_openings", openings)

    @classmethod
    def parse(cls, text: str) -> Prompt:
        """Read the sections of a prompt file; raises ValueError naming one that is missing."""
        pieces = _SECTION.split(text)
        sections = dict(zip(pieces[1::2], pieces[2::2], strict=True))
        for name in ("user", "again"):
            if name not in sections:
                raise ValueError(f"the prompt has no section <!-- {name} -->")
        system = Template.parse(sections["system"]) if "system" in sections else None
        return cls(system, Template.parse(sections["user"]), Template.parse(sections["again"]))

    def messages(
        self, values: Mapping[str, str], suites: Collection[str] = ()
    ) -> tuple[Message, ...]:
        """The opening of the conversation about one unit. `suites` are the placeholders whose
        values are the suite's, alike for all units."""
        common = tuple([(name, values[name]) for name in suites if name in values])
        system, user, instructions = self._openings(common)
        question = Message("user", user.fill(values), len(user.parts[0]))
        if system is None:
            return (question,)
        if instructions is None:
            instructions = Message("system", system.fill(values), len(system.parts[0]))
        return instructions, question


class _Opening(NamedTuple):
    """The sections of a prompt with all in them that is alike for all units of a suite; the
    instructions are ready where nothing else stands in them."""

    system: Template | None
    user: Template
    instructions: Message | None


def _opening(
    system: Template | None, user: Template, common: tuple[tuple[str, str], ...]
) -> _Opening:
    values = dict(common)
    user = user.partly_filled(values)
    if system is None:
        return _Opening(None, user, None)
    system = system.partly_filled(values)
    text = system.parts[0]
    is_ready = len(system.parts) == 1
    return _Opening(system, user, Message("system", text, len(text)) if is_ready else None)


_BLOCKS = {"reference": "reference", "context": "context", "messages": "earlier"}


def shown_extras(extras: Mapping[str, Any], use: Iterable[str]) -> dict[str, Any]:
    """Return what the suite shows beside the judged text, where the unit has it."""
    return {
        name: _spoken(extras[name]) if name == "messages" else extras[name]
        for name in use
        if is_given(extras.get(name))
    }


def extra_blocks(extras: Mapping[str, Any], use: Iterable[str]) -> dict[str, str]:
    """Return the same as texts, by the name of their block."""
    return {_BLOCKS[name]: extra_text(value) for name, value in shown_extras(extras, use).items()}


def extra_text(value: object) -> str:
    """Return a text as it is, a list of texts as numbered passages, anything else as JSON."""
    if not isinstance(value, list) or not value:
        return jsontext.as_text(value)
    texts = cast("list[object]", value)
    if not all(isinstance(text, str) for text in texts):
        return jsontext.dump(texts)
    if len(texts) == 1:
        return str(texts[0])
    return "\n\n".join(f"[{number}] {text}" for number, text in enumerate(texts, 1))


_SPOKEN = ("role", "content", "from", "value")


def _spoken(value: Any) -> Any:
    """Return earlier messages with no more than who said what: what else a log holds, such as the
    name of a model, is nothing for a judge."""
    if not isinstance(value, list):
        return value
    return [
        {name: message[name] for name in _SPOKEN if name in message}
        if isinstance(message, dict)
        else message
        for message in value
    ]


def size_of(*values: object) -> int:
    """How many characters of text there are in some values."""
    return sum(map(_size, values))


def _size(value: object) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, (dict, Mapping)):
        return size_of(*cast("Mapping[str, object]", value).values())
    return size_of(*cast("list[object]", value)) if isinstance(value, list) else 0


def fenced(blocks: Mapping[str, str], size: int = 4) -> dict[str, str]:
    """Each text, unaltered, between marks that no text of the prompt contains; their numbers have
    `size` bytes or more.

    Every block has a number of its own, so that a block that stays the same from prompt to prompt,
    such as the rubric, stays the same to the letter.
    """
    joined = "\0".join(blocks.values())
    return {name: _fence(name, text, joined, size) for name, text in blocks.items()}


def _fence(name: str, text: str, joined: str, size: int) -> str:
    number = fence_number(text, joined, size)
    return f"[[{name} {number}]]\n{text}\n[[/{name} {number}]]"


def fence_number(text: str, joined: str, size: int = 4) -> str:
    """Hexadecimal digits from the hash of `text` that `joined` does not contain.

    A text can be made to contain its own short hash, or any hash of another text. Further numbers
    are hashes of all texts together, each twice as long; no text can be made to contain those.
    """
    number = _digest(text, size)
    while number in joined:
        size = min(2 * size, blake2b.MAX_DIGEST_SIZE)
        number = _digest(f"{text}\0{joined}", size)
    return number


@lru_cache(maxsize=32)
def _digest(text: str, size: int) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).hexdigest()
