"""The pairwise kind as a conversation: passes, rounds, what they come to, what a judge is shown."""

import json
from itertools import product
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from evenhand.exchange import Reply
from evenhand.kinds.pairwise.verdict import MARKS, WINNERS, CriterionReply, PairPass, settle
from evenhand.kinds.protocol import LANGUAGES
from evenhand.units import Candidate, Pair
from tests.cases import cases
from tests.suites import CRITERIA, pair_reply
from tests.unit.kinds.pairing import (
    PAIR,
    SEEDS,
    TURNED,
    Judge,
    blocks,
    by_worth,
    context_of,
    of_candidates,
    protocol,
    scripted,
    steadily,
    turned_round,
    winner_by_rule,
)

PRIORITY = ["C1", "C2", "C5"]


@pytest.mark.parametrize("own", WINNERS)
@pytest.mark.parametrize("first_order", ["12", "21"])
async def test_every_pass_follows_the_rule(own, first_order):
    """All marks, all winners, in both orders: 3^5 x 3 replies, each through a whole judgment."""
    judged, pair = protocol(max_rounds=1, seed=SEEDS[first_order]), PAIR
    for marks in product(MARKS, repeat=5):
        said = pair_reply(dict(zip(CRITERIA, marks, strict=True)), own)
        judgment = await judged.judge(pair, context_of(Judge(lambda question, said=said: said)))
        expected = winner_by_rule(dict(zip(CRITERIA, marks, strict=True)))
        by_order = {one.order: one for one in judgment.passes}
        assert [one.order for one in judgment.passes] == [first_order, TURNED_ORDER[first_order]]
        straight, turned = by_order["12"], by_order["21"]
        assert (straight.winner, straight.said) == (expected, own)
        assert (turned.winner, turned.said) == (TURNED[expected], TURNED[own])
        assert straight.marks == dict(zip(CRITERIA, marks, strict=True))
        assert turned.marks == {c: TURNED[mark] for c, mark in zip(CRITERIA, marks, strict=True)}
        flags = ["self_contradiction"] if own != expected else []
        assert list(straight.flags) == list(turned.flags) == flags
        assert list(judgment.flags) == flags
        assert judgment.output["winner"] == ("tie" if expected == "tie" else "uncertain")


TURNED_ORDER = {"12": "21", "21": "12"}


@given(
    marks=st.lists(st.sampled_from(MARKS), min_size=5, max_size=5),
    orders=st.permutations(list(CRITERIA)),
)
def test_the_rule_turns_with_the_candidates(marks, orders):
    """Whoever is called A, the same candidate wins; the order of the criteria does not matter."""
    from evenhand.kinds.pairwise.verdict import derive_winner

    given_marks = dict(zip(CRITERIA, marks, strict=True))
    turned = {c: TURNED[mark] for c, mark in given_marks.items()}
    assert derive_winner(turned, PRIORITY) == TURNED[derive_winner(given_marks, PRIORITY)]
    shuffled = {c: given_marks[c] for c in orders}
    assert (
        derive_winner(shuffled, PRIORITY)
        == derive_winner(given_marks, PRIORITY)
        == winner_by_rule(given_marks)
    )


async def test_the_judge_sees_the_texts_in_the_order_of_the_pass_and_nothing_else():
    judge = Judge(by_worth)
    await protocol().judge(PAIR, context_of(judge))
    for question in judge.asked:
        found = blocks(question)
        assert found.keys() == {"topic", "candidate_1", "candidate_2"}
        seen = (found["candidate_1"], found["candidate_2"])
        assert seen == (PAIR.texts if question.order == "12" else PAIR.texts[::-1])
        sent = json.dumps([message.content for message in question.messages])
        assert not any(name in sent for name in ("c1", "c2", "pair-17", '"n"'))
    assert [one.order for one in judge.asked] == ["12", "21"]


@pytest.mark.parametrize("turn", [0, 1, 2, 3])
@pytest.mark.parametrize("order", ["12", "21"])
async def test_every_other_judgment_of_a_pair_begins_with_the_other_order(order, turn):
    judge = Judge(by_worth)
    judgment = await protocol(seed=SEEDS[order]).judge(PAIR, context_of(judge, judgment_index=turn))
    begins = order if turn % 2 == 0 else TURNED_ORDER[order]
    assert [one.order for one in judgment.passes] == [begins, TURNED_ORDER[begins]]
    assert judgment.output["winner"] == "A"


