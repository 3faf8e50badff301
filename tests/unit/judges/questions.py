"""Questions to remote judges on loopback, asked as the engine does."""

import asyncio
from contextlib import asynccontextmanager, suppress

from evenhand.errors import AskAgain, CallError, CallLost, CallRejected, ProviderRefused
from evenhand.exchange import Message, Question, Schema
from evenhand.judges import JudgeOptions, open_judge
from tests.dialects import Endpoint

KEY = "sk-test-0123456789abcdefghij/+XYZ"
KEYS = {
    "openai": "OPENAI_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "ollama": "OLLAMA_API_KEY",
    "azure": "AZURE_OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "google": "GEMINI_API_KEY",
}
SCHEMA = {
    "type": "object",
    "properties": {
        "evidence": {"type": "array", "items": {"type": "string"}},
        "rationale": {"type": "string"},
        "score": {"enum": [1, 2, 3]},
    },
}


def question(prompt="Judge this.", *, schema=SCHEMA, **rest):
    messages = Message("system", "You judge."), Message("user", prompt)
    return Question(
        messages=messages, unit="u1", schema=None if schema is None else Schema(schema), **rest
    )


def opened(name, url=None, **rest):
    """A judge as a suite opens it, with its provider's key unless the environment is given."""
    environment = {KEYS.get(name.partition("/")[0], ""): KEY}
    settings = {"temperature": 0.0, "max_tokens": 256, "seed": 7, "attempt_seconds": 10.0}
    settings |= {"environment": environment} | rest
    return open_judge(JudgeOptions(name=name, base_url=url, **settings))


async def outcome(judge, asked=None):
    """The reply to a question, or the error that it ends with, which shows no key."""
    while True:
        try:
            return await judge.answer(asked or question())
        except AskAgain:
            continue
        except (CallError, ProviderRefused) as error:
            assert KEY not in str(error)
            return error


@asynccontextmanager
async def endpoint_of(name, *script, **options):
    """An endpoint with these behaviours, and a judge there."""
    name = name if "/" in name else f"{name}/m"
    async with Endpoint(script) as endpoint:
        judge = opened(name, endpoint.url, **options)
        try:
            yield judge, endpoint
        finally:
            await judge.close()


async def ask(name, *script, asked=(None,), **options):
    """What each question ends with, one after the other; and the endpoint that was asked."""
    async with endpoint_of(name, *script, **options) as (judge, endpoint):
        return [await outcome(judge, one) for one in asked], endpoint


async def reply_of(name, behaviour, **options):
    [reply], _ = await ask(name, behaviour, **options)
    return reply


def gist(error):
    """The end of a call in a word: what a provider may charge for a lost call is `billed`."""
    if isinstance(error, CallLost):
        return "billed" if error.billed else "lost"
    assert isinstance(error, CallRejected | ProviderRefused)
    return "refused" if isinstance(error, ProviderRefused) else error.reason


@asynccontextmanager
async def serving(serve, context=None):
    """A server on loopback; gives its port."""
    tasks = set()

    async def connected(reader, writer):
        tasks.add(asyncio.current_task())
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await serve(reader, writer)
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
