"""`evenhand models`."""

from __future__ import annotations

import sys

import click

from evenhand.cli.common import json_option, notice, print_json, tell
from evenhand.cli.language import terminal_words
from evenhand.judges.embedded import models
from evenhand.report.terminal.stream import raw_stream
from evenhand.words import Sentence


@click.group("models", invoke_without_command=True)
@json_option
@click.pass_context
def models_command(ctx: click.Context, as_json: bool) -> None:
    """List the local models that can judge.

    \b
    evenhand models                     list them
    evenhand models get                 fetch the default model
    """
    if ctx.invoked_subcommand:
        return
    rows = [
        {
            "name": model.name,
            "size": model.size,
            "sha256": model.sha256,
            "licence": model.licence,
            "path": None if (path := models.find(model.name)) is None else str(path),
        }
        for model in models.catalogue()
    ]
    if as_json:
        print_json({"models": rows})
        return
    for row, model in zip(rows, models.catalogue(), strict=True):
        about = {"name": model.name, "megabytes": model.size / 1e6, "licence": model.licence}
        tell("cli.model_here" if row["path"] else "cli.model_absent", **about)
        click.echo(f"  {terminal_words().gloss('model_use', model.use)}")


@models_command.command("get")
@click.argument("name", default=models.DEFAULT)
def get_command(name: str) -> None:
    """Fetch the model NAME, verify it and keep it in the cache.

    Nothing is installed or run. If it is interrupted, the same command continues.
    """
    get_model(name)


def get_model(name: str) -> None:
    """Fetch a model with a progress bar on stderr."""
    model = models.lookup(name)
    if models.verify(name):
        notice(Sentence("cli.model_at", name=model.name, path=str(models.find(name))))
        return
    notice(f"{model.name}: {terminal_words().message(model.notice)}")
    with click.progressbar(
        length=model.download, label=model.name, file=raw_stream(sys.stderr)
    ) as bar:
        path = models.get(name, lambda done, _: bar.update(done - bar.pos))
    notice(Sentence("cli.model_kept", path=str(path)))


def offer_model(name: str, *, yes: bool, unasked: bool) -> bool:
    """Fetch a model that is not here, after asking; where nobody can be asked, if `unasked`.
    Return True if it is here."""
    if models.find(name):
        return True
    size = models.lookup(name).download / 1e6
    question = terminal_words()("cli.fetch_model", name=name, megabytes=size)
    is_wanted = yes or unasked
    if not yes and sys.stdin.isatty():
        is_wanted = click.confirm(question, default=True, err=True)
    if is_wanted:
        get_model(name)
    return is_wanted
