"""What pages and API share: the store of the server, its runs, and figures that take long."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from evenhand.engine.loop import run_in_loop
from evenhand.errors import UsageError, quoted
from evenhand.judges.credentials import environment
from evenhand.report.changes import ChangedPair
from evenhand.report.html.build import Report
from evenhand.report.html.charts import Figure, figures
from evenhand.report.html.page import Words
from evenhand.report.html.render import render
from evenhand.report.html.units import JudgedRow
from evenhand.results import pages
from evenhand.results.judgment_index import (
    INDEXED,
    Facets,
    JudgmentIndex,
    facets,
    indexed_rows,
    judgment_index,
)
from evenhand.results.pages import REACH, Standing, read_place
from evenhand.results.report import ReportOptions, make_report
from evenhand.results.rows import asked_row
from evenhand.results.selection import select
from evenhand.results.side_by_side import Setting, SideBySide, page_of, side_by_side
from evenhand.runs.differences import with_present_suite
from evenhand.runs.recorded import Recorded, named_run, recorded_run
from evenhand.runs.settle import settle_run
from evenhand.store.ports import Archive, Browsed, Cursor, PageRequest, Store, StoredUnit
from evenhand.web.stores import FigureCache, Patience, Stores

ROWS = 50


class NotFound(UsageError):  # noqa: N818  as in errors.py
    """There is no such run, unit, call or protocol: 404."""


class Desk:
    """Answers what pages and API ask, each from a store of its own."""

    def __init__(self, open_one: Callable[[], Store], patience: Patience) -> None:
        self._patience = patience
        self.stores = Stores(open_one)
        self.cache = FigureCache(self.stores, patience.pause)

    def close(self) -> None:
        self.cache.close()
        self.stores.close()

    def runs(self) -> list[Recorded]:
        """All runs, the one started last first."""
        make: Callable[[Archive], list[Recorded]] = lambda store: [  # noqa: E731
            recorded_run(store, row) for row in store.runs()
        ]
        return self.cache.get("runs", make, 60) or []

    def run(self, name: str) -> Recorded:
        """The run that a command line would name so; raises NotFound."""
        runs = {recorded.id: recorded for recorded in self.runs()}
        try:
            rows = [recorded.row for recorded in runs.values()]
            recorded = runs[named_run(rows, name, lambda row: runs[row.id].is_judged_here).id]
        except UsageError as error:
            raise NotFound(error.what, advice=error.advice) from None
        return with_present_suite(recorded, Path(), environment())

    def standings(self, runs: Sequence[Recorded]) -> list[Standing | None]:
        """How runs stand, as far as it can be counted in the time of one page."""
        end = time.monotonic() + self._patience.counts
        for run in runs:
            self.standing(run, wait=0)
        return [self.standing(run, wait=max(0.0, end - time.monotonic())) for run in runs]

    def standing(self, recorded: Recorded, wait: float | None = None) -> Standing | None:
        """How a run stands, as last counted; None if it was never counted to the end yet."""
        key = ("standing", recorded.row.id, recorded.row.starts)
        seconds = self._patience.counts if wait is None else wait
        return self.cache.get(key, lambda store: pages.standing(store, recorded), seconds)

    def overview(self, recorded: Recorded) -> dict[str, Any]:
        """A run and how it stands, waiting for the counts as long as they take."""
        stands = self.standing(recorded, wait=600)
        assert stands is not None
        return pages.overview(recorded, stands)

    def progress(self, recorded: Recorded) -> dict[str, Any] | None:
        stands = self.standing(recorded)
        if stands is None:
            return None
        with self.stores.lent() as store:
            return pages.progress(store, recorded, stands)

    def agreement(self, first: Recorded, second: Recorded) -> dict[str, Any] | None:
        """How far two runs agree; None while it is being counted."""
        key = ("agreement", first.row.id, second.row.id)
        make: Callable[[Archive], dict[str, Any]] = lambda store: pages.agreement(  # noqa: E731
            store, first, second
        )
        return self.cache.get(key, make, self._patience.figures, is_long=True)

    def side_by_side(self, recorded: Recorded, setting: Setting) -> SideBySide | None:
        """Two variants or two runs question by question; None while it is being computed. Raises
        UsageError where they cannot be set so."""
        earlier = setting.against.row.id if setting.against else None
        names = (setting.by, setting.baseline, setting.variant, earlier)
        key = ("side by side", recorded.row.id, recorded.manifest.compare, *names)
        make: Callable[[Archive], SideBySide] = lambda store: side_by_side(  # noqa: E731
            store, recorded, setting
        )
        return self.cache.get(key, make, self._patience.figures, is_long=True)

    def pairs(
        self, recorded: Recorded, setting: Setting, table: SideBySide, places: Sequence[int]
    ) -> list[ChangedPair]:
        """These rows of it with their texts and reasons."""
        with self.stores.lent() as store:
            return page_of(store, recorded, setting, table, places)

    def report(self, recorded: Recorded, where: Sequence[str] = ()) -> Report | None:
        """What the judgments of a run, or of the units that FIELD=VALUE selects, come to; None
        while it is being computed. Raises UsageError for a field or value that nobody has."""
        key = ("report", recorded.row.id, recorded.manifest.compare, *where)
        make: Callable[[Archive], Report] = lambda store: make_report(  # noqa: E731
            store, select(store, recorded, where), ReportOptions(summary=True)
        )
        return self.cache.get(key, make, self._patience.figures, is_long=True)

    def charts(
        self, recorded: Recorded, say: Words, where: Sequence[str] = ()
    ) -> tuple[Report, list[tuple[Figure, str]]] | None:
        """The pictures of a run in a language, each with its drawing, and the report they are of;
        None while they are being made. There are none where the extra is missing."""
        report = self.report(recorded, where)
        if report is None:
            return None

        def draw(store: Archive) -> tuple[Report, list[tuple[Figure, str]]]:
            try:
                return report, [(figure, figure.svg) for figure in figures(report, say)]
            except UsageError:
                return report, []

        key, seconds = ("charts", recorded.row.id, say.language, *where), self._patience.figures
        return self.cache.get(key, draw, seconds, is_long=True, of=report)

    def figures(self, recorded: Recorded, where: Sequence[str] = ()) -> dict[str, Any] | None:
        """The same as plain values."""
        report = self.report(recorded, where)
        if report is None:
            return None
        names = ("variants", "means", "differences", "standings", "meetings", "warnings", "notes")
        changed = report.changed and report.changed.json()
        selected = report.selected and report.selected._asdict()
        values = {name: _plain(getattr(report, name)) for name in names}
        return values | {"changed": changed, "selected": selected}

    def report_file(
        self, recorded: Recorded, language: str, summary: bool, where: Sequence[str] = ()
    ) -> str:
        """The report of a run as one HTML file; raises UsageError where the extra is missing."""
        options = ReportOptions(language=language, summary=summary)
        with self.stores.lent() as store:
            return render(make_report(store, select(store, recorded, where), options))

    def suggestions(self, recorded: Recorded) -> dict[str, Any]:
        key = ("suggestions", recorded.row.id, recorded.row.starts)
        make: Callable[[Archive], dict[str, Any]] = lambda store: pages.suggestions(  # noqa: E731
            store, recorded
        )
        suggestions = self.cache.get(key, make, self._patience.counts)
        return suggestions or {"fields": [], "values": {}, "candidates": [], "flags": []}

    def facets(self, recorded: Recorded) -> Facets | None:
        """What the judgments of a run can be filtered by; None while it is being counted, and of
        runs too large to count."""
        if not self._is_indexed(recorded):
            return None
        key = ("facets", recorded.row.id)
        return self.cache.get(key, lambda store: facets(store, recorded), self._patience.counts)

    def index(self, recorded: Recorded, browsed: Browsed, score: str) -> JudgmentIndex | None:
        """The judgments that filters leave; None while they are being looked for, and of runs too
        large for it."""
        if not self._is_indexed(recorded):
            return None
        make: Callable[[Archive], JudgmentIndex] = lambda store: judgment_index(  # noqa: E731
            store, recorded, browsed, score
        )
        key = ("index", recorded.row.id, browsed, score)
        return self.cache.get(key, make, self._patience.counts)

    def indexed_rows(
        self, recorded: Recorded, places: list[Cursor]
    ) -> list[tuple[StoredUnit, JudgedRow | None]]:
        """The judgments at these places of an index."""
        with self.stores.lent() as store:
            return [
                (unit, None if stored is None else asked_row(recorded, unit, stored))
                for unit, stored in indexed_rows(store, recorded, places)
            ]

    def _is_indexed(self, recorded: Recorded) -> bool:
        stands = self.standing(recorded)
        return stands is not None and stands.counts.planned <= INDEXED

    def unit(self, recorded: Recorded, name: str) -> pages.UnitDetail:
        """A unit with all its judgments; raises NotFound."""
        with self.stores.lent() as store:
            detail = pages.unit_detail(store, recorded, name)
        if detail is None:
            raise NotFound(f"run {recorded.row.id} has no unit {quoted(name)}")
        return detail

    def call(self, recorded: Recorded, no: int) -> dict[str, Any]:
        """A call with its prompt; raises NotFound."""
        with self.stores.lent() as store:
            detail = pages.call_detail(store, recorded, no)
        if detail is None:
            raise NotFound(f"run {recorded.row.id} paid for no call {no}")
        return detail

    def settle(self, recorded: Recorded) -> dict[str, Any]:
        """Recompute the judgments of a run from its replies."""
        if recorded.imported:
            raise UsageError("its judgments were made elsewhere: there are no replies to settle")
        with closing(self.stores.opened()) as store:
            return run_in_loop(settle_run(recorded, store)).json()


def _plain(figure: Any) -> Any:
    """Frozen results as JSON has them."""
    if is_dataclass(figure) and not isinstance(figure, type):
        return {name: _plain(value) for name, value in asdict(figure).items()}
    return [_plain(value) for value in figure] if isinstance(figure, list | tuple) else figure


def judge_place(recorded: Recorded, name: str) -> int | None:
    """Which judge of a run has a name; raises UsageError."""
    if not name:
        return None
    if name not in recorded.names:
        raise UsageError(
            f"run {recorded.row.id} has no judge {quoted(name)}",
            advice=f"It has: {', '.join(recorded.names)}.",
        )
    return recorded.names.index(name)


def page_request(
    after: str, before: str, limit: int = ROWS, *, newest_first: bool = False
) -> PageRequest:
    """The page after a place, or before one. A list that begins with the newest is read
    backwards."""
    place: Cursor | None = None
    if after or before:
        place = read_place(before or after)
    forward = not before if not newest_first else bool(after)
    return PageRequest(place=place, forward=forward, limit=limit, reach=REACH)


def read_filters(recorded: Recorded, filters: dict[str, Any]) -> Browsed:
    """The filters of a request, with the judge by its name."""
    return Browsed(**{**filters, "judge": judge_place(recorded, filters["judge"])})
