"""`evenhand init`."""

from __future__ import annotations

from pathlib import Path

import click

from evenhand.errors import UsageError
from evenhand.examples import example_files
from evenhand.kinds import KINDS
from evenhand.kinds.shared.load import LANGUAGES


@click.command("init")
@click.argument("directory", default=".", metavar="[DIR]", type=click.Path(path_type=Path))
@click.option("--protocol", type=click.Choice(list(KINDS)), default="rubric", show_default=True)
@click.option("--language", type=click.Choice(LANGUAGES), default="en", show_default=True)
def init_command(directory: Path, protocol: str, language: str) -> None:
    """Make a suite with example data in DIR that runs as it is, with the embedded judge.

    Nothing is overwritten.
    """
    files = example_files(protocol, language)
    for name in files:
        if (directory / name).exists():
            raise UsageError(
                f"{directory / name} is there already",
                advice="Name another folder: evenhand init my-suite",
            )
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / name).write_text(text, encoding="utf-8")
        click.echo(f"{directory / name}")
    place = "" if directory == Path() else f" {directory}"
    click.echo(f"\nNext: evenhand run{place}")
