"""`evenhand run`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from evenhand.cli.common import json_option, notice, print_json, resume_advice, store_flag, wait
from evenhand.cli.views import run_figures, run_json
from evenhand.cli.watch import Watcher
from evenhand.errors import StoppedEarly, StoreError, UsageError
from evenhand.ledger.ports import Archive, Changes, Store
from evenhand.report.terminal.sequential import decision_text
from evenhand.report.terminal.tables import console, outcome_lines, safe
from evenhand.results.rows import failure_details
from evenhand.runs.forecast import forecast
from evenhand.runs.judge import Options, Summary, judge_run
from evenhand.runs.plan import Plan
from evenhand.runs.prepare import environment, prepare
from evenhand.runs.recorded import find_run
from evenhand.runs.stores import open_archive, open_store
from evenhand.suite import FILE, load_suite

if TYPE_CHECKING:
    from evenhand.report.html.build import Report

WHOLE_DOLLARS = 10


@click.command("run")
@click.argument("suite", default=FILE, type=click.Path(path_type=Path))
@click.option("--judge", "judges", multiple=True, metavar="MODEL", help="Judge with this instead.")
@click.option("--limit", type=click.IntRange(min=1), help="Judge the first N units only.")
@click.option("--dry-run", is_flag=True, help="Print calls, tokens and price range; send nothing.")
@click.option("--store", metavar="URL", help="Keep the results here, e.g. sqlite:evenhand.db.")
@click.option("--allow-outside", is_flag=True, help="Read files outside of the suite's folder too.")
@click.option("--retry-failures", is_flag=True, help="Judge failed units again, whatever failed.")
@click.option(
    "--until-decided/--to-the-end",
    default=None,
    help="Judge in random order and stop when [compare] is decided; or judge all, whatever [stop]"
    " says.",
)
@json_option
def run_command(
    suite: Path,
    judges: Sequence[str],
    limit: int | None,
    dry_run: bool,
    store: str | None,
    allow_outside: bool,
    retry_failures: bool,
    until_decided: bool | None,
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
    """
    folder = suite if suite.is_dir() else suite.parent
    environ = environment(folder)
    overrides: dict[str, Any] = {"store": {"url": store}} if store else {}
    if until_decided is not None:
        overrides["stop"] = {"until_decided": until_decided}
    if judges:
        overrides["judges"] = judge_overrides(suite, environ, judges)
    loaded = load_suite(suite, environ, overrides, allow_outside=allow_outside)
    plan = prepare(loaded, environ, notice)
    url, place = plan.suite.store_url, Path() if store else folder
    if dry_run:
        return _dry(plan, url, place, limit, retry_failures, as_json)
    opened = open_store(url, place)
    try:
        summary = _judge(plan, opened, limit, retry_failures)
        _print(summary, plan, opened.archive, store_flag(url, place), as_json)
    finally:
        opened.close()
    return _exit_code(summary, plan, store_flag(url, place))


def judge_overrides(
    suite: Path, environ: dict[str, str], judges: Sequence[str]
) -> list[dict[str, Any]]:
    """Judges named on the command line; one that the suite has too keeps its parameters."""
    try:
        entries = load_suite(suite, environ).file.judges
    except UsageError:
        entries = []
    specs = {spec.model: spec.model_dump(exclude_unset=True) for spec in entries}
    return [specs.get(model, {"model": model}) for model in judges]


def _judge(plan: Plan, store: Store, limit: int | None, retry_failures: bool) -> Summary:
    watcher = Watcher(resume_advice(plan.suite.file.store.url))
    options = Options(
        limit=limit,
        retry_failures=retry_failures,
        watch=watcher.watch,
        notice=watcher.notice,
        tell_changes=lambda changes, differences: notice(
            changes_line(changes, differences, plan.name)
        ),
    )
    return wait(judge_run(plan, store, options))


def _exit_code(summary: Summary, plan: Plan, flag: str) -> int:
    if summary.stopped:
        click.echo(f"evenhand: {summary.stopped}", err=True)
        return summary.stopped.exit_code
    if summary.is_barren:
        return _nothing_judged(summary, flag)
    most = plan.suite.file.limits.max_failure_rate
    if most is None or summary.failure_rate <= most:
        return 0
    click.echo(
        f"evenhand: {summary.failure_rate:.1%} of the judgments failed,"
        f" more than max_failure_rate = {most:g} allows\n"
        f"  See why: evenhand show {summary.run}{flag};"
        f" judge them again: the same command with --retry-failures",
        err=True,
    )
    return 1


def _nothing_judged(summary: Summary, flag: str) -> int:
    counts = summary.counts
    reasons = [f"{number} x {reason}" for reason, number in sorted(counts.failures.items())]
    outcomes = [*reasons, *([f"{counts.pending} pending"] if counts.pending else [])]
    rest = "" if summary.is_resumable else " with --retry-failures"
    click.echo(
        f"evenhand: nothing could be judged: {', '.join(outcomes)}\n"
        f"  See why: evenhand show {summary.run}{flag}; then try again: the same command{rest}",
        err=True,
    )
    return StoppedEarly.exit_code if summary.is_resumable else 1


