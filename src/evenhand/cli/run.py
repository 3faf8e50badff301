"""`evenhand run`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli.common import json_option, notice, print_json, resume_advice, store_flag, wait
from evenhand.cli.language import speaker, terminal_words
from evenhand.cli.watch import Watcher
from evenhand.errors import (
    NoVerdicts,
    ProviderRefused,
    StoppedEarly,
    StoreMissing,
    UsageError,
    quote,
)
from evenhand.judges import split_name
from evenhand.judges.credentials import environment
from evenhand.judges.trust import KeyUse, Trust, TrustedHosts, host_named
from evenhand.limits import BATCH_THEN_LIVE
from evenhand.report.terminal.tables import count_noun, money, safe
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

if TYPE_CHECKING:
    from rich.console import Console

    from evenhand.report.model import Report

ANSWER_AT_ONCE = 20_000
"""From more verdicts the answer takes seconds, so it is announced."""


@click.command("run")
@click.argument("suite", default=FILE, type=click.Path(path_type=Path))
@click.option("--judge", "judges", multiple=True, metavar="MODEL", help="Judge with this instead.")
@click.option("--limit", type=click.IntRange(min=1), help="Judge the first N units only.")
@click.option("--dry-run", is_flag=True, help="Print calls, tokens and price range; send nothing.")
@click.option("--store", metavar="URL", help="Keep the results here, e.g. sqlite:evenhand.db.")
@click.option("--allow-outside", is_flag=True, help="Read files outside of the suite's folder too.")
@click.option(
    "--trust-host",
    "trusted",
    multiple=True,
    metavar="HOST",
    help="Let keys go to this host, now and later. Repeatable.",
)
@click.option("--retry-failures", is_flag=True, help="Judge failed units again, whatever failed.")
@click.option(
    "--until-decided/--to-the-end",
    default=None,
    help="Judge in random order and stop when [compare] is decided; or judge all, whatever [stop]"
    " says.",
)
@click.option("--batch", is_flag=True, help="Ask by the batch: half the price, up to a day.")
@click.option(
    "--batch-then-live",
    type=click.IntRange(min=0),
    metavar="N",
    help="Ask live what is left below N questions. Default: 50; 0: never.",
)
@click.option("--ray", metavar="ADDRESS", help="Judge on this Ray cluster.")
@click.option(
    "--workers", type=click.IntRange(min=1), help="With --ray: actors; one per node unless given."
)
@click.option("--allow-insecure-ray", is_flag=True, help="Use a cluster that asks for no token.")
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
    as_json: bool,
) -> int:
    """Judge what is open of SUITE (a file, or a folder with evenhand.toml).

    Every reply is recorded before it is used: run the same command again to continue, and a
    finished run costs nothing to repeat. Ctrl-C stops new calls, waits for those under way and
    prints how to go on; a second Ctrl-C leaves at once.

    \b
    evenhand run --dry-run              what it would send and cost
    evenhand run --judge embedded       with the local model
    evenhand run --limit 20 --json      the first 20 units, result as JSON
    evenhand run --until-decided        no more units than the comparison takes
    evenhand run --batch                at half the price, when there is time
    evenhand run --ray auto --workers 8 on a Ray cluster, with a PostgreSQL store
    """
    if ray is not None and batch:
        raise click.UsageError("--ray asks live, and --batch does not: leave one of them out")
    if batch_then_live is not None and not batch:
        raise click.UsageError("--batch-then-live goes with --batch")
    folder = suite if suite.is_dir() else suite.parent
    environ = environment(folder)
    overrides = _overrides(suite, environ, store, until_decided, judges)
    loaded = load_suite(suite, environ, overrides, allow_outside=allow_outside)
    speaker().choose(loaded.file.language)
    plan = prepare(loaded, environ, notice, trust=_users_trust(trusted))
    url, place = plan.suite.store_url, Path() if store else folder
    if batch:
        from evenhand.runs.batch import at_batch_prices, require_batches

        require_batches(plan)
        plan = at_batch_prices(plan) if dry_run else plan
    if dry_run:
        return _dry(plan, url, place, limit, retry_failures, as_json)
    remote_engine = _remote_engine(plan, url, ray, workers, allow_insecure_ray)
    flag, then_live = store_flag(url, place), None
    if batch:
        then_live = BATCH_THEN_LIVE if batch_then_live is None else batch_then_live
    with closing(open_store(url, place)) as opened:
        summary = _judge(plan, opened, limit, retry_failures, then_live, remote_engine)
        _print(summary, plan, opened.archive, flag, as_json)
    return _exit_code(summary, plan, flag)


def _users_trust(trusted: Sequence[str]) -> Trust:
    """Return what the user allows: these hosts, remembered; others where a terminal can be
    asked. Raise UsageError."""
    hosts = TrustedHosts()
    hosts.remember([host_named(host) for host in trusted])
    is_terminal = sys.stdin.isatty() and sys.stderr.isatty()
    return Trust(hosts, ask=_ask_user if is_terminal else None, tell=notice)


def _ask_user(use: KeyUse) -> bool:
    notice(f"{use.sentence()}.")
    question = f"May {use.host} have this key, now and later?"
    return click.confirm(question, default=False, err=True)


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
            raise UsageError(
                "--workers says how many actors --ray starts, and there is no --ray",
                advice="Add --ray ADDRESS; or raise concurrency in [limits] instead.",
            )
        return None
    if not is_postgres(url):
        raise UsageError(
            "actors on a Ray cluster share a store in PostgreSQL, and this one is a file",
            advice="Name it with --store postgresql://...",
        )
    from evenhand.cluster.driver import ray_engine

    return ray_engine(ray, workers, plan, url, notice, allow_insecure=allow_insecure)


def _judge(
    plan: Plan,
    store: Store,
    limit: int | None,
    retry_failures: bool,
    then_live: int | None,
    remote_engine: RemoteEngine | None,
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
        tell_changes=lambda changes, differences: notice(
            changes_line(changes, differences, plan.name)
        ),
        remote_engine=remote_engine,
    )
    return wait(judge_run(plan, store, options))


def _exit_code(summary: Summary, plan: Plan, flag: str) -> int:
    """Say on stderr what went wrong, if anything did, and what to do; return the exit code."""
    see = f"  See why: evenhand show {summary.run}{flag};"
    if summary.stopped:
        notice(f"evenhand: {summary.stopped}")
        if isinstance(summary.stopped, NoVerdicts):
            notice(f"{see} judge the failed ones again too: the same command with --retry-failures")
        if summary.open_batches and not isinstance(summary.stopped, ProviderRefused):
            notice(
                f"  Batches at the provider: {len(summary.open_batches)}; the same command takes in"
                f" the answers. List them: evenhand batches{flag}"
            )
        return summary.stopped.exit_code
    if summary.has_no_verdict:
        rest = "" if summary.is_resumable else " with --retry-failures"
        notice(f"evenhand: {summary.no_verdict_reason}")
        notice(f"{see} then try again: the same command{rest}")
        return StoppedEarly.exit_code if summary.is_resumable else 1
    for judge, number in summary.tally.unrecorded.items():
        pending = f"{count_noun(number, 'judgment')} pending"
        notice(f"{quote(judge)} has no recorded reply for some units: {pending}")
    if summary.tally.silent:
        for judge, loss in summary.tally.silent.items():
            notice(f"evenhand: {quote(judge)} gave no answer to any call: {loss}")
        notice(f"{see} then try again: the same command")
        return StoppedEarly.exit_code
    most = plan.suite.file.limits.max_failure_rate
    if most is None or summary.failure_rate <= most:
        return 0
    notice(
        f"evenhand: {summary.failure_rate:.1%} of the judgments failed, more than max_failure_rate"
        f" = {most:g} allows\n{see} judge them again: the same command with --retry-failures"
    )
    return 1


def _print(summary: Summary, plan: Plan, store: Archive, flag: str, as_json: bool) -> None:
    # What is shown of a run is loaded when there is something to show.
    from evenhand.cli.show import run_figures, run_json
    from evenhand.report.terminal.comparison import decision_text
    from evenhand.report.terminal.console import console
    from evenhand.report.terminal.summary import outcome_lines
    from evenhand.results.units import failure_details

    recorded, counts, scope = find_run(store, summary.run), summary.counts, summary.scope
    if as_json:
        print_json(summary.json() | run_json(store, recorded, scope))
        return
    out = console()
    out.print(f"\nrun {summary.run}  {safe(plan.suite.file.name)}")
    details = failure_details(store, scope, plan.kind) if counts.failures else {}
    out.print(outcome_lines(terminal_words(), summary.json(), details, out.width))
    out.print()
    for part in run_figures(store, recorded, scope, is_ranked=summary.decided is None):
        out.print(part)
    if summary.decided is not None:
        out.print(f"\n{decision_text(summary.decided)}")
    for caveat in sorted({setup.judge.caveat for setup in plan.setups} - {""}):
        out.print(f"\nNote: {caveat}")
    report = _answer(out, summary, plan, recorded, store) if counts.verdicts else None
    if counts.verdicts or counts.failures:
        out.print()
        for label, command in _next_commands(summary.run, report):
            out.print(f"{label:13} evenhand {command}{flag}", soft_wrap=True, markup=False)


def _answer(
    out: Console, summary: Summary, plan: Plan, run: Recorded, store: Archive
) -> Report | None:
    """Print what the run says, unless it stopped early, which was told; a question of the suite
    that its data cannot answer is told and does no harm."""
    # They need numpy, which other ends of this command do without.
    from evenhand.report.terminal.answer import report_lines
    from evenhand.results.report import ReportOptions, make_report
    from evenhand.runs.differences import with_tables

    options = ReportOptions(language="en", answer_only=True)
    if summary.counts.verdicts > ANSWER_AT_ONCE:
        notice(f"evenhand: computing the answer from {summary.counts.verdicts:,} verdicts ...")
    try:
        report = make_report(store, with_tables(run, plan.suite), options)
    except UsageError as error:
        notice(f"evenhand: {error}")
        return None
    if summary.decided is None:
        out.print()
        for line in report_lines(report):
            out.print(line)
    return report


def _next_commands(run: str, report: Report | None) -> Iterator[tuple[str, str]]:
    """Yield what to do with a run, each as a label and a command."""
    yield "Look closer:", f"show {run}"
    if report is None:
        return
    if report.is_pairs:
        yield "Rank:", f"leaderboard {run}"
    if report.comparison and report.comparison.rows:
        yield "Compare:", f"compare {run}"
    yield "Report:", f"report {run} -o report.html"
    yield "In a browser:", "view"
    yield "As a table:", f"export {run} --full -o verdicts.csv"


def changes_line(changes: Changes, differences: Sequence[str], name: str) -> str:
    """Return what is new in the data and in the judging of a run since the last run of its name."""
    new = f"judging changed: {safe('; '.join(differences))}" if differences else ""
    if not any(changes):
        rest = new or "something else changed"
        return f"The data are those of the last run called {safe(name)}; {rest}."
    line = f"+{changes.added}, -{changes.removed}, {changes.changed} changed"
    return f"Data against the last run called {safe(name)}: {line}{'; ' if new else ''}{new}"


def _dry(
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
    lacking = [str(error) for error in ahead.lacking(plan.setups)]
    if as_json:
        print_json({**ahead.json(), "lacking": lacking})
    else:
        _print_forecast(plan, ahead.json())
    for message in lacking:
        notice(f"evenhand: {message}")
    for setup in plan.setups:
        if split_name(setup.spec.model)[0].runs_code:
            notice(f"The code of {setup.spec.model} was not run; without --dry-run it is.")
    return 0


def _print_forecast(plan: Plan, forecast: dict[str, Any]) -> None:
    calls = forecast["calls"]
    excluded = f"; {forecast['left_out']:,} left out by no_self_judging"
    left_out = excluded if forecast["left_out"] else ""
    rounds = " and later round" if plan.judging.rounds > 1 else ""
    click.echo(f"run {forecast['run']}: nothing was sent")
    click.echo(
        f"{count_noun(forecast['planned'], 'judgment')} planned,"
        f" {forecast['done']:,} of them done{left_out}"
    )
    click.echo(f"{count_noun(forecast['cached'], 'call')} in the ledger")
    sure = f"{count_noun(calls['least'], 'call')} to send, at most"
    start = "as many calls as it takes to decide, at most" if forecast["until_decided"] else sure
    click.echo(f"{start} {calls['most']:,} with every re-ask{rounds}")
    click.echo(
        f"about {forecast['input_tokens']:,} input tokens,"
        f" at most {forecast['output_tokens_most']:,} output tokens"
    )
    click.echo(price_line(forecast["price_usd"], is_open=forecast["until_decided"]))


def price_line(price: Mapping[str, float | None], *, is_open: bool = False) -> str:
    """Return what a run will about cost, and the most that it can: the budget where that is
    less."""
    likely, most, budget = price["likely"], price["most"], price["budget"]
    if likely is None or most is None:
        return "price unknown: add `price` to the [[judges]] entry"
    if not most:
        return "no price: nothing to pay"
    limit = money(most)
    if budget is not None and budget < most:
        limit, likely = f"{money(budget)}, your budget", min(likely, budget)
    about = f"up to {money(likely)}" if is_open else f"about {money(likely)}"
    return f"{about} (at most {limit})"
