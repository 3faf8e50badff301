"""The package from Python: judge one unit, or run a suite or a table. Every function has an async
form; the other one waits for it, also inside a running event loop."""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from msgspec import structs

from evenhand.engine.loop import wait_for
from evenhand.engine.progress import Tally
from evenhand.errors import (
    DataError,
    EvenhandError,
    NoVerdicts,
    NoVerdictsWarning,
    StoreBusy,
    UsageError,
)
from evenhand.files.outputs import check_output
from evenhand.files.protocols import find_protocol
from evenhand.files.rubrics import read_rubric
from evenhand.judges.credentials import environment
from evenhand.judgment import Judgment
from evenhand.kinds import KINDS
from evenhand.kinds.rows import RowError
from evenhand.notebook import fields_table
from evenhand.observation import Rule
from evenhand.results.frames import Frame, Judgments, flat_rows, observation_rows
from evenhand.results.units import full_rows
from evenhand.runs.differences import with_present_suite
from evenhand.runs.judge import Options, Summary, judge_run
from evenhand.runs.plan import Plan
from evenhand.runs.prepare import prepare
from evenhand.runs.recorded import Recorded, find_run
from evenhand.runs.stores import MEMORY, open_archive, open_store
from evenhand.runs.tables import is_table, rubric_value, table_plan, table_sources
from evenhand.store.archive import Archive
from evenhand.store.ledger import Store
from evenhand.store.ports import IncomingUnit
from evenhand.suite import FILE, Suite, load_suite, suite_of_keys
from evenhand.suite_file import StoreSpec
from evenhand.text import visible
from evenhand.words import Sentence

if TYPE_CHECKING:
    from evenhand.stats.agreement_result import Agreement
    from evenhand.stats.comparison import Comparison
    from evenhand.stats.leaderboard import Leaderboard

BUSY_SECONDS = 0.05
"""Between looks at a question that another process or task is just asking."""
P = ParamSpec("P")
T = TypeVar("T")


