"""The package from Python: judge one unit, or run a suite. The sync forms are a thin edge."""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from evenhand.engine.loop import wait_for
from evenhand.engine.prices import dollars
from evenhand.errors import (
    DataError,
    EvenhandError,
    NoVerdicts,
    NoVerdictsWarning,
    StoreBusy,
    UsageError,
    quoted,
)
from evenhand.files.outputs import check_output
from evenhand.files.protocols import find_protocol
from evenhand.files.rubrics import read_rubric
from evenhand.judges.credentials import environment
from evenhand.judgment import Judgment
from evenhand.kinds import KINDS
from evenhand.kinds.rows import RowError
from evenhand.notebook import html_table
from evenhand.results.frames import Judgments, flat_rows
from evenhand.results.rows import full_rows
from evenhand.runs.differences import with_present_suite
from evenhand.runs.judge import Options, Summary, Watch, judge_run
from evenhand.runs.plan import Plan
from evenhand.runs.prepare import prepare
from evenhand.runs.recorded import Recorded, find_run
from evenhand.runs.stores import MEMORY, open_archive, open_store
from evenhand.runs.tables import is_table, rubric_value, table_files, table_plan
from evenhand.store.ports import Archive, Changes, IncomingUnit, Store
from evenhand.suite import FILE, Suite, load_suite, suite_of_keys
from evenhand.suite_file import StoreSpec, SuiteFile
from evenhand.text import visible

if TYPE_CHECKING:
    from evenhand.stats.agreement.table import Agreement
    from evenhand.stats.comparison.comparison import Comparison
    from evenhand.stats.ranking.leaderboard import Leaderboard

BUSY_SECONDS = 0.05
"""Between looks at a question that another process or task is just asking."""


async def score_async(
    question: str,
    output: str,
    *,
    rubric: Mapping[str, Any] | str | Path,
    judge: str = "embedded",
    language: str = "en",
    meta: Mapping[str, Any] | None = None,
    store: str = MEMORY,
    options: Options | None = None,
    **judge_settings: Any,
) -> Judgment:
    """Score one output on every dimension of a rubric; the evidence is verified.

    `rubric` is the rubric itself, the path of a .json or .toml file, or one sentence.
    `judge_settings` are the keys of a `[[judges]]` entry, such as `base_url` or `max_tokens`. With
    a `store` that is a file, the same question is never paid for twice. `options` say how it is
    carried out, e.g. from a budget that several questions share. A failure is a value: see
    `.status`.
    """
    value = rubric_value(rubric, find_protocol("rubric"), language)
    row = {"question": question, "model_output": output, "rubric": value, "meta": meta or {}}
    file = _file("rubric", language, judge, judge_settings)
    return await _judged(_one_unit(file, row), store, options)


async def prefer_async(
    topic: str,
    first: str,
    second: str,
    *,
    judge: str = "embedded",
    language: str = "en",
    names: tuple[str, str] = ("first", "second"),
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    store: str = MEMORY,
    options: Options | None = None,
    **judge_settings: Any,
) -> Judgment:
    """Which of two answers to a topic is better, on content alone: both orders, and another round
    where they contradict each other.

    `.output["winner"]` is `A` (the first), `B`, `tie` or `uncertain`. `names` are the candidates'
    own, e.g. their models; no judge sees them. `settings` are keys of `[settings]`, such as
    `max_rounds`; the rest is as for `score_async`.
    """
    candidates = [
        {"id": name, "text": text} for name, text in zip(names, (first, second), strict=True)
    ]
    row = {"pair_id": "pair", "topic": topic, "candidates": candidates}
    more = {"settings": dict(settings or {}), "seed": seed}
    file = _file("pairwise", language, judge, judge_settings, **more)
    return await _judged(_one_unit(file, row), store, options)


async def grade_async(
    prompt: str,
    answer: str,
    *,
    rubric: str | Path,
    judge: str = "embedded",
    language: str = "en",
    task_name: str = "task",
    store: str = MEMORY,
    options: Options | None = None,
    **judge_settings: Any,
) -> Judgment:
    """Grade one answer out of 100 by its task's own rubric, critical-fail conditions first.

    `rubric` is the Markdown itself or the path of a .md or .toml file; the rest is as for
    `score_async`. `.output["total_score"]` is the grade.
    """
    form = KINDS["weighted"].rubric_form
    if isinstance(rubric, Path) or (form and form.is_file(rubric)):
        rubric = _rubric_file(Path(rubric), "weighted")
    row = {"task_name": task_name, "prompt": prompt, "answer": answer, "rubric": rubric}
    file = _file("weighted", language, judge, judge_settings)
    return await _judged(_one_unit(file, row), store, options)


