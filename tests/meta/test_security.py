"""Every promise about security has tests that show it, and every test of security stands behind a
promise."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "internals" / "security.md"
ROW = re.compile(r"\| (S\d+) \| (.+?) \|")
PROMISES = dict(
    row.groups() for row in map(ROW.fullmatch, PAGE.read_text("utf-8").splitlines()) if row
)
SHOWN_BY = tomllib.loads(TESTS.joinpath("meta", "security.toml").read_text(encoding="utf-8"))
"""The tests of each promise: a file below tests/ and the name of a test in it."""
LEAST = 48
"""The number of promises: none is to be dropped from the page."""


@cache
def defined_tests(file):
    """Return the names of the tests that pytest collects from a file."""
    if not file.is_file() or not file.name.startswith("test_"):
        return set()
    nodes = ast.parse(file.read_text(encoding="utf-8")).body
    functions = (node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {node.name for node in functions if node.name.startswith("test_")}


@pytest.mark.parametrize("promise", PROMISES)
def test_a_promise_names_tests_that_are_there(promise):
    assert SHOWN_BY[promise], PROMISES[promise]
    for name in SHOWN_BY[promise]:
        file, _, test = name.partition("::")
        assert test in defined_tests(TESTS / file), name


def test_every_promise_is_read_and_numbered():
    assert list(PROMISES) == [f"S{number}" for number in range(1, len(PROMISES) + 1)]
    assert len(PROMISES) >= LEAST and list(SHOWN_BY) == list(PROMISES)
    assert len(set(PROMISES.values())) == len(PROMISES)


def test_every_file_of_security_tests_stands_behind_a_promise():
    files = {f"security/{path.name}" for path in (TESTS / "security").glob("test_*.py")}
    assert files <= {name.partition("::")[0] for names in SHOWN_BY.values() for name in names}
