"""A judge prompt of the user's own: any text, in any language, run unchanged.

Its `{{placeholders}}` are filled once; what is inserted is never read again. Whatever of the unit
no placeholder inserted follows as one JSON object. A prompt without placeholders, or one that left
something over, is the system message; one that inserted everything is the user's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from evenhand import jsontext
from evenhand.errors import nearest
from evenhand.exchange import Message
from evenhand.kinds.rows import EXTRAS

_PLACEHOLDER = re.compile(r"(\{\{[ \t]*\w[\w -]*\}\})")


class Unit(NamedTuple):
    """What a prompt may say of one unit: `blind` is all the judge must see, in the form that
    follows where it is not inserted; `texts` is what a placeholder of a name inserts."""

    blind: Mapping[str, Any]
    texts: Mapping[str, str]
    names: Mapping[str, str]
    """Which part of the blind form a placeholder covers."""


class CustomForm(Struct, frozen=True, kw_only=True):
    """What a prompt of the user's own may insert under one kind, and how it is told from others."""

    parts: tuple[str, ...]
    """The blind form of a unit: what follows where no placeholder inserts it."""
    aliases: Mapping[str, str] = {}
    """Other names of parts."""
    offered: tuple[str, ...] = ()
    """What else may be inserted."""
    by_setting: Mapping[str, str] = {}
    """Parts that are sent only where a setting says so, each with that setting."""
    marks: tuple[str, ...] = ()
    """Words of the contract that a prompt of another kind does not use."""
    asks_both_orders: Callable[[str], bool] | None = None
    """Whether a text demands in one reply what is asked in several."""


_FENCED = re.compile(r"(?:[^\n`]*\n){0,6}```(?:markdown|md|text)?\n.*\n```", re.DOTALL)
_NAME_CHARS = 40
_TAG = re.compile(r"<([A-Za-z_][\w.-]*)>$")
_LABEL = re.compile(
    r"#{1,6}\s+(?P<heading>.+)|[\[【(「]?(?P<label>[^\[\]【】「」]+?)(?:[:：]|[\]】)」])+"
)
_DECOR = " \t*_`#-•>"


class CustomPrompt(Struct, frozen=True):
    """The text, cut at whatever looks like a placeholder: literal, placeholder, literal, ..."""

    parts: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> CustomPrompt:
        return cls(tuple(_PLACEHOLDER.split(text.strip())))

    def says(self, word: str) -> bool:
        """Whether the prompt speaks of something; in a text without spaces a word ends where its
        letters do."""
        pattern = re.compile(rf"(?<![A-Za-z0-9_]){re.escape(word)}(?![A-Za-z0-9_])")
        return any(pattern.search(part) for part in self.parts)

    def writes(self, word: str) -> bool:
        """The same outside of placeholders: what a judge can read."""
        return CustomPrompt(self.parts[::2]).says(word)

    @property
    def text(self) -> str:
        """The whole of it, as it was written."""
        return "".join(self.parts)

    def after(self, sentence: str) -> CustomPrompt:
        """The same prompt with a sentence put before it."""
        return CustomPrompt((f"{sentence}\n\n{self.parts[0]}", *self.parts[1:]))

    def placeholders(self) -> Iterator[tuple[str, str]]:
        """What looks like a placeholder: its name, and how it is written."""
        yield from ((spelled(written), written) for written in self.parts[1::2])

    def names(self, form: CustomForm) -> dict[str, str]:
        """What the judge finds each part of a unit called by in this prompt: what is inserted by
        the label before it, what follows by its key."""
        labels: dict[str, str] = {}
        for place, (name, _) in enumerate(self.placeholders()):
            part = form.aliases.get(name, name)
            if part in form.parts:
                labels.setdefault(part, _label_before(self.parts[2 * place]) or name)
        return {part: part if self.writes(part) else label for part, label in labels.items()}

    def messages(self, unit: Unit) -> tuple[Message, ...]:
        """The opening of the conversation about one unit."""
        filled, inserted, fixed = list(self.parts), set[str](), len("".join(self.parts))
        for place in range(1, len(filled), 2):
            name = spelled(filled[place])
            if name in unit.texts:
                fixed = min(fixed, len("".join(filled[:place])))
                filled[place] = unit.texts[name]
                inserted.add(unit.names.get(name, name))
        text = "".join(filled)
        rest = {name: value for name, value in unit.blind.items() if name not in inserted}
        if not rest:
            return (Message("user", text, fixed),)
        return Message("system", text, fixed), Message("user", jsontext.dump(rest))


def _label_before(text: str) -> str:
    """What stands before a placeholder to name it: a tag, a heading, a label with a colon."""
    lines = [line.strip() for line in text.splitlines()]
    telling = [line for line in lines if line.strip("\"'") and not line.startswith(("```", "~~~"))]
    last = telling[-1] if telling else ""
    if tag := _TAG.search(last):
        return tag[1]
    label = _LABEL.fullmatch(last.strip("*_` \t-•>"))
    name = (label["heading"] or label["label"]).strip(_DECOR + ":：") if label else ""
    return name if 0 < len(name) <= _NAME_CHARS else ""


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


def lint_custom_prompt(
    prompt: CustomPrompt, kind: str, form: CustomForm, settings: Mapping[str, Any]
) -> Iterator[str]:
    """What whoever wrote a prompt should know before it is sent, one sentence each; `settings` are
    those of the run, `use` among them."""
    if _FENCED.fullmatch(prompt.text):
        yield (
            "the prompt stands in a code fence; the judge is sent the whole file, fence included."
            " If only what stands inside is meant, delete the rest"
        )
    yield from _lint_placeholders(prompt, kind, form, settings)
    for part, setting in form.by_setting.items():
        if prompt.says(part) and not settings.get(setting):
            yield (
                f"the prompt speaks of {part}, which the judge is not sent: code fills it in. To"
                f" send it, and have the copy checked, set {setting} = true under [settings]"
            )
    if form.asks_both_orders and form.asks_both_orders(prompt.text):
        yield (
            "the prompt asks for both orders in one reply. Each order is asked in a call of its"
            " own, so the judge is told before the prompt that one line, for the order shown, is"
            " wanted"
        )


def _lint_placeholders(
    prompt: CustomPrompt, kind: str, form: CustomForm, settings: Mapping[str, Any]
) -> Iterator[str]:
    """Placeholders that nothing fills."""
    names = (*form.parts, *form.aliases, *form.offered, *form.by_setting)
    for name, written in dict(prompt.placeholders()).items():
        if name in EXTRAS:
            if name not in settings.get("use", EXTRAS):
                yield f'{written} is not filled: the suite does not say use = ["{name}"]'
        elif name not in names:
            near = nearest(name, names)
            meant = f"did you mean {{{{{near}}}}}?" if near else f"known: {', '.join(names)}"
            yield f"{written} is no placeholder of the kind {kind}, and is sent as it is; {meant}"
