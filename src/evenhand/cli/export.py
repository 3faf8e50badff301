"""`evenhand export`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click

from evenhand import jsontext
from evenhand.cli.common import (
    force_option,
    notice,
    only_option,
    recorded,
    run_argument,
    store_at,
    store_option,
    tell_run,
    wait,
    where_option,
)
from evenhand.data.files import ending_of
from evenhand.data.sheet import CELL_MOST, write_sheet
from evenhand.data.write import write, write_text
from evenhand.errors import UsageError, quoted
from evenhand.files.outputs import check_output
from evenhand.judges.credentials import environment
from evenhand.kinds.kind import Voting
from evenhand.report.terminal.tables import counted
from evenhand.results.frames import observation_rows
from evenhand.results.pairs import fronts_of, verdict_lines
from evenhand.results.people import people_sheet
from evenhand.results.units import (
    Selector,
    contract_objects,
    full_rows,
    namesakes,
    selector,
    topic_questions,
    with_pass_columns,
)
from evenhand.runs.recorded import Recorded, find_run
from evenhand.runs.stores import open_store
from evenhand.store.ports import Archive, Counts, Store
from evenhand.text import visible_json

if TYPE_CHECKING:
    from evenhand.runs.plan import Plan


def _write_wave(name: str, path: Path, url: str | None) -> None:
    """Write the questions of a run that are open; of a suite, whose run is then begun."""
    from evenhand.runs.batch_files import begin_run, write_wave
    from evenhand.suite import FILE

    suite = Path(name)
    is_suite = suite.suffix == ".toml" or (suite / FILE).exists()
    store = store_at(url, must_exist=not is_suite) if url or not is_suite else _suite_store(suite)
    try:
        run = wait(begin_run(_plan(suite), store)) if is_suite else name
        run_record = find_run(store.archive, run)
        with path.open("wb") as file:
            number = wait(write_wave(run_record, store.archive, file.write))
    finally:
        store.close()
    if not number:
        path.unlink()
        notice(f"run {run_record.id}: no question is open; nothing was written")
        return
    notice(
        f"run {run_record.id}: {counted(number, 'question')} in {path}. When they are answered:"
        f" evenhand import --batch-file ANSWERS --for {run_record.id}"
    )


def _plan(suite: Path) -> Plan:
    from evenhand.runs.prepare import prepare
    from evenhand.suite import load_suite

    environ = environment(suite if suite.is_dir() else suite.parent)
    return prepare(load_suite(suite, environ), environ, notice)


def _suite_store(suite: Path) -> Store:
    from evenhand.suite import load_suite

    folder = suite if suite.is_dir() else suite.parent
    return open_store(load_suite(suite, environment(folder)).store_url, folder)


IN_MEMORY = 8 * 1024 * 1024
"""Bytes that wait to be printed before they are written to a file."""


@click.command("export")
@run_argument
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help=".jsonl .json .csv .parquet .xlsx, pairs also .txt; - for stdout.",
)
@click.option(
    "--people",
    is_flag=True,
    help="A table to read: question, answers, verdict, evidence, reasons. .xlsx always is one;"
    " .csv so that Excel opens it rightly.",
)
@click.option("--full", is_flag=True, help="Everything: failures, offsets, passes, fixes, flags.")
@click.option(
    "--batch-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the questions that are open, in OpenAI's batch form, for vllm run-batch and others."
    " RUN may be a suite: its run is begun.",
)
@click.option("--fronts", is_flag=True, help="Pairs: a row a topic with its front and pareto set.")
@click.option(
    "--observations", is_flag=True, help="Every number of the judgments, a row each: docs/store.md."
)
@click.option("--with-unit", is_flag=True, help="The id of the unit before each contract object.")
@only_option
@where_option
@force_option
@store_option
def export_command(
    run: str,
    output: str | None,
    people: bool,
    full: bool,
    batch_file: Path | None,
    fronts: bool,
    observations: bool,
    with_unit: bool,
    only: str | None,
    where: tuple[str, ...],
    force: bool,
    store: str | None,
) -> None:
    """Write the results of RUN to a file, by its ending.

    For people, .xlsx or --people: a row per judgment with its texts, failures in words. For
    programs, all else: the contract's own objects of all verdicts, failures counted on stderr; with
    --full everything. Pairs go into a .txt as the verdict table, one line a pair.

    \b
    evenhand export latest -o verdicts.xlsx
    evenhand export latest --people -o verdicts.csv
    evenhand export latest --full -o everything.jsonl
    evenhand export latest --observations -o observations.csv
    evenhand export evenhand.toml --batch-file wave1.jsonl
    """
    if (output is None) == (batch_file is None):
        raise click.UsageError("say either -o FILE or --batch-file FILE")
    if batch_file is not None:
        if people or full or fronts or observations or with_unit or only or where:
            raise click.UsageError("--batch-file goes with RUN, --force and --store alone")
        check_output(batch_file, force=force)
        _write_wave(run, batch_file, store)
        return
    assert output is not None
    people = people or ending_of(Path(output)) == ".xlsx"
    if people + full + fronts + observations + with_unit > 1:
        raise click.UsageError(
            "--people (which .xlsx is), --full, --fronts, --observations and --with-unit exclude"
            " each other"
        )
    if observations and only:
        raise click.UsageError("--observations goes with --where, not with --only")
    if output != "-":
        check_output(Path(output), force=force)
    opened, run_record = recorded(store, run, where)
    try:
        rows: Literal["contract", "full", "fronts", "observations"] = "contract"
        if full or fronts or observations:
            rows = "full" if full else "fronts" if fronts else "observations"
        form = Form(rows, with_unit, only)
        counts = run_record.counts(opened)
        is_contract = rows == "contract" and not people and not with_unit
        alike = namesakes(opened, run_record) if is_contract else 0
        number = (_write_sheet if people else _write)(output, opened, run_record, form)
    finally:
        opened.close()
    tell_run(run_record, stderr=True)
    if output != "-":
        click.echo(f"{number} rows written to {output}", err=True)
    _tell_left_out(counts, has_failures=full or people)
    if alike:
        click.echo(f"{alike} units share the name of another: --with-unit adds their ids", err=True)
        table = shlex.join(["evenhand", "export", run, "--people", "-o", _people_file(output)])
        click.echo(f"a table to read: {table}", err=True)


def _tell_left_out(counts: Counts, *, has_failures: bool) -> None:
    """Say on stderr which judgments of a run are not among the rows."""
    failures = [f"{number} x {reason}" for reason, number in sorted(counts.failures.items())]
    if failures and not has_failures:
        click.echo(f"left out: failures {', '.join(failures)}", err=True)
    if counts.pending:
        click.echo(f"left out: {counts.pending} pending", err=True)


def _people_file(output: str) -> str:
    """Return a name for a table for people, beside or in the place of the file that was written."""
    path = Path(output)
    return (
        output
        if ending_of(path) == ".csv"
        else str(path.with_suffix(".xlsx"))
        if path.suffix
        else "FILE.xlsx"
    )


class Form(NamedTuple):
    """The rows and details of a run to write."""

    rows: Literal["contract", "full", "fronts", "observations"]
    with_unit: bool
    only: str | None


def _write(output: str, store: Archive, run: Recorded, form: Form) -> int:
    path = Path(output)
    if form.only is not None:
        selector(run, form.only)
    if ending_of(path) == ".txt":
        _only_pairs(run, "a verdict table (.txt)")
        if form != Form("contract", with_unit=False, only=None):
            raise UsageError("a verdict table holds verdicts alone", advice="Write .jsonl instead.")
        return write_text(path, verdict_lines(store, run)) - 1
    rows = _rows(store, run, form)
    if form.rows == "full" and ending_of(path) in (".csv", ".parquet"):
        rows = with_pass_columns(rows)
    if output != "-":
        return write(path, rows)
    return _print(rows, store)


def _print(rows: Iterator[Mapping[str, Any]], store: Archive) -> int:
    """Print rows, however slowly they are read: the store is let go of before."""
    with SpooledTemporaryFile(IN_MEMORY, mode="w+", encoding="utf-8", newline="") as waiting:
        number = 0
        for number, row in enumerate(rows, 1):  # noqa: B007
            waiting.write(visible_json(jsontext.dump(row)) + "\n")
        store.set_frozen(False)
        waiting.seek(0)
        for line in waiting:
            click.echo(line, nl=False)
    return number


def _write_sheet(output: str, store: Archive, run: Recorded, form: Form) -> int:
    """Write the table for people; whatever of it had to be cut is told."""
    path = Path(output)
    if ending_of(path) not in (".xlsx", ".csv"):
        raise UsageError(
            f"{quoted(output)} is no table for people", advice="Write .xlsx, or .csv with --people."
        )
    written = write_sheet(path, people_sheet(store, run, _selector(run, form)))
    if written.cut:
        click.echo(
            f"{written.cut} texts are longer than a cell of a workbook holds ({CELL_MOST:,}"
            " characters) and were cut: a .csv with --people has them whole",
            err=True,
        )
    return written.rows


def _selector(run: Recorded, form: Form) -> Selector:
    return selector(run, form.only) if form.only else lambda judgment: True


def _rows(store: Archive, run: Recorded, form: Form) -> Iterator[Mapping[str, Any]]:
    if form.rows == "fronts":
        _only_pairs(run, "a front")
        topics = fronts_of(store, run)
        questions = topic_questions(run.kind, store, run.scope)
        return (
            {"pair_id": topic, **asdict(front), "topic": questions[topic]}
            for topic, front in topics.items()
        )
    if form.rows == "observations":
        return observation_rows(store, run)
    is_wanted = _selector(run, form)
    if form.rows == "full":
        return full_rows(store, run, is_wanted)
    return contract_objects(store, run, is_wanted, with_unit=form.with_unit)


def _only_pairs(run: Recorded, what: str) -> None:
    if not isinstance(run.kind.measure, Voting):
        raise UsageError(
            f"run {quoted(run.row.id)} judged by the kind {run.kind_name}; {what} is of pairs",
            advice="Write .jsonl, .json, .csv or .parquet.",
        )
