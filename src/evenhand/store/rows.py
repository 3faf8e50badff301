"""Content keys, and calls and judgments as rows of their tables.

A key is a tagged hash of everything that can change an answer, and of nothing else. Canonical form
of a call, version 2: these texts in UTF-8, each as its length in bytes, a colon, the bytes and a
comma:

    identity  schema  round  repeat  reask  unit  order  role content  role content  ...

- `identity`: provider, base URL, model or the weights' hash, and parameters of the judge, as JSON
  without white space, keys sorted, non-ASCII characters unescaped; so is `schema`, or `null`;
- `unit` and `order`: the unit's id and the order of a pair for judges that answer by them (recorded
  replies), else empty;
- role and content of every message of the conversation.

The key is `call2-blake2b:` and the hex of its 20-byte BLAKE2b. Not part of it: API keys, time,
which candidate a file names first, which structured-output mode the endpoint accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import blake2b
from time import time_ns
from typing import Any

from msgspec import Struct
from msgspec.json import encode

from evenhand import jsontext
from evenhand.exchange import Question, Reply, Schema, Usage
from evenhand.jsontext import StoredText, canonical, stored_object
from evenhand.judgment import JudgmentText
from evenhand.store.ports import Call, LedgerCall, StoredJudgment

CALL_TAG = "call2-blake2b:"

OPENINGS_KEPT = 16
"""Beginnings of calls of which the hash is kept: languages, rounds and schemas of one run."""

Numbers = tuple[int, int, int]
"""Round, repeat and re-ask."""
Place = tuple[str, str]
"""The unit's id and the order of a pair."""
NO_PLACE: Place = ("", "")


def call_keys(identity: Mapping[str, Any]) -> Callable[[Question], str]:
    """Return the function from a question to its key, for the judge with this identity.

    The parts that many questions share (judge, schema, first message) are hashed once, and the
    rest of each question after them.
    """
    judge = _frame(canonical(dict(identity)))
    by_unit = bool(identity.get("by_unit"))

    @lru_cache(maxsize=OPENINGS_KEPT)
    def opening(
        schema: Schema | None, numbers: Numbers, place: Place, role: str, content: str
    ) -> blake2b:
        data = schema.data if schema else b"null"
        parts = [judge, _frame_bytes(data), *(_frame(str(number)) for number in numbers)]
        parts += map(_frame, (*place, role, content))
        return blake2b(b"".join(parts), digest_size=20)

    def key(question: Question) -> str:
        first, *rest = question.messages
        numbers = (question.round, question.repeat, question.reask)
        place = (question.unit, question.order) if by_unit else NO_PLACE
        whole = opening(question.schema, numbers, place, first.role, first.content).copy()
        for message in rest:
            whole.update(_frame(message.role) + _frame(message.content))
        return CALL_TAG + whole.hexdigest()

    return key


def _frame(text: str) -> bytes:
    """Return a text with its length, so that it cannot run into the next one."""
    return _frame_bytes(text.encode("utf-8", "surrogatepass"))


def _frame_bytes(data: bytes) -> bytes:
    return b"%d:%b," % (len(data), data)


def unit_digest(ident: str, body: str) -> str:
    """Return the hash by which a unit is known: of its id and its content."""
    parts = _frame(ident) + _frame(body)
    return blake2b(parts, digest_size=16, person=b"evenhand-unit-1").hexdigest()


def content_of(digests: Iterable[str]) -> str:
    """Return the hash of a set of units, from their digests in ascending order."""
    content = blake2b(digest_size=16, person=b"evenhand-data-1")
    for digest in digests:
        content.update(bytes.fromhex(digest))
    return content.hexdigest()


def run_id(name: str, judging: str, content: str) -> str:
    """Return the id of a run: twelve hex digits of the hash of its name, judging and units."""
    parts = b"".join(map(_frame, (name, judging, content)))
    return blake2b(parts, digest_size=6, person=b"evenhand-run-2").hexdigest()


def row_digest(*fields: object) -> str:
    """Return a hash of what a row holds, to see whether any of it changed."""
    return blake2b(encode(fields), digest_size=12, person=b"evenhand-row-1").hexdigest()


def digest(text: str) -> str:
    """Return a short hash of a text, to see whether it changed."""
    return blake2b(text.encode(), digest_size=12).hexdigest()


# Rows

