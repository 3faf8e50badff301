"""`evenhand export`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any

import click

from evenhand import jsontext
from evenhand.cli.common import (
    force_option,
    notice,
    only_option,
    reading,
    run_argument,
    selecting_options,
    store_at,
    store_option,
    tell_run,
    wait,
)
from evenhand.data.files import ending_of
from evenhand.data.write import write, write_text
from evenhand.errors import UsageError
from evenhand.files.outputs import check_output
from evenhand.judges.credentials import environment
from evenhand.results.frames import observation_rows
from evenhand.results.pairs import verdict_lines
from evenhand.results.units import (
    contract_objects,
    count_namesakes,
    full_rows,
    selector,
    with_pass_columns,
)
from evenhand.runs.recorded import Recorded, find_run
from evenhand.runs.stores import open_store
from evenhand.store.archive import Archive
from evenhand.store.ports import Counts
from evenhand.text import visible_json
from evenhand.words import Code, Sentence

IN_MEMORY = 8 * 1024 * 1024
"""Bytes that wait to be printed before they are written to a file."""
Rows = Iterator[Mapping[str, Any]]


@click.command("export")
@run_argument
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write to .jsonl, .json, .csv, .parquet or, for pairs, .txt; - prints.",
)
@click.option(
    "--full", is_flag=True, help="Write everything, also failures, raw marks, fixes and flags."
)
@click.option(
    "--observations", is_flag=True, help="Write every number as a row of its own, for statistics."
)
@only_option
@selecting_options
@click.option(
    "--batch-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the open questions in OpenAI's batch format. RUN may be a suite file.",
)
@force_option
@store_option
def export_command(
    run: str,
    output: str | None,
    full: bool,
    observations: bool,
    only: str | None,
    where: tuple[str, ...],
    without: tuple[str, ...],
    batch_file: Path | None,
    force: bool,
    store: str | None,
) -> None:
    """Write the results of RUN to a file, in the format of its ending.

    RUN is an id, the start of one, the name of a suite, or latest (the default).
    By default it writes the output objects of all verdicts; failures are counted on stderr.

    \b
    evenhand export -o verdicts.jsonl
    evenhand export latest --full -o everything.csv
    evenhand export latest --observations -o observations.csv
    evenhand export evenhand.toml --batch-file wave1.jsonl
    """
    if (output is None) == (batch_file is None):
        raise click.UsageError(Sentence("cli.say_output"))
    if batch_file is not None:
        if full or observations or only or where or without:
            raise click.UsageError(Sentence("cli.batch_file_alone"))
        check_output(batch_file, force=force)
        _write_open_questions(run, batch_file, store)
        return
    assert output is not None
    if observations and (full or only):
        raise click.UsageError(Sentence("cli.observations_alone"))
    if output != "-":
        check_output(Path(output), force=force)
    with reading(store, run, where, without) as (archive, recorded):
        counts, alike = recorded.counts(archive), 0
        is_wanted = selector(archive, recorded, only) if only else lambda stored, judgment: True
        if ending_of(Path(output)) == ".txt":
            if full or observations or only:
                raise UsageError(Sentence("cli.table_of_verdicts"))
            number = _write_verdict_table(Path(output), archive, recorded)
        elif observations:
            number = _write(output, observation_rows(archive, recorded), archive)
        elif full:
            rows = full_rows(archive, recorded, is_wanted)
            is_table = ending_of(Path(output)) in (".csv", ".parquet")
            number = _write(output, with_pass_columns(rows) if is_table else rows, archive)
        else:
            alike = count_namesakes(archive, recorded)
            number = _write(output, contract_objects(archive, recorded, is_wanted), archive)
    tell_run(recorded, stderr=True)
    if output != "-":
        notice(Sentence("cli.rows_written", n=number, path=output))
    _tell_left_out(counts, has_failures=full)
    if alike:
        notice(Sentence("cli.namesakes", n=alike))


def _tell_left_out(counts: Counts, *, has_failures: bool) -> None:
    """Say on stderr which judgments of a run are not among the rows."""
    if counts.failures and not has_failures:
        reasons = Code(", ".join(f"{name} {n:,}" for name, n in sorted(counts.failures.items())))
        failed = sum(counts.failures.values())
        notice(Sentence("cli.failures_not_written", n=failed, reasons=reasons))
    if counts.pending:
        notice(Sentence("cli.pending_not_written", n=counts.pending))


def _write(output: str, rows: Rows, archive: Archive) -> int:
    """Write rows to a file, or print them; return how many there were."""
    if output != "-":
        return write(Path(output), rows)
    # However slowly they are read, the store is let go of before.
    with SpooledTemporaryFile(IN_MEMORY, mode="w+", encoding="utf-8", newline="") as waiting:
        number = 0
        for number, row in enumerate(rows, 1):  # noqa: B007
            waiting.write(visible_json(jsontext.dump(row)) + "\n")
        archive.set_frozen(False)
        waiting.seek(0)
        for line in waiting:
            click.echo(line, nl=False)
    return number


def _write_verdict_table(path: Path, archive: Archive, run: Recorded) -> int:
    if not run.has_votes:
        raise UsageError(Sentence("cli.table_of_pairs", run=run.id, kind=run.kind_name))
    return write_text(path, verdict_lines(archive, run)) - 1


def _write_open_questions(name: str, path: Path, url: str | None) -> None:
    """Write the open questions of a run; of a suite, whose run is then begun."""
    from evenhand.runs.batch_files import begin_run, write_wave
    from evenhand.runs.prepare import prepare
    from evenhand.suite import FILE, load_suite

    suite = Path(name)
    if suite.suffix == ".toml" or (suite / FILE).exists():
        folder = suite if suite.is_dir() else suite.parent
        environ = environment(folder)
        plan = prepare(load_suite(suite, environ), environ, notice)
        store = store_at(url, must_exist=False) if url else open_store(plan.suite.store_url, folder)
    else:
        plan, store = None, store_at(url)
    try:
        run = find_run(store.archive, wait(begin_run(plan, store)) if plan else name)
        with path.open("wb") as file:
            number = wait(write_wave(run, store.archive, file.write))
    finally:
        store.close()
    if not number:
        path.unlink()
        notice(Sentence("cli.no_open_question", run=run.id))
        return
    notice(Sentence("cli.wave_written", run=run.id, n=number, path=str(path)))
