"""Reading a run costs what it must: the text of a unit is parsed once in each pass over the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from click.testing import CliRunner

from evenhand.cli.main import cli
from evenhand.kinds import samples
from evenhand.kinds.pairwise import unit as pairs
from evenhand.kinds.weighted import kind as answers
from tests.suites import write_answers, write_pairs, write_suite

UNITS = 5


class Case(NamedTuple):
    """A kind, and how many passes a command makes over units; a page re-plays each judgment too.
    `alone` are units that are read by themselves: the few that changed most."""

    write: Callable[..., Path]
    module: Any
    passes: dict[str, int]
    alone: Mapping[str, int] = MappingProxyType({})


CASES = {
    # A listing reads each unit for its question. Figures of pairs read observations alone.
    "pairwise": Case(
        write_pairs,
        pairs,
        {"compare": 0, "leaderboard": 0, "show": 2, "report": 2, "run": 1},
        {"report": 4},
    ),
    "rubric": Case(write_suite, samples, {"show": 3, "report": 2, "run": 2}),
    "weighted": Case(write_answers, answers, {"show": 3, "report": 2, "run": 2}),
}


class Counted:
    """A reader that counts the texts it reads, together with others."""

    def __init__(self, reader, texts):
        self.reader, self.texts = reader, texts

    def read(self, text):
        self.texts.append(text)
        return self.reader.read(text)

    def read_all(self, texts):
        self.texts += texts
        return self.reader.read_all(texts)


READERS = ("_body", "_measured")
"""Whatever a kind reads the texts of its units by."""


def counting(module, patch):
    """The texts that a module will read from now on."""
    texts = []
    for name in READERS:
        if reader := getattr(module, name, None):
            plain = reader.reader if isinstance(reader, Counted) else reader
            patch.setattr(module, name, Counted(plain, texts))
    return texts


@pytest.mark.parametrize("kind", CASES)
def test_a_pass_over_a_run_parses_each_unit_once(kind, tmp_path, monkeypatch):
    case, runner = CASES[kind], CliRunner()
    case.write(tmp_path, UNITS)
    monkeypatch.chdir(tmp_path)
    counting(case.module, monkeypatch)
    assert runner.invoke(cli, ["run", "."], standalone_mode=False).return_value == 0
    counts = {}
    for command in case.passes:
        texts = counting(case.module, monkeypatch)
        result = runner.invoke(cli, ["run", "."] if command == "run" else [command, "latest"])
        assert result.exit_code == 0, result.output
        counts[command] = Counter(texts)
    assert {name: sum(count.values()) for name, count in counts.items()} == {
        name: UNITS * passes + case.alone.get(name, 0) for name, passes in case.passes.items()
    }
    assert {name: max(count.values(), default=0) for name, count in counts.items()} == {
        name: passes + (name in case.alone) for name, passes in case.passes.items()
    }
