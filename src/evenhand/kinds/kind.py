"""What a kind of judging is to the rest of the house.

A `Kind` is an entry of the registry: all that depends on the kind and on nothing else. A `Judging`
is a kind made ready with a protocol and settings: it reads rows and judges units.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from evenhand.exchange import Question
from evenhand.judgment import Judgment, JudgmentText
from evenhand.kinds.shared.asking import Asking
from evenhand.kinds.shared.load import Protocol as LoadedProtocol
from evenhand.measures import Ends, Scored, ScoredUnit, Voted, VotedUnit


class UnitText(NamedTuple):
    """A unit as it is stored."""

    id: str
    body: str


class Terms(NamedTuple):
    """What a suite says beyond its protocol that can change a verdict."""

    language: str
    languages: Sequence[str]
    """All that units may be in."""
    seed: int
    rubric: Any
    """The rubric of all rows, as its file was read; None where each row brings its own."""
    settings: Mapping[str, Any]


class Judging(Protocol):
    """One kind of judging, ready for use."""

    @property
    def kind(self) -> str:
        """Its name in the registry."""
        ...

    @property
    def dimensions(self) -> Sequence[str]:
        """What a verdict speaks of one by one, where that is known before any unit is read: the
        ids of dimensions or criteria."""
        ...

    @property
    def ends(self) -> Ends:
        """The ends of the scores on each dimension, as far as the protocol or the suite's rubric
        gives them."""
        ...

    @property
    def rounds(self) -> int:
        """How often the questions that open a judgment may be asked in all."""
        ...

    def read(self, row: Mapping[str, Any]) -> list[UnitText]:
        """The units in an input row; raises RowError."""
        ...

    def opening(self, body: str, asking: Asking) -> list[Question]:
        """What will be asked about a unit whatever the replies; nothing where code decides."""
        ...

    async def judge(self, body: str, asking: Asking) -> Judgment:
        """The judgment of a unit in its stored text."""
        ...


@dataclass(frozen=True, slots=True)
class Scoring:
    """A kind whose verdicts are scores on dimensions: what statistics take of it."""

    unit: Callable[[str], ScoredUnit]
    """Of a unit's stored text."""
    judgment: Callable[[Judgment], Scored | None]
    tags: tuple[str, ...] = ()
    """The failure tags that a verdict may have."""


@dataclass(frozen=True, slots=True)
class Voting:
    """A kind whose verdicts are votes between two: what statistics take of it."""

    unit: Callable[[str], VotedUnit]
    """Of a unit's stored text."""
    judgment: Callable[[Judgment], Voted]


class Kind(Protocol):
    """One kind of judging, as the registry has it."""

    @property
    def name(self) -> str: ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings that can change a verdict, with their defaults."""
        ...

    @property
    def measure(self) -> Scoring | Voting:
        """What statistics take of its units and judgments."""
        ...

    def judging(self, protocol: LoadedProtocol, terms: Terms) -> Judging:
        """The kind made ready; raises ProtocolError."""
        ...

    def read_judgment(self, text: JudgmentText) -> Judgment:
        """A judgment from the text that a store keeps."""
        ...
