"""What of a pair reaches a judge, and what is said of it: masks, equal texts, relays."""

from __future__ import annotations

import json

from msgspec.structs import replace

from evenhand.exchange import Question, Reply
from evenhand.kinds.conversation import JudgingContext
from evenhand.units import Candidate, Pair
from tests.unit.kinds.pairing import protocol


def pair(first: str, second: str, topic: str = "Which is it?", **rest: object) -> Pair:
    candidates = {"first": Candidate(id="x", text=first), "second": Candidate(id="y", text=second)}
    return replace(Pair(id="p", row="p", topic=topic, **candidates), **rest)  # type: ignore[arg-type]


class Ties:
    """A judge that calls everything a tie, or says what it is told to in some round."""

    def __init__(self, *marks: str) -> None:
        self.asked: list[Question] = []
        self.marks = marks

    async def __call__(self, question: Question) -> Reply:
        mark = self.marks[len(self.asked) % len(self.marks)] if self.marks else "tie"
        self.asked.append(question)
        given = {"first_meets": True, "second_meets": True, "comment": "so", "mark": mark}
        criteria = {f"C{i}": given for i in range(1, 6)}
        winner = {"A+": "A", "B+": "B"}.get(mark, "tie")
        reply = {"criteria": criteria, "explanation": "so", "winner": winner}
        return Reply(text=json.dumps(reply))

    @property
    def sent(self) -> str:
        return "\n".join(m.content for one in self.asked for m in one.messages)


async def test_names_that_are_all_the_difference_are_not_masked():
    judge = Ties()
    names = pair("It was GPT-4.", "It was Claude 2.", "Which model passed the bar exam first?")
    judgment = await protocol(blind="mask").judge(names, JudgingContext(ask=judge))
    assert len(judge.asked) == 2
    assert "It was GPT-4." in judge.sent
    assert "mask_hides_difference" in judgment.flags
    assert "equal_text" not in judgment.flags


async def test_what_stands_beside_the_candidates_is_masked_too():
    judge = Ties()
    earlier = [{"role": "user", "content": "As GPT-4, help me.", "model": "gpt-4-0613"}]
    shown = pair("One.", "Two.", extras={"messages": earlier, "reference": "ChatGPT says one."})
    masking = protocol(blind="mask", use=("messages", "reference"))
    await masking.judge(shown, JudgingContext(ask=judge))
    assert "[model]" in judge.sent
    assert not [name for name in ("GPT-4", "gpt-4", "ChatGPT") if name in judge.sent]


async def test_of_earlier_messages_only_who_said_what_is_shown():
    judge = Ties()
    earlier = [{"role": "user", "content": "Hello.", "model": "gpt-4-0613", "id": "m1"}]
    shown = pair("One.", "Two.", extras={"messages": earlier})
    await protocol(use=("messages",)).judge(shown, JudgingContext(ask=judge))
    assert '[{"role":"user","content":"Hello."}]' in judge.sent
    assert "0613" not in judge.sent


async def test_equal_texts_are_a_tie_even_for_a_judge_that_would_be_left_out():
    kin = pair("The same.", " The same. ")
    kin = replace(kin, first=replace(kin.first, model="gpt-4o"))
    context = JudgingContext(ask=Ties(), judges=("openai/gpt-4.1-mini",))
    judgment = await protocol(no_self_judging=True).judge(kin, context)
    assert (judgment.output["winner"], judgment.flags) == ("tie", ("equal_text",))


async def test_the_second_judge_of_a_relay_is_asked_as_for_the_first_time():
    judge = Ties("A+")  # both orders "first": a contradiction every time
    context = JudgingContext(ask=judge, judges=("a", "b"), styles=("full", "full"))
    judgment = await protocol(max_rounds=3).judge(pair("One.", "Two."), context)
    assert [(one.judge_index, one.round) for one in judge.asked[::2]] == [(0, 1), (1, 1), (0, 2)]
    assert [one.round for one in judgment.passes[::2]] == [1, 2, 3]


async def test_a_judge_of_a_relay_that_was_never_asked_is_not_held_against_the_verdict():
    kin = replace(pair("One.", "Two."), first=Candidate(id="gpt-4o", text="One."))
    context = JudgingContext(ask=Ties(), judges=("a", "openai/gpt-4.1"), styles=("full", "full"))
    assert (await protocol().judge(kin, context)).flags == ()
