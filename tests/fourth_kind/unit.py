"""A claim and a text that may support it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, to_builtins

from evenhand import jsontext
from evenhand.jsontext import StoredText
from evenhand.kinds.rows import common_fields, filled_text_of

FIELDS = ("id", "claim", "text", "meta")


class Claim(Struct, frozen=True, kw_only=True):
    id: str
    claim: str
    text: str
    meta: dict[str, Any]
    language: str | None = None


def read_claim(row: Mapping[str, Any]) -> Claim:
    """Return the claim of a row; raises RowError."""
    claim, text = (filled_text_of(row, name) for name in ("claim", "text"))
    return Claim(
        id=str(row.get("id") or claim),
        claim=claim,
        text=text,
        meta=dict(common_fields(row)["meta"]),
    )


def dump_claim(claim: Claim) -> str:
    return jsontext.dump(to_builtins(claim))


load_claim = StoredText[Claim](Claim, "a claim").read
