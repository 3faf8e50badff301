"""A report in a real browser: opened, searched, filtered, read; in every light and language."""

from __future__ import annotations

import itertools
import re

import pytest

from evenhand import jsontext
from evenhand.report.html import render as render_module
from evenhand.results import report as report_module
from evenhand.results.report import ReportOptions, write_report
from evenhand.text import visible
from evenhand.words import words
from tests.browser.runs import SUITES, judge, opened
from tests.suites import pair_row, write_pairs

LANGUAGES = ("en", "ru", "zh", "ja")
IDS = "all => all.map(one => one.id)"
SHOWN = ".unit:not([hidden])"
FIRST = f"{SHOWN} >> nth=0"
OPENED = ".unit[open] .drill"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("reports")
    return {kind: judge(write(root / kind)) for kind, write in SUITES.items()}


@pytest.fixture(scope="module")
def files(folders):
    """Reports by kind and language."""
    reports = {}
    for kind, folder in folders.items():
        with opened(folder) as (store, run):
            for language in LANGUAGES if kind == "rubric" else ("en",):
                path = folder / f"{language}.html"
                write_report(path, store, run, ReportOptions(language=language))
                reports[kind, language] = path
    return reports


def shows(page, number):
    """Wait until so many units are left."""
    from playwright.sync_api import expect

    expect(page.locator(SHOWN)).to_have_count(number)


def rows(page):
    return page.locator(f"{SHOWN} .id").all_text_contents()


def test_a_report_opens_with_its_answer_and_every_picture(files, open_page):
    page = open_page(files["rubric", "en"])
    assert "v2 is better than v1 overall: 0.34 → 0.87" in page.locator(".answer").inner_text()
    names = page.locator("figure").evaluate_all(IDS)
    assert {"chart-differences", "chart-means", "chart-scores", "chart-tags"} <= set(names)
    assert "chart-lengths" in names
    unseen = "all => all.filter(svg => svg.getBoundingClientRect().width <= 100).length"
    assert page.locator("figure svg").evaluate_all(unseen) == 0
    assert page.locator("figure svg text").count() == 0, "labels are HTML"
    assert page.locator("figure details table").count() == len(names)
    assert len(rows(page)) == 40


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_first_screen_holds_answer_figures_and_what_to_do(files, open_page, language):
    page = open_page(files["rubric", language], java_script_enabled=False)
    for width, height in ((1280, 900), (390, 844)):
        page.set_viewport_size({"width": width, "height": height})
        for part in (".headline", ".big b >> nth=1", ".screen div.bar", ".screen .plot", ".next"):
            box = page.locator(part).bounding_box()
            assert box["y"] > 0 and box["y"] + box["height"] < height, (width, part)
    assert words(language)("headline.better", variant="v2", baseline="v1") in (
        page.locator(".headline").inner_text()
    )


def test_pairs_show_who_wins_against_whom(files, open_page):
    page = open_page(files["pairwise", "en"])
    names = set(page.locator("figure").evaluate_all(IDS))
    assert {"chart-matrix", "chart-position"} <= names
    table = page.locator("#chart-position table").text_content()
    assert "python/judge:first" in table and "100" in table
    page.locator(f"{FIRST} >> summary >> nth=0").click()
    drill = page.locator(OPENED)
    assert drill.locator(".columns").count() >= 3
    assert all(f"{name} (shown first)" in drill.inner_text() for name in ("c1", "c2"))


def test_what_changed_most_is_sorted_by_any_column(files, open_page):
    page = open_page(files["rubric", "en"])
    rows = page.locator("#changed .pair")
    gaps = "all => all.map(one => Number(one.dataset.difference))"
    worst_first = rows.evaluate_all(gaps)
    assert len(worst_first) > 1 and worst_first == sorted(worst_first)
    head = page.locator("#changed [data-sort=difference]")
    head.locator("button").click()
    assert rows.evaluate_all(gaps) == sorted(worst_first, reverse=True)
    assert head.get_attribute("data-order") == "descending"
    page.locator("#changed [data-sort=baseline] button").click()
    means = rows.evaluate_all("all => all.map(one => Number(one.dataset.baseline))")
    assert means == sorted(means)
    first = rows.first
    assert re.search(r"Question \d+: what about it\?", first.locator(".question").inner_text())
    first.locator("summary").click()
    assert first.locator(".sides").is_visible()
    assert "fits best." in first.locator(".sides").inner_text()
    assert first.locator(".sides > div").count() == 2


