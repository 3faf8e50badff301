"""Each odd run is made once, and every command is called in this process."""

import contextlib
import io
import os
import sys
from pathlib import Path
from unittest import mock

import pytest

from evenhand.cli.main import main
from tests.matrix.worlds import IMPORTS, WORLDS
from tests.unit.cli.conftest import Said, newest_run


@contextlib.contextmanager
def _within(folder):
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


READING = ("show", "export", "settle", "compare", "leaderboard", "agreement", "gate", "report")


class Place:
    """The folder of a world, in which commands can be called."""

    def __init__(self, world, folder):
        self.world, self.folder = world, folder

    def call(self, *arguments):
        """`evenhand ...` as a user calls it; a crash is an exit code of 70. What reads is told the
        run by its id: an import is never `latest`."""
        command, *rest = arguments
        if command in READING:
            with _within(self.folder):
                rest = [newest_run(), *rest[rest[:1] == ["latest"] :]]
        arguments = (command, *rest)
        out, err = io.StringIO(), io.StringIO()
        argv = mock.patch.object(sys, "argv", ["evenhand", *arguments])
        environment = mock.patch.dict(os.environ, {"COLUMNS": "100", "OPENAI_API_KEY": "none"})
        with (
            _within(self.folder),
            argv,
            environment,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            pytest.raises(SystemExit) as left,
        ):
            main()
        assert isinstance(left.value.code, int)
        said = Said(left.value.code, out.getvalue(), err.getvalue())
        assert said.code != 70, said.err
        assert "Traceback" not in said.err
        return said


@pytest.fixture(scope="session", params=WORLDS, ids=lambda world: world.name)
def place(request, tmp_path_factory):
    """A folder with one odd run in its store."""
    world = request.param
    made = Place(world, tmp_path_factory.mktemp(world.name))
    world.build(made.folder)
    if world.origin == "imported":
        file, kind = IMPORTS[world.kind]
        taken = made.call("import", file, "--kind", kind)
        assert taken.code == 0, taken.err
    return made
