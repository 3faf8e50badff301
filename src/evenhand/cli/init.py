"""`evenhand init`."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.cells import cell_len, set_cell_size

from evenhand.cli.common import NearChoice, mapped_columns, notice, tell
from evenhand.cli.language import speaker, terminal_words
from evenhand.errors import UsageError
from evenhand.examples import example_files
from evenhand.folders import is_within
from evenhand.judges import first_judge, split_name
from evenhand.judges.credentials import environment
from evenhand.kinds import KINDS
from evenhand.kinds.protocol import LANGUAGES
from evenhand.report.terminal.summary import command_lines
from evenhand.text import visible
from evenhand.words import Code, Sentence

if TYPE_CHECKING:
    from evenhand.files.drafts import Draft


@click.command("init")
@click.argument("directory", default=".", metavar="[DIR]", type=click.Path(path_type=Path))
@click.option(
    "--protocol",
    type=NearChoice(list(KINDS)),
    help="Judge by this protocol. Default: what the table suggests, else rubric.",
)
@click.option(
    "--language",
    type=NearChoice(LANGUAGES),
    help="Use this language for prompts and reports. Default: the data's, else en.",
)
@click.option(
    "--data",
    "tables",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Judge this table instead of example data. Repeat it for a file per variant.",
)
@click.option(
    "--map",
    "moves",
    multiple=True,
    metavar="FIELD=COLUMN",
    help="Read FIELD from COLUMN, e.g. question=Prompt. Repeatable. Default: found by name.",
)
@click.option("--sheet", metavar="NAME", help="Read this sheet of a workbook. Default: the first.")
@click.option(
    "--judge",
    metavar="MODEL",
    help="Judge with this model. Default: the one whose key is set, else embedded.",
)
@click.option(
    "--rubric",
    "rubrics",
    multiple=True,
    metavar="NAME",
    help="Score by this ready rubric, e.g. faithfulness. Repeat it to score by several at once."
    " Their names: evenhand protocols.",
)
@click.option(
    "--questions",
    type=click.Path(path_type=Path),
    help="Make the answers first: this table has the questions. Needs --model.",
)
@click.option(
    "--prompts",
    type=click.Path(path_type=Path),
    multiple=True,
    help="With --questions: a prompt to try, with {{column}} for the columns. Repeatable.",
)
@click.option(
    "--model",
    "models",
    multiple=True,
    metavar="MODEL",
    help="With --questions: a model that answers, e.g. openai/gpt-4.1-mini. Repeatable.",
)
@click.option("--yes", is_flag=True, help="Fetch the local model without asking.")
def init_command(
    directory: Path,
    protocol: str | None,
    language: str | None,
    tables: tuple[Path, ...],
    moves: tuple[str, ...],
    sheet: str | None,
    judge: str | None,
    rubrics: tuple[str, ...],
    questions: Path | None,
    prompts: tuple[Path, ...],
    models: tuple[str, ...],
    yes: bool,
) -> None:
    """Create a suite in DIR that you can run at once.

    DIR is this folder by default. Without --data the suite judges bundled examples. No file is
    overwritten.

    \b
    evenhand init my-suite                      with example data
    evenhand init --data answers.csv            for your own table
    evenhand init --data v1.csv --data v2.csv   for a file per variant
    evenhand init --rubric faithfulness         with a ready rubric and its examples
    evenhand init --questions q.csv --prompts v1.md --prompts v2.md --model ollama/qwen3
                                                for prompts whose answers are not there yet
    """
    judge = judge or first_judge(environment(directory if directory.is_dir() else None))
    provider, _ = split_name(judge)
    if sheet and not tables:
        raise UsageError(Sentence("cli.needs", flag=Code("--sheet"), other=Code("--data")))
    for flag, given in (("--prompts", prompts), ("--model", models)):
        if given and questions is None:
            raise UsageError(Sentence("cli.needs", flag=Code(flag), other=Code("--questions")))
    if questions is not None:
        if not models:
            raise UsageError(Sentence("cli.needs", flag=Code("--questions"), other=Code("--model")))
        if tables:
            raise UsageError(
                Sentence("cli.not_together", flag=Code("--data"), other=Code("--questions"))
            )
        from evenhand.files.answer_drafts import draft_answers

        draft = draft_answers(
            questions,
            prompts,
            models,
            directory,
            protocol=protocol,
            language=language,
            judge=judge,
            rubrics=rubrics,
        )
        speaker().choose(draft.language)
        files = (questions, *prompts)
        _write_for(directory, [path for path in files if not is_within(path, directory)], draft)
    elif tables:
        if len({path.name for path in tables}) < len(tables):
            raise UsageError(Sentence("cli.same_names"))
        from evenhand.files.drafts import draft_suite

        draft = draft_suite(
            tables,
            directory,
            mapped_columns(moves),
            protocol=protocol,
            language=language,
            judge=judge,
            sheet=sheet,
            rubrics=rubrics,
            notice=notice,
        )
        speaker().choose(draft.language)
        _write_for(directory, [path for path in tables if not _lies_in(path, directory)], draft)
    elif rubrics:
        from evenhand.files.drafts import draft_examples

        draft = draft_examples(
            rubrics, directory, protocol=protocol, language=language or "en", judge=judge
        )
        speaker().choose(draft.language)
        _write_for(directory, (), draft)
    else:
        speaker().choose(language)
        _write_example(directory, protocol or "rubric", language or "en", judge)
    click.echo()
    tell("cli.judge_is", judge=judge)
    if provider.name == "embedded":
        _offer_model(judge, yes)
    run = "run" if directory == Path() else f"run {directory}"
    commands = [("cli.next_dry", f"{run} --dry-run"), ("cli.next_run", run)]
    click.echo("\n".join(command_lines(commands, terminal_words())))


def _lies_in(path: Path, directory: Path) -> bool:
    return is_within(path, directory) and path.parent.samefile(directory)


def _write_example(directory: Path, protocol: str, language: str, judge: str) -> None:
    from evenhand.files.drafts import free_name

    rubric = KINDS[protocol].example.rubric
    name = free_name(rubric, directory) if rubric else None
    _write(directory, example_files(protocol, language, judge, rubric=name))
    if rubric and name != rubric:
        click.echo()
        tell("cli.own_rubric_stays", path=str(directory / rubric), name=name)


def _write_for(directory: Path, copies: Sequence[Path], draft: Draft) -> None:
    """Write a suite and copies of its files that lie elsewhere, and say what was understood."""
    _write(directory, draft.files, copies)
    say = terminal_words()
    click.echo(f"\n{say.message(draft.understood)}")
    labelled = [(say.message(label), say.message(text)) for label, text in draft.fields]
    width = 2 + max((cell_len(label) for label, _ in labelled), default=0)
    for label, text in labelled:
        click.echo(visible(f"  {set_cell_size(label, width)}{text}"))
    for remark in draft.remarks:
        click.echo(f"  {say.message(remark)}")
    if draft.first_rubric:
        click.echo()
        tell("cli.first_rubric", path=str(directory / draft.first_rubric))


def _write(directory: Path, files: Mapping[str, str], copies: Sequence[Path] = ()) -> None:
    """Write the files, and copies of data files that lie elsewhere; nothing is overwritten."""
    for name in [*files, *(path.name for path in copies)]:
        if (directory / name).exists():
            raise UsageError(Sentence("cli.present", path=str(directory / name)))
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (directory / name).write_text(text, encoding="utf-8")
        click.echo(f"{directory / name}")
    for path in copies:
        shutil.copyfile(path, directory / path.name)
        tell("cli.copied", path=str(directory / path.name))


def _offer_model(judge: str, yes: bool) -> None:
    """Fetch the model of an embedded judge after asking; where nobody can be asked, say how."""
    from evenhand.cli.models import offer_model
    from evenhand.judges.embedded import models

    provider, name = split_name(judge)
    if not provider.is_installed:
        tell("cli.first_extra", extra=provider.extra)
    name = name or models.DEFAULT
    if name.endswith(".gguf") or offer_model(name, yes=yes, unasked=False):
        return
    size = models.lookup(name).download / 1e6
    tell("cli.first_model", name=name, megabytes=size)
    tell("cli.or_key")
