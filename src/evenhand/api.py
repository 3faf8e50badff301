"""The package from Python: judge one unit, or run a suite or a table. Every function has an async
form; the other one waits for it, also inside a running event loop."""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from msgspec import structs

from evenhand.engine.loop import wait_for
from evenhand.engine.progress import Tally
from evenhand.errors import DataError, NoVerdicts, NoVerdictsWarning, StoreBusy, UsageError
from evenhand.files.protocols import find_protocol
from evenhand.files.rubrics import check_needs, read_rubric
from evenhand.judges.credentials import environment
from evenhand.kinds import KINDS
from evenhand.kinds.rows import RowError
from evenhand.observation import Rule, read_observations
from evenhand.results.judged import JudgedUnit
from evenhand.results.run import Run
from evenhand.runs.judge import Options, Summary, judge_run
from evenhand.runs.plan import Plan
from evenhand.runs.prepare import prepare
from evenhand.runs.recorded import find_run
from evenhand.runs.stores import MEMORY, open_archive, open_store
from evenhand.runs.tables import Rubric, is_table, rubric_value, table_plan, table_sources
from evenhand.store.ledger import Store
from evenhand.store.ports import IncomingUnit
from evenhand.suite import FILE, Suite, load_suite, suite_of_keys
from evenhand.suite_file import StoreSpec
from evenhand.text import visible
from evenhand.transcript import Judged
from evenhand.words import Sentence

Messages = Sequence[Mapping[str, Any]]
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


