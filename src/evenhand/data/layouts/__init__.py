"""Judgments that other tools wrote, as tidy rows: one row an observation.

A function a layout. Each turns a file into `TidyRow` rows of one of two shapes: `votes` (unit,
judge, first, second, winner, ...) or `scores` (unit, judge, dimension, score, ...): see
docs/import.md. What cannot be read stays in as a row whose label nobody can read: dropping it here
would hide a failed judgment.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from evenhand.data.layouts import benchmarks, logs, tidy
from evenhand.data.layouts.tidy import JudgmentFile, TidyRow

__all__ = ["LAYOUTS", "JudgmentFile", "Layout", "TidyRow"]


class Layout(NamedTuple):
    """The form of the files of one tool."""

    read: Callable[[JudgmentFile], Iterator[TidyRow]]
    key: tuple[str, ...] = ()
    """The columns that tell its units apart, as far as they are there; nothing: to be found out."""
    judge: str = ""
    """Its judge where the rows name none; a table of the user's own must name one."""
    scale: tuple[float, float] | None = None
    """The ends of the scale that all its scores are on, if it has one."""
    settings: Callable[[Sequence[Path]], Sequence[str]] = lambda paths: ()
    """The further columns of the key: settings in which files of one run differ."""


LAYOUTS: dict[str, Layout] = {
    "votes": Layout(tidy.votes, ("unit",)),
    "scores": Layout(tidy.scores),
    "alpacaeval": Layout(benchmarks.read_alpacaeval, ("unit",), "alpacaeval"),
    "fastchat": Layout(benchmarks.read_fastchat, ("unit", "turn", "model"), "fastchat"),
    "arena-hard": Layout(benchmarks.read_arena_hard, ("unit",), "arena-hard"),
    "inspect": Layout(
        logs.read_inspect, ("unit", "model", "task"), "inspect", settings=logs.inspect_settings
    ),
    "promptfoo": Layout(
        logs.read_promptfoo, ("unit", "model", "prompt"), "promptfoo", logs.PROMPTFOO_SCALE
    ),
}
