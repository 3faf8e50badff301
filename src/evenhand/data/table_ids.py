"""What the column `id` of tables holds: ids of rows, ids of questions, or numbers of nothing.

What is taken for something else than a row's own id is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from evenhand.errors import quoted
from evenhand.kinds.rows import TableForm
from evenhand.units import META_FIELDS, question_hash

if TYPE_CHECKING:
    from evenhand.data.tables import Table


def apply_role(row: dict[str, Any], ids: str) -> None:
    """Put the id of a row where its role says."""
    if ids == "id":
        return
    ident, meta = row.pop("id", None), row.get("meta") or {}
    if ids == "question_id" and ident not in (None, "") and isinstance(meta, dict):
        row["meta"] = {"question_id": ident, **meta}


class Ids(NamedTuple):
    """What the column `id` of each table holds, and what is to be told of it."""

    roles: Sequence[str]
    remarks: Sequence[str] = ()


def ids_of(tables: Sequence[Table], form: TableForm) -> Ids:
    """What the ids of tables are. Those that repeat from file to file are the questions', where
    the meta fields tell all rows apart."""
    # A row of several answers is called by its question alone: its meta fields do not help.
    may_share = form.gather is None and len(tables) > 1
    shared = _SharedIds(form.question) if may_share else None
    roles = [_role_of_ids(table, shared) for table in tables]
    if shared is None or not shared.are_repeated:
        return Ids(roles, list(_remarks(tables, roles)))
    files = [table.source.path.name for table in tables if table.may_hold_question_ids]
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    role = "none" if shared.are_row_numbers else "question_id"
    changed = [
        role if table.may_hold_question_ids and alone == "id" else alone
        for table, alone in zip(tables, roles, strict=True)
    ]
    return Ids(changed, [f"The ids of {files[0]}{more} {shared.remark}"])


def _remarks(tables: Sequence[Table], roles: Sequence[str]) -> Iterator[str]:
    """What is told of tables whose ids are not their rows'."""
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


class _SharedIds:
    """The ids of several tables, each with the hash of its question."""

    def __init__(self, question: str) -> None:
        self._question = question
        self._hashes: dict[str, str] = {}
        self._questions: set[str] = set()
        self._wholes: set[tuple[str, ...]] = set()
        self._repeated: set[str] = set()
        self._reworded: set[str] = set()
        self._do_wholes_repeat = False
        self.are_row_numbers = False
        """Whether a question has one id here and another one there."""

    def hash_of(self, row: Mapping[str, Any]) -> str:
        """What the question of a row is told apart by."""
        return question_hash(row.get(self._question))

    def add(self, wholes: set[tuple[str, ...]], hashes: Mapping[str, str]) -> None:
        """Take in a table: its ids with the meta fields, and by id the hash of its question, empty
        where the id is."""
        self._do_wholes_repeat |= not self._wholes.isdisjoint(wholes)
        self._wholes |= wholes
        for ident in hashes.keys() & self._hashes.keys():
            if not hashes[ident]:
                continue
            self._repeated.add(ident)
            if hashes[ident] != self._hashes[ident]:
                self._reworded.add(ident)
                self.are_row_numbers |= hashes[ident] in self._questions
        self._hashes.update(hashes)
        self._questions.update(hashes.values())

    @property
    def are_repeated(self) -> bool:
        """Whether ids stand in two tables whose rows the meta fields tell apart."""
        return bool(self._repeated) and not self._do_wholes_repeat

    @property
    def remark(self) -> str:
        """What the ids are taken for, as the end of a sentence."""
        if self.are_row_numbers:
            return "number rows, not questions: questions are told apart by their texts"
        differing = f"; {len(self._reworded)} of {len(self._repeated)} have another text there"
        return "are those of questions (meta.question_id), for they repeat from file to file" + (
            differing if self._reworded else ""
        )


def _role_of_ids(table: Table, shared: _SharedIds | None) -> str:
    """What the column `id` of a table holds: ids of rows; where they repeat and rows differ in
    their meta fields, ids of questions; nothing, where they repeat and the name was a guess. What
    other tables may share is added to `shared`."""
    if not table.may_hold_question_ids:
        return "id"
    ids: dict[str, str] = {}
    wholes: set[tuple[str, ...]] = set()
    do_repeat = do_wholes_repeat = False
    for _, row in table.rows():
        ident, meta = str(row.value.get("id")), row.value.get("meta")
        fields = meta if isinstance(meta, dict) else {}
        whole = (ident, *(str(fields.get(name)) for name in META_FIELDS))
        do_repeat |= ident in ids
        do_wholes_repeat |= whole in wholes
        has_id = row.value.get("id") not in (None, "")
        ids[ident] = shared.hash_of(row.value) if shared and has_id else ""
        wholes.add(whole)
    if do_wholes_repeat:
        return "none" if table.are_ids_guessed else "id"
    if shared:
        shared.add(wholes, ids)
    return "question_id" if do_repeat else "id"
