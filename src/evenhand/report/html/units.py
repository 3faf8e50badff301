"""One judged unit as plain values for a page: a line for tables, and blocks for its drill-down.

A block is a dict with a `kind`: `text` (segments, some of them marked), `columns` (side by side),
`table`, `items` (small labels), `notice`, `section`, `group` (folded). The macros of `_unit.html`
and the script of a report render the same blocks. Every text in a block is ready to be shown:
hidden characters are visible; nothing is escaped for HTML, which is the renderer's part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, cast

from evenhand import jsontext
from evenhand.kinds.shared.reply import Readable, read
from evenhand.report.html.page import Words, marked, visible
from evenhand.stats.pairwise import majority

Block = dict[str, Any]
Cell = str | tuple[str, str]
Row = Mapping[str, Any]
"""A judgment as `export --full` writes it, with its `exchanges` as `show --json` has them."""

EXTRAS = ("reference", "context", "messages")
_FENCE = re.compile(r"(\[\[/?\w+ [0-9a-f]+\]\]\n?)")
_TONES = {"A+": "first", "B+": "second", "A": "first", "B": "second", "uncertain": "warn"}


def text_block(
    label: str, segments: Iterable[Sequence[str]], *, note: str = "", part: str = "own"
) -> Block:
    """A text in segments `[text]` or `[text, numbers, title]`; `part` is `own` for what was judged
    and `call` for what passed between the program and a judge."""
    return {
        "kind": "text",
        "label": label,
        "note": note,
        "segments": [list(one) for one in segments if one[0]],
        "part": part,
    }


def table_block(label: str, head: Sequence[str], rows: Sequence[Sequence[Cell]]) -> Block:
    """A table; a cell is a text, or a text with its tone."""
    cells = [[[c, ""] if isinstance(c, str) else list(c) for c in row] for row in rows]
    return {"kind": "table", "label": label, "head": list(head), "rows": cells}


def items_block(label: str, items: Iterable[tuple[str, str]], tone: str = "") -> Block:
    """Small labels in a row, each with what it means."""
    return {"kind": "items", "label": label, "items": [list(one) for one in items], "tone": tone}


def notice_block(text: str, tone: str = "") -> Block:
    return {"kind": "notice", "text": text, "tone": tone}


def group_block(label: str, blocks: Sequence[Block]) -> Block:
    """Blocks that are folded until they are asked for."""
    return {"kind": "group", "label": label, "blocks": list(blocks)}


def section_block(label: str, blocks: Sequence[Block]) -> Block:
    return {"kind": "section", "label": label, "blocks": list(blocks)}


def columns_block(columns: Sequence[Sequence[Block]]) -> Block:
    """Blocks side by side, below each other where there is no room."""
    return {"kind": "columns", "columns": [list(one) for one in columns]}


def unit_blocks(
    kind: str,
    unit: Mapping[str, Any],
    rows: Sequence[Row],
    say: Words,
    names: Mapping[str, str] | None = None,
) -> list[Block]:
    """Everything about one unit. `unit` is its body as the store keeps it, `rows` its judgments;
    `names` say in words what the ids of dimensions and criteria stand for."""
    return _Drill(kind, unit, rows, say, names or {}).blocks()


class _Drill:
    """The drill-down of one unit in the making."""

    def __init__(
        self,
        kind: str,
        unit: Mapping[str, Any],
        rows: Sequence[Row],
        say: Words,
        names: Mapping[str, str],
    ) -> None:
        self.kind, self.unit, self.rows, self.say, self.names = kind, unit, rows, say, names
        self.known: dict[str, list[str]] = {}
        """The unit's own texts, as the pieces in which they are shown: prompts repeat them."""
        self.numbers: dict[int, list[int]] = {}
        """Of each judgment, the numbers of its quotes."""

    def blocks(self) -> list[Block]:
        shown = [*self._unit(), *self._extras(), *self._meta()]
        if not self.rows:
            return [*shown, notice_block(self.say("unit.pending"), "dim")]
        for place, row in enumerate(self.rows):
            made = [*self._outcome(place, row), *self._about(row), *self._calls(row)]
            shown.append(section_block(self._judged_by(row), made))
        return shown

    def _judged_by(self, row: Row) -> str:
        judge = visible(row["judge"])
        if not row["repeat"]:
            return self.say("unit.by", judge=judge)
        return self.say("unit.by_again", judge=judge, repeat=row["repeat"] + 1)

    # What was judged

    def _unit(self) -> Iterator[Block]:
        unit, say = self.unit, self.say
        if self.kind == "pairwise":
            if unit["topic"]:
                yield self._plain(say("unit.topic"), unit["topic"])
            sides = zip("AB", unit["candidates"], strict=True)
            yield columns_block([[self._candidate(*one)] for one in sides])
        elif self.kind == "weighted":
            yield self._plain(say("unit.task"), unit["prompt"])
            yield self._plain(say("unit.answer"), unit["answer"])
            if unit.get("rubric"):
                yield group_block(say("unit.rubric"), [self._plain("", unit["rubric"])])
        else:
            if unit["question"]:
                yield self._plain(say("unit.question"), unit["question"])
            if unit["model_output"]:
                yield self._output(unit["model_output"])

    def _plain(self, label: str, text: str, note: str = "") -> Block:
        self.known[text] = [text]
        return text_block(label, [[visible(text)]], note=note)

    def _candidate(self, side: str, one: Mapping[str, Any]) -> Block:
        model = one.get("model", "")
        note = visible(" · ".join(filter(None, (one["id"], model))))
        label = self.say("unit.candidate", side=side)
        if not one["text"]:  # of votes made elsewhere, the names alone may be known
            return items_block(label, [(note, "")])
        return self._plain(label, one["text"], note)

    def _output(self, text: str) -> Block:
        """The judged text with every quote of every judgment marked at its offsets."""
        spans: list[tuple[int, int, str]] = []
        titles: dict[str, str] = {}
        for place, row in enumerate(self.rows):
            for quote in row["evidence"]:
                number = len(spans) + 1
                spans.append((quote["start"], quote["end"], str(number)))
                titles[str(number)] = f"{number} {visible(quote['dimension'])}"
                self.numbers.setdefault(place, []).append(number)
        segments = marked(text, spans)
        self.known[text] = [one.text for one in segments]
        shown = [
            [visible(one.text)]
            if not one.labels
            else [
                visible(one.text),
                ",".join(one.labels),
                " · ".join(titles[label] for label in one.labels),
            ]
            for one in segments
        ]
        return text_block(self.say("unit.output"), shown)

    def _extras(self) -> Iterator[Block]:
        for name in EXTRAS:
            if self.unit.get(name):
                text = jsontext.as_text(self.unit[name])
                yield group_block(self.say(f"unit.{name}"), [self._plain("", text)])

    def _meta(self) -> Iterator[Block]:
        meta = self.unit.get("meta") or {}
        if meta:
            shown = [(visible(f"{k}: {jsontext.as_text(v)}"), "") for k, v in meta.items()]
            yield items_block(self.say("unit.meta"), shown)

    # What came out

    def _outcome(self, place: int, row: Row) -> Iterator[Block]:
        output = row["output"]
        if output is None:
            yield notice_block(no_verdict(row, self.say), "bad")
        if self.kind == "pairwise":
            yield from self._pair(row)
        elif output is not None and self.kind == "weighted":
            yield from self._grade(output)
        elif output is not None:
            yield from self._scores(place, row)

    def _named(self, ident: str) -> str:
        name = self.names.get(ident, "")
        says_more = name and name.casefold() != ident.casefold()
        return visible(f"{ident} · {name}" if says_more else ident)

    def _scores(self, place: int, row: Row) -> Iterator[Block]:
        say, output, rows = self.say, row["output"], list[list[Cell]]()
        numbers = iter(self.numbers.get(place, []))
        spots = dict(zip(numbers, row["evidence"], strict=True))
        for dimension, given in output["scores"].items():
            own = [(n, q) for n, q in spots.items() if q["dimension"] == dimension]
            quotes = "\n".join(
                self._quote(*one) for one in zip(own, given.get("evidence", []), strict=False)
            )
            score = (say.short(float(given["score"])), "strong")
            rows.append(
                [self._named(dimension), score, visible(given.get("rationale", "")), quotes]
            )
        head = [say(f"unit.{one}") for one in ("dimension", "score", "rationale", "evidence")]
        yield table_block(say("unit.scores"), *_without_empty(head, rows))
        if output.get("failure_tags"):
            tags = [(tag, say.gloss("tag", tag)) for tag in output["failure_tags"]]
            yield items_block(say("unit.tags"), [(f"{t} · {g}", "") for t, g in tags], "warn")
        if output.get("notes"):
            yield text_block(say("unit.notes"), [[visible(output["notes"])]])

    def _quote(self, spot: tuple[int, Mapping[str, Any]], quote: str) -> str:
        number, place = spot
        how = "" if place["match"] == "exact" else f", {self.say.gloss('match', place['match'])}"
        return f"{number} “{visible(quote)}” [{place['start']}:{place['end']}{how}]"

    def _grade(self, output: Mapping[str, Any]) -> Iterator[Block]:
        say, weights, rows = self.say, output["weights"] or {}, list[list[Cell]]()
        if output["critical_fail"]:
            reason = visible(output["critical_fail_reason"])
            yield notice_block(say("unit.critical", reason=reason), "bad")
        for name, score in output["score"].items():
            most = say.short(float(weights[name])) if name in weights else "–"
            reason = visible(output["reasoning"].get(name, ""))
            rows.append([self._named(name), (say.short(float(score)), "strong"), most, reason])
        total = (say.short(float(output["total_score"])), "strong")
        rows.append([say("unit.total"), total, "100", ""])
        head = [say(f"unit.{one}") for one in ("dimension", "score", "of", "reason")]
        yield table_block(say("unit.scores"), head, rows)
        kind = visible(output["task_type"] or say("unit.type_unknown"))
        inferred = say("unit.inferred") if output["inferred_task_type"] else ""
        sure = say.gloss("confidence", output["confidence"])
        items = [(f"{say('unit.type')}: {kind} {inferred}".strip(), "")]
        yield items_block("", [*items, (f"{say('unit.confidence')}: {sure}", "")])

    def _pair(self, row: Row) -> Iterator[Block]:
        say, output = self.say, row["output"]
        if output is not None:
            yield notice_block(self._pair_verdict(output), _TONES.get(output["winner"], ""))
        replies = [one["reply"] for one in row["exchanges"]]
        passes = [
            (one, replies[place] if place < len(replies) else "")
            for place, one in enumerate(row["passes"])
            if "winner" in one
        ]
        relay = len({one.get("judge") for one, _ in passes}) > 1
        for number, group in groupby(passes, key=lambda one: one[0]["round"]):
            both = sorted(group, key=lambda one: str(one[0]["order"]))
            columns = [[self._pass(*one, relay=relay)] for one in both]
            label = say("unit.round", round=number)
            yield section_block(label, [columns_block(columns)])
        is_both = len({one["order"] for one, _ in passes}) > 1
        if output is not None and is_both and output["criteria"]:
            yield self._marks(output)
        if output is not None and output.get("notes"):
            yield text_block(say("unit.explanation"), [[visible(output["notes"])]])

    def _pair_verdict(self, output: Mapping[str, Any]) -> str:
        say, winner = self.say, output["winner"]
        names = dict(zip("AB", output["candidates"], strict=True))
        told = say.gloss("verdict", winner)
        told = f"{told} · {visible(names[winner])}" if winner in names else told
        how = output.get("settled", winner)
        return told if how == winner else f"{told} · {say.gloss('settled', how)}"

    def _pass(self, one: Mapping[str, Any], reply: str, *, relay: bool) -> Block:
        """One order: marks and what the judge said to each criterion, mapped back to A and B."""
        say, said, rows = self.say, _criteria(reply), list[list[Cell]]()
        meets = ("first_meets", "second_meets")[:: 1 if one["order"] == "12" else -1]
        for criterion, mark in one["marks"].items():
            given = said.get(criterion, {})
            both = [say.gloss("meets", str(given.get(name)).lower()) for name in meets]
            told = (say.gloss("mark", mark or "none"), _TONES.get(mark or "", ""))
            rows.append([self._named(criterion), told, *both, visible(given.get("comment", ""))])
        met = [say("unit.meets", side=side) for side in "AB"]
        head = [say("unit.criterion"), say("unit.mark"), *met, say("unit.comment")]
        label = f"{say.gloss('order', one['order'])} → {say.gloss('verdict', one['winner'])}"
        by = visible(one["judge"]) if relay else ""
        if one.get("flags"):
            own = say.gloss("verdict", one["said"])
            label = f"{label} ({say('unit.own_winner', winner=own)})"
        label = f"{label} · {by}" if by else label
        return table_block(label, *_without_empty(head, rows)) if rows else notice_block(label)

    def _marks(self, output: Mapping[str, Any]) -> Block:
        """What both orders come to."""
        say, cells = self.say, list[list[Cell]]()
        for criterion, mark in output["criteria"].items():
            unstable = criterion in output.get("unstable", ())
            told = say.gloss("mark", mark) + (f" · {say('unit.unstable')}" if unstable else "")
            cells.append([self._named(criterion), (told, "warn" if unstable else _tone(mark))])
        head = [say("unit.criterion"), say("unit.mark")]
        return table_block(say("unit.settled_marks"), head, cells)

    # How it came about

    def _about(self, row: Row) -> Iterator[Block]:
        say = self.say
        if flags := [_explained(visible(one), flag_gloss(say, one)) for one in row["flags"]]:
            yield items_block(say("unit.flags"), flags, "warn")
        fixes = [_explained(_fixed(one), say.gloss("fix", one["code"])) for one in row["fixes"]]
        if fixes:
            yield items_block(say("unit.fixes"), fixes)

    def _calls(self, row: Row) -> Iterator[Block]:
        for place, call in enumerate(row["exchanges"]):
            made = row["passes"][place] if place < len(row["passes"]) else {}
            yield group_block(self._call_label(place, call, made), list(self._call(call, made)))

    def _call_label(self, place: int, call: Row, made: Mapping[str, Any]) -> str:
        say, said = self.say, [self.say("unit.call", number=place + 1)]
        if made.get("round"):
            order = say.gloss("order", call["order"])
            said += [f"{say('unit.round', round=made['round'])}, {order}"]
        if call["reask"]:
            said.append(say("unit.reask", number=call["reask"]))
        said.append(visible(call["model"] or call["judge"]))
        said += [f"{name} {say.short(value)}" for name, value in call["sampling"].items()]
        return " · ".join(said)

    def _call(self, call: Row, made: Mapping[str, Any]) -> Iterator[Block]:
        say = self.say
        for message in call["messages"][-2 if call["reask"] else 0 :]:
            label = say("unit.prompt", role=say.gloss("role", message["role"]))
            yield text_block(label, self._pieces(message["content"]), part="call")
        finish = "" if call["finish"] == "stop" else visible(call["finish"])
        yield text_block(say("unit.reply"), [[visible(call["reply"])]], note=finish, part="call")
        if problems := made.get("problems"):
            head = [say("unit.problem"), say("unit.where"), say("unit.message")]
            rows = [[visible(p[k]) for k in ("code", "path", "message")] for p in problems]
            yield table_block(say("unit.problems"), head, rows)
        if odds := call["odds"]:
            rows = [[visible(path), _odds(given, say)] for path, given in odds.items()]
            yield table_block(say("unit.odds"), [say("unit.where"), say("unit.odds")], rows)
        yield items_block(say("unit.key"), [(visible(call["key"]), "")])

    def _pieces(self, content: str) -> list[list[str]]:
        """A prompt in pieces, so that what many prompts share is one piece of each."""
        found: list[str] = []
        for part in _FENCE.split(content):
            known = self.known.get(part.removesuffix("\n"))
            found += [*known, "\n"] if known and part.endswith("\n") else [part]
        return [[visible(one)] for one in found]


