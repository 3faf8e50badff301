"""`evenhand store verify` and `evenhand store copy`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import closing
from time import monotonic

import click

from evenhand.cli.common import archive_at, json_option, notice, print_json, store_option
from evenhand.runs.stores import copy_store
from evenhand.store.address import shown_url
from evenhand.store.verify import verify


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
        click.echo("\n".join(wrong) if wrong else "all is well")
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
        numbers = ", ".join(f"{number:,} {name}" for name, number in copied._asdict().items())
        click.echo(f"new in {shown_url(target)}: {numbers}")
        click.echo("\n".join(wrong) if wrong else "all of it was checked: all is well")
    return 6 if wrong else 0


def _progress() -> Callable[[str, int, int], None]:
    """Tells on a terminal how far a copy is, a few times a second; elsewhere once per table."""
    is_terminal = sys.stderr.isatty()
    told = 0.0

    def tell(what: str, done: int, total: int) -> None:
        nonlocal told
        if done == total:
            notice(f"\r{what}: {total:,}" if is_terminal else f"{what}: {total:,}")
        elif is_terminal and monotonic() - told > 0.2:
            told = monotonic()
            click.echo(f"\r{what}: {done:,} of {total:,}", err=True, nl=False)

    return tell
