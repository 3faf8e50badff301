"""Encodings whose files hold signs that the makers of systems added (№, ①, ㈱).

What the encoding that the user names knows is read by it, and only what it refuses by the wider
one: the two read some bytes differently (〜 and ～), and a row whose text changed would be judged
again.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable

_WIDER = {"shift_jis": "cp932", "gb2312": "gb18030", "gbk": "gb18030", "euc_kr": "cp949"}
"""By the name of an encoding what files that are said to be in it are written in."""
_LONGEST = 8
"""Bytes of one character: a syllable of EUC-KR may be spelt in so many."""
_TAIL = 0xDC00
"""Bytes that cannot be told yet pass through the codec as lone surrogates, which no text has."""
_TAILS = "".join(map(chr, range(_TAIL, _TAIL + 256)))


def decoder(encoding: str) -> codecs.IncrementalDecoder:
    """What decodes a file in an encoding piece by piece; raises LookupError."""
    codec = codecs.lookup(encoding).name
    if codec in _WIDER:
        return _Decoder(codec)
    return codecs.getincrementaldecoder(codec)()


class _Decoder(codecs.IncrementalDecoder):
    """By a codec, and by its wider one what it refuses."""

    def __init__(self, codec: str) -> None:
        super().__init__()
        self._codec, self._tail = codec, b""

    def decode(self, raw: bytes, final: bool = False) -> str:  # type: ignore[override]
        text = (self._tail + raw).decode(self._codec, _handler_name(self._codec, final))
        whole = text.rstrip(_TAILS)
        self._tail = bytes(ord(sign) - _TAIL for sign in text[len(whole) :])
        return whole


def _handler_name(codec: str, final: bool) -> str:
    return f"evenhand.{codec}.{'end' if final else 'piece'}"


def _handler(codec: str, final: bool) -> Callable[[UnicodeError], tuple[str, int]]:
    """What a codec calls where it refuses bytes: returns their text, and where to go on."""

    def widen(error: UnicodeError) -> tuple[str, int]:
        if not isinstance(error, UnicodeDecodeError):
            raise error
        rest = error.object[error.start : error.start + _LONGEST]
        if len(rest) < _LONGEST and not final:
            return "".join(chr(_TAIL + byte) for byte in rest), len(error.object)
        for size in range(1, len(rest) + 1):
            try:
                return rest[:size].decode(_WIDER[codec]), error.start + size
            except UnicodeDecodeError:
                continue
        raise error

    return widen


for _codec in _WIDER:
    for _final in (False, True):
        codecs.register_error(_handler_name(_codec, _final), _handler(_codec, _final))
