"""The loopback provider keeps its promises to the tests that lean on it."""

from __future__ import annotations

import json
from typing import Any
from urllib.request import urlopen

import aiohttp
import pytest

from tests.provider import (
    Provider,
    child,
    cut_short,
    doubled,
    failing,
    fenced,
    in_prose,
    key_extra,
    key_missing,
    key_twice,
    quoting,
    scored,
    thinking,
    valid,
    with_meta,
)
from tests.unit.judges.conftest import SCHEMA, MakeJudge, question

PROMPT = "Judge.\n[[answer 0123abcd]]\nIt is two o'clock.\nOr three.\n[[/answer 0123abcd]]\nNow."


async def said(judge: MakeJudge, provider: Provider, **asked: Any) -> str:
    return (await judge(provider.url).answer(question(PROMPT, **asked))).text


async def test_a_valid_reply_fits_the_schema_and_quotes_the_answer(judge: MakeJudge) -> None:
    async with Provider() as provider:
        found = json.loads(await said(judge, provider))
    assert found == {"evidence": ["It is two o'clock."], "rationale": "fits", "score": 2}


async def test_without_an_answer_to_quote_it_says_so(judge: MakeJudge) -> None:
    async with Provider() as provider:
        reply = await judge(provider.url).answer(question("Judge."))
    found = json.loads(reply.text)
    assert found["evidence"] == []
    assert "未找到相关证据" in found["rationale"]


async def test_schemas_with_references_unions_and_nulls_are_met(judge: MakeJudge) -> None:
    schema = {
        "type": "object",
        "$defs": {"mark": {"enum": ["A+", "B+", "tie"]}},
        "properties": {
            "C1": {"$ref": "#/$defs/mark"},
            "reason": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "other": {"type": ["string", "null"]},
            "failed": {"type": "boolean"},
            "points": {"type": "number", "minimum": 0, "maximum": 60},
            "kind": {"const": "x"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
    }
    async with Provider() as provider:
        found = json.loads(await said(judge, provider, schema=schema))
    assert found == {
        "C1": "tie",
        "reason": None,
        "other": None,
        "failed": False,
        "points": 60,
        "kind": "x",
        "tags": [],
    }


@pytest.mark.parametrize(
    "change",
    [
        cut_short,
        doubled,
        fenced,
        in_prose,
        key_extra,
        key_missing,
        key_twice,
        quoting("nowhere"),
        scored(float("nan")),
        scored("four"),
        scored(99),
        thinking,
        with_meta,
    ],
)
async def test_each_change_spoils_the_reply(judge: MakeJudge, change: Any) -> None:
    async with Provider([valid(), valid(change)]) as provider:
        assert await said(judge, provider) != await said(judge, provider)


async def test_a_script_goes_on_with_its_last_behaviour() -> None:
    statuses: list[int] = []
    script = [failing(500), failing(501), failing(502)]
    async with Provider(script) as provider, aiohttp.ClientSession() as session:
        for _ in range(4):
            async with session.post(f"{provider.url}/chat/completions", json={}) as response:
                statuses.append(response.status)
    assert statuses == [500, 501, 502, 502]


async def test_a_child_answers_and_counts(judge: MakeJudge) -> None:
    with child() as url:
        asked = judge(url)
        for unit in ("a", "a", "b"):
            reply = await asked.answer(question(unit))
            assert list(json.loads(reply.text)) == SCHEMA["required"]
        with urlopen(url.removesuffix("/v1") + "/counts") as answer:
            counts = json.load(answer)
        await asked.close()
    assert (counts["calls"], counts["answered"], counts["most"]) == (3, 3, 2)
    assert sorted(counts["by_request"].values()) == [1, 2]
