"""What judgments are filtered by in the web view."""

from __future__ import annotations

import pytest

from evenhand.observation import Scored
from evenhand.results.judgment_index import score_labels


def label(points: float) -> str:
    (text,) = score_labels(Scored({}, total=points / 100))
    return text


@pytest.mark.parametrize(
    ("points", "text"),
    [
        (0, "0 to under 10"),
        (9.5, "0 to under 10"),
        (29.5, "20 to under 30"),
        (30, "30 to under 40"),
        (89.9, "80 to under 90"),
        (90, "90 to 100"),
        (100, "90 to 100"),
    ],
)
def test_the_label_of_a_total_is_true_of_fractions(points: float, text: str) -> None:
    assert label(points) == text


def test_every_ten_begins_with_itself() -> None:
    assert [label(points).split()[0] for points in range(0, 100, 10)] == [
        str(points) for points in range(0, 100, 10)
    ]
