"""One judged unit as plain values for a page: a line for tables, and blocks for its drill-down.

A block is a dict with a `kind`: `text` (segments, some of them marked), `columns` (side by side),
`table`, `items` (small labels), `notice`, `section`, `group` (folded). The macros of `_unit.html`
and the script of a report render the same blocks. Every text in a block is ready to be shown:
hidden characters are visible; nothing is escaped for HTML, which is the renderer's part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict

from evenhand.judgment import Judgment
from evenhand.kinds import blocks as of_kind
from evenhand.kinds.blocks import ShownUnit
from evenhand.kinds.kind import Kind
from evenhand.report.html.page import Segment, Words, marked
from evenhand.report.outcome import Outcome, unit_outcome
from evenhand.text import visible

Block = dict[str, Any]
Cell = str | tuple[str, str]
Row = Mapping[str, Any]
"""A judgment as `export --full` writes it, with its `exchanges` as `show --json` has them."""

TEXT_SHOWN = 90
"""Characters of a text on a line of a table."""
_FENCE = re.compile(r"(\[\[/?\w+ [0-9a-f]+\]\]\n?)")


def text_block(
    label: str, segments: Iterable[Sequence[str]], *, note: str = "", part: str = "own"
) -> Block:
    """A text in segments `[text]` or `[text, numbers, title]`; `part` is `own` for what was judged
    and `call` for what passed between the program and a judge."""
    return {
        "kind": "text",
        "label": label,
        "note": note,
        "segments": [list(segment) for segment in segments if segment[0]],
        "part": part,
    }


def table_block(label: str, head: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Block:
    """A table; a cell is a text, or a text with its tone."""
    cells = [[[c, ""] if isinstance(c, str) else list(c) for c in row] for row in rows]
    return {"kind": "table", "label": label, "head": list(head), "rows": cells}


def items_block(label: str, items: Iterable[tuple[str, str]], tone: str = "") -> Block:
    """Small labels in a row, each with what it means."""
    return {"kind": "items", "label": label, "items": [list(item) for item in items], "tone": tone}


def notice_block(text: str, tone: str = "") -> Block:
    return {"kind": "notice", "text": text, "tone": tone}


def group_block(label: str, blocks: Sequence[Block]) -> Block:
    """Blocks that are folded until they are asked for."""
    return {"kind": "group", "label": label, "blocks": list(blocks)}


def section_block(label: str, blocks: Sequence[Block]) -> Block:
    return {"kind": "section", "label": label, "blocks": list(blocks)}


def columns_block(columns: Sequence[Sequence[Block]]) -> Block:
    """Blocks side by side, below each other where there is no room."""
    return {"kind": "columns", "columns": [list(column) for column in columns]}


class JudgedRow(NamedTuple):
    """A judgment, and all that is known about it as `export --full` writes it, with its `exchanges`
    as `show --json` has them."""

    judgment: Judgment
    row: dict[str, Any]


def unit_blocks(
    unit: ShownUnit, judged: Sequence[JudgedRow], say: Words, names: Mapping[str, str] | None = None
) -> list[Block]:
    """Everything about one unit: what its kind shows of it, and how each judgment came about;
    `names` say in words what the ids of dimensions and criteria stand for."""
    return _Drill(unit, [entry.row for entry in judged], _Renderer(say, names or {})).blocks()


class _Renderer:
    """Blocks of a kind as blocks of a page."""

    def __init__(self, say: Words, names: Mapping[str, str]) -> None:
        self.say, self.names = say, names
        self.segments: dict[str, list[str]] = {}
        """The unit's own texts, as the pieces in which they are shown: prompts repeat them."""

    def piece(self, piece: of_kind.Piece) -> str:
        """A piece in the reader's language, ready to be shown."""
        match piece:
            case str():
                return visible(piece)
            case of_kind.Label(key, values):
                return self.say(key, **{name: self.piece(value) for name, value in values.items()})
            case of_kind.Gloss(group, code):
                return visible(self.say.gloss(group, code))
            case of_kind.Number(value):
                return self.say.short(value)
            case of_kind.Named(ident):
                name = self.names.get(ident, "")
                says_more = name and name.casefold() != ident.casefold()
                return visible(f"{ident} · {name}" if says_more else ident)
            case of_kind.Joined(pieces, by):
                return by.join(filter(None, map(self.piece, pieces)))

    def block(self, block: of_kind.Block) -> Block:
        match block:
            case of_kind.Text():
                return self._text(block)
            case of_kind.Table():
                head = [self.piece(title) for title in block.head]
                rows = [[(self.piece(c.piece), str(c.tone)) for c in row] for row in block.rows]
                return table_block(self.piece(block.label), *_without_empty(head, rows))
            case of_kind.Items():
                items = [(self.piece(item), "") for item in block.items]
                return items_block(self.piece(block.label), items, block.tone)
            case of_kind.Notice(piece, tone):
                return notice_block(self.piece(piece), tone)
            case of_kind.Columns(columns):
                return columns_block([self.blocks(column) for column in columns])
            case of_kind.Section(label, inner):
                return section_block(self.piece(label), self.blocks(inner))
            case of_kind.Group(label, inner):
                return group_block(self.piece(label), self.blocks(inner))

    def blocks(self, blocks: Sequence[of_kind.Block]) -> list[Block]:
        return [self.block(block) for block in blocks]

    def _text(self, block: of_kind.Text) -> Block:
        """A text with its marks; where several overlap, each stretch names all of them."""
        titles = {str(mark.number): visible(mark.title) for mark in block.marks}
        spans = [(mark.start, mark.end, str(mark.number)) for mark in block.marks]
        segments = marked(block.text, spans) if spans else [Segment(block.text, ())]
        self.segments[block.text] = [segment.text for segment in segments]
        stretches = [
            [visible(segment.text)]
            if not segment.labels
            else [
                visible(segment.text),
                ",".join(segment.labels),
                " · ".join(titles[label] for label in segment.labels),
            ]
            for segment in segments
        ]
        return text_block(self.piece(block.label), stretches, note=visible(block.note))


