"""Every field of a report filled with hostile strings: nothing runs, nothing leaves, all is shown.

Pages are opened with their policy switched off: escaping alone must hold. The policy is the second
wall, and is tested by itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from evenhand.report.html.render import render
from evenhand.results.report import ReportOptions, make_report, write_report
from evenhand.runs.recorded import Recorded, find_run
from evenhand.runs.stores import open_store
from evenhand.store.archive import Archive
from evenhand.text import visible
from tests.browser.conftest import chromium, open_page
from tests.browser.runs import judge, opened
from tests.security.hostile import HOST, HOSTILE
from tests.suites import TASK, write_answers, write_pairs, write_suite
from tests.unit.runs.importing import import_files
from tests.waiting import PATIENCE

__all__ = ["chromium", "open_page"]
Open = Callable[..., Any]
STRINGS = [text for text in HOSTILE if text.strip()]
NAMES = [*STRINGS[:8], *(text for text in STRINGS if "\x1b" in text or "\x00" in text)][:12]
"""For what is drawn in pictures: markup, and characters that cannot be drawn."""
_TAGS = """
html head meta title link style body a header div h1 h2 h3 h4 span nav ul li label select option
main section p dl dt dd svg g path rect code details summary figure
figcaption table thead tbody tr th td form input button footer script noscript b mark small pre
"""
TAGS = set(_TAGS.split())
ECHO = r'''
import json, re
BLOCK = re.compile(r"\[\[(\w+) ([0-9a-f]+)\]\]\n(.*?)\n\[\[/\1 \2\]\]", re.DOTALL)

def blocks(messages):
    return {name: text for name, _, text in BLOCK.findall(messages[-1]["content"])}

async def rubric(messages, schema, params):
    """Says back what it reads; every seventh time that is all it says."""
    text = blocks(messages).get("model_output") if len(messages) < 3 else None
    if text is None or len(text) % 7 == 0:
        return messages[1]["content"][:2000]
    given = {"evidence": [text[:200]], "rationale": text, "score": 1 + 2 * (len(text) % 3)}
    names = list(schema["properties"]["scores"]["properties"])
    scores = dict.fromkeys(names, given)
    return json.dumps({"scores": scores, "failure_tags": ["A"], "notes": text[:280]})

async def pairs(messages, schema, params):
    shown = blocks(messages)
    said = {"first_meets": True, "second_meets": False, "comment": shown["topic"]}
    first = len(shown["candidate_1"]) > len(shown["candidate_2"])
    criteria = {c: said | {"mark": "A+" if first else "B+"} for c in ("C1", "C2", "C3", "C4", "C5")}
    winner = "A" if first else "B"
    return json.dumps({"criteria": criteria, "explanation": shown["topic"], "winner": winner})

async def grade(messages, schema, params):
    text = blocks(messages)["answer"]
    names = list(schema["properties"]["score"]["properties"])
    failed = len(text) % 3 == 0
    return json.dumps({"inferred_task_type": None, "critical_fail": failed,
        "critical_fail_reason": text if failed else None,
        "reasoning": dict.fromkeys(names, text[:190]),
        "score": dict.fromkeys(names, 0 if failed else 5), "confidence": "low"})
'''


def _of(place: int) -> str:
    return STRINGS[place % len(STRINGS)]


def rubric_suite(folder: Path) -> Path:
    """Ids, questions, answers, names of fields and their values, dimensions and bands."""
    samples = [
        {
            "id": f"{i} {one}",
            "question": one,
            "model_output": f"{one} {i % 5 * '.'}",
            "reference": one,
            "meta": {
                "prompt_variant": _of(i % 2),
                "question_id": f"q{i // 2}",
                f"field {_of(i + 5)}": _of(i + 9),
            },
        }
        for i, one in enumerate(STRINGS)
    ]
    suite = write_suite(folder, samples, {"model": "python/judge:rubric"}, judge=ECHO)
    rubric = {
        "dimensions": [
            {"id": one, "name": one, "scale": one, "definition": one}
            | {"bands": [{"score": s, "criteria": f"{one} {s}"} for s in (1, 3, 5)]}
            for one in ('<img src=x onerror="window.struck&&struck(1)">', "</script><script>x")
        ]
    }
    (folder / "rubric.json").write_text(json.dumps(rubric))
    return suite


def pairs_suite(folder: Path) -> Path:
    rows = [
        {"pair_id": f"{i} {one}", "topic": one, "meta": {"area": one}}
        | {
            "candidates": [
                {"id": NAMES[i % len(NAMES)], "text": f"{one} longer"},
                {"id": "plain", "text": one},
            ]
        }
        for i, one in enumerate(STRINGS)
    ]
    return write_pairs(folder, rows, {"model": "python/judge:pairs"}, judge=ECHO)


def _task(text: str) -> str:
    """A rubric in which a text is one point among others."""
    flat = " ".join(text.replace("`", "'").split())
    return TASK.replace("if it is right", f"if it is right {flat}")


def answers_suite(folder: Path) -> Path:
    rows = [
        {"task_name": f"{i} {one}", "prompt": one, "answer": one, "rubric": _task(one)}
        | {"meta": {"model": _of(i % 3)}}
        for i, one in enumerate(STRINGS)
    ]
    return write_answers(folder, rows, {"model": "python/judge:grade"}, judge=ECHO)


SUITES = {"rubric": rubric_suite, "pairwise": pairs_suite, "weighted": answers_suite}


def imported(folder: Path) -> Path:
    """Votes made elsewhere: names of judges, candidates and criteria are anybody's."""
    folder.mkdir()
    rows = [
        {"unit": f"{i // 2} {one}", "judge": _of(i % 3), "first": _of(i % 4), "second": "plain"}
        | {"winner": ("first", "second", "tie", one)[i % 4], "area": one}
        for i, one in enumerate(STRINGS)
    ]
    path = folder / "votes.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("hostile")
    reports: dict[str, Path] = {}
    for kind, write in SUITES.items():
        with opened(judge(write(root / kind))) as (store, run):
            reports[kind] = _written(root / f"{kind}.html", store, run)
    store = open_store("sqlite:imported.db", root)
    try:
        import_files(store, [imported(root / "votes")], "votes")
        run = find_run(store.archive, store.archive.runs()[0].id)
        reports["imported"] = _written(root / "imported.html", store.archive, run)
    finally:
        store.close()
    return reports


