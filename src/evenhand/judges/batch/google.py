"""Batches of Gemini: small ones stand in the call that makes them, large ones go up as a file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from yarl import URL

from evenhand.batch import BatchAnswer, BatchBounds, BatchRequest, BatchState, Phase
from evenhand.errors import CallLost
from evenhand.jsontext import compact
from evenhand.judges.batch.client import (
    BatchClient,
    absent,
    as_lines,
    lines,
    listed_objects,
    number,
    status_of,
    text,
)
from evenhand.judges.reply import is_object
from evenhand.limits import BATCH_PAGES

INLINE_BYTES = 15 * 1024 * 1024
"""Of the 20 MB that a call may have."""
_PHASES: Mapping[str, Phase] = {
    **dict.fromkeys(("PENDING", "QUEUED", "RUNNING", "CANCELLING", "UPDATING"), "waiting"),
    "SUCCEEDED": "ended",
    "CANCELLED": "ended",
    "EXPIRED": "ended",
    "FAILED": "refused",
}
_STATUS = {1: 499, 3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 13: 500, 14: 503, 16: 401}
"""The codes of Google's own errors as HTTP has them."""


class GoogleBatches:
    """The batches of a project."""

    bounds = BatchBounds(requests=50_000, bytes=1024**3)
    can_cancel = True
    is_named = True

    def __init__(self, client: BatchClient) -> None:
        self._client = client

    def _url(self, name: str) -> URL:
        base = self._client.base
        return base.with_path(f"{base.raw_path}/{name}", encoded=True)

    async def create(self, name: str, requests: Sequence[BatchRequest]) -> BatchState:
        size = sum(len(request.body) for request in requests)
        if size <= INLINE_BYTES:
            items = b",".join(map(_inline, requests))
            source = b'"requests":{"requests":[' + items + b"]}"
        else:
            source = compact({"fileName": await self._upload(name, requests)}).encode()[1:-1]
        head = compact({"displayName": name}).encode()[:-1]
        body = b'{"batch":' + head + b',"inputConfig":{' + source + b"}}}"
        model = self._client.model
        folder = model if "/" in model else f"models/{model}"
        url = self._url(f"{folder}:batchGenerateContent")
        return self._state(await self._client.ask("POST", url, body))

    async def _upload(self, name: str, requests: Sequence[BatchRequest]) -> str:
        """The name of the file that holds the requests. Nothing is paid for it yet."""
        file = b"\n".join(
            compact({"key": request.id}).encode()[:-1] + b',"request":' + request.body + b"}"
            for request in requests
        )
        start = {
            "Content-Type": "application/json",
            "X-Goog-Upload-Protocol": "resumable",
            "X-Goog-Upload-Command": "start",
            "X-Goog-Upload-Header-Content-Length": str(len(file)),
            "X-Goog-Upload-Header-Content-Type": "application/jsonl",
        }
        about = compact({"file": {"displayName": name}}).encode()
        base = self._client.base
        url = base.with_path(f"/upload{base.raw_path}/files", encoded=True)
        finish = {"X-Goog-Upload-Offset": "0", "X-Goog-Upload-Command": "upload, finalize"}
        try:
            begun = await self._client.send("POST", url, about, start)
            place = URL(begun.headers.get("X-Goog-Upload-URL") or str(url))
            uploaded = self._client.read(await self._client.send("POST", place, file, finish))
        except CallLost as loss:
            loss.billed = False
            raise
        described = uploaded.get("file")
        file_name = text(described.get("name")) if is_object(described) else ""
        if not file_name:
            raise CallLost("transport", "the provider took a file and named no name of it")
        return file_name

    async def find(self, name: str, size: int, since: float) -> list[str]:
        page: dict[str, str] = {}
        for _ in range(BATCH_PAGES):
            url = self._url("batches").with_query({"pageSize": "100", **page})
            listed = await self._client.ask("GET", url)
            for operation in listed_objects(listed, "operations"):
                about = operation.get("metadata")
                if is_object(about) and about.get("displayName") == name:
                    return [text(operation.get("name"))]
            token = text(listed.get("nextPageToken"))
            if not token:
                break
            page = {"pageToken": token}
        return []

    async def state(self, ident: str) -> BatchState:
        return self._state(await self._operation(ident))

    async def results(self, ident: str) -> bytes:
        operation = await self._operation(ident)
        output = operation.get("response") or _about(operation).get("output")
        output = output if is_object(output) else {}
        if file := text(output.get("responsesFile")):
            base = self._client.base
            path = f"/download{base.raw_path}/{file}:download"
            url = base.with_path(path, encoded=True).with_query({"alt": "media"})
            return await self._client.download(ident, url)
        listed = output.get("inlinedResponses")
        listed = listed.get("inlinedResponses") if is_object(listed) else listed
        return as_lines(listed)

    def read(self, results: bytes) -> list[BatchAnswer]:
        return [_answer(line) for line in lines(results)]

    async def cancel(self, ident: str) -> None:
        await self._client.about(ident, "POST", self._url(f"{ident}:cancel"))

    async def _operation(self, ident: str) -> Any:
        return await self._client.about(ident, "GET", self._url(ident))

    def _state(self, operation: Any) -> BatchState:
        ident, about, error = text(operation.get("name")), _about(operation), operation.get("error")
        if not ident:
            raise CallLost("transport", "the provider named no id of the batch", billed=True)
        status = status_of(about.get("state")).rpartition("STATE_")[2]
        phase = _PHASES.get(status, "unknown")
        if operation.get("done") and phase in ("waiting", "unknown"):
            phase = "ended"
        stats = about.get("batchStats")
        stats = stats if is_object(stats) else {}
        complaint = text(error.get("message")) if is_object(error) else ""
        return BatchState(
            id=ident,
            status=status,
            phase=phase,
            answered=number(stats.get("successfulRequestCount")),
            failed=number(stats.get("failedRequestCount")),
            complaint=self._client.scrub(complaint),
        )


def _about(operation: Mapping[str, Any]) -> Mapping[str, Any]:
    about = operation.get("metadata")
    return about if is_object(about) else {}


def _inline(request: BatchRequest) -> bytes:
    key = compact({"key": request.id}).encode()
    return b'{"request":' + request.body + b',"metadata":' + key + b"}"


def _answer(line: Mapping[str, Any]) -> BatchAnswer:
    about, response, error = line.get("metadata"), line.get("response"), line.get("error")
    ident = text(line.get("key")) or (text(about.get("key")) if is_object(about) else "")
    if is_object(response):
        return BatchAnswer(ident, 200, json.dumps(response).encode())
    if not is_object(error):
        return absent(ident, "no response")
    code = number(error.get("code"))
    status = _STATUS.get(code, 500) if code < 100 else code
    if status == 499:
        return absent(ident, "cancelled")
    return BatchAnswer(ident, status, json.dumps({"error": error}).encode())
