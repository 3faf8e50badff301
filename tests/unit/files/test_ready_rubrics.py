"""Ready rubrics say the same in each language, and their examples are what they ask for."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from importlib import resources
from pathlib import Path

import pytest

from evenhand.files.drafts import language_of
from evenhand.files.ready_rubrics import (
    join_examples,
    join_rubrics,
    needs_of,
    ready_names,
    ready_rubrics,
)
from evenhand.kinds.prompt import extra_blocks
from evenhand.kinds.rows import EXTRAS
from evenhand.kinds.rubric.rubric import build_rubric, parse_rubric
from evenhand.words import LANGUAGES
from tests.cases import cases

NAMES = [
    *("faithfulness", "hallucination", "relevancy", "correctness", "completeness", "toxicity"),
    *("tone", "format", "refusal", "summary", "tool-use", "conversation"),
]
EACH = [(name, language) for name in NAMES for language in LANGUAGES]


@cache
def read(name, language):
    (rubric,) = ready_rubrics([name], language)
    return rubric


def build(name, language):
    return build_rubric({"dimensions": read(name, language).dimensions})


def test_all_are_there_in_each_language():
    assert sorted(NAMES) == list(ready_names())
    for language in LANGUAGES:
        folder = resources.files("evenhand.examples") / "rubrics" / language
        assert sorted(path.name for path in folder.iterdir()) == sorted(
            f"{name}.toml" for name in NAMES
        )


@pytest.mark.parametrize(("name", "language"), EACH)
def test_a_rubric_is_in_the_form_of_the_contract(name, language):
    rubric = build(name, language)
    assert 1 <= len(rubric.dimensions) <= 2
    for dimension in rubric.dimensions:
        assert 3 <= len(dimension.bands) <= 5
        assert dimension.scores == sorted(dimension.scores)
        assert dimension.scale == f"{dimension.scores[0]}-{dimension.scores[-1]}"
        assert len({band.criteria for band in dimension.bands}) == len(dimension.bands)


@pytest.mark.parametrize(("name", "language"), EACH)
def test_every_language_has_the_same_ids_bands_and_scores(name, language):
    def skeleton(language):
        dimensions = build(name, language).dimensions
        rubric = read(name, language)
        examples = [
            (
                each["id"],
                each["expected"],
                sorted(each),
                [m["role"] for m in each.get("messages", ())],
            )
            for each in rubric.examples
        ]
        shape = [(each.id, each.scores, each.higher_is) for each in dimensions]
        return rubric.needs, shape, examples

    assert skeleton(language) == skeleton("en")


@pytest.mark.parametrize(("name", "language"), EACH)
def test_every_text_is_in_its_language(name, language):
    rubric = read(name, language)
    texts = [rubric.about]
    for each in build(name, language).dimensions:
        texts += [each.name, each.definition, *(band.criteria for band in each.bands)]
    texts += [example["question"] for example in rubric.examples]
    if language == "ja":
        # A name, or a short line, may be written without kana.
        assert {language_of(iter([text])) for text in texts} <= {"ja", "zh"}
        assert language_of(iter(texts)) == "ja"
    else:
        assert {language_of(iter([text])) for text in texts} == {language}
    english = read(name, "en")
    if language != "en":
        known = {each["model_output"] for each in english.examples}
        assert not known & {each["model_output"] for each in rubric.examples}


@pytest.mark.parametrize(("name", "language"), EACH)
def test_a_definition_names_the_columns_that_it_needs(name, language):
    rubric = read(name, language)
    text = " ".join(each.definition for each in build(name, language).dimensions)
    assert set(rubric.needs) <= set(EXTRAS)
    for need in rubric.needs:
        # A judge is shown messages under another name.
        (block,) = extra_blocks({need: "x"}, [need])
        assert f"`{block}`" in text


@pytest.mark.parametrize(("name", "language"), EACH)
def test_a_good_and_a_bad_example_are_expected_at_opposite_ends(name, language):
    rubric, built = read(name, language), build(name, language)
    good, bad = rubric.examples
    assert (good["id"], bad["id"]) == ("good", "bad")
    for dimension in built.dimensions:
        worst, best = dimension.ends
        for example, end in ((good, best), (bad, worst)):
            low, high = example["expected"][dimension.id]
            assert {low, high} <= set(dimension.scores) and low <= high
            assert end in (low, high)
        expected = [example["expected"][dimension.id] for example in (good, bad)]
        ranges = [set(range(low, high + 1)) for low, high in expected]
        assert ranges[0].isdisjoint(ranges[1])
    for example in rubric.examples:
        assert example["expected"].keys() == {each.id for each in built.dimensions}
        assert set(rubric.needs) <= example.keys()


@pytest.mark.parametrize("language", LANGUAGES)
def test_all_of_them_make_one_rubric(language):
    every = ready_rubrics(NAMES, language)
    rubric = parse_rubric(join_rubrics(every))
    assert len(rubric.dimensions) == 14
    assert needs_of(every) == list(EXTRAS)
    ids = Counter(json.loads(row)["id"] for row in join_examples(every).splitlines())
    assert len(ids) == 24 and set(ids.values()) == {1}


def test_a_name_that_is_given_twice_counts_once():
    assert [each.name for each in ready_rubrics(["tone", "format", "tone"], "ru")] == [
        "tone",
        "format",
    ]


@cases
def test_examples_without_a_needed_column_are_left_out_where_others_have_it(names, rows):
    lines = [json.loads(line) for line in join_examples(ready_rubrics(names, "en")).splitlines()]
    assert len(lines) == rows
    for line in lines:
        assert "expected" not in line


def test_the_page_of_the_documentation_says_the_same():
    page = (Path(__file__).parents[3] / "docs/rubrics.md").read_text("utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page.splitlines()
        if line.startswith("| `")
    ]
    expected = []
    for name in ready_names():
        rubric, dimensions = read(name, "en"), build(name, "en").dimensions
        scale = dimensions[0].scale + (
            "" if dimensions[0].higher_is == "better" else ", more is worse"
        )
        needs = ", ".join(f"`{need}`" for need in rubric.needs)
        ids = ", ".join(f"`{each.id}`" for each in dimensions)
        expected.append([f"`{name}`", rubric.about, needs, scale, ids])
    assert rows == expected
