"""Which column of a table holds what, by the usual names of columns.

A field that stands there under its own name is left alone. Where two columns would fit a field that
is needed, nothing is guessed: the error lists all columns.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from evenhand.data import usual
from evenhand.errors import DataError, nearest, quoted
from evenhand.kinds.shared.table_form import TableForm

COLUMNS_LISTED = 20
_NEAR = 0.8


class Recognition(NamedTuple):
    """What was understood of a table's columns."""

    columns: Mapping[str, str]
    """Field to column, for fields that do not stand there under their own name."""
    spare: tuple[str, ...]
    """Columns of a flat table that no field takes: they are kept as meta."""
    remarks: tuple[str, ...]
    """Columns that somebody may have meant otherwise."""
    is_long: bool
    """Whether the rows of one question are to be gathered."""
    is_flat: bool
    """Whether the table has no `meta` of its own."""

    @property
    def line(self) -> str:
        """What was guessed, for people; empty where nothing was."""
        return ", ".join(f"{field} = {quoted(name)}" for field, name in self.columns.items())


class _Role(NamedTuple):
    """A field, and what the column that holds it is usually called."""

    field: str
    names: tuple[str, ...]
    is_needed: bool = False
    """Whether a second column that would fit is an error."""


def recognise(
    names: Sequence[str], mapped: Mapping[str, str], form: TableForm, where: str
) -> Recognition:
    """What the columns of a table hold. `mapped` are the fields that the user has named, each with
    its column, or an empty name where it is a constant. Raises DataError."""
    is_flat = "meta" not in names
    is_long = is_long_table(names, mapped, form)
    claimed = set(mapped.values())
    columns: dict[str, str] = {}
    for role in _roles(form, is_flat=is_flat, is_long=is_long):
        fits = _fitting(role, names, mapped, claimed, is_strict=is_long and role.is_needed)
        if len(fits) == 1 and fits[0] != role.field:
            columns[role.field] = fits[0]
        elif len(fits) > 1 and role.is_needed:
            raise _which(role.field, fits, names, where)
        claimed.update(fits if len(fits) == 1 else ())
    spare = [name for name in names if is_flat and name not in claimed and name not in form.fields]
    return Recognition(
        columns, tuple(spare), _remarks(spare, names, columns, form), is_long, is_flat
    )


def is_long_table(names: Sequence[str], mapped: Mapping[str, str], form: TableForm) -> bool:
    """Whether a table has one row per answer, where the kind's own rows hold several."""
    fields = {*names, *(field.partition(".")[0] for field in mapped)}
    return form.gather is not None and form.several not in fields


def _roles(form: TableForm, *, is_flat: bool, is_long: bool) -> list[_Role]:
    roles = [_Role(form.question, usual.QUESTION, is_needed=True)]
    if form.gather is None or is_long:
        roles.append(_Role(form.answer, usual.ANSWER, is_needed=True))
    if is_flat:
        roles += [
            _Role("meta.model", usual.MODEL, is_needed=True),
            _Role("meta.prompt_variant", usual.VARIANT),
            _Role("meta.question_id", usual.QUESTION_ID),
            _Role("meta.run_id", usual.RUN_ID),
            _Role("meta.eval_set_variant", usual.EVAL_SET),
            _Role("id", usual.IDENT),
        ]
    more = {
        "reference": usual.REFERENCE,
        "context": usual.CONTEXT,
        "rubric": usual.RUBRIC,
        "language": usual.LANGUAGE,
        "task_name": usual.TASK_NAME,
    }
    return roles + [_Role(field, more[field]) for field in more if field in form.fields]


def _fitting(
    role: _Role,
    names: Sequence[str],
    mapped: Mapping[str, str],
    claimed: Collection[str],
    *,
    is_strict: bool,
) -> list[str]:
    """The columns that may hold a field: the one of its own name alone, unless strict."""
    if role.field in mapped:
        return []
    plain = role.field.removeprefix("meta.")
    free = [name for name in names if name not in claimed]
    if plain in free and not is_strict:
        return [plain]
    exact = [name for name in free if usual.folded(name) == usual.folded(plain)]
    if len(exact) == 1 and not is_strict:
        return exact
    usual_names = set(map(usual.folded, role.names)) | {usual.folded(plain)}
    return [name for name in free if usual.folded(name) in usual_names]


def _which(field: str, fits: Sequence[str], names: Sequence[str], where: str) -> DataError:
    listed = ", ".join(quoted(name) for name in names[:COLUMNS_LISTED])
    more = f" and {len(names) - COLUMNS_LISTED} more" if len(names) > COLUMNS_LISTED else ""
    return DataError(
        f"{' and '.join(quoted(name) for name in fits)} would each fit as {quoted(field)}",
        where=where,
        advice=f'Say which: [columns] {field} = "{fits[0]}"  (the columns: {listed}{more})',
    )


def _remarks(
    spare: Sequence[str], names: Sequence[str], columns: Mapping[str, str], form: TableForm
) -> tuple[str, ...]:
    """Columns that are not used and are called nearly like a field."""
    remarks: list[str] = []
    for name in spare:
        field = nearest(usual.folded(name), form.fields, cutoff=_NEAR)
        if field is None or field in ("meta", "id"):
            continue
        is_there = field in names or field in columns
        beside = columns.get(field, field)
        remarks.append(
            f"the column {quoted(name)} is not used, {quoted(beside)} is"
            if is_there
            else f"the column {quoted(name)} is not used; did you mean {quoted(field)}?"
            f' Then say: [columns] {field} = "{name}"'
        )
    return tuple(remarks)
