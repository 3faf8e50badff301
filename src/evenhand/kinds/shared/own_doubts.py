"""What may go wrong with a prompt of the user's own, said before it is sent.

Nothing here changes a prompt: it runs as it stands, and whoever wrote it is told what a judge will
make of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from evenhand.errors import nearest
from evenhand.kinds.shared.own import OwnForm, OwnPrompt
from evenhand.kinds.shared.rows import EXTRAS
from evenhand.regexp import regexp

_FENCE_LINE = regexp(r"[ \t]{0,3}(?P<ticks>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)")
_WRAPPERS = ("", "markdown", "md", "text", "txt", "plain", "plaintext", "prompt")
_PROSE_LINES = 6
_SHARE = 0.6
"""A fence that holds less of the file is part of the prompt, not around it."""


class Fence(NamedTuple):
    """A code fence around a prompt: its lines, counted from one, and whether prose stands before
    it."""

    first: int
    last: int
    is_after_prose: bool


def fence_around(text: str) -> Fence | None:
    """The fence that a prompt stands in; None where there is none, or where it is an example."""
    lines = text.splitlines()
    start = next((at for at, line in enumerate(lines) if _FENCE_LINE.fullmatch(line)), None)
    if start is None or not _may_wrap(lines[start]):
        return None
    before = [line for line in lines[:start] if line.strip()]
    end = _closing(lines, start)
    inside, whole = (len("".join(part).strip()) for part in (lines[start + 1 : end], lines))
    if len(before) > _PROSE_LINES or inside < _SHARE * whole:
        return None
    return Fence(start + 1, end + 1, bool(before))


def _may_wrap(line: str) -> bool:
    fence = _FENCE_LINE.fullmatch(line)
    return fence is not None and fence["info"].strip().casefold() in _WRAPPERS


def _closing(lines: list[str], start: int) -> int:
    """The line that closes the fence opened at `start`: what opens inside with a language closes
    before; the last line where nothing does."""
    opened = [_ticks(lines[start])]
    for at in range(start + 1, len(lines)):
        fence = _FENCE_LINE.fullmatch(lines[at])
        if fence is None or fence["ticks"][0] != opened[0][0]:
            continue
        if fence["info"].strip():
            opened.append(fence["ticks"])
        elif len(fence["ticks"]) >= len(opened[-1]):
            opened.pop()
        if not opened:
            return at
    return len(lines) - 1


def _ticks(line: str) -> str:
    fence = _FENCE_LINE.fullmatch(line)
    return fence["ticks"] if fence else "```"


def prompt_doubts(
    prompt: OwnPrompt, kind: str, form: OwnForm, settings: Mapping[str, Any]
) -> Iterator[str]:
    """What whoever wrote a prompt should know before it is sent, one sentence each; `settings` are
    those of the run, `use` among them."""
    if fence := fence_around(prompt.text):
        yield _fenced(fence)
    yield from _placeholders(prompt, kind, form, settings)
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


def _fenced(fence: Fence) -> str:
    prose = " after a line of prose" if fence.is_after_prose else ""
    also = "fence and prose" if fence.is_after_prose else "fence"
    return (
        f"the prompt stands in a code fence{prose} (lines {fence.first} to {fence.last}); the judge"
        f" is sent the whole file, {also} included. If only what stands inside is meant, delete the"
        " rest"
    )


def _placeholders(
    prompt: OwnPrompt, kind: str, form: OwnForm, settings: Mapping[str, Any]
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
