"""Ids of rows: what the column `id` of tables holds (ids of rows, of questions, or numbers of
nothing), and an id for every row that has none.

Whatever an `id` is taken for, other than a row's own, is said in one line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from evenhand.errors import quoted
from evenhand.kinds.rows import TableForm
from evenhand.units import META_FIELDS, question_hash

if TYPE_CHECKING:
    from evenhand.data.tables import Table

Role = Literal["id", "question_id", "none"]


class IdRoles(NamedTuple):
    """The role of the column `id` in each table, and remarks on it for the user."""

    roles: Sequence[Role]
    remarks: Sequence[str] = ()


def find_roles(tables: Sequence[Table], form: TableForm) -> IdRoles:
    """Return what the ids of tables are. Those that repeat from file to file are the questions',
    where the meta fields tell all rows apart."""
    roles = [_role_of(table) for table in tables]
    # A row of several answers is called by its question alone: its meta fields do not help.
    may_share = form.gather is None and len(tables) > 1
    shared = _SharedIds(form.question) if may_share else None
    if shared is None or not shared.look_at(tables):
        return IdRoles(roles, list(_remarks(tables, roles)))
    files = [table.source.path.name for table in tables if table.may_hold_question_ids]
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    role: Role = "none" if shared.are_row_numbers else "question_id"
    changed = [
        role if table.may_hold_question_ids and alone == "id" else alone
        for table, alone in zip(tables, roles, strict=True)
    ]
    return IdRoles(changed, [f"The ids of {files[0]}{more} {shared.remark}"])


def _remarks(tables: Sequence[Table], roles: Sequence[Role]) -> Iterator[str]:
    for table, role in zip(tables, roles, strict=True):
        name = table.source.path.name
        if role == "question_id":
            yield (
                f"The ids of {name} are those of questions (meta.question_id), for they repeat"
                " from answer to answer"
            )
        elif role == "none":
            column = quoted(table.column_of("id"))
            yield f"{column} of {name} names no rows, for it repeats where nothing else differs"


def _role_of(table: Table) -> Role:
    """Return what a table's column `id` holds: ids of rows; where they repeat and rows differ in
    their meta fields, ids of questions; nothing, where they repeat and the name was a guess."""
    if not table.may_hold_question_ids:
        return "id"
    wholes = [_whole_id(row.value) for _, row in table.rows]
    if len(set(wholes)) < len(wholes):
        return "none" if table.are_ids_guessed else "id"
    return "question_id" if len({ident for ident, *_ in wholes}) < len(wholes) else "id"


def _whole_id(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the id of a row with the meta fields."""
    meta = row.get("meta")
    fields = meta if isinstance(meta, dict) else {}
    return (str(row.get("id")), *(str(fields.get(name)) for name in META_FIELDS))


class _SharedIds:
    """Ids that stand in several tables."""

    def __init__(self, question: str) -> None:
        self._question = question
        self._repeated: set[str] = set()
        self._reworded: set[str] = set()
        self.are_row_numbers = False
        """True if a question has one id here and another one there."""

    def look_at(self, tables: Sequence[Table]) -> bool:
        """Return True if ids stand in two tables whose rows the meta fields tell apart."""
        wholes: set[tuple[str, ...]] = set()
        hashes: dict[str, str] = {}
        for table in tables:
            own = {_whole_id(row.value) for _, row in table.rows}
            if not table.may_hold_question_ids or len(own) < len(table.rows):
                continue
            if not wholes.isdisjoint(own):
                return False
            wholes |= own
            own_hashes = {
                str(row.value.get("id")): question_hash(row.value.get(self._question))
                for _, row in table.rows
                if row.value.get("id") not in (None, "")
            }
            questions = set(hashes.values())
            for ident in own_hashes.keys() & hashes.keys():
                self._repeated.add(ident)
                if own_hashes[ident] != hashes[ident]:
                    self._reworded.add(ident)
                    self.are_row_numbers |= own_hashes[ident] in questions
            hashes.update(own_hashes)
        return bool(self._repeated)

    @property
    def remark(self) -> str:
        """Return the end of a sentence that says what the ids are taken for."""
        if self.are_row_numbers:
            return "number rows, not questions: questions are told apart by their texts"
        differing = f"; {len(self._reworded)} of {len(self._repeated)} have another text there"
        return "are those of questions (meta.question_id), for they repeat from file to file" + (
            differing if self._reworded else ""
        )


def name_rows(tables: Sequence[Table], form: TableForm, roles: Sequence[Role]) -> None:
    """Give every row of these tables an id of its own, in place."""
    for table, role in zip(tables, roles, strict=True):
        for _, row in table.rows:
            _apply_role(row.value, role)
    # Rows that hold several answers are called by their question as it is.
    needs_question = form.gather is None and any(_are_alike(table, form) for table in tables)
    for table in tables:
        names: set[str] = set()
        for number, row in table.rows:
            value, has_id = row.value, _has_id(row.value, form)
            # A `meta` that somebody laid out is left as it is where it need not be touched.
            if needs_question and (table.recognition.is_flat or not has_id):
                _add_question_id(value, form)
            if has_id:
                continue
            name = form.id_of(value)
            ids = [name] if form.unit_ids is None else form.unit_ids(value)
            if not names.isdisjoint(ids):
                value[form.number] = name = f"{name}#{number}"
            names.update(ids)
            if form.gather is not None and name != question_hash(value.get(form.question)):
                _add_question_id(value, form)


def _apply_role(row: dict[str, Any], role: Role) -> None:
    """Put the id of a row where its role says."""
    if role == "id":
        return
    ident, meta = row.pop("id", None), row.get("meta") or {}
    if role == "question_id" and ident not in (None, "") and isinstance(meta, dict):
        row["meta"] = {"question_id": ident, **meta}


def _add_question_id(row: dict[str, Any], form: TableForm) -> None:
    meta = row.get("meta") or {}
    question = question_hash(row.get(form.question))
    if isinstance(meta, dict) and meta.get("question_id") in (None, "") and question:
        row["meta"] = {**meta, "question_id": question}


def _are_alike(table: Table, form: TableForm) -> bool:
    """Return True if rows that are called by their meta fields would be called the same, now or
    with another row: the questions of a table that has no `meta` and tells none apart have their
    ids from the start."""
    if not table.rows:
        return False
    if table.recognition.is_flat and table.rows[0][1].value.get(form.topic) in (None, ""):
        return True
    names = [form.id_of(row.value) for _, row in table.rows if _is_nameless(row.value, form)]
    return len(set(names)) < len(names)


def _is_nameless(row: Mapping[str, Any], form: TableForm) -> bool:
    meta = row.get("meta")
    question = meta.get("question_id") if isinstance(meta, dict) else None
    return not _has_id(row, form) and question in (None, "")


def _has_id(row: Mapping[str, Any], form: TableForm) -> bool:
    return any(row.get(name) not in (None, "") for name in form.ids)
