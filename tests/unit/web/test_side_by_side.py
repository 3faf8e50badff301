"""Two variants, candidates or runs side by side: a row per question, sorted and filtered."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from evenhand.report.html.page import LANGUAGES
from tests.browser.runs import JUDGE, rubric_suite
from tests.suites import pair_row, write_pairs, write_suite
from tests.unit.web.serving import Site, judge_all, run_named, served

PAIRS = [
    pair_row("p0", 9, 2, topic="Which is warmer?"),
    pair_row("p1", 1, 7, topic="Which is older?"),
    pair_row("p2", 4, 4, topic="Which is longer?"),
]
QUESTIONS = 60


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("sides")
    store = folder / "all.db"
    keep: dict[str, Any] = {"store": {"url": f"sqlite:{store}"}}
    harsh = JUDGE.replace("(1, 3, 3)", "(1, 1, 3)")
    one = {"model": "python/judge:varied"}
    judge_all(
        rubric_suite(folder / "a", QUESTIONS, name="variants", **keep),
        rubric_suite(folder / "b", QUESTIONS, name="harsh", seed=2, **keep),
        write_suite(folder / "c", 4, one, judge=harsh, name="single", **keep),
        write_pairs(folder / "d", PAIRS, name="pairs", **keep),
        write_pairs(
            folder / "e", PAIRS, {"model": "python/judge:other"}, name="turned", seed=3, **keep
        ),
        write_pairs(folder / "f", PAIRS[:2], name="fewer", **keep),
    )
    with served(store) as served_site:
        yield served_site


def rows(page: str) -> list[str]:
    """The rows of a page as a reader sees them."""
    found = re.findall(r"<summary><span class=\"question\".*?</summary>", page, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]*>", " ", row).split()) for row in found]


def gaps(changes: dict[str, Any]) -> list[float | None]:
    return [row["difference"] for row in changes["rows"]]


def test_two_variants_stand_side_by_side_with_question_scores_and_reasons(site: Site) -> None:
    page = site.get(f"/runs/{run_named(site, 'variants')}/changes?only=different").text
    assert len(rows(page)) == 50 and "50 of " in page
    assert re.match(r"Question \d+: what about it\?", rows(page)[0])
    assert "Band 5 fits best." in page, "the judge's reasons"
    assert "/unit?id=m%2Fv1%2Fq" in page and "/unit?id=m%2Fv2%2Fq" in page
    assert "v2 against v1: better on " in page


def test_rows_are_sorted_by_difference_either_way_and_nothing_is_lost(site: Site) -> None:
    path = f"/api/runs/{run_named(site, 'variants')}/changes"
    differences: dict[str, list[float | None]] = {}
    for sort in ("worst", "best"):
        differences[sort], after = [], 0
        while after is not None:
            changes = site.json(f"{path}?sort={sort}&limit=25&after={after}")["changes"]
            differences[sort] += gaps(changes)
            after = changes["next"]
        assert len(differences[sort]) == changes["n"] == changes["total"] == QUESTIONS
    known = [gap for gap in differences["worst"] if gap is not None]
    assert known == sorted(known) and differences["worst"][len(known) :] == [None]
    assert [gap for gap in differences["best"] if gap is not None] == sorted(known, reverse=True)


def test_filters_leave_what_their_counts_say(site: Site) -> None:
    path = f"/api/runs/{run_named(site, 'variants')}/changes"
    everything = site.json(f"{path}?limit=500")["changes"]
    different = site.json(f"{path}?only=different&limit=500")["changes"]
    failures = site.json(f"{path}?only=failures")["changes"]
    assert len(different["rows"]) == different["total"] == everything["different"]
    assert all(gaps(different)) and everything["same"] + everything["different"] + 1 == QUESTIONS
    (failed,) = failures["rows"]
    assert failed["variant"]["value"] is None and failed["variant"]["failures"] == ["not_json"]
    page = site.get(f"/runs/{run_named(site, 'variants')}/changes?only=failures").text
    assert "the reply was no JSON object" in rows(page)[0] and "1 of 1" in page
    assert "only failures (1)" in page and f"all ({QUESTIONS})" in page


def test_baseline_and_variant_can_be_exchanged(site: Site) -> None:
    path = f"/api/runs/{run_named(site, 'variants')}/changes"
    one = site.json(f"{path}?limit=500")["changes"]
    other = site.json(f"{path}?baseline=v2&variant=v1&limit=500")["changes"]
    assert (other["baseline"], other["variant"]) == ("v2", "v1")
    assert (one["better"], one["worse"]) == (other["worse"], other["better"])
    assert site.get(f"{path}?baseline=nobody").status_code == 400


def test_two_runs_stand_side_by_side_by_their_units(site: Site) -> None:
    first, second = run_named(site, "variants"), run_named(site, "harsh")
    changes = site.json(f"/api/runs/{second}/changes?against={first}&limit=500")["changes"]
    assert changes["n"] == 2 * QUESTIONS and changes["baseline"] == first
    assert changes["rows"][0]["baseline"]["run"] == first
    page = site.get(f"/runs/{second}/changes?against={first}").text
    assert "harsh against variants" in page and f"· {first} against" not in page
    assert f'href="/runs/{second}/changes?against={first}&amp;only=different"' in (
        site.get(f"/compare?first={first}&second={second}").text
    )


def test_pairs_are_told_winner_by_winner(site: Site) -> None:
    run, turned = run_named(site, "pairs"), run_named(site, "turned")
    page = rows(site.get(f"/runs/{run}/changes").text)
    assert [row.split("?")[0] for row in page] == [
        "Which is warmer",
        "Which is longer",
        "Which is older",
    ]
    assert page[0].endswith(" c1") and page[1].endswith(" tie") and page[2].endswith(" c2")
    beside = rows(site.get(f"/runs/{turned}/changes?against={run}").text)
    assert re.search(r" c1 .* c2 .*−1\.00$", beside[0])
    counted = site.json(f"/api/runs/{turned}/changes?against={run}")["changes"]
    assert (counted["worse"], counted["better"], counted["same"]) == (1, 1, 1)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_run_of_one_variant_says_that_another_run_is_needed(site: Site, language: str) -> None:
    page = site.get(f"/runs/{run_named(site, 'single')}/changes?lang={language}").text
    site.client.cookies.clear()
    note = {"en": "one variant only", "ru": "один вариант", "zh": "只有一个变体", "ja": "一つだけ"}
    assert note[language] in page and "Traceback" not in page


def test_runs_of_different_kinds_are_not_set_side_by_side(site: Site) -> None:
    first, pairs = run_named(site, "variants"), run_named(site, "pairs")
    assert "of the kind" in site.get(f"/runs/{first}/changes?against={pairs}").text
    assert site.get(f"/runs/{first}/changes?only=nonsense").status_code == 422


def test_the_page_is_linked_from_the_run_and_from_its_answer(site: Site) -> None:
    run = run_named(site, "variants")
    page = site.get(f"/runs/{run}").text
    assert page.count(f'href="/runs/{run}/changes"') == 2


def test_a_figure_is_the_same_on_every_page(site: Site) -> None:
    """The counts are those of the answer's sentence."""
    run = run_named(site, "variants")
    changes = site.json(f"/api/runs/{run}/changes")["changes"]
    sentence = site.get(f"/runs/{run}").text.replace("<span", " <span")
    counted = re.sub(r"<[^>]*>", "", sentence)
    assert f"better on {changes['better']} questions, worse on {changes['worse']}" in counted


