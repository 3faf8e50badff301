"""The catalogue of embedded models, and which of them are here.

What is offered, from which packages and with which hashes, is in `pins.json`. A model counts as
present only when its size is right and its whole SHA-256 was once found right for the file as it is
now. Fetching is in `fetch`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from evenhand.errors import UsageError, quoted
from evenhand.judges.embedded import weights

DEFAULT = "qwen2.5-coder-1.5b"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One data-only wheel of the package index, and the member of it that is a piece of a model."""

    package: str
    version: str
    filename: str
    size: int
    sha256: str
    member: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One model that can be fetched, and what it is good for."""

    name: str
    aliases: tuple[str, ...]
    file: str
    size: int
    sha256: str
    licence: str
    upstream: str
    use: str
    parts: tuple[Part, ...]

    @property
    def folder(self) -> Path:
        return weights.models_home() / self.name

    @property
    def path(self) -> Path:
        return self.folder / self.file

    @property
    def download(self) -> int:
        """Bytes to fetch."""
        return sum(part.size for part in self.parts)

    @property
    def notice(self) -> str:
        """The notice that the licence asks for; the packages carry none."""
        return (
            f"{self.file}\n\nThis model is {self.upstream}, licensed under the Apache License, "
            "Version 2.0, the text of which ships with Evenhand as LICENSE. The weights are the "
            f"work of their authors and unchanged (SHA-256 {self.sha256}).\n"
        )


@cache
def catalogue() -> tuple[Model, ...]:
    """Every model that can be fetched, the default first."""
    text = files("evenhand.judges.embedded").joinpath("pins.json").read_text(encoding="utf-8")
    pins: dict[str, dict[str, Any]] = json.loads(text)
    return tuple(_model(name, pin) for name, pin in pins.items())


def named(name: str) -> Model:
    """The model of that name or alias."""
    for model in catalogue():
        if name == model.name or name in model.aliases:
            return model
    offered = ", ".join(model.name for model in catalogue())
    raise UsageError(
        f"there is no embedded model {quoted(name)}",
        advice=f"Use one of {offered}, or embedded/FILE.gguf for a file of your own.",
    )


def find(name: str, notify: weights.Notify = lambda message: None) -> Path | None:
    """Where a model lies, or None when it is absent or not what it should be."""
    model = named(name)
    if not _right_size(model):
        return None
    sha256 = weights.remembered_sha256(model.path, notify)
    return model.path if sha256 == model.sha256 else None


def verify(name: str) -> bool:
    """Whether a model is here and every byte of it is right, read again now."""
    model = named(name)
    if not _right_size(model):
        return False
    return weights.remember(model.path, weights.sha256_of(model.path)) == model.sha256


def _right_size(model: Model) -> bool:
    try:
        return model.path.stat().st_size == model.size
    except OSError:
        return False


def _model(name: str, pin: dict[str, Any]) -> Model:
    parts = tuple(Part(**part) for part in pin["parts"])
    plain = {key: value for key, value in pin.items() if key not in ("aliases", "parts")}
    return Model(name=name, aliases=tuple(pin["aliases"]), parts=parts, **plain)
