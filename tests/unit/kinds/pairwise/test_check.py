"""The pairwise contract held against table lines, compact replies and settled verdicts. What one
broken rule comes to stands in the tables of `broken`."""

import json

import pytest

from tests.cases import cases
from tests.suites import CRITERIA, pair_reply
from tests.unit.kinds.contracts import change, outcome_of
from tests.unit.kinds.pairing import PAIR, protocol
from tests.unit.kinds.tables import cells

JUDGED = protocol()
TABLES = protocol(tables=True)
GOOD = json.loads(pair_reply("A+"))
LINE = "A | A+ | tie | B+ | tie | A+ | the first is right"
TABLE = f"pair_id | winner | C1 | C2 | C3 | C4 | C5 | notes\nanything | {LINE}"


def found_in(text):
    """Return the fixes, problems and flags of a reply that may be a table line."""
    checked = TABLES.check(text)
    assert (checked.output is None) == bool(checked.problems)
    return outcome_of(checked)


def test_a_good_reply_is_kept_as_it_is():
    for judged, text in ((JUDGED, ""), (TABLES, ""), (JUDGED, "<think>A+</think>")):
        found = judged.check(text + json.dumps(GOOD))
        assert (found.problems, found.flags, found.output) == ((), (), GOOD)
        assert [fix.code for fix in found.fixes] == (["unwrapped"] if text else [])


def test_every_problem_is_named_where_it_stands():
    text = pair_reply("X").replace('"X"', "null")
    places = [f"criteria.{name}.mark" for name in CRITERIA]
    assert [one.path for one in JUDGED.check(text).problems] == places


def test_a_compact_reply_needs_marks_alone():
    marks = {c: {"mark": "B+"} for c in CRITERIA}
    text = json.dumps({"criteria": marks, "explanation": "", "winner": "B"})
    assert JUDGED.check(text).problems
    found = JUDGED.check(text, "compact")
    assert found.output["criteria"]["C1"] == {
        "first_meets": None,
        "second_meets": None,
        "comment": None,
        "mark": "B+",
    }
    assert JUDGED.check(json.dumps(GOOD), "compact").output == GOOD


@cases
def test_a_table_line_is_read_where_one_was_asked_for(text):
    found = TABLES.check(text)
    assert found.problems == ()
    marks = {c: given["mark"] for c, given in found.output["criteria"].items()}
    assert marks == dict(
        cells("""
C1 => A+
C2 => tie
C3 => B+
C4 => tie
C5 => A+
""")
    )
    assert (found.output["winner"], found.output["explanation"]) == ("A", "the first is right")


def test_a_table_line_where_none_was_asked_for_is_a_problem():
    (problem,) = JUDGED.check(LINE).problems
    assert problem.code == "not_json"
    assert "table" in problem.message


def test_equal_lines_are_one_and_different_ones_ambiguous():
    assert found_in(f"{TABLE}\nother | {LINE}") == []
    other = LINE.replace("A | A+", "B | B+")
    assert found_in(f"{TABLE}\nother | {other}") == ["ambiguous"]


def test_different_lines_are_told_that_one_is_wanted_for_the_order_shown():
    turned = LINE.replace("A", "X").replace("B", "A").replace("X", "B")
    [problem] = TABLES.check(f"1 | {LINE}\n2 | {turned}").problems
    assert problem.code == "ambiguous"
    assert "JSON" not in problem.message
    assert "one line" in problem.message
    assert "order" in problem.message


def test_a_cell_read_from_other_words_is_a_fix_and_one_that_is_not_read_is_named():
    line = "p | А лучше | A+ (точнее) | ничья | B+ | tie | A+ | ок"
    assert found_in(line) == ["fix unwrapped C1", "fix unwrapped C2", "fix unwrapped winner"]
    [problem] = TABLES.check(line.replace("B+", "так себе")).problems
    assert (problem.code, problem.path) == ("out_of_range", "C3")
    assert all(part in problem.message for part in ("C3", "так себе", "A+, B+, tie"))


