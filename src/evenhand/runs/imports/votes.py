"""Votes to judgments of pairs: both orders of one judge on one pair are the passes of a judgment.

`A` is the candidate that the first row of a pair shows first. Rows in one order, or of different
samples, are repeats; no row is merged with another or dropped.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, Literal, NamedTuple

from msgspec.json import encode

from evenhand import jsontext
from evenhand.data.foreign.chunks import Chunk
from evenhand.data.foreign.tidy import (
    READ_COLUMNS,
    SHOWN_COLUMNS,
    VOTE_COLUMNS,
    Shown,
    are_winners_words,
    meta_of,
    read_candidates,
    read_shown,
    read_vote,
    text_of,
)
from evenhand.judgment import Judgment, JudgmentText
from evenhand.ledger.ports import IncomingUnit
from evenhand.limits import BATCH_ROWS
from evenhand.measures import Unreadable
from evenhand.packedfile import PackedFile
from evenhand.runs.imports.forms import BLANK, Forms
from evenhand.runs.imports.keys import Columns, Seen, key_values
from evenhand.runs.imports.labels import KnownPair, KnownPairs
from evenhand.runs.imports.memo import COLUMN_SETS, MEMO_ENTRIES, Memo, Vocabulary, in_turn
from evenhand.runs.imports.met import Met
from evenhand.runs.imports.settled import VotedPair, VoteRow, settled
from evenhand.runs.imports.spool import Spool
from evenhand.runs.imports.tally import Tally
from evenhand.runs.imports.waiting_rows import NOTHING, JudgedRows, WaitingRows

_TABLES = {"units": ("no INTEGER PRIMARY KEY", "key", "low", "high", "first", "meta")}
"""By which units are found that are not at hand, filled only where some may have to be; all that is
known of them waits in a file."""
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
    "SELECT f.place, s.place FROM units u"
    " LEFT JOIN topics f ON f.key=u.key AND f.name=u.first LEFT JOIN topics s ON s.key=u.key"
    " AND s.name=CASE WHEN u.first=u.low THEN u.high ELSE u.low END ORDER BY u.no"
)
_BLANKS = (f'"{BLANK}","candidates":["{BLANK}","{BLANK}"]', f'"{BLANK}"')
"""What a judgment says of its pair: its id and its candidates, and its meta."""
_BLANK_PAIR = VotedPair(BLANK, BLANK, BLANK, f'"{BLANK}"')
PLACES_CHARS = 1 << 24
"""Texts of units that are kept at hand."""
_META = 7
"""Where the meta stands in what is known of a unit."""


class _Pair(NamedTuple):
    """Whom a vote compares: in one order whoever is shown first, and who is."""

    names: tuple[str, str]
    first: str
    is_same: bool
    """Whether a candidate meets itself."""


class _Reading(NamedTuple):
    """What cells say of a vote beside its unit, its judge, its candidates and its meta."""

    said: tuple[int | str, int | str, int | str]
    """The words of the vote, see `Vocabulary`, as the unit shows the candidates, turned, and as the
    column `pass` has it: those of `VoteRow`, but whether the preference is a whole number in the
    place of it."""
    preference: float | None
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

    pair: Memo[_Pair]
    reading: Memo[_Reading]
    word: Memo[_Reading]
    """What is said where no winner is called like a candidate."""
    meta: Memo[tuple[dict[str, Any], str]]
    shown: Memo[Shown]


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
        self._waiting: list[tuple[Any, ...]] = []
        """What is known of units that are not in the file yet."""
        self._indexed, self._indexed_end, self._put_away = 0, 0, 0
        """How many units are in the database, how far that is in the file, and how far those reach
        that are not at hand."""
        self._may_be_several = False
        """Whether there may be units with several pairs."""
        self._votes, self._openings, self._further = WaitingRows(), PackedFile(), PackedFile()
        """The votes, what is known of their units, and what votes say beyond a number."""
        self._memos: dict[tuple[str, ...], _Memos] = {}
        self._places: dict[tuple[str, tuple[str, str]], _Place] = {}
        """Units that are at hand; those that are not may wait on the disk."""
        self._chars, self._met = 0, Met()
        self._vocabulary = Vocabulary()
        self._criteria: dict[str, None] = {}
        self._candidates: set[str] = set()

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

    def fill(self, chunks: Iterable[Chunk]) -> None:
        """Take in all rows; raises DataError."""
        for chunk in chunks:
            in_turn(self._take, chunk)
            self.tally.rows += chunk.size
        self._write()
        if self._known is None:
            self.tally.require_one_coding()
        self._columns.require(self.key)
        self.tally.repeats = [0] * len(self.judges)
        self.tally.candidates = sorted(self._candidates)
        self.tally.names = list(self._criteria)

    def _take(self, chunk: Chunk) -> None:
        """Have the votes of some rows wait."""
        memos = self._memos_of(chunk)
        pairs, metas = memos.pair.of(chunk), memos.meta.of(chunk)
        readings = (memos.word if are_winners_words(chunk.columns) else memos.reading).of(chunk)
        for reading in readings:
            if reading.is_noted:
                self._note(reading)
        idents = units = self._seen.units_of(chunk, self.key)
        texts = [text for _, text in metas]
        if self.key != ("unit",):
            keyed = [
                key_values(self.key, unit, fields)
                for unit, (fields, _) in zip(units, metas, strict=True)
            ]
            idents = [ident for ident, _ in keyed]
            texts = [jsontext.swift(fields) for _, fields in keyed]
        keys = [(ident, pair.names) for ident, pair in zip(idents, pairs, strict=True)]
        places: list[Any] = list(map(self._places.get, keys))
        if None in places:
            for at, (place, key) in enumerate(zip(places, keys, strict=True)):
                if place is None:
                    places[at] = self._places.get(key) or self._place(
                        key, pairs[at].first, units[at], texts[at], chunk, at
                    )
        self._wait(chunk, pairs, readings, texts, places)

    def _wait(
        self,
        chunk: Chunk,
        pairs: Sequence[_Pair],
        readings: Sequence[_Reading],
        metas: Sequence[str],
        places: Sequence[_Place],
    ) -> None:
        explanations: Sequence[Any] = chunk.columns.get("explanation", ())
        said, further = list[int](), [NOTHING] * chunk.size
        rows = zip(pairs, readings, metas, places, strict=True)
        for at, ((_, shown, is_same), reading, meta, (_, first, unit_meta)) in enumerate(rows):
            # Where a candidate meets itself, the column `pass` alone tells the orders apart.
            words = reading.said[2 if is_same else first != shown]
            explanation = text_of(explanations[at]) if explanations else ""
            if meta != unit_meta or explanation or type(words) is str:
                spelled = words if isinstance(words, str) else None
                own_meta = None if meta == unit_meta else meta
                further[at] = self._further.add((spelled, explanation, own_meta))
            said.append(NOTHING if isinstance(words, str) else words)
        judges = self._judges(chunk, places)
        preferences = [reading.preference for reading in readings]
        units = [place.no for place in places]
        self._votes.add(units, judges, said, preferences, further, chunk.size)

    def _note(self, reading: _Reading) -> None:
        """Count what is told of the words of a row."""
        if reading.spelled:
            self.tally.spelled[reading.spelled] += 1
        if reading.unreadable:
            self.tally.note_unreadable(reading.unreadable)
        if reading.criterion:
            self._criteria.setdefault(reading.criterion)

    def _judges(self, chunk: Chunk, places: Sequence[_Place]) -> list[int]:
        """The numbers of who voted: the judges of the rows, or the next voters on their units."""
        if not self._voters:
            return self._seen.judges_of(chunk)
        counts, judges = self._counts, list[int]()
        for at, place in enumerate(places):
            counts.frombytes(bytes(counts.itemsize * max(0, place.no - len(counts))))
            counts[place.no - 1] += 1
            name = f"{self._voters} {counts[place.no - 1]}"
            judges.append(self._seen.judge({"judge": name}, chunk.where(at)))
        return judges

    def _memos_of(self, chunk: Chunk) -> _Memos:
        """What rows with the columns of these share."""
        columns = (*chunk.columns, chunk.flag)
        if memos := self._memos.get(columns):
            return memos
        if len(self._memos) >= COLUMN_SETS:
            self._memos.clear()
        names = chunk.columns
        rest = [name for name in names if name not in VOTE_COLUMNS or name in ("meta", *self.key)]
        said = [name for name in names if name in READ_COLUMNS]
        reading = partial(self._reading, chunk.flag)
        memos = _Memos(
            Memo(self._pair, ("first", "second")),
            Memo(reading, said),
            Memo(reading, [name for name in said if name not in ("first", "second")]),
            Memo(self._meta, [name for name in rest if name != "unit"]),
            Memo(read_shown, [name for name in names if name in SHOWN_COLUMNS]),
        )
        self._memos[columns] = memos
        return memos

    def _pair(self, row: Mapping[str, Any], where: str) -> _Pair:
        first, second = read_candidates(row, where)
        self._candidates |= {first, second}
        names = (first, second) if first <= second else (second, first)
        return _Pair(names, first, first == second)

    def _reading(self, flag: str, row: Mapping[str, Any], where: str) -> _Reading:
        vote = read_vote(row, where)
        words = (
            *(vote.side, isinstance(vote.preference, int), vote.failed, vote.detail),
            *(vote.sample, vote.criterion, flag),
        )
        straight, turned, by_pass = (
            self._vocabulary.number((is_turned, *words)) for is_turned in (False, True, vote.turned)
        )
        return _Reading(
            said=(straight, turned, by_pass),
            preference=vote.preference,
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
        key: tuple[str, tuple[str, str]],
        first: str,
        unit: str,
        meta: str,
        chunk: Chunk,
        at: int,
    ) -> _Place:
        """The unit of a row that is not at hand: a new one, or one that waits on the disk."""
        if len(self._places) >= MEMO_ENTRIES or self._chars >= PLACES_CHARS:
            self._places.clear()
            self._write()
            self._chars, self._put_away = 0, self._openings.end
        stored, ident = None, key[0]
        if self._met.add(key) and self._put_away:
            self._index(self._put_away)
            stored = self._spool.row(_UNIT, (ident, *key[1]))
        place = (
            _Place._make(stored) if stored else self._new_place(key, first, unit, meta, chunk, at)
        )
        self._chars += len(ident) + len(meta)
        self._places[key] = place
        return place

    def _new_place(
        self,
        key: tuple[str, tuple[str, str]],
        first: str,
        unit: str,
        meta: str,
        chunk: Chunk,
        at: int,
    ) -> _Place:
        self.tally.units += 1
        ident, (low, high) = key
        if self._known:
            first = self._known.pairs[ident].first
        place = _Place(self.tally.units, first, meta)
        shown = self._memos_of(chunk).shown.at(chunk, at)
        self._may_be_several = self._met.add(ident) or self._may_be_several
        self._waiting.append(
            (
                *(ident, unit or ident, low, high, first, *shown.lengths, meta),
                *(chunk.where(at), shown.question, *shown.answers),
            )
        )
        if len(self._waiting) >= BATCH_ROWS:
            self._write()
        return place

    def _write(self) -> None:
        """Have what is known of units wait on the disk."""
        self._openings.add(self._waiting)
        self._waiting.clear()

    def _index(self, end: int) -> None:
        """Have the units as far as there in the database, by which they are found."""
        if self._indexed_end >= end:
            return
        for openings in self._openings.since(self._indexed_end):
            numbers = range(self._indexed + 1, self._indexed + len(openings) + 1)
            units = [
                (number, *opening[:1], *opening[2:5], opening[_META])
                for number, opening in zip(numbers, openings, strict=True)
            ]
            self._indexed += len(units)
            self._spool.write({"units": units})
        self._indexed_end = self._openings.end
        self._spool.run(_BY_KEY)

    def units(self) -> Iterator[IncomingUnit]:
        """Every pair with its judgments."""
        forms = Forms(self.tally, _BLANKS)
        by_unit = groupby(self._votes.judged(), key=itemgetter(0))
        for (opening, places), (_, judged) in zip(self._opened(), by_unit, strict=True):
            pair, ident, origin, body = _pair(opening, places)
            if self._known is not None:
                pair, body = _as_known(self._known.pairs[ident])
            about, meta = (_about(pair), pair.meta), opening[_META]
            texts: list[tuple[int, int, JudgmentText]] = []
            for rows in judged:
                judgments = self._texts(forms, pair, about, rows, meta)
                texts += [(rows.judge, repeat, text) for repeat, text in enumerate(judgments)]
            yield IncomingUnit(ident, origin, body, texts)
        forms.count()

    def _texts(
        self,
        forms: Forms,
        pair: VotedPair,
        about: tuple[str, str],
        rows: JudgedRows,
        meta: str,
    ) -> list[JudgmentText]:
        """The judgments of one judge on one pair, whose first row has this meta."""
        words: list[int | str] = [*rows.said]
        explanations = [""] * len(words)
        for at, start in enumerate(rows.further or ()):
            if start != NOTHING:
                spelled, explanations[at], own_meta = self._further.at(start)
                words[at] = words[at] if spelled is None else spelled
                if own_meta is not None:
                    self.tally.compare(own_meta, meta, self.key)
        if rows.further is None or not any(explanations):
            said = (tuple(words), tuple(rows.numbers))
            texts = forms.filled(
                rows.judge,
                said,
                about,
                lambda: self._settled(_BLANK_PAIR, rows, words, explanations),
            )
            if texts is not None:
                return texts
        return forms.written(rows.judge, self._settled(pair, rows, words, explanations))

    def _settled(
        self,
        pair: VotedPair,
        judged: JudgedRows,
        words: Sequence[int | str],
        explanations: Sequence[str],
    ) -> list[Judgment]:
        rows: list[VoteRow] = []
        for said, number, explanation in zip(words, judged.numbers, explanations, strict=True):
            is_turned, side, is_whole, *more = self._vocabulary.words(said)
            preference = int(number) if is_whole and number is not None else number
            rows.append(VoteRow._make((is_turned, side, preference, *more, explanation)))
        return settled(pair, rows, self.judges[judged.judge], self._on_unreadable)

    def _opened(self) -> Iterator[tuple[Sequence[Any], Sequence[Any] | None]]:
        """What is known of every pair, with the places of its candidates where there are units with
        several pairs."""
        openings = chain.from_iterable(self._openings)
        if self._may_be_several:
            self._index(self._openings.end)
        if not (self._may_be_several and self._spool.names(_SEVERAL)[0]):
            return ((opening, None) for opening in openings)
        self._spool.run(_TOPICS)
        self._spool.run("CREATE INDEX topics_by_name ON topics (key, name)")
        return zip(openings, self._spool.rows(_PLACES), strict=True)


def _pair(row: Sequence[Any], several: Sequence[Any] | None) -> tuple[VotedPair, str, str, str]:
    """The pair of its first row, its id, where it stands, and its text as `load_pair` reads it.

    Where a unit has several pairs, the ids of all name their candidates, and in one order whoever
    was shown first: so runs about the same pairs have the same ids and can be joined.
    """
    key, cluster, low, high, first, first_length, second_length, meta, origin, *more = row
    question, first_answer, second_answer = more
    places = [1, 2] if several is None else several
    if low == high or cluster != key:
        # No front has a candidate that meets itself, nor one made of several units of a topic.
        places = [1, 1 if low == high else 2]
    second = high if first == low else low
    ident = f"{key}#{low}-{high}" if several is not None else key
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
