"""Loopback behaviours of the protocols beside chat completions: Anthropic's and Gemini's.

`Endpoint` is a provider that answers on every path and keeps the path with the call; the bodies
below are what the services send.
"""

from __future__ import annotations

import base64
import json

from aiohttp import web

from tests.provider import Provider, sending

TOKENS = {"prompt": 900, "cached": 128, "made": 200}


class Endpoint(Provider):
    """A provider whose URL is its origin: the path of each call is the judge's to choose."""

    async def start(self, port=0):
        app = web.Application()
        app.router.add_post("/{path:.*}", self._complete)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    def path(self, number=0):
        """Path and query of a call, as they arrived."""
        return self.calls[number].web.raw_path


def encoded(body, status=200, headers=None):
    return sending(json.dumps(body).encode(), status=status, headers=headers)


def echoing(*headers, status=401):
    """An error that repeats the key of whichever of `headers` came, plain and in encodings."""

    async def behaviour(call):
        key = next(call.headers[name] for name in headers if name in call.headers)
        packed = base64.b64encode(key.encode()).decode()
        said = f"Bad key {key} ({packed}, {key.encode().hex()})"
        body = {
            "error": {"message": said, "type": key, "status": key, "details": [{"reason": key}]}
        }
        return web.json_response(body, status=status, headers={"X-Echo": key})

    return behaviour


# Anthropic


def message(*parts, stop="end_turn", **changed):
    """A message; a part that is a string is a text block."""
    blocks = [{"type": "text", "text": p} if isinstance(p, str) else p for p in parts]
    usage = {
        "input_tokens": TOKENS["prompt"] - TOKENS["cached"] - 16,
        "cache_read_input_tokens": TOKENS["cached"],
        "cache_creation_input_tokens": 16,
        "output_tokens": TOKENS["made"],
    }
    body = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-test-20260101",
        "content": blocks,
        "stop_reason": stop,
        "usage": usage,
    }
    return encoded({**body, **changed})


def anthropic_error(status, kind, said, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = {"type": "error", "error": {"type": kind, "message": said}, "request_id": "req_1"}
    return encoded(body, status, named)


# Gemini


def candidate(*parts, finish="STOP", **changed):
    """A candidate; a part that is a string is a text. `changed` replaces its fields."""
    content = {"role": "model", "parts": [{"text": p} if isinstance(p, str) else p for p in parts]}
    chosen = {"content": content, "finishReason": finish, "index": 0, **changed}
    return encoded(
        {
            "candidates": [{name: value for name, value in chosen.items() if value is not None}],
            "usageMetadata": gemini_usage(),
            "modelVersion": "gemini-test-001",
        }
    )


def gemini_usage():
    return {
        "promptTokenCount": TOKENS["prompt"],
        "cachedContentTokenCount": TOKENS["cached"],
        "candidatesTokenCount": TOKENS["made"] - 50,
        "thoughtsTokenCount": 50,
        "totalTokenCount": TOKENS["prompt"] + TOKENS["made"],
    }


def google_error(status, state, said, details=()):
    error = {"code": status, "message": said, "status": state, "details": list(details)}
    return encoded({"error": error}, status)