@pytest.mark.parametrize("mark", MARKS)
async def test_two_passes_that_agree_are_stable(mark):
    judge = Judge(steadily(mark))
    judgment = await protocol().judge(PAIR, context_of(judge))
    assert judge.places == [(1, "12", 0), (1, "21", 0)]
    assert judgment.output == {
        "pair_id": "pair-17",
        "candidates": ["c1", "c2"],
        "winner": {"A+": "A", "B+": "B", "tie": "tie"}[mark],
        "settled": "stable",
        "rounds": 1,
        "criteria": dict.fromkeys(CRITERIA, mark),
        "unstable": [],
        "notes": "so it is",
        "meta": {"n": 1},
    }


@pytest.mark.parametrize("first", MARKS)
@pytest.mark.parametrize("second", MARKS)
async def test_anything_but_the_same_winner_is_a_contradiction(first, second):
    """A win against a tie too."""
    judge = Judge(scripted((first, second), ("B+", "B+")))
    judgment = await protocol().judge(PAIR, context_of(judge))
    output = judgment.output
    if first == second:
        assert (output["settled"], output["rounds"], len(judge.asked)) == ("stable", 1, 2)
    else:
        assert (output["settled"], output["rounds"], len(judge.asked)) == ("resolved", 2, 4)
        assert (output["winner"], output["criteria"]["C1"]) == ("B", "B+")


@pytest.mark.parametrize("most", [1, 2, 3, 5])
async def test_what_no_round_settles_is_uncertain(most):
    judge = Judge(lambda question: pair_reply("A+"))
    judgment = await protocol(max_rounds=most).judge(PAIR, context_of(judge))
    assert judge.places == [(n, order, 0) for n in range(1, most + 1) for order in ("12", "21")]
    output = judgment.output
    assert (output["winner"], output["settled"]) == ("uncertain", "uncertain")
    assert output["rounds"] == most
    assert output["criteria"] == dict.fromkeys(CRITERIA, "tie")
    assert output["unstable"] == list(CRITERIA)


async def test_marks_come_from_the_round_that_settles_or_else_from_the_last():
    def reply(question):
        marks = dict.fromkeys(CRITERIA, of_candidates(question, "A+"))
        if question.round == 1:
            return pair_reply("A+")
        # The winner agrees; on C4 the two passes differ.
        marks["C3"] = of_candidates(question, "B+")
        marks["C4"] = "tie" if question.order == "12" else marks["C4"]
        return pair_reply(marks)

    judgment = await protocol().judge(PAIR, context_of(Judge(reply)))
    output = judgment.output
    assert (output["winner"], output["settled"], output["rounds"]) == ("A", "resolved", 2)
    assert output["criteria"] == {"C1": "A+", "C2": "A+", "C3": "B+", "C4": "tie", "C5": "A+"}
    assert output["unstable"] == ["C4"]


async def test_uncertain_marks_are_those_of_the_last_round():
    def reply(question):
        marks = dict.fromkeys(CRITERIA, "A+")
        if question.round == 3:
            marks["C5"] = of_candidates(question, "B+")
        return pair_reply(marks)

    judgment = await protocol().judge(PAIR, context_of(Judge(reply)))
    assert judgment.output["winner"] == "uncertain"
    assert judgment.output["criteria"]["C5"] == "B+"
    assert judgment.output["unstable"] == ["C1", "C2", "C3", "C4"]


async def test_an_unstable_criterion_alone_starts_no_round():
    def reply(question):
        return pair_reply(dict.fromkeys(CRITERIA, "tie") | {"C1": "tie"} | _slot_lean(question))

    def _slot_lean(question):
        # C1 decides for the first candidate; C3 leans to the first slot.
        return {"C1": of_candidates(question, "A+"), "C3": "A+"}

    judge = Judge(reply)
    judgment = await protocol().judge(PAIR, context_of(judge))
    assert len(judge.asked) == 2
    assert (judgment.output["winner"], judgment.output["unstable"]) == ("A", ["C3"])
    assert judgment.output["criteria"]["C3"] == "tie"


rounds = st.lists(
    st.tuples(st.sampled_from(WINNERS), st.sampled_from(WINNERS)), min_size=1, max_size=5
)