def _tone(mark: str) -> str:
    return _TONES.get(mark, "")


def _explained(code: str, gloss: str) -> tuple[str, str]:
    """A code and what it means, both to be read: what shows only under a pointer is lost."""
    return f"{code} · {gloss}" if gloss else code, ""


def _without_empty(
    head: Sequence[str], rows: Sequence[Sequence[Cell]]
) -> tuple[list[str], list[list[Cell]]]:
    """A table without columns that say nothing."""
    kept = [
        place
        for place in range(len(head))
        if any(cell if isinstance(cell, str) else cell[0] for cell in (row[place] for row in rows))
    ]
    return [head[place] for place in kept], [[row[place] for place in kept] for row in rows]


def _fixed(fix: Mapping[str, str]) -> str:
    return visible(f"{fix['code']} {fix['path']}".strip())


def _odds(given: Mapping[str, float], say: Words) -> str:
    return ", ".join(f"{visible(name)} {say.number(value)}" for name, value in given.items())


def _criteria(reply: str) -> Mapping[str, Mapping[str, Any]]:
    """What a reply says to each criterion, as far as it can be read."""
    found = read(reply) if reply else None
    value: Any = found.value if isinstance(found, Readable) else {}
    criteria = value.get("criteria")
    if not isinstance(criteria, Mapping):
        return {}
    given = cast("Mapping[str, Any]", criteria)
    return {name: one for name, one in given.items() if isinstance(one, Mapping)}


