"""Every page over a gallery of odd runs: in light and dark, on a phone, a laptop and a wide screen,
in four languages. Nothing scrolls sideways, no text is cut or overlaps, all of it can be read
against its ground; axe-core finds no serious fault, and Tab reaches everything. The short form
looks at each page in one language, `--long` in all."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from evenhand.results.report import ReportOptions, write_report
from evenhand.runs.recorded import find_run
from evenhand.runs.stores import open_archive
from tests.browser.axe import axe_faults
from tests.browser.gallery import fill
from tests.unit.web.serving import run_ids, run_named, served

Open = Callable[..., Any]
LANGUAGES = ("en", "ru", "zh", "ja")
WIDTHS, SCHEMES = (360, 1024, 1600), ("light", "dark")
FONTS = ("DejaVu Sans", "Noto Sans", "Liberation Sans")
RUNS = (
    "two variants",
    "many variants",
    "league of seven",
    "pairs by two judges",
    "two candidates",
    "graded answers",
    "checklist",
    "conversations",
    "pairs of conversations",
    "odd units",
    "failing",
    "scores",
    "votes",
)
PAGES = {
    "runs": "/",
    "two": "/runs/{two variants}",
    "many": "/runs/{many variants}",
    "league": "/runs/{league of seven}",
    "graded": "/runs/{graded answers}",
    "failing": "/runs/{failing}",
    "imported": "/runs/{votes}",
    "ticked": "/runs/{checklist}",
    "not judged": "/runs/{not judged}",
    "matrix": "/runs/{many variants}/matrix",
    "matrix of pairs": "/runs/{league of seven}/matrix?only=different",
    "changes": "/runs/{many variants}/changes",
    "changes of pairs": "/runs/{league of seven}/changes",
    "changes of runs": "/runs/{two variants}/changes?against={two variants, again}&only=failures",
    "units": "/runs/{graded answers}/units",
    "odd units": "/runs/{odd units}/units",
    "pairs": "/runs/{league of seven}/units",
    "unit": "/runs/{two variants}/unit?id=m/v1/q2",
    "hidden": "/runs/{odd units}/unit?id=hidden",
    "pair": "/runs/{pairs by two judges}/unit?id=p0%23c1~c2",
    "conversation": "/runs/{conversations}/unit?id=v2/1",
    "two conversations": "/runs/{pairs of conversations}/unit?id=c1",
    "trend": "/runs/{two variants, again}/trend",
    "protocol": "/runs/{two variants}/protocol",
    "missing": "/runs/nobody",
}
FAULTS = """() => {
  const faults = [];
  const told = (one) => (one.textContent || "").trim().slice(0, 60);
  if (document.documentElement.scrollWidth > innerWidth) faults.push("the page scrolls sideways");
  const channels = (text) => {
    const parts = text.match(/[\\d.]+/g).map(Number);
    return [parts[0], parts[1], parts[2], parts[3] ?? 1];
  };
  const over = (front, back) =>
    [0, 1, 2].map((i) => front[i] * front[3] + back[i] * (1 - front[3])).concat(1);
  const ground = (one) => {
    const layers = [];
    for (let at = one; at; at = at.parentElement) {
      const colour = channels(getComputedStyle(at).backgroundColor);
      if (colour[3] > 0) layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reverse().reduce((back, front) => over(front, back), [255, 255, 255, 1]);
  };
  const luminance = (colour) => {
    const [r, g, b] = colour.slice(0, 3).map((c) => c / 255).map((c) =>
      c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (one, other) => {
    const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const holders = new Set();
  while (walker.nextNode()) {
    const holder = walker.currentNode.parentElement;
    if (walker.currentNode.data.trim()) holders.add(holder);
  }
  for (const one of holders) {
    if (one.closest("script, style, option, .sr, .skip, noscript")) continue;
    if (!one.checkVisibility()) continue;
    const style = getComputedStyle(one);
    const box = one.getBoundingClientRect();
    if (!box.width || !box.height || one.closest("thead") && box.width <= 1) continue;
    const scrolls = one.closest(".scroll, .table, .questions");
    const isBeyond = box.right > innerWidth + 1 || box.left < -1;
    if (!scrolls && isBeyond) faults.push(`beyond: ${told(one)}`);
    const hides = ["hidden", "clip"].includes(style.overflowX);
    if (hides && one.scrollWidth > one.clientWidth + 1) faults.push(`cut: ${told(one)}`);
    if (one.closest(".matrix, .questions")) continue; // its grounds are mixed colours
    const ink = channels(style.color);
    const back = ground(one);
    const ratio = contrast(over(ink, back), back);
    if (ratio < 4.5) faults.push(`contrast ${ratio.toFixed(2)}: ${told(one)}`);
  }
  return [...new Set(faults)];
}"""
OPEN = """() => {
  const pairs = document.querySelectorAll(".pair");
  for (let i = 0; i < pairs.length && i < 25; i += 12) pairs[i].open = true;
  document.querySelectorAll("details:not(.pair)").forEach((one) => { one.open = true; });
}"""
FOCUS = """() => {
  window.reached = new Set();
  window.unseen = [];
  document.addEventListener("focusin", ({ target }) => {
    const { outlineStyle, outlineWidth } = getComputedStyle(target);
    if (outlineStyle === "none" || outlineWidth === "0px") window.unseen.push(target.outerHTML);
    window.isRound = window.reached.has(target);
    window.reached.add(target);
  });
}"""
MISSED = """() => {
  const active =
    "a[href], button:enabled, select, input:not([type=hidden]), summary, [tabindex='0']";
  const scrolls = (one) => /auto|scroll/.test(getComputedStyle(one).overflow)
    && (one.scrollHeight > one.clientHeight + 1 || one.scrollWidth > one.clientWidth + 1);
  const isReached = (one) => window.reached.has(one)
    || scrolls(one) && [...window.reached].some((other) => one.contains(other));
  const all = [...document.body.querySelectorAll("*")].filter((one) => one.checkVisibility());
  const missed = all.filter((one) => (one.matches(active) || scrolls(one)) && !isReached(one));
  return [...missed.map((one) => `missed ${one.outerHTML.slice(0, 120)}`),
    ...window.unseen.map((one) => `no outline ${one.slice(0, 120)}`)];
}"""
CUT = """font => {
  const style = new CSSStyleSheet();
  style.replaceSync(`figure * { font-family: "${font}", sans-serif !important; }`);
  document.adoptedStyleSheets = [style];
  const boxes = all => [...all].map(one => [one.textContent, one.getBoundingClientRect()]);
  return [...document.querySelectorAll("figure")].flatMap(figure => {
    const frame = figure.getBoundingClientRect();
    const texts = boxes(figure.querySelectorAll(".plot .label, .plot .values"));
    const cut = texts.filter(([, box]) => box.left < frame.left || box.right > frame.right);
    const axes = [...figure.querySelectorAll(".axis")];
    const seen = one => [...one.querySelectorAll("small")].filter(tick => tick.checkVisibility());
    const ticks = axes.map(one => boxes(seen(one)));
    const overlap = ticks.flatMap(axis =>
      axis.filter(([, box], n) => n && box.left < axis[n - 1][1].right));
    return [...cut.map(([text]) => `${figure.id} cuts ${text}`),
      ...overlap.map(([text]) => `${figure.id} overlaps ${text}`)];
  });
}"""
INSTALLED = """font => {
  const canvas = document.createElement("canvas").getContext("2d");
  const width = (fallback) => {
    canvas.font = `40px "${font}", ${fallback}`;
    return canvas.measureText("How wide is this line? 0.123").width;
  };
  return width("monospace") === width("serif"); // what is there needs no fallback
}"""


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return fill(tmp_path_factory.mktemp("gallery"))


@pytest.fixture(scope="module")
def site(store):
    with served(store) as served_site:
        yield served_site


@pytest.fixture(scope="module")
def written(store):
    """Writes the report of a run in a language, once."""

    def write(name, language):
        path = store.parent / f"{name} {language}.html"
        if not path.exists():
            archive = open_archive(f"sqlite:{store}", store.parent)
            run = find_run(archive, name)
            write_report(path, archive, run, ReportOptions(language=language))
            archive.close()
        return path

    return write


def _looked_at(names, long):
    """Names with languages: each with every one, or with one in turn."""
    if long:
        return list(itertools.product(names, LANGUAGES))
    return list(zip(names, itertools.cycle(LANGUAGES), strict=False))


def _look(page, name, screenshot):
    """What is wrong with a page in any light and at any width."""
    faults = []
    page.evaluate(OPEN)
    for width, scheme in itertools.product(WIDTHS, SCHEMES):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        faults += [f"{name} {width} {scheme}: {fault}" for fault in page.evaluate(FAULTS)]
        screenshot(page, f"{name.replace(' ', '-')}-{width}-{scheme}")
    return faults


def test_every_report_can_be_read_anywhere(written, open_page, screenshot, long):
    faults = []
    for name, language in _looked_at(RUNS, long):
        page = open_page(written(name, language))
        faults += _look(page, f"report {name} {language}", screenshot)
    assert faults == []


def test_every_page_of_the_view_can_be_read_anywhere(site, open_page, screenshot, long):
    ids = run_ids(site)
    faults = []
    page = open_page(site.url)
    for name, language in _looked_at(tuple(PAGES), long):
        path = PAGES[name].format(**ids)
        page.goto(f"{site.url}{path}{'&' if '?' in path else '?'}lang={language}")
        page.locator("main").wait_for()
        assert page.locator('#figures[data-ready="no"]').count() == 0
        faults += _look(page, f"view {name} {language}", screenshot)
    page.faults[:] = [fault for fault in page.faults if "404" not in fault]
    assert faults == []


def test_axe_finds_no_serious_fault(written, site, open_page, long):
    ids = run_ids(site)
    reports = [written(*both).as_uri() for both in _looked_at(RUNS, long)]
    paths = [path.format(**ids) for path in PAGES.values()]
    pages = [
        f"{site.url}{path}{'&' if '?' in path else '?'}lang={language}"
        for path, language in _looked_at(paths, long)
    ]
    looks = list(itertools.product((390, 1280), SCHEMES))
    faults = []
    for addresses in (reports, pages):
        page = open_page(addresses[0])
        for address in addresses:
            page.goto(address)
            page.evaluate(OPEN)
            for width, scheme in looks if long else looks[1:3]:
                page.set_viewport_size({"width": width, "height": 900})
                page.emulate_media(color_scheme=scheme)
                faults += [f"{address} {width} {scheme}: {one}" for one in axe_faults(page)]
        page.faults[:] = [fault for fault in page.faults if "404" not in fault]
    assert faults == []


def test_tab_reaches_everything_and_shows_where_it_is(written, site, open_page):
    ids = run_ids(site)
    addresses = [written(name, "en") for name in ("two candidates", "checklist", "conversations")]
    names = ("runs", "two", "trend", "matrix", "changes of pairs", "units", "two conversations")
    for name in (*names, "protocol"):
        addresses.append(site.url + PAGES[name].format(**ids))
    faults = []
    for address in addresses:
        page = open_page(address, viewport={"width": 1280, "height": 900})
        page.evaluate(OPEN)
        page.evaluate(FOCUS)
        for _ in range(500):
            page.keyboard.press("Tab")
            if page.evaluate("window.isRound"):
                break
        faults += [f"{address}: {fault}" for fault in page.evaluate(MISSED)]
    assert faults == []


def test_no_label_of_a_picture_is_cut_or_overlaps(written, open_page, long):
    """Every text is measured against its picture and the others in it, in the usual fonts."""
    faults = []
    fonts = []
    for name, language in _looked_at(RUNS, long):
        page = open_page(written(name, language))
        fonts = fonts or [font for font in FONTS if page.evaluate(INSTALLED, font)]
        for width, font in itertools.product((360, 1600), fonts):
            page.set_viewport_size({"width": width, "height": 900})
            cut = page.evaluate(CUT, font)
            faults += [f"{name} {language} {width} {font}: {fault}" for fault in cut]
    assert faults == []
    if missing := sorted(set(FONTS) - set(fonts)):
        pytest.skip(f"not installed: {', '.join(missing)} (scripts/browser installs them)")


def test_what_is_wrong_with_a_page_is_found(open_page, tmp_path):
    """The measuring itself: each of these faults is named."""
    file = tmp_path / "faulty.html"
    file.write_text(
        "<body style='background:#fff;margin:0'><p style='color:#999'>pale</p>"
        "<p style='width:2em;overflow:hidden;white-space:nowrap'>this line is cut</p>"
        "<p style='width:200vw'>far too wide</p>",
        encoding="utf-8",
    )
    faults = " ".join(open_page(file).evaluate(FAULTS))
    assert "contrast 2.85: pale" in faults and "cut: this line" in faults
    assert "scrolls sideways" in faults and "beyond: far too wide" in faults


def test_on_a_phone_the_ranked_table_is_read_without_scrolling(site, open_page):
    for name in ("many variants", "league of seven"):
        page = open_page(
            f"{site.url}/runs/{run_named(site, name)}", viewport={"width": 360, "height": 780}
        )
        wide = page.locator(".scroll:has(.ranks)").evaluate(
            "one => one.scrollWidth > one.clientWidth"
        )
        assert not wide, name
        tops = [page.locator(one).first.bounding_box()["y"] for one in (".headline", ".tiles")]
        assert tops[0] < tops[1], "the answer comes before the tiles"


def test_on_a_phone_a_batch_is_read_without_scrolling(site, open_page):
    page = open_page(
        f"{site.url}/runs/{run_named(site, 'two variants')}", viewport={"width": 360, "height": 780}
    )
    table = page.locator(".standing .scroll:has(code)")
    assert "in_progress" in table.inner_text()
    assert not table.evaluate("one => one.scrollWidth > one.clientWidth")
