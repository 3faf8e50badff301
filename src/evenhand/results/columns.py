"""The judgments of a run, read from the store into the columns that statistics take."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from pydantic_core import from_json

from evenhand.engine.run import BASIS
from evenhand.ledger.store import Scope, Store
from evenhand.runs.prepare import Recorded
from evenhand.stats.columns import Codes, Columns, id_fields, unit_fields, widen_ends
from evenhand.stats.tables import (
    FIRST,
    NONE,
    SECOND,
    TIE,
    UNCERTAIN,
    Bools,
    Fields,
    Floats,
    Ints,
    Passes,
    Rule,
    Scores,
    Votes,
)

TAGS = ("A", "B", "C", "D", "E")
_MARKS = {"A+": FIRST, "B+": SECOND, "tie": TIE}
_WINNERS = {"A": FIRST, "B": SECOND, "tie": TIE, "uncertain": UNCERTAIN}
_PREFERRED = {FIRST: 0.0, SECOND: 1.0, TIE: 0.5, UNCERTAIN: 0.5, NONE: np.nan}


def score_table(store: Store, recorded: Recorded) -> Scores:
    """The scores of a run of samples or answers, with every unit of the run."""
    scope, columns, scale = Scope(recorded.row.id), Columns(), _Scale()
    scale.widen(recorded.identity["rubric"])
    places: dict[int, int] = {}
    units: list[str] = []
    for stored in store.units(scope):
        body = from_json(stored.body)
        places[stored.no] = len(units)
        units.append(stored.id)
        columns.add(unit_fields(stored.id, body))
        scale.widen(body.get("rubric"))
    rows = _ScoreRows()
    for unit, judge, repeat, status, text in store.judged(scope, BASIS):
        if status != "left_out":
            rows.add((places[unit], judge, repeat), from_json(text)["output"])
    low, high, given = scale.ends(rows.columns)
    fields = columns.fields()
    return Scores(
        dimensions=tuple(rows.columns),
        low=np.array(low),
        high=np.array(high),
        values=rows.values(),
        totals=rows.totals(),
        unit=rows.place(0),
        judge=rows.place(1),
        repeat=rows.place(2),
        tags=rows.tags(),
        tag_names=TAGS if recorded.kind_name == "rubric" else (),
        critical=np.array(rows.critical, dtype=np.bool_),
        units=units,
        fields=fields,
        id_fields=_id_fields(recorded, fields),
        judges=tuple(recorded.names),
        planned=0 if recorded.imported else recorded.judgments_per_unit,
        given_scale=given,
    )


def _id_fields(recorded: Recorded, fields: Fields) -> tuple[str, ...]:
    """The fields that tell the units apart; those that the import took, if it was one."""
    return tuple(recorded.identity["settings"]["key"]) if recorded.imported else id_fields(fields)


class _Scale:
    """The lowest and the highest score that each dimension can have, as the rubrics say."""

    def __init__(self) -> None:
        self._ends: dict[str, tuple[float, float]] = {}
        self._seen: object = None

    def widen(self, rubric: object) -> None:
        if rubric == self._seen:
            return
        self._seen = rubric
        widen_ends(self._ends, rubric)

    def ends(self, columns: Mapping[str, _Cells]) -> tuple[Sequence[float], Sequence[float], bool]:
        """Of each dimension, and whether they are given; else they are those of the scores seen."""
        given = all(name in self._ends or cells.most for name, cells in columns.items())
        pairs = [self._ends.get(name) or cells.ends() for name, cells in columns.items()]
        return [low for low, _ in pairs], [high for _, high in pairs], given


class _Cells:
    """The scores on one dimension: in which row, and how many points there are to be had."""

    def __init__(self) -> None:
        self.rows, self.scores, self.most = array("q"), array("d"), 0.0

    def ends(self) -> tuple[float, float]:
        return (0.0, self.most) if self.most else (min(self.scores), max(self.scores))


class _ScoreRows:
    """Judgments with scores, gathered one by one."""

    def __init__(self) -> None:
        self.columns: dict[str, _Cells] = {}
        self.critical: list[bool] = []
        self._places = array("q")
        self._tags: list[tuple[int, int]] = []
        self._totals = array("d")

    def add(self, place: tuple[int, int, int], output: Mapping[str, Any] | None) -> None:
        row = len(self.critical)
        self._places.extend(place)
        self.critical.append(bool(output and output.get("critical_fail")))
        self._totals.append(np.nan)
        if output is None:
            return
        if "total_score" in output:
            self._totals[row] = output["total_score"] / 100
            for name, score in output["score"].items():
                self._keep(row, name, score, output["weights"][name])
            return
        for name, given in output["scores"].items():
            self._keep(row, name, given["score"])
        self._tags += [(row, TAGS.index(tag)) for tag in output["failure_tags"] if tag in TAGS]

    def _keep(self, row: int, name: str, score: float, most: float = 0.0) -> None:
        cells = self.columns.setdefault(name, _Cells())
        cells.rows.append(row)
        cells.scores.append(float(score))
        cells.most = max(cells.most, float(most))

    def place(self, part: int) -> Ints:
        return np.array(self._places, dtype=np.int64).reshape(-1, 3)[:, part]

    def values(self) -> Floats:
        made = np.full((len(self.critical), len(self.columns)), np.nan)
        for column, cells in enumerate(self.columns.values()):
            made[np.asarray(cells.rows), column] = cells.scores
        return made

    def totals(self) -> Floats | None:
        """The totals of answers; None where there are none."""
        totals = np.array(self._totals)
        return None if np.isnan(totals).all() else totals

    def tags(self) -> Bools:
        made = np.zeros((len(self.critical), len(TAGS)), dtype=np.bool_)
        for row, tag in self._tags:
            made[row, tag] = True
        return made


def vote_table(store: Store, recorded: Recorded, rule: Rule | None = None) -> Votes:
    """The votes of a run of pairs. Without a rule for conflicts the run's own holds."""
    used = rule or recorded.identity["settings"].get("on_conflict", "uncertain")
    scope, rows = Scope(recorded.row.id), _VoteRows(used)
    bodies = store.units(scope)
    for no, group in groupby(store.judged(scope, BASIS), key=lambda one: one[0]):
        # Both come in the order of the units; a unit without a judgment is passed over.
        stored = next(unit for unit in bodies if unit.no == no)
        rows.begin(stored.id, from_json(stored.body))
        for _, judge, repeat, status, text in group:
            if status != "left_out":
                rows.add(judge, repeat, from_json(text))
    return rows.table(tuple(recorded.names))


