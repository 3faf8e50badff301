"""A judge prompt of the user's own: any text, in any language, run unchanged.

Its `{{placeholders}}` are filled once; what is inserted is never read again. Whatever of the unit
no placeholder inserted follows as one JSON object. A prompt without placeholders, or one that left
something over, is the system message; one that inserted everything is the user's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from evenhand import jsontext
from evenhand.exchange import Message

_PLACEHOLDER = re.compile(r"(\{\{[ \t]*\w[\w -]*\}\})")


class Unit(NamedTuple):
    """What a prompt may say of one unit: `blind` is all the judge must see, in the form that
    follows where it is not inserted; `texts` is what a placeholder of a name inserts."""

    blind: Mapping[str, Any]
    texts: Mapping[str, str]
    names: Mapping[str, str]
    """Which part of the blind form a placeholder covers."""


@dataclass(frozen=True, slots=True)
class OwnPrompt:
    """The text, cut at whatever looks like a placeholder: literal, placeholder, literal, ..."""

    parts: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> OwnPrompt:
        return cls(tuple(_PLACEHOLDER.split(text.strip())))

    def says(self, word: str) -> bool:
        """Whether the prompt speaks of something; in a text without spaces a word ends where its
        letters do."""
        pattern = re.compile(rf"(?<![A-Za-z0-9_]){re.escape(word)}(?![A-Za-z0-9_])")
        return any(pattern.search(part) for part in self.parts)

    def messages(self, unit: Unit) -> tuple[Message, ...]:
        """The opening of the conversation about one unit."""
        filled, inserted = list(self.parts), set[str]()
        for place in range(1, len(filled), 2):
            name = spelled(filled[place])
            if name in unit.texts:
                filled[place] = unit.texts[name]
                inserted.add(unit.names.get(name, name))
        text = "".join(filled)
        rest = {name: value for name, value in unit.blind.items() if name not in inserted}
        if not rest:
            return (Message("user", text),)
        return Message("system", text), Message("user", jsontext.dump(rest))


def spelled(placeholder: str) -> str:
    """A placeholder's name, however it is written: `{{ Task Specific-Rubric }}`."""
    return re.sub(r"[ -]+", "_", placeholder.strip("{} \t")).casefold()


def unit_of(
    blind: Mapping[str, Any], aliases: Mapping[str, str], offered: Mapping[str, str]
) -> Unit:
    """A unit from its blind form, other names for parts of it, and what else may be inserted."""
    texts = {name: jsontext.as_text(value) for name, value in blind.items()} | dict(offered)
    texts |= {alias: texts[name] for alias, name in aliases.items() if name in texts}
    return Unit(blind, texts, aliases)
