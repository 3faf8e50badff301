"""The pytest plugin, in real runs of pytest."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import urllib.request

import pytest

from evenhand.engine.prices import CallBudget
from evenhand.engine.stop import Stop
from evenhand.errors import StoppedEarly
from evenhand.pytest_plugin import dollars
from tests.provider import child
from tests.sentences import is_told, refused
from tests.suites import GRADE_JUDGE, JUDGE, PAIR_JUDGE, RUBRIC, TASK, TICK_JUDGE

pytest_plugins = ["pytester"]


PRICE = {"input": "1000", "output": "1000"}
"""Dollars a million tokens: the provider's usage then costs $1.10 a call."""


HEAD = f"RUBRIC = {RUBRIC!r}\nTASK = {TASK!r}\n"


SCORED = """
def test_scored(evenhand):
    assert evenhand.score("How many?", "There are seven.", rubric=RUBRIC).scores["correct"] >= 3
"""


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch):
    for name in ("CI", "EVENHAND_JUDGE", "OPENAI_API_KEY", "OPENAI_BASE_URL", "PYTEST_ADDOPTS"):
        monkeypatch.delenv(name, raising=False)


def write(pytester, tests, **ini):
    """Tests, and judges beside them."""
    sources = {"judge": JUDGE, "pairs": PAIR_JUDGE, "grades": GRADE_JUDGE, "ticks": TICK_JUDGE}
    for name, source in sources.items():
        (pytester.path / f"{name}.py").write_text(source)
    pytester.makepyfile(test_it=HEAD + tests)
    lines = "".join(f"evenhand_{key} = {value}\n" for key, value in ini.items())
    pytester.makeini(
        f"[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n{lines}"
    )


def ran(pytester, *arguments, apart=False):
    """A run without whatever other plugins are installed here; in a process of its own where it
    stands `apart`."""
    run = pytester.runpytest_subprocess if apart else pytester.runpytest_inprocess
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        return run("-p", "evenhand", "-p", "asyncio", *arguments)


def remote(url, **more):
    """Settings of a judge at the loopback provider, as source."""
    judge = {"model": "openai/test-model", "base_url": url, "max_tokens": 256, **more}
    return f"REMOTE = { {'judge': judge, 'rubric': RUBRIC}!r}\n"


ASKED = """
def test_scored(evenhand):
    assert evenhand.score("Q?", "An answer.", **REMOTE).scores["correct"] >= 1
"""


def calls(url):
    with urllib.request.urlopen(url.replace("/v1", "/counts")) as answer:
        return json.load(answer)["calls"]


def test_scores_grades_and_preferences_read_well(pytester):
    tests = """
def test_score(evenhand):
    judged = evenhand.score("Q?", "An answer to quote.", rubric=RUBRIC)
    assert judged.scores == {"correct": 3, "clear": 3}
    assert judged.status == "verdict"
    assert judged.output["scores"]["correct"]["evidence"] == ["An answer to quote."]

def test_grade(evenhand):
    grade = evenhand.grade("Q?", "An answer.", rubric=TASK, judge="python/grades:good")
    assert grade.total_score == 21 and not grade.critical_fail
    assert set(grade.scores.values()) == {7}

def test_prefer(evenhand):
    assert evenhand.prefer("Q?", "9 of 10", "2 of 10", judge="python/pairs:content").winner == "A"

async def test_async(evenhand):
    assert evenhand.score("Q?", "Another answer.", rubric=RUBRIC).scores["clear"] == 3
"""
    write(pytester, tests, judge="python/judge:good")
    found = ran(pytester)
    found.assert_outcomes(passed=4)
    found.stdout.fnmatch_lines(["evenhand: 5 calls sent, 0 answered from the store; $0"])


