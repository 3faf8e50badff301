"""Write docs/commands.md from the help of the commands: python scripts/commands_page.py"""

from __future__ import annotations

from pathlib import Path

import click

from evenhand.cli.main import GROUPS, cli

PAGE = Path(__file__).parents[1] / "docs" / "commands.md"
WIDTH = 80
HEAD = """\
# Commands

The help of every command, written by `scripts/commands_page.py`.

**RUN** is an id or its beginning, the name of a suite (its last run), `latest` (the default: the
run judged last, never an import), or `latest~1` (the run of the same name before it). `--store URL`
names another store than that of `./evenhand.toml`. `--json` prints JSON alone on stdout.

**Language.** Commands speak the language of the suite, else of `EVENHAND_LANG` (`en`, `ru`, `zh`,
`ja`), else of the locale. Help and JSON are English.

| exit code | means |
|---|---|
| 0 | complete |
| 1 | a gate or `max_failure_rate` not met; no verdict at all; `check` or `lint` found problems |
| 2 | wrong usage, suite or protocol; nothing was sent |
| 3 | wrong data; nothing was sent |
| 4 | the provider refuses: key, model, quota |
| 5 | stopped early: budget, deadline, provider down; run the same command again |
| 6 | a problem with the store |
| 7 | gate: not enough evidence |
| 70 | a bug |
| 130 | interrupted |

Shell completion: `eval "$(_EVENHAND_COMPLETE=bash_source evenhand)"` in `~/.bashrc`; `zsh_source`
and `fish_source` likewise.
"""


def make_page() -> str:
    """Return the page: the help of every command, in the order of `evenhand --help`."""
    top = cli.make_context(
        "evenhand", [], resilient_parsing=True, max_content_width=WIDTH, terminal_width=WIDTH
    )
    parts = [HEAD]
    for title, group in GROUPS.items():
        parts.append(f"## {title}\n")
        for name in group:
            parts.append(f"### `evenhand {name}`\n\n{_help_blocks(top, name)}")
    return "\n".join(parts)


def _help_blocks(top: click.Context, name: str) -> str:
    command = cli.get_command(top, name)
    assert command is not None
    context = click.Context(command, top, name)
    blocks = [context.get_help()]
    if isinstance(command, click.Group):
        for part in command.list_commands(context):
            inner = command.get_command(context, part)
            assert inner is not None
            blocks.append(click.Context(inner, context, part).get_help())
    return "".join(f"```\n{block.rstrip()}\n```\n\n" for block in blocks)


if __name__ == "__main__":
    PAGE.write_text(make_page(), encoding="utf-8")
