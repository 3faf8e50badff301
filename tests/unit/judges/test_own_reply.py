"""A reply belongs to the question that was asked, whatever else a gateway sends; and a judge on
this machine is reached by name on whichever loopback address it listens."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress

import pytest

from evenhand.errors import CallLost
from evenhand.exchange import Judge
from tests.provider import completion
from tests.unit.judges.conftest import OpenJudge, Serve, question, serving

CALLS, AT_ONCE = 100, 8


def answering_twice(seconds: float, ending: bytes) -> Serve:
    """Repeats the prompt as the reply, and once more after some seconds, on each connection."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            asked = json.loads(await reader.readexactly(size))["messages"][-1]["content"]
            body = completion(asked)
            answer = b"HTTP/1.1 200 OK\r\n%bContent-Length: %d\r\n\r\n%b"
            answer %= (ending, len(body), body)
            writer.write(answer)
            if seconds:
                await writer.drain()
                await asyncio.sleep(seconds)
            writer.write(answer)
            await writer.drain()

    return serve


async def ask_many(judge: Judge) -> int:
    """Ask many questions, some at once; return how many got a reply, each its own."""
    permits, replies = asyncio.Semaphore(AT_ONCE), 0

    async def ask(number: int) -> None:
        nonlocal replies
        async with permits:
            with suppress(CallLost):
                reply = await judge.answer(question(f"question {number}"))
                assert reply.text == f"question {number}"
                replies += 1

    await asyncio.gather(*map(ask, range(CALLS)))
    return replies


@pytest.mark.parametrize("ending", [b"", b"Connection: close\r\n"], ids=["kept", "closing"])
@pytest.mark.parametrize("seconds", [0, 0.002, 0.02])
async def test_a_second_answer_reaches_no_other_question(
    opened: OpenJudge, seconds: float, ending: bytes
) -> None:
    async with serving(answering_twice(seconds, ending)) as port:
        replies = await ask_many(opened("openai/m", f"http://127.0.0.1:{port}/v1"))
    # What says that it closes and goes on at once is no HTTP, and lost.
    assert replies == (0 if ending and not seconds else CALLS)


async def test_each_request_has_a_connection_of_its_own(opened: OpenJudge) -> None:
    peers: list[object] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peers.append(writer.get_extra_info("peername"))
        await answering_twice(0, b"")(reader, writer)

    async with serving(serve) as port:
        await ask_many(opened("openai/m", f"http://127.0.0.1:{port}/v1"))
    assert len(set(peers)) == CALLS
