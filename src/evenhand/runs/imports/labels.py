"""Labels as people have them, for pairs that a run already knows: the pair, who labelled it, and
which candidate is better. They become votes on the very units of that run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evenhand.data.foreign.rows import ORDER_UNKNOWN, TidyRow, missing, table
from evenhand.data.foreign.shaping import Shaping
from evenhand.data.foreign.tidy import text_of
from evenhand.errors import DataError, UsageError, quoted
from evenhand.kinds.kind import Voting
from evenhand.kinds.pairwise.table import read_cell
from evenhand.kinds.pairwise.unit import load_pair
from evenhand.kinds.rows import object_text
from evenhand.runs.recorded import LABELS, Recorded
from evenhand.store.ports import Archive
from evenhand.units import named_pair_id

HUMAN = "human"
_UNITS = ("unit", "pair_id", "id")
_ANNOTATORS = ("annotator", "judge", "rater", "labeler", "labeller", "user")
_VERDICTS = ("winner", "preference", "label", "choice", "verdict")
_SIDES = {"1": "first", "2": "second", "1.5": "tie"}
_WORDS = {"A": "first", "B": "second", "tie": "tie"}
_NAMED = 3


class KnownPair(NamedTuple):
    """A pair of a run: the names of its candidates, its meta as JSON, and its stored text."""

    id: str
    first: str
    second: str
    meta: str
    body: str


class KnownPairs:
    """The pairs of a run, by their ids, and by topic and candidates, whichever stands first."""

    def __init__(self, archive: Archive, run: Recorded) -> None:
        if not isinstance(run.kind.measure, Voting):
            raise UsageError(
                f"run {run.id} judged by the kind {run.kind_name}, and such labels are of pairs",
                advice="Import scores that people gave with --kind scores: unit, judge, dimension,"
                " score.",
            )
        self.run = run.id
        self.language = run.manifest.judging.language
        self.left_out = 0
        self.verdict_column = _VERDICTS[0]
        """Where the labels of the file that was read say who is better."""
        self.pairs: dict[str, KnownPair] = {}
        self._named: dict[str, KnownPair] = {}
        for unit in archive.units(run.scope):
            pair = load_pair(unit.body)
            names = pair.first.id, pair.second.id
            self.pairs[pair.id] = KnownPair(pair.id, *names, object_text(pair.meta), unit.body)
            self._named[named_pair_id(pair.row, names)] = self.pairs[pair.id]

    def read(self, path: Path, shaping: Shaping) -> Iterator[TidyRow]:
        """The labels of a file as votes; raises DataError. Those of pairs that the run does not
        have are counted and left out."""
        has_verdict, row = False, None
        for row in table(path, shaping, verdicts=_VERDICTS):
            unit = _cell(row.value, _UNITS)
            if unit is None:
                raise missing("unit", row.value, row.where, LABELS)
            verdict = _cell(row.value, _VERDICTS)
            if verdict is not None and not has_verdict:
                has_verdict = True
                self.verdict_column = next(name for name in _VERDICTS if name in row.value)
            pair = self._pair(unit, row.value)
            if pair is None:
                self.left_out += 1
            else:
                yield _vote(pair, unit, row.value, verdict or "", row.where)
        if row is not None and not has_verdict:
            raise missing("winner", row.value, str(path), LABELS)

    def _pair(self, unit: str, row: Mapping[str, Any]) -> KnownPair | None:
        names = [text_of(row.get(name)) for name in ("first", "second")]
        keys = (unit, named_pair_id(unit, names))
        return self.pairs.get(unit) or next(filter(None, map(self._named.get, keys)), None)

    def none_known(self) -> DataError:
        """The error for labels of which none is about a pair of the run."""
        ids = ", ".join(list(self.pairs)[:_NAMED])
        return DataError(
            f"none of the labels is about a pair of run {self.run}",
            advice=f"Its pairs are called {ids}, ...; rename the column: --map pair_id=COLUMN",
        )


def _cell(row: Mapping[str, Any], names: Sequence[str]) -> str | None:
    """The first of some columns that is there and filled; empty where all that are there are."""
    texts = [text_of(row[name]) for name in names if name in row]
    return next(filter(None, texts), "") if texts else None


def _vote(pair: KnownPair, unit: str, row: Mapping[str, Any], verdict: str, where: str) -> TidyRow:
    """Return a label of a unit as a vote on its pair, in the order in which the candidates were
    shown, where the row says who stood first; raises DataError for another candidate."""
    first, second = pair.first, pair.second
    for name in ("first", "second"):
        shown = text_of(row.get(name))
        if shown and shown not in (first, second):
            raise DataError(
                f'"{name}" is {quoted(shown)}, no candidate of the pair {quoted(pair.id)}',
                where=where,
                advice=f"They are {quoted(first)} and {quoted(second)}.",
            )
    shown_first = text_of(row.get("first"))
    is_turned = shown_first == second
    if not shown_first and unit.endswith(named_pair_id("", (first, second))):
        is_turned = second < first  # the first that its id names is meant
    if is_turned:
        first, second = second, first
    annotator = _cell(row, _ANNOTATORS) or ""
    vote = {
        "unit": pair.id,
        "judge": annotator if "/" in annotator else f"{HUMAN}/{annotator}".rstrip("/"),
        "first": first,
        "second": second,
        "winner": _winner(verdict, first, second),
        "explanation": text_of(row.get("explanation")) or text_of(row.get("comment")),
    }
    return TidyRow("votes", vote, where, "" if shown_first else ORDER_UNKNOWN)


def _winner(verdict: str, first: str, second: str) -> str:
    """What a label says in the words of votes; as it is where nobody can tell."""
    if not verdict or verdict in (first, second):
        return verdict
    number = verdict.removesuffix(".0")
    if number in _SIDES:
        return _SIDES[number]
    reading = read_cell(verdict, tuple(_WORDS)) or read_cell(_lettered(verdict), tuple(_WORDS))
    return verdict if reading is None else _WORDS[reading]


def _lettered(verdict: str) -> str:
    """`candidate 2` as `candidate B`."""
    words = verdict.split()
    letters = {"1": "A", "2": "B"}
    return " ".join([*words[:-1], letters.get(words[-1], words[-1])])
