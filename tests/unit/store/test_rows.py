"""Calls as rows, and back."""

import json
from hashlib import sha256

import pytest
from msgspec import structs
from msgspec.structs import replace

from evenhand.exchange import Message, Question, Reply, Schema
from evenhand.manifest import (
    Compare,
    GateRule,
    JudgeRecord,
    JudgingRecord,
    Stopping,
    judging_json,
    plain,
    read_judging,
    rubric_json,
)
from evenhand.store.ports import Call
from evenhand.store.rows import call_keys, call_row, ledger_call, unit_digest
from evenhand.store.session import VERSION, schema
from evenhand.suite_file import CompareSpec, GateSpec, StopSpec
from tests.suites import at, prepared, write_suite


@pytest.mark.parametrize(
    ("sampling", "kept"),
    [
        ({"temperature": 0.5, "seed": 7}, {"temperature": 0.5, "seed": 7}),
        ({"stop": ["a", "b"], "seed": 7}, {"stop": ["a", "b"], "seed": 7}),
        ({"bias": {"50256": -100}}, {"bias": {"50256": -100}}),
        ({"seed": float("nan"), "top_p": 1}, {"seed": "nan", "top_p": 1}),
        ({"seed": {1}}, {"seed": "{1}"}),
        ({("a", "b"): 1}, {"('a', 'b')": 1}),
        ({}, {}),
    ],
)
def test_a_reply_is_kept_whatever_its_judge_says_of_sampling(sampling, kept):
    for _ in range(2):
        call = Call("key", "run", "judge", Reply(text="{}", model="m", sampling=sampling), 5)
        *columns, digest, at = call_row(call, "2026-01-01T00:00:00")
        found = ledger_call((1, at, None, digest, *columns))
        assert (found.call.reply.sampling, found.altered) == (kept, False)


IDENTITY = {"provider": "openai", "base_url": "http://a/v1", "model": "m"}
QUESTION = Question(
    messages=(Message("system", "You judge."), Message("user", "Оцени.")),
    schema=Schema({"type": "object"}),
    unit="u1",
)


def key(question=QUESTION, **identity):
    return call_keys(IDENTITY | identity)(question)


def test_the_canonical_form_is_pinned():
    """Were this to change, every ledger in use would be worthless."""
    assert key() == "call2-blake2b:50e2189bd518076697aa3b17a9b8d3704828779a"


def test_keys_do_not_hang_on_the_questions_before():
    turns = [Message("user", text) for text in ("Judge.", "And?", "Judge.And?")]
    questions = [
        replace(QUESTION, messages=messages, schema=schema, round=number, unit=unit)
        for messages in ((turns[0],), (turns[0], turns[1]), (turns[2],), (turns[1], turns[0]))
        for schema in (None, QUESTION.schema)
        for number in (1, 2)
        for unit in ("u1", "u2")
    ]
    for identity in (IDENTITY, IDENTITY | {"by_unit": True}):
        key_of = call_keys(identity)
        alone = [call_keys(identity)(question) for question in questions]
        assert [key_of(question) for question in questions] == alone
        assert [key_of(question) for question in reversed(questions)] == alone[::-1]
        assert len(set(alone)) == len(questions) // (1 if "by_unit" in identity else 2)


CHANGES = [
    {"messages": (Message("system", "You judge!"), QUESTION.messages[1])},
    {"messages": (Message("user", "You judge."), QUESTION.messages[1])},
    {"messages": QUESTION.messages[1:]},
    {"schema": None},
    {"schema": Schema({"type": "array"})},
    {"round": 2},
    {"repeat": 1},
    {"reask": 1},
]
OF_THE_JUDGE = [{"provider": "x"}, {"base_url": "http://b/v1"}, {"model": "n"}, {"seed": 1}]
PLACES = [{"unit": "u2"}, {"order": "21"}]


def test_whatever_can_change_the_answer_changes_the_key_and_nothing_else():
    others = [key(replace(QUESTION, **changed)) for changed in CHANGES]
    others += [key(**changed) for changed in OF_THE_JUDGE]
    assert len({key(), *others}) == 1 + len(others)
    same = [key(replace(QUESTION, **one)) for one in [*PLACES, {"neutral": QUESTION.messages}]]
    assert set(same) == {key()}
    # Unit and order count for judges that answer by them.
    by_unit = [key(replace(QUESTION, **changed), by_unit=True) for changed in [{}, *PLACES]]
    assert len(set(by_unit)) == 3