def test_search_looks_into_texts_and_filters_narrow_it(files, open_page):
    page = open_page(files["rubric", "en"])
    page.fill("#search", "NUMBER 7.")
    shows(page, 2)
    assert all("q7" in one for one in rows(page))
    assert page.locator("#count").inner_text() == "2 of 40 units"
    page.select_option("#units select[name=variant]", label="v2 (20)")
    assert [one for one in rows(page) if "v2" in one] == rows(page) and len(rows(page)) == 1
    page.fill("#search", "nowhere to be found")
    shows(page, 0)
    assert "No unit fits" in page.locator("#count").inner_text()
    page.click("button[type=reset]")
    shows(page, 40)


def test_every_filter_finds_what_it_names(files, open_page):
    page = open_page(files["rubric", "en"])
    page.select_option("#units select[name=verdicts]", label="failed (2)")
    assert all("/q5" in one for one in rows(page)) and len(rows(page)) == 2
    page.click("button[type=reset]")
    shows(page, 40)
    choices = page.locator("#units select[name=tags] option").all_inner_texts()
    assert choices[1].startswith("B · departs from the instructions (")
    page.select_option("#units select[name=tags]", index=1)
    page.locator(f"{FIRST} >> summary >> nth=0").click()
    assert "departs from the instructions" in page.locator(OPENED).inner_text()
    page = open_page(files["weighted", "en"])
    page.select_option("#units select[name=confidence]", label="low (3)")
    assert rows(page) == ["t1/m", "t4/m", "t7/m"]
    page = open_page(files["pairwise", "en"])
    page.select_option("#units select[name=candidates]", label="c3 (24)")
    assert all("#c1~c2" not in one for one in rows(page)) and len(rows(page)) == 24


def _evidence(folder):
    """Every unit with the parts of its text that are quoted, as offsets in the store say."""
    with opened(folder) as (store, run):
        for unit, stored in store.judgments(run.scope):
            text = jsontext.parse(unit.body)["model_output"]
            evidence = run.judgment(stored).evidence
            ends = sorted({p for e in evidence for p in (e.start, e.end)})
            within = [
                text[a:b]
                for a, b in itertools.pairwise(ends)
                if any(e.start <= a and b <= e.end for e in evidence)
            ]
            yield visible(unit.id), [visible(one) for one in within]


def test_evidence_is_marked_at_the_right_characters(files, folders, open_page):
    page = open_page(files["rubric", "en"])
    for place, (unit, quoted) in enumerate(_evidence(folders["rubric"])):
        shown = page.locator(".unit").nth(place)
        assert shown.locator(".id").text_content() == unit
        assert shown.locator("mark").all_text_contents() == quoted


def test_a_unit_opens_to_replies_and_what_was_wrong(files, open_page):
    page = open_page(files["rubric", "en"])
    page.fill("#search", "clumsy")
    shows(page, 2)
    page.locator(f"{FIRST} >> summary >> nth=0").click()
    calls = page.locator(f"{OPENED} details")
    assert calls.count() == 2 and "asked again, 1" in calls.nth(1).inner_text()
    calls.first.locator("summary").click()
    call = calls.first.inner_text()
    assert '{"scores": {}}' in call and "What was wrong with the reply" in call


