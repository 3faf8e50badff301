"""The forecast of `--dry-run`, bounded from both sides by what the run then does."""

from __future__ import annotations

from importlib import resources

import pytest

from evenhand.cli.run import price_line
from evenhand.engine.prices import token_bound, token_guess
from evenhand.errors import DataError
from evenhand.exchange import Message
from evenhand.kinds import KINDS
from evenhand.kinds.conversation import JudgingContext
from evenhand.limits import MAX_ROUNDS, REPAIRS
from evenhand.runs.forecast import forecast
from evenhand.runs.stores import open_archive
from evenhand.words import words
from tests.cases import cases
from tests.sentences import is_told
from tests.suites import (
    at,
    evenhand_here,
    json_here,
    judged,
    ok_here,
    pair_row,
    pairs,
    prepared,
    samples,
    write_pairs,
    write_rows,
    write_suite,
)
from tests.unit.engine.pair_runs import Interrupting, judge

PRICE = {"price": {"input": "1", "output": "2"}, "max_tokens": 256}


TRIES = 1 + REPAIRS


async def foreseen(folder, **overrides):
    path = folder / "evenhand.db"
    store = open_archive("sqlite:evenhand.db", folder) if path.exists() else None
    try:
        return await forecast(prepared(folder, None, **overrides), store, None)
    finally:
        if store:
            store.close()


async def stopped_after(folder, calls):
    """A run of one worker that is stopped after so many calls."""
    interrupting, ready = Interrupting(calls), prepared(folder, limits={"concurrency": 1})
    for setup in ready.setups:
        answer = setup.judge.answer

        async def counted(question, answer=answer):
            reply = await answer(question)
            interrupting()
            return reply

        setup.judge.answer = counted
    return await judged(ready, watch=interrupting.watch)


async def test_a_finished_run_has_nothing_ahead(tmp_path):
    write_pairs(tmp_path, 4, judge("coin", repeats=2, **PRICE))
    summary = await judged(tmp_path)
    found = await foreseen(tmp_path)
    assert figures(found) == (8, 8, summary.tally.sent, 0, 0)
    assert (found.output_tokens_most, found.cost_least, found.cost_most) == (0, 0, 0)
    # Failures that stand are done, lost ones are not.
    write_pairs(tmp_path, 2, judge("bad"), judge("crash"))
    summary = await judged(tmp_path)
    assert summary.counts.failures == {"judge_crash": 2, "schema": 2}
    assert figures(await foreseen(tmp_path))[:4] == (4, 2, 12, 4)
    # A judgment of other content does not count.
    write_suite(tmp_path / "samples", 3)
    await judged(tmp_path / "samples")
    rows = [*samples(2), samples(1, start=9)[0] | {"id": "u2"}]
    write_rows(tmp_path / "samples", rows)
    assert figures(await foreseen(tmp_path / "samples"))[:4] == (3, 2, 2, 1)


@cases
async def test_another_run_that_the_ledger_answers_costs_nothing(tmp_path, other, done):
    write_pairs(tmp_path, 3, judge("coin"))
    summary = await judged(tmp_path)
    write_pairs(tmp_path, 3, judge("coin"), **other)
    found = await foreseen(tmp_path)
    assert (found.planned, found.done, found.answered) == (3, done, summary.tally.sent)
    assert (found.calls_least, found.calls_most) == (0, 0)
    assert found.run == (await judged(tmp_path)).run


@pytest.mark.parametrize("calls", range(1, 6))
async def test_what_may_follow_calls_in_the_ledger_is_ahead(tmp_path, calls):
    write_pairs(tmp_path, 1, judge("first", **PRICE))
    await stopped_after(tmp_path, calls)
    found = await foreseen(tmp_path)
    most = (2 * MAX_ROUNDS - calls) * TRIES
    # The round that is under way is finished in any case; an even number of calls opens a new one.
    assert figures(found) == (1, 0, calls, 1 if calls % 2 else 2, most)
    assert found.output_tokens_most == most * 256
    assert found.cost_least is not None and found.cost_most is not None
    assert 0 < found.cost_least < found.cost_most
    again = await judged(tmp_path)
    assert found.calls_least <= again.tally.sent <= most
    assert again.tally.cost <= found.cost_most


async def test_the_rest_of_a_broken_pass_is_ahead(tmp_path):
    write_suite(tmp_path, 1, {"model": "python/judge:bad", **PRICE})
    await stopped_after(tmp_path, 1)
    found = await foreseen(tmp_path)
    assert (found.answered, found.calls_least, found.calls_most) == (1, 1, REPAIRS)
    assert (await judged(tmp_path)).tally.sent == REPAIRS


@pytest.mark.parametrize("rounds", [1, 3, 20])
async def test_a_conversation_grows_within_a_pass_alone(tmp_path, rounds):
    write_pairs(tmp_path, 1, judge("content", **PRICE), settings={"max_rounds": rounds})
    found = await foreseen(tmp_path)
    assert (found.calls_least, found.calls_most) == (2, 2 * rounds * TRIES)
    assert found.output_tokens_most == found.calls_most * 256
    ready = prepared(tmp_path)
    (unit,) = ready.units(ready.judging)
    context = JudgingContext(ask=ready.setups[0].judge.answer)
    opened = ready.judging.first_questions(ready.judging.load(unit.body), context)
    grown = sum(256 * reask for reask in range(TRIES))
    sent = sum(TRIES * token_bound(question) + grown for question in opened)
    assert found.cost_most == rounds * (sent + 2 * 2 * TRIES * 256) * 10**6


