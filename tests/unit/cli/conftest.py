"""The command line called in this process, through the same `main` as the console script."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from shutil import copytree
from typing import NamedTuple

import pytest
from rich.cells import cell_len

from evenhand.cli.main import main
from evenhand.data.write import write
from evenhand.runs.stores import open_archive
from tests.sentences import is_told
from tests.suites import pair_row, write_pairs, write_suite
from tests.unit.cli.weekly import LAST, ROWS, judged_folder


class Said(NamedTuple):
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def answer(self):
        """What stdout says below the line that names the run."""
        return self.out.partition("\n")[2]

    @property
    def json(self):
        """All of stdout, which must be one JSON value and nothing else."""
        return json.loads(self.out)

    @property
    def text(self):
        """All of stdout on one line."""
        return " ".join(self.out.split())

    @property
    def width(self):
        """The columns of a terminal that stdout takes."""
        return max(map(cell_len, self.out.splitlines()))


class CallCommand:
    """Calls `evenhand ...`, and fails the test where the command must not fail. The first argument
    is the command line as a user types it; more are words of their own, with their blanks."""

    def __init__(self, monkeypatch, capsys):
        self._patch, self._capsys = monkeypatch, capsys

    def __call__(self, line, *words):
        words = [newest_run() if word == NEWEST else word for word in (*shlex.split(line), *words)]
        self._patch.setattr(sys, "argv", ["evenhand", *words])
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main()
        out, err = self._capsys.readouterr()
        assert isinstance(left.value.code, int)
        return Said(left.value.code, out, err)

    def ok(self, line, *words):
        """What a command says that must work."""
        said = self(line, *words)
        assert said.code == 0, said.err
        return said

    def json(self, line, *words):
        """The answer as JSON of a command that must work."""
        return self.ok(line, *words, "--json").json

    def run(self, options=""):
        """Judge the suite, and return the id of the run."""
        return str(self.json(f"run {options}")["run"])

    def export(self, line="", *words):
        """The rows that `export` writes as JSON lines."""
        said = self.ok(f"export {line} -o -", *words)
        return [json.loads(row) for row in said.out.splitlines()]

    def take(self, kind, rows, name="rows"):
        """Import rows, and return the id of the run."""
        write(Path(f"{name}.jsonl"), rows)
        return str(self.json(f"import {name}.jsonl --kind {kind} --name {name}")["run"])

    def refused(self, line, *words, code=2, key="", says=()):
        """What stderr says, on one line, of a command that must be refused: the sentence of this
        key, with these parts."""
        said = self(line, *words)
        assert (said.code, said.out) == (code, ""), (line, said)
        error = " ".join(said.err.split())
        assert not key or is_told(error, key), error
        assert all(part in error for part in says), error
        return error

    def narrow(self, columns=80):
        """Make the terminal as narrow as this."""
        self._patch.setenv("COLUMNS", str(columns))


def values(answer, names):
    """These values of an answer, in order."""
    return [answer[name] for name in names.split()]


def put(name, text):
    """Write a text file here."""
    Path(name).write_text(text, encoding="utf-8")


NEWEST = "<newest>"
"""Among the words of a command: the id of the run that came last into the store, an import too."""


def newest_run():
    """Return the id of the run that came last into the store here."""
    archive = open_archive("sqlite:evenhand.db")
    try:
        return archive.runs()[0].id
    finally:
        archive.close()


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Calls `evenhand ...` in tmp_path."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    return CallCommand(monkeypatch, capsys)


@pytest.fixture
def mixed(call):
    """A run of three units by two judges, one of which fails."""
    write_suite(Path(), 3, "good", "bad")
    return str(call("run --json").json["run"])


LEANING_JUDGE = """
import json, re
BLOCK = re.compile(r"\\[\\[(\\w+) ([0-9a-f]+)\\]\\]\\n(.*?)\\n\\[\\[/\\1 \\2\\]\\]", re.DOTALL)

async def judge(messages, schema, params):
    "Prefers what it sees first, and says what that is."
    shown = {name: text for name, _, text in BLOCK.findall(messages[-1]["content"])}
    criteria = {
        c: {"first_meets": True, "second_meets": False, "comment": f"{c} says so", "mark": "A+"}
        for c in ("C1", "C2", "C3", "C4", "C5")
    }
    explanation = f"Candidate 1 says {shown['candidate_1']}"
    return json.dumps({"criteria": criteria, "explanation": explanation, "winner": "A"})
"""


def leaning(folder, number=2):
    """Pairs in one round, by a judge that prefers what it sees first."""
    rows = [pair_row(f"p{i}", 1, 2, topic=f"Topic {i}?") for i in range(number)]
    return write_pairs(folder, rows, "judge", judge=LEANING_JUDGE, settings={"max_rounds": 1})


@pytest.fixture
def no_keys(monkeypatch):
    """As on a machine that has no key."""
    for name in ("OPENAI", "ANTHROPIC", "GEMINI", "GOOGLE", "OPENROUTER"):
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)


@pytest.fixture
def no_ci(monkeypatch):
    """As on a machine that is no CI."""
    for name in ("CI", "GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def weekly_folder(tmp_path_factory):
    return judged_folder(tmp_path_factory.mktemp("weekly"), LAST, ROWS)


@pytest.fixture
def weeks(call, weekly_folder, tmp_path):
    """The samples of last week and of this one, judged in tmp_path."""
    copytree(weekly_folder, tmp_path, dirs_exist_ok=True)
