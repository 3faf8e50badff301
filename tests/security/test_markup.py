"""Every field of a report and of the pages of the view filled with hostile strings: nothing runs,
nothing leaves, all is shown as text.

Pages are opened with their policy switched off: escaping alone must hold. The policy is the second
wall, and is tested by itself.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable
from contextlib import closing
from html import unescape
from html.parser import HTMLParser
from typing import Any
from urllib.parse import quote
from zlib import decompress

import pytest

from evenhand.report.html.render import render
from evenhand.results.report import ReportOptions, make_report, write_report
from evenhand.runs.recorded import find_run
from evenhand.runs.stores import open_archive, open_store
from evenhand.store.ports import Scope
from evenhand.text import visible
from tests.browser.conftest import chromium, open_page
from tests.browser.runs import judge, opened
from tests.security.hostile import HOST, HOSTILE
from tests.security.hostile_runs import hostile_suites, judge_hostile
from tests.suites import write_rows, write_suite
from tests.unit.runs.importing import import_files
from tests.unit.web.serving import run_ids, served
from tests.waiting import PATIENCE

__all__ = ["chromium", "open_page"]
Open = Callable[..., Any]
_TAGS = """
html head meta title link style body a header div h1 h2 h3 h4 span nav ul li label select option
main section p dl dt dd svg g path rect code details summary figure
figcaption caption table thead tbody tr th td form input button footer script noscript b mark small
pre progress datalist
i em strong s ins ol hr br blockquote h5 h6 kbd caption
"""
TAGS = set(_TAGS.split())
ATTRIBUTES = re.compile(r"on|style$|srcset|srcdoc|formaction")
LINKS = ("href", "src", "action", "xlink:href")
KINDS = ("rubric", "pairwise", "weighted", "checklist")


def imported(folder):
    """Votes made elsewhere: names of judges, candidates and criteria are anybody's."""
    strings = [text for text in HOSTILE if text.strip()]
    rows = [
        {
            "unit": f"{i // 2} {one}",
            "judge": strings[i % 3],
            "first": strings[i % 4],
            "second": "plain",
        }
        | {"winner": ("first", "second", "tie", one)[i % 4], "area": one}
        for i, one in enumerate(strings)
    ]
    write_rows(folder, rows, "votes.jsonl")
    return folder / "votes.jsonl"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Runs of the four kinds over all texts in one store, and votes from elsewhere in another."""
    root = tmp_path_factory.mktemp("hostile")
    judge_hostile(*hostile_suites(root, store={"url": f"sqlite:{root / 'all.db'}"}))
    store = open_store("sqlite:imported.db", root)
    try:
        import_files(store, [imported(root)], "votes")
    finally:
        store.close()
    return root


@pytest.fixture(scope="module")
def files(folder):
    """A report of each run."""
    reports = {}
    for name, kinds in (("all.db", KINDS), ("imported.db", ("imported",))):
        with closing(open_archive(f"sqlite:{name}", folder)) as archive:
            for kind, row in zip(kinds, reversed(archive.runs()), strict=True):
                run, reports[kind] = find_run(archive, row.id), folder / f"{kind}.html"
                run.row = run.row._replace(name='"><script>window.struck&&struck(1)</script>')
                write_report(reports[kind], archive, run)
    return reports


@pytest.fixture(scope="module")
def site(folder):
    with served(folder / "all.db") as found:
        yield found


class Watch(HTMLParser):
    """Notes whatever in a page could act: elements that no template of ours has, attributes that
    run or load, and links that lead elsewhere than `links` says."""

    def __init__(self, links):
        super().__init__()
        self.links, self.faults, self.scripts = links, [], []

    def handle_starttag(self, tag, attrs):
        if tag not in TAGS:
            self.faults.append(tag)
        if tag == "script":
            self.scripts.append(dict(attrs))
        for name, value in attrs:
            if ATTRIBUTES.match(name) or (name in LINKS and not self.links.match(value or "")):
                self.faults.append(f"{name}={value}")


def watched(page, links):
    """Return the scripts of a page in which nothing else could act."""
    watch = Watch(links)
    watch.feed(page)
    assert not watch.faults
    return watch.scripts


@pytest.mark.parametrize("kind", [*KINDS, "imported"])
def test_a_page_holds_no_element_and_no_attribute_of_theirs(files, kind):
    text = files[kind].read_text(encoding="utf-8")
    policy = unescape(re.search('Content-Security-Policy" content="([^"]*)"', text)[1])
    assert "unsafe" not in policy and "default-src 'none'" in policy
    assert re.search(r"style-src 'sha256-[^' ]+'; script-src 'sha256-[^' ]+'$", policy)
    assert len(watched(text, re.compile("#|data:,$"))) == 1
    packed = re.search(r'<p id="packed" hidden>([^<]+)</p>', text)
    drills = decompress(b64decode(packed[1])).decode() if packed else ""
    assert not watched(drills, re.compile("#")) and visible(drills) == drills
    assert packed or kind != "pairwise", "of these one is large enough to be packed"
    assert text.count("<script") == 1 and text.count("</script") == 1
    assert visible(text) == text


OPEN_ALL = """() => {
  document.querySelectorAll('details').forEach((one) => { one.open = true; });
  document.querySelectorAll('body *').forEach((one) => {
    for (const name of one.getAttributeNames())
      if (name.startsWith('on') || name === 'style') throw new Error(`${one.tagName} ${name}`);
    one.dispatchEvent(new MouseEvent('mouseover', { bubbles: true }));
  });
  return document.querySelectorAll('.unit[open] .drill').length;
}"""


PICTURE_FAILED = """() => new Promise((done) => {
  const picture = new Image();
  picture.onerror = () => requestAnimationFrame(() => setTimeout(done));
  picture.src = 'data:image/png,none';
})"""
"""Waits until a picture that cannot be shown has said so: all that came before it has, too."""


@pytest.mark.parametrize("kind", [*KINDS, "imported"])
def test_nothing_runs_and_nothing_leaves(files, open_page, kind):
    page = open_page(files[kind], bypass_csp=True)
    urls = []
    page.on("request", lambda request: urls.append(request.url))
    page.wait_for_function("!document.getElementById('packed')")
    number = page.evaluate(OPEN_ALL)
    assert number >= (100 if kind == "imported" else 200)
    page.evaluate(PICTURE_FAILED)
    assert not page.struck and not page.faults
    assert not [url for url in urls if HOST in url]
    plain = open_page(files[kind], bypass_csp=True, java_script_enabled=False, wait="networkidle")
    assert not plain.faults


ALL_UNITS = "() => [...document.querySelectorAll('.unit .id')].map((one) => one.textContent)"


@pytest.mark.parametrize("kind", KINDS)
def test_every_string_is_shown_to_the_letter(files, open_page, kind):
    names = open_page(files[kind], bypass_csp=True).evaluate(ALL_UNITS)
    assert len(HOSTILE) >= 200 and len(names) == len(HOSTILE)
    for i, text in enumerate(HOSTILE):
        expected = visible(f"{text} {i}").strip()
        assert any(expected in name for name in names), text


def test_the_policy_stops_what_would_slip_through(tmp_path, files, chromium):
    text = files["rubric"].read_text(encoding="utf-8")
    slipped = tmp_path / "slipped.html"
    injected = (
        "<script>window.struck&&struck(1)</script><img src=x onerror='window.struck&&struck(2)'>"
        f"<img src='https://{HOST}/x'><style>@import 'https://{HOST}/y';</style>"
        f"<script src='https://{HOST}/z'></script><iframe src='https://{HOST}/f'></iframe>"
    )
    slipped.write_text(text.replace("<main>", f"<main>{injected}", 1), encoding="utf-8")
    page = chromium.new_page()
    page.set_default_timeout(1000 * PATIENCE)
    struck = []
    urls = []
    stopped = []
    page.expose_function("struck", lambda *values: struck.append(values))
    page.on("requestfailed", lambda request: stopped.append((request.url, request.failure)))
    page.on("request", lambda request: urls.append(request.url))
    page.goto(slipped.as_uri(), wait_until="networkidle")
    assert page.locator("#tools").is_visible()  # our own script still runs
    page.close()
    assert not struck and stopped
    left = set(urls) - {url for url, why in stopped if why == "csp"}
    assert left <= {slipped.as_uri(), "data:,"}


def test_words_of_data_are_never_read_as_a_template(tmp_path):
    rows = [
        {"id": "x", "question": "{{ 7*7 }} {0.__class__} {n}", "meta": {"prompt_variant": "{n}"}}
        | {"model_output": "{% for x in y %} {interval}"}
    ]
    suite = write_suite(tmp_path, rows, {"model": "python/judge:good"})
    with opened(judge(suite)) as (store, run):
        page = render(make_report(store, run, ReportOptions(language="en")))
    assert "{{ 7*7 }} {0.__class__} {n}" in page and "{% for x in y %}" in page


ALLOWED = re.compile(r"/(?!/)|\?|#|data:,$")


def check(page):
    """A page of the view has its own two scripts and nothing of data's that acts."""
    for script in watched(page, ALLOWED):
        assert script in ({"src": "/static/view.js"}, {"src": "/static/sort.js", "defer": None})
    assert not re.search("<meta[^>]*http-equiv|<style", page)
    # What a form was asked with stands in it again as it was.
    assert not HIDDEN.search(re.sub(r'<input [^>]*value="[^"]*"', "", page))


HIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069\u200b\u200e\u200f]")


def test_pages_hold_no_element_that_data_made(site):
    for run in run_ids(site).values():
        base = f"/runs/{run}"
        pages = ("", "/protocol", "/changes", "/changes?only=failures&sort=best", "/trend")
        filtered = [f"/?{name}={quote(HOSTILE[0])}" for name in ("text", "author", "tagged")]
        for path in (*(base + page for page in pages), "/", *filtered):
            check(site.get(path).text)
        path = f"{base}/units"
        shown = 0
        while path:
            page = site.get(path).text
            check(page)
            shown += len(re.findall(r'<tr class="row">', page))
            found = re.search(r'href="([^"]*)" rel="next"', page)
            path = found[1].replace("&amp;", "&") if found else ""
        assert shown == len(HOSTILE)


def test_every_unit_is_found_by_its_id_and_shown_as_text(site, long):
    """In the short form every text in one of the four kinds."""
    for kind, run in enumerate(run_ids(site).values()):
        with closing(open_archive(site.store)) as store:
            units = [unit.id for unit in store.units(Scope(run))]
        assert len(units) == len(HOSTILE)
        for unit in units if long else units[kind::4]:
            answer = site.get(f"/runs/{run}/unit?id={quote(unit, safe='')}")
            assert answer.status_code == 200, unit
            check(answer.text)


@pytest.mark.parametrize("place", range(len(HOSTILE)))
def test_what_is_asked_for_comes_back_as_text(site, place, long):
    """In the short form every text is asked for in some of the ways."""
    text = HOSTILE[place]
    sent = quote(text[:190], safe="")
    paths = (
        f"/runs/latest/units?text={sent}",
        f"/runs/latest/units?field={sent}&value={sent}&flag={sent}",
        f"/runs/latest/units?reason={sent}",
        f"/runs/latest/units?score={sent}&tag={sent}&sort=lowest",
        f"/runs/latest/changes?baseline={sent}&variant={sent}",
        f"/runs/latest/changes?against={sent}",
        f"/runs/latest/unit?id={sent}",
        f"/runs/{quote(text[:60], safe='')}",
        f"/runs/latest/protocol?lang={sent}",
        f"/runs/latest?field={sent}&value={sent}",
    )
    for path in paths if long else paths[place % 3 :: 3]:
        answer = site.get(path)
        assert answer.status_code in (200, 400, 404, 422), path
        check(answer.text)