def test_a_failed_comparison_shows_the_reasons(pytester):
    tests = """
def test_score(evenhand):
    assert evenhand.score("Q?", "Too short to say.", rubric=RUBRIC).scores["correct"] >= 4

def test_grade(evenhand):
    assert evenhand.grade("Q?", "Lies.", rubric=TASK, judge="python/grades:strict").total_score > 5
"""
    write(pytester, tests, judge="python/judge:good")
    found = ran(pytester)
    found.assert_outcomes(failed=2)
    found.stdout.fnmatch_lines(
        [
            ">   *.scores*correct* >= 4",
            "E *3.0 >= 4*",
            "*Captured evenhand call*",
            "  scores.correct.score: 3",
            "  scores.correct.evidence: Too short to say.",
            "  scores.correct.rationale: fits",
            "*Captured evenhand call*",
            "  total_score: 0",
            "  critical_fail_reason: It lies.",
        ]
    )
    found.stdout.no_fnmatch_line("*pytest_plugin.py*")


def test_an_assertion_says_what_was_judged_and_why(pytester):
    tests = """
def test_low(evenhand):
    evenhand.assert_passes(evenhand.score("Q?", "Too short to say.", rubric=RUBRIC), at_least=0.7)

def test_passes(evenhand):
    ticks = evenhand.checklist("Q?", "Long enough.", criteria="Right?", judge="python/ticks:good")
    evenhand.assert_passes(ticks)

def test_judge_fails(evenhand):
    judged = evenhand.score("Q?", "An answer.", rubric=RUBRIC, judge="python/judge:bad")
    evenhand.assert_passes(judged, at_least=0.7)
"""
    write(pytester, tests, judge="python/judge:good")
    found = ran(pytester)
    found.assert_outcomes(failed=2, passed=1)
    found.stdout.fnmatch_lines(
        [
            ">   *assert_passes*at_least=0.7*",
            'E *AssertionError: Overall 0.50*0.70: "Too short to say."',
            'E *correct: 3 of 5. fits "Too short to say."',
            "E *NoVerdicts: *schema: *",
        ]
    )
    found.stdout.no_fnmatch_line("*judged.py:*")
    found.stdout.no_fnmatch_line("*pytest_plugin.py:*")


def test_what_a_judge_says_is_no_command_to_the_log(pytester):
    hostile = JUDGE.replace('"fits"', r'"so\n::error::run me\n\x1b[31mred\u202e"')
    tests = """
def test_score(evenhand):
    assert evenhand.score("Q?", "An answer.", rubric=RUBRIC).scores["correct"] >= 4
"""
    write(pytester, tests, judge="python/judge:good")
    (pytester.path / "judge.py").write_text(hostile)
    found = ran(pytester)
    found.stdout.fnmatch_lines(
        ["  scores.correct.rationale: so ::error::run me \\u001b[[]31mred\\u202e"]
    )
    assert not [line for line in found.outlines if line.strip().startswith("::")]


def test_without_a_verdict_there_is_no_score(pytester):
    tests = """
def test_value(evenhand):
    judged = evenhand.score("Q?", "An answer.", rubric=RUBRIC)
    assert (judged.status, judged.reason, judged.output) == ("failure", "schema", None)

def test_score(evenhand):
    assert evenhand.score("Q?", "An answer.", rubric=RUBRIC).scores["correct"] < 9

def test_of_another_kind(evenhand):
    evenhand.prefer("Q?", "9", "2", judge="python/pairs:content").scores
"""
    write(pytester, tests, judge="python/judge:bad")
    found = ran(pytester)
    found.assert_outcomes(passed=1, failed=2)
    found.stdout.fnmatch_lines(
        [
            "E *NoVerdicts: *schema: *",
            "E *LookupError: *scores*.output*",
            "evenhand: * calls sent, 3 answered from the store; $0; 2 without a verdict",
        ]
    )


