"""`evenhand protocols`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from evenhand.cli.common import NearChoice, json_option, notice, print_json, tell
from evenhand.cli.language import terminal_words
from evenhand.errors import UsageError
from evenhand.examples import example_rows
from evenhand.exchange import Message, Question, Reply, Style
from evenhand.files.protocols import (
    Finding,
    builtin_protocols,
    find_protocol,
    judging_of,
    lint,
    lint_prompt,
    protocol_of_prompt,
    protocol_texts,
    read_custom_prompt,
)
from evenhand.files.ready_rubrics import ready_names, ready_rubrics
from evenhand.kinds import KINDS
from evenhand.kinds.conversation import JudgingContext
from evenhand.kinds.kind import ReadyKind
from evenhand.kinds.protocol import Protocol
from evenhand.kinds.rows import RowError
from evenhand.manifest import JudgingRecord, rubric_json
from evenhand.report.terminal.console import console
from evenhand.words import Sentence


@click.group("protocols", invoke_without_command=True)
@json_option
@click.pass_context
def protocols_command(ctx: click.Context, as_json: bool) -> None:
    """List the protocols, which are the ways to judge, and the ready rubrics.

    \b
    evenhand protocols                              list them
    evenhand protocols show rubric --language ru    read its prompt
    evenhand protocols new mine --from rubric       copy it to change it
    evenhand protocols lint mine                    check the copy
    """
    if ctx.invoked_subcommand:
        return
    protocols = [find_protocol(name) for name in builtin_protocols()]
    if as_json:
        print_json(
            {
                "protocols": [
                    {"name": p.name, "kind": p.kind, "languages": p.languages, "version": p.version}
                    for p in protocols
                ],
                "rubrics": [
                    {"name": each.name, "about": each.about, "needs": each.needs}
                    for each in ready_rubrics(ready_names(), "en")
                ],
            }
        )
        return
    grid = Table.grid(padding=(0, 2))
    say = terminal_words()
    for protocol in protocols:
        about = say(f"cli.protocol_{protocol.name}")
        grid.add_row(protocol.name, " ".join(protocol.languages), about)
    console().print(grid)
    ready = Table.grid(padding=(0, 2))
    for each in ready_rubrics(ready_names(), say.language):
        ready.add_row(each.name, " ".join(each.needs), each.about)
    click.echo()
    tell("cli.ready_rubrics")
    console().print(ready)


@protocols_command.command("show")
@click.argument("name")
@click.option(
    "--language", default="en", show_default=True, help="Print the prompt in this language."
)
@click.option("--compact", is_flag=True, help="Print the short prompt for local models.")
@click.option(
    "--prompt", type=click.Path(path_type=Path), help="Print your own prompt, filled in, instead."
)
def show_command(name: str, language: str, compact: bool, prompt: Path | None) -> None:
    """Print what a judge is told under protocol NAME.

    NAME is a built-in protocol or a folder. The prompt is filled with an example unit.
    """
    protocol = find_protocol(name, custom_prompt=read_custom_prompt(prompt) if prompt else None)
    for message in _opening(protocol, language, "compact" if compact else "full"):
        console().print(f"{message.role}:", style="bold")
        click.echo(message.content)


def _opening(protocol: Protocol, language: str, style: Style) -> tuple[Message, ...]:
    rows, rubric = example_rows(protocol.kind, language)
    settings = {**KINDS[protocol.kind].settings, "use": []}
    record = JudgingRecord(language=language, rubric_json=rubric_json(rubric), settings=settings)
    judging, context = judging_of(protocol, record), JudgingContext(ask=_nobody, styles=(style,))
    return next(question for row in rows for question in _questions(judging, row, context)).messages


def _questions(
    judging: ReadyKind, row: Mapping[str, Any], context: JudgingContext
) -> list[Question]:
    """Return what is asked about an example; nothing where its type is not one of the
    protocol's."""
    try:
        return judging.first_questions(judging.load(judging.read(row)[0].body), context)
    except RowError:
        return []


async def _nobody(question: Question) -> Reply:
    raise AssertionError("nobody is asked")


@protocols_command.command("new")
@click.argument("name", type=click.Path(path_type=Path))
@click.option(
    "--from",
    "origin",
    type=NearChoice(builtin_protocols()),
    required=True,
    help="Copy this built-in protocol.",
)
def new_command(name: Path, origin: str) -> None:
    """Copy a built-in protocol into the new folder NAME.

    Change its criteria, weights or prompts, then check it with: evenhand protocols lint NAME
    """
    if name.exists():
        raise UsageError(Sentence("cli.another_folder", path=str(name)))
    for file, text in protocol_texts(origin).items():
        path = name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        click.echo(str(path))
    click.echo()
    tell("cli.lint_next", name=str(name))


@protocols_command.command("lint")
@click.argument("name", required=False)
@click.option(
    "--prompt",
    type=click.Path(path_type=Path),
    help="Check this prompt of your own instead of a protocol.",
)
@click.option(
    "--expose-meta", is_flag=True, help="With --prompt: expect that meta is sent to the judge."
)
@json_option
def lint_command(name: str | None, prompt: Path | None, expose_meta: bool, as_json: bool) -> int:
    """Check protocol NAME, or a prompt of your own.

    A protocol: missing translations, unequal placeholders, unknown criteria, weights that do not
    add up to 100, bands with gaps. A prompt (--prompt): placeholders that nothing fills, meta
    that is promised but not sent, and the like; then NAME may be left out.

    Exit code 0 if nothing is wrong, else 1.
    """
    if prompt is not None:
        protocol = name or protocol_of_prompt(prompt)
        if name is None:
            notice(Sentence("cli.prompt_of", protocol=protocol))
        return _tell(lint_prompt(protocol, prompt, expose_meta=expose_meta), as_json)
    if name is None:
        raise click.UsageError(Sentence("cli.lint_what"))
    findings = lint(name)
    if not as_json:
        findings = [Finding(f"{name}/{finding.file}", finding.message) for finding in findings]
    return _tell(findings, as_json)


def _tell(findings: Sequence[Finding], as_json: bool) -> int:
    """Print what was found; the exit code."""
    if as_json:
        rows = [finding._asdict() for finding in findings]
        print_json({"ok": not findings, "findings": rows})
    else:
        for finding in findings:
            click.echo(f"{finding.file}: {terminal_words().message(finding.message)}")
        notice(Sentence("cli.findings" if findings else "cli.no_findings", n=len(findings)))
    return 1 if findings else 0
