"""A provider on loopback: a real HTTP server that speaks the chat completions protocol.

In process, with a behaviour, or a list of them (one a request; the last one stays):

    async with Provider([failing(503), valid()]) as provider:
        judge = OpenAIJudge(base_url=provider.url, ...)
        provider.calls[0].body["messages"]

As a child process: `python -m tests.provider --port 0 --behaviour fast` prints its URL; `child()`
does that and ends it. `GET /counts` tells how often each request was answered.

A behaviour is `async def (call: Call) -> web.StreamResponse`; what is chosen by the request is
simply a behaviour that looks at `call.body` and awaits another one.
"""

from __future__ import annotations

from tests.provider.answers import by_number, comparing, refusing_to_judge, saying, sending, valid
from tests.provider.call import Behaviour, Call
from tests.provider.changes import (
    cut_short,
    doubled,
    fenced,
    in_prose,
    key_extra,
    key_missing,
    key_twice,
    otherwise,
    quoting,
    scored,
    surrogate,
    thinking,
    with_meta,
)
from tests.provider.faults import (
    EMPTY,
    HTML,
    WRONG_CHARSET,
    busy,
    echoing_key,
    failing,
    flooding,
    never,
    out_of_quota,
    overflowing,
    pausing,
    redirecting,
    refusing,
    refusing_schema,
    refusing_temperature,
    resetting,
)
from tests.provider.process import BEHAVIOURS, READING, child
from tests.provider.replies import (
    ANSWER,
    BLOCK,
    FRAGMENT,
    NO_EVIDENCE,
    REASON,
    USAGE,
    completion,
    shown,
    valid_reply,
)
from tests.provider.server import Provider

__all__ = [
    "ANSWER",
    "BEHAVIOURS",
    "BLOCK",
    "EMPTY",
    "FRAGMENT",
    "HTML",
    "NO_EVIDENCE",
    "READING",
    "REASON",
    "USAGE",
    "WRONG_CHARSET",
    "Behaviour",
    "Call",
    "Provider",
    "busy",
    "by_number",
    "child",
    "comparing",
    "completion",
    "cut_short",
    "doubled",
    "echoing_key",
    "failing",
    "fenced",
    "flooding",
    "in_prose",
    "key_extra",
    "key_missing",
    "key_twice",
    "never",
    "otherwise",
    "out_of_quota",
    "overflowing",
    "pausing",
    "quoting",
    "redirecting",
    "refusing",
    "refusing_schema",
    "refusing_temperature",
    "refusing_to_judge",
    "resetting",
    "saying",
    "scored",
    "sending",
    "shown",
    "surrogate",
    "thinking",
    "valid",
    "valid_reply",
    "with_meta",
]
