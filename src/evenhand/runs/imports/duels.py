"""Scores that a judge gave to answers, as votes between those who gave them: the higher one wins,
equal ones are a tie. Nobody was shown first, so that the votes tell nothing of positions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, groupby
from operator import itemgetter
from typing import Any

from msgspec.msgpack import Decoder, Encoder

from evenhand.data.foreign.rows import ORDER_UNKNOWN, TidyRow
from evenhand.data.foreign.tidy import read_score, text_of
from evenhand.errors import DataError, UsageError, quoted
from evenhand.limits import BATCH_ROWS
from evenhand.runs.imports.spool import Spool

_TABLES = {"scores": ("about", "candidate", "score", "failed", "origin", "further")}
_BY_WHAT = (
    "SELECT about, candidate, score, failed, origin, further FROM (SELECT *, rowid AS place,"
    " min(rowid) OVER (PARTITION BY about) AS opening FROM scores)"
    " ORDER BY opening, candidate, place"
)
_SCORE, _FAILED = 2, 3
_pack, _unpack = Encoder().encode, Decoder(dict[str, Any]).decode
_SAID = frozenset({"score", "failure_tags", "evidence", "rationale", "answer"})
"""Columns of a score that no vote has."""


class Duels:
    """Scores that wait until those of one judge on one unit are together."""

    def __init__(self, column: str, key: Sequence[str]) -> None:
        self._column, self._key = column, [name for name in key if name != column] or ["unit"]
        self._spool = Spool(_TABLES)

    def __enter__(self) -> Duels:
        return self

    def __exit__(self, *_: object) -> None:
        self._spool.close()

    def votes(self, rows: Iterable[TidyRow]) -> Iterator[TidyRow]:
        """A vote for each two candidates that a judge scored on a unit, on each dimension; raises
        DataError."""
        waiting: dict[str, list[tuple[Any, ...]]] = {"scores": []}
        for row in rows:
            waiting["scores"].append(self._score(row))
            if len(waiting["scores"]) >= BATCH_ROWS:
                self._spool.write(waiting)
        self._spool.write(waiting)
        for _, group in groupby(self._spool.rows(_BY_WHAT), key=itemgetter(0)):
            by_candidate = {
                name: list(scores) for name, scores in groupby(group, key=itemgetter(1))
            }
            for (first, scores), (second, others) in combinations(by_candidate.items(), 2):
                # The k-th score of one goes with the k-th of the other.
                for mine, other in zip(scores, others, strict=False):
                    yield _vote(first, second, mine, other)

    def _score(self, source: TidyRow) -> tuple[Any, ...]:
        """A score as it waits."""
        if source.shape != "scores":
            raise UsageError("--votes-from-scores is for scores, and these are votes already")
        row = source.value
        candidate = text_of(row.get(self._column))
        if not candidate:
            raise DataError(
                f"there is no {quoted(self._column)}, which is to name who was scored",
                where=source.where,
                advice=f"The columns are: {', '.join(map(quoted, row))}",
            )
        score = read_score(row)
        about = [text_of(row.get(name)) for name in (*self._key, "judge")]
        about += [score.dimension or "", score.repeat]
        further = {name: row[name] for name in row if name not in {*_SAID, self._column}}
        return (
            *(_pack(about), candidate, score.score, bool(score.failed)),
            *(source.where, _pack(_about(further, score.dimension))),
        )


def _about(row: Mapping[str, Any], dimension: str | None) -> dict[str, Any]:
    """What a vote says beside who won: the dimension is a criterion where the table names it."""
    about = {name: value for name, value in row.items() if name not in ("dimension", "repeat")}
    if "dimension" in row and dimension:
        about["criterion"] = dimension
    if text_of(row.get("repeat")):
        about["sample"] = row["repeat"]
    return about


def _vote(first: str, second: str, mine: Sequence[Any], other: Sequence[Any]) -> TidyRow:
    _, _, score, has_failed, origin, further = mine
    winner = ""
    if not (has_failed or other[_FAILED]):
        than = other[_SCORE]
        winner = "tie" if score == than else "first" if score > than else "second"
    value = _unpack(further) | {"first": first, "second": second, "winner": winner}
    return TidyRow("votes", value, origin, ORDER_UNKNOWN)
