"""The list of judgments: choices with numbers, totals of what filters leave, order by score."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape
from urllib.parse import quote

import pytest

from tests.unit.web.serving import SAMPLES, Site, listed, run_named


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


@pytest.mark.parametrize(
    ("name", "judgments"), [("first", SAMPLES), ("pairs", 60), ("graded", 30), ("waiting", 10)]
)
def test_pages_hold_every_judgment_once_and_in_order_either_way(
    site: Site, name: str, judgments: int
) -> None:
    run = run_named(site, name)
    forward = listed(site, run)
    assert len(forward) == judgments
    assert listed(site, run, f"before={10**17}", "prev") == forward
    if name == "first":
        assert forward == named(lambda i: True)


def named(wanted: Callable[[int], object]) -> list[str]:
    """The ids of the samples that something holds for."""
    return [f"m{i % 2}/v{i % 2}/q{i:03}" for i in range(SAMPLES) if wanted(i)]


def test_filters_find_what_they_say(site: Site, first: str) -> None:
    failed = named(lambda i: i % 7 == 3)
    assert listed(site, first, "status=failure") == failed
    assert listed(site, first, "reason=not_json") == failed
    assert listed(site, first, "reason=empty") == []
    assert listed(site, first, "tag=B") == named(lambda i: i % 5 == 0 and i % 7 != 3)
    assert listed(site, first, "field=prompt_variant&value=v1") == named(lambda i: i % 2)
    both = "status=failure&field=model&value=m0"
    assert listed(site, first, both) == named(lambda i: i % 7 == 3 and i % 2 == 0)
    assert listed(site, first, "judge=python/judge:one") == named(lambda i: True)


def test_units_that_wait_and_pairs_and_answers_are_found(site: Site) -> None:
    assert listed(site, run_named(site, "waiting"), "status=pending") == [
        f"u{i}" for i in range(5, 10)
    ]
    pairs = run_named(site, "pairs")
    assert len(listed(site, pairs, "judge=python/judge:coin")) == 20
    assert listed(site, pairs, "judge=python/judge:coin&flag=self_contradiction")
    assert len(listed(site, pairs, "candidate=c1")) == 60
    assert listed(site, pairs, "candidate=nobody") == []
    assert listed(site, run_named(site, "graded"), "confidence=low")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ANSWER 12,", 1),
        ("ОТВЕТ", SAMPLES),
        ("回答", SAMPLES),
        ("答え", SAMPLES),
        ("What is 7?", 1),
        ("it is CLEAR", SAMPLES - 19),
        ("m0/v0/q008", 1),
        ("model_output", 0),
        ("rationale", 0),
        ("blake2b", 0),
        ("%", 0),
        ("_", 0),
    ],
)
def test_search_reads_texts_ids_and_reasons_but_no_keys(
    site: Site, first: str, text: str, found: int
) -> None:
    assert len(listed(site, first, f"text={quote(text)}")) == found


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("after=x", 422),
        ("status=odd", 422),
        ("judge=nobody", 400),
        (f"text={'x' * 201}", 422),
        ("sort=odd", 422),
    ],
)
def test_a_wrong_parameter_is_refused(site: Site, query: str, status: int) -> None:
    assert site.get(f"/runs/latest/units?{query}").status_code == status