class _Drill:
    """The drill-down of one unit in the making."""

    def __init__(self, unit: ShownUnit, rows: Sequence[Row], renderer: _Renderer) -> None:
        self.unit, self.rows, self.renderer, self.say = unit, rows, renderer, renderer.say

    def blocks(self) -> list[Block]:
        blocks = self.renderer.blocks([*self.unit.unit, *self.unit.about])
        if not self.rows:
            return [*blocks, notice_block(self.say("unit.pending"), "dim")]
        for row, judgment in zip(self.rows, self.unit.judgments, strict=True):
            failed = [] if row["output"] else [notice_block(no_verdict(row, self.say), "bad")]
            outcome = [*failed, *self.renderer.blocks(judgment.blocks)]
            inner = [*outcome, *self._about(row), *self._calls(row)]
            blocks.append(section_block(self._judged_by(row), inner))
        return blocks

    def _judged_by(self, row: Row) -> str:
        judge = visible(row["judge"])
        if not row["repeat"]:
            return self.say("unit.by", judge=judge)
        return self.say("unit.by_again", judge=judge, repeat=row["repeat"] + 1)

    # How it came about

    def _about(self, row: Row) -> Iterator[Block]:
        say = self.say
        if flags := [_explained(visible(flag), flag_gloss(say, flag)) for flag in row["flags"]]:
            yield items_block(say("unit.flags"), flags, "warn")
        fixes = [_explained(_fixed(fix), say.gloss("fix", fix["code"])) for fix in row["fixes"]]
        if fixes:
            yield items_block(say("unit.fixes"), fixes)

    def _calls(self, row: Row) -> Iterator[Block]:
        for place, call in enumerate(row["exchanges"]):
            judge_pass = row["passes"][place] if place < len(row["passes"]) else {}
            yield group_block(
                self._call_label(place, call, judge_pass), list(self._call(call, judge_pass))
            )

    def _call_label(self, place: int, call: Row, judge_pass: Mapping[str, Any]) -> str:
        say, parts = self.say, [self.say("unit.call", number=place + 1)]
        if judge_pass.get("round"):
            order = say.gloss("order", call["order"])
            parts += [f"{say('unit.round', round=judge_pass['round'])}, {order}"]
        if call["reask"]:
            parts.append(say("unit.reask", number=call["reask"]))
        parts.append(visible(call["model"] or call["judge"]))
        parts += [f"{name} {say.short(value)}" for name, value in call["sampling"].items()]
        return " · ".join(parts)

    def _call(self, call: Row, judge_pass: Mapping[str, Any]) -> Iterator[Block]:
        say = self.say
        for message in call["messages"][-2 if call["reask"] else 0 :]:
            label = say("unit.prompt", role=say.gloss("role", message["role"]))
            yield text_block(label, self._pieces(message["content"]), part="call")
        finish = "" if call["finish"] == "stop" else visible(call["finish"])
        yield text_block(say("unit.reply"), [[visible(call["reply"])]], note=finish, part="call")
        if problems := judge_pass.get("problems"):
            head = [say("unit.problem"), say("unit.where"), say("unit.message")]
            rows = [[visible(p[k]) for k in ("code", "path", "message")] for p in problems]
            yield table_block(say("unit.problems"), head, rows)
        if odds := call["odds"]:
            rows = [[visible(path), _odds(shares, say)] for path, shares in odds.items()]
            yield table_block(say("unit.odds"), [say("unit.where"), say("unit.odds")], rows)
        yield items_block(say("unit.key"), [(visible(call["key"]), "")])

    def _pieces(self, content: str) -> list[list[str]]:
        """A prompt in pieces, so that what many prompts share is one piece of each."""
        pieces: list[str] = []
        for part in _FENCE.split(content):
            segments = self.renderer.segments.get(part.removesuffix("\n"))
            pieces += [*segments, "\n"] if segments and part.endswith("\n") else [part]
        return [[visible(piece)] for piece in pieces]


