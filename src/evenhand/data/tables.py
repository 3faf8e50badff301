"""Tables as their users have them, turned into rows of the contract.

Columns are found by their usual names, constants of a file are filled in, rows without ids are
called by what identifies them. What was understood is told once; nothing is guessed silently.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from evenhand.data.alike import NamesAlike
from evenhand.data.columns import Copies, flattened, place
from evenhand.data.conversation import find_conversation
from evenhand.data.faults import fault_of
from evenhand.data.read import FileForm, Row, rows
from evenhand.data.recognise import fields_of, recognise
from evenhand.data.table_ids import Ids, apply_role, ids_of
from evenhand.errors import DataError, quoted
from evenhand.jsontext import as_text
from evenhand.kinds.rows import EXTRAS, PlacedRow, RowError, TableForm, is_given
from evenhand.units import META_FIELDS, question_hash

ROWS_LOOKED_AT = 200
"""How far columns are looked for: rows of JSON need not all have the same."""
META_CHARS = 200
"""A longer text is no label of a row, and is not kept as meta."""
ANSWER_CHARS = 100_000
"""A longer answer is warned about."""


class Source(Struct, frozen=True, kw_only=True):
    """A data file, what is true of all its rows, and the folder that it must lie in."""

    path: Path
    root: Path | None = None
    constants: Mapping[str, Any] = {}
    """Field to value; a field that is none of the contract's belongs to `meta`."""
    encoding: str | None = None
    sheet: str | None = None
    memory: Sequence[Mapping[str, Any]] | None = None
    """Rows that no file holds; `path` is then what errors call them."""

    def rows(self, columns: Mapping[str, str]) -> Iterator[Row]:
        """Its rows with these columns copied to fields."""
        if self.memory is not None:
            return self._rows_in_memory(self.memory, Copies(columns))
        form = FileForm(encoding=self.encoding, sheet=self.sheet)
        return rows(self.path, columns, root=self.root, form=form)

    def _rows_in_memory(self, memory: Sequence[Mapping[str, Any]], copies: Copies) -> Iterator[Row]:
        copies.require_sources((dict(row) for row in memory), str(self.path))
        for number, row in enumerate(memory, 1):
            where = f"{self.path}:{number}"
            value = {k: dict(v) if isinstance(v, dict) else v for k, v in row.items()}
            yield Row(copies.apply(value, where), where)


