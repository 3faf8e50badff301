"""Statistics of judged pairs: wins, agreement of the orders, and the fronts of topics.

Figures about the judge (consistency, first slot, contradictions) are of first rounds only: a later
round is asked because the first one was inconsistent. Passes about one topic are not independent
of each other, so intervals treat the topic as the unit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import Any, NamedTuple

from evenhand.observation import PassVote, Rule, Voted
from evenhand.stats.fronts import pareto, schwartz
from evenhand.stats.proportion import Proportion, clustered

OUTCOMES = ("A", "B", "tie", "uncertain")
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

    @property
    def verdicts(self) -> list[Voted]:
        """The votes that name a winner, a tie or that it is uncertain."""
        return [vote for _, vote in self.judgments if vote.winner is not None]


_PREFERRED = {"A": 0.0, "B": 1.0, "tie": 0.5, "uncertain": 0.5}


def preferred(vote: Voted | PassVote) -> float | None:
    """Return how far a vote or a pass prefers the second candidate, from 0 to 1; None if it has
    neither a preference nor a winner."""
    if vote.preference is not None or vote.winner is None:
        return vote.preference
    return _PREFERRED[vote.winner]


def under(rule: Rule, vote: Voted) -> Voted:
    """A vote under the rule for orders that contradict each other: nothing is changed by it but
    what no round brought together."""
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
    mean = sum(preferred(pass_) or 0.0 for pass_ in last) / len(last)
    winner = "B" if mean > 0.5 else "A"
    if mean == 0.5:
        # Two orders that name different winners call nobody equal.
        winner = "tie" if any(pass_.winner == "tie" for pass_ in last) else "uncertain"
    return vote._replace(winner=winner, preference=mean)


def majority(votes: Sequence[str], otherwise: str) -> str:
    """Return the vote that more than half of the votes are for; `otherwise` if there is none."""
    if len(votes) == 1:
        return votes[0]
    for vote, number in Counter(votes).items():
        if 2 * number > len(votes):
            return vote
    return otherwise


@dataclass(slots=True)
class Standing:
    """The record of one candidate in its pairs, each counted once, by the verdict of the panel."""

    wins: int = 0
    losses: int = 0
    ties: int = 0
    uncertain: int = 0


@dataclass(frozen=True, slots=True)
class Front:
    """The candidates of one topic that nothing speaks against."""

    candidates: list[str]
    front: list[str]
    pareto: list[str]
    complete: bool
    """True if every pair of the topic has a verdict."""


FRONTS_LISTED = 10_000
"""Of more topics, those of two candidates are not listed among other figures."""


def fronts_json(fronts: Mapping[str, Front]) -> dict[str, dict[str, Any]]:
    """Fronts by topic as `--json` prints them; of very many topics those with more than two
    candidates alone."""
    least = 2 if len(fronts) <= FRONTS_LISTED else 3
    return {row: asdict(sets) for row, sets in fronts.items() if len(sets.candidates) >= least}


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
    fronts: dict[str, Front] = field(default_factory=dict[str, Front])
    judges: dict[str, PairFigures] = field(default_factory=dict[str, "PairFigures"])
    """The figures of each judge, if there are several."""

    def json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {
            "outcomes": {name: self.outcomes[name] for name in OUTCOMES},
            "settled": dict(self.settled),
            "candidates": {
                name: {"wins": s.wins, "losses": s.losses, "ties": s.ties, "uncertain": s.uncertain}
                for name, s in self.standings.items()
            },
            "panel": dict(self.panel),
            "first_rounds": self.first_rounds,
            "consistency": asdict(self.consistency),
            "first_slot": asdict(self.first_slot),
            "agreement": asdict(self.agreement),
            "contradictions": dict(self.contradictions),
            "self_contradictions": self.self_contradictions,
            "passes": self.passes,
            "extra_calls": self.extra_calls,
            "fronts": fronts_json(self.fronts),
            "judges": {name: figures._of_judge() for name, figures in self.judges.items()},
        }

    def _of_judge(self) -> dict[str, Any]:
        """The figures that are reported per judge, where a run has several."""
        names = ("outcomes", "settled", "first_rounds", "consistency", "first_slot")
        more = ("contradictions", "self_contradictions", "passes", "extra_calls")
        figures = self.json()
        return {name: figures[name] for name in (*names, *more)}


def pair_figures(pairs: Iterable[Judged], *, by_judge: bool = True) -> PairFigures:
    """The figures of these pairs, of all judges together and, where there are several, of each;
    whoever knows that there is one spares counting twice."""
    counts, apart = _Counts(), dict[str, _Counts]()
    for pair in pairs:
        counts.add(pair)
        for judge in dict.fromkeys(judge for judge, _ in pair.judgments if by_judge):
            judgments = [entry for entry in pair.judgments if entry[0] == judge]
            apart.setdefault(judge, _Counts()).add(pair._replace(judgments=judgments))
    figures = _figures(counts)
    if len(apart) > 1:
        figures.judges = {judge: _figures(judge_counts) for judge, judge_counts in apart.items()}
    return figures


def _figures(counts: _Counts) -> PairFigures:
    figures = counts.figures
    figures.consistency = clustered(counts.agreeing.values())
    figures.first_slot = clustered(counts.first_slots.values())
    figures.agreement = clustered(counts.alike.values())
    figures.fronts = counts.topics.fronts()
    return figures


class Topics:
    """The pairs of each topic, and the fronts that they come to."""

    def __init__(self) -> None:
        self._pairs: dict[str, list[Judged] | Front | None] = {}
        """Of a topic of two candidates what they come to at once."""

    def add(self, pair: Judged) -> None:
        """One more pair; a candidate beside itself has no part in a front."""
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
        """By topic; none of one without any verdict."""
        fronts = {
            row: _front(pairs) if isinstance(pairs, list) else pairs
            for row, pairs in self._pairs.items()
        }
        return {row: front for row, front in fronts.items() if front is not None}


class _Counts:
    """Counts of the pairs added so far: outcomes, passes and topics."""

    def __init__(self) -> None:
        none = clustered([])
        self.figures = PairFigures(consistency=none, first_slot=none, agreement=none)
        self.agreeing: dict[str, tuple[int, int]] = {}
        self.first_slots: dict[str, tuple[int, int]] = {}
        self.alike: dict[str, tuple[int, int]] = {}
        self.topics = Topics()

    def add(self, pair: Judged) -> None:
        figures, verdicts = self.figures, pair.verdicts
        figures.outcomes.update(vote.winner for vote in verdicts if vote.winner is not None)
        figures.settled.update(vote.settled for vote in verdicts)
        if verdicts:
            winner = panel_winner(pair)
            figures.panel[winner] += 1
            self._stand(pair.candidates, winner)
        self._passes(pair)
        _add(self.alike, pair.cluster, *_alike(pair))
        self.topics.add(pair)

    def _stand(self, candidates: tuple[str, str], winner: str) -> None:
        if candidates[0] == candidates[1]:
            return  # a candidate against itself says nothing of candidates
        for side, name in zip("AB", candidates, strict=True):
            standing = self.figures.standings.setdefault(name, Standing())
            standing.wins += winner == side
            standing.losses += winner in "AB" and winner != side
            standing.ties += winner == "tie"
            standing.uncertain += winner == "uncertain"

    def _passes(self, pair: Judged) -> None:
        figures, agreeing, rounds, firsts, decided = self.figures, 0, 0, 0, 0
        for _, vote in pair.judgments:
            figures.extra_calls += sum(pass_.round > 1 for pass_ in vote.passes)
            decided_passes = [pass_ for pass_ in vote.passes if pass_.winner is not None]
            figures.passes += len(decided_passes)
            figures.self_contradictions += sum(pass_.contradicts_itself for pass_ in decided_passes)
            for first, second in _first_round(decided_passes if vote.is_order_known else []):
                rounds += 1
                agreeing += first.winner == second.winner
                figures.contradictions.update(
                    c for c, mark in first.marks.items() if mark != second.marks.get(c)
                )
                slots = [_slot(pass_) for pass_ in (first, second)]
                firsts += slots.count(1)
                decided += len(slots) - slots.count(0)
        figures.first_rounds += rounds
        _add(self.agreeing, pair.cluster, agreeing, rounds)
        _add(self.first_slots, pair.cluster, firsts, decided)


def _add(to: dict[str, tuple[int, int]], question: str, hits: int, trials: int) -> None:
    """Count for a question: what is said about its pairs hangs together."""
    counts = to.get(question, (0, 0))
    to[question] = (counts[0] + hits, counts[1] + trials)


def panel_winner(pair: Judged) -> str:
    """Return the winner by majority of the judges, each by majority of its repeats; `uncertain`
    without a majority or a verdict. A judge without a verdict has no vote."""
    return voted_winner(pair.judgments) or "uncertain"


def voted_winner(votes: Iterable[tuple[str, Voted]]) -> str | None:
    """Return the panel's winner from (judge, vote), each judge voting by the majority of its
    repeats; `uncertain` without a majority, None if no vote has a verdict."""
    judges = _by_judge(votes)
    return _winner(judges) if judges else None


def _winner(judges: Sequence[Sequence[Voted]]) -> str:
    """Return the panel's winner from the verdicts of each judge; `uncertain` without a majority."""
    winners = [majority([vote.winner or "" for vote in repeats], "uncertain") for repeats in judges]
    return majority(winners, "uncertain")


