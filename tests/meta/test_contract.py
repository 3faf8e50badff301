"""Every rule of the contracts has tests that show it."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
PAGE = (ROOT / "docs" / "internals" / "contract.md").read_text(encoding="utf-8")
ROW = re.compile(r"\| ([PRWB]\d+) \| (.+?) \| (.+?) \|")
LEAST = {"P": 51, "R": 35, "W": 32, "B": 25}
"""The number of rules of each part: none is to be dropped from the page."""
SHOWN_BY = tomllib.loads(TESTS.joinpath("meta", "contract.toml").read_text(encoding="utf-8"))
"""The tests of each rule, each a folder and the name of a test below it."""


class Rule(NamedTuple):
    id: str
    text: str
    met: str


RULES = [Rule(*row.groups()) for row in map(ROW.fullmatch, PAGE.splitlines()) if row]


@cache
def collected_tests(folder):
    """Return the names of the tests that pytest collects below a folder."""
    return frozenset(
        node.name
        for path in TESTS.joinpath(folder).rglob("test_*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_names_tests_that_are_there(rule):
    assert SHOWN_BY[rule.id], rule.text
    for test in SHOWN_BY[rule.id]:
        folder, _, name = test.partition("::")
        assert name in collected_tests(folder), test


def test_every_row_is_read_and_numbered():
    rows = [line for line in PAGE.splitlines() if re.match(r"\| [A-Z]\d", line)]
    assert len(rows) == len(RULES)
    assert list(SHOWN_BY) == [rule.id for rule in RULES]
    for letter, least in LEAST.items():
        numbers = [int(rule.id[1:]) for rule in RULES if rule.id[0] == letter]
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) >= least
    assert len({rule.text for rule in RULES}) == len(RULES)


def test_what_is_not_met_is_said_in_words():
    assert all(rule.met == "yes" or len(rule.met.split()) > 3 for rule in RULES)
