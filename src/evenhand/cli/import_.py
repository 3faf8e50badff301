"""`evenhand import`."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

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
from evenhand.data.foreign import LAYOUTS
from evenhand.data.foreign.shaping import Shaping, read_fixed, read_only, read_values, read_wide
from evenhand.errors import quoted
from evenhand.measures import Rule, Unreadable
from evenhand.report.terminal.console import console
from evenhand.report.terminal.tables import counted, cut, safe
from evenhand.runs.imports import Imported, Options, import_files
from evenhand.runs.imports.labels import KnownPairs
from evenhand.runs.recorded import LABELS, find_run
from evenhand.runs.tables import query_file

NAMES_SHOWN = 12


@click.command("import")
@click.argument("files", nargs=-1, metavar="FILE...", type=click.Path(path_type=Path))
@click.option(
    "--kind",
    type=click.Choice(list(LAYOUTS)),
    help="The layout of the files: tidy votes or scores, or that of another tool.",
)
@click.option(
    "--for",
    "labelled",
    metavar="RUN",
    help="Labels that people gave to pairs of RUN: pair_id, annotator, winner (1, 2, tie).",
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
@click.option(
    "--value",
    "values",
    multiple=True,
    metavar="COLUMN:OLD=NEW,...",
    help="What values mean, e.g. --value winner:A=first,B=second. The usual words are known.",
)
@click.option(
    "--set",
    "fixed",
    multiple=True,
    metavar="COLUMN=VALUE",
    help="What a column holds that is not there, or is empty, e.g. --set first=old; {row} is the"
    " number of the row, {file} the name of the file.",
)
@click.option(
    "--missing",
    multiple=True,
    metavar="VALUE",
    help="A winner or score that stands for none, e.g. --missing -1.",
)
@click.option(
    "--wide",
    metavar="FIELD=COLUMN,COLUMN",
    help="Columns that each hold what was said under one judge, dimension, model, ...; pass=C1,C2:"
    " the two orders; expected=logprob_1,...: log-probabilities of scores.",
)
@click.option(
    "--where",
    "only",
    multiple=True,
    metavar="COLUMN=VALUE",
    help="Read only rows in which a column holds this. May be given several times.",
)
@click.option(
    "--failed",
    metavar="COLUMN",
    help="A column that says why a judgment failed: where it is filled, the row says nothing else.",
)
@click.option(
    "--voters",
    default="",
    metavar="NAME",
    help="Votes: each row on a unit is of another voter, NAME 1, NAME 2, ..., whoever it names.",
)
@click.option("--name", help="The run's name. Default: that of the first file.")
@click.option("--judge", metavar="NAME", help="Who judged, where the rows do not say.")
@click.option(
    "--key",
    metavar="COL,COL",
    help="The columns that tell units apart. Default: those of the layout; for scores the unit"
    " and those that differ within it, such as model or prompt_variant.",
)
@click.option(
    "--on-conflict",
    type=click.Choice(get_args(Rule)),
    default="uncertain",
    show_default=True,
    help="Votes: what two orders that name different winners count as.",
)
@click.option(
    "--on-unreadable",
    type=click.Choice(get_args(Unreadable)),
    default="fail",
    show_default=True,
    help="Votes: what an order that cannot be read makes of its judgment.",
)
@store_option
@json_option
def import_command(
    files: tuple[Path, ...],
    kind: str | None,
    labelled: str | None,
    batch_file: Path | None,
    sql: str | None,
    store: str | None,
    as_json: bool,
    **flags: Any,
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
    with query_file(sql) if sql is not None else nullcontext(files) as tables:
        _check_tables(tables, kind, labelled, flags["key"])
        imported, known = _take_tables(tables, kind, labelled, _options(**flags), store)
    _warn(imported, known)
    if as_json:
        print_json(imported.json())
    else:
        _print(imported, store, known)


def _check_tables(
    files: tuple[Path, ...], kind: str | None, labelled: str | None, key: str | None
) -> None:
    """Whether it is said what to read and what it holds; raises click.UsageError."""
    if not files:
        raise click.UsageError("Missing argument 'FILE...'.")
    if (kind is None) == (labelled is None):
        raise click.UsageError("say either --kind or --for RUN")
    if labelled and key:
        raise click.UsageError("--key does not go with --for: the pairs are those of the run")


def _options(
    key: str | None,
    voters: str,
    name: str | None,
    judge: str | None,
    on_conflict: Rule,
    on_unreadable: Unreadable,
    **shaping: Any,
) -> Options:
    """What the flags say beyond the files; raises UsageError."""
    return Options(
        shaping=_shaping(**shaping),
        name=name,
        judge=judge,
        key=[part.strip() for part in (key or "").split(",") if part.strip()],
        on_conflict=on_conflict,
        on_unreadable=on_unreadable,
        voters=voters.strip(),
        notice=notice,
    )


def _shaping(
    moves: tuple[str, ...],
    values: tuple[str, ...],
    fixed: tuple[str, ...],
    missing: tuple[str, ...],
    wide: str | None,
    only: tuple[str, ...],
    failed: str | None,
) -> Shaping:
    """How the flags bring a table into our words; raises UsageError."""
    return Shaping(
        columns=mapped_columns(moves),
        values=_meanings(read_values(values), read_fixed(fixed)),
        missing=missing,
        wide=read_wide(wide),
        only=read_only(only),
        failed=failed,
    )


def _meanings(
    values: dict[str, dict[str, str]], fixed: dict[str, dict[str, str]]
) -> dict[str, dict[str, str]]:
    """What the values of each column mean, empty ones too."""
    return {name: values.get(name, {}) | fixed.get(name, {}) for name in (*values, *fixed)}


def _take_tables(
    files: tuple[Path, ...],
    kind: str | None,
    labelled: str | None,
    options: Options,
    url: str | None,
) -> tuple[Imported, KnownPairs | None]:
    """Take in the files; with it the pairs that they label, where they hold labels of a run."""
    store = store_at(url, must_exist=labelled is not None)
    try:
        if labelled is not None:
            run = find_run(store.archive, labelled)
            options = replace(options, known=KnownPairs(store.archive, run))
        return wait(import_files(store, files, kind or LABELS, options)), options.known
    finally:
        store.close()


def _take_answers(name: str, path: Path, url: str | None, *, as_json: bool) -> None:
    """Take in the answers of a file, and say how many questions are left."""
    from evenhand.runs.batch_files import take_answers

    store = store_at(url)
    try:
        run = find_run(store.archive, name)
        result = wait(take_answers(run, store, path))
    finally:
        store.close()
    if result.failed:
        notice(f"{counted(result.failed, 'line')} hold no reply, for instance: {result.complaint}")
    if result.doubled:
        notice(f"{counted(result.doubled, 'line')} came twice: the first counts")
    if result.unknown:
        notice(f"{counted(result.unknown, 'line')} of no question that is open in run {run.id}")
    if as_json:
        print_json({"run": run.id, **result.json()})
        return
    click.echo(f"run {run.id}: {counted(result.answered, 'answer')} taken in")
    flag = store_flag(url, Path()) if url else ""
    if result.questions:
        click.echo(
            f"{counted(result.questions, 'question')} left: evenhand export {run.id}"
            f" --batch-file NEXT.jsonl{flag}"
        )
    else:
        click.echo(f"no question is left: evenhand show {run.id}{flag}")


def _warn(imported: Imported, known: KnownPairs | None) -> None:
    """Say on stderr what was left out, and where the files may have been misread."""
    if known is not None and known.left_out:
        left_out = counted(known.left_out, "row")
        notice(f"{left_out} about pairs that run {known.run} does not have: left out")
    if sum(imported.tally.failures.values()) > imported.tally.verdicts:
        notice("most judgments could not be read: are --kind and --map right?")


def _print(imported: Imported, store: str | None, known: KnownPairs | None) -> None:
    out, summary, tally = console(), imported.json(), imported.tally
    failed = sum(summary["failures"].values())
    out.print(Text(f"run {imported.run}", style="bold").append(f"  {safe(imported.name)}"))
    counts = (counted(tally.rows, "row"), counted(tally.units, "unit"))
    out.print(f"{counts[0]}: {counts[1]}, {counted(summary['judges'], 'judge')}")
    judgments = counted(summary["planned"], "judgment")
    out.print(f"{counted(tally.verdicts, 'verdict')} + {counted(failed, 'failure')} = {judgments}")
    for reason, number in summary["failures"].items():
        first = ", for instance" if reason in tally.varied else ""
        reason_line = f"{number:,} x {reason}{first}: {tally.details[reason]}"
        out.print(f"  {cut(reason_line, out.width - 2)}", style="yellow")
    for line in _unreadable(imported, known):
        out.print(line, style="yellow")
    for line in _about(imported):
        out.print(line)
    where = store_flag(store, Path()) if store else ""
    command = f"leaderboard {imported.run}"
    if imported.shape == "scores":
        command = f"compare {imported.run} --by {_compared_by(imported.key)}"
    if known is not None:
        command = f"agreement {known.run} --against {imported.run}"
    out.print(f"next: evenhand {command}{where}", soft_wrap=True)


def _unreadable(imported: Imported, known: KnownPairs | None) -> Iterator[str]:
    """The values that stand where a verdict belongs and are none, and how to say what they mean."""
    counts = imported.tally.unreadable.most_common()
    if not counts:
        return
    values = [f"{quoted(value)} {number:,}" for value, number in counts[:NAMES_SHOWN]]
    more = f" and {len(counts) - NAMES_SHOWN:,} more" if len(counts) > NAMES_SHOWN else ""
    yield f"cannot be read: {', '.join(values)}{more}"
    column, meaning = "score", "NUMBER"
    if imported.shape == "votes":
        column, meaning = known.verdict_column if known else "winner", "first|second|tie"
    # A comma ends a value there.
    value = next((value for value, _ in counts if "," not in value), None)
    if value is not None:
        yield f"say what they mean: --value {quoted(f'{column}:{value}={meaning},...')}"


def _compared_by(key: Sequence[str]) -> str:
    """The field to compare by: the first of the key beside the unit."""
    return next((shlex.quote(name) for name in key if name != "unit"), "FIELD")


def _about(imported: Imported) -> list[str]:
    tally, lines = imported.tally, list[str]()
    if wide := imported.wide:
        columns = ", ".join(map(safe, wide.columns))
        lines.append(f"a column per {wide.field}: {columns} (else: --wide)")
    if tally.spelled:
        meanings = [f"{safe(a)} as {b} ({n:,})" for (a, b), n in tally.spelled.most_common()]
        lines.append(f"read as usual: {', '.join(meanings[:NAMES_SHOWN])} (else: --value)")
    if imported.shape == "votes":
        outcomes = ", ".join(f"{number:,} {how}" for how, number in sorted(tally.settled.items()))
        lines.append(f"settled: {outcomes or 'none'}; a conflict counts as {imported.on_conflict}")
        lines.append(f"{counted(len(tally.candidates), 'candidate')}: {_some(tally.candidates)}")
    what = "criteria" if imported.shape == "votes" else "dimensions"
    if tally.names:
        lines.append(f"{what}: {_some(tally.names)}")
    if tally.missing:
        counts = ", ".join(f"{safe(name)} {n:,}" for name, n in tally.missing.most_common())
        lines.append(f"scores missing or unreadable in judgments that have others: {counts}")
    if tally.quotes:
        lines.append(f"quotes found in the answers: {tally.quotes_found:,} of {tally.quotes:,}")
    if max(tally.repeats, default=0) > 1:
        lines.append(f"repeats: up to {max(tally.repeats):,} judgments of one unit by one judge")
    lines += _differing(tally.differs)
    return [*lines, f"units told apart by: {', '.join(map(safe, imported.key))}"]


def _differing(differs: Counter[str]) -> Iterator[str]:
    """Where rows of one unit say different things about it."""
    for name, number in differs.most_common(NAMES_SHOWN):
        differ = f"{counted(number, 'row')} {'differs' if number == 1 else 'differ'}"
        yield f"{safe(name)}: taken from the first row of a unit, {differ}"
    if len(differs) > NAMES_SHOWN:
        yield f"and {len(differs) - NAMES_SHOWN} more such columns: --json"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(map(safe, names[:NAMES_SHOWN])) + more
