"""Batches of Anthropic: the requests stand in the call that makes one. A batch carries no name: one
whose creation was not answered is found by its size and age, and proven by the ids of its answers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from yarl import URL

from evenhand.batch import BatchAnswer, BatchBounds, BatchRequest, BatchState, Phase
from evenhand.errors import CallLost
from evenhand.judges.batch.client import (
    BatchClient,
    absent,
    lines,
    listed_objects,
    number,
    status_of,
    text,
)
from evenhand.judges.reply import is_object
from evenhand.limits import BATCH_PAGES

_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_PHASES: Mapping[str, Phase] = {
    "in_progress": "waiting",
    "canceling": "waiting",
    "ended": "ended",
}
_COUNTS = ("processing", "succeeded", "errored", "canceled", "expired")


class AnthropicBatches:
    """The batches of an account."""

    bounds = BatchBounds(requests=100_000, bytes=240 * 1024 * 1024)
    can_cancel = True
    is_named = False

    def __init__(self, client: BatchClient) -> None:
        self._client = client

    def _url(self, *parts: str) -> URL:
        return self._client.base.joinpath("messages", "batches", *parts)

    async def create(self, name: str, requests: Sequence[BatchRequest]) -> BatchState:
        items = b",".join(
            b'{"custom_id":"%b","params":%b}' % (request.id.encode(), request.body)
            for request in requests
        )
        body = b'{"requests":[' + items + b"]}"
        return _state(await self._client.ask("POST", self._url(), body))

    async def find(self, name: str, size: int, since: float) -> list[str]:
        candidates: list[str] = []
        after: dict[str, str] = {}
        for _ in range(BATCH_PAGES):
            url = self._url().with_query({"limit": "100", **after})
            page = await self._client.ask("GET", url)
            batches = listed_objects(page, "data")
            young = [batch for batch in batches if _moment(batch.get("created_at")) >= since]
            candidates += [text(batch.get("id")) for batch in young if _size(batch) == size]
            if not page.get("has_more") or len(young) < len(batches) or not batches:
                break
            after = {"after_id": text(batches[-1].get("id"))}
        # The list begins with the last one made: ours was made soonest after the moment.
        return candidates[::-1]

    async def state(self, ident: str) -> BatchState:
        return _state(await self._client.about(ident, "GET", self._url(ident)))

    async def results(self, ident: str) -> bytes:
        return await self._client.download(ident, self._url(ident, "results"))

    def read(self, results: bytes) -> list[BatchAnswer]:
        return [_answer(line) for line in lines(results)]

    async def cancel(self, ident: str) -> None:
        await self._client.about(ident, "POST", self._url(ident, "cancel"))


def _state(batch: Any) -> BatchState:
    ident, status = text(batch.get("id")), status_of(batch.get("processing_status"))
    if not ident:
        raise CallLost("transport", "the provider named no id of the batch", billed=True)
    counts = _counts(batch)
    return BatchState(
        id=ident,
        status=status,
        phase=_PHASES.get(status, "unknown"),
        answered=counts["succeeded"],
        failed=counts["errored"] + counts["canceled"] + counts["expired"],
    )


def _counts(batch: Mapping[str, Any]) -> dict[str, int]:
    counts = batch.get("request_counts")
    return {name: number(counts.get(name)) if is_object(counts) else 0 for name in _COUNTS}


def _size(batch: Mapping[str, Any]) -> int:
    return sum(_counts(batch).values())


def _moment(value: Any) -> float:
    """A time as the provider writes it, in seconds since the epoch; 0 where it is none."""
    try:
        return datetime.fromisoformat(text(value)).timestamp()
    except ValueError:
        return 0.0


def _answer(line: Mapping[str, Any]) -> BatchAnswer:
    ident, result = text(line.get("custom_id")), line.get("result")
    if not is_object(result):
        return absent(ident, "no result")
    kind, error = text(result.get("type")), result.get("error")
    if kind == "succeeded" and is_object(result.get("message")):
        return BatchAnswer(ident, 200, json.dumps(result["message"]).encode())
    if kind != "errored" or not is_object(error):
        return absent(ident, kind)
    inner = error.get("error", error)
    status = _STATUS.get(text(inner.get("type")) if is_object(inner) else "", 500)
    return BatchAnswer(ident, status, json.dumps(error).encode())
