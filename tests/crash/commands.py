"""Commands in processes that begin at once: forked from one that has imported them already, so that
many can be started, killed and started again."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from tests.suites import environment

_context = get_context("forkserver")
_context.set_forkserver_preload(["evenhand.cli.run", "asyncpg", __name__])
_PATH = tuple(sys.path)
"""As it is before a test has run: a judge of one suite is not to be found by another's."""
OUT, ERR = "out", "err"
_MOMENT = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d UTC")


def timeless(page: Path) -> bytes:
    """A report without the minute in which its run was started."""
    return _MOMENT.sub(b"", page.read_bytes())


class Command:
    """One command under way; what it says goes to files named after it."""

    def __init__(
        self, name: str, *arguments: str, cwd: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self._said = cwd / name
        values = (str(self._said), arguments, str(cwd), dict(environment(env)), _PATH)
        self._process: ForkServerProcess = _context.Process(target=_call, args=values)
        self._process.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive()

    def kill(self) -> None:
        """kill -9, and wait for it."""
        self._process.kill()
        self._process.join()

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def ended(self) -> int:
        """Its exit code."""
        self._process.join(600)
        assert self._process.exitcode is not None, f"{self._said.name} does not end: {self.said}"
        return self._process.exitcode

    @property
    def said(self) -> str:
        """What it said on stderr so far."""
        path = self._said.with_suffix(f".{ERR}")
        return path.read_text() if path.exists() else ""

    @property
    def printed(self) -> str:
        return self._said.with_suffix(f".{OUT}").read_text()


def _call(
    said: str, arguments: tuple[str, ...], cwd: str, env: dict[str, str], path: tuple[str, ...]
) -> None:
    from evenhand.cli.main import main

    os.chdir(cwd)
    sys.path[:] = path
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["evenhand", *arguments]
    with (
        open(f"{said}.{OUT}", "w") as out,  # noqa: PTH123 - the names are texts here
        open(f"{said}.{ERR}", "w", buffering=1) as err,  # noqa: PTH123
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        main()
