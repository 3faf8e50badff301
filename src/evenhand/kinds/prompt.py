"""Prompts: templates filled in one pass, judged text fenced so that it cannot close its fence.

Inserted text is never evaluated and never altered. A fence carries a number derived from a hash
of what it encloses; while a text of the prompt contains it, of all of them, longer.

A custom prompt is the user's own: any text, in any language, run unchanged. Whatever of the unit
its placeholders do not insert follows as one JSON object; then the prompt is the system message,
else the user's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from itertools import zip_longest
from typing import Any, cast

from msgspec import Struct

from evenhand import jsontext
from evenhand.errors import nearest
from evenhand.exchange import Message, Role
from evenhand.kinds.rows import EXTRAS, is_given
from evenhand.words import Code, Sentence

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
                raise ValueError(Sentence("kinds.no_section", name=name))
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


# Prompts of the user's own

_CUSTOM_PLACEHOLDER = re.compile(r"(\{\{[ \t]*\w[\w -]*\}\})")
_NAME_CHARS = 40
_TAG = re.compile(r"<([A-Za-z_][\w.-]*)>$")
_LABEL = re.compile(
    r"#{1,6}\s+(?P<heading>.+)|[\[【(「]?(?P<label>[^\[\]【】「」]+?)(?:[:：]|[\]】)」])+"
)


class CustomForm(Struct, frozen=True, kw_only=True):
    """The placeholders of a custom prompt under one kind, and the words that tell its kind."""

    parts: tuple[str, ...]
    """The blind form of a unit: what follows where no placeholder inserts it."""
    aliases: Mapping[str, str] = {}
    """Other names of parts."""
    offered: tuple[str, ...] = ()
    """Other texts that may be inserted."""
    by_setting: Mapping[str, str] = {}
    """Parts that are sent only where a setting says so, each with that setting."""
    marks: tuple[str, ...] = ()
    """Words of the contract that a prompt of another kind does not use."""
    asks_both_orders: Callable[[str], bool] | None = None
    """Return True if a text demands in one reply what is asked in several."""


class CustomPrompt(Struct, frozen=True):
    """The text, cut at whatever looks like a placeholder: literal, placeholder, literal, ..."""

    parts: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> CustomPrompt:
        return cls(tuple(_CUSTOM_PLACEHOLDER.split(text.strip())))

    @property
    def text(self) -> str:
        """The whole of it, as it was written."""
        return "".join(self.parts)

    def says(self, word: str) -> bool:
        """Return True if the prompt speaks of something; in a text without spaces a word ends where
        its letters do."""
        pattern = re.compile(rf"(?<![A-Za-z0-9_]){re.escape(word)}(?![A-Za-z0-9_])")
        return any(pattern.search(part) for part in self.parts)

    def prefix(self, sentence: str) -> CustomPrompt:
        """Return the prompt with a sentence put before it."""
        return CustomPrompt((f"{sentence}\n\n{self.parts[0]}", *self.parts[1:]))

    def placeholders(self) -> dict[str, str]:
        """Return what looks like a placeholder by its name, as it is written."""
        return {placeholder_name(written): written for written in self.parts[1::2]}

    def part_names(self, form: CustomForm) -> dict[str, str]:
        """Return what this prompt calls each part that it inserts: by the part's own name where the
        judge can read it, else by the label before the placeholder, else by the placeholder."""
        names: dict[str, str] = {}
        literal = CustomPrompt(self.parts[::2])
        for before, written in zip(self.parts[::2], self.parts[1::2], strict=False):
            name = placeholder_name(written)
            part = form.aliases.get(name, name)
            if part in form.parts:
                label = part if literal.says(part) else _label_before(before) or name
                names.setdefault(part, label)
        return names

    def messages(
        self, blind: Mapping[str, Any], aliases: Mapping[str, str], texts: Mapping[str, str]
    ) -> tuple[Message, ...]:
        """Return the opening of the conversation about one unit.

        Args:
            blind: all that the judge must see of the unit.
            aliases: other names for parts of it.
            texts: what else may be inserted, and parts in another form than the blind one's.
        """
        filled, inserted, fixed = list(self.parts), set[str](), len(self.text)
        for index in range(1, len(filled), 2):
            name = placeholder_name(filled[index])
            name = aliases.get(name, name)
            if name in texts or name in blind:
                fixed = min(fixed, len("".join(filled[:index])))
                filled[index] = texts[name] if name in texts else jsontext.as_text(blind[name])
                inserted.add(name)
        text = "".join(filled)
        rest = {name: value for name, value in blind.items() if name not in inserted}
        if not rest:
            return (Message("user", text, fixed),)
        return Message("system", text, fixed), Message("user", jsontext.dump(rest))


def _label_before(text: str) -> str:
    """Return what stands before a placeholder to name it: a tag, a heading, a label with a
    colon."""
    lines = [line.strip() for line in text.splitlines()]
    labels = [line for line in lines if line.strip("\"'") and not line.startswith(("```", "~~~"))]
    last = labels[-1] if labels else ""
    if tag := _TAG.search(last):
        return tag[1]
    label = _LABEL.fullmatch(last.strip("*_` \t-•>"))
    name = (label["heading"] or label["label"]).strip(" \t*_`#-•>:：") if label else ""
    return name if 0 < len(name) <= _NAME_CHARS else ""


def placeholder_name(written: str) -> str:
    """Return a placeholder's name, however it is written: `{{ Task Specific-Rubric }}`."""
    return re.sub(r"[ -]+", "_", written.strip("{} \t")).casefold()