def test_the_judge_is_named_by_option_then_environment_then_file(pytester, monkeypatch):
    write(pytester, SCORED, judge="python/judge:good")
    ran(pytester).assert_outcomes(passed=1)
    monkeypatch.setenv("EVENHAND_JUDGE", "python/judge:bad")
    ran(pytester).assert_outcomes(failed=1)
    ran(pytester, "--evenhand-judge", "python/judge:good").assert_outcomes(passed=1)
    write(pytester, SCORED, judge="python/judge:good", language="xx")
    ran(pytester).stdout.fnmatch_lines(["E *UsageError: *xx*"])


def test_a_rerun_costs_nothing(pytester):
    with child() as url:
        write(pytester, remote(url, price=PRICE) + ASKED)
        first, second = ran(pytester), ran(pytester)
        elsewhere = ran(pytester, "--evenhand-store", "sqlite:kept.db")
        assert calls(url) == 2
    first.stdout.fnmatch_lines(["evenhand: 1 call sent, 0 answered from the store; $1.10"])
    second.stdout.fnmatch_lines(["evenhand: 0 calls sent, 1 answered from the store; $0"])
    elsewhere.stdout.fnmatch_lines(["evenhand: 1 *, 0 *"])
    assert (pytester.path / "kept.db").exists()


def test_the_store_stays_where_it_is_when_a_test_changes_the_folder(pytester):
    tests = """
def test_moved(evenhand, tmp_path, monkeypatch):
    evenhand.score("Q?", "An answer.", rubric=RUBRIC, judge="python/judge:good")
    monkeypatch.chdir(tmp_path)
    evenhand.score("Q?", "An answer.", rubric=RUBRIC, judge="python/judge:good")
    assert not list(tmp_path.iterdir())
"""
    write(pytester, tests, store="sqlite:kept.db")
    found = ran(pytester)
    found.assert_outcomes(passed=1)
    found.stdout.fnmatch_lines(["evenhand: 1 call sent, 1 answered from the store; $0"])


def test_without_pytests_cache_the_store_lasts_a_session(pytester):
    write(pytester, SCORED + SCORED.replace("_scored", "_again"), judge="python/judge:good")
    found = ran(pytester, "-p", "no:cacheprovider")
    found.assert_outcomes(passed=2)
    found.stdout.fnmatch_lines(["evenhand: 1 call sent, 1 answered from the store; $0"])
    assert not list(pytester.path.glob(".pytest_cache/**/store.db"))


@pytest.mark.parametrize(("environment", "fails"), [("true", True), ("false", False)])
def test_in_ci_a_test_without_a_key_fails(pytester, monkeypatch, environment, fails):
    monkeypatch.setenv("CI", environment)
    write(pytester, SCORED, judge="openai/gpt-4.1-mini")
    result = ran(pytester, "-rs")
    result.assert_outcomes(**{"failed" if fails else "skipped": 1})
    skipped = ["evenhand: *; 1 *", "SKIPPED *test_it.py:*OPENAI_API_KEY*"]
    result.stdout.fnmatch_lines(["E *OPENAI_API_KEY*"] if fails else skipped)


