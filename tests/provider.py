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

import argparse
import asyncio
import base64
import contextlib
import hashlib
import json
import re
import socket
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from aiohttp import web

ROOT = Path(__file__).resolve().parent.parent
USAGE = {
    "prompt_tokens": 900,
    "completion_tokens": 200,
    "total_tokens": 1100,
    "prompt_tokens_details": {"cached_tokens": 128},
}
READING = "reading"
"""The behaviour that reads what it judges; a number behind it is how wordy it is."""
NO_EVIDENCE = "no evidence found 未找到相关证据 свидетельств не найдено 該当する根拠なし"
REASON = "Both say it, the first in plainer words."
ANSWER = re.compile(r"\[\[((?:answer|model_output) [0-9a-f]{8})\]\]\n(.*?)\n\[\[/\1\]\]", re.DOTALL)
BLOCK = re.compile(r"\[\[(\w+) ([0-9a-f]+)\]\]\n(.*?)\n\[\[/\1 \2\]\]", re.DOTALL)
FRAGMENT = re.compile(r"\S[^\n]{0,30}")


@dataclass(frozen=True)
class Call:
    """One request as it arrived."""

    provider: Provider
    number: int
    headers: Mapping[str, str]
    raw: bytes
    body: dict[str, Any]
    web: web.Request
    peer: Any
    """The client's address: equal for requests on one connection."""

    @property
    def schema(self) -> dict[str, Any] | None:
        """The schema asked for; where this request carries none, the last one that came."""
        asked = self.body.get("response_format", {}).get("json_schema")
        if asked:
            self.provider.schema = asked["schema"]
        return self.provider.schema

    @property
    def key(self) -> str:
        return self.headers.get("Authorization", "").removeprefix("Bearer ")


Behaviour = Callable[[Call], Awaitable[web.StreamResponse]]


class Provider:
    """The server. `calls` holds every request, `counts` how often each body was answered."""

    def __init__(self, script: Behaviour | Sequence[Behaviour] = (), *, keep: bool = True) -> None:
        self.script: list[Behaviour] = [script] if callable(script) else list(script) or [valid()]
        self.calls: list[Call] = []
        self.counts: Counter[str] = Counter()
        self.schema: dict[str, Any] | None = None
        self.stopping = asyncio.Event()
        self.url = ""
        self._keep, self._number = keep, 0
        self._runner: web.AppRunner | None = None

    async def start(self, port: int = 0) -> None:
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/counts", self._counts)
        self._runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"

    async def stop(self) -> None:
        self.stopping.set()
        if self._runner is not None:
            await self._runner.cleanup()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        peer = request.transport and request.transport.get_extra_info("peername")
        number, self._number = self._number, self._number + 1
        call = Call(self, number, request.headers, raw, json.loads(raw), request, peer)
        if self._keep:
            self.calls.append(call)
        response = await self.script[min(number, len(self.script) - 1)](call)
        self.counts[hashlib.blake2b(raw, digest_size=16).hexdigest()] += 1
        return response

    async def _counts(self, _: web.Request) -> web.Response:
        most = max(self.counts.values(), default=0)
        return web.json_response(
            {"calls": self._number, "answered": self.counts.total(), "most": most}
            | {"by_request": dict(self.counts)}
        )


# Replies that are in order