def _waiting(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """Return the form of an asynchronous function that waits, with the same signature."""

    @wraps(function)
    def wait(*args: P.args, **kwargs: P.kwargs) -> T:
        result = wait_for(function(*args, **kwargs))
        _warn(result)
        return result

    return wait


def _warning(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Return an asynchronous function that warns its caller of a run without verdicts."""

    @wraps(function)
    async def judge(*args: P.args, **kwargs: P.kwargs) -> T:
        result = await function(*args, **kwargs)
        _warn(result)
        return result

    return judge


def _warn(result: object) -> None:
    """Warn the caller of the function that calls this."""
    if isinstance(result, Run) and result.warning:
        warnings.warn(f"run {result.id}: {result.warning}", NoVerdictsWarning, stacklevel=3)


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
    plan = _plan_row("rubric", row, language, judge, judge_settings)
    return await _judge_row(plan, store, options)


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
    """Say which of two answers to a topic is better, on content alone: both orders, and another
    round where they contradict each other.

    `.output["winner"]` is `A` (the first), `B`, `tie` or `uncertain`. `names` are the candidates'
    own, e.g. their models; no judge sees them. `settings` are keys of `[settings]`, such as
    `max_rounds`; the rest is as for `score`.
    """
    texts = zip(names, (first, second), strict=True)
    candidates = [{"id": name, "text": text} for name, text in texts]
    row = {"pair_id": "pair", "topic": topic, "candidates": candidates}
    keys = {"settings": dict(settings or {}), "seed": seed}
    plan = _plan_row("pairwise", row, language, judge, judge_settings, **keys)
    return await _judge_row(plan, store, options)


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

    `rubric` is the Markdown itself or the path of a .md or .toml file; the rest is as for `score`.
    `.output["total_score"]` is the grade.
    """
    form = KINDS["weighted"].rubric_form
    value: Any = rubric
    if isinstance(rubric, Path) or (form and form.is_file(rubric)):
        value = read_rubric(Path(rubric), find_protocol("weighted"))
    row = {"task_name": task_name, "prompt": prompt, "answer": answer, "rubric": value}
    plan = _plan_row("weighted", row, language, judge, judge_settings)
    return await _judge_row(plan, store, options)


async def verify_async(
    question: str,
    output: str,
    *,
    criteria: Sequence[Any] | Mapping[str, Any] | str | Path,
    judge: str = "embedded",
    language: str = "en",
    meta: Mapping[str, Any] | None = None,
    pass_share: float | None = None,
    store: str = MEMORY,
    options: Options | None = None,
    **judge_settings: Any,
) -> Judgment:
    """Say which criteria one output meets, each answer backed by verified evidence.

    `criteria` are a list of sentences or of objects such as `{"text": "Is it polite?", "points": 2,
    "must": True}`, one sentence, or the path of their file; `pass_share` is the lowest score that
    passes. The rest is as for `score`. `.output["pass"]` is the outcome.
    """
    value = rubric_value(criteria, find_protocol("checklist"), language)
    row = {"question": question, "model_output": output, "meta": meta or {}, **value}
    keys = {"settings": {"pass_share": pass_share}}
    plan = _plan_row("checklist", row, language, judge, judge_settings, **keys)
    return await _judge_row(plan, store, options)


score, prefer, grade = _waiting(score_async), _waiting(prefer_async), _waiting(grade_async)
verify = _waiting(verify_async)


def _plan_row(
    protocol: str,
    row: Mapping[str, Any],
    language: str,
    judge: str,
    judge_settings: Mapping[str, Any],
    **keys: Any,
) -> Plan:
    """Return the plan of a suite whose data is one row; raises UsageError. Rows that are judged at
    the same time are runs of their own, for a run is its data."""
    top = {"name": protocol, "protocol": protocol, "language": language, "data": ["-"]}
    file = suite_of_keys({**top, "judges": [{"model": judge, **judge_settings}], **keys})
    plan = prepare(Suite(file, Path()), environment(), lambda notice: None)
    try:
        units = [
            IncomingUnit(unit.id, "one unit", unit.body, description=unit.description)
            for unit in plan.judging.read(row)
        ]
    except RowError as error:
        raise UsageError(error.args[0]) from None
    return structs.replace(plan, units=lambda judging: iter(units))


async def _judge_row(plan: Plan, store: str, options: Options | None) -> Judgment:
    with closing(open_store(store)) as opened:
        summary = await _judge_in_turn(plan, opened, options)
        if summary.stopped:
            raise summary.stopped
        for _, stored in opened.archive.judgments(summary.scope):
            return plan.kind.read_judgment(stored.text)
    (unit,) = plan.units(plan.judging)
    judge = plan.setups[0].judge.name
    raise DataError(Sentence("api.no_reply", judge=judge, unit=unit.id))


async def _judge_in_turn(plan: Plan, store: Store, options: Options | None) -> Summary:
    """Judge, or wait for whoever is being given the same judgment, and take theirs."""
    while True:
        try:
            return await judge_run(plan, store, options)
        except StoreBusy:
            await asyncio.sleep(BUSY_SECONDS)


class Run:
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

    def _repr_html_(self) -> str:
        return fields_table({"run": self.id, **self.summary})

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
        by: str | Sequence[str] = (),
        baseline: str | None = None,
        summary: bool = False,
        force: bool = False,
    ) -> Path:
        """Write the run as one HTML file and return its path; `summary` leaves the units out, and
        `force` replaces a file that is no report."""
        from evenhand.results.report import ReportOptions, write_report

        options = ReportOptions(
            language=language, by=_as_tuple(by), baseline=baseline, summary=summary
        )
        check_output(Path(path), force=force)
        with self._open() as (store, recorded):
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


async def _run_async(
    data: object = FILE,
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
    if isinstance(overrides.get("store"), str):
        overrides["store"] = {"url": overrides["store"]}
    if judge is not None:
        overrides["judges"] = [{"model": judge}]
    if is_table(data):
        plan = table_plan(data, rubric, overrides, notify)
    else:
        plan = _plan_suite(Path(str(data)), rubric, overrides, allow_outside=allow_outside)
    options = Options(limit=limit, tell_changes=lambda changes, differences: None)
    if progress or (progress is None and "ipykernel" in sys.modules):
        from evenhand.cli.watch import Watcher

        watcher = Watcher(Sentence("cli.run_again"))
        options = replace(options, watch=watcher.watch)
    url, folder = plan.suite.store_url, plan.suite.folder
    with closing(open_store(url, folder)) as store:
        summary = await judge_run(plan, store, options)
    stopped = summary.stopped
    warning = str((isinstance(stopped, NoVerdicts) and stopped) or summary.no_verdicts or "")
    return Run(summary.run, url, folder, summary.json(), stopped, plan.suite.path, warning)


run, run_async = _waiting(_run_async), _warning(_run_async)


def _plan_suite(
    path: Path,
    rubric: Mapping[str, Any] | str | Path | None,
    overrides: Mapping[str, Any],
    *,
    allow_outside: bool,
) -> Plan:
    if isinstance(rubric, str | Path):
        overrides = {**overrides, "rubric": str(rubric)}
    environ = environment(path if path.is_dir() else path.parent)
    suite = load_suite(path, environ, overrides, allow_outside=allow_outside)
    plan = prepare(suite, environ, lambda notice: None)
    if isinstance(rubric, Mapping):
        value = rubric_value(rubric, plan.protocol, suite.file.language)
        plan = structs.replace(plan, rubric=value)
    return plan


def notify(line: str) -> None:
    """Say on stderr what was understood of a table."""
    sys.stderr.write(f"{visible(line)}\n")


def open_run(run: str = "latest", *, store: str | None = None) -> Run:
    """Return a run that a store keeps: by its id, a unique beginning of it, its suite's name,
    `latest` or `latest~1`. The store is that of the suite in the working folder, else
    `sqlite:evenhand.db`."""
    url = _store_url(store)
    with closing(open_archive(url)) as archive:
        archive.set_frozen(True)
        recorded = find_run(archive, run)
        summary = Summary(
            run=recorded.id,
            scope=recorded.scope,
            counts=recorded.counts(archive),
            spent=archive.spent(recorded.id),
            tally=Tally(),
        )
    return Run(recorded.id, url, Path(), summary.json())


open = open_run  # noqa: A001


def _store_url(store: str | None) -> str:
    """Return the store of the suite in the working folder, where none is named."""
    if store or not Path(FILE).exists():
        return store or StoreSpec().url
    return load_suite(Path(), environment(Path())).store_url


async def import_async(
    files: object,
    kind: str | None = None,
    *,
    labels_for: Run | str | None = None,
    columns: Mapping[str, str] | None = None,
    name: str | None = None,
    judge: str | None = None,
    on_conflict: Rule = "uncertain",
    store: str | None = None,
) -> Run:
    """Take in judgments made elsewhere as a run like any other, as `evenhand import`: of a file, of
    a list of files, or of rows in memory, as `run` takes them.

    `kind` is a layout, such as `votes`; `labels_for` a run whose units people labelled, in its
    place. `columns` are new names to old ones; `name`, `judge` and `on_conflict` are options of
    the command. `.summary` says what came in.
    """
    from evenhand.runs.imports import ImportRequest, import_judgments

    url = _store_url(store)
    with closing(open_store(url)) as opened:
        request = ImportRequest(
            tables=table_sources(files),
            kind=kind,
            labels_for=labels_for.id if isinstance(labels_for, Run) else labels_for,
            columns=columns or {},
            name=name,
            judge=judge,
            on_conflict=on_conflict,
        )
        imported = await import_judgments(opened, request)
    return Run(imported.run, url, Path(), imported.json())


import_ = _waiting(import_async)
