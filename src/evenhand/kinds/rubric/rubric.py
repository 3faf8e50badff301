"""Rubrics: dimensions with bands, read from the contract's own form and shown to a judge.

A rubric that parses has at least one dimension, unique ids, and in each dimension at least two
bands with different scores.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import isfinite
from typing import Any, cast

from msgspec import Struct

from evenhand import jsontext
from evenhand.errors import nearest, quoted
from evenhand.kinds.kind import RubricTextError, Understood
from evenhand.kinds.protocol import Protocol
from evenhand.tomltext import TomlError, parse_toml

Path = tuple[str | int, ...]


class RubricError(ValueError):
    """What is wrong with a rubric, and the path of keys that leads there."""

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(message)
        self.path = path


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

    @property
    def scores(self) -> list[int | float]:
        return [band.score for band in self.bands]


@dataclass(frozen=True, slots=True)
class Rubric:
    """What an output is scored on."""

    dimensions: tuple[Dimension, ...]
    text: str
    """As a judge reads it."""
    value: Mapping[str, Any] = field(compare=False)
    """As it was given."""

    def __hash__(self) -> int:
        return hash(self.text)


@lru_cache(maxsize=64)
def parse_rubric(text: str) -> Rubric:
    """The rubric of a JSON text; raises RubricError. Rows often repeat one rubric: it is kept."""
    return build_rubric(jsontext.parse(text))


def build_rubric(value: object) -> Rubric:
    """The rubric of a parsed JSON or TOML value; raises RubricError."""
    top = _object(value, (), "the rubric", {"dimensions"})
    listed = _list(top.get("dimensions"), ("dimensions",), "dimensions")
    dimensions = tuple(_dimension(d, ("dimensions", i)) for i, d in enumerate(listed))
    seen: set[str] = set()
    for index, dimension in enumerate(dimensions):
        if dimension.id in seen:
            raise RubricError(
                ("dimensions", index, "id"), f'two dimensions have the id "{dimension.id}"'
            )
        seen.add(dimension.id)
    return Rubric(dimensions, "\n".join(map(_shown, dimensions)), top)


def _dimension(value: object, path: Path) -> Dimension:
    keys = {"id", "name", "scale", "definition", "bands"}
    fields = _object(value, path, "a dimension", keys)
    ident = _string(fields.get("id"), (*path, "id"), "id")
    listed = _list(fields.get("bands"), (*path, "bands"), "bands")
    bands = tuple(_band(b, (*path, "bands", i)) for i, b in enumerate(listed))
    _differ(bands, path)
    return Dimension(
        id=ident,
        name=_string(fields.get("name", ident), (*path, "name"), "name"),
        scale=_scale(fields.get("scale", ""), (*path, "scale")),
        definition=_string(fields.get("definition"), (*path, "definition"), "definition"),
        bands=bands,
    )


def _scale(value: object, path: Path) -> str:
    """A text as it stands, anything else as JSON: `[1, 5]` is a scale too."""
    try:
        text = jsontext.as_text(value)
    except (TypeError, ValueError):
        raise RubricError(path, '"scale" must be a text') from None
    return _encodable(text, path, "scale")


def _differ(bands: tuple[Band, ...], path: Path) -> None:
    if len(bands) < 2:
        raise RubricError((*path, "bands"), "a dimension needs at least two bands")
    for index, band in enumerate(bands):
        if band.score in [earlier.score for earlier in bands[:index]]:
            where = (*path, "bands", index, "score")
            raise RubricError(where, f"two bands have the score {jsontext.dump(band.score)}")


def _band(value: object, path: Path) -> Band:
    fields = _object(value, path, "a band", {"score", "criteria"})
    score = fields.get("score")
    if isinstance(score, bool) or not isinstance(score, int | float) or not isfinite(score):
        raise RubricError((*path, "score"), "a band's score must be a number")
    return Band(score, _string(fields.get("criteria"), (*path, "criteria"), "criteria"))


def _object(value: object, path: Path, what: str, keys: set[str]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise RubricError(path, f"{what} must be an object with {_listed(keys)}")
    fields = cast("Mapping[str, Any]", value)
    for key in fields:
        if key not in keys:
            raise RubricError((*path, key), f"{what} has no key {quoted(key)}{_meant(key, keys)}")
    return fields


def _meant(key: str, keys: set[str]) -> str:
    near = nearest(key, sorted(keys))
    return f'; did you mean "{near}"?' if near else f"; it has {_listed(keys)}"


def _listed(keys: set[str]) -> str:
    return ", ".join(sorted(keys))


def _list(value: object, path: Path, name: str) -> Sequence[object]:
    if not isinstance(value, list) or not value:
        raise RubricError(path, f'"{name}" must be a list with at least one entry')
    return cast("list[object]", value)


def _string(value: object, path: Path, name: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise RubricError(path, f'"{name}" must be a text that is not empty')
    return _encodable(value, path, name)


def _encodable(text: str, path: Path, name: str) -> str:
    """A text that can be stored and sent: JSON can spell half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise RubricError(path, f'"{name}" is no Unicode text: {quoted(text)}') from None
    return text


def _shown(dimension: Dimension) -> str:
    scale = f" [{dimension.scale}]" if dimension.scale else ""
    head = f"- {dimension.id} ({dimension.name}){scale}: {dimension.definition}"
    bands = [f"  {jsontext.dump(band.score)}: {band.criteria}" for band in dimension.bands]
    return "\n".join([head, *bands])


class BandsForm:
    """Dimensions with bands; a row brings its rubric itself, never the name of a file."""

    endings = (".json", ".toml")
    about = "a rubric is JSON or TOML"
    beside = ("*.json", "rubric*.toml")
    has_bands = True

    def parse(self, text: str, ending: str, protocol: Protocol) -> Any:
        value = _value(text, ending)
        try:
            build_rubric(value)
        except RubricError as error:
            raise RubricTextError(str(error), path=error.path) from None
        return value

    def is_file(self, rubric: object) -> bool:
        return False

    def doubts(self, rubric: Any) -> Iterator[str]:
        """Bands that skip a score."""
        for dimension in build_rubric(rubric).dimensions:
            for low, high in _gaps(sorted(dimension.scores)):
                yield f"{dimension.id}: nothing stands between {low:g} and {high:g}"

    def understood(self, rubric: Any, protocol: Protocol) -> Understood:
        built = build_rubric(rubric)
        dimensions = [{"id": d.id, "name": d.name, "scores": d.scores} for d in built.dimensions]
        return Understood({"dimensions": dimensions}, built.text.splitlines())


def _gaps(scores: Sequence[float]) -> Iterator[tuple[float, float]]:
    """Where the scores go further than their usual step."""
    steps = [(high - low, low, high) for low, high in itertools.pairwise(scores)]
    usual = min((step for step, _, _ in steps), default=0)
    for step, low, high in steps:
        if step > usual:
            yield low, high


def _value(text: str, ending: str) -> Any:
    try:
        return parse_toml(text) if ending == ".toml" else jsontext.parse(text)
    except TomlError as error:
        raise RubricTextError(str(error), line=error.line) from None
    except ValueError as error:
        line = getattr(error, "lineno", None)
        raise RubricTextError(f"not JSON: {error}", line=line) from None
