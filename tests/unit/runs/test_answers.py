"""Answers that a suite makes before it judges them."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiohttp import web

from evenhand.errors import DataError, KeyMissing
from evenhand.runs.batch import BatchOptions
from tests.answering import BOT, PRICE, PROMPTS, made_rows, write_answering
from tests.batch_provider import KEYS, BatchProvider, fitting
from tests.provider import Provider, saying, valid_reply
from tests.sentences import is_told
from tests.suites import JUDGE, PAIR_JUDGE, evenhand_here, judged, prepared

TWO = {"question": "Where is the zoo?", "topic": "zoo"}, {"question": "Why?", "topic": "reasons"}


async def run_beside(folder, *options):
    """Run a suite while a provider of this loop answers."""
    return await asyncio.to_thread(evenhand_here, "run", "--json", *options, cwd=folder)


def run_json(folder, *options):
    done = evenhand_here("run", "--json", *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def calls(told):
    return told["answers"]["calls"], told["calls"]


def test_answers_are_made_then_judged_and_nothing_is_asked_twice(tmp_path):
    write_answering(tmp_path, TWO)
    assert calls(run_json(tmp_path)) == (4, 4)
    assert [list(row.values())[:6] for row in made_rows(tmp_path)][:2] == [
        ["Where is the zoo?", "zoo", "python/judge:answer", variant, 1, f"So: {asked}"]
        for variant, asked in (
            ("v1", "Be brief. Where is the zoo?"),
            ("v2", "Where is the zoo? (zoo)"),
        )
    ]
    assert calls(run_json(tmp_path)) == (0, 0)
    # Of two prompts one is changed, and a question is added.
    write_answering(tmp_path, TWO, prompts={**PROMPTS, "v1": "Be long. {{question}}"})
    assert calls(run_json(tmp_path)) == (2, 2)
    more = (*TWO, {"question": "How?", "topic": "ways"})
    write_answering(tmp_path, more, prompts={**PROMPTS, "v1": "Be long. {{question}}"})
    assert calls(run_json(tmp_path)) == (2, 2)
    # Another suite on the same store has one prompt in common.
    store = {"store": {"url": f"sqlite:{tmp_path / 'evenhand.db'}"}}
    other = {"v2": PROMPTS["v2"], "v3": "{{question}}"}
    write_answering(tmp_path / "other", TWO, prompts=other, **store)
    told = run_json(tmp_path / "other", "--store", store["store"]["url"])
    assert told["answers"]["calls"] == 2


async def test_judges_see_nothing_of_who_answered_but_the_answer(tmp_path):
    async with Provider(saying("An answer.")) as provider:
        model = {"model": "openai/secret-name", "base_url": provider.url, "temperature": 0.9}
        spy = JUDGE + (
            "\nasync def spy(messages, schema, params):\n"
            "    with open('seen', 'a') as file:\n"
            "        file.write(json.dumps(messages))\n"
            "    return reply(messages)\n"
        )
        write_answering(tmp_path, TWO, model, {"model": "python/judge:spy"}, judge=spy)
        done = await run_beside(tmp_path)
    assert done.returncode == 0, done.stderr
    assert [call.body["temperature"] for call in provider.calls] == [0.9] * 4
    roles = sorted([turn["role"] for turn in call.body["messages"]] for call in provider.calls)
    assert roles == [["system", "user"]] * 2 + [["user"]] * 2
    seen = (tmp_path / "seen").read_text()
    assert "An answer." in seen
    for hidden in ("secret-name", "Be kind", "Be brief", "latency", "v1"):
        assert hidden not in seen


@pytest.mark.parametrize(("on_cut", "units"), [("judge", 2), ("leave out", 0)])
async def test_cut_answers_are_kept_counted_and_judged_or_left_out(tmp_path, on_cut, units):
    async with Provider(saying("Half an ans", finish="length")) as provider:
        model = {"model": "openai/m", "base_url": provider.url, "price": PRICE}
        spec = {"on_cut": on_cut}
        write_answering(tmp_path, TWO, model, prompts={"v1": "{{question}}"}, answers=spec)
        done = await run_beside(tmp_path)
    told = json.loads(done.stdout)
    made = told.get("answers", told)
    assert (made["verdicts"], made["finish"]) == (2, {"length": 2})
    assert told["planned"] == units or told is made
    for row in made_rows(tmp_path):
        assert (row["answer"], row["finish"]) == ("Half an ans", "length")
        assert row["cost_usd"] > 0 < row["latency_s"] and row["output_tokens"]


async def test_one_budget_for_answers_and_judgments(tmp_path):
    async with Provider(saying("An answer.")) as provider:
        model = {
            "model": "openai/m",
            "base_url": provider.url,
            "price": {"input": 0, "output": 1000},
        }
        dear = {
            "model": "openai/j",
            "base_url": provider.url,
            "price": {"input": 0, "output": 1000},
        }
        model, dear = model | {"max_tokens": 100}, dear | {"max_tokens": 100}
        write_answering(tmp_path, 4, model, dear, limits={"budget_usd": "0.41", "concurrency": 1})
        ahead = json.loads((await run_beside(tmp_path, "--dry-run")).stdout)
        assert ahead["answers"]["planned"] == ahead["planned"] == 8 and not provider.calls
        both = ahead["price_usd"]["most"]
        assert both > ahead["answers"]["price_usd"]["most"] == pytest.approx(0.8)
        done = await run_beside(tmp_path)
    spent = sum(row["cost_usd"] for row in made_rows(tmp_path))
    assert done.returncode == 5 and 0 < spent <= 0.41


async def _cheap(call):
    """Answer in ten cents, as an answer or as a judgment."""
    shape = call.body.get("response_format")
    text = "So."
    if shape:
        text = json.dumps(valid_reply(call.body, shape["json_schema"]["schema"]))
    usage = {"prompt_tokens": 10, "completion_tokens": 100}
    choice = {"message": {"content": text}, "finish_reason": "stop"}
    return web.json_response({"choices": [choice], "usage": usage})


@pytest.mark.parametrize(
    ("questions", "budget", "commands"),
    [(6, 1.2, (("--limit", "4"), ())), (60, 6, (("--until-decided",),))],
)
async def test_no_number_of_waves_or_commands_outspends_the_budget(
    tmp_path, questions, budget, commands
):
    async with Provider(_cheap) as provider:
        price = {"price": {"input": 0, "output": 1000}, "max_tokens": 100}
        judge, model = ({"model": f"openai/{n}", "base_url": provider.url, **price} for n in "jm")
        limits = {"budget_usd": str(budget), "concurrency": 1}
        compare = {"by": "prompt_variant", "baseline": "v1"}
        write_answering(tmp_path, questions, model, judge, compare=compare, limits=limits)
        for flags in commands:
            done = await run_beside(tmp_path, *flags)
        told = json.loads(done.stdout)
        assert (done.returncode, len(provider.calls)) == (5, round(budget * 10))
    made = told.get("answers", told)
    assert made["cost_usd"] == pytest.approx(sum(row["cost_usd"] for row in made_rows(tmp_path)))


def test_no_more_answers_than_the_decision_takes(tmp_path):
    kinder = JUDGE + (
        "\nasync def kinder(messages, schema, params):\n"
        "    text = reply(messages)\n"
        "    return text.replace('3', '5') if '(no.' in str(messages) else text\n"
    )
    compare = {"by": "prompt_variant", "baseline": "v1"}
    judge = {"model": "python/judge:kinder"}
    write_answering(tmp_path, 200, "python/judge:answer", judge, judge=kinder, compare=compare)
    told = run_json(tmp_path, "--until-decided")
    assert told["decided"]["outcome"] == "better"
    assert told["answers"]["calls"] == len(made_rows(tmp_path)) < 100
    assert calls(run_json(tmp_path, "--until-decided")) == (0, 0)


def test_pairs_of_prompts_and_limit(tmp_path):
    write_answering(
        tmp_path, 5, "python/judge:answer", {"model": "python/judge:first"}, judge=PAIR_JUDGE
    )
    suite = (tmp_path / "evenhand.toml").read_text()
    suite = suite.replace('"rubric"', '"pairwise"').replace('rubric = "rubric.json"\n', "")
    (tmp_path / "evenhand.toml").write_text(suite)
    told = run_json(tmp_path, "--limit", "2")
    assert (told["answers"]["planned"], told["planned"]) == (4, 2)
    assert run_json(tmp_path)["planned"] == 5
    compared = json.loads(evenhand_here("compare", "--json", cwd=tmp_path).stdout)
    assert {each["variant"] for each in compared["expenses"]} == {"v1", "v2"}
    # Of several answers each is held against the one of its own time.
    (tmp_path / "evenhand.toml").write_text(suite.replace("[answers]", "[answers]\nrepeats = 2"))
    assert run_json(tmp_path)["planned"] == 10


def test_each_of_several_answers_is_called_by_its_number(tmp_path):
    write_answering(tmp_path, TWO[:1], answers={"repeats": 2})
    told = run_json(tmp_path)
    assert (told["answers"]["verdicts"], told["verdicts"]) == (4, 4)
    done = evenhand_here("export", "latest", "--full", "-o", "full.jsonl", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "full.jsonl").read_text().splitlines()
    units = [json.loads(line)["unit"] for line in lines]
    assert sorted((unit[0], unit.split("/")[2]) for unit in units) == [
        (number, variant) for number in "12" for variant in ("v1", "v2")
    ]


@pytest.mark.parametrize(
    ("questions", "prompt", "key"),
    [
        (TWO, "{{ topik }}", "kinds.misspelt_column"),
        (TWO, "{{ x }}", "kinds.unknown_column"),
        ([{"question": "", "topic": "a"}], "{{question}}", "data.empty_question"),
        ([TWO[0], TWO[0]], "{{question}}", "data.same_question"),
        ([], "{{question}}", "data.file_without_rows"),
        ([{**TWO[0], "Model_Output": "Old."}], "{{question}}", "data.taken_column"),
    ],
)
async def test_questions_that_fill_no_prompt_are_refused_before_a_call(
    tmp_path, questions, prompt, key
):
    write_answering(tmp_path, questions, prompts={"v1": prompt})
    with pytest.raises(DataError) as raised:
        await judged(tmp_path)
    assert raised.value.what.key == key


def test_columns_without_a_question_fill_prompts_and_are_shown_to_judges(tmp_path):
    rows = [{"город": "Рига", "n": 1}, {"город": "Рим", "n": ""}]
    write_answering(tmp_path, rows, prompts={"v1": "Tell of {{город}} {{n}}"})
    run_json(tmp_path)
    said = [(row["question"], row["answer"]) for row in made_rows(tmp_path)]
    assert said[0] == ("город: Рига\nn: 1", "So: Tell of Рига 1")


async def test_no_answer_is_paid_for_while_its_judge_has_no_key(tmp_path):
    async with Provider(saying("An answer.")) as provider:
        model = {"model": "openai/m", "base_url": provider.url}
        write_answering(tmp_path, TWO, model, {"model": "anthropic/claude-sonnet-4-5"})
        with pytest.raises(KeyMissing):
            await judged(tmp_path)
    assert not provider.calls


def test_an_app_may_answer_with_a_list_that_is_no_conversation(tmp_path):
    listed = JUDGE + "\nasync def listed(messages, schema, params):\n    return '[{\"a\": 1}]'\n"
    write_answering(tmp_path, TWO, "python/judge:listed", judge=listed)
    assert run_json(tmp_path)["verdicts"] == 4
    assert made_rows(tmp_path)[0]["answer"] == '[{"a": 1}]'


def test_a_table_that_is_in_the_way_is_told_before_a_call(tmp_path):
    write_answering(tmp_path, TWO)
    (tmp_path / "answers.jsonl").write_text('{"question": "Why?", "answer": "Mine."}\n')
    for command in ("run", "answer"):
        done = evenhand_here(command, "--json", cwd=tmp_path)
        assert done.returncode == 2 and "/4" not in done.stderr
    assert made_rows(tmp_path) == [{"question": "Why?", "answer": "Mine."}]


def test_answers_that_could_not_be_made_count_as_failures(tmp_path):
    spec = {"models": ["python/judge:answer", "python/judge:crash"]}
    write_answering(tmp_path, TWO, answers=spec, limits={"max_failure_rate": 0.4})
    done = evenhand_here("run", "--json", cwd=tmp_path)
    told = json.loads(done.stdout)
    assert (done.returncode, told["verdicts"]) == (1, 4)
    assert told["answers"]["failures"] == {"judge_crash": 4}
    flags = ("--every", "--max-failure-rate", "0.4", "--json")
    rubric = json.loads((tmp_path / "rubric.json").read_text())
    rubric["dimensions"][0]["pass"] = 3
    (tmp_path / "rubric.json").write_text(json.dumps(rubric))
    evenhand_here("run", cwd=tmp_path)
    gate = json.loads(evenhand_here("gate", *flags, cwd=tmp_path).stdout)
    outcomes = {each["name"]: each["outcome"] for each in gate["conditions"]}
    assert outcomes == {"every": "not enough evidence", "max_failure_rate": "worse"}


def test_answer_makes_the_table_alone_and_init_writes_such_a_suite(tmp_path):
    write_answering(tmp_path, TWO)
    (tmp_path / "bot.py").write_text(BOT)
    (tmp_path / "evenhand.toml").unlink()
    flags = ("--questions", "questions.jsonl", "--prompts", "v1.md", "--prompts", "v2.md")
    made = evenhand_here("init", *flags, "--model", "python/bot:answer", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    file = prepared(tmp_path).suite.file
    assert file.answers.prompts == ["v1.md", "v2.md"] and file.compare.baseline == "v1"
    told = json.loads(evenhand_here("answer", "--limit", "2", "--json", cwd=tmp_path).stdout)
    assert (told["planned"], told["verdicts"], told["finish"]) == (2, 2, {"stop": 2})
    assert len(made_rows(tmp_path)) == 2
    assert evenhand_here("compare", cwd=tmp_path).returncode == 2
    (tmp_path / "evenhand.toml").write_text(
        'protocol = "rubric"\nrubric = "Good?"\ndata = "x.csv"\n'
        '[[judges]]\nmodel = "python/judge:good"\n'
    )
    assert evenhand_here("answer", cwd=tmp_path).returncode == 2


async def test_what_answers_cost_and_took_is_compared_and_held_to_a_gate(tmp_path):
    async def dearer(call):
        # The second prompt is answered in twice as many tokens, and later.
        is_kind = len(call.body["messages"]) == 2
        await asyncio.sleep(0.05 if is_kind else 0.01)
        usage = {"prompt_tokens": 100, "completion_tokens": 200 if is_kind else 100}
        return web.json_response(
            {"choices": [{"message": {"content": "So."}, "finish_reason": "stop"}], "usage": usage}
        )

    async with Provider(dearer) as provider:
        model = {"model": "openai/m", "base_url": provider.url, "price": {"input": 0, "output": 10}}
        compare = {"by": "prompt_variant", "baseline": "v1"}
        write_answering(tmp_path, 8, model, compare=compare)
        assert (await run_beside(tmp_path)).returncode == 0
    compared = json.loads(evenhand_here("compare", "--json", cwd=tmp_path).stdout)
    costs = {e["variant"]: e for e in compared["expenses"] if e["measure"] == "cost_usd"}
    assert (costs["v1"]["mean"], costs["v2"]["change"]) == pytest.approx((0.001, 1.0))
    assert {e["measure"] for e in compared["expenses"]} == {"cost_usd", "latency_s"}
    outcomes = {}
    for flag, most in (("cost", "120%"), ("cost", "0.5"), ("latency", "50%")):
        flags = ("gate", f"--max-{flag}-increase", most, "--json")
        done = evenhand_here(*flags, cwd=tmp_path)
        [condition] = json.loads(done.stdout)["conditions"]
        outcomes[flag, most] = done.returncode, condition["outcome"], condition["n"]
    assert outcomes["cost", "120%"] == (0, "better", 8)
    assert outcomes["cost", "0.5"] == (1, "worse", 8)
    code, outcome, n = outcomes["latency", "50%"]  # as fast as the machine is
    assert {"better": 0, "worse": 1, "not enough evidence": 7}[outcome] == code and n == 8
    assert evenhand_here("gate", "--max-cost-increase", "-1", cwd=tmp_path).returncode == 2


async def test_answers_go_by_batches_as_judgments_do(tmp_path):
    def answering(request):
        return fitting(request) if request.get("schema") else "An answer."

    async with BatchProvider(answering) as server:
        model = server.judge("openai", price=PRICE)
        write_answering(tmp_path, 30, model, server.judge("openai", price=PRICE))
        key = dict.fromkeys(KEYS.values(), "sk-of-the-tests-0123456789")
        summary = await judged(tmp_path, key, batch=BatchOptions(then_live=0, look_first=0.01))
    assert (summary.counts.verdicts, summary.answers.counts.verdicts) == (60, 60)
    assert len(server.batches) == 2 and {row["answer"] for row in made_rows(tmp_path)} == {
        "An answer."
    }


def test_an_agent_of_the_users_own_returns_a_conversation(tmp_path):
    agent = JUDGE + (
        "\nasync def agent(messages, schema, params):\n"
        "    call = {'id': '1', 'function': {'name': 'look', 'arguments': '{}'}}\n"
        "    return [*messages, {'role': 'assistant', 'tool_calls': [call]},\n"
        "            {'role': 'tool', 'tool_call_id': '1', 'content': 'It is open.'},\n"
        "            {'role': 'assistant', 'content': 'The zoo is open today.'}]\n"
        "async def reader(messages, schema, params):\n"
        "    said = json.loads(reply(messages))\n"
        "    for score in said['scores'].values():\n"
        "        score['evidence'] = ['zoo is open']\n"
        "    assert 'Be kind' not in str(messages)\n"
        "    return json.dumps(said)\n"
    )
    write_answering(tmp_path, TWO, "python/judge:agent", "reader", judge=agent)
    told = run_json(tmp_path)
    assert (told["verdicts"], told["planned"]) == (4, 4)
    shown = evenhand_here("export", "latest", "--full", "-o", "out.jsonl", cwd=tmp_path)
    assert shown.returncode == 0
    first = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    assert first["evidence"][0]["turn"] == 4


async def test_answers_left_out_as_cut_are_told_where_variants_are_compared(tmp_path):
    async def cutting(call):
        asked = call.body["messages"]
        is_cut = len(asked) == 1 and "What is 0" in asked[0]["content"]
        return await saying("So.", finish="length" if is_cut else "stop")(call)

    async with Provider(cutting) as provider:
        model = {"model": "openai/m", "base_url": provider.url}
        compare = {"by": "prompt_variant", "baseline": "v1"}
        spec = {"on_cut": "leave out"}
        write_answering(tmp_path, 4, model, answers=spec, compare=compare)
        assert (await run_beside(tmp_path)).returncode == 0
    told = json.loads(evenhand_here("compare", "--json", cwd=tmp_path).stdout)["notes"]
    assert any(is_told(note, "notes.unanswered", variants='"v1 (1)"') for note in told)
    assert evenhand_here("gate", "--max-failure-rate", "0", cwd=tmp_path).returncode == 1