def _by_judge(votes: Iterable[tuple[str, Voted]]) -> list[list[Voted]]:
    """The verdicts of each judge."""
    judges: dict[str, list[Voted]] = {}
    for judge, vote in votes:
        if vote.winner is not None:
            judges.setdefault(judge, []).append(vote)
    return list(judges.values())


def _first_round(passes: Sequence[PassVote]) -> Iterator[tuple[PassVote, PassVote]]:
    first = [pass_ for pass_ in passes if pass_.round == 1]
    if len(first) == 2:
        yield first[0], first[1]


def _slot(pass_: PassVote) -> int:
    """Which slot of a pass won, 1 or 2; 0 for a tie."""
    return 0 if pass_.winner == "tie" else 1 + ((pass_.winner == "A") != (pass_.order == "12"))


def _alike(pair: Judged) -> tuple[int, int]:
    """Return how many pairs of verdicts by different judges agree on this pair of answers, and how
    many there are."""
    winners = [(judge, vote.winner) for judge, vote in pair.judgments if vote.winner is not None]
    matches = [a[1] == b[1] for a, b in combinations(winners, 2) if a[0] != b[0]]
    return sum(matches), len(matches)


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


def panel_marks(pair: Judged, criteria: Sequence[str] | None = None) -> list[str]:
    """Each criterion's mark by the majority of the judges; without one a tie. Judgments made
    elsewhere may lack a criterion."""
    judges = _by_judge(pair.judgments)
    return _marks(judges, judges[0][0].marks if criteria is None else criteria)


def _marks(judges: Sequence[Sequence[Voted]], criteria: Iterable[str]) -> list[str]:
    """Return the panel's mark on each criterion from the verdicts of each judge; `tie` without a
    majority."""
    return [
        majority(
            [majority([vote.marks.get(c, "tie") for vote in repeats], "tie") for repeats in judges],
            "tie",
        )
        for c in criteria
    ]
