"""All that depends on the kind of judging. `KINDS` is the only place that lists the kinds: each is
a folder beside this file and one entry here."""

from __future__ import annotations

from collections.abc import Mapping

from evenhand.kinds.kind import Kind
from evenhand.kinds.pairwise.kind import PairwiseKind
from evenhand.kinds.rubric.kind import RubricKind
from evenhand.kinds.shared.load import Protocol, kind_named, protocol_of
from evenhand.kinds.weighted.kind import WeightedKind

KINDS: Mapping[str, Kind] = {
    kind.name: kind for kind in (PairwiseKind(), RubricKind(), WeightedKind())
}


def load_protocol(name: str, texts: Mapping[str, str]) -> Protocol:
    """The protocol of these texts; raises ProtocolError."""
    kind = kind_named(texts, KINDS)
    return protocol_of(name, kind, KINDS[kind].form, texts)