@given(winners=rounds)
def test_settling_against_a_plain_count(winners):
    """The first consistent round settles; the winner is never made anew from the marks."""
    passes = [
        tuple(
            PairPass(
                reask=0,
                problems=(),
                round=1,
                order=order,
                judge="",
                flags=(),
                winner=winner,
                criteria={"C1": CriterionReply(mark="B+")},
            )
            for order, winner in zip(("12", "21"), both, strict=True)
        )
        for both in winners
    ]
    found = settle(passes)
    agreeing = [i for i, (one, other) in enumerate(winners) if one == other]
    if not agreeing:
        assert (found.winner, found.how) == ("uncertain", "uncertain")
    else:
        assert found.winner == winners[agreeing[0]][0]
        assert found.how == ("stable" if agreeing[0] == 0 else "resolved")
    assert (found.marks, found.unstable) == ({"C1": "B+"}, [])


@pytest.mark.parametrize("order", ["12", "21"])
@pytest.mark.parametrize("turn", [0, 1])
async def test_a_judge_of_content_says_the_same_whatever_comes_first(order, turn):
    judged = protocol(seed=SEEDS[order])
    straight = await judged.judge(PAIR, context_of(Judge(by_worth), judgment_index=turn))
    other = await judged.judge(turned_round(PAIR), context_of(Judge(by_worth), judgment_index=turn))
    assert (straight.output["winner"], straight.output["settled"]) == ("A", "stable")
    assert (other.output["winner"], other.output["settled"]) == ("B", "stable")


@cases
async def test_equal_texts_are_a_tie_without_a_call(first, second, is_equal):
    judge = Judge(steadily("A+"))
    judgment = await protocol().judge(PAIR.with_texts(first, second), context_of(judge))
    assert judgment.output["winner"] == ("tie" if is_equal else "A")
    assert len(judge.asked) == (0 if is_equal else 2)
    assert ("equal_text" in judgment.flags) is is_equal
    if is_equal:
        assert judgment.output["criteria"] == dict.fromkeys(CRITERIA, "tie")
        assert (judgment.output["settled"], judgment.output["rounds"]) == ("stable", 0)
        assert judgment.passes == ()


@pytest.mark.parametrize(
    ("where", "kind"), [("topic", "bidi"), ("first", "tags"), ("second", "zero_width")]
)
async def test_hidden_characters_are_flagged_wherever_they_stand(where, kind):
    hidden = {"bidi": "\u202e", "tags": "\U000e0041", "zero_width": "\u200b"}[kind]
    texts = {"topic": PAIR.topic, "first": PAIR.texts[0], "second": PAIR.texts[1]}
    texts[where] += hidden
    pair = replace(PAIR, topic=texts["topic"]).with_texts(texts["first"], texts["second"])
    judge = Judge(by_worth)
    judgment = await protocol().judge(pair, context_of(judge))
    assert judgment.flags == (f"hidden_characters:{kind}",)
    assert hidden in "".join(message.content for message in judge.asked[0].messages)


@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_problem_is_asked_about_within_its_pass(language):
    def reply(question):
        spoilt = question.order == "21" and question.reask == 0
        return pair_reply("A++") if spoilt else by_worth(question)

    judge = Judge(reply)
    judgment = await protocol(language).judge(PAIR, context_of(judge))
    assert judge.places == [(1, "12", 0), (1, "21", 0), (1, "21", 1)]
    first, again = judge.asked[1:]
    assert again.messages[: len(first.messages)] == first.messages
    assert [message.role for message in again.messages[-2:]] == ["assistant", "user"]
    assert "criteria.C1.mark" in again.messages[-1].content
    assert judgment.output["winner"] == "A"
    spoilt = judgment.passes[1]
    assert (spoilt.reask, spoilt.problems[0].code) == (0, "out_of_range")
    assert spoilt.winner is None
    assert judgment.passes[2].winner == "A"


@pytest.mark.parametrize("repairs", [0, 2])
async def test_a_pass_that_cannot_be_had_is_a_failure_that_keeps_the_others(repairs):
    def reply(question):
        return by_worth(question) if question.order == "12" else "I would rather not."

    judge = Judge(reply)
    judgment = await protocol(repairs=repairs).judge(PAIR, context_of(judge))
    assert (judgment.status, judgment.reason, judgment.output) == ("failure", "not_json", None)
    assert len(judge.asked) == len(judgment.passes) == 2 + repairs
    assert judgment.passes[0].winner == "A"
    assert all(one.problems[0].code == "not_json" for one in judgment.passes[1:])


