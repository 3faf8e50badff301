"""The matrix in the web view: sorted and filtered by the server, a page at a time."""

from __future__ import annotations

import re
from html import unescape

import pytest

from evenhand.words import LANGUAGES
from tests.browser.runs import pairs_suite, rubric_suite
from tests.suites import write_suite
from tests.unit.web.serving import judge_all, run_named, served

QUESTIONS = 60


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("matrix")
    store = folder / "all.db"
    keep = {"store": {"url": f"sqlite:{store}"}}
    judge_all(
        rubric_suite(folder / "a", QUESTIONS, name="variants", **keep),
        pairs_suite(folder / "b", name="pairs", **keep),
        write_suite(folder / "c", 4, {"model": "python/judge:good"}, name="single", **keep),
    )
    with served(store) as served_site:
        yield served_site


def rows(page):
    """The rows of a page: the question and the texts of its cells."""
    body = page.partition('<div class="questions"')[2].partition("<tbody>")[2]
    parts = re.split("<tr[^>]*>", body.partition("</tbody>")[0])[1:]
    cells = [re.split(r"<td[^>]*>", part) for part in parts]
    return [[unescape(re.sub("<[^>]*>", "", cell)).strip() for cell in row] for row in cells]


def every_row(site, path):
    """The rows from page to page."""
    found, following = [], path
    while following:
        page = site.get(following).text
        found += rows(page)
        link = re.search(r'href="([^"]*)" rel="next"', page)
        following = unescape(link[1]) if link else None
    return found


def test_a_unit_leads_to_the_other_answers_to_its_question(site):
    run = run_named(site, "variants")
    page = site.get(f"/runs/{run}/unit?id=m/v1/q7").text
    [[href, name]] = re.findall(r'<a href="([^"]*)" dir="auto">(v\d)</a>', page)
    assert name == "v2" and '<h1 dir="auto">m/v2/q7</h1>' in site.get(unescape(href)).text
    assert 'dir="auto">v2</a>' not in site.get(f"/runs/{run_named(site, 'pairs')}/unit?id=p1").text


def number(text):
    return float(text.replace("−", "-").rstrip("%"))


def test_the_largest_loss_comes_first_and_every_question_is_there(site):
    path = f"/runs/{run_named(site, 'variants')}/matrix"
    found = every_row(site, path)
    losses = [number(row[-1]) for row in found if row[-1] != "–"]
    assert len(found) == QUESTIONS == len({row[0] for row in found})
    assert losses == sorted(losses) and found[-1][1:] == ["no verdict", "no verdict", "–"]
    ordered = every_row(site, f"{path}?sort=order")
    assert [row[0] for row in ordered] == [f"Question {n}: what about it?" for n in range(60)]
    assert sorted(ordered) == sorted(found)
    turned = every_row(site, f"{path}?baseline=v2")
    assert sorted(-number(row[-1]) for row in turned if row[-1] != "–") == losses


def test_filters_leave_what_their_counts_say(site):
    path = f"/runs/{run_named(site, 'variants')}/matrix"
    page = site.get(f"{path}?only=failures").text
    assert len(rows(page)) == 1 and "only failures (1)" in page
    different = every_row(site, f"{path}?only=different")
    assert f"only different ({len(different)})" in page
    assert all(number(row[-1]) for row in different)
    assert len(rows(site.get(f"{path}?field=question_id&value=q7").text)) == 1
    for asked, said in (("baseline=nobody", "nobody"), ("field=nothing&value=1", "nothing")):
        page = site.get(f"{path}?{asked}").text
        assert not rows(page) and said in page
    assert site.get(f"{path}?sort=nonsense").status_code == 422


def test_candidates_have_a_loss_only_against_one_that_is_named(site):
    path = f"/runs/{run_named(site, 'pairs')}/matrix"
    spreads = [number(row[-1]) for row in every_row(site, path)]
    assert len(spreads) == 12 and spreads == sorted(spreads, reverse=True)

    losses = [number(row[-1]) for row in every_row(site, f"{path}?baseline=c1")]
    assert losses == sorted(losses)


def test_a_cell_opens_its_unit_and_the_run_leads_to_the_matrix(site):
    run = run_named(site, "variants")
    page = site.get(f"/runs/{run}/matrix?sort=order").text
    opened = [unescape(href) for href in re.findall(r'<td[^>]*><a href="([^"]*)"', page)]
    assert opened[:2] == [f"/runs/{run}/unit?id=m%2F{variant}%2Fq0" for variant in ("v1", "v2")]
    assert site.get(opened[0]).status_code == 200
    assert site.get(f"/runs/{run}").text.count(f'href="/runs/{run}/matrix"') == 2


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_run_of_one_variant_says_that_there_is_nothing_beside_it(site, language):
    page = site.get(f"/runs/{run_named(site, 'single')}/matrix?lang={language}").text
    site.client.cookies.clear()
    note = {"en": "one variant only", "ru": "один вариант", "zh": "只有一个变体", "ja": "一つだけ"}
    assert note[language] in page and not rows(page)
