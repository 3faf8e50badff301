"""Logs of other tools as tables: a row per sample, result or conversation, found by what a file
holds.

- Inspect's `.eval` and `.json`: a row per sample and epoch, with its messages.
- promptfoo's results: a row per result, with the variables of its test as columns.
- OpenTelemetry with messages of generative models, as OTLP in JSON or a span per line, and runs of
  LangSmith: a row per conversation, which the calls of a model make. A call that is sent all of
  the one before holds the whole; otherwise calls are joined in the order of time.

What ended in an error, or has no answer, is left out and told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from evenhand.data.columns import Row, Rows
from evenhand.data.conversation import parse_text, with_system
from evenhand.data.files import LISTED, ending_of, require_file
from evenhand.data.layouts.logs import (
    Log,
    Object,
    error_of,
    inspect_fields,
    log_of,
    open_archive,
    promptfoo_fields,
    provider_error,
    results_in,
    variables_of,
)
from evenhand.data.layouts.tidy import begin, list_of, non_null, object_of, short_hash, text_of
from evenhand.data.read import read_rows
from evenhand.data.recognise import fold, usual_names
from evenhand.errors import DataError, NoRows
from evenhand.jsontext import as_text, dump
from evenhand.kinds.messages import is_conversation, read_turns
from evenhand.kinds.rows import RowError
from evenhand.words import Sentence, few

_ROWS_LOOKED_AT = 200
_DETAILS = "gen_ai.client.inference.operation.details"
_CHAT = ("chat", "generate_content", "text_completion")
"""The operations of OpenTelemetry that are one call of a model: an agent's span has a part of what
its calls have."""
_TRACE = ("traceId", "trace_id")
_OURS: tuple[str, ...] = (
    "answer",
    "model",
    "variant",
    "question_id",
    "run_id",
    "eval_set",
    "ident",
    "messages",
)
_OURS += ("rubric", "criteria", "language", "task_name")
"""What a variable of promptfoo is not, whatever its name."""
_THREADS = ("thread_id", "session_id", "conversation_id")
_OTLP = (("resourceSpans", "scopeSpans", "spans"), ("resourceLogs", "scopeLogs", "logRecords"))

Table = tuple[Rows, Sequence[str]]
"""The rows of a file, and what is to be told of them."""


def read_table(
    path: Path, root: Path | None = None, *, encoding: str | None = None, sheet: str | None = None
) -> Table:
    """Return the rows of a data file; raise UsageError or DataError."""
    if ending_of(path) == ".eval":
        require_file(path)
        return _inspect_table(open_archive(path, root, is_whole=True), path)
    try:
        rows = read_rows(path, root=root, encoding=encoding, sheet=sheet)
    except NoRows:
        raise
    except DataError:
        # A log may hold NaN, which JSON has not.
        found = _find_log(read_rows(path, lenient=True, root=root, encoding=encoding), path)
        if found is None:
            raise
        return found
    return _find_log(rows, path) or (rows, ())


def _find_log(rows: Rows, path: Path) -> Table | None:
    """Return the table of a log; None for a table that is none; raise DataError."""
    sample = list(islice(rows.values(), _ROWS_LOOKED_AT))
    first = sample[0]
    if "task" in object_of(first.get("eval")):
        return _inspect_table(log_of(first, path), path)
    results = list(map(object_of, results_in(first)))
    if _is_result(results[0] if results else first):
        return _table("promptfoo_log", _read_results(results or rows.values()), path)
    if any(key in row for row in sample for key, *_ in _OTLP) or any(map(_is_span, sample)):
        return _trace_table("OpenTelemetry", _otel_calls(rows), "data.no_span_messages", path)
    if any("run_type" in row and "inputs" in row for row in sample):
        return _trace_table("LangSmith", _langsmith_calls(rows), "data.no_run_messages", path)
    return None


class _Entry(NamedTuple):
    """What a log has at a place: a row, or why it is left out."""

    name: object
    line: int
    error: str
    row: dict[str, Any] | None
    """None where nothing was asked or answered."""


def _table(key: str, entries: Iterable[_Entry], path: Path, **values: object) -> Table:
    """Return the rows of a log; raise DataError where none is left."""
    kept: list[_Entry] = []
    left: dict[str, list[str]] = {"log_failed": [], "log_unanswered": []}
    for entry in entries:
        if entry.error:
            left["log_failed"].append(f"{entry.name}: {begin(entry.error)}")
        elif entry.row is None:
            left["log_unanswered"].append(str(entry.name))
        else:
            kept.append(entry)
    remarks = [
        Sentence(f"data.{why}", n=len(names), names=few(names, LISTED))
        for why, names in left.items()
        if names
    ]
    if not kept:
        what = remarks[0] if remarks else Sentence("data.file_without_rows")
        raise DataError(what, where=str(path))
    told = Sentence(f"data.{key}", file=path.name, n=len(kept), **values)
    lines = [entry.line for entry in kept]
    return Rows(str(path), [entry.row for entry in kept], lines=lines), [told, *remarks]


def _inspect_table(log: Log, path: Path) -> Table:
    about, samples = log
    several = object_of(about.get("config")).get("epochs") not in (None, 1)

    def entries() -> Iterator[_Entry]:
        for number, (sample, _) in enumerate(samples, 1):
            messages, target = _inspect_messages(sample), sample.get("target")
            meta = inspect_fields(about, sample) | {"question_id": sample.get("id")}
            if several:
                meta["run_id"] = sample.get("epoch")
            if isinstance(target, list) and len(target) == 1:
                target = target[0]
            row = non_null(messages=messages, reference=target or None, meta=meta)
            is_answered = any(message.get("role") == "assistant" for message in messages)
            error = error_of(sample)
            yield _Entry(sample.get("id"), number, error, row if is_answered else None)

    return _table("inspect_log", entries(), path, task=text_of(about.get("task")))


def _inspect_messages(sample: Object) -> list[Object]:
    """Return the messages of a sample; a model is told the error of a tool in place of its text."""
    messages = map(object_of, list_of(sample.get("messages")))
    return [
        {**message, "content": error["message"]}
        if (error := object_of(message.get("error"))).get("message")
        else message
        for message in messages
    ]


def _is_result(value: Object) -> bool:
    has_test = any(isinstance(value.get(name), dict) for name in ("vars", "testCase"))
    return has_test and isinstance(value.get("prompt"), dict)


def _read_results(results: Iterable[Object]) -> Iterator[_Entry]:
    for number, result in enumerate(results, 1):
        output = object_of(result.get("response")).get("output")
        row = None if output is None else _promptfoo_row(result, output)
        yield _Entry(number, number, provider_error(result), row)


def _promptfoo_row(result: Object, output: Any) -> dict[str, Any]:
    """Return a row with the variables as columns; one that is called like something else of a row
    is `vars.NAME`. Without a question among them, what was sent is the question."""
    variables, about = variables_of(result), promptfoo_fields(result)
    label = about.pop("prompt", None)
    fields = non_null(
        **about,
        prompt_variant=label,
        # The question may read otherwise in each prompt.
        question_id=short_hash(dump(variables)) if variables else None,
        latency_ms=result.get("latencyMs"),
        cost=result.get("cost"),
    )
    taken = {*fields, *usual_names(*_OURS), "meta"}
    row = {f"vars.{name}" if fold(name) in taken else name: v for name, v in variables.items()}
    sent = object_of(result.get("prompt")).get("raw")
    if not is_conversation(asked := parse_text(sent)):
        asked = [{"role": "user", "content": sent}]
    if is_conversation(output):
        return row | fields | {"messages": [*asked, *output]}
    has_question = any(fold(name) in usual_names("question") for name in row)
    return (
        row | fields | {"answer": as_text(output), **({} if has_question else {"messages": asked})}
    )


class _Call(NamedTuple):
    """A call of a model, or what a run of several is told to have had in and out."""

    conversation: str
    time: object
    line: int
    asked: list[Any]
    answered: list[Any]
    model: object
    error: object
    is_model: bool
    """False for a run around the calls of a model."""


def _trace_table(tool: str, calls: Iterable[_Call], key: str, path: Path) -> Table:
    conversations: dict[str, list[_Call]] = {}
    # Times of one tool are texts of one form.
    for call in sorted(calls, key=lambda call: text_of(call.time).rstrip("Z")):
        conversations.setdefault(call.conversation, []).append(call)
    if not any(call.asked for calls in conversations.values() for call in calls):
        raise DataError(Sentence(key), where=str(path))
    entries = (_join_calls(name, calls) for name, calls in conversations.items())
    return _table("trace_log", entries, path, tool=tool)


def _join_calls(name: str, calls: Sequence[_Call]) -> _Entry:
    """Return the conversation that calls make, in the order of time."""
    asked: list[Any] = []
    whole: list[Any] = []
    calls = [call for call in calls if call.is_model] or calls
    for call in calls:
        is_resent = _begins(call.asked, asked)
        asked = call.asked if is_resent else [*whole, *call.asked]
        whole = [*asked, *call.answered]
    last = calls[-1]
    row = {"id": name, "messages": whole, "meta": {"model": last.model} if last.model else {}}
    error = "" if last.answered else text_of(last.error)
    return _Entry(name, last.line, error, row if asked and last.answered else None)


def _begins(messages: list[Any], earlier: list[Any]) -> bool:
    """Return True if messages begin with earlier ones, by what they say: marks of a cache, and ids,
    may differ."""
    start = messages[: len(earlier)]
    try:
        return start == earlier or read_turns(start) == read_turns(earlier)
    except RowError:
        return False


def _messages(value: Any) -> list[Any]:
    """Return a list of messages, or of one such list, which may be written as a text."""
    found = list_of(parse_text(value))
    return found[0] if len(found) == 1 and isinstance(found[0], list) else found


def _line(row: Row) -> int:
    return int(row.where.rpartition(":")[2])


def _first(holder: Object, *names: str) -> Any:
    """Return the first value that is there under one of these names."""
    return next((holder[name] for name in names if holder.get(name)), None)


def _is_span(row: Object) -> bool:
    context = {**row, **object_of(row.get("context"))}
    return bool(_first(context, *_TRACE)) and isinstance(row.get("attributes"), dict | list)


def _otel_calls(rows: Rows) -> Iterator[_Call]:
    for row in rows:
        for span in _spans(row.value):
            found = _attributes(span.get("attributes"))
            for event in map(object_of, list_of(span.get("events"))):
                if event.get("name") == _DETAILS:
                    found |= _attributes(event.get("attributes"))
            asked, answered = (found.get(f"gen_ai.{way}.messages") for way in ("input", "output"))
            if not asked and not answered:
                continue
            system = parse_text(found.get("gen_ai.system_instructions"))
            context = {**found, **span, **object_of(span.get("context"))}
            yield _Call(
                text_of(_first(context, "gen_ai.conversation.id", *_TRACE)),
                _first(span, "startTimeUnixNano", "start_time", "timeUnixNano"),
                _line(row),
                with_system(system, _messages(asked)),
                _messages(answered),
                _first(found, "gen_ai.request.model", "gen_ai.response.model"),
                object_of(span.get("status")).get("message") or found.get("error.type"),
                found.get("gen_ai.operation.name") in (None, *_CHAT),
            )


def _spans(row: Object) -> Iterator[dict[str, Any]]:
    """Yield the spans of a row, or its records of events: it is one, or holds several in OTLP."""
    several = [
        dict(object_of(span))
        for outer, middle, inner in _OTLP
        for resource in list_of(row.get(outer))
        for scope in list_of(object_of(resource).get(middle))
        for span in list_of(object_of(scope).get(inner))
    ]
    yield from several or [dict(row)]


def _attributes(given: Any) -> dict[str, Any]:
    """Return attributes by name, from an object or from OTLP's list of keys and values."""
    if isinstance(given, dict):
        return dict(given)
    pairs = map(object_of, list_of(given))
    return {text_of(pair.get("key")): _value(object_of(pair.get("value"))) for pair in pairs}


