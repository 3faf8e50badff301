"""Conditions on a run: each is met, not met, or open for want of evidence.

A figure of a sample meets or misses its threshold by its interval, never by itself; a count is
exact. What is missing is taken at its worst: a condition that it could turn is open.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from evenhand.errors import quoted
from evenhand.stats.comparison.comparison import OVERALL, Row
from evenhand.stats.decision.decision import Outcome
from evenhand.stats.decision.figure import NOTHING, Figure, more_units
from evenhand.stats.power import More

OPEN: Outcome = "not enough evidence"
MISSING = "judge what is missing (evenhand run; what failed, with --retry-failures)"
LEFT = "judge what is missing (evenhand run --to-the-end; what failed, with --retry-failures)"
UNSEEN = "the test of compare finds it, but not whatever the scores may be"
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Judgments:
    """How many there are, and how many are still to come: planned = the sum of all three."""

    verdicts: int
    failed: int
    pending: int
    left: int = 0
    """Of those to come, how many a run leaves on purpose, because its comparison is decided."""

    @property
    def missing(self) -> int:
        return self.failed + self.pending


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One condition and what came of it: `better` is met, `worse` is not met."""

    name: str
    """As the flag or the key of `[gate]` has it."""
    outcome: Outcome
    reason: str
    value: float | None
    low: float | None
    high: float | None
    threshold: float | None
    dimension: str | None
    variant: str | None
    n: int
    clusters: int
    """On how many questions: what is about one hangs together."""
    more: More | None = None
    """How many more questions would decide, in words; None where that cannot be said."""

    def json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a condition says of whom, in words: `yes` where it is met, `no` where it is not."""

    name: str
    yes: str
    no: str
    unit: str
    threshold: float | None = None
    dimension: str | None = None
    variant: str | None = None
    signed: bool = False


def no_worse_than(figure: Figure, margin: float, variant: str, base: str, of: str) -> Condition:
    """Non-inferiority: the difference to the baseline is not below -margin."""
    worse = f"worse than {quoted(base)} by more than {margin:g}{_on(of)}"
    claim = Claim(
        name="no_worse_than",
        yes=f"{quoted(variant)} is not {worse}",
        no=f"{quoted(variant)} is {worse}",
        unit="the difference",
        threshold=margin,
        dimension=of,
        variant=variant,
        signed=True,
    )
    return judged(claim, figure, -margin)


def is_better(row: Row, figure: Figure, base: str) -> Condition:
    """The outcome of a comparison, held against what its sample need not have shown, and against
    what is missing."""
    claim = Claim(
        name="better",
        yes=f"{quoted(row.variant)} is better than {quoted(base)}{_on(row.dimension)}",
        no=f"{quoted(row.variant)} is worse than {quoted(base)}{_on(row.dimension)}",
        unit="the difference",
        dimension=row.dimension,
        variant=row.variant,
        signed=True,
    )
    if figure.unfit:
        return _condition(claim, figure, OPEN, figure.unfit)
    if row.outcome == OPEN:
        more = row.more_questions
        return _condition(claim, figure, OPEN, _more_units(more, left=figure.left), more)
    if figure.sample is not None and _holds(figure, 0.0):
        more = more_units(figure, 0.0)
        why = f"{UNSEEN}; {_more_units(more, left=figure.left)}"
        return _condition(claim, figure, OPEN, why, more)
    if turns(figure, row.outcome, 0.0):
        return _condition(claim, figure, OPEN, _could_turn(figure, signed=True))
    return _condition(claim, figure, row.outcome)


def _holds(figure: Figure, value: float) -> bool:
    return figure.low is None or figure.high is None or figure.low <= value <= figure.high


def at_least(name: str, figure: Figure, least: float, what: str, **about: Any) -> Condition:
    """A mean or a rate that is not below its threshold; `what` says of whom."""
    claim = Claim(
        name=name,
        yes=f"{what} is at least {least:g}",
        no=f"{what} is below {least:g}",
        unit="it",
        threshold=least,
        **about,
    )
    return judged(claim, figure, least)


def judged(claim: Claim, figure: Figure, threshold: float) -> Condition:
    """What the interval says of a threshold that a figure must not be below."""
    if figure.unfit:
        return _condition(claim, figure, OPEN, figure.unfit)
    if figure.value is None or figure.low is None or figure.high is None:
        why = "nothing was judged that says so" if not figure.n else "there is no interval"
        return _condition(claim, figure, OPEN, why)
    outcome = OPEN
    if figure.low >= threshold - _ROUNDING:
        outcome = "better"
    elif figure.high < threshold - _ROUNDING:
        outcome = "worse"
    if outcome == OPEN:
        more = more_units(figure, threshold)
        return _condition(claim, figure, OPEN, _more_units(more, left=figure.left), more)
    if turns(figure, outcome, threshold):
        return _condition(claim, figure, OPEN, _could_turn(figure, signed=claim.signed))
    return _condition(claim, figure, outcome)


def turns(figure: Figure, outcome: Outcome, threshold: float) -> bool:
    """Whether what is missing could carry the figure over the threshold."""
    if figure.bounds is None:
        return False
    least, most = figure.bounds
    if outcome == "better":
        return least < threshold - _ROUNDING
    return most >= threshold - _ROUNDING


def count_at_most(
    name: str, number: int, missing: int, most: int, *, left: bool = False, **about: Any
) -> Condition:
    """A number of critical fails, which is exact but for judgments that are missing."""
    whose = f" of {quoted(about['variant'])}" if about.get("variant") else ""
    claim = Claim(
        name=name,
        yes=f"the critical fails{whose} are at most {most}",
        no=f"the critical fails{whose} are more than {most}",
        unit="there are",
        threshold=most,
        **about,
    )
    figure = Figure(value=number, low=number, high=number + missing, n=0, clusters=0)
    return _exact(claim, figure, most, f"{_judgments(missing)} missing: {_remedy(left=left)}")


def share_at_most(name: str, counts: Judgments, most: float) -> Condition:
    """The share of judgments that failed, which is exact once none is pending; those that a run
    leaves on purpose are not awaited."""
    awaited = counts.pending - counts.left
    done = counts.verdicts + counts.failed
    planned = done + awaited
    claim = Claim(
        name=name,
        yes=f"the share of failed judgments is at most {most:g}",
        no=f"the share of failed judgments is more than {most:g}",
        unit="it",
        threshold=most,
    )
    if not planned:
        return _condition(claim, NOTHING, OPEN, "nothing is planned")
    figure = Figure(
        value=counts.failed / done if done else None,
        low=counts.failed / planned,
        high=(counts.failed + awaited) / planned,
        n=done,
        clusters=done,
        counted="judgments",
    )
    return _exact(claim, figure, most, f"{_judgments(awaited)} pending: evenhand run")


def _exact(claim: Claim, figure: Figure, most: float, why: str) -> Condition:
    """A count between what it is already and what it can still become."""
    assert figure.low is not None and figure.high is not None
    if figure.low > most + _ROUNDING:
        return _condition(claim, figure, "worse")
    if figure.high <= most + _ROUNDING:
        return _condition(claim, figure, "better")
    return _condition(claim, figure, OPEN, why)


def unknown(name: str, why: str, threshold: float | None = None, **about: Any) -> Condition:
    """A condition for which there is nothing to go by."""
    return Condition(
        name=name,
        outcome=OPEN,
        reason=f"{name}: {why}.",
        value=None,
        low=None,
        high=None,
        threshold=threshold,
        dimension=about.get("dimension"),
        variant=about.get("variant"),
        n=0,
        clusters=0,
    )


def _condition(
    claim: Claim, figure: Figure, outcome: Outcome, why: str = "", more: More | None = None
) -> Condition:
    lead = {"better": claim.yes, "worse": claim.no}.get(outcome, f"it is open whether {claim.yes}")
    text = _figure_text(claim, figure)
    parts = [part for part in (text, why) if part]
    return Condition(
        name=claim.name,
        outcome=outcome,
        reason=f"{lead[0].upper()}{lead[1:]}: {'; '.join(parts)}.",
        value=figure.value,
        low=figure.low,
        high=figure.high,
        threshold=claim.threshold,
        dimension=claim.dimension,
        variant=claim.variant,
        n=figure.n,
        clusters=figure.clusters,
        more=more if outcome == OPEN else None,
    )


def _figure_text(claim: Claim, figure: Figure) -> str:
    """A figure in words."""
    if figure.value is None:
        return ""
    sign = "+" if claim.signed else ""
    if figure.clusters == 0:
        return f"{claim.unit} {figure.value:g}"
    interval, places = "", 3 if abs(figure.value) <= 1 else 2
    if figure.low is not None and figure.high is not None and figure.low < figure.high:
        ends = (_decimals(end, places, sign) for end in (figure.low, figure.high))
        interval = f" [{', '.join(ends)}]"
    counted = figure.counted.removesuffix("s") if figure.n == 1 else figure.counted
    among = ""
    if figure.clusters != figure.n:
        among = f" on {figure.clusters} question{'' if figure.clusters == 1 else 's'}"
    value = _decimals(figure.value, places, sign) if interval else f"{figure.value:{sign}z.3g}"
    return f"{claim.unit} is {value}{interval} over {figure.n} {counted}{among}"


def _decimals(value: float, places: int, sign: str) -> str:
    """A figure or an end of its interval; no -0.000."""
    return f"{value:{sign}z.{places}f}"


def _judgments(number: int) -> str:
    return "1 judgment is" if number == 1 else f"{number} judgments are"


def _more_units(more: More | None, *, left: bool) -> str:
    rest = f"; {LEFT}" if left else ""
    if more is None:
        return f"more questions alone may not decide it{rest}"
    if more == "more than is practical":
        return f"deciding it would take more questions than is practical{rest}"
    return f"{more} more questions may decide it (run --until-decided){rest}"


def _remedy(*, left: bool) -> str:
    return LEFT if left else MISSING


def _could_turn(figure: Figure, *, signed: bool) -> str:
    assert figure.bounds is not None
    sign = "+" if signed else ""
    least, most = figure.bounds
    return (
        f"missing judgments could make it anything from {least:{sign}z.3g} to {most:{sign}z.3g}:"
        f" {_remedy(left=figure.left)}"
    )


def _on(dimension: str) -> str:
    return "" if dimension == OVERALL else f" on {quoted(dimension)}"