def test_everything_can_be_done_from_the_keyboard(files, open_page):
    page = open_page(files["rubric", "en"])
    active = "document.activeElement"
    page.keyboard.press("Tab")
    assert page.evaluate(f"{active}.className") == "skip"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate(f"!!{active}.closest('main')")
    page.locator("#search").focus()
    page.keyboard.type("number 1")
    shows(page, 22)
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate(f"{active}.tagName") == "SUMMARY":
            break
    assert rows(page)[0] in page.evaluate(f"{active}.textContent")
    page.keyboard.press("Enter")
    assert page.locator(OPENED).count() == 1
    page.keyboard.press("Tab")
    assert page.evaluate(f"!!{active}.closest('.unit[open] .drill')")
    outline = page.evaluate(f"getComputedStyle({active}).outlineStyle")
    assert outline == "solid"
    page.reload()
    opened = "all => all.map(one => one.querySelector('.id').textContent)"
    everything = page.locator(".unit").evaluate_all(opened)
    for key, place in zip("jjjk", (0, 1, 2, 1), strict=True):
        page.keyboard.press(key)
        assert page.locator(".unit[open]").evaluate_all(opened) == [everything[place]]


@pytest.mark.parametrize("scripts", [True, False])
def test_two_answers_are_formatted_compared_and_gone_through_by_key(tmp_path, open_page, scripts):
    pairs = [pair_row(f"p{i}", *both) for i, both in enumerate([(1, 2), (9, 2), (4, 4), (7, 5)])]
    for row in pairs:
        for candidate in row["candidates"]:
            candidate["text"] += "\n\n- the **same** words"
    with opened(judge(write_pairs(tmp_path, pairs))) as (store, run):
        write_report(tmp_path / "report.html", store, run)
    page = open_page(tmp_path / "report.html", java_script_enabled=scripts)
    if scripts:
        for key, unit in zip("wjwkk", ("p1", "p2", "p3", "p2", "p1"), strict=True):
            page.keyboard.press(key)
            assert page.locator(".unit[open] .id").all_inner_texts() == [unit]
    else:
        page.locator(".unit > summary").nth(1).click()
    text = page.locator(".unit[open] .md").first
    assert text.locator("strong").inner_text() == "same" and "*" not in text.inner_text()
    assert text.locator("ins").all_inner_texts() == ["An answer", "9"]
    page.locator(".unit[open] .source input").first.check()
    assert text.text_content() == pairs[1]["candidates"][0]["text"]
    assert text.inner_text().split() == text.text_content().split()


def _luminance(rgb):
    parts = [float(one) for one in rgb[rgb.index("(") + 1 : -1].split(",")[:3]]
    linear = [
        c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4
        for c in (p / 255 for p in parts)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one, other):
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


COLOURS = """() => {
  const of = (name) => {
    const probe = document.createElement('i');
    probe.style.color = `var(--${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };
  return Object.fromEntries(NAMES.map((name) => [name, of(name)]));
}"""
NAMES = [
    "paper",
    "sheet",
    "sunk",
    "ink",
    "soft",
    "accent",
    "good",
    "bad",
    "warn",
    "first",
    "second",
]
NAMES += ["mark", "warn-wash", "bad-wash", "first-wash", "second-wash"]


def test_colours_have_contrast_enough(files, open_page):
    page = open_page(files["rubric", "en"], bypass_csp=True)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        colours = page.evaluate(COLOURS.replace("NAMES", str(NAMES)))
        for ink in ("ink", "soft", "accent", "good", "bad", "warn", "first", "second"):
            for ground in ("paper", "sheet", "sunk"):
                assert _contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground, scheme)
        for ink, ground in (("ink", "mark"), ("warn", "warn-wash"), ("ink", "bad-wash")):
            assert _contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground, scheme)
        for side in ("first", "second"):
            assert _contrast(colours[side], colours[f"{side}-wash"]) >= 4.5, (side, scheme)


