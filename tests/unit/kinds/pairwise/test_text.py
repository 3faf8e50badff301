"""The text that ships with the pairwise protocol: prompts, criteria, words, examples."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from itertools import product
from typing import Any

import pytest

from evenhand.examples import example_files
from evenhand.exchange import Question, Reply
from evenhand.files.protocols import find_protocol
from evenhand.kinds import load_protocol
from evenhand.kinds.conversation import JudgingContext
from evenhand.kinds.pairwise.kind import read_max_rounds, read_priority
from evenhand.kinds.pairwise.unit import read_pairs
from evenhand.kinds.pairwise.verdict import MARKS, derive_winner
from evenhand.kinds.protocol import LANGUAGES
from tests.suites import CRITERIA
from tests.unit.kinds.pairing import PAIR, protocol

ROOT = files("evenhand") / "kinds"
BUILTIN = ROOT / "builtin" / "pairwise"
DATA = ("topic", "extras", "candidate_1", "candidate_2")
PLACEHOLDERS = {
    "prompts": {
        "system": {"rule"},
        "user": {*DATA, "criteria", "shape"},
        "again": {"problems"},
    },
    "prompts/compact": {"system": set(), "user": {*DATA}, "again": {"problems"}},
}
OWN = {"refused", "filtered", "truncated", "table_instead", "two_verdicts", "header_unknown"}
INSTEAD = {"two_objects"}
"""What is said to a judge of pairs in other words than to others."""
NEEDED = {
    "header_unknown": {"value", "allowed"},
    "not_allowed": {"path", "value", "allowed"},
    "not_json": {"quote"},
    "duplicate_key": {"value"},
    "key_missing": {"path"},
    "key_unknown": {"path"},
    "wrong_type": {"path", "value", "allowed"},
    "not_finite": {"quote", "value"},
    "reason_blank": {"path"},
}
HIDDEN = re.compile(r"[\u00a0\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\r\t]")

each_language = pytest.mark.parametrize("language", LANGUAGES)


def sections(language: str, place: str = "prompts") -> dict[str, str]:
    text = BUILTIN.joinpath(*place.split("/"), f"{language}.md").read_text("utf-8")
    before, *parts = re.split(r"^<!-- (\w+) -->\n", text, flags=re.MULTILINE)
    assert before == ""
    return dict(zip(parts[::2], parts[1::2], strict=True))


def words(language: str, place: Any = BUILTIN / "words") -> dict[str, Any]:
    return tomllib.loads((place / f"{language}.toml").read_text("utf-8"))


@each_language
@pytest.mark.parametrize("place", PLACEHOLDERS)
def test_every_prompt_has_the_same_sections_and_placeholders(language: str, place: str) -> None:
    found = sections(language, place)
    assert list(found) == ["system", "user", "again"]
    for name, text in found.items():
        placeholders = re.findall(r"\{\{(.*?)\}\}", text)
        assert sorted(placeholders) == sorted(PLACEHOLDERS[place][name]), name
        assert "{" not in re.sub(r"\{\{\w+\}\}", "", text), name
        assert not HIDDEN.search(text), name


@each_language
def test_what_all_pairs_share_comes_first_and_a_short_reminder_last(language: str) -> None:
    user = sections(language)["user"]
    names = ("criteria", "shape", "topic", "candidate_1", "candidate_2")
    places = [user.index(f"{{{{{name}}}}}") for name in names]
    assert places == sorted(places)
    after = user[places[-1] :].strip().splitlines()[1:]
    assert len("".join(after)) < 400
    assert "`winner`" in "".join(after)


@each_language
def test_the_system_text_states_the_contract(language: str) -> None:
    system = sections(language)["system"]
    for name in ("first_meets", "second_meets", "comment", "mark", "explanation", "winner"):
        assert f"`{name}`" in system, name
    for name in ("topic", "candidate_1", "candidate_2", "reference", "context", "earlier"):
        assert f"`{name}`" in system, name
    for mark in ("A+", "B+", "tie"):
        assert mark in system
    # Reasons before verdicts.
    assert system.index("`comment`") < system.index("`mark`")
    assert system.index("`explanation`") < system.rindex("`winner`")
    assert re.findall(r"\[\[.*?\]\]", system)
    assert not re.search(r"[0-9a-f]{8}\]\]", system)


@each_language
def test_the_words_have_the_same_keys_in_every_language(language: str) -> None:
    own, shared = words(language), words(language, ROOT / "common")
    assert set(own) == set(words("en")) >= {"problems", "rule", "versus"}
    assert set(own["rule"]) == set(words("en")["rule"])
    assert set(own["problems"]) == OWN | INSTEAD
    assert set(own["problems_of_any_form"]) == {"empty", "filtered", "truncated"}
    assert set(own["versus"]) == {"better", "worse"}
    assert not OWN & set(shared["problems"])
    for name, template in {**shared["problems"], **own["problems"]}.items():
        assert set(re.findall(r"\{(\w+)\}", template)) == NEEDED.get(name, set()), name
    assert own["versus"]["better"] != own["versus"]["worse"]


def _followed(rule: str, marks: Mapping[str, str]) -> str:
    """The winner by the rule as it stands in a prompt: its cases in their order, the criteria that
    it names in theirs."""
    all_tie, one_side, *conflict = rule.splitlines()
    assert all_tie and one_side
    favoured = set(marks.values()) - {"tie"}
    if len(favoured) < 2:
        return {"A+": "A", "B+": "B"}[favoured.pop()] if favoured else "tie"
    decisive = [marks[name] for name in re.findall(r"C\d", conflict[0])]
    if not decisive:
        assert len(conflict) == 1 and '"tie"' in conflict[0]
        return "tie"
    first = next((mark for mark in decisive if mark != "tie"), None)
    assert first or len(conflict) == 2, "the rule leaves a case open"
    return {"A+": "A", "B+": "B"}[first] if first else "tie"


@each_language
@pytest.mark.parametrize(
    "priority", [("C1", "C2", "C5"), ("C4",), (), ("C5", "C3", "C2", "C1", "C4")]
)
def test_a_judge_that_follows_its_prompt_never_contradicts_the_rule(
    language: str, priority: tuple[str, ...]
) -> None:
    judged = protocol(language, priority=priority)
    (question, _) = judged.questions(PAIR, JudgingContext(ask=_nobody))
    system, user = question.messages
    assert system.content.count(judged.texts["rule"]) == 1
    assert judged.texts["rule"] not in user.content
    for marks in product(MARKS, repeat=len(CRITERIA)):
        given = dict(zip(CRITERIA, marks, strict=True))
        assert _followed(judged.texts["rule"], given) == derive_winner(given, priority), given


async def _nobody(question: Question) -> Reply:
    raise AssertionError("nobody is asked")


@each_language
def test_a_small_model_is_asked_one_thing_and_cannot_contradict_the_rule(language: str) -> None:
    judged = protocol(language)
    (question, _) = judged.questions(PAIR, JudgingContext(ask=_nobody, styles=("compact",)))
    assert question.schema is not None
    form = question.schema.value["properties"]
    marks = {c: one["properties"]["mark"] for c, one in form["criteria"]["properties"].items()}
    assert marks.pop("C1")["x-versus"] == form["winner"]["x-versus"]
    assert all(mark == {"const": "tie"} for mark in marks.values())


def test_words_that_a_folder_leaves_out_are_english_where_its_language_has_none() -> None:
    texts = dict(find_protocol("pairwise").texts)
    texts |= {"words/de.toml": '[rule]\nall_tie = "- Alles gleich: tie."\n'}
    said = load_protocol("house", texts).words("de")
    assert said.phrases["rule.all_tie"] == "- Alles gleich: tie."
    assert said.phrases["rule.one_side"] == words("en")["rule"]["one_side"]
    assert said.problems["two_verdicts"] == words("en")["problems"]["two_verdicts"]


@each_language
def test_criteria_priority_and_rounds_are_those_of_the_specification(language: str) -> None:
    protocol = find_protocol("pairwise")
    criteria = protocol.read_table("criteria", language)
    assert tuple(criteria) == CRITERIA
    assert len(set(criteria.values())) == 5
    assert read_priority(protocol) == ("C1", "C2", "C5")
    assert read_max_rounds(protocol) == 3


@each_language
def test_the_examples_can_be_judged(language: str) -> None:
    made = example_files("pairwise", language)
    rows = [json.loads(line) for line in made["pairs.jsonl"].splitlines()]
    found = [pair for row in rows for pair in read_pairs(row)]
    assert len({pair.id for pair in found}) == len(found) >= 5
    suite = tomllib.loads(made["evenhand.toml"])
    assert (suite["protocol"], suite["language"]) == ("pairwise", language)
    assert suite["data"] == ["pairs.jsonl"]
