"""A run in a store, as it is worked with in Python."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.errors import EvenhandError
from evenhand.files.outputs import check_output
from evenhand.judges.credentials import environment
from evenhand.notebook import Shown, ShownTable, flat_fields
from evenhand.results.frames import Frame, Judgments, flat_rows, observation_rows
from evenhand.results.units import full_rows
from evenhand.runs.differences import with_present_suite
from evenhand.runs.recorded import Recorded, find_run
from evenhand.runs.stores import open_archive
from evenhand.store.archive import Archive

if TYPE_CHECKING:
    from evenhand.stats.agreement_result import Agreement
    from evenhand.stats.comparison import Comparison
    from evenhand.stats.leaderboard import Leaderboard


class Run(Shown):
    """A run in a store. `.summary` is as `evenhand run --json` prints it, `.stopped` the error that
    stopped it early, `.warning` why there are no verdicts."""

    def __init__(
        self,
        run: str,
        store_url: str,
        folder: Path,
        summary: Mapping[str, Any],
        stopped: EvenhandError | None = None,
        suite: Path | None = None,
        warning: str = "",
    ) -> None:
        self.id, self.stopped, self.warning = run, stopped, warning
        self.summary = dict(summary)
        self._url, self._folder, self._suite = store_url, folder, suite or folder

    def judgments(self) -> Judgments:
        """Return every judgment with all that is known about it, failures included; `.to_pandas()`
        makes a table of them, with the texts, scores, reasons and quotes."""
        with self._open() as (store, recorded):
            return Judgments(full_rows(store, recorded), self._flat_rows)

    def observations(self) -> Frame:
        """Return what its judgments say in numbers, as the view `observations` of the store;
        `.to_pandas()` makes a table of them."""
        with self._open() as (store, recorded):
            return Frame(observation_rows(store, recorded))

    def _flat_rows(self) -> list[dict[str, Any]]:
        with self._open() as (store, recorded):
            return list(flat_rows(store, recorded))

    def _tables(self) -> Iterator[ShownTable]:
        yield ShownTable((), list(flat_fields({"run": self.id, **self.summary})))

    def compare(
        self, by: str | Sequence[str] = (), baseline: str | None = None, **options: Any
    ) -> Comparison:
        """Return its variants side by side, as `evenhand compare`; `options` are `pair_by`,
        `judge`, `level`, `margin` and, for pairs, `rule`."""
        from evenhand.results.compare import compare_run

        with self._open() as (store, recorded):
            return compare_run(store, recorded, _as_tuple(by), baseline, **options)

    def leaderboard(self, **options: Any) -> Leaderboard:
        """Return its candidates ranked, as `evenhand leaderboard`; `options` are those of that
        command."""
        from evenhand.results.board import rank

        with self._open() as (store, recorded):
            return rank(store, recorded, **options)

    def agreement(self, against: Run | str | None = None, **options: Any) -> Agreement:
        """Return how far its judges agree with another run of its store, with a judge
        (`RUN:JUDGE`, `:JUDGE`), or among themselves, as `evenhand agreement`; `options` are
        `judges`, `by`, `level`, `majority`, `every` and, for pairs, `ties` and `rule`."""
        from evenhand.results.agreement import agreement_of, label_source

        name = against.id if isinstance(against, Run) else against
        with self._open() as (store, recorded):
            labels = None if name is None else label_source(store, recorded, name)
            return agreement_of(store, recorded, labels, **options)

    def report(
        self,
        path: str | Path = "report.html",
        *,
        language: str | None = None,
        title: str = "",
        by: str | Sequence[str] = (),
        baseline: str | None = None,
        against: Run | str | None = None,
        within: str | None = None,
        stability: str | None = None,
        summary: bool = False,
        force: bool = False,
    ) -> Path:
        """Write the run as one HTML file, as `evenhand report`, and return its path; `against` is
        another run of its store, `summary` leaves the units out, and `force` replaces a file that
        is no report."""
        from evenhand.results.report import ReportOptions, write_report

        check_output(Path(path), force=force)
        name = against.id if isinstance(against, Run) else against
        with self._open() as (store, recorded):
            other = None if name is None else find_run(store, name)
            options = ReportOptions(
                language=language,
                title=title,
                by=_as_tuple(by),
                baseline=baseline,
                against=other,
                within=within,
                stability=stability,
                summary=summary,
            )
            write_report(Path(path), store, recorded, options)
        return Path(path)

    @contextmanager
    def _open(self) -> Iterator[tuple[Archive, Recorded]]:
        with closing(open_archive(self._url, self._folder)) as archive:
            archive.set_frozen(True)
            run = find_run(archive, self.id)
            yield archive, with_present_suite(run, self._suite, environment(self._folder))


def _as_tuple(by: str | Sequence[str]) -> tuple[str, ...]:
    return (by,) if isinstance(by, str) else tuple(by)
