"""Content keys: a tagged hash of everything that can change an answer, and of nothing else.

Canonical form of a call, version 2: these texts in UTF-8, each as its length in bytes, a colon, the
bytes and a comma:

    identity  schema  round  repeat  reask  unit  order  role content  role content  ...

- `identity`: provider, base URL, model or the weights' hash, and parameters of the judge, as JSON
  without white space, keys sorted, non-ASCII characters unescaped; so is `schema`, or `null`;
- `unit` and `order`: the unit's id and the order of a pair for judges that answer by them (recorded
  replies), else empty;
- role and content of every message of the conversation.

The key is `call2-blake2b:` and the hex of its 20-byte BLAKE2b. Not part of it: API keys, time,
which candidate a file names first, which structured-output mode the endpoint accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from msgspec.json import encode

from evenhand.exchange import Question, Schema
from evenhand.jsontext import canonical

CALL_TAG = "call2-blake2b:"

OPENINGS_KEPT = 16
"""Beginnings of calls of which the hash is kept: languages, rounds and schemas of one run."""

Numbers = tuple[int, int, int]
"""Round, repeat and re-ask."""
Place = tuple[str, str]
"""The unit's id and the order of a pair."""
NO_PLACE: Place = ("", "")


def call_keys(identity: Mapping[str, Any]) -> Callable[[Question], str]:
    """Return the function from a question to its key, for the judge with this identity.

    The parts that many questions share (judge, schema, first message) are hashed once, and the
    rest of each question after them.
    """
    judge = _framed(canonical(dict(identity)))
    by_unit = bool(identity.get("by_unit"))

    @lru_cache(maxsize=OPENINGS_KEPT)
    def opening(
        schema: Schema | None, numbers: Numbers, place: Place, role: str, content: str
    ) -> blake2b:
        data = schema.data if schema else b"null"
        parts = [judge, _framed_bytes(data), *(_framed(str(number)) for number in numbers)]
        parts += map(_framed, (*place, role, content))
        return blake2b(b"".join(parts), digest_size=20)

    def key(question: Question) -> str:
        first, *rest = question.messages
        numbers = (question.round, question.repeat, question.reask)
        place = (question.unit, question.order) if by_unit else NO_PLACE
        whole = opening(question.schema, numbers, place, first.role, first.content).copy()
        for message in rest:
            whole.update(_framed(message.role) + _framed(message.content))
        return CALL_TAG + whole.hexdigest()

    return key


def _framed(text: str) -> bytes:
    """Return a text with its length, so that it cannot run into the next one."""
    return _framed_bytes(text.encode("utf-8", "surrogatepass"))


def _framed_bytes(data: bytes) -> bytes:
    return b"%d:%b," % (len(data), data)


def unit_digest(ident: str, body: str) -> str:
    """Return the hash by which a unit is known: of its id and its content."""
    parts = _framed(ident) + _framed(body)
    return blake2b(parts, digest_size=16, person=b"evenhand-unit-1").hexdigest()


def content_of(digests: Iterable[str]) -> str:
    """Return the hash of a set of units, from their digests in ascending order."""
    content = blake2b(digest_size=16, person=b"evenhand-data-1")
    for digest in digests:
        content.update(bytes.fromhex(digest))
    return content.hexdigest()


def run_id(name: str, judging: str, content: str) -> str:
    """Return the id of a run: twelve hex digits of the hash of its name, judging and units."""
    parts = b"".join(map(_framed, (name, judging, content)))
    return blake2b(parts, digest_size=6, person=b"evenhand-run-2").hexdigest()


def row_digest(*fields: object) -> str:
    """Return a hash of what a row holds, to see whether any of it changed."""
    return blake2b(encode(fields), digest_size=12, person=b"evenhand-row-1").hexdigest()


def digest(text: str) -> str:
    """Return a short hash of a text, to see whether it changed."""
    return blake2b(text.encode(), digest_size=12).hexdigest()
