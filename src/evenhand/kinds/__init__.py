"""All that depends on the kind of judging. `KINDS` is the only place that lists the kinds: each is
a folder beside this file and one entry here."""

from __future__ import annotations

from evenhand.kinds.kind import Kind
from evenhand.kinds.pairwise.kind import PairwiseKind
from evenhand.kinds.rubric.kind import RubricKind
from evenhand.kinds.weighted.kind import WeightedKind

KINDS: dict[str, Kind] = {
    kind.name: kind for kind in (PairwiseKind(), RubricKind(), WeightedKind())
}
