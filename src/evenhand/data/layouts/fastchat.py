"""FastChat's `llm_judge` files, told apart by their keys:

- pairs in both orders: question_id, model_1, model_2, g1_winner, g2_winner, judge, turn;
- settled or human pairs: question_id, model_a, model_b, winner, judge, turn;
- grades: question_id, model, judge, score (1 to 10; -1: not parsed), turn;
- reviews of Vicuna's first table: question_id, answer1_id, answer2_id, score [s1, s2].

A judge is written as its model and its prompt; the prompts for turns and for mathematics belong to
one judge. Of a review the scores stored with it are read, not those in its text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evenhand.data.columns import Row
from evenhand.data.files import stem_of
from evenhand.data.layouts.rows import (
    JudgmentFile,
    NoScore,
    TidyRow,
    begin,
    list_of,
    missing,
    non_null,
    on_scale,
    text_of,
)

INCONSISTENT = "tie (inconsistent)"
_SCALE = (0.0, 10.0)
"""Its prompts ask for 1 to 10; judges give 0 as well."""


def read(file: JudgmentFile) -> Iterator[TidyRow]:
    """Yield the judgments of a file."""
    for row in file.table():
        judgment = row.value
        if "question_id" not in judgment:
            raise missing("question_id", judgment, row.where, "fastchat")
        if "g1_winner" in judgment and "model_1" in judgment and "model_2" in judgment:
            yield from _games(row)
        elif "winner" in judgment and "model_a" in judgment and "model_b" in judgment:
            yield _vote(row)
        elif "answer1_id" in judgment and "answer2_id" in judgment:
            yield from _review(row, stem_of(Path(file.name)))
        elif "score" in judgment and "model" in judgment:
            yield _grade(row)
        else:
            raise missing("g1_winner, winner or score", judgment, row.where, "fastchat")


def _about(judgment: Mapping[str, Any]) -> dict[str, Any]:
    judge = list_of(judgment.get("judge")) or [judgment.get("judge")]
    prompt = judge[1] if len(judge) > 1 else None
    return non_null(
        unit=judgment["question_id"],
        judge=judge[0],
        turn=judgment.get("turn"),
        judge_prompt=prompt,
        category=judgment.get("category"),
    )


def _games(row: Row) -> Iterator[TidyRow]:
    """Yield both orders; a winner is named by its model in either."""
    judgment, about = row.value, _about(row.value)
    models = [text_of(judgment[name]) for name in ("model_1", "model_2")]
    for name, (first, second) in (("g1_winner", models), ("g2_winner", models[::-1])):
        if name not in judgment:
            continue
        winner = dict(zip(("model_1", "model_2"), models, strict=True)).get(
            text_of(judgment[name]), judgment[name]
        )
        yield TidyRow(
            "votes", about | {"first": first, "second": second, "winner": winner}, row.where
        )


def _vote(row: Row) -> TidyRow:
    judgment = row.value
    label = text_of(judgment["winner"])
    sides = {"model_a": "first", "model_b": "second", INCONSISTENT: "tie", "tie (bothbad)": "tie"}
    value = _about(judgment) | {
        "first": judgment["model_a"],
        "second": judgment["model_b"],
        "winner": sides.get(label, label),
    }
    return TidyRow("votes", value, row.where, "inconsistent" if label == INCONSISTENT else "")


def _grade(row: Row) -> TidyRow:
    judgment = row.value
    value = _about(judgment) | non_null(model=judgment["model"], score=_parsed(judgment["score"]))
    return TidyRow("scores", value, row.where)


def _review(row: Row, file: str) -> Iterator[TidyRow]:
    """Yield a score for each of the two; their models are not in the file: they go by place."""
    judgment = row.value
    about = _about(judgment) | non_null(judge=judgment.get("reviewer_id"), file=begin(file))
    scores = list_of(judgment.get("score"))
    for place in (1, 2):
        score = scores[place - 1] if len(scores) == 2 else judgment.get("score")
        value = about | {"model": f"assistant {place}"} | non_null(score=_parsed(score))
        yield TidyRow("scores", value, row.where)


def _parsed(score: Any) -> Any:
    if score in (-1, "-1", "-1.0"):
        return NoScore("schema", "the score is -1, which means not parsed")
    return on_scale(score, *_SCALE, "the score")
