"""What a judge thought before it replied is kept beside the reply and shown, never read as a
verdict; and params and streams through a whole run."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.provider import Call, Provider, completion, valid_reply
from tests.suites import at, evenhand_here, write_suite

THOUGHT = 'At first {"scores": 1}?\x00 Then no. 好'


async def thinking_aloud(call: Call) -> Any:
    from aiohttp import web

    reply = json.dumps(valid_reply(call.body, call.schema))
    body = completion(reply, reasoning_content=THOUGHT)
    return web.Response(body=body, content_type="application/json")


async def run(folder: Path) -> None:
    """Judge a suite while the provider goes on in this loop."""
    outcome = await asyncio.to_thread(evenhand_here, "run", cwd=folder)
    assert outcome.returncode == 0, outcome.stderr


async def test_reasoning_is_shown_beside_the_reply_and_judged_nowhere(tmp_path: Path) -> None:
    async with Provider(thinking_aloud) as provider:
        write_suite(tmp_path, 1, at(provider.url, params={"reasoning_effort": "high"}))
        await run(tmp_path)
    assert provider.calls[0].body["reasoning_effort"] == "high"
    shown = evenhand_here("show", "latest", "u0", "--json", cwd=tmp_path)
    exchange = json.loads(shown.stdout)["judgments"][0]["exchanges"][0]
    assert exchange["reasoning"] == THOUGHT
    assert THOUGHT not in exchange["reply"]
    text = evenhand_here("show", "latest", "u0", cwd=tmp_path).stdout
    assert f"Reasoning, {len(THOUGHT)} characters" in text
    assert evenhand_here("store", "verify", cwd=tmp_path).returncode == 0


async def test_other_params_are_another_judge(tmp_path: Path) -> None:
    async with Provider() as provider:
        for effort in ("low", "high", "low"):
            write_suite(tmp_path, 1, at(provider.url, params={"reasoning_effort": effort}))
            await run(tmp_path)
    assert [call.body["reasoning_effort"] for call in provider.calls] == ["low", "high"]


async def test_a_stream_is_the_same_judge(tmp_path: Path) -> None:
    async with Provider() as provider:
        for stream in (False, True):
            write_suite(tmp_path, 1, at(provider.url, stream=stream))
            await run(tmp_path)
    assert len(provider.calls) == 1


def test_params_of_the_contract_are_refused_before_a_run(tmp_path: Path) -> None:
    write_suite(tmp_path, 1, at("http://127.0.0.1:9/v1", params={"messages": ["x"]}))
    refused = evenhand_here("run", cwd=tmp_path)
    assert refused.returncode == 2
    assert "messages" in refused.stderr and "[judges.params]" in refused.stderr
