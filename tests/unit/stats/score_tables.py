"""Tables of scores and votes, made from plain rows for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evenhand.stats.tables import FIRST, NONE, SECOND, TIE, UNCERTAIN, Field, Passes, Scores, Votes

OUTCOMES = {"first": FIRST, "second": SECOND, "tie": TIE, "uncertain": UNCERTAIN, None: NONE}
PREFERRED = {"first": 0.0, "second": 1.0, "tie": 0.5, "uncertain": 0.5, None: np.nan}


def scores_of(
    rows: Sequence[Mapping[str, Any]],
    *,
    units: Sequence[Mapping[str, Any]] = (),
    id_fields: Sequence[str] = ("prompt_variant", "question_id"),
    scale: tuple[float, float] = (1.0, 5.0),
    planned: int = 1,
) -> Scores:
    """A table of rows with `scores`, and perhaps `judge`, `repeat`, `tags` and `critical`; all else
    are fields. Units without a row are named by their fields in `units`."""
    beside = {"scores", "judge", "repeat", "tags", "critical"}
    names = list(dict.fromkeys(n for row in [*rows, *units] for n in row if n not in beside))
    keys = [tuple(row.get(name) for name in names) for row in [*rows, *units]]
    places = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    dimensions = tuple(dict.fromkeys(d for row in rows for d in row["scores"] or ()))
    judges = tuple(dict.fromkeys(row.get("judge", "j") for row in rows)) or ("j",)
    given = [[(row["scores"] or {}).get(d, np.nan) for d in dimensions] for row in rows]
    return Scores(
        dimensions=dimensions,
        low=np.full(len(dimensions), scale[0]),
        high=np.full(len(dimensions), scale[1]),
        values=np.array(given, dtype=np.float64).reshape(len(rows), len(dimensions)),
        unit=np.array([places[key] for key in keys[: len(rows)]], dtype=np.int64),
        judge=np.array([judges.index(row.get("judge", "j")) for row in rows], dtype=np.int64),
        repeat=np.array([row.get("repeat", 0) for row in rows], dtype=np.int64),
        tags=np.array([[t in row.get("tags", ()) for t in "ABCDE"] for row in rows]).reshape(-1, 5),
        tag_names=tuple("ABCDE"),
        critical=np.array([row.get("critical", False) for row in rows], dtype=np.bool_),
        units=["/".join(map(str, key)) for key in places],
        fields={name: _field([key[at] for key in places]) for at, name in enumerate(names)},
        id_fields=tuple(id_fields),
        judges=judges,
        planned=planned,
    )


def _field(values: Sequence[object]) -> Field:
    levels = tuple(dict.fromkeys(str(value) for value in values if value is not None))
    codes = [-1 if value is None else levels.index(str(value)) for value in values]
    return Field(np.array(codes, dtype=np.int64), levels)


def votes_of(rows: Sequence[Mapping[str, Any]]) -> Votes:
    """A table of rows with `topic`, `first`, `second`, `winner`, and perhaps `judge`, `marks`."""
    names = tuple(dict.fromkeys(name for row in rows for name in (row["first"], row["second"])))
    topics = tuple(dict.fromkeys(str(row["topic"]) for row in rows))
    pairs = [f"{row['topic']}:{row['first']}:{row['second']}" for row in rows]
    known = tuple(dict.fromkeys(pairs))
    judges = tuple(dict.fromkeys(row.get("judge", "j") for row in rows)) or ("j",)
    criteria = dict.fromkeys(name for row in rows for name in row.get("marks", ()))
    count, none = len(rows), np.full(len(rows), np.nan)

    def column(values: Sequence[int]) -> Any:
        return np.array(values, dtype=np.int64)

    return (
        Votes(
            candidates=names,
            first=column([names.index(row["first"]) for row in rows]),
            second=column([names.index(row["second"]) for row in rows]),
            outcome=column([OUTCOMES[row["winner"]] for row in rows]),
            preference=np.array([row.get("preference", PREFERRED[row["winner"]]) for row in rows]),
            pair=column([known.index(pair) for pair in pairs]),
            topic=column([topics.index(str(row["topic"])) for row in rows]),
            judge=column([judges.index(row.get("judge", "j")) for row in rows]),
            repeat=column([row.get("repeat", 0) for row in rows]),
            conflict=np.array([row["winner"] == "uncertain" for row in rows], dtype=np.bool_),
            marks={
                name: column([OUTCOMES[row.get("marks", {}).get(name)] for row in rows])
                for name in criteria
            },
            first_length=none,
            second_length=none,
            fields={},
            pairs=known,
            rows=[pair.partition(":")[0] for pair in known],
            topics=topics,
            judges=judges,
            passes=Passes(
                vote=column([]),
                turned=np.zeros(0, dtype=np.bool_),
                outcome=column([]),
                preference=np.zeros(0),
            ),
        )
        if count
        else empty_votes()
    )


def empty_votes() -> Votes:
    nothing = np.zeros(0, dtype=np.int64)
    return Votes(
        candidates=(),
        first=nothing,
        second=nothing,
        outcome=nothing,
        preference=np.zeros(0),
        pair=nothing,
        topic=nothing,
        judge=nothing,
        repeat=nothing,
        conflict=np.zeros(0, dtype=np.bool_),
        first_length=np.zeros(0),
        second_length=np.zeros(0),
        fields={},
        pairs=(),
        rows=(),
        topics=(),
        judges=("j",),
        passes=Passes(vote=nothing, turned=nothing > 0, outcome=nothing, preference=np.zeros(0)),
    )
