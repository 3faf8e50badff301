"""The text that ships with the rubric protocol: prompts, words and examples in four languages."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import replace
from importlib.resources import files
from typing import Any

import pytest
from msgspec import structs

from evenhand.files.protocols import find_protocol
from evenhand.kinds import load_protocol
from evenhand.kinds.protocol import LANGUAGES
from evenhand.limits import EVIDENCE_MAX, EVIDENCE_MIN, NOTES_CHARS
from evenhand.units import META_FIELDS, sample_id
from evenhand.words import words as page_words
from tests.unit.kinds.material import PHRASES, RUBRIC, SAMPLE, good, protocol

PLACEHOLDERS = {
    "system": {"tags"},
    "user": {"question", "model_output", "rubric", "extras", "shape"},
    "again": {"problems"},
}
DATA = ("question", "model_output", "reference", "context", "earlier")
TAGS = {
    "en": [
        "schema/format error",
        "departs from the instructions",
        "semantic drift",
        "robustness (variance)",
        "gaming the evaluation",
    ],
    "ru": [
        "ошибка схемы/формата",
        "отступление от инструкций",
        "смысловой сдвиг",
        "неустойчивость (разброс)",
        "подстройка под оценку",
    ],
    "zh": ["Schema/格式错误", "指令偏离", "语义漂移", "稳健性问题（方差）", "评测投机"],
    "ja": [
        "スキーマ／形式の誤り",
        "指示からの逸脱",
        "意味のずれ",
        "頑健性の問題（ばらつき）",
        "評価稼ぎ",
    ],
}
"""The contract's own names for the failure tags, A to E."""
KINDS = {
    "not_in_form",
    "not_json",
    "empty",
    "refused",
    "filtered",
    "truncated",
    "copied",
    "prose_around",
    "two_objects",
    "duplicate_key",
    "not_finite",
    "bad_text",
    "too_deep",
    "not_object",
    "key_missing",
    "key_unknown",
    "wrong_type",
    "reason_blank",
    "not_allowed",
    "evidence_count",
    "evidence_blank",
    "evidence_slight",
    "evidence_nowhere",
    "evidence_from_question",
    "evidence_from_rubric",
    "evidence_unsaid",
    "meta_changed",
}
# What a message is of no use without.
NEEDED = {
    "not_json": {"quote"},
    "duplicate_key": {"value"},
    "key_missing": {"path"},
    "key_unknown": {"path"},
    "wrong_type": {"path", "value", "allowed"},
    "not_finite": {"quote", "value"},
    "reason_blank": {"path"},
    "not_allowed": {"path", "value", "allowed"},
    "evidence_count": {"path"},
    "evidence_blank": {"path", "phrase"},
    "evidence_slight": {"path", "quote", "phrase"},
    "evidence_nowhere": {"path", "quote", "phrase"},
    "evidence_from_question": {"path", "quote", "phrase"},
    "evidence_from_rubric": {"path", "quote", "phrase"},
    "evidence_unsaid": {"path", "phrase"},
    "meta_changed": {"path"},
}
FIELDS = {
    "path": "scores.on_task.evidence[0]",
    "value": "4",
    "allowed": "1, 3, 5",
    "quote": "a {quote} with {braces}",
    "phrase": "no evidence found",
}

HIDDEN = re.compile(r"[\u00a0\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\r\t]")

ROOT = files("evenhand")
BUILTIN = ROOT / "kinds" / "builtin" / "rubric"
EXAMPLES = ROOT / "examples" / "rubric"
WORDS_EN = (BUILTIN / "words" / "en.toml").read_text("utf-8")

each_language = pytest.mark.parametrize("language", LANGUAGES)


def sections(language: str) -> dict[str, str]:
    text = (BUILTIN / "prompts" / f"{language}.md").read_text("utf-8")
    before, *parts = re.split(r"^<!-- (\w+) -->\n", text, flags=re.MULTILINE)
    assert before == ""
    return dict(zip(parts[::2], parts[1::2], strict=True))


def words(language: str) -> dict[str, Any]:
    """The protocol's own words over those that all kinds share."""
    own, shared = (
        tomllib.loads((place / f"{language}.toml").read_text("utf-8"))
        for place in (BUILTIN / "words", ROOT / "kinds" / "common")
    )
    return shared | own | {"problems": shared["problems"] | own["problems"]}


