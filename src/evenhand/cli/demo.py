"""`evenhand demo`."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from rich.text import Text

from evenhand.cli.common import notice, resume_advice, wait
from evenhand.cli.models import get_model
from evenhand.cli.views import run_figures, unit_lines
from evenhand.cli.watch import Watcher
from evenhand.errors import UsageError
from evenhand.examples import example_files
from evenhand.judges.embedded import models
from evenhand.judgment import Failure
from evenhand.kinds import KINDS
from evenhand.kinds.shared.load import LANGUAGES
from evenhand.ledger.ports import Archive, Store
from evenhand.report.terminal.tables import console, outcome_lines, safe
from evenhand.runs.judge import Options, Summary, judge_run
from evenhand.runs.prepare import environment, prepare
from evenhand.runs.recorded import find_run
from evenhand.runs.stores import MEMORY, open_store
from evenhand.suite import load_suite

SMALL = "smollm2-135m"
AT_CHANCE = (
    "It judges no better than chance: this shows what a run looks like, not which answer is better."
    " The model without --small judges better; for real decisions name a strong judge."
)


@click.command("demo")
@click.option("--language", type=click.Choice(LANGUAGES), default="en", show_default=True)
@click.option("--all", "every", is_flag=True, help="All four languages.")
@click.option("--protocol", type=click.Choice(list(KINDS)), help="One; otherwise all of them.")
@click.option("--small", is_flag=True, help="The 135M model: quick to fetch, judges badly.")
@click.option("--yes", is_flag=True, help="Fetch the model without asking.")
@click.option("--store", metavar="URL", help="Keep the results, e.g. sqlite:demo.db.")
@click.option(
    "--reports",
    type=click.Path(path_type=Path, file_okay=False),
    default="evenhand-demo",
    show_default=True,
    help="Write a report of each protocol into this folder.",
)
def demo_command(
    language: str,
    every: bool,
    protocol: str | None,
    small: bool,
    yes: bool,
    store: str | None,
    reports: Path,
) -> int:
    """Judge a few bundled answers, good, bad and tricky, with the embedded judge.

    No key, and no network once the model is there: it is fetched once (1.1 GB; --small: 93 MB).
    A few minutes a language on two idle cores.
    """
    name = SMALL if small else models.DEFAULT
    if not _model_here(name, yes):
        return 2
    url = store or MEMORY
    opened = open_store(url)
    try:
        runs = {
            f"{kind}-{tongue}.html": _judge(kind, tongue, name, opened, resume_advice(url))
            for kind in ([protocol] if protocol else KINDS)
            for tongue in (LANGUAGES if every else [language])
        }
        _write_reports(opened.archive, reports, runs)
    finally:
        opened.close()
    return int(any(summary.counts.verdicts != summary.counts.planned for summary in runs.values()))


def _write_reports(store: Archive, folder: Path, runs: Mapping[str, Summary]) -> None:
    """A page of each run, where the parts that make pages are installed."""
    try:
        from evenhand.results.report import ReportOptions, write_report

        folder.mkdir(parents=True, exist_ok=True)
        for name, summary in runs.items():
            write_report(folder / name, store, find_run(store, summary.run), ReportOptions())
    except UsageError as error:
        click.echo(f"\nNo report was written: {error}", err=True)
        return
    click.echo(f"\nTo look at in a browser: {', '.join(str(folder / name) for name in runs)}")


def _model_here(name: str, yes: bool) -> bool:
    """Fetch the model after asking; where nobody can be asked, fetch it."""
    if models.find(name):
        return True
    size = models.named(name).download / 1e6
    question = f"The embedded judge needs the model {name} ({size:.0f} MB, once). Fetch it?"
    if not yes and sys.stdin.isatty() and not click.confirm(question, default=True, err=True):
        click.echo("A smaller one: evenhand demo --small", err=True)
        return False
    get_model(name)
    return True


def _judge(protocol: str, language: str, model: str, store: Store, advice: str) -> Summary:
    with tempfile.TemporaryDirectory(prefix="evenhand-demo-") as folder:
        for name, text in example_files(protocol, language).items():
            Path(folder, name).write_text(text, encoding="utf-8")
        judges = [{"model": f"embedded/{model}" if model != models.DEFAULT else "embedded"}]
        suite = load_suite(Path(folder), {}, {"judges": judges})
        plan = prepare(suite, environment(), notice)
        watcher = Watcher(advice)
        summary = wait(judge_run(plan, store, Options(watch=watcher.watch)))
    caveats = [f"{seat.judge.caveat} {remark(protocol, model)}" for seat in plan.seats]
    _print(store.archive, summary, caveats)
    if summary.stopped:
        summary.stopped.advice = advice
        raise summary.stopped
    return summary


def remark(protocol: str, model: str) -> str:
    """How far an embedded model can be trusted with a protocol, as it was measured."""
    return KINDS[protocol].example.remark if model == models.DEFAULT else AT_CHANCE


def _print(store: Archive, summary: Summary, caveats: Sequence[str]) -> None:
    out, recorded = console(), find_run(store, summary.run)
    kind = recorded.kind
    out.print()
    out.rule(Text(f"{kind.name}: {recorded.protocol.about}"), align="left", characters="═")
    for unit, stored in store.judgments(recorded.scope):
        judgment = recorded.judgment(stored)
        out.print()
        out.rule(Text(safe(unit.id), style="bold"), align="left")
        for part in unit_lines(kind, unit.body, judgment):
            out.print(part)
        if isinstance(judgment, Failure):
            out.print(f"failed: {judgment.reason}: {safe(judgment.detail)}")
    out.print()
    for part in run_figures(kind, store, summary.scope, recorded.judge_groups):
        out.print(part)
    out.print()
    out.print(outcome_lines(summary.json()))
    out.print(f"\n{kind.example.legend}")
    for caveat in caveats:
        out.print(f"Note: {caveat}")
