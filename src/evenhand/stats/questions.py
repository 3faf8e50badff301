"""What hangs together: everything that is judged about one question. Intervals and tests of every
command take a question as what varies, and find it here."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from evenhand.measures import QUESTIONS
from evenhand.stats.tables import UNIT, Fields, Ints


def question_field(fields: Mapping[str, object]) -> str | None:
    """The field that says what was asked. The last resort is the unit: judgments made elsewhere may
    call so what several candidates answered. None where nothing does."""
    return next((name for name in (*QUESTIONS, UNIT) if name in fields), None)


def question_of(fields: Fields, count: int) -> Ints:
    """Of each of `count` units the question that it is about, as a number from 0. A unit that does
    not say stands for itself."""
    name, alone = question_field(fields), np.arange(count)
    if name is None:
        return alone
    codes = fields[name].codes
    apart = np.where(codes >= 0, codes, alone + len(fields[name].levels))
    return np.unique(apart, return_inverse=True)[1]
