"""Conditions that code decides, and regular expressions that cannot hang it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.kinds.conditions import (
    PATTERN_PARTS,
    CodeCondition,
    ConditionError,
    Hit,
    TimedOut,
    check_pattern,
    count_parts,
    decide,
    parse_condition,
)
from tests.cases import cases
from tests.sentences import refused
from tests.unit.kinds.tables import cells, lines


def condition_of(key, value, line=1):
    condition = parse_condition(f"{key}: {value}", line)
    assert condition is not None
    return condition


# Each further letter doubles the ways to fail: no machine comes to the end of these.
HOSTILE = CodeCondition("must_match", 1, "(a|aa)+$", "")
VICTIM = "a" * 400 + "!"


def test_must_match_holds_when_nothing_is_found():
    condition = condition_of("must_match", "/canberra/i", 4)
    assert decide([condition], "It is CANBERRA.") is None
    assert decide([condition], "It is Sydney.") == Hit(
        condition, {"pattern": "/canberra/i", "found": ""}
    )


def test_must_not_match_holds_when_something_is_found_and_says_what():
    condition = condition_of("must_not_match", r"/\bсидне\w*/i", 4)
    assert decide([condition], "Это Канберра.") is None
    assert decide([condition], "Это Сидней!") == Hit(
        condition, {"pattern": r"/\bсидне\w*/i", "found": "Сидней"}
    )


@pytest.mark.parametrize(
    ("key", "holds"), [("max_chars", [False, False, True]), ("min_chars", [True, False, False])]
)
def test_lengths_are_code_points_and_the_limit_itself_is_fine(key, holds):
    condition = condition_of(key, "3", 1)
    outcomes = [decide([condition], text) for text in ("漢𠮷", "漢𠮷字", "漢𠮷字👍")]
    assert [outcome is not None for outcome in outcomes] == holds
    hit = next(outcome for outcome in outcomes if outcome)
    assert isinstance(hit, Hit)
    assert hit.about == {"limit": "3", "length": "4" if key == "max_chars" else "2"}


def test_the_first_condition_that_holds_is_told():
    conditions = [
        CodeCondition("max_chars", 1, limit=99),
        CodeCondition("min_chars", 2, limit=5),
        CodeCondition("min_chars", 3, limit=9),
    ]
    hit = decide(conditions, "abc")
    assert isinstance(hit, Hit)
    assert hit.condition.line == 2
    assert decide([], "abc") is None


@cases
def test_each_flag_does_what_it_says(flags, pattern, text):
    with_flag, without = (CodeCondition("must_match", 1, pattern, given) for given in (flags, ""))
    assert decide([with_flag], text) is None
    assert isinstance(decide([without], text), Hit)


def test_a_hostile_pattern_ends_as_a_value():
    assert decide([HOSTILE], VICTIM, seconds=0.01) == TimedOut(HOSTILE)


def test_what_cannot_be_decided_is_no_pass_even_if_a_later_condition_holds():
    later = CodeCondition("max_chars", 2, limit=1)
    assert decide([HOSTILE, later], VICTIM, seconds=0.01) == TimedOut(HOSTILE)
    assert isinstance(decide([later, HOSTILE], VICTIM, seconds=0.01), Hit)


@cases
def test_which_items_are_for_code(entry, condition):
    assert parse_condition(entry, 3) == (CodeCondition(*condition) if condition else None)


@cases
def test_how_a_pattern_may_be_written(value, pattern, flags):
    assert condition_of("must_match", value, 1) == CodeCondition("must_match", 1, pattern, flags)


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        *cells("""
must_match => a b => no_pattern
must_match => // => empty_pattern
must_match => /a/b/ => no_pattern
must_match => /a/u => unknown_flag u
must_match => /*a/ => not_regex
max_chars => 1,000 => no_limit
must_not_contain => /x/ => misspelt_condition must_not_match
must_not_mention => /x/ => misspelt_condition must_not_match
max_characters => 3 => misspelt_condition max_chars
must_mtach => /x/ => misspelt_condition must_match
must_be_polite => /x/ => unknown_condition must_be_polite
max_q => 3 => unknown_condition max_q
"""),
        ("must_match", "", "no_pattern"),
        ("must_match", f"/{'a' * 10_001}/", "long_pattern"),
        ("max_chars", "", "no_limit"),
        ("min_chars", "9" * 5000, "no_limit"),
    ],
)
def test_a_wrong_condition_is_refused(key, value, told):
    reason, _, name = told.partition(" ")
    with refused(ConditionError, f"kinds.{reason}", name):
        condition_of(key, value, 1)


@cases
def test_a_pattern_that_would_fill_memory_is_not_compiled(pattern, flags):
    with refused(ConditionError, "kinds.huge_pattern"):
        check_pattern(pattern, flags)


@pytest.mark.parametrize(
    "call",
    lines("""
(?R)
(?1)
(?-1)
(?&n)
(?P>n)
"""),
)
def test_a_pattern_that_calls_itself_is_refused(call):
    with refused(ConditionError, "kinds.recursive_pattern"):
        check_pattern(f"(?P<n>a{call}?b)")


@pytest.mark.parametrize(
    "pattern",
    [
        *lines("""
\\b(?:I|we) (?:can|will) not\\b
^(?:[-*] .+\\n?){3,7}$
(?<!\\d)\\d{4}-\\d{2}-\\d{2}(?!\\d)
\\p{Han}{2,}
\\(\\?R\\)
https?://(?:[\\w-]+\\.)+\\w+(?:/[^\\s]*)?
"""),
        "|".join(f"word{n}" for n in range(1000)),
    ],
)
def test_ordinary_patterns_are_fine(pattern):
    check_pattern(pattern)


def test_an_escaped_bracket_closes_no_group():
    assert count_parts(r"(a\)){9}".replace(r"\)", "a")) == (7 + 9) * 9
    assert count_parts("a+") == 4
    assert count_parts("(a){2,}(b)*") == (11 + 3) * 3


ATOMS = st.sampled_from(
    lines(r"""
a
.
\w
[ab]
\)
漢
[^)]
\p{L}
(?=a)
""")
)
COUNTS = st.sampled_from(
    [
        *lines("""
*
+
?
{2}
{3,}
{,4}
{1,2}
+?
{9}
*+
"""),
        "",
    ]
)
PATTERNS = st.recursive(
    st.tuples(ATOMS, COUNTS).map("".join),
    lambda inner: st.one_of(
        st.tuples(inner, COUNTS).map(lambda pair: f"({pair[0]}){pair[1]}"),
        st.lists(inner, min_size=1, max_size=4).map("|".join),
        st.lists(inner, min_size=1, max_size=4).map("".join),
    ),
    max_leaves=12,
)


@given(PATTERNS, st.text("ab漢) \n", max_size=60), st.sampled_from(["", "i", "x", "sm"]))
@settings(max_examples=200, deadline=None)
def test_a_pattern_is_refused_or_decides_every_answer(pattern, answer, flags):
    try:
        check_pattern(pattern, flags)
    except ConditionError:
        return
    must, must_not = (
        CodeCondition("must_match", 1, pattern, flags),
        CodeCondition("must_not_match", 1, pattern, flags),
    )
    outcomes = [decide([one], answer) for one in (must, must_not)]
    if not any(isinstance(outcome, TimedOut) for outcome in outcomes):
        assert (outcomes[0] is None) != (outcomes[1] is None)


@given(st.text(max_size=30), st.text(max_size=4))
@settings(max_examples=300, deadline=None)
def test_any_text_as_a_pattern_compiles_or_is_refused(pattern, flags):
    try:
        check_pattern(pattern, flags)
    except ConditionError as error:
        assert str(error)


def test_the_bound_is_above_what_people_write():
    assert count_parts(r"(?:.{1,80}\n){1,30}") < PATTERN_PARTS
