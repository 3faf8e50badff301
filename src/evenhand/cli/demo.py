"""`evenhand demo`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from evenhand.cli.common import NearChoice
from evenhand.cli.demo_live import judge_live
from evenhand.cli.demo_published import show_published
from evenhand.cli.models import get_model
from evenhand.cli.narration import Narration
from evenhand.errors import EvenhandError, Interrupted, UsageError
from evenhand.judges.embedded import models
from evenhand.kinds import KINDS
from evenhand.kinds.protocol import LANGUAGES
from evenhand.runs.stores import open_store
from evenhand.store.address import shown_url
from evenhand.store.ports import Store

SMALL = "smollm2-135m"
STORE = "evenhand.db"


@click.command("demo")
@click.option("--language", type=NearChoice(LANGUAGES), default="en", show_default=True)
@click.option("--all", "every", is_flag=True, help="All four languages.")
@click.option("--recorded", is_flag=True, help="The published judgments alone: nothing live.")
@click.option("--protocol", type=NearChoice(list(KINDS)), help="Live: one; otherwise all.")
@click.option("--small", is_flag=True, help="Live: the 135M model: quick to fetch, judges badly.")
@click.option("--yes", is_flag=True, help="Fetch the model without asking.")
@click.option("--store", metavar="URL", help="Default: evenhand.db in the folder of the reports.")
@click.option(
    "--reports",
    type=click.Path(path_type=Path, file_okay=False),
    default="evenhand-demo",
    show_default=True,
    help="Write the reports into this folder.",
)
def demo_command(
    language: str,
    every: bool,
    recorded: bool,
    protocol: str | None,
    small: bool,
    yes: bool,
    store: str | None,
    reports: Path,
) -> int:
    """Show what Evenhand is for, in two parts.

    First, in seconds and without a download, verdicts that GPT-4, Claude and people really gave:
    who leads, how far each judge can be trusted, a pair on which one contradicts itself, a report.

    Then a few bundled answers judged live by the embedded judge. No key, and no network once the
    model is there: it is fetched once (1.1 GB; --small: 93 MB).
    """
    _make_folder(reports)
    url = store or f"sqlite:{reports / STORE}"
    protocols = [protocol] if protocol else list(KINDS)
    opened = open_store(url)
    try:
        narrations = [Narration(name) for name in (LANGUAGES if every else [language])]
        for narration in narrations:
            show_published(opened, narration, reports, url)
        if recorded:
            narrations[0].tell("later", language=language)
            return 0
        model = SMALL if small else models.DEFAULT
        if not _has_model(model, yes, narrations[0]):
            return 0
        return max(_live(opened, narration, model, protocols, url) for narration in narrations)
    finally:
        opened.close()


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be made: {error.strerror}", advice="Name another: --reports FOLDER"
        ) from error


def _has_model(name: str, yes: bool, narration: Narration) -> bool:
    """Fetch the model after asking; where nobody can be asked, fetch it. False, and why it is so
    printed, where it cannot be had."""
    if models.find(name):
        return True
    size = models.lookup(name).download / 1e6
    question = f"The live part needs the model {name} ({size:.0f} MB, once). Fetch it?"
    narration.out.print()
    if not yes and sys.stdin.isatty() and not click.confirm(question, default=True, err=True):
        narration.tell("stopped", why="--small: 93 MB")
        return False
    try:
        get_model(name)
    except Interrupted:
        raise
    except EvenhandError as error:
        narration.tell("stopped", why=error)
        return False
    return True


def _live(store: Store, narration: Narration, model: str, protocols: list[str], url: str) -> int:
    """Judge live and print what came of it; the exit code."""
    try:
        summaries = judge_live(store, narration, model, protocols, url)
    except UsageError as error:
        # The runtime of the model is an extra of its own, and may be missing.
        narration.tell("stopped", why=error)
        return 0
    narration.out.print()
    narration.tell("prompts", store=shown_url(url))
    narration.say("next")
    counts = [summary.counts for summary in summaries.values()]
    return int(any(count.verdicts != count.planned for count in counts))
