"""The keys of `evenhand.toml`, their types and bounds, and what is wrong with values that break
them: which key, and what belongs there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from math import isfinite
from typing import Annotated, Any, Literal, NamedTuple, cast

import msgspec
from msgspec import Meta, Struct, structs

from evenhand import limits
from evenhand.tomltext import Loc

Scalar = str | int | float | bool
Text = Annotated[str, Meta(min_length=1)]
Share = Annotated[float, Meta(ge=0, le=1)]
Seconds = Annotated[float, Meta(gt=0)]
AtLeastOne = Annotated[int, Meta(ge=1)]


class _Part(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file."""


class PriceSpec(_Part, frozen=True, kw_only=True):
    """Dollars a million tokens."""

    input: Decimal
    output: Decimal


class JudgeSpec(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """One `[[judges]]` entry."""

    model: Text
    """`provider/model`, e.g. `openai/gpt-4.1-mini` or `embedded`."""
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = 0.0
    """0 unless given."""
    repeats: Annotated[int, Meta(ge=1, le=limits.REPEATS_MAX)] = 1
    max_tokens: Annotated[int, Meta(ge=1, le=limits.MAX_TOKENS_MOST)] = limits.MAX_TOKENS
    base_url: str | None = None
    price: PriceSpec | None = None
    probabilities: bool = False
    """Ask for log-probabilities, and keep the odds of what was decided."""
    params: dict[str, Any] = {}
    """Handed through to the request's body as they are: `reasoning_effort`, `top_p`, ..."""
    stream: bool = False
    """Have the reply sent by events; a judge whose endpoint answers only so does it by itself."""
    proxy: Text | None = None
    """`http://host:port`."""
    ca_file: Text | None = None
    """Certificates to trust beside those of the system."""


class Limits(_Part, frozen=True, kw_only=True):
    """`[limits]`: none of these changes a verdict, so none is part of the run."""

    concurrency: Annotated[int, Meta(ge=1, le=limits.CONCURRENCY_MAX)] = limits.CONCURRENCY
    requests_per_minute: AtLeastOne | None = None
    tokens_per_minute: AtLeastOne | None = None
    budget_usd: Decimal | None = None
    max_failure_rate: Share | None = None
    attempt_seconds: Seconds = limits.ATTEMPT_SECONDS
    call_seconds: Seconds = limits.CALL_SECONDS
    run_seconds: Seconds | None = None


class Settings(_Part, frozen=True, kw_only=True):
    """`[settings]`: what can change a verdict."""

    repairs: Annotated[int, Meta(ge=0, le=limits.REPAIRS_MAX)] = limits.REPAIRS
    expose_meta: bool = False
    """Rubric: send `meta` to the judge too."""
    max_rounds: Annotated[int, Meta(ge=1, le=limits.MAX_ROUNDS_MOST)] | None = None
    """Pairwise: rounds a pair may take; the protocol's own number unless given."""
    blind: Literal["flag", "mask"] = "flag"
    """Pairwise: what is done about candidates that name their model."""
    no_self_judging: bool = False
    """Pairwise: leave out a judge that shares its family with a candidate."""
    panel: Literal["each", "relay"] = "each"
    """Pairwise: several judges each settle a pair, or take a round each."""


class CompareSpec(_Part, frozen=True, kw_only=True):
    """`[compare]`: the question that the run answers first; `compare`, `gate` and `run
    --until-decided` take it from here."""

    by: list[str] = []
    """The field, or fields, that tell the variants apart; pairs are compared by candidate."""
    baseline: str | None = None


class StopSpec(_Part, frozen=True, kw_only=True):
    """`[stop]`: judge in random order, and stop when the comparison is decided."""

    until_decided: bool = True

    alpha: Annotated[float, Meta(gt=0, lt=0.5)] = 0.05
    """How often at most a difference may be found that is none."""
    dimension: str = "overall"
    variant: str | None = None
    """Which variant must be decided against the baseline; all of them unless given."""
    min_units: AtLeastOne = 1
    """Decide on no fewer units."""


class GateSpec(_Part, frozen=True, kw_only=True):
    """`[gate]`: the conditions that `evenhand gate` holds a run to."""

    dimension: Annotated[list[str], Meta(min_length=1)] = msgspec.field(
        default_factory=lambda: ["overall"]
    )
    variant: str | None = None
    candidate: str | None = None
    judge: str | None = None
    """Only what this judge said."""
    on_conflict: Literal["tie", "uncertain", "drop", "split"] | None = None
    level: Annotated[float, Meta(gt=0.5, lt=1)] = 0.95
    better: bool = False
    no_worse_than: Annotated[float, Meta(ge=0)] | None = None
    """How much lower than the baseline the mean may be."""
    min_mean: float | None = None
    min_win_rate: Share | None = None
    max_critical_fails: Annotated[int, Meta(ge=0)] | None = None
    max_failure_rate: Share | None = None


class DataSpec(_Part, frozen=True, kw_only=True):
    """A data file with what is true of all its rows: `{ file = "v1.csv", prompt_variant = "v1" }`.
    Every key beside `file` is a field; one that is none of the contract's belongs to `meta`."""

    file: Text
    encoding: Text | None = None
    """Of a text file that is not UTF-8, e.g. `cp1251`."""
    sheet: str | None = None
    """Of a workbook; its first one unless given."""
    constants: dict[str, Scalar] = {}
    """Field to value: the other keys."""


class StoreSpec(_Part, frozen=True, kw_only=True):
    """`[store]`."""

    url: str = "sqlite:evenhand.db"


class SuiteFile(_Part, frozen=True, kw_only=True):
    """The keys of `evenhand.toml`."""

    name: Text = "evenhand"
    protocol: str
    language: Annotated[str, Meta(pattern=r"^[a-z]{2,3}(-[A-Za-z]+)*$")] = "en"
    """ru, zh, ja or en; another one where the protocol or the prompt speaks it."""
    data: Annotated[list[Text | DataSpec], Meta(min_length=1)]
    """Files, or patterns such as `answers/*.csv`; or a file with constants."""
    rubric: str | None = None
    prompt: Text | None = None
    """A judge prompt of your own, any text."""
    seed: int = 0
    use: list[Literal["reference", "context", "messages"]] = []
    judges: Annotated[list[JudgeSpec], Meta(min_length=1)]
    limits: Limits = Limits()
    settings: Settings = Settings()
    store: StoreSpec = StoreSpec()
    compare: CompareSpec | None = None
    stop: StopSpec | None = None
    gate: GateSpec | None = None
    columns: dict[str, str] = {}


PARTS: Mapping[str, type[Struct]] = {
    "judges": JudgeSpec,
    "limits": Limits,
    "settings": Settings,
    "store": StoreSpec,
    "price": PriceSpec,
    "compare": CompareSpec,
    "stop": StopSpec,
    "gate": GateSpec,
}
"""The tables, each by its key, wherever that stands."""
_DOLLARS_MOST = {
    "input": limits.PRICE_MOST,
    "output": limits.PRICE_MOST,
    "budget_usd": limits.BUDGET_MOST,
}


class Fault(NamedTuple):
    """What is wrong with the values of a file: where, and whether a key is unknown, missing or has
    another value than it may; then `wanted` says in words what belongs there."""

    kind: Literal["unknown", "missing", "value"]
    loc: Loc
    value: object = None
    wanted: str = ""


class SuiteFileError(ValueError):
    """Values that make no suite, with what is wrong: all keys that are unknown or missing, or the
    first values that are none."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__(faults)
        self.faults = faults


def read_suite_file(values: Mapping[str, Any]) -> SuiteFile:
    """The suite of these values, in which numbers may be texts, as the environment has them; raises
    SuiteFileError."""
    values = _plain_form(values)
    if faults := [*_key_faults(values, SuiteFile, ()), *_field_faults(values)]:
        raise SuiteFileError(faults)
    try:
        file = msgspec.convert(values, SuiteFile, strict=False)
    except msgspec.ValidationError as error:
        raise SuiteFileError([_value_fault(str(error), values)]) from None
    if faults := list(_number_faults(file, ())):
        raise SuiteFileError(faults)
    return file


def _plain_form(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values as the types have them: what may stand alone in a list, names with dots as one."""
    fields = [name for name in SuiteFile.__struct_fields__ if name in values]
    plain: dict[str, Any] = {name: values[name] for name in fields} | dict(values)
    if isinstance(plain.get("data"), str | dict):
        plain["data"] = [plain["data"]]
    if isinstance(plain.get("data"), list):
        plain["data"] = [_data_entry(entry) for entry in plain["data"]]
    for table, key in (("compare", "by"), ("gate", "dimension")):
        part = plain.get(table)
        if isinstance(part, Mapping) and isinstance(part.get(key), str):
            plain[table] = {**part, key: [part[key]]}
    if isinstance(plain.get("columns"), Mapping):
        plain["columns"] = _flat(plain["columns"])
    return plain


def _data_entry(entry: object) -> object:
    if not isinstance(entry, Mapping):
        return entry
    flat = _flat(cast("Mapping[str, object]", entry))
    entry = {key: flat.pop(key) for key in ("file", "encoding", "sheet") if key in flat}
    return entry | {"constants": flat} if flat else entry


def _flat(values: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Dotted keys as one name each: TOML makes tables of them where they are not quoted."""
    names: dict[str, object] = {}
    for key, inner in values.items():
        if isinstance(inner, Mapping):
            names |= _flat(cast("Mapping[str, object]", inner), f"{prefix}{key}.")
        else:
            names[prefix + key] = inner
    return names


def _key_faults(values: Mapping[str, Any], part: type[Struct], loc: Loc) -> Iterator[Fault]:
    """Keys that a table has not, and keys that it must have."""
    fields = {field.name: field for field in structs.fields(part)}
    for name, field in fields.items():
        if name not in values and field.required:
            yield Fault("missing", (*loc, name))
    for name, value in values.items():
        if name not in fields:
            yield Fault("unknown", (*loc, name), value)
        elif name in PARTS:
            for place, table in _tables(value):
                yield from _key_faults(table, PARTS[name], (*loc, name, *place))


def _tables(value: object) -> Iterator[tuple[Loc, Mapping[str, Any]]]:
    """The tables that a value is, each with its place in it."""
    if isinstance(value, Mapping):
        yield (), cast("Mapping[str, Any]", value)
    for index, item in enumerate(cast("list[object]", value) if isinstance(value, list) else ()):
        if isinstance(item, Mapping):
            yield (index,), cast("Mapping[str, Any]", item)


def _field_faults(values: Mapping[str, Any]) -> Iterator[Fault]:
    """Values under names that a user chose: msgspec does not say which of them is wrong."""
    columns, data = values.get("columns"), values.get("data")
    for name, value in columns.items() if isinstance(columns, dict) else ():
        if not isinstance(value, str):
            yield Fault("value", ("columns", name), value, "the name of a column")
    for index, entry in enumerate(data if isinstance(data, list) else ()):
        constants: dict[str, Any] = entry.get("constants", {}) if isinstance(entry, dict) else {}
        for name, value in constants.items():
            if not isinstance(value, str | int | float) or not _is_finite(value):
                wanted = "a text, a number, true or false"
                yield Fault("value", ("data", index, name), value, wanted)


def _number_faults(value: object, loc: Loc) -> Iterator[Fault]:
    """Numbers that are none, and dollars out of bounds."""
    if isinstance(value, Struct):
        for name, inner in structs.asdict(value).items():
            yield from _number_faults(inner, (*loc, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _number_faults(inner, (*loc, index))
    elif isinstance(value, Decimal):
        most = _DOLLARS_MOST[str(loc[-1])]
        if not value.is_finite() or not 0 <= value <= most:
            yield Fault("value", loc, value, _dollars(most))
    elif isinstance(value, float) and not isfinite(value):
        yield Fault("value", loc, value, "a number")


def _is_finite(value: object) -> bool:
    return not isinstance(value, float) or isfinite(value)


def _dollars(most: float) -> str:
    return f"dollars, from 0 to {most:,}"


_PATH = re.compile(r" - at `\$(.*)`\Z")
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")


def _value_fault(message: str, values: Mapping[str, Any]) -> Fault:
    """The fault that msgspec's message names by its path."""
    path = _PATH.search(message)
    steps = _STEP.findall(path[1]) if path else []
    loc: Loc = tuple(int(index) if index else name for name, index in steps)
    value: Any = values
    for step in loc:
        value = value[step]
    return Fault("value", loc, value, _wanted(loc))


def _wanted(loc: Loc) -> str:
    """What belongs at a place, in words."""
    from msgspec import inspect

    form: Any = inspect.type_info(SuiteFile)
    for step in loc:
        form = _plain_type(form)
        if isinstance(form, inspect.ListType):
            form = form.item_type
        elif isinstance(form, inspect.StructType):
            form = next(field.type for field in form.fields if field.name == step)
    return _described(_plain_type(form), str(loc[-1]) if loc else "")


def _plain_type(form: Any) -> Any:
    """A type without null beside it; of a text or a table, the table."""
    choices = [kind for kind in getattr(form, "types", ()) if type(kind).__name__ != "NoneType"]
    return choices[-1] if choices else form


def _described(form: Any, name: str) -> str:
    """A type with its bounds, in words."""
    plain = {
        "StrType": "a text",
        "BoolType": "true or false",
        "StructType": "a table",
        "DictType": "a table",
    }
    kind = type(form).__name__
    if kind == "DecimalType":
        return _dollars(_DOLLARS_MOST[name])
    if kind == "LiteralType":
        return " or ".join(f'"{value}"' for value in form.values)
    if kind == "ListType":
        return "a list of at least 1" if form.min_length else "a list"
    if kind in plain:
        return plain[kind] + (" of at least 1 character" if getattr(form, "min_length", 0) else "")
    words = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    bounds = [
        f"{word} {getattr(form, bound):,g}"
        for bound, word in words.items()
        if getattr(form, bound) is not None
    ]
    noun = "a whole number" if kind == "IntType" else "a number"
    return f"{noun} of {' and '.join(bounds)}" if bounds else noun


def suite_schema() -> dict[str, Any]:
    """The JSON Schema of the file, as shipped beside this module."""
    [top], parts = msgspec.json.schema_components([SuiteFile], ref_template="#/$defs/{name}")
    parts = {name: dict(part) for name, part in parts.items()}
    # Constants stand beside the other keys of a data file; what may stand alone need be no list.
    data = parts["DataSpec"]
    data["additionalProperties"] = data["properties"].pop("constants")["additionalProperties"]
    for part in parts.values():
        for key in _DOLLARS_MOST.keys() & part["properties"].keys():
            default = {k: v for k, v in part["properties"][key].items() if k == "default"}
            dollars = {"type": ["number", "string"], "minimum": 0, "maximum": _DOLLARS_MOST[key]}
            part["properties"][key] = dollars | default
    own = parts.pop(top["$ref"].rpartition("/")[2])
    _or_alone(own["properties"], "data")
    _or_alone(parts["CompareSpec"]["properties"], "by")
    _or_alone(parts["GateSpec"]["properties"], "dimension")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": parts, **own}


def _or_alone(properties: dict[str, Any], key: str) -> None:
    """Let an item of a list stand for the list."""
    many = properties[key]
    properties[key] = {"anyOf": [many["items"], many]}
