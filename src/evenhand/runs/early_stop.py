"""Stopping early: units in a seeded random order, until a sequential test decides a comparison.

Everything about one question is judged together and gives the test one value. Values enter in the
order that was drawn, whatever ends first: a question waits until all before it have ended, so that
quick units are not preferred. The order and the judgments in the store are the whole state, so that
a run that was cut off comes to the same decision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from math import fsum

from evenhand.engine.run import JudgeGroup, Work
from evenhand.errors import UsageError
from evenhand.judgment import RETRIED_BY_NEXT_RUN, JudgmentText
from evenhand.kinds.kind import ReadyKind, Scoring, Voting
from evenhand.manifest import Compare, Manifest, Stopping, Wave
from evenhand.runs.question import (
    Contrast,
    Planned,
    StopQuestion,
    deciding_measure,
    planned_pairs,
    planned_scores,
)
from evenhand.runs.recorded import Recorded
from evenhand.stats.comparison import Decision, Outcome, SequentialTest
from evenhand.stats.layout import choose
from evenhand.stats.sequential import Betting
from evenhand.store.archive import Archive
from evenhand.store.ports import Scope, StoredUnit
from evenhand.words import Sentence

AHEAD = 8
"""So many questions are under way before the first has ended, and one more for each that has."""


@dataclass(slots=True, kw_only=True)
class Duel:
    """One variant against the baseline: its questions in order, and the test of their values."""

    variant: str
    alpha: float
    min_units: int
    questions: Sequence[StopQuestion]
    waiting: list[int]
    """Of each question, how many judgments have not ended."""
    betting: Betting
    values: list[float] = field(default_factory=list[float])
    entered: int = 0
    skipped: int = 0
    units: int = 0
    """How many of them the values come from."""
    outcome: Outcome = "not enough evidence"

    @property
    def is_open(self) -> bool:
        return self.outcome == "not enough evidence" and self.entered < len(self.questions)

    def advance(self, value_of: Callable[[StopQuestion], float | None]) -> None:
        """Take in the questions that have ended, up to the first that has not."""
        while self.is_open and not self.waiting[self.entered]:
            question = self.questions[self.entered]
            self.entered += 1
            value = value_of(question)
            self.betting.add(value)
            if value is None:
                self.skipped += 1
            else:
                self.values.append(value)
                self.units += len(question.units)
            if self.units >= self.min_units:
                self.outcome = self.betting.outcome


class UntilDecided:
    """The course of a run that ends when its comparison is decided."""

    def __init__(
        self,
        archive: Archive,
        scope: Scope,
        judging: ReadyKind,
        judge_groups: Sequence[JudgeGroup],
        manifest: Manifest,
        width: int = AHEAD,
    ) -> None:
        self._archive, self._scope, self._width = archive, scope, width
        self._judge_groups, kind = judge_groups, judging.kind
        self._is_pairs = isinstance(kind.measure, Voting)
        self._stop = manifest.stop or Stopping()
        self._measure = deciding_measure(judging, archive.units(scope), self._stop.dimension)
        self._plan = _plan(archive.units(scope), manifest, kind.measure)
        waves = [
            {unit.no for unit in archive.units(Scope(wave.run, wave.limit))}
            for wave in manifest.waves
        ]
        draw = _Draw(manifest.judging.seed, waves)
        self._duels = self._match_duels(draw)
        self._order = draw.order([item for duel in self._duels for item in duel.questions])
        self._positions = {no: place for place, units in enumerate(self._order) for no in units}
        self._places: dict[int, list[tuple[Duel, int]]] = {}
        for duel in self._duels:
            for number, question in enumerate(duel.questions):
                for no in question.units:
                    self._places.setdefault(no, []).append((duel, number))
        self._ended: set[tuple[int, int, int]] = set()
        self._said: dict[tuple[int, int], list[float]] = {}
        self.passing_failures = 0
        """How many judgments failed for a reason that the next run tries again."""

    def _match_duels(self, draw: _Draw) -> list[Duel]:
        """Return a duel for every variant that is to be decided, each with its part of alpha."""
        questions_of = self._plan.questions
        names = _deciding_variants(self._plan, self._stop)
        each, alpha = (
            sum(item.repeats for item in self._judge_groups),
            self._stop.alpha / len(names),
        )
        duels: list[Duel] = []
        for name in names:
            questions = sorted(questions_of[name], key=draw.place)
            duel = Duel(
                variant=name,
                alpha=alpha,
                min_units=self._stop.min_units,
                questions=questions,
                waiting=[each * len(item.units) for item in questions],
                betting=Betting(alpha, draw.ends(questions)),
            )
            duels.append(duel)
        return duels

    @property
    def is_met(self) -> bool:
        """Return True if no comparison is open any more: each is decided or has no question
        left."""
        return not any(duel.is_open for duel in self._duels)

    @property
    def is_decided(self) -> bool:
        """Return True if every comparison is decided."""
        return all(duel.outcome != "not enough evidence" for duel in self._duels)

    async def work(self, group: JudgeGroup) -> Work:
        for units in self._order:
            for no in units:
                for repeat in range(group.repeats):
                    if self.is_met:
                        return
                    if (no, group.index, repeat) not in self._ended and self.is_wanted(no):
                        yield repeat, [self._unit(no)]

    def _unit(self, no: int) -> StoredUnit:
        return next(self._archive.units(Scope(self._scope.run), self._plan.ids[no]))

    def is_wanted(self, unit: int) -> bool:
        return any(duel.is_open for duel, _ in self._places.get(unit, ()))

    def is_early(self, unit: int) -> bool:
        heads = [duel.questions[duel.entered].units for duel in self._duels if duel.is_open]
        places = [max(self._positions[no] for no in units) for units in heads]
        ended = min(places, default=len(self._order))
        return self._positions[unit] >= ended + AHEAD + min(ended, self._width)

    def note(self, unit: int, judge: int, repeat: int, text: JudgmentText | None) -> None:
        place = (unit, judge, repeat)
        if place in self._ended or unit not in self._places:
            return
        self._ended.add(place)
        worth = None if text is None else self._measure.read(text.observations)
        if worth is not None:
            self._said.setdefault((unit, judge), []).append(worth)
        for duel, number in self._places[unit]:
            duel.waiting[number] -= 1
            duel.advance(self._value)

    def replay(self, *, again: bool) -> None:
        """Take in what the store holds; with `again`, not what this run tries again."""
        for unit, stored in self._archive.judgments(self._scope):
            is_passing = stored.text.reason in RETRIED_BY_NEXT_RUN
            self.passing_failures += is_passing
            if not (is_passing and again):
                self.note(unit.no, stored.judge, stored.repeat, stored.text)

    def _value(self, question: StopQuestion) -> float | None:
        """Return the mean of the values that there are, from 0, all for the baseline, to 1; None if
        none."""
        return _mean([v for contrast in question.contrasts for v in self._values(contrast)])

    def _values(self, contrast: Contrast) -> Iterator[float]:
        """Yield one value by each judge that said something of both sides."""
        for group in self._judge_groups:
            worth = self._worth(contrast.units, group)
            if self._is_pairs and worth is not None:
                yield 1 - worth if contrast.turned else worth
            against = self._worth(contrast.against, group)
            if worth is not None and against is not None:
                yield (1 + worth - against) / 2

    def _worth(self, units: Sequence[int], group: JudgeGroup) -> float | None:
        means = [_mean(self._said.get((no, group.index), [])) for no in units]
        return _mean([mean for mean in means if mean is not None])

    def decisions(self) -> list[Decision]:
        """Return the decision on each comparison so far."""
        return [self._decision(duel) for duel in self._duels]

    def _decision(self, duel: Duel) -> Decision:
        estimate = _mean(duel.values)
        figures = [*duel.betting.interval(), 0.5 if estimate is None else estimate]
        if not self._is_pairs:
            figures = [(2 * figure - 1) * self._measure.span for figure in figures]
        begun = {no for no, _, _ in self._ended}
        units = {no for question in duel.questions for no in question.units}
        return Decision(
            variant=duel.variant,
            baseline=self._plan.baseline,
            dimension=self._stop.dimension,
            outcome=duel.outcome,
            alpha=duel.alpha,
            units=duel.units,
            of=len(units),
            saved_units=len(units - begun),
            questions=len(duel.values),
            of_questions=len(duel.questions),
            skipped=duel.skipped,
            measure="win_rate" if self._is_pairs else "difference",
            estimate=None if estimate is None else figures[2],
            low=figures[0],
            high=figures[1],
            at_end=duel.betting.at_end,
        )

    def result(self) -> SequentialTest:
        """Return the state of the whole test."""
        decisions = self.decisions()
        units = {no for duel in self._duels for question in duel.questions for no in question.units}
        return SequentialTest(
            comparisons=decisions,
            alpha=self._stop.alpha,
            baseline=self._plan.baseline,
            dimension=self._stop.dimension,
            of=len(units),
            saved_units=len(units - {no for no, _, _ in self._ended}),
            notes=(*self._plan.notes, *_skips(decisions)),
        )


def _mean(values: Sequence[float]) -> float | None:
    """Return the mean, the same for any order of the values; None without any."""
    return fsum(values) / len(values) if values else None


def _skips(decisions: Sequence[Decision]) -> Iterator[str]:
    for decision in decisions:
        if decision.skipped:
            yield Sentence(
                "runs.questions_left_out",
                n=decision.skipped,
                variant=decision.variant,
                baseline=decision.baseline,
            )


def require_decision(
    judging: ReadyKind, manifest: Manifest, units: Callable[[], Iterable[StoredUnit]]
) -> None:
    """Refuse a run that could never decide what it is to decide, before it is begun; raises
    UsageError. `units` gives those that it is about."""
    stop = manifest.stop or Stopping()
    deciding_measure(judging, units(), stop.dimension)
    _deciding_variants(_plan(units(), manifest, judging.kind.measure), stop)


def _deciding_variants(plan: Planned, stop: Stopping) -> list[str]:
    """Return the variants that are to be decided, each with a question to decide it by; raise
    UsageError."""
    variants = list(plan.questions)
    names = [variants[choose(variants, stop.variant)[0]]] if stop.variant else variants
    names = [name for name in names if plan.questions[name]]
    if not names:
        raise UsageError(Sentence("runs.nothing_paired", baseline=plan.baseline))
    return names


def _plan(units: Iterable[StoredUnit], manifest: Manifest, measure: Scoring | Voting) -> Planned:
    compare = manifest.compare or Compare()
    if isinstance(measure, Voting):
        return planned_pairs(measure, units, compare.baseline)
    if not compare.by:
        raise UsageError(Sentence("runs.nothing_to_decide"))
    return planned_scores(measure, units, compare.by, compare.baseline)


class _Draw:
    """The order of questions: drawn from the seed and their names, those that came later last. A
    wave is the numbers of the units that there were before others were added."""

    def __init__(self, seed: int, waves: Sequence[set[int]]) -> None:
        self._seed, self._waves = seed, waves

    def place(self, question: StopQuestion) -> tuple[int, bytes]:
        lot = blake2b(f"{self._seed}:{question.name}".encode(), person=b"evenhand-draw-1")
        return self._wave(question), lot.digest()

    def _wave(self, question: StopQuestion) -> int:
        return sum(not units.issuperset(question.units) for units in self._waves)

    def order(self, questions: Sequence[StopQuestion]) -> list[tuple[int, ...]]:
        """Return the units of all questions, those of a question together and each unit once."""
        placed: set[int] = set()
        gathered: dict[tuple[int, bytes], list[int]] = {}
        for place, units in sorted(
            (self.place(question), question.units) for question in questions
        ):
            fresh = [no for no in units if no not in placed]
            placed.update(fresh)
            gathered.setdefault(place, []).extend(fresh)
        return [tuple(units) for units in gathered.values() if units]

    def ends(self, questions: Sequence[StopQuestion]) -> list[int]:
        """After how many of these questions in order the plan ends: where it ended before others
        were added, and at the end of all."""
        waves = [self._wave(question) for question in questions]
        planned = (sum(wave <= last for wave in waves) for last in range(len(self._waves)))
        return [*planned, len(questions)]


def schedule(
    archive: Archive,
    scope: Scope,
    judging: ReadyKind,
    judge_groups: Sequence[JudgeGroup],
    manifest: Manifest,
    width: int = AHEAD,
) -> UntilDecided:
    """Return the schedule of a run, as far as it has got. Judgments that failed for a passing
    reason are tried again, unless the run is decided without them: a decision stands."""
    decided = UntilDecided(archive, scope, judging, judge_groups, manifest, width)
    decided.replay(again=False)
    if decided.is_decided or not decided.passing_failures:
        return decided
    undecided = UntilDecided(archive, scope, judging, judge_groups, manifest, width)
    undecided.replay(again=True)
    return undecided


def stored_decision(archive: Archive, recorded: Recorded) -> SequentialTest | None:
    """Return the decision of a run that was to stop early; None for any other run, for a part of
    one, and where what it was to decide was no comparison."""
    if not recorded.manifest.is_sequential or recorded.selection is not None:
        return None
    try:
        return _stored_schedule(archive, recorded).result()
    except UsageError:
        return None


def _stored_schedule(archive: Archive, recorded: Recorded) -> UntilDecided:
    """Return the schedule of a run's last start, as far as it has got."""
    stored = _schedule_of(archive, recorded)
    stored.replay(again=False)
    return stored


def _schedule_of(archive: Archive, recorded: Recorded) -> UntilDecided:
    """Return the schedule of a run's last start before anything was judged; raise UsageError where
    what it was to decide was no comparison."""
    manifest = recorded.manifest
    scope = Scope(recorded.id, manifest.limit)
    return UntilDecided(archive, scope, recorded.judging, recorded.judge_groups, manifest)


def waves(archive: Archive, recorded: Recorded) -> tuple[Wave, ...]:
    """Return the waves to record when the last run of a suite is started again, perhaps with more
    units: those that are added come after all others, and bets on those that were there go on as
    they were made."""
    manifest = recorded.manifest
    if not manifest.is_sequential:
        return manifest.waves
    try:
        _schedule_of(archive, recorded)
    except UsageError:
        return manifest.waves
    last = Wave(run=recorded.id, limit=manifest.limit)
    return (*(wave for wave in manifest.waves if wave != last), last)
