"""A protocol from the texts of its folder: `protocol.toml`, `prompts/<language>.md`,
`prompts/compact/<language>.md`, `words/<language>.toml`. Where a folder brings no words of its own
those of its kind count, `words/kind/<language>.toml`, and of all kinds, `words/common/...`.

Pure: whoever calls has read the files. The texts' hash is the protocol's version, stored with
every judgment.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from evenhand.exchange import Style
from evenhand.protocols.render import Prompt
from evenhand.protocols.words import Words

LANGUAGES = ("ru", "zh", "ja", "en")
KINDS = ("pairwise", "rubric")
_PLACES: dict[Style, str] = {"full": "prompts/{}.md", "compact": "prompts/compact/{}.md"}


class ProtocolError(ValueError):
    """What is wrong with a protocol, and in which of its files."""

    def __init__(self, file: str, message: str) -> None:
        super().__init__(message)
        self.file = file


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """The texts of one protocol, parsed as far as they do not depend on a language."""

    name: str
    kind: str
    about: str
    texts: Mapping[str, str]
    given: Mapping[str, Any]
    """The values of `protocol.toml`."""

    @property
    def version(self) -> str:
        """The hash of all its texts."""
        digest = blake2b(digest_size=16)
        for file, text in sorted(self.texts.items()):
            digest.update(f"{len(file)}:{file}{len(text)}:".encode() + text.encode())
        return f"protocol1-blake2b:{digest.hexdigest()}"

    @property
    def languages(self) -> list[str]:
        return [one for one in LANGUAGES if _PLACES["full"].format(one) in self.texts]

    def prompts(self, language: str) -> dict[Style, Prompt]:
        """The prompts in one language; a style without a file of its own uses the full one."""
        full = self._prompt(_PLACES["full"].format(language))
        compact = _PLACES["compact"].format(language)
        return {"full": full, "compact": self._prompt(compact) if compact in self.texts else full}

    def _prompt(self, file: str) -> Prompt:
        if file not in self.texts:
            raise ProtocolError(file, "the protocol has no such prompt")
        try:
            return Prompt.parse(self.texts[file])
        except ValueError as error:
            raise ProtocolError(file, str(error)) from None

    def words(self, language: str) -> Words:
        """The fixed phrases in one language."""
        said, english = self._said(language), self._said("en")
        try:
            return Words(
                problems=said["problems"],
                types=said["types"],
                neutral=said["neutral"],
                english=english["problems"],
                phrases=dict(_phrases(said)),
            )
        except KeyError as key:
            raise ProtocolError(f"words/{language}.toml", f"the key {key} is missing") from None

    def _said(self, language: str) -> dict[str, Any]:
        """The protocol's own words over those that all kinds share."""
        said: dict[str, Any] = {}
        for place in ("words/common", "words/kind", "words"):
            if f"{place}/{language}.toml" in self.texts:
                for name, value in self._toml(f"{place}/{language}.toml").items():
                    is_table = isinstance(value, dict)
                    said[name] = said.get(name, {}) | value if is_table else value
        return said

    def _toml(self, file: str) -> dict[str, Any]:
        if file not in self.texts:
            raise ProtocolError(file, "the protocol has no such file")
        return parse_toml(file, self.texts[file])


def _phrases(said: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What else is said, by name; in a table, by its name and the phrase's."""
    for name, value in said.items():
        if isinstance(value, str):
            yield name, value
        elif name not in ("problems", "types", "neutral"):
            yield from ((f"{name}.{inner}", text) for inner, text in value.items())


def parse_toml(file: str, text: str) -> dict[str, Any]:
    """The values of a TOML text; raises ProtocolError naming the file."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ProtocolError(file, f"not TOML: {error}") from None


def kind_named(texts: Mapping[str, str]) -> str:
    """The kind that a protocol says it is of; raises ProtocolError."""
    if "protocol.toml" not in texts:
        raise ProtocolError("protocol.toml", "the folder has no protocol.toml")
    kind = parse_toml("protocol.toml", texts["protocol.toml"]).get("kind")
    if kind not in KINDS:
        raise ProtocolError("protocol.toml", f"kind must be one of {', '.join(KINDS)}")
    return str(kind)


def load_protocol(name: str, texts: Mapping[str, str]) -> Protocol:
    """The protocol of these texts; raises ProtocolError."""
    kind = kind_named(texts)
    given = parse_toml("protocol.toml", texts["protocol.toml"])
    about = str(given.get("about", ""))
    return Protocol(name=name, kind=kind, about=about, texts=texts, given=given)
