"""Figures of some units: by a field and value on the page of a run, by `where` in the API."""

from __future__ import annotations

import pytest

from tests.unit.web.serving import SAMPLES, Site, run_named, sample


@pytest.fixture(scope="module")
def first(site: Site) -> str:
    return run_named(site, "first")


def scored(model: str) -> int:
    """How many samples of a model have a verdict."""
    rows = [sample(i) for i in range(SAMPLES)]
    return sum(
        row["meta"]["model"] == model and "broken" not in row["model_output"] for row in rows
    )


def test_the_api_selects_units_as_the_command_does(site: Site, first: str) -> None:
    figures = site.json(f"/api/runs/{first}/figures?where=model%3Dm1")["figures"]
    assert figures["selected"] == {"condition": "model = m1", "units": SAMPLES // 2, "of": SAMPLES}
    # All samples of m1 are of v1, so that nothing is compared.
    means = {(mean["dimension"], mean["variant"], mean["n"]) for mean in figures["means"]}
    assert ("correct", "v1", scored("m1")) in means or ("correct", "", scored("m1")) in means
    both = site.json(f"/api/runs/{first}/figures?where=model%3Dm1&where=model%3Dm0")["figures"]
    assert both["selected"]["units"] == SAMPLES
    assert site.json(f"/api/runs/{first}/figures")["figures"]["selected"] is None


def test_the_api_says_which_values_there_are(site: Site, first: str) -> None:
    answer = site.get(f"/api/runs/{first}/figures?where=model%3Dother")
    assert answer.status_code == 400
    assert '"m0", "m1"' in answer.text.replace("\\", "")


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


def test_a_report_of_some_units_can_be_loaded(site: Site, first: str) -> None:
    page = site.get(f"/runs/{first}/report?field=model&value=m0&summary=1")
    assert page.status_code == 200 and f"{SAMPLES // 2} of {SAMPLES} units" in page.text


def test_the_page_links_to_what_changed_most(site: Site) -> None:
    pairs = run_named(site, "pairs")
    page = site.get(f"/runs/{pairs}").text
    assert '<div class="pairs">' in page
    assert f'href="/runs/{pairs}/unit?id=p' in page
    assert site.get("/static/sort.js").status_code == 200