async def test_a_relay_pays_for_the_judges_that_may_be_asked(tmp_path):
    row = pair_row("x", 3, 1)
    row["candidates"][0]["id"] = "gpt-4o"
    dear = {"price": {"input": "50", "output": "50"}}
    kin, other = (at("http://127.0.0.1:9/v1", model=f"openai/{m}") for m in ("gpt-4.1", "claude-3"))
    most = []
    for judges in ([kin | dear, other | PRICE], [other | PRICE]):
        settings = {"no_self_judging": True, "panel": "relay"}
        write_pairs(tmp_path, [row], *judges, settings=settings)
        most.append((await foreseen(tmp_path)).cost_most)
    assert most[0] == most[1]


@pytest.mark.parametrize("is_judged", [False, True])
async def test_what_a_judge_is_left_out_of_is_not_planned(tmp_path, is_judged):
    row = pair_row("x", 3, 1)
    row["candidates"][0]["id"] = "gpt-4o"
    kin = at("http://127.0.0.1:9/v1", model="openai/gpt-4.1", price=PRICE["price"])
    write_pairs(tmp_path, [row], kin, settings={"no_self_judging": True})
    if is_judged:
        assert (await judged(tmp_path)).counts.left_out == 1
    found = await foreseen(tmp_path)
    assert (found.planned, found.done, found.left_out, found.calls_most) == (0, 0, 1, 0)


@pytest.mark.parametrize("is_stored", [False, True])
async def test_ids_that_repeat_are_told_as_by_a_run(tmp_path, is_stored):
    write_pairs(tmp_path, 2)
    if is_stored:
        await judged(tmp_path)
    write_rows(
        tmp_path, [row | {"id": row["pair_id"]} for row in (*pairs(2), *pairs(1))], "pairs.jsonl"
    )
    with pytest.raises(DataError) as by_a_forecast:
        await foreseen(tmp_path)
    with pytest.raises(DataError, match=r"pairs\.jsonl:1, .*pairs\.jsonl:3") as by_a_run:
        await judged(tmp_path)
    assert str(by_a_forecast.value) == str(by_a_run.value)


async def test_the_likely_price_lies_between_the_least_and_the_most(tmp_path):
    talks = {"model": "python/judge:good", "max_tokens": 4000, "price": PRICE["price"]}
    write_suite(tmp_path, 30, talks)
    forecast = await foreseen(tmp_path)
    assert forecast.cost_least is not None and forecast.cost_most is not None
    assert forecast.cost_likely is not None
    assert forecast.cost_least / 1.5 <= forecast.cost_likely < forecast.cost_most / 5


def test_a_price_is_one_line_that_a_person_reads():
    price = {"likely": 7.2, "most": 1234.5, "budget": None}
    for more, key, likely, most in (
        ({}, "cli.price_about", "$7.20", "$1,234"),
        ({"budget": 20.0}, "cli.price_about_budget", "$7.20", "$20"),
        ({"budget": 5.0}, "cli.price_about_budget", "$5.00", "$5.00"),
        ({"likely": 0.0042}, "cli.price_about", "$0.01", "$1,234"),
    ):
        assert is_told(price_line(price | more, words("en")), key, likely=likely, most=most), more
    assert is_told(price_line(price, words("en"), is_open=True), "cli.price_open", likely="$7.20")
    assert is_told(price_line(dict.fromkeys(price), words("en")), "cli.price_unknown")
    assert is_told(price_line(price | {"most": 0}, words("en")), "cli.price_none")


CHARS_PER_TOKEN = {"en": 4.26, "ru": 3.58, "zh": 1.62, "ja": 1.53}
"""Of the bundled prompts, as o200k_base counts them."""


@pytest.mark.parametrize("language", CHARS_PER_TOKEN)
def test_the_tokens_of_a_prompt_are_guessed_as_they_were_counted(language):
    for kind in KINDS:
        folder = resources.files("evenhand.kinds") / "builtin" / kind / "prompts"
        text = (folder / f"{language}.md").read_text(encoding="utf-8")
        counted = len(text) / CHARS_PER_TOKEN[language]
        assert token_guess([Message("system", text)]) == pytest.approx(counted, rel=0.15), kind


def figures(found):
    return found.planned, found.done, found.answered, found.calls_least, found.calls_most


def test_the_printed_forecast_says_what_it_counts(tmp_path):
    write_pairs(tmp_path, 3, judge("first"))
    ok_here("run --limit 1 --json", cwd=tmp_path)
    said = evenhand_here("run --dry-run", cwd=tmp_path).stdout
    assert is_told(said, "cli.dry_planned", planned="3 judgments", done=1)
    assert is_told(said, "cli.dry_cached", n="6 calls")
    assert is_told(said, "cli.dry_calls_rounds", least="4 calls", most=36)
    as_json = json_here("run --dry-run", cwd=tmp_path)
    assert (as_json["planned"], as_json["done"], as_json["cached"]) == (3, 1, 6)
