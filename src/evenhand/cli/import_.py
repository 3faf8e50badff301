"""`evenhand import`."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import get_args

import click
from rich.text import Text

from evenhand.cli.common import (
    json_option,
    mapped_columns,
    notice,
    print_json,
    store_at,
    store_flag,
    store_option,
    wait,
)
from evenhand.data.sql import query
from evenhand.errors import quote
from evenhand.observation import Rule
from evenhand.report.terminal.console import console
from evenhand.report.terminal.tables import count_noun, cut, safe
from evenhand.runs.imports import IMPORT_KINDS, ImportRequest, ImportResult, import_judgments
from evenhand.runs.recorded import find_run

NAMES_SHOWN = 12


@click.command("import")
@click.argument("files", nargs=-1, metavar="FILE...", type=click.Path(path_type=Path))
@click.option(
    "--kind",
    type=click.Choice(list(IMPORT_KINDS)),
    help="The layout of the files: tidy votes or scores, output objects, or that of another tool.",
)
@click.option(
    "--for",
    "labelled",
    metavar="RUN",
    help="Labels that people gave to units of RUN: unit, annotator, and winner (1, 2, tie) or a"
    " column per dimension.",
)
@click.option(
    "--batch-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="With --for RUN: answers to the questions that export --batch-file wrote.",
)
@click.option(
    "--sql",
    metavar="QUERY",
    help="Read the rows of a query in place of files, e.g. --sql \"select * from 'votes.csv'\".",
)
@click.option(
    "--map",
    "moves",
    multiple=True,
    metavar="NEW=OLD",
    help="Read the column OLD as NEW, e.g. --map unit=question_id. May be given several times.",
)
@click.option("--name", help="The run's name. Default: that of the first file.")
@click.option("--judge", metavar="NAME", help="Who judged, where the rows do not say.")
@click.option(
    "--on-conflict",
    type=click.Choice(get_args(Rule)),
    default="uncertain",
    show_default=True,
    help="Votes: what two orders that name different winners count as.",
)
@store_option
@json_option
def import_command(
    files: tuple[Path, ...],
    kind: str | None,
    labelled: str | None,
    batch_file: Path | None,
    sql: str | None,
    moves: tuple[str, ...],
    name: str | None,
    judge: str | None,
    on_conflict: Rule,
    store: str | None,
    as_json: bool,
) -> None:
    """Take in judgments made by other tools as a run like any other.

    A verdict that cannot be read stays in as a failed judgment. Importing the same files again
    gives the same run.

    \b
    evenhand import votes.csv --kind votes
    evenhand import labels.csv --for latest      people's labels; then:
    evenhand agreement SUITE --against labels    can the judge be trusted?
    evenhand import --batch-file answers.jsonl --for latest
    """
    if batch_file is not None:
        if files or kind or sql or labelled is None:
            raise click.UsageError("--batch-file FILE goes with --for RUN, and with no other file")
        _take_answers(labelled, batch_file, store, as_json=as_json)
        return
    if sql is not None and files:
        raise click.UsageError("--sql names its files itself, in the query")
    if sql is None and not files:
        raise click.UsageError("Missing argument 'FILE...'.")
    if (kind is None) == (labelled is None):
        raise click.UsageError("say either --kind or --for RUN")
    request = ImportRequest(
        tables=files if sql is None else [query(sql)],
        kind=kind,
        labels_for=labelled,
        columns=mapped_columns(moves),
        name=name,
        judge=judge,
        on_conflict=on_conflict,
        notify=notice,
    )
    with closing(store_at(store, must_exist=labelled is not None)) as opened:
        imported = wait(import_judgments(opened, request))
    _warn(imported)
    if as_json:
        print_json(imported.json())
    else:
        _print(imported, store)


def _take_answers(name: str, path: Path, url: str | None, *, as_json: bool) -> None:
    """Take in the answers of a file, and say how many questions are left."""
    from evenhand.runs.batch_files import take_answers

    with closing(store_at(url)) as store:
        run = find_run(store.archive, name)
        result = wait(take_answers(run, store, path))
    if result.failed:
        notice(
            f"{count_noun(result.failed, 'line')} hold no reply, for instance: {result.complaint}"
        )
    if result.doubled:
        notice(f"{count_noun(result.doubled, 'line')} came twice: the first counts")
    if result.unknown:
        notice(f"{count_noun(result.unknown, 'line')} of no question that is open in run {run.id}")
    if as_json:
        print_json({"run": run.id, **result.json()})
        return
    click.echo(f"run {run.id}: {count_noun(result.answered, 'answer')} taken in")
    flag = store_flag(url, Path()) if url else ""
    if result.questions:
        click.echo(
            f"{count_noun(result.questions, 'question')} left: evenhand export {run.id}"
            f" --batch-file NEXT.jsonl{flag}"
        )
    else:
        click.echo(f"no question is left: evenhand show {run.id}{flag}")


def _warn(imported: ImportResult) -> None:
    """Say on stderr what was left out, and where the files may have been misread."""
    labelled = imported.labelled
    if labelled is not None and labelled.left_out:
        left_out = count_noun(labelled.left_out, "row")
        notice(f"{left_out} about units that run {labelled.run} does not have: left out")
    if imported.columns:
        found = (f"{field} = {quote(column)}" for field, column in imported.columns.items())
        notice(f"columns: {', '.join(found)} (else: --map)")
    if sum(imported.tally.failures.values()) > imported.tally.verdicts:
        notice("most judgments could not be read: are --kind and --map right?")


def _print(imported: ImportResult, store: str | None) -> None:
    out, summary, tally = console(), imported.json(), imported.tally
    failed = sum(summary["failures"].values())
    out.print(Text(f"run {imported.run}", style="bold").append(f"  {safe(imported.name)}"))
    counts = (count_noun(tally.rows, "row"), count_noun(tally.units, "unit"))
    out.print(f"{counts[0]}: {counts[1]}, {count_noun(summary['judges'], 'judge')}")
    judgments = count_noun(summary["planned"], "judgment")
    out.print(
        f"{count_noun(tally.verdicts, 'verdict')} + {count_noun(failed, 'failure')} = {judgments}"
    )
    for reason, number in summary["failures"].items():
        first = ", for instance" if reason in tally.varied else ""
        reason_line = f"{number:,} x {reason}{first}: {tally.details[reason]}"
        out.print(f"  {cut(reason_line, out.width - 2)}", style="yellow")
    if tally.unreadable:
        values = [f"{quote(value)} {number:,}" for value, number in tally.unreadable.most_common()]
        out.print(f"cannot be read: {_some(values)}; say what they mean by --sql", style="yellow")
    for line in _about(imported):
        out.print(line)
    where = store_flag(store, Path()) if store else ""
    command = f"leaderboard {imported.run}"
    if imported.shape != "votes":
        field = next((shlex.quote(name) for name in imported.key if name != "unit"), "FIELD")
        command = f"compare {imported.run} --by {field}"
    if imported.labelled is not None:
        command = f"agreement {imported.labelled.run} --against {imported.run}"
    out.print(f"next: evenhand {command}{where}", soft_wrap=True)


def _about(imported: ImportResult) -> list[str]:
    tally, lines = imported.tally, list[str]()
    if imported.shape == "votes":
        outcomes = ", ".join(f"{number:,} {how}" for how, number in sorted(tally.settled.items()))
        lines.append(f"settled: {outcomes or 'none'}; a conflict counts as {imported.on_conflict}")
        lines.append(
            f"{count_noun(len(tally.candidates), 'candidate')}: {_some(sorted(tally.candidates))}"
        )
    what = "criteria" if imported.shape == "votes" else "dimensions"
    if tally.names:
        lines.append(f"{what}: {_some(list(tally.names))}")
    if tally.missing:
        counts = ", ".join(f"{safe(name)} {n:,}" for name, n in tally.missing.most_common())
        lines.append(f"scores missing or unreadable in judgments that have others: {counts}")
    if tally.quotes:
        lines.append(f"quotes found in the answers: {tally.quotes_found:,} of {tally.quotes:,}")
    if (repeats := max(tally.repeats.values(), default=0)) > 1:
        lines.append(f"repeats: up to {repeats:,} judgments of one unit by one judge")
    lines += _differing(tally.differs)
    return [*lines, f"units told apart by: {', '.join(map(safe, imported.key))}"]


def _differing(differs: Counter[str]) -> Iterator[str]:
    """Yield where rows of one unit say different things about it."""
    for name, number in differs.most_common(NAMES_SHOWN):
        differ = f"{count_noun(number, 'row')} {'differs' if number == 1 else 'differ'}"
        yield f"{safe(name)}: taken from the first row of a unit, {differ}"
    if len(differs) > NAMES_SHOWN:
        yield f"and {len(differs) - NAMES_SHOWN} more such columns: --json"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(map(safe, names[:NAMES_SHOWN])) + more
