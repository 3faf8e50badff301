"""One judged unit as report, view and `show` have it: a line for tables, and blocks for its page.

A block is a dict with a `kind`: `text` (stretches, some of them marked), `columns` (side by side),
`table`, `items` (small labels), `notice`, `section`, `group` (folded on a page). The macros of
`_unit.html` and `terminal/blocks.py` render the same blocks. Every text in a block is ready to be
shown: hidden characters are visible; nothing is escaped for HTML, which is the renderer's part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple, TypedDict

from evenhand import jsontext
from evenhand.judgment import Judgment
from evenhand.kinds import blocks as of_kind
from evenhand.kinds.blocks import ShownUnit, winner_piece
from evenhand.kinds.kind import Kind, Scoring, Voting
from evenhand.observation import Scored, ScoredUnit, VotedUnit
from evenhand.report.html.differences import Differences, Span, differences
from evenhand.report.html.markdown import Segment, Stretch, mark_spans
from evenhand.stats.votes import voted_winner
from evenhand.text import visible
from evenhand.words import Words

Block = dict[str, Any]
Row = Mapping[str, Any]
"""A judgment as `export --full` writes it, with its `exchanges` as `show --json` has them."""

_DIFFERS = "differs"
"""The label of a stretch that the other text has not."""
TEXT_SHOWN = 140
"""Characters of a text on a line of a table."""
COMPARED_SHOWN = 2_000
"""Characters of an answer in a list of answers side by side."""
LONG_CHARS, LONG_LINES = 1_000, 20
"""A text with more of either scrolls in a box of its own; the turns of a conversation do not."""


def text_block(
    label: str,
    stretches: Iterable[Stretch],
    *,
    note: str = "",
    part: str = "own",
    formatted: bool = False,
) -> Block:
    """A text in stretches; `part` is `own` for what was judged, with `turn`, `judged` and `calls`
    for its place in a conversation and `long` for one that scrolls, and `call` for what passed
    between the program and a judge. A page shows the Markdown of one that is `formatted`."""
    return {
        "kind": "text",
        "label": label,
        "note": note,
        "stretches": [stretch for stretch in stretches if stretch.text],
        "part": part,
        "formatted": formatted,
    }


def columns_block(columns: Sequence[Sequence[Block]], note: str = "") -> Block:
    """Blocks side by side, and what is to be said of all."""
    return {"kind": "columns", "columns": [list(column) for column in columns], "note": note}


def compared_texts(first: str, second: str, say: Words, most: int | None = COMPARED_SHOWN) -> Block:
    """Return two texts side by side, cut where they are long, the words marked that only one of
    them has."""
    converter = _Converter(say, {}, most)
    sides = zip((first, second), "AB", strict=True)
    texts = [of_kind.Text(text=converter.cut(text), short=side) for text, side in sides]
    return converter.block(of_kind.Columns([[text] for text in texts]))


def table_block(label: str, head: Sequence[str], rows: Sequence[Sequence[list[str]]]) -> Block:
    """A table; a cell is a text and its tone."""
    return {"kind": "table", "label": label, "head": list(head), "rows": list(rows)}


def items_block(label: str, items: Sequence[str], tone: str = "") -> Block:
    """Return small labels in a row."""
    return {"kind": "items", "label": label, "items": list(items), "tone": tone}


def notice_block(text: str, tone: str = "") -> Block:
    return {"kind": "notice", "text": text, "tone": tone}


def group_block(label: str, blocks: Sequence[Block]) -> Block:
    """Blocks that are folded until they are asked for."""
    return {"kind": "group", "label": label, "blocks": list(blocks)}


def section_block(label: str, blocks: Sequence[Block]) -> Block:
    return {"kind": "section", "label": label, "blocks": list(blocks)}


class JudgedRow(NamedTuple):
    """A judgment, and all that is known about it as `export --full` writes it, with its `exchanges`
    as `show --json` has them."""

    judgment: Judgment
    row: dict[str, Any]


def unit_blocks(
    unit: ShownUnit,
    judged: Sequence[JudgedRow],
    say: Words,
    names: Mapping[str, str] | None = None,
    *,
    most: int | None = None,
) -> list[Block]:
    """Return everything about one unit: what its kind shows of it, and how each judgment came
    about. `names` say in words what the ids of dimensions and criteria stand for. With `most`,
    longer texts are cut in the middle and prompts are left out: a file has little room."""
    candidates = unit.measured.candidates if isinstance(unit.measured, VotedUnit) else ()
    converter = _Converter(say, names or {}, most, candidates)
    blocks = converter.blocks([*unit.unit, *unit.about])
    if not judged:
        return [*blocks, notice_block(say("unit.pending"), "dim")]
    shown = zip(judged, unit.judgments, strict=True)
    judgments = [converter.judgment(entry.row, judgment) for entry, judgment in shown]
    if candidates or not blocks:
        return [*blocks, *judgments]  # two answers take the width
    return [columns_block([blocks, judgments])]


def kind_blocks(
    blocks: Sequence[of_kind.Block], say: Words, names: Mapping[str, str] | None = None
) -> list[Block]:
    """Return the blocks of a kind as blocks of a page."""
    return _Converter(say, names or {}).blocks(blocks)


def piece_text(piece: of_kind.Piece, say: Words, names: Mapping[str, str] | None = None) -> str:
    """Return a piece in the reader's language, ready to be shown."""
    match piece:
        case str():
            return visible(piece)
        case of_kind.Label(key, values):
            return say(key, **{name: piece_text(v, say, names) for name, v in values.items()})
        case of_kind.Gloss(group, code):
            return visible(say.gloss(group, code))
        case of_kind.Number(value):
            return say.short(value)
        case of_kind.Named(ident):
            name = (names or {}).get(ident, "")
            says_more = name and name.casefold() != ident.casefold()
            return visible(f"{ident} · {name}" if says_more else ident)
        case of_kind.Joined(pieces, by):
            return by.join(filter(None, (piece_text(part, say, names) for part in pieces)))