def _print(summary: Summary, plan: Plan, store: Archive, flag: str, as_json: bool) -> None:
    if as_json:
        figures = run_json(plan.kind, store, summary.scope, plan.judge_groups)
        print_json(summary.json() | figures)
        return
    out, counts, scope = console(), summary.counts, summary.scope
    out.print(f"\nrun {summary.run}  {safe(plan.suite.file.name)}")
    details = failure_details(store, scope, plan.kind) if counts.failures else {}
    out.print(outcome_lines(summary.json(), details, out.width))
    out.print()
    for part in run_figures(plan.kind, store, scope, plan.judge_groups):
        out.print(part)
    if summary.decided is not None:
        out.print(f"\n{decision_text(summary.decided)}")
    for caveat in sorted({seat.judge.caveat for seat in plan.seats} - {""}):
        out.print(f"\nNote: {caveat}")
    report = _answer(out, summary, store) if counts.verdicts else None
    if counts.verdicts or counts.failures:
        out.print()
        for label, command in _next_commands(summary.run, report):
            out.print(f"{label:13} evenhand {command}{flag}", soft_wrap=True)


def _answer(out: Console, summary: Summary, store: Archive) -> Report | None:
    """Print what the run says, unless it stopped early, which was told; a question of the suite
    that its data cannot answer is told and does no harm."""
    # They need numpy, which other ends of this command do without.
    from evenhand.report.terminal.answer import report_lines
    from evenhand.results.report import ReportOptions, make_report

    options = ReportOptions(language="en", summary=True)
    try:
        report = make_report(store, find_run(store, summary.run), options)
    except UsageError as error:
        notice(f"evenhand: {error}")
        return None
    if summary.decided is None:
        out.print()
        for line in report_lines(report):
            out.print(line)
    return report


def _next_commands(run: str, report: Report | None) -> Iterator[tuple[str, str]]:
    """What to do with a run, each as a label and a command."""
    yield "Look closer:", f"show {run}"
    if report is None:
        return
    if report.is_pairs:
        yield "Rank:", f"leaderboard {run}"
    if report.differences:
        yield "Compare:", f"compare {run}"
    yield "Report:", f"report {run} -o report.html"
    yield "In a browser:", "view"
    yield "Take it away:", f"export {run} -o out.jsonl"


def changes_line(changes: Changes, differences: Sequence[str], name: str) -> str:
    """What is new in the data and in the judging of a run since the last run of its name."""
    new = f"other: {safe('; '.join(differences))}" if differences else ""
    if not any(changes):
        rest = new or "something else changed"
        return f"The data are those of the last run called {safe(name)}; {rest}."
    line = f"+{changes.added}, -{changes.removed}, {changes.changed} changed"
    return f"Data against the last run called {safe(name)}: {line}{'; ' if new else ''}{new}"


def _store_so_far(url: str, place: Path) -> Archive | None:
    """The store, unless it is yet to be made."""
    try:
        return open_archive(url, place)
    except StoreError as error:
        if Path(error.where).exists():
            raise
        return None


def _dry(
    plan: Plan,
    url: str,
    place: Path,
    limit: int | None,
    retry_failures: bool,
    as_json: bool,
) -> int:
    store = _store_so_far(url, place)
    try:
        ahead = wait(forecast(plan, store, limit, retry_failures=retry_failures))
    finally:
        if store:
            store.close()
    lacking = [str(error) for error in ahead.lacking(plan.seats)]
    if as_json:
        print_json({**ahead.json(), "lacking": lacking})
    else:
        _print_forecast(plan, ahead.json())
    for message in lacking:
        notice(f"evenhand: {message}")
    return 0


def _print_forecast(plan: Plan, forecast: dict[str, Any]) -> None:
    calls = forecast["calls"]
    left_out = f", {forecast['left_out']:,} left out" if forecast["left_out"] else ""
    rounds = " and later round" if plan.judging.rounds > 1 else ""
    click.echo(f"run {forecast['run']}: nothing was sent")
    click.echo(
        f"{forecast['planned']:,} judgments planned, {forecast['done']:,} of them done{left_out}"
    )
    click.echo(f"{forecast['cached']:,} calls in the ledger")
    sure = f"{calls['least']:,} calls to send, at most"
    start = "as many calls as it takes to decide, at most" if forecast["until_decided"] else sure
    click.echo(f"{start} {calls['most']:,} with every re-ask{rounds}")
    click.echo(
        f"about {forecast['input_tokens']:,} input tokens,"
        f" at most {forecast['output_tokens_most']:,} output tokens"
    )
    click.echo(price_line(forecast["price_usd"], is_open=forecast["until_decided"]))


def price_line(price: Mapping[str, float | None], *, is_open: bool = False) -> str:
    """What a run will about cost, and the most that it can: the budget where that is less."""
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


def money(dollars: float) -> str:
    """Dollars in as many digits as a person reads: whole ones from ten on, cents below."""
    if dollars >= WHOLE_DOLLARS:
        return f"${dollars:,.0f}"
    return f"${dollars:.2f}" if dollars >= 1 or not dollars else f"${dollars:.2g}"
