"""The weighted contract: scales, totals, critical fails and inferred types of a reply. What one
broken rule comes to stands in the tables of `broken`."""

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand import jsontext
from evenhand.kinds.protocol import LANGUAGES
from evenhand.kinds.weighted.verdict import check_reply, cut, rescale, total_of
from tests.cases import cases
from tests.unit.kinds.contracts import change
from tests.unit.kinds.grading import (
    DIMENSIONS,
    FACT,
    KEYS,
    PLAIN,
    WEIGHTS,
    protocol,
    reply,
    said,
    task_of,
    under,
)

FIRST, SECOND, THIRD = DIMENSIONS
WORDS = protocol().words
FAILED = {"critical_fail": True, "critical_fail_reason": "It lies."}


def check(text, rubric=FACT, **more):
    return protocol().check(text, under(rubric), **more)


def check_total(scores, total, rubric=FACT, **more):
    return check(said(*scores, total_score=total, **more), rubric)


def codes(checked):
    return [(one.code, one.path) for one in checked.problems]


def fixes(checked):
    return [(one.code, one.path) for one in checked.fixes]


def by_dimension(*values):
    return dict(zip(DIMENSIONS, values, strict=True))


GOOD_FULL = {"task_name": "capital", "task_type": "fact", "weights": WEIGHTS["fact"]}
GOOD_FULL |= {"total_score": 75}


@cases
def test_what_code_knows_is_a_fix_and_changes_no_output(changes):
    for given_reply in (GOOD_FULL | reply(), dict(reversed((GOOD_FULL | reply()).items()))):
        checked = check(change(given_reply, changes))
        assert codes(checked) == []
        assert checked.output is not None
        assert list(checked.output) == KEYS
        assert checked.output == GOOD_FULL | reply()


CREATIVE = by_dimension(27, 15, 30)
RESCALED = [("rescaled", f"score.{FIRST}"), ("rescaled", f"score.{THIRD}")]
TYPE, WEIGHT = ("meta", "task_type"), ("weights", "weights")


@cases
def test_scores_on_the_scale_of_another_type_are_rescaled_and_flagged(more, logged):
    checked = check(said(score=CREATIVE, **more))
    assert codes(checked) == []
    assert sorted(fixes(checked)) == sorted([*RESCALED, *map(tuple, logged)])
    assert checked.flags == ("other_type",)
    assert checked.output["score"] == {FIRST: 54, SECOND: 15, THIRD: 7.5}
    assert checked.output["total_score"] == 76.5
    assert (checked.output["task_type"], checked.output["weights"]) == ("fact", WEIGHTS["fact"])


def test_a_score_is_held_to_the_scale_on_which_it_stands():
    checked = check(said(31, 15, 40, weights=WEIGHTS["creative"]))
    assert codes(checked) == [("out_of_range", f"score.{FIRST}")]
    assert "from 0 to 30" in checked.problems[0].message


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("other", [{"weights": WEIGHTS["creative"]}, {"task_type": "creative"}])
def test_what_is_asked_again_holds_for_a_reply_without_weights(other, language):
    """The asked form has none: a judge that keeps to the range it is told must not be graded on
    another scale."""
    checked = protocol(language).check(said(55, 15, 9, **other), under(FACT))
    [problem] = checked.problems
    assert (problem.code, problem.path) == ("out_of_range", f"score.{FIRST}")
    for text in (problem.message, problem.wording):
        assert "60" in text and text.index("30") < text.index("60")


def test_another_type_under_the_right_weights_is_flagged_and_not_rescaled():
    checked = check(said(task_type="creative", weights=WEIGHTS["fact"]))
    assert (fixes(checked), checked.flags) == ([("meta", "task_type")], ("other_type",))
    assert check(said(inferred_task_type="creative")).flags == ("other_type",)
    assert check(said(**GOOD_FULL)).flags == check(said(weights=None)).flags == ()


