"""The list of judgments: choices with numbers, totals of what filters leave, order by score."""

from __future__ import annotations

import re
from html import unescape

import pytest

from tests.unit.web.serving import SAMPLES, Site, run_named


@pytest.fixture
def first(site: Site) -> str:
    return run_named(site, "first")


def units(page: str) -> list[str]:
    return re.findall(r'<a class="id"[^>]*>([^<]*)</a>', page)


def counted(page: str) -> str:
    (line,) = re.findall(r'<p class="count" role="status"[^>]*>(.*?)</p>', page)
    return line.strip()


def choices(page: str, name: str) -> dict[str, int]:
    """The options of a filter, each with its number."""
    (select,) = re.findall(rf'<select name="{name}">(.*?)</select>', page, re.DOTALL)
    options = re.findall(r'<option value="([^"]+)"[^>]*>[^<]*\((\d+)\)</option>', select)
    return {unescape(value): int(number) for value, number in options}


def results(page: str) -> list[float]:
    """The mean score of each row."""
    rows = re.findall(r"correct (\d) · clear (\d)", page)
    return [(int(one) + int(other)) / 2 for one, other in rows]


def test_the_total_is_that_of_what_filters_leave(site: Site, first: str) -> None:
    assert counted(site.get(f"/runs/{first}/units").text) == f"50 of {SAMPLES}."
    failed = site.get(f"/runs/{first}/units?status=failure").text
    assert counted(failed) == "19 of 19."
    page = site.get(f"/runs/{first}/units?field=model&value=m0").text
    assert counted(page) == f"50 of {SAMPLES // 2}."
    assert counted(site.get(f"/runs/{first}/units?text=nowhere").text) == "Nothing found."


def test_choices_have_the_numbers_that_they_find(site: Site, first: str) -> None:
    page = site.get(f"/runs/{first}/units").text
    assert choices(page, "status") == {"verdict": SAMPLES - 19, "failure": 19}
    assert choices(page, "reason") == {"not_json": 19}
    assert sum(n for label, n in choices(page, "score").items() if "clear" in label) == SAMPLES - 19
    for name in ("score", "tag", "reason", "status"):
        for value, number in choices(page, name).items():
            chosen = site.client.get(f"/runs/{first}/units", params={name: value}).text
            assert counted(chosen).endswith(f" of {number}."), (name, value)
            assert f'value="{value}" selected' in chosen


def test_winners_and_flags_of_pairs_have_their_numbers_too(site: Site) -> None:
    run = run_named(site, "pairs")
    page = site.get(f"/runs/{run}/units").text
    winners = choices(page, "winner")
    assert sum(winners.values()) == 60
    for winner, number in winners.items():
        assert counted(site.get(f"/runs/{run}/units?winner={winner}").text).endswith(f"{number}.")
    assert 'name="sort"' not in page, "a vote has no score"


def test_judgments_are_sorted_by_score_and_nothing_is_lost(site: Site, first: str) -> None:
    for sort, way in (("lowest", 1), ("highest", -1)):
        path: str | None = f"/runs/{first}/units?sort={sort}"
        names, scores = list[str](), list[float]()
        while path:
            page = site.get(path).text
            names += units(page)
            scores += results(page)
            ahead = re.search(r'href="([^"]*)" rel="next"', page)
            path = unescape(ahead[1]) if ahead else None
        assert len(names) == len(set(names)) == SAMPLES
        assert scores == sorted(scores, key=lambda score: way * score) and len(scores) == 111
    assert counted(page) == f"30 of {SAMPLES}."


def test_a_score_and_a_field_narrow_together(site: Site, first: str) -> None:
    page = site.get(f"/runs/{first}/units?score=correct+1&field=model&value=m1&sort=highest").text
    assert units(page) and all(name.startswith("m1/") for name in units(page))
    assert page.count("correct 1 ·") == len(units(page))
    assert counted(page) == f"{len(units(page))} of {len(units(page))}."


def test_a_unit_that_waits_is_sorted_last(site: Site) -> None:
    run = run_named(site, "waiting")
    page = site.get(f"/runs/{run}/units?sort=lowest").text
    assert len(units(page)) == 10 and counted(page) == "10 of 10."
    assert sorted(units(page)[:5]) == [f"u{i}" for i in range(5)]