class _Converter:
    """Makes blocks of a page from those of a kind."""

    def __init__(
        self,
        say: Words,
        names: Mapping[str, str],
        most: int | None = None,
        candidates: Sequence[str] = (),
    ) -> None:
        self.say, self.names, self.most, self.candidates = say, names, most, candidates

    def piece(self, piece: of_kind.Piece) -> str:
        return piece_text(piece, self.say, self.names)

    def blocks(self, blocks: Sequence[of_kind.Block]) -> list[Block]:
        return [self.block(block) for block in blocks]

    def block(self, block: of_kind.Block) -> Block:
        match block:
            case of_kind.Text():
                return self._text(block)
            case of_kind.Table():
                rows = [[[self.piece(c.piece), str(c.tone)] for c in row] for row in block.rows]
                filled = [n for n in range(len(block.head)) if any(row[n][0] for row in rows)]
                head = [self.piece(block.head[n]) for n in filled]
                return table_block(
                    self.piece(block.label), head, [[row[n] for n in filled] for row in rows]
                )
            case of_kind.Items():
                items = [self.piece(item) for item in block.items]
                return items_block(self.piece(block.label), items, block.tone)
            case of_kind.Notice(piece, tone):
                return notice_block(self.piece(piece), tone)
            case of_kind.Columns(columns):
                return self._columns(columns)
            case of_kind.Section(label, inner):
                return section_block(self.piece(label), self.blocks(inner))
            case of_kind.Group(label, inner):
                return group_block(self.piece(label), self.blocks(inner))

    def _columns(self, columns: Sequence[Sequence[of_kind.Block]]) -> Block:
        """Return blocks side by side; of two texts, or the last of two conversations, the words
        marked that only one of them has."""
        shown = [self.blocks(column) for column in columns]
        match [column[-1] for column in columns]:
            case [of_kind.Text() as first, of_kind.Text() as second]:
                found = differences(first.text, second.text)
                key = "unit.differs" if found else "unit.not_compared"
                note = self.say(key) if found is None or any(found) else ""
                spans = found or Differences()
                shown[0][-1] = self._text(first, spans.first)
                shown[1][-1] = self._text(second, spans.second)
                return columns_block(shown, note)
        return columns_block(shown)

    def _text(self, block: of_kind.Text, differing: Sequence[Span] = ()) -> Block:
        """Return a text with its marks; where several overlap, each stretch names all of them."""
        titles = {str(mark.number): visible(mark.title) for mark in block.marks}
        spans = [(mark.start, mark.end, str(mark.number)) for mark in block.marks]
        spans += [(start, end, _DIFFERS) for start, end in differing]
        found = mark_spans(block.text, spans) if spans else [Segment(block.text, ())]
        stretches = []
        for segment in found:
            numbers = [label for label in segment.labels if label != _DIFFERS]
            title = " · ".join(titles[number] for number in numbers)
            differs = len(numbers) < len(segment.labels)
            text = self.cut(visible(segment.text))
            stretches.append(Stretch(text, ",".join(numbers), title, differs))
        # What was said, not what tools were sent and gave back.
        formatted = bool(block.short or "turn" in block.look)
        formatted = formatted and not {"calls", "tool"} & set(block.look)
        label, note = self.piece(block.label), visible(block.note)
        is_long = len(block.text) > LONG_CHARS or block.text.count("\n") >= LONG_LINES
        part = " ".join(("own", *(block.look or ("long",) * is_long)))
        return text_block(label, stretches, note=note, part=part, formatted=formatted)

    def cut(self, text: str) -> str:
        """Return a text of at most `most` characters: its beginning, how many were left out, its
        end."""
        if self.most is None or len(text) <= self.most:
            return text
        head, tail = self.most * 2 // 3, self.most // 3
        gap = self.say("unit.gap", n=self.say.integer(len(text) - head - tail))
        return f"{text[:head]} … {gap} … {text[-tail:]}"

    def judgment(self, row: Row, shown: of_kind.ShownJudgment) -> Block:
        """Return what came out of a judgment, and each call that led to it."""
        say = self.say
        blocks = [] if row["output"] else [notice_block(no_verdict(row, say), "bad")]
        blocks += self._passing(row)
        blocks += self.blocks(shown.blocks)
        flags = [_explain(visible(flag), flag_gloss(say, flag)) for flag in row["flags"]]
        if flags:
            blocks.append(items_block(say("unit.flags"), flags, "warn"))
        fixes = [
            _explain(visible(f"{f['code']} {f['path']}".strip()), say.gloss("fix", f["code"]))
            for f in row["fixes"]
        ]
        if fixes:
            blocks.append(items_block(say("unit.fixes"), fixes))
        for place, call in enumerate(row["exchanges"]):
            # The last call of a failure may have left no pass.
            judge_pass = row["passes"][place] if place < len(row["passes"]) else {}
            label = self._call_label(place, call, judge_pass)
            blocks.append(group_block(label, list(self._call(call, judge_pass))))
        judge = visible(row["judge"])
        again = say("unit.by_again", judge=judge, repeat=row["repeat"] + 1)
        return section_block(again if row["repeat"] else say("unit.by", judge=judge), blocks)

    def _passing(self, row: Row) -> Iterator[Block]:
        """Yield whether it passes, where the verdict does not say that itself, and its checks."""
        passed, checks = row.get("pass"), row.get("checks") or {}
        own = (row["output"] or {}).get("pass")
        parts = {"": passed} if passed not in (None, own) else {}
        items = [
            self.say("view.chip", name=visible(name), value=gloss) if name else gloss
            for name, value in (parts | checks).items()
            for gloss in [self.say.gloss("pass", str(value).lower())]
        ]
        if items:
            is_bad = False in (passed, *checks.values())
            yield items_block(self.say("unit.passing"), items, "warn" if is_bad else "")

    def _call_label(self, place: int, call: Row, judge_pass: Row) -> str:
        say, parts = self.say, [self.say("unit.call", number=place + 1)]
        if judge_pass.get("round"):
            first = visible(self.candidates[call["order"] == "21"])
            order = say("unit.shown_first", name=first)
            parts += [f"{say('unit.round', round=judge_pass['round'])}, {order}"]
        if call["reask"]:
            parts.append(say("unit.reask", number=call["reask"]))
        parts.append(visible(call["model"] or call["judge"]))
        parts += [f"{name} {say.short(value)}" for name, value in call["sampling"].items()]
        return " · ".join(parts)

    def _call(self, call: Row, judge_pass: Row) -> Iterator[Block]:
        say = self.say
        messages = call["messages"][-2 if call["reask"] else 0 :] if self.most is None else ()
        for message in messages:
            label = say("unit.prompt", role=say.gloss("role", message["role"]))
            yield text_block(label, [Stretch(visible(message["content"]))], part="call")
        if reasoning := call.get("reasoning"):
            label = say("unit.reasoning", n=say.integer(len(reasoning)))
            yield text_block(label, [Stretch(self.cut(visible(reasoning)))], part="call")
        finish = "" if call["finish"] == "stop" else visible(call["finish"])
        reply = [Stretch(self.cut(visible(call["reply"])))]
        yield text_block(say("unit.reply"), reply, note=finish, part="call")
        if problems := judge_pass.get("problems"):
            head = [say("unit.problem"), say("unit.where"), say("unit.message")]
            rows = [[[visible(p[k]), ""] for k in ("code", "path", "message")] for p in problems]
            yield table_block(say("unit.problems"), head, rows)
        if odds := call["odds"]:
            rows = [
                [
                    [visible(path), ""],
                    [", ".join(f"{visible(n)} {say.number(v)}" for n, v in shares.items()), ""],
                ]
                for path, shares in odds.items()
            ]
            yield table_block(say("unit.odds"), [say("unit.where"), say("unit.odds")], rows)
        yield items_block(say("unit.key"), [visible(call["key"])])


