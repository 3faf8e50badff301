"""Texts of judgments that differ only in what they are about: worked out once, then filled in."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evenhand.judgment import Judgment, JudgmentText, write_judgment
from evenhand.runs.imports.tally import Tally

BLANK = "\ue000\uf8ff\ue000"
"""Stands where a form is filled in: characters that mean nothing to anybody."""
_FORMS = 1 << 14
"""Forms that are kept; then it begins anew."""


class Form(NamedTuple):
    """A text of a judgment, cut where something is to be filled in."""

    text: JudgmentText
    body: str | None
    """With `%s` where something is; None where nothing is filled in."""

    def filled(self, values: tuple[str, ...]) -> JudgmentText:
        """The text with these values in it."""
        if self.body is None:
            return self.text
        return JudgmentText(self.text.status, self.text.reason, self.body % values)


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
        judge: int,
        words: Hashable,
        values: tuple[str, ...],
        settle: Callable[[], list[Judgment]],
    ) -> list[JudgmentText] | None:
        """The texts of the judgments that `words` come to, about a unit with these values; None
        where they cannot be filled in. `settle` gives the judgments of a blank unit."""
        key = (judge, words)
        if key not in self._by_words:
            if len(self._by_words) >= _FORMS:
                self.count()
                self._by_words.clear()
            self._by_words[key] = self._judged(judge, settle())
        judged = self._by_words[key]
        if judged is None:
            return None
        if judged.times < 0:
            # Counted at once, so that what is told of the first failure is of the first.
            self._tally.count(judge, judged.judgments)
        judged.times += 1
        return [form.filled(values) for form in judged.forms]

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
        escaped = [part.replace("%", "%%") for part in (*parts, rest)]
        return Form(text, "%s".join(escaped) if parts else None)

    def count(self) -> None:
        """Bring the tally up to date."""
        for judged in self._by_words.values():
            if judged is not None and judged.times > 0:
                self._tally.count(judged.judge, judged.judgments, judged.times)
                judged.times = 0
