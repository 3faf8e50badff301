"""The store behind the pages: runs, and figures that take long, kept while nothing changes."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Full, LifoQueue
from typing import Any, Generic, NamedTuple, TypeVar

from evenhand.errors import EvenhandError, StoreError, UsageError
from evenhand.judges.credentials import environment
from evenhand.kinds import ANSWERS
from evenhand.report.html.render import render
from evenhand.report.model import ChangedPair, Report
from evenhand.results import pages
from evenhand.results.observations import select
from evenhand.results.pages import RunStatus
from evenhand.results.report import ReportOptions, make_report
from evenhand.results.side_by_side import Setting, SideBySide, matrix_of, page_of, side_by_side
from evenhand.results.units import UnitDetail, text_of, unit_detail
from evenhand.runs.differences import with_present_suite, with_tables
from evenhand.runs.recorded import Recorded, named_run, recorded_run
from evenhand.stats.matrix import QuestionMatrix
from evenhand.store.archive import Archive
from evenhand.store.ledger import Store
from evenhand.store.ports import Spent
from evenhand.suite import FILE, load_suite
from evenhand.words import Sentence

T = TypeVar("T")
IDLE_STORES = 4
FIGURES = 1024
"""Figures that are kept."""
AT_ONCE = 2
"""Figures that are made at a time."""
ROWS = 50
FIGURES_AT_ONCE = 50_000
"""Up to so many judgments, figures are computed without being asked for."""


class NotFound(UsageError):  # noqa: N818  as in errors.py
    """There is no such run, unit or file: 404."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Seconds that a page waits for counts and figures before it is shown without them, or with
    the last known ones; and the pause before they are made again, in multiples of the time that
    they took: a store that changes all the time keeps no processor busy with counting."""

    counts: float = 1.0
    figures: float = 0.7
    pause: float = 4.0


class StorePool:
    """One store a request: none is used by two threads at once."""

    def __init__(self, open_one: Callable[[], Store]) -> None:
        self.open = open_one
        self._idle: LifoQueue[Store] = LifoQueue(IDLE_STORES)

    @contextmanager
    def borrow(self) -> Iterator[Archive]:
        """Lend a store for a request, frozen in one state; raise StoreError where it is gone."""
        store = self._idle_or_new()
        try:
            store.archive.set_frozen(True)
            try:
                yield store.archive
            finally:
                store.archive.set_frozen(False)
        except StoreError:
            store.close()
            raise
        except BaseException:
            self._give_back(store)
            raise
        self._give_back(store)

    def _give_back(self, store: Store) -> None:
        try:
            self._idle.put_nowait(store)
        except Full:
            store.close()

    def _idle_or_new(self) -> Store:
        with suppress(Empty):
            while True:
                store = self._idle.get_nowait()
                if store.archive.state() is not None:
                    return store
                store.close()
        return self.open()

    def close(self) -> None:
        with suppress(Empty):
            while True:
                self._idle.get_nowait().close()


@dataclass(slots=True)
class _Figure(Generic[T]):
    """A figure, the state of what it is of, and how long it took."""

    value: T | None = None
    error: EvenhandError | None = None
    state: object = None
    took: float = 0.0
    made_at: float = 0.0
    ready: threading.Event = field(default_factory=threading.Event)
    is_under_way: bool = False


class FigureCache:
    """Figures of a store, each made at most once per state, in a thread of its own. Whoever
    asks waits a little, and then gets the last known figure, or None."""

    def __init__(self, stores: StorePool, pause: float) -> None:
        self._stores, self._pause = stores, pause
        self._lock = threading.Lock()
        self._figures: OrderedDict[Hashable, _Figure[Any]] = OrderedDict()
        self._watched: Store | None = None
        self._at_once = threading.Semaphore(AT_ONCE)
        self._in_background = threading.Semaphore(AT_ONCE - 1)

    def get(
        self,
        key: Hashable,
        make: Callable[[Archive], T],
        wait: float,
        version: object = None,
        *,
        in_background: bool = False,
    ) -> T | None:
        """Return the figure under a key, made of the store as it is, or once for each version of
        what it is about; raise what making it raised. One place is left to figures that are not
        made in the background."""
        with self._lock:
            state = self._state()
            state = state if version is None else version
            figure = self._figures.setdefault(key, _Figure())
            self._figures.move_to_end(key)
            if len(self._figures) > FIGURES:
                self._figures.popitem(last=False)
            if self._is_due(figure, state):
                figure.is_under_way = True
                figure.ready.clear()
                turn = self._in_background if in_background else nullcontext()
                work = (figure, state, make, turn)
                threading.Thread(target=self._make, args=work, daemon=True).start()
        figure.ready.wait(wait)
        if figure.error is not None:
            raise figure.error
        return figure.value

    def known(self, key: Hashable) -> Any:
        """Return the figure under a key as it is; None if there is none."""
        with self._lock:
            figure = self._figures.get(key)
        return figure and figure.value

    def _state(self) -> object:
        if self._watched is not None:
            state = self._watched.archive.state()
            if state is not None:
                return state
            self._watched.close()
            self._watched = None
            self._figures.clear()
        self._watched = self._stores.open()
        return self._watched.archive.state()

    def _is_due(self, figure: _Figure[Any], state: object) -> bool:
        if figure.is_under_way or (figure.state == state and figure.ready.is_set()):
            return False
        return time.monotonic() - figure.made_at >= self._pause * figure.took

    def _make(
        self,
        figure: _Figure[T],
        state: object,
        make: Callable[[Archive], T],
        turn: AbstractContextManager[Any],
    ) -> None:
        begun = time.monotonic()
        try:
            with turn, self._at_once, self._stores.borrow() as store:
                begun = time.monotonic()
                value = make(store)
            figure.value, figure.error = value, None
        except EvenhandError as error:
            figure.error = error
        except Exception as error:  # whoever asks must not wait for ever
            figure.error = EvenhandError(Sentence("web.not_computed", kind=type(error).__name__))
        finally:
            figure.made_at = time.monotonic()
            figure.took = figure.made_at - begun
            figure.state, figure.is_under_way = state, False
            figure.ready.set()

    def close(self) -> None:
        if self._watched is not None:
            self._watched.close()


class RunReport(NamedTuple):
    """The report that answers a run; None where there is none."""

    report: Report | None


def _in_time(
    figure: Callable[[Recorded, float], T], runs: Sequence[Recorded], seconds: float
) -> list[T]:
    """Return a figure of each run. All are begun first; then they are waited for, together."""
    end = time.monotonic() + seconds
    for run in runs:
        figure(run, 0.0)
    return [figure(run, max(0.0, end - time.monotonic())) for run in runs]


class ViewService:
    """Answers what pages ask, each from a store of its own."""

    def __init__(self, open_one: Callable[[], Store], timeouts: Timeouts) -> None:
        self._timeouts = timeouts
        self.stores = StorePool(open_one)
        self.cache = FigureCache(self.stores, timeouts.pause)

    def close(self) -> None:
        self.cache.close()
        self.stores.close()

    def list_runs(self) -> list[Recorded]:
        """Return all runs, the one started last first."""
        make: Callable[[Archive], list[Recorded]] = lambda store: [  # noqa: E731
            recorded_run(store, row) for row in store.runs()
        ]
        return self.cache.get("runs", make, 60) or []

    def find_run(self, name: str) -> Recorded:
        """Return the run that a command line would name so; raise NotFound."""
        runs = {recorded.id: recorded for recorded in self.list_runs()}
        try:
            rows = [recorded.row for recorded in runs.values()]
            recorded = runs[named_run(rows, name, lambda row: runs[row.id].is_judged_here).id]
        except UsageError as error:
            raise NotFound(error.what, advice=error.advice) from None
        return with_present_suite(recorded, Path(), environment())

    def named(self, name: str) -> list[Recorded]:
        """Return the runs of a name that judged something, the one started last first."""
        runs = [run for run in self.list_runs() if run.row.name == name]
        return [run for run in runs if run.kind_name != ANSWERS]

    def has_trend(self, run: Recorded) -> bool:
        """Return True if there are several runs of the name of this one."""
        return len(self.named(run.row.name)) > 1

    def with_present_suite(self, runs: Sequence[Recorded]) -> list[Recorded]:
        """Return runs with `[compare]` of the suite in this folder, where that made them."""
        try:
            suite = load_suite(Path(FILE), environment())
        except UsageError:
            return list(runs)
        name = suite.file.name
        return [with_tables(run, suite) if run.row.name == name else run for run in runs]

    def standings(self, runs: Sequence[Recorded]) -> list[RunStatus | None]:
        """Return the counts of runs, as far as they can be made in the time of one page."""
        return _in_time(self.standing, runs, self._timeouts.counts)

    def answers(self, runs: Sequence[Recorded]) -> list[RunReport | None]:
        """Return the answers of runs, as far as they can be made in the time of one page."""
        return _in_time(self.answer, runs, self._timeouts.figures)

    def answer(self, run: Recorded, wait: float | None = None) -> RunReport | None:
        """Return the answer of a run; None while it is being made. Of a run with very many
        verdicts it is there once somebody has asked for its figures."""
        stands = self.standing(run, 0)
        if stands is None:
            return None
        if not 0 < stands.counts.verdicts <= FIGURES_AT_ONCE:
            return RunReport(self.cache.known(("report", run.row.id, run.manifest.compare)))
        key = ("answer", run.row.id, run.manifest.compare)
        make: Callable[[Archive], RunReport] = lambda store: RunReport(  # noqa: E731
            make_report(store, run, ReportOptions(answer_only=True))
        )
        seconds = self._timeouts.figures if wait is None else wait
        try:
            version = self._version(run, wait=0)
            return self.cache.get(key, make, seconds, version, in_background=True)
        except EvenhandError:  # said on the page of the run: the other runs have answers
            return RunReport(None)

    def spent(self, runs: Sequence[Recorded]) -> Spent | None:
        """Return what runs have spent, and those that made their answers; None while it is
        counted."""
        made = {run.manifest.answers for run in runs} - {""}
        ids = [run.id for run in runs] + sorted(made)
        make: Callable[[Archive], Spent] = lambda store: sum(  # noqa: E731
            map(store.spent, ids), Spent(0, 0, 0, 0, 0, 0)
        )
        return self.cache.get(("spent", *ids), make, self._timeouts.counts)

    def _version(self, *runs: Recorded | None, wait: float | None = None) -> object:
        """Return what the figures of runs hang on; None, which is any change of the store, until
        they are counted."""
        stands = [(run.row.starts, self.standing(run, wait)) for run in runs if run]
        versions = [(starts, status.counts) for starts, status in stands if status]
        return versions if len(versions) == len(stands) else None

    def standing(self, run: Recorded, wait: float | None = None) -> RunStatus | None:
        """Return the counts of a run; None if they were never made yet."""
        key = ("standing", run.row.id, run.row.starts)
        seconds = self._timeouts.counts if wait is None else wait
        return self.cache.get(key, lambda store: pages.standing(store, run), seconds)

    def progress(self, run: Recorded) -> dict[str, Any] | None:
        """Return counts, calls a minute and time left of a run; None if not counted yet."""
        stands = self.standing(run)
        if stands is None:
            return None
        with self.stores.borrow() as store:
            return pages.progress(store, run, stands)

    def side_by_side(self, run: Recorded, setting: Setting) -> SideBySide | None:
        """Return two variants or two runs question by question; None while it is being computed.
        Raise UsageError where they cannot be set so."""
        against = setting.against.row.id if setting.against else None
        names = (setting.baseline, setting.variant, against)
        key = ("side by side", run.row.id, run.manifest.compare, *names)
        make: Callable[[Archive], SideBySide] = lambda store: side_by_side(  # noqa: E731
            store, run, setting
        )
        version = self._version(run, setting.against)
        return self.cache.get(key, make, self._timeouts.figures, version)

    def pairs(
        self, run: Recorded, setting: Setting, table: SideBySide, places: Sequence[int]
    ) -> list[ChangedPair]:
        """Return these rows of a table with their texts and reasons."""
        with self.stores.borrow() as store:
            return page_of(store, run, setting, table, places)

    def matrix(
        self, run: Recorded, baseline: str | None, where: Sequence[str]
    ) -> QuestionMatrix | None:
        """Return every question by every variant, of the units that FIELD=VALUE selects; None while
        it is being computed. Raise UsageError where there is nothing to set side by side."""
        key = ("matrix", run.row.id, run.manifest.compare, baseline, *where)
        make: Callable[[Archive], QuestionMatrix] = lambda store: matrix_of(  # noqa: E731
            store, select(store, run, where), baseline
        )
        return self.cache.get(key, make, self._timeouts.figures, self._version(run))

    def texts(self, run: Recorded, units: Sequence[str]) -> list[str]:
        """Return the beginnings of what units are about."""
        with self.stores.borrow() as store:
            return [text_of(store, run, unit) for unit in units]

    def report(self, run: Recorded, where: Sequence[str] = ()) -> Report | None:
        """Return the figures of a run, or of the units that FIELD=VALUE selects; None while they
        are being computed. Raise UsageError for a field or value that nobody has."""
        key = ("report", run.row.id, run.manifest.compare, *where)
        make: Callable[[Archive], Report] = lambda store: make_report(  # noqa: E731
            store, select(store, run, where), ReportOptions(summary=True)
        )
        return self.cache.get(key, make, self._timeouts.figures, self._version(run))

    def report_file(
        self, run: Recorded, language: str, summary: bool, where: Sequence[str] = ()
    ) -> str:
        """Return the report of a run as one HTML file."""
        options = ReportOptions(language=language, summary=summary)
        with self.stores.borrow() as store:
            return render(make_report(store, select(store, run, where), options))

    def suggestions(self, run: Recorded) -> dict[str, Any]:
        """Return values to filter by, as far as they are known."""
        make: Callable[[Archive], dict[str, Any]] = lambda store: pages.suggestions(  # noqa: E731
            store, run
        )
        key = ("suggestions", run.row.id, run.row.starts)
        found = self.cache.get(key, make, self._timeouts.counts)
        return found or {"fields": [], "values": {}, "candidates": []}

    def unit(self, run: Recorded, name: str) -> UnitDetail:
        """Return a unit with all its judgments; raise NotFound."""
        with self.stores.borrow() as store:
            detail = unit_detail(store, run, name)
        if detail is None:
            raise NotFound(Sentence("web.no_unit", run=run.row.id, unit=name))
        return detail
