"""Observations: what a judgment says in numbers, as plain rows that are kept beside it.

Scores give a row for each dimension, `overall`, `pass`, each failure tag and `critical_fail`. A
judgment of a pair gives a row for the winner and for each criterion, of the settled verdict (pass
0) and of every single call (pass 1, 2, ...). Statistics and users read these rows alone.

A kind says what its units and verdicts are in one of two forms, scores on dimensions or a vote
between two candidates; the rows are made of these. Statistics know no kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from msgspec.json import Decoder

from evenhand import jsontext

Rule = Literal["tie", "uncertain", "drop", "split"]
"""What two orders that name different winners come to, where no later round settled it: a tie;
`uncertain`, half a win to each; nothing; or the mean of what the orders say."""
Ends = Mapping[str, tuple[float, float]]
"""By dimension, the worst score and the best: where more is worse, the first is the greater."""
QUESTIONS = ("question_id", "task_name", "question")
"""Fields of units that say what was asked; the first that is there is believed."""

OVERALL = "overall"
PASSED = "pass"
CHECK = "check:"
"""Begins the measure of a check by code, such as `check:polite`."""
CRITICAL_FAIL = "critical_fail"
TAG = "tag:"
TASK_TYPE = "task_type"
"""The field with the type of a task."""
INFERRED_TYPE = f"{TASK_TYPE}:"
"""Begins the measure of a type that a judge inferred, such as `task_type:fact`."""
WINNER = "winner"
UNCERTAIN = "uncertain"
SUBJECT_LENGTH, OPPONENT_LENGTH = "subject_length", "opponent_length"
"""Fields of a pair: the lengths of its candidates' texts in characters."""
RESERVED = frozenset({OVERALL, PASSED, CRITICAL_FAIL, WINNER, UNCERTAIN})
"""Measures that no dimension or criterion may be called by."""
_SHARES = {"A": 1.0, "B": 0.0, "tie": 0.5, "uncertain": 0.5}
"""Of a winner: the share of the first candidate."""
_MARKS = {"A+": 1.0, "B+": 0.0, "tie": 0.5}


class ScoredUnit(NamedTuple):
    """A unit that is scored."""

    fields: Mapping[str, Any]
    """What identifies it beside its id, and sets it apart from others, by name."""
    ends: Ends
    """Of the unit's own rubric, where it brings one."""
    length: int
    """Of what was judged, in characters."""
    pass_scores: Mapping[str, float] = {}
    """By dimension of its own rubric, the score that passes."""
    rubric: str | None = None
    """The rubric of its own, in a kind that names a condition in it."""


class PassMarks(NamedTuple):
    """What a verdict must reach to pass; nothing passes or fails by an empty one."""

    scores: Mapping[str, float] = {}
    """By dimension, the score: at least, or at most where more is worse."""
    overall: float | None = None
    """The share of the scale."""


class CheckOutcome(NamedTuple):
    """A check by code on what was judged."""

    name: str
    is_met: bool | None
    """None where it could not be decided."""
    is_needed: bool
    """True if nothing passes that does not meet it."""


class Scored(NamedTuple):
    """The scores of a verdict."""

    scores: Mapping[str, float]
    """By dimension."""
    most: Mapping[str, float] = {}
    """The most points of each dimension, where the verdict itself says so."""
    total: float | None = None
    """From 0 to 1, where dimensions do not weigh alike; else the mean of the scaled scores is."""
    passed: bool | None = None
    """None where it neither passes nor fails."""
    tags: tuple[str, ...] = ()
    is_critical: bool = False
    confidence: str = ""
    """How sure the judge was, where it says so."""
    notes: str = ""
    """What else the judge says of what it could not tell."""
    inferred_type: str = ""
    """The type of the task, where the judge inferred it."""


class VotedUnit(NamedTuple):
    """Two candidates on one topic."""

    topic: str
    """Votes on one topic hang together."""
    candidates: tuple[str, str]
    lengths: tuple[int | None, int | None]
    """Of their texts in characters; None where nobody knows."""
    fields: Mapping[str, Any]


class PassVote(NamedTuple):
    """One call in one order, said of the candidates as the unit has them; None where the reply
    names no winner."""

    round: int
    order: str
    winner: str | None
    marks: Mapping[str, str | None] = {}
    preference: float | None = None


class Voted(NamedTuple):
    """The vote of a judgment between two candidates: `A`, `B`, `tie` or `uncertain`; None where
    there is no verdict, which may still have passes."""

    winner: str | None
    settled: str = ""
    marks: Mapping[str, str] = {}
    """By criterion, `A+`, `B+` or `tie`."""
    preference: float | None = None
    """How far the second is preferred, from 0 to 1, where the judge said so."""
    passes: tuple[PassVote, ...] = ()
    is_order_known: bool = True
    """Whether anybody knows which candidate was shown first."""


class Observation(Struct, frozen=True, array_like=True):
    """One number of a judgment, as the store keeps it."""

    measure: str
    value: float | None
    """From 0 to 1: the share of the scale; of a pair, of the first candidate's win. None where
    nobody knows the scale."""
    points: float | None = None
    max_points: float | None = None
    pass_number: int = 0
    position: int | None = None
    """Of a single call: where the first candidate was shown, 1 or 2."""


read_observations = Decoder(list[Observation]).decode
"""Reads what a judgment says in numbers, as a store keeps it."""
read_fields = Decoder(dict[str, str]).decode
"""Reads the fields of a unit, as a store keeps them."""


def read_pass(observations: str) -> bool | None:
    """Return whether a judgment passes, from its observations as a store keeps them; None where
    nothing says."""
    seen = read_observations(observations)
    values = [each.value for each in seen if each.measure == PASSED]
    return values[0] == 1 if values else None


