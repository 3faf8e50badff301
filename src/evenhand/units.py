"""What is judged. Units are frozen and built by the loaders; nothing here reads a file.

A unit's `meta` and `id` identify it to people and to the statistics; they never reach a judge
unless the suite exposes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from evenhand import jsontext

META_FIELDS = ("run_id", "model", "prompt_variant", "eval_set_variant", "question_id")


class JsonObject(Mapping[str, Any]):
    """A JSON object that remembers its text, and is parsed when it is first looked into."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _values(self) -> dict[str, Any]:
        values: dict[str, Any] = jsontext.parse(self.text)
        return values

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"JsonObject({self.text!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One output to score on a rubric."""

    id: str
    question: str
    model_output: str
    meta: Mapping[str, Any] = field(default_factory=dict)
    rubric: Mapping[str, Any] | None = None
    language: str | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)
    """`reference`, `context` and earlier `messages`, where the row has them."""


def sample_id(row: Mapping[str, Any]) -> str:
    """The id of a sample row: its `id`, else the five meta fields joined by `/`."""
    ident = row.get("id")
    if ident is not None:
        return str(ident)
    meta: Mapping[str, Any] = row.get("meta") or {}
    return joined_id(meta.get(name) for name in META_FIELDS)


def joined_id(values: Iterable[object]) -> str:
    """One id from several values, joined by `/`; what is absent is empty."""
    return "/".join(map(_escaped, values))


def _escaped(value: object) -> str:
    text = value if isinstance(value, str) else "" if value is None else jsontext.dump(value)
    return text.replace("%", "%25").replace("/", "%2F")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One answer of a pair. `id` and `model` are never shown to a judge."""

    id: str
    text: str
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two answers to one topic. `A` is `first`, as the row of the input file has them."""

    id: str
    topic: str
    first: Candidate
    second: Candidate
    row: str
    """The row's own id: several pairs share it where the row has more than two candidates."""
    places: tuple[int, int] = (1, 2)
    """Which candidates of the row these are, counted from one."""
    given_lengths: tuple[int | None, int | None] | None = None
    """Of texts that are not here, in characters."""
    meta: Mapping[str, Any] = field(default_factory=dict)
    language: str | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)

    @property
    def texts(self) -> tuple[str, str]:
        return self.first.text, self.second.text

    @property
    def lengths(self) -> tuple[int | None, int | None]:
        """Of both texts in characters; None where nobody knows."""
        return self.given_lengths or (len(self.first.text) or None, len(self.second.text) or None)

    def with_texts(self, first: str, second: str) -> Pair:
        """The same pair with other texts."""
        return replace(
            self, first=replace(self.first, text=first), second=replace(self.second, text=second)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer to grade out of 100."""

    id: str
    task_name: str
    prompt: str
    answer: str
    rubric: str | None = None
    """The task's own rubric, Markdown or TOML; None where the suite brings one for all."""
    meta: Mapping[str, Any] = field(default_factory=dict)
    language: str | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)


def answer_id(row: Mapping[str, Any]) -> str:
    """The id of an answer row: its `id`, else the task's name, with the model where it is known."""
    if row.get("id") is not None:
        return str(row["id"])
    model = (row.get("meta") or {}).get("model")
    return f"{row['task_name']}/{model}" if model else str(row["task_name"])
