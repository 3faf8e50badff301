"""`evenhand worker`."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from evenhand.cli.common import notice, store_at, store_option, wait
from evenhand.cli.trust import trust_option, users_trust
from evenhand.cli.watch import Watcher
from evenhand.cluster.plan import Surroundings
from evenhand.cluster.worker import Orders, WorkerLoop
from evenhand.errors import EvenhandError, Interrupted
from evenhand.judges.environment import environment
from evenhand.ledger.ports import Store
from evenhand.runs.recorded import find_run


@click.command("worker")
@store_option
@click.option("--run", metavar="RUN", help="Judge this run only, and end with it.")
@click.option(
    "--idle-exit",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="End after so many seconds without work. Default: wait for more.",
)
@trust_option
def worker_command(
    store: str | None, run: str | None, idle_exit: float | None, trusted: Sequence[str]
) -> int:
    """Judge what is open in a PostgreSQL store, beside `run` and other workers.

    All that judging takes comes from the store; keys come from the environment here. Any number may
    be started, anywhere, and ended at any moment: what one leaves, others take over. Ctrl-C stops
    new calls, waits for those under way and hands the rest back; a second Ctrl-C leaves at once.

    \b
    evenhand worker --store postgresql://evenhand@db/evenhand
    evenhand worker --run latest                   one run, then end
    evenhand worker --idle-exit 600                end after ten minutes without work
    """
    opened = store_at(store)
    try:
        return _work(opened, run, idle_exit, trusted)
    finally:
        opened.close()


def _work(store: Store, run: str | None, idle_exit: float | None, trusted: Sequence[str]) -> int:
    ident = None if run is None else find_run(store.archive, run).id
    here = Surroundings(folder=Path(), environment=environment(Path()), trust=users_trust(trusted))
    watcher = Watcher("")
    orders = Orders(run=ident, idle_exit=idle_exit, tell=notice, notice=watcher.notice)
    loop = WorkerLoop(store, here, orders)
    cause = wait(_until_told(loop))
    if cause is not None:
        notice(f"evenhand: {cause}")
        return cause.exit_code
    return 0


async def _until_told(loop: WorkerLoop) -> EvenhandError | None:
    with _minding_signals(loop):
        return await loop.work()


@contextmanager
def _minding_signals(loop: WorkerLoop) -> Iterator[None]:
    """The first Ctrl-C, or SIGTERM, has the worker leave in good order; the second at once."""
    events = asyncio.get_running_loop()

    def leave() -> None:
        if not loop.leave(Interrupted("interrupted", advice="Others go on with what is left.")):
            os._exit(Interrupted.exit_code)
        notice("stopping: waiting for calls under way; Ctrl-C again leaves at once")

    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError, ValueError, RuntimeError):
            events.add_signal_handler(number, leave)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(NotImplementedError, ValueError, RuntimeError):
                events.remove_signal_handler(number)
