"""The text that ships with each protocol, in four languages: prompts, words and examples."""

import json
import re
import tomllib
from dataclasses import replace
from importlib.resources import files
from itertools import product
from pathlib import Path

import pytest
from msgspec import structs

from evenhand.examples import example_files
from evenhand.files.protocols import find_protocol
from evenhand.kinds import KINDS, load_protocol
from evenhand.kinds.conditions import Hit
from evenhand.kinds.conversation import JudgingContext
from evenhand.kinds.pairwise.kind import read_max_rounds, read_priority
from evenhand.kinds.pairwise.unit import read_pairs
from evenhand.kinds.pairwise.verdict import MARKS, derive_winner
from evenhand.kinds.protocol import LANGUAGES
from evenhand.kinds.weighted.kind import read_answer, read_types
from evenhand.kinds.weighted.verdict import REASONING_CHARS
from evenhand.limits import EVIDENCE_MAX, EVIDENCE_MIN, NOTES_CHARS
from evenhand.units import META_FIELDS, sample_id
from evenhand.words import words as page_words
from tests.suites import CRITERIA
from tests.unit.kinds import grading, material, pairing
from tests.unit.kinds.tables import cells, lines

ROOT = files("evenhand") / "kinds"
TOLD = tomllib.loads((Path(__file__).parent / "told.toml").read_text(encoding="utf-8"))
PLACEHOLDERS = """
pairwise system rule
pairwise user criteria shape topic extras candidate_1 candidate_2
pairwise compact topic extras candidate_1 candidate_2
rubric system tags
rubric user rubric shape question extras model_output
checklist user criteria shape question extras model_output
weighted user shape types critical facts rubric prompt extras answer
weighted compact types critical facts rubric prompt extras answer
"""
"""What each section inserts, in this order; again always inserts the problems."""
HIDDEN = re.compile(r"[\u00a0\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\r\t]")

each_language = pytest.mark.parametrize("language", LANGUAGES)
each_kind = pytest.mark.parametrize("kind", KINDS)


def shipped(kind, place):
    return ROOT.joinpath("builtin", kind, *place.split("/")).read_text("utf-8")


def sections(kind, language, style=""):
    text = shipped(kind, f"prompts/{style}{language}.md")
    before, *parts = re.split(r"^<!-- (\w+) -->\n", text, flags=re.MULTILINE)
    assert before == ""
    return dict(zip(parts[::2], parts[1::2], strict=True))


def words(kind, language):
    """Return the words of a protocol over those that all kinds share."""
    own = tomllib.loads(shipped(kind, f"words/{language}.toml"))
    shared = tomllib.loads((ROOT / "common" / f"{language}.toml").read_text("utf-8"))
    return shared | own | {"problems": shared["problems"] | own["problems"]}


def fields_of(table):
    """Return what each phrase inserts."""
    made = {}
    for name, value in table.items():
        if isinstance(value, dict):
            made |= {f"{name}.{key}": found for key, found in fields_of(value).items()}
        else:
            made[name] = set(re.findall(r"\{(\w+)\}", value))
    return made


@pytest.mark.parametrize(
    ("kind", "rule"), [(kind, rule) for kind, rules in TOLD.items() for rule in rules]
)
def test_the_judge_is_told(kind, rule):
    for language, told in zip(("en", "ru", "zh", "ja"), TOLD[kind][rule], strict=True):
        assert told in shipped(kind, f"prompts/{language}.md")


@each_language
@each_kind
def test_every_prompt_has_the_same_sections_and_placeholders(kind, language):
    expected = {tuple(row.split()[:2]): row.split()[2:] for row in lines(PLACEHOLDERS)}
    for style in ("", "compact/"):
        for name, text in (found := sections(kind, language, style)).items():
            inserted = re.findall(r"\{\{(.*?)\}\}", text)
            key = "compact" if style and name == "user" else name
            if name == "again":
                assert inserted == ["problems"]
            elif not style:
                assert inserted == expected.get((kind, key), [])
            elif (kind, key) in expected and key == "compact":
                assert sorted(inserted) == sorted(expected[kind, key])
            assert "{" not in re.sub(r"\{\{\w+\}\}", "", text)
            assert not HIDDEN.search(text)
        assert list(found) == ["system", "user", "again"]


@each_language
def test_a_short_reminder_comes_last(language):
    last = {"pairwise": "{{candidate_2}}", "rubric": "{{model_output}}"}
    last["checklist"] = last["rubric"]
    named = {"pairwise": ["`winner`"], "rubric": ["`rubric`", "`model_output`"]}
    named["checklist"] = ["`criteria`", "`model_output`"]
    for kind, placeholder in last.items():
        after = sections(kind, language)["user"].partition(placeholder)[2]
        assert len(after) < 400
        assert all(name in after for name in named[kind])


