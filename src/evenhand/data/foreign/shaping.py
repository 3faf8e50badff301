"""What a table says in other words than ours, put into ours before it is read: columns under other
names, values spelled otherwise, cells that stand for nothing, and columns that should be rows."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evenhand.data.columns import field_of, has_field, without
from evenhand.errors import DataError, UsageError, quoted
from evenhand.jsontext import as_text

ORDERS = "pass"
"""What tells orders apart: of two columns the second holds what was said with the candidates
exchanged."""
EXPECTED = "expected"
"""What tells scores apart: each column holds the log-probability of the score that it ends with."""
_NUMBER_AT_END = re.compile(r"[0-9]+(?:\.[0-9]+)?$")
_NOTHING = frozenset({"", "false", "none", "null", "no", "0", "[]", "{}"})
"""What a cell holds that says there is nothing, in either case."""
ROW, FILE = "{row}", "{file}"
"""In what an empty cell means: the number of its row, and the name of its file without endings."""
SAID = frozenset({"winner", "preference", "score"})
"""Columns that hold what a judge said."""


@dataclass(frozen=True, slots=True)
class Wide:
    """Columns that each hold what was said under one value of a field: a judge, a dimension, ..."""

    field: str
    columns: tuple[str, ...]
    is_stated: bool = True
    """Whether somebody named the columns; else they were known by themselves."""

    def rows(self, row: dict[str, Any], said: str, where: str) -> Iterator[dict[str, Any]]:
        """A row per column; raises DataError for a column that is not there."""
        for name in self.columns:
            if not has_field(row, name):
                source = (
                    "--wide names" if self.is_stated else f"the first file has as a {self.field}"
                )
                raise DataError(
                    f"there is no column {quoted(name)}, which {source}",
                    where=where,
                    advice=f"The columns are: {', '.join(map(quoted, row))}; name those that are"
                    f" in all files: --wide {self.field}=COLUMN,COLUMN",
                )
        rest = without(row, self.columns)
        if self.field == EXPECTED:
            yield rest | {said: self._expected(row)}
            return
        for place, name in enumerate(self.columns):
            narrow = rest | {self.field: name, said: field_of(row, name)}
            if self.field == ORDERS:
                narrow |= {ORDERS: str(place + 1)} | (_exchanged(rest) if place else {})
            yield narrow

    def _expected(self, row: dict[str, Any]) -> Any:
        """The mean of the scores that the columns are named after, each as probable as its column
        says; what is no number stays, to be told as it is."""
        cells = [field_of(row, name) for name in self.columns]
        try:
            logs = [float(cell) for cell in cells]
        except (TypeError, ValueError):
            return next((cell for cell in cells if cell in (None, "")), as_text(cells))
        top = max(logs)
        if not math.isfinite(top):
            return as_text(cells)
        shares = [math.exp(log - top) for log in logs]
        scores = [float(ended[0]) for ended in map(_NUMBER_AT_END.search, self.columns) if ended]
        return sum(s * p for s, p in zip(scores, shares, strict=True)) / sum(shares)


def _exchanged(row: Mapping[str, Any]) -> dict[str, Any]:
    """The candidates of a row, and what belongs to each, in the other order."""
    names = ("", "_length", "_answer")
    sides = [(f"first{name}", f"second{name}") for name in names]
    return {
        name: row[other]
        for first, second in sides
        for name, other in ((first, second), (second, first))
        if other in row
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaping:
    """How the rows of a table are brought into the form that is read."""

    columns: Mapping[str, str] = field(default_factory=dict[str, str])
    """New names to old ones."""
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    """By column, what its values mean; nothing: what an empty cell means, or one of a column that
    is not there."""
    missing: Sequence[str] = ()
    """What a cell holds where a judge said nothing."""
    wide: Wide | None = None
    only: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """By column, what it holds in the rows that are read; the others are passed over."""
    failed: str | None = None
    """The column that says why a judgment failed: where it is filled, nothing was said."""

    @property
    def is_plain(self) -> bool:
        further = self.only or self.failed
        return not (self.values or self.missing or self.wide or further)

    def reads(self, row: dict[str, Any]) -> bool:
        """Whether a row is one of those that are read."""
        return all(
            has_field(row, name) and _text(field_of(row, name)) in values
            for name, values in self.only.items()
        )

    def fails(self, row: dict[str, Any]) -> bool:
        """Whether a row says that its judgment failed."""
        return self.failed is not None and _is_filled(row, self.failed)

    def shaped(
        self, row: dict[str, Any], said: str | None, where: str, names: Mapping[str, str]
    ) -> Iterator[dict[str, Any]]:
        """The rows that one row of a table stands for. `said` is the column that holds what was
        said, None of a layout that has no such rows: then --wide raises UsageError. `names` is what
        `ROW` and `FILE` stand for."""
        if self.wide is not None and said is None:
            raise UsageError("--wide is for --kind votes and --kind scores")
        for name, meanings in self.values.items():
            if "" in meanings and row.get(name) in (None, ""):
                row[name] = _named(meanings[""], names)
        rows = [row] if self.wide is None else self.wide.rows(row, said or "", where)
        for narrow in rows:
            yield {name: self._cell(name, value) for name, value in narrow.items()}

    def _cell(self, name: str, value: Any) -> Any:
        if not (name in self.values or (name in SAID and self.missing)):
            return value
        text = _text(value)
        if name in SAID and any(_is_same(text, missing) for missing in self.missing):
            return None
        return self.values.get(name, {}).get(text, value) if text else value


def _named(text: str, names: Mapping[str, str]) -> str:
    """A text with what words in it stand for."""
    for word, name in names.items():
        text = text.replace(word, name)
    return text


def _text(value: object) -> str:
    """A cell as text without white space around it."""
    return value.strip() if isinstance(value, str) else "" if value is None else as_text(value)


def _is_filled(row: dict[str, Any], name: str) -> bool:
    """Whether a field says anything: `false` and an empty list say that there is nothing."""
    value = field_of(row, name) if has_field(row, name) else None
    return value not in (None, False, [], {}) and _text(value).lower() not in _NOTHING


def _is_same(text: str, missing: str) -> bool:
    """Whether a cell holds what stands for nothing; a number however it is spelled."""
    if text == missing:
        return True
    try:
        return float(text) == float(missing)
    except ValueError:
        return False


def read_values(texts: Sequence[str]) -> dict[str, dict[str, str]]:
    """COLUMN:FROM=TO,FROM=TO of a command; raises UsageError."""
    values: dict[str, dict[str, str]] = {}
    for text in texts:
        column, colon, pairs = text.partition(":")
        meanings = [pair.rpartition("=") for pair in pairs.split(",")]
        if not (column.strip() and colon and all(equals and old for old, equals, _ in meanings)):
            raise UsageError(
                f"--value {quoted(text)} is not of the form COLUMN:FROM=TO,FROM=TO",
                advice="For instance --value winner:A=first,B=second,C=tie",
            )
        new = {old.strip(): meaning.strip() for old, _, meaning in meanings}
        values.setdefault(column.strip(), {}).update(new)
    return values


def read_fixed(texts: Sequence[str]) -> dict[str, dict[str, str]]:
    """COLUMN=VALUE of a command, as what an empty cell means; raises UsageError."""
    values: dict[str, dict[str, str]] = {}
    for text in texts:
        column, equals, value = text.partition("=")
        if not (column.strip() and equals and value.strip()):
            raise UsageError(
                f"--set {quoted(text)} is not of the form COLUMN=VALUE",
                advice="For instance --set first=old --set second=new",
            )
        values[column.strip()] = {"": value.strip()}
    return values


def read_only(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """COLUMN=VALUE of a command, several of one column being either of them; raises UsageError."""
    values: dict[str, tuple[str, ...]] = {}
    for text in texts:
        column, equals, value = text.partition("=")
        if not (column.strip() and equals):
            raise UsageError(
                f"--where {quoted(text)} is not of the form COLUMN=VALUE",
                advice="For instance --where annotator=gpt-4",
            )
        values[column.strip()] = (*values.get(column.strip(), ()), value.strip())
    return values


def read_wide(text: str | None) -> Wide | None:
    """FIELD=COLUMN,COLUMN of a command; raises UsageError."""
    if text is None:
        return None
    name, _, columns = text.partition("=")
    names = tuple(column.strip() for column in columns.split(",") if column.strip())
    if not name.strip() or len(set(names)) != len(names) or not names:
        raise UsageError(
            f"--wide {quoted(text)} is not of the form FIELD=COLUMN,COLUMN",
            advice="For instance --wide judge=ann,bob or --wide dimension=clear,correct",
        )
    if name.strip() == ORDERS and len(names) != 2:
        raise UsageError("--wide pass= names two columns, one for each order")
    if name.strip() == EXPECTED and not all(map(_NUMBER_AT_END.search, names)):
        raise UsageError(
            "--wide expected= names columns that end with the score that they are about",
            advice="For instance --wide expected=logprob_1,logprob_2",
        )
    return Wide(name.strip(), names)
