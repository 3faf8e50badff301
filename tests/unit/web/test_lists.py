"""The list of judgments: page by page, and what filters leave."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import quote

import pytest

from tests.cases import cases
from tests.unit.web.serving import SAMPLES, listed, run_named


@pytest.fixture
def first(site):
    return run_named(site, "first")


def choices(page, name):
    """The options of a filter: values and what is said of them."""
    (select,) = re.findall(rf'<select name="{name}">(.*?)</select>', page, re.DOTALL)
    return dict(re.findall(r'<option value="([^"]+)"[^>]*>([^<]*)</option>', select))


def test_filters_offer_what_there_is(site, first):
    page = site.get(f"/runs/{first}/units").text
    assert choices(page, "status") == {
        "verdict": f"judged ({SAMPLES - 19})",
        "failure": "failed (19)",
    }
    assert list(choices(page, "reason")) == ["not_json"]
    assert list(choices(page, "tag")) == ["A", "B", "C", "D", "E"]
    assert "masked" in choices(page, "flag") and 'name="winner"' not in page
    assert 'name="passed"' not in page
    pairs = site.get(f"/runs/{run_named(site, 'pairs')}/units").text
    assert list(choices(pairs, "winner")) == ["A", "B", "tie", "uncertain"]
    assert list(choices(site.get(f"/runs/{run_named(site, 'graded')}/units").text, "confidence"))
    chosen = site.get(f"/runs/{first}/units?tag=B").text
    assert 'value="B" selected' in chosen


@cases
def test_pages_hold_every_judgment_once_and_in_order_either_way(site, name, judgments):
    run = run_named(site, name)
    forward = listed(site, run)
    assert len(forward) == judgments
    assert listed(site, run, f"before={10**17}", "prev") == forward
    if name == "first":
        assert forward == named(lambda i: True)


def named(wanted):
    """The ids of the samples that something holds for."""
    return [f"m{i % 2}/v{i % 2}/q{i:03}" for i in range(SAMPLES) if wanted(i)]


def test_filters_find_what_they_say(site, first):
    failed = named(lambda i: i % 7 == 3)
    assert listed(site, first, "status=failure") == failed
    assert listed(site, first, "reason=not_json") == failed
    assert listed(site, first, "reason=empty") == []
    assert listed(site, first, "tag=B") == named(lambda i: i % 5 == 0 and i % 7 != 3)
    assert listed(site, first, "field=prompt_variant&value=v1") == named(lambda i: i % 2)
    both = "status=failure&field=model&value=m0"
    assert listed(site, first, both) == named(lambda i: i % 7 == 3 and i % 2 == 0)
    assert listed(site, first, "judge=python/judge:one") == named(lambda i: True)


def test_a_row_says_who_met_whom_and_who_won_or_which_variant_it_is(site, first):
    def names(run, query=""):
        page = site.get(f"/runs/{run}/units?{query}").text
        cells = re.findall(r'<td data-label="(?:Candidate|Variant)">(.*?)</td>', page)
        return [" ".join(re.sub("<[^>]*>", " ", cell).split()) for cell in cells]

    assert names(first)[:3] == ["v0", "v1", "v0"]
    pairs = run_named(site, "pairs")
    assert set(names(pairs, "judge=python/judge:content&winner=A")) == {"✓ c1 · c2"}
    assert set(names(pairs, "judge=python/judge:content&winner=B")) == {"c1 · ✓ c2"}
    assert set(names(pairs, "winner=tie")) == {"c1 · c2"}


def test_filters_that_are_set_are_chips(site, first):
    page = site.get(f"/runs/{first}/units?status=failure&field=model&value=m0&text=x").text
    chips = re.findall(r'<a class="chip" href="([^"]*)"[^>]*>([^<]*)', page)
    here = f"/runs/{first}/units"
    assert [(unescape(href), text.strip()) for href, text in chips] == [
        (f"{here}?field=model&value=m0&text=x", "failed"),
        (f"{here}?status=failure&text=x", "model = m0"),
        (f"{here}?status=failure&field=model&value=m0", "x"),
        (here, "Clear"),
    ]
    for path in (f"/runs/{first}?field=model&value=m0", f"/runs/{first}/matrix?only=different"):
        assert site.get(path).text.count('<a class="chip"') == 1


def test_units_that_wait_and_pairs_and_answers_are_found(site):
    assert listed(site, run_named(site, "waiting"), "status=pending") == [
        f"u{i}" for i in range(5, 10)
    ]
    pairs = run_named(site, "pairs")
    assert len(listed(site, pairs, "judge=python/judge:coin")) == 20
    assert listed(site, pairs, "judge=python/judge:coin&flag=self_contradiction")
    assert len(listed(site, pairs, "candidate=c1")) == 60
    assert listed(site, pairs, "candidate=nobody") == []
    graded = run_named(site, "graded")
    assert listed(site, graded, "confidence=low")
    assert listed(site, graded, "passed=false") == [f"t{i}/m" for i in range(2, 30, 3)]
    page = site.get(f"/runs/{graded}/units?passed=true").text
    assert '<b class="good">✓ pass</b>' in page and "✗ fail" not in page
    assert list(choices(page, "passed")) == ["true", "false"]


@cases
def test_search_reads_texts_ids_and_reasons_but_no_keys(site, first, text, found):
    assert len(listed(site, first, f"text={quote(text)}")) == found


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("after=x", 422),
        ("status=odd", 422),
        ("judge=nobody", 400),
        (f"text={'x' * 2_001}", 422),
    ],
)
def test_a_wrong_parameter_is_refused(site, query, status):
    assert site.get(f"/runs/latest/units?{query}").status_code == status
