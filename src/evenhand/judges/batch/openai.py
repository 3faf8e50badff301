"""Batches of OpenAI and Azure: the requests go up as a file, the answers come down as two."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from yarl import URL

from evenhand.batch import BatchAnswer, BatchBounds, BatchRequest, BatchState, Phase
from evenhand.errors import CallLost
from evenhand.jsontext import compact
from evenhand.judges.batch.client import (
    BatchClient,
    absent,
    lines,
    listed_objects,
    number,
    status_of,
    text,
)
from evenhand.judges.reply import is_list, is_object
from evenhand.limits import BATCH_PAGES

NAME = "evenhand"
"""The key of the metadata that holds our name of a batch."""
PHASES: Mapping[str, Phase] = {
    **dict.fromkeys(("validating", "in_progress", "finalizing", "cancelling"), "waiting"),
    **dict.fromkeys(("pending", "queued", "running", "processing"), "waiting"),
    **dict.fromkeys(("completed", "expired", "cancelled"), "ended"),
    "failed": "refused",
}
"""By the status of a batch; the second line is of others who speak this protocol."""
_STILL_READ = ("pending", "running")
"""Azure looks at a file before it can be used."""
_LOOKS, _LOOK_SECONDS = 60, 1.0
_BOUNDARY = "evenhand-batch-7f3a1c"


class OpenAIBatches:
    """The batches of an account that takes files."""

    bounds = BatchBounds(requests=50_000, bytes=190 * 1024 * 1024)
    can_cancel = True
    is_named = True

    def __init__(self, client: BatchClient, path: str = "/v1/chat/completions") -> None:
        self._client, self._path = client, path

    def _url(self, *parts: str, **query: str) -> URL:
        base = _service(self._client.base)
        url = base.joinpath(*parts)
        return url.with_query({**base.query, **query})

    async def create(self, name: str, requests: Sequence[BatchRequest]) -> BatchState:
        file = await self._upload(name, requests)
        body = {
            "input_file_id": file,
            "endpoint": self._path,
            "completion_window": "24h",
            "metadata": {NAME: name},
        }
        url = self._url("batches")
        return self._state(await self._client.ask("POST", url, compact(body).encode()))

    async def _upload(self, name: str, requests: Sequence[BatchRequest]) -> str:
        """The id of the file that holds the requests. Nothing is paid for it yet."""
        file = b"\n".join(batch_line(request, self._path) for request in requests)
        headers = {"Content-Type": f"multipart/form-data; boundary={_BOUNDARY}"}
        url = self._url("files")
        try:
            answered = await self._client.send("POST", url, _form(name, file), headers)
            uploaded = self._client.read(answered)
            ident = text(uploaded.get("id"))
            for _ in range(_LOOKS):
                if uploaded.get("status") not in _STILL_READ:
                    break
                await asyncio.sleep(_LOOK_SECONDS)
                uploaded = await self._client.ask("GET", self._url("files", ident))
        except CallLost as loss:
            loss.billed = False
            raise
        if not ident:
            raise CallLost("transport", "the provider took a file and named no id of it")
        return ident

    async def find(self, name: str, size: int, since: float) -> list[str]:
        after: dict[str, str] = {}
        for _ in range(BATCH_PAGES):
            page = await self._client.ask("GET", self._url("batches", limit="100", **after))
            batches = listed_objects(page, "data")
            for batch in batches:
                metadata = batch.get("metadata")
                if is_object(metadata) and metadata.get(NAME) == name:
                    return [text(batch.get("id"))]
            ages = [number(batch.get("created_at")) for batch in batches]
            if not page.get("has_more") or not ages or min(ages) < since:
                break
            after = {"after": text(batches[-1].get("id"))}
        return []

    async def state(self, ident: str) -> BatchState:
        return self._state(await self._batch(ident))

    async def results(self, ident: str) -> bytes:
        batch = await self._batch(ident)
        files: list[bytes] = []
        for field in ("output_file_id", "error_file_id"):
            if file := text(batch.get(field)):
                url = self._url("files", file, "content")
                files.append(await self._client.download(ident, url))
        return b"\n".join(files)

    def read(self, results: bytes) -> list[BatchAnswer]:
        return [line_answer(line) for line in lines(results)]

    async def cancel(self, ident: str) -> None:
        await self._client.about(ident, "POST", self._url("batches", ident, "cancel"))

    async def _batch(self, ident: str) -> Any:
        return await self._client.about(ident, "GET", self._url("batches", ident))

    def _state(self, batch: Any) -> BatchState:
        counts, status = batch.get("request_counts"), status_of(batch.get("status"))
        counts = counts if is_object(counts) else {}
        complaints = dict(self._complaints(batch.get("errors")))
        ident = text(batch.get("id"))
        if not ident:
            raise CallLost("transport", "the provider named no id of the batch", billed=True)
        return BatchState(
            id=ident,
            status=status,
            phase=PHASES.get(status.lower(), "unknown"),
            answered=number(counts.get("completed")),
            failed=number(counts.get("failed")),
            complaint=complaints.pop(0, ""),
            lines=complaints,
        )

    def _complaints(self, errors: Any) -> Iterator[tuple[int, str]]:
        """Why a batch was refused: by line, and as a whole under 0."""
        listed = errors.get("data") if is_object(errors) else None
        for error in listed if is_list(listed) else []:
            if is_object(error):
                words = [error.get("code"), error.get("message"), error.get("param")]
                said = ": ".join(str(word) for word in words if word)
                yield number(error.get("line")), self._client.scrub(said)


def azure_batches(client: BatchClient) -> OpenAIBatches:
    """The batches of an Azure resource, whose path has no version in it."""
    return OpenAIBatches(client, "/chat/completions")


def _service(base: URL) -> URL:
    """The address of files and batches: those of Azure's older form belong to no deployment."""
    path, deployment, _ = base.raw_path.partition("/deployments/")
    return base.with_path(path, encoded=True).with_query(base.query) if deployment else base


def batch_line(request: BatchRequest, path: str = "/v1/chat/completions") -> bytes:
    """A request in the form of OpenAI's batch files."""
    head = {"custom_id": request.id, "method": "POST", "url": path}
    return compact(head).encode()[:-1] + b',"body":' + request.body + b"}"


def line_answer(line: Mapping[str, Any]) -> BatchAnswer:
    """An answer from a line of OpenAI's batch files, and of those who write the same form."""
    ident, response, error = text(line.get("custom_id")), line.get("response"), line.get("error")
    if is_object(response):
        body = response.get("body", response if "choices" in response else None)
        status = number(response.get("status_code", 200 if body is not None else 0))
        if status and (is_object(body) or status >= 300):
            return BatchAnswer(ident, status, json.dumps(body).encode())
        if not error:
            return absent(ident, f"status_code {status}")
    code = error.get("code") if is_object(error) else error
    status = number(code)
    if 400 <= status < 600:
        return BatchAnswer(ident, status, json.dumps({"error": error}).encode())
    return absent(ident, text(code) or "no response")


def _form(name: str, file: bytes) -> bytes:
    """A file as a browser's form sends it."""
    head = (
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="file";'
        f' filename="{name}.jsonl"\r\nContent-Type: application/jsonl\r\n\r\n'
    )
    return head.encode() + file + f"\r\n--{_BOUNDARY}--\r\n".encode()
