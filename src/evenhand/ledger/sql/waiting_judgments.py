"""Judgments that were made elsewhere, on their way into the store: they wait in a file without a
name, which is gone with the process. A table would cost as much once more as the store itself.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, NamedTuple
from weakref import finalize

from msgspec.msgpack import Decoder, Encoder

from evenhand.errors import StoreError
from evenhand.judgment import JudgmentText


class WaitingJudgment(NamedTuple):
    """A judgment by the position of its unit among those that wait."""

    position: int
    judge: int
    repeat: int
    text: JudgmentText


_pack = Encoder().encode
_unpack = Decoder(list[WaitingJudgment]).decode
_LENGTH = 8
"""Bytes before those of a batch that say how many they are."""


class WaitingJudgments:
    """Judgments in the order in which they were added."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None

    def __bool__(self) -> bool:
        return self._file is not None

    def add(self, judgments: Sequence[tuple[int, int, int, JudgmentText]]) -> None:
        """Have some judgments wait."""
        if not judgments:
            return
        with _written():
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="evenhand-import-")  # noqa: SIM115
                finalize(self, self._file.close)
            packed = _pack(judgments)
            self._file.write(len(packed).to_bytes(_LENGTH, "big") + packed)

    def batches(self) -> Iterator[list[WaitingJudgment]]:
        """All that wait, as they were added."""
        if self._file is None:
            return
        with _written():
            self._file.seek(0)
        while length := self._file.read(_LENGTH):
            yield _unpack(self._file.read(int.from_bytes(length, "big")))

    def clear(self) -> None:
        """Drop what waits."""
        if self._file is not None:
            self._file.close()
            self._file = None


@contextmanager
def _written() -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"judgments cannot be kept on the way: {error.strerror}",
            where=tempfile.gettempdir(),
            advice="Free some space there, or name another folder in TMPDIR.",
        ) from None
