"""A claim and a text that may support it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import Raw, Struct
from msgspec.json import Decoder

from evenhand import jsontext
from evenhand.kinds.shared.raw import raw_object
from evenhand.kinds.shared.rows import check_id, filled_text_of, meta_of

FIELDS = ("id", "claim", "text", "meta")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    id: str
    claim: str
    text: str
    meta: Mapping[str, Any]


class _ClaimBody(Struct, frozen=True):
    id: str
    claim: str
    text: str
    meta: Raw


_body = Decoder(_ClaimBody)


def read_claim(row: Mapping[str, Any]) -> Claim:
    """The claim of a row; raises RowError."""
    check_id(row.get("id"))
    claim, text = (filled_text_of(row, name, FIELDS) for name in ("claim", "text"))
    return Claim(id=str(row.get("id") or claim), claim=claim, text=text, meta=meta_of(row))


def claim_text(claim: Claim) -> str:
    return jsontext.dump(
        {"id": claim.id, "claim": claim.claim, "text": claim.text, "meta": claim.meta}
    )


def load_claim(text: str) -> Claim:
    body = _body.decode(text)
    return Claim(id=body.id, claim=body.claim, text=body.text, meta=raw_object(body.meta))
