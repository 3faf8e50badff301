"""The judgments of a run that filters leave, as columns: how many they are, and their order by
score; and what there is to filter by, with its numbers. Both pass over a run once, and hold no
texts."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from msgspec.structs import replace

from evenhand.judgment import Judgment
from evenhand.kinds.kind import Voting
from evenhand.observation import Scored
from evenhand.results.pages import WINDOW, planned_judgments
from evenhand.runs.recorded import Recorded
from evenhand.stats.observations import Floats, Ints
from evenhand.store.archive import Archive
from evenhand.store.ports import Browsed, Cursor, PageRequest, StoredJudgment, StoredUnit

INDEXED = 200_000
"""Runs of more judgments are paged through, but neither counted by filters nor sorted."""
UnitSort = Literal["order", "lowest", "highest"]


class Facets(NamedTuple):
    """The values that judgments can be filtered by, each with the number of judgments that have
    it."""

    winners: Counter[str]
    scores: Counter[str]
    tags: Counter[str]
    flags: Counter[str]
    confidence: Counter[str]


class JudgmentIndex(NamedTuple):
    """The places of the judgments that filters leave, in the order of the run, and their scores;
    nan without one."""

    places: Ints
    """A row per judgment: position, judge, repeat; the last two -1 where a unit waits."""
    scores: Floats

    @property
    def size(self) -> int:
        return int(self.scores.size)

    def page(self, sort: UnitSort, after: int, limit: int) -> list[Cursor]:
        """Return the cursors of the judgments of a page; those without a score come last."""
        rows = np.arange(self.size)
        if sort != "order":
            way = 1 if sort == "lowest" else -1
            rows = np.lexsort((way * np.nan_to_num(self.scores), np.isnan(self.scores)))
        return [Cursor(*map(int, self.places[row])) for row in rows[after : after + limit]]


def judgment_index(
    store: Archive, recorded: Recorded, browsed: Browsed, score: str = ""
) -> JudgmentIndex:
    """Return the index of the judgments that filters leave; `score` is one of the values of
    `Facets.scores`."""
    places, scores = array("q"), array("d")
    for unit, stored in _matching(store, recorded, browsed):
        scored = None if stored is None else _scored(recorded, recorded.judgment(stored))
        if score and (scored is None or score not in score_labels(scored)):
            continue
        places.extend((unit.position, *((stored.judge, stored.repeat) if stored else (-1, -1))))
        scores.append(np.nan if scored is None else _value(scored))
    return JudgmentIndex(
        np.array(places, dtype=np.int64).reshape(-1, 3), np.array(scores, dtype=np.float64)
    )


def indexed_rows(
    store: Archive, recorded: Recorded, places: list[Cursor]
) -> Iterator[tuple[StoredUnit, StoredJudgment | None]]:
    """Yield the rows that stand at these places; what has been settled away since is left out."""
    selection = Browsed(planned=planned_judgments(recorded))
    for place in places:
        before = place._replace(repeat=place.repeat - 1)
        request = PageRequest(place=before, limit=1, reach=WINDOW)
        for unit, stored in store.judgment_page(recorded.row.id, selection, request).rows:
            if unit.position == place.unit:
                yield unit, stored


def _matching(
    store: Archive, recorded: Recorded, browsed: Browsed
) -> Iterator[tuple[StoredUnit, StoredJudgment | None]]:
    selection = replace(browsed, planned=planned_judgments(recorded))
    place: Cursor | None = Cursor(0)
    while place is not None:
        request = PageRequest(place=place, limit=WINDOW, reach=INDEXED)
        page = store.judgment_page(recorded.row.id, selection, request)
        yield from page.rows
        place = page.stopped
        if page.more:
            unit, stored = page.rows[-1]
            place = Cursor(unit.position, *((stored.judge, stored.repeat) if stored else ()))


def facets(store: Archive, recorded: Recorded) -> Facets:
    """Return the values that the judgments of a run can be filtered by, with the number of each."""
    counted = Facets(Counter(), Counter(), Counter(), Counter(), Counter())
    for _, stored in store.judgments(recorded.scope):
        judgment = recorded.kind.read_judgment(stored.text)
        counted.flags.update({flag.partition(":")[0] for flag in judgment.flags})
        measure = recorded.kind.measure
        if isinstance(measure, Voting):
            winner = measure.judgment(judgment).winner
            counted.winners.update([winner] if winner else [])
        elif scored := measure.judgment(judgment):
            counted.scores.update(score_labels(scored))
            counted.tags.update(scored.tags)
            counted.confidence.update([scored.confidence] if scored.confidence else [])
    return counted


def _scored(recorded: Recorded, judgment: Judgment) -> Scored | None:
    measure = recorded.kind.measure
    return None if isinstance(measure, Voting) else measure.judgment(judgment)


def score_labels(scored: Scored) -> list[str]:
    """Return the scores of a verdict as they are filtered by: each with its dimension; totals by
    tens."""
    if scored.total is not None:
        tens = min(int(scored.total * 100 // 10) * 10, 90)
        return ["90 to 100" if tens == 90 else f"{tens} to under {tens + 10}"]
    return [f"{name} {score:g}" for name, score in scored.scores.items()]


def _value(scored: Scored) -> float:
    """Return the number that judgments are sorted by: the total, else the mean score; nan if
    none."""
    if scored.total is not None:
        return scored.total
    values = list(scored.scores.values())
    return sum(values) / len(values) if values else float("nan")
