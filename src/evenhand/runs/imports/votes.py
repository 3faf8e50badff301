"""Votes to judgments of pairs: both orders of one judge on one pair are the passes of a judgment.

`A` is the candidate that the first row of a pair shows first. Rows in one order, or of different
samples, are repeats; no row is merged with another or dropped.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal, NamedTuple

from msgspec.json import encode
from msgspec.msgpack import Decoder, Encoder

from evenhand import jsontext
from evenhand.data.foreign import TidyRow
from evenhand.data.foreign.plain_cells import PlainCells
from evenhand.data.foreign.tidy import (
    READ_COLUMNS,
    SHOWN_COLUMNS,
    VOTE_COLUMNS,
    Shown,
    meta_of,
    read_shown,
    read_vote,
    text_of,
)
from evenhand.judgment import Judgment, JudgmentText, write_judgment
from evenhand.ledger.ports import IncomingUnit
from evenhand.limits import BATCH_ROWS, ROWS_A_NOTICE
from evenhand.measures import Unreadable
from evenhand.runs.imports.forms import BLANK, Forms
from evenhand.runs.imports.keys import Columns, Seen, key_values
from evenhand.runs.imports.labels import KnownPair, KnownPairs
from evenhand.runs.imports.memo import COLUMN_SETS, MEMO_ENTRIES, Memo, Vocabulary, keep
from evenhand.runs.imports.met import Met
from evenhand.runs.imports.settled import VotedPair, VoteRow, settled
from evenhand.runs.imports.spool import Spool
from evenhand.runs.imports.tally import Tally

_TABLES = {
    "units": (
        *("no INTEGER PRIMARY KEY", "key", "cluster", "low", "high", "first", "first_length"),
        *("second_length", "meta", "origin", "question", "first_answer", "second_answer"),
    ),
    "stretches": ("unit", "votes"),
}
"""A stretch are the votes on one unit that stand together in the files, packed."""
_pack = Encoder().encode
_unpack = Decoder(list[tuple[Any, ...]]).decode
_UNITS = (
    "SELECT u.key, u.cluster, u.low, u.high, u.first, u.first_length, u.second_length, u.meta,"
    " u.origin, u.question, u.first_answer, u.second_answer, {} FROM units u {} ORDER BY u.no"
)
_META = 7
"""Where the meta stands in it."""
_UNIT = "SELECT no, first, meta FROM units WHERE key=? AND low=? AND high=?"
_BY_KEY = "CREATE INDEX IF NOT EXISTS units_by_key ON units (key, low, high)"
_SEVERAL = "SELECT count(*) > count(DISTINCT key) FROM units"
_TOPICS = """
    CREATE TABLE topics AS
    SELECT key, name, row_number() OVER (PARTITION BY key ORDER BY min(shown)) AS place
    FROM (
        SELECT key, first AS name, 2 * no AS shown FROM units WHERE low<>high
        UNION ALL
        SELECT key, CASE WHEN first=low THEN high ELSE low END, 2 * no + 1
        FROM units WHERE low<>high
    )
    GROUP BY key, name