def _explain(code: str, gloss: str) -> str:
    """Return a code and its meaning as one text: what shows only under a pointer is lost."""
    return f"{code} · {gloss}" if gloss else code


def no_verdict(row: Row, say: Words) -> str:
    """Why a judgment has no verdict."""
    if row["status"] == "left_out":
        return say("unit.left_out", detail=visible(left_out_reason(row["detail"], say)))
    reason = f"{row['reason']} ({say.gloss('reason', row['reason'])})"
    return say("unit.failed", reason=reason, detail=visible(row["detail"]))


def left_out_reason(detail: str, say: Words) -> str:
    """Return why no judge was asked; the name of a check follows as it is."""
    reason, colon, name = detail.partition(": ")
    return f"{say.gloss('left_out', reason)}{colon}{name}"


def flag_gloss(say: Words, flag: str) -> str:
    """Return the meaning of a flag, whatever follows its colon; empty if it has none."""
    name = flag.partition(":")[0]
    gloss = say.gloss("flag", name)
    return "" if gloss == name else gloss


class UnitOutcome(NamedTuple):
    """The result of all judgments of a unit. Means are over its verdicts."""

    codes: tuple[str, ...]
    """The results, each once: a winner, `scored`, `graded`, `critical`, `failed`, `left_out`, or
    `pending` if there is none yet."""
    verdicts: int = 0
    candidates: tuple[str, ...] = ()
    winner: str | None = None
    """Of a pair with a verdict, what its panel says."""
    scores: Mapping[str, float] = {}
    total: float | None = None
    """The mean total, on the scale that totals have, if dimensions do not weigh alike."""
    tags: tuple[str, ...] = ()
    confidence: tuple[str, ...] = ()