def test_dark_follows_the_system_and_the_choice(files, open_page):
    paper = "getComputedStyle(document.body).backgroundColor"
    ink = "getComputedStyle(document.querySelector('figure .label')).color"
    page = open_page(files["rubric", "en"], color_scheme="dark")
    assert _luminance(page.evaluate(paper)) < 0.05 and _luminance(page.evaluate(ink)) > 0.3
    page.select_option("#theme", "light")
    assert _luminance(page.evaluate(paper)) > 0.8 and _luminance(page.evaluate(ink)) < 0.3
    page.select_option("#theme", "auto")
    page.emulate_media(color_scheme="light")
    assert _luminance(page.evaluate(paper)) > 0.8


@pytest.mark.parametrize("language", LANGUAGES)
def test_it_speaks_four_languages_at_every_width(files, open_page, screenshot, language):
    say = words(language)
    page = open_page(files["rubric", language])
    assert page.evaluate("document.documentElement.lang") == language
    text = page.locator("body").inner_text()
    for key in ("page.units", "page.method", "chart.means", "units.search", "facts.coverage"):
        assert say(key) in text
    wide = "all => all.filter(one => one.scrollWidth > one.clientWidth + 1).length"
    for width in (360, 768, 1600):
        page.set_viewport_size({"width": width, "height": 900})
        if width == 360:
            page.locator(f"{FIRST} >> summary >> nth=0").click()
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width
            assert page.locator("figure .chart").evaluate_all(wide) == 0, width
            screenshot(page, f"report-{language}-{scheme}-{width}")


@pytest.mark.parametrize("kind", SUITES)
def test_it_can_be_read_without_scripts(files, open_page, screenshot, kind):
    page = open_page(files[kind, "en"], java_script_enabled=False)
    assert page.locator("#tools").is_hidden() and page.locator("#theme").is_hidden()
    units = page.locator(".unit")
    assert page.locator("figure svg").count() and units.count() >= 9
    for place in (0, units.count() - 1):
        units.nth(place).locator("> summary").click()
        assert units.nth(place).locator("> .drill").is_visible()
    screenshot(page, f"report-{kind}-no-scripts")


@pytest.mark.parametrize("kind", ["rubric", "pairwise"])
def test_it_prints_what_is_read_and_not_what_is_pressed(files, open_page, screenshot, kind):
    page = open_page(files[kind, "en"], color_scheme="dark")
    page.locator(f"{FIRST} >> summary >> nth=0").click()
    page.emulate_media(media="print", color_scheme="dark")
    page.set_viewport_size({"width": 703, "height": 1031})  # A4 within its margins
    for hidden in ("#which", "#tools", ".top nav", "#theme", ".source", "figure summary"):
        assert page.locator(f"{hidden} >> visible=true").count() == 0, hidden
    controls = page.locator("button:not(.sort), select, input")
    assert controls.locator("visible=true").count() == 0
    first_screen = page.locator("#answer").bounding_box()
    assert first_screen["y"] + first_screen["height"] < 1031
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    cut = "all => all.filter(one => one.scrollHeight > one.clientHeight + 1).length"
    assert page.locator(".questions, .long > *, .scroll, .table").evaluate_all(cut) == 0
    for shown in (".headline", "figure svg >> nth=0", OPENED):
        assert page.locator(shown).is_visible()
    paper = "getComputedStyle(document.body).backgroundColor"
    assert _luminance(page.evaluate(paper)) > 0.9
    unseen = "all => all.filter(one => !one.checkVisibility()).length"
    notes = page.locator("details.notes:not([open]) li")
    assert notes.evaluate_all(unseen) == 0, "what is folded must print"
    screenshot(page, "report-print")
    assert page.pdf().startswith(b"%PDF")


def test_a_summary_has_no_units(folders, tmp_path, open_page):
    path = tmp_path / "summary.html"
    with opened(folders["rubric"]) as (store, run):
        write_report(path, store, run, ReportOptions(summary=True))
    page = open_page(path)
    assert page.locator(".unit").count() == 0 and page.locator("figure").count() >= 5
    assert "evenhand report" in page.locator("#units").inner_text()


