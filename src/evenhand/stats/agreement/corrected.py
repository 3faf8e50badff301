"""The means of a judge, corrected by the labels of some of its units: by dimension or candidate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from evenhand.stats.agreement.ppi import corrected_mean
from evenhand.stats.agreement.ratings import Joined, Ratings
from evenhand.stats.agreement.table import CorrectedRow
from evenhand.stats.tables import NONE, Field, Floats

SHIFTED = 3.0
"""Standard errors by which labelled units may differ from the others before it is said."""


def levels_of(field: Field | None) -> list[tuple[str, int]]:
    """The values of a field in order, each with its code."""
    if field is None:
        return []
    return sorted((level, code) for code, level in enumerate(field.levels))


def corrected_rows(
    joined: Joined, dimensions: Sequence[str], field: Field | None, level: float
) -> list[CorrectedRow]:
    """Mean scores by dimension, or win rates by candidate, of all units and of each variant."""
    assert joined.against is not None
    votes, rows = bool(joined.candidates), list[CorrectedRow]()
    for name in joined.candidates if votes else dimensions:
        judged = _unit_means(joined.run, name, joined.cluster.size)
        labels = _unit_means(joined.against, name, joined.cluster.size)
        for variant, code in [(None, NONE), *levels_of(field)]:
            units = ~np.isnan(judged)
            if field and variant is not None:
                units &= field.codes == code
            if not (units & ~np.isnan(labels)).any():
                continue
            estimate = corrected_mean(
                judged[units],
                labels[units],
                joined.cluster[units],
                ends=joined.ends[name],
                level=level,
            )
            rows.append(
                CorrectedRow(
                    of="candidate" if votes else "dimension",
                    name=name,
                    variant=variant,
                    judged=int(units.sum()),
                    labelled=int((~np.isnan(labels[units])).sum()),
                    estimate=estimate,
                )
            )
    return rows


def _unit_means(ratings: Ratings, name: str, count: int) -> Floats:
    """Of each unit, the mean of what was said; nan where nothing was."""
    rows, values = ratings.means.get(name, (np.zeros(0, dtype=np.int64), np.zeros(0)))
    scored = ~np.isnan(values)
    unit = ratings.unit[rows[scored]]
    sums, counts = np.bincount(unit, values[scored], count), np.bincount(unit, minlength=count)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def label_notes(rows: Sequence[CorrectedRow]) -> Iterator[str]:
    """What has to be known to read corrected figures."""
    part = [row for row in rows if row.labelled < row.judged]
    if any(row.estimate.corrected.value is not None for row in part):
        yield "corrected figures hold if the labelled units are a random part of the judged ones"
    for row in part:
        if row.estimate.shift is not None and abs(row.estimate.shift) > SHIFTED:
            of = row.name if row.variant is None else f"{row.name}, {row.variant}"
            way = "higher" if row.estimate.shift > 0 else "lower"
            yield f"{of}: the judge rates labelled units {way} than others: no random part of them"
    if short := [row for row in rows if row.estimate.corrected.value is None]:
        yield f"nothing is corrected with {short[0].estimate.corrected.why}"