@cases
def test_notes_that_speak_of_a_refusal_are_no_refusal(notes):
    line = LINE.replace("the first is right", notes)
    for text in (line, f"| x | {line} |", f"Sorry for the last format.\n{line}"):
        checked = TABLES.check(text)
        assert checked.problems == ()
        assert (checked.output["winner"], checked.output["explanation"]) == ("A", notes)


@cases
def test_a_refusal_beside_a_line_or_without_a_whole_one_is_a_refusal(text):
    assert found_in(text) == ["refused"]


@cases
def test_a_blank_criterion_of_a_line_is_asked_again_and_blank_notes_are_not(row):
    """Beside cells that cannot be read, and notes that speak of a refusal."""
    line, _, expected = row.partition(" =>")
    assert "; ".join(found_in(line)) == expected.strip()


def test_a_blank_winner_of_a_line_is_asked_again():
    [problem] = TABLES.check("p | | A+ | tie | tie | tie | tie | n").problems
    assert (problem.code, problem.path) == ("schema", "winner")
    assert "A, B, tie" in problem.message


@cases
def test_case_and_white_space_are_a_fix_and_a_pair_id_is_replaced(changes, fix):
    checked = JUDGED.check(change(GOOD, changes))
    assert (checked.output, outcome_of(checked)) == (GOOD, [f"fix {fix}"])


@pytest.mark.parametrize(
    ("first", "second", "contradicted"),
    [
        (True, False, ["B+", "tie"]),
        (False, True, ["A+", "tie"]),
        (True, True, []),
        (False, False, []),
    ],
)
def test_a_mark_against_its_own_yes_and_no_is_flagged(first, second, contradicted):
    flagged = []
    for mark in ("A+", "B+", "tie"):
        meets = {"first_meets": first, "second_meets": second, "mark": mark}
        criterion = GOOD["criteria"]["C2"] | meets
        criteria = GOOD["criteria"] | {"C2": criterion}
        checked = JUDGED.check(json.dumps(GOOD | {"criteria": criteria}))
        assert checked.problems == ()
        flagged += [mark] if checked.flags == ("mark_contradicts:C2",) else []
    assert flagged == contradicted


def test_a_guessed_source_is_flagged_unless_the_topic_speaks_of_it():
    text = change(GOOD, 'explanation = "Ответ А написан GPT-4, это видно."')
    assert JUDGED.check(text).flags == ("guesses_source",)
    assert JUDGED.check(text, topic="Кто написал текст: GPT-4?").flags == ()
    assert found_in(LINE.replace("the first is right", "looks like ChatGPT")) == [
        "flag guesses_source"
    ]


def test_a_table_line_in_json_words_is_told_in_every_language():
    for language in ("ru", "zh", "ja"):
        (problem,) = protocol(language).check(LINE).problems
        assert problem.wording != problem.message and "{" not in problem.wording


@pytest.mark.parametrize("winner", ["A", "B", "tie", "uncertain"])
def test_a_settled_verdict_keeps_the_contract(winner):
    for mark in ("A+", "B+", "tie"):
        criteria = dict.fromkeys(CRITERIA, mark)
        value = {"pair_id": "p", "winner": winner, "criteria": criteria}
        assert JUDGED.check_output(PAIR, value).problems == ()
        how = "uncertain" if winner == "uncertain" else "stable"
        full = value | {"candidates": ["x", "y"], "settled": how, "rounds": 1, "unstable": []}
        assert JUDGED.check_output(PAIR, full | {"notes": "", "meta": {}}).problems == ()


@cases
def test_a_settled_verdict_that_breaks_it(changes, problem):
    value = {"pair_id": "p", "winner": "A", "criteria": dict.fromkeys(CRITERIA, "tie")}
    found = JUDGED.check_output(PAIR, json.loads(change(value, changes))).problems[0]
    assert f"{found.code} {found.path}" == problem


def test_a_line_with_half_a_surrogate_pair_is_no_text():
    assert found_in(f"A | {' | '.join(['A+'] * 5)} | note\ud800s") == ["not_json"]
