"""`evenhand check`."""

from __future__ import annotations

from pathlib import Path

import click

from evenhand.app import read_rubric_file
from evenhand.checking import check_file
from evenhand.cli.common import json_option, print_json
from evenhand.protocols.load import LANGUAGES


@click.command("check")
@click.option("--protocol", default="rubric", help="The protocol, by name or folder.")
@click.option("--units", type=click.Path(path_type=Path), help="The units that were judged.")
@click.option("--replies", type=click.Path(path_type=Path), help="The replies to check.")
@click.option("--rubric", type=click.Path(path_type=Path), help="The rubric, .json or .toml.")
@click.option("--language", type=click.Choice(LANGUAGES), default="en", show_default=True)
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
    """Hold replies made elsewhere to the contract: a line a problem.

    REPLIES is a JSONL of {"unit", "reply"} with the raw text, or of output objects in the
    contract's own form. With --rubric alone, the rubric is checked. Exit code 0 if there is no
    problem, else 1.
    """
    if units is None and replies is None and rubric is not None:
        return _check_rubric(rubric, as_json)
    if units is None or replies is None:
        raise click.UsageError("--units and --replies are needed, or --rubric alone")
    found = check_file(protocol, language, rubric, units, replies, expose_meta=expose_meta)
    if as_json:
        print_json(found.json())
    else:
        for problem in found.problems:
            click.echo(f"{problem['unit']}: {problem['code']}: {problem['message']}")
        click.echo(
            f"{found.ok} of {found.units} keep the contract;"
            f" {len(found.problems)} problems, {len(found.fixes)} fixes",
            err=True,
        )
    return 1 if found.problems else 0


def _check_rubric(path: Path, as_json: bool) -> int:
    from evenhand.protocols.rubrics import build_rubric

    rubric = build_rubric(read_rubric_file(path))
    if as_json:
        dimensions = [{"id": d.id, "name": d.name, "scores": d.scores} for d in rubric.dimensions]
        print_json({"ok": True, "dimensions": dimensions})
    else:
        click.echo(rubric.text)
    return 0
