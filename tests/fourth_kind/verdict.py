"""Supported or not, and why."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from evenhand.judgment import JudgmentReader, Pass
from evenhand.kinds.check import Checked, Inspection
from evenhand.kinds.protocol import Words
from evenhand.kinds.reply import JudgedText
from tests.fourth_kind.unit import Claim


class ClaimVerdict(Struct, frozen=True, kw_only=True):
    claim: str
    supported: bool
    why: str

    @property
    def output(self) -> dict[str, Any]:
        return asdict(self)


READER = JudgmentReader(ClaimVerdict, Pass)


def check_reply(words: Words, claim: Claim, text: str, finish: str) -> Checked[ClaimVerdict]:
    check = Inspection(words)
    value = check.object_in(text, JudgedText(claim.text)) if check.is_whole(finish) else None
    if value is None:
        return check.done(None)
    check.keys(value, ("why", "supported"), "", allowed=("claim",))
    supported, why = value.get("supported", False), value.get("why", "")
    check.typed(supported, bool, "boolean", "supported")
    check.typed(why, str, "text", "why")
    return check.done(ClaimVerdict(claim=claim.claim, supported=bool(supported), why=str(why)))
