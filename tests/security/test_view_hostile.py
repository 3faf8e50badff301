"""Hostile texts in every field stay text on every page and in every answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest

from evenhand.runs.stores import open_archive
from evenhand.store.ports import Scope
from tests.security.hostile import HOSTILE
from tests.security.hostile_runs import hostile_suites
from tests.unit.web.serving import Site, judge_all, run_ids, served

ALLOWED = re.compile(r"/(?!/)|\?|#|data:,$")
FOREIGN = (
    "iframe",
    "object",
    "embed",
    "base",
    "image",
    "math",
    "video",
    "audio",
    "portal",
    "style",
)
HIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069\u200b\u200e\u200f]")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder: Path = tmp_path_factory.mktemp("hostile")
    store = folder / "all.db"
    judge_all(*hostile_suites(folder, store={"url": f"sqlite:{store}"}))
    with served(store) as found:
        yield found


SCRIPTS = ({"src": "/static/view.js"}, {"src": "/static/sort.js", "defer": None})
"""Those of the view's own pages."""


class Watch(HTMLParser):
    """Notes whatever in a page could act."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in FOREIGN or (tag == "script" and given not in SCRIPTS):
            self.faults.append(tag)
        if tag == "meta" and "http-equiv" in given:
            self.faults.append(str(given))
        for name, value in attrs:
            if name.startswith("on") or name in ("style", "srcset", "srcdoc", "formaction"):
                self.faults.append(name)
            if name in ("href", "src", "action") and not ALLOWED.match(value or ""):
                self.faults.append(f"{name}={value}")


def check(page: str) -> None:
    watch = Watch()
    watch.feed(page)
    assert not watch.faults
    # What a form was asked with stands in it again as it was.
    assert not HIDDEN.search(re.sub(r'<input [^>]*value="[^"]*"', "", page))


def test_pages_hold_no_element_that_data_made(site: Site) -> None:
    for run in run_ids(site).values():
        base = f"/runs/{run}"
        pages = ("", "/protocol", "/changes", "/changes?only=failures&sort=best")
        for path in (*(base + page for page in pages), "/"):
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


def test_every_unit_is_found_by_its_id_and_shown_as_text(site: Site) -> None:
    for run in run_ids(site).values():
        with closing(open_archive(site.store)) as store:
            units = [unit.id for unit in store.units(Scope(run))]
        assert len(units) == len(HOSTILE)
        for unit in units:
            answer = site.get(f"/runs/{run}/unit?id={quote(unit, safe='')}")
            assert answer.status_code == 200, unit
            check(answer.text)


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_asked_for_comes_back_as_text(site: Site, text: str) -> None:
    sent = quote(text[:190], safe="")
    for path in (
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
    ):
        answer = site.get(path)
        assert answer.status_code in (200, 400, 404, 422), path
        check(answer.text)
