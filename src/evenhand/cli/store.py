"""`evenhand store verify`."""

from __future__ import annotations

import click

from evenhand.cli.common import archive_at, json_option, print_json, store_option


@click.group("store")
def store_command() -> None:
    """Look after the store."""


@store_command.command("verify")
@store_option
@json_option
def verify_command(store: str | None, as_json: bool) -> int:
    """Check the file, every text, unit, call, judgment and run against its digest, every run
    against its units, every judgment against its calls."""
    opened = archive_at(store)
    try:
        wrong = opened.verify()
    finally:
        opened.close()
    if as_json:
        print_json({"ok": not wrong, "problems": wrong})
    else:
        click.echo("\n".join(wrong) if wrong else "all is well")
    return 6 if wrong else 0