async def test_a_verdict_lists_what_code_mended_in_the_replies_that_count():
    """In the order of the passes; of a reply that was asked again nothing is listed."""

    def reply(question):
        said = json.loads(steadily("A+")(question))
        if question.order == "21":
            return json.dumps(said | {"pair_id": "x"})
        said["winner"] = "a" if question.reask else "neither"
        said["criteria"]["C3"]["mark"] = " A+ " if question.reask else "a+"
        return f"```json\n{json.dumps(said)}\n```"

    judgment = await protocol(seed=SEEDS["12"]).judge(PAIR, context_of(Judge(reply)))
    assert judgment.status == "verdict"
    assert [(fix.code, fix.path) for fix in judgment.fixes] == [
        ("unwrapped", ""),
        ("unwrapped", "criteria.C3.mark"),
        ("unwrapped", "winner"),
        ("meta", "pair_id"),
    ]


async def test_a_relay_asks_the_next_judge_in_each_round_and_starts_again():
    judge = Judge(lambda question: pair_reply("A+"))
    styles = ("full", "compact", "full")
    seats = context_of(judge, judges=("one", "two", "three"), styles=styles)
    judgment = await protocol(max_rounds=4).judge(PAIR, seats)
    asked = [(one.judge_index, one.round) for one in judge.asked[::2]]
    assert asked == [(0, 1), (1, 1), (2, 1), (0, 2)], "each judge begins with a first round"
    assert [one.round for one in judgment.passes[::2]] == [1, 2, 3, 4]
    assert [one.judge for one in judgment.passes] == [
        name for name in ("one", "two", "three", "one") for _ in "12"
    ]
    compact = ["x-versus" in json.dumps(one.schema.value) for one in judge.asked]
    assert compact == [False, False, True, True, False, False, False, False]


async def test_a_compact_question_sets_the_texts_against_each_other_as_they_stand():
    judge = Judge(by_worth)
    await protocol().judge(PAIR, context_of(judge, styles=("compact",)))
    for one in judge.asked:
        asked = one.schema.value["properties"]
        marks = {
            c: given["properties"]["mark"] for c, given in asked["criteria"]["properties"].items()
        }
        names = list(PAIR.texts if one.order == "12" else PAIR.texts[::-1])
        assert asked["winner"]["x-versus"] == marks["C1"]["x-versus"]
        versus = asked["winner"]["x-versus"]
        assert (versus["names"], versus["topic"]) == (["A", "B"], PAIR.topic)
        assert versus["texts"] == names
        assert [marks[f"C{i}"] for i in (2, 3, 4, 5)] == [{"const": "tie"}] * 4
        assert one.neutral is None


def pair_of(first, second, topic="Which is it?", **rest):
    candidates = {"first": Candidate(id="x", text=first), "second": Candidate(id="y", text=second)}
    return replace(Pair(id="p", row="p", topic=topic, **candidates), **rest)


def ties(question):
    return pair_reply("tie")


def sent_to(judge):
    return "\n".join(message.content for one in judge.asked for message in one.messages)


async def test_names_that_are_all_the_difference_are_not_masked():
    judge = Judge(ties)
    names = pair_of("It was GPT-4.", "It was Claude 2.", "Which model passed the bar exam first?")
    judgment = await protocol(blind="mask").judge(names, context_of(judge))
    assert len(judge.asked) == 2
    assert "It was GPT-4." in sent_to(judge)
    assert "mask_hides_difference" in judgment.flags
    assert "equal_text" not in judgment.flags


async def test_what_stands_beside_the_candidates_is_masked_too():
    judge = Judge(ties)
    earlier = [{"role": "user", "content": "As GPT-4, help me.", "model": "gpt-4-0613"}]
    shown = pair_of("One.", "Two.", extras={"messages": earlier, "reference": "ChatGPT says one."})
    masking = protocol(blind="mask", use=("messages", "reference"))
    await masking.judge(shown, context_of(judge))
    assert "[model]" in sent_to(judge)
    assert not [name for name in ("GPT-4", "gpt-4", "ChatGPT") if name in sent_to(judge)]


