"""Rubrics that are written where their file would be named: one sentence, or the text itself."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources
from typing import Any

DIMENSION = "criterion"
"""The id of the one dimension that a sentence makes."""
NAME_CHARS = 60
_FILE = re.compile(
    r"\S+\.[A-Za-z]\w{0,8}|.*\.(?:json|toml|md|markdown|txt|ya?ml|csv|docx?|pdf)", re.I
)
_ONE_NAME = re.compile(r"[\w./\\~-]+", re.ASCII)


def is_rubric_text(rubric: str) -> bool:
    """Return True if this is a rubric itself and not the name of a file: it has several lines, or
    is no single name and has no file's ending."""
    text = rubric.strip()
    if text[:1] in ("{", "["):
        return False
    if "\n" in text:
        return True
    return bool(text) and not _FILE.fullmatch(text) and not _ONE_NAME.fullmatch(text)


def sentence_rubric(sentence: str, language: str) -> dict[str, Any]:
    """The rubric of one dimension that asks what a sentence says, with bands in a language; in
    English where nobody has written them."""
    text = " ".join(sentence.split())
    name = text if len(text) <= NAME_CHARS else text[: NAME_CHARS - 1].rstrip() + "…"
    bands = _bands().get(language) or _bands()["en"]
    return {
        "dimensions": [
            {
                "id": DIMENSION,
                "name": name,
                "scale": "1-5",
                "definition": text,
                "bands": [
                    {"score": int(score), "criteria": bands[score]} for score in sorted(bands)
                ],
            }
        ]
    }


@cache
def _bands() -> dict[str, dict[str, str]]:
    text = (resources.files("evenhand.files") / "sentence.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
