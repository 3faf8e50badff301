"""The shared statements and texts as PostgreSQL takes them."""

from __future__ import annotations

import re
from functools import lru_cache

_TYPES = {
    "INTEGER PRIMARY KEY": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "INTEGER": "BIGINT",
    "REAL": "DOUBLE PRECISION",
    "WITHOUT ROWID": "",
    "ON units (id)": "ON units USING hash (id)",  # a tree takes no long keys
    "ON runs (name, starts)": "ON runs USING hash (name)",
    "json_each(j.observations)": "json_array_elements(j.observations::json)",
    "json_each(u.fields)": "json_each_text(u.fields::json)",
}
_REFERENCE = re.compile(r" REFERENCES \w+\(\w+\)")


def to_postgres_ddl(statement: str) -> str:
    """Return a statement of `schema.sql` in PostgreSQL's words."""
    for there, here in _TYPES.items():
        statement = statement.replace(there, here)
    return _REFERENCE.sub("", statement)


_WORDS = (
    (re.compile(r"CROSS JOIN"), "JOIN"),
    (re.compile(r" INDEXED BY \w+"), ""),
    (re.compile(r"\binstr\("), "strpos("),
    (re.compile(r"NOT IN \(SELECT value FROM json_each\((:\w+)\)\)"), r"<> ALL(\1)"),
    (re.compile(r"IN \(SELECT value FROM json_each\((:\w+)\)\)"), r"= ANY(\1)"),
)
_MARK = re.compile(r"\?|(?<!:):([a-z_][a-z_0-9]*)")


@lru_cache(maxsize=512)
def to_postgres(sql: str) -> tuple[str, tuple[str, ...]]:
    """Return a shared statement in PostgreSQL's words, and the names of its values in order."""
    for there, here in _WORDS:
        sql = there.sub(here, sql)
    names: dict[str, int] = {}

    def mark(match: re.Match[str]) -> str:
        name = match[1] or f"?{len(names)}"
        return f"${names.setdefault(name, len(names) + 1)}"

    return _MARK.sub(mark, sql), tuple(names)


_ESCAPE = "\x1a"


def escape_nul(text: str) -> str:
    """Return a text without NUL, from which `restore_nul` makes the same text again: NUL becomes
    SUB N, and SUB becomes SUB S."""
    if "\0" in text or _ESCAPE in text:
        return text.replace(_ESCAPE, f"{_ESCAPE}S").replace("\0", f"{_ESCAPE}N")
    return text


def restore_nul(text: str) -> str:
    """Return the text that `escape_nul` was given."""
    if _ESCAPE in text:
        return text.replace(f"{_ESCAPE}N", "\0").replace(f"{_ESCAPE}S", _ESCAPE)
    return text
