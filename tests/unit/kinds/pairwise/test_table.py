"""The verdict table reads back as it was written, and a judge's line is found among anything."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenhand.kinds.pairwise.table import (
    Ambiguous,
    Broken,
    TableError,
    TableReply,
    TableRow,
    header,
    line,
    read_reply,
    read_table,
)

CRITERIA = ["C1", "C2", "C3", "C4", "C5"]
HEADER = "pair_id | winner | C1 | C2 | C3 | C4 | C5 | notes"
ODD = "|\\ \t\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029\u00a0\u3000\ufeff\u200b\x00nrstuA+é語ж😀\ud800"
TEXTS = st.text(st.sampled_from(ODD), max_size=12) | st.text(st.characters(), max_size=12)
MARKS = st.sampled_from(["A+", "B+", "tie"])
WINNERS = st.sampled_from(["A", "B", "tie", "uncertain"])


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[TableRow]]:
    criteria = draw(st.lists(TEXTS, max_size=4, unique=True))
    marks = st.fixed_dictionaries(dict.fromkeys(criteria, MARKS))
    return criteria, draw(st.lists(st.builds(TableRow, TEXTS, WINNERS, marks, TEXTS), max_size=4))


def written(criteria: list[str], rows: list[TableRow]) -> list[str]:
    lines = (
        line(row.pair_id, row.winner, [row.marks[c] for c in criteria], row.notes) for row in rows
    )
    return [header(criteria), *lines]


@given(tables())
@example((["C1"], [TableRow("", "A", {"C1": "tie"}, "")]))
@example((["C1"], [TableRow(" ", "A", {"C1": "tie"}, "\\")]))
@example(([], [TableRow("\ufeffp", "tie", {}, " \u3000")]))
@example((["pair_id", "winner", "notes", ""], []))
def test_a_table_reads_back_exactly(table):
    criteria, rows = table
    lines = written(criteria, rows)
    assert list(read_table(lines)) == list(read_table(lines, criteria)) == rows


@given(tables(), st.sampled_from(["\n", "\r\n", "\r"]))
def test_a_table_survives_a_file_and_any_way_to_split_lines(table, ending):
    criteria, rows = table
    text = "".join(each + ending for each in written(criteria, rows))
    assert len(text.splitlines()) == len(rows) + 1
    stored = text.encode("utf-8-sig").decode()
    assert list(read_table(stored.splitlines(keepends=True))) == rows


@given(TEXTS, TEXTS)
def test_different_texts_are_written_differently(one, other):
    same = line(one, "A", [], "") == line(other, "A", [], "")
    assert same == (one == other)


@pytest.mark.parametrize(
    ("notes", "cell"),
    [
        ("plain, with / and `ticks`", "plain, with / and `ticks`"),
        ("a | b", "a \\| b"),
        ("C:\\new", "C:\\\\new"),
        ("one\ntwo\r\nthree", "one\\ntwo\\r\\nthree"),
        (" x ", "\\sx\\s"),
        ("a\u2028b", "a\\u2028b"),
        ("\u3000словом", "\\u3000словом"),
        ("結論。", "結論。"),
    ],
)
def test_notes_are_written_so(notes, cell):
    assert line("p1", "A", ["A+", "tie"], notes) == f"p1 | A | A+ | tie | {cell}"


def test_the_header_is_that_of_the_contract():
    assert header(CRITERIA) == HEADER


def test_white_space_around_cells_and_blank_lines_are_no_part_of_a_table():
    lines = ["", "\ufeffpair_id|winner|\tC1 |notes\n", "\n", "  p1|A|A+|  x y\t\n", "   "]
    assert list(read_table(lines)) == [TableRow("p1", "A", {"C1": "A+"}, "x y")]


def test_rows_come_as_they_are_read():
    lines = iter([header(["C1"]), "p1 | A | A+ |", "p2 | ? | A+ |"])
    rows = read_table(lines)
    assert next(rows).pair_id == "p1"
    with pytest.raises(TableError):
        next(rows)


@pytest.mark.parametrize(
    ("lines", "number", "message"),
    [
        ([], 1, "the table is empty"),
        (["", "\n"], 1, "the table is empty"),
        (["p1 | A | A+ | x"], 1, "no header"),
        (["pair_id | winner"], 1, "no header"),
        (["pair_id | comment | winner"], 1, "no header"),
        (["pair_id | winner | notes | notes | C1"], 1, "no header"),
        (["pair_id | winner | C1 | C1 | notes"], 1, "stands twice"),
        (["pair_id | winner | C1 | notes", "p1 | A | A+"], 2, "3 columns; the header has 4"),
        (["pair_id | winner | C1 | notes", "p1 | A | A+ | a | b"], 2, "5 columns"),
        (["pair_id | winner | C1 | notes", "", "p1 | a | A+ | x"], 3, 'winner "a"; expected A, B'),
        (["pair_id | winner | C1 | notes", "p1 | | A+ | x"], 2, 'winner ""'),
        (["pair_id | winner | C1 | notes", "p1 | A | A | x"], 2, 'mark "A"; expected A+'),
        (["pair_id | winner | C1 | notes", "p1 | A | TIE | x"], 2, 'mark "TIE"'),
        (["pair_id | winner | C1 | notes", "p1 | A | tie | \\q"], 2, '"\\q" is no escape'),
        (["pair_id | winner | C1 | notes", "p1 | A | tie | a\\"], 2, '"\\" is no escape'),
        (["pair_id | winner | C1 | notes", "p1 | A | tie | \\u12"], 2, "is no escape"),
    ],
)
def test_a_wrong_line_is_told_with_its_number(lines, number, message):
    with pytest.raises(TableError) as caught:
        list(read_table(lines))
    assert caught.value.line_number == number
    assert message in caught.value.message
    assert str(caught.value) == f"line {number}: {caught.value.message}"


def test_a_table_of_other_criteria_is_refused():
    with pytest.raises(TableError, match=r'line 1: criteria "C1"; expected "C1, C2"'):
        list(read_table([header(["C1"])], ["C1", "C2"]))


@pytest.mark.parametrize(
    ("winner", "marks"), [("C", ["tie"]), ("A", ["+A"]), ("", []), ("Tie", [])]
)
def test_what_could_not_be_read_back_is_not_written(winner, marks):
    with pytest.raises(ValueError, match="expected"):
        line("p", winner, marks, "")


def test_a_table_is_read_by_its_header():
    head = "notes | C5 | C4 | winner | C3 | C2 | C1 | pair_id"
    rows = list(read_table([head, "n | B+ | tie | A | A+ | tie | B+ | p"], CRITERIA))
    marks = dict(zip(CRITERIA, ("B+", "tie", "A+", "tie", "B+"), strict=True))
    assert rows == [TableRow("p", "A", marks, "n")]


def test_a_header_names_each_criterion_once():
    with pytest.raises(ValueError, match="stands twice"):
        header(["C1", "C1"])


LINE = "p1 | A | A+ | tie | tie | B+ | tie | shorter but right"
FULL = ("A", "A+ tie tie B+ tie", "shorter but right")
BARE = ("A", "A+ tie tie B+ tie", None)

READ = {
    "the line alone": (LINE, FULL),
    "a header above it": (f"{HEADER}\n{LINE}", FULL),
    "a fence": (f"```\n{HEADER}\n{LINE}\n```", FULL),
    "a fence with a language": (f"```text\n{LINE}\n```\n", FULL),
    "prose in English": (f"Here is my verdict:\n\n{LINE}\n\nHope this helps!", FULL),
    "prose in Russian": (f"Вот вердикт | как просили:\n{LINE}\nКандидат 1 точнее.", FULL),
    "prose in Chinese": (f"以下是我的判断：\n{LINE}\n理由：候选1更准确。", FULL),
    "prose in Japanese": (f"判定は次のとおりです。\n{LINE}\n以上です。", FULL),
    "Markdown": (f"| {HEADER} |\n|---|:--:|---|---|---|---|---|---:|\n| {LINE} |", FULL),
    "Windows line ends": (f"{HEADER}\r\n{LINE}\r\n", FULL),
    "no spaces": ("p1|A|A+|tie|tie|B+|tie|shorter but right", FULL),
    "tabs and wide spaces": ("p1\t|\u3000A\u3000|A+ | tie|tie | B+ |tie|shorter but right", FULL),
    "no pair_id": (LINE.removeprefix("p1 | "), FULL),
    "no pair_id, outer pipes": (f"| {LINE.removeprefix('p1 | ')} |", FULL),
    "an empty pair_id": (f"| {LINE.removeprefix('p1')} |", FULL),
    "no notes": ("p1 | A | A+ | tie | tie | B+ | tie", BARE),
    "empty notes": ("p1 | A | A+ | tie | tie | B+ | tie | ", BARE),
    "neither pair_id nor notes": ("A | A+ | tie | tie | B+ | tie", BARE),
    "bold": ("**p1** | **A** | **A+** | tie | tie | __B+__ | *tie* | shorter but right", FULL),
    "all of it bold": (f"**{LINE}**", FULL),
    "ticks": ("`p1` | `A` | `A+` | `tie` | `tie` | `B+` | `tie` | shorter but right", FULL),
    "all of it in ticks": (f"`{LINE}`", FULL),
    "a quotation": (f"> {LINE}", FULL),
    "a list item": (f"- {LINE}", FULL),
    "a numbered item without pair_id": (f"1. {LINE.removeprefix('p1 | ')}", FULL),
    "loud ties": (LINE.replace("tie", "TIE"), FULL),
    "equal lines": (f"{LINE}\n\nSo, once more:\n{LINE}", FULL),
    "equal verdicts, other notes and ids": (f"{LINE}\nx | A | A+ | tie | tie | B+ | tie |", FULL),
    "pipes in the notes": (f"{LINE} | a|b", (*FULL[:2], "shorter but right | a|b")),
    "escaped pipes in the notes": (f"{LINE}: a \\| b", (*FULL[:2], "shorter but right: a | b")),
    "backslashes in the notes": (f"{LINE} \\nu", (*FULL[:2], "shorter but right \\nu")),
    "ticks in the notes": (f"{LINE} `x`", (*FULL[:2], "shorter but right `x`")),
    "notes in Russian": (f"{LINE} — да", (*FULL[:2], "shorter but right — да")),
    "a thought before it": (f"<think>\n{LINE.replace('A+', 'B+')}\n</think>\n{LINE}", FULL),
    "a winner that is missing": ("p1 | | A+ | tie | tie | B+ | tie | x", (None, BARE[1], "x")),
    "a mark that is missing": ("p1 | A | A+ | | tie | B+ | tie | x", ("A", "A+ ? tie B+ tie", "x")),
    "marks that are missing": ("p1 | B | | | | | | x", ("B", "? ? ? ? ?", "x")),
    "a line cut short": ("p1 | B | B+ | tie", ("B", "B+ tie ? ? ?", None)),
    "a pair_id like a criterion": ("C1 | A | A+ | tie | tie | B+ | tie", BARE),
    "a pair_id like a winner": (
        "A | B | B+ | tie | tie | B+ | tie",
        ("B", "B+ tie tie B+ tie", None),
    ),
    "nothing but ties": ("tie | tie | tie | tie | tie | tie | tie", ("tie", "tie " * 5, None)),
    "a winner beside ties": ("A | tie | tie | tie | tie | tie", ("A", "tie " * 5, None)),
    "a line about each criterion too": (f"| C1 | A+ | right |\n| C2 | tie | tie |\n{LINE}", FULL),
    "a legend too": (f"Marks are A+ | B+ | tie.\n{LINE}", FULL),
    "the form repeated": (f"pair_id | A/B/tie | A+/B+/tie | ... | notes\n{LINE}", FULL),
}


@pytest.mark.parametrize(("text", "expected"), READ.values(), ids=READ)
def test_a_line_is_found(text, expected):
    winner, marks, notes = expected
    parts = [None if mark == "?" else mark for mark in marks.split()]
    found = read_reply(text, CRITERIA)
    assert isinstance(found, TableReply)
    assert (found.winner, list(found.marks), list(found.marks.values())) == (
        winner,
        CRITERIA,
        parts,
    )
    if text != READ["nothing but ties"][0]:
        assert found.notes == notes


WINNERS_READ = {
    "A": ["a", " A ", "А", "Ａ", "Α", "**A**", "A лучше", "`A` лучше", "А лучше", "A is better"],
    "B": ["b", "В", "Ｂ", "Β", "B лучше", "в лучше", "Ответ B лучше", "B 更好", "B (точнее)"],
    "tie": ["Tie", "TIE", "tie (ничья)", "ничья", "Ничья.", "паритет", "平局", "引き分け", "平"],
}
WINNERS_READ["A"] += ["✅ A", "A 🏆", "Победитель: A", "Winner: A", "Тезис A лучше", "Aの勝ち"]
WINNERS_READ["A"] += ['"A"', "«A»", "「A」", "\u200bA"]
WINNERS_READ["tie"] += ["“tie”", "„ничья“"]
WINNERS_READ["tie"] += ["tie/ничья", "ничья = tie", "tie, 平局", "равенство"]
MARKS_READ = {
    "A+": [
        "a+",
        "A +",
        "А+",
        "Ａ＋",
        "Α+",
        "A+ (факты точнее)",
        "A+（更准确）",
        "A лучше",
        "**A+**",
    ],
    "B+": ["b+", "В+", "Ｂ+", "B + ", "B+ (B cites a source)", "B+ (A ошибается)", "B 更好"],
    "tie": ["TIE", "ничья", "паритет", "tie (ничья)", "tie (паритет)", "引き分け", "tie (both)"],
}

MARKS_READ["A+"] += ['"A+"', "'A+'", "«A+» (точнее)", "『A+』", "A+\u200b", "\u200eA+"]
MARKS_READ["tie"] += ['"tie"', "「引き分け」"]


@pytest.mark.parametrize(
    ("cell", "word"), [(cell, word) for word, cells in WINNERS_READ.items() for cell in cells]
)
def test_a_winner_is_read_in_the_words_that_prompts_ask_for(cell, word):
    verdict = read_reply(LINE.replace("| A |", f"| {cell} |"), CRITERIA)
    assert isinstance(verdict, TableReply)
    assert verdict.winner == word
    assert verdict.mended == (() if cell.strip(" *") == word else ("winner",))


@pytest.mark.parametrize(
    ("cell", "word"), [(cell, word) for word, cells in MARKS_READ.items() for cell in cells]
)
def test_a_mark_is_read_in_the_words_that_prompts_ask_for(cell, word):
    verdict = read_reply(LINE.replace("B+", cell), CRITERIA)
    assert isinstance(verdict, TableReply)
    assert list(verdict.marks.values()) == ["A+", "tie", "tie", word, "tie"]
    assert verdict.mended == (() if cell.strip(" *") == word else ("C4",))


@pytest.mark.parametrize("bar", ["｜", "│"])
def test_bars_of_another_width_are_bars(bar):
    verdict = read_reply(LINE.replace("|", bar), CRITERIA)
    assert verdict == read_reply(LINE, CRITERIA)


UNREAD = {
    "an unknown winner": ("| A |", "| C |", "winner"),
    "a winner by number": ("| A |", "| Candidate 1 |", "winner"),
    "a winner of settled pairs only": ("| A |", "| uncertain |", "winner"),
    "a winner with a mark's sign": ("| A |", "| A+ |", "winner"),
    "a winner and a tie": ("| A |", "| A/tie |", "winner"),
    "a tie and a winner": ("| A |", "| tie/A |", "winner"),
    "two winners": ("| A |", "| A/B |", "winner"),
    "a winner taken back": ("| A |", "| A (или B) |", "winner"),
    "a winner that may be a tie": ("| A |", "| A (tie) |", "winner"),
    "a winner that is worse": ("| A |", "| A хуже |", "winner"),
    "a winner that is denied": ("| A |", "| not A |", "winner"),
    "a grade": ("| A |", "| A- |", "winner"),
    "an unknown mark": ("B+", "C+", "C4"),
    "a mark without its sign": ("B+", "B", "C4"),
    "a lesser mark": ("B+", "B-", "C4"),
    "two marks": ("B+", "A+/B+", "C4"),
    "a mark taken back": ("B+", "B+ (или A+)", "C4"),
    "a mark that may be a tie": ("B+", "B+ (скорее ничья)", "C4"),
    "a mark and a plus too many": ("B+", "B++", "C4"),
    "a number": ("B+", "1", "C4"),
    "a yes": ("B+", "да", "C4"),
    "two marks in quotation marks": ("B+", '"A+" "B+"', "C4"),
    "quotation marks alone": ("B+", '""', "C4"),
    "a dash": ("B+", "—", "C4"),
}


@pytest.mark.parametrize("name", UNREAD)
def test_a_cell_that_cannot_be_read_is_named(name):
    old, new, column = UNREAD[name]
    broken = read_reply(LINE.replace(old, new), CRITERIA)
    assert isinstance(broken, Broken)
    [cell] = broken.cells
    assert (cell.column, cell.text) == (column, new.strip("| "))
    assert list(cell.allowed) == (["A", "B", "tie"] if column == "winner" else ["A+", "B+", "tie"])


TAKEN_BACK = [
    "A+ (нет, B лучше)",
    "A+（但B更好）",
    "A+（Bの方が良い）",
    "A+（Bの方がやや良い）",
    "A+ (but B is better here)",
    "A+ (but b is slightly better)",
    "A+ (B wins.)",
    "B+ (А чуть лучше)",
    "B+ (a is much better)",
    "tie (A чуть лучше)",
    "tie (B wins)",
    "A лучше (B лучше)",
    'A+ ("B is better")',
    "A+ ('B' wins)",
    "A+ («B» чуть лучше)",
    "A+（“B”更好）",
]


@pytest.mark.parametrize("cell", TAKEN_BACK)
def test_a_mark_whose_remark_calls_another_side_better_is_not_read(cell):
    broken = read_reply(LINE.replace("B+", cell), CRITERIA)
    assert isinstance(broken, Broken)
    assert [(unread.column, unread.text) for unread in broken.cells] == [("C4", cell)]


@pytest.mark.parametrize("cell", ["A (B лучше)", "B (A is clearly better)", "tie (B чуть лучше)"])
def test_a_winner_whose_remark_calls_another_side_better_is_not_read(cell):
    broken = read_reply(LINE.replace("| A |", f"| {cell} |"), CRITERIA)
    assert isinstance(broken, Broken)
    assert [(unread.column, unread.text) for unread in broken.cells] == [("winner", cell)]


HARMLESS = {
    "A+": [
        "A+ (A лучше)",
        "A+ (more complete)",
        "A+（A比B更好）",
        "A+（比B更好）",
        "A+（比候选 B 更好）",
        "A+（较B更好）",
        "A+ (B не лучше)",
        "A+ (по сравнению с B лучше)",
        "A+ (B is hardly better)",
        "A+ (vs B: better sourced)",
        "A+ (see Appendix B: better data)",
    ],
    "B+": [
        "B+ (a better source)",
        "B+ (не хуже, а лучше)",
        "B+ (в целом лучше)",
        "B+ (a win for clarity)",
        "B+（A優位とは言えない）",
        "B+（Aより良い）",
    ],
    "tie": [
        "tie (ничья)",
        "tie (neither A nor B is better)",
        "tie (A и B не лучше)",
        "tie (A wins C1, B wins C2)",
        "tie (A胜在文采，B胜在事实)",
    ],
}


@pytest.mark.parametrize(
    ("cell", "word"), [(cell, word) for word, cells in HARMLESS.items() for cell in cells]
)
def test_a_remark_that_calls_no_other_side_better_is_stepped_over(cell, word):
    verdict = read_reply(LINE.replace("B+", cell), CRITERIA)
    assert isinstance(verdict, TableReply)
    assert list(verdict.marks.values()) == ["A+", "tie", "tie", word, "tie"]


NOTHING = {
    "nothing": "",
    "prose": "Candidate 1 is better.",
    "a refusal": "К сожалению, я не могу выбрать.",
    "JSON": '{"winner": "A"}',
    "a header alone": HEADER,
    "a header and its rule": f"| {HEADER} |\n|---|---|---|---|---|---|---|---|",
    "the form alone": "pair_id | A, B or tie | A+, B+ or tie | ... | notes",
    "pipes in prose": "A | B",
    "pipes in prose, a verdict in words": "候选1 | 更好",
    "two letters": "p1 | A",
    "a line about each criterion": "| C1 | tie | tie |\n| C2: whole | tie | tie |\n| C3 | A | A+ |",
    "only a thought": f"<think>{LINE}",
}


@pytest.mark.parametrize("text", NOTHING.values(), ids=NOTHING)
def test_nothing_else_is_a_line(text):
    assert read_reply(text, CRITERIA) is None


UNCLEAR = {
    "two winners": f"{LINE}\n{LINE.replace('| A |', '| B |')}",
    "two marks": f"{LINE}\nOn reflection:\n{LINE.replace('B+', 'tie')}",
    "a part that is missing in one": f"{LINE}\n{LINE.replace('B+', '')}",
    "a broken line after a good one": f"{LINE}\n{LINE.replace('| A |', '| C |')}",
    "a broken line before a good one": f"{LINE.replace('B+', '?')}\n{LINE}",
    "a line with two readings": "A | tie | tie | tie | tie | tie | tie | x",
    "two judges": f"第一：\n{LINE}\n第二：\n{LINE.replace('A+', 'B+')}",
}


@pytest.mark.parametrize("text", UNCLEAR.values(), ids=UNCLEAR)
def test_different_verdicts_are_ambiguous(text):
    assert read_reply(text, CRITERIA) == Ambiguous()


@given(
    st.sampled_from(["A", "B", "tie"]),
    st.lists(MARKS, min_size=5, max_size=5),
    st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp", "Zs"]), min_size=1),
)
def test_a_line_as_the_table_writes_it_is_a_reply(winner, marks, notes):
    notes = notes.replace("\\", "/").strip("|") or "x"
    found = read_reply(line("pair", winner, marks, notes), CRITERIA)
    assert found == TableReply(winner, dict(zip(CRITERIA, marks, strict=True)), notes)


PIECES = ["|", "A", "B", "A+", "B+", "tie", " ", "\n", "`", "**", "\\", "C1", "p1", "---", "\ud800"]
PIECES += ["| A | A+ | tie |", "<think>", "</think>", "\r", "\u2028", ">", "- ", "notes", "語"]


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join) | st.text(st.characters()))
@example("|")
@example("\\|")
@example("||")
def test_any_text_is_read(text):
    for criteria in (CRITERIA, ["C1"], []):
        assert isinstance(read_reply(text, criteria), TableReply | Ambiguous | Broken | None)


@pytest.mark.parametrize(
    "text",
    [
        "|" * 300_000,
        "| " * 150_000,
        "\\" * 300_000 + "|",
        "\\|" * 150_000,
        "|`" * 150_000,
        "*" * 300_000 + "|",
        "`|" + "`x" * 150_000,
        "> " * 150_000 + "|",
        "1. " * 100_000 + "|",
        ">" + " " * 300_000 + "|",
        "A | A+ | " * 40_000,
        "p | A | A+ | tie\n" * 20_000,
        "_" * 300_000 + "|" + "_" * 300_000,
        "tie|" * 100_000,
        "|\n" * 150_000,
        "\n" * 150_000 + " |</think>",
        "|</think>x\n" * 30_000,
    ],
    ids=lambda text: text[:9],
)
def test_hostile_texts_are_read_in_linear_time(text):
    """Each would take minutes if the time were the square of the length."""
    assert isinstance(read_reply(text, CRITERIA), TableReply | Ambiguous | Broken | None)


def test_a_reply_beyond_any_size_is_not_read():
    assert read_reply(LINE + "\n" + " " * 5_000_000, CRITERIA) is None
