"""Money is whole picodollars; a price that is not known is None, never zero."""

from __future__ import annotations

from decimal import Decimal

import pytest

from evenhand.engine.prices import PICO, dollars, given_price, listed_price, usd
from evenhand.engine.progress import Progress, Tally
from evenhand.exchange import Usage
from tests.unit.engine.virtual import Clock


def test_a_given_price_is_dollars_a_million_tokens() -> None:
    price = given_price(Decimal("0.40"), Decimal("1.60"))
    assert price.cost(Usage(input_tokens=10**6, output_tokens=10**6)) == 2 * PICO
    assert price.bound(10**6, 0) == PICO * 2 // 5


def test_a_listed_price_knows_cached_tokens() -> None:
    price = listed_price("openai", "gpt-4.1-mini")
    assert price is not None
    fresh = price.cost(Usage(input_tokens=1000, output_tokens=10))
    cached = price.cost(Usage(input_tokens=1000, output_tokens=10, cached_tokens=900))
    assert fresh is not None
    assert cached is not None
    assert 0 < cached < fresh <= price.bound(1000, 10)


def test_what_a_cache_takes_in_has_its_own_price_and_the_bound_holds() -> None:
    """Anthropic bills a quarter more for what is written to the cache."""
    for price in (
        listed_price("anthropic", "claude-haiku-4-5"),
        given_price(Decimal(1), Decimal(5), Decimal("1.25")),
    ):
        assert price is not None
        assert price.stored * 4 == price.input * 5
        stored = Usage(input_tokens=1000, output_tokens=10, cache_write_tokens=1000)
        cost = price.cost(stored)
        assert cost is not None
        assert (price.cost(Usage(input_tokens=1000, output_tokens=10)) or 0) < cost
        assert cost == price.bound(1000, 10)


def test_what_is_not_known_is_none() -> None:
    assert listed_price("openai", "no-such-model-at-all") is None
    price = given_price(Decimal(1), Decimal(1))
    assert price.cost(Usage(input_tokens=5)) is None
    assert price.cost(Usage()) is None


@pytest.mark.parametrize(
    ("pico", "text"), [(0, "0"), (PICO, "1"), (PICO // 2, "0.5"), (1, "0.000000000001")]
)
def test_money_is_written_exactly(pico: int, text: str) -> None:
    assert usd(pico) == text
    assert dollars(pico) == float(text)


def test_progress_is_one_line_of_what_matters() -> None:
    clock, tally = Clock(), Tally(verdicts=10)
    progress = Progress(tally, 100, clock)
    assert progress.line() == "10/100 judged"
    clock.now += 30
    tally.verdicts, tally.failures, tally.reasks, tally.cost = 38, 2, 1, PICO // 4
    assert progress.line() == "40/100 judged, 1.0/s, $0.2500, 2 failed, 1 re-asked, 1 min 00 s left"
    tally.verdicts, tally.actors = 98, ["a: 1 judged, 2 taken", "starting"]
    assert progress.line().endswith(", 2 actors (a: 1 judged, 2 taken; starting)")


def test_progress_counts_what_is_left_out_beside_what_is_judged() -> None:
    clock, tally = Clock(), Tally()
    progress = Progress(tally, 80, clock)
    clock.now += 10
    tally.verdicts, tally.failures, tally.left_out = 9, 1, 10
    expected = "10/70 judged, 1.0/s, 1 failed, 30 s left, 10 left out by no_self_judging"
    assert progress.line() == expected
    tally.verdicts, tally.left_out = 35, 44
    assert progress.line().startswith("36/36 judged") and progress.done == progress.planned
