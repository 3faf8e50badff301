"""Names of models and variants that somebody may have meant for one: `gpt-4o` and `GPT-4o `.

What a row says of itself is copied as it stands, so that such names are two; it is told.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from evenhand.errors import quoted

_FIELDS = ("model", "prompt_variant")
_CANDIDATE = "candidate"
_NAMES_KEPT = 1000
"""Of a field with more values nobody compares them all."""

_TOLD = 5
"""How many names that are alike are told of a field."""


class NamesAlike:
    """The names in rows, gathered by what is left of them without case, width and white space."""

    def __init__(self, several: str) -> None:
        self._several = several
        """The field that holds candidates, where rows do."""
        self._names: dict[str, dict[str, None]] = {name: {} for name in (*_FIELDS, _CANDIDATE)}

    def add(self, row: Mapping[str, Any]) -> None:
        """Take in a row of the contract."""
        meta = row.get("meta")
        if isinstance(meta, dict):
            for field in _FIELDS:
                self._take(field, cast("dict[str, Any]", meta).get(field))
        candidates = row.get(self._several) if self._several else None
        for candidate in cast("Sequence[object]", candidates if type(candidates) is list else ()):
            if isinstance(candidate, dict):
                self._take(_CANDIDATE, cast("dict[str, Any]", candidate).get("id"))

    def _take(self, field: str, name: object) -> None:
        names = self._names[field]
        if isinstance(name, str) and name not in names and len(names) < _NAMES_KEPT:
            names[name] = None

    @property
    def remarks(self) -> Iterator[str]:
        """A line for each field that has names alike."""
        for field, names in self._names.items():
            groups: dict[str, list[str]] = {}
            for name in names:
                groups.setdefault(_folded(name), []).append(name)
            alike = [" and ".join(map(quoted, group)) for group in groups.values() if group[1:]]
            if alike:
                more = len(alike) - _TOLD
                rest = f" and {more} more such names" if more > 0 else ""
                yield (
                    f"{field}: {', '.join(alike[:_TOLD])}{rest} are told apart, though they differ"
                    " in case or white space alone; write them alike if they are one"
                )


def _folded(name: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())
