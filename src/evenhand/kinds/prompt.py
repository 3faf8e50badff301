"""Prompts: templates filled in one pass, judged text fenced so that it cannot close its fence.

Inserted text is never evaluated and never altered. A fence carries a number derived from a hash
of what it encloses; while a text of the prompt contains it, of all of them, longer.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from itertools import zip_longest
from typing import Any, cast

from evenhand import jsontext
from evenhand.exchange import Message, Role
from evenhand.kinds.rows import is_given

_SECTION = re.compile(r"^<!-- (system|user|again) -->[ \t]*\n", re.MULTILINE)
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

    def fill(self, values: Mapping[str, str]) -> str:
        """Return the text with every placeholder replaced; a name without a value becomes
        nothing."""
        filled = list(self.parts)
        filled[1::2] = [values.get(name, "") for name in filled[1::2]]
        return "".join(filled)

    def message(self, role: Role, values: Mapping[str, str], shared: Collection[str]) -> Message:
        """Return the filled message. `shared` are the placeholders whose values all units have in
        common: the message tells how long its beginning is that does not change."""
        fixed = 0
        for part, name in zip_longest(self.parts[::2], self.parts[1::2]):
            fixed += len(part)
            if name is not None and name not in shared:
                break
            fixed += len(values.get(name, ""))
        return Message(role, self.fill(values), fixed)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A judge prompt in one language: what it is told once, about each unit, and on a re-ask."""

    system: Template | None
    user: Template
    again: Template

    @classmethod
    def parse(cls, text: str) -> Prompt:
        """Return the prompt of a file; raise ValueError naming a section that is missing."""
        pieces = _SECTION.split(text)
        sections = dict(zip(pieces[1::2], pieces[2::2], strict=True))
        for name in ("user", "again"):
            if name not in sections:
                raise ValueError(f"the prompt has no section <!-- {name} -->")
        system = Template.parse(sections["system"]) if "system" in sections else None
        return cls(system, Template.parse(sections["user"]), Template.parse(sections["again"]))

    def messages(
        self, values: Mapping[str, str], shared: Collection[str] = ()
    ) -> tuple[Message, ...]:
        """Return the opening of the conversation about one unit. `shared` are the placeholders
        whose values all units have in common."""
        question = self.user.message("user", values, shared)
        if self.system is None:
            return (question,)
        return self.system.message("system", values, shared), question


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
    """Return how many characters of text there are in some values."""
    return sum(len(value) if isinstance(value, str) else len(str(value)) for value in values)


def fenced(blocks: Mapping[str, str], size: int = 4) -> dict[str, str]:
    """Return each text, unaltered, between marks that no text of the prompt contains; their numbers
    have `size` bytes or more.

    Every block has a number of its own, so that a block that stays the same from prompt to prompt,
    such as the rubric, stays the same to the letter.
    """
    joined = "\0".join(blocks.values())
    numbers = {name: fence_number(text, joined, size) for name, text in blocks.items()}
    return {
        name: f"[[{name} {numbers[name]}]]\n{text}\n[[/{name} {numbers[name]}]]"
        for name, text in blocks.items()
    }


def fence_number(text: str, joined: str, size: int = 4) -> str:
    """Return hexadecimal digits from the hash of `text` that `joined` does not contain.

    A text can be made to contain its own short hash, or any hash of another text. Further numbers
    are hashes of all texts together, each twice as long; no text can be made to contain those.
    """
    number = _digest(text, size)
    while number in joined:
        size = min(2 * size, blake2b.MAX_DIGEST_SIZE)
        number = _digest(f"{text}\0{joined}", size)
    return number


def _digest(text: str, size: int) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=size).hexdigest()


def object_of(**properties: Any) -> dict[str, Any]:
    """An object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
