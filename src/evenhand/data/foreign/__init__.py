"""Judgments that other tools wrote, as tidy rows: one row an observation.

A module a layout. Each turns a file into `TidyRow` rows of one of two shapes: `votes` (unit, judge,
first, second, winner, ...) or `scores` (unit, judge, dimension, score, ...): see docs/import.md.
What cannot be read stays in as a row whose label nobody can read: dropping it here would hide a
failed judgment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from evenhand.data.foreign import (
    alpacaeval,
    arena_hard,
    fastchat,
    inspect_log,
    promptfoo,
    tidy,
)
from evenhand.data.foreign.rows import TidyRow
from evenhand.data.foreign.shaping import Shaping

__all__ = ["LAYOUTS", "Layout", "TidyRow"]


class Layout(NamedTuple):
    """How the files of one tool are read."""

    read: Callable[[Path, Shaping], Iterator[TidyRow]]
    """The rows of a file."""
    key: tuple[str, ...] = ()
    """The columns that tell its units apart, as far as they are there; nothing: to be found out."""
    is_table: bool = True
    """Whether its files have rows and columns, which may be read otherwise."""
    scale: tuple[float, float] | None = None
    """The ends of the scale that all its scores are on, if it has one."""
    settings: Callable[[Sequence[Path]], Sequence[str]] = lambda paths: ()
    """The further columns of the key: settings in which files of one run differ."""


LAYOUTS: dict[str, Layout] = {
    "votes": Layout(tidy.votes, ("unit",)),
    "scores": Layout(tidy.scores),
    "alpacaeval": Layout(alpacaeval.read, ("unit",)),
    "fastchat": Layout(fastchat.read, ("unit", "turn", "model", "file")),
    "arena-hard": Layout(arena_hard.read, ("unit",)),
    "inspect": Layout(
        inspect_log.read, ("unit", "model", "task"), is_table=False, settings=inspect_log.settings
    ),
    "promptfoo": Layout(
        promptfoo.read, ("unit", "model", "prompt"), is_table=False, scale=promptfoo.SCALE
    ),
}
