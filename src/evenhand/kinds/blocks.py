"""A unit and its judgments as a person is shown them, in plain values: a kind says what, whoever
renders a page or a terminal says how.

Texts of the data stand as they are: hidden characters are made visible by whoever renders. What is
worded in the reader's language stands as a `Label` or a `Gloss`, and is looked up there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Union

from msgspec import Struct, field

from evenhand import jsontext
from evenhand.kinds.prompt import extra_text
from evenhand.kinds.rows import EXTRAS, is_given
from evenhand.observation import ScoredUnit, VotedUnit

NO_BREAK = "\u00a0"
"""A blank at which no line ends."""
Tone = Literal["", "strong", "first", "second", "warn", "bad", "dim"]


class Label(NamedTuple):
    """A text of the reader's language, by its key, with what its places are filled with."""

    key: str
    values: Mapping[str, Piece] = {}


class Gloss(NamedTuple):
    """The meaning of a code in a group, such as a verdict or a mark; itself where nobody says."""

    group: str
    code: str


class Number(NamedTuple):
    """A number as the reader's language writes it."""

    value: float


class Named(NamedTuple):
    """The id of a dimension or criterion, with its name where that says more."""

    id: str


class Joined(NamedTuple):
    """Several pieces in a row."""

    pieces: Sequence[Piece]
    by: str = " · "


Piece = Union[str, Label, Gloss, Number, Named, Joined]  # noqa: UP007 - refers to itself


class Cell(NamedTuple):
    """A piece with its tone."""

    piece: Piece
    tone: Tone = ""


class Mark(NamedTuple):
    """A marked stretch of a text: code points, half-open, and what it is quoted for."""

    start: int
    end: int
    number: int
    title: str


class Text(Struct, frozen=True, kw_only=True):
    """A text of the unit or of a verdict."""

    label: Piece = ""
    text: str
    note: str = ""
    """Its author or source."""
    marks: Sequence[Mark] = ()
    short: str = ""
    """The label where there is no room: a letter."""


class Table(Struct, frozen=True, kw_only=True):
    """Rows under a head; columns that say nothing may be left out."""

    label: Piece = ""
    head: Sequence[Piece]
    rows: Sequence[Sequence[Cell]]
    right: Sequence[int] = ()
    """Columns of numbers."""


class Items(Struct, frozen=True, kw_only=True):
    """Small texts in a row."""

    label: Piece = ""
    items: Sequence[Piece]
    tone: Tone = ""


class Notice(Struct, frozen=True):
    """One sentence that must not be missed."""

    piece: Piece
    tone: Tone = ""


class Columns(Struct, frozen=True):
    """Blocks side by side, below each other where there is no room."""

    columns: Sequence[Sequence[Block]]


class Section(Struct, frozen=True):
    """Blocks under a heading."""

    label: Piece
    blocks: Sequence[Block]


class Group(Struct, frozen=True):
    """Blocks that are folded until they are asked for."""

    label: Piece
    blocks: Sequence[Block]


Block = Union[Text, Table, Items, Notice, Columns, Section, Group]  # noqa: UP007 - refers to itself


class Reason(NamedTuple):
    """Why a judge said what it said: about a dimension or criterion, the score or mark, its words,
    and what it quotes."""

    about: str
    score: str
    text: str
    quotes: Sequence[str] = ()


class ShownJudgment(Struct, frozen=True, kw_only=True):
    """A judgment on one line and in full. A failure is worded by whoever shows it; its passes are
    among the blocks."""

    line: Sequence[Cell] = ()
    blocks: Sequence[Block] = ()
    reasons: Sequence[Reason] = ()


class ShownUnit(Struct, frozen=True, kw_only=True):
    """A unit: its texts, what is known about it, and each of its judgments."""

    unit: Sequence[Block]
    measured: ScoredUnit | VotedUnit
    """Its values for statistics."""
    about: Sequence[Block] = ()
    judgments: Sequence[ShownJudgment] = field(default=())


def about_unit(extras: Mapping[str, Any], meta: Mapping[str, Any]) -> list[Block]:
    """Return what a unit of any kind carries beside its own texts."""
    blocks: list[Block] = [
        Group(Label(f"unit.{name}"), [Text(text=extra_text(extras[name]))])
        for name in EXTRAS
        if is_given(extras.get(name))
    ]
    if meta:
        items = [f"{name}: {jsontext.as_text(value)}" for name, value in meta.items()]
        blocks.append(Items(label=Label("unit.meta"), items=items))
    return blocks


def labels(*names: str) -> list[Piece]:
    """Return the heads of a table, by their names among the words of a unit."""
    return [Label(f"unit.{name}") for name in names]


def cells(pieces: Iterable[Piece | Cell]) -> list[Cell]:
    """Return a row of a table."""
    return [piece if isinstance(piece, Cell) else Cell(piece) for piece in pieces]


class UnitSummary(NamedTuple):
    """The verdicts of a run: blocks for a person, and figures for `--json`."""

    blocks: Sequence[Block]
    json: Mapping[str, Any] = {}


def score_table(values: Mapping[tuple[str, str], Sequence[float]]) -> Table:
    """Return mean and range of scores by (variant, dimension); variants where there are several."""
    several = len({variant for variant, _ in values}) > 1
    head = [*labels("dimension"), "n", *labels("mean", "range")]
    rows: list[list[Cell]] = []
    for (variant, name), scores in sorted(values.items()):
        mean = Number(round(sum(scores) / len(scores), 2))
        ends = Label("unit.from_to", {"low": Number(min(scores)), "high": Number(max(scores))})
        row: list[Piece] = [name, str(len(scores)), mean, ends]
        rows.append(cells([variant, *row] if several else row))
    right = (2, 3) if several else (1, 2)
    return Table(head=[*labels("variant"), *head] if several else head, rows=rows, right=right)
