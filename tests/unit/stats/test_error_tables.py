"""The tables of errors and power: a row for every law, and a limit that no bets go beyond."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.stats.error_tables import best_bets, main, percent
from tests.unit.stats.laws import CLEAR, EQUAL, HARMLESS, WORSE, Law, ties
from tests.unit.stats.sequences import decisions


@pytest.mark.parametrize(
    ("name", "rows"),
    [("compare", len(EQUAL) + len(WORSE)), ("gate", len(WORSE) + 3 * len(HARMLESS))],
)
def test_a_table_has_a_row_for_every_law(
    name: str, rows: int, capsys: pytest.CaptureFixture[str]
) -> None:
    main([name], rounds=10)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    # Two tables, each with a line of columns.
    assert len(lines) == rows + 2
    assert "nan" not in "".join(lines)


def test_shares_are_told_as_they_are() -> None:
    assert [percent(share) for share in (0, 0.004, 0.5, 1)] == ["0 %", "0.4 %", "50 %", "100 %"]


@pytest.mark.parametrize("laws", [EQUAL, WORSE, HARMLESS, CLEAR])
def test_a_law_has_the_mean_that_it_names_and_stays_on_its_scale(laws: dict[str, Law]) -> None:
    for law in laws.values():
        drawn = law.sample(np.random.default_rng(0), (100, 400))
        error = drawn.std() / np.sqrt(drawn.size)
        assert drawn.mean() == pytest.approx(law.mean, abs=4 * error)
        assert np.abs(drawn).max() <= 1


def test_no_bets_decide_more_often_than_the_best() -> None:
    # Five of five wins double a stake five times, which is not forty times; six of six are.
    assert best_bets(ties(1.0, 0.0), 5, points=400) == 0.0
    assert best_bets(ties(1.0, 0.0), 6, points=400) == 1.0
    law = CLEAR["Likert"]
    sides, after = decisions((1 + law.sample(np.random.default_rng(1), (2000, 20))) / 2, 0.05)
    best = best_bets(law, 20, goal=2 / (0.3 * 0.05), points=1200)
    by_bets = np.mean((sides > 0) & (after < 20))
    # All values together, at their end, decide what no bets could.
    assert by_bets < best + 0.02 < np.mean(sides > 0)
