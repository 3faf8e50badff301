"""While a run is judged: progress on stderr, and what Ctrl-C does.

On a terminal the line is redrawn in place; elsewhere a plain line is written now and then.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from evenhand.cli.language import terminal_words
from evenhand.engine.progress import Progress, Tally
from evenhand.engine.stop import Stop
from evenhand.errors import Interrupted
from evenhand.report.terminal.stream import raw_stream
from evenhand.report.terminal.tables import cut
from evenhand.runs.judge import Watch
from evenhand.text import visible
from evenhand.words import Sentence, escape

TERMINAL_SECONDS, PLAIN_SECONDS = 0.2, 10.0
BAR = 20


class Watcher:
    """Draws progress, tells notices without spoiling it, and minds the signals of one command;
    `advice` is what to do after an interruption."""

    def __init__(self, advice: str) -> None:
        self._advice, self._say = advice, terminal_words()
        self._terminal = sys.stderr.isatty()
        self._told: dict[str, int] = {}

    def notice(self, message: str) -> None:
        """Tell the first of its kind, then the 10th, the 100th and so on. Times and ids, which
        hold digits, do not tell kinds apart."""
        kind = re.sub(r"\w*\d[\w.,]*", "0", message)
        count = self._told[kind] = self._told.get(kind, 0) + 1
        if str(count).strip("0") == "1":
            again = "cli.trying_again" if count == 1 else "cli.trying_again_n"
            self._write(self._say.tell(again, {"what": message, "n": count}), end="\n")

    def tell(self, message: str) -> None:
        """Print a line about what has happened."""
        told = self._say.message(message)
        self._write(told if isinstance(message, Sentence) else escape(told), end="\n")

    @property
    def watch(self) -> Watch:
        return self._watch

    @contextmanager
    def _watch(self, tally: Tally, planned: int, stop: Stop) -> Iterator[None]:
        progress, loop = Progress(tally, planned), asyncio.get_running_loop()
        ticking = loop.create_task(self._tick(progress))
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(NotImplementedError, ValueError, RuntimeError):
                loop.add_signal_handler(number, self._on_interrupt, stop)
        try:
            yield
        finally:
            ticking.cancel()
            self._write(self._line(progress), end="\n")
            for number in (signal.SIGINT, signal.SIGTERM):
                with suppress(NotImplementedError, ValueError, RuntimeError):
                    loop.remove_signal_handler(number)

    def _on_interrupt(self, stop: Stop) -> None:
        if isinstance(stop.cause, Interrupted):
            self.tell(Sentence("cli.left_at_once", advice=self._advice))
            os._exit(Interrupted.exit_code)
        stop.request(Interrupted(Sentence("cli.interrupted"), advice=self._advice))
        self.tell(Sentence("cli.stopping"))

    async def _tick(self, progress: Progress) -> None:
        while True:
            if self._terminal:
                self._write(self._line(progress))
            await asyncio.sleep(TERMINAL_SECONDS if self._terminal else PLAIN_SECONDS)
            if not self._terminal:
                self._write(self._line(progress), end="\n")

    def _line(self, progress: Progress) -> str:
        line = progress.line(self._say)
        if not self._terminal:
            return line
        filled = BAR * progress.done // max(1, progress.planned)
        bar = "█" * filled + "░" * (BAR - filled)
        return cut(f"{bar} {line}", shutil.get_terminal_size().columns - 1)

    def _write(self, line: str, end: str = "") -> None:
        clear = "\r\x1b[2K" if self._terminal else ""
        raw_stream(sys.stderr).write(f"{clear}{visible(line)}{end}")
        sys.stderr.flush()