class _VoteRows:
    """Judgments of pairs, gathered unit by unit."""

    def __init__(self, rule: Rule) -> None:
        self._rule: Rule = rule
        self._candidates, self._topics, self._pairs = Codes(), Codes(), list[str]()
        self._columns, self._body = Columns(), dict[str, Any]()
        self._places = array("q")  # first, second, pair, topic, judge, repeat, outcome
        self._lengths, self._preferences = array("d"), array("d")
        self._marks: dict[str, tuple[array[int], array[int]]] = {}
        self._passes, self._preferred = array("q"), array("d")
        self._conflicts = array("b")

    def begin(self, ident: str, body: dict[str, Any]) -> None:
        """The next judgments are of this pair."""
        self._pairs.append(ident)
        first, second = body["candidates"]
        names = [self._candidates.of(one["id"]) for one in (first, second)]
        texts = [len(one["text"]) or np.nan for one in (first, second)]
        self._body = {
            "opening": (*names, len(self._pairs) - 1, self._topics.of(body["row"])),
            "lengths": [np.nan if one is None else one for one in body.get("lengths", texts)],
            "meta": body["meta"],
        }

    def add(self, judge: int, repeat: int, body: Mapping[str, Any]) -> None:
        row, output = len(self._preferences), body["output"]
        outcome, preference = NONE, np.nan
        if output is not None:
            outcome = _WINNERS[output["winner"]]
            preference = output.get("preference", _PREFERRED[outcome])
            for name, mark in output["criteria"].items():
                rows, marks = self._marks.setdefault(name, (array("q"), array("q")))
                rows.append(row)
                marks.append(_MARKS[mark])
        self._conflicts.append(outcome == UNCERTAIN)
        if outcome == UNCERTAIN:
            outcome, preference = _under(self._rule, body["passes"])
        self._places.extend((*self._body["opening"], judge, repeat, outcome))
        self._lengths.extend(self._body["lengths"])
        self._preferences.append(preference)
        self._columns.add(self._body["meta"])
        placed = "order_unknown" not in body["flags"]
        for made in _first_round(body["passes"]) if placed else ():
            said = _WINNERS[made["winner"]]
            self._passes.extend((row, made["order"] == "21", said))
            self._preferred.append(made.get("preference", _PREFERRED[said]))

    def table(self, judges: tuple[str, ...]) -> Votes:
        places = np.array(self._places, dtype=np.int64).reshape(-1, 7)
        lengths = np.array(self._lengths).reshape(-1, 2)
        passes = np.array(self._passes, dtype=np.int64).reshape(-1, 3)
        marks: dict[str, Ints] = {}
        for name, (rows, given) in self._marks.items():
            marks[name] = np.full(len(places), NONE, dtype=np.int64)
            marks[name][np.asarray(rows)] = given
        return Votes(
            candidates=self._candidates.levels,
            first=places[:, 0],
            second=places[:, 1],
            pair=places[:, 2],
            topic=places[:, 3],
            judge=places[:, 4],
            repeat=places[:, 5],
            outcome=places[:, 6],
            preference=np.array(self._preferences),
            marks=marks,
            first_length=lengths[:, 0],
            second_length=lengths[:, 1],
            fields=self._columns.fields(),
            pairs=self._pairs,
            topics=self._topics.levels,
            judges=judges,
            passes=Passes(
                vote=passes[:, 0],
                turned=passes[:, 1] == 1,
                outcome=passes[:, 2],
                preference=np.array(self._preferred),
            ),
            rule=self._rule,
            conflict=np.array(self._conflicts, dtype=np.bool_),
        )


def _first_round(passes: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    return (one for one in passes if "winner" in one and one["round"] == 1)


def _under(rule: Rule, passes: Sequence[Mapping[str, Any]]) -> tuple[int, float]:
    """What orders that contradict each other come to."""
    if rule == "drop":
        return NONE, np.nan
    if rule == "tie":
        return TIE, 0.5
    made = [one for one in passes if "winner" in one]
    if rule == "uncertain" or not made:
        return UNCERTAIN, 0.5
    last = [one for one in made if one["round"] == made[-1]["round"]]
    said = [one.get("preference", _PREFERRED[_WINNERS[one["winner"]]]) for one in last]
    mean = sum(said) / len(said)
    if mean == 0.5:
        # Two orders that name different winners call nobody equal.
        return (TIE if any(one["winner"] == "tie" for one in last) else UNCERTAIN), mean
    return (SECOND if mean > 0.5 else FIRST), mean
