"""What a call takes, told before it is sent: from the form of the reply, and from what the last run
of the same suite really took."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand.kinds.kind import Judging
from evenhand.ledger.ports import Archive, Spent

CALLS_ENOUGH = 5
"""Fewer calls say little about the next ones."""
DIMENSIONS_GUESSED = 4
"""Where units bring their own rubrics."""
_PER_REPLY = {"rubric": 30, "pairwise": 110, "weighted": 80}
_PER_DIMENSION = {"rubric": 90, "pairwise": 50, "weighted": 55}
_CALLS_AGAIN = {"pairwise": 1.3}
"""Calls per first call, with re-asks and later rounds: orders contradict each other in about one
round of seven to three."""
_TEXT = {"en": 1.0, "zh": 1.0, "ja": 1.3, "ru": 1.3}
"""Tokens that the same reasons take, against English."""


@dataclass(frozen=True, slots=True)
class Experience:
    """What to expect of a call."""

    output_tokens: float
    calls_per_call: float
    """With re-asks and later rounds."""
    input_tokens: float | None = None
    """As the last run took; None where there was none, and a prompt's length must do."""


def expected(judging: Judging, language: str, archive: Archive | None, name: str) -> Experience:
    """What calls of a judging take: those of the last run of that name, else those of a reply in
    the form that is asked for."""
    again = _CALLS_AGAIN.get(judging.kind, 1.05)
    row = archive.last_run(name) if archive else None
    spent = archive.spent(row.id) if archive and row else None
    if spent is not None and spent.calls >= CALLS_ENOUGH and spent.output_tokens:
        return from_spent(spent, again)
    dimensions = len(judging.dimensions) or len(judging.ends) or DIMENSIONS_GUESSED
    kind = judging.kind if judging.kind in _PER_REPLY else "rubric"
    tokens = _PER_REPLY[kind] + _PER_DIMENSION[kind] * dimensions
    return Experience(tokens * _TEXT.get(language, 1.0), again)


def from_spent(spent: Spent, calls_per_call: float) -> Experience:
    """What the calls of a run really took."""
    return Experience(
        spent.output_tokens / spent.calls, calls_per_call, spent.input_tokens / spent.calls
    )
