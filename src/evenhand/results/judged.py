"""One judged unit, as it is worked with in Python, and the assertion that it passes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenhand.errors import NoVerdicts, UsageError
from evenhand.judgment import Evidence, Judgment, Pass, Reason, Status, Verdict, VerdictValue
from evenhand.kinds.blocks import ShownUnit
from evenhand.notebook import Shown, ShownTable
from evenhand.observation import OVERALL, PASSED, WINNER, Observation, ScoredUnit, VotedUnit
from evenhand.report.terminal.tables import cut
from evenhand.results.units import letter_texts
from evenhand.words import Sentence, words

JUDGED_CHARS = 60
"""Columns for what was judged, in a message."""
LINE_CHARS = 1000


@dataclass(frozen=True, slots=True, repr=False)
class JudgedUnit(Shown):
    """A judgment of one unit, which prints as a table: dimension, score, quote, reason.

    `.status` is `"verdict"`, `"failure"` or `"left_out"`. A failure is a value: it has a `.reason`
    and a `.detail`, and no `.output`. `.scores`, `.overall`, `.passed` and other short names of
    what a verdict says raise NoVerdicts where there is none.
    """

    judgment: Judgment
    """The Verdict, Failure or LeftOut itself."""
    shown: ShownUnit
    observations: Mapping[str, Observation]
    """What the verdict says in numbers, by measure: dimensions, `overall`, `pass`, `winner`."""

    @property
    def status(self) -> Status:
        return self.judgment.status

    @property
    def output(self) -> Mapping[str, Any] | None:
        """Return the contract's own JSON object; None without a verdict."""
        return self.judgment.output

    @property
    def value(self) -> VerdictValue:
        """Return the verdict in the class of its kind; raise NoVerdicts."""
        __tracebackhide__ = True
        return self._verdict().value

    @property
    def reason(self) -> Reason | None:
        return self.judgment.reason

    @property
    def detail(self) -> str:
        return self.judgment.detail

    @property
    def evidence(self) -> Sequence[Evidence]:
        """Return where each quote stands in the judged text."""
        return self.judgment.evidence

    @property
    def passes(self) -> Sequence[Pass]:
        """Return the calls behind the judgment."""
        return self.judgment.passes

    @property
    def flags(self) -> Sequence[str]:
        return self.judgment.flags

    @property
    def scores(self) -> dict[str, float]:
        """Return the score of each dimension or criterion; raise NoVerdicts."""
        __tracebackhide__ = True
        self._verdict()
        if WINNER in self.observations:
            raise LookupError(Sentence("api.no_field", name="scores"))
        return {
            name: each.points for name, each in self.observations.items() if each.points is not None
        }

    @property
    def overall(self) -> float | None:
        """Return the whole as a share from 0 to 1, for pairs None; raise NoVerdicts."""
        __tracebackhide__ = True
        return self._number(OVERALL)

    @property
    def passed(self) -> bool | None:
        """Return True or False, None where nothing says what passes; raise NoVerdicts."""
        __tracebackhide__ = True
        passed = self._number(PASSED)
        return None if passed is None else bool(passed)

    @property
    def total_score(self) -> float:
        """Return the total of a grade, out of 100; raise NoVerdicts."""
        __tracebackhide__ = True
        return float(self._output("total_score"))

    @property
    def critical_fail(self) -> bool:
        """Return True if a grade is a critical fail; raise NoVerdicts."""
        __tracebackhide__ = True
        return bool(self._output("critical_fail"))

    @property
    def winner(self) -> str:
        """Return `A` (the first), `B`, `tie` or `uncertain`; raise NoVerdicts."""
        __tracebackhide__ = True
        return str(self._output("winner"))

    def _verdict(self) -> Verdict:
        __tracebackhide__ = True
        if isinstance(self.judgment, Verdict):
            return self.judgment
        status = self.reason or self.status
        raise NoVerdicts(Sentence("api.no_verdict", status=status, detail=self.detail))

    def _number(self, measure: str) -> float | None:
        __tracebackhide__ = True
        self._verdict()
        found = self.observations.get(measure)
        return found.value if found else None

    def _output(self, name: str) -> Any:
        __tracebackhide__ = True
        output = self._verdict().output
        if name not in output:
            raise LookupError(Sentence("api.no_field", name=name))
        return output[name]

    def _tables(self) -> Iterator[ShownTable]:
        if not isinstance(self.judgment, Verdict):
            row = (self.status, self.reason, self.detail)
            yield ShownTable(("status", "reason", "detail"), [row])
            return
        rows, note = list(self._rows()), (self.output or {}).get("notes")
        notes = [note] if note and note not in [reason for *_, reason in rows] else []
        flags = [flag for flag in self.flags if flag != "not_validated"]
        notes += [f"flags: {' '.join(flags)}"] if flags else []
        header = ("dimension", "score", "wanted", "quote", "reason")
        yield ShownTable(header, rows, notes=notes)

    def _rows(self) -> Iterator[tuple[str, str, str, str, str]]:
        """Yield what was said about each dimension or criterion and what passes, then the whole."""
        say, wanted = words("en", plain=True), _say_wanted(self.shown.measured)
        for about, score, text, quotes in self.shown.judgments[0].reasons:
            each = self.observations.get(about)
            said = say.gloss("met", score)
            if said == score and each and each.max_points:
                said = say("unit.points", points=score, of=f"{each.max_points:g}")
            quoted = "\n".join(f'"{quote}"' for quote in quotes)
            yield about, said, wanted.get(about, ""), quoted, text
        if self.overall is not None:
            yield OVERALL, f"{self.overall:.2f}", "", "", ""
        if self.passed is not None:
            yield PASSED, say.gloss("met", str(self.passed).lower()), "", "", ""


