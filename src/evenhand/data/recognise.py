"""Which column of a table holds what, by the usual names of columns.

A field that stands there under its own name is left alone. Where two columns would fit a field that
is needed, nothing is guessed: the error lists all columns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from evenhand.data import usual
from evenhand.errors import DataError, nearest, quoted
from evenhand.kinds.rows import EXTRAS, TableForm
from evenhand.units import META_FIELDS

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


def fields_of(columns: Mapping[str, str], form: TableForm) -> dict[str, str]:
    """The columns that somebody named, by the fields of a kind: `model` is `meta.model`, `question`
    and `answer` are what the kind calls them."""
    names = {name: f"meta.{name}" for name in META_FIELDS}
    names |= {"variant": "meta.prompt_variant", "question": form.question, "answer": form.answer}
    # A field that was named itself is not filled from a second column.
    aliases = {name: field for name, field in names.items() if field not in columns}
    return {
        name if name in form.fields else aliases.get(name, name): column
        for name, column in columns.items()
    }


def answer_columns(names: Sequence[str]) -> list[str]:
    """The columns that are called like answers with more beside it, as `claude answer` is."""
    usual_names = set(map(usual.folded, usual.ANSWER))
    return [name for name in names if usual.is_longer_form(name, usual_names)]


class _Role(NamedTuple):
    """A field, and what the column that holds it is usually called."""

    field: str
    names: tuple[str, ...]
    is_needed: bool = False
    """Whether a second column that would fit is an error."""


def recognise(
    names: Sequence[str],
    mapped: Mapping[str, str],
    form: TableForm,
    where: str,
    *,
    inner: Sequence[str] = (),
    empty: Collection[str] = (),
) -> Recognition:
    """What the columns of a table hold. `mapped` are the fields that the user has named, each with
    its column, or an empty name where it is a constant; `inner` are dotted names inside objects,
    `empty` the columns without a value. Raises DataError."""
    is_flat = "meta" not in names
    is_long = is_long_table(names, mapped, form)
    claimed = set(mapped.values())
    columns: dict[str, str] = {}
    roles = _roles(form, is_flat=is_flat, is_long=is_long)
    for role in roles:
        is_extra = role.field in EXTRAS
        is_strict = is_extra or (is_long and role.is_needed)
        fits = _fitting(role, names, mapped, claimed, is_strict=is_strict)
        # Nobody is asked which context is meant: one is taken, and the others are told.
        fits = _first_filled(role, fits, empty) if is_extra else fits
        if len(fits) == 1 and fits[0] != role.field:
            columns[role.field] = fits[0]
        elif len(fits) > 1 and role.is_needed:
            raise _which(role.field, fits, names, where)
        claimed.update(fits if len(fits) == 1 else ())
    used = {*form.fields, *claimed, *(name.partition(".")[0] for name in claimed)}
    spare = [name for name in names if name not in used]
    # Beside a `meta` of its own a row is the contract's, and its other columns are nobody's texts.
    meanings = _meanings(roles if is_flat else (), form)
    guesses = _near(spare, meanings, mapped)
    whole = {*form.fields, *claimed} - {"meta"}
    within = [name for name in inner if name.partition(".")[0] not in whole]
    guesses |= _extras_among(name for name in (*spare, *within) if name not in {*claimed, *empty})
    remarks = _remarks(guesses, names, {**mapped, **columns})
    return Recognition(columns, tuple(spare) if is_flat else (), remarks, is_long, is_flat)


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
        "messages": usual.MESSAGES,
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
    fits = [name for name in free if usual.folded(name) in usual_names]
    if fits or not role.is_needed:
        return fits
    # Only where one alone is a longer form of a usual name: what two may be is not guessed at.
    longer = [name for name in free if usual.is_longer_form(name, usual_names)]
    return longer if len(longer) == 1 else []


def _first_filled(role: _Role, fits: Sequence[str], empty: Collection[str]) -> list[str]:
    """Return the column with the most usual name of those that hold anything."""
    order = list(map(usual.folded, role.names))
    ranked = sorted(fits, key=lambda name: order.index(usual.folded(name)))
    return ([name for name in ranked if name not in empty] or ranked)[:1]


def _which(field: str, fits: Sequence[str], names: Sequence[str], where: str) -> DataError:
    listed = ", ".join(quoted(name) for name in names[:COLUMNS_LISTED])
    more = f" and {len(names) - COLUMNS_LISTED} more" if len(names) > COLUMNS_LISTED else ""
    return DataError(
        f"{' and '.join(quoted(name) for name in fits)} would each fit as {quoted(field)}",
        where=where,
        advice=f'Say which: [columns] {field} = "{fits[0]}" in the suite, or init --map'
        f" {field}={fits[0]}  (the columns: {listed}{more})",
    )


def _meanings(roles: Sequence[_Role], form: TableForm) -> dict[str, str]:
    """By what a column may be called, which field it is: the fields themselves, and the usual names
    of the question and the answer."""
    texts = (form.question, form.answer)
    usual_names = {name: role.field for role in roles if role.field in texts for name in role.names}
    return usual_names | {field: field for field in form.fields if field not in ("meta", "id")}


_Guess = tuple[str, str]
"""What a column may be called, and the field of that name."""


def _near(
    spare: Sequence[str], meanings: Mapping[str, str], mapped: Collection[str]
) -> dict[str, _Guess]:
    """Return the columns that are called nearly like a field, or as one is usually called; none of
    a field that the user has named a column for."""
    near = {name: nearest(usual.folded(name), meanings, cutoff=_NEAR) for name in spare}
    return {
        name: (guess, meanings[guess])
        for name, guess in near.items()
        if guess is not None and meanings[guess] not in mapped
    }


def _extras_among(names: Iterable[str]) -> dict[str, _Guess]:
    """Return the columns, also inside objects, that hold what a judge may be shown."""
    usual_names = zip(EXTRAS, (usual.REFERENCE, usual.CONTEXT, usual.MESSAGES), strict=True)
    fields = {usual.folded(name): field for field, called in usual_names for name in called}
    plain = {name: usual.folded(name.rpartition(".")[2]) for name in names}
    return {name: (fields[last],) * 2 for name, last in plain.items() if last in fields}


def _remarks(
    guesses: Mapping[str, _Guess], names: Sequence[str], columns: Mapping[str, str]
) -> tuple[str, ...]:
    """Return a line for each column that is not used and may have been meant."""
    remarks: list[str] = []
    for name, (near, field) in guesses.items():
        is_there = field in names or field in columns
        beside = columns.get(field) or field
        remarks.append(
            f"the column {quoted(name)} is not used, {quoted(beside)} is"
            if is_there
            else f"the column {quoted(name)} is not used; did you mean {quoted(near)}?"
            f' Then say: [columns] {field} = "{name}"'
        )
    return tuple(remarks)
