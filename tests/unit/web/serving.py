"""A real server on loopback over a real store, and stores worth looking at."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape

import httpx
import pytest

from evenhand.runs.stores import open_store
from evenhand.web import service
from evenhand.web.app import listening, make_app, make_server
from evenhand.web.security import Endpoint
from evenhand.web.service import Timeouts
from tests.suites import (
    JUDGE,
    judged,
    pair_row,
    write_answers,
    write_pairs,
    write_suite,
)
from tests.waiting import PATIENCE

TOKEN = "let-me-in"
VARIED = (
    JUDGE
    + '''
import random

def by_chance(messages, salt):
    """Scores, tags and, now and then, nothing usable."""
    text = ANSWER.search("\\n".join(m["content"] for m in messages))[2]
    chance = random.Random(text + salt)
    if "broken" in text:
        return "I would rather not say."
    given = {
        name: {"evidence": [text[:12]], "rationale": f"It is {name}.",
               "score": chance.choice([1, 3, 5])}
        for name in ("correct", "clear")
    }
    tags = ["B"] if "tagged" in text else []
    return json.dumps({"scores": given, "failure_tags": tags, "notes": ""})

async def one(messages, schema, params):
    return by_chance(messages, "one")

async def other(messages, schema, params):
    return by_chance(messages, "other")
'''
)


@dataclass(frozen=True)
class Site:
    """A server under way."""

    url: str
    port: int
    client: httpx.Client
    store: str

    def get(self, path, **headers):
        return self.client.get(path, headers=headers)


PATIENT = Timeouts(counts=PATIENCE, figures=PATIENCE, pause=0)
"""However busy the machine is, a page has its counts and figures, and they are of the store as it
is."""


@contextmanager
def served(
    store,
    *,
    closed=False,
    host="127.0.0.1",
    timeouts=PATIENT,
):
    """The site over a store, a file or a URL, on a free port."""
    address = store if isinstance(store, str) else f"sqlite:{store}"
    bound = listening("127.0.0.1", 0)
    port = bound.getsockname()[1]
    endpoint = Endpoint(host=host, port=port, token=TOKEN, closed=closed)
    app = make_app(lambda: open_store(address, must_exist=True), endpoint, "the store", timeouts)
    server = make_server(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
    thread.start()
    try:
        # No connection is used twice: the server closes idle ones, maybe while a request is sent.
        once = httpx.Limits(max_keepalive_connections=0)
        url = f"http://127.0.0.1:{port}"
        with httpx.Client(base_url=url, timeout=PATIENCE, limits=once) as client:
            yield Site(url, port, client, address)
    finally:
        server.should_exit = True
        thread.join()
        bound.close()


def sample(i):
    """A sample; every seventh fails, every fifth is tagged."""
    words = "broken" if i % 7 == 3 else "tagged" if i % 5 == 0 else "plain"
    text = f"Answer {i}, {words}: ответ, 回答, 答え."
    meta = {"model": f"m{i % 2}", "prompt_variant": f"v{i % 2}", "question_id": f"q{i:03}"}
    return {"meta": meta, "question": f"What is {i}?", "model_output": text}


SAMPLES = 130


def fill(folder):
    """A store with runs of all kinds: two of the same samples, pairs by three judges, answers, and
    one that waits for half of its replies."""
    store = folder / "all.db"
    keep = {"store": {"url": f"sqlite:{store}"}}
    passed = keep | {"pass": {"min_overall": 0.1}}
    rows = [sample(i) for i in range(SAMPLES)]
    one, other = {"model": "python/judge:one"}, {"model": "python/judge:other"}
    suites = [
        write_suite(folder / "a", rows, one, judge=VARIED, name="first", **keep),
        write_suite(folder / "b", rows, other, judge=VARIED, name="second", **keep),
        write_pairs(folder / "c", _pairs(), *_PANEL, name="pairs", **keep),
        write_answers(folder / "d", 30, {"model": "python/judge:unsure"}, name="graded", **passed),
        write_suite(folder / "e", 10, {"model": "replay/replies.jsonl"}, name="waiting", **keep),
    ]
    _write_replies(folder / "e" / "replies.jsonl")
    judge_all(*suites)
    return store


TEAM = (
    ("anna", {}),
    ("boris", {"note": "Shorter prompt", "tags": ("nightly",)}),
    ("李雷", {"note": "Last try", "tags": ("nightly", "release")}),
)
"""Who began each run of a suite, with what they said of it."""


def fill_team(folder, samples=20):
    """A store with three runs of one suite, whose answers changed, and one of another."""
    store = folder / "team.db"
    keep = {"store": {"url": f"sqlite:{store}"}}
    one = {"model": "python/judge:one", "price": {"input": 1.0, "output": 1.0}}
    for number, (author, labels) in enumerate(TEAM):
        rows = [sample(i) for i in range(samples)]
        for i, row in enumerate(rows):
            row["meta"] |= {"model": "m", "question_id": f"q{i // 2:03}"}
            row["model_output"] += f" Take {number}." if i % 2 else ""
        suite = write_suite(folder / "weekly", rows, one, judge=VARIED, name="weekly", **keep)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("EVENHAND_AUTHOR", author)
            judge_all(suite, **labels)
    judge_all(write_suite(folder / "other", 3, name="other", **keep))
    return store


@contextmanager
def held_up(monkeypatch, *makers):
    """A time in which no figures of these makers get ready."""
    go = threading.Event()

    def waiting(make):
        def wait(*arguments):
            go.wait(PATIENCE)
            return make(*arguments)

        return wait

    with monkeypatch.context() as patch:
        for name in makers or ("make_report",):
            patch.setattr(service, name, waiting(getattr(service, name)))
        try:
            yield go
        finally:
            go.set()


def judge_all(*suites, **options):
    """Judge suites in a thread of its own: a browser's thread has an event loop already."""
    with ThreadPoolExecutor(1) as pool:
        for suite in suites:
            pool.submit(asyncio.run, judged(suite, **options)).result()