def _async_form(waiting: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Return the function that `_waiting` made this form of."""
    function: Callable[P, Coroutine[Any, Any, T]] = vars(waiting)["__wrapped__"]
    return function


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


@_waiting
async def score(
    question: str | None = None,
    output: str | None = None,
    *,
    rubric: Rubric,
    context: str | Sequence[str] | None = None,
    reference: str | None = None,
    messages: Messages | None = None,
    judged: Judged = "last",
    judge: str | Mapping[str, Any] = "embedded",
    language: str = "en",
    meta: Mapping[str, Any] | None = None,
    store: str = MEMORY,
    options: Options | None = None,
) -> JudgedUnit:
    """Score one output on every dimension of a rubric, with verified quotes.

    Args:
        question: what was asked.
        output: the answer to judge.
        rubric: the name of a ready rubric, such as `"faithfulness"`; a sentence; a list of these;
            the rubric itself as a dict; or the path of a .json or .toml file.
        context: the text or texts that the answer had to work with; the judge sees them.
        reference: a right answer; the judge sees it.
        messages: a transcript in place of question and output, in the form of OpenAI or Anthropic;
            beside an output, what was said before it.
        judged: of a transcript the assistant's `last` turn, the whole `conversation`, or the
            `tool_calls`.
        judge: `"provider/model"`, or a dict with `model` and other keys of a `[[judges]]` entry:
            `{"model": "openai/mine", "base_url": "http://localhost:8000/v1"}`.
        language: that of the judge's prompts: `en`, `ru`, `zh` or `ja`.
        meta: fields of your own, copied into the output; no judge sees them.
        store: keeps the replies, e.g. `"sqlite:scores.db"`, so that no question is paid for twice.
            By default nothing is kept.
        options: how it is carried out, e.g. a budget that several calls share.

    Returns:
        The judgment, which prints as a table: `.scores`, `.overall`, `.passed`, `.output`. Without
        a verdict `.status` is `"failure"`, and `.reason` and `.detail` say why.

    Raises:
        EvenhandError: nothing could be judged: a wrong argument, no key, no more budget.

    Example:
        >>> scores = evenhand.score(question, answer, rubric="faithfulness", context=passages,
        ...     judge="openai/gpt-4.1-mini")
        >>> scores.scores["faithfulness"]
    """
    extras = _extras(context, reference, messages)
    check_needs(rubric, extras)
    value = rubric_value(rubric, find_protocol("rubric"), language)
    row = {"question": question, "model_output": output, "rubric": value, "meta": meta or {}}
    plan = _plan_row("rubric", row, extras, judge, language, judged=judged)
    return await _judge_row(plan, store, options)


@_waiting
async def prefer(
    topic: str | None,
    first: str | Messages,
    second: str | Messages,
    *,
    context: str | Sequence[str] | None = None,
    reference: str | None = None,
    messages: Messages | None = None,
    judged: Judged = "last",
    judge: str | Mapping[str, Any] = "embedded",
    language: str = "en",
    names: tuple[str, str] = ("first", "second"),
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    store: str = MEMORY,
    options: Options | None = None,
) -> JudgedUnit:
    """Say which of two answers is better, in both orders, with another round if these disagree.

    Args:
        topic: what both answers are about; None where messages say it.
        first: an answer or its transcript, called A in the result.
        second: the other one, called B.
        messages: in place of a topic, what both answers go on from; else what was said before.
        names: the names of the candidates, e.g. their models; no judge sees them.
        settings: keys of `[settings]` in a suite, such as `max_rounds`.
        seed: decides which order is asked first.
        context, reference, judged, judge, language, store, options: as for `score`.

    Returns:
        The judgment: `.winner` is `A`, `B`, `tie` or `uncertain`.

    Raises:
        EvenhandError: as for `score`.

    Example:
        >>> found = evenhand.prefer(question, old, new, judge="openai/gpt-4.1-mini")
        >>> found.winner
    """
    candidates = [
        {"id": name, "text" if isinstance(answer, str) else "messages": answer}
        for name, answer in zip(names, (first, second), strict=True)
    ]
    row = {"pair_id": "pair", "topic": topic, "candidates": candidates}
    extras = _extras(context, reference, messages)
    keys = {"judged": judged, "settings": dict(settings or {}), "seed": seed}
    plan = _plan_row("pairwise", row, extras, judge, language, **keys)
    return await _judge_row(plan, store, options)


@_waiting
async def grade(
    prompt: str | None = None,
    answer: str | None = None,
    *,
    rubric: str | Path,
    context: str | Sequence[str] | None = None,
    reference: str | None = None,
    messages: Messages | None = None,
    judged: Judged = "last",
    judge: str | Mapping[str, Any] = "embedded",
    language: str = "en",
    task_name: str = "task",
    store: str = MEMORY,
    options: Options | None = None,
) -> JudgedUnit:
    """Grade one answer out of 100 by its task's own rubric, critical-fail conditions first.

    Args:
        prompt: the task.
        answer: the answer to judge.
        rubric: the Markdown text itself, or the path of a .md or .toml file.
        task_name: the name of the task, copied into the output.
        context, reference, messages, judged, judge, language, store, options: as for `score`.

    Returns:
        The judgment: `.total_score`, `.scores`, `.critical_fail`.

    Raises:
        EvenhandError: as for `score`.

    Example:
        >>> found = evenhand.grade(task, answer, rubric="task.md", judge="openai/gpt-4.1-mini")
        >>> found.total_score
    """
    form = KINDS["weighted"].rubric_form
    value: Any = rubric
    if isinstance(rubric, Path) or (form and form.is_file(rubric)):
        value = read_rubric(Path(rubric), find_protocol("weighted"))
    row = {"task_name": task_name, "prompt": prompt, "answer": answer, "rubric": value}
    extras = _extras(context, reference, messages)
    plan = _plan_row("weighted", row, extras, judge, language, judged=judged)
    return await _judge_row(plan, store, options)


@_waiting
async def checklist(
    question: str | None = None,
    output: str | None = None,
    *,
    criteria: Rubric,
    context: str | Sequence[str] | None = None,
    reference: str | None = None,
    messages: Messages | None = None,
    judged: Judged = "last",
    judge: str | Mapping[str, Any] = "embedded",
    language: str = "en",
    meta: Mapping[str, Any] | None = None,
    pass_share: float | None = None,
    store: str = MEMORY,
    options: Options | None = None,
) -> JudgedUnit:
    """Say which criteria one output meets, with verified quotes.

    Args:
        question: what was asked.
        output: the answer to judge.
        criteria: a sentence; a list of sentences or of dicts such as
            `{"text": "Is it polite?", "points": 2, "must": True}`; a dict that holds such a list
            as `criteria`; or the path of a .txt, .json or .toml file.
        pass_share: the lowest score that passes, from 0 to 1.
        context, reference, messages, judged, judge, language, meta, store, options: as for `score`.

    Returns:
        The judgment: `.passed`, `.scores` with 1 for a criterion that is met and 0 for one that is
        not, `.overall`.

    Raises:
        EvenhandError: as for `score`.

    Example:
        >>> found = evenhand.checklist(question, answer, criteria=["Is it polite?"])
        >>> found.passed
    """
    value = rubric_value(criteria, find_protocol("checklist"), language)
    row = {"question": question, "model_output": output, "meta": meta or {}, **value}
    extras = _extras(context, reference, messages)
    keys = {"judged": judged, "settings": {"pass_share": pass_share}}
    plan = _plan_row("checklist", row, extras, judge, language, **keys)
    return await _judge_row(plan, store, options)


score_async, prefer_async = _async_form(score), _async_form(prefer)
grade_async, checklist_async = _async_form(grade), _async_form(checklist)


def _extras(
    context: str | Sequence[str] | None, reference: str | None, messages: Messages | None
) -> dict[str, Any]:
    """Return what was given beside the judged text, which is all shown to the judge."""
    several = context is not None and not isinstance(context, str)
    extras: dict[str, Any] = {
        "reference": reference,
        "context": list(context or ()) if several else context,
        "messages": None if messages is None else list(messages),
    }
    return {name: value for name, value in extras.items() if value is not None}


def _plan_row(
    protocol: str,
    row: Mapping[str, Any],
    extras: Mapping[str, Any],
    judge: str | Mapping[str, Any],
    language: str,
    **keys: Any,
) -> Plan:
    """Return the plan of a suite whose data is one row; raises UsageError. Rows that are judged at
    the same time are runs of their own, for a run is its data."""
    form = KINDS[protocol].table_form
    row = {name: value for name, value in row.items() if value is not None}
    # Without an answer, or a topic of answers, messages are what is judged.
    is_whole = (form.question if form.several else form.answer) in row
    use = [name for name in extras if is_whole or name != "messages"]
    top = {"name": protocol, "protocol": protocol, "language": language, "data": ["-"]}
    file = suite_of_keys({**top, "judges": _judges(judge), "use": use, **keys})
    plan = prepare(Suite(file, Path()), environment(), lambda notice: None)
    try:
        units = [
            IncomingUnit(unit.id, "one unit", unit.body, description=unit.description)
            for unit in plan.judging.read({**row, **extras})
        ]
    except RowError as error:
        raise UsageError(error.args[0]) from None
    return structs.replace(plan, units=lambda judging: iter(units))


def _judges(judge: str | Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"model": judge} if isinstance(judge, str) else dict(judge)]


async def _judge_row(plan: Plan, store: str, options: Options | None) -> JudgedUnit:
    with closing(open_store(store)) as opened:
        summary = await _judge_in_turn(plan, opened, options)
        if summary.stopped:
            raise summary.stopped
        for unit, stored in opened.archive.judgments(summary.scope):
            judgment = plan.kind.read_judgment(stored.text)
            observed = read_observations(stored.text.observations)
            return JudgedUnit(
                judgment,
                plan.kind.present(plan.kind.load(unit.body), [judgment]),
                {each.measure: each for each in observed if not each.pass_number},
            )
    (asked,) = plan.units(plan.judging)
    judge = plan.setups[0].judge.name
    raise DataError(Sentence("api.no_reply", judge=judge, unit=asked.id))


async def _judge_in_turn(plan: Plan, store: Store, options: Options | None) -> Summary:
    """Judge, or wait for whoever is being given the same judgment, and take theirs."""
    while True:
        try:
            return await judge_run(plan, store, options)
        except StoreBusy:
            await asyncio.sleep(BUSY_SECONDS)


@_waiting
async def run(
    data: object = FILE,
    *,
    rubric: Rubric | None = None,
    judge: str | Mapping[str, Any] | None = None,
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
        overrides["judges"] = _judges(judge)
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


run_async = _warning(_async_form(run))


def _plan_suite(
    path: Path,
    rubric: Rubric | None,
    overrides: Mapping[str, Any],
    *,
    allow_outside: bool,
) -> Plan:
    if rubric is not None and not isinstance(rubric, Mapping):
        given = str(rubric) if isinstance(rubric, str | Path) else list(rubric)
        overrides = {**overrides, "rubric": given}
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
