"""Replies in exactly the form that was asked for, as nearly all are: read in one step, by type.

Whatever else is to be said of a reply, however little, is the matter of the check, which finds out
what and tells it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec import MsgspecError
from msgspec.json import Decoder

from evenhand.limits import REPLY_ELEMENTS

T = TypeVar("T")


class AskedForm(Generic[T]):
    """The form of a reply. `strings` is how many strings stand in the JSON of a value, its keys
    among them: a text that holds more of them says something twice."""

    def __init__(self, form: type[T], strings: Callable[[T], int]) -> None:
        self._decoder, self._strings = Decoder(form), strings

    def read(self, text: str | bytes) -> T | None:
        """What a reply in this form says; None for any other, and for what is not sure to be in
        it."""
        if isinstance(text, bytes) or len(text) > REPLY_ELEMENTS or "\\\\" in text:
            return None
        try:
            value = self._decoder.decode(text)
        except (MsgspecError, UnicodeError):
            return None
        # Without a backslash that is escaped itself, each before a mark of quotation escapes it.
        marks = text.count('"') - (text.count('\\"') if "\\" in text else 0)
        return value if marks == 2 * self._strings(value) else None
