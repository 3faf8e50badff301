"""A unit and its judgments as a person is shown them, in plain values: a kind says what, whoever
renders a page or a terminal says how.

Texts of the data stand as they are: hidden characters are made visible by whoever renders. What is
worded in the reader's language stands as a `Label` or a `Gloss`, and is looked up there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Union

from msgspec import Struct, field
from msgspec.structs import replace

from evenhand import jsontext
from evenhand.kinds.prompt import extra_text
from evenhand.kinds.rows import EXTRAS, is_given
from evenhand.observation import ScoredUnit, VotedUnit
from evenhand.transcript import Part, Transcript

NO_BREAK = "\u00a0"
"""A blank at which no line ends."""
Tone = Literal["", "strong", "first", "second", "warn", "bad", "dim"]
Look = Literal["turn", "judged", "calls", "tool"]


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
    look: Sequence[Look] = ()
    """Of a text that is a part of a turn of a transcript."""


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


FOLDED_CHARS = 600
"""A longer result of a tool is folded, and a longer text of the system."""


def turn_blocks(
    transcript: Transcript,
    short: str = "A",
    first: int = 1,
    after: int | None = None,
    marks: Mapping[int, Sequence[Mark]] = MappingProxyType({}),
) -> list[Block]:
    """Return the turns from one number on, up to another one, a text for each part: its speaker,
    with the marks on the turn. `short` is the letter of what is judged."""
    asked = next((part for part in transcript.parts if part.text == transcript.question), None)
    blocks: list[Block] = []
    for part in transcript.parts:
        if part.number < first or (after is not None and part.number >= after):
            continue
        turn, is_judged = part.turn, part.is_judged
        about: list[Piece] = [Label("unit.turn", {"number": str(part.number)})]
        about += [Gloss("speaker", turn.role), turn.tool]
        about += [Label("unit.calls")] * part.is_calls + [Label("unit.judged")] * is_judged
        label = Joined(about)
        end = part.start + len(part.text)
        text = Text(
            label=label,
            text=part.text,
            marks=[
                mark._replace(start=mark.start - part.start, end=mark.end - part.start)
                for mark in marks.get(part.number, ())
                if part.start <= mark.start and mark.end <= end
            ],
            short=short if is_judged else "Q" if part is asked else "",
            look=_look(part),
        )
        is_long = turn.role in ("tool", "system") and len(part.text) > FOLDED_CHARS
        blocks.append(Group(label, [replace(text, label="")]) if is_long else text)
    return blocks


def _look(part: Part) -> list[Look]:
    looks: dict[Look, bool] = {"turn": True, "judged": part.is_judged, "calls": part.is_calls}
    looks["tool"] = part.turn.role == "tool"
    return [look for look, has_it in looks.items() if has_it]


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


def winner_piece(winner: str, candidates: Sequence[str]) -> Piece:
    """Return who won a pair, by name; or that nobody did."""
    if winner in ("A", "B"):
        return Label("unit.better", {"name": candidates["AB".index(winner)]})
    return Gloss("verdict", winner)


class UnitSummary(NamedTuple):
    """The verdicts of a run: blocks for a person, and figures for `--json`."""

    blocks: Sequence[Block]
    json: Mapping[str, Any] = {}


def score_table(
    values: Mapping[tuple[str, str], Sequence[float]], faults: Collection[str]
) -> Table:
    """Return mean and range of scores by (variant, dimension); variants where there are several.
    `faults` are dimensions whose scores are turned round."""
    several = len({variant for variant, _ in values}) > 1
    head = [*labels("dimension"), "n", *labels("mean", "range")]
    rows: list[list[Cell]] = []
    for (variant, name), scores in sorted(values.items()):
        mean = Number(round(sum(scores) / len(scores), 2))
        low, high = (Number(round(end, 2)) for end in (min(scores), max(scores)))
        ends = Label("unit.from_to", {"low": low, "high": high})
        said = Label("unit.free_of", {"dimension": name}) if name in faults else None
        row: list[Piece] = [said or Gloss("dimension", name), str(len(scores)), mean, ends]
        rows.append(cells([variant, *row] if several else row))
    right = (2, 3) if several else (1, 2)
    return Table(head=[*labels("variant"), *head] if several else head, rows=rows, right=right)
