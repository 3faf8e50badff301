"""Supported or not, and why."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from evenhand.judgment import JudgmentReader, Pass
from evenhand.kinds.prompt import object_of
from evenhand.kinds.protocol import JudgeWords
from evenhand.kinds.reply import ANYTHING, TEXT, Checked, JudgedText, ReplyCheck, allow
from tests.fourth_kind.unit import Claim


class ClaimVerdict(Struct, frozen=True, kw_only=True):
    claim: str
    supported: bool
    why: str

    @property
    def output(self) -> dict[str, Any]:
        return asdict(self)


FORM = object_of(why=TEXT, supported={"type": "boolean"})
READER = JudgmentReader(ClaimVerdict, Pass)


def check_reply(words: JudgeWords, claim: Claim, text: str, finish: str) -> Checked[ClaimVerdict]:
    check = ReplyCheck(words)
    reply = check.read_object(text, finish, JudgedText(claim.text))
    if reply is None:
        return check.result(None)
    found = check.match(reply, allow(FORM, claim=ANYTHING))
    return check.result(None if check.problems else ClaimVerdict(**found | {"claim": claim.claim}))
