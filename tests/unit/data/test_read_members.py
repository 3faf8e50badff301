"""Objects deep inside one large JSON object, read as a stream."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand import limits
from evenhand.data import jsonrows
from evenhand.errors import DataError

WANTED = (("head",), ("body", "rows"), ("rows",))


def read(text: str, chunk: int = 1 << 18) -> list[tuple[Any, Any]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonrows._Window, "_CHUNK", chunk)
        file = io.BufferedReader(io.BytesIO(text.encode()))  # type: ignore[arg-type]
        return [(keys, value) for keys, value, _ in jsonrows.read_members(file, "f", WANTED)]


def walked(whole: dict[str, Any]) -> list[tuple[Any, Any]]:
    """The same from the parsed whole."""
    found: list[tuple[Any, Any]] = []
    for key, value in whole.items():
        if key in ("head", "rows") and isinstance(value, dict):
            found.append(((key,), value))
        if key == "rows" and isinstance(value, list):
            found += [((key,), one) for one in value]
        if key == "body" and isinstance(value, dict):
            rows = value.get("rows", [])
            found += [
                (("body", "rows"), one) for one in (rows if isinstance(rows, list) else [rows])
            ]
    return found


LEAVES = st.none() | st.booleans() | st.integers() | st.floats(-9, 9) | st.text('a"\\{}[],: é')
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text("ab{"), inner)
)
OBJECTS = st.dictionaries(st.text("ab{"), VALUES, max_size=3)
WHOLES = st.fixed_dictionaries(
    {},
    optional={
        "other": VALUES,
        "head": OBJECTS,
        "body": st.fixed_dictionaries({}, optional={"x": VALUES, "rows": st.lists(OBJECTS)}),
        'a"key': VALUES,
        "rows": st.lists(OBJECTS),
    },
)


@given(WHOLES, st.integers(1, 40), st.sampled_from([None, 1]))
def test_it_finds_what_parsing_the_whole_finds(
    whole: dict[str, Any], chunk: int, indent: int | None
) -> None:
    assert read(json.dumps(whole, indent=indent), chunk) == walked(whole)


def test_what_is_not_wanted_is_never_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LINE_BYTES", 1000)
    text = json.dumps({"other": [{"n": i} for i in range(10_000)], "rows": [{"a": 1}]})
    assert read(text, 100) == [(("rows",), {"a": 1})]


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        '{"a" 1}',
        '{"a": 1 "b": 2}',
        '{"rows": [{}',
        '{"other": [1, 2',
        '{"a',
        "{} {}",
        "{1: 2}",
    ],
)
def test_what_is_no_such_object_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="f:1"):
        read(text)


def test_a_gigantic_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LINE_BYTES", 1000)
    with pytest.raises(DataError, match="a row longer than"):
        read(json.dumps({"other": ["x" * 5000]}), 100)
    with pytest.raises(DataError, match="a row longer than"):
        read(json.dumps({"x" * 5000: 1}), 100)
