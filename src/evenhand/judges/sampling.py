"""Shared by all judges: the sampling of later rounds and repeats, and text that can be stored."""

from __future__ import annotations

# A later round must be able to come out differently.
LATER_ROUNDS_TEMPERATURE = 0.7
# Keeps the seeds of repeats and rounds apart; there are never so many rounds.
SEEDS_A_REPEAT = 1000


def sampling(
    number: int, repeat: int, temperature: float | None, seed: int | None
) -> tuple[float | None, int | None]:
    """Return temperature and seed of a question in the round of that number: raised, and new, from
    the second round on. The same question always has the same."""
    if temperature is not None and number > 1:
        temperature = max(temperature, LATER_ROUNDS_TEMPERATURE)
    if seed is not None:
        seed += SEEDS_A_REPEAT * repeat + number - 1
    return temperature, seed


def storable(text: str) -> str:
    """Return `text` with lone surrogates, which no store and no file takes, replaced by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