CALL_COLUMNS = (
    "key, run, judge, reply, finish, model, odds, sampling, input_tokens, output_tokens,"
    " cached_tokens, cost, input_bound, output_bound, implausible_usage, cache_write_tokens,"
    " reasoning, seconds"
)
STORED_CALL = f"{CALL_COLUMNS}, digest, at"
KEEP_CALL = (
    f"INSERT INTO calls ({STORED_CALL}) VALUES ({','.join('?' * (STORED_CALL.count(',') + 1))})"
    " ON CONFLICT (key, digest) DO NOTHING"
)
LEDGER_CALL = f"no, at, aside, digest, {CALL_COLUMNS}"
JUDGMENT_COLUMNS = "judging, unit, judge, repeat, status, reason, calls, reasks, body, observations"
SETTLE = (
    f"INSERT INTO judgments ({JUDGMENT_COLUMNS}, digest) VALUES (?,?,?,?,?,?,?,?,?,?,?)"
    " ON CONFLICT (judging, unit, judge, repeat) DO UPDATE SET status=excluded.status,"
    " reason=excluded.reason, calls=excluded.calls, reasks=excluded.reasks, body=excluded.body,"
    " observations=excluded.observations, digest=excluded.digest"
)
"""Keep a judgment, in place of the one before."""
UNIT = "u.no, m.position, u.id, u.body"
JUDGMENT = "j.unit, j.judge, j.repeat, j.status, j.reason, j.reasks, j.body, j.observations"


def now() -> str:
    """Return the time in UTC, to the millisecond."""
    seconds, milliseconds = divmod(time_ns() // 1_000_000, 1000)
    return f"{_second(seconds)}.{milliseconds:03}+00:00"


@lru_cache(maxsize=1)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def call_row(call: Call, at: str) -> tuple[Any, ...]:
    """Return a call recorded at a time as a row of STORED_CALL."""
    reply, usage, most = call.reply, call.reply.usage, call.most
    columns = (
        *(call.key, call.run, call.judge, reply.text, reply.finish, reply.model),
        jsontext.compact(reply.odds) if reply.odds else "",
        _sampling_text(reply.sampling) if reply.sampling else "",
        *(usage.input_tokens, usage.output_tokens, usage.cached_tokens, call.cost),
        *(most.input_tokens, most.output_tokens, usage.implausible or None),
        *(usage.cache_write_tokens or None, reply.reasoning or None, reply.seconds),
    )
    return (*columns, row_digest(*columns, at), at)


def _sampling_text(sampling: Mapping[str, Any]) -> str:
    """Return sampling parameters as JSON. A user's own judge may put anything there: its reply is
    paid for, and is kept whatever it says."""
    try:
        return jsontext.compact(dict(sampling))
    except (TypeError, ValueError):
        return jsontext.compact({str(name): _to_json(sampling[name]) for name in sampling})


def _to_json(value: object) -> object:
    try:
        jsontext.compact(value)
    except (TypeError, ValueError):
        return repr(value)
    return value


def is_altered(columns: Sequence[Any], stored: object, at: str) -> bool:
    """Return True if a call, in CALL_COLUMNS, is not what was recorded."""
    return row_digest(*columns, at) != stored


def ledger_call(row: Sequence[Any]) -> LedgerCall:
    """Return the call of a row of LEDGER_CALL; raises StoreError."""
    no, at, aside, stored, *columns = row
    return LedgerCall(no, at, aside is not None, _call(columns), is_altered(columns, stored, at))


def _call(columns: Sequence[Any]) -> Call:
    key, run, judge, text, finish, model, odds, sampling, *numbers, reasoning, seconds = columns
    read, written, cached, cost, read_most, written_most, implausible, cache_write = numbers
    usage = Usage(
        input_tokens=read,
        output_tokens=written,
        cached_tokens=cached,
        cache_write_tokens=cache_write or 0,
        implausible=implausible or "",
    )
    reply = Reply(
        text=text,
        finish=finish,
        usage=usage,
        model=model,
        odds=stored_object(odds, "a call") if odds else {},
        sampling=stored_object(sampling, "a call") if sampling else {},
        reasoning=reasoning or "",
        seconds=seconds,
    )
    most = Usage(input_tokens=read_most, output_tokens=written_most)
    return Call(key, run, judge, reply, cost, most)


def judgment_row(judging: int, stored: StoredJudgment) -> tuple[Any, ...]:
    """Return a judgment as a row of JUDGMENT_COLUMNS and its digest."""
    key = (judging, stored.unit, stored.judge, stored.repeat)
    return text_row(key, stored.text, len(stored.calls), stored.reasks)


def text_row(
    key: tuple[int, int, int, int], text: JudgmentText, calls: int = 0, reasks: int = 0
) -> tuple[Any, ...]:
    """Return the row of a judgment by its key: judging, unit, judge and repeat."""
    columns = (*key, text.status, text.reason, calls, reasks, text.body, text.observations)
    return (*columns, row_digest(*columns))


class _Calls(Struct):
    calls: tuple[str, ...]


_calls: StoredText[_Calls] = StoredText(_Calls, "a judgment")


def row_judgment(row: Sequence[Any]) -> StoredJudgment:
    """Return the judgment of a row of JUDGMENT; raises StoreError."""
    unit, judge, repeat, status, reason, reasks, body, observations = row
    text = JudgmentText(status, reason, body, observations)
    return StoredJudgment(unit, judge, repeat, _calls.read(body).calls, reasks, text)
