"""A provider on loopback that answers by the batch, and live, in each provider's own protocol.

    async with BatchProvider() as provider:
        judge = {"model": "anthropic/test-model", "base_url": provider.urls["anthropic"]}

Every protocol leads to the same batches: requests with ids, a status, answers. What goes wrong is
said by `Faults`. `paid` counts how often the model was asked each request, by the batch or live.
"""

import asyncio
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.provider import valid_reply

PROVIDERS = ("openai", "azure", "anthropic", "google", "openrouter")
KEYS = {
    "openai": "OPENAI_API_KEY",
    "azure": "AZURE_OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "google": "GEMINI_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
}
Line = tuple[str, int, Any]
"""The id of a request, the HTTP status of its answer (0: none) and its body, or why there is
none."""


def fitting(request):
    """A reply that keeps the contract."""
    return json.dumps(valid_reply(request, request["schema"]), ensure_ascii=False)


class Faults:
    """What goes wrong. Of the lists, one entry for each request of that kind; then all is well.

    `create`: `lost` and `held`: made, and not answered; `busy` `quota` `broken`: not made.
    `upload`, `listing`, `state`, `live`, `download`: `held`, `broken`.
    `refuse`: why batches are refused as a whole: a text, or {line: text}.
    `status`: what is told as the status of batches in place of the true one, if anything.
    `looks`: so many looks find a batch at work before it has ended.
    `lines`: a change of the lines of results; `raw`: what stands there in place of lines.
    `expired`: batches end as expired.
    """

    def __init__(self, **faults):
        for name in [
            "create",
            "upload",
            "listing",
            "state",
            "live",
            "download",
            "refuse",
            "status",
        ]:
            setattr(self, name, [])
        self.looks, self.expired, self.raw, self.lines = 0, False, None, list
        assert faults.keys() <= vars(self).keys()
        vars(self).update(faults)


@dataclass
class Batch:
    """A batch as the provider keeps it."""

    id: str
    name: str
    requests: list[tuple[str, dict[str, Any], bytes]]
    created: float
    status: str = "in_progress"
    looks: int = 0
    refusal: Any = None
    lines: list[Line] = field(default_factory=list)


