"""Votes to judgments of pairs: both orders of one judge on one pair are the passes of a judgment.

`A` is the candidate that the first row of a pair shows first. Rows in one order, or of different
samples, are repeats; no row is merged with another or dropped.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple, cast

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
from evenhand.measures import Unreadable
from evenhand.runs.imports.forms import BLANK, Forms
from evenhand.runs.imports.keys import Columns, Seen, key_values
from evenhand.runs.imports.labels import KnownPair, KnownPairs
from evenhand.runs.imports.memo import COLUMN_SETS, Memo, Vocabulary, in_turn
from evenhand.runs.imports.settled import VotedPair, VoteRow, settled
from evenhand.runs.imports.tally import Tally
from evenhand.runs.imports.waiting_rows import NOTHING, JudgedRows, WaitingRows
from evenhand.store.ports import IncomingUnit
from evenhand.units import pair_key

_BLANKS = (f'"{BLANK}","candidates":["{BLANK}","{BLANK}"]', f'"{BLANK}"')
"""What a judgment says of its pair: its id and its candidates, and its meta."""
_BLANK_PAIR = VotedPair(BLANK, BLANK, BLANK, f'"{BLANK}"')


NAMES = 1 << 10
"""Names of candidates, and lists of numbers, that are kept as JSON."""

Key = tuple[str, tuple[str, str]]
"""What tells units apart: an id, and the names of the candidates in one order."""


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


class _Opening(NamedTuple):
    """What the first row of a unit says of it, as it waits."""

    key: str
    cluster: str
    low: str
    high: str
    first: str
    lengths: tuple[float | None, float | None]
    meta: str
    origin: str
    question: str
    answers: tuple[str, str]


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
        self.tally = Tally()
        self._columns = Columns()
        self._seen = Seen(kind, judge, self._columns)
        self._idents: set[str] = set()
        self._is_several = False
        """The ids that were met, and whether one may have several pairs."""
        self._votes = WaitingRows()
        self._openings: list[_Opening] = []
        self._further: list[tuple[str | None, str, str | None]] = []
        """The votes, what is known of their units, and what votes say beyond a number."""
        self._memos: dict[tuple[str, ...], _Memos] = {}
        self._places: dict[Key, _Place] = {}
        self._vocabulary = Vocabulary()
        self._criteria: dict[str, None] = {}
        self._candidates: set[str] = set()

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
        readings = (memos.word if are_winners_words(chunk) else memos.reading).of(chunk)
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
            texts = [jsontext.dumps_lossy(fields) for _, fields in keyed]
        keys = list(zip(idents, [pair.names for pair in pairs], strict=True))
        places = [self._places.get(key) for key in keys]
        if None in places:
            new: dict[Key, int] = {}
            for at, place in enumerate(places):
                if place is None:
                    new.setdefault(keys[at], at)
            opened = self._opened(new, pairs, units, texts, chunk)
            places = [place or opened[key] for place, key in zip(places, keys, strict=True)]
        self._wait(chunk, pairs, readings, texts, cast("list[_Place]", places))

    def _wait(
        self,
        chunk: Chunk,
        pairs: Sequence[_Pair],
        readings: Sequence[_Reading],
        metas: Sequence[str],
        places: Sequence[_Place],
    ) -> None:
        # Where a candidate meets itself, the column `pass` alone tells the orders apart.
        words = [
            reading.said[2 if is_same else first != shown]
            for reading, (_, shown, is_same), (_, first, _) in zip(
                readings, pairs, places, strict=True
            )
        ]
        own_metas = [
            None if meta == place.meta else meta for meta, place in zip(metas, places, strict=True)
        ]
        said, further = self._split(chunk, words, own_metas)
        judges = self._judges(chunk, places)
        preferences = [reading.preference for reading in readings]
        units = [place.no for place in places]
        self._votes.add(units, judges, said, preferences, further, chunk.size)

    def _split(
        self, chunk: Chunk, words: Sequence[int | str], metas: Sequence[str | None]
    ) -> tuple[list[int], list[int]]:
        """What rows say as numbers, and where it is kept what else they say."""
        explanations = list(map(text_of, chunk.columns.get("explanation", ()))) or [""] * chunk.size
        further = [NOTHING] * chunk.size
        for at, (word, why, meta) in enumerate(zip(words, explanations, metas, strict=True)):
            spelled = word if isinstance(word, str) else None
            if why or not (meta is None and spelled is None):
                further[at] = len(self._further)
                self._further.append((spelled, why, meta))
        return [NOTHING if isinstance(word, str) else word for word in words], further

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
        return meta, jsontext.dumps_lossy(meta)

    def _opened(
        self,
        new: Mapping[Key, int],
        pairs: Sequence[_Pair],
        units: Sequence[str],
        metas: Sequence[str],
        chunk: Chunk,
    ) -> dict[Key, _Place]:
        """The units that begin at places of a chunk."""
        shown = self._memos_of(chunk).shown.of(chunk, list(new.values()))
        opened: dict[Key, _Place] = {}
        for (key, at), (lengths, question, answers) in zip(new.items(), shown, strict=True):
            ident, (low, high) = key
            first = self._known.pairs[ident].first if self._known else pairs[at].first
            self.tally.units += 1
            opened[key] = _Place(self.tally.units, first, metas[at])
            row = (ident, units[at] or ident, low, high, first, lengths, metas[at])
            self._openings.append(_Opening(*row, chunk.where(at), question, answers))
        idents = [ident for ident, _ in new]
        new_idents = set(idents)
        self._is_several |= len(new_idents) < len(idents) or bool(new_idents & self._idents)
        self._idents |= new_idents
        self._places.update(opened)
        return opened

    def units(self) -> Iterator[IncomingUnit]:
        """Every pair with its judgments."""
        forms = Forms(self.tally, _BLANKS)
        for opening, judged in zip(self._openings, self._votes.judged(), strict=True):
            pair, body, about = _pair(opening, self._is_several)
            if self._known is not None:
                pair, body, about = _as_known(self._known.pairs[pair.id])
            values = (about, pair.meta)
            texts = [
                (rows.judge, repeat, text)
                for rows in judged
                for repeat, text in enumerate(self._texts(forms, pair, values, rows, opening.meta))
            ]
            yield IncomingUnit(pair.id, opening.origin, body, texts)
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
        explanations: Sequence[str] = ()
        if rows.further is not None:
            rows, explanations = self._whole(rows, rows.further, meta)
        texts = None if any(explanations) else forms.filled(rows, about, self._blank)
        if texts is not None:
            return texts
        return forms.written(rows.judge, self._settled(pair, rows, explanations))

    def _whole(
        self, rows: JudgedRows, further: Sequence[int], meta: str
    ) -> tuple[JudgedRows, list[str]]:
        """Rows with the words that waited elsewhere, and their explanations; where their meta is
        another one, that is noted."""
        words, explanations = list(rows.said), [""] * len(rows.said)
        for at, start in enumerate(further):
            if start != NOTHING:
                spelled, explanations[at], own_meta = self._further[start]
                words[at] = words[at] if spelled is None else spelled
                if own_meta is not None:
                    self.tally.compare(own_meta, meta, self.key)
        return rows._replace(said=tuple(words)), explanations

    def _blank(self, rows: JudgedRows) -> list[Judgment]:
        return self._settled(_BLANK_PAIR, rows)

    def _settled(
        self, pair: VotedPair, judged: JudgedRows, explanations: Sequence[str] = ()
    ) -> list[Judgment]:
        rows: list[VoteRow] = []
        whys = explanations or [""] * len(judged.said)
        for said, number, explanation in zip(judged.said, judged.numbers, whys, strict=True):
            is_turned, side, is_whole, *more = self._vocabulary.words(said)
            preference = int(number) if is_whole and number is not None else number
            rows.append(VoteRow._make((is_turned, side, preference, *more, explanation)))
        return settled(pair, rows, self.judges[judged.judge], self._on_unreadable)


def _pair(opening: _Opening, is_named: bool) -> tuple[VotedPair, str, str]:
    """The pair of its first row, its text as `load_pair` reads it, and what a judgment says of it,
    both written piece by piece: an object for each would take longer.

    Where a unit has several pairs, the ids of all name their candidates, and in one order whoever
    was shown first: so runs about the same pairs have the same ids and can be joined.
    """
    key, cluster, low, high, first, lengths, meta, _, question, answers = opening
    second = high if first == low else low
    ident = pair_key(key, (low, high)) if is_named else key
    pair = VotedPair(ident, first, second, meta)
    name, (told, other_told), (answer, other) = jsontext.dumps_lossy(ident), lengths, answers
    told = told if told is not None else len(answer) or None
    other_told = other_told if other_told is not None else len(other) or None
    body = (
        f'{{"id":{name},"topic":{_text(question)},"candidates":['
        f'{{"id":{_name(first)},"text":{_text(answer)}}},'
        f'{{"id":{_name(second)},"text":{_text(other)}}}],'
        f'"row":{name if cluster == ident else jsontext.dumps_lossy(cluster)},'
        f'"meta":{meta},"lengths":{_lengths(told, other_told)}}}'
    )
    return pair, body, _about(pair, name)


def _text(text: str) -> str:
    """A text as JSON."""
    return jsontext.dumps_lossy(text) if text else '""'


@lru_cache(maxsize=NAMES)
def _name(name: str) -> str:
    """The same of a name, which comes again and again."""
    return jsontext.dumps_lossy(name)


@lru_cache(maxsize=NAMES)
def _numbers(*numbers: int | None) -> str:
    """A list of whole numbers, which come again too."""
    return jsontext.dumps_lossy(numbers)


def _lengths(first: float | None, second: float | None) -> str:
    if isinstance(first, float) or isinstance(second, float):
        return jsontext.dumps_lossy(
            (first, second)
        )  # 1 and 1.0, and 0.0 and -0.0, are the same key
    return _numbers(first, second)


def _as_known(known: KnownPair) -> tuple[VotedPair, str, str]:
    """A pair of votes, its text, and what a judgment says of it, as the run has them that knew it
    before."""
    pair = VotedPair(known.id, known.first, known.second, known.meta)
    return pair, known.body, _about(pair, jsontext.dumps_lossy(pair.id))


def _about(pair: VotedPair, name: str) -> str:
    """What a judgment says of a pair whose id is this name as JSON: the first of `_BLANKS`."""
    return f'{name},"candidates":[{_name(pair.first)},{_name(pair.second)}]'
