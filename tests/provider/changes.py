"""Replies whose text is not in order: changes for `valid`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any


def fenced(text: str) -> str:
    return f"```json\n{text}\n```"


def thinking(text: str) -> str:
    return f'<think>\nPerhaps {{"score": 1}}? No.\n</think>\n{text}'


def in_prose(text: str) -> str:
    return f"Here is my judgment:\n\n{text}\n\nI hope that this helps."


def doubled(text: str) -> str:
    """Two objects with different verdicts."""
    return f"{text}\n{otherwise(text)}"


def otherwise(text: str) -> str:
    """The same object with another verdict."""
    found = json.loads(text)
    return json.dumps({**found, **({"winner": "A"} if "winner" in found else {"notes": "No: 1."})})


def key_twice(text: str) -> str:
    return text[:-1] + ',"notes":"again","notes":"and again"}'


def key_extra(text: str) -> str:
    return json.dumps({**json.loads(text), "overall": 5})


def key_missing(text: str) -> str:
    """Without the last key."""
    return json.dumps(dict(list(json.loads(text).items())[:-1]))


def with_meta(text: str) -> str:
    return json.dumps({"meta": {"model": "changed"}, **json.loads(text)})


def scored(score: Any) -> Callable[[str], str]:
    """Every score replaced; `scored(float("nan"))` writes NaN, `scored("four")` a word."""
    return _replacing("score", score)


def quoting(*evidence: str) -> Callable[[str], str]:
    """Every list of evidence replaced."""
    return _replacing("evidence", list(evidence))


def _replacing(name: str, value: Any) -> Callable[[str], str]:
    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        return {key: value if key == name else kept for key, kept in found}

    return lambda text: json.dumps(json.loads(text, object_pairs_hook=pairs))


def cut_short(text: str) -> str:
    return text[: len(text) // 2]


def surrogate(text: str) -> str:
    """With half of a surrogate pair in its notes."""
    return json.dumps({**json.loads(text), "notes": "\ud83d"}, ensure_ascii=False)
