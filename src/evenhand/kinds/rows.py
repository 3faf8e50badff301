"""Input rows of every kind: their common fields, the columns of a table that hold them, and the
errors that say what is wrong with one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import UNSET, Raw, Struct, UnsetType

from evenhand import jsontext
from evenhand.jsontext import stored_object, stored_value
from evenhand.words import Code, Sentence, few

EXTRAS = ("reference", "context", "messages")


class RowError(ValueError):
    """An input row that is wrong. `where` is its place, if that is not the one being read."""

    def __init__(self, message: str, *, where: str = "") -> None:
        super().__init__(message)
        self.where = where


class FieldError(RowError):
    """A field that does not hold what it must; `key` is that of a sentence with `field`."""

    def __init__(self, field: str, key: str, *, where: str = "", **values: object) -> None:
        super().__init__(Sentence(f"kinds.{key}", field=field, **values), where=where)
        self.field, self.key, self.values = field, key, values

    def message(self, name: str) -> Sentence:
        """Return what is wrong with the field, by the name that its table has for it."""
        return Sentence(f"kinds.{self.key}", **self.values, field=name)


class MissingFieldError(FieldError):
    """A field that a row has not; the message lists the columns that there are."""

    def __init__(self, field: str, columns: Sequence[str]) -> None:
        super().__init__(
            field, "missing_field" if columns else "absent_field", names=few(columns, COLUMNS_SHOWN)
        )


class PlacedRow(NamedTuple):
    """A row, and where it stands."""

    value: dict[str, Any]
    where: str


class Gathered(NamedTuple):
    """The rows of a kind that rows of a long table make, and what a person should know of it."""

    rows: Sequence[PlacedRow]
    remarks: Sequence[str] = ()


Gather = Callable[[Iterable[PlacedRow]], Gathered]
"""From one row per answer to one row per question; raises RowError."""


class TableForm(NamedTuple):
    """The fields that a kind takes from the columns of a table."""

    question: str
    """The field of what was asked."""
    answer: str
    """The field of what was answered, where a row is one answer."""
    fields: tuple[str, ...]
    """All fields of a row of the contract."""
    id_of: Callable[[Mapping[str, Any]], str]
    """The id of a row, its own or made of what identifies it."""
    ids: tuple[str, ...] = ("id",)
    """The fields that hold a row's own id."""
    gather: Gather | None = None
    """For a kind whose rows hold several answers."""
    several: str = ""
    """The field that holds them: a table that has it is no long one."""
    unit_ids: Callable[[Mapping[str, Any]], Sequence[str]] | None = None
    """The ids of the units of such a row."""
    number: str = "id"
    """The field for what is called like another and is told apart by its row's number."""
    topic: str = "meta.question_id"
    """The field that tells questions apart, where a row has it."""
    row_noun: str = "sample"
    """A row, in English."""
    own_field: str = ""
    """A field that no other kind has: a table that has it is of this kind."""


class UnitBody(Struct, frozen=True, kw_only=True):
    """A stored unit, as far as those of all kinds are alike."""

    id: str
    meta: Raw
    language: str | None = None
    reference: Raw | UnsetType = UNSET
    context: Raw | UnsetType = UNSET
    messages: Raw | UnsetType = UNSET

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of units of all kinds, by name."""
        texts = zip(EXTRAS, (self.reference, self.context, self.messages), strict=True)
        extras = {name: read_raw(text) for name, text in texts if text is not UNSET}
        meta = read_raw_object(self.meta)
        return {"id": self.id, "meta": meta, "language": self.language, "extras": extras}


def unit_text(unit: Any, *names: str, **more: Any) -> str:
    """Return a unit as one line of JSON, which a store keeps: the fields of these names and more,
    then its language and extras."""
    fields = {name: getattr(unit, name) for name in names} | more
    body = {"id": unit.id, **fields, "language": unit.language, **unit.extras}
    return jsontext.dump({name: value for name, value in body.items() if value is not None})


def common_fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what units of all kinds have beside an id, by name; raise RowError."""
    language, meta = row.get("language"), row.get("meta")
    if language is not None and not isinstance(language, str):
        raise FieldError("language", "no_text", found=type_name(language))
    # dict first: the abstract test is slow
    if meta is not None and not isinstance(meta, (dict, Mapping)):
        raise FieldError("meta", "no_object", found=type_name(meta))
    check_id(row.get("id"))
    extras = {name: row[name] for name in EXTRAS if row.get(name) is not None}
    return {"meta": meta or {}, "language": language, "extras": extras}


def without_empty(row: Mapping[str, Any], texts: Collection[str]) -> dict[str, Any]:
    """Return the row without its empty cells, which count as absent, but for the judged texts."""
    return {key: value for key, value in row.items() if value != "" or key in texts}


COLUMNS_SHOWN = 20


def text_of(row: Mapping[str, Any], name: str) -> str:
    """Return a text that must be there; raise RowError."""
    value = row.get(name)
    if isinstance(value, str):
        return value
    if name in row:
        raise FieldError(name, "no_text", found=type_name(value))
    # What has no field of its own was put into meta, which is no column.
    raise MissingFieldError(name, [key for key in row if key != "meta"])


def filled_text_of(row: Mapping[str, Any], name: str) -> str:
    """Return a text that must be there and say something; raise RowError."""
    text = text_of(row, name)
    if not text.strip():
        raise FieldError(name, "empty_field")
    return text


def check_id(value: object, name: str = "id") -> None:
    """Raise RowError unless an id is a text or a whole number."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, str | int)):
        raise FieldError(name, "no_text", found=type_name(value))


def is_given(value: object) -> bool:
    """Return True unless a value is absent, blank or empty; 0 and False are values."""
    return bool(value.strip()) if isinstance(value, str) else value not in (None, [], {})


def type_name(value: object) -> str:
    """Return the type of a value, a code with a meaning in words."""
    names = {dict: "object", list: "list", bool: "boolean", str: "text"}
    return "null" if value is None else names.get(type(value), "number")


def check_language(language: str | None, spoken: Collection[str]) -> None:
    """Raise RowError unless the protocol speaks a row's language."""
    if language and language not in spoken:
        known = Code(", ".join(spoken))
        raise RowError(Sentence("kinds.unknown_language", language=language, known=known))


def raw_json(value: Mapping[str, Any]) -> Raw:
    """Return an object as JSON text, numbers spelled as they were."""
    return Raw(jsontext.dump(value))


def read_raw_object(text: Raw) -> dict[str, Any]:
    """Return the object of a JSON text, key order and the spelling of numbers kept."""
    return stored_object(bytes(text).decode(), "a unit")


def read_raw(text: Raw) -> Any:
    """Return the value of a JSON text, key order and the spelling of numbers kept."""
    return stored_value(bytes(text).decode(), "a unit")


def plain_number(number: float) -> int | float:
    """Return a number that no longer remembers how it was spelled."""
    return number if isinstance(number, int) else float(number)
