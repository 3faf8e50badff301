"""A real PostgreSQL server for the tests: one for each test process, in a folder of its own, on a
socket and a free port of the loopback; ended with the process, however that ends.

Where there is no server to start, the tests that need one are left out, and said to be.
"""

from __future__ import annotations

import atexit
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from functools import cache
from itertools import count
from pathlib import Path

import pytest

from tests.waiting import awaited

_FOLDERS = ("/usr/lib/postgresql", "/usr/local/pgsql", "/opt/homebrew/opt/postgresql")
_SETTINGS = (
    *("max_connections=100", "shared_buffers=32MB", "autovacuum=off", "log_min_messages=fatal"),
    *("max_wal_size=256MB", "listen_addresses=127.0.0.1"),
)
QUICK = ("fsync=off", "full_page_writes=off")
"""For servers whose machine never crashes."""
LOCKED = "locked"
"""A database whose users need a password; made by whoever needs it."""
_ACCESS = (
    "local all all trust",
    f"host {LOCKED} all 127.0.0.1/32 scram-sha-256",
    "host all all 127.0.0.1/32 trust",
    "host replication all 127.0.0.1/32 trust",
)
USER, PASSWORD = "evenhand_tester", "s3cret-Pa55:w@rd/#?"
_WATCH = (
    "import shutil, subprocess, sys; sys.stdin.read(); subprocess.run(sys.argv[2:]);"
    " shutil.rmtree(sys.argv[1], ignore_errors=True)"
)
_numbers = count(1)


def _programs():
    """The folder of the server's programs: EVENHAND_POSTGRES, or where they usually are."""
    if named := os.environ.get("EVENHAND_POSTGRES"):
        return Path(named) if Path(named, "postgres").exists() else None
    found = shutil.which("postgres")
    if found:
        return Path(found).resolve().parent
    folders = [path for root in _FOLDERS for path in Path(root).glob("**/bin/postgres")]
    return max(folders).parent if folders else None


def _as_owner(*command):
    """A command as a user whom PostgreSQL lets be: it refuses root."""
    words = [str(word) for word in command]
    return ["runuser", "-u", "postgres", "--", *words] if os.geteuid() == 0 else words


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class PostgresServer:
    """A server of its own, which can be stopped, killed and started again."""

    def __init__(self, programs, settings=QUICK):
        self._programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="evenhand-pg-", dir="/tmp"))
        self.folder.chmod(0o700)
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres", "postgres")
        self.data, self.port, self._settings = self.folder / "data", free_port(), settings
        self._watch = self._watched()
        atexit.register(self.end)

    def _watched(self):
        """A process that stops the server and removes it when this one is no more, however it
        ends: the pipe between them is closed then."""
        stop = _as_owner(self._programs / "pg_ctl", "-D", self.data, "-m", "immediate", "stop")
        return subprocess.Popen(
            [sys.executable, "-c", _WATCH, str(self.folder), *stop],
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def make(self):
        """A new cluster whose users need no password, but for the database `locked`."""
        options = (
            "--auth=trust",
            "--no-sync",
            "--encoding=UTF8",
            "--no-locale",
            "--no-instructions",
        )
        self._run("initdb", "-D", self.data, "-U", USER, *options)
        rules = "".join(f"{line}\n" for line in _ACCESS)
        (self.data / "pg_hba.conf").write_text(rules, encoding="ascii")

    def start(self, *settings):
        """Start it, and wait until it answers; `settings` are added to its own."""
        values = [*_SETTINGS, *self._settings, *settings, f"port={self.port}"]
        options = " ".join(f"-c {value}" for value in values)
        options += f" -c unix_socket_directories={self.folder}"
        log = self.folder / "log"
        self._run("pg_ctl", "-D", self.data, "-w", "-t", "60", "-l", log, "-o", options, "start")

    def stop(self, mode="fast"):
        """Stop it; `immediate` is a crash of the server."""
        self._run("pg_ctl", "-D", self.data, "-w", "-m", mode, "stop", check=False)

    def _run(self, program, *arguments, check=True):
        done = subprocess.run(
            _as_owner(self._programs / program, *arguments),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if check and done.returncode:
            log = self.folder / "log"
            said = log.read_text() if log.exists() else ""
            raise AssertionError(f"{program}: {done.stdout}\n{said}")

    def end(self):
        """Stop it, and remove all of it."""
        if self.folder.exists():
            self.stop("immediate")
            shutil.rmtree(self.folder, ignore_errors=True)
        self._watch.communicate()

    def standby(self):
        """A server that follows this one, and can be read."""
        follower = PostgresServer(self._programs, self._settings)
        source = f"postgresql://{USER}@127.0.0.1:{self.port}"
        options = ("-R", "-X", "stream", "-c", "fast", "-d", source)
        follower._run("pg_basebackup", *options, "-D", follower.data)
        follower.start()
        return follower

    def wait_for(self, leader):
        """Wait until all that a server has written has come here."""
        [(place,)] = leader.execute("SELECT CAST(pg_current_wal_flush_lsn() AS TEXT)")
        here = f"SELECT pg_last_wal_replay_lsn() >= '{place}'"
        awaited(lambda: self.execute(here) == [(True,)], "what the leader has written")

    def promote(self):
        self._run("pg_ctl", "-D", self.data, "-w", "promote")

    def url(self, schema="", user=USER, database="postgres"):
        """The address of a store: of a schema, in the database that every cluster has."""
        option = f"?schema={schema}" if schema else ""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}{option}"

    def execute(self, *statements):
        """What the last of some statements gives, to its owner."""
        import asyncpg

        from evenhand.store.postgres import DriverThread

        async def work():
            connection = await asyncpg.connect(self.url())
            try:
                rows = [await connection.fetch(statement) for statement in statements]
                return [tuple(row) for row in rows[-1]]
            finally:
                await connection.close()

        thread = DriverThread()  # also where an event loop is running
        try:
            return thread.run(work())
        finally:
            thread.close()


@cache
def _shared():
    programs = _programs()
    if programs is None:
        return None
    server = PostgresServer(programs)
    server.make()
    server.start()
    return server


def shared_server():
    """The server of this test process; skips where there is none."""
    server = _shared()
    if server is None:
        pytest.skip("there is no PostgreSQL server (scripts/postgres installs it)")
    return server


def own_server(*settings):
    """A server for one test, which may be killed; to be ended by whoever asked for it."""
    programs = _programs()
    if programs is None:
        pytest.skip("there is no PostgreSQL server (scripts/postgres installs it)")
    server = PostgresServer(programs, settings or QUICK)
    server.make()
    server.start()
    return server


def new_store_url():
    """The address of a store that nobody has made yet."""
    return shared_server().url(f"store_{next(_numbers)}")
