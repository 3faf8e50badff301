from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from evenhand.errors import AskAgain
from evenhand.exchange import Judge, Message, Question, Reply, Schema
from evenhand.judges import PROVIDERS, JudgeOptions, open_judge
from evenhand.judges.remote import RemoteJudge

KEY = "sk-test-0123456789abcdefghij/+XYZ"
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["evidence", "rationale", "score"],
    "properties": {
        "evidence": {"type": "array", "items": {"type": "string"}},
        "rationale": {"type": "string"},
        "score": {"enum": [1, 2, 3]},
    },
}


class PatientJudge(RemoteJudge):
    """Asks again at once where the judge says so, as the engine does."""

    async def answer(self, question: Question) -> Reply:
        while True:
            with suppress(AskAgain):
                return await super().answer(question)


MakeJudge = Callable[..., RemoteJudge]


def question(prompt: str = "Judge this.", **rest: Any) -> Question:
    messages = (Message("system", "You judge."), Message("user", prompt))
    asked: dict[str, Any] = {"schema": SCHEMA, "unit": "u1", **rest}
    schema = asked.pop("schema")
    return Question(messages=messages, schema=None if schema is None else Schema(schema), **asked)


@pytest.fixture
async def judge() -> AsyncIterator[MakeJudge]:
    """Makes judges, and closes them."""
    made: list[RemoteJudge] = []

    def make(
        base_url: str | None = None, *, of: type[RemoteJudge] = PatientJudge, **rest: Any
    ) -> RemoteJudge:
        settings: dict[str, Any] = {
            "name": "openai/test-model",
            "provider": "openai",
            "model": "test-model",
            "temperature": 0.0,
            "max_tokens": 256,
            "seed": None,
            "environment": {"OPENAI_API_KEY": KEY},
            "attempt_seconds": 10.0,
            "folder": Path(),
            "notify": print,
        }
        settings |= rest
        provider, model = PROVIDERS[settings.pop("provider")], settings.pop("model")
        options = JudgeOptions(base_url=base_url, **settings)
        made.append(of(provider, options, model))
        return made[-1]

    yield make
    for each in made:
        await each.close()


OpenJudge = Callable[..., Judge]
CHOICE = {
    "type": "object",
    "properties": {
        "explanation": {"type": "string"},
        "winner": {"type": "string", "enum": ["A", "B", "tie"]},
    },
    "required": ["explanation", "winner"],
    "additionalProperties": False,
}


@pytest.fixture
async def opened() -> AsyncIterator[OpenJudge]:
    """Opens judges by name, as a suite does, and closes them."""
    made: list[Judge] = []

    def open_by_name(name: str, base_url: str | None = None, **rest: Any) -> Judge:
        settings: dict[str, Any] = {
            "temperature": 0.0,
            "max_tokens": 256,
            "seed": 7,
            "attempt_seconds": 10.0,
            "folder": Path(),
            "environment": {},
            "notify": print,
        }
        options = JudgeOptions(name=name, base_url=base_url, **{**settings, **rest})
        made.append(open_judge(options))
        return made[-1]

    yield open_by_name
    for each in made:
        await each.close()


async def answered(judge: Judge, asked: Question | None = None) -> Reply:
    """The reply of a judge that is asked again where it says so, as the engine does."""
    while True:
        with suppress(AskAgain):
            return await judge.answer(asked or question())


Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(
    serve: Serve, context: ssl.SSLContext | None = None, host: str = "127.0.0.1"
) -> AsyncIterator[int]:
    """A server on loopback; gives its port."""
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await serve(reader, writer)
        writer.close()

    server = await asyncio.start_server(connected, host, 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
