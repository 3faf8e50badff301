"""The command line: a thin edge over the package. Commands are imported when they are called."""

from __future__ import annotations

import gc
import sys
from errno import ENAMETOOLONG
from importlib import import_module
from types import ModuleType

import click

from evenhand.cli.language import Speaker, users_speaker
from evenhand.cli.streams import lasting_streams, lost_output
from evenhand.errors import EvenhandError, UsageError, hide_credentials, nearest
from evenhand.report.terminal.stream import guarded_streams
from evenhand.words import Sentence

GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Start": {
        "demo": ("demo", "Watch it work on bundled data, without a key."),
        "init": ("init", "Create a suite for your own table, or with example data."),
        "protocols": ("protocols", "List the ways to judge; copy one, check your own."),
        "models": ("models", "List the local models, and fetch one."),
    },
    "Judge": {
        "answer": ("answer", "Make the answers to judge, from questions and prompts."),
        "run": ("run", "Judge a suite. Run it again to continue."),
        "batches": ("batches", "List the batches at a provider; cancel one."),
        "settle": ("settle", "Recompute verdicts from stored replies, free of charge."),
        "check": ("check", "Check replies from another tool against the contract."),
        "import": ("import_", "Import judgments made by people or other tools."),
    },
    "Conclude": {
        "compare": ("compare", "Say which variant is better, by how much, how surely."),
        "leaderboard": ("compare", "Rank candidates by win rate and rating."),
        "agreement": ("compare", "Measure how well judges agree with people."),
        "gate": ("gate", "Decide if a variant may ship, by exit code."),
        "report": ("report", "Write one HTML file to send to a colleague."),
        "view": ("view", "Browse runs in the web browser."),
    },
    "Look after": {
        "runs": ("show", "List the runs in the store."),
        "show": ("show", "Show a run, or one unit with its prompts and replies."),
        "export": ("export", "Write the results of a run to a file."),
        "store": ("store", "Check or copy the store."),
        "doctor": ("doctor", "Check what is installed, keys, models and the store."),
    },
}
"""Each command with its module and one line about it, in the order of a user's work."""
COMMANDS = {name: about for group in GROUPS.values() for name, about in group.items()}


class _Commands(click.Group):
    """Knows every command's name and one line about it without importing any."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = _load_module(f"evenhand.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))  # one column for all groups
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(f"{name:{width}}", about) for name, (_, about) in group.items()]
                )

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = nearest(args[0], COMMANDS)
            key = "cli.no_command_near" if near else "cli.no_command"
            ctx.fail(Sentence(key, name=args[0], near=near))
        return super().resolve_command(ctx, args)


def _load_module(name: str) -> ModuleType:
    """Return a module, loaded with all that it needs, of which nothing is looked through for
    garbage: it stays as long as the process does, and looking takes a seventh of a short command's
    time."""
    gc.disable()
    try:
        return import_module(name)
    finally:
        gc.freeze()
        gc.enable()


def _version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        from importlib.metadata import version

        click.echo(f"evenhand {version('evenhand')}")
        ctx.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_version,
    help="Print the version.",
)
def cli() -> None:
    """Judge the answers of language models with other language models.

    \b
    Start here:
      evenhand demo                        watch it work, without a key
      evenhand init my-suite               create a suite with example data
      evenhand run my-suite                judge it

    Help is in English. Everything else speaks the language of the suite, else of
    EVENHAND_LANG (en, ru, zh or ja), else of the locale.

    Shell completion: add  eval "$(_EVENHAND_COMPLETE=bash_source evenhand)"  to ~/.bashrc
    (zsh_source and fish_source for other shells).
    """


def main() -> None:
    """Run the command line and leave with the exit code that the error tree gives."""
    lasting_streams()
    speaker = users_speaker()
    with guarded_streams():
        code = _exit_code(speaker)
    if fault := lost_output():
        code = code or _tell(speaker, UsageError(Sentence("cli.output_lost", why=fault.strerror)))
    sys.exit(code)


def _exit_code(speaker: Speaker) -> int:
    """Run the command line; the exit code that the error tree gives."""
    try:
        code = cli.main(prog_name="evenhand", standalone_mode=False, obj=speaker)
    except click.exceptions.Abort:
        code = 130
    except click.ClickException as error:
        vars(error)["message"] = speaker.words.message(error.message)
        error.show()
        code = 2
    except EvenhandError as error:
        code = _tell(speaker, error)
    except KeyboardInterrupt:
        code = 130
    except UnicodeEncodeError as error:
        code = _tell(speaker, _unwritable(error))
    except Exception as error:
        code = _handle_bug(speaker, error)
    return code if isinstance(code, int) else 0


def _tell(speaker: Speaker, error: EvenhandError) -> int:
    """Print an error; return its exit code."""
    click.echo(f"evenhand: {error.text(speaker.words.message)}", err=True)
    return error.exit_code


def _unwritable(error: UnicodeEncodeError) -> UsageError:
    """Return what to say of a text that cannot be written: what comes from files is refused
    where it is read, so that it is the name of a file or folder."""
    part = error.object[max(0, error.start - 40) : error.end + 40]
    return UsageError(Sentence("cli.unwritable", name=part, encoding=error.encoding))


def _handle_bug(speaker: Speaker, error: Exception) -> int:
    """Tell of an error that nobody raised on purpose; return the exit code."""
    if isinstance(error, OSError) and error.errno == ENAMETOOLONG:
        return _tell(speaker, UsageError(Sentence("cli.name_too_long", name=str(error.filename))))
    import traceback

    click.echo(hide_credentials(traceback.format_exc()), err=True, nl=False)
    return _tell(speaker, EvenhandError(Sentence("cli.bug")))