async def test_of_earlier_messages_only_who_said_what_is_shown():
    judge = Judge(ties)
    earlier = [{"role": "user", "content": "Hello.", "model": "gpt-4-0613", "id": "m1"}]
    shown = pair_of("One.", "Two.", extras={"messages": earlier})
    await protocol(use=("messages",)).judge(shown, context_of(judge))
    assert '[{"role":"user","content":"Hello."}]' in sent_to(judge)
    assert "0613" not in sent_to(judge)


async def test_equal_texts_are_a_tie_even_for_a_judge_that_would_be_left_out():
    kin = pair_of("The same.", " The same. ")
    kin = replace(kin, first=replace(kin.first, model="gpt-4o"))
    context = context_of(Judge(ties), judges=("openai/gpt-4.1-mini",))
    judgment = await protocol(no_self_judging=True).judge(kin, context)
    assert (judgment.output["winner"], judgment.flags) == ("tie", ("equal_text",))


async def test_a_judge_of_a_relay_that_was_never_asked_is_not_held_against_the_verdict():
    kin = replace(pair_of("One.", "Two."), first=Candidate(id="gpt-4o", text="One."))
    context = context_of(Judge(ties), judges=("a", "openai/gpt-4.1"), styles=("full", "full"))
    assert (await protocol().judge(kin, context)).flags == ()


def family_pair(first, second):
    one, other = (
        Candidate(id=name, text=text)
        for name, text in zip((first, second), PAIR.texts, strict=True)
    )
    return replace(PAIR, first=one, second=other)


@cases
async def test_a_judge_of_a_candidate_s_family_is_flagged_or_left_out(judge, flags):
    pair = family_pair("gpt-4o", "claude-3-opus")
    flagged = await protocol().judge(pair, context_of(Judge(by_worth), judges=(judge,)))
    assert (flagged.status, list(flagged.flags)) == ("verdict", flags)
    asked = Judge(by_worth)
    strict = await protocol(no_self_judging=True).judge(pair, context_of(asked, judges=(judge,)))
    assert strict.status == ("left_out" if flags else "verdict")
    assert len(asked.asked) == (0 if flags else 2)


async def test_the_model_of_a_candidate_counts_before_its_id():
    pair = replace(PAIR, first=replace(PAIR.first, model="gpt-4o"))
    judged = await protocol().judge(pair, context_of(Judge(by_worth), judges=("openai/gpt-4.1",)))
    assert judged.flags == ("shares_family:A",)


async def test_a_relay_leaves_out_only_the_judge_that_shares_a_family():
    pair, names = family_pair("gpt-4o", "mine"), ("openai/gpt-4.1", "anthropic/claude-sonnet-4-5")
    judge = Judge(lambda question: pair_reply("A+"))
    seats = context_of(judge, judges=names, styles=("full", "full"))
    judgment = await protocol(no_self_judging=True).judge(pair, seats)
    assert {one.judge_index for one in judge.asked} == {1}
    assert judgment.flags == ()


async def test_a_candidate_that_names_its_model_is_flagged_or_masked():
    pair = PAIR.with_texts("As GPT-4, I say 9.", "It is 2.")
    for blind, is_shown in (("flag", True), ("mask", False)):
        judge = Judge(by_worth)
        judgment = await protocol(blind=blind).judge(pair, context_of(judge))
        flags = ["gives_itself_away:A"] if is_shown else ["masked:A", "gives_itself_away:A"]
        assert list(judgment.flags) == flags
        for question in judge.asked:
            sent = "".join(message.content for message in question.messages)
            assert ("GPT-4" in sent) is is_shown
        assert judgment.output["winner"] == "A"


def with_odds(question, mark, odds):
    told = {f'"{name}"': log(value) for name, value in odds.items()}
    return Reply(text=pair_reply(of_candidates(question, mark)), odds={"winner": told})


async def test_odds_are_mapped_back_to_the_candidates():
    def reply(question):
        straight = question.order == "12"
        odds = {"A": 0.7, "B": 0.2, "tie": 0.1} if straight else {"A": 0.3, "B": 0.6, "tie": 0.1}
        return with_odds(question, "A+", odds)

    judgment = await protocol().judge(PAIR, context_of(Judge(reply)))
    assert judgment.flags == ()
    turned = judgment.passes[1].odds["winner"]
    assert turned == pytest.approx({"A": log(0.6), "B": log(0.3), "tie": log(0.1)})
