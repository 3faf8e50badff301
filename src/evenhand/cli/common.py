"""Options that several commands share, and how they print."""

from __future__ import annotations

import json
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

import click

from evenhand.cli.language import speaker, terminal_words
from evenhand.cli.streams import is_utf8
from evenhand.engine.loop import run_in_loop
from evenhand.errors import EvenhandError, UsageError, nearest
from evenhand.judges.credentials import environment
from evenhand.limits import NOTE_LENGTH, TAG_LENGTH, TAGS
from evenhand.runs.recorded import Recorded, find_run
from evenhand.runs.stores import MEMORY, open_archive, open_store
from evenhand.store.address import shown_url
from evenhand.store.archive import Archive
from evenhand.store.ledger import Store
from evenhand.suite import FILE, load_suite
from evenhand.suite_file import StoreSpec
from evenhand.text import visible, visible_json
from evenhand.words import Code, Sentence, Value

T = TypeVar("T")


class NearChoice(click.Choice[str]):
    """One of some names; what is none of them is answered with the one that was meant."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        near, names = nearest(str(value), self.choices), Code(", ".join(self.choices))
        key = "cli.no_choice_near" if near else "cli.no_choice"
        return Sentence(key, value=str(value), near=near, names=names)


store_option = click.option(
    "--store",
    metavar="URL",
    help="Use this store, e.g. sqlite:evenhand.db. Default: the store of ./evenhand.toml, else"
    " sqlite:evenhand.db.",
)
force_option = click.option(
    "--force", is_flag=True, help="Overwrite the file even if this command did not write it."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print only JSON on stdout.")
on_conflict_option = click.option(
    "--on-conflict",
    type=NearChoice(["tie", "uncertain", "drop", "split"]),
    help="Pairs: count two orders that contradict each other as a tie, as uncertain (half a win"
    " each), not at all (drop), or as the mean of both (split). Default: the rule of the run.",
)
only_option = click.option(
    "--only",
    metavar="MARK",
    help="Take only judgments with this flag or result, e.g. fail, uncertain, notes,"
    " critical, low-confidence, self_contradiction, or the reason of a failure. Default: all.",
)

run_argument = click.argument("run", default="latest")


def selecting_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --where and --without, by which a command is about some units of a run."""
    where = click.option(
        "--where",
        multiple=True,
        metavar="FIELD=VALUE",
        help="Take only units with this value. Repeat it for more conditions; with the same FIELD"
        " twice, either value will do.",
    )
    without = click.option(
        "--without",
        multiple=True,
        metavar="FIELD=VALUE",
        help="Leave out units with this value. Repeatable.",
    )
    return where(without(command))