def completion(text: Any, *, finish: str = "stop", **message: Any) -> bytes:
    """The body of a chat completion that says `text`."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text, **message},
        "finish_reason": finish,
    }
    return json.dumps(
        {"object": "chat.completion", "model": "test-model", "choices": [choice], "usage": USAGE}
    ).encode()


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


def valid_reply(body: dict[str, Any], schema: dict[str, Any] | None) -> Any:
    """A value that fits the schema: ties, middle scores, verbatim evidence from the prompt."""
    prompt = "\n".join(message["content"] for message in body["messages"])
    found = ANSWER.search(prompt)
    fragment = FRAGMENT.search(found[2]) if found else None
    quote = fragment[0] if fragment else None
    return {} if schema is None else _sample(schema, schema, "", quote)


def _sample(schema: Any, root: Any, name: str, quote: str | None) -> Any:
    while "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rsplit("/", 1)[1]]
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return _chosen(schema["enum"])
    for union in ("anyOf", "oneOf"):
        if union in schema:
            options = schema[union]
            empty = [o for o in options if o.get("type") == "null"]
            return _sample((empty or options)[0], root, name, quote)
    return _sample_type(schema, root, name, quote)


def _chosen(options: list[Any]) -> Any:
    if "tie" in options:
        return "tie"
    real = [o for o in options if o is not None]
    return real[len(real) // 2] if real else None


def _sample_type(schema: Any, root: Any, name: str, quote: str | None) -> Any:
    kinds = schema.get("type", "string")
    kind = kinds if isinstance(kinds, str) else "null" if "null" in kinds else kinds[0]
    if kind == "object":
        parts = schema.get("properties", {})
        return {key: _sample(part, root, key, quote) for key, part in parts.items()}
    if kind == "array":
        return [quote] if name == "evidence" and quote else []
    if kind in ("number", "integer"):
        return schema.get("maximum", schema.get("minimum", 1))
    if kind == "string":
        unquoted = NO_EVIDENCE if name == "rationale" else REASON
        return "" if name == "notes" else "fits" if quote else unquoted
    return {"boolean": False, "null": None}[kind]


def shown(body: dict[str, Any]) -> dict[str, str]:
    """The texts between fences in the opening of a conversation, by the name of the block."""
    asked = next(message for message in body["messages"] if message["role"] == "user")
    return {name: text for name, _, text in BLOCK.findall(asked["content"])}


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


# Replies whose text is not in order: changes for `valid`


def fenced(text: str) -> str:
    return f"```json\n{text}\n```"


def thinking(text: str) -> str:
    return f'<think>\nPerhaps {{"score": 1}}? No.\n</think>\n{text}'


def in_prose(text: str) -> str:
    return f"Here is my judgment:\n\n{text}\n\nI hope that this helps."


def doubled(text: str) -> str:
    """Two objects with different verdicts."""
    return f"{text}\n{otherwise(text)}"


def otherwise(text: str) -> str:
    """The same object with another verdict."""
    found = json.loads(text)
    return json.dumps({**found, **({"winner": "A"} if "winner" in found else {"notes": "No: 1."})})


def key_twice(text: str) -> str:
    return text[:-1] + ',"notes":"again","notes":"and again"}'


def key_extra(text: str) -> str:
    return json.dumps({**json.loads(text), "overall": 5})


def key_missing(text: str) -> str:
    """Without the last key."""
    return json.dumps(dict(list(json.loads(text).items())[:-1]))


def with_meta(text: str) -> str:
    return json.dumps({"meta": {"model": "changed"}, **json.loads(text)})


def scored(score: Any) -> Callable[[str], str]:
    """Every score replaced; `scored(float("nan"))` writes NaN, `scored("four")` a word."""
    return _replacing("score", score)


def quoting(*evidence: str) -> Callable[[str], str]:
    """Every list of evidence replaced."""
    return _replacing("evidence", list(evidence))


def _replacing(name: str, value: Any) -> Callable[[str], str]:
    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        return {key: value if key == name else kept for key, kept in found}

    return lambda text: json.dumps(json.loads(text, object_pairs_hook=pairs))


def cut_short(text: str) -> str:
    return text[: len(text) // 2]


def surrogate(text: str) -> str:
    """With half of a surrogate pair in its notes."""
    return json.dumps({**json.loads(text), "notes": "\ud83d"}, ensure_ascii=False)


def refusing_to_judge() -> Behaviour:
    """A refusal as OpenAI marks it."""
    return saying(None, refusal="I cannot judge this.")


# Answers that are no completion


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


def failing(
    status: int,
    message: str = "Something is wrong.",
    *,
    headers: Mapping[str, str] | None = None,
    **error: Any,
) -> Behaviour:
    """An error in OpenAI's form: `code`, `param` and `type` may be given."""
    body = {"error": {"message": message, "type": "error", **error}}
    return sending(json.dumps(body).encode(), status=status, headers=headers)


