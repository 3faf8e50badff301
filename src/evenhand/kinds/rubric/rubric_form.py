"""Rubrics of dimensions with bands, as `.json` or `.toml`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from evenhand import jsontext
from evenhand.kinds.protocol import Protocol
from evenhand.kinds.rubric.rubric import RubricError, build_rubric
from evenhand.kinds.shared.rubric_form import RubricTextError, Understood
from evenhand.tomltext import TomlError, parse_toml


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
