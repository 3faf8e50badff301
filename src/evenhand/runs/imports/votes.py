"""Votes to judgments of pairs: both orders of one judge on one pair are the passes of a judgment.

`A` is the candidate that the first row of a pair shows first. Rows in one order, or of different
samples, are repeats; no row is merged with another or dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, NamedTuple, cast

from msgspec import UNSET, Raw
from msgspec.json import Encoder
from msgspec.structs import replace

from evenhand import jsontext
from evenhand.data.layouts.tidy import (
    VOTE_COLUMNS,
    Shape,
    TidyRow,
    is_second_pass,
    judge_of,
    judged_text,
    lengths_of,
    meta_of,
    read_candidate,
    read_vote,
    text_of,
    unit_of,
)
from evenhand.judgment import (
    Failure,
    Judgment,
    JudgmentText,
    Problem,
    Reason,
    Verdict,
    write_judgment,
)
from evenhand.kinds.pairwise.verdict import (
    ORDERS,
    CriterionReply,
    Mark,
    Order,
    PairPass,
    PairVerdict,
    Settling,
    Winner,
    derive_winner,
    measure_judgment,
)
from evenhand.observation import Ends, VotedUnit, describe_unit, observe_votes
from evenhand.runs.imports.labels import KnownUnit
from evenhand.runs.imports.tally import ImportTally
from evenhand.store.ports import IncomingUnit
from evenhand.units import joined_id, pair_key

_SIDES: dict[Order, dict[str, Winner]] = {
    "12": {"first": "A", "second": "B"},
    "21": {"first": "B", "second": "A"},
}
_MARKS: dict[Winner, Mark] = {"A": "A+", "B": "B+", "tie": "tie"}
_BLANK = Raw(b"{}")
_encoder = Encoder()


class _Vote(NamedTuple):
    """The vote of a row: the order in which the candidates of its pair were shown, and what was
    said of them as they were shown."""

    order: Order
    side: str
    preference: float | None
    failed: str
    detail: str
    sample: str
    criterion: str
    flag: str
    explanation: str


@dataclass(slots=True)
class _Pair:
    """A pair of candidates on one unit, as its first row has it, with the votes by judge."""

    ident: str
    topic: str
    first: str
    second: str
    meta: dict[str, Any]
    where: str
    question: str
    answers: tuple[str, str]
    lengths: Sequence[float | None]
    votes: dict[int, list[_Vote]] = field(default_factory=dict[int, list[_Vote]])


class VoteRows:
    """The votes of one import."""

    shape: Shape = "votes"

    def __init__(self, kind: str, key: Sequence[str], judge: str, known: Mapping[str, KnownUnit]):
        """`known` are the units of another run that the votes are about; else the votes make
        theirs."""
        self.key, self._kind, self._judge, self._known = tuple(key), kind, judge, known
        self.ends: Ends = {}
        self.tally = ImportTally()
        self._pairs: dict[tuple[str, str, str], _Pair] = {}
        self._settled: dict[tuple[int, tuple[_Vote, ...]], list[_Settled]] = {}

    def add(self, row: TidyRow) -> None:
        """Take in a row; raises DataError."""
        value, where = row.value, row.where
        judge = self.tally.judge(judge_of(value, where, self._kind, self._judge))
        first, second = text_of(value.get("first")), text_of(value.get("second"))
        pair = self._pair(value, where, first, second)
        vote = read_vote(value, first, second)
        is_turned = is_second_pass(value) if first == second else first != pair.first
        criterion = text_of(value["criterion"]) if "criterion" in value else ""
        self.tally.rows += 1
        if vote.failed:
            self.tally.count_unreadable(text_of(value.get("winner")))
        if criterion:
            self.tally.names.setdefault(criterion)
        said = _Vote(
            "21" if is_turned else "12",
            *vote,
            text_of(value["sample"]) if "sample" in value else "",
            criterion,
            row.flag,
            text_of(value["explanation"]) if "explanation" in value else "",
        )
        pair.votes.setdefault(judge, []).append(said)

    def _pair(self, row: Mapping[str, Any], where: str, first: str, second: str) -> _Pair:
        """Return the pair of a row, which is made of the first row about it."""
        ident = unit = text_of(row.get("unit"))
        meta = meta_of(row, VOTE_COLUMNS)
        if len(self.key) > 1:
            meta = {"unit": unit, **meta}
            ident = joined_id(meta.get(name) for name in self.key)
        place = (ident, first, second) if first <= second else (ident, second, first)
        pair = self._pairs.get(place)
        if pair is not None:
            if meta != pair.meta:
                self.tally.compare(meta, pair.meta, self.key)
            return pair
        # Later rows about the pair name the same.
        unit = unit_of(row, where, self._kind)
        first, second = (read_candidate(row, name, where) for name in ("first", "second"))
        if unit in self._known:
            first, second = self._known[unit].names
        answers = (judged_text(row.get("first_answer")), judged_text(row.get("second_answer")))
        self._pairs[place] = pair = _Pair(
            *(ident, unit, first, second, meta, where),
            question=judged_text(row.get("question")),
            answers=answers,
            lengths=lengths_of(row, answers),
        )
        self.tally.candidates |= {first, second}
        return pair

    def finish(self) -> None:
        """Bring the counts up to date once all rows are there."""
        self.tally.units = len(self._pairs)

    def units(self, language: str) -> Iterator[IncomingUnit]:
        """Yield every pair with its judgments.

        Where a unit has several pairs, the ids of all name their candidates, and in one order
        whoever was shown first: so runs about the same pairs have the same ids and can be joined.
        """
        are_named = len({ident for ident, *_ in self._pairs}) < len(self._pairs)
        for pair in self._pairs.values():
            if known := self._known.get(pair.ident):
                unit, meta = known.unit, known.meta
            else:
                unit = _unit(pair, are_named=are_named, language=language)
                meta = Raw(jsontext.dumps_lossy(pair.meta).encode())
            judgments = []
            for judge, votes in pair.votes.items():
                for repeat, settled in enumerate(self._settle(judge, votes)):
                    text = settled.text(unit.id, (pair.first, pair.second), meta)
                    judgments.append((judge, repeat, text))
            yield unit._replace(judgments=judgments)

    def _settle(self, judge: int, votes: Sequence[_Vote]) -> list[_Settled]:
        """Return what the votes of a judge on one pair come to, counted. Most pairs share what was
        said of them with many others: that is worked out once."""
        place = (judge, tuple(votes))
        settled = self._settled.get(place)
        if settled is None:
            settled = list(map(_Settled, settle_votes(votes, list(self.tally.judges)[judge])))
            if not any(vote.explanation for vote in votes):
                self._settled[place] = settled
        self.tally.count(judge, [each.judgment for each in settled])
        return settled


class _Settled:
    """A judgment of a pair that is still to be named, and its text. All pairs of which the same was
    said share that text, but for what the verdict says of the pair, which stands first."""

    def __init__(self, judgment: Judgment) -> None:
        self.judgment = judgment
        self._text = write_judgment(judgment, (), list(observe_votes(measure_judgment(judgment))))
        if isinstance(judgment, Verdict):
            self._rest = self._text.body.removeprefix(f'{{"output":{_to_json(judgment.value)}')

    def text(self, pair_id: str, candidates: tuple[str, str], meta: Raw) -> JudgmentText:
        """Return the judgment of a certain pair, as it is stored."""
        if not isinstance(self.judgment, Verdict):
            return self._text
        assert isinstance(self.judgment.value, PairVerdict)
        named = replace(self.judgment.value, pair_id=pair_id, candidates=candidates, meta_json=meta)
        body = f'{{"output":{_to_json(named)}{self._rest}'
        return JudgmentText("verdict", None, body, self._text.observations)


def _to_json(value: object) -> str:
    return _encoder.encode(value).decode()


def _unit(pair: _Pair, *, are_named: bool, language: str) -> IncomingUnit:
    """Return a pair as a unit of a run, its text as `load_pair` reads it."""
    names = (pair.first, pair.second)
    ident = pair_key(pair.ident, sorted(names)) if are_named else pair.ident
    body = {
        "id": ident,
        "topic": pair.question,
        "candidates": [
            {"id": name, "text": text} for name, text in zip(names, pair.answers, strict=True)
        ],
        "row": pair.topic,
        "meta": pair.meta,
        "lengths": pair.lengths,
    }
    first, second = (None if length is None else int(length) for length in pair.lengths)
    measured = VotedUnit(pair.topic, names, (first, second), pair.meta)
    return IncomingUnit(
        ident,
        pair.where,
        jsontext.dumps_lossy(body),
        description=describe_unit(measured, language),
    )


def settle_votes(votes: Sequence[_Vote], judge: str) -> list[Judgment]:
    """Return the judgments of one judge on one pair, which is blank: the k-th vote in one order
    goes with the k-th in the other."""
    samples: dict[str, dict[Order, list[dict[str, _Vote]]]] = {}
    counts: dict[tuple[str, str, str], int] = {}
    for vote in votes:
        place = (vote.sample, vote.order, vote.criterion)
        orders = samples.setdefault(vote.sample, {"12": [], "21": []})
        number = counts[place] = counts.get(place, -1) + 1
        if number == len(orders[vote.order]):
            orders[vote.order].append({})
        orders[vote.order][number][vote.criterion] = vote
    judgments: list[Judgment] = []
    for orders in samples.values():
        for said in zip_longest(orders["12"], orders["21"]):
            passes = tuple(
                _pass(by_criterion, order, judge)
                for order, by_criterion in zip(ORDERS, said, strict=True)
                if by_criterion is not None
            )
            flags = dict.fromkeys(vote.flag for each in said if each for vote in each.values())
            judgments.append(_make_judgment(passes, tuple(filter(None, flags))))
    return judgments


def _pass(said: Mapping[str, _Vote], order: Order, judge: str) -> PairPass:
    """Return what was said in one order, of the candidates as the unit has them."""
    whole = said.get("")
    marks = {name: _mark(vote, order) for name, vote in said.items() if name}
    bad = whole or next((vote for vote in said.values() if vote.failed), None)
    if bad and bad.failed and (whole or not any(marks.values())):
        problems = (Problem(cast("Reason", bad.failed), "winner", bad.detail),)
        return PairPass(reask=0, problems=problems, round=1, order=order, judge=judge, flags=())
    preference = whole.preference if whole else None
    return PairPass(
        reask=0,
        problems=(),
        round=1,
        order=order,
        judge=judge,
        flags=(),
        winner=_SIDES[order].get(whole.side, "tie") if whole else derive_winner(marks, ()),
        preference=preference if preference is None or order == "12" else 1 - preference,
        criteria={
            name: CriterionReply(comment=said[name].explanation or None, mark=mark)
            for name, mark in marks.items()
        },
        explanation=whole.explanation if whole else "",
    )


def _mark(vote: _Vote, order: Order) -> Mark | None:
    return None if vote.failed else _MARKS[_SIDES[order].get(vote.side, "tie")]


def _make_judgment(passes: tuple[PairPass, ...], flags: tuple[str, ...]) -> Judgment:
    if failed := next((each for each in passes if each.problems), None):
        return _failure(failed, passes, flags)
    winners = {each.winner for each in passes}
    is_uncertain = len(winners) > 1
    how: Settling = "one_order" if len(passes) == 1 else "uncertain" if is_uncertain else "stable"
    marks, unstable = _settle_marks(passes)
    preferences = [each.preference for each in passes if each.preference is not None]
    verdict = PairVerdict(
        pair_id="",
        candidates=("", ""),
        winner="uncertain" if is_uncertain else passes[0].winner or "tie",
        settled=how,
        rounds=1,
        criteria=marks,
        unstable=tuple(unstable),
        # What it calls the first answer is that of the unit.
        notes=next((each.explanation for each in passes if each.order == "12"), ""),
        meta_json=_BLANK,
        preference=sum(preferences) / len(preferences) if preferences else UNSET,
    )
    if any(mark is None for each in passes for mark in each.marks.values()):
        flags = (*flags, "marks_missing")
    return Verdict(value=verdict, flags=flags, passes=passes)


def _failure(failed: PairPass, passes: tuple[PairPass, ...], flags: tuple[str, ...]) -> Failure:
    (problem,) = failed.problems
    detail = problem.message
    if len(passes) > 1:
        others = [f"order {each.order} says {each.winner}" for each in passes if each.winner]
        detail = "; ".join([f"order {failed.order}: {detail}", *others])
    return Failure(reason=problem.code, detail=detail, flags=flags, passes=passes)


def _settle_marks(passes: Sequence[PairPass]) -> tuple[dict[str, Mark], list[str]]:
    """Return each criterion's mark; one on which the orders differ is unstable, and a tie."""
    marks: dict[str, Mark] = {}
    unstable: list[str] = []
    for name in dict.fromkeys(name for each in passes for name in each.marks):
        values = [each.marks[name] for each in passes if name in each.marks]
        if not any(values):
            continue
        if len(set(values)) > 1:
            unstable.append(name)
        marks[name] = "tie" if len(set(values)) > 1 else values[0] or "tie"
    return marks, unstable
