"""Tables and texts of a terminal: widths, wide letters, and what is never read as markup."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from evenhand.report.terminal.console import legend, side_by_side, table, wrap

JUDGES = ("openai/gpt-4.1-mini-2025-04-14", "openai/gpt-4.1-mini-2025-07-01", "openai/gpt-4.1")
DIMENSIONS = ("constraint_adherence", "logic_and_fact", "論理と事実の正確さ、および制約の順守")


def printed(part, width):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(part)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def compared():
    headers = ("dimension", "judge", "base", "difference [95 %]", "p", "outcome")
    grid = table(*headers, right=(2, 4), whole=[3])
    for dimension in DIMENSIONS:
        for judge in JUDGES:
            gap = "+0.067 [-0.056, 0.187]"
            grid.add_row(dimension, judge, "0.467", gap, "0.636", "not enough evidence")
    return grid


@pytest.mark.parametrize("width", [80, 120])
def test_every_line_has_room_and_figures_stay_on_one_line(width):
    lines = printed(compared(), width)
    assert max(map(cell_len, lines)) <= width
    assert "\n".join(lines).count("+0.067 [-0.056, 0.187]") == len(DIMENSIONS) * len(JUDGES)


def test_names_that_begin_alike_are_told_apart():
    grid = table("judge", "n", "agreement", "kappa", "alpha", right=(1, 2, 3, 4))
    for judge in JUDGES:
        grid.add_row(judge, "90", "0.50 [0.40, 0.60]", "-0.20 [-0.36, -0.02]", "-0.075")
    first_column = [line.split("  ")[0] for line in printed(grid, 70)[2:]]
    assert "".join(first_column).replace(" ", "") == "".join(JUDGES)


def test_wide_letters_count_two_columns():
    grid = table("項目", "n", right=[1])
    grid.add_row("とても長い日本語の評価軸の名前。", "120")
    lines = printed(grid, 24)
    assert max(map(cell_len, lines)) <= 24
    text = "".join(line.removesuffix("120").strip() for line in lines[2:])
    assert text == "とても長い日本語の評価軸の名前。"


def test_a_column_that_says_nothing_is_left_out():
    grid = table("unit", "result", "flags")
    grid.add_row("q1", "A", "")
    grid.add_row("q2", Text("B", style="bold"))
    header, rule, *rows = printed(grid, 80)
    assert header.split() == ["unit", "result"] and set(rule) <= {"─", " "}
    assert [row.split() for row in rows] == [["q1", "A"], ["q2", "B"]]


def test_names_in_brackets_are_no_markup():
    grid = table("[red]unit", "b")
    grid.add_row("[bold]x[/bold]", "[/]")
    assert "[bold]x[/bold]" in printed(grid, 80)[2] and "[red]unit" in printed(grid, 80)[0]
    assert printed(legend([("[i]a", "[/b]")]), 80) == ["[i]a  [/b]"]


def test_a_legend_puts_long_texts_on_lines_beside_their_names():
    lines = printed(legend([("judges", ", ".join(JUDGES)), ("品", "x")]), 50)
    assert lines == [
        "judges  openai/gpt-4.1-mini-2025-04-14,",
        "        openai/gpt-4.1-mini-2025-07-01,",
        "        openai/gpt-4.1",
        "品      x",
    ]


def test_texts_beside_each_other_have_the_same_room():
    lines = printed(side_by_side([Text("a " * 30), Text("b " * 30)]), 42)
    assert all(cell_len(line) <= 42 for line in lines) and len(lines) == 3
    assert lines[0].index("b") == 21


@pytest.mark.parametrize("width", [12, 25, 80])
@pytest.mark.parametrize(
    "text",
    [
        "A plain sentence of several words, and one more.",
        "GPT-4 と Claude が 80 問への 5 モデルの回答を、どの組も両方の順序で比べた記録です。",
        "x" * 70,
        "a\x1b[31mb",
    ],
)
def test_no_line_is_too_wide_and_no_letter_is_lost(text, width):
    lines = wrap(text, width)
    assert all(0 < cell_len(line) <= width for line in lines)
    shown = text.replace("\x1b", "\\u001b")
    assert "".join("".join(lines).split()) == "".join(shown.split())