def _written(path: Path, store: Archive, run: Recorded) -> Path:
    run.row = run.row._replace(name='"><script>window.struck&&struck(1)</script>')
    write_report(path, store, run)
    return path


class _Seen(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]


@pytest.mark.parametrize("kind", [*SUITES, "imported"])
def test_a_page_holds_no_element_and_no_attribute_of_theirs(
    files: dict[str, Path], kind: str
) -> None:
    text = files[kind].read_text(encoding="utf-8")
    seen = _Seen()
    seen.feed(text)
    assert seen.tags <= TAGS
    assert not [one for one in seen.attributes if one[0].startswith("on") or one[0] == "style"]
    links = {value for name, value in seen.attributes if name in ("href", "src", "xlink:href")}
    assert all(one.startswith("#") or one == "data:," for one in links)
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


@pytest.mark.parametrize("kind", [*SUITES, "imported"])
def test_nothing_runs_and_nothing_leaves(
    files: dict[str, Path], open_page: Open, kind: str
) -> None:
    page = open_page(files[kind], bypass_csp=True)
    urls: list[str] = []
    page.on("request", lambda request: urls.append(request.url))
    number = page.evaluate(OPEN_ALL)
    assert number >= (100 if kind == "imported" else 200)
    page.evaluate(PICTURE_FAILED)
    assert not page.struck and not page.faults
    assert not [url for url in urls if HOST in url]
    plain = open_page(files[kind], bypass_csp=True, java_script_enabled=False, wait="networkidle")
    assert not plain.faults


ALL_UNITS = "() => [...document.querySelectorAll('.unit .id')].map((one) => one.textContent)"


@pytest.mark.parametrize("kind", SUITES)
def test_every_string_is_shown_to_the_letter(
    files: dict[str, Path], open_page: Open, kind: str
) -> None:
    names = open_page(files[kind], bypass_csp=True).evaluate(ALL_UNITS)
    assert len(STRINGS) >= 200 and len(names) == len(STRINGS)
    for i, text in enumerate(STRINGS):
        expected = visible(f"{i} {text}").strip()
        assert any(expected in name for name in names), text


def test_the_policy_stops_what_would_slip_through(
    tmp_path: Path, files: dict[str, Path], chromium: Any
) -> None:
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
    struck: list[Any] = []
    urls: list[str] = []
    stopped: list[tuple[str, str]] = []
    page.expose_function("struck", lambda *values: struck.append(values))
    page.on("requestfailed", lambda request: stopped.append((request.url, request.failure)))
    page.on("request", lambda request: urls.append(request.url))
    page.goto(slipped.as_uri(), wait_until="networkidle")
    assert page.locator("#tools").is_visible()  # our own script still runs
    page.close()
    assert not struck and stopped
    left = set(urls) - {url for url, why in stopped if why == "csp"}
    assert left <= {slipped.as_uri(), "data:,"}


def test_words_of_data_are_never_read_as_a_template(tmp_path: Path) -> None:
    rows = [
        {"id": "x", "question": "{{ 7*7 }} {0.__class__} {n}", "meta": {"prompt_variant": "{n}"}}
        | {"model_output": "{% for x in y %} {interval}"}
    ]
    suite = write_suite(tmp_path, rows, {"model": "python/judge:good"})
    with opened(judge(suite)) as (store, run):
        page = render(make_report(store, run, ReportOptions(language="en")))
    assert "{{ 7*7 }} {0.__class__} {n}" in page and "{% for x in y %}" in page
