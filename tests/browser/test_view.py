"""The web interface in a real browser: looking, searching, comparing, live progress, four
languages, dark and light, narrow and wide, without a mouse and without scripts."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from evenhand.errors import EvenhandError, UsageError
from evenhand.web import service
from evenhand.web.service import Timeouts
from evenhand.words import words
from tests.browser.axe import axe_faults
from tests.security.hostile import BUNDLES, HOST, HOSTILE
from tests.security.hostile_runs import hostile_suites, judge_hostile
from tests.suites import JUDGE, samples, started, stored, write_suite
from tests.unit.web.serving import (
    fill,
    fill_team,
    held_up,
    judge_all,
    run_ids,
    run_named,
    served,
)
from tests.waiting import PATIENCE, awaited

LIVELY = Timeouts(counts=PATIENCE)
"""Pages come without figures that are not ready, and renew themselves until they are."""
GATED = (
    JUDGE
    + """
import asyncio, pathlib
GIVEN = [0]

async def gated(messages, schema, params):
    "Answers as many questions as the file beside it allows."
    number, GIVEN[0] = GIVEN[0], GIVEN[0] + 1
    while number >= int(pathlib.Path("allowed.txt").read_text() or 0):
        await asyncio.sleep(0.05)
    return reply(messages)

async def faulty(messages, schema, params):
    "As above, but after the first ones every third fails."
    number = GIVEN[0]
    said = await gated(messages, schema, params)
    if number >= 5 and number % 3 == 2:
        raise RuntimeError("no luck")
    return said