def test_what_has_no_room_is_said(folders, tmp_path, open_page, monkeypatch):
    monkeypatch.setattr(report_module, "BYTES_MOST", 20_000)
    path = tmp_path / "cut.html"
    with opened(folders["rubric"]) as (store, run):
        write_report(path, store, run)
    page = open_page(path)
    number = len(rows(page))
    assert 0 < number < 40
    said = page.locator("#units").inner_text()
    assert f"the first {number} of 40 units" in said and "evenhand show" in said


def test_a_large_report_is_packed_and_loses_nothing(folders, files, open_page, monkeypatch):
    texts = "all => all.map(one => one.textContent)"
    plain = open_page(files["rubric", "en"]).locator(".unit").evaluate_all(texts)
    monkeypatch.setattr(render_module, "PLAIN_MOST", 20_000)
    path = files["rubric", "en"].with_name("packed.html")
    with opened(folders["rubric"]) as (store, run):
        write_report(path, store, run, ReportOptions(language="en"))
    assert path.stat().st_size < 0.6 * files["rubric", "en"].stat().st_size
    page = open_page(path)
    page.wait_for_function("!document.getElementById('packed')")
    assert page.locator(".unit").evaluate_all(texts) == plain
    page.fill("#search", "NUMBER 7.")
    shows(page, 2)
    bare = open_page(path, java_script_enabled=False)
    assert "evenhand show" in bare.locator("noscript").text_content() and len(rows(bare)) == 40


@pytest.mark.parametrize("kind", SUITES)
def test_a_figure_leads_to_as_many_as_it_counts(files, open_page, kind):
    page = open_page(files[kind, "en"])
    counted, found = [], []
    for lead in page.locator("a[data-choices], a[data-only]").all():
        counted.append(int(lead.get_attribute("title").split()[0]))
        lead.evaluate("one => one.click()")
        is_matrix = lead.get_attribute("data-only") is not None
        found.append(page.locator("#matrix tbody > tr:visible" if is_matrix else SHOWN).count())
    assert counted == found and len(found) >= 3
    for name in ("tags", "scores"):
        chart = page.locator(f"#chart-{name}")
        shares = chart.locator("tbody td:nth-last-child(2)").all_text_contents()
        leads = chart.locator(".values a").all()
        titles = [lead.get_attribute("title").split()[0] for lead in leads]
        assert sorted(titles) == sorted(share for share in shares if share != "0")


def test_cards_of_a_row_line_up_and_leave_no_hole(files, open_page):
    page = open_page(files["rubric", "en"])
    boxes = """all => all.map(one => [one, ...one.children].map(part => {
      const { x, y, width, height } = part.getBoundingClientRect();
      return [x, y, part === one ? height : 0, width].map(Math.round);
    }))"""
    first, second, *rest = page.locator("figure").evaluate_all(boxes)
    assert [box[1:3] for box in first] == [box[1:3] for box in second], "tops and heights"
    assert first[0][0] < second[0][0] and rest
    whole = second[0][0] + second[0][3] - first[0][0]
    assert all(abs(card[0][3] - whole) <= 2 for card in rest), "one alone takes both columns"
    page.set_viewport_size({"width": 390, "height": 844})
    assert len({card[0][0] for card in page.locator("figure").evaluate_all(boxes)}) == 1


def test_what_a_figure_chose_is_seen_and_taken_back(files, open_page):
    page = open_page(files["pairwise", "en"])
    cell = page.locator("#chart-matrix td a").first
    cell.focus()
    page.keyboard.press("Enter")
    shows(page, 12)
    chips = page.locator("#chips button")
    assert chips.count() == 2 and "Candidate: c1 (24) ×" in chips.all_inner_texts()
    chips.first.focus()
    page.keyboard.press("Enter")
    shows(page, 24)
    page.click("button[type=reset]")
    shows(page, 36)
    assert chips.count() == 0
    page = open_page(files["rubric", "en"])
    page.locator(".screen .legend a", has_text="better").click()
    better = int(page.locator(".screen .legend a").first.inner_text().split()[0])
    assert page.locator("#matrix tbody > tr:visible").count() == better
    assert page.locator("#which select").input_value() == "better"
    bare = open_page(files["rubric", "en"], java_script_enabled=False)
    assert bare.locator("#chart-tags .values a").first.get_attribute("href") == "#units"