def _rubric_file(path: Path, protocol: str) -> Any:
    return read_rubric(path, find_protocol(protocol))


async def _judged(plan: Plan, store: str, options: Options | None) -> Judgment:
    opened = open_store(store)
    try:
        summary = await _in_turn(plan, opened, options)
        if summary.stopped:
            raise summary.stopped
        for _, stored in opened.archive.judgments(summary.scope):
            return plan.kind.read_judgment(stored.text)
        raise _nothing_recorded(plan)
    finally:
        opened.close()


async def _in_turn(plan: Plan, store: Store, options: Options | None) -> Summary:
    """Judge, or wait for whoever is being given the same judgment, and take theirs."""
    while True:
        try:
            return await judge_run(plan, store, options)
        except StoreBusy:
            await asyncio.sleep(BUSY_SECONDS)


def _file(
    protocol: str, language: str, judge: str, judge_settings: Mapping[str, Any], **more: Any
) -> SuiteFile:
    """The suite of one unit; raises UsageError."""
    name = {"pairwise": "prefer", "weighted": "grade"}.get(protocol, "score")
    values: dict[str, Any] = {"name": name, "protocol": protocol, "language": language}
    values |= {"data": ["-"], "judges": [{"model": judge, **judge_settings}]}
    return suite_of_keys(values | more)


def _one_unit(file: SuiteFile, row: Mapping[str, Any]) -> Plan:
    """A suite whose data is one row in memory; raises UsageError. Questions that are asked at the
    same time are runs of their own, for a run is its data."""
    plan = prepare(Suite(file, Path()), environment(), lambda notice: None)
    try:
        (unit,) = plan.judging.read(row)
    except RowError as error:
        raise UsageError(str(error)) from None
    incoming = IncomingUnit(unit.id, "one unit", unit.body)
    return structs.replace(plan, units=lambda judging: iter([incoming]))


def _nothing_recorded(plan: Plan) -> DataError:
    """Only a judge of recorded replies leaves a question open."""
    (unit,) = plan.units(plan.judging)
    return DataError(
        f"{quoted(plan.setups[0].judge.name)} has no reply for unit {quoted(unit.id)}",
        advice="Record a reply under that unit: score() names it by `meta`, as in a data file.",
    )


class Run:
    """A run that was carried out, and the store that keeps it."""

    def __init__(
        self,
        run: str,
        store_url: str,
        folder: Path,
        summary: Mapping[str, Any],
        stopped: EvenhandError | None = None,
        suite: Path | None = None,
    ) -> None:
        self.id, self.stopped = run, stopped
        self.summary = dict(summary)
        self._url, self._folder, self._suite = store_url, folder, suite or folder

    def judgments(self) -> Judgments:
        """Every judgment with all that is known about it, failures included; `.to_pandas()`,
        `.to_polars()` and `.to_arrow()` make a table of them."""
        with self._opened() as (store, recorded):
            return Judgments(full_rows(store, recorded), self._flat_rows)

    def _flat_rows(self) -> list[dict[str, Any]]:
        with self._opened() as (store, recorded):
            return list(flat_rows(store, recorded))

    def _repr_html_(self) -> str:
        counts = {name: self.summary.get(name) for name in ("planned", "verdicts", "pending")}
        failures = sum((self.summary.get("failures") or {}).values())
        header = ("run", "planned", "verdicts", "failures", "pending", "cost in $")
        planned, verdicts, pending = counts.values()
        row = (self.id, planned, verdicts, failures, pending, self.summary.get("cost_usd"))
        return html_table(header, [row])

    def compare(
        self, by: str | Sequence[str] = (), baseline: str | None = None, **options: Any
    ) -> Comparison:
        """Its variants side by side, as `evenhand compare`; `options` are `pair_by`, `judge`,
        `level`, `seed` and, for pairs, `rule`."""
        from evenhand.results.compare import compared

        with self._opened() as (store, recorded):
            return compared(store, recorded, _listed(by), baseline, **options)

    def leaderboard(self, **options: Any) -> Leaderboard:
        """Its candidates ranked, as `evenhand leaderboard`; `options` are those of that command."""
        from evenhand.results.ranked import ranked

        with self._opened() as (store, recorded):
            return ranked(store, recorded, **options)

    def agreement(self, against: Run | str | None = None, **options: Any) -> Agreement:
        """How far its judges agree with another run of its store, with a judge (`RUN:JUDGE`,
        `:JUDGE`), or among themselves, as `evenhand agreement`; `options` are `judges`, `by`,
        `level`, `majority` and, for pairs, `ties`, `split` and `rule`."""
        from evenhand.results.agreement import agreed, label_source

        name = against.id if isinstance(against, Run) else against
        with self._opened() as (store, recorded):
            labels = None if name is None else label_source(store, recorded, name)
            return agreed(store, recorded, labels, **options)

    @contextmanager
    def _opened(self) -> Iterator[tuple[Archive, Recorded]]:
        archive = open_archive(self._url, self._folder)
        try:
            archive.set_frozen(True)
            run = find_run(archive, self.id)
            yield archive, with_present_suite(run, self._suite, environment(self._folder))
        finally:
            archive.close()

    def report(
        self,
        path: str | Path = "report.html",
        *,
        language: str | None = None,
        by: str | Sequence[str] = (),
        baseline: str | None = None,
        seed: int | None = None,
        summary: bool = False,
        force: bool = False,
    ) -> Path:
        """Write the run as one HTML file and return its path; `summary` leaves the units out, and
        `force` replaces a file that is no report."""
        from evenhand.results.report import ReportOptions, write_report

        fields = _listed(by)
        options = ReportOptions(
            language=language, by=fields, baseline=baseline, seed=seed, summary=summary
        )
        check_output(Path(path), force=force)
        with self._opened() as (store, recorded):
            write_report(Path(path), store, recorded, options)
        return Path(path)


