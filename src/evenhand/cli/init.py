"""`evenhand init`."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import click

from evenhand.cli.common import shown_line
from evenhand.errors import UsageError
from evenhand.examples import example_files
from evenhand.folders import is_within
from evenhand.judges import first_judge, split_name
from evenhand.kinds import KINDS
from evenhand.kinds.shared.load import LANGUAGES
from evenhand.runs.prepare import environment


@click.command("init")
@click.argument("directory", default=".", metavar="[DIR]", type=click.Path(path_type=Path))
@click.option("--protocol", type=click.Choice(list(KINDS)), help="rubric unless the data say more.")
@click.option("--language", type=click.Choice(LANGUAGES), help="That of the data; en without any.")
@click.option(
    "--data",
    "tables",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Your own table in place of example data.",
)
@click.option("--judge", metavar="MODEL", help="Who judges; else the judge whose key is set.")
@click.option("--yes", is_flag=True, help="Fetch the embedded model without asking.")
def init_command(
    directory: Path,
    protocol: str | None,
    language: str | None,
    tables: tuple[Path, ...],
    judge: str | None,
    yes: bool,
) -> None:
    """Make a suite in DIR that runs as it is: on example data, or on your own table.

    The judge is the one whose key is set, else the embedded one. Nothing is overwritten.

    \b
    evenhand init my-suite                      example data
    evenhand init --data answers.csv            your table, with a first rubric
    """
    judge = judge or first_judge(environment(directory if directory.is_dir() else None))
    provider, _ = split_name(judge)
    if len(tables) > 1:
        raise UsageError(
            f"--data is given {len(tables)} times",
            advice="Begin with one of the files; then list all in evenhand.toml, such as"
            f' data = [{{ file = "{tables[0].name}", prompt_variant = "v1" }},'
            f' {{ file = "{tables[1].name}", prompt_variant = "v2" }}].',
        )
    data = tables[0] if tables else None
    if data is None:
        _write(directory, example_files(protocol or "rubric", language or "en", judge))
    else:
        _write_for(directory, data, protocol, language, judge)
    click.echo(f"\nJudge: {judge}")
    if provider.name == "embedded":
        _offer_model(judge, yes)
    place = "" if directory == Path() else f" {directory}"
    click.echo(f"Next:  evenhand run{place} --dry-run    what it will send and cost")
    click.echo(f"       evenhand run{place}")


def _write_for(
    directory: Path, data: Path, protocol: str | None, language: str | None, judge: str
) -> None:
    from evenhand.files.drafts import draft_suite

    draft = draft_suite(data, protocol=protocol, language=language, judge=judge)
    copy = None if is_within(data, directory) and data.parent.samefile(directory) else data
    _write(directory, draft.files, copy)
    click.echo()
    for line in draft.understood:
        click.echo(shown_line(line))
    if "rubric.json" in draft.files or "rubric.md" in draft.files:
        name = next(name for name in draft.files if name.startswith("rubric."))
        click.echo(f"\nThe rubric is a beginning: say in {directory / name} what matters to you.")


def _write(directory: Path, files: Mapping[str, str], copy: Path | None = None) -> None:
    """Write the files, and a copy of a data file that lies elsewhere; nothing is overwritten."""
    for name in [*files, *([copy.name] if copy else [])]:
        if (directory / name).exists():
            raise UsageError(
                f"{directory / name} is there already",
                advice="Name another folder: evenhand init my-suite",
            )
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / name).write_text(text, encoding="utf-8")
        click.echo(f"{directory / name}")
    if copy:
        shutil.copyfile(copy, directory / copy.name)
        click.echo(f"{directory / copy.name}  (a copy: a suite reads what lies in its folder)")


def _offer_model(judge: str, yes: bool) -> None:
    """Fetch the model of an embedded judge after asking; where nobody can be asked, say how."""
    from evenhand.cli.models import get_model
    from evenhand.judges.embedded import models

    _, name = split_name(judge)
    if name.endswith(".gguf") or models.find(name or models.DEFAULT):
        return
    model = models.named(name or models.DEFAULT)
    size = f"{model.download / 1e6:.0f} MB, once"
    question = f"The embedded judge needs the model {model.name} ({size}). Fetch it now?"
    if yes or (sys.stdin.isatty() and click.confirm(question, default=True, err=True)):
        get_model(model.name)
        return
    click.echo(f"First: evenhand models get {model.name}    ({size})")
    click.echo("       or set a key, e.g. OPENAI_API_KEY, and name its judge in evenhand.toml")
