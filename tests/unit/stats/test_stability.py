"""How far judges waver: components of variance by the textbook, and with judges that lean."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.stats.stability import repeats
from tests.unit.stats.tables import scores_of


def components(values, planned):
    """Those of judgments (question, judge, score), repeated in the order of their coming."""
    rows, seen = [], {}
    for question, judge, score in values:
        repeat = seen[question, judge] = seen.get((question, judge), -1) + 1
        given = {"question_id": question, "scores": {"true": score}}
        rows.append(given | {"judge": judge, "repeat": repeat})
    return repeats(scores_of(rows, id_fields=("question_id",), planned=planned))


@given(st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=4), min_size=2, max_size=12))
def test_components_of_variance_are_the_textbook_ones(cells):
    found = components([(q, "j", score) for q, cell in enumerate(cells) for score in cell], 4)
    if max(map(len, cells)) < 2:
        assert found is None
        return
    sizes, means = np.array([len(cell) for cell in cells]), [np.mean(cell) for cell in cells]
    number, every = sizes.sum(), np.concatenate(cells)
    within = sum(np.var(cell) * len(cell) for cell in cells) / (number - len(cells))
    outer = (sizes * (np.array(means) - every.mean()) ** 2).sum() / (len(cells) - 1)
    size = (number - (sizes**2).sum() / number) / (len(cells) - 1)
    between = max(0.0, (outer - within) / size)
    true = found.components[0]
    assert (true.within, true.between) == pytest.approx((within, between), abs=1e-12)
    if within + between > 1e-9:
        assert true.share == pytest.approx(within / (within + between))


def test_components_recover_what_was_put_in():
    draw = np.random.default_rng(4)
    truth = draw.normal(3, 0.8, 600)
    rows = [
        (q, judge, float(truth[q] + lean + draw.normal(0, 0.4)))
        for q in range(600)
        for judge, lean in (("j", 0.0), ("k", 1.0))
        for _ in range(3)
    ]
    found = components(rows, 6)
    # How far judges lean apart is no variance between units.
    (true, *_) = found.components
    assert found.most == 3
    assert (true.within, true.between) == (
        pytest.approx(0.16, rel=0.1),
        pytest.approx(0.64, rel=0.12),
    )
