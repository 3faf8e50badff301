import json

from evenhand.judges.embedded import answering
from evenhand.judges.embedded.alone import Favours
from evenhand.judges.embedded.priors import Priors
from tests.unit.judges.embedded.scripted import ScriptedSession


def answered(host, priors, question):
    return answering.answered(host, priors, Favours(), question)


SCHEMA = {
    "type": "object",
    "properties": {
        "why": {"type": "string", "maxLength": 40},
        "score": {"enum": [1, 5]},
    },
}


class ScriptedHost:
    """A model that gives 5 to texts with "good" in them, but leans to 5 anyway."""

    def __init__(self):
        self.sessions = []

    def session(self, messages, sampling):
        text = messages[-1].content
        score = {"1": 0.01, "5": 0.99} if "good" in text else {"1": 0.1, "5": 0.9}
        score = {"1": 0.3, "5": 0.7} if "bad" in text else score
        session = ScriptedSession(lambda _: score, lambda _: 'So it is."')
        session.prompt = tuple(range(len(text)))
        self.sessions.append((text, sampling))
        return session


def asked(text, **rest):
    question = {
        "messages": [{"role": "user", "content": text}],
        "neutral": [{"role": "user", "content": "N/A"}],
        "schema": SCHEMA,
        "max_tokens": 100,
        "temperature": 0.0,
        "seed": 1,
        "drawn": False,
    }
    return {**question, **rest}


def test_a_choice_is_what_the_content_adds_to_the_prior(tmp_path):
    host, priors = ScriptedHost(), Priors("model", tmp_path)
    good, bad = (answered(host, priors, asked(text)) for text in ("good one", "bad one"))
    assert json.loads(good.text) == {"why": "So it is.", "score": 5}
    assert json.loads(bad.text) == {"why": "So it is.", "score": 1}
    assert good.odds["score"]["5"] > good.odds["score"]["1"]
    assert (good.usage.input_tokens, good.usage.output_tokens) == (8, 10)
    assert [text for text, _ in host.sessions] == ["N/A", "good one", "bad one"]


def test_without_a_neutral_prompt_the_raw_probabilities_decide(tmp_path):
    reply = answered(ScriptedHost(), Priors("model", tmp_path), asked("bad one", neutral=[]))
    assert json.loads(reply.text)["score"] == 5


def test_the_prior_does_not_depend_on_how_texts_are_drawn(tmp_path):
    host = ScriptedHost()
    answered(host, Priors("model", tmp_path), asked("good", temperature=0.7, seed=9))
    (_, neutral), (_, own) = host.sessions
    assert (neutral.temperature, neutral.seed) == (0.0, 0)
    assert (own.temperature, own.seed) == (0.7, 9)


def test_a_reply_that_would_be_too_long_says_so(tmp_path):
    reply = answered(ScriptedHost(), Priors("model", tmp_path), asked("good", max_tokens=0))
    assert (reply.text, reply.finish) == ("", "length")


def test_without_a_schema_the_model_writes_freely(tmp_path):
    host = ScriptedHost()
    whole = answered(host, Priors("model", tmp_path), asked("good", schema=None))
    cut = answered(host, Priors("model", tmp_path), asked("good", schema=None, max_tokens=3))
    assert (whole.text, whole.finish) == ('So it is."', "stop")
    assert (cut.text, cut.finish) == ("So ", "length")


def test_a_drawn_reply_can_come_out_otherwise_and_the_same_seed_gives_the_same(tmp_path):
    host, priors = ScriptedHost(), Priors("model", tmp_path)

    def scores(**rest):
        asks = [asked("good one", temperature=2.0, seed=seed, **rest) for seed in range(40)]
        return [json.loads(answered(host, priors, one).text)["score"] for one in asks]

    assert set(scores()) == {5}
    assert set(scores(drawn=True)) == {1, 5}
    assert scores(drawn=True) == scores(drawn=True)


def test_two_texts_are_also_read_as_answers_to_their_topic_alone(tmp_path):
    versus = {
        "names": ["A", "B"],
        "texts": ["5", "1"],
        "topic": "What is good?",
        "better": "better",
        "worse": "worse",
    }
    schema = {"enum": ["A", "B", "tie"], "x-versus": versus}
    host, priors, favours = ScriptedHost(), Priors("model", tmp_path), Favours()
    question = asked("A: 5, B: 1", schema=schema, neutral=[])
    reply = answering.answered(host, priors, favours, question)
    turned = {**schema, "x-versus": {**versus, "texts": ["1", "5"]}}
    other = answering.answered(host, priors, favours, {**question, "schema": turned})
    assert (json.loads(reply.text), json.loads(other.text)) == ("A", "B")
    assert [text for text, _ in host.sessions] == ["What is good?", "A: 5, B: 1", "A: 5, B: 1"]
