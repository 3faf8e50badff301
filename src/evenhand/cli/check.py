"""`evenhand check`."""

from __future__ import annotations

from pathlib import Path

import click

from evenhand.cli.common import json_option, print_json
from evenhand.files.protocols import find_protocol, task_types
from evenhand.files.replies import check_file
from evenhand.files.rubrics import read_rubric_file, read_task_file
from evenhand.kinds.rubric.rubric import build_rubric
from evenhand.kinds.shared.load import Protocol
from evenhand.kinds.weighted.tasks.read import understood
from evenhand.kinds.weighted.unit import task_rubric


@click.command("check")
@click.option("--protocol", default="rubric", help="The protocol, by name or folder.")
@click.option("--units", type=click.Path(path_type=Path), help="The units that were judged.")
@click.option("--replies", type=click.Path(path_type=Path), help="The replies to check.")
@click.option(
    "--rubric",
    type=click.Path(path_type=Path),
    help="The rubric: .json or .toml; of a task, .md or .toml.",
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
    rubric: Path | None,
    language: str,
    expose_meta: bool,
    as_json: bool,
) -> int:
    """Hold replies made elsewhere to the contract: a line per problem and per flag.

    REPLIES is a JSONL of {"unit", "reply"} with the raw text, or of output objects in the
    contract's own form; of pairs, also a verdict table (.txt). With --rubric alone, the rubric is
    checked. Exit code 0 if there is no problem, else 1.
    """
    if units is None and replies is None and rubric is not None:
        return _check_rubric(protocol, rubric, as_json)
    if units is None or replies is None:
        raise click.UsageError("--units and --replies are needed, or --rubric alone")
    found = check_file(protocol, language, rubric, units, replies, expose_meta=expose_meta)
    if as_json:
        print_json(found.json())
    else:
        for problem in found.problems:
            click.echo(f"{problem['unit']}: {problem['code']}: {problem['message']}")
        for flagged in found.flags:
            click.echo(f"{flagged['unit']}: flag: {flagged['flag']}")
        click.echo(
            f"{found.ok} of {found.units} keep the contract;"
            f" {len(found.problems)} problems, {len(found.fixes)} fixes, {len(found.flags)} flags",
            err=True,
        )
    return 1 if found.problems else 0


def _check_rubric(protocol: str, path: Path, as_json: bool) -> int:
    found = find_protocol(protocol)
    if found.kind == "weighted" or path.suffix in (".md", ".markdown"):
        return _check_task_rubric(found if found.kind == "weighted" else None, path, as_json)
    rubric = build_rubric(read_rubric_file(path))
    if as_json:
        dimensions = [{"id": d.id, "name": d.name, "scores": d.scores} for d in rubric.dimensions]
        print_json({"ok": True, "dimensions": dimensions})
    else:
        click.echo(rubric.text)
    return 0


def _check_task_rubric(protocol: Protocol | None, path: Path, as_json: bool) -> int:
    """What was understood of a task's rubric."""
    types = task_types(protocol or find_protocol("weighted"))
    found = understood(task_rubric(read_task_file(path, types), types))
    if as_json:
        print_json({"ok": True, **found})
        return 0
    click.echo(f"task_type: {found['task_type'] or 'not given; the judge infers it'}")
    click.echo(f"critical-fail conditions for the judge: {len(found['critical'])}")
    for one in found["critical"]:
        click.echo(f"  - {one}")
    click.echo(f"critical-fail conditions for code: {len(found['conditions'])}")
    for one in found["conditions"]:
        what = one.get("pattern", one.get("limit"))
        shown = f"/{what}/{one['flags']}" if "pattern" in one else what
        click.echo(f"  - {one['kind']}: {shown}  (line {one['line']})")
    click.echo("facts for the grader:" if found["facts"] else "facts for the grader: none")
    for line in (found["facts"] or "").splitlines():
        click.echo(f"  {line}")
    click.echo("points to add and deduct:")
    for line in found["points"].strip().splitlines():
        click.echo(f"  {line}")
    return 0
