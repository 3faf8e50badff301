"""`evenhand answer`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import click

from evenhand.cli.common import json_option, notice, print_json, store_flag, tell
from evenhand.cli.language import speaker, terminal_words
from evenhand.cli.run import (
    exit_code_of,
    judge_plan,
    preview,
    sending_options,
    users_trust,
)
from evenhand.errors import UsageError
from evenhand.files.outputs import check_output
from evenhand.judges.credentials import environment
from evenhand.report.terminal.console import console
from evenhand.report.terminal.summary import answer_lines
from evenhand.runs.answers import count_finishes, write_answers
from evenhand.runs.prepare import prepare
from evenhand.runs.stores import open_store
from evenhand.suite import FILE, load_suite
from evenhand.words import Sentence


@click.command("answer")
@click.argument("suite", default=FILE, type=click.Path(path_type=Path))
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="Answer only the first N questions, each prompt for itself. Default: all.",
)
@sending_options
@click.option(
    "--retry-failures",
    is_flag=True,
    help="Ask again whatever failed. Default: only what was lost on the way.",
)
@json_option
def answer_command(
    suite: Path,
    limit: int | None,
    dry_run: bool,
    store: str | None,
    allow_outside: bool,
    trusted: Sequence[str],
    retry_failures: bool,
    as_json: bool,
) -> int:
    """Make the answers that SUITE is to judge, and write answers.jsonl.

    The suite names questions, prompts and models under [answers]. What is there already is not
    asked again: run the same command to continue. `evenhand run` makes the answers too, and then
    judges them.

    \b
    evenhand answer --dry-run           see what it would send and cost
    evenhand answer --limit 5           answer five questions, and have a look
    """
    folder = suite if suite.is_dir() else suite.parent
    environ = environment(folder)
    overrides = {"store": {"url": store}} if store else {}
    loaded = load_suite(suite, environ, overrides, allow_outside=allow_outside)
    speaker().choose(loaded.file.language)
    stage = prepare(loaded, environ, notice, trust=users_trust(trusted)).answers
    if stage is None:
        raise UsageError(Sentence("runs.makes_no_answers"), where=str(loaded.path or ""))
    url, place = stage.plan.suite.store_url, Path() if store else folder
    if dry_run:
        return preview(stage.plan, url, place, limit, retry_failures, as_json)
    flag = store_flag(url, place)
    check_output(stage.path)
    with closing(open_store(url, place)) as opened:
        summary = judge_plan(stage.plan, opened, limit, retry_failures)
        rows = write_answers(opened.archive, stage, summary.run)
        summary = replace(summary, finishes=count_finishes(rows))
    if as_json:
        print_json(summary.json() | {"file": str(stage.path)})
    else:
        click.echo()
        console().print(answer_lines(summary.json(), terminal_words()))
        tell("cli.answers_written", path=stage.path, n=len(rows))
    return exit_code_of(summary, stage.plan, flag)
