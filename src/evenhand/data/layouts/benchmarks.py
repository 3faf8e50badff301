"""Benchmarks of models: AlpacaEval, Arena-Hard and FastChat.

AlpacaEval: `annotations.json`, an object a comparison of output_1 (the baseline) and output_2.
`preference` runs from 1 (the baseline is better) to 2; 1.5 and, in older files, 0 are draws; null
is a judgment that failed. The tool shuffles the orders itself and writes the verdict turned back,
so that every row stands in one order and nothing can be said about positions. `index` is the place
of an instruction among those of the file, by which the tool joins difficulties to instructions.

Arena-Hard: `model_judgment/<judge>/<model>.jsonl`, two games a question against a baseline. In the
first game A is the baseline, in the second A is the model. A label may be spelled either way round:
`A<B` says what `B>A` says. `>>` is a verdict like any other, flagged `strong`: a tool that counts
it three times weighs one opinion as three.

FastChat's `llm_judge` files, told apart by their keys:

- pairs in both orders: question_id, model_1, model_2, g1_winner, g2_winner, judge, turn;
- settled or human pairs: question_id, model_a, model_b, winner, judge, turn;
- grades: question_id, model, judge, score (1 to 10; -1: not parsed), turn.

A judge is written as its model and its prompt; the prompts for turns and for mathematics belong to
one judge.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from evenhand.data.columns import Row
from evenhand.data.layouts.tidy import (
    ORDER_UNKNOWN,
    JudgmentFile,
    NoScore,
    TidyRow,
    begin,
    list_of,
    missing,
    non_null,
    number_of,
    object_of,
    on_scale,
    require,
    short_hash,
    text_of,
)

BASELINE = "baseline"
"""The name of Arena-Hard's baseline where a file gives none."""
INCONSISTENT = "tie (inconsistent)"
_LABEL = re.compile(r"\s*\[*([AB])\s*(>{1,2}|<{1,2}|=)\s*([AB])\]*\s*")
_SCALE = (0.0, 10.0)
"""FastChat's prompts ask for 1 to 10; judges give 0 as well."""


def read_alpacaeval(file: JudgmentFile) -> Iterator[TidyRow]:
    """Yield the comparisons of a file; a unit is an instruction, known by a hash of its text, or by
    its index where there is no text."""
    places: dict[str, int] = {}
    for row in file.table():
        require(row, ("generator_1", "generator_2", "preference"), "alpacaeval")
        comparison = row.value
        instruction = text_of(comparison.get("instruction"))
        index = text_of(comparison.get("index"))
        if not (instruction or index):
            raise missing("instruction", comparison, row.where, "alpacaeval")
        unit = short_hash(instruction) if instruction else index
        value = non_null(
            unit=unit,
            index=index or places.setdefault(unit, len(places)),
            judge=comparison.get("annotator"),
            first=comparison["generator_1"],
            second=comparison["generator_2"],
            preference=_preference(comparison["preference"]),
            first_length=_length(comparison, "output_1", "first_length"),
            second_length=_length(comparison, "output_2", "second_length"),
            dataset=comparison.get("dataset"),
            instruction=begin(instruction) or None,
        )
        yield TidyRow("votes", value, row.where, ORDER_UNKNOWN)


def _preference(value: Any) -> Any:
    """Return how far output_2 is preferred, from 0 to 1; what is no such number stays, to be told
    as it is."""
    number = number_of(value)
    if number is None:
        return None if text_of(value).lower() == "nan" else value  # from a CSV file
    return 0.5 if number == 0 else number - 1 if 1 <= number <= 2 else text_of(value) + " of 1 to 2"


def _length(comparison: Mapping[str, Any], output: str, length: str) -> Any:
    """Return the length of the text of an output, else what a column says."""
    text = comparison.get(output)
    return len(text) if isinstance(text, str) else comparison.get(length)


def read_arena_hard(file: JudgmentFile) -> Iterator[TidyRow]:
    """Yield the games of a file."""
    for row in file.table():
        require(row, ("model", "games"), "arena-hard")
        judgment = row.value
        unit = judgment.get("question_id", judgment.get("uid"))
        if unit is None:
            raise missing("question_id", judgment, row.where, "arena-hard")
        about = non_null(unit=unit, judge=judgment.get("judge"), category=judgment.get("category"))
        candidates = [text_of(judgment.get("baseline")) or BASELINE, text_of(judgment["model"])]
        for game in list_of(judgment["games"]) or [None]:
            first, second = candidates
            winner, flag = arena_verdict(object_of(game).get("score"))
            value = about | non_null(first=first, second=second, winner=winner)
            yield TidyRow("votes", value, row.where, flag)
            candidates.reverse()


def arena_verdict(label: Any) -> tuple[Any, str]:
    """Return the winner that a label names, and a flag; a label that is none stays as it is."""
    match = _LABEL.fullmatch(text_of(label))
    if match is None or match[1] == match[3]:
        return label, ""
    if match[2] == "=":
        return "tie", ""
    better = match[1] if match[2].startswith(">") else match[3]
    return "first" if better == "A" else "second", "strong" if len(match[2]) == 2 else ""


def read_fastchat(file: JudgmentFile) -> Iterator[TidyRow]:
    """Yield the judgments of a file."""
    for row in file.table():
        require(row, ("question_id",), "fastchat")
        names = row.value.keys()
        if {"g1_winner", "model_1", "model_2"} <= names:
            yield from _games(row)
        elif {"winner", "model_a", "model_b"} <= names:
            yield _vote(row)
        elif {"score", "model"} <= names:
            yield _read_grade(row)
        else:
            raise missing("g1_winner, winner, score", row.value, row.where, "fastchat")


def _about(judgment: Mapping[str, Any]) -> dict[str, Any]:
    judge, prompt = [*(list_of(judgment.get("judge")) or [judgment.get("judge")]), None][:2]
    return non_null(
        unit=judgment["question_id"],
        judge=judge,
        turn=judgment.get("turn"),
        judge_prompt=prompt,
        category=judgment.get("category"),
    )


def _games(row: Row) -> Iterator[TidyRow]:
    """Yield both orders; a winner is named by its model in either."""
    models = {name: text_of(row.value[name]) for name in ("model_1", "model_2")}
    first, second = models.values()
    for name in ("g1_winner", "g2_winner"):
        if name in row.value:
            label = row.value[name]
            sides = {"first": first, "second": second, "winner": models.get(text_of(label), label)}
            yield TidyRow("votes", _about(row.value) | sides, row.where)
        first, second = second, first


def _vote(row: Row) -> TidyRow:
    label = text_of(row.value["winner"])
    words = {"model_a": "first", "model_b": "second", INCONSISTENT: "tie", "tie (bothbad)": "tie"}
    sides = {"first": row.value["model_a"], "second": row.value["model_b"]}
    value = _about(row.value) | sides | {"winner": words.get(label, label)}
    return TidyRow("votes", value, row.where, "inconsistent" if label == INCONSISTENT else "")


def _read_grade(row: Row) -> TidyRow:
    score = row.value["score"]
    if score in (-1, "-1", "-1.0"):
        score = NoScore("schema", "the score is -1, which means not parsed")
    value = non_null(model=row.value["model"], score=on_scale(score, *_SCALE, "the score"))
    return TidyRow("scores", _about(row.value) | value, row.where)