class BatchProvider:
    """The server; `answer` gives the text that the model says to a request, which is
    {"messages": [...], "schema": ...}."""

    def __init__(self, answer=fitting, faults=None, *, owner=""):
        self.answer, self.faults, self.owner = answer, faults or Faults(), owner
        self.batches = {}
        self.files = {}
        self.paid = Counter()
        self.live = 0
        self.seen = []
        """Every request, by its method and path."""
        self.urls = {}
        self.list_most = 100
        """The most batches that a list shows."""
        self.held = asyncio.Event()
        """Somebody waits for an answer that never comes."""
        self._stopping = asyncio.Event()
        self._runner = None

    async def __aenter__(self):
        app = web.Application(client_max_size=2**30)
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        root = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        ends = ("/v1", "/openai/v1", "/v1", "/v1beta", "/api/v1")
        self.urls = {name: root + end for name, end in zip(PROVIDERS, ends, strict=True)}
        return self

    async def __aexit__(self, *_):
        self._stopping.set()
        if self._runner is not None:
            await self._runner.cleanup()

    def judge(self, provider, **rest):
        """A judge at this provider."""
        url = self.urls[provider]
        return {"model": f"{provider}/test-model", "base_url": url, "max_tokens": 256, **rest}

    async def _serve(self, request):
        path, method = request.path, request.method
        self.seen.append(f"{method} {path}")
        headers = request.headers
        key = headers.get("Authorization", "").removeprefix("Bearer ")
        key = headers.get("x-api-key", headers.get("x-goog-api-key", headers.get("api-key", key)))
        if self.owner and key != self.owner and "batches" in path:
            return web.json_response({"error": {"message": "No batch found"}}, status=404)
        raw = await request.read()
        for pattern, handler in self._routes():
            if match := re.fullmatch(pattern, f"{method} {path}"):
                return await handler(request, raw, *match.groups())
        return web.json_response({"error": {"message": "no such path"}}, status=404)

    def _routes(self):
        return [
            (r"POST .*/files", self._upload),
            (r"POST /place/(.*)", self._place),
            (r"GET .*/files/(.*)/content", self._download),
            (r"GET /download/.*/(files/.*):download", self._download),
            (r"POST /v1/messages/batches", self._create_anthropic),
            (r"POST .*:batchGenerateContent", self._create_google),
            (r"POST /api/v1/batches", self._create_openrouter),
            (r"POST .*/batches", self._create_openai),
            (r"GET .*/batches", self._list),
            (r"POST .*/batches/([^/:]*)[/:]cancel", self._cancel),
            (r"GET .*/batches/([^/]*)/results", self._results),
            (r"GET .*/batches/([^/]*)", self._state),
            (r"POST .*/chat/completions", self._complete),
            (r"POST /v1/messages", self._complete),
            (r"POST .*:generateContent", self._complete),
        ]

    async def _fault(self, kind):
        """The fault that is due; None where all is well."""
        faults = getattr(self.faults, kind)
        fault = faults.pop(0) if faults else ""
        if fault == "held":
            self.held.set()
            await self._stopping.wait()
        if fault == "broken":
            return web.Response(status=502, text="<html>bad gateway</html>")
        if fault == "busy":
            error = {"error": {"message": "slow down"}}
            return web.json_response(error, status=429, headers={"Retry-After": "0"})
        if fault == "quota":
            error = {"error": {"message": "You exceeded your current quota", "code": "quota"}}
            return web.json_response(error, status=429)
        return None

    # Making batches

    async def _upload(self, request, raw):
        if fault := await self._fault("upload"):
            return fault
        ident = f"file-{len(self.files)}"
        if request.path.startswith("/upload"):
            place = str(request.url.with_path(f"/place/{ident}").with_query(None))
            return web.json_response({}, headers={"X-Goog-Upload-URL": place})
        boundary = request.headers["Content-Type"].partition("boundary=")[2]
        part = raw.split(f"--{boundary}".encode())[2]
        self.files[ident] = part.partition(b"\r\n\r\n")[2].removesuffix(b"\r\n")
        return web.json_response({"id": ident, "status": "processed"})

    async def _place(self, _, raw, ident):
        self.files[f"files/{ident}"] = raw
        return web.json_response({"file": {"name": f"files/{ident}"}})

    async def _create_openai(self, _, raw):
        body = json.loads(raw)
        lines = map(json.loads, self.files[body["input_file_id"]].splitlines())
        requests = [(line["custom_id"], line["body"]) for line in lines]
        return await self._create(requests, body["metadata"]["evenhand"], _openai_batch)

    async def _create_anthropic(self, _, raw):
        requests = [(it["custom_id"], it["params"]) for it in json.loads(raw)["requests"]]
        return await self._create(requests, "", _anthropic_batch)

    async def _create_openrouter(self, _, raw):
        body = json.loads(raw)
        assert list(body)[-1] == "requests"
        requests = [(it["custom_id"], it["body"]) for it in body["requests"]]
        return await self._create(requests, "", _openrouter_batch, status=202)

    async def _create_google(self, _, raw):
        batch = json.loads(raw)["batch"]
        source = batch["inputConfig"]
        if file := source.get("fileName"):
            lines = list(map(json.loads, self.files[file].splitlines()))
            requests = [(line["key"], line["request"]) for line in lines]
        else:
            items = source["requests"]["requests"]
            requests = [(it["metadata"]["key"], it["request"]) for it in items]
        return await self._create(requests, batch["displayName"], _google_batch)

    async def _create(
        self,
        requests,
        name,
        shape,
        status=200,
    ):
        due = self.faults.create[:1]
        if due and due[0] not in ("lost", "held") and (fault := await self._fault("create")):
            return fault
        ident = f"batch_{len(self.batches)}"
        texts = [(it, body, json.dumps(body, sort_keys=True).encode()) for it, body in requests]
        batch = Batch(ident, name, texts, asyncio.get_running_loop().time())
        if self.faults.refuse:
            batch.status, batch.refusal = "failed", self.faults.refuse.pop(0)
        self.batches[ident] = batch
        if due == ["lost"]:
            self.faults.create.pop(0)
            return web.Response(status=504)
        await self._fault("create")
        return web.json_response(shape(batch), status=status)

    # Looking at them

    async def _list(self, request, _):
        if fault := await self._fault("listing"):
            return fault
        shape = _shape(request.path)
        newest = [shape(batch) for batch in reversed(self.batches.values())][: self.list_most]
        listed = "operations" if shape is _google_batch else "data"
        return web.json_response({listed: newest, "has_more": False})

    async def _state(self, request, _, ident):
        if fault := await self._fault("state"):
            return fault
        batch = self.batches.get(ident)
        if batch is None:
            return web.json_response({"error": {"message": "no such batch"}}, status=404)
        told = _shape(request.path)(batch)
        if self.faults.status:
            _say_status(told, self.faults.status[0])
            return web.json_response(told)
        self._work(batch)
        return web.json_response(_shape(request.path)(batch))

    def _work(self, batch):
        """Answer a batch when it was looked at often enough."""
        batch.looks += 1
        if batch.status != "in_progress" or batch.looks <= self.faults.looks:
            return
        lines = [self._line(*it) for it in batch.requests]
        batch.lines = self.faults.lines(lines)
        batch.status = "expired" if self.faults.expired else "completed"
        answered = {str(line[0]) for line in batch.lines if line[1] == 200}
        self.paid.update(raw.decode() for ident, _, raw in batch.requests if ident in answered)

    def _line(self, ident, body, raw):
        return ident, 200, self._said(body)

    def _said(self, body):
        """The answer of the model, in the protocol of the request."""
        text = self.answer(_neutral(body))
        if "contents" in body:
            return _gemini(text)
        return _message(text) if _is_anthropic(body) else _completion(text)

    async def _download(self, request, _, ident):
        if fault := await self._fault("download"):
            return fault
        batch = self.batches[ident.removeprefix("files/").removesuffix("-errors")]
        good = [line for line in batch.lines if line[1] == 200]
        bad = [line for line in batch.lines if line[1] != 200]
        if ident.startswith("files/"):
            lines = [_google_line(line) for line in batch.lines]
        else:
            lines = [_openai_line(line) for line in (bad if ident.endswith("-errors") else good)]
        return self._file(lines)

    def _file(self, lines):
        raw = self.faults.raw
        return web.Response(body="\n".join(map(json.dumps, lines)).encode() if raw is None else raw)

    async def _results(self, request, _, ident):
        if fault := await self._fault("download"):
            return fault
        return self._file([_anthropic_line(line) for line in self.batches[ident].lines])

    async def _cancel(self, request, _, ident):
        self.batches[ident].status = "cancelled"
        return web.json_response(_shape(request.path)(self.batches[ident]))

    async def _complete(self, _, raw):
        if fault := await self._fault("live"):
            return fault
        body, self.live = json.loads(raw), self.live + 1
        self.paid[json.dumps(body, sort_keys=True)] += 1
        return web.json_response(self._said(body))


