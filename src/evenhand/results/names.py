"""What the ids of dimensions and criteria are called."""

from __future__ import annotations

from collections.abc import Mapping

from evenhand.runs.recorded import Recorded


def names_of(recorded: Recorded, language: str | None = None) -> dict[str, str]:
    """What the ids of dimensions and criteria stand for: in this language where it is said, else in
    that of the run."""
    rubric = recorded.rubric
    if isinstance(rubric, Mapping) and "dimensions" in rubric:
        return {row["id"]: str(row.get("name", "")) for row in rubric["dimensions"]}
    if recorded.imported:
        return {}
    tables, languages = (
        recorded.protocol.given,
        (language, recorded.manifest.judging.language, "en"),
    )
    rows = [*tables.get("criteria", ()), *tables.get("dimensions", ())]
    names = {row["id"]: next((str(row[n]) for n in languages if n in row), "") for row in rows}
    return {ident: _short(text) for ident, text in names.items()}


def _short(text: str) -> str:
    """What a description begins with, up to its colon."""
    for colon in (":", "："):
        head, separator, _ = text.partition(colon)
        if separator and len(head) <= 40:
            return head
    return ""