def _explained(code: str, gloss: str) -> tuple[str, str]:
    """A code and what it means, both to be read: what shows only under a pointer is lost."""
    return f"{code} · {gloss}" if gloss else code, ""


def _without_empty(
    head: Sequence[str], rows: Sequence[Sequence[Cell]]
) -> tuple[list[str], list[list[Cell]]]:
    """A table without columns that say nothing."""
    places = [
        place
        for place in range(len(head))
        if any(cell if isinstance(cell, str) else cell[0] for cell in (row[place] for row in rows))
    ]
    return [head[place] for place in places], [[row[place] for place in places] for row in rows]


def _fixed(fix: Mapping[str, str]) -> str:
    return visible(f"{fix['code']} {fix['path']}".strip())


def _odds(shares: Mapping[str, float], say: Words) -> str:
    return ", ".join(f"{visible(name)} {say.number(value)}" for name, value in shares.items())


def no_verdict(row: Row, say: Words) -> str:
    """Why a judgment has no verdict."""
    if row["status"] == "left_out":
        return say("unit.left_out", detail=visible(say.gloss("left_out", row["detail"])))
    reason = f"{row['reason']} ({say.gloss('reason', row['reason'])})"
    return say("unit.failed", reason=reason, detail=visible(row["detail"]))


def flag_gloss(say: Words, flag: str) -> str:
    """What a flag means; what follows its colon says where."""
    name = flag.partition(":")[0]
    gloss = say.gloss("flag", name)
    return "" if gloss == name else gloss


class UnitLine(TypedDict):
    """One unit on a line, with the values it is found by."""

    id: str
    result: str
    verdicts: list[str]
    """Codes, see the words' `verdict`."""
    reasons: list[str]
    flags: list[str]
    """Without what follows a colon."""
    tags: list[str]
    confidence: list[str]
    candidates: list[str]
    judges: list[str]
    text: str
    """How what it is about begins."""
    scores: list[str]
    """Each score with its dimension; totals by tens."""


def first_text(unit: ShownUnit) -> str:
    """What a unit is about."""
    texts = (block.text for block in unit.unit if isinstance(block, of_kind.Text))
    return next((" ".join(text.split()) for text in texts), "")


def beginning(unit: ShownUnit) -> str:
    """How that begins."""
    text = first_text(unit)
    return text[:TEXT_SHOWN] + ("…" if len(text) > TEXT_SHOWN else "")


def unit_line(
    kind: Kind, ident: str, shown: ShownUnit, judged: Sequence[JudgedRow], say: Words
) -> UnitLine:
    """What tables of units have of one."""
    by_judge = [(entry.row["judge"], entry.judgment) for entry in judged]
    outcome = unit_outcome(kind, shown.measured, by_judge)
    rows = [entry.row for entry in judged]
    reasons = _once(row["reason"] for row in rows if row["reason"])
    return {
        "id": visible(ident),
        "result": _result(outcome, reasons, say),
        "verdicts": list(outcome.codes),
        "reasons": reasons,
        "flags": _once(flag.partition(":")[0] for row in rows for flag in row["flags"]),
        "tags": list(outcome.tags),
        "confidence": list(outcome.confidence),
        "candidates": [visible(name) for name in outcome.candidates],
        "judges": _once(visible(row["judge"]) for row in rows),
        "text": visible(beginning(shown)),
        "scores": _scores(outcome, say),
    }


def _scores(outcome: Outcome, say: Words) -> list[str]:
    if outcome.total is not None:
        tens = min(int(outcome.total // 10) * 10, 90)
        return [f"{tens}–{100 if tens == 90 else tens + 9}"]
    return [f"{visible(name)} {say.number(mean, 0)}" for name, mean in outcome.scores.items()]


def _result(outcome: Outcome, reasons: Sequence[str], say: Words) -> str:
    """What came out, in a few words."""
    code = outcome.codes[0]
    if outcome.winner is not None:
        names = dict(zip("AB", outcome.candidates, strict=True))
        label = say.gloss("verdict", code)
        return f"{label} · {visible(names[code])}" if code in names else label
    if outcome.total is not None:
        return _mean(say, outcome.total, outcome.verdicts)
    if outcome.scores:
        return " · ".join(
            f"{visible(name)} {_mean(say, mean, outcome.verdicts)}"
            for name, mean in outcome.scores.items()
        )
    return " · ".join([say.gloss("verdict", code), *reasons])


def _mean(say: Words, mean: float, verdicts: int) -> str:
    return say.short(mean) if verdicts == 1 else say.number(mean, 1)


def _once(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))
