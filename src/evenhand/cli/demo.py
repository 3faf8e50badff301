"""`evenhand demo`: the other commands, called on bundled records and examples.

First published judgments are imported and read as any others; then a few bundled units are judged
here and now by the embedded judge. The words around the commands are in the reader's language.
"""

from __future__ import annotations

import contextlib
import shlex
from importlib import resources
from pathlib import Path

import click

from evenhand.cli.common import NearChoice, tell_error, wait
from evenhand.cli.language import speaker, terminal_words
from evenhand.cli.main import cli
from evenhand.cli.models import offer_model
from evenhand.errors import EvenhandError, Interrupted, UsageError
from evenhand.examples import example_files
from evenhand.judges.embedded import models
from evenhand.kinds import KINDS
from evenhand.kinds.protocol import LANGUAGES
from evenhand.report.terminal.console import console, paragraph
from evenhand.runs.imports import ImportRequest, import_judgments
from evenhand.runs.stores import open_store
from evenhand.suite_file import StoreSpec
from evenhand.words import Sentence, words

SMALL = "smollm2-135m"
FOLDER = Path("evenhand-demo")
JUDGES, PEOPLE = "vicuna-judges", "vicuna-people"
COMMANDS = (
    f"leaderboard {JUDGES} --judge gpt-4",
    f"compare {JUDGES} --judge gpt-4 --baseline gpt35",
    f"agreement {JUDGES} --against {PEOPLE} --judge gpt-4 --majority",
)
CONTRADICTION = f"show {JUDGES} q01#bard~gpt35"
"""A pair on which a judge names another winner when the order is swapped."""


class Narrator:
    """Says the texts of the demo in one language, and runs commands in sight."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._words = words(language)

    def say(self, key: str, style: str = "", **values: object) -> None:
        """Print a text after an empty line."""
        console().print(paragraph(f"\n{self._words(f'demo.{key}', **values)}"), style=style)

    def run(self, command: str) -> int:
        """Print a command, and run it; return its exit code."""
        console().print(f"\n$ evenhand {command}", style="bold", soft_wrap=True)
        return cli.main(shlex.split(command), standalone_mode=False, obj=speaker()) or 0


@click.command("demo")
@click.option(
    "--language",
    type=NearChoice(LANGUAGES),
    default="en",
    show_default=True,
    help="Speak this language.",
)
@click.option("--recorded", is_flag=True, help="Show only the published judgments; call no model.")
@click.option("--small", is_flag=True, help="Use the 93 MB model: quick to fetch, judges badly.")
@click.option("--yes", is_flag=True, help="Fetch the model without asking.")
def demo_command(language: str, recorded: bool, small: bool, yes: bool) -> int:
    """Show what Evenhand does, in the folder evenhand-demo.

    First it imports verdicts that GPT-4, Claude and people really gave, ranks and compares them,
    and writes a report: a few seconds, no download. Then a local model judges a few bundled
    answers: no key; the model is fetched once (1.1 GB, with --small 93 MB).

    \b
    evenhand demo --recorded            only the first part
    evenhand demo --language ru         in Russian
    """
    speaker().choose(language)
    narrator, model = Narrator(language), SMALL if small else models.DEFAULT
    try:
        FOLDER.mkdir(exist_ok=True)
    except OSError as error:
        why = error.strerror
        raise UsageError(Sentence("cli.no_demo_folder", folder=str(FOLDER), why=why)) from error
    with contextlib.chdir(FOLDER):
        _show_records(narrator)
        if recorded:
            narrator.say("later", language=language)
            return 0
        try:
            if offer_model(model, yes=yes, unasked=True):
                return _judge_live(narrator, model)
            narrator.say("stopped", why="--small: 93 MB")
            return 0
        except Interrupted:
            raise
        except EvenhandError as error:
            # The model, or the extra that runs it, is missing.
            narrator.say("stopped", why=error.text(terminal_words().message))
            return 0


def _show_records(narrator: Narrator) -> None:
    """Import the published judgments, read them, and write a report."""
    store, records = open_store(StoreSpec().url), resources.files("evenhand.examples")
    try:
        for name in (JUDGES, PEOPLE):
            with resources.as_file(records / "published" / f"{name}.jsonl.gz") as path:
                wait(import_judgments(store, ImportRequest(tables=[path], kind="votes", name=name)))
    finally:
        store.close()
    narrator.say("recorded", "bold")
    narrator.say("records", folder=FOLDER)
    for command in COMMANDS:
        narrator.run(command)
    narrator.say("contradiction")
    console().print(f"  evenhand {CONTRADICTION}", soft_wrap=True)
    try:
        narrator.run(f"report {JUDGES} -o report.html --language {narrator.language}")
    except UsageError as error:
        tell_error(error)


def _judge_live(narrator: Narrator, model: str) -> int:
    """Judge the first bundled unit of each protocol; return the exit code. A call takes some 20 s
    of one core, and nobody watches for long."""
    is_default = model == models.DEFAULT
    narrator.say("live", "bold", model=model)
    narrator.say("caution" if is_default else "at_chance")
    code, judge = 0, "embedded" if is_default else f"embedded/{model}"
    for protocol in KINDS:
        folder = Path(protocol)
        folder.mkdir(exist_ok=True)
        for name, text in example_files(protocol, narrator.language, judge).items():
            (folder / name).write_text(text, encoding="utf-8")
        code = max(code, narrator.run(f"run {protocol} --limit 1"))
    narrator.say("next")
    return code
