"""Tables of cases, in a TOML file beside the tests."""

import tomllib
from pathlib import Path

import pytest


def cases(test):
    """Run a test with each row of the table of its name: in `names` the names of its parameters, in
    `rows` their values. What a row leaves off at its end is None."""
    file = Path(test.__code__.co_filename).with_suffix(".toml")
    table = tomllib.loads(file.read_text("utf-8"))[test.__name__.removeprefix("test_")]
    names = table["names"]
    rows = [(*row, *[None] * (len(names) - len(row))) for row in table["rows"]]
    return pytest.mark.parametrize(names, rows)(test)