def label_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --note and --tag, by which people tell a run from others."""
    note = click.option(
        "--note",
        default="",
        metavar="TEXT",
        callback=_check_lines,
        help="Keep this note with the run. To replace the note of a finished run, run it again:"
        " that costs nothing.",
    )
    tag = click.option(
        "--tag",
        "tags",
        multiple=True,
        metavar="TAG",
        callback=_check_lines,
        help="Keep this tag with the run, in place of those it had. Repeatable.",
    )
    return note(tag(command))


def _check_lines(context: click.Context, option: click.Parameter, value: Any) -> Any:
    """Return a note, or tags each once; raise click.UsageError for a text that is not a line, that
    hides something or is too long, and for too many tags."""
    flag = Code(option.opts[0])
    texts, most = (value, TAG_LENGTH) if option.multiple else ([value], NOTE_LENGTH)
    for text in texts:
        if len(text) > most or " ".join(visible(text).splitlines()) != text or "\t" in text:
            raise click.UsageError(Sentence("cli.not_a_line", flag=flag, n=most))
    if option.multiple and len(texts) > TAGS:
        raise click.UsageError(Sentence("cli.too_many", flag=flag, n=TAGS))
    return tuple(filter(str.strip, dict.fromkeys(texts))) if option.multiple else value.strip()


def mapped_columns(moves: Sequence[str]) -> dict[str, str]:
    """Return what `--map NEW=OLD` says, new name to old; raise click.UsageError."""
    columns: dict[str, str] = {}
    for move in moves:
        new, equals, old = move.partition("=")
        if not (new.strip() and equals and old.strip()):
            raise click.UsageError(Sentence("cli.map_form", move=move))
        columns[new.strip()] = old.strip()
    return columns


def store_at(url: str | None, *, must_exist: bool = True) -> Store:
    """Return the store a command writes to: named, else that of the suite here, else the
    default."""
    return open_store(url or store_here(), must_exist=must_exist)


def archive_at(url: str | None) -> Archive:
    """Return the archive at a place for a command that only reads; raise StoreError if there is
    none."""
    return open_archive(url or store_here())


def store_here() -> str:
    """Return the URL of the store of the suite in this folder, else the default."""
    if Path(FILE).exists():
        return load_suite(Path(FILE), environment()).store_url
    return StoreSpec().url


def store_flag(url: str, folder: Path) -> str:
    """Return what the next command has to say to read this store; nothing if it would find it
    anyway."""
    plain_url = _shorten_url(url, folder)
    with suppress(UsageError):
        if plain_url == _shorten_url(store_here(), Path()):
            return ""
    return f" --store {shlex.quote(plain_url)}"


def _shorten_url(url: str, folder: Path) -> str:
    """Return the URL of a store of a suite in `folder`, as named from here."""
    scheme, _, rest = url.partition(":")
    if scheme != "sqlite" or rest == ":memory:":
        return shown_url(url)
    path, here = (folder / rest.removeprefix("//")).resolve(), Path.cwd()
    return f"sqlite:{path.relative_to(here) if path.is_relative_to(here) else path}"


def resume_advice(url: str) -> str:
    """Return what to do after a run on this store was interrupted: the same command again, which
    continues where something was kept."""
    name = Path(sys.argv[0]).name
    words = ["evenhand" if name.startswith("__main__") else name, *map(_plain, sys.argv[1:])]
    key = "cli.begin_again" if url == MEMORY else "cli.continue"
    return Sentence(key, command=Code(shlex.join(words)))


def _plain(word: str) -> str:
    """Return a word of the command line without the password of a store."""
    flag, equals, url = word.partition("=")
    if flag == "--store" and equals:
        return f"{flag}={shown_url(url)}"
    return shown_url(word)


@contextmanager
def reading(
    url: str | None,
    run: str,
    where: Sequence[str] = (),
    without: Sequence[str] = (),
    *,
    asks_suite: bool = False,
) -> Iterator[tuple[Archive, Recorded]]:
    """Yield a store to read from, in one state until the block ends, and a run in it, or those of
    its units that --where and --without select. Tell on stderr where the suite in this folder is
    not what the run used. A suite file that cannot be read is an error where the command asks it
    something, else told."""
    from evenhand.runs.differences import with_present_suite

    archive = archive_at(url)
    try:
        archive.set_frozen(True)
        recorded = find_run(archive, run)
        if not recorded.imported:
            speaker().choose(recorded.manifest.judging.language)
        try:
            recorded = with_present_suite(recorded, Path(), environment())
        except UsageError as error:
            if asks_suite:
                raise
            notice(Sentence("cli.suite_unread", where=error.where or FILE, what=error.what))
        folder_notice(recorded)
        if where or without:
            from evenhand.results.observations import select  # slow to load

            recorded = select(archive, recorded, where, without)
        yield archive, recorded
    finally:
        archive.close()


def about_run(run: Recorded) -> dict[str, Any]:
    """Return what `--json` begins with: which run, and what of it was selected."""
    return {"run": run.id, "selected": run.selection and run.selection.json()}


def tell_run(run: Recorded, *, stderr: bool = False, heading: str | None = None) -> None:
    """Print the line that names the run of a command, and one about what of it was selected."""
    say = terminal_words()
    named = heading or f"{say('cli.run', run=run.id)}  {run.row.name}"
    click.echo(visible(named), err=stderr)
    if run.selection is not None:
        click.echo(visible(say.message(run.selection.text)), err=stderr)


def print_json(value: Any) -> None:
    """JSON alone on stdout; a number that has none in JSON is null."""
    is_ascii = not is_utf8(sys.stdout)
    try:
        text = json.dumps(value, ensure_ascii=is_ascii, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(value), ensure_ascii=is_ascii)
    click.echo(visible_json(text))


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


def notice(message: str) -> None:
    """Print a line about what is going on, on stderr, in the language of the command."""
    click.echo(terminal_words().message(message), err=True)


def tell(key: str, **values: Value) -> None:
    """Print a line of the result in the language of the command."""
    click.echo(terminal_words().tell(key, values))


def tell_error(error: EvenhandError) -> None:
    """Print an error that does not end the command, on stderr."""
    click.echo(f"evenhand: {error.text(terminal_words().message)}", err=True)


def folder_notice(run: Recorded) -> None:
    """Say on stderr where the suite in this folder is not what a run used."""
    from evenhand.report.terminal.console import console, paragraph
    from evenhand.runs.differences import folder_differences

    if differences := folder_differences(run, Path(), environment()):
        say = terminal_words()
        what = say.join(map(say.message, differences), between="semicolon")
        text = say("runs.suite_differs", run=run.id, what=what)
        console(stderr=True).print(paragraph(text))


def wait(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of asynchronous work. Ctrl-C ends it at once, also while it reads or
    computes: an event loop by itself would let it go on to where it next waits."""
    if threading.current_thread() is not threading.main_thread():
        return run_in_loop(work)
    before = signal.signal(signal.SIGINT, _interrupt)
    try:
        return run_in_loop(work)
    finally:
        signal.signal(signal.SIGINT, before)


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt
