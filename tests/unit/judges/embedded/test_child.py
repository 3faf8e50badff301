"""The child's answers, from a scripted model."""

import json

from evenhand.judges.embedded.child import Answerer
from evenhand.judges.embedded.decoding import Versus
from tests.unit.judges.embedded.model import ScriptedRuntime

SCORED = {
    "type": "object",
    "properties": {"why": {"type": "string", "maxLength": 40}, "score": {"enum": [1, 5]}},
}


class Child(Answerer):
    """Its runtime, and replies to questions with defaults."""

    def __init__(self):
        self.runtime = ScriptedRuntime()
        super().__init__(self.runtime)

    def ask(self, text, neutral="N/A", **rest):
        settings = {"schema": SCORED, "max_tokens": 100, "temperature": 0.0, "seed": 1}
        messages, nothing = ([{"role": "user", "content": one}] for one in (text, neutral))
        given = {"messages": messages, "neutral": nothing if neutral else [], "drawn": False}
        return self.answer(given | settings | rest)

    def score(self, text, **rest):
        return json.loads(self.ask(text, **rest).text)["score"]

    @property
    def asked(self):
        return [text for text, *_ in self.runtime.sessions]


def test_a_choice_is_what_the_content_adds_to_the_prior_which_is_measured_once():
    child = Child()
    good, bad = child.ask("good one"), child.ask("bad one")
    assert json.loads(good.text) == {"why": "So it is.", "score": 5}
    assert json.loads(bad.text) == {"why": "So it is.", "score": 1}
    assert good.odds["score"]["5"] > good.odds["score"]["1"]
    assert (good.usage.input_tokens, good.usage.output_tokens) == (8, 10)
    assert child.asked == ["N/A", "good one", "bad one"]
    # Without a neutral prompt the raw probabilities decide.
    assert child.score("bad one", neutral="") == 5


def test_another_neutral_prompt_or_choice_has_its_own_prior():
    child, other = Child(), {"type": "object", "properties": {"score": {"enum": [1, 4, 5]}}}
    for rest in ({}, {"neutral": "-"}, {"schema": other}):
        child.ask("good", **rest)
    assert [text for text in child.asked if text != "good"] == ["N/A", "-", "N/A"]


def test_the_prior_does_not_depend_on_how_texts_are_drawn():
    child = Child()
    child.ask("good", temperature=0.7, seed=9)
    assert child.runtime.sessions == [("N/A", 0.0, 0), ("good", 0.7, 9)]


def test_a_reply_ends_where_the_tokens_do():
    child = Child()
    asked = [{"max_tokens": 0}, {"schema": None}, {"schema": None, "max_tokens": 3}]
    replies = [child.ask("good", **rest) for rest in asked]
    assert [(reply.text, reply.finish) for reply in replies] == [
        ("", "length"),
        ('So it is."', "stop"),
        ("So ", "length"),
    ]


def test_a_drawn_reply_can_come_out_otherwise_and_the_same_seed_gives_the_same():
    child = Child()

    def scores(**rest):
        return [child.score("good one", temperature=2.0, seed=seed, **rest) for seed in range(40)]

    assert (set(scores()), set(scores(drawn=True))) == ({5}, {1, 5})
    assert scores(drawn=True) == scores(drawn=True)


def test_two_texts_are_also_read_once_in_either_order_as_answers_to_their_topic_alone():
    child = Child()
    versus = {"names": ["A", "B"], "topic": "What is good?", "better": "better", "worse": "worse"}
    for texts, winner in ((["5", "1"], "A"), (["1", "5"], "B")):
        schema = {"enum": ["A", "B", "tie"], "x-versus": versus | {"texts": texts}}
        assert json.loads(child.ask("A: 5, B: 1", schema=schema, neutral="").text) == winner
    assert child.asked == ["What is good?", "A: 5, B: 1", "A: 5, B: 1"]
    one, turned, elsewhere = (
        child.lead(Versus(("A", "B"), texts, topic, "better", "worse"))
        for texts, topic in ((("5", "1"), "Where?"), (("1", "5"), "Where?"), (("5", "1"), "Why?"))
    )
    assert one == -turned == elsewhere != 0
    assert child.asked[3:] == ["Where?", "Why?"]