def _say_wanted(unit: ScoredUnit | VotedUnit) -> dict[str, str]:
    """Return the score that passes by dimension, after a sign that says from where on."""
    if not isinstance(unit, ScoredUnit):
        return {}
    signs = {name: "<=" if worst > best else ">=" for name, (worst, best) in unit.ends.items()}
    return {name: f"{signs[name]} {score:g}" for name, score in unit.pass_scores.items()}


def assert_passes(judged: JudgedUnit, *, at_least: float | None = None) -> None:
    """Assert that one output passes; the message holds the judge's reasons and quotes.

    Args:
        judged: what `score`, `grade` or `checklist` returned.
        at_least: the lowest overall score that passes, from 0 to 1. By default the rubric says
            what passes: a dimension's `pass`, or the criteria that must be met.

    Raises:
        AssertionError: it does not pass.
        NoVerdicts: the judge gave no verdict.
        UsageError: nothing says what passes, or this is no share.

    Example:
        >>> evenhand.assert_passes(evenhand.score(question, answer, rubric="tone"), at_least=0.7)
    """
    __tracebackhide__ = True
    score = judged.overall
    is_passed = judged.passed
    if at_least is not None:
        # A mean of 0.7, 0.7 and 0.7 is 0.7, whatever its last bits are.
        is_passed = None if score is None else round(score, 9) >= at_least
    if is_passed is None:
        raise UsageError(Sentence("api.nothing_passes"))
    if at_least is not None and not 0 <= at_least <= 1:
        raise UsageError(Sentence("api.no_share", value=at_least))
    if is_passed:
        return
    text = letter_texts(judged.shown.unit).get("A", "")
    about = {"text": cut(text, JUDGED_CHARS)}
    if at_least is None:
        message = Sentence("api.not_passed", **about)
    else:
        message = Sentence("api.too_low", score=score, wanted=at_least, **about)
    lines = [
        f"{name}: {said}{wanted and f' ({wanted})'}. {why} {quote}"
        for name, said, wanted, quote, why in judged._rows()
    ]
    raise AssertionError("\n  ".join([message, *(cut(line, LINE_CHARS) for line in lines)]))
