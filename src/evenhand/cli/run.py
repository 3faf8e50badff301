"""`evenhand run`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli.common import (
    json_option,
    label_options,
    notice,
    print_json,
    resume_advice,
    store_flag,
    tell,
    tell_error,
    tell_run,
    wait,
)
from evenhand.cli.language import speaker, terminal_words
from evenhand.cli.watch import Watcher
from evenhand.errors import NoVerdicts, ProviderRefused, StoppedEarly, StoreMissing, UsageError
from evenhand.judges import split_name
from evenhand.judges.credentials import environment
from evenhand.judges.trust import KeyUse, Trust, TrustedHosts, host_named
from evenhand.limits import BATCH_THEN_LIVE
from evenhand.runs.forecast import forecast
from evenhand.runs.judge import Options, RemoteEngine, Summary, judge_run
from evenhand.runs.plan import Plan
from evenhand.runs.prepare import prepare
from evenhand.runs.recorded import Recorded, find_run
from evenhand.runs.stores import open_archive, open_store
from evenhand.store.address import is_postgres
from evenhand.store.archive import Archive
from evenhand.store.ledger import Store
from evenhand.store.ports import Changes
from evenhand.suite import FILE, load_suite
from evenhand.words import Code, Sentence, Words

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.report.model import Report

ANSWER_AT_ONCE = 20_000
"""From more verdicts the answer takes seconds, so it is announced."""


def sending_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of every command that sends questions."""
    for option in reversed(
        (
            click.option(
                "--dry-run",
                is_flag=True,
                help="Print what it would send and cost, and send nothing.",
            ),
            click.option(
                "--store",
                metavar="URL",
                help="Keep the results in this store. Default: the store of the suite.",
            ),
            click.option(
                "--allow-outside",
                is_flag=True,
                help="Also read files outside of the suite's folder.",
            ),
            click.option(
                "--trust-host",
                "trusted",
                multiple=True,
                metavar="HOST",
                help="Allow keys to be sent to this host, now and later. Repeatable.",
            ),
        )
    ):
        command = option(command)
    return command


@click.command("run")
@click.argument("suite", default=FILE, type=click.Path(path_type=Path))
@click.option(
    "--judge",
    "judges",
    multiple=True,
    metavar="MODEL",
    help="Judge with this model instead of the suite's. Repeatable.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="Judge only the first N units. Default: all.",
)
@sending_options
@click.option(
    "--retry-failures",
    is_flag=True,
    help="Judge every failed unit again. Default: only those lost on the way.",
)
@click.option(
    "--until-decided/--to-the-end",
    default=None,
    help="Judge in random order and stop when the comparison in [compare] is decided; or judge"
    " everything. Default: as [stop] in the suite says, else everything.",
)
@click.option("--batch", is_flag=True, help="Send batches: half the price, up to a day of waiting.")
@click.option(
    "--batch-then-live",
    type=click.IntRange(min=0),
    metavar="N",
    help="With --batch: send the rest one by one when fewer than N questions are left; 0 never"
    " does. Default: 50.",
)
@click.option("--ray", metavar="ADDRESS", help="Judge on this Ray cluster, HOST:PORT or auto.")
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="With --ray: start this many actors. Default: one per node.",
)
@click.option("--allow-insecure-ray", is_flag=True, help="Use a Ray cluster that has no token.")
@label_options
@json_option
def run_command(
    suite: Path,
    judges: Sequence[str],
    limit: int | None,
    dry_run: bool,
    store: str | None,
    allow_outside: bool,
    trusted: Sequence[str],
    retry_failures: bool,
    until_decided: bool | None,
    batch: bool,
    batch_then_live: int | None,
    ray: str | None,
    workers: int | None,
    allow_insecure_ray: bool,
    note: str,
    tags: tuple[str, ...],
    as_json: bool,
) -> int:
    """Judge everything in SUITE that has no verdict yet.

    SUITE is a suite file or its folder; by default evenhand.toml in this folder. Every reply is
    stored before it is used: run the same command again to continue, and nothing is paid for
    twice. Ctrl-C sends nothing new and waits for the calls under way; a second one leaves at
    once.

    \b
    evenhand run --dry-run              see what it would send and cost
    evenhand run --judge embedded       judge with the local model
    evenhand run --limit 20             judge only the first 20 units
    evenhand run --until-decided        stop as soon as the comparison is decided
    evenhand run --batch                pay half, wait up to a day
    evenhand run --note "shorter prompt" --tag release    what it is for
    evenhand run --ray auto --workers 8 judge on a Ray cluster
    """
    if ray is not None and batch:
        raise click.UsageError(
            Sentence("cli.not_together", flag=Code("--ray"), other=Code("--batch"))
        )
    if batch_then_live is not None and not batch:
        raise click.UsageError(
            Sentence("cli.needs", flag=Code("--batch-then-live"), other=Code("--batch"))
        )
    folder = suite if suite.is_dir() else suite.parent
    environ = environment(folder)
    overrides = _overrides(suite, environ, store, until_decided, judges)
    loaded = load_suite(suite, environ, overrides, allow_outside=allow_outside)
    speaker().choose(loaded.file.language)
    plan = prepare(loaded, environ, notice, trust=users_trust(trusted))
    url, place = plan.suite.store_url, Path() if store else folder
    if batch:
        from evenhand.runs.batch import at_batch_prices, require_batches

        require_batches(plan)
        plan = at_batch_prices(plan) if dry_run else plan
    if dry_run:
        return preview(plan, url, place, limit, retry_failures, as_json)
    remote_engine = _remote_engine(plan, url, ray, workers, allow_insecure_ray)
    flag, then_live = store_flag(url, place), None
    if batch:
        then_live = BATCH_THEN_LIVE if batch_then_live is None else batch_then_live
    with closing(open_store(url, place)) as opened:
        summary = judge_plan(
            plan, opened, limit, retry_failures, then_live, remote_engine, note=note, tags=tags
        )
        _print(summary, plan, opened.archive, flag, as_json)
    return exit_code_of(summary, plan, flag)


