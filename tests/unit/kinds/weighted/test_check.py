"""The weighted contract: what is accepted, mended by code, or told to the judge."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand import jsontext
from evenhand.kinds.protocol import LANGUAGES
from evenhand.kinds.reply import Checked
from evenhand.kinds.weighted.verdict import check_reply, cut
from tests.unit.kinds.grading import (
    ANSWER,
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


def check(text: str, rubric: str = FACT, **more: Any) -> Checked:
    return protocol().check(text, under(rubric), **more)


def codes(checked: Checked) -> list[tuple[str, str]]:
    return [(one.code, one.path) for one in checked.problems]


def fixes(checked: Checked) -> list[tuple[str, str]]:
    return [(one.code, one.path) for one in checked.fixes]


def score_with(**changes: Any) -> dict[str, Any]:
    scores = dict(zip(DIMENSIONS, (50, 20, 5), strict=True)) | changes
    return {name: score for name, score in scores.items() if score is not ...}


GOOD_FULL = {
    "task_name": "capital",
    "task_type": "fact",
    "weights": WEIGHTS["fact"],
    "total_score": 75,
}

PROBLEMS: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "empty": ("", [("empty", "")]),
    "prose": ("It is fine, 75 points.", [("not_json", "")]),
    "a refusal": ("I'm sorry, I can't grade this.", [("refused", "")]),
    "prose around": (f"My grade:\n{said()}\nThat is all.", [("not_json", "")]),
    "a list": ("[1, 2]", [("schema", "")]),
    "cut off": (said()[:-30], [("truncated", "")]),
    "two verdicts": (said() + said(51, 20, 5), [("ambiguous", "")]),
    "a key twice": (said()[:-1] + ',"confidence":"low"}', [("ambiguous", "")]),
    "NaN": (said(float("nan"), 20, 5), [("not_json", "")]),
    "infinity": (said(float("inf"), 20, 5), [("not_json", "")]),
    "no score": (said(score=...), [("schema", "score")]),
    "no reasoning": (said(reasoning=...), [("schema", "reasoning")]),
    "no confidence": (said(confidence=...), [("schema", "confidence")]),
    "no critical_fail": (said(critical_fail=...), [("schema", "critical_fail")]),
    "nothing": (
        "{}",
        [
            ("schema", name)
            for name in reply()
            if name not in ("critical_fail_reason", "inferred_task_type")
        ],
    ),
    "an extra key": (said(overall=75), [("schema", "overall")]),
    "a comment": (said(_comment="x"), [("schema", "_comment")]),
    "a dimension missing": (said(score=score_with(**{THIRD: ...})), [("schema", f"score.{THIRD}")]),
    "a dimension more": (said(score=score_with(style=5)), [("schema", "score.style")]),
    "a reasoning missing": (
        said(reasoning={FIRST: "a", SECOND: "b"}),
        [("schema", f"reasoning.{THIRD}")],
    ),
    "a reasoning more": (
        said(reasoning=dict.fromkeys((*DIMENSIONS, "style"), "a")),
        [("schema", "reasoning.style")],
    ),
    "score no object": (said(score=75), [("schema", "score")]),
    "score a list": (said(score=[50, 20, 5]), [("schema", "score")]),
    "reasoning a text": (said(reasoning="fine"), [("schema", "reasoning")]),
    "a reason that is no text": (
        said(reasoning={FIRST: 1, SECOND: "b", THIRD: None}),
        [("schema", f"reasoning.{FIRST}"), ("schema", f"reasoning.{THIRD}")],
    ),
    "a score as text": (said("50", 20, 5), [("schema", f"score.{FIRST}")]),
    "a score as a word": (said("fifty", 20, 5), [("schema", f"score.{FIRST}")]),
    "a score of maximum": (said("50/60", 20, 5), [("schema", f"score.{FIRST}")]),
    "a score null": (said(None, 20, 5), [("schema", f"score.{FIRST}")]),
    "a score true": (said(True, 20, 5), [("schema", f"score.{FIRST}")]),
    "a score an object": (said({"value": 5}, 20, 5), [("schema", f"score.{FIRST}")]),
    "over the weight": (said(61, 20, 5), [("out_of_range", f"score.{FIRST}")]),
    "a little over": (said(60.01, 20, 5), [("out_of_range", f"score.{FIRST}")]),
    "out of a hundred": (said(90, 95, 80), [("out_of_range", f"score.{d}") for d in DIMENSIONS]),
    "negative": (said(-1, 20, 5), [("out_of_range", f"score.{FIRST}")]),
    "huge": (said().replace("50", "1e400"), [("out_of_range", f"score.{FIRST}")]),
    "critical_fail a text": (said(critical_fail="no"), [("schema", "critical_fail")]),
    "critical_fail a number": (said(critical_fail=0), [("schema", "critical_fail")]),
    "critical_fail null": (said(critical_fail=None), [("schema", "critical_fail")]),
    "a fail without a reason": (
        said(0, 0, 0, critical_fail=True),
        [("schema", "critical_fail_reason")],
    ),
    "a fail with a blank reason": (
        said(0, 0, 0, critical_fail=True, critical_fail_reason=" \n"),
        [("schema", "critical_fail_reason")],
    ),
    "a fail for a reason of dots": (
        said(0, 0, 0, critical_fail=True, critical_fail_reason="..."),
        [("schema", "critical_fail_reason")],
    ),
    "a reason that nobody asked for": (
        said(critical_fail_reason="It lies."),
        [("schema", "critical_fail_reason")],
    ),
    "a reason of another type": (
        said(0, 0, 0, critical_fail=True, critical_fail_reason=["It lies."]),
        [("schema", "critical_fail_reason")],
    ),
    "confidence unknown": (said(confidence="sure"), [("out_of_range", "confidence")]),
    "a total as text": (said(total_score="75"), [("schema", "total_score")]),
    "confidence in Japanese": (said(confidence="高"), [("out_of_range", "confidence")]),
    "a blank reason": (
        said(reasoning={FIRST: "a", SECOND: " \n\u3000", THIRD: ""}),
        [("schema", f"reasoning.{SECOND}"), ("schema", f"reasoning.{THIRD}")],
    ),
    "weights of no type": (
        said(weights=WEIGHTS["fact"] | {FIRST: 59}),
        [("out_of_range", "weights")],
    ),
    "weights with a dimension more": (
        said(weights=WEIGHTS["fact"] | {"style": 0}),
        [("out_of_range", "weights")],
    ),
    "weights in a list": (said(weights=[60, 30, 10]), [("schema", "weights")]),
    "weights in a text": (said(weights="60/30/10"), [("schema", "weights")]),
    "a type that is none": (said(task_type="poetry"), [("out_of_range", "task_type")]),
    "a type that is a number": (said(task_type=1), [("schema", "task_type")]),
    "confidence a number": (said(confidence=0.9), [("schema", "confidence")]),
    "confidence a list": (said(confidence=["high"]), [("schema", "confidence")]),
    "confidence null": (said(confidence=None), [("schema", "confidence")]),
    "several at once": (
        said(61, "x", 5, confidence="sure"),
        [
            ("schema", f"score.{SECOND}"),
            ("out_of_range", "confidence"),
            ("out_of_range", f"score.{FIRST}"),
        ],
    ),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_only_the_judge_can_mend_is_a_problem(name: str) -> None:
    text, expected = PROBLEMS[name]
    checked = check(text)
    assert (codes(checked), checked.output) == (expected, None)
    assert all(one.message and one.wording for one in checked.problems)


@pytest.mark.parametrize("finish", ["length", "filtered", "refused"])
def test_a_reply_that_was_stopped_is_no_reply(finish: str) -> None:
    (code, _), *more = codes(check(said(), finish=finish))
    assert (code, more) == ("truncated" if finish == "length" else finish, [])


FIXES: dict[str, tuple[str, list[tuple[str, str]]]] = {
    "as asked": (said(), []),
    "in another order": (json.dumps(dict(reversed(reply().items()))), []),
    "the full output": (said(**GOOD_FULL), []),
    "a fence": (f"```json\n{said()}\n```", [("unwrapped", "")]),
    "reasoning tags": (f"<think>60?</think>{said()}", [("unwrapped", "")]),
    "a wrong total": (said(**GOOD_FULL | {"total_score": 76}), [("total", "total_score")]),
    "weights in another order": (
        said(**GOOD_FULL | {"weights": dict(reversed(WEIGHTS["fact"].items()))}),
        [],
    ),
    "weights as decimals": (
        said(**GOOD_FULL | {"weights": {name: float(w) for name, w in WEIGHTS["fact"].items()}}),
        [],
    ),
    "a type in capitals": (
        said(**GOOD_FULL | {"task_type": " Fact "}),
        [("unwrapped", "task_type")],
    ),
    "confidence in capitals": (said(confidence=" High"), [("unwrapped", "confidence")]),
    "empty weights": (said(**GOOD_FULL | {"weights": {}}), [("weights", "weights")]),
    "no weights": (said(**GOOD_FULL | {"weights": None}), [("weights", "weights")]),
    "another type under the right weights": (
        said(**GOOD_FULL | {"task_type": "creative"}),
        [("meta", "task_type")],
    ),
    "another name": (said(**GOOD_FULL | {"task_name": "?"}), [("meta", "task_name")]),
    "a type inferred though given": (
        said(inferred_task_type="creative"),
        [("meta", "inferred_task_type")],
    ),
    "only some of the full output": (said(total_score=75), []),
}


@pytest.mark.parametrize("name", FIXES)
def test_what_code_knows_is_a_fix(name: str) -> None:
    text, expected = FIXES[name]
    checked = check(text)
    assert (codes(checked), fixes(checked)) == ([], expected)
    assert checked.output is not None
    assert list(checked.output) == KEYS
    assert checked.output == GOOD_FULL | {
        "inferred_task_type": None,
        "score": dict(zip(DIMENSIONS, (50, 20, 5), strict=True)),
        "reasoning": dict.fromkeys(DIMENSIONS, "so it is"),
        "critical_fail": False,
        "critical_fail_reason": None,
        "confidence": "high",
    }


CREATIVE = {FIRST: 27, SECOND: 15, THIRD: 30}
RESCALED = [("rescaled", f"score.{FIRST}"), ("rescaled", f"score.{THIRD}")]


@pytest.mark.parametrize(
    ("more", "logged"),
    [
        ({"weights": WEIGHTS["creative"]}, [("weights", "weights")]),
        ({"task_type": "creative"}, [("meta", "task_type")]),
        ({"task_type": "Creative"}, [("unwrapped", "task_type"), ("meta", "task_type")]),
        (
            {"task_type": "creative", "weights": WEIGHTS["creative"]},
            [("meta", "task_type"), ("weights", "weights")],
        ),
        ({"task_type": "fact", "weights": WEIGHTS["creative"]}, [("weights", "weights")]),
        (
            {"task_type": "speculative", "weights": WEIGHTS["creative"]},
            [("meta", "task_type"), ("weights", "weights")],
        ),
        (
            {"weights": WEIGHTS["creative"], "total_score": 72},
            [("weights", "weights"), ("total", "total_score")],
        ),
    ],
)
def test_scores_on_the_scale_of_another_type_are_rescaled_and_flagged(
    more: dict[str, Any], logged: list[tuple[str, str]]
) -> None:
    checked = check(said(score=CREATIVE, **more))
    assert codes(checked) == []
    assert sorted(fixes(checked)) == sorted([*RESCALED, *logged])
    assert checked.flags == ("other_type",)
    assert checked.output is not None
    assert checked.output["score"] == {FIRST: 54, SECOND: 15, THIRD: 7.5}
    assert checked.output["total_score"] == 76.5
    assert (checked.output["task_type"], checked.output["weights"]) == ("fact", WEIGHTS["fact"])


def test_a_score_is_held_to_the_scale_on_which_it_stands() -> None:
    checked = check(said(31, 15, 40, weights=WEIGHTS["creative"]))
    assert codes(checked) == [("out_of_range", f"score.{FIRST}")]
    assert "from 0 to 30" in checked.problems[0].message


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("other", [{"weights": WEIGHTS["creative"]}, {"task_type": "creative"}])
def test_what_is_asked_again_holds_for_a_reply_without_weights(
    other: dict[str, Any], language: str
) -> None:
    """The asked form has none: a judge that keeps to the range it is told must not be graded on
    another scale."""
    checked = protocol(language).check(said(55, 15, 9, **other), under(FACT))
    [problem] = checked.problems
    assert (problem.code, problem.path) == ("out_of_range", f"score.{FIRST}")
    for text in (problem.message, problem.wording):
        assert "60" in text and text.index("30") < text.index("60")


def test_another_type_under_the_right_weights_is_flagged_and_not_rescaled() -> None:
    checked = check(said(task_type="creative", weights=WEIGHTS["fact"]))
    assert (fixes(checked), checked.flags) == ([("meta", "task_type")], ("other_type",))
    assert check(said(inferred_task_type="creative")).flags == ("other_type",)
    assert check(said(**GOOD_FULL)).flags == check(said(weights=None)).flags == ()


def test_weights_beside_an_inferred_type_say_the_scale_too() -> None:
    full = {"task_type": "creative", "inferred_task_type": "creative"}
    right = check(said(27, 15, 30, **full, weights=WEIGHTS["creative"]), PLAIN)
    assert (fixes(right), right.flags) == ([], ())
    other = check(said(54, 15, 8, **full, weights=WEIGHTS["fact"]), PLAIN)
    assert other.output is not None
    assert other.output["score"] == {FIRST: 27, SECOND: 15, THIRD: 32}
    assert other.flags == ("other_type",)
    unnamed = check(said(27, 15, 30, **full | {"task_type": "未記載"}), PLAIN)
    assert (codes(unnamed), fixes(unnamed)) == ([], [("meta", "task_type")])


def test_weights_that_say_nothing_of_a_dimension_that_counts_are_asked_for_again() -> None:
    task = task_of({"a": 50, "b": 50}, {"a": 100, "b": 0})
    text = said(score={"a": 90, "b": 0}, reasoning={"a": "x", "b": "x"}, weights={"a": 100, "b": 0})
    assert codes(check_reply(text, task, WORDS)) == [("out_of_range", "weights")]
    text = said(score={"a": 90, "b": 0}, reasoning={"a": "x", "b": "x"}, task_type="t1")
    assert codes(check_reply(text, task, WORDS)) == [("out_of_range", "task_type")]


def test_what_is_asked_again_names_place_value_and_what_is_allowed() -> None:
    [weights] = check(said(weights={FIRST: 100})).problems
    assert all(part in weights.message for part in ("weights:", f'"{FIRST}":100', "60", "30"))
    [kind] = check(said(task_type="poetry")).problems
    assert all(part in kind.message for part in ("task_type:", '"poetry"', "fact"))


def test_after_a_critical_fail_no_scale_and_no_reasons_are_asked_for() -> None:
    ended = {"critical_fail": True, "critical_fail_reason": "It lies.", "weights": {FIRST: 1}}
    for reasoning in (None, {}, dict.fromkeys(DIMENSIONS, ""), dict.fromkeys(DIMENSIONS)):
        checked = check(said(0, 0, 0, **ended, reasoning=reasoning, task_type="poetry"))
        assert codes(checked) == []
        assert fixes(checked) == [
            ("zeroed", "reasoning"),
            ("meta", "task_type"),
            ("weights", "weights"),
        ]


def test_a_judge_that_fills_a_form_need_not_give_reasons() -> None:
    blank = said(reasoning=dict.fromkeys(DIMENSIONS, ""))
    assert codes(check(blank, style="compact")) == []


def test_without_conditions_there_is_no_critical_fail() -> None:
    failed = said(0, 0, 0, critical_fail=True, critical_fail_reason="It lies.")
    assert codes(check(failed)) == []
    for rubric in ("task_type: fact\n\n- a point\n", FACT.replace("It lies.", "none")):
        assert codes(check(failed, rubric)) == [("schema", "critical_fail")]


def test_conditions_that_code_decided_leave_the_judge_none() -> None:
    failed = said(0, 0, 0, critical_fail=True, critical_fail_reason="It is long.")
    rubric = FACT.replace("It lies.", "max_chars: 500")
    assert codes(check(failed, rubric)) == [("schema", "critical_fail")]


@pytest.mark.parametrize("scores", [(50, 20, 5), (0, 0, 0), (None, 0, 0), (900, -1, 0)])
def test_a_critical_fail_zeroes_whatever_was_scored(scores: tuple[Any, ...]) -> None:
    checked = check(said(*scores, critical_fail=True, critical_fail_reason="It lies."))
    assert checked.output is not None
    assert fixes(checked) == ([] if scores == (0, 0, 0) else [("zeroed", "score")])
    assert checked.output["score"] == dict.fromkeys(DIMENSIONS, 0)
    assert checked.output["total_score"] == 0
    assert (checked.output["critical_fail"], checked.output["critical_fail_reason"]) == (
        True,
        "It lies.",
    )


@pytest.mark.parametrize("name", WEIGHTS)
def test_a_type_that_is_not_given_is_inferred_and_sets_the_maxima(name: str) -> None:
    most = list(WEIGHTS[name].values())
    checked = check(said(*most, inferred_task_type=name), PLAIN)
    assert checked.output is not None
    assert (checked.output["task_type"], checked.output["inferred_task_type"]) == (name, name)
    assert (checked.output["weights"], checked.output["total_score"]) == (WEIGHTS[name], 100)
    over = [most[0] + 1, *most[1:]]
    assert codes(check(said(*over, inferred_task_type=name), PLAIN)) == [
        ("out_of_range", f"score.{FIRST}")
    ]


@pytest.mark.parametrize(
    ("named", "code"),
    [
        (None, "schema"),
        ("poetry", "out_of_range"),
        (3, "schema"),
        (["fact"], "schema"),
    ],
)
def test_a_type_that_is_not_given_must_be_one_of_the_known(named: Any, code: str) -> None:
    checked = check(said(inferred_task_type=named), PLAIN)
    assert codes(checked) == [(code, "inferred_task_type")]
    assert "fact, creative, speculative" in checked.problems[0].message


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_every_problem_is_worded_in_the_judges_language(language: str, name: str) -> None:
    checked = protocol(language).check(PROBLEMS[name][0], ANSWER)
    english = check(PROBLEMS[name][0])
    assert codes(checked) == codes(english)
    for one, other in zip(checked.problems, english.problems, strict=True):
        assert (one.wording == other.wording) == (language == "en")


@given(st.text(alphabet="ab 字か。っщ😀\n\u0301", max_size=500))
def test_a_cut_text_is_short_and_the_beginning_of_the_long_one(text: str) -> None:
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
def test_an_over_long_reasoning_is_cut_at_a_word_where_there_are_words(name: str) -> None:
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
    assert checked.output is not None
    assert checked.output["reasoning"] == {FIRST: made, SECOND: "b" * 200, THIRD: "x"}


@given(st.text())
def test_any_text_gets_an_answer(text: str) -> None:
    checked = check(text)
    assert (checked.output is None) == bool(checked.problems)


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(allow_nan=False), st.integers(), st.text()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*KEYS, "more"]), values))
def test_any_object_gets_an_answer(changes: dict[str, Any]) -> None:
    for rubric in (FACT, PLAIN):
        checked = check(jsontext.dump(reply() | changes), rubric)
        assert (checked.output is None) == bool(checked.problems)


def test_what_code_knows_is_not_asked_for_again() -> None:
    told = check(said(inferred_task_type=..., critical_fail_reason=...))
    assert (told.problems, told.fixes) == ((), ())
    ended = {"critical_fail": True, "critical_fail_reason": "It does.", "confidence": "high"}
    failed = check(json.dumps(ended))
    assert failed.problems == ()
    assert failed.output is not None
    assert failed.output["score"] == {FIRST: 0, SECOND: 0, THIRD: 0}
    assert all(failed.output["reasoning"].values())
    assert [(one.code, one.path) for one in failed.fixes] == [
        ("zeroed", "score"),
        ("zeroed", "reasoning"),
    ]


def test_a_total_is_compared_as_a_number() -> None:
    assert check(said(total_score=75.0)).fixes == ()


@pytest.mark.parametrize("number", ["1e999", "-1e999", "9" * 400, "9" * 5000, "-" + "9" * 5000])
def test_a_score_beyond_all_bounds_is_out_of_range_where_it_would_be_rescaled_too(
    number: str,
) -> None:
    text = said(0.125, 20, 5, inferred_task_type="creative").replace("0.125", number)
    checked = check(text, PLAIN, style="compact")
    assert codes(checked) == [("out_of_range", f"score.{FIRST}")]
    assert (f"score.{FIRST}") not in [path for _, path in fixes(checked)]