def unit_outcome(
    kind: Kind, unit: ScoredUnit | VotedUnit, judged: Sequence[tuple[str, Judgment]]
) -> UnitOutcome:
    """Return the outcome of a unit, from (judge, judgment)."""
    measure = kind.measure
    if isinstance(measure, Voting):
        assert isinstance(unit, VotedUnit)
        votes = [(judge, measure.judgment(judgment)) for judge, judgment in judged]
        winner = voted_winner(votes)
        codes = _codes(judged) if winner is None else (winner,)
        return UnitOutcome(codes, candidates=unit.candidates, winner=winner)
    return _score_outcome(measure, [judgment for _, judgment in judged])


def _codes(judged: Sequence[tuple[str, Judgment]]) -> tuple[str, ...]:
    """Return the codes of judgments without a verdict."""
    names = {"failure": "failed"}
    codes = (names.get(judgment.status, judgment.status) for _, judgment in judged)
    return tuple(dict.fromkeys(codes)) or ("pending",)


def _score_outcome(measure: Scoring, judgments: Sequence[Judgment]) -> UnitOutcome:
    verdicts: list[Scored] = []
    codes: dict[str, None] = {}
    for judgment in judgments:
        scored = measure.judgment(judgment)
        if scored is None:
            codes |= dict.fromkeys(_codes([("", judgment)]))
            continue
        graded = "scored" if scored.total is None else "graded"
        codes["critical" if scored.is_critical else graded] = None
        verdicts.append(scored)
    names = dict.fromkeys(name for scored in verdicts for name in scored.scores)
    totals = [scored.total for scored in verdicts if scored.total is not None]
    return UnitOutcome(
        codes=tuple(codes) or ("pending",),
        verdicts=len(verdicts),
        scores={
            name: fmean([verdict.scores[name] for verdict in verdicts if name in verdict.scores])
            for name in names
        },
        total=(measure.full_marks or 1) * fmean(totals) if totals else None,
        tags=tuple(dict.fromkeys(tag for scored in verdicts for tag in scored.tags)),
        confidence=tuple(
            dict.fromkeys(verdict.confidence for verdict in verdicts if verdict.confidence)
        ),
    )


