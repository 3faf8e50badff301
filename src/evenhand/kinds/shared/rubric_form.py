"""How a kind reads the rubric that a suite or a row may bring. Whoever calls has read the file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from evenhand.kinds.protocol import Protocol as LoadedProtocol


class RubricTextError(ValueError):
    """What is wrong with the text of a rubric, and where: on a line, or at a path of keys."""

    def __init__(self, message: str, *, line: int | None = None, path: tuple[str | int, ...] = ()):
        super().__init__(message)
        self.line, self.path = line, path


class Understood(NamedTuple):
    """What was understood of a rubric: for `--json`, and in lines for a person."""

    json: dict[str, Any]
    lines: Sequence[str]


class RubricForm(Protocol):
    """The form of rubrics of one kind."""

    @property
    def endings(self) -> tuple[str, ...]:
        """Of the names of its files."""
        ...

    @property
    def about(self) -> str:
        """What such a file is, for whoever named another."""
        ...

    @property
    def beside(self) -> tuple[str, ...]:
        """Patterns of the files in a protocol's folder that are rubrics."""
        ...

    def parse(self, text: str, ending: str, protocol: LoadedProtocol) -> Any:
        """The rubric of a file's text, as a run keeps it; raises RubricTextError."""
        ...

    @property
    def has_bands(self) -> bool:
        """Whether a rubric is made of dimensions with bands, so that a sentence needs some."""
        ...

    def is_file(self, rubric: object) -> bool:
        """Whether what a row has as its rubric is the name of a file."""
        ...

    def doubts(self, rubric: Any) -> Iterator[str]:
        """What a rubric that was parsed may have forgotten."""
        ...

    def understood(self, rubric: Any, protocol: LoadedProtocol) -> Understood:
        """What a judge will be told of a rubric that was parsed."""
        ...
