"""Commands called as a user would, on rows of published records."""

from __future__ import annotations

import json
import shlex
import sys

import pytest

from evenhand.cli.main import main
from tests.published.data import folder
from tests.unit.cli.conftest import NEWEST, newest_run


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Calls a command as a user would, and reads its JSON."""
    folder()
    monkeypatch.chdir(tmp_path)

    def called(line, *words):
        words = [newest_run() if word == NEWEST else word for word in (*shlex.split(line), *words)]
        monkeypatch.setattr(sys, "argv", ["evenhand", *words, "--json"])
        with pytest.raises(SystemExit) as left:
            main()
        assert left.value.code == 0
        return json.loads(capsys.readouterr().out)

    return called
