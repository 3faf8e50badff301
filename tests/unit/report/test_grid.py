"""Tables of a terminal: who gives way, and what is never broken."""

from __future__ import annotations

import io

import pytest
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.text import Text

from evenhand.report.terminal.grid import Legend, TextTable, table

JUDGES = ("openai/gpt-4.1-mini-2025-04-14", "openai/gpt-4.1-mini-2025-07-01", "openai/gpt-4.1")
DIMENSIONS = ("constraint_adherence", "logic_and_fact", "論理と事実の正確さ、および制約の順守")
WIDTHS = (80, 120)


def printed(part: RenderableType, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(part)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def compared() -> TextTable:
    headers = ("dimension", "judge", "base", "difference [95 %]", "p", "outcome")
    grid = table(*headers, right=(2, 4), whole=[3])
    for dimension in DIMENSIONS:
        for judge in JUDGES:
            gap = "+0.067 [-0.056, 0.187]"
            grid.add_row(dimension, judge, "0.467", gap, "0.636", "not enough evidence")
    return grid


@pytest.mark.parametrize("width", WIDTHS)
def test_every_line_has_room_and_none_ends_with_blanks(width: int) -> None:
    lines = printed(compared(), width)
    assert max(map(cell_len, lines)) <= width
    assert all(line == line.rstrip() for line in lines)


@pytest.mark.parametrize("width", WIDTHS)
def test_figures_stay_on_one_line_and_names_are_broken_between_their_parts(width: int) -> None:
    lines = printed(compared(), width)
    text = "\n".join(lines)
    assert text.count("+0.067 [-0.056, 0.187]") == len(DIMENSIONS) * len(JUDGES)
    words = {word for line in lines[2:] for word in line.split()}
    names = (*DIMENSIONS[:2], *JUDGES)
    for word in words:
        if any(word in name for name in names):
            assert word.endswith(("/", "-", "_")) or any(name.endswith(word) for name in names)


@pytest.mark.parametrize("width", WIDTHS)
def test_judges_whose_names_begin_alike_are_told_apart(width: int) -> None:
    grid = table("judge", "n", "agreement", "kappa", "alpha", right=(1, 2, 3, 4))
    for judge in JUDGES:
        grid.add_row(judge, "90", "0.50 [0.40, 0.60]", "-0.20 [-0.36, -0.02]", "-0.075")
    first_column = [line.split("  ")[0] for line in printed(grid, width)[2:]]
    assert "".join(first_column) == "".join(JUDGES)


def test_what_has_room_stands_on_one_line() -> None:
    assert len(printed(compared(), 200)) == 2 + len(DIMENSIONS) * len(JUDGES)


def test_headers_give_way_before_texts() -> None:
    grid = table("unit", "at equal length, %", right=[1])
    grid.add_row("a text of several words", "51")
    header, second_header, *_, row = printed(grid, 34)
    assert header.split() == ["unit", "at", "equal"]
    assert second_header.split() == ["length,", "%"]
    assert row.split("  ")[0] == "a text of several words"


def test_a_word_is_broken_only_where_nothing_else_can_give_way() -> None:
    grid = table("unit", "result")
    grid.add_row("x" * 30, "some words that can be put on lines of their own")
    assert "x" * 30 in printed(grid, 48)[2]
    lines = printed(grid, 30)
    assert max(map(cell_len, lines)) <= 30
    assert "".join(line.split(" ")[0] for line in lines[2:]) == "x" * 30


def test_wide_letters_are_broken_between_any_two_and_count_two_columns() -> None:
    grid = table("項目", "n", right=[1])
    grid.add_row("とても長い日本語の評価軸の名前。", "120")
    lines = printed(grid, 24)
    assert max(map(cell_len, lines)) <= 24
    assert "".join(line.removesuffix("120").strip() for line in lines[2:]) == (
        "とても長い日本語の評価軸の名前。"
    )
    assert not any(line.startswith("。") for line in lines)


def test_a_column_that_says_nothing_is_left_out() -> None:
    grid = table("unit", "result", "flags")
    grid.add_row("q1", "A", "")
    grid.add_row("q2", Text("B", style="bold"))
    assert printed(grid, 80) == ["unit  result", "────────────", "q1    A", "q2    B"]


def test_a_table_without_rows_is_its_header() -> None:
    assert printed(table("a", "b"), 80) == ["a  b", "────"]


def test_a_legend_puts_long_texts_on_lines_beside_their_names() -> None:
    lines = printed(Legend([("judges", ", ".join(JUDGES)), ("品", "x")]), 50)
    assert lines == [
        "judges  openai/gpt-4.1-mini-2025-04-14,",
        "        openai/gpt-4.1-mini-2025-07-01,",
        "        openai/gpt-4.1",
        "品      x",
    ]
