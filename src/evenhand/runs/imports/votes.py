"""Votes to judgments of pairs: both orders of one judge on one pair are the passes of a judgment.

`A` is the candidate that the first row of a pair shows first. Rows in one order, or of different
samples, are repeats; no row is merged with another or dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, zip_longest
from typing import Any, Literal, NamedTuple, cast

from msgspec import UNSET, Raw
from msgspec.structs import replace
from pydantic_core import from_json

from evenhand import jsontext
from evenhand.data.foreign import TidyRow
from evenhand.data.foreign.tidy import VOTE_COLUMNS, judge_of, meta_of, read_vote, unit_of
from evenhand.judgment import (
    Failure,
    Judgment,
    JudgmentText,
    Problem,
    Reason,
    Verdict,
    write_judgment,
)
from evenhand.kinds.pairwise.protocol import ORDERS, derived
from evenhand.kinds.pairwise.verdict import (
    CriterionComment,
    Mark,
    Order,
    PairPass,
    PairVerdict,
    Settling,
    Winner,
)
from evenhand.ledger.ports import IncomingUnit
from evenhand.measures import Unreadable
from evenhand.runs.imports.keys import Columns, key_values
from evenhand.runs.imports.labels import KnownPair, KnownPairs
from evenhand.runs.imports.spool import Spool
from evenhand.runs.imports.tally import Tally

_COLUMNS = (
    *("key", "cluster", "low", "high", "judge", "first", "said", "preference", "failed", "detail"),
    *("turned", "sample", "criterion", "first_length", "second_length", "flag", "meta", "origin"),
    *("question", "first_answer", "second_answer", "explanation"),
)
_UNITS = (
    "SELECT r.key, r.cluster, r.low, r.high, r.first, r.first_length, r.second_length, r.meta,"
    " r.origin, r.question, r.first_answer, r.second_answer, {} FROM units u"
    " JOIN rows r ON r.no=u.no {} ORDER BY u.no"
)
_META = 7
"""Where the meta stands in it."""
_SEVERAL = "SELECT count(*) > count(DISTINCT key) FROM units"
_TOPICS = """
    CREATE TABLE topics AS
    SELECT key, name, row_number() OVER (PARTITION BY key ORDER BY min(shown)) AS place
    FROM (
        SELECT u.key AS key, r.first AS name, 2 * u.no AS shown
        FROM units u JOIN rows r ON r.no=u.no WHERE u.low<>u.high
        UNION ALL
        SELECT u.key, CASE WHEN r.first=u.low THEN u.high ELSE u.low END, 2 * u.no + 1
        FROM units u JOIN rows r ON r.no=u.no WHERE u.low<>u.high
    )
    GROUP BY key, name
