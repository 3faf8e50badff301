"""Batches of OpenRouter: requests stand in the call that makes one, and answers in the batch
itself. A batch carries no name, and cannot be cancelled.

The call is read as a stream there: endpoint and model must stand before the requests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from yarl import URL

from evenhand.batch import BatchAnswer, BatchBounds, BatchRequest, BatchState
from evenhand.errors import CallLost, ProviderRefused
from evenhand.jsontext import compact
from evenhand.judges.batch.client import (
    BatchClient,
    as_lines,
    lines,
    listed_objects,
    number,
    status_of,
    text,
)
from evenhand.judges.batch.openai import PHASES, line_answer
from evenhand.judges.reply import is_object
from evenhand.limits import BATCH_PAGES


class OpenRouterBatches:
    """The batches of a workspace."""

    bounds = BatchBounds(requests=5_000, bytes=190 * 1024 * 1024, is_one_schema=True)
    can_cancel = False
    is_named = False

    def __init__(self, client: BatchClient) -> None:
        self._client = client

    def _url(self, *parts: str) -> URL:
        return self._client.base.joinpath("batches", *parts)

    async def create(self, name: str, requests: Sequence[BatchRequest]) -> BatchState:
        head = {
            "endpoint": "/v1/chat/completions",
            "model": self._client.model,
            "completion_window": "24h",
        }
        items = b",".join(
            b'{"custom_id":"%b","body":%b}' % (request.id.encode(), request.body)
            for request in requests
        )
        body = compact(head).encode()[:-1] + b',"requests":[' + items + b"]}"
        return self._state(await self._client.ask("POST", self._url(), body))

    async def find(self, name: str, size: int, since: float) -> list[str]:
        candidates: list[str] = []
        after: dict[str, str] = {"created_after": str(int(since) - 1)}
        for _ in range(BATCH_PAGES):
            url = self._url().with_query({"limit": "100", **after})
            page = await self._client.ask("GET", url)
            batches = listed_objects(page, "data")
            candidates += [
                text(batch.get("id"))
                for batch in batches
                if number(_counts(batch).get("total")) == size
                and text(batch.get("model")).removesuffix(":batch")
                == self._client.model.removesuffix(":batch")
                and number(batch.get("created_at")) >= int(since)
            ]
            if not page.get("has_more") or not batches:
                break
            after["after"] = text(page.get("last_id")) or text(batches[-1].get("id"))
        return candidates[::-1]

    async def state(self, ident: str) -> BatchState:
        return self._state(await self._batch(ident))

    async def results(self, ident: str) -> bytes:
        return as_lines((await self._batch(ident)).get("results"))

    def read(self, results: bytes) -> list[BatchAnswer]:
        return [line_answer(line) for line in lines(results)]

    async def cancel(self, ident: str) -> None:
        raise ProviderRefused(
            "OpenRouter has no way to cancel a batch",
            advice="It ends by itself within its window of 24 hours.",
        )

    async def _batch(self, ident: str) -> Any:
        return await self._client.about(ident, "GET", self._url(ident))

    def _state(self, batch: Any) -> BatchState:
        ident, status = text(batch.get("id")), status_of(batch.get("status"))
        error = batch.get("error")
        if not ident:
            raise CallLost("transport", "the provider named no id of the batch", billed=True)
        complaint = text(error.get("message")) if is_object(error) else text(error)
        counts = _counts(batch)
        return BatchState(
            id=ident,
            status=status,
            phase=PHASES.get(status.lower(), "unknown"),
            answered=number(counts.get("completed")),
            failed=number(counts.get("failed")),
            complaint=self._client.scrub(complaint),
        )


def _counts(batch: Mapping[str, Any]) -> Mapping[str, Any]:
    counts = batch.get("request_counts")
    return counts if is_object(counts) else {}