def _value(value: Object) -> Any:
    """Return a value of OTLP, which is written with its type."""
    kind, inner = next(iter(value.items()), ("", None))
    if kind == "arrayValue":
        return [_value(object_of(each)) for each in list_of(object_of(inner).get("values"))]
    if kind == "kvlistValue":
        return _attributes(object_of(inner).get("values"))
    with suppress(ValueError):
        return int(inner) if kind == "intValue" and isinstance(inner, str) else inner
    return inner


def _langsmith_calls(rows: Rows) -> Iterator[_Call]:
    for row in rows:
        run = row.value
        inputs, outputs, extra = (
            object_of(parse_text(run.get(name))) for name in ("inputs", "outputs", "extra")
        )
        metadata = object_of(extra.get("metadata"))
        asked = with_system(inputs.get("system"), _messages(inputs.get("messages")))
        answered = _run_answer(outputs)
        if _begins(answered, asked):  # the state of a graph
            answered = answered[len(asked) :]
        yield _Call(
            text_of(_first(metadata, *_THREADS) or _first(run, "trace_id", "id", "run_id")),
            run.get("start_time"),
            _line(row),
            asked,
            answered,
            metadata.get("ls_model_name") or inputs.get("model"),
            run.get("error"),
            run.get("run_type") == "llm",
        )


def _run_answer(outputs: Object) -> list[Any]:
    """Return the messages that a run returned, as LangChain, OpenAI and Anthropic write them."""
    if is_conversation(several := _messages(outputs.get("messages"))):
        return several
    choices = _messages(_first(outputs, "generations", "choices")) or [outputs]
    message = object_of(choices[0]).get("message", choices[0])
    return [message] if is_conversation([message]) else []
