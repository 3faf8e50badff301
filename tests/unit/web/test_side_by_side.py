"""Two variants, candidates or runs side by side: a row per question, sorted and filtered."""

from __future__ import annotations

import re
from html import unescape

import pytest

from evenhand.words import LANGUAGES
from tests.browser.runs import JUDGE, rubric_suite
from tests.suites import pair_row, write_pairs, write_suite
from tests.unit.web.serving import judge_all, run_named, served

PAIRS = [
    pair_row("p0", 9, 2, topic="Which is warmer?"),
    pair_row("p1", 1, 7, topic="Which is older?"),
    pair_row("p2", 4, 4, topic="Which is longer?"),
]
QUESTIONS = 60


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sides")
    store = folder / "all.db"
    keep = {"store": {"url": f"sqlite:{store}"}}
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


def rows(page):
    """The rows of a page as a reader sees them."""
    found = re.findall(r"<summary><span class=\"question\".*?</summary>", page, re.DOTALL)
    return [" ".join(re.sub(r"<[^>]*>", " ", row).split()) for row in found]


def every_row(site, path):
    """The rows of a list from page to page."""
    found = []
    following = path
    while following:
        page = site.get(following).text
        found += rows(page)
        link = re.search(r'href="([^"]*)" rel="next"', page)
        following = unescape(link[1]) if link else None
    return found


def gaps(found):
    """The difference at the end of each row; None where there is none."""
    last = [row.split()[-1].replace("−", "-") for row in found]
    return [float(text) if re.fullmatch(r"[+-]?\d\.\d\d", text) else None for text in last]


def counted(page):
    """The counts of the sentence above the rows."""
    names = {"better": "better on", "worse": "worse on", "same": "even on"}
    names |= {"missing": "without a verdict"}
    found = {name: int(re.search(rf"{text} (\d+)", page)[1]) for name, text in names.items()}
    return found | {"n": int(re.search(r"(\d+) in all", page)[1])}


def test_two_variants_stand_side_by_side_with_question_scores_and_reasons(site):
    page = site.get(f"/runs/{run_named(site, 'variants')}/changes?only=different").text
    assert len(rows(page)) == 50 and "50 of " in page
    assert re.match(r"Question \d+: what about it\?", rows(page)[0])
    assert "Band 5 fits best." in page, "the judge's reasons"
    assert "/unit?id=m%2Fv1%2Fq" in page and "/unit?id=m%2Fv2%2Fq" in page
    assert "v2 against v1: better on " in page


def test_rows_are_sorted_by_difference_either_way_and_nothing_is_lost(site):
    path = f"/runs/{run_named(site, 'variants')}/changes"
    differences = {way: gaps(every_row(site, f"{path}?sort={way}")) for way in ("worst", "best")}
    known = [gap for gap in differences["worst"] if gap is not None]
    assert len(differences["worst"]) == len(differences["best"]) == QUESTIONS
    assert known == sorted(known) and differences["worst"][len(known) :] == [None]
    assert [gap for gap in differences["best"] if gap is not None] == sorted(known, reverse=True)


def test_filters_leave_what_their_counts_say(site):
    path = f"/runs/{run_named(site, 'variants')}/changes"
    everything = counted(site.get(path).text)
    different = every_row(site, f"{path}?only=different")
    assert all(gaps(different))
    assert len(different) == everything["better"] + everything["worse"]
    assert everything["same"] + len(different) + everything["missing"] == QUESTIONS
    page = site.get(f"{path}?only=failures").text
    assert "the reply was no JSON object" in rows(page)[0] and "1 of 1" in page
    assert "only failures (1)" in page and f"all ({QUESTIONS})" in page


def test_baseline_and_variant_can_be_exchanged(site):
    path = f"/runs/{run_named(site, 'variants')}/changes"
    one = counted(site.get(path).text)
    page = site.get(f"{path}?baseline=v2&variant=v1").text
    other = counted(page)
    assert "v1 against v2: " in page
    assert (one["better"], one["worse"]) == (other["worse"], other["better"])
    assert "nobody" in site.get(f"{path}?baseline=nobody").text


