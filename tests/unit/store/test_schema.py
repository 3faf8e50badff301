"""The version of the schema goes up whenever the schema changes."""

from __future__ import annotations

from hashlib import sha256

from evenhand.store.session import VERSION, schema

DIGESTS = {3: "a589ce0ad4e9e1be"}


def test_a_changed_schema_has_a_new_version() -> None:
    """A store of another version is refused in words; one of this version must have its tables."""
    text = "\n".join(" ".join(statement.split()) for statement in schema()[:-1])
    assert {VERSION: sha256(text.encode()).hexdigest()[:16]} == DIGESTS
