"""Ask, check, and ask again for what only the judge knows: the same for every kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from evenhand.exchange import Ask, Question, Reply, Style
from evenhand.judgment import Judgment, failure
from evenhand.kinds.shared.check import Checked
from evenhand.kinds.shared.render import Prompt
from evenhand.kinds.shared.words import Words
from evenhand.limits import PROBLEMS_SHOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Who judges a unit: one judge, or those of a relay, of which the k-th is asked in round k."""

    ask: Ask
    judges: Sequence[str] = ("",)
    styles: Sequence[Style] = ("full",)
    turn: int = 0
    """Which of the unit's judgments this is, over all judges and repeats."""


class Try(NamedTuple):
    """One question, the reply to it, and what the contract says of it."""

    question: Question
    reply: Reply
    checked: Checked

    @property
    def record(self) -> dict[str, Any]:
        """As a judgment keeps it among its passes."""
        problems = [
            {"code": one.code, "path": one.path, "message": one.message}
            for one in self.checked.problems[:PROBLEMS_SHOWN]
        ]
        made: dict[str, Any] = {"reask": self.question.reask, "problems": problems}
        return made | {"odds": self.reply.odds} if self.reply.odds else made


async def tries(
    ask: Ask,
    question: Question,
    check: Callable[[Reply], Checked],
    prompt: Prompt,
    words: Words,
    repairs: int,
) -> list[Try]:
    """The conversation until a reply keeps the contract or the repairs are used up."""
    made: list[Try] = []
    while True:
        reply = await ask(question)
        made.append(Try(question, reply, check(reply)))
        problems = made[-1].checked.problems
        if not problems or question.reask >= repairs:
            return made
        complaint = words.complaint(problems[:PROBLEMS_SHOWN])
        question = question.again(reply.text, prompt.again.fill({"problems": complaint}))


def given_up(made: Sequence[Try]) -> Judgment | None:
    """The failure of a conversation whose last reply still breaks the contract; None if it does
    not."""
    last = made[-1].checked
    if not last.problems:
        return None
    first, passes = last.problems[0], tuple(one.record for one in made)
    return failure(first.code, first.message, fixes=last.fixes, passes=passes)
