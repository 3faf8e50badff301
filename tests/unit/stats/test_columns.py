"""Fields numbered many rows at a time, against the same done row by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand import jsontext
from evenhand.stats import columns
from evenhand.stats.columns import Columns

VALUES = st.sampled_from(["a", "b", "", None, 1, 1.5, True, ["a"]])
ROWS = st.lists(st.dictionaries(st.sampled_from("xyz"), VALUES), max_size=20)


def numbered(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[str | None]]:
    """What each field says of each row, in the order in which fields first say anything."""
    names = dict.fromkeys(name for row in rows for name, value in row.items() if value is not None)
    return {name: [_text(row.get(name)) for row in rows] for name in names}


def _text(value: object) -> str | None:
    return None if value is None else jsontext.as_text(value)


@given(ROWS, st.integers(1, 5))
def test_rows_of_any_fields_are_numbered_as_they_come(
    rows: list[dict[str, Any]], block: int
) -> None:
    table = Columns()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "_BLOCK", block)
        for row in rows:
            table.add(row)
        fields = table.fields()
    texts = {
        name: [None if code < 0 else field.levels[code] for code in field.codes.tolist()]
        for name, field in fields.items()
    }
    assert list(texts.items()) == list(numbered(rows).items())
    for name, field in fields.items():
        firsts = dict.fromkeys(text for text in texts[name] if text is not None)
        assert list(field.levels) == list(firsts)