def test_weights_beside_an_inferred_type_say_the_scale_too():
    full = {"task_type": "creative", "inferred_task_type": "creative"}
    right = check(said(27, 15, 30, **full, weights=WEIGHTS["creative"]), PLAIN)
    assert (fixes(right), right.flags) == ([], ())
    other = check(said(54, 15, 8, **full, weights=WEIGHTS["fact"]), PLAIN)
    assert other.output["score"] == {FIRST: 27, SECOND: 15, THIRD: 32}
    assert other.flags == ("other_type",)
    unnamed = check(said(27, 15, 30, **full | {"task_type": "未記載"}), PLAIN)
    assert (codes(unnamed), fixes(unnamed)) == ([], [("meta", "task_type")])


def test_weights_that_say_nothing_of_a_dimension_that_counts_are_asked_for_again():
    task = task_of({"a": 50, "b": 50}, {"a": 100, "b": 0})
    text = said(score={"a": 90, "b": 0}, reasoning={"a": "x", "b": "x"}, weights={"a": 100, "b": 0})
    assert codes(check_reply(text, task, WORDS)) == [("out_of_range", "weights")]
    text = said(score={"a": 90, "b": 0}, reasoning={"a": "x", "b": "x"}, task_type="t1")
    assert codes(check_reply(text, task, WORDS)) == [("out_of_range", "task_type")]


def test_what_is_asked_again_names_place_value_and_what_is_allowed():
    [weights] = check(said(weights={FIRST: 100})).problems
    assert all(part in weights.message for part in ("weights:", f'"{FIRST}":100', "60", "30"))
    [kind] = check(said(task_type="poetry")).problems
    assert all(part in kind.message for part in ("task_type:", '"poetry"', "fact"))


def test_after_a_critical_fail_no_scale_and_no_reasons_are_asked_for():
    ended = FAILED | {"weights": {FIRST: 1}}
    for reasoning in (None, {}, dict.fromkeys(DIMENSIONS, ""), dict.fromkeys(DIMENSIONS)):
        checked = check(said(0, 0, 0, **ended, reasoning=reasoning, task_type="poetry"))
        assert codes(checked) == []
        assert fixes(checked) == [
            ("zeroed", "reasoning"),
            ("meta", "task_type"),
            ("weights", "weights"),
        ]


def test_a_judge_that_fills_a_form_need_not_give_reasons():
    assert codes(check(said(reasoning=by_dimension("", "", "")), style="compact")) == []


def test_a_critical_fail_needs_a_condition_that_the_judge_decides():
    failed = said(0, 0, 0, **FAILED)
    assert codes(check(failed)) == []
    by_code = FACT.replace("It lies.", "max_chars: 500")
    for rubric in ("task_type: fact\n\n- a point\n", FACT.replace("It lies.", "none"), by_code):
        assert codes(check(failed, rubric)) == [("schema", "critical_fail")]


@pytest.mark.parametrize("scores", [(50, 20, 5), (0, 0, 0), (None, 0, 0), (900, -1, 0)])
def test_a_critical_fail_zeroes_whatever_was_scored(scores):
    """Whatever total stands beside it."""
    checked = check(said(*scores, **FAILED))
    assert fixes(checked) == ([] if scores == (0, 0, 0) else [("zeroed", "score")])
    for failed in (checked, check_total((9, 9, 8), 89, **FAILED)):
        assert failed.output is not None
        zeroed = {"score": by_dimension(0, 0, 0), "total_score": 0}
        assert failed.output == failed.output | zeroed | FAILED
        assert failed.flags == ()


def test_after_a_critical_fail_code_fills_in_what_is_missing():
    failed = check(json.dumps(FAILED | {"confidence": "high"}))
    assert failed.output["score"] == by_dimension(0, 0, 0)
    assert all(failed.output["reasoning"].values())
    assert fixes(failed) == [("zeroed", "score"), ("zeroed", "reasoning")]


@pytest.mark.parametrize("name", WEIGHTS)
def test_a_type_that_is_not_given_is_inferred_and_sets_the_maxima(name):
    most = list(WEIGHTS[name].values())
    checked = check(said(*most, inferred_task_type=name), PLAIN)
    assert (checked.output["task_type"], checked.output["inferred_task_type"]) == (name, name)
    assert (checked.output["weights"], checked.output["total_score"]) == (WEIGHTS[name], 100)
    over = [most[0] + 1, *most[1:]]
    assert codes(check(said(*over, inferred_task_type=name), PLAIN)) == [
        ("out_of_range", f"score.{FIRST}")
    ]


