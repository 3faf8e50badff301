"""Rubrics: dimensions with bands, read from the contract's own form and shown to a judge.

A rubric that was built has at least one dimension, unique ids, and in each dimension at least two
bands with different scores. What is wrong is a RubricTextError with the path of keys to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import isfinite
from typing import Any, cast

from msgspec import Struct

from evenhand import jsontext
from evenhand.kinds.kind import RubricForm, RubricTextError, Understood
from evenhand.kinds.prompt import unknown
from evenhand.kinds.protocol import Protocol
from evenhand.observation import RESERVED
from evenhand.tomltext import TomlError, parse_toml
from evenhand.words import Code, Sentence

Path = tuple[str | int, ...]


class Band(Struct, frozen=True):
    """One score and what earns it."""

    score: int | float
    criteria: str


class Dimension(Struct, frozen=True):
    """One thing a rubric asks about an output."""

    id: str
    name: str
    scale: str
    definition: str
    bands: tuple[Band, ...]
    higher_is: str = "better"
    """"better" or "worse": what a higher score says of the output."""

    @property
    def scores(self) -> list[int | float]:
        return [band.score for band in self.bands]

    @property
    def ends(self) -> tuple[float, float]:
        """Return the scores of the worst and the best band."""
        low, high = float(min(self.scores)), float(max(self.scores))
        return (low, high) if self.higher_is == "better" else (high, low)


@dataclass(frozen=True, slots=True)
class Rubric:
    """The dimensions that an output is scored on."""

    dimensions: tuple[Dimension, ...]
    text: str
    """As a judge reads it, but for what `tell` adds."""
    value: Mapping[str, Any] = field(compare=False)
    """As it was given."""

    def __hash__(self) -> int:
        return hash(self.text)

    def tell(self, worse: str) -> str:
        """Return the text that a judge reads; `worse` follows the definition of a dimension on
        which a higher score is worse."""
        if all(each.higher_is == "better" for each in self.dimensions):
            return self.text
        return "\n".join(_describe(each, worse) for each in self.dimensions)


@lru_cache(maxsize=64)
def parse_rubric(text: str) -> Rubric:
    """Return the rubric of a JSON text; raise RubricTextError. Rows often repeat one rubric: it is
    kept."""
    return build_rubric(jsontext.parse(text))


def build_rubric(value: object) -> Rubric:
    """Return the rubric of a parsed JSON or TOML value; raise RubricTextError."""
    top = _read_object(value, (), ("dimensions",))
    dimensions = tuple(
        _read_dimension(each, ("dimensions", index))
        for index, each in enumerate(_read_list(top, "dimensions", ()))
    )
    _require_different("id", [each.id for each in dimensions], ("dimensions",))
    return Rubric(dimensions, "\n".join(map(_describe, dimensions)), top)


def _read_dimension(value: object, path: Path) -> Dimension:
    keys = ("bands", "definition", "higher_is", "id", "name", "scale")
    fields = _read_object(value, path, keys)
    listed = _read_list(fields, "bands", path)
    bands = tuple(_read_band(band, (*path, "bands", i)) for i, band in enumerate(listed))
    if len(bands) < 2:
        raise RubricTextError(Sentence("kinds.few_bands"), path=(*path, "bands"))
    _require_different("score", [band.score for band in bands], (*path, "bands"))
    try:
        jsontext.dump(fields).encode()
    except (TypeError, ValueError):
        # Half of a surrogate pair, a date of TOML, NaN.
        raise RubricTextError(Sentence("kinds.no_json_value"), path=path) from None
    ident = _read_text(fields, "id", path)
    if ident in RESERVED:
        raise RubricTextError(Sentence("kinds.reserved_id", name=ident), path=(*path, "id"))
    return Dimension(
        id=ident,
        name=_read_text({"name": fields.get("id")} | fields, "name", path),
        scale=jsontext.as_text(fields.get("scale", "")),
        definition=_read_text(fields, "definition", path),
        bands=bands,
        higher_is=_read_direction(fields, path),
    )


def _read_direction(fields: Mapping[str, Any], path: Path) -> str:
    value = fields.get("higher_is", "better")
    if value not in ("better", "worse"):
        raise RubricTextError(Sentence("kinds.higher_is"), path=(*path, "higher_is"))
    return str(value)


def _read_band(value: object, path: Path) -> Band:
    fields = _read_object(value, path, ("criteria", "score"))
    score = fields.get("score")
    if isinstance(score, bool) or not isinstance(score, int | float) or not isfinite(score):
        raise RubricTextError(Sentence("kinds.no_score"), path=(*path, "score"))
    return Band(score, _read_text(fields, "criteria", path))


def _read_object(value: object, path: Path, keys: Sequence[str]) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise RubricTextError(Sentence("kinds.no_keys", keys=Code(", ".join(keys))), path=path)
    for key in value:
        if key not in keys:
            raise RubricTextError(unknown("key", key, keys), path=(*path, key))
    return dict(value)


def _read_list(fields: Mapping[str, Any], name: str, path: Path) -> Sequence[object]:
    value = fields.get(name)
    if not isinstance(value, list) or not value:
        raise RubricTextError(Sentence("kinds.empty_list", name=name), path=(*path, name))
    return cast("list[object]", value)


def _read_text(fields: Mapping[str, Any], name: str, path: Path) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value.strip():
        raise RubricTextError(Sentence("kinds.empty_text", name=name), path=(*path, name))
    return value


def _require_different(name: str, values: Sequence[object], path: Path) -> None:
    for index, value in enumerate(values):
        if value in values[:index]:
            message = Sentence("kinds.same_value", name=name, value=jsontext.dump(value))
            raise RubricTextError(message, path=(*path, index, name))


def _describe(dimension: Dimension, worse: str = "") -> str:
    """Return a dimension as a judge reads it."""
    scale = f" [{dimension.scale}]" if dimension.scale else ""
    note = f" {worse}" if worse and dimension.higher_is == "worse" else ""
    head = f"- {dimension.id} ({dimension.name}){scale}: {dimension.definition}{note}"
    bands = [f"  {jsontext.dump(band.score)}: {band.criteria}" for band in dimension.bands]
    return "\n".join([head, *bands])


def _parse_file(text: str, ending: str, protocol: Protocol) -> Any:
    try:
        value = parse_toml(text) if ending == ".toml" else jsontext.parse(text)
    except TomlError as error:
        raise RubricTextError(error.args[0], line=error.line) from None
    except ValueError as error:
        raise RubricTextError(
            Sentence("kinds.not_json", error=error), line=getattr(error, "lineno", None)
        ) from None
    return build_rubric(value).value


def _explain(rubric: Any, protocol: Protocol) -> Understood:
    built = build_rubric(rubric)
    dimensions = [{"id": d.id, "name": d.name, "scores": d.scores} for d in built.dimensions]
    return Understood({"dimensions": dimensions}, built.text.splitlines())


RUBRIC_FORM = RubricForm(
    endings=(".json", ".toml"),
    parse=_parse_file,
    explain=_explain,
    beside=("*.json", "rubric*.toml"),
    has_bands=True,
)
