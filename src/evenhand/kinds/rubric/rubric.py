"""Rubrics: dimensions with bands, read from the contract's own form and shown to a judge.

A rubric that was built has at least one dimension, unique ids, and in each dimension at least two
bands with different scores. What is wrong is a RubricTextError with the path of keys to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import isfinite
from typing import Any

from msgspec import Struct

from evenhand import jsontext
from evenhand.kinds.kind import RubricForm, RubricTextError, Understood
from evenhand.kinds.protocol import Protocol
from evenhand.kinds.rubric_fields import (
    Path,
    parse_value,
    read_id,
    read_list,
    read_object,
    read_text,
    require_different,
    require_plain,
)
from evenhand.words import Sentence


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
    pass_score: float | None = None
    """The score that passes: at least, or at most where a higher one is worse."""

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

    @property
    def pass_scores(self) -> dict[str, float]:
        """Return the scores that pass, of the dimensions that have one."""
        scores = {each.id: each.pass_score for each in self.dimensions}
        return {name: score for name, score in scores.items() if score is not None}

    @property
    def told_value(self) -> dict[str, Any]:
        """Return the value without what must not sway a judge: the scores that pass."""
        told = [
            {key: value for key, value in row.items() if key != "pass"}
            for row in self.value["dimensions"]
        ]
        return {"dimensions": told}

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
    top = read_object(value, (), ("dimensions",))
    dimensions = tuple(
        _read_dimension(each, ("dimensions", index))
        for index, each in enumerate(read_list(top, "dimensions", ()))
    )
    require_different("id", [each.id for each in dimensions], ("dimensions",))
    return Rubric(dimensions, "\n".join(map(_describe, dimensions)), top)


def _read_dimension(value: object, path: Path) -> Dimension:
    keys = ("bands", "definition", "higher_is", "id", "name", "pass", "scale")
    fields = read_object(value, path, keys)
    listed = read_list(fields, "bands", path)
    bands = tuple(_read_band(band, (*path, "bands", i)) for i, band in enumerate(listed))
    if len(bands) < 2:
        raise RubricTextError(Sentence("kinds.few_bands"), path=(*path, "bands"))
    require_different("score", [band.score for band in bands], (*path, "bands"))
    require_plain(fields, path)
    return Dimension(
        id=read_id(fields, path),
        name=read_text({"name": fields.get("id")} | fields, "name", path),
        scale=jsontext.as_text(fields.get("scale", "")),
        definition=read_text(fields, "definition", path),
        bands=bands,
        higher_is=_read_direction(fields, path),
        pass_score=_read_pass(fields, [band.score for band in bands], path),
    )


def _read_direction(fields: Mapping[str, Any], path: Path) -> str:
    value = fields.get("higher_is", "better")
    if value not in ("better", "worse"):
        raise RubricTextError(Sentence("kinds.higher_is"), path=(*path, "higher_is"))
    return str(value)


def _read_pass(
    fields: Mapping[str, Any], scores: Sequence[int | float], path: Path
) -> float | None:
    value, low, high = fields.get("pass"), min(scores), max(scores)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (is_number and low <= value <= high):
        message = Sentence("kinds.no_pass_score", name="pass", low=low, high=high)
        raise RubricTextError(message, path=(*path, "pass"))
    return value


def _read_band(value: object, path: Path) -> Band:
    fields = read_object(value, path, ("criteria", "score"))
    score = fields.get("score")
    if isinstance(score, bool) or not isinstance(score, int | float) or not isfinite(score):
        raise RubricTextError(Sentence("kinds.no_score"), path=(*path, "score"))
    return Band(score, read_text(fields, "criteria", path))


def _describe(dimension: Dimension, worse: str = "") -> str:
    """Return a dimension as a judge reads it."""
    scale = f" [{dimension.scale}]" if dimension.scale else ""
    note = f" {worse}" if worse and dimension.higher_is == "worse" else ""
    head = f"- {dimension.id} ({dimension.name}){scale}: {dimension.definition}{note}"
    bands = [f"  {jsontext.dump(band.score)}: {band.criteria}" for band in dimension.bands]
    return "\n".join([head, *bands])


def _parse_file(text: str, ending: str, protocol: Protocol) -> Any:
    return build_rubric(parse_value(text, ending)).value


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
