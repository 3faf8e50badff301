"""The list of runs: what it says of each, what search and filters leave, and when headlines are
made again."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest

from evenhand.web import service
from tests.answering import write_answering
from tests.suites import judged, ok_here, write_suite
from tests.unit.web.serving import PATIENT, fill_team, held_up, served
from tests.waiting import awaited


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return fill_team(tmp_path_factory.mktemp("team"))


@pytest.fixture(scope="module")
def team(store):
    with served(store) as site:
        yield site


def items(page):
    """The runs of the list, each as what a reader sees of it."""
    rows = re.findall(r'<li id="run-.*?</li>', page.text, re.DOTALL)
    return [" ".join(unescape(re.sub("<[^>]*>", " ", row)).split()) for row in rows]


def test_each_run_has_its_headline_and_what_people_say_of_it(team):
    last, *weekly = items(team.get("/"))
    assert last.startswith("other ") and "Mean score 0.50 over 3 answers." in last
    said = ("李雷", "Last try", "nightly release"), ("boris", "Shorter prompt nightly"), ("anna",)
    for row, parts in zip(weekly, said, strict=True):
        assert "17 verdicts" in row and "3 failures" in row and re.search("v1 .*v0", row)
        assert all(part in row for part in parts)
    assert "оценка" in items(team.get("/?lang=ru"))[0]
    team.client.cookies.clear()


def test_the_trend_of_a_suite_has_a_row_and_a_dot_per_run_the_oldest_first(team):
    assert "/trend" not in team.get("/runs/other").text
    assert 'href="/runs/' in team.get("/runs/weekly").text
    page = team.get("/runs/weekly/trend").text
    rows = re.findall(r'<tr class="row">.*?</tr>', page, re.DOTALL)
    ids = [re.search(r'href="/runs/(\w+)"', row)[1] for row in rows]
    assert [name in row for name, row in zip(("anna", "boris", "李雷"), rows, strict=True)] == [
        True
    ] * 3
    against = [
        re.findall(r'href="/runs/(\w+)/changes\?against=(\w+)&amp;only=different"', row)
        for row in rows
    ]
    assert against == [[], [(ids[1], ids[0])], [(ids[2], ids[1])]]
    assert page.count('class="dot"') == 6 and page.count('class="way"') == 2
    assert re.findall(r'<li class="of-(\w+)" dir="auto">(v\d)', rows[0]) == [
        ("first", "v0"),
        ("second", "v1"),
    ]
    costs = [re.findall(r"\$([\d.]+)", row) for row in rows]
    total = re.search(r"Spent[^$]*\$(\d+\.\d+)", page)
    assert float(total[1]) == pytest.approx(sum(float(cost[0]) for cost in costs), abs=0.02)
    assert all(float(cost) > float(each) > 0 for cost, each in costs)


def test_a_run_that_is_summed_up_otherwise_is_in_the_table_of_the_trend_alone(tmp_path):
    store = fill_team(tmp_path, 8)
    votes = [f"q{n % 2},j,v0,w{n},first" for n in range(8)]
    (tmp_path / "votes.csv").write_text("\n".join(["unit,judge,first,second,winner", *votes]))
    ok_here(f"import votes.csv --kind votes --name weekly --store sqlite:{store}", cwd=tmp_path)
    with served(store) as site:
        page = site.get("/runs/weekly/trend").text
    rows = re.findall(r'<tr class="row">.*?</tr>', page, re.DOTALL)
    assert len(rows) == 4 and "/changes" not in rows[3]
    listed = [re.findall(r'<li class="of-\w+" dir="auto">(\w+)', row) for row in rows]
    assert listed[:3] == [[]] * 3, "other figures than the head of the column says"
    assert sorted(listed[3]) == ["v0", *(f"w{n}" for n in range(8))]
    assert page.count('class="dot"') == 6, "as far as there are colours"
    questions = re.findall(r'data-label="Questions">(\d+)<', rows[3])
    assert questions == ["2"]


@pytest.mark.parametrize(
    ("query", "number"),
    [
        ("text=SHORTER", 1),
        ("text=judge:one", 3),
        ("text=нет", 0),
        ("suite=weekly", 3),
        ("suite=week", 0),
        ("author=李雷", 1),
        ("tagged=nightly", 2),
        ("tagged=nightly&author=boris", 1),
        ("after=3", 1),
    ],
)
def test_search_and_filters_leave_what_fits(team, query, number):
    assert len(items(team.get(f"/?{query}"))) == number


def test_each_filter_is_a_chip_that_removes_it(team):
    page = team.get("/?suite=weekly&tagged=nightly&text=prompt").text
    (chips,) = re.findall(r'<ul class="chips".*?</ul>', page, re.DOTALL)
    assert [unescape(href) for href in re.findall('href="([^"]*)"', chips)] == [
        "/?suite=weekly&tagged=nightly",
        "/?text=prompt&tagged=nightly",
        "/?text=prompt&suite=weekly",
        "/",
    ]
    assert 'class="chips"' not in team.get("/").text


def test_fifty_runs_are_on_a_page(team, monkeypatch):
    monkeypatch.setattr("evenhand.web.runs.ROWS", 2)
    monkeypatch.setattr("evenhand.web.lists.ROWS", 2)
    assert 'href="/?after=2" rel="next"' in team.get("/").text
    assert len(items(team.get("/?after=2"))) == 2


async def test_headlines_wait_and_are_made_again_only_for_a_run_that_changed(tmp_path, monkeypatch):
    store = fill_team(tmp_path, 4)
    made, make_report = [], service.make_report

    def counted(archive, run, options):
        made.append(run.id)
        return make_report(archive, run, options)

    hurried = replace(PATIENT, figures=0)
    with served(store, timeouts=hurried) as site:
        with held_up(monkeypatch):
            page = site.get("/").text
            assert 'id="runs" data-ready="no"' in page and page.count('aria-busy="true"') == 4
            assert 'http-equiv="refresh"' in page
        monkeypatch.setattr(service, "make_report", counted)
        awaited(lambda: 'id="runs" data-ready="yes"' in site.get("/").text, "the headlines")
        made.clear()
        changed = await judged(
            write_suite(tmp_path / "more", 2, name="more", store={"url": f"sqlite:{store}"})
        )
        awaited(lambda: "over 2 answers." in site.get("/").text, "the new headline")
        assert made == [changed.run]


def test_a_run_whose_answer_cannot_be_made_leaves_the_others_theirs(store, monkeypatch):
    make_report = service.make_report

    def broken(archive, run, options):
        return make_report(archive, run, options) if run.row.name == "other" else 1 / 0

    monkeypatch.setattr(service, "make_report", broken)
    with served(store) as site:
        last, *weekly = items(site.get("/"))
    assert "Mean score 0.50" in last and all(" – " in row for row in weekly)


def test_a_run_that_made_answers_says_how_many(tmp_path):
    write_answering(tmp_path, 2)
    ok_here("run", cwd=tmp_path)
    with served(tmp_path / "evenhand.db") as site:
        assert [re.search("4 answers|v2|v1", row)[0] for row in items(site.get("/"))] == [
            "v2",
            "4 answers",
        ]
        assert "/trend" not in site.get("/runs/latest").text


def test_a_very_long_run_has_its_headline_once_its_figures_were_asked_for(store, monkeypatch):
    for module in ("service", "pages"):
        monkeypatch.setattr(f"evenhand.web.{module}.FIGURES_AT_ONCE", 10)
    with served(store) as site:
        assert " – " in items(site.get("/?suite=weekly"))[0]
        assert site.get("/runs/weekly?figures=1").status_code == 200
        assert " – " not in items(site.get("/?suite=weekly"))[0]
