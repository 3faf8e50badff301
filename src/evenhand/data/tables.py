"""Tables as their users have them, turned into rows of the contract.

Columns are found by their usual names, constants of a file are filled in, a question file is
joined, rows without ids are called by what identifies them. What was understood is said once;
nothing is guessed silently.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, cast

from evenhand.data.agent_logs import read_table
from evenhand.data.columns import (
    Row,
    Rows,
    copy_fields,
    require_parts,
    require_sources,
    set_field,
)
from evenhand.data.conversation import SYSTEM, find_conversation, parse_text, text_columns
from evenhand.data.files import LISTED
from evenhand.data.ids import name_rows
from evenhand.data.read import read_rows
from evenhand.data.recognise import fields_of, fold, recognise, usual_names
from evenhand.errors import DataError, quote
from evenhand.jsontext import as_text
from evenhand.kinds.masking import family
from evenhand.kinds.messages import fill_question, holds_messages
from evenhand.kinds.rows import (
    EXTRAS,
    FieldError,
    MissingFieldError,
    RowError,
    TableForm,
    is_given,
)
from evenhand.units import META_FIELDS
from evenhand.words import Code, Sentence, few

ROWS_LOOKED_AT = 200
"""How far columns are looked for: rows of JSON need not all have the same."""
META_CHARS = 200
"""A longer text is no label of a row, and is not kept as meta."""
ANSWER_CHARS = 100_000
"""A longer answer is warned about."""


@dataclass(frozen=True, kw_only=True)
class TableSource:
    """A data file, read when its rows are first asked for; what is true of all its rows, and the
    folder that it must lie in."""

    path: Path
    root: Path | None = None
    constants: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Field to value; a field that is none of the contract's belongs to `meta`."""
    encoding: str | None = None
    sheet: str | None = None
    memory: Rows | None = None
    """Rows that no file holds; `path` is then what errors call them."""
    join: QuestionFile | None = None

    @cached_property
    def table(self) -> Rows:
        """Return the rows as they are; raise UsageError or DataError."""
        return self._read[0]

    @property
    def remarks(self) -> Sequence[str]:
        """Return what is to be told of the file where it is the log of another tool."""
        return self._read[1]

    @cached_property
    def _read(self) -> tuple[Rows, Sequence[str]]:
        if self.memory is not None:
            return self.memory, ()
        return read_table(self.path, self.root, encoding=self.encoding, sheet=self.sheet)

    def _join(self) -> Iterator[Row]:
        for row in self.table:
            if self.join is not None:
                self.join.add_columns(row.value)
            yield row

    @cached_property
    def sample(self) -> list[dict[str, Any]]:
        """Return the first rows, with the columns of the question file."""
        return [row.value for row in islice(self._join(), ROWS_LOOKED_AT)]

    def rows(self, columns: Mapping[str, str]) -> list[Row]:
        """Return its rows with these columns copied to fields; raises DataError."""
        rows = list(self._join())
        require_sources(columns, (row.value for row in rows), self.table.name)
        if columns:
            for row in rows:
                copy_fields(row.value, columns, row.where)
        return rows


