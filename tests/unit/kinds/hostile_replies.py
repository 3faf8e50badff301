"""Replies that break one rule each, and what the contract does with each: fix, problem, flag.

A row names the rule, the reply, and what comes of it: `fix CODE PATH`, `CODE PATH` of a problem, or
`flag NAME`; several are parted by `; `, and nothing at all is the empty text.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from tests.suites import pair_reply
from tests.unit.kinds import grading, material


class Hostile(NamedTuple):
    """One broken rule."""

    rule: str
    reply: str
    outcome: str


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _at(value: Any, path: str, to: Any) -> str:
    """A copy with another value at a place; `...` takes the key away."""
    copy = json.loads(_dump(value))
    holder = copy
    *way, last = path.split(".")
    for key in way:
        holder = holder[key]
    if to is ...:
        del holder[last]
    else:
        holder[last] = to
    return _dump(copy)


_WRAPPED = [
    ("in a fence", "```json\n¤\n```", "fix unwrapped"),
    ("in a fence without a language", "```\n¤\n```", "fix unwrapped"),
    ("after a thought", "<think>hm</think>¤", "fix unwrapped"),
    ("after prose", "Here it is: ¤", "not_json"),
    ("before prose", "¤\nThat is all.", "not_json"),
    ("with a byte order mark", "\ufeff¤", ""),
    ("twice the same", "¤\n¤", "ambiguous"),
    ("in a list", "[¤]", "schema"),
    ("cut off", "¤<cut>", "truncated"),
    ("in an endless thought", "<think>¤", "truncated"),
]
_TEXTS = [
    ("nothing", "", "empty"),
    ("white space", " \n\t", "empty"),
    ("prose", "All is well with it.", "not_json"),
    ("a refusal", "I'm sorry, I can't judge this.", "refused"),
    ("a refusal in Russian", "К сожалению, я не могу это оценить.", "refused"),
    ("a refusal in Chinese", "抱歉，我无法评价。", "refused"),
    ("a refusal in Japanese", "申し訳ありませんが、評価できません。", "refused"),
    ("a key twice", '{"winner":"A","winner":"B"}', "ambiguous"),
    ("NaN", '{"score":NaN}', "not_json"),
    ("a single quote for a double one", "{'winner': 'A'}", "not_json"),
    ("half of a surrogate pair", '{"notes":"\\ud800"}', "not_json"),
    ("endless depth", '{"a":' * 70 + "1" + "}" * 70, "not_json"),
]


def _around(good: str) -> list[Hostile]:
    wrapped = [
        Hostile(rule, good[:-9] if "<cut>" in text else text.replace("¤", good), outcome)
        for rule, text, outcome in _WRAPPED
    ]
    return [*wrapped, *(Hostile(*row) for row in _TEXTS)]


_PAIR = json.loads(pair_reply("A+"))
_LINE = "p | A | A+ | tie | B+ | tie | A+ | so"
_C = "criteria.C2"
_PAIR_ROWS: list[tuple[str, str, Any, str]] = [
    ("no winner", "winner", ..., "schema winner"),
    ("a winner null", "winner", None, "schema winner"),
    ("a winner in lower case", "winner", "a", "fix unwrapped winner"),
    ("a winner with white space", "winner", " A\n", "fix unwrapped winner"),
    ("a winner with a sign", "winner", "A+", "out_of_range winner"),
    ("a winner in words", "winner", "Candidate 1", "out_of_range winner"),
    ("a winner of settled pairs only", "winner", "uncertain", "out_of_range winner"),
    ("a winner in Cyrillic", "winner", "А", "out_of_range winner"),
    ("a winner that is a number", "winner", 1, "schema winner"),
    ("a winner in a list", "winner", ["A"], "schema winner"),
    ("no explanation", "explanation", ..., "schema explanation"),
    ("a blank explanation", "explanation", "", "schema explanation"),
    ("an explanation of spaces", "explanation", "\u3000\n", "schema explanation"),
    ("an explanation null", "explanation", None, "schema explanation"),
    ("an explanation in a list", "explanation", ["so"], "schema explanation"),
    ("a guessed source", "explanation", "Ответ А написан GPT-4.", "flag guesses_source"),
    ("a guess in Chinese", "explanation", "像是 ChatGPT 写的", "flag guesses_source"),
    ("a guess in a comment", f"{_C}.comment", "looks like ChatGPT", "flag guesses_source"),
    ("a pair_id", "pair_id", "p", "fix meta pair_id"),
    ("a key too many", "confidence", "high", "schema confidence"),
    ("meta", "meta", {}, "schema meta"),
    ("no criteria", "criteria", ..., "schema criteria"),
    ("criteria in a list", "criteria", [], "schema criteria"),
    ("a criterion missing", _C, ..., f"schema {_C}"),
    ("a criterion null", _C, None, f"schema {_C}"),
    ("a criterion that is its mark", _C, "A+", f"schema {_C}"),
    ("a criterion too many", "criteria.C6", _PAIR["criteria"]["C1"], "schema criteria.C6"),
    ("a criterion in lower case", "criteria.c2", _PAIR["criteria"]["C1"], "schema criteria.c2"),
    ("no mark", f"{_C}.mark", ..., f"schema {_C}.mark"),
    ("a mark null", f"{_C}.mark", None, f"schema {_C}.mark"),
    ("a blank mark", f"{_C}.mark", "", f"out_of_range {_C}.mark"),
    ("a mark in lower case", f"{_C}.mark", "a+", f"fix unwrapped {_C}.mark"),
    ("a loud tie", f"{_C}.mark", " TIE ", f"fix unwrapped {_C}.mark"),
    ("a mark without its sign", f"{_C}.mark", "A", f"out_of_range {_C}.mark"),
    ("a mark in words", f"{_C}.mark", "A лучше", f"out_of_range {_C}.mark"),
    ("a mark in Chinese", f"{_C}.mark", "平局", f"out_of_range {_C}.mark"),
    ("a mark with a remark", f"{_C}.mark", "A+ (so)", f"out_of_range {_C}.mark"),
    ("a mark that is true", f"{_C}.mark", True, f"schema {_C}.mark"),
    ("no yes or no", f"{_C}.first_meets", ..., f"schema {_C}.first_meets"),
    ("a yes in words", f"{_C}.first_meets", "yes", f"schema {_C}.first_meets"),
    ("a yes as a number", f"{_C}.second_meets", 1, f"schema {_C}.second_meets"),
    ("a yes null", f"{_C}.second_meets", None, f"schema {_C}.second_meets"),
    ("a mark against its yes and no", f"{_C}.first_meets", False, "flag mark_contradicts:C2"),
    ("no comment", f"{_C}.comment", ..., f"schema {_C}.comment"),
    ("a blank comment", f"{_C}.comment", " ", f"schema {_C}.comment"),
    ("a comment null", f"{_C}.comment", None, f"schema {_C}.comment"),
    ("a key too many in a criterion", f"{_C}.score", 1, f"schema {_C}.score"),
]
PAIRS = [
    *(Hostile(rule, _at(_PAIR, path, to), outcome) for rule, path, to, outcome in _PAIR_ROWS),
    *_around(pair_reply("A+")),
    Hostile("two verdicts", pair_reply("A+") + pair_reply("B+"), "ambiguous"),
    Hostile("a table nobody asked for", _LINE, "not_json"),
]
_CELLS = [
    ("as asked", "A+", "A+", ""),
    ("lower case", "| A |", "| a |", "fix unwrapped winner"),
    ("a winner in words", "| A |", "| A лучше |", "fix unwrapped winner"),
    ("a winner in Cyrillic", "| A |", "| А |", "fix unwrapped winner"),
    ("a winner in Greek", "| A |", "| Α |", "fix unwrapped winner"),
    ("a winner in full width", "| A |", "| Ａ |", "fix unwrapped winner"),
    ("full-width bars", "|", "｜", ""),
    ("a blank winner", "| A |", "| |", "schema winner"),
    ("a mark with a remark", "B+", "B+ (точнее)", "fix unwrapped C3"),
    ("a mark in Cyrillic", "B+", "В+", "fix unwrapped C3"),
    ("a tie in Russian", "B+", "ничья", "fix unwrapped C3"),
    ("a tie said twice", "B+", "tie (ничья)", "fix unwrapped C3"),
    ("parity", "B+", "паритет", "fix unwrapped C3"),
    ("a tie in Chinese", "B+", "平局", "fix unwrapped C3"),
    ("a tie in Japanese", "B+", "引き分け", "fix unwrapped C3"),
    ("an unknown winner", "| A |", "| C |", "out_of_range winner"),
    ("both winners", "| A |", "| A/B |", "out_of_range winner"),
    ("an unknown mark", "B+", "so-so", "out_of_range C3"),
    ("a mark without its sign", "B+", "B", "out_of_range C3"),
    ("two marks", "B+", "A+/B+", "out_of_range C3"),
    ("a mark taken back", "B+", "B+ (или A+)", "out_of_range C3"),
    ("a mark against its remark", "B+", "B+ (нет, A лучше)", "out_of_range C3"),
    ("a blank mark", "B+", "", "schema C3"),
    ("blank notes", "| so", "|", ""),
    ("a guess in the notes", "| so", "| looks like ChatGPT", "flag guesses_source"),
]
LINES = [
    *(Hostile(rule, _LINE.replace(old, new), outcome) for rule, old, new, outcome in _CELLS),
    Hostile("equal lines", f"{_LINE}\n{_LINE}", ""),
    Hostile("both orders", f"{_LINE}\np | B | B+ | tie | A+ | tie | B+ | so", "ambiguous"),
    Hostile("no line", "The first is better.", "not_json"),
]

_GOOD = material.good()
_S = "scores.correct"
_E = f"{_S}.evidence[0]"
_NONE = {"evidence": [], "rationale": "no evidence found", "score": 5}
_SAMPLE_ROWS: list[tuple[str, str, Any, str]] = [
    ("no tags", "failure_tags", ..., "schema failure_tags"),
    ("tags null", "failure_tags", None, "schema failure_tags"),
    ("tags out of order", "failure_tags", ["B", "A"], "fix tags failure_tags"),
    ("a tag twice", "failure_tags", ["B", "B"], "fix tags failure_tags"),
    ("an unknown tag", "failure_tags", ["F"], "out_of_range failure_tags[0]"),
    ("a tag in lower case", "failure_tags", ["a"], "out_of_range failure_tags[0]"),
    ("a tag with its name", "failure_tags", ["B: 指令偏离"], "out_of_range failure_tags[0]"),
    ("no notes", "notes", ..., "schema notes"),
    ("notes null", "notes", None, "schema notes"),
    ("long notes", "notes", "n" * 301, "flag has_notes; flag long_notes"),
    ("notes that compare", "notes", "整体优于 baseline", "flag has_notes; flag compares"),
    ("notes that guess", "notes", "Reads like ChatGPT.", "flag has_notes; flag guesses_source"),
    ("a meta of its own", "meta", {"model": "x"}, "fix meta meta"),
    ("a meta null", "meta", None, "fix meta meta"),
    ("a total", "total", 7, "schema total"),
    ("scores in a list", "scores", [], "schema scores"),
    ("a dimension missing", "scores.brief", ..., "schema scores.brief"),
    (
        "a dimension by its name",
        "scores.Brevity",
        _GOOD["scores"]["brief"],
        "schema scores.Brevity",
    ),
    ("a dimension that is its score", _S, 5, f"schema {_S}"),
    ("no score", f"{_S}.score", ..., f"schema {_S}.score"),
    ("a score as text", f"{_S}.score", "5", f"schema {_S}.score"),
    ("a score as a word", f"{_S}.score", "five", f"schema {_S}.score"),
    ("a score null", f"{_S}.score", None, f"schema {_S}.score"),
    ("a score that is true", f"{_S}.score", True, f"schema {_S}.score"),
    ("a score between bands", f"{_S}.score", 4, f"out_of_range {_S}.score"),
    ("a score with its maximum", f"{_S}.score", "5/5", f"schema {_S}.score"),
    ("a negative score", f"{_S}.score", -1, f"out_of_range {_S}.score"),
    ("no rationale", f"{_S}.rationale", ..., f"schema {_S}.rationale"),
    ("a blank rationale", f"{_S}.rationale", "", f"schema {_S}.rationale"),
    ("a rationale of spaces", f"{_S}.rationale", " \n", f"schema {_S}.rationale"),
    ("a rationale in a list", f"{_S}.rationale", ["so"], f"schema {_S}.rationale"),
    ("a comparison", f"{_S}.rationale", "与 A 相比更好", "flag compares"),
    ("a comparison in English", f"{_S}.rationale", "Better than the baseline.", "flag compares"),
    (
        "a comparison in Russian",
        f"{_S}.rationale",
        "По сравнению с вариантом B полнее.",
        "flag compares",
    ),
    ("a comparison in Japanese", f"{_S}.rationale", "A案と比べて短い。", "flag compares"),
    ("no evidence key", f"{_S}.evidence", ..., f"schema {_S}.evidence"),
    ("evidence as text", f"{_S}.evidence", "Because", f"schema {_S}.evidence"),
    ("evidence null", f"{_S}.evidence", None, f"schema {_S}.evidence"),
    ("four quotes", f"{_S}.evidence", ["more"] * 4, f"schema {_S}.evidence"),
    (
        "no quote and no word of it",
        f"{_S}.evidence",
        [],
        f"evidence_missing {_S}.evidence; flag top_without_evidence:correct",
    ),
    ("a top band without evidence", _S, _NONE, "flag top_without_evidence:correct"),
    ("a lower band without evidence", _S, _NONE | {"score": 3}, ""),
    ("a blank quote", f"{_S}.evidence", [" "], f"schema {_E}"),
    ("a quote that is a number", f"{_S}.evidence", [1], f"schema {_E}"),
    ("a quote of signs", f"{_S}.evidence", ["…"], f"evidence_missing {_E}"),
    ("a quote of one letter", f"{_S}.evidence", ["e"], f"evidence_missing {_E}"),
    ("a short quote", f"{_S}.evidence", ["of"], f"evidence_missing {_E}"),
    ("a quote of the question", f"{_S}.evidence", ["blue at noon"], f"evidence_missing {_E}"),
    ("a quote of the rubric", f"{_S}.evidence", ["stated facts"], f"evidence_missing {_E}"),
    ("an invented quote", f"{_S}.evidence", ["Mie scattering"], f"evidence_missing {_E}"),
    ("a quote in another case", f"{_S}.evidence", ["rayleigh"], f"evidence_missing {_E}"),
    ("a quote with a gap", f"{_S}.evidence", ["Because … more"], f"evidence_missing {_E}"),
    (
        "a quote in quotation marks",
        f"{_S}.evidence",
        ['"Rayleigh scattering"'],
        f"fix snapped {_E}; flag snapped",
    ),
    (
        "a quote with an ellipsis",
        f"{_S}.evidence",
        ["Rayleigh…"],
        f"fix snapped {_E}; flag snapped",
    ),
    (
        "a quote with other marks",
        f"{_S}.evidence",
        ['"short waves"'],
        f"fix snapped {_E}; flag snapped",
    ),
    (
        "a quote over a line break",
        f"{_S}.evidence",
        ["waves” scatter"],
        f"fix snapped {_E}; flag snapped",
    ),
    ("a key too many in a dimension", f"{_S}.max", 5, f"schema {_S}.max"),
]
SAMPLES = [
    *(Hostile(rule, _at(_GOOD, path, to), outcome) for rule, path, to, outcome in _SAMPLE_ROWS),
    *_around(_dump(_GOOD)),
    Hostile("two verdicts", _dump(_GOOD) + _at(_GOOD, "notes", "x"), "ambiguous"),
]

_D = grading.DIMENSIONS[0]
_GRADE = grading.reply()
_ROWS = grading.WEIGHTS
_RESCALED = f"fix rescaled score.{_D}; fix rescaled score.{grading.DIMENSIONS[2]}; "
_LOW = dict(zip(grading.DIMENSIONS, (27, 15, 5), strict=True))
_ANSWER_ROWS: list[tuple[str, str, Any, str]] = [
    ("no score", "score", ..., "schema score"),
    ("a score alone", "score", 75, "schema score"),
    ("a dimension missing", f"score.{_D}", ..., f"schema score.{_D}"),
    ("a dimension too many", "score.style", 5, "schema score.style"),
    ("a score as text", f"score.{_D}", "50", f"schema score.{_D}"),
    ("a score with its maximum", f"score.{_D}", "50/60", f"schema score.{_D}"),
    ("a score null", f"score.{_D}", None, f"schema score.{_D}"),
    ("a score that is true", f"score.{_D}", True, f"schema score.{_D}"),
    ("a score over its weight", f"score.{_D}", 61, f"out_of_range score.{_D}"),
    ("a negative score", f"score.{_D}", -1, f"out_of_range score.{_D}"),
    ("half a point", f"score.{_D}", 54.5, ""),
    ("no reasoning", "reasoning", ..., "schema reasoning"),
    ("reasoning in one text", "reasoning", "so", "schema reasoning"),
    ("a reasoning missing", f"reasoning.{_D}", ..., f"schema reasoning.{_D}"),
    ("a blank reasoning", f"reasoning.{_D}", "", f"schema reasoning.{_D}"),
    ("a reasoning of spaces", f"reasoning.{_D}", "\u3000", f"schema reasoning.{_D}"),
    ("a reasoning null", f"reasoning.{_D}", None, f"schema reasoning.{_D}"),
    ("a long reasoning", f"reasoning.{_D}", "well " * 41, f"fix cut reasoning.{_D}"),
    (
        *("a long reasoning in Chinese", f"reasoning.{_D}", "字" * 201),
        f"fix cut reasoning.{_D}",
    ),
    ("no confidence", "confidence", ..., "schema confidence"),
    ("confidence in capitals", "confidence", "High", "fix unwrapped confidence"),
    (
        "confidence with white space",
        "confidence",
        " low",
        "fix unwrapped confidence; flag low_confidence",
    ),
    ("confidence in Japanese", "confidence", "高", "out_of_range confidence"),
    ("confidence as a number", "confidence", 0.9, "schema confidence"),
    ("no critical_fail", "critical_fail", ..., "schema critical_fail"),
    ("critical_fail in words", "critical_fail", "no", "schema critical_fail"),
    ("critical_fail null", "critical_fail", None, "schema critical_fail"),
    (
        "a fail without a reason",
        "critical_fail",
        True,
        "schema critical_fail_reason; fix zeroed score",
    ),
    ("a reason without a fail", "critical_fail_reason", "It lies.", "schema critical_fail_reason"),
    ("a blank reason without a fail", "critical_fail_reason", "", ""),
    ("a dash for no reason", "critical_fail_reason", "-", ""),
    (
        "a type inferred though given",
        "inferred_task_type",
        "creative",
        "fix meta inferred_task_type; flag other_type",
    ),
    ("a type that is none", "task_type", "poetry", "out_of_range task_type"),
    ("a type that is a number", "task_type", 1, "schema task_type"),
    ("the type in capitals", "task_type", "FACT", "fix unwrapped task_type"),
    ("another name", "task_name", "x", "fix meta task_name"),
    ("a total that is a slip", "total_score", 78, "fix total total_score"),
    ("a total that is no sum", "total_score", 80, "out_of_range total_score"),
    ("a total as text", "total_score", "75", "schema total_score"),
    ("weights null", "weights", None, "fix weights weights"),
    ("weights of no type", "weights", {_D: 100}, "out_of_range weights"),
    ("weights in a list", "weights", [60, 30, 10], "schema weights"),
    (
        "weights as shares",
        "weights",
        {d: w / 100 for d, w in _ROWS["fact"].items()},
        "out_of_range weights",
    ),
    ("a key too many", "grade", "A", "schema grade"),
]
ANSWERS = [
    *(Hostile(rule, _at(_GRADE, path, to), outcome) for rule, path, to, outcome in _ANSWER_ROWS),
    *_around(_dump(_GRADE)),
    Hostile("two verdicts", _dump(_GRADE) + grading.said(1, 2, 3), "ambiguous"),
    Hostile(
        "weights of another type",
        grading.said(score=_LOW, weights=_ROWS["creative"]),
        f"{_RESCALED}fix weights weights; flag other_type",
    ),
    Hostile(
        "another type",
        grading.said(score=_LOW, task_type="creative"),
        f"{_RESCALED}fix meta task_type; flag other_type",
    ),
    Hostile(
        "a score over the other type's weight",
        grading.said(31, 15, 5, weights=_ROWS["creative"]),
        f"out_of_range score.{_D}; fix rescaled score.{grading.DIMENSIONS[2]}",
    ),
    Hostile(
        "scores beside a fail",
        grading.said(critical_fail=True, critical_fail_reason="It lies."),
        "fix zeroed score",
    ),
]