def unknown(what: str, name: str, names: Collection[str], **values: object) -> Sentence:
    """Return that a name is not known, with the one that it was most likely meant to be, else with
    those that are."""
    values |= {"name": name, "names": Code(", ".join(names))}
    if near := nearest(name, names):
        return Sentence(f"kinds.misspelt_{what}", near=near, **values)
    return Sentence(f"kinds.unknown_{what}", **values)


def lint_custom_prompt(
    prompt: CustomPrompt, kind: str, form: CustomForm, settings: Mapping[str, Any]
) -> Iterator[str]:
    """Yield what whoever wrote a prompt should know before it is sent, one sentence each;
    `settings` are those of the run, `use` among them."""
    names = (*form.parts, *form.aliases, *form.offered, *form.by_setting)
    for name, written in prompt.placeholders().items():
        if name in EXTRAS:
            if name not in settings.get("use", EXTRAS):
                yield Sentence("kinds.unused_extra", placeholder=written, name=name)
        elif name not in names:
            yield unknown("placeholder", name, names, placeholder=written, kind=kind)
    for part, setting in form.by_setting.items():
        if prompt.says(part) and not settings.get(setting):
            yield Sentence("kinds.unsent_part", part=part, setting=setting)
    if form.asks_both_orders and form.asks_both_orders(prompt.text):
        yield Sentence("kinds.both_orders")


# Texts of a unit

_BLOCKS = {"reference": "reference", "context": "context", "messages": "earlier"}


def shown_extras(extras: Mapping[str, Any], use: Iterable[str]) -> dict[str, Any]:
    """Return what the suite shows beside the judged text, where the unit has it."""
    return {
        name: _keep_speakers(extras[name]) if name == "messages" else extras[name]
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


_SPEAKER_KEYS = ("role", "content", "from", "value")


def _keep_speakers(value: Any) -> Any:
    """Return earlier messages with no more than who said what: what else a log holds, such as the
    name of a model, is nothing for a judge."""
    if not isinstance(value, list):
        return value
    return [
        {name: message[name] for name in _SPEAKER_KEYS if name in message}
        if isinstance(message, dict)
        else message
        for message in value
    ]


def size_of(*values: object) -> int:
    """Return how many characters of text there are in some values."""
    return sum(len(value) if isinstance(value, str) else len(str(value)) for value in values)


def fence_blocks(blocks: Mapping[str, str], size: int = 4) -> dict[str, str]:
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
    """Return the schema of an object with exactly these properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