def test_equal_schemas_have_equal_keys_whichever_came_before():
    key_of = call_keys(IDENTITY)
    schemas = [Schema({"a": 1}), None, Schema({"a": 1}), Schema({"b": 1})]
    keys = [key_of(replace(QUESTION, schema=schema)) for schema in schemas]
    assert keys[0] == keys[2]
    assert len(set(keys)) == 3
    assert keys[1] == call_keys(IDENTITY)(replace(QUESTION, schema=None))


def test_fields_cannot_run_into_each_other():
    one = (Message("user", "a"), Message("user", "b"))
    other = (Message("user", 'a"],["user","b'),)
    assert key(replace(QUESTION, messages=one)) != key(replace(QUESTION, messages=other))


def test_neither_the_api_key_nor_the_time_is_part_of_a_judge(tmp_path):
    write_suite(tmp_path, 1, at("http://127.0.0.1:9/v1"))
    identities = [
        prepared(tmp_path, {"OPENAI_API_KEY": secret}).setups[0].judge.identity
        for secret in ("sk-one-111111", "sk-two-222222")
    ]
    assert identities[0] == identities[1]
    assert "sk-" not in str(identities)


def test_a_judging_is_known_by_what_can_change_its_verdicts(tmp_path):
    def judging(units=1, *judges, **rest):
        return prepared(write_suite(tmp_path, units, *judges, **rest)).manifest.judging.id

    same = {
        judging(),
        judging(9),
        judging(name="other"),
        judging(limits={"concurrency": 3}),
        judging(store={"url": "sqlite:x.db"}),
        judging(compare={"by": "model"}),
    }
    assert len(same) == 1
    changed = [
        judging(language="ru"),
        judging(seed=1),
        judging(settings={"repairs": 1}),
        judging(settings={"expose_meta": True}),
        judging(use=["context"]),
        judging(1, {"model": "python/judge:good", "repeats": 2}),
        judging(1, {"model": "python/judge:good", "temperature": 1}),
        judging(1, {"model": "python/judge:bad"}),
    ]
    write_suite(tmp_path, 1)
    rubric = json.loads((tmp_path / "rubric.json").read_text())
    rubric["dimensions"][0]["definition"] = "Something else?"
    (tmp_path / "rubric.json").write_text(json.dumps(rubric))
    changed.append(prepared(tmp_path).manifest.judging.id)
    assert len(same | set(changed)) == 1 + len(changed)


def test_a_judging_that_was_stored_has_the_same_id():
    judge = JudgeRecord(name="j", identity={"b": 1, "a": {"y": 0.0, "x": None}}, caveat="weak")
    judging = JudgingRecord(
        protocol="p",
        texts={"a.md": "A"},
        judges=(judge,),
        rubric_json=rubric_json({"b": 1, "a": 2}),
    )
    turned = JudgeRecord(name="j", identity={"a": {"x": None, "y": 0.0}, "b": 1})
    stored = read_judging(judging_json(judging, {"a.md": "digest"}))
    assert judging.id == stored.id == structs.replace(judging, judges=(turned,)).id


def test_ids_of_units_cannot_run_into_their_texts():
    assert unit_digest("a", "bc") != unit_digest("ab", "c")


def test_the_questions_of_a_suite_are_those_of_the_manifest():
    """What a suite file can say of them is what a manifest keeps, with the same defaults."""
    for part, record in (
        (CompareSpec(), Compare()),
        (StopSpec(), Stopping()),
        (GateSpec(), GateRule()),
    ):
        assert part.model_dump() == plain(record)


DIGESTS = {4: "220d5856eddc8878"}


def test_a_changed_schema_has_a_new_version():
    """A store of another version is refused in words; one of this version must have its tables."""
    text = "\n".join(" ".join(statement.split()) for statement in schema()[:-1])
    assert {VERSION: sha256(text.encode()).hexdigest()[:16]} == DIGESTS