def users_trust(trusted: Sequence[str]) -> Trust:
    """Return what the user allows: these hosts, remembered; others where a terminal can be
    asked. Raise UsageError."""
    hosts = TrustedHosts()
    hosts.remember([host_named(host) for host in trusted])
    is_terminal = sys.stdin.isatty() and sys.stderr.isatty()
    return Trust(hosts, ask=_ask_user if is_terminal else None, tell=notice)


def _ask_user(use: KeyUse) -> bool:
    notice(use.sentence())
    question = Sentence("cli.may_have_key", host=use.host)
    return click.confirm(terminal_words().message(question), default=False, err=True)


def _overrides(
    suite: Path,
    environ: dict[str, str],
    store: str | None,
    until_decided: bool | None,
    judges: Sequence[str],
) -> dict[str, Any]:
    """Return what the command line says in the place of the suite's own keys."""
    overrides: dict[str, Any] = {"store": {"url": store}} if store else {}
    if until_decided is not None:
        overrides["stop"] = {"until_decided": until_decided}
    if judges:
        overrides["judges"] = judge_overrides(suite, environ, judges)
    return overrides


def judge_overrides(
    suite: Path, environ: dict[str, str], judges: Sequence[str]
) -> list[dict[str, Any]]:
    """Judges named on the command line; one that the suite has too keeps its parameters."""
    try:
        entries = load_suite(suite, environ).file.judges
    except UsageError:
        entries = []
    specs = {spec.model: spec.model_dump(exclude_defaults=True) for spec in entries}
    return [specs.get(model, {"model": model}) for model in judges]


def _remote_engine(
    plan: Plan, url: str, ray: str | None, workers: int | None, allow_insecure: bool
) -> RemoteEngine | None:
    """Return those who judge in the place of this process, if any do; raises UsageError."""
    if ray is None:
        if workers is not None:
            raise UsageError(Sentence("cli.local_workers"))
        return None
    if not is_postgres(url):
        raise UsageError(Sentence("cli.ray_needs_postgres"))
    from evenhand.cluster.driver import ray_engine

    return ray_engine(ray, workers, plan, url, notice, allow_insecure=allow_insecure)


def judge_plan(
    plan: Plan,
    store: Store,
    limit: int | None,
    retry_failures: bool,
    then_live: int | None = None,
    remote_engine: RemoteEngine | None = None,
    **labels: Any,
) -> Summary:
    """Judge; by the batch, where it is said how many questions are then asked live; or by
    a remote engine."""
    watcher = Watcher(resume_advice(plan.suite.file.store.url))
    batch = None
    if then_live is not None:
        from evenhand.runs.batch import BatchOptions

        batch = BatchOptions(then_live=then_live, tell=watcher.tell)
    options = Options(
        limit=limit,
        retry_failures=retry_failures,
        watch=watcher.watch,
        notice=watcher.notice,
        batch=batch,
        tell_changes=partial(_tell_changes, plan.name),
        remote_engine=remote_engine,
        **labels,
    )
    return wait(judge_run(plan, store, options))