class Table:
    """A source whose columns were recognised."""

    def __init__(self, source: Source, columns: Mapping[str, str], form: TableForm) -> None:
        self.source, self._form = source, form
        self._constants = {
            name if name.split(".")[0] in {*form.fields, form.answer} else f"meta.{name}": value
            for name, value in source.constants.items()
        }
        sample = [row.value for row in islice(source.rows({}), ROWS_LOOKED_AT)]
        names = list(dict.fromkeys(name for row in sample for name in row))
        self.names = names
        self._recognise(sample, fields_of(columns, form))
        self.is_long = self.recognition.is_long
        self.are_ids_guessed = "id" in self.recognition.columns
        has_ids = "id" in names or "id" in self._columns
        is_set_apart = any(f"meta.{name}" in self._constants for name in META_FIELDS)
        # A `meta` that somebody laid out is left as it is, unless the suite adds to it.
        self.may_hold_question_ids = has_ids and (self.recognition.is_flat or is_set_apart)

    def _recognise(self, sample: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> None:
        """Find what the columns hold, and whether conversations are among it."""
        form, where = self._form, str(self.source.path)
        mapped = {**columns, **dict.fromkeys(self._constants, "")}
        self.conversation = find_conversation(sample, mapped, form, where)
        names = self.names
        if self.conversation:
            columns = {f: c for f, c in columns.items() if c not in self.conversation.columns}
            names = [name for name in names if name not in self.conversation.columns]
            mapped = {**columns, **dict.fromkeys((*self._constants, *self.conversation.fields), "")}
        inner = dict.fromkeys(name for row in sample for name, _ in flattened(row) if "." in name)
        empty = [name for name in names if not any(is_given(row.get(name)) for row in sample)]
        self.recognition = recognise(names, mapped, form, where, inner=[*inner], empty=empty)
        spare = self.recognition.spare
        self.labels = [name for name in spare if any(_is_label(row.get(name)) for row in sample)]
        self._columns = {**columns, **self.recognition.columns}

    def column_of(self, field: str) -> str | None:
        """The column that a field is taken from; None where no row has one for it."""
        return self._columns.get(field, field if field in self.names else None)

    @property
    def unused(self) -> list[str]:
        """The columns that no field is taken from."""
        used = {*self._columns.values(), *self._form.fields}
        return [name for name in self.names if name not in used]

    @property
    def line(self) -> str:
        """What was understood of the columns, for people; empty where nothing was guessed."""
        meanings = self.conversation.meanings if self.conversation else {}
        fields = [f"{field} = {meaning}" for field, meaning in meanings.items()]
        return ", ".join(part for part in (*fields, self.recognition.line) if part)

    def rows(self) -> Iterator[tuple[int, Row]]:
        """The rows that hold anything, each with its number in the table."""
        for number, row in enumerate(self.source.rows(self._columns), 1):
            value = row.value
            if not _is_filled(value):
                continue
            if self.conversation:
                self.conversation.fill(value, row.where)
            for name, constant in self._constants.items():
                place(value, name, constant, row.where)
            if self.recognition.spare:
                self._keep_spare(value)
            # What is a text in a table of texts is none in JSON: the answer to a sum, a yes or no.
            answer = value.get(self._form.answer)
            if isinstance(answer, bool | int | float):
                value[self._form.answer] = as_text(answer)
            yield number, row

    def _keep_spare(self, value: dict[str, Any]) -> None:
        spare = {name: value[name] for name in self.recognition.spare if name in value}
        labels = {name: cell for name, cell in spare.items() if _is_label(cell)}
        if labels:
            value["meta"] = {**labels, **(value.get("meta") or {})}


def _is_filled(value: Mapping[str, Any]) -> bool:
    """Whether a row, or an object in it, holds anything: as a rule its first cell does."""
    for cell in value.values():
        if isinstance(cell, str):
            if cell:
                return True
        elif isinstance(cell, (dict, Mapping)):  # dict first: the abstract test is slow
            if _is_filled(cast("Mapping[str, Any]", cell)):
                return True
        elif cell is not None:
            return True
    return False


def _is_label(cell: object) -> bool:
    if isinstance(cell, str):
        return 0 < len(cell) <= META_CHARS
    return isinstance(cell, bool | int | float)


class Tables:
    """The tables of a run, to be read as rows of the contract, as often as is needed. No file is
    opened before the first row is."""

    def __init__(
        self,
        sources: Sequence[Source],
        columns: Mapping[str, str],
        form: TableForm,
        notify: Callable[[str], None],
        *,
        tells_columns: bool = True,
        use: Collection[str] = EXTRAS,
    ) -> None:
        """`use` is what the judge is shown beside the judged text: other such columns are told."""
        self._sources, self._columns = sources, columns
        self._tells_columns, self._use = tells_columns, use
        self._form, self._tell = form, _Once(notify)

    @cached_property
    def _tables(self) -> list[Table]:
        tables = [Table(source, self._columns, self._form) for source in self._sources]
        if self._tells_columns:
            self._tell_columns(tables)
        return tables

    def _tell_columns(self, tables: Sequence[Table]) -> None:
        files: dict[str, list[str]] = {}
        for table in tables:
            files.setdefault(table.line, []).append(table.source.path.name)
            for remark in table.recognition.remarks:
                self._tell(f"{table.source.path}: {remark}")
        for line, names in files.items():
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            if line:
                self._tell(f"Columns of {names[0]}{more}: {line}")

    def rows(self) -> Iterator[tuple[Path, Row]]:
        """Every row with its file, each called by an id of its own; raises DataError."""
        long = [table for table in self._tables if table.is_long]
        lengths, names = _Lengths(self._form), NamesAlike(self._form.several)
        unseen = _Unseen(self._use)
        for path, row in self._gathered(long) if long else ():
            names.add(row.value)
            unseen.add(row.value)
            yield path, row
        for remark in self._ids.remarks:
            self._tell(remark)
        for table, name_row in _calling(self._wide, self._form, self._ids.roles):
            for number, row in table.rows():
                name_row(row.value, number)
                lengths.add(row.value)
                names.add(row.value)
                unseen.add(row.value)
                yield table.source.path, row
        for remark in (*lengths.remarks, *names.remarks, *unseen.remarks):
            self._tell(remark)

    @property
    def _wide(self) -> list[Table]:
        """The tables whose rows are not gathered."""
        return [table for table in self._tables if not table.is_long]

    @cached_property
    def _ids(self) -> Ids:
        return ids_of(self._wide, self._form)

    def fault(self, error: RowError, where: str) -> DataError:
        """What to raise for a row at a place that cannot be read, in words of its table."""
        path = where.rpartition(":")[0]
        tables = (table for table in self._tables if str(table.source.path) == path)
        return fault_of(error, where, next(tables, None), self._form)

    def _gathered(self, tables: Sequence[Table]) -> Iterator[tuple[Path, Row]]:
        assert self._form.gather is not None
        answers = (PlacedRow(row.value, row.where) for table in tables for _, row in table.rows())
        path = tables[0].source.path
        try:
            gathered = self._form.gather(answers)
        except RowError as error:
            raise self.fault(error, error.where or str(path)) from None
        for remark in gathered.remarks:
            self._tell(remark)
        for value, where in gathered.rows:
            yield path, Row(value, where)


class _Once:
    """Tells each line once, however often the data are read."""

    def __init__(self, notify: Callable[[str], None]) -> None:
        self._notify, self._lines = notify, set[str]()

    def __call__(self, line: str) -> None:
        if line not in self._lines:
            self._lines.add(line)
            self._notify(line)


class _Lengths:
    """Answers that nobody may have meant to have judged: empty, or endless."""

    def __init__(self, form: TableForm) -> None:
        self._field, self._empty, self._long = form.answer, 0, 0

    def add(self, row: Mapping[str, Any]) -> None:
        answer = row.get(self._field)
        if isinstance(answer, str):
            self._empty += not answer.strip()
            self._long += len(answer) > ANSWER_CHARS

    @property
    def remarks(self) -> Iterator[str]:
        if self._empty:
            yield f"{_answers(self._empty)} empty, and judged as such"
        if self._long:
            yield f"{_answers(self._long)} longer than {ANSWER_CHARS:,} characters"


def extras_in(rows: Iterable[Mapping[str, Any]], form: TableForm) -> list[str]:
    """Return what rows hold that the judge should see beside the judged text. Messages among which
    the answer stands are a log, and would show a judge of pairs whose answer it is."""
    found: dict[str, None] = {}
    is_log = False
    for row in rows:
        found |= dict.fromkeys(name for name in EXTRAS if is_given(row.get(name)))
        is_log = is_log or _is_log(row, form)
    return [name for name in EXTRAS if name in found and not (name == "messages" and is_log)]


def _is_log(row: Mapping[str, Any], form: TableForm) -> bool:
    messages = row.get("messages")
    answers = [row.get(form.answer)]
    if isinstance(candidates := row.get(form.several), list):
        answers += [each.get("text") for each in candidates if isinstance(each, dict)]
    said = [
        message.get("content", message.get("value"))
        for message in (messages if isinstance(messages, list) else ())
        if isinstance(message, dict)
    ]
    return any(answer and answer in said for answer in answers)


class _Unseen:
    """What rows hold for the judge that the suite does not show."""

    def __init__(self, use: Collection[str]) -> None:
        self._use, self._found = use, dict.fromkeys(EXTRAS, False)

    def add(self, row: Mapping[str, Any]) -> None:
        for name, is_found in self._found.items():
            if not is_found and is_given(row.get(name)):
                self._found[name] = True

    @property
    def remarks(self) -> Iterator[str]:
        names = [name for name in EXTRAS if self._found[name] and name not in self._use]
        if names:
            use = ", ".join(quoted(name) for name in (*self._use, *names))
            them = "it" if len(names) == 1 else "them"
            yield (
                f"The judge does not see: {', '.join(names)}."
                f" To show {them}, say in the suite: use = [{use}]"
            )


def _answers(number: int) -> str:
    return "1 answer is" if number == 1 else f"{number} answers are"


NameRow = Callable[[dict[str, Any], int], None]
"""Gives a row, with its number, an id of its own where it has none."""


def _calling(
    tables: Sequence[Table], form: TableForm, roles: Sequence[str]
) -> Iterator[tuple[Table, NameRow]]:
    """Each table with what calls its rows."""
    # Rows that hold several answers are called by their question as it is.
    needs_question = form.gather is None and any(
        _are_alike(table, form, role) for table, role in zip(tables, roles, strict=True)
    )
    for table, role in zip(tables, roles, strict=True):
        yield table, _Naming(form, role, needs_question, table.recognition.is_flat)


class _Naming:
    """Calls the rows of one table, each differently."""

    def __init__(self, form: TableForm, ids: str, needs_question: bool, is_flat: bool) -> None:
        self._form, self._ids, self._is_flat = form, ids, is_flat
        self._needs_question = needs_question
        self._names: set[str] = set()

    def __call__(self, row: dict[str, Any], number: int) -> None:
        apply_role(row, self._ids)
        has_id = _has_id(row, self._form)
        # What somebody laid out as `meta` is left as it is where it need not be touched.
        if self._needs_question and (self._is_flat or not has_id):
            _add_question_id(row, self._form)
        if has_id:
            return
        form, name = self._form, self._form.id_of(row)
        ids = [name] if form.unit_ids is None else form.unit_ids(row)
        if not self._names.isdisjoint(ids):
            row[form.number] = name = f"{name}#{number}"
        self._names.update(ids)
        if form.gather is not None and name != question_hash(row.get(form.question)):
            _add_question_id(row, form)


def _add_question_id(row: dict[str, Any], form: TableForm) -> None:
    meta = row.get("meta") or {}
    question = question_hash(row.get(form.question))
    if isinstance(meta, dict) and meta.get("question_id") in (None, "") and question:
        row["meta"] = {**meta, "question_id": question}


def _are_alike(table: Table, form: TableForm, ids: str) -> bool:
    """Whether rows that are called by their meta fields would be called the same, now or with
    another row: the questions of a table that has no `meta` and tells none apart have their ids
    from the start."""
    first = next((row.value for _, row in table.rows()), {})
    if table.recognition.is_flat and first.get(form.topic) in (None, ""):
        return True
    return _do_names_repeat(table, form, ids)


def _do_names_repeat(table: Table, form: TableForm, ids: str) -> bool:
    """Whether rows without an id are called the same."""
    names: set[str] = set()
    for row in _nameless(table, form, ids):
        name = form.id_of(row)
        if name in names:
            return True
        names.add(name)
    return False


def _has_id(row: Mapping[str, Any], form: TableForm) -> bool:
    return any(row.get(name) not in (None, "") for name in form.ids)


def _nameless(table: Table, form: TableForm, ids: str) -> Iterator[dict[str, Any]]:
    """Rows that neither an id nor a question's id names, unless the first ones all have one."""
    are_all_named = True
    for number, (_, row) in enumerate(table.rows()):
        if are_all_named and number >= ROWS_LOOKED_AT:
            return
        apply_role(row.value, ids)
        meta = row.value.get("meta")
        question = meta.get("question_id") if isinstance(meta, dict) else None
        if not _has_id(row.value, form) and question in (None, ""):
            are_all_named = False
            yield row.value