def _is_anthropic(body):
    return "system" in body or "output_config" in body


def _text(content):
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content)


def _neutral(body):
    """A request of any protocol, as messages and a schema."""
    if "contents" in body:
        system = body.get("systemInstruction", {"parts": []})["parts"]
        turns = [{"role": "system", "content": _text(system)}] if system else []
        roles = {"model": "assistant", "user": "user"}
        turns += [
            {"role": roles[turn["role"]], "content": _text(turn["parts"])}
            for turn in body["contents"]
        ]
        return {"messages": turns, "schema": body["generationConfig"].get("responseJsonSchema")}
    turns = [{"role": "system", "content": _text(body["system"])}] if "system" in body else []
    turns += [{**turn, "content": _text(turn["content"])} for turn in body["messages"]]
    if _is_anthropic(body):
        form = body.get("output_config", {}).get("format", {})
        return {"messages": turns, "schema": form.get("schema")}
    form = body.get("response_format", {}).get("json_schema", {})
    return {"messages": turns, "schema": form.get("schema")}


def _completion(text):
    choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    details = {"cached_tokens": 40}
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": details}
    return {"model": "test-model", "choices": [choice], "usage": usage}


def _message(text):
    usage = {"input_tokens": 50, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 10}
    return {
        "type": "message",
        "model": "test-model",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "usage": {**usage, "output_tokens": 10},
    }


def _gemini(text):
    counts = {"promptTokenCount": 100, "cachedContentTokenCount": 40, "candidatesTokenCount": 10}
    content = {"role": "model", "parts": [{"text": text}]}
    return {
        "candidates": [{"content": content, "finishReason": "STOP"}],
        "usageMetadata": counts,
        "modelVersion": "test-model",
    }


# The forms of batches and their lines


