"""`evenhand protocols`."""

from __future__ import annotations

import click

from evenhand.app import builtin_protocols, find_protocol
from evenhand.cli.common import json_option, print_json


@click.group("protocols", invoke_without_command=True)
@json_option
@click.pass_context
def protocols_command(ctx: click.Context, as_json: bool) -> None:
    """List the protocols, or show one."""
    if ctx.invoked_subcommand:
        return
    found = [find_protocol(name) for name in builtin_protocols()]
    if as_json:
        print_json(
            {
                "protocols": [
                    {"name": p.name, "kind": p.kind, "languages": p.languages, "version": p.version}
                    for p in found
                ]
            }
        )
        return
    for protocol in found:
        click.echo(f"{protocol.name}  ({', '.join(protocol.languages)})  {protocol.about}")


@protocols_command.command("show")
@click.argument("name")
@click.option("--language", default="en", show_default=True)
@click.option("--compact", is_flag=True, help="The short prompt of the embedded judge.")
def show_command(name: str, language: str, compact: bool) -> None:
    """Print the prompt of the protocol NAME in one language."""
    protocol = find_protocol(name)
    file = f"prompts/{'compact/' if compact else ''}{language}.md"
    if file not in protocol.texts:
        raise click.UsageError(f"{name} has no {file}; languages: {', '.join(protocol.languages)}")
    click.echo(protocol.texts[file])