ORDER = """
pairwise topic candidate_1 candidate_2 reference context earlier first_meets second_meets
pairwise comment mark explanation winner
rubric question model_output reference context earlier evidence rationale score failure_tags notes
checklist criteria question model_output reference context earlier evidence reason met notes
weighted critical facts rubric prompt answer reference context earlier
weighted inferred_task_type critical_fail critical_fail_reason
weighted reasoning score confidence
"""


@each_language
def test_the_system_text_states_the_contract(language):
    """Every field by its name; reasons before verdicts; and no fence that a text could copy."""
    for kind, *names in map(str.split, lines(ORDER)):
        system = sections(kind, language)["system"]
        assert all(f"`{name}`" in system for name in names)
        assert re.findall(r"\[\[.*?\]\]", system)
        assert not re.search(r"[0-9a-f]{8}\]\]", system)
    pairs, weighted = (sections(kind, language)["system"] for kind in ("pairwise", "weighted"))
    assert all(mark in pairs for mark in MARKS)
    assert pairs.index("`comment`") < pairs.index("`mark`")
    assert pairs.index("`explanation`") < pairs.rindex("`winner`")
    reasons, scores, confidence = map(weighted.rindex, ("`reasoning`", "`score`", "`confidence`"))
    assert reasons < scores < confidence


@each_language
def test_the_counts_written_into_the_prompts_are_those_of_the_contract(language):
    assert (EVIDENCE_MIN, EVIDENCE_MAX, NOTES_CHARS, REASONING_CHARS) == (1, 3, 300, 200)
    for kind in ("rubric", "checklist"):
        assert str(NOTES_CHARS) in sections(kind, language)["system"]
    weighted = sections("weighted", language)["system"]
    (line,) = re.findall(r"^- `reasoning`.*$", weighted, flags=re.MULTILINE)
    assert str(REASONING_CHARS) in line


@each_language
def test_the_organisers_blocks_are_applied_and_the_others_are_data(language):
    applied = {
        "rubric": ["rubric"],
        "checklist": ["criteria"],
        "weighted": ["critical", "facts", "rubric"],
    }
    data = {kind: ["question", "model_output"] for kind in ("rubric", "checklist")}
    data |= {"weighted": ["prompt", "answer"]}
    for kind, names in applied.items():
        system, user, _ = sections(kind, language).values()
        listed = [*names, *data[kind], "reference", "context", "earlier"]
        places = [system.index(f"`{name}`") for name in listed]
        assert places == sorted(places)
        said = user[user.index("{{" + data[kind][-1] + "}}") :].split("\n\n")[1]
        assert all(f"`{name}`" in said for name in names)
    assert not any(f"`{name}`" in said for name in data["weighted"])
    between = system[system.index("- `rubric`") : system.index("- `prompt`")]
    assert len(between.strip().split("\n\n")) == 2, "what is data is said before it is listed"


@each_language
def test_conditions_come_first_then_what_the_user_wants_then_points(language):
    system = sections("weighted", language)["system"]
    steps = re.findall(r"^(\d)\. (.*)$", system, flags=re.MULTILINE)
    assert [number for number, _ in steps] == ["1", "2", "3", "4"]
    critical, intent, points, _ = (text for _, text in steps)
    assert "`critical`" in critical and "`critical_fail`" in critical
    assert "`prompt`" in intent and "`reasoning`" not in intent
    assert "`rubric`" in points and "`facts`" in points


TAGS = cells("""
schema/format error => ошибка схемы/формата => Schema/格式错误 => スキーマ／形式の誤り
departs from the instructions => отступление от инструкций => 指令偏离 => 指示からの逸脱
semantic drift => смысловой сдвиг => 语义漂移 => 意味のずれ
robustness (variance) => неустойчивость (разброс) => 稳健性问题（方差） => 頑健性の問題（ばらつき）
gaming the evaluation => подстройка под оценку => 评测投机 => 評価稼ぎ
""")
"""The contract's own names for the failure tags, A to E."""


@each_language
def test_the_tags_have_the_names_of_the_contract_in_prompt_report_and_view(language):
    judged = material.protocol(language)
    (system, _) = judged.question(material.SAMPLE, material.RUBRIC, "full").messages
    told = re.findall(r"^- ([A-E])\b(.*)$", system.content, flags=re.MULTILINE)
    assert [letter for letter, _ in told] == list("ABCDE")
    for (letter, text), names in zip(told, TAGS, strict=True):
        name = dict(zip(("en", "ru", "zh", "ja"), names, strict=True))[language]
        assert name in text
        assert page_words(language).gloss("tag", letter) == name