@pytest.mark.parametrize("named", [None, "poetry", 3, ["fact"]])
def test_a_type_that_is_not_given_must_be_one_of_the_known(named):
    checked = check(said(inferred_task_type=named), PLAIN)
    code = "out_of_range" if isinstance(named, str) else "schema"
    assert codes(checked) == [(code, "inferred_task_type")]
    assert "fact, creative, speculative" in checked.problems[0].message


@given(st.text(alphabet="ab 字か。っщ😀\n\u0301", max_size=500))
def test_a_cut_text_is_short_and_the_beginning_of_the_long_one(text):
    made = cut(text)
    assert len(made) <= 200
    if len(text) <= 200:
        assert made == text
    else:
        assert made.endswith("…")
        assert text.startswith(made[:-1])
        lost = text[len(made) - 1 : 199]
        assert len(lost.strip()) <= 40


CUT = {
    "en": "The answer names the capital and says nothing that is wrong about it. " * 5,
    "ru": "Ответ называет столицу и не говорит о ней ничего неверного. " * 5,
    "zh": "答案指出了首都而且没有说错任何事情因此这一项应当得到满分" * 9,
    "ja": "首都を正しく挙げており誤りも見当たらないためこの項目は満点とする" * 9,
    "one word": "a" * 300,
    "zh with a foreign word": "答案提到 Python 并且" + "说得很清楚" * 60,
    "emoji": "ok" + "😀" * 300,
}


@pytest.mark.parametrize("name", CUT)
def test_an_over_long_reasoning_is_cut_at_a_word_where_there_are_words(name):
    text = CUT[name]
    made = cut(text)
    assert made.endswith("…")
    assert text.startswith(made[:-1])
    if name in ("en", "ru"):
        assert 180 < len(made) <= 200
        assert text[len(made) - 1] == " "
    else:
        assert len(made) == 200
    checked = check(said(reasoning={FIRST: text, SECOND: "b" * 200, THIRD: "x"}))
    assert fixes(checked) == [("cut", f"reasoning.{FIRST}")]
    assert checked.uncut == {f"reasoning.{FIRST}": text}
    assert checked.output["reasoning"] == {FIRST: made, SECOND: "b" * 200, THIRD: "x"}


@pytest.mark.parametrize("number", ["1e999", "-1e999", "9" * 400, "9" * 5000, "-" + "9" * 5000])
def test_a_score_beyond_all_bounds_is_out_of_range_where_it_would_be_rescaled_too(
    number,
):
    text = said(0.125, 20, 5, inferred_task_type="creative").replace("0.125", number)
    for rubric, style in ((FACT, "full"), (PLAIN, "compact")):
        checked = check(text, rubric, style=style)
        assert codes(checked) == [("out_of_range", f"score.{FIRST}")]
        assert f"score.{FIRST}" not in [path for _, path in fixes(checked)]


amounts = st.one_of(
    st.integers(0, 100), st.decimals(0, 100, places=2).map(float), st.floats(0, 100)
)


