"""A first suite for a table that somebody has: what was understood of it, and the files to begin
with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import Any

from evenhand.data.encoding import sampled_encoding
from evenhand.data.files import is_data_file
from evenhand.data.tables import ROWS_LOOKED_AT, Source, Table, Tables
from evenhand.errors import DataError
from evenhand.examples import example_rubric, suite_text
from evenhand.kinds import KINDS
from evenhand.kinds.shared.table_form import TableForm

_SCRIPTS = (
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
    ("zh", re.compile("[\u3400-\u9fff]")),
)
_SCRIPT_SHARE = 0.2
"""So many of the letters make a text one of a language; Japanese is written with fewer kana than
that and much that Chinese has too."""
_KANA_SHARE = 0.05
_VALUES_LISTED = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A suite for a table, yet to be written."""

    files: Mapping[str, str]
    """Name to text, the suite first."""
    understood: Sequence[str]
    """For people, a line each."""


def draft_suite(data: Path, *, protocol: str | None, language: str | None, judge: str) -> Draft:
    """What the columns of a table hold, and a suite with a first rubric for it. Raises UsageError
    or DataError where the table cannot be read, also where two columns would fit."""
    source = _source(data)
    protocol = protocol or _protocol(source)
    form = KINDS[protocol].table_form
    table = Table(source, {}, form)
    rows = [row.value for _, row in islice(table.rows(), ROWS_LOOKED_AT)]
    _require_texts(table, rows, form)
    language = language or language_of(_texts(rows, form))
    # Candidates of pairs are compared with each other, whatever sets them apart.
    variants = _NONE if form.gather else _variants(table)
    rubric, rubric_file = _rubric(protocol, language)
    suite = suite_text(
        name=data.name.split(".")[0] or "evenhand",
        protocol=protocol,
        language=language,
        data=data.name,
        encoding=source.encoding,
        rubric=rubric_file,
        judge=judge,
        columns=table.recognition.columns,
        by=variants.field,
        baseline=variants.values[0] if variants.field else None,
    )
    files = {"evenhand.toml": suite} | ({rubric_file: rubric} if rubric_file else {})
    units = sum(1 for _ in Tables([source], {}, form, lambda line: None).rows())
    understood = list(_lines(table, form, variants, units, protocol, language))
    return Draft(files=files, understood=understood)


def _source(data: Path) -> Source:
    """The file as it is, or, where it is a text that is not UTF-8, in the encoding in which it
    reads as text: a suite may be drafted on a guess, for it says what was guessed."""
    if not is_data_file(data) or not data.is_file() or data.name.endswith((".xlsx", ".parquet")):
        return Source(path=data)
    return Source(path=data, encoding=sampled_encoding(data))


def _protocol(source: Source) -> str:
    """The protocol whose own fields a table has; samples to score, where nothing says more."""
    rows = [row.value for row in islice(source.rows({}), ROWS_LOOKED_AT)]
    names = {name for row in rows for name in row}
    for name in KINDS:
        form = KINDS[name].table_form
        if form.several and form.several in names:
            return name
    return "weighted" if "task_name" in names else "rubric"


def _require_texts(table: Table, rows: Sequence[Mapping[str, Any]], form: TableForm) -> None:
    """Refuse a table in which the question or the answers are not found."""
    answers = (form.several,) if form.several and not table.is_long else (form.answer,)
    for field in (form.question, *answers):
        if not any(field in row for row in rows):
            names = ", ".join(dict.fromkeys(name for row in rows for name in row))
            raise DataError(
                f'no column looks like the field "{field}"',
                where=str(table.source.path),
                advice=f"The columns are: {names}. Rename one, or write a suite by hand and map it:"
                f' [columns] {field} = "COLUMN"',
            )


def _texts(rows: Sequence[Mapping[str, Any]], form: TableForm) -> Iterator[str]:
    for row in rows:
        for field in (form.question, form.answer):
            if isinstance(row.get(field), str):
                yield row[field]


def language_of(texts: Iterator[str]) -> str:
    """The language of the four that texts are written in, by their script."""
    letters = [letter for text in texts for letter in text[:2000] if letter.isalpha()]
    whole = "".join(letters)
    for language, script in _SCRIPTS:
        share = _KANA_SHARE if language == "ja" else _SCRIPT_SHARE
        if letters and len(script.findall(whole)) > share * len(letters):
            return language
    return "en"


@dataclass(frozen=True, slots=True)
class _Variants:
    """The field that sets answers apart, and its values; an empty field where none does."""

    field: str
    values: Sequence[str]


_NONE = _Variants("", ())


def _variants(table: Table) -> _Variants:
    values: dict[str, dict[str, None]] = {"prompt_variant": {}, "model": {}}
    for _, row in table.rows():
        meta = row.value.get("meta")
        for field, levels in values.items():
            value = meta.get(field) if isinstance(meta, Mapping) else None
            if value not in (None, ""):
                levels[str(value)] = None
    for field, several in values.items():
        if len(several) > 1:
            return _Variants(field, list(several))
    return _NONE


def _rubric(protocol: str, language: str) -> tuple[str, str]:
    """The text of a first rubric and the name of its file; both empty where there is none."""
    form = KINDS[protocol].rubric_form
    if form is None:
        return "", ""
    if form.has_bands:
        return example_rubric(protocol, language), "rubric.json"
    folder = resources.files("evenhand.files") / "first_task"
    return (folder / f"{language}.md").read_text(encoding="utf-8"), "rubric.md"


def _lines(
    table: Table,
    form: TableForm,
    variants: _Variants,
    units: int,
    protocol: str,
    language: str,
) -> Iterator[str]:
    noun = {"pairwise": "topics", "weighted": "answers"}.get(protocol, "samples")
    yield f"{table.source.path.name}: {units:,} {noun} for the protocol {protocol}, in {language}"
    if table.source.encoding:
        yield f"  {'encoding':<20} {table.source.encoding}"
    columns = table.recognition.columns
    for field in (form.question, form.answer):
        yield f"  {field:<20} {columns.get(field, field)}"
    for field in columns:
        if field not in (form.question, form.answer):
            yield f"  {field:<20} {columns[field]}"
    if table.recognition.spare:
        yield f"  {'meta':<20} {', '.join(table.recognition.spare)}"
    if variants.field:
        more = len(variants.values) - _VALUES_LISTED
        listed = ", ".join(variants.values[:_VALUES_LISTED]) + (
            f" and {more} more" if more > 0 else ""
        )
        yield f"  {'compared by':<20} {variants.field}: {listed}"
    yield from (f"  {remark}" for remark in table.recognition.remarks)