def test_a_folder_may_call_the_tags_by_its_own_names():
    texts = dict(find_protocol("rubric").texts)
    texts |= {"words/kind/en.toml": shipped("rubric", "words/en.toml")}
    own = load_protocol("house", texts | {"words/en.toml": '[tags]\nA = "broken form"\n'})
    judged = replace(material.protocol(), words=own.words("en"))
    (system, _) = judged.question(material.SAMPLE, material.RUBRIC, "full").messages
    assert "- A: broken form: " in system.content
    assert "- B: departs from the instructions: " in system.content


@each_language
def test_a_protocol_with_its_own_phrase_for_no_evidence_is_asked_again_for_that_phrase(language):
    judged = material.protocol(language)
    phrases = {**judged.words.phrases, "no_evidence": "keine Belege"}
    judged = replace(judged, words=structs.replace(judged.words, phrases=phrases))
    reply = material.good()
    reply["scores"]["correct"]["evidence"] = ["nowhere to be found", " "]
    one, other = judged.check(json.dumps(reply), material.SAMPLE).problems
    assert "keine Belege" in one.wording and "keine Belege" in other.wording


NEEDED = """
bad_text
copied
duplicate_key value
empty
evidence_blank path phrase
evidence_count path
evidence_from_question path phrase quote
evidence_from_rubric path phrase quote
evidence_from_turn path phrase quote turn
evidence_nowhere path phrase quote
evidence_slight path phrase quote
evidence_unsaid path phrase
filtered
key_missing path
key_unknown path
meta_changed path
not_allowed allowed path value
not_finite quote value
not_in_form
not_json quote
not_object
prose_around
reason_blank path
refused
too_deep
truncated
two_objects
wrong_type allowed path value
"""
"""Every problem of a reply, and what its message is of no use without."""


@each_language
@each_kind
def test_the_words_have_the_same_keys_and_insert_the_same(kind, language):
    found, english = words(kind, language), words(kind, "en")
    assert fields_of(found) == fields_of(english)
    needed = {name: set(fields) for name, *fields in map(str.split, lines(NEEDED))}
    problems = fields_of(found["problems"])
    assert problems == problems | {name: needed[name] for name in needed if name in problems}
    assert set(problems) == set(needed) if kind == "rubric" else set(problems) >= {"not_json"}
    assert problems.get("header_unknown", {"value", "allowed"}) == {"value", "allowed"}
    assert all(text.strip() == text and "\n" not in text for text in found["problems"].values())
    assert found["no_evidence"] == material.PHRASES[language] if kind == "rubric" else True


def test_what_is_said_to_a_judge_of_pairs_alone_is_not_said_to_others():
    own = tomllib.loads(shipped("pairwise", "words/en.toml"))
    shared = tomllib.loads((ROOT / "common" / "en.toml").read_text("utf-8"))
    instead = {"two_objects"}
    assert set(own["problems"]) & set(shared["problems"]) == instead
    assert set(own["problems_of_any_form"]) == {"empty", "filtered", "truncated"}
    assert own["versus"]["better"] != own["versus"]["worse"]


def follow(rule, marks):
    """Return the winner by the rule as it stands in a prompt: its cases in their order, the
    criteria that it names in theirs."""
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
    "priority",
    [("C1", "C2", "C5"), ("C4",), (), ("C5", "C3", "C2", "C1", "C4")],
)
def test_a_judge_that_follows_its_prompt_never_contradicts_the_rule(language, priority):
    judged = pairing.protocol(language, priority=priority)
    (question, _) = judged.questions(pairing.PAIR, JudgingContext(ask=fail))
    system, user = question.messages
    assert system.content.count(judged.texts["rule"]) == 1
    assert judged.texts["rule"] not in user.content
    for marks in product(MARKS, repeat=len(CRITERIA)):
        given = dict(zip(CRITERIA, marks, strict=True))
        assert follow(judged.texts["rule"], given) == derive_winner(given, priority), given


async def fail(question):
    raise AssertionError("nobody is asked")


