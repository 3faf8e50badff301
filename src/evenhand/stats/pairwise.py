"""Statistics of judged pairs: wins, agreement of the orders, and the fronts of topics.

Figures about the judge (consistency, first slot, contradictions) are of first rounds only: a later
round is asked because the first one was inconsistent. Passes about one topic are not independent
of each other, so intervals treat the topic as the unit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from math import isnan
from typing import TYPE_CHECKING, Any, NamedTuple

from evenhand.observation import UNCERTAIN, PassVote, Rule, Voted

if TYPE_CHECKING:  # slow to import, and a run without pairs needs none of it
    from evenhand.stats.observations import Observations

OUTCOMES = ("A", "B", "tie", "uncertain")
FRONTS_LISTED = 10_000
"""Of more topics, those of two candidates are not listed among other figures."""
_PREFERRED = {"A": 0.0, "B": 1.0, "tie": 0.5, "uncertain": 0.5}
_TURNED = {"A+": "B+", "B+": "A+"}


class Judged(NamedTuple):
    """One pair with everything that judged it: (judge, vote), failures included."""

    row: str
    of: int
    """The number of candidates that its topic has."""
    candidates: tuple[str, str]
    judgments: Sequence[tuple[str, Voted]]
    question: str = ""
    """The question of the pair, if several rows share it; empty if the row is the question."""

    @property
    def cluster(self) -> str:
        """Return the cluster of the pair: its question, or else its row."""
        return self.question or self.row


def preference_of(vote: Voted | PassVote) -> float | None:
    """Return how far a vote or a pass prefers the second candidate, from 0 to 1; None if it has
    neither a preference nor a winner."""
    if vote.preference is not None or vote.winner is None:
        return vote.preference
    return _PREFERRED[vote.winner]


def under(rule: Rule, vote: Voted) -> Voted:
    """Return a vote under the rule for orders that contradict each other: nothing is changed by it
    but what no round brought together."""
    if vote.winner != "uncertain" or rule == "uncertain":
        return vote
    if rule == "drop":
        return vote._replace(winner=None, preference=None)
    if rule == "tie":
        return vote._replace(winner="tie", preference=None)
    decided = [pass_ for pass_ in vote.passes if pass_.winner is not None]
    if not decided:
        return vote
    last = [pass_ for pass_ in decided if pass_.round == decided[-1].round]
    mean = sum(preference_of(pass_) or 0.0 for pass_ in last) / len(last)
    winner = "B" if mean > 0.5 else "A"
    if mean == 0.5:
        # Two orders that name different winners call nobody equal.
        winner = "tie" if any(pass_.winner == "tie" for pass_ in last) else "uncertain"
    return vote._replace(winner=winner, preference=mean)


# The verdict of a panel


def majority(votes: Sequence[str], otherwise: str) -> str:
    """Return the vote that more than half of the votes are for; `otherwise` if there is none."""
    if len(votes) == 1:
        return votes[0]
    counted = Counter(votes).items()
    return next((vote for vote, number in counted if 2 * number > len(votes)), otherwise)


def panel_winner(pair: Judged) -> str:
    """Return the winner by majority of the judges; `uncertain` also without any verdict."""
    return voted_winner(pair.judgments) or "uncertain"


def voted_winner(votes: Iterable[tuple[str, Voted]]) -> str | None:
    """Return the panel's winner from (judge, vote), each judge voting by the majority of its
    repeats; `uncertain` without a majority, None if no vote has a verdict."""
    judges = _by_judge(votes)
    return _winner(judges) if judges else None


def panel_marks(pair: Judged, criteria: Sequence[str]) -> list[str]:
    """Return each criterion's mark by the majority of the judges; without one a tie. Judgments made
    elsewhere may lack a criterion."""
    return _marks(_by_judge(pair.judgments), criteria)


def _by_judge(votes: Iterable[tuple[str, Voted]]) -> list[list[Voted]]:
    """Return the verdicts of each judge; one without a verdict has no vote."""
    judges: dict[str, list[Voted]] = {}
    for judge, vote in votes:
        if vote.winner is not None:
            judges.setdefault(judge, []).append(vote)
    return list(judges.values())


def _winner(judges: Sequence[Sequence[Voted]]) -> str:
    winners = [majority([vote.winner or "" for vote in repeats], "uncertain") for repeats in judges]
    return majority(winners, "uncertain")


def _marks(judges: Sequence[Sequence[Voted]], criteria: Iterable[str]) -> list[str]:
    return [
        majority(
            [majority([vote.marks.get(c, "tie") for vote in repeats], "tie") for repeats in judges],
            "tie",
        )
        for c in criteria
    ]


# The figures of a run


@dataclass(frozen=True, slots=True)
class Proportion:
    """A share of `n` trials and its interval; without a trial it is None, anywhere from 0 to 1."""

    value: float | None
    low: float
    high: float
    n: float


def proportion(clusters: Iterable[tuple[float, float]]) -> Proportion:
    """Return the share of hits in all trials, for clusters of (hits, trials): `estimate.share`."""
    filled = [cluster for cluster in clusters if cluster[1] > 0]
    if not filled:
        return Proportion(None, 0.0, 1.0, 0)
    import numpy as np

    from evenhand.stats.estimate import share

    hits, trials = np.array(filled, dtype=np.float64).T
    found = share(hits, trials)
    assert found.low is not None and found.high is not None, "a share has a scale"
    return Proportion(found.value, found.low, found.high, float(trials.sum()))


@dataclass(slots=True)
class Standing:
    """The record of one candidate in its pairs, each counted once, by the verdict of the panel."""

    wins: int = 0
    losses: int = 0
    ties: int = 0
    uncertain: int = 0


@dataclass(slots=True, kw_only=True)
class PairFigures:
    """The figures of one run of pairs."""

    outcomes: Counter[str] = field(default_factory=Counter[str])
    settled: Counter[str] = field(default_factory=Counter[str])
    standings: dict[str, Standing] = field(default_factory=dict[str, Standing])
    panel: Counter[str] = field(default_factory=Counter[str])
    consistency: Proportion
    first_slot: Proportion
    agreement: Proportion
    first_rounds: int = 0
    contradictions: Counter[str] = field(default_factory=Counter[str])
    self_contradictions: int = 0
    passes: int = 0
    extra_calls: int = 0
    fronts: dict[str, Front] = field(default_factory=dict[str, "Front"])
    judges: dict[str, PairFigures] = field(default_factory=dict[str, "PairFigures"])
    """The figures of each judge, if there are several."""

    def json(self) -> dict[str, Any]:
        """Return it as `--json` prints it."""
        return {
            **self._judge_json(),
            "candidates": {name: asdict(standing) for name, standing in self.standings.items()},
            "panel": dict(self.panel),
            "agreement": asdict(self.agreement),
            "fronts": fronts_json(self.fronts),
            "judges": {name: figures._judge_json() for name, figures in self.judges.items()},
        }

    def _judge_json(self) -> dict[str, Any]:
        """Return the figures that are reported per judge too."""
        return {
            "outcomes": {name: self.outcomes[name] for name in OUTCOMES},
            "settled": dict(self.settled),
            "first_rounds": self.first_rounds,
            "consistency": asdict(self.consistency),
            "first_slot": asdict(self.first_slot),
            "contradictions": dict(self.contradictions),
            "self_contradictions": self.self_contradictions,
            "passes": self.passes,
            "extra_calls": self.extra_calls,
        }


def pair_figures(pairs: Iterable[Judged], *, by_judge: bool = True) -> PairFigures:
    """Return the figures of these pairs, of all judges together and, where there are several, of
    each; whoever knows that there is one spares counting twice."""
    counts, apart = _WinCounts(), dict[str, _WinCounts]()
    for pair in pairs:
        counts.add(pair)
        for judge in dict.fromkeys(judge for judge, _ in pair.judgments if by_judge):
            judgments = [entry for entry in pair.judgments if entry[0] == judge]
            apart.setdefault(judge, _WinCounts()).add(pair._replace(judgments=judgments))
    figures = counts.finish()
    if len(apart) > 1:
        figures.judges = {judge: judge_counts.finish() for judge, judge_counts in apart.items()}
    return figures


_Clusters = dict[str, tuple[int, int]]
"""The hits and trials of each question: what is said about its pairs hangs together."""


class _WinCounts:
    """Counts of the pairs added so far: outcomes, passes and topics."""

    def __init__(self) -> None:
        none = Proportion(None, 0.0, 1.0, 0)
        self.figures = PairFigures(consistency=none, first_slot=none, agreement=none)
        self.agreeing, self.first_slots, self.alike = _Clusters(), _Clusters(), _Clusters()
        self.topics = _Topics()

    def finish(self) -> PairFigures:
        """Return the figures with their shares and fronts."""
        self.figures.consistency = proportion(self.agreeing.values())
        self.figures.first_slot = proportion(self.first_slots.values())
        self.figures.agreement = proportion(self.alike.values())
        self.figures.fronts = self.topics.fronts()
        return self.figures

    def add(self, pair: Judged) -> None:
        figures, winner = self.figures, voted_winner(pair.judgments)
        winners = [(judge, vote) for judge, vote in pair.judgments if vote.winner is not None]
        figures.outcomes.update(vote.winner for _, vote in winners if vote.winner)
        figures.settled.update(vote.settled for _, vote in winners)
        if winner is not None:
            figures.panel[winner] += 1
            self._count_standing(pair.candidates, winner)
        self._count_passes(pair)
        alike = [a[1].winner == b[1].winner for a, b in combinations(winners, 2) if a[0] != b[0]]
        _add(self.alike, pair.cluster, sum(alike), len(alike))
        self.topics.add(pair)

    def _count_standing(self, candidates: tuple[str, str], winner: str) -> None:
        if candidates[0] == candidates[1]:
            return  # a candidate against itself says nothing of candidates
        for side, name in zip("AB", candidates, strict=True):
            standing = self.figures.standings.setdefault(name, Standing())
            standing.wins += winner == side
            standing.losses += winner in "AB" and winner != side
            standing.ties += winner == "tie"
            standing.uncertain += winner == "uncertain"

    def _count_passes(self, pair: Judged) -> None:
        figures, agreeing, rounds, firsts, decided = self.figures, 0, 0, 0, 0
        for _, vote in pair.judgments:
            figures.extra_calls += sum(pass_.round > 1 for pass_ in vote.passes)
            decided_passes = [pass_ for pass_ in vote.passes if pass_.winner is not None]
            figures.passes += len(decided_passes)
            figures.self_contradictions += sum(pass_.contradicts_itself for pass_ in decided_passes)
            round_1 = [pass_ for pass_ in decided_passes if pass_.round == 1]
            if not vote.is_order_known or len(round_1) != 2:
                continue
            first, second = round_1
            rounds += 1
            agreeing += first.winner == second.winner
            figures.contradictions.update(
                c for c, mark in first.marks.items() if mark != second.marks.get(c)
            )
            # The slot that won each pass, 1 or 2; none of a tie.
            slots = [
                1 + ((pass_.winner == "A") != (pass_.order == "12"))
                for pass_ in round_1
                if pass_.winner != "tie"
            ]
            firsts += slots.count(1)
            decided += len(slots)
        figures.first_rounds += rounds
        _add(self.agreeing, pair.cluster, agreeing, rounds)
        _add(self.first_slots, pair.cluster, firsts, decided)


def _add(to: _Clusters, question: str, hits: int, trials: int) -> None:
    counts = to.get(question, (0, 0))
    to[question] = (counts[0] + hits, counts[1] + trials)


# Fronts: which candidates of a topic are kept when all its pairs are judged


@dataclass(frozen=True, slots=True)
class Front:
    """The candidates of one topic that nothing speaks against."""

    candidates: list[str]
    front: list[str]
    pareto: list[str]
    complete: bool
    """True if every pair of the topic has a verdict."""


def fronts_json(fronts: Mapping[str, Front]) -> dict[str, dict[str, Any]]:
    """Return fronts by topic as `--json` prints them; of very many topics those with more than two
    candidates alone."""
    least = 2 if len(fronts) <= FRONTS_LISTED else 3
    return {row: asdict(sets) for row, sets in fronts.items() if len(sets.candidates) >= least}


class _Topics:
    """The pairs of each topic, and the fronts that they come to."""

    def __init__(self) -> None:
        self._pairs: dict[str, list[Judged] | Front | None] = {}
        """Of a topic of two candidates what they come to at once."""

    def add(self, pair: Judged) -> None:
        """Add a pair; a candidate beside itself has no part in a front."""
        if pair.candidates[0] == pair.candidates[1]:
            return
        earlier = self._pairs.get(pair.row)
        if isinstance(earlier, list):
            earlier.append(pair)
        elif pair.of > 2:
            self._pairs[pair.row] = [pair]
        else:
            # Several pairs of two on one topic are several questions, and have no front together.
            self._pairs[pair.row] = None if pair.row in self._pairs else _front([pair])

    def fronts(self) -> dict[str, Front]:
        """Return fronts by topic; none of one without any verdict."""
        fronts = {
            row: _front(pairs) if isinstance(pairs, list) else pairs
            for row, pairs in self._pairs.items()
        }
        return {row: front for row, front in fronts.items() if front is not None}


def _front(pairs: Sequence[Judged]) -> Front | None:
    """Return the fronts of one topic; none of one without any verdict, nor where two candidates met
    twice, which are several questions. A pair that is missing or failed beats and dominates
    nothing."""
    names = sorted({name for pair in pairs for name in pair.candidates})
    number = {name: place for place, name in enumerate(names)}
    if len({frozenset(pair.candidates) for pair in pairs}) < len(pairs):
        return None
    beats: list[tuple[int, int]] = []
    marks: dict[tuple[int, int], list[str]] = {}
    for pair in pairs:
        first, second = (number[name] for name in pair.candidates)
        judges = _by_judge(pair.judgments)
        if not judges:
            continue
        winner = _winner(judges)
        if winner in ("A", "B"):
            beats.append((first, second) if winner == "A" else (second, first))
        pair_marks = _marks(judges, judges[0][0].marks)
        if first < second:
            marks[first, second] = pair_marks
        else:
            marks[second, first] = [_TURNED.get(mark, mark) for mark in pair_marks]
    if not marks:
        return None
    size = pairs[0].of
    return Front(
        candidates=names,
        front=[names[place] for place in schwartz(len(names), beats)],
        pareto=[names[place] for place in pareto(len(names), marks)],
        complete=len(marks) == size * (size - 1) // 2,
    )


def schwartz(size: int, beats: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """Return the union of all minimal non-empty sets that no outsider beats, of candidates that are
    numbers from 0; `beats` is (winner, loser).

    A candidate is in it if and only if it reaches, by a chain of beats, everyone who reaches it.
    Whom each reaches is a row of bits, so that hundreds of candidates are no matter.
    """
    beats = list(beats)
    reached, outside, is_growing = [0] * size, 0, True
    for winner, loser in beats:
        reached[winner] |= 1 << loser
    while is_growing:
        is_growing = False
        for winner, loser in beats:
            further = reached[winner] | reached[loser]
            if further != reached[winner]:
                reached[winner], is_growing = further, True
    for winner, loser in beats:
        if not reached[loser] >> winner & 1:
            outside |= 1 << loser | reached[loser]
    return tuple(candidate for candidate in range(size) if not outside >> candidate & 1)


def pareto(size: int, marks: Mapping[tuple[int, int], Sequence[str]]) -> tuple[int, ...]:
    """Return the candidates that no other equals or betters on every settled criterion, bettering
    one.

    `marks[i, j]` with i < j are the settled marks of that pair: `A+` if i is better, `B+` if j is,
    or `tie`. A pair that is absent, or without marks, dominates nothing.
    """
    dominated: set[int] = set()
    for (first, second), pair_marks in marks.items():
        kinds = set(pair_marks) - {"tie"}
        if len(kinds) == 1:
            dominated.add(second if kinds == {"A+"} else first)
    return tuple(candidate for candidate in range(size) if candidate not in dominated)


def topic_fronts(table: Observations) -> dict[str, Front]:
    """Return the fronts of every topic by all judgments of its pairs."""
    if "topic" not in table.fields:
        return {}
    field, topics = table.fields["topic"], _Topics()
    names = [(*field.levels, "")[code] for code in field.codes.tolist()]
    places = list(zip(table.subject.tolist(), table.opponent.tolist(), strict=True))
    judgments: list[list[tuple[str, Voted]]] = [[] for _ in table.units]
    for row, (unit, judge) in enumerate(
        zip(table.unit.tolist(), table.judge.tolist(), strict=True)
    ):
        judgments[unit].append((table.judges[judge], _read_vote(table, row)))
    members: dict[str, set[int]] = {}
    for topic, pair in zip(names, places, strict=True):
        members.setdefault(topic, set()).update(pair if pair[0] != pair[1] else ())
    for topic, (first, second), voted in zip(names, places, judgments, strict=True):
        candidates = table.candidates[first], table.candidates[second]
        topics.add(Judged(topic, len(members[topic]), candidates, voted))
    return topics.fronts()


def _read_vote(table: Observations, row: int) -> Voted:
    """Return what a judgment says, in words."""
    said = dict(zip(table.measures, table.values[row].tolist(), strict=True))
    won = said[table.main]
    if isnan(won):
        return Voted(None)
    winner = "A" if won > 0.5 else "B" if won < 0.5 else "tie"
    marks = {name: said[name] for name in table.dimensions if not isnan(said[name])}
    return Voted(
        "uncertain" if said[UNCERTAIN] == 1 else winner,
        marks={
            name: "A+" if mark > 0.5 else "B+" if mark < 0.5 else "tie"
            for name, mark in marks.items()
        },
    )