def _counts(batch):
    done = sum(line[1] == 200 for line in batch.lines)
    return done, len(batch.lines) - done


def _openai_batch(batch):
    done, failed = _counts(batch)
    refusal = batch.refusal
    errors = []
    if isinstance(refusal, str):
        errors = [{"code": "invalid", "message": refusal, "line": None}]
    elif refusal:
        errors = [{"code": "bad", "message": said, "line": n} for n, said in refusal.items()]
    is_over = batch.status in ("completed", "expired", "cancelled")
    return {
        "id": batch.id,
        "object": "batch",
        "status": batch.status,
        "created_at": 4 * 10**8,
        "metadata": {"evenhand": batch.name},
        "request_counts": {"total": len(batch.requests), "completed": done, "failed": failed},
        "output_file_id": batch.id if is_over and done else None,
        "error_file_id": f"{batch.id}-errors" if is_over and failed else None,
        "errors": {"object": "list", "data": errors} if errors else None,
    }


def _openrouter_batch(batch):
    results = [_openai_line(line) for line in batch.lines]
    return {
        **_openai_batch(batch),
        "created_at": 4 * 10**9,
        "model": "test-model",
        "metadata": None,
        "results": results or None,
        "error": {"message": str(batch.refusal)} if batch.refusal else None,
    }


def _anthropic_batch(batch):
    done, failed = _counts(batch)
    is_over = batch.status != "in_progress"
    open_ = 0 if is_over else len(batch.requests)
    rest = len(batch.requests) - done - failed if is_over else 0
    counts = {"processing": open_, "succeeded": done, "errored": failed, "expired": rest}
    return {
        "id": batch.id,
        "processing_status": "ended" if is_over else "in_progress",
        "created_at": "2096-01-01T00:00:00Z",
        "request_counts": {**counts, "canceled": 0},
    }


def _google_batch(batch):
    states = {"completed": "SUCCEEDED", "in_progress": "RUNNING"}
    state = states.get(batch.status, batch.status.upper())
    operation = {
        "name": f"batches/{batch.id}",
        "metadata": {"displayName": batch.name, "state": f"BATCH_STATE_{state}"},
        "done": batch.status != "in_progress",
    }
    if batch.refusal:
        operation["error"] = {"code": 3, "message": str(batch.refusal)}
    elif batch.lines and len(batch.requests) > 15:
        operation["response"] = {"responsesFile": f"files/{batch.id}"}
    elif batch.lines:
        items = [{**_google_line(line), "metadata": _id("key", line[0])} for line in batch.lines]
        operation["response"] = {"inlinedResponses": {"inlinedResponses": items}}
    return operation


def _say_status(told, status):
    """Put another status into what is told of a batch."""
    if "processing_status" in told:
        told["processing_status"] = status
    elif "done" in told:
        told |= {"done": False, "metadata": {**told["metadata"], "state": status}}
    else:
        told["status"] = status


def _id(name, ident):
    """The id of a line; an empty object for the id of a line that has none."""
    return {} if ident == {} else {name: ident}


def _shape(path):
    if "messages" in path:
        return _anthropic_batch
    if path.startswith("/v1beta"):
        return _google_batch
    return _openrouter_batch if path.startswith("/api/") else _openai_batch


def _openai_line(line):
    ident, status, body = line
    if status == 0 and isinstance(body, str):
        error = {"code": body, "message": "not executed"}
        return {**_id("custom_id", ident), "response": None, "error": error}
    response = {"status_code": status, "request_id": "r", "body": body}
    return {"id": "x", **_id("custom_id", ident), "response": response, "error": None}


def _anthropic_line(line):
    ident, status, body = line
    if status == 200:
        return {**_id("custom_id", ident), "result": {"type": "succeeded", "message": body}}
    if status == 0:
        return {"custom_id": ident, "result": {"type": "expired"}}
    said = body["error"]["message"]
    kind = "api_error" if status >= 500 else "invalid_request_error"
    error = {"type": "error", "error": {"type": kind, "message": said}}
    return {"custom_id": ident, "result": {"type": "errored", "error": error}}


def _google_line(line):
    ident, status, body = line
    if status == 200:
        return {**_id("key", ident), "response": body}
    if status == 0:
        return {"key": ident, "error": {"code": 1, "message": "cancelled"}}
    return {"key": ident, "error": {"code": 13 if status >= 500 else 3, **body["error"]}}
