"""Every rule of the contracts names tests that are there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "internals" / "contract.md").read_text(encoding="utf-8")
ROW = re.compile(r"\| ([PRWB]\d+) \| (.+?) \| (.*?) \| (.+?) \|")
LEAST = {"P": 45, "R": 30, "W": 28, "B": 18}
"""So many rules each part has at least: none is to be dropped from the page."""


class Rule(NamedTuple):
    id: str
    text: str
    tests: list[str]
    met: str


RULES = [
    Rule(row[1], row[2], re.findall(r"`([^`]+)`", row[3]), row[4])
    for row in map(ROW.fullmatch, PAGE.splitlines())
    if row
]


@cache
def functions(path: Path) -> frozenset[str]:
    """The tests of a file that pytest would collect."""
    if not re.fullmatch(r"test_\w+\.py", path.name) or not path.is_file():
        return frozenset()
    nodes = ast.parse(path.read_text(encoding="utf-8")).body
    tests = (node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(node.name for node in tests if node.name.startswith("test_"))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_names_tests_that_are_there(rule: Rule) -> None:
    assert rule.tests, rule.text
    for name in rule.tests:
        file, _, test = name.partition("::")
        assert test in functions(ROOT / "tests" / file), name


def test_every_row_is_read_and_numbered() -> None:
    rows = [line for line in PAGE.splitlines() if re.match(r"\| [A-Z]\d", line)]
    assert len(rows) == len(RULES)
    for letter, least in LEAST.items():
        numbers = [int(rule.id[1:]) for rule in RULES if rule.id[0] == letter]
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) >= least
    assert len({rule.text for rule in RULES}) == len(RULES)


def test_what_is_not_met_is_said_in_words() -> None:
    assert all(rule.met == "yes" or len(rule.met.split()) > 3 for rule in RULES)
