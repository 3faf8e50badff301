"""Content keys: a tagged hash of everything that can change an answer, and of nothing else.

Canonical form of a call, version 1: these texts in UTF-8, each as its length in bytes, a colon, the
bytes and a comma:

    identity  schema  round  order  repeat  reask  unit  role content  role content  ...

- `identity`: provider, base URL, model or the weights' hash, and parameters of the judge, as JSON
  without white space, keys sorted, non-ASCII characters unescaped; so is `schema`, or `null`;
- `unit`: the unit's id for judges that answer by it (recorded replies, people), else empty;
- role and content of every message of the conversation.

The key is `call1-blake2b:` and the hex of its 20-byte BLAKE2b. Not part of it: API keys, time,
which structured-output mode the endpoint accepted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

from evenhand.exchange import Question

CALL_TAG = "call1-blake2b:"

canonical = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False
).encode


def call_keys(identity: Mapping[str, Any]) -> Callable[[Question], str]:
    """The function from a question to its key, for the judge with this identity.

    The judge's part and the last schema seen are encoded once, not once a call: schemas are
    shared by all samples under one rubric.
    """
    opening = _framed(canonical(dict(identity)))
    by_unit = bool(identity.get("by_unit"))
    last: list[Any] = [None, _framed("null")]

    def key(question: Question) -> str:
        if question.schema is not last[0]:
            last[:] = question.schema, _framed(canonical(question.schema))
        place = (question.round, question.order, question.repeat, question.reask)
        parts = [opening, last[1], *(_framed(str(one)) for one in place)]
        parts.append(_framed(question.unit if by_unit else ""))
        for message in question.messages:
            parts += (_framed(message.role), _framed(message.content))
        return CALL_TAG + blake2b(b"".join(parts), digest_size=20).hexdigest()

    return key


def _framed(text: str) -> bytes:
    """A text that cannot run into the next one."""
    data = text.encode("utf-8", "surrogatepass")
    return b"%d:%b," % (len(data), data)


def run_id(manifest: Mapping[str, Any]) -> str:
    """The id of a run: twelve hex digits of the hash of what can change its verdicts."""
    return blake2b(
        canonical(manifest).encode(), digest_size=6, person=b"evenhand-run-1"
    ).hexdigest()


def digest(text: str) -> str:
    """A short hash of a text, to see whether it changed."""
    return blake2b(text.encode(), digest_size=12).hexdigest()
