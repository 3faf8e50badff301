"""What a kind of judging is to the rest of the house.

A `Kind` is an entry of the registry: all that depends on the kind and on nothing else. A `Judging`
is a kind made ready with a protocol and settings: it reads rows and judges units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from evenhand.exchange import Question
from evenhand.judgment import Judgment, JudgmentText, Verdict
from evenhand.kinds.blocks import ShownUnit
from evenhand.kinds.check import Checked
from evenhand.kinds.protocol import Protocol as LoadedProtocol
from evenhand.kinds.protocol import ProtocolForm
from evenhand.kinds.shared.asking import Asking
from evenhand.kinds.shared.rubric_form import RubricForm
from evenhand.kinds.shared.summary import Summary
from evenhand.kinds.shared.table_form import TableForm
from evenhand.measures import Ends, Scored, ScoredPage, ScoredUnit, Voted, VotedUnit


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

    def unit_keys(self, body: str) -> Sequence[str]:
        """By what an output object may name the unit: its id, or what of it the contract
        repeats."""
        ...

    def output_key(self, output: Mapping[str, Any]) -> str | None:
        """What an output object names its unit by; None where it is not of the contract's form.
        Raises RowError."""
        ...

    def check_elsewhere(self, body: str, text: str, finish: str) -> Checked[Any]:
        """The contract applied to a raw reply made elsewhere about a unit."""
        ...

    def check_output(self, body: str, output: dict[str, Any]) -> Checked[Any]:
        """The contract applied to an output object made elsewhere."""
        ...


class TableLine(NamedTuple):
    """A line of a verdict table: its number, counted from one, the unit, and its output object."""

    number: int
    unit: str
    output: dict[str, Any]


class VerdictTable(Protocol):
    """The verdicts of a run as a text, one line per unit."""

    def header(self, dimensions: Sequence[str]) -> str:
        """The first line."""
        ...

    def line(self, unit: str, winner: str, marks: Sequence[str], notes: str) -> str:
        """One unit, without its line break."""
        ...

    def read(self, lines: Iterable[str], dimensions: Sequence[str]) -> Iterator[TableLine]:
        """The lines of a table that was written; raises TableError."""
        ...


class TableError(ValueError):
    """A line of a verdict table that is wrong."""

    def __init__(self, line_number: int, message: str) -> None:
        super().__init__(f"line {line_number}: {message}")
        self.line_number, self.message = line_number, message


class ExampleSuite(NamedTuple):
    """The bundled suite of a kind: the names of its files, and what it compares by."""

    data: str
    rubric: str | None = None
    by: str | None = None
    baseline: str | None = None


class Scoring(Struct, frozen=True):
    """A kind whose verdicts are scores on dimensions: what statistics take of it."""

    unit: Callable[[str], ScoredUnit]
    """Of a unit's stored text."""
    judgment: Callable[[Judgment], Scored | None]
    summary: Callable[[Iterable[tuple[str, Verdict]]], Summary]
    """What verdicts come to, each with the stored text of its unit."""
    tags: Callable[[LoadedProtocol, Sequence[str]], Mapping[str, str]] = lambda *_: {}
    """The failure tags that a verdict under a protocol may have, each with its name in the first of
    some languages that has one."""
    full_marks: int | None = None
    """What a total is out of; None where verdicts have no total of their own."""
    has_critical_fails: bool = False
    has_confidence: bool = False
    has_notes: bool = False
    units: Callable[[Sequence[str]], Sequence[ScoredUnit]] | None = None
    """What `unit` says of many stored texts at once; None where they are read one by one."""
    stored: Callable[[Sequence[JudgmentText]], ScoredPage] | None = None
    """What `judgment` says of the stored texts of judgments that need no more than scores and tags,
    of which no more is read than statistics take; None where judgments are read whole."""


class Voting(Struct, frozen=True):
    """A kind whose verdicts are votes between two: what statistics take of it."""

    unit: Callable[[str], VotedUnit]
    """Of a unit's stored text."""
    judgment: Callable[[Judgment], Voted]


class Kind(Protocol):
    """One kind of judging, as the registry has it."""

    @property
    def name(self) -> str: ...

    @property
    def noun(self) -> str:
        """What its units are called, among the words that are counted."""
        ...

    @property
    def question_noun(self) -> str:
        """What units of several variants are about, among the words that are counted."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings that can change a verdict, with their defaults."""
        ...

    @property
    def form(self) -> ProtocolForm:
        """What its protocols have in common."""
        ...

    @property
    def table_form(self) -> TableForm:
        """What it takes from the columns of a table."""
        ...

    @property
    def rubric_form(self) -> RubricForm | None:
        """How the rubric of a suite or a row is read; None where there is none to bring."""
        ...

    @property
    def table(self) -> VerdictTable | None:
        """How its verdicts are written as a table; None where they are not."""
        ...

    @property
    def example(self) -> ExampleSuite:
        """Its bundled suite."""
        ...

    @property
    def measure(self) -> Scoring | Voting:
        """What statistics take of its units and judgments."""
        ...

    def judging(self, protocol: LoadedProtocol, terms: Terms) -> Judging:
        """The kind made ready; raises ProtocolError."""
        ...

    def check_protocol(self, protocol: LoadedProtocol, language: str) -> None:
        """Read what a protocol says in its tables; raises ProtocolError."""
        ...

    def rules(self, protocol: LoadedProtocol, asked: LoadedProtocol) -> Mapping[str, Any]:
        """The settings under which replies to the prompts of `asked` are settled by the rules of
        `protocol`; raises ProtocolError where those rules need other replies."""
        ...

    def shown(self, body: str, judgments: Sequence[Judgment]) -> ShownUnit:
        """What a person is shown of a unit in its stored text, and of its judgments."""
        ...

    def read_judgment(self, text: JudgmentText) -> Judgment:
        """A judgment from the text that a store keeps."""
        ...