def test_units_have_their_question_and_are_sorted_by_any_column(files, open_page):
    page = open_page(files["rubric", "en"])
    assert "Question 0: what about it?" in page.locator(FIRST).text_content()
    head = page.locator("#units [data-sort=question]")
    head.locator("button").click()
    head.locator("button").click()
    assert "Question 19:" in page.locator(FIRST).text_content()
    assert head.get_attribute("data-order") == "descending"


def test_a_cell_of_the_matrix_opens_its_unit_and_heads_sort_it(files, open_page):
    page = open_page(files["rubric", "en"])
    rows = page.locator("#matrix tbody > tr:visible")
    gaps = page.locator("#matrix tbody td:last-child").all_text_contents()
    assert len(gaps) == 20 and gaps[-1].strip() == "–", "the largest loss first, nothing last"
    known = [float(gap.replace("−", "-")) for gap in gaps[:-1]]
    assert known == sorted(known)
    page.locator("#matrix thead button").first.click()
    assert "Question 0:" in rows.first.inner_text()
    page.select_option("#which select", "failures")
    assert rows.count() == 1 and "Question 5:" in rows.inner_text()
    page.select_option("#which select", "all")
    page.locator("#which input").fill("question 7:")
    assert rows.count() == 1
    page.fill("#search", "number 3")
    rows.locator("a").nth(1).focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(OPENED)
    assert page.locator(".unit[open] .id").text_content() == "m/v2/q7"
    assert page.evaluate("document.activeElement.closest('.unit').open")
    assert page.input_value("#search") == "", "a link leads past the filters"
    # The other answer is one click away, and so are both from what changed.
    page.locator(".unit[open] .drill > p a", has_text="v1").click()
    page.wait_for_selector(".unit[open] >> text=m/v1/q7")
    page.locator("#changed .pair summary").first.click()
    side = page.locator("#changed .pair[open] .sides h4 a").first
    target = side.get_attribute("href")
    side.click()
    page.wait_for_selector(f"{target}[open] .drill")


def test_heads_and_questions_of_the_matrix_stay_in_view(files, open_page):
    page = open_page(files["rubric", "en"], viewport={"width": 390, "height": 500})
    box = page.locator(".questions")
    box.evaluate("one => { one.style.maxWidth = '250px'; one.scrollTo(200, 300); }")
    frame = box.bounding_box()
    head, question = page.locator(".questions thead th").first, box.locator("tbody th").nth(9)
    assert abs(head.bounding_box()["y"] - frame["y"]) < 3
    assert abs(question.bounding_box()["x"] - frame["x"]) < 3
    page.emulate_media(media="print")
    assert box.evaluate("one => one.scrollHeight <= one.clientHeight + 1")


STILL = """() => new Promise(done => {
  let last = null, same = 0;
  const look = () => {
    same = scrollY === last ? same + 1 : 0;
    last = scrollY;
    same > 20 ? done(true) : requestAnimationFrame(look);
  };
  look();
})"""


@pytest.mark.parametrize("width", [1280, 390])
def test_a_jump_ends_at_what_it_leads_to(tmp_path, open_page, width):
    rows = [pair_row(f"p{n}", n % 5, 2, topic="Why? " * (1 + n % 40)) for n in range(300)]
    folder = judge(write_pairs(tmp_path, rows))
    with opened(folder) as (store, run):
        write_report(tmp_path / "long.html", store, run)
    page = open_page(tmp_path / "long.html", viewport={"width": width, "height": 844})
    for link, target in (
        ("header nav a[href='#method']", "#method h2"),
        (".questions tbody tr:nth-child(150) td a", ".unit[open]"),
    ):
        page.locator(link).first.click()
        page.evaluate(STILL)
        top = page.locator(target).evaluate("one => one.getBoundingClientRect().top")
        assert 0 <= top < 200, target
