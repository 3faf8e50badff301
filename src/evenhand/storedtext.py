"""What a store keeps as JSON, read back: the one place where a text that is not what was written
becomes a StoreError, whichever door it is read through."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from msgspec.json import Decoder

from evenhand import jsontext
from evenhand.errors import StoreError

T = TypeVar("T")
_UNREADABLE = (ValueError, TypeError, RecursionError)


class StoredText(Generic[T]):
    """Reads texts of one type back; `noun` is what such a text is called where it is damaged."""

    def __init__(self, type_: Any, noun: str) -> None:
        self._decoder: Decoder[T] = Decoder(type_)
        self._noun = noun

    def read(self, text: str | bytes) -> T:
        """The value of a text; raises StoreError where nothing that was written reads so."""
        try:
            return self._decoder.decode(text)
        except _UNREADABLE as error:
            raise damaged(self._noun, error) from None

    def read_all(self, texts: Iterable[str]) -> list[T]:
        """The values of many texts, in less time than one by one."""
        try:
            return list(map(self._decoder.decode, texts))
        except _UNREADABLE as error:
            raise damaged(self._noun, error) from None


def stored_value(text: str, noun: str) -> Any:
    """The value that `jsontext.dump` wrote as a text of a store; raises StoreError."""
    try:
        return jsontext.restored(text)
    except (*_UNREADABLE, AttributeError) as error:
        raise damaged(noun, error) from None


def stored_object(text: str, noun: str) -> dict[str, Any]:
    """The same for a text that is an object."""
    value = stored_value(text, noun)
    if not isinstance(value, dict):
        raise damaged(noun, TypeError("it is not an object"))
    return value


def damaged(noun: str, error: Exception) -> StoreError:
    """What to raise for a text of a store that cannot be read."""
    return StoreError(
        f"{noun} in the store cannot be read: {error}",
        advice="The store is damaged; evenhand store verify says where.",
    )
