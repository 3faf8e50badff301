"""A key changes with each thing that can change the answer, and with nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evenhand.exchange import Message, Question
from evenhand.ledger.keys import call_keys, run_id
from tests.suites import at, prepared, write_suite

IDENTITY: dict[str, Any] = {"provider": "openai", "base_url": "http://a/v1", "model": "m"}
QUESTION = Question(
    messages=(Message("system", "You judge."), Message("user", "Оцени.")),
    schema={"type": "object"},
    unit="u1",
)


def key(question: Question = QUESTION, **identity: Any) -> str:
    return call_keys(IDENTITY | identity)(question)


def test_the_canonical_form_is_pinned() -> None:
    """Were this to change, every ledger in use would be worthless."""
    assert key() == "call1-blake2b:4bd375970d64544528bdf3bf7a6dff2b0a00b825"


@pytest.mark.parametrize(
    "changed",
    [
        {"messages": (Message("system", "You judge!"), QUESTION.messages[1])},
        {"messages": (Message("user", "You judge."), QUESTION.messages[1])},
        {"messages": QUESTION.messages[1:]},
        {"schema": None},
        {"schema": {"type": "array"}},
        {"order": "21"},
        {"round": 2},
        {"repeat": 1},
        {"reask": 1},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_whatever_can_change_the_answer_changes_the_key(changed: dict[str, Any]) -> None:
    assert key(replace(QUESTION, **changed)) != key()


@pytest.mark.parametrize(
    "changed", [{"provider": "x"}, {"base_url": "http://b/v1"}, {"model": "n"}, {"seed": 1}]
)
def test_so_does_whatever_identifies_the_judge(changed: dict[str, Any]) -> None:
    assert key(**changed) != key()


@pytest.mark.parametrize("changed", [{"unit": "u2"}, {"neutral": QUESTION.messages}])
def test_nothing_else_does(changed: dict[str, Any]) -> None:
    assert key(replace(QUESTION, **changed)) == key()


def test_the_unit_counts_for_judges_that_answer_by_it() -> None:
    assert key(replace(QUESTION, unit="u2"), by_unit=True) != key(by_unit=True)


def test_equal_schemas_have_equal_keys_whichever_came_before() -> None:
    key_of = call_keys(IDENTITY)
    keys = [key_of(replace(QUESTION, schema=s)) for s in ({"a": 1}, None, {"a": 1}, {"b": 1})]
    assert keys[0] == keys[2]
    assert len(set(keys)) == 3
    assert keys[1] == call_keys(IDENTITY)(replace(QUESTION, schema=None))


def test_fields_cannot_run_into_each_other() -> None:
    one = (Message("user", "a"), Message("user", "b"))
    other = (Message("user", 'a"],["user","b'),)
    assert key(replace(QUESTION, messages=one)) != key(replace(QUESTION, messages=other))


def test_neither_the_api_key_nor_the_time_is_part_of_a_judge(tmp_path: Path) -> None:
    write_suite(tmp_path, 1, at("http://127.0.0.1:9/v1"))
    identities = [
        prepared(tmp_path, {"OPENAI_API_KEY": secret}).seats[0].judge.identity
        for secret in ("sk-one-111111", "sk-two-222222")
    ]
    assert identities[0] == identities[1]
    assert "sk-" not in str(identities)


def test_a_run_is_known_by_what_can_change_its_verdicts(tmp_path: Path) -> None:
    def run(units: int = 1, *judges: dict[str, Any], **rest: Any) -> str:
        return prepared(write_suite(tmp_path, units, *judges, **rest)).run

    same = {run(), run(9), run(limits={"concurrency": 3}), run(store={"url": "sqlite:x.db"})}
    assert len(same) == 1
    changed = [
        run(name="other"),
        run(language="ru"),
        run(seed=1),
        run(settings={"repairs": 1}),
        run(settings={"expose_meta": True}),
        run(use=["context"]),
        run(1, {"model": "python/judge:good", "repeats": 2}),
        run(1, {"model": "python/judge:good", "temperature": 1}),
        run(1, {"model": "python/judge:bad"}),
    ]
    assert len(same | set(changed)) == 1 + len(changed)
    assert run_id({"a": 1, "b": 2}) == run_id({"b": 2, "a": 1})