def _listed(by: str | Sequence[str]) -> tuple[str, ...]:
    return (by,) if isinstance(by, str) else tuple(by)


async def run_async(
    data: object = "evenhand.toml",
    *,
    rubric: Mapping[str, Any] | str | Path | None = None,
    judge: str | None = None,
    limit: int | None = None,
    allow_outside: bool = False,
    progress: bool | None = None,
    **overrides: Any,
) -> Run:
    """Judge what is open of a suite, or of a table.

    `data` is a suite file or its folder; or a table: a list of dicts, a DataFrame of pandas or
    polars, an Arrow table, the path of a data file. Columns are found as in a suite. `rubric` is a
    rubric, the path of its file, or one sentence; `judge` is the one whose key is set unless given.
    `overrides` are keys of the suite file, e.g. `seed=3`, `protocol="pairwise"`, `language="ru"`,
    `store="sqlite:other.db"`. What a suite file names must lie in its folder, unless
    `allow_outside`. `progress` writes to stderr how far it is, in a notebook unless False. Warns
    with NoVerdictsWarning where there are no verdicts, or it was stopped as all judgments fail.
    """
    judging = _judge_data(
        data,
        rubric=rubric,
        judge=judge,
        limit=limit,
        allow_outside=allow_outside,
        progress=progress,
        **overrides,
    )
    return _warned(*await judging)


async def _judge_data(
    data: object,
    *,
    rubric: Mapping[str, Any] | str | Path | None = None,
    judge: str | None = None,
    limit: int | None = None,
    allow_outside: bool = False,
    progress: bool | None = None,
    **overrides: Any,
) -> tuple[Run, str]:
    """Return the run, and what to warn of; empty if nothing."""
    if isinstance(overrides.get("store"), str):
        overrides["store"] = {"url": overrides["store"]}
    if judge is not None:
        overrides["judges"] = [{"model": judge}]
    if is_table(data):
        plan = table_plan(data, rubric, overrides, notify)
    else:
        more = {"rubric": str(rubric)} if isinstance(rubric, str | Path) else {}
        plan = _prepared(Path(str(data)), overrides | more, allow_outside=allow_outside)
        if isinstance(rubric, Mapping):
            value = rubric_value(rubric, plan.protocol, plan.suite.file.language)
            plan = structs.replace(plan, rubric=value)
    url, folder = plan.suite.store_url, plan.suite.folder
    options = Options(limit=limit, tell_changes=_unheard)
    if _in_notebook() if progress is None else progress:
        options = replace(options, watch=_watch())
    store = open_store(url, folder)
    try:
        summary = await judge_run(plan, store, options)
        stopped = summary.stopped
        made = Run(summary.run, url, folder, summary.json(), stopped, plan.suite.path)
        is_futile = isinstance(stopped, NoVerdicts)
        return made, str(stopped) if is_futile else visible(summary.fruitless)
    finally:
        store.close()