class UnitLine(TypedDict):
    """One unit on a line, with the values it is found by."""

    id: str
    result: str
    verdicts: list[str]
    """Codes, see the words' `verdict`."""
    passed: list[str]
    """`true` or `false`, by most of the judgments; nothing where none says."""
    tone: str
    reasons: list[str]
    flags: list[str]
    """Without what follows a colon."""
    tags: list[str]
    confidence: list[str]
    candidates: list[str]
    judges: list[str]
    text: str
    """The beginning of the unit's first text."""


def first_text(unit: ShownUnit) -> str:
    """Return the first text of a unit, on one line; empty if it has none."""
    texts = [block for block in unit.unit if isinstance(block, of_kind.Text)]
    # A conversation may begin with what the system says.
    asked = [text for text in texts if text.short == "Q"] or texts
    return " ".join(asked[0].text.split()) if asked else ""


def beginning(unit: ShownUnit) -> str:
    """Return the beginning of a unit's first text, with an ellipsis if it goes on."""
    text = first_text(unit)
    return text[:TEXT_SHOWN] + ("…" if len(text) > TEXT_SHOWN else "")


def unit_line(
    kind: Kind, ident: str, shown: ShownUnit, judged: Sequence[JudgedRow], say: Words
) -> UnitLine:
    """Return the line of a unit in tables of units."""
    by_judge = [(entry.row["judge"], entry.judgment) for entry in judged]
    outcome = unit_outcome(kind, shown.measured, by_judge)
    rows = [entry.row for entry in judged]
    passes = [row["pass"] for row in rows if row.get("pass") is not None]
    passed = jsontext.dump(sum(passes) > len(passes) / 2) if passes else ""
    reasons = _once(row["reason"] for row in rows if row["reason"])
    return {
        "id": visible(ident),
        "result": " · ".join(filter(None, [_sign(passed, say), _result(outcome, reasons, say)])),
        "verdicts": list(outcome.codes),
        "passed": [passed] if passed else [],
        "tone": {"true": "good", "false": "bad"}.get(passed, ""),
        "reasons": reasons,
        "flags": _once(flag.partition(":")[0] for row in rows for flag in row["flags"]),
        "tags": list(outcome.tags),
        "confidence": list(outcome.confidence),
        "candidates": [visible(name) for name in outcome.candidates],
        "judges": _once(visible(row["judge"]) for row in rows),
        "text": visible(beginning(shown)),
    }


def _result(outcome: UnitOutcome, reasons: Sequence[str], say: Words) -> str:
    """Return the result of a unit in a few words."""
    code = outcome.codes[0]
    if outcome.winner is not None:
        return piece_text(winner_piece(code, outcome.candidates), say)
    if outcome.total is not None:
        return _mean(say, outcome.total, outcome.verdicts)
    if outcome.scores:
        return " · ".join(
            f"{visible(name)} {_mean(say, mean, outcome.verdicts)}"
            for name, mean in outcome.scores.items()
        )
    return " · ".join([say.gloss("verdict", code), *reasons])


def _sign(passed: str, say: Words) -> str:
    """Return a sign and a word for pass or fail; nothing where nothing says."""
    signs = {"true": "✓", "false": "✗"}
    return f"{signs[passed]} {say.gloss('pass', passed)}" if passed else ""


def _mean(say: Words, mean: float, verdicts: int) -> str:
    return say.short(mean) if verdicts == 1 else say.number(mean, 1)


def _once(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))
