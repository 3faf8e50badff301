"""`evenhand report`: options of the command that reach the page."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from tests.sentences import is_told
from tests.unit.cli.weekly import BY, ROWS, paired


def test_it_lists_what_changed_most_and_names_the_units_it_is_of(call, weeks):
    flags = "--where model=small --language ru"
    said = call(f"report -o week.html {BY} {flags}")
    assert (said.code, said.out) == (0, "")
    assert "Only model = small: 120 of 240 units." in said.err
    page = Path("week.html").read_text()
    assert "Только model = small: 120 из 240 объектов." in page and "r1/big/" not in page
    section = page[page.index('<section id="changed">') : page.index('<section id="units">')]
    assert '<div class="pairs">' in section
    gaps = sorted(
        (gap, row.row["model_output"])
        for row, _, gap in paired([row for row in ROWS if row.model == "small"])
    )
    told = [float(value) for value in re.findall(r'data-difference="(.*?)"', section)]
    assert told == pytest.approx([gap for gap, _ in [*gaps[:10], *gaps[-10:]]])
    shown = [text for _, text in gaps if text in section and f"correct: {text}" in section]
    assert shown


def page_of(call, options):
    call.ok(f"report -o week.html {options} --force")
    return Path("week.html").read_text()


def table_of(page, chart):
    """The rows of the table of a chart, as texts."""
    card = re.search(rf'<figure id="chart-{chart}".*?</figure>', page, re.DOTALL)[0]
    rows = re.findall(r"<tr>(.*?)</tr>", card[card.index("<details") :], re.DOTALL)
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in rows[1:]]


def test_it_breaks_the_comparison_down_as_compare_does(call, weeks):
    asked = f"{BY} --within model --stability run_id"
    page, answer = page_of(call, asked), call.json(f"compare {asked}")
    told = {(row[0], row[1]): (row[2], row[5]) for row in table_of(page, "within-0")}
    assert told == {
        (row["dimension"], block["value"]): (str(row["n"]), signed(row["difference"]))
        for block in answer["within"]["blocks"]
        for row in block["rows"]
    }
    told = {row[0]: (row[2], float(row[3]), float(row[4])) for row in table_of(page, "stability")}
    assert told == {
        row["dimension"]: (str(row["n"]), round(row["baseline_sd"], 2), round(row["sd"], 2))
        for row in answer["stability"]["rows"]
    }
    for test in answer["within"]["between"]:
        key = "differs" if test["outcome"] == "differs" else "open"
        p = test["p_adjusted"]
        about = {"dimension": test["dimension"], "field": "model"}
        about["p"] = f"= {p:.3f}" if p >= 0.001 else "< 0.001"
        assert is_told(html.unescape(page), f"terminal.interaction_{key}", **about)


def signed(value):
    return f"{value:+.2f}".replace("-", "−")


def test_it_compares_two_runs_as_compare_does(call, weeks):
    page, answer = page_of(call, "--against latest~1"), call.json("compare --against latest~1")
    [row] = [row for row in answer["rows"] if row["dimension"] == "overall"]
    names = {"variant": row["variant"], "baseline": answer["baseline"]}
    assert is_told(page, "headline.none", **names)
    shown = [cells[5] for cells in table_of(page, "differences") if cells[0].startswith("overall")]
    assert shown == [signed(row["difference"])]
    section = page[page.index('<section id="matrix">') : page.index('<section id="changed">')]
    rows = [line.split("<td")[1:3] for line in re.split("<tr[^>]*><th", section)[1:]]
    # The units of this run are in the file, those of the other are not.
    assert len(rows) == 240 and all("href" in own and "href" not in old for old, own in rows)
    for own in ("--baseline v1", "--by model"):
        call.refused(f"report --against latest~1 {own}", key="compare.by_with_against")
    call.refused("report --stability foo -o week.html --force", key="stats.no_such_field")


@pytest.mark.parametrize(
    "options",
    [
        "--against latest~1 --within model --where eval_set_variant=hard --language zh",
        f"{BY} --stability run_id --without model=small --title 'v1 & <v2>' --summary",
    ],
)
def test_the_command_it_names_makes_it_again(call, weeks, options):
    page = page_of(call, options)
    command = html.unescape(re.search(r"<code>(evenhand report .*?)</code>", page)[1])
    assert page_of(call, command.removeprefix("evenhand report ")) == page
    assert ('<h1 dir="auto">v1 &amp; &lt;v2&gt;</h1>' in page) == ("--title" in options)
