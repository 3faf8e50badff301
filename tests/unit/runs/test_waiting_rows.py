"""Rows that wait as numbers come back by unit and judge, each in the order in which it came."""

from __future__ import annotations

import random

import numpy as np
import pytest

from evenhand.runs.imports.waiting_rows import NOTHING, WaitingRows

Row = tuple[int, int, int, float | None, int]


def by_hand(rows: list[Row], owners: list[int]) -> dict[tuple[int, int], list[Row]]:
    groups: dict[tuple[int, int], list[Row]] = {}
    for row in rows:
        groups.setdefault((owners[row[0]], row[1]), []).append(row)
    return dict(sorted(groups.items()))


@pytest.mark.parametrize("block", [1, 3, 1 << 14])
@pytest.mark.parametrize("order", ["in order", "shuffled"])
def test_rows_come_back_by_unit_and_judge(
    monkeypatch: pytest.MonkeyPatch, block: int, order: str
) -> None:
    monkeypatch.setattr("evenhand.runs.imports.waiting_rows.BLOCK_ROWS", block)
    draw = random.Random(3)
    rows: list[Row] = [
        (unit, draw.randrange(3), number, draw.choice((None, 0.5, 2.0)), draw.choice((NOTHING, 7)))
        for unit in range(1, 9)
        for number in range(draw.randrange(1, 6))
    ]
    if order == "shuffled":
        draw.shuffle(rows)
    waiting = WaitingRows()
    for start in range(0, len(rows), 4):
        some = rows[start : start + 4]
        waiting.add(*(list(column) for column in zip(*some, strict=True)), len(some))
    owners = [0, 1, 2, 1, 4, 4, 6, 7, 1]
    for of, named in ((list(range(9)), None), (owners, np.array(owners))):
        units = list(waiting.judged(named))
        assert all(len({group.unit for group in unit}) == 1 for unit in units)
        judged = [group for unit in units for group in unit]
        expected = by_hand(rows, of)
        assert len(units) == len({unit for unit, _ in expected})
        assert [(group.unit, group.judge) for group in judged] == list(expected)
        for group, there in zip(judged, expected.values(), strict=True):
            assert group.said == tuple(row[2] for row in there)
            assert group.numbers == tuple(row[3] for row in there)
            further = tuple(row[4] for row in there)
            assert group.further == (further if 7 in further else None)


def test_no_rows_are_no_groups() -> None:
    assert list(WaitingRows().judged()) == []