def _warned(made: Run, warning: str) -> Run:
    """Warn whoever called `run` or `run_async`."""
    if warning:
        warnings.warn(f"run {made.id}: {warning}", NoVerdictsWarning, stacklevel=3)
    return made


def notify(line: str) -> None:
    """Say on stderr what was understood of a table."""
    sys.stderr.write(f"{visible(line)}\n")


def _in_notebook() -> bool:
    return "ipykernel" in sys.modules


def _watch() -> Watch:
    from evenhand.cli.watch import Watcher

    return Watcher("Run the same again; it continues where it stopped.").watch


def open_run(run: str = "latest", *, store: str | None = None) -> Run:
    """A run that a store keeps: by its id, a unique beginning of it, its suite's name, `latest` or
    `latest~1`. The store is that of the suite in the working folder, else `sqlite:evenhand.db`."""
    folder, url = Path(), _store_url(store)
    archive = open_archive(url, folder)
    try:
        archive.set_frozen(True)
        recorded = find_run(archive, run)
        counts, spent = recorded.counts(archive), archive.spent(recorded.id)
        summary = {
            "run": recorded.id,
            "planned": counts.planned,
            "verdicts": counts.verdicts,
            "failures": dict(sorted(counts.failures.items())),
            "pending": counts.pending,
            "cost_usd": None if spent.unpriced else dollars(spent.cost),
        }
        return Run(recorded.id, url, folder, summary)
    finally:
        archive.close()


open = open_run  # noqa: A001


def _store_url(store: str | None) -> str:
    """The store of the suite in the working folder, where none is named."""
    if store or not Path(FILE).exists():
        return store or StoreSpec().url
    return load_suite(Path(), environment(Path())).store_url


async def import_async(
    files: object,
    kind: str | None = None,
    *,
    labels_for: Run | str | None = None,
    columns: Mapping[str, str] | None = None,
    values: Mapping[str, Mapping[str, str]] | None = None,
    missing: Sequence[object] = (),
    wide: Mapping[str, Sequence[str]] | None = None,
    store: str | None = None,
    **options: Any,
) -> Run:
    """Take in judgments made elsewhere as a run like any other, as `evenhand import`: of a file, of
    a list of files, or of rows in memory, as `run` takes them.

    `kind` is a layout, such as `votes`; `labels_for` a run whose pairs people labelled, in its
    place. `columns` are new names to old ones, `values` what values of a column mean, `missing`
    what stands for none, `wide` a field and the columns that hold what was said under each of its
    values. `options` are those of the command, by their names: `where` a mapping, `failed`, `join`,
    `votes_from_scores`, `voters`, `name`, `judge`, `key`, `on_conflict`, `on_unreadable`.
    `.summary` says what came in.
    """
    from evenhand.runs.imports import ImportRequest, import_request

    request = ImportRequest(
        files=(),
        kind=kind,
        labels_for=labels_for.id if isinstance(labels_for, Run) else labels_for,
        columns=columns or {},
        values=values or {},
        missing=tuple(map(str, missing)),
        wide=wide or {},
        options=options,
    )
    url, folder = _store_url(store), Path()
    opened = open_store(url, folder)
    try:
        with table_files(files) as paths:
            imported = await import_request(opened, structs.replace(request, files=paths))
        return Run(imported.run, url, folder, imported.json())
    finally:
        opened.close()


def import_(files: object, kind: str | None = None, **settings: Any) -> Run:
    """As `import_async`, and waits."""
    return wait_for(import_async(files, kind, **settings))


def _unheard(changes: Changes, differences: Sequence[str]) -> None:
    """They stand in the summary of the run."""


def _prepared(path: Path, overrides: Mapping[str, Any], *, allow_outside: bool) -> Plan:
    environ = environment(path if path.is_dir() else path.parent)
    suite = load_suite(path, environ, overrides, allow_outside=allow_outside)
    return prepare(suite, environ, lambda notice: None)


def prefer(topic: str, first: str, second: str, **settings: Any) -> Judgment:
    """As `prefer_async`, and waits."""
    return wait_for(prefer_async(topic, first, second, **settings))


def grade(prompt: str, answer: str, **settings: Any) -> Judgment:
    """As `grade_async`, and waits."""
    return wait_for(grade_async(prompt, answer, **settings))


def score(question: str, output: str, **settings: Any) -> Judgment:
    """As `score_async`, and waits."""
    return wait_for(score_async(question, output, **settings))


def run(data: object = "evenhand.toml", **settings: Any) -> Run:
    """As `run_async`, and waits."""
    return _warned(*wait_for(_judge_data(data, **settings)))
