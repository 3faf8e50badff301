"""The tables of a pairwise protocol, and the forms of a reply that follow from them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from evenhand import jsontext
from evenhand.exchange import Schema
from evenhand.kinds.pairwise.verdict import MARKS, WINNERS
from evenhand.kinds.prompt import object_of
from evenhand.kinds.protocol import Protocol, ProtocolError
from evenhand.limits import MAX_ROUNDS, MAX_ROUNDS_MOST

EXPLANATION_CHARS = 200
_FILE = "protocol.toml"


@dataclass(frozen=True, slots=True)
class Criterion:
    """One thing to compare by, worded in one language."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Form:
    """The parts that all questions share."""

    criteria: str
    rule: str
    """The rule by which the winner follows from the marks."""
    shape: str
    schema: Schema


def form_of(
    criteria: Sequence[Criterion], priority: Sequence[str], phrases: Mapping[str, str]
) -> Form:
    """Return the form of a reply about these criteria, of which `priority` decide a conflict."""
    criterion = {"first_meets": True, "second_meets": True, "comment": "...", "mark": "tie"}
    shape = {"criteria": {c.id: criterion for c in criteria}, "explanation": "...", "winner": "tie"}
    listed = "\n".join(f"- {c.id}: {c.text}" for c in criteria)
    rule = "\n".join(_rule(criteria, priority, phrases))
    return Form(listed, rule, jsontext.dump(shape), Schema(_full_schema(criteria)))


def _rule(
    criteria: Sequence[Criterion], priority: Sequence[str], phrases: Mapping[str, str]
) -> Iterator[str]:
    """Yield the rule of `derive_winner` as the judge is told it, one case per line."""
    yield phrases["rule.all_tie"]
    yield phrases["rule.one_side"]
    if not priority:
        yield phrases["rule.conflict_is_tie"]
        return
    yield phrases["rule.conflict"].format(priority=phrases["rule.join"].join(priority))
    if {criterion.id for criterion in criteria} - set(priority):
        yield phrases["rule.still_tie"]


def _full_schema(criteria: Sequence[Criterion]) -> dict[str, Any]:
    criterion = object_of(
        first_meets={"type": "boolean"},
        second_meets={"type": "boolean"},
        comment={"type": "string"},
        mark={"type": "string", "enum": list(MARKS)},
    )
    return object_of(
        criteria=object_of(**{c.id: criterion for c in criteria}),
        explanation={"type": "string"},
        winner={"type": "string", "enum": list(WINNERS)},
    )


def compact_schema(
    criteria: Sequence[Criterion],
    leading: str,
    topic: str,
    texts: tuple[str, str],
    say: Mapping[str, str],
) -> dict[str, Any]:
    """For a judge that fills a form by probabilities: it sets the two texts against each other as a
    whole, which is the winner and the mark of the leading criterion; on the others it cannot tell
    them apart."""
    versus = {
        "names": list(WINNERS[:2]),
        "texts": list(texts),
        "topic": topic,
        "better": say["versus.better"],
        "worse": say["versus.worse"],
    }
    marks: dict[str, Any] = {c.id: object_of(mark={"const": "tie"}) for c in criteria}
    marks[leading] = object_of(mark={"enum": list(MARKS), "x-versus": versus})
    return object_of(
        criteria=object_of(**marks),
        explanation={"type": "string", "maxLength": EXPLANATION_CHARS},
        winner={"enum": list(WINNERS), "x-versus": versus},
    )


def read_criteria(protocol: Protocol, language: str) -> tuple[Criterion, ...]:
    """Return the criteria of a protocol in one language; raises ProtocolError."""
    table = protocol.given.get("criteria")
    if not isinstance(table, list) or not table:
        raise ProtocolError(_FILE, "a pairwise protocol needs [[criteria]], each with an id")
    rows = cast("list[object]", table)
    criteria = tuple(_criterion(protocol, row, language, i) for i, row in enumerate(rows, 1))
    ids = [criterion.id for criterion in criteria]
    for ident in ids:
        if ids.count(ident) > 1:
            raise ProtocolError(_FILE, f"two criteria are called {ident}")
    return criteria


def _criterion(protocol: Protocol, row: object, language: str, number: int) -> Criterion:
    values = cast("Mapping[str, Any]", row) if isinstance(row, Mapping) else {}
    ident, text = values.get("id"), protocol.said(values, language)
    if not isinstance(ident, str) or not ident.strip() or "|" in ident or "." in ident:
        raise ProtocolError(_FILE, f"criterion {number} needs an id, without | and full stops")
    if not isinstance(text, str) or not text.strip():
        raise ProtocolError(_FILE, f'criterion {ident} has no text in "{language}"')
    return Criterion(ident, text.strip())


