"""Every promise about security names tests that are there, and every test of security stands behind
a promise."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
ROW = re.compile(r"\| S(\d+) \| (.+?) \| (.+?) \|")
PROMISES = [row.groups() for row in map(ROW.fullmatch, PAGE.splitlines()) if row]
LEAST = 40
"""So many promises there are at least: none is to be dropped from the page."""


@cache
def defined_tests(file: Path) -> set[str]:
    """Return the names of the tests that pytest collects from a file."""
    if not file.is_file() or not file.name.startswith("test_"):
        return set()
    nodes = ast.parse(file.read_text(encoding="utf-8")).body
    functions = (node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {node.name for node in functions if node.name.startswith("test_")}


@pytest.mark.parametrize(("number", "text", "shown"), PROMISES, ids=[row[0] for row in PROMISES])
def test_a_promise_names_tests_that_are_there(number: str, text: str, shown: str) -> None:
    names = re.findall(r"`([^`]+)`", shown)
    assert names, text
    for name in names:
        file, _, test = name.partition("::")
        assert test in defined_tests(ROOT / "tests" / file), name


def test_every_row_is_read_and_numbered() -> None:
    assert len(PROMISES) == len(re.findall(r"^\| S\d", PAGE, re.MULTILINE)) >= LEAST
    assert [int(number) for number, _, _ in PROMISES] == list(range(1, len(PROMISES) + 1))


def test_every_file_of_security_tests_stands_behind_a_promise() -> None:
    files = {f"security/{path.name}" for path in (ROOT / "tests" / "security").glob("test_*.py")}
    assert files <= {name.partition("::")[0] for name in re.findall(r"`([^`]+)`", PAGE)}


def test_files_that_the_page_names_are_there() -> None:
    for name in re.findall(r"`(tests/[\w/.]+)`", PAGE):
        assert (ROOT / name).is_file(), name