def exit_code_of(summary: Summary, plan: Plan, flag: str) -> int:
    """Say on stderr what went wrong, if anything did, and what to do; return the exit code."""
    store = {"run": summary.run, "flag": Code(flag)}
    if summary.stopped:
        tell_error(summary.stopped)
        if isinstance(summary.stopped, NoVerdicts):
            notice(Sentence("cli.why_retry", **store))
        if summary.open_batches and not isinstance(summary.stopped, ProviderRefused):
            notice(Sentence("cli.open_batches", n=len(summary.open_batches), flag=Code(flag)))
        return summary.stopped.exit_code
    if summary.no_verdicts:
        tell_error(summary.no_verdicts)
        again = summary.is_resumable
        notice(Sentence("cli.why_again" if again else "cli.why_retry", **store))
        return StoppedEarly.exit_code if again else 1
    for judge, number in summary.tally.unrecorded.items():
        notice(Sentence("cli.unrecorded", judge=judge, n=number))
    parts = [each for each in (summary.answers, summary) if each is not None]
    if silent := [each for part in parts for each in part.tally.silent.items()]:
        for judge, loss in silent:
            notice(Sentence("cli.silent", judge=judge, loss=loss))
        notice(Sentence("cli.why_again", **store))
        return StoppedEarly.exit_code
    most, answers = plan.suite.file.limits.max_failure_rate, summary.answers
    if most is None or max(part.failure_rate for part in parts) <= most:
        return 0
    if answers is not None and answers.failure_rate > most:
        notice(Sentence("cli.too_many_unanswered", share=answers.failure_rate, most=most))
    else:
        notice(Sentence("cli.too_many_failures", share=summary.failure_rate, most=most))
    notice(Sentence("cli.why_retry", **store))
    return 1


def _print(summary: Summary, plan: Plan, store: Archive, flag: str, as_json: bool) -> None:
    # What is shown of a run is loaded when there is something to show.
    from evenhand.cli.show import run_figures, run_json
    from evenhand.report.terminal.comparison import decision_lines
    from evenhand.report.terminal.console import console
    from evenhand.report.terminal.summary import answer_lines, command_lines, outcome_lines
    from evenhand.results.units import failure_details

    recorded, counts, scope = find_run(store, summary.run), summary.counts, summary.scope
    if as_json:
        print_json(summary.json() | run_json(store, recorded, scope))
        return
    out, say = console(), terminal_words()
    click.echo()
    tell_run(recorded)
    details = failure_details(store, scope, plan.kind) if counts.failures else {}
    if summary.answers is not None:
        out.print(answer_lines(summary.answers.json(), say))
        out.print()
    if summary.finishes:
        out.print(answer_lines(summary.json(), say))
        return
    out.print(outcome_lines(summary.json(), say, details, out.width))
    out.print()
    for part in run_figures(store, recorded, scope, is_ranked=summary.decided is None):
        out.print(part)
    if summary.decided is not None:
        out.print()
        for line in decision_lines(summary.decided, recorded.kind.question_noun, say):
            out.print(line)
    for caveat in sorted({setup.judge.caveat for setup in plan.setups} - {""}):
        out.print(f"\n{say('cli.note', text=caveat)}")
    report = _answer(out, summary, plan, recorded, store) if counts.verdicts else None
    if counts.verdicts or counts.failures:
        out.print()
        for command in command_lines(_next_commands(summary.run, report), say):
            out.print(f"{command}{flag}", soft_wrap=True)