def test_a_page_reads_no_more_than_its_rows(site: Site) -> None:
    run = run_named(site, "variants")
    last = site.get(f"/runs/{run}/changes?after=50").text
    assert len(rows(last)) == 10 and 'rel="next"' not in last
    assert 'rel="prev"' in last and rows(site.get(f"/runs/{run}/changes?after=5000").text) == []


def test_what_only_one_side_has_is_counted_in_every_language(site: Site) -> None:
    fewer, pairs = run_named(site, "fewer"), run_named(site, "pairs")
    path = f"/runs/{fewer}/changes?against={pairs}"
    changes = site.json(f"/api{path}")["changes"]
    assert (changes["n"], changes["unpaired"]) == (2, 1)
    said = {
        "en": "Only one side has 1 more; they are not shown here.",
        "ru": "Есть только у одной из сторон и здесь не показаны — 1.",
        "zh": "另有 1 个只属于其中一方，此处不显示。",
        "ja": "ほかに一方にしかないものが 1 件あり、ここには表示しません。",
    }
    for language in LANGUAGES:
        assert said[language] in site.get(f"{path}&lang={language}").text
    whole = site.json(f"/api/runs/{run_named(site, 'turned')}/changes?against={pairs}")
    assert whole["changes"]["unpaired"] == 0