_PANEL = [{"model": f"python/judge:{name}"} for name in ("content", "coin", "late")]


def _pairs():
    return [pair_row(f"p{i}", 1 + i % 9, 9 - i % 9, topic=f"Topic {i}?") for i in range(20)]


def _write_replies(file):
    given = {"evidence": [], "rationale": "no evidence found", "score": 3}
    reply = {"scores": {"correct": given, "clear": given}, "failure_tags": [], "notes": ""}
    lines = [{"unit": f"u{i}", "reply": json.dumps(reply)} for i in range(5)]
    file.write_text("".join(json.dumps(one) + "\n" for one in lines))


def run_ids(site):
    """The runs of the first page: name and id, the one started last first."""
    rows = re.findall(r'<h2><a href="/runs/(\w+)">([^<]*)</a>', site.get("/").text)
    return {unescape(name): run for run, name in rows}


def run_named(site, name):
    """The id of a run."""
    return run_ids(site)[name]


def counts(site, run):
    """The counts on the page of a run."""
    page = site.get(f"/runs/{run}")
    assert page.status_code == 200, page.text
    found = re.findall(r'data-count="(\w+)">([\d,]+)<', page.text)
    return {name: int(number.replace(",", "")) for name, number in found}


def listed(site, run, query="", way="next"):
    """The units that the list of a run has, a row per judgment, from page to page."""
    units = []
    path = f"/runs/{run}/units?{query}"
    while path:
        page = site.get(path)
        assert page.status_code == 200, page.text
        rows = re.findall(r'<a class="id"[^>]*>([^<]*)</a>', page.text)
        units = units + rows if way == "next" else rows + units
        link = re.search(rf'href="([^"]*)" rel="{way}"', page.text)
        path = unescape(link[1]) if link else None
    return [unescape(unit) for unit in units]
