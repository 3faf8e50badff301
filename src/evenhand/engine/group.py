"""Who judges: the groups of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from evenhand.exchange import Style


class JudgeGroup(Struct, frozen=True, kw_only=True):
    """A judge of a run, or the judges of its relay: who they are, and their place in the run."""

    index: int
    names: tuple[str, ...]
    styles: tuple[Style, ...]
    caveat: str
    repeats: int
    turn: int
    """How many judgments of each unit the groups before this one make."""


def group_names(judge_groups: Sequence[JudgeGroup]) -> list[str]:
    """Who judges, a name each: a judge, or those of a relay in their order. Judges of one name
    that differ in their parameters are counted."""
    names: list[str] = []
    times: Counter[str] = Counter()
    for name in (" > ".join(group.names) for group in judge_groups):
        times[name] += 1
        names.append(f"{name} ({times[name]})" if times[name] > 1 else name)
    return names
