"""`evenhand check`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from evenhand.cli.common import json_option, print_json
from evenhand.files.protocols import find_protocol
from evenhand.files.replies import check_file
from evenhand.files.rubrics import read_rubric
from evenhand.kinds import KINDS
from evenhand.kinds.kind import Understood
from evenhand.kinds.protocol import Protocol


@click.command("check")
@click.option("--protocol", default="rubric", help="The protocol, by name or folder.")
@click.option("--units", type=click.Path(path_type=Path), help="The units that were judged.")
@click.option("--replies", type=click.Path(path_type=Path), help="The replies to check.")
@click.option(
    "--rubric",
    "rubrics",
    multiple=True,
    type=click.Path(path_type=Path),
    help="The rubric: .json or .toml; of a task, .md or .toml. Alone, also several.",
)
@click.option("--language", default="en", show_default=True, help="One that the protocol speaks.")
@click.option(
    "--expose-meta", is_flag=True, help="The judge was shown meta and must have copied it."
)
@json_option
def check_command(
    protocol: str,
    units: Path | None,
    replies: Path | None,
    rubrics: Sequence[Path],
    language: str,
    expose_meta: bool,
    as_json: bool,
) -> int:
    """Hold replies made elsewhere to the contract: a line per problem and per flag.

    REPLIES is a JSONL of {"unit", "reply"} with the raw text, or of output objects in the
    contract's own form; of pairs, also a verdict table (.txt). With --rubric alone, the rubric is
    checked. Exit code 0 if there is no problem, else 1.
    """
    if units is None and replies is None and rubrics:
        return _check_rubrics(protocol, rubrics, as_json)
    if units is None or replies is None:
        raise click.UsageError("--units and --replies are needed, or --rubric alone")
    if len(rubrics) > 1:
        raise click.UsageError("replies are held to one rubric, and --rubric is given twice")
    rubric = rubrics[0] if rubrics else None
    findings = check_file(protocol, language, rubric, units, replies, expose_meta=expose_meta)
    if as_json:
        print_json(findings.json())
    else:
        for problem in findings.problems:
            click.echo(f"{problem['unit']}: {problem['code']}: {problem['message']}")
        for flagged in findings.flags:
            click.echo(f"{flagged['unit']}: flag: {flagged['flag']}")
        click.echo(
            f"{findings.ok} of {findings.units} keep the contract;"
            f" {len(findings.problems)} problems,"
            f" {len(findings.fixes)} fixes, {len(findings.flags)} flags",
            err=True,
        )
    return 1 if findings.problems else 0


def _check_rubrics(protocol: str, paths: Sequence[Path], as_json: bool) -> int:
    """Return what was understood of each rubric; of several, each under its name."""
    understood = [(path, _understood(protocol, path)) for path in paths]
    if as_json and len(paths) == 1:
        print_json({"ok": True, **understood[0][1].json})
    elif as_json:
        print_json({"ok": True, "rubrics": {str(path): parts.json for path, parts in understood}})
    else:
        for path, parts in understood:
            heading = [f"{path}:"] if len(paths) > 1 else []
            click.echo("\n".join([*heading, *parts.lines]))
    return 0


def _understood(protocol: str, path: Path) -> Understood:
    loaded = _taking(find_protocol(protocol), path)
    form = KINDS[loaded.kind].rubric_form
    rubric = read_rubric(path, loaded)
    assert form is not None, "a rubric was read by a kind that has none"
    return form.explain(rubric, loaded)


def _taking(protocol: Protocol, path: Path) -> Protocol:
    """Return the protocol, or where its rubrics are of another form, the one built in that takes
    the file."""
    for loaded in (protocol, *map(find_protocol, KINDS)):
        form = KINDS[loaded.kind].rubric_form
        if form and path.suffix.lower() in form.endings:
            return loaded
    return protocol
