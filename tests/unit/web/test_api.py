"""The JSON API over a real store: everything there, page by page, and found by what it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evenhand.results.rows import full_rows
from evenhand.runs.recorded import find_run
from evenhand.runs.stores import open_archive
from tests.suites import evenhand
from tests.unit.web.serving import SAMPLES, Site, run_named


@pytest.fixture(scope="module")
def first(site: Site) -> str:
    return run_named(site, "first")


def pages(site: Site, path: str, key: str, *, back: bool = False) -> list[list[Any]]:
    """All pages from one end to the other."""
    found, place = [], ""
    way, turned = ("previous", "before") if back else ("next", "after")
    while True:
        joint = "&" if "?" in path else "?"
        page = site.json(f"{path}{joint}limit=17{place}")
        found.append(page[key])
        if page[way] is None:
            return found
        place = f"&{turned}={page[way]}"


def test_runs_are_listed_as_the_command_lists_them(site: Site, filled: Path) -> None:
    done = evenhand("runs", "--json", "--store", f"sqlite:{filled}", cwd=filled.parent)
    told = json.loads(done.stdout)["runs"]
    listed = site.json("/api/runs")["runs"]
    assert [one["name"] for one in listed] == ["waiting", "graded", "pairs", "second", "first"]
    for one, other in zip(listed, told, strict=True):
        assert {name: one[name] for name in other} == other


def test_a_run_is_found_by_its_id_a_prefix_and_latest(site: Site, first: str) -> None:
    assert site.json(f"/api/runs/{first}")["run"] == first
    assert site.json(f"/api/runs/{first[:6]}")["run"] == first
    assert site.json("/api/runs/latest")["name"] == "waiting"


def test_what_is_planned_adds_up(site: Site) -> None:
    for one in site.json("/api/runs")["runs"]:
        failed = sum(one["failures"].values())
        assert one["planned"] == one["verdicts"] + failed + one["pending"]
        progress = site.json(f"/api/runs/{one['run']}/progress")
        assert progress["judging"] is False
        assert progress["verdicts"] == one["verdicts"]


@pytest.mark.parametrize("name", ["first", "pairs", "graded", "waiting"])
@pytest.mark.parametrize("back", [False, True])
def test_pages_hold_every_judgment_once_and_in_order(
    site: Site, filled: Path, name: str, back: bool
) -> None:
    run = run_named(site, name)
    path = f"/api/runs/{run}/judgments"
    if back:
        path += "?before=99999999"
        found = pages_back(site, run)
    else:
        found = [row for page in pages(site, path, "judgments") for row in page]
    store = open_archive(f"sqlite:{filled}")
    rows = json.loads(json.dumps(list(full_rows(store, find_run(store, run)))))
    store.close()
    assert [one for one in found if one["status"] != "pending"] == rows
    waiting = [one["unit"] for one in found if one["status"] == "pending"]
    assert waiting == ([f"u{i}" for i in range(5, 10)] if name == "waiting" else [])


def pages_back(site: Site, run: str) -> list[Any]:
    found: list[Any] = []
    place: str | None = "99999999"
    while place is not None:
        page = site.json(f"/api/runs/{run}/judgments?limit=17&before={place}")
        found = page["judgments"] + found
        place = page["previous"]
    return found


def units(site: Site, run: str, query: str) -> list[str]:
    found = pages(site, f"/api/runs/{run}/judgments?{query}", "judgments")
    return [one["unit"] for page in found for one in page]


def named(wanted: Any) -> list[str]:
    """The ids of the samples that something holds for."""
    return [f"m{i % 2}/v{i % 2}/q{i:03}" for i in range(SAMPLES) if wanted(i)]


def test_filters_find_what_they_say(site: Site, first: str) -> None:
    failed = named(lambda i: i % 7 == 3)
    assert units(site, first, "status=failure") == failed
    assert units(site, first, "reason=not_json") == failed
    assert units(site, first, "reason=empty") == []
    assert units(site, first, "status=verdict") == named(lambda i: i % 7 != 3)
    assert units(site, first, "tag=B") == named(lambda i: i % 5 == 0 and i % 7 != 3)
    assert units(site, first, "field=prompt_variant&value=v1") == named(lambda i: i % 2)
    both = "status=failure&field=model&value=m0"
    assert units(site, first, both) == named(lambda i: i % 7 == 3 and i % 2 == 0)
    assert units(site, first, "judge=python/judge:one") == named(lambda i: True)


def test_pending_units_are_found(site: Site) -> None:
    run = run_named(site, "waiting")
    assert units(site, run, "status=pending") == [f"u{i}" for i in range(5, 10)]


def test_pairs_are_found_by_winner_candidate_flag_and_judge(site: Site) -> None:
    run = run_named(site, "pairs")
    every = [one for page in pages(site, f"/api/runs/{run}/judgments", "judgments") for one in page]
    for winner in ("A", "B", "tie", "uncertain"):
        told = [(o["unit"], o["judge"]) for o in every if o["output"]["winner"] == winner]
        found = pages(site, f"/api/runs/{run}/judgments?winner={winner}", "judgments")
        assert [(o["unit"], o["judge"]) for page in found for o in page] == told
    coin = units(site, run, "judge=python/judge:coin&flag=self_contradiction")
    assert coin == [
        one["unit"]
        for one in every
        if one["judge"] == "python/judge:coin"
        and any("self_contradiction" in made["flags"] for made in one["passes"])
    ]
    assert coin
    assert len(units(site, run, "candidate=c1")) == len(every)
    assert units(site, run, "candidate=nobody") == []


def test_answers_are_found_by_confidence(site: Site) -> None:
    run = run_named(site, "graded")
    low = site.json(f"/api/runs/{run}/judgments?confidence=low")["judgments"]
    assert low
    assert all(one["output"]["confidence"] == "low" for one in low)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ANSWER 12,", 1),
        ("ОТВЕТ", SAMPLES),
        ("回答", SAMPLES),
        ("答え", SAMPLES),
        ("What is 7?", 1),
        ("it is CLEAR", None),
        ("m0/v0/q008", 1),
        ("model_output", 0),
        ("rationale", 0),
        ("blake2b", 0),
        ("%", 0),
        ("_", 0),
        ("nowhere to be found", 0),
    ],
)
def test_search_reads_texts_ids_and_reasons_but_no_keys(
    site: Site, first: str, text: str, found: int | None
) -> None:
    from urllib.parse import quote

    expected = SAMPLES - len(named(lambda i: i % 7 == 3)) if found is None else found
    assert len(units(site, first, f"text={quote(text)}")) == expected


def test_a_unit_comes_with_its_conversation_and_what_it_cost(site: Site, first: str) -> None:
    failed = named(lambda i: i % 7 == 3)[0]
    got = site.json(f"/api/runs/{first}/unit?id={failed}")
    assert got["unit"]["id"] == failed
    (judgment,) = got["judgments"]
    assert judgment["reason"] == "not_json"
    assert [one["reask"] for one in judgment["exchanges"]] == [0, 1, 2]
    for one in judgment["exchanges"]:
        assert one["reply"] == "I would rather not say."
        assert one["messages"][0]["content"]
        assert one["cost_usd"] == 0
        assert one["at"].startswith("20")


def test_a_unit_that_waits_is_shown_without_judgments(site: Site) -> None:
    run = run_named(site, "waiting")
    assert site.json(f"/api/runs/{run}/unit?id=u9")["judgments"] == []


def test_calls_are_paged_from_the_last_one_back(site: Site, first: str) -> None:
    every = [
        one["no"]
        for page in pages(site, f"/api/runs/{first}/calls", "calls", back=True)[::-1]
        for one in page
    ]
    assert every == sorted(set(every))
    assert len(every) == site.json(f"/api/runs/{first}")["calls"]
    again = [
        o["no"] for page in pages(site, f"/api/runs/{first}/calls?after=0", "calls") for o in page
    ]
    assert again == every


def test_a_call_comes_with_its_prompt_and_unit(site: Site, first: str) -> None:
    calls = site.json(f"/api/runs/{first}/calls?text=rather+not")["calls"]
    assert calls
    for one in calls[:3]:
        got = site.json(f"/api/runs/{first}/calls/{one['no']}")
        assert "broken" in got["messages"][-1]["content"] or len(got["messages"]) > 2
        told = site.json(f"/api/runs/{first}/unit?id={got['unit']}")["judgments"][0]
        assert got["key"] in told["calls"]


def test_a_call_of_another_run_is_not_shown(site: Site, first: str) -> None:
    other = run_named(site, "pairs")
    no = site.json(f"/api/runs/{first}/calls")["calls"][0]["no"]
    assert site.get(f"/api/runs/{other}/calls/{no}").status_code == 404


def test_two_runs_are_compared_over_the_units_they_share(site: Site, first: str) -> None:
    second = run_named(site, "second")
    told = {
        run: {
            one["unit"]: {n: s["score"] for n, s in one["output"]["scores"].items()}
            for page in pages(site, f"/api/runs/{run}/judgments?status=verdict", "judgments")
            for one in page
        }
        for run in (first, second)
    }
    changed = [name for name in told[first] if told[first][name] != told[second][name]]
    rows, after = [], 0
    while after is not None:
        got = site.json(f"/api/compare?first={first}&second={second}&limit=20&after={after}")
        rows += got["differences"]
        after = got["next"]
    assert [one["unit"] for one in rows] == changed
    assert all(one["same_text"] for one in rows)
    agreed = got["agreement"]
    assert agreed["judged_by_both"] == len(told[first])
    assert agreed["same"] == len(told[first]) - len(changed)
    assert agreed["shared"] == SAMPLES
    clear = agreed["measures"]["clear"]
    assert clear["same"] + clear["up"] + clear["down"] == clear["n"] == len(told[first])


def test_a_run_agrees_with_itself(site: Site) -> None:
    run = run_named(site, "pairs")
    got = site.json(f"/api/compare?first={run}&second={run}")
    assert got["differences"] == []
    assert got["agreement"]["same"] == got["agreement"]["judged_by_both"] == 20


def test_runs_of_different_kinds_are_not_compared(site: Site, first: str) -> None:
    answer = site.get(f"/api/compare?first={first}&second={run_named(site, 'pairs')}")
    assert answer.status_code == 400
    assert "cannot be set side by side" in answer.json()["error"]


def test_figures_come_when_they_are_there(site: Site, first: str) -> None:
    figures = site.json(f"/api/runs/{first}/figures")["figures"]
    means = {(one["dimension"], one["variant"]) for one in figures["means"]}
    assert {("clear", "v0"), ("clear", "v1"), ("correct", "v0")} <= means


def test_protocols_come_with_their_prompts(site: Site) -> None:
    names = [one["name"] for one in site.json("/api/protocols")["protocols"]]
    assert names == ["pairwise", "rubric", "weighted"]
    assert "prompts/ja.md" in site.json("/api/protocols/pairwise")["texts"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/runs/nobody", 404),
        ("/api/runs/latest/unit?id=nobody", 404),
        ("/api/runs/latest/calls/999999", 404),
        ("/api/protocols/..%2f..%2fetc", 404),
        ("/api/protocols/nobody", 404),
        ("/api/nothing", 404),
        ("/api/runs/latest/judgments?limit=0", 422),
        ("/api/runs/latest/judgments?after=x", 422),
        ("/api/runs/latest/judgments?status=odd", 422),
        ("/api/runs/latest/judgments?judge=nobody", 400),
        (f"/api/runs/latest/judgments?text={'x' * 201}", 422),
        ("/api/runs/latest/unit", 422),
        ("/api/runs/latest/calls/x", 422),
    ],
)
def test_errors_have_one_short_form(site: Site, path: str, status: int) -> None:
    answer = site.get(path)
    assert answer.status_code == status
    assert answer.json().keys() == {"error", "advice"}
    assert len(answer.text) < 600
