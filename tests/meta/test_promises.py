"""Every rule of the contracts and every promise about security has tests that show it."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
LEAST = {"contract": {"P": 51, "R": 35, "W": 32, "B": 25}, "security": {"S": 48}}
"""The number of rows of each part of a page: none is to be dropped from it."""


def rows_of(page):
    """Return the cells of the numbered rows of a page."""
    text = (ROOT / "docs" / "internals" / f"{page}.md").read_text("utf-8")
    lines = re.findall(r"^\| ([A-Z]\d+) \| (.+) \|$", text, re.MULTILINE)
    return {ident: cells.split(" | ") for ident, cells in lines}


ROWS = {page: rows_of(page) for page in LEAST}
SHOWN_BY = {
    page: tomllib.loads((TESTS / "meta" / f"{page}.toml").read_text("utf-8")) for page in LEAST
}
"""The tests of each row: a folder or a file below tests/ and the name of a test in it."""


@cache
def defined_tests(place):
    """Return the names of the tests that pytest collects from a file or below a folder."""
    path = TESTS / place
    return {
        node.name
        for file in ([path] if path.is_file() else path.rglob("test_*.py"))
        for node in ast.parse(file.read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
    }


@pytest.mark.parametrize(("page", "ident"), [(page, i) for page in LEAST for i in ROWS[page]])
def test_a_row_names_tests_that_are_there(page, ident):
    assert SHOWN_BY[page][ident], ROWS[page][ident]
    for name in SHOWN_BY[page][ident]:
        place, _, test = name.partition("::")
        assert test in defined_tests(place), name


@pytest.mark.parametrize("page", LEAST)
def test_every_row_is_read_and_numbered(page):
    idents = [f"{part}{n}" for part, least in LEAST[page].items() for n in range(1, least + 1)]
    assert list(SHOWN_BY[page]) == list(ROWS[page]) and set(idents) <= set(ROWS[page])
    for part in {ident[0] for ident in ROWS[page]}:
        numbers = [int(ident[1:]) for ident in ROWS[page] if ident[0] == part]
        assert numbers == list(range(1, len(numbers) + 1))
    assert len({cells[0] for cells in ROWS[page].values()}) == len(ROWS[page])


def test_what_is_not_met_is_said_in_words():
    for _, met in ROWS["contract"].values():
        assert met == "yes" or len(met.split()) > 3


def test_every_file_of_security_tests_stands_behind_a_promise():
    files = {f"security/{path.name}" for path in (TESTS / "security").glob("test_*.py")}
    shown = {name.partition("::")[0] for names in SHOWN_BY["security"].values() for name in names}
    assert files <= shown