@each_language
def test_a_small_model_is_asked_one_thing_and_cannot_contradict_the_rule(language):
    judged = pairing.protocol(language)
    (question, _) = judged.questions(pairing.PAIR, JudgingContext(ask=fail, styles=("compact",)))
    form = question.schema.value["properties"]
    marks = {c: one["properties"]["mark"] for c, one in form["criteria"]["properties"].items()}
    assert marks.pop("C1")["x-versus"] == form["winner"]["x-versus"]
    assert all(mark == {"const": "tie"} for mark in marks.values())


def test_words_that_a_folder_leaves_out_are_english_where_its_language_has_none():
    texts = dict(find_protocol("pairwise").texts)
    texts |= {"words/de.toml": '[rule]\nall_tie = "- Alles gleich: tie."\n'}
    said = load_protocol("house", texts).words("de")
    assert said.phrases["rule.all_tie"] == "- Alles gleich: tie."
    assert said.phrases["rule.one_side"] == words("pairwise", "en")["rule"]["one_side"]
    assert said.problems["two_verdicts"] == words("pairwise", "en")["problems"]["two_verdicts"]


@each_language
def test_criteria_priority_and_rounds_are_those_of_the_specification(language):
    protocol = find_protocol("pairwise")
    criteria = protocol.read_table("criteria", language)
    assert tuple(criteria) == CRITERIA
    assert len(set(criteria.values())) == 5
    assert read_priority(protocol) == ("C1", "C2", "C5")
    assert read_max_rounds(protocol) == 3


@each_language
def test_types_and_weights_are_those_of_the_specification(language):
    builtin = find_protocol("weighted")
    dimensions = builtin.read_table("dimensions", language)
    assert tuple(dimensions) == grading.DIMENSIONS
    types = read_types(builtin, language)
    assert {one.id: one.weights for one in types} == grading.WEIGHTS
    assert len({*dimensions.values(), *(one.text for one in types)}) == 6


@each_language
@each_kind
def test_the_examples_can_be_judged(kind, language):
    made = example_files(kind, language)
    suite = tomllib.loads(made["evenhand.toml"])
    assert (suite["protocol"], suite["language"]) == (kind, language)
    assert suite["data"] == [KINDS[kind].example.data]
    assert all(text.endswith("\n") and not HIDDEN.search(text) for text in made.values())


def example_rows(kind, language):
    data = example_files(kind, language)[KINDS[kind].example.data]
    return [json.loads(line) for line in data.splitlines()]


@each_language
def test_the_example_pairs_have_ids_of_their_own(language):
    ids = [pair.id for row in example_rows("pairwise", language) for pair in read_pairs(row)]
    assert len(set(ids)) == len(ids) >= 5


@each_language
def test_the_example_answers_are_of_every_type_and_one_is_decided_by_code(language):
    made, judged = example_files("weighted", language), grading.protocol(language)
    rows = [row | {"rubric": made[row["rubric"]]} for row in example_rows("weighted", language)]
    answers = [read_answer(row, tuple(grading.WEIGHTS), has_rubric=False) for row in rows]
    rubrics = [judged.rubric_of(answer) for answer in answers]
    assert {"fact", "creative", None} <= {rubric.task_type for rubric in rubrics}
    assert any(isinstance(judged.decide(answer), Hit) for answer in answers)
    assert all(rubric.points and "task_type" not in rubric.points for rubric in rubrics)


def test_the_example_samples_are_rows_of_the_contract_with_variants_to_compare():
    ids = []
    for language in LANGUAGES:
        rows = example_rows("rubric", language)
        ids += [sample_id(row) for row in rows]
        assert all(list(row) == ["meta", "question", "model_output"] for row in rows)
        assert all(tuple(row["meta"]) == META_FIELDS for row in rows)
        assert all(row["question"].strip() and row["model_output"].strip() for row in rows)
        variants = {}
        for meta in (row["meta"] for row in rows):
            asked = variants.setdefault(meta["question_id"], set())
            asked.add((meta["model"], meta["prompt_variant"]))
        assert len(variants) == len({row["question"] for row in rows}) == 2
        assert all({("model-a", "v1"), ("model-a", "v2")} <= asked for asked in variants.values())
    assert len(ids) == len(set(ids)) == 20


@each_language
def test_the_example_rubric_has_two_dimensions_of_three_bands(language):
    rubric = json.loads(example_files("rubric", language)["rubric.json"])
    assert list(rubric) == ["dimensions"]
    assert [dimension["id"] for dimension in rubric["dimensions"]] == ["correct", "on_task"]
    for dimension in rubric["dimensions"]:
        assert list(dimension) == ["id", "name", "scale", "definition", "bands"]
        assert [band["score"] for band in dimension["bands"]] == [1, 3, 5]
        assert all(band["criteria"].strip() for band in dimension["bands"])
