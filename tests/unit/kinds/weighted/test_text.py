"""The prompts that ship with the weighted protocol, in four languages."""

from __future__ import annotations

import re

import pytest

from evenhand.files.protocols import protocol_texts
from evenhand.kinds.protocol import LANGUAGES
from evenhand.kinds.weighted.verdict import REASONING_CHARS

APPLIED = ("critical", "facts", "rubric")
"""The blocks that come from those who set up an evaluation."""
DATA = ("prompt", "answer", "reference", "context", "earlier")
INSERTED = ("shape", "types", *APPLIED, "prompt", "extras", "answer")
HIDDEN = re.compile(r"[\u00a0\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\r\t]")

each_language = pytest.mark.parametrize("language", LANGUAGES)


def sections(language: str, place: str = "prompts") -> dict[str, str]:
    text = protocol_texts("weighted")[f"{place}/{language}.md"]
    before, *parts = re.split(r"^<!-- (\w+) -->\n", text, flags=re.MULTILINE)
    assert before == ""
    return dict(zip(parts[::2], parts[1::2], strict=True))


@each_language
def test_every_prompt_has_the_same_sections_and_placeholders(language: str) -> None:
    full, compact = sections(language), sections(language, "prompts/compact")
    assert list(full) == list(compact) == ["system", "user", "again"]
    assert tuple(re.findall(r"\{\{(\w+)\}\}", full["user"])) == INSERTED
    assert set(re.findall(r"\{\{(\w+)\}\}", compact["user"])) == set(INSERTED) - {"shape"}
    for found in (full, compact):
        assert re.findall(r"\{\{(\w+)\}\}", found["again"]) == ["problems"]
        assert "{" not in found["system"]
        assert not HIDDEN.search("".join(found.values()))


@each_language
def test_the_organisers_blocks_are_applied_and_the_others_are_data(language: str) -> None:
    system = sections(language)["system"]
    listed = re.findall(r"^- `(\w+)`", system, flags=re.MULTILINE)
    assert tuple(listed[: len(APPLIED + DATA)]) == APPLIED + DATA
    between = system[system.index("- `rubric`") : system.index("- `prompt`")]
    assert len(between.strip().split("\n\n")) == 2, "what is data is said before the data is listed"
    user = sections(language)["user"]
    said = user[user.index("{{answer}}") :].split("\n\n")[1]
    assert all(f"`{name}`" in said for name in APPLIED)
    assert not any(f"`{name}`" in said for name in DATA)


@each_language
def test_conditions_come_first_then_what_the_user_wants_then_points(language: str) -> None:
    system = sections(language)["system"]
    steps = re.findall(r"^(\d)\. (.*)$", system, flags=re.MULTILINE)
    assert [number for number, _ in steps] == ["1", "2", "3", "4"]
    critical, intent, points, _ = (text for _, text in steps)
    assert "`critical`" in critical and "`critical_fail`" in critical
    assert "`prompt`" in intent and "`reasoning`" not in intent
    assert "`rubric`" in points and "`facts`" in points


@each_language
def test_the_reasoning_is_asked_for_in_what_the_contract_keeps(language: str) -> None:
    (line,) = re.findall(r"^- `reasoning`.*$", sections(language)["system"], flags=re.MULTILINE)
    assert str(REASONING_CHARS) in line