class QuestionFile:
    """A second table whose columns are added to the rows of the first, joined by the columns that
    both have, else by the question's id."""

    def __init__(self, path: Path, root: Path | None = None) -> None:
        self.path = path
        self._rows = list(read_rows(path, root=root).values())
        self._names = list(dict.fromkeys(name for row in self._rows for name in row))
        self._indexes: dict[tuple[str, ...], dict[tuple[str, ...], dict[str, Any]]] = {}
        """By columns of the data that join, what this table says of their values."""

    def add_columns(self, row: dict[str, Any]) -> None:
        """Add what this table says of a row, in place; raises DataError."""
        own, theirs = self._keys(row)
        if own not in self._indexes:
            self._indexes[own] = self._index(theirs)
        further = self._indexes[own].get(tuple(_text(row.get(name)) for name in own), {})
        row |= {name: value for name, value in further.items() if row.get(name) in (None, "")}

    def _keys(self, row: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the columns of a row, and of this table, that are to hold the same."""
        shared = tuple(name for name in self._names if name in row)
        if shared:
            return shared, shared
        ids = usual_names("question_id", "ident")
        own, theirs = (tuple(n for n in names if fold(n) in ids) for names in (row, self._names))
        if len(own) == len(theirs) == 1:
            return own, theirs
        raise DataError(
            Sentence(
                "data.no_shared_column",
                file=self.path.name,
                names=few(self._names, LISTED),
                columns=few([*row], LISTED),
            )
        )

    def _index(self, names: tuple[str, ...]) -> dict[tuple[str, ...], dict[str, Any]]:
        index: dict[tuple[str, ...], dict[str, Any]] = {}
        for row in self._rows:
            key = tuple(_text(row.get(name)) for name in names)
            further = {name: value for name, value in row.items() if name not in names}
            if index.setdefault(key, further) != further:
                raise DataError(
                    Sentence("data.same_key", names=few(names, LISTED), values=few(key, LISTED)),
                    where=str(self.path),
                )
        return index


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else as_text(value)


class DataTable:
    """A source whose columns were recognised."""

    def __init__(self, source: TableSource, columns: Mapping[str, str], form: TableForm) -> None:
        self.source, self._form, self.name = source, form, source.path.name
        where = str(source.path)
        self._constants = {
            name if name.split(".")[0] in {*form.fields, form.answer} else f"meta.{name}": value
            for name, value in source.constants.items()
        }
        for name in self._constants:
            require_parts(name, where)
        columns = fields_of(columns, form)
        self._texts = text_columns(source.sample, columns, form)
        sample = [self._parse_texts(dict(row)) for row in source.sample]
        self.names = names = list(dict.fromkeys(name for row in sample for name in row))
        given = dict.fromkeys(self._constants, "")
        self.conversation = find_conversation(sample, {**columns, **given}, form, where)
        if self.conversation:
            taken = self.conversation.column
            columns = {field: column for field, column in columns.items() if column != taken}
            names = [name for name in names if name != taken]
            given |= dict.fromkeys(self.conversation.fields, "")
        empty = [name for name in names if not any(is_given(row.get(name)) for row in sample)]
        self.recognition = recognise(names, {**columns, **given}, form, where, empty)
        self._columns = {**columns, **self.recognition.columns}
        self._texts += [field for field, name in self._columns.items() if name in self._texts]
        spare = self.recognition.spare
        self.labels = [name for name in spare if any(_is_label(row.get(name)) for row in sample)]
        self.are_ids_guessed = "id" in self.recognition.columns
        # A `meta` that somebody laid out is left as it is, unless the suite adds to it.
        is_set_apart = any(f"meta.{name}" in self._constants for name in META_FIELDS)
        self.may_hold_question_ids = bool({"id"} & {*self.names, *self._columns}) and (
            self.recognition.is_flat or is_set_apart
        )

    def column_of(self, field: str) -> str | None:
        """Return the column that a field is taken from; None where no row has one for it."""
        if self.recognition.is_pair:
            for number, each in enumerate(self.recognition.answers, 1):
                if field == f"{self._form.several}.{number}.text":
                    return each.column
        return self._columns.get(field, field if field in self.names else None)

    @property
    def meanings(self) -> Iterator[str]:
        """Yield what was guessed of the columns, for people."""
        if self.conversation:
            meaning = self.conversation.meaning
            yield Sentence("data.field_is", field=Code("messages"), meaning=meaning)
            if self.conversation.has_system:
                meaning = Sentence("data.first_turn")
                yield Sentence("data.field_is", field=Code(SYSTEM), meaning=meaning)
        columns, answers = self.recognition.columns, self.recognition.answers
        if columns:
            yield Code(", ".join(f"{name} = {quote(column)}" for name, column in columns.items()))
        if answers:
            key = "data.pair_in_row" if self.recognition.is_pair else "data.answer_in_each"
            yield Sentence(key, columns=few([each.column for each in answers], LISTED))

    @cached_property
    def rows(self) -> list[tuple[int, Row]]:
        """Return the rows that hold anything, as rows of the contract, each with its number in the
        table."""
        found: list[tuple[int, Row]] = []
        for number, (value, where) in enumerate(self.source.rows(self._columns), 1):
            if not _is_filled(value):
                continue
            self._parse_texts(value)
            if self.conversation:
                self.conversation.fill(value, where)
            elif self._form.several in value:
                self._fill_topic(value, where)
            if self.recognition.spare:
                self._keep_spare(value)
            for part in self._split(value):
                for name, constant in self._constants.items():
                    set_field(part, name, constant, where)
                # A sum, yes or no: a text in a table of texts, and none in JSON.
                answer = part.get(self._form.answer)
                if isinstance(answer, bool | int | float):
                    part[self._form.answer] = as_text(answer)
                found.append((number, Row(part, where)))
        return found

    def _parse_texts(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return a row, in which the conversations that are texts are read in place."""
        row |= {name: parse_text(row[name]) for name in self._texts if name in row}
        return row

    def _fill_topic(self, value: dict[str, Any], where: str) -> None:
        """Fill in the topic of candidates that are conversations; raise DataError."""
        try:
            fill_question(value, self._form.question, self._form.answer, self._form.several)
        except RowError as error:
            raise DataError(error.args[0], where=where) from None

    def _keep_spare(self, value: dict[str, Any]) -> None:
        spare = {name: value.get(name) for name in self.recognition.spare}
        labels = {name: cell for name, cell in spare.items() if _is_label(cell)}
        if labels:
            value["meta"] = {**labels, **(value.get("meta") or {})}

    def _split(self, value: dict[str, Any]) -> list[dict[str, Any]]:
        """Return a row per answer, of a row that holds several; a pair stays one row."""
        answers = self.recognition.answers
        if not answers:
            return [value]
        taken = {name for each in answers for name in (each.column, each.author)}
        rest = {name: cell for name, cell in value.items() if name not in taken}
        authors = [_text(value.get(each.author) or each.label) for each in answers]
        texts = [value.get(each.column) for each in answers]
        if self.recognition.is_pair:
            if authors[0] == authors[1]:
                authors = [f"{author} ({number})" for number, author in enumerate(authors, 1)]
            pair = [{"id": a, "text": text} for a, text in zip(authors, texts, strict=True)]
            return [{**rest, self._form.several: pair}]
        are_models = any(each.author or family(each.label) for each in answers)
        name, meta = "model" if are_models else "prompt_variant", rest.get("meta") or {}
        return [
            {**rest, self._form.answer: text, "meta": {**meta, name: author}}
            for author, text in zip(authors, texts, strict=True)
        ]


def _is_filled(value: Mapping[str, Any]) -> bool:
    """Return True if a row, or an object in it, holds anything: as a rule its first cell does."""
    return any(
        _is_filled(cast("dict[str, Any]", cell))
        if isinstance(cell, dict)
        else cell not in (None, "")
        for cell in value.values()
    )


def _is_label(cell: object) -> bool:
    if isinstance(cell, str):
        return 0 < len(cell) <= META_CHARS
    return isinstance(cell, bool | int | float)


class Tables:
    """The tables of a run, to be read as rows of the contract. No file is opened before the first
    row is asked for."""

    def __init__(
        self,
        sources: Sequence[TableSource],
        columns: Mapping[str, str],
        form: TableForm,
        notify: Callable[[str], None],
        *,
        tells_columns: bool = True,
        use: Collection[str] = EXTRAS,
    ) -> None:
        """`use` is what the judge is shown beside the judged text: other such columns are named."""
        self._sources, self._columns, self._form = sources, columns, form
        self._tells_columns, self._use, self._notify = tells_columns, use, notify

    @cached_property
    def _tables(self) -> list[DataTable]:
        tables = [DataTable(source, self._columns, self._form) for source in self._sources]
        for remark in chain.from_iterable(source.remarks for source in self._sources):
            self._notify(remark)
        files: dict[str, list[str]] = {}
        for table in tables:
            for meaning in table.meanings if self._tells_columns else ():
                files.setdefault(meaning, []).append(table.name)
        for meaning, names in files.items():
            self._notify(Sentence("data.columns", files=few(names, 1), meaning=meaning))
        return tables

    @cached_property
    def rows(self) -> list[tuple[Path, Row]]:
        """Return every row with its file, each called by an id of its own; raise DataError."""
        long = [table for table in self._tables if table.recognition.is_long]
        wide = [table for table in self._tables if not table.recognition.is_long]
        found = self._gather(long) if long else []
        remarks = name_rows(wide, self._form)
        own = [(table.source.path, row) for table in wide for _, row in table.rows]
        found += own
        remarks += _length_remarks(row.value.get(self._form.answer) for _, row in own)
        remarks += _find_unseen([row.value for _, row in found], self._use, self._form)
        for remark in remarks:
            self._notify(remark)
        return found

    def _gather(self, tables: Sequence[DataTable]) -> list[tuple[Path, Row]]:
        assert self._form.gather is not None
        path = tables[0].source.path
        try:
            gathered = self._form.gather(row for table in tables for _, row in table.rows)
        except RowError as error:
            raise self.row_error(error, error.where or str(path)) from None
        for remark in gathered.remarks:
            self._notify(remark)
        return [(path, row) for row in gathered.rows]

    def row_error(self, error: RowError, where: str) -> DataError:
        """Return what to raise for a row at a place that cannot be read, in words of its table."""
        path = where.rpartition(":")[0]
        table = next((one for one in self._tables if str(one.source.path) == path), None)
        if table is None or not isinstance(error, FieldError):
            return DataError(error.args[0], where=where)
        column = table.column_of(error.field)
        what = error.message(column or error.field)
        if isinstance(error, MissingFieldError):
            if column is None:
                return DataError(MissingFieldError(error.field, table.names).args[0], where=where)
            what = Sentence("data.missing_in_row", column=column)
        return DataError(what, where=where, advice=Sentence("data.one_text"))


def _length_remarks(answers: Iterable[object]) -> Iterator[str]:
    """Name answers that nobody may have meant to have judged: empty, or endless."""
    texts = [answer for answer in answers if isinstance(answer, str)]
    if empty := sum(not text.strip() for text in texts):
        yield Sentence("data.empty_answers", n=empty)
    if long := sum(len(text) > ANSWER_CHARS for text in texts):
        yield Sentence("data.long_answers", n=long, characters=ANSWER_CHARS)


def _find_unseen(
    rows: Sequence[Mapping[str, Any]], use: Collection[str], form: TableForm
) -> Iterator[str]:
    """Name what rows hold for the judge that the suite does not show."""
    held = _extras_held(rows, form)
    names = [name for name in EXTRAS if name in held and name not in use]
    if names:
        shown = ", ".join(map(quote, (*use, *names)))
        yield Sentence("data.unseen", names=few(names, LISTED), use=Code(f"use = [{shown}]"))


def extras_in(rows: Sequence[Mapping[str, Any]], form: TableForm) -> list[str]:
    """Return what rows hold that the judge should see beside the judged text: messages not where
    the answer stands among them."""
    found = _extras_held(rows, form)
    if any(_is_among(row.get(form.answer), row.get("messages")) for row in rows):
        found.discard("messages")
    return [name for name in EXTRAS if name in found]


def _extras_held(rows: Sequence[Mapping[str, Any]], form: TableForm) -> set[str]:
    """Return what rows hold beside the judged text: no messages that are judged themselves."""
    return {
        name
        for row in rows
        for name in EXTRAS
        if is_given(row.get(name))
        and (name != "messages" or form.several in row or not holds_messages(row, form.answer))
    }


def _is_among(answer: object, messages: object) -> bool:
    said = [one for one in messages if isinstance(one, dict)] if isinstance(messages, list) else []
    return any(one.get("content", one.get("value")) == answer for one in said)
