"""The package from Python: judge one unit, or run a suite. The sync forms are a thin edge."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from evenhand.engine.loop import run_in_loop
from evenhand.errors import DataError, StoreBusy, UsageError, quoted
from evenhand.files.protocols import find_protocol
from evenhand.files.rubrics import read_rubric
from evenhand.judgment import Judgment
from evenhand.kinds import KINDS
from evenhand.kinds.shared.rows import RowError
from evenhand.ledger.ports import Archive, Changes, IncomingUnit, Store
from evenhand.results.rows import full_rows
from evenhand.runs.judge import Options, Summary, judge_run
from evenhand.runs.plan import Plan
from evenhand.runs.prepare import environment, prepare
from evenhand.runs.recorded import Recorded, find_run
from evenhand.runs.stores import MEMORY, open_archive, open_store
from evenhand.suite import Suite, SuiteFile, load_suite

if TYPE_CHECKING:
    from evenhand.stats.comparison.comparison import Comparison
    from evenhand.stats.ranking.leaderboard import Leaderboard

T = TypeVar("T")
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

    `rubric` is the rubric itself or the path of a .json or .toml file. `judge_settings` are the
    keys of a `[[judges]]` entry, such as `base_url` or `max_tokens`. With a `store` that is a
    file, the same question is never paid for twice. `options` say how it is carried out, e.g. from
    a budget that several questions share. A failure is a value: see `.status`.
    """
    value = rubric if isinstance(rubric, Mapping) else _rubric_file(Path(rubric), "rubric")
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
    try:
        return SuiteFile.model_validate(values | more)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(map(str, first["loc"]))
        raise UsageError(f"{name}: {first['msg']}, and is {quoted(first['input'])}") from None


def _one_unit(file: SuiteFile, row: Mapping[str, Any]) -> Plan:
    """A suite whose data is one row in memory; raises UsageError. Questions that are asked at the
    same time are runs of their own, for a run is its data."""
    plan = prepare(Suite(file, Path()), environment(), lambda notice: None)
    try:
        (unit,) = plan.judging.read(row)
    except RowError as error:
        raise UsageError(str(error)) from None
    return replace(plan, units=lambda judging: iter([IncomingUnit(unit.id, "one unit", unit.body)]))


def _nothing_recorded(plan: Plan) -> DataError:
    """Only a judge of recorded replies leaves a question open."""
    (unit,) = plan.units(plan.judging)
    return DataError(
        f"{quoted(plan.seats[0].judge.name)} has no reply for unit {quoted(unit.id)}",
        advice="Record a reply under that unit: score() names it by `meta`, as in a data file.",
    )


class Run:
    """A run that was carried out, and the store that keeps it."""

    def __init__(self, summary: Summary, store_url: str, folder: Path) -> None:
        self.summary = summary.json()
        self.id = summary.run
        self.stopped = summary.stopped
        self._url, self._folder = store_url, folder

    def judgments(self) -> list[Mapping[str, Any]]:
        """Every judgment with all that is known about it, failures included."""
        with self._opened() as (store, recorded):
            return list(full_rows(store, recorded))

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
        from evenhand.results.compare import ranked

        with self._opened() as (store, recorded):
            return ranked(store, recorded, **options)

    @contextmanager
    def _opened(self) -> Iterator[tuple[Archive, Recorded]]:
        archive = open_archive(self._url, self._folder)
        try:
            yield archive, find_run(archive, self.id)
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
    ) -> Path:
        """Write the run as one HTML file and return its path; `summary` leaves the units out."""
        from evenhand.results.report import ReportOptions, write_report

        fields = _listed(by)
        options = ReportOptions(
            language=language, by=fields, baseline=baseline, seed=seed, summary=summary
        )
        with self._opened() as (store, recorded):
            write_report(Path(path), store, recorded, options)
        return Path(path)


def _listed(by: str | Sequence[str]) -> tuple[str, ...]:
    return (by,) if isinstance(by, str) else tuple(by)


async def run_async(
    suite: str | Path = "evenhand.toml",
    *,
    limit: int | None = None,
    allow_outside: bool = False,
    **overrides: Any,
) -> Run:
    """Judge what is open of a suite. `overrides` are keys of the suite file, e.g. `seed=3`. What
    the file names must lie in its folder, unless `allow_outside`."""
    plan = _prepared(Path(suite), overrides, allow_outside=allow_outside)
    url, folder = plan.suite.store_url, plan.suite.folder
    store = open_store(url, folder)
    try:
        return Run(
            await judge_run(plan, store, Options(limit=limit, tell_changes=_unheard)), url, folder
        )
    finally:
        store.close()


def _unheard(changes: Changes, differences: Sequence[str]) -> None:
    """They stand in the summary of the run."""


def _prepared(path: Path, overrides: Mapping[str, Any], *, allow_outside: bool) -> Plan:
    environ = environment(path if path.is_dir() else path.parent)
    suite = load_suite(path, environ, overrides, allow_outside=allow_outside)
    return prepare(suite, environ, lambda notice: None)


def prefer(topic: str, first: str, second: str, **settings: Any) -> Judgment:
    """As `prefer_async`, and waits."""
    return _wait(prefer_async(topic, first, second, **settings))


def grade(prompt: str, answer: str, **settings: Any) -> Judgment:
    """As `grade_async`, and waits."""
    return _wait(grade_async(prompt, answer, **settings))


def score(question: str, output: str, **settings: Any) -> Judgment:
    """As `score_async`, and waits."""
    return _wait(score_async(question, output, **settings))


def run(suite: str | Path = "evenhand.toml", **settings: Any) -> Run:
    """As `run_async`, and waits."""
    return _wait(run_async(suite, **settings))


def _wait(work: Coroutine[Any, Any, T]) -> T:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run_in_loop(work)
    work.close()
    raise UsageError(
        "this was called inside a running event loop",
        advice="Use the async form there: await evenhand.score_async(...), or prefer_async,"
        " grade_async, run_async.",
    )