def read_priority(protocol: Protocol) -> tuple[str, ...]:
    """Return the criteria that decide a conflict of marks, in order; raises ProtocolError."""
    priority = protocol.given.get("priority", [])
    if not isinstance(priority, list):
        raise ProtocolError(_FILE, "priority must be a list of criteria")
    ids = protocol.ids("criteria")
    for ident in cast("list[object]", priority):
        if ident not in ids:
            raise ProtocolError(
                _FILE, f"priority names {ident!r}, which is no criterion; known: {', '.join(ids)}"
            )
    names = cast("list[str]", priority)
    if twice := [ident for ident in dict.fromkeys(names) if names.count(ident) > 1]:
        raise ProtocolError(_FILE, f"priority names {twice[0]!r} twice")
    return tuple(names)


def read_max_rounds(protocol: Protocol) -> int:
    """Return the most rounds that a pair may take; raises ProtocolError."""
    rounds = protocol.given.get("max_rounds", MAX_ROUNDS)
    if (
        isinstance(rounds, bool)
        or not isinstance(rounds, int)
        or not 1 <= rounds <= MAX_ROUNDS_MOST
    ):
        raise ProtocolError(_FILE, f"max_rounds must be a number from 1 to {MAX_ROUNDS_MOST}")
    return rounds


def asks_for_table(protocol: Protocol) -> bool:
    """Return True if the prompts ask for a verdict-table line; raises ProtocolError."""
    if protocol.given.get("reply", "table") != "table":
        raise ProtocolError(_FILE, 'reply can only be "table"; leave it out for JSON')
    return "reply" in protocol.given


_RUSSIAN = (
    r"двойн\w+ (?:прогон|проход|оценк|судейств)\w*",
    r"(?:два|двух|двумя) (?:прогон|проход)\w*",
    r"(?:прогон|оцени|сравни|суди|проведи)\w*[^.]{0,60} дважды",
    r"дважды[^.]{0,60}(?:порядк|местами|прогон)\w*",
    r"(?:в )?(?:обоих|двух) порядк\w+|оба порядка",
    r"(?:поменя|перестав)\w+[^.]{0,40} (?:местами|порядок)",
    r"(?:затем|потом|ещё раз|еще раз|повтор\w+)[^.]{0,60}(?:обратн\w+|другом) порядк\w+",
)
_ENGLISH = (
    r"double[- ](?:run|pass)",
    r"both (?:presentation )?orders",
    r"(?:run|judge|compare|evaluate|grade)[^.]{0,40} twice",
    r"(?:swap|exchange|switch|reverse)[^.]{0,30}(?:order|positions?|places|candidates|answers)"
    r"[^.]{0,60}(?:again|second|repeat|re-?run|also|too)",
    r"(?:again|repeat|second (?:run|pass|time))[^.]{0,60}"
    r"(?:swapped|reversed?|other|opposite) order",
)
_CHINESE = (
    r"(?:双向|双次|两次|两遍|正反两?次?)(?:评测|评判|评审|比较|运行|判断|打分)",
    r"(?:评测|评判|评审|比较|运行|判断)(?:两次|两遍)",
    r"(?:交换|互换|对调|调换|颠倒)[^。]{0,12}(?:顺序|位置|次序)[^。]{0,30}(?:再|重新|第二|又)",
    r"(?:两种|正反)顺序",
)
_JAPANESE = (
    r"(?:二重|ダブル)(?:実行|ラン|判定|評価)",
    r"(?:両方|二通り|2通り|２通り)の(?:提示)?(?:順序|順番|順)",
    r"(?:順序|順番|提示順|位置)を(?:入れ替え|逆に|交換)[^。]{0,30}(?:もう一度|再度|二回|2回|２回|再)",
    r"(?:二回|2回|２回|二度)(?:判定|評価|比較|実行)",
)
_DEMAND = re.compile(
    "|".join(f"(?:{p})" for p in (*_RUSSIAN, *_ENGLISH, *_CHINESE, *_JAPANESE)), re.IGNORECASE
)


def asks_both_orders(text: str) -> bool:
    """Return True if a prompt asks one judge for both orders: a double run, in any of four
    languages. A round asks each order in a call of its own, so a judge that is told to run twice
    would answer with two lines of which code may take neither."""
    return _DEMAND.search(" ".join(text.split())) is not None
