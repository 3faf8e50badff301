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
    """Check or copy the store."""


@store_command.command("verify")
@store_option
@json_option
def verify_command(store: str | None, as_json: bool) -> int:
    """Check that nothing in the store is damaged or altered.

    Recomputes the digest of every text, unit, call, judgment and run. Exit code 0 if all is
    well, else 6.
    """
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
    """Copy everything in the store FROM into the store TO.

    Both are URLs, e.g. sqlite:evenhand.db or postgresql://me@host/judging. TO may already hold
    runs. Every row is checked on the way. If it is interrupted, run the same command again.

    \b
    evenhand store copy sqlite:evenhand.db postgresql://me@host/judging
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
