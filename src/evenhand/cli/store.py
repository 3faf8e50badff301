"""`evenhand store verify` and `evenhand store copy`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from time import monotonic

import click

from evenhand.cli.common import (
    archive_at,
    json_option,
    notice,
    print_json,
    store_option,
    tell,
)
from evenhand.cli.language import terminal_words
from evenhand.runs.stores import copy_store
from evenhand.store.address import shown_url
from evenhand.store.verify import verify
from evenhand.words import Code


@click.group("store")
def store_command() -> None:
    """Look after the store."""


@store_command.command("verify")
@store_option
@json_option
def verify_command(store: str | None, as_json: bool) -> int:
    """Check the file, every text, unit, call, judgment and run against its digest, every run
    against its units, every judgment against its calls."""
    with closing(archive_at(store)) as archive:
        wrong = verify(archive)
    if as_json:
        print_json({"ok": not wrong, "problems": wrong})
    else:
        _tell_problems(wrong)
    return 6 if wrong else 0


@store_command.command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@json_option
def copy_command(source: str, target: str, as_json: bool) -> int:
    """Copy all that the store FROM holds into the store TO, which may hold runs of its own.

    Both are URLs, e.g. sqlite:evenhand.db and postgresql://me@host/judging. Every row is held
    against its digest on the way, and all of TO afterwards. A copy that was cut off goes on where
    it stopped: the same command again.
    """
    copied = copy_store(source, target, _progress())
    with closing(archive_at(target)) as archive:
        wrong = verify(archive)
    if as_json:
        print_json({"copied": copied._asdict(), "ok": not wrong, "problems": wrong})
    else:
        counts = ", ".join(f"{name} {number:,}" for name, number in copied._asdict().items())
        tell("cli.new_rows", store=Code(shown_url(target)), counts=Code(counts))
        _tell_problems(wrong)
    return 6 if wrong else 0


def _tell_problems(wrong: Sequence[str]) -> None:
    """Print what is wrong with a store, a line each."""
    say = terminal_words()
    click.echo("\n".join(map(say.message, wrong)) or say("cli.all_well"))


def _progress() -> Callable[[str, int, int], None]:
    """Return what tells how far a copy is: on a terminal a few times a second, elsewhere once per
    table."""
    is_terminal = sys.stderr.isatty()
    told = 0.0

    def tell(what: str, done: int, total: int) -> None:
        nonlocal told
        if done == total:
            notice(f"\r{what}: {total:,}" if is_terminal else f"{what}: {total:,}")
        elif is_terminal and monotonic() - told > 0.2:
            told = monotonic()
            line = terminal_words()("cli.copying", table=what, done=done, total=total)
            click.echo(f"\r{line}", err=True, nl=False)

    return tell
