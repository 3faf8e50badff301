"""The words of `evenhand demo` around its figures, in the reader's language."""

from __future__ import annotations

from importlib import resources
from typing import Any

from rich.text import Text

from evenhand.report.html.page import words
from evenhand.report.terminal.console import console, wrap
from evenhand.report.terminal.tables import safe
from evenhand.stats.coefficients import Coefficient
from evenhand.stats.proportion import Proportion

_WORDS: Any = resources.files("evenhand.cli") / "words"


class Narration:
    """The words of a language and the console they go to."""

    def __init__(self, language: str) -> None:
        self.words, self.out = words(language, _WORDS), console()

    @property
    def width(self) -> int:
        return self.out.width

    def word(self, key: str, **values: object) -> str:
        """Return a text of the demo."""
        return self.words(f"demo.{key}", **values)

    def share(self, figure: Proportion | Coefficient) -> str:
        """Return a share in percent with its interval."""
        return self.words.share(figure.value, figure.low, figure.high)

    def heading(self, key: str, **values: object) -> None:
        """Print a text of the demo as a heading, after an empty line."""
        self.out.print()
        for line in wrap(self.word(key, **values), self.width):
            self.out.print(Text(line, style="bold"))

    def say(self, key: str, **values: object) -> None:
        """Print a text of the demo."""
        for line in wrap(self.word(key, **values), self.width):
            self.out.print(line)

    def tell(self, key: str, **values: object) -> None:
        """Print a text with a path or a command in it, which no line break may cut."""
        self.out.print(safe(self.word(key, **values)), soft_wrap=True)

    def command(self, text: str) -> None:
        """Print a command to be copied."""
        self.out.print(f"  {safe(text)}", soft_wrap=True)

    def quote(self, mark: str, text: str, lines: int, *, end: bool = False) -> None:
        """Print a text of the data on a few lines after its mark: its beginning, or its end."""
        whole = wrap(text, self.width - 4)
        part = whole[-lines:] if end else whole[:lines]
        if len(part) < len(whole):
            part = [f"…{part[0]}", *part[1:]] if end else [*part[:-1], f"{part[-1]}…"]
        for number, line in enumerate(part):
            self.out.print(f"{'' if number else mark:<2}{line}")
