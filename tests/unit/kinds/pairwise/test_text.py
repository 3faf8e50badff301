"""The text that ships with the pairwise protocol: prompts, criteria, words, examples."""

from __future__ import annotations

import json
import re
import tomllib
from importlib.resources import files
from typing import Any

import pytest

from evenhand.examples import example_files
from evenhand.files.protocols import find_protocol
from evenhand.kinds.pairwise.form import read_criteria, read_max_rounds, read_priority
from evenhand.kinds.pairwise.unit import read_pairs
from evenhand.kinds.shared.load import LANGUAGES
from tests.suites import CRITERIA

ROOT = files("evenhand") / "kinds"
BUILTIN = ROOT / "builtin" / "pairwise"
DATA = ("topic", "extras", "candidate_1", "candidate_2")
PLACEHOLDERS = {
    "prompts": {"system": set(), "user": {*DATA, "criteria", "shape"}, "again": {"problems"}},
    "prompts/compact": {"system": set(), "user": {*DATA}, "again": {"problems"}},
}
OWN = {"refused", "filtered", "truncated", "mark_unknown", "winner_unknown", "table_instead"}
NEEDED = {
    "mark_unknown": {"path", "value", "allowed"},
    "winner_unknown": {"path", "value", "allowed"},
    "duplicate_key": {"value"},
    "key_missing": {"path"},
    "key_unknown": {"path"},
    "wrong_type": {"path", "allowed"},
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
def test_the_candidates_stand_in_order_and_instructions_follow_them(language: str) -> None:
    user = sections(language)["user"]
    places = [user.index(f"{{{{{name}}}}}") for name in ("topic", "candidate_1", "candidate_2")]
    assert places == sorted(places)
    after = user[places[-1] :]
    names = ("`first_meets`", "`second_meets`", "`comment`", "`mark`", "`explanation`", "`winner`")
    assert [after.index(name) for name in names] == sorted(after.index(name) for name in names)
    assert after.rstrip().endswith("{{shape}}")


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
    assert set(own) == set(words("en")) >= {"problems", "versus"}
    assert set(own["problems"]) == OWN
    assert set(own["versus"]) == {"better", "worse"}
    assert not OWN & set(shared["problems"])
    for name, template in {**shared["problems"], **own["problems"]}.items():
        assert set(re.findall(r"\{(\w+)\}", template)) == NEEDED.get(name, set()), name
    assert own["versus"]["better"] != own["versus"]["worse"]


@each_language
def test_criteria_priority_and_rounds_are_those_of_the_specification(language: str) -> None:
    protocol = find_protocol("pairwise")
    criteria = read_criteria(protocol, language)
    assert tuple(one.id for one in criteria) == CRITERIA
    assert len({one.text for one in criteria}) == 5
    assert read_priority(protocol, criteria) == ("C1", "C2", "C5")
    assert read_max_rounds(protocol) == 3


@each_language
def test_the_examples_can_be_judged(language: str) -> None:
    made = example_files("pairwise", language)
    rows = [json.loads(line) for line in made["pairs.jsonl"].splitlines()]
    found = [pair for row in rows for pair in read_pairs(row, 0, 7)]
    assert len({pair.id for pair in found}) == len(found) >= 5
    suite = tomllib.loads(made["evenhand.toml"])
    assert (suite["protocol"], suite["language"]) == ("pairwise", language)
    assert suite["data"] == ["pairs.jsonl"]
