"""Values on their way from a file into a store, packed into a file without a name, which is gone
with the process. A table would cost as much once more as the store itself."""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import IO, Any
from weakref import finalize

from msgspec.msgpack import Decoder, Encoder

from evenhand.errors import StoreError

_pack = Encoder().encode
_unpack = Decoder().decode
_LENGTH = 8
"""Bytes before a value that say how many it takes."""


class PackedFile:
    """Values in the order in which they were added; a tuple comes back as a list."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._end, self._is_at_end = 0, True

    def __bool__(self) -> bool:
        return self._file is not None

    def add(self, value: object) -> int:
        """Keep a value; where it begins."""
        if self._file is None:
            self._file = unnamed_file()
            finalize(self, self._file.close)
        packed, start = _pack(value), self._end
        with kept_on_the_way():
            if not self._is_at_end:
                self._file.seek(start)
                self._is_at_end = True
            self._file.write(len(packed).to_bytes(_LENGTH, "big") + packed)
        self._end += _LENGTH + len(packed)
        return start

    def __iter__(self) -> Iterator[Any]:
        return self.since(0)

    @property
    def end(self) -> int:
        """Where the next value will begin."""
        return self._end

    def since(self, start: int) -> Iterator[Any]:
        """All values from the one that begins there on; where others are read meanwhile, it goes
        on where it stood."""
        while self._file is not None and start < self._end:
            with kept_on_the_way():
                self._is_at_end = False
                self._file.seek(start)
                length = int.from_bytes(self._file.read(_LENGTH), "big")
                packed = self._file.read(length)
            start += _LENGTH + length
            yield _unpack(packed)

    def at(self, start: int) -> Any:
        """The value that begins there."""
        assert self._file is not None
        with kept_on_the_way():
            self._is_at_end = False
            self._file.seek(start)
            return _unpack(self._file.read(int.from_bytes(self._file.read(_LENGTH), "big")))

    def clear(self) -> None:
        """Drop all values."""
        if self._file is not None:
            self._file.close()
            self._file, self._end, self._is_at_end = None, 0, True


def unnamed_file() -> IO[bytes]:
    """A file that nobody else sees; raises StoreError."""
    with kept_on_the_way():
        return tempfile.TemporaryFile(prefix="evenhand-")


@contextmanager
def kept_on_the_way() -> Generator[None]:
    """What is wrong with such a file in words; raises StoreError."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"what is read cannot be kept on the way: {error.strerror}",
            where=tempfile.gettempdir(),
            advice="Free some space there, or name another folder in TMPDIR.",
        ) from None
