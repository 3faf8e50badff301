"""Observations of scores and of votes, made from plain rows."""

from __future__ import annotations

import numpy as np

from evenhand.observation import (
    CRITICAL_FAIL,
    OPPONENT_LENGTH,
    OVERALL,
    SUBJECT_LENGTH,
    TAG,
    UNCERTAIN,
    WINNER,
)
from evenhand.stats.compare import compare
from evenhand.stats.layout import lay_out
from evenhand.stats.observations import Field, Observations, Passes, Scale, questions

SHARES = {">": 1.0, "<": 0.0, "=": 0.5, "?": 0.5, "": np.nan}
TAGS = tuple("ABCDE")
OF_A_JUDGMENT = {"scores", "judge", "repeat", "tags", "critical"}


def scores_of(
    rows,
    *,
    units=(),
    id_fields=("prompt_variant", "question_id"),
    scale=(1.0, 5.0),
    is_known=True,
    planned=1,
):
    """Return the observations of rows with `scores`, and perhaps `judge`, `repeat`, `tags` and
    `critical`; all else are fields. Units without a row are named by their fields in `units`."""
    names = list(dict.fromkeys(n for row in [*rows, *units] for n in row if n not in OF_A_JUDGMENT))
    keys = [tuple(row.get(name) for name in names) for row in [*rows, *units]]
    known = list(dict.fromkeys(keys))
    dimensions = tuple(dict.fromkeys(d for row in rows for d in row["scores"] or ()))
    judges = tuple(dict.fromkeys(row.get("judge", "j") for row in rows)) or ("j",)
    given = np.array(
        [[(row["scores"] or {}).get(d, np.nan) for d in dimensions] for row in rows], dtype=float
    ).reshape(len(rows), len(dimensions))
    shares = (given - scale[0]) / ((scale[1] - scale[0]) or 1.0)
    overall = shares.mean(axis=1) if dimensions else np.full(len(rows), np.nan)
    flags = [
        [*(t in row.get("tags", ()) for t in TAGS), row.get("critical", False)] for row in rows
    ]
    flagged = np.array(flags, dtype=float).reshape(len(rows), len(TAGS) + 1)
    flagged[np.isnan(given).all(axis=1)] = np.nan
    fields = {name: field_of([key[at] for key in known]) for at, name in enumerate(names)}
    share = [planned // len(judges) + (j < planned % len(judges)) for j in range(len(judges))]
    return Observations(
        measures=(*dimensions, OVERALL, *(f"{TAG}{tag}" for tag in TAGS), CRITICAL_FAIL),
        scales=(*(Scale(*scale, is_known) for _ in dimensions), *[Scale()] * (len(TAGS) + 2)),
        values=np.column_stack([given, overall, flagged]),
        unit=ints(known.index(key) for key in keys[: len(rows)]),
        judge=ints(judges.index(row.get("judge", "j")) for row in rows),
        repeat=ints(row.get("repeat", 0) for row in rows),
        conflict=np.zeros(len(rows), np.bool_),
        passes=passes_of([]),
        units=["/".join(map(str, key)) for key in known],
        fields=fields,
        id_fields=tuple(id_fields),
        question=questions(fields, len(known)),
        subject=np.full(len(known), -1),
        opponent=np.full(len(known), -1),
        judges=judges,
        planned=np.tile(share, (len(known), 1)) if planned else None,
        failures={},
    )


def ballots(
    rows,
    *,
    judges=(),
    marks=None,
    lengths=(),
    fields=None,
    passes=(),
    rule="uncertain",
    conflicts=None,
    per_pair=1,
):
    """Return votes, `per_pair` on each pair. A row is a topic, two candidates, and `>`, `<`, `=`,
    `?` (uncertain), nothing (failed), or how far the second is preferred. `passes` are (row,
    turned, outcome), and perhaps their round."""
    pairs, size = rows[::per_pair], len(rows)
    names = tuple(sorted({name for row in rows for name in row[1:3]}))
    known = tuple(dict.fromkeys(judges)) or ("j",)
    units = {"topic": [row[0] for row in pairs], **(fields or {})}
    for at, name in enumerate((SUBJECT_LENGTH, OPPONENT_LENGTH) if lengths else ()):
        units[name] = [f"{pair[at]:g}" for pair in lengths]
    units = {name: field_of(values) for name, values in units.items()}
    won = [SHARES[row[3]] if isinstance(row[3], str) else 1 - row[3] for row in rows]
    uncertain = [np.nan if row[3] == "" else float(row[3] == "?") for row in rows]
    columns = [*([SHARES[m] for m in given] for given in (marks or {}).values()), won, uncertain]
    if conflicts is None:
        conflicts = [place for place, row in enumerate(rows) if row[3] == "?"]
    return Observations(
        measures=(*(marks or {}), WINNER, UNCERTAIN),
        scales=(Scale(),) * len(columns),
        values=np.array(columns, dtype=float).reshape(len(columns), size).T,
        unit=np.arange(size) // per_pair,
        judge=ints(known.index(one) for one in (judges or ["j"] * size)),
        repeat=ints([0] * size),
        conflict=np.isin(np.arange(size), conflicts),
        passes=passes_of(passes),
        units=[f"p{number}" for number in range(len(pairs))],
        fields=units,
        id_fields=("unit",),
        question=questions({"topic": units["topic"]}, len(pairs), "topic"),
        candidates=names,
        subject=ints(names.index(row[1]) for row in pairs),
        opponent=ints(names.index(row[2]) for row in pairs),
        judges=known,
        planned=None,
        failures={},
        rule=rule,
    )


def votes(signs, first="a", second="b", start=0):
    """Return rows of votes between two candidates, a topic each."""
    return [(start + topic, first, second, sign) for topic, sign in enumerate(signs)]


def passes_of(rows):
    return Passes(
        row=ints(one[0] for one in rows),
        round=ints(one[3] if len(one) > 3 else 1 for one in rows),
        position=ints(2 if one[1] else 1 for one in rows),
        value=np.array([SHARES[one[2]] for one in rows], dtype=float),
    )


def ints(values):
    return np.array(list(values), dtype=np.int64)


def field_of(values):
    levels = tuple(dict.fromkeys(str(value) for value in values if value is not None))
    return Field(ints(-1 if one is None else levels.index(str(one)) for one in values), levels)


def compare_scores(
    table, by="prompt_variant", baseline="v1", *, pair_by=(), judge=None, level=0.95, margin=None
):
    """Return the comparison of variants, as `compare` gives it of a run."""
    told = table if judge is None else table.of_judge(judge)
    fields = [by] if isinstance(by, str) else list(by)
    return compare(lay_out(told, fields, baseline, pair_by), level, margin)


def compare_votes(table, baseline=None, **options):
    """Return the comparison of candidates with a baseline."""
    return compare_scores(table, (), baseline, **options)