@st.composite
def rows(draw):
    """Weights of one to five dimensions that add up to 100, to a tenth."""
    cuts = sorted(draw(st.lists(st.integers(0, 1000), max_size=4)))
    tenths = [b - a for a, b in zip([0, *cuts], [*cuts, 1000], strict=True)]
    return {f"d{i}": n // 10 if n % 10 == 0 else n / 10 for i, n in enumerate(tenths)}


@given(rows(), st.data())
def test_totals_are_exact_sums_of_what_was_given_and_never_above_100(row, data):
    task = task_of(row, dict.fromkeys(row, 100))
    scores = {name: data.draw(amounts) for name in row}
    checked = check_reply(said(score=scores, reasoning=dict.fromkeys(row, "x")), task, WORDS)
    over = [f"score.{name}" for name, score in scores.items() if score > row[name]]
    assert [one.path for one in checked.problems] == over
    if over:
        assert checked.output is None
        return
    exact = sum((Decimal(repr(float(score))) for score in scores.values()), Decimal())
    assert Decimal(repr(float(checked.output["total_score"]))) == Decimal(repr(float(exact)))
    assert 0 <= checked.output["total_score"] <= 100
    assert list(checked.output) == KEYS
    assert checked.output["weights"] == row
    assert sum(map(Decimal, map(str, row.values()))) == 100
    assert jsontext.parse(jsontext.dump(checked.output)) == checked.output


def test_decimals_add_up_as_they_are_written():
    assert total_of({"a": 10.1, "b": 20.2}) == 30.3
    assert total_of({"a": 0.1, "b": 0.2, "c": 0.3}) == 0.6
    whole = total_of({"a": 10.5, "b": 20.5})
    assert (whole, type(whole)) == (31, int)
    assert total_of({"a": jsontext.parse("1E1"), "b": jsontext.parse("10.50")}) == 20.5
    assert total_of({"a": jsontext.parse("1e-99999999999999999999"), "b": 7}) == 7


@given(amounts, st.integers(1, 100), st.integers(0, 100))
def test_a_rescaled_score_keeps_its_share(score, old, new):
    share = min(score, old)
    assert 0 <= rescale(share, old, new) <= new
    assert rescale(old, old, new) == new
    assert rescale(0, old, new) == 0
    assert rescale(share, 0, new) == 0


@cases
def test_scores_whose_total_is_their_weighted_sum_are_rescaled_and_flagged(scores, total, expected):
    checked = check_total(scores, total)
    assert checked.output["score"] == by_dimension(*expected)
    assert checked.output["total_score"] == sum(expected)
    assert checked.flags == ("rescaled",)
    assert "rescaled" in {one.code for one in checked.fixes}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("scores", "total", "sum_"),
    [((50, 20, 5), 79, 75), ((9, 9, 8), 91, 26), ((0, 0, 0), 40, 0), ((50, 20, 5), 10**400, 75)],
)
def test_a_total_that_is_no_sum_of_the_scores_is_asked_again(scores, total, sum_, language):
    text = said(*scores, total_score=total)
    checked = protocol(language).check(text, under(FACT))
    [problem] = checked.problems
    assert (problem.code, problem.path, checked.output) == ("out_of_range", "total_score", None)
    for words in (problem.message, problem.wording):
        assert str(total)[:9] in words and str(sum_) in words
        assert '"logic_and_fact":60' in words.replace(" ", "")


@cases
def test_a_total_that_is_the_mean_of_small_scores_is_asked_again(scores, total):
    assert codes(check_total(scores, total)) == [("out_of_range", "total_score")]


@cases
def test_a_sum_is_taken_as_it_is_and_a_slip_computed_again(scores, total, expected):
    checked = check_total(scores, total)
    assert (checked.output["total_score"], checked.flags) == (expected, ())
    assert bool(checked.fixes) == (total != expected)


@pytest.mark.parametrize("extra", ["59/100", {}, None, [1], True])
def test_a_total_off_is_told_beside_a_score_of_no_dimension(extra):
    checked = check_total((50, 20, 5), 59, score=by_dimension(50, 20, 5) | {"total": extra})
    assert {path for _, path in codes(checked)} == {"total_score", "score.total"}


def test_a_total_off_is_told_beside_a_score_out_of_its_range():
    problems = codes(check_total((61, 20, 5), 75))
    assert [path for _, path in problems] == ["total_score", f"score.{FIRST}"]


def test_a_total_goes_by_the_weights_of_the_reply_or_of_the_task():
    creative = {"weights": WEIGHTS["creative"]}
    for scores, total in (((27, 15, 30), 72), ((27, 15, 30), 76.5), ((9, 5, 7.5), 72)):
        checked = check_total(scores, total, **creative)
        assert checked.output["score"] == by_dimension(54, 15, 7.5)
    assert check_total((9, 5, 7.5), 90, **creative).output is None
    inferred = check_total((9, 9, 8), 86, PLAIN, inferred_task_type="creative")
    assert inferred.output["score"] == by_dimension(27, 27, 32)


def test_weights_of_ones_own_are_summed_as_well():
    task = task_of({"a": 12.5, "b": 87.5, "c": 0}, {"a": 50, "b": 50, "c": 0})
    score = {"a": 10, "b": 5, "c": 7}
    text = said(score=score, reasoning=dict.fromkeys("abc", "x"), total_score=56.3)
    checked = check_reply(text, task, WORDS)
    assert checked.output["score"] == {"a": 12.5, "b": 43.75, "c": 0}
    assert checked.output["total_score"] == 56.25
