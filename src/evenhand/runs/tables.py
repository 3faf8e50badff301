"""A plan for a table that stands in memory or in a file, without a suite file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from evenhand.data.columns import Rows
from evenhand.data.files import is_data_file
from evenhand.data.read import MEMORY, memory_rows
from evenhand.data.tables import ROWS_LOOKED_AT, DataTable, TableSource, extras_in
from evenhand.files.drafts import language_of
from evenhand.files.protocols import find_protocol
from evenhand.files.rubrics import (
    check_needs,
    is_rubric_text,
    read_rubric,
    rubric_of_text,
    rubric_of_value,
)
from evenhand.judges import first_judge
from evenhand.judges.credentials import environment
from evenhand.kinds import DEFAULT_KIND, KINDS
from evenhand.kinds.kind import Kind
from evenhand.kinds.protocol import Protocol
from evenhand.runs.plan import Plan
from evenhand.runs.prepare import prepare
from evenhand.suite import Suite, suite_of_keys
from evenhand.suite_file import SuiteFile
from evenhand.words import Sentence, few

Rubric = Mapping[str, Any] | Sequence[Any] | str | Path


def is_table(data: object) -> bool:
    """Return True if this is a table, and not a suite file or its folder."""
    return is_data_file(Path(data)) if isinstance(data, str | Path) else True


def table_sources(tables: object) -> list[Path | Rows]:
    """Return the files of a table or of several, or rows in memory. Raises UsageError for what is
    no table, DataError for a row that is none."""
    if isinstance(tables, str | Path):
        return [Path(tables)]
    if isinstance(tables, Iterator | Set):
        tables = list(tables)
    if isinstance(tables, list | tuple) and tables and isinstance(tables[0], str | Path):
        return [Path(path) for path in tables]
    return [memory_rows(tables)]


def table_plan(
    data: object,
    rubric: Rubric | None,
    settings: Mapping[str, Any],
    notify: Callable[[str], None],
) -> Plan:
    """Return the plan to judge a table with these keys of a suite file; raise UsageError or
    DataError. Without a protocol: by the rubric, where there is one, else in pairs. Without a
    language: that of the texts. Without `use`: the judge sees what the table has of reference,
    context and messages."""
    source = (
        TableSource(path=Path(data))
        if isinstance(data, str | Path)
        else TableSource(path=Path(MEMORY), memory=memory_rows(data))
    )
    rows = source.sample
    environ = environment()
    defaults = {
        "name": source.path.name.split(".")[0],
        "protocol": _protocol(rows, rubric),
        "language": language_of(text for row in rows for text in row.values() if _is_text(text)),
        "judges": [{"model": first_judge(environ)}],
        "data": [str(source.path)],
    }
    file = suite_of_keys({**defaults, **settings})
    if "use" not in settings:
        file = suite_of_keys({**defaults, **settings, "use": _use(source, file, notify)})
    suite = Suite(file, Path())
    plan = prepare(suite, environ, notify, [source])
    if rubric is None:
        return plan
    check_needs(rubric, suite.file.use)
    return replace(plan, rubric=rubric_value(rubric, plan.protocol, suite.file.language))


def _use(source: TableSource, file: SuiteFile, notify: Callable[[str], None]) -> list[str]:
    """Return what the judge is to see beside the judged text, and tell it."""
    form = KINDS[find_protocol(file.protocol).kind].table_form
    table = DataTable(source, file.columns, form)
    use = extras_in([row.value for _, row in table.rows[:ROWS_LOOKED_AT]], form)
    if use:
        notify(Sentence("runs.judge_sees", names=few(use, 20)))
    return use


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def rubric_value(rubric: Rubric, protocol: Protocol, language: str) -> Any:
    """Return a rubric in the form of a protocol's kind: the value itself, that of a file, or what a
    sentence makes. Raise UsageError."""
    if not isinstance(rubric, str | Path):
        return rubric_of_value(rubric, protocol, language)
    if isinstance(rubric, str) and is_rubric_text(rubric):
        return rubric_of_text(rubric, protocol, language, "rubric")
    return read_rubric(Path(rubric), find_protocol(protocol.name))


def _protocol(rows: Sequence[Mapping[str, Any]], rubric: Rubric | None) -> str:
    """Return the kind of a table: by the form of its rubric; without one, of several answers."""
    ending = Path(rubric).suffix.lower() if isinstance(rubric, str | Path) else ""
    if ending in (".md", ".markdown"):
        return next(name for name, kind in KINDS.items() if _takes_rubric(kind, ending))
    has_rubric = rubric is not None or any("rubric" in row for row in rows)
    several = next(name for name, kind in KINDS.items() if kind.table_form.several)
    return DEFAULT_KIND if has_rubric else several


def _takes_rubric(kind: Kind, ending: str) -> bool:
    return kind.rubric_form is not None and ending in kind.rubric_form.endings