def no_verdict(row: Row, say: Words) -> str:
    """Why a judgment has no verdict."""
    if row["status"] == "left_out":
        return say("unit.left_out", detail=visible(row["detail"]))
    reason = f"{row['reason']} ({say.gloss('reason', row['reason'])})"
    return say("unit.failed", reason=reason, detail=visible(row["detail"]))


def flag_gloss(say: Words, flag: str) -> str:
    """What a flag means; what follows its colon says where."""
    name = flag.partition(":")[0]
    found = say.gloss("flag", name)
    return "" if found == name else found


def unit_line(
    kind: str, unit: Mapping[str, Any], rows: Sequence[Row], say: Words
) -> dict[str, Any]:
    """One unit on a line, with the values it is found by: `verdicts` (codes, see the words'
    `verdict`), `reasons`, `flags` (without what follows a colon), `tags`, `confidence`,
    `candidates`, `judges`."""
    outputs = [row["output"] for row in rows if row["output"] is not None]
    codes = [_verdict_code(kind, row) for row in rows] or ["pending"]
    if kind == "pairwise" and outputs:
        codes = [panel_code(rows)]
    return {
        "id": visible(unit["id"]),
        "result": _result(kind, rows, codes, say),
        "verdicts": _once(codes),
        "reasons": _once(row["reason"] for row in rows if row["reason"]),
        "flags": _once(flag.partition(":")[0] for row in rows for flag in row["flags"]),
        "tags": _once(tag for one in outputs for tag in one.get("failure_tags", ())),
        "confidence": _once(one["confidence"] for one in outputs if "confidence" in one),
        "candidates": [visible(one["id"]) for one in unit.get("candidates", ())],
        "judges": _once(visible(row["judge"]) for row in rows),
    }