def test_two_runs_stand_side_by_side_by_their_units(site):
    first, second = run_named(site, "variants"), run_named(site, "harsh")
    page = site.get(f"/runs/{second}/changes?against={first}").text
    assert counted(page)["n"] == 2 * QUESTIONS
    assert f"/runs/{first}/unit?id=" in page and f"/runs/{second}/unit?id=" in page
    assert "harsh against variants" in page and f"· {first} against" not in page


def test_pairs_are_told_winner_by_winner(site):
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
    got = counted(site.get(f"/runs/{turned}/changes?against={run}").text)
    assert (got["worse"], got["better"], got["same"]) == (1, 1, 1)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_run_of_one_variant_says_that_another_run_is_needed(site, language):
    page = site.get(f"/runs/{run_named(site, 'single')}/changes?lang={language}").text
    site.client.cookies.clear()
    note = {"en": "one variant only", "ru": "один вариант", "zh": "只有一个变体", "ja": "一つだけ"}
    assert note[language] in page and "Traceback" not in page


def test_runs_of_different_kinds_are_not_set_side_by_side(site):
    first, pairs = run_named(site, "variants"), run_named(site, "pairs")
    assert "of the kind" in site.get(f"/runs/{first}/changes?against={pairs}").text
    assert site.get(f"/runs/{first}/changes?only=nonsense").status_code == 422


def test_the_page_is_linked_from_the_run_and_from_its_answer(site):
    run = run_named(site, "variants")
    page = site.get(f"/runs/{run}").text
    assert page.count(f'href="/runs/{run}/changes"') == 2


def test_a_figure_is_the_same_on_every_page(site):
    """The counts are those of the answer's sentence."""
    run = run_named(site, "variants")
    changes = counted(site.get(f"/runs/{run}/changes").text)
    sentence = site.get(f"/runs/{run}").text.replace("<span", " <span")
    said = re.sub(r"<[^>]*>", "", sentence)
    better, worse = changes["better"], changes["worse"]
    assert re.search(rf"better on {better} of \d+ questions, worse on {worse}\b", said)


def test_a_page_reads_no_more_than_its_rows(site):
    run = run_named(site, "variants")
    last = site.get(f"/runs/{run}/changes?after=50").text
    assert len(rows(last)) == 10 and 'rel="next"' not in last
    assert 'rel="prev"' in last and rows(site.get(f"/runs/{run}/changes?after=5000").text) == []


def test_what_only_one_side_has_is_counted_in_every_language(site):
    fewer, pairs = run_named(site, "fewer"), run_named(site, "pairs")
    path = f"/runs/{fewer}/changes?against={pairs}"
    assert counted(site.get(path).text)["n"] == 2
    said = {
        "en": "Only one side has 1 more; they are not shown here.",
        "ru": "Есть только у одной из сторон и здесь не показаны — 1.",
        "zh": "另有 1 个只属于其中一方，此处不显示。",
        "ja": "ほかに一方にしかないものが 1 件あり、ここには表示しません。",
    }
    for language in LANGUAGES:
        assert said[language] in site.get(f"{path}&lang={language}").text
    site.client.cookies.clear()
    whole = site.get(f"/runs/{run_named(site, 'turned')}/changes?against={pairs}").text
    assert "Only one side" not in whole


def test_a_unit_leads_to_those_that_got_worse_the_worst_first(tmp_path):
    store = tmp_path / "all.db"
    pairs = [pair_row(f"p{i}", *both) for i, both in enumerate([(1, 2), (9, 2), (4, 4), (7, 5)])]
    judge_all(
        write_pairs(tmp_path / "a", pairs, store={"url": f"sqlite:{store}"}, name="pairs"),
        write_suite(tmp_path / "b", 2, store={"url": f"sqlite:{store}"}, name="single"),
    )
    with served(store) as site:
        pages = [f"/runs/{run_named(site, 'pairs')}/unit?id=p{i}" for i in range(4)]
        ways = [
            re.search(r'href="([^"]*)" rel="next_worse"', site.get(page).text) for page in pages
        ]
        assert [way and way[1] for way in ways] == [pages[1], pages[3], pages[1], None]
        alone = f"/runs/{run_named(site, 'single')}"
        unit = re.search(r'class="id" href="([^"]*)"', site.get(f"{alone}/units").text)[1]
        page = site.get(unit).text
        assert 'accesskey="j"' in page and 'accesskey="w"' not in page
