"""All that depends on the kind of judging. `KINDS` is the only place that lists the kinds: each is
a folder beside this file and one entry here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache

from evenhand.kinds.kind import Kind
from evenhand.kinds.protocol import Protocol, kind_named, protocol_of


@cache
def _pairwise() -> Kind:
    from evenhand.kinds.pairwise.kind import PairwiseKind

    return PairwiseKind()


@cache
def _rubric() -> Kind:
    from evenhand.kinds.rubric.kind import RubricKind

    return RubricKind()


@cache
def _weighted() -> Kind:
    from evenhand.kinds.weighted.kind import WeightedKind

    return WeightedKind()


class _Kinds(Mapping[str, Kind]):
    """Kinds by their names; the folder of each is loaded when it is first asked for."""

    def __init__(self, kinds: Mapping[str, Callable[[], Kind]]) -> None:
        self._kinds = kinds

    def __getitem__(self, name: str) -> Kind:
        return self._kinds[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._kinds)

    def __len__(self) -> int:
        return len(self._kinds)

    def __contains__(self, name: object) -> bool:
        return name in self._kinds


KINDS: Mapping[str, Kind] = _Kinds(
    {"pairwise": _pairwise, "rubric": _rubric, "weighted": _weighted}
)


def load_protocol(name: str, texts: Mapping[str, str]) -> Protocol:
    """The protocol of these texts; raises ProtocolError."""
    kind = kind_named(texts, KINDS)
    return protocol_of(name, kind, KINDS[kind].form, texts)
