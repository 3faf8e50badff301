"""Logs of other tools as data: the rows that they make, and what is left out."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import pytest

from evenhand import limits
from evenhand.data.read import read_rows
from evenhand.data.tables import Tables, TableSource
from evenhand.errors import DataError, UsageError
from evenhand.kinds import KINDS
from evenhand.kinds.messages import read_turns
from tests.sentences import keys, refused

ASKED, ANSWERED = "Where is order 7?", "It left on Monday."
ARGUMENTS = {"order": 7}
TURNS = [
    ("system", "Be brief."),
    ("user", ASKED),
    ("assistant", "Let me look.", 'find {"order":7}'),
    ("tool", "left on Monday", "find"),
    ("assistant", ANSWERED),
]
"""What all logs below hold, in their own ways."""


def rows_of(path, kind="rubric", columns=None):
    """The rows of a log, and what is told of it."""
    told = []
    tables = Tables([TableSource(path=path)], columns or {}, KINDS[kind].table_form, told.append)
    return [row.value for _, row in tables.rows], told


def write(path, *values):
    lines = map(json.dumps, values)
    Path(path).write_text("\n".join(lines), encoding="utf-8")
    return Path(path)


def turns(row):
    found = []
    for turn in read_turns(row["messages"]):
        more = [call.text for call in turn.calls] or [turn.tool]
        found.append((turn.role, turn.text, *filter(None, more)))
    return found


# Inspect

HEADER = {
    "version": 2,
    "status": "success",
    "eval": {"task": "orders", "model": "openai/gpt-4o", "task_args": {"shots": 3}},
}


def sample(name, epoch=1, **more):
    call = {"id": "c1", "function": "find", "arguments": ARGUMENTS, "type": "function"}
    thought = {"type": "reasoning", "reasoning": "A secret plan."}
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": ASKED, "source": "input"},
        {
            "role": "assistant",
            "content": [thought, {"type": "text", "text": "Let me look."}],
            "tool_calls": [call],
        },
        {"role": "tool", "content": "left on Monday", "tool_call_id": "c1", "function": "find"},
        {"role": "assistant", "content": ANSWERED, "model": "gpt-4o"},
    ]
    about = {"id": name, "epoch": epoch, "input": ASKED, "target": ["on Monday"]}
    return about | {"messages": messages, "metadata": {"area": "shop"}} | more


def write_eval(path, samples, header=HEADER):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(header))
        archive.writestr("summaries.json", json.dumps([{"id": "not read"}]))
        for each in samples:
            name = f"samples/{each['id']}_epoch_{each['epoch']}.json"
            archive.writestr(name, json.dumps(each))
    return path


def test_a_sample_of_inspect_is_a_row_with_its_arguments(tmp_path):
    failed = sample("s2", error={"message": "out of memory"})
    silent = sample("s3", messages=[{"role": "user", "content": ASKED}])
    samples = [sample("s1", scores={"match": {"value": float("nan")}}), failed, silent]
    path = write_eval(tmp_path / "log.eval", samples)
    packed = tmp_path / "packed.eval.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    whole = write(tmp_path / "log.json", HEADER | {"samples": samples})
    for each in (path, packed, whole):
        (row,), told = rows_of(each)
        assert turns(row) == TURNS and row["reference"] == "on Monday"
        assert row["meta"] == {
            "model": "openai/gpt-4o",
            "question_id": "s1",
            "task": "orders",
            "task_args.shots": 3,
            "metadata.area": "shop",
        }
        assert keys(told)[:3] == ["data.inspect_log", "data.log_failed", "data.log_unanswered"]
        assert told[0].values == {"file": each.name, "n": 1, "task": "orders"}
        assert "out of memory" in told[1] and "s3" in told[2]


def test_epochs_are_runs_and_a_tool_that_failed_says_its_error(tmp_path):
    several = HEADER | {"eval": HEADER["eval"] | {"config": {"epochs": 2}}}
    second = sample("s1", 2)
    second["messages"][3] |= {"content": "", "error": {"type": "timeout", "message": "too slow"}}
    path = write_eval(tmp_path / "log.eval", [sample("s1"), second], several)
    rows, _ = rows_of(path)
    assert [row["meta"]["run_id"] for row in rows] == [1, 2]
    assert turns(rows[1])[3] == ("tool", "too slow", "find")


def test_a_log_is_bounded_and_is_no_table(tmp_path, monkeypatch):
    path = write_eval(tmp_path / "log.eval", [sample("s1", input="x" * 100_000)])
    with refused(UsageError, "data.is_log"):
        read_rows(path)
    for bound, size, key in (
        ("UNPACKED_BYTES", 50_000, "log_too_large"),
        ("LINE_BYTES", 50_000, "row_too_long"),
    ):
        with monkeypatch.context() as changed, refused(DataError, f"data.{key}"):
            changed.setattr(limits, bound, size)
            rows_of(path)
    with refused(DataError, "data.log_failed"):
        rows_of(write_eval(path, [sample("s1", error={"message": "no"})]))
    path.write_bytes(b"no zip")
    with refused(DataError, "data.bad_zip"):
        rows_of(path)


# promptfoo


VARS = {"question": "Why?", "model": "car", "language": "French", "answer": "42", "area": "a"}


def result(output, raw="Answer: Why?", **more):
    about = {"promptIdx": 0, "testIdx": 0, "vars": VARS}
    about |= {"provider": {"id": "openai:gpt-4o"}, "prompt": {"raw": raw, "label": "plain"}}
    about |= {"response": {"output": output}, "latencyMs": 812, "cost": 0.002, "failureReason": 0}
    return about | more


FAILED = {"response": {}, "failureReason": 2, "error": "API error: 500"}


@pytest.mark.parametrize("form", ["file", "older", "lines"])
def test_a_result_of_promptfoo_is_a_row_with_its_variables(tmp_path, form):
    results = [result("Because."), result({"a": 1}), result(None, **FAILED), result(None)]
    if form == "lines":
        path = write(tmp_path / "results.jsonl", *results)
    else:
        if form == "older":
            label = {"prompt": {"raw": "Answer: Why?", "display": "plain"}}
            results = [each | label for each in results]
        held = results if form == "older" else {"version": 3, "results": results, "stats": {}}
        path = write(tmp_path / "results.json", {"evalId": "e", "results": held})
    rows, told = rows_of(path)
    assert [row["model_output"] for row in rows] == ["Because.", '{"a":1}']
    assert rows[0]["question"] == "Why?"
    meta = rows[0]["meta"]
    names = ("model", "prompt_variant", "vars.model", "vars.language", "vars.answer", "area")
    assert [meta[name] for name in names] == ["openai:gpt-4o", "plain", "car", "French", "42", "a"]
    assert (meta["latency_ms"], meta["cost"]) == (812, 0.002)
    assert {row["meta"]["question_id"] for row in rows} == {meta["question_id"]}
    assert keys(told)[:3] == ["data.promptfoo_log", "data.log_failed", "data.log_unanswered"]
    assert "API error: 500" in told[1]


def test_chats_and_prompts_without_a_question_are_messages(tmp_path):
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": ASKED}]
    city = {"vars": {"city": "Rome"}}
    results = [
        result("Yes.", json.dumps(chat), **city),
        result([{"role": "assistant", "content": ANSWERED}], ASKED, **city),
        result("Sunny.", "Weather in Rome?", **city),
    ]
    rows, _ = rows_of(write(tmp_path / "results.jsonl", *results))
    assert [(row["question"], turns(row)[-1][1]) for row in rows] == [
        (ASKED, "Yes."),
        (ASKED, ANSWERED),
        ("Weather in Rome?", "Sunny."),
    ]
    assert turns(rows[0])[0] == ("system", "Be brief.")
    assert rows[0]["meta"]["city"] == "Rome"


def test_answers_to_different_prompts_are_pairs_by_a_variable(tmp_path):
    results = [
        result(f"Sunny, {name}.", f"{name} in Rome?", vars={"city": "Rome"}, provider={"id": name})
        for name in ("a", "b")
    ]
    path = write(tmp_path / "results.jsonl", *results)
    (pair,), _ = rows_of(path, "pairwise", {"topic": "city"})
    assert pair["topic"] == "Rome"
    texts = [(each["id"], each["text"]) for each in pair["candidates"]]
    assert texts == [("a", "Sunny, a."), ("b", "Sunny, b.")]


# OpenTelemetry


def said(role, *parts):
    return {"role": role, "parts": [*parts]}


def text(content):
    return {"type": "text", "content": content}


CALL = {"type": "tool_call", "id": "c1", "name": "find", "arguments": ARGUMENTS}
RESULT = {"type": "tool_call_response", "id": "c1", "response": "left on Monday"}
FIRST = [said("user", text(ASKED))]
LOOKING = said("assistant", {"type": "reasoning", "content": "A plan."}, text("Let me look."), CALL)
FOUND = said("tool", RESULT)
LAST = {**said("assistant", text(ANSWERED)), "finish_reason": "stop"}


def attributes(asked, answered, **more):
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.system_instructions": json.dumps([text("Be brief.")]),
        "gen_ai.input.messages": json.dumps(asked),
        "gen_ai.output.messages": json.dumps(answered),
        **more,
    }


def value(given):
    """A value as OTLP writes it."""
    if isinstance(given, list):
        return {"arrayValue": {"values": [value(each) for each in given]}}
    if isinstance(given, dict):
        return {"kvlistValue": {"values": pairs(given)}}
    return {"intValue": str(given)} if isinstance(given, int) else {"stringValue": given}


def pairs(given):
    return [{"key": key, "value": value(each)} for key, each in given.items()]


def otlp(*spans, name="Spans"):
    inner = "spans" if name == "Spans" else "logRecords"
    return {f"resource{name}": [{f"scope{name}": [{inner: [*spans]}]}]}


def span(start, given, **more):
    about = {"traceId": "t1", "spanId": str(start), "startTimeUnixNano": f"{start:019}"}
    return about | {"attributes": pairs(given)} | more


AGENT = attributes(FIRST, [LAST], **{"gen_ai.operation.name": "invoke_agent"})
ONE, TWO = attributes(FIRST, [LOOKING]), attributes([*FIRST, LOOKING, FOUND], [LAST])
STRUCTURED = TWO | {name: json.loads(TWO[name]) for name in TWO if name.endswith("messages")}
BARE = {"gen_ai.operation.name": "chat"}


def flat(start, given):
    context = {"trace_id": "t1", "span_id": str(start)}
    about = {"name": "chat", "context": context, "start_time": f"2026-05-01T10:00:0{start}Z"}
    return about | {"attributes": given}


def detail(given):
    return {"name": "gen_ai.client.inference.operation.details", "attributes": pairs(given)}


OTEL = {
    "OTLP": [otlp(span(2, TWO), span(1, ONE), span(3, {"http.method": "GET"}), span(9, AGENT))],
    "OTLP per line": [otlp(span(1, ONE)), otlp(span(2, STRUCTURED))],
    "events of a span": [otlp(span(1, BARE, events=[detail(STRUCTURED)]))],
    "records of events": [otlp(span(1, STRUCTURED), name="Logs")],
    "a span per line": [flat(2, TWO), flat(1, ONE)],
    "only what is new": [
        flat(1, ONE),
        flat(2, attributes([FOUND], [LAST]) | {"gen_ai.system_instructions": None}),
    ],
}


@pytest.mark.parametrize("form", OTEL)
def test_a_trace_of_opentelemetry_is_a_conversation(tmp_path, form):
    name = "trace.json" if form == "OTLP" else "trace.jsonl"
    (row,), told = rows_of(write(tmp_path / name, *OTEL[form]))
    assert turns(row) == TURNS
    assert (row["id"], row["meta"]["model"]) == ("t1", "gpt-4o")
    assert told[0].values == {"file": name, "n": 1, "tool": "OpenTelemetry"}


def test_a_conversation_of_several_traces_is_one_and_failed_ones_are_left_out(tmp_path):
    ours = {"gen_ai.conversation.id": "talk"}
    again = said("user", text("And order 8?"))
    traces = [
        span(1, attributes(FIRST, [LAST]) | ours),
        span(2, attributes([*FIRST, LAST, again], [LAST]) | ours, traceId="t2"),
        span(3, attributes(FIRST, []) | {"error.type": "timeout"}, traceId="t3"),
        span(4, TWO | {"gen_ai.input.messages": '[{"role": "us'}, traceId="t4"),
    ]
    (row,), told = rows_of(write(tmp_path / "trace.json", otlp(*traces)))
    assert row["id"] == "talk"
    assert [role for role, *_ in turns(row)] == ["system", *["user", "assistant"] * 2]
    assert keys(told)[:3] == ["data.trace_log", "data.log_failed", "data.log_unanswered"]
    assert "t3: timeout" in told[1] and "t4" in told[2]


def test_spans_without_messages_are_refused(tmp_path):
    with refused(DataError, "data.no_span_messages", "gen_ai.input.messages"):
        rows_of(write(tmp_path / "trace.json", otlp(span(1, {"gen_ai.prompt.0.content": "Hi"}))))
    run = {"run_type": "chain", "trace_id": "t1", "inputs": {"question": "?"}, "outputs": {}}
    with refused(DataError, "data.no_run_messages", "inputs.messages"):
        rows_of(write(tmp_path / "runs.jsonl", run))


# LangSmith


def built(kind, **given):
    return {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", kind],
        "kwargs": given,
    }


LANGCHAIN = [
    built("SystemMessage", content="Be brief.", type="system"),
    built("HumanMessage", content=ASKED, id="m1"),
    built(
        "AIMessageChunk",
        content=[
            {"type": "text", "text": "Let me look."},
            {"type": "tool_use", "id": "c1", "name": "find", "input": ARGUMENTS},
        ],
        tool_calls=[{"name": "find", "args": ARGUMENTS, "id": "c1", "type": "tool_call"}],
    ),
    built("ToolMessage", content="left on Monday", tool_call_id="c1", name="find"),
    built("AIMessage", content=ANSWERED),
]
GRAPH = [each["kwargs"] | {"type": kind} for each, (kind, *_) in zip(LANGCHAIN, TURNS, strict=True)]
GRAPH = [
    each | {"type": {"user": "human", "assistant": "ai"}.get(each["type"], each["type"])}
    for each in GRAPH
]
OPENAI = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": ASKED},
    {
        "role": "assistant",
        "content": "Let me look.",
        "tool_calls": [
            {"id": "c1", "function": {"name": "find", "arguments": json.dumps(ARGUMENTS)}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "left on Monday"},
    {"role": "assistant", "content": ANSWERED},
]
ANTHROPIC = [*OPENAI[1:2], LANGCHAIN[2]["kwargs"] | {"role": "assistant", "tool_calls": None}]
ANTHROPIC += [
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "left on Monday"}],
    }
]


def ran(inputs, outputs, kind="llm", start=1, **more):
    about = {"run_type": kind, "trace_id": "t1", "start_time": f"2026-05-01T10:00:0{start}"}
    named = {"metadata": {"ls_model_name": "gpt-4o"}} if kind == "llm" else {}
    return about | {"inputs": inputs, "outputs": outputs, "extra": named} | more


def chosen(message):
    return {"choices": [{"index": 0, "message": message}]}


LANGSMITH = {
    "LangChain": [
        ran({"messages": [LANGCHAIN[:-1]]}, {"generations": [[{"message": LANGCHAIN[-1]}]]}),
        ran({"messages": GRAPH[:2]}, {"messages": GRAPH[:2]}, "chain", 0),
    ],
    "the state of a graph": [ran({"messages": GRAPH[:2]}, {"messages": GRAPH}, "chain")],
    "OpenAI": [
        ran({"messages": OPENAI[:4]}, chosen(OPENAI[4]), start=2),
        ran({"messages": OPENAI[:2]}, chosen(OPENAI[2])),
    ],
    "Anthropic": [
        ran({"system": "Be brief.", "messages": ANTHROPIC}, OPENAI[-1] | {"id": "x"}),
    ],
    "texts of a table": [
        ran(json.dumps({"messages": OPENAI[:4]}), json.dumps(chosen(OPENAI[4]))),
    ],
}


@pytest.mark.parametrize("form", LANGSMITH)
def test_a_trace_of_langsmith_is_a_conversation(tmp_path, form):
    (row,), told = rows_of(write(tmp_path / "runs.jsonl", *LANGSMITH[form]))
    assert turns(row) == TURNS
    assert row["id"] == "t1" and row["meta"].get("model") == (
        None if form == "the state of a graph" else "gpt-4o"
    )
    assert told[0].values["tool"] == "LangSmith"


def test_a_thread_of_langsmith_is_one_conversation(tmp_path):
    thread = {"extra": {"metadata": {"thread_id": "talk"}}}
    runs = [
        ran({"messages": OPENAI[:2]}, chosen(OPENAI[2]), **thread),
        ran({"messages": OPENAI[3:4]}, chosen(OPENAI[4]), start=2, trace_id="t2", **thread),
        ran({"messages": OPENAI[:2]}, None, trace_id="t3", error="RateLimitError"),
    ]
    (row,), told = rows_of(write(tmp_path / "runs.jsonl", *runs))
    assert row["id"] == "talk" and turns(row) == TURNS
    assert "t3: RateLimitError" in told[1]