def samples(language: str) -> list[dict[str, Any]]:
    text = (EXAMPLES / language / "samples.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def fields_of(template: str) -> set[str]:
    return set(re.findall(r"\{(\w+)\}", template))


@each_language
def test_a_prompt_has_three_sections_with_the_same_placeholders_in_every_language(language):
    found = sections(language)
    assert list(found) == ["system", "user", "again"]
    for name, text in found.items():
        placeholders = re.findall(r"\{\{(.*?)\}\}", text)
        assert sorted(placeholders) == sorted(PLACEHOLDERS[name]), name
        assert "{" not in re.sub(r"\{\{\w+\}\}", "", text), name


@each_language
def test_what_all_samples_share_comes_first_and_a_short_reminder_last(language):
    user = sections(language)["user"]
    names = ("rubric", "shape", "question", "extras", "model_output")
    places = [user.index(f"{{{{{name}}}}}") for name in names]
    assert places == sorted(places)
    after = "".join(user[places[-1] :].strip().splitlines()[1:])
    assert len(after) < 400
    assert "`rubric`" in after and "`model_output`" in after


@each_language
def test_the_system_text_states_the_contract(language):
    system = sections(language)["system"]
    assert PHRASES[language] in system
    for name in (*DATA, "evidence", "rationale", "score", "failure_tags", "notes"):
        assert f"`{name}`" in system, name
    assert str(NOTES_CHARS) in system


@each_language
def test_the_rubric_is_applied_and_every_other_block_is_data(language):
    system, user = (sections(language)[name] for name in ("system", "user"))
    applied = system.index("`rubric`")
    assert applied < system.index(f"- `{DATA[0]}`")
    assert [system.index(f"`{name}`") for name in DATA] == sorted(
        system.index(f"`{name}`") for name in DATA
    )
    after = user[user.index("{{model_output}}") :]
    assert "`rubric`" in after.split("\n\n")[1]


@each_language
def test_the_tags_have_the_names_of_the_contract_in_prompt_report_and_view(language):
    (system, _) = protocol(language).question(SAMPLE, RUBRIC, "full").messages
    lines = re.findall(r"^- ([A-E])\b(.*)$", system.content, flags=re.MULTILINE)
    assert [letter for letter, _ in lines] == list("ABCDE")
    for (letter, told), name in zip(lines, TAGS[language], strict=True):
        assert name in told
        assert page_words(language)(f"tag.{letter}") == name


def test_a_folder_may_call_the_tags_by_its_own_names():
    texts = dict(find_protocol("rubric").texts) | {"words/kind/en.toml": WORDS_EN}
    own = load_protocol("house", texts | {"words/en.toml": '[tags]\nA = "broken form"\n'})
    judged = replace(protocol(), words=own.words("en"))
    (system, _) = judged.question(SAMPLE, RUBRIC, "full").messages
    assert "- A: broken form: " in system.content
    assert "- B: departs from the instructions: " in system.content


@each_language
def test_a_protocol_with_its_own_phrase_for_no_evidence_is_asked_again_for_that_phrase(language):
    phrases = {**protocol(language).words.phrases, "no_evidence": "keine Belege"}
    judged = protocol(language)
    judged = replace(judged, words=structs.replace(judged.words, phrases=phrases))
    reply = good()
    reply["scores"]["correct"]["evidence"] = ["nowhere to be found", " "]
    problems = judged.check(json.dumps(reply), SAMPLE).problems
    assert len(problems) == 2
    assert all("keine Belege" in problem.wording for problem in problems)


@each_language
def test_the_system_text_shows_no_fence_that_a_text_could_copy(language):
    system = sections(language)["system"]
    assert re.findall(r"\[\[.*?\]\]", system)
    assert not re.search(r"[0-9a-f]{8}\]\]", system)


def test_the_counts_written_into_the_prompts_are_those_of_the_contract():
    assert (EVIDENCE_MIN, EVIDENCE_MAX, NOTES_CHARS) == (1, 3, 300)


@each_language
def test_the_words_have_the_same_keys_in_every_language(language):
    found = words(language)
    tables = {"tags", "tag_meanings", "problems", "types", "neutral"}
    assert set(found) == {"no_evidence", "copy_meta", "again", "tag_line", *tables}
    assert set(found["tags"]) == set(found["tag_meanings"]) == set("ABCDE")
    assert fields_of(found["tag_line"]) == {"tag", "name", "meaning"}
    assert "meta" in found["copy_meta"]
    assert set(found["problems"]) == KINDS
    assert set(found["types"]) == {"object", "array", "string", "number", "boolean"}
    assert set(found["neutral"]) == {"question", "answer"}
    assert found["no_evidence"] == PHRASES[language]


@each_language
def test_every_problem_can_be_told_and_names_what_it_is_about(language):
    for kind, template in words(language)["problems"].items():
        assert fields_of(template) == NEEDED.get(kind, set()), kind
        told = template.format(**FIELDS)
        assert told.strip() == told != "", kind
        assert "\n" not in told, kind
        for name in NEEDED.get(kind, set()):
            assert FIELDS[name] in told, (kind, name)


@each_language
def test_the_example_samples_are_rows_of_the_contract(language):
    rows = samples(language)
    assert len(rows) == 5
    for row in rows:
        assert list(row) == ["meta", "question", "model_output"]
        assert tuple(row["meta"]) == META_FIELDS
        assert row["question"].strip()
        assert row["model_output"].strip()


def test_the_example_samples_have_ids_of_their_own_across_all_languages():
    ids = [sample_id(row) for language in LANGUAGES for row in samples(language)]
    assert len(ids) == len(set(ids)) == 20


@each_language
def test_every_example_question_has_both_variants_of_one_model_to_compare(language):
    metas = [row["meta"] for row in samples(language)]
    for question in {meta["question_id"] for meta in metas}:
        asked = {(m["model"], m["prompt_variant"]) for m in metas if m["question_id"] == question}
        assert {("model-a", "v1"), ("model-a", "v2")} <= asked
    texts = {(row["meta"]["question_id"], row["question"]) for row in samples(language)}
    assert len(texts) == 2


@each_language
def test_the_example_rubric_has_two_dimensions_of_three_bands(language):
    rubric = json.loads((EXAMPLES / language / "rubric.json").read_text("utf-8"))
    assert list(rubric) == ["dimensions"]
    assert [dimension["id"] for dimension in rubric["dimensions"]] == ["correct", "on_task"]
    for dimension in rubric["dimensions"]:
        assert list(dimension) == ["id", "name", "scale", "definition", "bands"]
        assert [band["score"] for band in dimension["bands"]] == [1, 3, 5]
        assert all(band["criteria"].strip() for band in dimension["bands"])


@each_language
def test_shipped_text_holds_no_hidden_characters(language):
    shipped = [
        BUILTIN / "prompts" / f"{language}.md",
        BUILTIN / "words" / f"{language}.toml",
        EXAMPLES / language / "samples.jsonl",
        EXAMPLES / language / "rubric.json",
    ]
    for path in shipped:
        text = path.read_text("utf-8")
        assert HIDDEN.findall(text) == [], path.name
        assert text.endswith("\n"), path.name
