"""`evenhand check`."""

from __future__ import annotations

from pathlib import Path

import click

from evenhand.cli.common import json_option, notice, print_json, tell
from evenhand.cli.language import terminal_words
from evenhand.errors import UsageError
from evenhand.files.protocols import find_protocol
from evenhand.files.replies import check_file
from evenhand.files.rubrics import read_rubric
from evenhand.kinds import KINDS
from evenhand.kinds.kind import Understood
from evenhand.words import Sentence


@click.command("check")
@click.option(
    "--protocol",
    default="rubric",
    show_default=True,
    help="Use this protocol, a built-in one or a folder.",
)
@click.option(
    "--units", type=click.Path(path_type=Path), help="Read the judged units from this data file."
)
@click.option("--replies", type=click.Path(path_type=Path), help="Check the replies in this file.")
@click.option(
    "--rubric",
    type=click.Path(path_type=Path),
    help="Use this rubric (.json, .toml, .md). Without the other files: check the rubric itself.",
)
@click.option("--language", default="en", show_default=True, help="Expect texts in this language.")
@click.option("--expose-meta", is_flag=True, help="Require that the judge copied meta unchanged.")
@json_option
def check_command(
    protocol: str,
    units: Path | None,
    replies: Path | None,
    rubric: Path | None,
    language: str,
    expose_meta: bool,
    as_json: bool,
) -> int:
    """Check replies from another tool against the contract of a protocol.

    Prints a line for each problem and each flag. The replies are JSONL with {"unit", "reply"}
    and the raw text, or the output objects themselves; for pairs also a verdict table (.txt).
    Exit code 0 if there is no problem, else 1.

    \b
    evenhand check --rubric rubric.json
    evenhand check --units units.jsonl --replies replies.jsonl
    """
    if units is None and replies is None and rubric:
        understood = _understood(protocol, rubric)
        if as_json:
            print_json({"ok": True, **understood.json})
        else:
            click.echo("\n".join(map(terminal_words().message, understood.lines)))
        return 0
    if units is None or replies is None:
        raise click.UsageError(Sentence("cli.check_needs"))
    findings = check_file(protocol, language, rubric, units, replies, expose_meta=expose_meta)
    if as_json:
        print_json(findings.json())
    else:
        for problem in findings.problems:
            message = terminal_words().message(problem["message"])
            click.echo(f"{problem['unit']}: {problem['code']}: {message}")
        for flagged in findings.flags:
            flag = flagged["flag"]
            tell("cli.check_flag", unit=flagged["unit"], flag=flag, about=flag)
        counts = {name: len(getattr(findings, name)) for name in ("problems", "fixes", "flags")}
        notice(Sentence("cli.checked", n=findings.ok, of=findings.units, **counts))
    return 1 if findings.problems else 0


def _understood(protocol: str, path: Path) -> Understood:
    """Return what is understood of a rubric, by the protocol; where its rubrics are of another
    form, by the one built in that takes the file."""
    protocols = [find_protocol(protocol), *map(find_protocol, KINDS)]
    for loaded in protocols:
        form = KINDS[loaded.kind].rubric_form
        if form and path.suffix.lower() in form.endings:
            return form.explain(read_rubric(path, loaded), loaded)
    read_rubric(path, protocols[0])
    raise UsageError(Sentence("cli.takes_no_rubric", protocol=protocol))
