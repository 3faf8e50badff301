import math
from itertools import pairwise

import pytest

from evenhand.exchange import Message
from evenhand.judges.embedded.draw import Draw

SAID = (Message("user", "Compare."),)


def test_a_draw_belongs_to_its_prompt_and_seed():
    one = Draw.of(SAID, 0.7, 3)
    assert Draw.of(SAID, 0.7, 3) == one
    assert Draw.of(SAID, 0.7, 4).point != one.point
    assert Draw.of((Message("user", "Compare!"),), 0.7, 3).point != one.point
    assert Draw.of((Message("system", "Compare."),), 0.7, 3).point != one.point


def test_points_fill_the_line_evenly():
    points = sorted(Draw.of(SAID, 1.0, seed).point for seed in range(500))
    assert 0 <= points[0] < points[-1] < 1
    assert max(later - earlier for earlier, later in pairwise(points)) < 0.05


@pytest.mark.parametrize(("temperature", "share"), [(1.0, 0.8), (0.5, 16 / 17), (2.0, 2 / 3)])
def test_a_low_temperature_favours_the_likely(temperature, share):
    odds = [math.log(0.8), math.log(0.2)]
    assert Draw(temperature, share - 0.001).taken(odds) == 0
    assert Draw(temperature, share + 0.001).taken(odds) == 1


def test_an_option_that_is_impossible_in_practice_is_no_error():
    assert Draw(0.1, 0.999).taken([0.0, -900.0]) == 0
    assert Draw(0.1, 0.0).taken([-900.0, 0.0]) == 1


def test_half_a_surrogate_pair_can_be_drawn_for():
    assert 0 <= Draw.of((Message("user", "\ud800"),), 0.7, 1).point < 1
