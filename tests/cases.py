"""Tables of cases, in a TOML file beside the tests."""

import tomllib
from pathlib import Path

import pytest


def table_rows(file, name):
    """Return the rows of a table in the TOML file beside a test file, for a test that goes through
    all of them in one set-up."""
    return tomllib.loads(Path(file).with_suffix(".toml").read_text("utf-8"))[name]["rows"]


def cases(test):
    """Run a test with each row of the table of its name: in `names` the names of its parameters, in
    `rows` their values, a list or under a title each. What a row leaves off at its end is None."""
    file = Path(test.__code__.co_filename).with_suffix(".toml")
    table = tomllib.loads(file.read_text("utf-8"))[test.__name__.removeprefix("test_")]
    names, rows = table["names"], table["rows"]
    titles = [*rows] if isinstance(rows, dict) else None
    values = [rows[title] for title in titles] if titles else rows
    if len(names) == 1:
        return pytest.mark.parametrize(names[0], values, ids=titles)(test)
    padded = [(*row, *[None] * (len(names) - len(row))) for row in values]
    return pytest.mark.parametrize(names, padded, ids=titles)(test)
