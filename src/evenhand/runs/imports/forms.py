"""Texts of judgments that differ only in what they are about: worked out once, then filled in."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evenhand.judgment import Judgment, JudgmentText, Reason, Status, write_judgment
from evenhand.runs.imports.tally import Tally
from evenhand.runs.imports.waiting_rows import JudgedRows

BLANK = "\ue000\uf8ff\ue000"
"""Stands where a form is filled in: characters that mean nothing to anybody."""
_FORMS = 1 << 14
"""Forms that are kept; then it begins anew."""


class Form(NamedTuple):
    """A text of a judgment."""

    status: Status
    reason: Reason | None
    body: str
    """With `%s` where something is filled in, if anything is."""
    has_blanks: bool


@dataclass(slots=True)
class _Judged:
    """The judgments of one judge on units of which the same was said."""

    judge: int
    judgments: list[Judgment]
    forms: list[Form]
    times: int = 0
    """How often they are not counted yet."""


class Forms:
    """The texts of judgments by what was said; `blanks` are the stretches of a text that are
    filled in, in their order."""

    def __init__(self, tally: Tally, blanks: Sequence[str]) -> None:
        self._tally, self._blanks = tally, blanks
        self._by_words: dict[Hashable, _Judged | None] = {}

    def filled(
        self,
        rows: JudgedRows,
        values: tuple[str, ...],
        settle: Callable[[JudgedRows], list[Judgment]],
    ) -> list[JudgmentText] | None:
        """The texts of the judgments that the words and numbers of rows come to, about a unit with
        these values; None where they cannot be filled in. `settle` gives the judgments of a blank
        unit."""
        key = rows[1:4]
        judged = self._by_words.get(key)
        if judged is None and key not in self._by_words:
            if len(self._by_words) >= _FORMS:
                self.count()
                self._by_words.clear()
            judged = self._by_words[key] = self._judged(rows.judge, settle(rows))
        if judged is None:
            return None
        if judged.times < 0:
            # Counted at once, so that what is told of the first failure is of the first.
            self._tally.count(rows.judge, judged.judgments)
        judged.times += 1
        return [
            JudgmentText(status, reason, body % values if has_blanks else body)
            for status, reason, body, has_blanks in judged.forms
        ]

    def written(self, judge: int, judgments: list[Judgment]) -> list[JudgmentText]:
        """The texts of judgments that cannot be filled in, counted."""
        self._tally.count(judge, judgments)
        return [write_judgment(judgment) for judgment in judgments]

    def _judged(self, judge: int, judgments: list[Judgment]) -> _Judged | None:
        forms = [self._form(write_judgment(judgment)) for judgment in judgments]
        whole = [form for form in forms if form is not None]
        return _Judged(judge, judgments, whole, -1) if len(whole) == len(forms) else None

    def _form(self, text: JudgmentText) -> Form | None:
        parts, rest = list[str](), text.body
        for blank in self._blanks:
            part, found, after = rest.partition(blank)
            if found:
                parts.append(part)
                rest = after
        if any(BLANK in part for part in (*parts, rest)):
            return None
        if len(parts) not in (0, len(self._blanks)):
            return None
        if not parts:
            return Form(text.status, text.reason, text.body, has_blanks=False)
        escaped = [part.replace("%", "%%") for part in (*parts, rest)]
        return Form(text.status, text.reason, "%s".join(escaped), has_blanks=True)

    def count(self) -> None:
        """Bring the tally up to date."""
        for judged in self._by_words.values():
            if judged is not None and judged.times > 0:
                self._tally.count(judged.judge, judged.judgments, judged.times)
                judged.times = 0