def is_flag(measure: str) -> bool:
    """Return True of a failure tag or a critical fail, which is there or not."""
    return measure == CRITICAL_FAIL or measure.startswith(TAG)


def is_passing(measure: str) -> bool:
    """Return True of `pass` or a check by code, which is 1 where it is passed and else 0."""
    return measure == PASSED or measure.startswith(CHECK)


class UnitDescription(NamedTuple):
    """The values that statistics select and group a unit by."""

    subject: str = ""
    """The first candidate of a pair; empty where there is none."""
    opponent: str = ""
    fields: str = "{}"
    """Every field that has a value, by its name, as a JSON object of texts."""


def describe_unit(
    unit: ScoredUnit | VotedUnit, language: str, task_type: str | None = None
) -> UnitDescription:
    """Return the candidates and the fields of a unit: its language, its length and the type of its
    task among them."""
    candidates, more = ("", ""), {"language": language}
    if task_type:
        more[TASK_TYPE] = task_type
    if isinstance(unit, ScoredUnit):
        more["length"] = str(unit.length)
    else:
        candidates, more["topic"] = unit.candidates, unit.topic
        for name, length in zip((SUBJECT_LENGTH, OPPONENT_LENGTH), unit.lengths, strict=True):
            if length is not None:
                more[name] = str(length)
    given = {name: value for name, value in unit.fields.items() if value is not None}
    # Ours come last: a column that is called so as well must not pass for a length or a topic.
    fields = {name: jsontext.as_text(value) for name, value in given.items()} | more
    return UnitDescription(*candidates, jsontext.dumps_lossy(fields))


def observe_scores(
    scored: Scored, ends: Ends, tags: Sequence[str] = (), *, has_critical_fails: bool = False
) -> Iterator[Observation]:
    """Yield the observations of a verdict in scores, but for `pass`."""
    shares = []
    for name, score in scored.scores.items():
        most = scored.most.get(name)
        low, high = (0.0, most) if most else ends.get(name, (score, score))
        share = (score - low) / (high - low) if high != low else None
        shares.append(share)
        yield Observation(name, share, score, max(low, high) if share is not None else None)
    known = [share for share in shares if share is not None]
    if scored.total is not None:
        yield Observation(OVERALL, scored.total)
    elif known and len(known) == len(shares):
        yield Observation(OVERALL, sum(known) / len(known))
    for tag in tags:
        yield Observation(f"{TAG}{tag}", float(tag in scored.tags))
    if has_critical_fails:
        yield Observation(CRITICAL_FAIL, float(scored.is_critical))
    if scored.inferred_type:
        yield Observation(f"{INFERRED_TYPE}{scored.inferred_type}", 1.0)


def observe_pass(
    scored: Scored | None,
    overall: float | None,
    ends: Ends,
    marks: PassMarks,
    checks: Sequence[CheckOutcome],
) -> Iterator[Observation]:
    """Yield an observation of each check that was decided, and whether a judgment passes: if it has
    a verdict, that reaches every mark and is no critical fail, and every check that is needed is
    met. Nothing passes or fails where nothing says so, or where what is left cannot be decided."""
    held = [check.is_met for check in checks if check.is_needed]
    if scored is not None:
        held += _reach_marks(scored, overall, ends, marks)
        held += [False] * (scored.is_critical and bool(held))
    if False in held:
        yield Observation(PASSED, 0.0)
    elif held and None not in held:
        yield Observation(PASSED, 1.0)
    for check in checks:
        if check.is_met is not None:
            yield Observation(f"{CHECK}{check.name}", float(check.is_met))


def _reach_marks(
    scored: Scored, overall: float | None, ends: Ends, marks: PassMarks
) -> Iterator[bool | None]:
    """Yield of each mark whether a verdict reaches it."""
    if scored.passed is not None:
        yield scored.passed
    for name, mark in marks.scores.items():
        if name in scored.scores:
            low, high = ends[name]
            yield scored.scores[name] >= mark if low < high else scored.scores[name] <= mark
    if marks.overall is not None and overall is not None:
        # A mean of 0.7, 0.7 and 0.7 is 0.7, whatever its last bits are.
        yield round(overall, 9) >= marks.overall


def observe_votes(voted: Voted) -> Iterator[Observation]:
    """Yield the observations of a judgment of a pair, as shares of the first candidate."""
    if voted.winner is not None:
        yield Observation(WINNER, _share(voted.winner, voted.preference))
        yield Observation(UNCERTAIN, float(voted.winner == UNCERTAIN))
        yield from _observe_marks(voted.marks)
    for vote in voted.passes:
        yield from _observe_pass(vote, is_order_known=voted.is_order_known)


def _observe_pass(vote: PassVote, *, is_order_known: bool) -> Iterator[Observation]:
    """Yield the observations of a single call. Each round has two numbers, one for either order,
    so that a number says of which round a call is."""
    shown = 1 if vote.order == "12" else 2
    number, position = 2 * (vote.round - 1) + shown, shown if is_order_known else None
    if vote.winner is not None:
        value = _share(vote.winner, vote.preference)
        yield Observation(WINNER, value, pass_number=number, position=position)
    yield from _observe_marks(vote.marks, number, position)


def _observe_marks(
    marks: Mapping[str, str | None], number: int = 0, position: int | None = None
) -> Iterator[Observation]:
    for name, mark in marks.items():
        if mark is not None:
            yield Observation(name, _MARKS[mark], pass_number=number, position=position)


def _share(winner: str, preference: float | None) -> float:
    """Return the first candidate's share; a preference is that for the second."""
    return _SHARES[winner] if preference is None else 1 - preference
