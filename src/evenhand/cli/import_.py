"""`evenhand import`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import get_args

import click
from rich.text import Text

from evenhand.cli.common import (
    NearChoice,
    json_option,
    label_options,
    mapped_columns,
    notice,
    print_json,
    store_at,
    store_flag,
    store_option,
    tell,
    wait,
)
from evenhand.cli.language import terminal_words
from evenhand.data.sql import query
from evenhand.errors import quote
from evenhand.observation import Rule
from evenhand.report.terminal.console import console
from evenhand.report.terminal.summary import FailureDetail, command_lines, reason_lines
from evenhand.report.terminal.tables import safe
from evenhand.runs.imports import IMPORT_KINDS, ImportRequest, ImportResult, import_judgments
from evenhand.runs.recorded import find_run
from evenhand.words import Code, Sentence, Words

NAMES_SHOWN = 12


@click.command("import")
@click.argument("files", nargs=-1, metavar="FILE...", type=click.Path(path_type=Path))
@click.option(
    "--kind",
    type=NearChoice(list(IMPORT_KINDS)),
    help="Read this layout: tidy votes or scores, output objects, or files of another tool.",
)
@click.option(
    "--for",
    "labelled",
    metavar="RUN",
    help="Read labels that people gave to units of RUN. Columns: unit, annotator, and winner"
    " (1, 2, tie) or one per dimension.",
)
@click.option(
    "--batch-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="With --for RUN: read answers to the questions that export --batch-file wrote.",
)
@click.option(
    "--sql",
    metavar="QUERY",
    help="Read the rows of this query instead of files: \"select * from 'votes.csv'\".",
)
@click.option(
    "--map",
    "moves",
    multiple=True,
    metavar="NEW=OLD",
    help="Read the column OLD as NEW, e.g. --map unit=question_id. Repeatable.",
)
@click.option("--name", help="Give the run this name. Default: the name of the first file.")
@click.option("--judge", metavar="NAME", help="Name the judge where rows do not say it.")
@click.option(
    "--on-conflict",
    type=NearChoice(get_args(Rule)),
    default="uncertain",
    show_default=True,
    help="Votes: count two orders with different winners as this.",
)
@label_options
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
    note: str,
    tags: tuple[str, ...],
    store: str | None,
    as_json: bool,
) -> None:
    """Import judgments made by people or other tools, as a run like any other.

    A judgment that cannot be read is kept as a failure. Importing the same files again gives
    the same run.

    \b
    evenhand import votes.csv --kind votes
    evenhand import labels.csv --for latest      labels by people; then:
    evenhand agreement latest --against labels   can the judge be trusted?
    evenhand import --batch-file answers.jsonl --for latest
    """
    if batch_file is not None:
        if files or kind or sql or labelled is None:
            raise click.UsageError(Sentence("cli.answers_alone"))
        _take_answers(labelled, batch_file, store, as_json=as_json)
        return
    if sql is not None and files:
        raise click.UsageError(Sentence("cli.sql_alone"))
    if sql is None and not files:
        raise click.UsageError(Sentence("cli.no_files"))
    if (kind is None) == (labelled is None):
        raise click.UsageError(Sentence("cli.kind_or_for"))
    request = ImportRequest(
        tables=files if sql is None else [query(sql)],
        kind=kind,
        labels_for=labelled,
        columns=mapped_columns(moves),
        name=name,
        judge=judge,
        on_conflict=on_conflict,
        note=note,
        tags=tags,
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
        notice(Sentence("cli.lines_failed", n=result.failed, what=result.complaint))
    if result.doubled:
        notice(Sentence("cli.lines_doubled", n=result.doubled))
    if result.unknown:
        notice(Sentence("cli.lines_unknown", n=result.unknown, run=run.id))
    if as_json:
        print_json({"run": run.id, **result.json()})
        return
    tell("cli.answers_taken", run=run.id, n=result.answered)
    flag = Code(store_flag(url, Path()) if url else "")
    key = "cli.questions_left" if result.questions else "cli.no_question_left"
    tell(key, n=result.questions, run=run.id, flag=flag)


def _warn(imported: ImportResult) -> None:
    """Say on stderr what was left out, and where the files may have been misread."""
    labelled = imported.labelled
    if labelled is not None and labelled.left_out:
        notice(Sentence("cli.rows_left_out", n=labelled.left_out, run=labelled.run))
    if imported.columns:
        found = ", ".join(f"{field} = {quote(name)}" for field, name in imported.columns.items())
        notice(Sentence("cli.columns_found", columns=Code(found)))
    if sum(imported.tally.failures.values()) > imported.tally.verdicts:
        notice(Sentence("cli.mostly_unread"))


def _print(imported: ImportResult, store: str | None) -> None:
    out, summary, tally, say = console(), imported.json(), imported.tally, terminal_words()
    heading = Text(say("cli.run", run=imported.run), style="bold")
    out.print(heading.append(f"  {safe(imported.name)}"))
    counts = {"verdicts": tally.verdicts, "failures": sum(summary["failures"].values())}
    out.print(say("cli.imported", rows=tally.rows, units=tally.units, judges=summary["judges"]))
    out.print(say("cli.imported_judgments", planned=summary["planned"], **counts))
    details = {
        reason: FailureDetail(tally.details[reason], reason in tally.varied)
        for reason in summary["failures"]
    }
    for line in reason_lines(summary["failures"], details, say, out.width):
        out.print(line)
    if tally.unreadable:
        values = [f"{say.quote(value)} ({n})" for value, n in tally.unreadable.most_common()]
        out.print(say("cli.unreadable_values", values=_some(values, say)), style="yellow")
    for about in _about(imported, say):
        out.print(about)
    where = store_flag(store, Path()) if store else ""
    command = f"leaderboard {imported.run}"
    if imported.shape != "votes":
        field = next((shlex.quote(name) for name in imported.key if name != "unit"), "FIELD")
        command = f"compare {imported.run} --by {field}"
    if imported.labelled is not None:
        command = f"agreement {imported.labelled.run} --against {imported.run}"
    for next_line in command_lines([("cli.next", f"{command}{where}")], say):
        out.print(next_line, soft_wrap=True)


def _about(imported: ImportResult, say: Words) -> Iterator[str]:
    """Yield what came in, a line each."""
    tally, is_votes = imported.tally, imported.shape == "votes"
    if is_votes:
        settled = sorted(tally.settled.items())
        outcomes = say.join(f"{say.gloss('settled', how)} ({say.integer(n)})" for how, n in settled)
        yield say("cli.outcomes", outcomes=outcomes, rule=imported.on_conflict)
        names = _some(sorted(tally.candidates), say)
        yield say("cli.candidates", n=len(tally.candidates), names=names)
    if tally.names:
        key = "cli.criteria" if is_votes else "cli.dimensions"
        yield say(key, names=_some(list(tally.names), say))
    if tally.missing:
        counts = say.join(f"{name} ({say.integer(n)})" for name, n in tally.missing.most_common())
        yield say("cli.scores_missing", counts=counts)
    if tally.quotes:
        yield say("cli.quotes_found", n=tally.quotes_found, of=tally.quotes)
    if (repeats := max(tally.repeats.values(), default=0)) > 1:
        yield say("cli.repeats", n=repeats)
    for name, number in tally.differs.most_common(NAMES_SHOWN):
        yield say("cli.differs", field=name, n=number)
    if len(tally.differs) > NAMES_SHOWN:
        yield say("cli.differs_more", n=len(tally.differs) - NAMES_SHOWN)
    yield say("cli.told_apart", names=say.join(imported.key))


def _some(names: Sequence[str], say: Words) -> str:
    return say.join(names[:NAMES_SHOWN], max(0, len(names) - NAMES_SHOWN))
