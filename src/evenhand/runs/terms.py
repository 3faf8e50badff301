"""What it takes to judge a run beside what its manifest says: how its judges are reached and
priced, and its limits, as the command had them that opened it. No key is part of it: each worker
has its own."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from evenhand.storedtext import StoredText
from evenhand.suite import Suite
from evenhand.suite_file import JudgeSpec, Limits


class Terms(Struct, frozen=True, kw_only=True):
    """The `[[judges]]` and `[limits]` of a suite, as it would write them."""

    judges: tuple[JudgeSpec, ...]
    limits: Limits


_terms: StoredText[Terms] = StoredText(Terms, "the terms of an open run")


def terms_json(suite: Suite) -> str:
    """The terms of a suite as a store keeps them."""
    file = suite.file
    return msgspec.json.encode(Terms(judges=tuple(file.judges), limits=file.limits)).decode()


def read_terms(text: str) -> Terms:
    """The terms of what `terms_json` wrote; raises StoreError."""
    return _terms.read(text)