def test_a_key_that_is_refused_is_no_reason_to_skip(pytester, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong-and-long")
    with child("unauthorized") as url:
        write(pytester, remote(url) + ASKED)
        found = ran(pytester)
    found.assert_outcomes(failed=1)
    found.stdout.fnmatch_lines(["E *ProviderRefused: *", "E *OPENAI_API_KEY*"])
    assert "sk-wrong-and-long" not in found.stdout.str()


BUDGETED = """
import pytest

@pytest.mark.parametrize("number", range(4))
def test_scored(evenhand, number):
    evenhand.score("Q?", f"Answer number {number}.", **REMOTE)
"""


def test_all_tests_share_a_budget_that_is_never_exceeded(pytester):
    with child() as url:
        # Enough to reserve one call, but not a second beside what the first has cost.
        write(pytester, remote(url, price=PRICE) + BUDGETED, budget="7.5")
        found = ran(pytester)
        sent = calls(url)
        assert 0 < sent < 4
        found.assert_outcomes(passed=sent, failed=4 - sent)
        # What was paid for is kept, so that the same budget now reaches further.
        again = ran(pytester)
        assert sent < calls(url) <= 4
        again.assert_outcomes(passed=calls(url), failed=4 - calls(url))
    found.stdout.fnmatch_lines(
        [
            "E *LimitReached: *$7.50*",
            "E *--evenhand-budget*",
            f"evenhand: {sent} *, * of $7.50",
        ]
    )


def test_a_budget_serves_one_event_loop_after_the_other():
    budget, order = CallBudget(10), list[str]()

    async def spender(name):
        await budget.reserve(8, Stop())
        order.append(name)
        await asyncio.sleep(0)
        budget.release(8, 1)

    async def both():
        await asyncio.gather(spender("one"), spender("two"))

    asyncio.run(both())
    with refused(StoppedEarly, "engine.budget_reached"):
        # The second waits for the first, and then needs 8 beside the 3 that are spent.
        asyncio.run(both())
    assert order == ["one", "two", "one"]
    assert budget.used == 3


def test_a_budget_needs_a_price(pytester):
    with child() as url:
        write(pytester, remote(url) + BUDGETED, budget="1")
        found = ran(pytester)
        found.assert_outcomes(failed=4)
        assert calls(url) == 0
    found.stdout.fnmatch_lines(['E *UsageError: *"openai/test-model"*'])


def test_a_budget_that_is_none_is_told_before_any_test(pytester):
    write(pytester, SCORED, budget="much")
    found = ran(pytester)
    assert found.ret == pytest.ExitCode.USAGE_ERROR
    assert is_told(found.stderr.str(), "api.not_dollars", text="much")
    for wrong in ("-1", "nan", "inf"):
        with pytest.raises(pytest.UsageError, match=wrong):
            dollars(wrong)


def test_collecting_sends_nothing_and_loads_nothing(pytester):
    conftest = """
import sys

def pytest_collection_finish(session):
    own = {name for name in sys.modules if name.partition(".")[0] == "evenhand"}
    print("loaded", *sorted(own))
"""
    pytester.makeconftest(conftest)
    with child() as url:
        write(pytester, remote(url) + ASKED)
        found = ran(pytester, "--collect-only", "-s", apart=True)
        assert calls(url) == 0
    found.stdout.fnmatch_lines(["loaded evenhand evenhand.pytest_plugin"])
    found.stdout.no_fnmatch_line("evenhand: *")


def test_tests_without_a_judgment_end_as_ever(pytester):
    pytester.makepyfile("def test_one(): pass\n\ndef test_two(evenhand): pass")
    found = ran(pytester, apart=True)
    found.assert_outcomes(passed=2)
    found.stdout.no_fnmatch_line("evenhand: *")
    assert not list(pytester.path.glob("**/store.db"))


@pytest.mark.skipif(importlib.util.find_spec("xdist") is None, reason="xdist is not installed")
def test_workers_share_the_store_and_divide_the_budget(pytester):
    same = """
import pytest

@pytest.mark.parametrize("number", range(8))
def test_same(evenhand, number):
    assert evenhand.score("Q?", "One answer.", **REMOTE).status == "verdict"
"""
    with child("slow") as url:
        write(pytester, remote(url, price=PRICE) + same, budget="40")
        found = ran(pytester, "-p", "xdist", "-n", "2")
        found.assert_outcomes(passed=8)
        assert calls(url) == 1
        # Enough for two of four calls in one process, but for none with half of it in each.
        write(pytester, remote(url, price=PRICE) + BUDGETED, budget="8")
        ran(pytester, "-p", "xdist", "-n", "2").assert_outcomes(failed=4)
        assert calls(url) == 1
    found.stdout.fnmatch_lines(["evenhand: 1 call sent, 7 answered from the store; $1.10 of $40"])