def busy(retry_after: str | None = None, **headers: str) -> Behaviour:
    """429, with a Retry-After in whatever form, and other headers (`_` stands for `-`)."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if retry_after is not None:
        named["Retry-After"] = retry_after
    return failing(429, "Rate limit reached.", code="rate_limit_exceeded", headers=named)


def out_of_quota() -> Behaviour:
    return failing(429, "You exceeded your current quota.", code="insufficient_quota")


def overflowing() -> Behaviour:
    message = "This model's maximum context length is 4096 tokens. Please reduce the length."
    return failing(400, message, code="context_length_exceeded", param="messages")


def refusing(name: str, message: str, *, then: Behaviour | None = None, **value: Any) -> Behaviour:
    """400 for a body that has the field `name` (with the type `type`, if given); else `then`."""
    refusal, accepted = failing(400, message, param=name), then or valid()

    async def behaviour(call: Call) -> web.StreamResponse:
        _ = call.schema
        sent = call.body.get(name)
        refused = sent is not None and ("type" not in value or sent["type"] == value["type"])
        return await (refusal if refused else accepted)(call)

    return behaviour


def refusing_schema(*, then: Behaviour | None = None) -> Behaviour:
    """An endpoint that takes json_object but no json_schema."""
    message = "'response_format' of type 'json_schema' is not supported with this model."
    return refusing("response_format", message, type="json_schema", then=then)


def refusing_temperature(*, then: Behaviour | None = None) -> Behaviour:
    """A reasoning model."""
    message = "Unsupported value: 'temperature' does not support 0 with this model."
    return refusing("temperature", message, then=then)


def redirecting(location: str, status: int = 307) -> Behaviour:
    return sending(b"", status=status, headers={"Location": location})


def echoing_key(status: int = 401) -> Behaviour:
    """An error that repeats the key, plain and encoded, in its body and in a header."""

    async def behaviour(call: Call) -> web.StreamResponse:
        sent = call.headers["Authorization"]
        packed = base64.b64encode(sent.encode()).decode()
        error = {"message": f"Incorrect key {call.key} ({sent}, {packed})", "code": call.key}
        headers = {"X-Echo": sent, "Retry-After": call.key}
        return web.json_response({"error": error}, status=status, headers=headers)

    return behaviour


def resetting(sent: bytes = b'{"choices": [') -> Behaviour:
    """The connection is reset in the middle of the body (before any of it with `b""`)."""

    async def behaviour(call: Call) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        if sent:
            await response.prepare(call.web)
            await response.write(sent)
        transport = call.web.transport
        assert transport is not None
        linger = struct.pack("ii", 1, 0)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        transport.abort()
        return response

    return behaviour


def pausing(seconds: float, then: Behaviour | None = None) -> Behaviour:
    """Slow: `then` after some seconds."""

    async def behaviour(call: Call) -> web.StreamResponse:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(call.provider.stopping.wait(), seconds)
        return await (then or valid())(call)

    return behaviour


def never() -> Behaviour:
    """Takes the request and says nothing until the server stops."""

    async def behaviour(call: Call) -> web.StreamResponse:
        await call.provider.stopping.wait()
        return web.Response(status=503)

    return behaviour


def flooding(megabytes: int = 200, chunk: bytes = b" " * 2**16) -> Behaviour:
    """A body of that size, made while it is sent."""

    async def behaviour(call: Call) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(call.web)
        with contextlib.suppress(ConnectionError):
            for _ in range(megabytes * 2**20 // len(chunk)):
                await response.write(chunk)
        return response

    return behaviour


HTML = sending(b"<html><body>Welcome to the captive portal</body></html>", content_type="text/html")
EMPTY = sending(b"")
WRONG_CHARSET = sending(
    completion("оценка").decode("unicode_escape").encode("cp1251", "replace"),
    content_type="application/json; charset=windows-1251",
)

BEHAVIOURS: dict[str, Behaviour] = {
    "fast": valid(),
    "first": comparing(lambda call: "A"),
    "by-number": comparing(by_number),
    "fenced": valid(fenced),
    "thinking": valid(thinking),
    "fabricating": valid(quoting("words that stand nowhere in the answer")),
    "slow": pausing(0.2),
    "never": never(),
    "busy": busy("1"),
    "down": failing(503),
    "quota": out_of_quota(),
    "unauthorized": failing(401, "Incorrect API key provided.", code="invalid_api_key"),
    "echoing": echoing_key(),
    "resetting": resetting(),
    "html": HTML,
    "empty": EMPTY,
    "flooding": flooding(),
    "refusing-schema": refusing_schema(),
    "refusing-temperature": refusing_temperature(),
    "overflowing": overflowing(),
}


@contextlib.contextmanager
def child(behaviour: str = "fast", *, delay: float = 0.0, certificate: str = "") -> Generator[str]:
    """The provider in a process of its own; gives its URL, ends with the block or its parent. With
    a certificate, which only `fast` can have, it speaks https."""
    command = [sys.executable, "-m", "tests.provider", "--behaviour", behaviour, "--piped"]
    with subprocess.Popen(
        [*command, "--delay", str(delay), "--certificate", certificate],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def _named(name: str, delay: float, certificate: str) -> Any:
    if name == "fast":
        from tests.fast_provider import FastProvider

        return FastProvider(delay=delay, certificate=certificate)
    if name.startswith(READING):
        from tests.stories.reader import reading

        behaviour = reading(int(name.removeprefix(READING) or 1))
    else:
        behaviour = BEHAVIOURS[name]
    return Provider(pausing(delay, behaviour) if delay else behaviour, keep=False)


async def _main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.provider", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--behaviour", default="fast", help=", ".join(sorted(BEHAVIOURS)))
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--certificate", default="", help="of `fast`: a certificate and its key")
    parser.add_argument("--piped", action="store_true", help="end when stdin is closed")
    asked = parser.parse_args()
    provider = _named(asked.behaviour, asked.delay, asked.certificate)
    await provider.start(asked.port)
    print(provider.url, flush=True)
    if asked.piped:
        await asyncio.to_thread(sys.stdin.read)
    else:
        await asyncio.Event().wait()
    await provider.stop()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_main())
