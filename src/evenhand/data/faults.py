"""What is wrong with a row of a table, in words of whoever made the table: the place, the column as
it is called there, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand.errors import DataError, quoted
from evenhand.kinds.rows import FieldError, MissingFieldError, RowError, TableForm

if TYPE_CHECKING:
    from evenhand.data.tables import Table


def fault_of(error: RowError, where: str, table: Table | None, form: TableForm) -> DataError:
    """What to raise for a row of a table, or of rows that are none, that cannot be read."""
    if table is None or not isinstance(error, FieldError):
        return DataError(str(error), where=where)
    column = table.column_of(error.field)
    advice = _advice(error, form)
    if not isinstance(error, MissingFieldError):
        what = f"{quoted(column or error.field)} {error.fault}"
    elif column is None:
        return DataError(error.among(table.names, table.unused), where=where)
    else:
        what = f"{quoted(column)} is missing in this row, and other rows have it"
    return DataError(what, where=where, advice=advice)


def _advice(error: FieldError, form: TableForm) -> str:
    if error.field == form.answer:
        return 'Write the answer as one text, "" where there is none, or take the row out.'
    return "Write the question, or take the row out." if error.field == form.question else ""
