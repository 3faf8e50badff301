"""Free text inside a JSON string: what a model may write there, and how it is read and cut."""

from __future__ import annotations

import json
import re
from itertools import pairwise

from evenhand.judges.embedded.options import Written

# A sentence or two; each token costs a fifteenth of a second, and small models ramble.
TOKENS = 48
CHARS = 240

_CHAR = r'char ::= [^"\\\x00-\x1F\x7F] | "\\" ["\\/n]'
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|[。！？]")


def grammar(*, least: int = 0) -> str:
    """The inside of a JSON string and its closing quote."""
    return f'root ::= char{"+" if least else "*"} "\\""\n{_CHAR}\n'


def read(written: Written, most: int) -> str:
    """The text that was written, on one line, no longer than `most` and not broken off mid-word."""
    inner = written.text[:-1] if written.ended else written.text
    # A character of several tokens that broke off shows as U+FFFD.
    text = " ".join(_unescaped(inner).rstrip("\ufffd").split())
    if not written.ended:  # it would have rambled on: its first sentence is what it had to say
        return _first_sentence(text[:most])
    return _said_once(text if len(text) <= most else cut(text[:most]))


def cut(text: str) -> str:
    """Text that broke off, back to its last whole sentence, else to its last whole word."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    if ends:
        return text[: ends[-1]]
    head, space, _ = text.rpartition(" ")
    return head if space else text


def _first_sentence(text: str) -> str:
    end = _SENTENCE_END.search(text)
    return text[: end.end()] if end else cut(text)


def _said_once(text: str) -> str:
    """Text without the sentences it repeats; small models go round in circles."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    sentences = [text[a:b] for a, b in pairwise([0, *ends, len(text)])]
    once = dict.fromkeys(sentence.strip() for sentence in sentences)
    firsts = [s for s in sentences if once.pop(s.strip(), False) is None]
    return "".join(firsts).strip()


def _unescaped(inner: str) -> str:
    """The text of a JSON string's inside; an escape that broke off is left out."""
    whole = re.sub(r"(?<!\\)((?:\\\\)*)\\$", r"\1", inner)
    try:
        return str(json.loads(f'"{whole}"', strict=False))
    except ValueError:
        return whole.replace("\\", "")
