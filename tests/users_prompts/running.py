"""Judges a suite under a user's prompt with a provider on loopback that answers in many styles."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiohttp import web

from evenhand.runs.judge import Summary
from tests import provider as p
from tests.suites import at, judged, prepared, stored

HERE = Path(__file__).parent
Messages = Sequence[Mapping[str, str]]


@dataclass(frozen=True)
class Judged:
    """What came of a run: its summary, the rows of its store, and every request."""

    summary: Summary
    rows: Mapping[str, Mapping[str, Any]]
    calls: Sequence[p.Call]

    @property
    def asked_again(self):
        """What was said where a reply was asked for again."""
        turns = [call.body["messages"] for call in self.calls]
        return [messages[-1]["content"] for messages in turns if is_reask(messages)]

    @property
    def reasks(self):
        return len(self.asked_again)

    def styles(self, styles):
        """The style in which each first question was answered."""
        turns = [call.body["messages"] for call in self.calls]
        return [styles[style_of(it, len(styles))] for it in turns if not is_reask(it)]


def is_reask(messages):
    return any(message["role"] == "assistant" for message in messages)


def style_of(messages, number):
    """Which of so many styles a question is answered in: always the same, all of them in use."""
    asked = json.dumps(list(messages), sort_keys=True).encode()
    return int.from_bytes(hashlib.blake2b(asked, digest_size=4).digest()) % number


async def judged_under(
    folder,
    prompt,
    reply,
    rows,
    suite,
    **settings,
):
    """Run a prompt of this folder on rows of JSON, unchanged."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / prompt).write_bytes((HERE / prompt).read_bytes())
    (folder / "units.jsonl").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    top = {"name": "own", "prompt": prompt, **suite}
    text = "".join(f"{name} = {json.dumps(value)}\n" for name, value in top.items())
    (folder / "evenhand.toml").write_text(f'{text}data = ["units.jsonl"]\n', encoding="utf-8")

    async def behaviour(call):
        body = p.completion(reply(call.body["messages"]))
        return web.Response(body=body, content_type="application/json")

    async with p.Provider(behaviour) as provider:
        overrides = {"settings": settings} if settings else {}
        plan = prepared(folder, judges=[at(provider.url, max_tokens=2048)], **overrides)
        summary = await judged(plan)
        return Judged(summary, {row["unit"]: row for row in stored(folder)}, provider.calls)
