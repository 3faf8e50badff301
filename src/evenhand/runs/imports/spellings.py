"""How the scores of one import are spelled: what cannot stand in one column is refused."""

from __future__ import annotations

from evenhand.data.foreign.spellings import is_share
from evenhand.data.foreign.tidy import Score
from evenhand.errors import DataError, quoted


class Spellings:
    """The spellings of an import, as far as they may not stand together."""

    def __init__(self) -> None:
        self._grades: set[str] = set()
        self._other_letters: set[str] = set()
        self._shares: dict[str | None, str] = {}
        self._numbers: dict[str | None, str] = {}
        """By dimension a percentage or fraction, and a number that is no share."""

    def note(self, score: Score, text: str) -> None:
        """Take note of a score and of the text that it was read from."""
        if len(text) == 1 and text.isalpha() and (score.spelled or score.failed):
            (self._grades if score.spelled else self._other_letters).add(text)
        if score.spelled and is_share(text):
            self._shares.setdefault(score.dimension, text)
        elif score.score is not None and not 0 <= score.score <= 1:
            self._numbers.setdefault(score.dimension, text)

    def require_alike(self) -> None:
        """Raise DataError for what may mean different things."""
        if self._grades and self._other_letters:
            # C and I may be correct and incorrect.
            letters = ", ".join([*sorted(self._grades), *sorted(self._other_letters)])
            raise DataError(
                f"scores are letters that are not all grades: {letters}",
                advice="Say what they mean: --value score:C=1,I=0",
            )
        for dimension, share in self._shares.items():
            if dimension in self._numbers:
                raise DataError(
                    f"scores on {quoted(dimension)} are shares and numbers that are none:"
                    f" {quoted(share)} and {quoted(self._numbers[dimension])}",
                    advice=f"Say what the shares mean: --value 'score:{share}=...', or write all"
                    " scores on one scale",
                )
