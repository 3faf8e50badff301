"""Figures of some units: by a field and value on the page of a run."""

from __future__ import annotations

import pytest

from tests.unit.web.serving import SAMPLES, Site, run_named


@pytest.fixture(scope="module")
def first(site: Site) -> str:
    return run_named(site, "first")


def test_the_page_has_figures_of_some_units(site: Site, first: str) -> None:
    page = site.get(f"/runs/{first}?field=model&value=m1").text
    assert f"Only model = m1: {SAMPLES // 2} of {SAMPLES} units." in page
    assert 'data-ready="yes"' in page
    assert f"/runs/{first}/report?field=model&amp;value=m1" in page
    whole = site.get(f"/runs/{first}").text
    assert "Only model" not in whole and 'name="field"' in whole


def test_the_page_says_what_is_wrong_with_a_selection(site: Site, first: str) -> None:
    page = site.get(f"/runs/{first}?field=modle&value=m1")
    assert page.status_code == 200
    assert "Did you mean &#34;model&#34;?" in page.text
    other = site.get(f"/runs/{first}?field=model&value=other").text
    assert "&#34;m0&#34;, &#34;m1&#34;" in other


def test_a_report_of_some_units_can_be_loaded(site: Site, first: str) -> None:
    page = site.get(f"/runs/{first}/report?field=model&value=m0&summary=1")
    assert page.status_code == 200 and f"{SAMPLES // 2} of {SAMPLES} units" in page.text


def test_the_page_links_to_what_changed_most(site: Site) -> None:
    pairs = run_named(site, "pairs")
    page = site.get(f"/runs/{pairs}").text
    assert '<div class="pairs">' in page
    assert f'href="/runs/{pairs}/unit?id=p' in page
    assert site.get("/static/sort.js").status_code == 200
