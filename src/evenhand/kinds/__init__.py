"""All that depends on the kind of judging. `KINDS` is the only place that lists the kinds: each is
a folder beside this file, whose `kind.py` holds its record `KIND`, and a name here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from evenhand.kinds.kind import Kind
from evenhand.kinds.protocol import Protocol, kind_named, protocol_of

ANSWERS = "answer"
"""The kind that judges nothing: it makes the answers which others judge."""
DEFAULT_KIND = "rubric"
"""The kind of a table that nothing else is known of."""


class _Kinds(Mapping[str, Kind]):
    """Kinds by their names; the folder of each is loaded when it is first asked for. One that is
    not listed judges nothing: it is found by its name alone."""

    def __init__(self, modules: Mapping[str, str], unlisted: Mapping[str, str]) -> None:
        self._listed, self.modules = modules, {**modules, **unlisted}

    def __getitem__(self, name: str) -> Kind:
        kind: Kind = import_module(self.modules[name]).KIND
        return kind

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed)

    def __len__(self) -> int:
        return len(self._listed)

    def __contains__(self, name: object) -> bool:
        return name in self.modules


KINDS = _Kinds(
    {
        "pairwise": "evenhand.kinds.pairwise.kind",
        "rubric": "evenhand.kinds.rubric.kind",
        "weighted": "evenhand.kinds.weighted.kind",
        "checklist": "evenhand.kinds.checklist.kind",
    },
    unlisted={ANSWERS: "evenhand.kinds.answer.kind"},
)


def kind_of_import(shape: str) -> Kind:
    """Return the kind that judgments of other tools in this shape are taken in as."""
    return next(kind for kind in KINDS.values() if kind.imports == shape)


def load_protocol(name: str, texts: Mapping[str, str]) -> Protocol:
    """Return the protocol of these texts; raises ProtocolError."""
    kind = kind_named(texts, KINDS)
    return protocol_of(name, kind, KINDS[kind].form, texts)
