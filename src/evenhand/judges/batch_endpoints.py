"""The batch endpoints of OpenAI, Azure, Anthropic, Google and OpenRouter.

Batches of Anthropic and OpenRouter carry no name: one whose creation was not answered is found by
its size and age. Should it be another's, no answer has an id of ours, and the run ends there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from yarl import URL

from evenhand.errors import CallLost, ProviderRefused
from evenhand.exchange import BatchAnswer, BatchBounds, BatchRequest, BatchState
from evenhand.jsontext import compact
from evenhand.judges.batch_client import (
    BatchClient,
    answer_of,
    as_lines,
    no_answer,
    number,
    parse_object,
    write_item,
)
from evenhand.judges.error_response import Recipient
from evenhand.judges.transport import Transport
from evenhand.judges.wire import is_list, is_object, object_of, text_of
from evenhand.words import Sentence

MEGABYTE = 1024 * 1024
NAME = "evenhand"
"""The key of OpenAI's metadata that holds our name of a batch."""
CHAT_PATH = "/v1/chat/completions"
_FILE_LOOKS, _LOOK_SECONDS = 60, 1.0
"""Azure looks at a file before it can be used."""
_BOUNDARY = "evenhand-batch-7f3a1c"
_ANTHROPIC_STATUS = {
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
_GOOGLE_STATUS = {1: 499, 3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 13: 500, 14: 503, 16: 401}
"""Google's own error codes, as HTTP statuses."""


def open_batches(name: str, http: Transport, base: URL, recipient: Recipient) -> BatchClient:
    """Return the batch endpoint of that name (`Provider.batches`)."""
    return _ENDPOINTS[name](http, base, recipient)


class OpenAIBatches(BatchClient):
    """Requests go up as a file, the answers come down as two."""

    bounds = BatchBounds(requests=50_000, bytes=190 * MEGABYTE)
    path = CHAT_PATH
    phases = {  # noqa: RUF012
        **dict.fromkeys(("validating", "in_progress", "finalizing", "cancelling"), "waiting"),
        # Of others who speak this protocol.
        **dict.fromkeys(("pending", "queued", "running", "processing"), "waiting"),
        **dict.fromkeys(("completed", "expired", "cancelled"), "ended"),
        "failed": "refused",
    }

    def _url(self, *parts: str, folder: str = "batches") -> URL:
        # Azure's older addresses name a deployment, to which files and batches do not belong.
        root = self._base.raw_path.partition("/deployments/")[0]
        url = self._base.with_path(root, encoded=True).joinpath(folder, *parts)
        return url.with_query(self._base.query)

    async def create(self, name: str, requests: Sequence[BatchRequest]) -> BatchState:
        body = {
            "input_file_id": await self._upload(name, requests),
            "endpoint": self.path,
            "completion_window": "24h",
            "metadata": {NAME: name},
        }
        return self._state(await self._ask("POST", self._url(), compact(body).encode()))

    async def _upload(self, name: str, requests: Sequence[BatchRequest]) -> str:
        """Return the id of the file that holds the requests. Nothing is paid for it yet."""
        lines = b"\n".join(batch_line(request, self.path) for request in requests)
        headers = {"Content-Type": f"multipart/form-data; boundary={_BOUNDARY}"}
        try:
            files = self._url(folder="files")
            file = parse_object(await self._send("POST", files, _form(name, lines), headers))
            ident = text_of(file.get("id"))
            for _ in range(_FILE_LOOKS):
                if file.get("status") not in ("pending", "running"):
                    break
                await asyncio.sleep(_LOOK_SECONDS)
                file = await self._ask("GET", self._url(ident, folder="files"))
        except CallLost as loss:
            loss.billed = False
            raise
        if not ident:
            raise CallLost("transport", "the provider took a file and named no id of it")
        return ident

    def _matches(self, batch: Mapping[str, Any], name: str, size: int, since: float) -> bool:
        return object_of(batch.get("metadata")).get(NAME) == name

    def _state(self, batch: Mapping[str, Any]) -> BatchState:
        counts, listed = object_of(batch.get("request_counts")), object_of(batch.get("errors"))
        reasons: dict[int, str] = {}
        for error in listed["data"] if is_list(listed.get("data")) else []:
            words = [object_of(error).get(name) for name in ("code", "message", "param")]
            said = ": ".join(str(word) for word in words if word)
            reasons[number(object_of(error).get("line"))] = self._http.scrub(said)
        return self._make_state(
            batch.get("id"),
            batch.get("status"),
            counts.get("completed"),
            error=reasons.pop(0, "") or batch.get("error"),
            lines=reasons,
        )

    async def results(self, ident: str) -> bytes:
        batch = await self._batch(ident)
        files = [text_of(batch.get(field)) for field in ("output_file_id", "error_file_id")]
        urls = [self._url(file, "content", folder="files") for file in files if file]
        return b"\n".join([(await self._send("GET", url, ident=ident)).body for url in urls])

    def _answer(self, line: Mapping[str, Any]) -> BatchAnswer:
        return line_answer(line)


class AzureBatches(OpenAIBatches):
    """As OpenAI's, with a path that has no version in it."""

    path = "/chat/completions"


class OpenRouterBatches(OpenAIBatches):
    """Requests stand in the call that makes a batch, answers in the batch itself."""

    bounds = BatchBounds(requests=5_000, bytes=190 * MEGABYTE, is_one_schema=True)

    async def create(self, name: str, requests: Sequence[BatchRequest]) -> BatchState:
        # Read as a stream there: endpoint and model must stand before the requests.
        head = {"endpoint": self.path, "model": self._model, "completion_window": "24h"}
        items = b",".join(write_item({"custom_id": r.id}, "body", r.body) for r in requests)
        body = write_item(head, "requests", b"[" + items + b"]")
        return self._state(await self._ask("POST", self._url(), body))

    def _matches(self, batch: Mapping[str, Any], name: str, size: int, since: float) -> bool:
        total = number(object_of(batch.get("request_counts")).get("total"))
        return total == size and number(batch.get("created_at")) >= int(since)

    async def results(self, ident: str) -> bytes:
        return as_lines((await self._batch(ident)).get("results"))

    async def cancel(self, ident: str) -> None:
        raise ProviderRefused(Sentence("judges.openrouter_no_cancel"))


class AnthropicBatches(BatchClient):
    """Requests stand in the call that makes a batch, answers come down as a file."""

    bounds = BatchBounds(requests=100_000, bytes=240 * MEGABYTE)
    after_field = "after_id"
    phases = {  # noqa: RUF012
        "in_progress": "waiting",
        "canceling": "waiting",
        "ended": "ended",
    }

    def _url(self, *parts: str) -> URL:
        return self._base.joinpath("messages", "batches", *parts)

    async def create(self, name: str, requests: Sequence[BatchRequest]) -> BatchState:
        items = b",".join(write_item({"custom_id": r.id}, "params", r.body) for r in requests)
        body = b'{"requests":[' + items + b"]}"
        return self._state(await self._ask("POST", self._url(), body))

    def _matches(self, batch: Mapping[str, Any], name: str, size: int, since: float) -> bool:
        try:
            made = datetime.fromisoformat(text_of(batch.get("created_at"))).timestamp()
        except ValueError:
            return False
        total = sum(map(number, object_of(batch.get("request_counts")).values()))
        return total == size and made >= int(since)

    def _state(self, batch: Mapping[str, Any]) -> BatchState:
        answered = object_of(batch.get("request_counts")).get("succeeded")
        return self._make_state(batch.get("id"), batch.get("processing_status"), answered)

    async def results(self, ident: str) -> bytes:
        return (await self._send("GET", self._url(ident, "results"), ident=ident)).body

    def _answer(self, line: Mapping[str, Any]) -> BatchAnswer:
        ident, result = line.get("custom_id"), object_of(line.get("result"))
        kind, message, error = result.get("type"), result.get("message"), result.get("error")
        if kind == "succeeded" and is_object(message):
            return answer_of(ident, 200, message)
        if kind == "errored" and is_object(error):
            inner = object_of(error.get("error", error))
            status = _ANTHROPIC_STATUS.get(text_of(inner.get("type")), 500)
            return answer_of(ident, status, error)
        return no_answer(ident, kind or "no result")


class GoogleBatches(BatchClient):
    """Requests stand in the call that makes a batch, answers in the batch itself or in a file."""

    # A call may have 20 MB; larger batches would have to go up as files.
    bounds = BatchBounds(requests=50_000, bytes=15 * MEGABYTE)
    list_field = "operations"
    page_query = {"pageSize": "100"}  # noqa: RUF012
    phases = {  # noqa: RUF012
        **dict.fromkeys(("pending", "queued", "running", "cancelling", "updating"), "waiting"),
        **dict.fromkeys(("succeeded", "cancelled", "expired"), "ended"),
        "failed": "refused",
    }

    def _url(self, *parts: str) -> URL:
        path = ":".join(parts) or "batches"
        return self._base.with_path(f"{self._base.raw_path}/{path}", encoded=True)

    async def create(self, name: str, requests: Sequence[BatchRequest]) -> BatchState:
        items = b",".join(
            write_item({"metadata": {"key": r.id}}, "request", r.body) for r in requests
        )
        source = b'{"requests":{"requests":[' + items + b"]}}"
        body = b'{"batch":' + write_item({"displayName": name}, "inputConfig", source) + b"}"
        model = self._model if "/" in self._model else f"models/{self._model}"
        return self._state(await self._ask("POST", self._url(model, "batchGenerateContent"), body))

    def _next_page(
        self, page: Mapping[str, Any], batches: Sequence[Mapping[str, Any]]
    ) -> dict[str, str]:
        token = text_of(page.get("nextPageToken"))
        return {"pageToken": token} if token else {}

    def _matches(self, batch: Mapping[str, Any], name: str, size: int, since: float) -> bool:
        return object_of(batch.get("metadata")).get("displayName") == name

    def _state(self, batch: Mapping[str, Any]) -> BatchState:
        about = object_of(batch.get("metadata"))
        counts = object_of(about.get("batchStats"))
        status = about.get("state")
        word = text_of(status).rpartition("STATE_")[2]
        if batch.get("done") and self.phases.get(word.lower(), "waiting") == "waiting":
            word = "SUCCEEDED"
        answered, error = counts.get("successfulRequestCount"), batch.get("error")
        return self._make_state(batch.get("name"), word or status, answered, error=error)

    async def results(self, ident: str) -> bytes:
        batch = await self._batch(ident)
        output = batch.get("response") or object_of(batch.get("metadata")).get("output")
        if file := text_of(object_of(output).get("responsesFile")):
            path = f"/download{self._base.raw_path}/{file}:download"
            url = self._base.with_path(path, encoded=True).with_query({"alt": "media"})
            return (await self._send("GET", url, ident=ident)).body
        listed = object_of(output).get("inlinedResponses")
        return as_lines(object_of(listed).get("inlinedResponses", listed))

    def _answer(self, line: Mapping[str, Any]) -> BatchAnswer:
        ident = line.get("key") or object_of(line.get("metadata")).get("key")
        response, error = line.get("response"), line.get("error")
        if is_object(response):
            return answer_of(ident, 200, response)
        if not is_object(error):
            return no_answer(ident, "no response")
        code = number(error.get("code"))
        status = _GOOGLE_STATUS.get(code, 500) if code < 100 else code
        if status == 499:
            return no_answer(ident, "cancelled")
        return answer_of(ident, status, {"error": error})


_ENDPOINTS: Mapping[str, type[BatchClient]] = {
    "openai": OpenAIBatches,
    "azure": AzureBatches,
    "anthropic": AnthropicBatches,
    "google": GoogleBatches,
    "openrouter": OpenRouterBatches,
}


def batch_line(request: BatchRequest, path: str = CHAT_PATH) -> bytes:
    """Return a request in the form of OpenAI's batch files."""
    head = {"custom_id": request.id, "method": "POST", "url": path}
    return write_item(head, "body", request.body)


def line_answer(line: Mapping[str, Any]) -> BatchAnswer:
    """Return the answer in a line of OpenAI's batch files."""
    ident, response, error = line.get("custom_id"), line.get("response"), line.get("error")
    if is_object(response):
        body, status = response.get("body"), number(response.get("status_code"))
        if status and (is_object(body) or status >= 300):
            return answer_of(ident, status, body)
        if not error:
            return no_answer(ident, f"status_code {status}")
    code = error.get("code") if is_object(error) else error
    if 400 <= number(code) < 600:
        return answer_of(ident, number(code), {"error": error})
    return no_answer(ident, text_of(code) or "no response")


def _form(name: str, file: bytes) -> bytes:
    """Return a file as a browser's form sends it."""
    head = (
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        f'--{_BOUNDARY}\r\nContent-Disposition: form-data; name="file";'
        f' filename="{name}.jsonl"\r\nContent-Type: application/jsonl\r\n\r\n'
    )
    return head.encode() + file + f"\r\n--{_BOUNDARY}--\r\n".encode()
