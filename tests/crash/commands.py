"""Commands in processes that begin at once: forked from one that has imported them already, so that
many can be started, killed and started again."""

import os
import re
import sys
from contextlib import redirect_stderr, redirect_stdout
from multiprocessing import get_context

from tests.suites import environment

_context = get_context("forkserver")
_context.set_forkserver_preload(["evenhand.cli.run", "asyncpg", __name__])
_PATH = tuple(sys.path)
"""As it is before a test has run: a judge of one suite is not to be found by another's."""
OUT, ERR = "out", "err"
_MOMENT = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d UTC")


def timeless(page):
    """A report without the minute in which its run was started."""
    return _MOMENT.sub(b"", page.read_bytes())


class Command:
    """One command under way; what it says goes to files named after it."""

    def __init__(self, name, *arguments, cwd, env=None):
        self._said = cwd / name
        values = (str(self._said), arguments, str(cwd), dict(environment(env)), _PATH)
        self._process = _context.Process(target=_call, args=values)
        self._process.start()

    @property
    def pid(self):
        assert self._process.pid is not None
        return self._process.pid

    @property
    def is_alive(self):
        return self._process.is_alive()

    def kill(self):
        """kill -9, and wait for it."""
        self._process.kill()
        self._process.join()

    def signal(self, number):
        os.kill(self.pid, number)

    def ended(self):
        """Its exit code."""
        self._process.join(600)
        assert self._process.exitcode is not None, f"{self._said.name} does not end: {self.said}"
        return self._process.exitcode

    @property
    def said(self):
        """What it said on stderr so far."""
        path = self._said.with_suffix(f".{ERR}")
        return path.read_text() if path.exists() else ""

    @property
    def printed(self):
        return self._said.with_suffix(f".{OUT}").read_text()


def _call(said, arguments, cwd, env, path):
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
