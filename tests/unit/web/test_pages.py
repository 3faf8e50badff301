"""The pages: what they show, in which language, and what they say when something is wrong."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import threading
from dataclasses import replace
from html import unescape
from urllib.parse import unquote

import pytest

from evenhand.runs.stores import open_store
from evenhand.store.batches import BatchItem, NewBatch
from evenhand.store.rows import CALL_TAG
from evenhand.words import LANGUAGES
from tests.browser.runs import pairs_suite, rubric_suite
from tests.cases import cases
from tests.sentences import is_told
from tests.suites import (
    JUDGE,
    evenhand_here,
    judged,
    ok_here,
    prepared,
    samples,
    write_rows,
    write_suite,
)
from tests.unit.cli.weekly import Scored, judged_folder
from tests.unit.web.serving import (
    PATIENT,
    counts,
    held_up,
    judge_all,
    listed,
    run_ids,
    run_named,
    served,
)
from tests.waiting import awaited

SCORING = "".join(
    f"""
async def s{i}(messages, schema, params):
    return reply(messages).replace('"score": 3', f'"score": {{SCORES[{i}]}}')
"""
    for i in range(3)
)
HREF = re.compile(r'(?:href|src)="([^"]*)"')


def text(page):
    """What a reader sees of a page."""
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


def _figure(page, name):
    """The addresses that a chart leads to, and the numbers of its table that are not 0."""
    chart = page.partition(f'id="chart-{name}"')[2].partition("</figure>")[0]
    drawn, _, table = chart.partition("<details>")
    rows = re.findall(r"<tr><td[^>]*>[^<]*</td><td[^>]*>[^<]*</td><td[^>]*>(\d+)</td>", table)
    return [unescape(href) for href in HREF.findall(drawn)], [int(n) for n in rows if n != "0"]


def test_a_figure_leads_to_the_units_that_it_counts(tmp_path):
    store = tmp_path / "all.db"
    keep = {"store": {"url": f"sqlite:{store}"}}
    suites = rubric_suite(tmp_path / "a", name="two", **keep), pairs_suite(tmp_path / "b", **keep)
    judge_all(*suites)
    with served(store) as site:
        for run, name in ((run_named(site, "two"), "tags"), (run_named(site, "test"), "matrix")):
            page = site.get(f"/runs/{run}").text
            hrefs, numbers = _figure(page, name)
            found = [len(set(listed(site, run, href.partition("?")[2]))) for href in hrefs]
            assert found == numbers and found
        page = site.get(f"/runs/{run_named(site, 'two')}").text
        changes = re.findall(r'href="([^"]*only=\w+)">(\d+) (?:better|the same)<', page)
        assert len(changes) == 2
        for href, number in changes:
            assert site.get(unescape(href)).text.count('<details class="pair"') == int(number)


def test_what_to_read_next_leads_to_all_that_got_worse(tmp_path):
    worth = {"v1": lambda n: 3, "v2": lambda n: 1 if n < 3 else 5}
    rows = [Scored(v, "m", "s", n, "r", worth[v](n), 3) for n in range(30) for v in worth]
    judged_folder(tmp_path, rows)
    with served(tmp_path / "evenhand.db") as site:
        page = site.get("/runs/latest").text
        said = page[page.index('<p class="next"') :].partition("</p>")[0]
        worse = int(re.search(r"the (\d+) questions where it did worse", said)[1])
        changes = site.get(unescape(re.search(r'href="([^"]*)"', said)[1])).text
        assert changes.count('<details class="pair"') == worse == 3


def test_every_page_that_pages_link_to_is_there(site):
    seen = set()
    waiting = [f"/runs/{run_named(site, 'first')}", "/"]
    while waiting and len(seen) < 150:
        path = waiting.pop(0)
        shape = re.sub(r"=[^&]*", "=", re.sub(r"/[0-9a-f]{12}", "/RUN", path))
        if shape in seen or path.endswith("report") or "summary" in path:
            continue
        seen.add(shape)
        answer = site.get(path)
        assert answer.status_code == 200, path
        if "html" not in answer.headers["content-type"]:
            continue
        for href in HREF.findall(answer.text):
            target = href.replace("&amp;", "&").partition("#")[0]
            if target.startswith("?"):
                target = path.partition("?")[0] + target
            if target.startswith("/"):
                waiting.append(target)
            else:
                assert target in ("", "data:,"), href
    for part in ("/units", "/unit?id=", "/changes", "/protocol", "/units?reason="):
        assert f"/runs/RUN{part}" in seen


@cases
def test_a_page_says(site, run, path, has, lacks):
    """Texts as patterns, in a page or in what a reader sees of it."""
    ident = run_named(site, run)
    answer = site.get(f"/runs/{ident}{path}")
    site.client.cookies.clear()
    assert answer.status_code == 200
    both = f"{answer.text}\n{text(answer.text)}"
    for pattern in has:
        assert re.search(pattern.replace("{run}", ident), both), pattern
    assert not any(part in both for part in lacks)


def test_the_last_page_leads_no_further(site):
    run = run_named(site, "first")
    page = site.get(f"/runs/{run}/units").text
    assert rel(page, "first_page") is None
    end = rel(page, "last_page")
    assert end is not None
    last = site.get(end).text
    assert rel(last, "next") is rel(last, "last_page") is None
    back = rel(last, "prev")
    assert back is not None
    assert rel(site.get(back).text, "next") is not None


async def test_means_of_a_comparison_have_two_digits(tmp_path):
    keep = {"store": {"url": f"sqlite:{tmp_path / 'all.db'}"}}
    for name, scores in {"a": (1, 1, 3), "b": (3, 3, 5)}.items():
        folder = write_suite(
            tmp_path / name,
            2,
            *({"model": f"python/judge:s{i}"} for i in range(3)),
            judge=f"{JUDGE}\nSCORES = {scores}\n{SCORING}",
            name=name,
            **keep,
        )
        await judged(folder)
    with served(tmp_path / "all.db") as site:
        ids = run_ids(site)
        page = text(site.get(f"/runs/{ids['b']}/changes?against={ids['a']}").text)
    assert " 0.17 " in page and " 0.67 " in page and "+0.50" in page
    assert "0.1667" not in page


def ready(site, run):
    """What a run page says with its figures; None while they are being made."""
    page = site.get(f"/runs/{run}").text
    return text(page) if 'data-ready="yes"' in page else None


def test_a_run_says_the_level_and_how_ties_count(site):
    pairs, first = (ready(site, run_named(site, name)) or "" for name in ("pairs", "first"))
    assert is_told(pairs, "answer.level", level="95%")
    assert is_told(first, "answer.level", level="95%")
    assert is_told(pairs, "half.uncertain") and not is_told(first, "half.uncertain")


def test_a_run_without_intervals_does_not_speak_of_their_level(tmp_path):
    (tmp_path / "scores.csv").write_text("unit,score\nq1,3\n")
    evenhand_here("import scores.csv --kind scores --judge j", cwd=tmp_path)
    with served(tmp_path / "evenhand.db") as site:
        page = awaited(lambda: ready(site, "scores"), "the figures")
    assert is_told(page, "answer.means") and not is_told(page, "answer.level")


async def test_a_run_that_stops_once_it_is_decided_says_so(tmp_path):
    rows = [
        one | {"meta": {"model": "m", "prompt_variant": f"v{i % 2}", "question_id": f"q{i // 2}"}}
        for i, one in enumerate(samples(6))
    ]
    by = {"by": ["prompt_variant"], "baseline": "v0"}
    folder = write_suite(tmp_path, rows, compare=by)
    ok_here("run --until-decided", cwd=folder)
    with served(tmp_path / "evenhand.db") as site:
        assert is_told(ready(site, "latest") or "", "facts.sequential")


def rel(page, name):
    found = re.search(rf'href="([^"]*)" rel="{name}"', page)
    return found[1].replace("&amp;", "&") if found else None


def test_filters_stay_from_page_to_page_and_into_the_unit(site):
    run = run_named(site, "first")
    page = site.get(f"/runs/{run}/units?status=verdict&field=model&value=m1").text
    following = rel(page, "next") or ""
    assert "status=verdict" in following and "value=m1" in following
    unit = re.search(r'href="(/runs/\w+/unit\?id=[^"]*)"', page)
    opened = site.get(unit[1].replace("&amp;", "&")).text
    assert "id=m1/" in unquote(rel(opened, "next") or "")
    assert rel(opened, "back") == f"/runs/{run}/units?status=verdict&field=model&value=m1"


def test_a_run_is_found_by_its_id_a_prefix_and_latest(site):
    first = run_named(site, "first")
    for name in (first, first[:6]):
        assert f'<code class="soft">{first}</code>' in site.get(f"/runs/{name}").text
    assert "waiting" in site.get("/runs/latest").text


def test_what_is_planned_adds_up(site):
    for run in run_ids(site).values():
        got = counts(site, run)
        assert got["planned"] == got["verdicts"] + got["failed"] + got["pending"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_pages_speak_four_languages(site, language):
    own = {"en": "Overview", "ru": "Обзор", "zh": "概览", "ja": "概要"}[language]
    for path in ("/runs/latest", "/runs/latest/units", "/runs/latest/protocol"):
        asked = site.get(f"{path}?lang={language}")
        wanted = site.get(path, **{"accept-language": f"xx, {language}-XX;q=0.9, en;q=0.1"})
        for page in (asked, wanted):
            assert f'<html lang="{language}">' in page.text
            assert own in page.text
        assert f"evenhand-language={language}" in asked.headers["set-cookie"]
        assert "set-cookie" not in wanted.headers
        site.client.cookies.clear()


def test_a_language_that_nobody_knows_is_english(site):
    headers = {"accept-language": "tlh;q=x, ,;;q=1"}
    assert '<html lang="en">' in site.get("/?lang=tlh", **headers).text


@pytest.mark.parametrize(
    "path",
    [
        "/runs/nobody",
        "/runs/latest/unit?id=nobody",
        "/nowhere",
        "/api/runs",
        "/compare",
        "/static/nobody.js",
        "/runs/nobody/units",
        "/favicon.ico",
    ],
)
def test_what_is_not_there_is_said_in_words(site, path):
    answer = site.get(path)
    assert answer.status_code == 404
    assert "Not found" in text(answer.text)


def test_the_report_of_a_run_comes_as_a_file(site):
    run = run_named(site, "first")
    answer = site.get(f"/runs/{run}/report?summary=1")
    assert answer.status_code == 200
    assert answer.headers["content-disposition"] == f'attachment; filename="report-{run}.html"'
    assert answer.text.lstrip().startswith("<!doctype html>")


@pytest.fixture
async def store(tmp_path):
    """A store with a finished run of two units."""
    await judged(write_suite(tmp_path, 2))
    return tmp_path / "evenhand.db"


async def test_a_store_that_is_gone_or_damaged_is_said_and_one_that_comes_back_is_shown(
    store,
):
    elsewhere = store.with_name("elsewhere.db")
    with served(store) as site:
        assert site.get("/runs/latest").status_code == 200
        store.rename(elsewhere)
        answer = site.get("/runs/latest")
        assert answer.status_code == 503 and is_told(answer.text, "runs.no_store")
        elsewhere.rename(store)
        assert site.get("/runs/latest").status_code == 200
        store.write_bytes(b"no database" * 1000)
        assert site.get("/runs/latest/units").status_code == 503


async def test_a_store_that_somebody_writes_to_is_read_all_the_same(store):
    writer = sqlite3.connect(store, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    with served(store) as site:
        assert counts(site, "latest")["verdicts"] == 2
        assert site.get("/runs/latest/units").status_code == 200
    writer.execute("ROLLBACK")
    writer.close()


async def test_judgments_made_elsewhere_are_shown(tmp_path):
    (tmp_path / "votes.csv").write_text(
        "unit,judge,first,second,winner\nq1,j,a,b,first\nq2,j,a,b,tie\nq3,j,a,b,\n"
    )
    ok_here("import votes.csv --kind votes", cwd=tmp_path)
    with served(tmp_path / "evenhand.db") as site:
        got = counts(site, "votes")
        assert (got["verdicts"], got["pending"]) == (2, 0)
        for path in ("", "/units", "/protocol", "/units?status=pending"):
            assert site.get(f"/runs/votes{path}").status_code == 200
        for unit in listed(site, "votes"):
            assert site.get(f"/runs/votes/unit?id={unit}").status_code == 200


async def test_what_is_judged_meanwhile_is_seen(store):
    with served(store) as site:
        assert counts(site, "latest")["verdicts"] == 2
        write_rows(store.parent, samples(5))
        await judged(prepared(store.parent))
        assert counts(site, "latest")["verdicts"] == 5
        assert len(listed(site, "latest")) == 5


async def test_figures_of_fewer_verdicts_say_so_and_are_made_again(tmp_path, monkeypatch):
    folder = write_suite(tmp_path, 5)
    await judged(folder, limit=2)
    hurried = replace(PATIENT, figures=0)  # no page waits for them
    with served(tmp_path / "evenhand.db", timeouts=hurried) as site:
        assert "Figures as of" not in awaited(lambda: ready(site, "latest"), "the figures")
        await judged(prepared(folder))
        with held_up(monkeypatch):
            page = site.get("/runs/latest").text
            assert "Figures as of 2 verdicts." in page
            assert 'data-ready="no"' in page
        assert "Figures as of" not in awaited(lambda: ready(site, "latest"), "the new figures")


async def test_many_readers_at_once_each_have_a_store_of_their_own(site):
    run, wrong = run_named(site, "pairs"), []

    def read(number):
        for _ in range(3):
            got = site.get(f"/runs/{run}/unit?id=p{number}")
            if got.status_code != 200 or f"Topic {number}?" not in got.text:
                wrong.append((number, got.status_code))

    readers = [threading.Thread(target=read, args=(number,)) for number in range(12)]
    for one in readers:
        one.start()
    for one in readers:
        one.join()
    assert not wrong


async def test_a_run_that_is_judged_is_called_so(store):
    with served(store) as site:
        (run,) = run_ids(site).values()
        opened = open_store(f"sqlite:{store}")
        async with opened.ledger() as ledger, ledger.claim(run):
            assert "judging now" in site.get(f"/runs/{run}").text
        opened.close()
        assert "judging now" not in site.get(f"/runs/{run}").text


WORDS = {
    "en": "Batches under way",
    "ru": "Пакеты в работе",
    "zh": "处理中的批次",
    "ja": "処理中のバッチ",
}


@pytest.fixture
def run(tmp_path):
    """A run with a batch of two questions under way."""
    write_suite(tmp_path, 2)
    summary = asyncio.run(judged(tmp_path))

    async def note():
        store = open_store("sqlite:evenhand.db", tmp_path)
        items = [BatchItem(f"{CALL_TAG}{n:040x}", 5, 0, "{}") for n in range(2)]
        batch = NewBatch(name="b", run=summary.run, judge="openai/<b>x", place="p", items=items)
        async with store.batches() as book:
            await book.prepare(batch)
            await book.attach("b", "batch_7", "in_progress")
        store.close()

    asyncio.run(note())
    return summary.run


def test_a_run_shows_its_batches(run, tmp_path):
    with served(tmp_path / "evenhand.db") as site:
        pages = {
            language: site.get(f"/runs/{run}", **{"Accept-Language": language}).text
            for language in LANGUAGES
        }
    for language, page in pages.items():
        assert WORDS[language] in page
        assert "batch_7" in page and "openai/&lt;b&gt;x" in page
        assert "in_progress" in page and 'data-label="Open">2</td>' in pages["en"]