def _once(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))


def _verdict_code(kind: str, row: Row) -> str:
    output = row["output"]
    if output is None:
        return "failed" if row["status"] == "failure" else "left_out"
    if kind == "pairwise":
        return str(output["winner"])
    if kind == "weighted":
        return "critical" if output["critical_fail"] else "graded"
    return "scored"


def panel_code(rows: Sequence[Row]) -> str:
    """The verdict on a pair by the majority of its judges, each by the majority of its repeats."""
    votes: dict[str, list[str]] = {}
    for row in rows:
        if row["output"] is not None:
            votes.setdefault(row["judge"], []).append(row["output"]["winner"])
    return majority([majority(one, "uncertain") for one in votes.values()], "uncertain")


def _result(kind: str, rows: Sequence[Row], codes: Sequence[str], say: Words) -> str:
    """What came out, in a few words; of several judgments the first that stands."""
    outputs = [row["output"] for row in rows if row["output"] is not None]
    if not outputs:
        reasons = _once(row["reason"] for row in rows if row["reason"])
        return " · ".join([say.gloss("verdict", codes[0]), *reasons])
    first = outputs[0]
    if kind == "pairwise":
        names = dict(zip("AB", first["candidates"], strict=True))
        told = say.gloss("verdict", codes[0])
        return f"{told} · {visible(names[codes[0]])}" if codes[0] in names else told
    if kind == "weighted":
        return _mean(say, [float(one["total_score"]) for one in outputs])
    scores = {
        name: [float(one["scores"][name]["score"]) for one in outputs if name in one["scores"]]
        for name in first["scores"]
    }
    return " · ".join(f"{visible(name)} {_mean(say, given)}" for name, given in scores.items())


def _mean(say: Words, values: Sequence[float]) -> str:
    mean = sum(values) / len(values)
    return say.short(mean) if len(values) == 1 else say.number(mean, 1)
