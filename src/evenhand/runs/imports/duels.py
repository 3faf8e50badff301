"""Scores that a judge gave to answers, as votes between those who answered: the higher score wins,
equal ones are a tie. Nobody was shown first, so that the votes tell nothing of positions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import combinations, groupby
from operator import itemgetter
from typing import Any

from evenhand.data.foreign.rows import ORDER_UNKNOWN, TidyRow
from evenhand.data.foreign.tidy import read_score, text_of
from evenhand.errors import DataError, UsageError, quoted
from evenhand.jsontext import compact, dump, loads_trusted
from evenhand.limits import BATCH_ROWS
from evenhand.runs.imports.keys import REPEATS
from evenhand.runs.imports.spool import Spool

_TABLES = {"scores": ("about", "candidate", "score", "failed", "origin", "further", "take")}
_BY_WHAT = (
    "SELECT about, candidate, score, failed, origin, further FROM (SELECT *, rowid AS place,"
    " min(rowid) OVER (PARTITION BY about) AS opening FROM scores)"
    " ORDER BY opening, candidate, take, place"
)
_SCORE, _FAILED = 2, 3
_SAID = frozenset({"score", "failure_tags", "evidence", "rationale", "answer"})
"""Columns of a score that no vote has."""


class Duels:
    """Scores that wait until those of one judge on one unit are together. `column` names who was
    scored, `key` the columns that tell units apart, `column` not among them."""

    def __init__(self, column: str, key: Sequence[str]) -> None:
        self._column, self.key = column, key
        self.unmatched = 0
        """Scores that met no other."""

    def votes(self, rows: Iterable[TidyRow]) -> Iterator[TidyRow]:
        """A vote for each two candidates that a judge scored on a unit, on each dimension, at least
        one; raises DataError."""
        number = 0
        with closing(Spool(_TABLES)) as spool:
            waiting: dict[str, list[tuple[Any, ...]]] = {"scores": []}
            for row in scores_of(rows, self._column):
                waiting["scores"].append(self._score(row))
                if len(waiting["scores"]) >= BATCH_ROWS:
                    spool.write(waiting)
            spool.write(waiting)
            for _, group in groupby(spool.rows(_BY_WHAT), key=itemgetter(0)):
                for vote in self._between(group):
                    number += 1
                    yield vote
        if not number:
            raise DataError(
                f"no judge scored two of {quoted(self._column)} on one unit: there are no votes",
                advice=f"Units are told apart by {', '.join(map(quoted, self.key))}; name other"
                " columns: --key COLUMN,COLUMN",
            )

    def _between(self, group: Iterable[Sequence[Any]]) -> Iterator[TidyRow]:
        """The votes between the scores of one judge on one unit and dimension."""
        by_candidate = {name: list(scores) for name, scores in groupby(group, key=itemgetter(1))}
        numbers = sorted(map(len, by_candidate.values()), reverse=True)
        self.unmatched += numbers[0] - sum(numbers[1:2])
        for (first, scores), (second, others) in combinations(by_candidate.items(), 2):
            # The k-th score of one goes with the k-th of the other.
            for mine, other in zip(scores, others, strict=False):
                yield _vote(first, second, mine, other)

    def _score(self, source: TidyRow) -> tuple[Any, ...]:
        """A score as it waits."""
        row, score = source.value, read_score(source.value)
        about = [text_of(row.get(name)) for name in (*self.key, "judge")]
        about += [score.dimension or "", score.repeat]
        further = {name: row[name] for name in row if name not in {*_SAID, self._column}}
        take = [text_of(row[name]) for name in sorted(REPEATS & row.keys())]
        return (
            *(compact(about), text_of(row[self._column]), score.score, bool(score.failed)),
            *(source.where, dump(_about(further, score.dimension)), compact(take)),
        )


def scores_of(rows: Iterable[TidyRow], column: str) -> Iterator[TidyRow]:
    """The rows, which must be scores that say in a column who was scored; raises DataError."""
    for source in rows:
        if source.shape != "scores":
            raise UsageError("--votes-from-scores is for scores, and these are votes already")
        if not text_of(source.value.get(column)):
            raise DataError(
                f"there is no {quoted(column)}, which is to name who was scored",
                where=source.where,
                advice=f"The columns are: {', '.join(map(quoted, source.value))}",
            )
        yield source


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
    value = loads_trusted(further) | {"first": first, "second": second, "winner": winner}
    return TidyRow("votes", value, origin, ORDER_UNKNOWN)
