"""Questions and what they share."""

from __future__ import annotations

import json

from evenhand.exchange import Message, Question, Schema
from tests.work import calls_of


def test_schemas_of_equal_text_are_equal_whatever_the_order_of_their_keys():
    one, other = Schema({"a": 1, "b": {"c": "é"}}), Schema({"b": {"c": "é"}, "a": 1})
    assert (one, hash(one)) == (other, hash(other))
    assert one != Schema({"a": 1}) != {"a": 1}
    assert json.loads(one.data) == one.value


def test_a_schema_is_written_once_for_all_questions_that_share_it():
    schema = Schema({str(number): {"type": "string"} for number in range(100)})
    first = calls_of(lambda: schema.data)
    assert calls_of(lambda: [hash(schema), schema.data, schema.data]) < 12
    assert first > calls_of(lambda: schema.data)


def test_half_of_a_surrogate_pair_in_a_schema_has_a_key_too():
    assert Schema({"enum": ["\ud800"]}).data == b'{"enum":["\xed\xa0\x80"]}'


def test_a_message_shows_itself_as_what_it_says():
    message = Message("user", "Judge this.", fixed=6)
    assert repr(message) == "Message(role='user', content='Judge this.')"
    assert repr(message) in repr(Question(messages=(message,)))
    assert message.json() == {"role": "user", "content": "Judge this."}


def test_the_size_of_a_question_is_that_of_its_conversation():
    question = Question(messages=(Message("system", "12"), Message("user", "345")))
    assert question.size == 5
    assert question.again("6", "78").size == 8