"""
"""The candidates of each unit, numbered in the order in which they are shown first."""
_PLACES = (
    "LEFT JOIN topics f ON f.key=u.key AND f.name=r.first LEFT JOIN topics s ON s.key=u.key"
    " AND s.name=CASE WHEN r.first=u.low THEN u.high ELSE u.low END"
)
_VOTES = (
    "SELECT p.unit, p.judge, r.first, r.said, r.preference, r.failed, r.detail, r.turned, r.sample,"
    " r.criterion, r.flag, r.meta, r.explanation FROM placed p"
    " JOIN rows r ON r.no=p.row ORDER BY p.place"
)
_CANDIDATES = "SELECT low FROM units UNION SELECT high FROM units ORDER BY 1"
_CRITERIA = "SELECT criterion FROM rows WHERE criterion<>'' GROUP BY criterion ORDER BY min(no)"
UNREADABLE = "unreadable_order"
"""Of a judgment one order of which nobody can read, settled without it."""
_SIDES: dict[Order, dict[str, Winner]] = {
    "12": {"first": "A", "second": "B"},
    "21": {"first": "B", "second": "A"},
}
_MARKS: dict[Winner, Mark] = {"A": "A+", "B": "B+", "tie": "tie"}


class _Row(NamedTuple):
    """A vote as it waits."""

    unit: int
    judge: int
    first: str
    said: str
    preference: float | None
    failed: str
    detail: str
    turned: int
    sample: str
    criterion: str
    flag: str
    meta: str
    explanation: str


class _Pair(NamedTuple):
    """A pair of candidates on one unit."""

    id: str
    first: str
    second: str
    meta: str
    """As JSON."""

    def order(self, row: _Row) -> Order:
        """In which order a row shows the candidates; one that meets itself goes by `pass`."""
        is_turned = row.turned if self.first == self.second else row.first != self.first
        return "21" if is_turned else "12"


class VoteRows:
    """The votes of one import."""

    shape: Literal["votes"] = "votes"

    def __init__(
        self,
        kind: str,
        key: tuple[str, ...],
        judge: str,
        known: KnownPairs | None = None,
        on_unreadable: Unreadable = "fail",
    ) -> None:
        self.kind, self.key, self._judge, self._known = kind, key, judge, known
        self._on_unreadable: Unreadable = on_unreadable
        self.tally, self._columns, self._spool = Tally(), Columns(), Spool(_COLUMNS)
        self.judges: list[str] = []

    def __enter__(self) -> VoteRows:
        return self

    def __exit__(self, *_: object) -> None:
        self._spool.close()

    @property
    def criteria(self) -> list[str]:
        return self.tally.names

    def fill(self, rows: Iterable[TidyRow]) -> None:
        """Take in all rows; raises DataError."""
        spool, tally = self._spool, self.tally
        tally.rows = spool.fill(map(self._row, rows))
        self._columns.require(self.key)
        spool.place(("key", "low", "high"))
        self.judges = spool.names("SELECT name FROM judges ORDER BY place")
        tally.repeats = [0] * len(self.judges)
        tally.candidates = spool.names(_CANDIDATES)
        tally.names = spool.names(_CRITERIA)

    def _row(self, source: TidyRow) -> tuple[Any, ...]:
        row, where = source.value, source.where
        vote, meta = read_vote(row, where), meta_of(row, VOTE_COLUMNS, self.key)
        if vote.spelled:
            self.tally.spelled[vote.spelled, vote.side] += 1
        self.tally.note_unreadable(vote.unreadable)
        judge = judge_of(row, where, self.kind, self._judge)
        unit = unit_of(row, where, self.kind, self.key)
        self._columns.see({"unit": unit, **meta} if unit else meta)
        ident, meta = key_values(self.key, unit, meta)
        low, high = sorted((vote.first, vote.second))
        return (
            *(ident, unit or ident, low, high, judge, vote.first, vote.side, vote.preference),
            *(vote.failed, vote.detail, vote.turned, vote.sample, vote.criterion),
            *(*vote.lengths, source.flag, jsontext.swift(meta), where),
            *(vote.question, *vote.answers, vote.explanation),
        )

    def units(self) -> Iterator[IncomingUnit]:
        """Every pair with its judgments."""
        rows_of_votes = map(_Row._make, self._spool.rows(_VOTES))
        by_unit = groupby(rows_of_votes, key=lambda row: row.unit)
        for opening, (_, rows) in zip(self._openings(), by_unit, strict=True):
            pair, unit = _pair(*opening)
            if self._known is not None:
                pair, unit = _as_known(self._known.pairs[unit.id], unit)
            first = opening[0][_META]
            texts: list[tuple[int, int, JudgmentText]] = []
            for judge, group in groupby(rows, key=lambda row: row.judge):
                votes = list(group)
                for row in votes:
                    self.tally.compare(row.meta, first, self.key)
                judgments = settled(pair, votes, self.judges[judge], self._on_unreadable)
                self.tally.count(judge, judgments)
                for repeat, judgment in enumerate(judgments):
                    texts.append((judge, repeat, write_judgment(judgment)))
            self.tally.units += 1
            yield unit._replace(judgments=texts)

    def _openings(self) -> Iterator[tuple[Sequence[Any], bool]]:
        """The first row of every pair with the places of its candidates, and whether there are
        units with several pairs."""
        (several,) = self._spool.names(_SEVERAL)
        if not several:
            rows = self._spool.rows(_UNITS.format("1, 2", ""))
        else:
            self._spool.run(_TOPICS)
            self._spool.run("CREATE INDEX topics_by_name ON topics (key, name)")
            rows = self._spool.rows(_UNITS.format("f.place, s.place", _PLACES))
        return ((row, bool(several)) for row in rows)


def _pair(row: Sequence[Any], several: bool) -> tuple[_Pair, IncomingUnit]:
    """The pair of its first row, and its text as `load_pair` reads it.

    Where a unit has several pairs, the ids of all name their candidates, and in one order whoever
    was shown first: so runs about the same pairs have the same ids and can be joined.
    """
    key, cluster, low, high, first, first_length, second_length, meta, origin, *more = row
    question, first_answer, second_answer, *places = more
    if low == high or cluster != key:
        # No front has a candidate that meets itself, nor one made of several units of a topic.
        places = [1, 1 if low == high else 2]
    second = high if first == low else low
    ident = f"{key}#{low}-{high}" if several else key
    pair = _Pair(ident, first, second, meta)
    body = {
        "id": ident,
        "topic": question,
        "candidates": [
            {"id": first, "text": first_answer},
            {"id": second, "text": second_answer},
        ],
        "row": cluster,
        "places": places,
        "meta": from_json(meta),
        "lengths": (
            first_length if first_length is not None else len(first_answer) or None,
            second_length if second_length is not None else len(second_answer) or None,
        ),
    }
    return pair, IncomingUnit(ident, origin, jsontext.swift(body))


def _as_known(known: KnownPair, unit: IncomingUnit) -> tuple[_Pair, IncomingUnit]:
    """A pair of votes as the run has it that knew it before."""
    pair = _Pair(known.id, known.first, known.second, known.meta)
    return pair, unit._replace(body=known.body)


def settled(
    pair: _Pair, rows: Sequence[_Row], judge: str, on_unreadable: Unreadable = "fail"
) -> list[Judgment]:
    """The judgments of one judge on one pair: the k-th row in one order goes with the k-th in the
    other."""
    samples: dict[str, dict[Order, list[dict[str, _Row]]]] = {}
    counts: dict[tuple[str, str, str], int] = {}
    for row in rows:
        order = pair.order(row)
        place = (row.sample, order, row.criterion)
        orders = samples.setdefault(row.sample, {"12": [], "21": []})
        number = counts[place] = counts.get(place, -1) + 1
        if number == len(orders[order]):
            orders[order].append({})
        orders[order][number][row.criterion] = row
    judgments: list[Judgment] = []
    for orders in samples.values():
        for slots in zip_longest(orders["12"], orders["21"]):
            passes = tuple(
                _pass(slot, order, judge)
                for order, slot in zip(ORDERS, slots, strict=True)
                if slot is not None
            )
            flags = dict.fromkeys(
                row.flag for slot in slots if slot for row in slot.values() if row.flag
            )
            readable = _readable(passes, on_unreadable)
            more = () if readable == passes else (UNREADABLE,)
            judgments.append(_judgment(pair, readable, (*flags, *more)))
    return judgments


def _readable(passes: tuple[PairPass, ...], rule: Unreadable) -> tuple[PairPass, ...]:
    """The passes of a judgment under the rule for an order that cannot be read, where the other
    one can."""
    if rule == "fail" or not (0 < sum(bool(each.problems) for each in passes) < len(passes)):
        return passes
    if rule == "other":
        return tuple(each for each in passes if not each.problems)
    return tuple(
        replace(each, problems=(), winner="tie") if each.problems else each for each in passes
    )


def _pass(slot: Mapping[str, _Row], order: Order, judge: str) -> PairPass:
    """What was said in one order, of the candidates as the unit has them."""
    whole = slot.get("")
    marks = {criterion: _mark(row, order) for criterion, row in slot.items() if criterion}
    bad = whole if whole else next((row for row in slot.values() if row.failed), None)
    if bad and bad.failed and (whole or not any(marks.values())):
        problems = (Problem(cast("Reason", bad.failed), "winner", bad.detail),)
        return PairPass(
            reask=0, problems=problems, round=1, order=order, judge=judge, flags=(), marks={}
        )
    return PairPass(
        reask=0,
        problems=(),
        round=1,
        order=order,
        judge=judge,
        flags=(),
        winner=_SIDES[order].get(whole.said, "tie") if whole else derived(marks, ()),
        marks=marks,
        preference=_preference(whole, order),
        criteria={
            criterion: CriterionComment(comment=row.explanation)
            for criterion, row in slot.items()
            if criterion and row.explanation
        },
        explanation=whole.explanation if whole else "",
    )


def _preference(whole: _Row | None, order: Order) -> float | None:
    """How far the second candidate of the unit is preferred, where a row says so."""
    if whole is None or whole.preference is None:
        return None
    return whole.preference if order == "12" else 1 - whole.preference


def _mark(row: _Row, order: Order) -> Mark | None:
    if row.failed:
        return None
    side = _SIDES[order].get(row.said, "tie")
    return _MARKS[side]


def _judgment(pair: _Pair, passes: tuple[PairPass, ...], flags: tuple[str, ...]) -> Judgment:
    for judged_pass in passes:
        if judged_pass.problems:
            return _failure(judged_pass, passes, flags)
    winners = {judged_pass.winner for judged_pass in passes}
    is_uncertain = len(winners) > 1
    how: Settling = "one_order" if len(passes) == 1 else "uncertain" if is_uncertain else "stable"
    marks, unstable = _marks(passes)
    preferences = [
        judged_pass.preference for judged_pass in passes if judged_pass.preference is not None
    ]
    verdict = PairVerdict(
        pair_id=pair.id,
        candidates=(pair.first, pair.second),
        winner="uncertain" if is_uncertain else passes[0].winner or "tie",
        settled=how,
        rounds=1,
        criteria=marks,
        unstable=tuple(unstable),
        # What it calls the first answer is that of the unit.
        notes=next((pass_.explanation for pass_ in passes if pass_.order == "12"), ""),
        meta_json=Raw(pair.meta),
        preference=sum(preferences) / len(preferences) if preferences else UNSET,
    )
    if any(mark is None for judged_pass in passes for mark in judged_pass.marks.values()):
        flags = (*flags, "marks_missing")
    return Verdict(value=verdict, flags=flags, passes=passes)


def _failure(failed: PairPass, passes: tuple[PairPass, ...], flags: tuple[str, ...]) -> Failure:
    (problem,) = failed.problems
    detail = problem.message
    if len(passes) > 1:
        detail = f"order {failed.order}: {detail}"
        others = [
            f"order {judged_pass.order} says {judged_pass.winner}"
            for judged_pass in passes
            if judged_pass.winner
        ]
        detail = "; ".join([detail, *others])
    return Failure(reason=problem.code, detail=detail, flags=flags, passes=passes)


def _marks(passes: Sequence[PairPass]) -> tuple[dict[str, Mark], list[str]]:
    """Each criterion's mark; one on which the orders differ is unstable, and a tie."""
    marks: dict[str, Mark] = {}
    unstable: list[str] = []
    for criterion in dict.fromkeys(name for judged_pass in passes for name in judged_pass.marks):
        values = [
            judged_pass.marks[criterion] for judged_pass in passes if criterion in judged_pass.marks
        ]
        if not any(values):
            continue
        if len(set(values)) > 1:
            unstable.append(criterion)
        marks[criterion] = "tie" if len(set(values)) > 1 else values[0] or "tie"
    return marks, unstable