"""
"""The candidates of each unit, numbered in the order in which they are shown first."""
_PLACES = (
    "LEFT JOIN topics f ON f.key=u.key AND f.name=u.first LEFT JOIN topics s ON s.key=u.key"
    " AND s.name=CASE WHEN u.first=u.low THEN u.high ELSE u.low END"
)
_IN_ORDER = "SELECT * FROM stretches ORDER BY rowid"
_STRETCHES = "SELECT * FROM stretches ORDER BY unit, rowid"
_CANDIDATES = "SELECT low FROM units UNION SELECT high FROM units ORDER BY 1"
_BLANKS = (f'"{BLANK}","candidates":["{BLANK}","{BLANK}"]', f'"{BLANK}"')
"""What a judgment says of its pair: its id and its candidates, and its meta."""
_BLANK_PAIR = VotedPair(BLANK, BLANK, BLANK, f'"{BLANK}"')
PLACES_CHARS = 1 << 24
"""Texts of units that are kept at hand."""
_JUDGE, _SAID, _EXPLANATION, _OWN_META = 0, slice(1, 4), 4, 5
"""Of a waiting vote: what decides what it comes to, and what is said beside."""


class _Reading(NamedTuple):
    """What cells say of a vote beside its unit, its judge and its meta."""

    low: str
    high: str
    first: str
    is_turned: bool
    said: int | str
    """The words of the vote, see `Vocabulary`."""
    criterion: str
    spelled: tuple[str, str] | None
    unreadable: str
    is_noted: bool
    """Whether there is something to count in every row that says this."""


class _Place(NamedTuple):
    """A unit as it waits: its number, the candidate that it shows first, its meta as JSON."""

    no: int
    first: str
    meta: str


class _Memos(NamedTuple):
    """What rows with the same columns say."""

    reading: Memo[_Reading]
    meta: Memo[tuple[dict[str, Any], str]]
    shown: Memo[Shown]
    has_explanation: bool


class _CellMemos:
    """What the cells of one table say, by the cells."""

    def __init__(self, table: PlainCells) -> None:
        names = table.places
        self.read = table.getter(name for name in names if name in READ_COLUMNS)
        self.about = table.getter(name for name in names if name not in VOTE_COLUMNS)
        self.readings: dict[Any, _Reading] = {}
        self.metas: dict[Any, str] = {}
        self.judges: dict[str, int] = {}


def has_plain_votes(table: PlainCells, key: Sequence[str]) -> bool:
    """Whether a table has the columns that `VoteRows.fill_from` reads."""
    names = table.places.keys()
    verdicts = {"winner", "preference"} & names
    return {"unit", "first", "second"} <= names and bool(verdicts) and tuple(key) == ("unit",)


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
        voters: str = "",
    ) -> None:
        self.kind, self.key, self._known = kind, key, known
        self._voters, self._counts = voters, array("I")
        """What voters are called that nobody tells apart, and of each unit how many there are."""
        self._on_unreadable: Unreadable = on_unreadable
        self.tally, self._spool = Tally(), Spool(_TABLES)
        self._columns = Columns()
        self._seen = Seen(kind, judge, self._columns)
        self._waiting: dict[str, list[tuple[Any, ...]]] = {"units": [], "stretches": []}
        self._memos: dict[tuple[str, ...], _Memos] = {}
        self._places: dict[tuple[str, str, str], _Place] = {}
        """Units that are at hand; those that are not may wait on the disk."""
        self._chars, self._has_more, self._met = 0, False, Met()
        self._vocabulary = Vocabulary()
        self._criteria: dict[str, None] = {}
        self._stretch: list[tuple[Any, ...]] = []
        self._last, self._is_in_order = 0, True
        """The unit of the last row, and whether units came one after the other."""

    def __enter__(self) -> VoteRows:
        return self

    def __exit__(self, *_: object) -> None:
        self._spool.close()

    @property
    def criteria(self) -> list[str]:
        return self.tally.names

    @property
    def judges(self) -> list[str]:
        return self._seen.judges

    def fill(self, rows: Iterable[TidyRow]) -> None:
        """Take in all rows; raises DataError."""
        for row in rows:
            self._vote(row)
            self.tally.rows += 1
        self.complete()

    def fill_from(self, table: PlainCells, notice: Callable[[int], None]) -> None:
        """Take in the records of a table whose cells are read where they stand, as `fill` would as
        rows; told now and then how many they are. After the last, `complete`. Raises DataError."""
        memos, number = _CellMemos(table), self.tally.rows
        read, about, places = memos.read, memos.about, self._places
        readings, metas, judges = memos.readings, memos.metas, memos.judges
        unit_at, why_at = table.places["unit"], table.places.get("explanation")
        judge_at = table.places.get("judge", table.places["first"])
        for cells in table:
            said, beside = read(cells), about(cells)
            if (reading := readings.get(said)) is None:
                reading = self._reading(table.row(cells), table.where)
                keep(readings, said, reading)
            if (meta := metas.get(beside)) is None:
                meta = self._meta(table.row(cells), table.where)[1]
                keep(metas, beside, meta)
            if reading.is_noted:
                self._note(reading)
            ident = cells[unit_at].strip()
            if not ident or self._seen.is_open:
                ident = self._seen.unit(table.row(cells), table.where, self.key)
            if (place := places.get((ident, reading.low, reading.high))) is None:
                source = TidyRow("votes", table.row(cells), table.where)
                key = (ident, reading.low, reading.high)
                place = self._place(key, ident, reading, meta, source)
            if (judge := judges.get(cells[judge_at])) is None:
                judge = self._judge(table.row(cells), table.where, place)
                if not self._voters:
                    keep(judges, cells[judge_at], judge)
            why = None if why_at is None else cells[why_at].strip()
            self._wait(place, judge, reading, meta, why)
            number += 1
            if number % ROWS_A_NOTICE == 0:
                notice(number)
        self.tally.rows = number

    def complete(self) -> None:
        """All rows are there."""
        spool, tally = self._spool, self.tally
        self._end_stretch()
        spool.write(self._waiting)
        self._columns.require(self.key)
        tally.repeats = [0] * len(self.judges)
        tally.candidates = spool.names(_CANDIDATES)
        tally.names = list(self._criteria)

    def _vote(self, source: TidyRow) -> None:
        row, where = source.value, source.where
        memos = self._memos.get(tuple(row)) or self._new_memos(row)
        reading, (fields, meta) = memos.reading(row, where), memos.meta(row, where)
        self._note(reading)
        ident = unit = self._seen.unit(row, where, self.key)
        if self.key != ("unit",):
            ident, fields = key_values(self.key, unit, fields)
            meta = jsontext.swift(fields)
        key = (ident, reading.low, reading.high)
        place = self._places.get(key) or self._place(key, unit, reading, meta, source)
        judge = self._judge(row, where, place)
        explanation = text_of(row["explanation"]) if memos.has_explanation else None
        self._wait(place, judge, reading, meta, explanation, source.flag)

    def _wait(
        self,
        place: _Place,
        judge: int,
        reading: _Reading,
        meta: str,
        explanation: str | None,
        flag: str = "",
    ) -> None:
        """Have a vote wait."""
        no, first, unit_meta = place
        if no != self._last:
            self._end_stretch()
            self._is_in_order = self._is_in_order and no > self._last
            self._last = no
        is_turned = reading.is_turned if reading.low == reading.high else first != reading.first
        own_meta = None if meta == unit_meta else meta
        self._stretch.append((judge, reading.said, is_turned, flag, explanation, own_meta))

    def _end_stretch(self) -> None:
        """The votes on one unit that stand together are complete."""
        if self._stretch:
            stretches = self._waiting["stretches"]
            stretches.append((self._last, _pack(self._stretch)))
            self._stretch.clear()
            if len(stretches) >= BATCH_ROWS:
                self._spool.write(self._waiting)

    def _note(self, reading: _Reading) -> None:
        """Count what is told of the words of a row."""
        if reading.spelled:
            self.tally.spelled[reading.spelled] += 1
        if reading.unreadable:
            self.tally.note_unreadable(reading.unreadable)
        if reading.criterion:
            self._criteria.setdefault(reading.criterion)

    def _judge(self, row: Mapping[str, Any], where: str, place: _Place) -> int:
        """The number of who voted: the judge of the row, or the next voter on the unit."""
        if not self._voters:
            return self._seen.judge(row, where)
        counts = self._counts
        counts.frombytes(bytes(counts.itemsize * max(0, place.no - len(counts))))
        counts[place.no - 1] += 1
        return self._seen.judge({"judge": f"{self._voters} {counts[place.no - 1]}"}, where)

    def _new_memos(self, row: Mapping[str, Any]) -> _Memos:
        """What rows with the columns of this one share."""
        if len(self._memos) >= COLUMN_SETS:
            self._memos.clear()
        read = [name for name in row if name in READ_COLUMNS]
        rest = [name for name in row if name not in VOTE_COLUMNS or name in ("meta", *self.key)]
        memos = _Memos(
            Memo(self._reading, read),
            Memo(self._meta, [name for name in rest if name != "unit"]),
            Memo(read_shown, [name for name in row if name in SHOWN_COLUMNS]),
            "explanation" in row,
        )
        self._memos[tuple(row)] = memos
        return memos

    def _reading(self, row: Mapping[str, Any], where: str) -> _Reading:
        vote = read_vote(row, where)
        low, high = sorted((vote.first, vote.second))
        words = (vote.side, vote.preference, vote.failed, vote.detail, vote.sample, vote.criterion)
        return _Reading(
            low=low,
            high=high,
            first=vote.first,
            is_turned=vote.turned,
            said=self._vocabulary.number(words),
            criterion=vote.criterion,
            spelled=(vote.spelled, vote.side) if vote.spelled else None,
            unreadable=vote.unreadable,
            is_noted=bool(vote.spelled or vote.unreadable or vote.criterion),
        )

    def _meta(self, row: Mapping[str, Any], where: str) -> tuple[dict[str, Any], str]:
        """The fields of a row beside its vote, and as JSON."""
        meta = meta_of(row, VOTE_COLUMNS, self.key)
        unit = text_of(row.get("unit"))
        self._columns.see({"unit": unit, **meta} if unit else meta)
        return meta, jsontext.swift(meta)

    def _place(
        self,
        key: tuple[str, str, str],
        unit: str,
        reading: _Reading,
        meta: str,
        source: TidyRow,
    ) -> _Place:
        """The unit of a row that is not at hand: a new one, or one that waits on the disk."""
        if len(self._places) >= MEMO_ENTRIES or self._chars >= PLACES_CHARS:
            self._places.clear()
            self._chars, self._has_more = 0, True
            self._spool.write(self._waiting)
        stored = None
        if self._met.add(key) and self._has_more:
            self._spool.run(_BY_KEY)
            stored = self._spool.row(_UNIT, key)
        place = (
            _Place._make(stored) if stored else self._new_place(key, unit, reading, meta, source)
        )
        self._chars += len(key[0]) + len(meta)
        self._places[key] = place
        return place

    def _new_place(
        self,
        key: tuple[str, str, str],
        unit: str,
        reading: _Reading,
        meta: str,
        source: TidyRow,
    ) -> _Place:
        self.tally.units += 1
        ident, low, high = key
        first = self._known.pairs[ident].first if self._known else reading.first
        place = _Place(self.tally.units, first, meta)
        row = source.value
        shown = (self._memos.get(tuple(row)) or self._new_memos(row)).shown(row, source.where)
        self._waiting["units"].append(
            (
                *(place.no, ident, unit or ident, low, high, first, *shown.lengths, meta),
                *(source.where, shown.question, *shown.answers),
            )
        )
        return place

    def units(self) -> Iterator[IncomingUnit]:
        """Every pair with its judgments."""
        forms = Forms(self.tally, _BLANKS)
        for opening, votes in zip(self._openings(), self._votes(), strict=True):
            pair, ident, origin, body = _pair(*opening)
            if self._known is not None:
                pair, body = _as_known(self._known.pairs[ident])
            about, meta = (_about(pair), pair.meta), opening[0][_META]
            texts: list[tuple[int, int, JudgmentText]] = []
            for judge, group in groupby(votes, key=itemgetter(_JUDGE)):
                judged = self._texts(forms, pair, about, judge, list(group), meta)
                texts += [(judge, repeat, text) for repeat, text in enumerate(judged)]
            yield IncomingUnit(ident, origin, body, texts)
        forms.count()

    def _votes(self) -> Iterator[list[tuple[Any, ...]]]:
        """The votes on each unit, those of one judge together."""
        stretches = self._spool.rows(_IN_ORDER if self._is_in_order else _STRETCHES)
        for _, group in groupby(stretches, key=itemgetter(0)):
            yield sorted(
                (vote for _, packed in group for vote in _unpack(packed)), key=itemgetter(_JUDGE)
            )

    def _texts(
        self,
        forms: Forms,
        pair: VotedPair,
        about: tuple[str, str],
        judge: int,
        votes: list[tuple[Any, ...]],
        meta: str,
    ) -> list[JudgmentText]:
        """The judgments of one judge on one pair, whose first row has this meta."""
        is_plain = True
        for vote in votes:
            if vote[_OWN_META] is not None:
                self.tally.compare(vote[_OWN_META], meta, self.key)
            if vote[_EXPLANATION]:
                is_plain = False
        if is_plain:
            words = tuple([vote[_SAID] for vote in votes])
            texts = forms.filled(judge, words, about, lambda: self._settled(_BLANK_PAIR, votes))
            if texts is not None:
                return texts
        judgments = self._settled(pair, votes)
        self.tally.count(judge, judgments)
        return [write_judgment(judgment) for judgment in judgments]

    def _settled(self, pair: VotedPair, votes: Sequence[tuple[Any, ...]]) -> list[Judgment]:
        rows = [
            VoteRow._make((turned, *self._vocabulary.words(said), flag, explanation or ""))
            for _, said, turned, flag, explanation, _ in votes
        ]
        return settled(pair, rows, self.judges[votes[0][_JUDGE]], self._on_unreadable)

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


def _pair(row: Sequence[Any], several: bool) -> tuple[VotedPair, str, str, str]:
    """The pair of its first row, its id, where it stands, and its text as `load_pair` reads it.

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
    about = {
        "id": ident,
        "topic": question,
        "candidates": (
            {"id": first, "text": first_answer},
            {"id": second, "text": second_answer},
        ),
        "row": cluster,
        "places": places,
    }
    lengths = (
        first_length if first_length is not None else len(first_answer) or None,
        second_length if second_length is not None else len(second_answer) or None,
    )
    body = f'{jsontext.swift(about)[:-1]},"meta":{meta},"lengths":{jsontext.swift(lengths)}}}'
    return VotedPair(ident, first, second, meta), ident, origin, body


def _as_known(known: KnownPair) -> tuple[VotedPair, str]:
    """A pair of votes and its text as the run has them that knew it before."""
    return VotedPair(known.id, known.first, known.second, known.meta), known.body


def _about(pair: VotedPair) -> str:
    """What a judgment says of its pair, as the first of `_BLANKS`."""
    ident, candidates = encode(pair.id).decode(), encode((pair.first, pair.second)).decode()
    return f'{ident},"candidates":{candidates}'