"""
)


SHIFTED = """() => {
  window.shifted = 0;
  new PerformanceObserver((list) => {
    for (const one of list.getEntries()) window.shifted += one.value;
  }).observe({ type: 'layout-shift', buffered: true });
}"""
"""Adds up how far things jump, in the measure of browsers."""


@contextmanager
def judging(folder, units, judge="gated"):
    """A run under way in another process that gets on as far as it is allowed to."""

    def allow(number):
        (folder / "allowed.new").write_text(str(number))
        (folder / "allowed.new").replace(folder / "allowed.txt")

    write_suite(folder, units, {"model": f"python/judge:{judge}"}, judge=GATED)
    allow(5)
    run = started("run", cwd=folder)
    try:
        awaited(lambda: run.poll() is not None or _begun(folder), "the first verdict")
        with served(folder / "evenhand.db", timeouts=LIVELY) as site:
            yield site, allow
    finally:
        run.terminate()
        allow(units)  # it waits for the calls under way
        run.communicate(timeout=PATIENCE)


def _begun(folder):
    """Whether the store is there and has the first verdicts."""
    try:
        return len(stored(folder)) > 0
    except EvenhandError:
        return False


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with served(fill(tmp_path_factory.mktemp("looked")), timeouts=LIVELY) as looked_at:
        yield looked_at


def test_from_the_list_of_runs_to_the_marked_evidence(site, open_page):
    page = open_page(site.url)
    page.get_by_role("link", name="first", exact=True).click()
    page.get_by_role("link", name="Units", exact=True).click()
    page.get_by_label("Search in texts").fill("ANSWER 12,")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**text=ANSWER*")
    assert page.locator("tr.row").count() == 1
    page.locator("tr.row a").click()
    mark = page.locator("mark").first
    assert mark.inner_text() == "Answer 12, p"
    shown = page.locator(".text.own p").nth(1).inner_text()
    assert shown == "Answer 12, plain: ответ, 回答, 答え."
    page.locator("details summary").first.click()
    assert page.get_by_text("Raw reply").first.is_visible()
    page.get_by_role("link", name="Back to the list").first.click()
    page.wait_for_url("**text=ANSWER*")
    assert page.get_by_label("Search in texts").input_value() == "ANSWER 12,"


def test_filters_and_pages(site, open_page):
    from playwright.sync_api import expect

    page = open_page(f"{site.url}/runs/{run_named(site, 'first')}/units")
    page.get_by_label("Status").select_option("failure")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("tr.row")).to_have_count(19)
    page.get_by_role("link", name="failed Remove this filter").click()
    expect(page.locator("tr.row")).to_have_count(50)
    first = page.locator("tr.row a").first.inner_text()
    page.get_by_role("link", name="Next").click()
    expect(page.locator("tr.row a").first).not_to_have_text(first)
    page.get_by_role("link", name="Previous").click()
    expect(page.locator("tr.row a").first).to_have_text(first)
    page.get_by_role("link", name="To the end").click()
    expect(page.locator("tr.row a").last).to_have_text("m1/v1/q129")
    expect(page.locator("tr.row")).to_have_count(50)


def test_two_runs_side_by_side(site, open_page):
    page = open_page(f"{site.url}/runs/{run_named(site, 'second')}/changes")
    page.get_by_label("Compare with").select_option(run_named(site, "first"))
    page.get_by_label("Questions").select_option("different")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**only=different*")
    page.locator(".pair").first.wait_for()
    gaps = "all => all.map(one => Number(one.dataset.difference))"
    worst_first = page.locator(".pair").evaluate_all(gaps)
    assert worst_first == sorted(worst_first) and worst_first[0] < 0
    page.get_by_role("link", name="Difference").click()
    page.wait_for_url("**sort=best*")
    assert page.locator(".pair").evaluate_all(gaps)[0] > 0
    page.locator(".pair summary").first.click()
    assert "It is correct." in page.locator(".pair .sides").first.inner_text()
    page.get_by_label("Questions").select_option("failures")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**only=failures*")
    assert "no verdict" in page.locator(".pair").first.inner_text()


def test_live_progress_of_a_run_in_another_process(tmp_path, open_page):
    reached = "n => +document.querySelector('[data-count=verdicts]')?.textContent >= n"
    with judging(tmp_path, 40) as (site, allow):
        page = open_page(f"{site.url}/runs/latest")
        assert page.locator("#state").inner_text() == "judging now"
        assert 0 < int(page.locator('[data-count="verdicts"]').inner_text()) <= 5
        page.evaluate(SHIFTED)
        opened = page.evaluate("performance.timeOrigin")
        allow(25)
        page.wait_for_function(reached, arg=15)
        # The page itself stayed: only its figures were asked for.
        assert page.evaluate("performance.timeOrigin") == opened
        assert int(page.locator('[data-count="pending"]').inner_text()) >= 15
        assert float(page.locator('[data-count="calls_a_minute"]').inner_text()) > 0
        allow(40)
        complete = "() => document.getElementById('state')?.textContent === 'complete'"
        page.wait_for_function(complete)
        page.wait_for_function(reached, arg=40)
        assert page.evaluate("performance.timeOrigin") == opened
        assert page.evaluate("window.shifted") < 0.01, "words on one line, as numbers grow"


def test_axe_finds_no_serious_fault_in_a_run_under_way(tmp_path, open_page):
    with judging(tmp_path, 40) as (site, _):
        page = open_page(f"{site.url}/runs/latest")
        assert page.locator("#state").inner_text() == "judging now"
        assert axe_faults(page) == []


def test_failures_and_figures_of_a_run_under_way_are_renewed(tmp_path, open_page):
    counted = "n => +document.querySelector('#failures td.num')?.textContent >= n"
    as_of = "n => parseInt(document.querySelector('#as-of')?.textContent.match(/\\d+/)) >= n"
    with judging(tmp_path, 60, "faulty") as (site, allow):
        page = open_page(f"{site.url}/runs/latest")
        opened = page.evaluate("performance.timeOrigin")
        assert page.get_by_text("No failures.").is_visible()
        assert not page.locator("table.failures").is_visible()
        page.wait_for_function(as_of, arg=1)
        allow(20)
        page.wait_for_function(counted, arg=1)
        row = page.locator("table.failures tbody tr")
        assert row.locator("a").inner_text() == "judge_crash"
        assert row.locator("a").get_attribute("href").endswith("/units?reason=judge_crash")
        assert len(row.locator(".soft").inner_text()) > 5
        assert not page.get_by_text("No failures.").is_visible()
        before = int(row.locator("td.num").inner_text())
        notes = page.locator("#figures details summary")
        notes.first.click()
        allow(40)
        page.wait_for_function(counted, arg=before + 3)
        page.wait_for_function(as_of, arg=18)
        # The page itself stayed, and what the reader opened is open.
        assert page.evaluate("performance.timeOrigin") == opened
        assert page.locator("#figures details").first.get_attribute("open") is not None
        assert page.evaluate("document.activeElement.tagName") == "SUMMARY"


def test_a_long_id_is_cut_in_the_list_and_whole_in_the_unit(tmp_path, open_page):
    name = "x" * 3000
    judge_all(write_suite(tmp_path, [samples(1)[0] | {"id": name}]))
    with served(tmp_path / "evenhand.db") as site:
        page = open_page(f"{site.url}/runs/latest/units")
        for width in (360, 1200):
            page.set_viewport_size({"width": width, "height": 900})
            box = page.locator("tr.row a").bounding_box()
            assert box["height"] < 120
            assert page.locator("tr.row a").inner_text() == "x" * 79 + "…"
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.locator("tr.row a").click()
        page.wait_for_url("**/unit?**")
        assert page.locator("h1").inner_text() == name


def test_without_scripts_a_live_page_loads_itself_again(tmp_path, open_page):
    with judging(tmp_path, 60) as (site, allow):
        page = open_page(f"{site.url}/runs/latest", java_script_enabled=False)
        assert "judging now" in page.locator("#state").inner_text()
        allow(20)
        page.locator(".next", has_text=words("en")("next.live")).wait_for()
        allow(60)
        page.locator('[data-count="verdicts"]:text-is("60")').wait_for()
        page.locator(".next", has_text=words("en")("next.read")).wait_for()
        page.goto(f"{site.url}/runs/latest/units")
        assert page.locator("tr.row").count() == 50


def test_everything_can_be_done_with_the_keyboard(site, open_page):
    page = open_page(f"{site.url}/runs/{run_named(site, 'first')}/units")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    _tab_to(page, "document.activeElement.name === 'text'")
    page.keyboard.type("Answer 5,")
    page.keyboard.press("Enter")
    page.wait_for_url("**text=Answer+5*")
    _tab_to(page, "document.activeElement.closest('tr.row') !== null")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline != "none"
    page.keyboard.press("Enter")
    page.wait_for_url("**/unit?id=*")
    _tab_to(page, "document.activeElement.tagName === 'SUMMARY'")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.parentElement.open") is True


def _tab_to(page, there):
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate(f"document.activeElement !== document.body && ({there})"):
            return
    raise AssertionError(f"no tab stop where {there}")


def test_keys_lead_from_unit_to_unit(site, open_page):
    from playwright.sync_api import expect

    page = open_page(f"{site.url}/runs/{run_named(site, 'first')}/units")
    page.locator("tr.row a").first.click()
    first = page.locator("h1").inner_text()
    for key, is_first in (("j", False), ("k", True)):
        page.keyboard.press(key)
        expect(page.locator("h1", has_text=first)).to_have_count(int(is_first))


def test_fields_have_names_and_pages_have_one_heading(site, open_page):
    run = f"{site.url}/runs/{run_named(site, 'first')}"
    page = open_page(run)
    unnamed = "[...document.querySelectorAll('input, select')].filter(f => !f.labels.length).length"
    empty = "[...document.querySelectorAll('a, button')].filter(e => !e.textContent.trim()).length"
    for path in ("", "/units", "/unit?id=m0/v0/q000", "/changes", "/protocol"):
        page.goto(run + path)
        assert page.evaluate(unnamed) == 0, path
        assert page.locator("h1").count() == 1, path
        assert page.evaluate(empty) == 0, path


def test_dark_and_light_follow_the_system_until_the_reader_chooses(site, open_page):
    page = open_page(site.url, color_scheme="dark")
    colour = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(colour)
    page.emulate_media(color_scheme="light")
    light = page.evaluate(colour)
    assert dark != light
    page.get_by_role("button", name="Light / dark").click()
    assert page.evaluate(colour) == dark
    page.reload()
    assert page.evaluate(colour) == dark


@pytest.mark.parametrize("language", ["en", "ru", "zh", "ja"])
def test_four_languages(site, open_page, screenshot, language):
    run = f"{site.url}/runs/{run_named(site, 'pairs')}"
    page = open_page(run, locale=language, viewport={"width": 1200, "height": 900})
    assert page.evaluate("document.documentElement.lang") == language
    page.locator('#figures[data-ready="yes"]').wait_for()
    screenshot(page, f"view-run-{language}")
    page.goto(f"{run}/units")
    assert page.evaluate("document.documentElement.lang") == language
    screenshot(page, f"view-units-{language}")
    page.get_by_role("link", name="ru", exact=True).click()
    page.wait_for_url("**lang=ru*")
    assert page.evaluate("document.documentElement.lang") == "ru"
    page.goto(site.url)
    assert page.evaluate("document.documentElement.lang") == "ru"


def test_a_search_that_finds_nothing_comes_to_an_end(site, open_page):
    page = open_page(f"{site.url}/runs/{run_named(site, 'first')}/units?text=nowhere")
    page.get_by_text("Nothing found.").wait_for()


@pytest.fixture(scope="module")
def hostile_texts(long):
    """Two dozen hostile texts to a unit, or each by itself."""
    return HOSTILE if long else BUNDLES


@pytest.fixture(scope="module")
def hostile(tmp_path_factory, hostile_texts):
    folder = tmp_path_factory.mktemp("hostile")
    store = folder / "all.db"
    judge_hostile(*hostile_suites(folder, hostile_texts, store={"url": f"sqlite:{store}"}))
    with served(store) as site:
        yield site


def test_hostile_texts_do_nothing_in_a_browser(hostile, hostile_texts, open_page):
    page = open_page(hostile.url)
    title = page.title()
    units = 0
    for run in run_ids(hostile).values():
        base = f"{hostile.url}/runs/{run}"
        for path in ("", "/changes", "/protocol"):
            page.goto(base + path)
        for link in _unit_links(page, f"{base}/units"):
            page.goto(hostile.url + link)
            page.evaluate("for (const d of document.querySelectorAll('details')) d.open = true")
            # Whatever waits for the pointer or the focus has its chance.
            page.mouse.move(400, 300)
            page.keyboard.press("Tab")
            units += 1
    assert units == 4 * len(hostile_texts)
    page.goto(hostile.url)
    assert page.title() == title
    assert not [fault for fault in page.faults if HOST in fault]
    assert page.struck == []


def _unit_links(page, address):
    """The addresses of all units of a run, from page to page of its list."""
    links = []
    following = address
    while following:
        page.goto(following)
        links += page.locator("tr.row a").evaluate_all("all => all.map(a => a.pathname + a.search)")
        after = page.locator('a[rel="next"]')
        following = after.evaluate("a => a.href") if after.count() else None
    return links


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    return fill_team(tmp_path_factory.mktemp("team"), 60)


PLACES = ["/", "/runs/weekly", "/runs/weekly/trend", "/runs/weekly/matrix", "/runs/weekly/changes"]


@contextmanager
def hurried(store, monkeypatch, open_page, path):
    """A page whose figures come once the other thing is set."""
    with (
        served(store, timeouts=LIVELY) as looked_at,
        held_up(monkeypatch, "make_report", "matrix_of", "side_by_side") as go,
    ):
        page = open_page(looked_at.url + path)
        page.evaluate(SHIFTED)
        opened = page.evaluate("performance.timeOrigin")
        assert page.locator("#skeleton, .wait").count()
        yield page, go
        assert page.evaluate("performance.timeOrigin") == opened


READY = "() => !document.querySelector('[data-ready=no]')"


@pytest.mark.parametrize("path", PLACES)
def test_figures_come_into_their_place_without_a_jump(team, open_page, monkeypatch, path):
    with hurried(team, monkeypatch, open_page, path) as (page, go):
        go.set()
        page.wait_for_function(READY)
        assert page.locator("#skeleton, .wait").count() == 0
        assert page.evaluate("window.shifted") == 0


def test_a_page_says_what_cannot_be_computed(team, open_page, monkeypatch):
    def refuse(*arguments):
        raise UsageError("It has no such field.")

    monkeypatch.setattr(service, "make_report", refuse)
    with hurried(team, monkeypatch, open_page, "/runs/weekly") as (page, go):
        go.set()
        page.get_by_text("It has no such field.").wait_for()
        page.faults.clear()  # browsers note in the console that a page came with an error


def test_figures_move_nothing_that_the_reader_is_at(team, open_page, monkeypatch):
    with hurried(team, monkeypatch, open_page, "/runs/weekly") as (page, go):
        field = page.get_by_label("Field")
        field.scroll_into_view_if_needed()
        field.fill("mod")
        before = field.bounding_box()["y"]
        go.set()
        page.wait_for_function(READY)
        assert page.evaluate("document.activeElement.name") == "field"
        assert field.input_value() == "mod"
        assert abs(field.bounding_box()["y"] - before) <= 1


def test_without_scripts_a_page_loads_itself_again_until_it_is_whole(team, open_page, monkeypatch):
    with (
        served(team, timeouts=LIVELY) as looked_at,
        held_up(monkeypatch) as go,
    ):
        page = open_page(f"{looked_at.url}/runs/weekly", java_script_enabled=False)
        assert page.locator("#skeleton").count() == 1
        go.set()
        page.locator(".headline").wait_for()