def _answer(
    out: Console, summary: Summary, plan: Plan, run: Recorded, store: Archive
) -> Report | None:
    """Print what the run says, unless it stopped early, which was told; a question of the suite
    that its data cannot answer is told and does no harm."""
    # They need numpy, which other ends of this command do without.
    from evenhand.report.terminal.answer import report_lines
    from evenhand.results.report import ReportOptions, make_report
    from evenhand.runs.differences import with_tables

    options = ReportOptions(language=speaker().language, answer_only=True)
    if summary.counts.verdicts > ANSWER_AT_ONCE:
        notice(Sentence("cli.computing", n=summary.counts.verdicts))
    try:
        report = make_report(store, with_tables(run, plan.suite), options)
    except UsageError as error:
        tell_error(error)
        return None
    if summary.decided is None:
        out.print()
        for line in report_lines(report, terminal_words(report.faults)):
            out.print(line)
    return report


def _next_commands(run: str, report: Report | None) -> Iterator[tuple[str, str]]:
    """Yield what to do with a run, each as the key of a label and a command."""
    yield "cli.next_show", f"show {run}"
    if report is None:
        return
    if report.is_pairs:
        yield "cli.next_leaderboard", f"leaderboard {run}"
    if report.comparison and report.comparison.rows:
        yield "cli.next_compare", f"compare {run}{_fields_flag(report)}"
    yield "cli.next_report", f"report {run} -o report.html"
    yield "cli.next_view", "view"
    yield "cli.next_export", f"export {run} --full -o verdicts.csv"


def _fields_flag(report: Report) -> str:
    """Return what `compare` has to be told where the suite does not say what to compare."""
    if report.is_pairs or report.comparison is None or report.manifest.compare:
        return ""
    return "".join(f" --by {shlex.quote(name)}" for name in report.comparison.by_fields)


def _tell_changes(name: str, changes: Changes, differences: Sequence[str]) -> None:
    """Say what is new in the data and in the judging of a run since the last run of its name."""
    say = terminal_words()
    key = "cli.data_changed" if any(changes) else "cli.data_same"
    notice(Sentence(key, name=name, **changes._asdict()))
    if differences:
        what = say.join(map(say.message, differences), between="semicolon")
        notice(say("cli.judging_changed", what=what))
    elif not any(changes):
        notice(Sentence("cli.else_changed"))


def preview(
    plan: Plan,
    url: str,
    place: Path,
    limit: int | None,
    retry_failures: bool,
    as_json: bool,
) -> int:
    store = None
    with suppress(StoreMissing):
        store = open_archive(url, place)
    try:
        ahead = wait(forecast(plan, store, limit, retry_failures=retry_failures))
    finally:
        if store:
            store.close()
    lacking = ahead.lacking(plan.all_setups)
    if as_json:
        print_json({**ahead.json(), "lacking": [str(error) for error in lacking]})
    else:
        _print_forecast(plan, ahead.json())
    for error in lacking:
        tell_error(error)
    for setup in plan.all_setups:
        if split_name(setup.spec.model)[0].runs_code:
            notice(Sentence("cli.code_not_run", model=setup.spec.model))
    return 0


def _print_forecast(plan: Plan, forecast: dict[str, Any]) -> None:
    calls, is_open = forecast["calls"], forecast["until_decided"]
    way = "_open" if is_open else "_rounds" if plan.judging.rounds > 1 else ""
    tell("cli.dry", run=forecast["run"])
    if answers := forecast.get("answers"):
        made = {"done": answers["done"], "calls": answers["calls"]["least"]}
        tell("cli.dry_answers", n=answers["planned"], **made)
    tell("cli.dry_planned", planned=forecast["planned"], done=forecast["done"])
    if forecast["left_out"]:
        tell("facts.left_out", n=forecast["left_out"])
    tell("cli.dry_cached", n=forecast["cached"])
    tell(f"cli.dry_calls{way}", **calls)
    tell("cli.dry_tokens", input=forecast["input_tokens"], output=forecast["output_tokens_most"])
    click.echo(price_line(forecast["price_usd"], terminal_words(), is_open=is_open))


def price_line(price: Mapping[str, float | None], say: Words, *, is_open: bool = False) -> str:
    """Return what a run will about cost, and the most that it can: the budget where that is
    less."""
    likely, most, budget = price["likely"], price["most"], price["budget"]
    if likely is None or most is None:
        return say("cli.price_unknown")
    if not most:
        return say("cli.price_none")
    likely, most = likely and max(likely, 0.01), max(most, 0.01)  # "about less than" says nothing
    key = "cli.price_open" if is_open else "cli.price_about"
    if budget is not None and budget < most:
        return say(f"{key}_budget", likely=min(likely, budget), most=budget)
    return say(key, likely=likely, most=most)
