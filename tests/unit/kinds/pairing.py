"""What the tests of the pairwise protocol judge: one pair, and judges that speak of its slots."""

import re

from msgspec.structs import replace

from evenhand.exchange import Question, Reply
from evenhand.files.protocols import find_protocol
from evenhand.kinds.conversation import JudgingContext
from evenhand.kinds.pairwise.kind import PairwiseProtocol, read_priority
from evenhand.kinds.pairwise.unit import first_order, read_pairs
from tests.provider import BLOCK
from tests.suites import pair_reply, pair_row

(PAIR,) = read_pairs(pair_row("pair-17", 9, 2, meta={"n": 1}))
SEEDS = {
    order: next(seed for seed in range(64) if first_order(seed, PAIR) == order)
    for order in ("12", "21")
}
"""Of each order, a seed by which it counts first for the pair above."""
TURNED = {"A": "B", "B": "A", "tie": "tie", "A+": "B+", "B+": "A+"}


def protocol(language="en", **settings):
    """The built-in protocol in one language."""
    builtin = find_protocol("pairwise")
    criteria, given = builtin.read_table("criteria", language), {"seed": SEEDS["12"]} | settings
    return PairwiseProtocol(
        prompts=builtin.prompts(language),
        words=builtin.words(language),
        **({"criteria": criteria, "priority": read_priority(builtin)} | given),
    )


EXTRAS = ("reference", "context", "earlier")


def blocks(question):
    """The fenced texts of a question. A compact prompt calls topic and candidates by other names,
    in the same order."""
    asked = next(message for message in question.messages if message.role == "user")
    found = {name: text for name, _, text in BLOCK.findall(asked.content)}
    judged = [text for name, text in found.items() if name not in EXTRAS]
    named = dict(zip(("topic", "candidate_1", "candidate_2"), judged, strict=True))
    return named | {name: text for name, text in found.items() if name in EXTRAS}


def first_is(text, question):
    return blocks(question)["candidate_1"] == text


class Judge:
    """An `ask` that answers as `reply` decides, and remembers what it was asked."""

    def __init__(self, reply):
        self.reply, self.asked = reply, list[Question]()

    async def __call__(self, question):
        self.asked.append(question)
        said = self.reply(question)
        return Reply(text=said) if isinstance(said, str) else said

    @property
    def places(self):
        """Round, order and re-ask of every question."""
        return [(one.round, one.order, one.reask) for one in self.asked]


def context_of(ask, **rest):
    return JudgingContext(ask=ask, **rest)


def of_candidates(question, mark):
    """What is said of the candidates of the file, said of the slots of this question."""
    return mark if question.order == "12" else TURNED[mark]


def steadily(mark):
    """Always the same of the candidates, whatever the order."""
    return lambda question: pair_reply(of_candidates(question, mark))


def by_worth(question):
    """The slot with the greater number in its text."""
    found = blocks(question)
    first, second = (int(re.findall(r"\d+", found[f"candidate_{i}"])[0]) for i in (1, 2))
    return pair_reply("tie" if first == second else "A+" if first > second else "B+")


def scripted(*rounds):
    """For each round the marks of the orders 12 and 21, said of the candidates."""

    def reply(question):
        mark = rounds[question.round - 1][("12", "21").index(question.order)]
        return pair_reply(of_candidates(question, mark))

    return reply


def winner_by_rule(marks):
    """The winner of a pass, as the specification has it: the naive twin."""
    sides = {mark[0] for mark in marks.values() if mark != "tie"}
    if len(sides) < 2:
        return sides.pop() if sides else "tie"
    return next((marks[c][0] for c in ("C1", "C2", "C5") if marks[c] != "tie"), "tie")


def turned_round(pair):
    """The same pair as if the row had named its candidates the other way round."""
    return replace(pair, first=pair.second, second=pair.first)
