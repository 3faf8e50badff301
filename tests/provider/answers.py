"""Behaviours of a provider that is well: it answers with a completion, or as it is told."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from tests.provider.call import Behaviour, Call
from tests.provider.replies import completion, shown, valid_reply


def sending(
    body: bytes,
    *,
    status: int = 200,
    content_type: str = "application/json",
    headers: Mapping[str, str] | None = None,
) -> Behaviour:
    """These very bytes."""

    async def behaviour(_: Call) -> web.StreamResponse:
        kind = {"Content-Type": content_type, **(headers or {})}
        return web.Response(body=body, status=status, headers=kind)

    return behaviour


def saying(text: Any, *, finish: str = "stop", **message: Any) -> Behaviour:
    """Says `text`, whatever was asked."""
    return sending(completion(text, finish=finish, **message))


def valid(change: Callable[[str], str] = str, *, finish: str = "stop") -> Behaviour:
    """Says what the schema asks for, quoting the answer in the prompt; `change` then spoils it."""

    async def behaviour(call: Call) -> web.StreamResponse:
        reply = valid_reply(call.body, call.schema)
        text = change(json.dumps(reply, ensure_ascii=False))
        return web.Response(body=completion(text, finish=finish), content_type="application/json")

    return behaviour


def comparing(decide: Callable[[Call], str]) -> Behaviour:
    """Says which of two candidates is better, by every criterion: `A`, `B` or `tie`."""

    async def behaviour(call: Call) -> web.StreamResponse:
        winner = decide(call)
        reply = valid_reply(call.body, call.schema)
        for given in reply["criteria"].values():
            given["mark"] = {"A": "A+", "B": "B+"}.get(winner, "tie")
        reply["winner"] = winner
        return web.Response(body=completion(json.dumps(reply)), content_type="application/json")

    return behaviour


def by_number(call: Call) -> str:
    """The candidate with the greater number in its text."""
    texts = shown(call.body)
    first, second = (int(re.findall(r"\d+", texts[f"candidate_{i}"])[0]) for i in (1, 2))
    return "tie" if first == second else "A" if first > second else "B"


def refusing_to_judge() -> Behaviour:
    """A refusal as OpenAI marks it."""
    return saying(None, refusal="I cannot judge this.")
