"""The pairwise contract held against replies: shapes, marks, winners, tables, settled verdicts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.kinds.protocol import LANGUAGES
from tests.suites import CRITERIA, pair_reply
from tests.unit.kinds.pairing import PAIR, protocol

JUDGED = protocol()
TABLES = protocol(tables=True)
GOOD: dict[str, Any] = json.loads(pair_reply("A+"))
LINE = "A | A+ | tie | B+ | tie | A+ | the first is right"
TABLE = f"pair_id | winner | C1 | C2 | C3 | C4 | C5 | notes\nanything | {LINE}"


def changed(*path: str, to: Any) -> str:
    """The good reply with one place changed; `to` = None takes the key away."""
    value = json.loads(json.dumps(GOOD))
    holder = value
    for part in path[:-1]:
        holder = holder[part]
    holder.pop(path[-1], None)
    if to is not None:
        holder[path[-1]] = to
    return json.dumps(value)


def test_a_good_reply_is_kept_as_it_is() -> None:
    found = JUDGED.check(json.dumps(GOOD))
    assert (found.problems, found.fixes, found.flags) == ((), (), ())
    assert found.output == GOOD


@pytest.mark.parametrize(
    ("text", "code", "path"),
    [
        (changed("criteria", "C3", to=None), "schema", "criteria.C3"),
        (changed("criteria", "C3", "mark", to=None), "schema", "criteria.C3.mark"),
        (changed("criteria", "C3", "comment", to=None), "schema", "criteria.C3.comment"),
        (changed("criteria", "C3", "first_meets", to="yes"), "schema", "criteria.C3.first_meets"),
        (changed("criteria", "C3", "second_meets", to=1), "schema", "criteria.C3.second_meets"),
        (changed("criteria", "C3", "comment", to=["x"]), "schema", "criteria.C3.comment"),
        (changed("criteria", "C3", "mark", to="A"), "out_of_range", "criteria.C3.mark"),
        (changed("criteria", "C3", "mark", to="A лучше"), "out_of_range", "criteria.C3.mark"),
        (changed("criteria", "C3", "comment", to=" "), "schema", "criteria.C3.comment"),
        (changed("explanation", to="\n"), "schema", "explanation"),
        (changed("criteria", "C3", "mark", to=1), "schema", "criteria.C3.mark"),
        (changed("criteria", "C3", "mark", to=["A+"]), "schema", "criteria.C3.mark"),
        (changed("criteria", "C3", "score", to=1), "schema", "criteria.C3.score"),
        (changed("criteria", "C3", to="A+"), "schema", "criteria.C3"),
        (changed("criteria", to=[]), "schema", "criteria"),
        (changed("winner", to=None), "schema", "winner"),
        (changed("winner", to="A+"), "out_of_range", "winner"),
        (changed("winner", to="uncertain"), "out_of_range", "winner"),
        (changed("winner", to={"A": 1}), "schema", "winner"),
        (changed("explanation", to=None), "schema", "explanation"),
        (changed("explanation", to=7), "schema", "explanation"),
    ],
)
def test_each_problem_is_named_where_it_stands(text: str, code: str, path: str) -> None:
    found = JUDGED.check(text)
    assert found.output is None
    assert [(one.code, one.path) for one in found.problems] == [(code, path)]
    assert path in found.problems[0].message


def test_a_null_is_a_problem_and_no_missing_part() -> None:
    text = changed("winner", to="X").replace('"X"', "null")
    assert [one.path for one in JUDGED.check(text).problems] == ["winner"]
    text = pair_reply("X").replace('"X"', "null")
    assert len(JUDGED.check(text).problems) == 5


def test_a_criterion_of_another_protocol_is_a_problem() -> None:
    value = json.loads(json.dumps(GOOD))
    value["criteria"]["C6"] = value["criteria"]["C1"]
    found = JUDGED.check(json.dumps(value))
    assert [(one.code, one.path) for one in found.problems] == [("schema", "criteria.C6")]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "empty"),
        ("The first is better.", "not_json"),
        (json.dumps(GOOD) + "\n" + pair_reply("B+"), "ambiguous"),
        (json.dumps(GOOD)[:-20], "truncated"),
    ],
)
def test_what_cannot_be_read_is_never_guessed_at(text: str, code: str) -> None:
    assert [one.code for one in JUDGED.check(text).problems] == [code]


@pytest.mark.parametrize("around", ["```json\n{}\n```", "<think>A+</think>{}"])
def test_wrapping_is_a_fix(around: str) -> None:
    found = JUDGED.check(around.replace("{}", json.dumps(GOOD)))
    assert [one.code for one in found.fixes] == ["unwrapped"]
    assert found.output == GOOD


def test_a_compact_reply_needs_marks_alone() -> None:
    marks = {c: {"mark": "B+"} for c in CRITERIA}
    text = json.dumps({"criteria": marks, "explanation": "", "winner": "B"})
    assert JUDGED.check(text).problems
    found = JUDGED.check(text, "compact")
    assert found.output is not None
    assert found.output["criteria"]["C1"] == {
        "first_meets": None,
        "second_meets": None,
        "comment": None,
        "mark": "B+",
    }
    assert JUDGED.check(json.dumps(GOOD), "compact").output == GOOD


@pytest.mark.parametrize(
    "text",
    [
        LINE,
        TABLE,
        f"```\n{TABLE}\n```",
        f"Here it is:\n\n| {LINE} |\n\nThat is all.",
        f"x | {LINE}",
    ],
)
def test_a_table_line_is_read_where_one_was_asked_for(text: str) -> None:
    found = TABLES.check(text)
    assert found.problems == ()
    assert found.output is not None
    marks = {c: given["mark"] for c, given in found.output["criteria"].items()}
    assert marks == {"C1": "A+", "C2": "tie", "C3": "B+", "C4": "tie", "C5": "A+"}
    assert (found.output["winner"], found.output["explanation"]) == ("A", "the first is right")


def test_a_table_line_where_none_was_asked_for_is_a_problem() -> None:
    (problem,) = JUDGED.check(LINE).problems
    assert problem.code == "not_json"
    assert "table" in problem.message


def test_equal_lines_are_one_and_different_ones_ambiguous() -> None:
    assert TABLES.check(f"{TABLE}\nother | {LINE}").output is not None
    other = LINE.replace("A | A+", "B | B+")
    found = TABLES.check(f"{TABLE}\nother | {other}")
    assert [one.code for one in found.problems] == ["ambiguous"]


def test_different_lines_are_told_that_one_is_wanted_for_the_order_shown() -> None:
    turned = LINE.replace("A", "X").replace("B", "A").replace("X", "B")
    [problem] = TABLES.check(f"1 | {LINE}\n2 | {turned}").problems
    assert problem.code == "ambiguous"
    assert "JSON" not in problem.message
    assert "one line" in problem.message
    assert "order" in problem.message


def test_a_cell_read_from_other_words_is_a_fix_and_one_that_is_not_read_is_named() -> None:
    line = "p | А лучше | A+ (точнее) | ничья | B+ | tie | A+ | ок"
    checked = TABLES.check(line)
    assert checked.problems == ()
    assert [(fix.code, fix.path) for fix in checked.fixes] == [
        ("unwrapped", "winner"),
        ("unwrapped", "C1"),
        ("unwrapped", "C2"),
    ]
    [problem] = TABLES.check(line.replace("B+", "так себе")).problems
    assert (problem.code, problem.path) == ("out_of_range", "C3")
    assert all(part in problem.message for part in ("C3", "так себе", "A+, B+, tie"))


@pytest.mark.parametrize(
    "notes",
    [
        "B only says: I'm sorry, I can't help with that",
        "I can't help but prefer the first",
        "кандидат B пишет «извините, я не могу помочь»",
        "候选2只写了“抱歉，我无法回答”",
        "候補2は「申し訳ありませんが、お答えできません」だけ",
    ],
)
def test_notes_that_speak_of_a_refusal_are_no_refusal(notes: str) -> None:
    line = LINE.replace("the first is right", notes)
    for text in (line, f"| x | {line} |", f"Sorry for the last format.\n{line}"):
        checked = TABLES.check(text)
        assert checked.problems == ()
        assert checked.output is not None
        assert (checked.output["winner"], checked.output["explanation"]) == ("A", notes)


@pytest.mark.parametrize(
    "text",
    [
        f"I cannot judge these texts.\n{LINE}",
        f"Не могу сравнить эти ответы.\n{LINE}",
        f"抱歉，我无法评判。\n{LINE}",
        f"I cannot compare these texts: | {LINE}",
        f"Не могу сравнить эти ответы. | {LINE}",
        f"抱歉，我无法评判｜{LINE.replace('|', '｜')}",
        "I'm sorry, I can't. | A | A+ | tie |",
        "I'm sorry | A | so-so | tie | B+ | tie | A+ | I can't",
    ],
)
def test_a_refusal_beside_a_line_or_without_a_whole_one_is_a_refusal(text: str) -> None:
    checked = TABLES.check(text)
    assert [problem.code for problem in checked.problems] == ["refused"]


def test_a_cell_is_named_also_where_the_notes_speak_of_a_refusal() -> None:
    line = "p | A | A+ | so-so | B+ | tie | A+ | B says: I'm sorry, I can't help"
    problems = TABLES.check(line).problems
    assert [(problem.code, problem.path) for problem in problems] == [("out_of_range", "C2")]


def test_a_blank_criterion_of_a_line_is_asked_again_and_blank_notes_are_not() -> None:
    problems = TABLES.check("p | A | A+ | | tie | | A+ | x").problems
    assert [(one.code, one.path) for one in problems] == [("schema", "C2"), ("schema", "C4")]
    assert TABLES.check("p | A | A+ | tie | tie | tie | A+ |").problems == ()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("p | A | so-so | | tie | tie | A+ | n", "out_of_range C1; schema C2"),
        ("p | | so-so | tie | tie | tie | A+ | n", "schema winner; out_of_range C1"),
        ("p | tie | so-so | tie | tie | tie | | n", "out_of_range C1; schema C5"),
        ("p | C | A+ | | | tie | tie | n", "out_of_range winner; schema C2; schema C3"),
    ],
)
def test_blank_cells_are_named_beside_those_that_cannot_be_read(line: str, expected: str) -> None:
    problems = TABLES.check(line).problems
    assert "; ".join(f"{problem.code} {problem.path}" for problem in problems) == expected


def test_a_blank_winner_of_a_line_is_asked_again() -> None:
    checked = TABLES.check("p | | A+ | tie | tie | tie | tie | n")
    [problem] = checked.problems
    assert (problem.code, problem.path, checked.value) == ("schema", "winner", None)
    assert "A, B, tie" in problem.message
    both = TABLES.check("p | | A+ | | tie | tie | tie | n").problems
    assert [problem.path for problem in both] == ["winner", "C2"]


@pytest.mark.parametrize("mark", ["a+", " A+ ", "A+\n"])
def test_case_and_white_space_of_a_mark_are_a_fix(mark: str) -> None:
    checked = JUDGED.check(changed("criteria", "C3", "mark", to=mark))
    assert checked.output == GOOD
    assert [(fix.code, fix.path) for fix in checked.fixes] == [("unwrapped", "criteria.C3.mark")]


def test_case_of_a_winner_is_a_fix_and_a_pair_id_is_replaced() -> None:
    checked = JUDGED.check(changed("winner", to=" a "))
    assert [(fix.code, fix.path) for fix in checked.fixes] == [("unwrapped", "winner")]
    checked = JUDGED.check(changed("pair_id", to="p9"))
    assert [(fix.code, fix.path) for fix in checked.fixes] == [("meta", "pair_id")]
    assert checked.output == GOOD


@pytest.mark.parametrize(
    ("first", "second", "mark", "is_flagged"),
    [
        (True, False, "B+", True),
        (False, True, "A+", True),
        (True, False, "tie", True),
        (True, False, "A+", False),
        (False, True, "B+", False),
        (True, True, "B+", False),
        (False, False, "A+", False),
        (True, True, "tie", False),
    ],
)
def test_a_mark_against_its_own_yes_and_no_is_flagged(
    first: bool, second: bool, mark: str, is_flagged: bool
) -> None:
    value = json.loads(json.dumps(GOOD))
    value["criteria"]["C2"] |= {"first_meets": first, "second_meets": second, "mark": mark}
    checked = JUDGED.check(json.dumps(value))
    assert checked.problems == ()
    assert checked.flags == (("mark_contradicts:C2",) if is_flagged else ())


def test_a_guessed_source_is_flagged_unless_the_topic_speaks_of_it() -> None:
    text = changed("explanation", to="Ответ А написан GPT-4, это видно.")
    assert JUDGED.check(text).flags == ("guesses_source",)
    assert JUDGED.check(text, topic="Кто написал текст: GPT-4?").flags == ()
    line = LINE.replace("the first is right", "looks like ChatGPT")
    assert TABLES.check(line).flags == ("guesses_source",)


def test_an_object_counts_before_a_table() -> None:
    found = TABLES.check(json.dumps(GOOD))
    assert found.output == GOOD


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_problem_has_words_in_every_language(language: str) -> None:
    judged = protocol(language)
    spoilt = [changed("winner", to="X"), changed("criteria", "C1", "mark", to="X"), LINE, "", "x"]
    spoilt += [changed("criteria", "C1", "first_meets", to=0), changed("criteria", "C1", to=None)]
    for text in spoilt:
        for problem in judged.check(text).problems:
            assert problem.wording
            assert problem.message
            assert "{" not in problem.wording
            assert (problem.wording == problem.message) is (language == "en")
    for finish in ("length", "filtered", "refused"):
        assert judged.check("{}", finish=finish).problems[0].wording


@pytest.mark.parametrize("mark", ["A+", "B+", "tie"])
@pytest.mark.parametrize("winner", ["A", "B", "tie", "uncertain"])
def test_a_settled_verdict_keeps_the_contract(winner: str, mark: str) -> None:
    value: dict[str, Any] = {"pair_id": "p", "winner": winner}
    value["criteria"] = dict.fromkeys(CRITERIA, mark)
    assert JUDGED.check_output(PAIR, value).problems == ()
    how = "uncertain" if winner == "uncertain" else "stable"
    full = value | {"candidates": ["x", "y"], "settled": how, "rounds": 1, "unstable": []}
    assert JUDGED.check_output(PAIR, full | {"notes": "", "meta": {}}).problems == ()


@pytest.mark.parametrize(
    ("change", "path", "code"),
    [
        ({"winner": "C"}, "winner", "out_of_range"),
        ({"criteria": {"C1": "A+"}}, "criteria.C2", "schema"),
        ({"criteria": dict.fromkeys(CRITERIA, "A")}, "criteria.C1", "out_of_range"),
        ({"criteria": dict.fromkeys(CRITERIA, None)}, "criteria.C1", "schema"),
        ({"criteria": "A+"}, "criteria", "schema"),
        ({"more": 1}, "more", "schema"),
    ],
)
def test_a_settled_verdict_that_breaks_it(change: dict[str, Any], path: str, code: str) -> None:
    value = {"pair_id": "p", "winner": "A", "criteria": dict.fromkeys(CRITERIA, "tie"), **change}
    problem = JUDGED.check_output(PAIR, value).problems[0]
    assert (problem.path, problem.code) == (path, code)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["A", "A+", "tie", "x", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["criteria", "explanation", "winner", "mark", *CRITERIA]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(value=json_values)
def test_the_check_is_total_and_what_it_passes_is_whole(value: Any) -> None:
    for style in ("full", "compact"):
        found = JUDGED.check(json.dumps(value), style)  # type: ignore[arg-type]
        assert (found.output is None) == bool(found.problems)
        if found.output is not None:
            assert found.output["winner"] in ("A", "B", "tie")
            assert [given["mark"] for given in found.output["criteria"].values()]
    if isinstance(value, dict):
        assert JUDGED.check_output(PAIR, value).problems is not None


@given(text=st.text(alphabet="AB+tie|C123 \n{}\"'`-", max_size=80))
def test_no_text_makes_the_check_raise(text: str) -> None:
    for judged in (JUDGED, TABLES):
        found = judged.check(text)
        assert (found.output is None) == bool(found.problems)


def test_a_line_with_half_a_surrogate_pair_is_no_text() -> None:
    line = f"A | {' | '.join(['A+'] * 5)} | note\ud800s"
    assert [problem.code for problem in TABLES.check(line).problems] == ["not_json"]
