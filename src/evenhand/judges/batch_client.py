"""The batches of one account: made, found again, looked at, downloaded, cancelled.

The requests of a batch are paid for when it is made. So `billed` of a lost call says if it may have
been made. Each provider's own form is in `batch_endpoints`.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from yarl import URL

from evenhand import limits
from evenhand.errors import CallError, CallLost, CallRejected, ProviderRefused, quote
from evenhand.exchange import BatchAnswer, BatchEndpoint, BatchState, Phase
from evenhand.jsontext import compact
from evenhand.judges.error_response import (
    ErrorResponse,
    Recipient,
    error_for,
    read_error_response,
    refusal,
)
from evenhand.judges.transport import HttpResponse, Transport
from evenhand.judges.wire import is_list, is_object, load_json, text_of

JSON = {"Content-Type": "application/json"}


class BatchClient(BatchEndpoint):
    """Sends to the batches of one account. A provider's own class makes batches (`create`) and
    fetches their answers (`results`)."""

    phases: ClassVar[Mapping[str, Phase]]
    """By the provider's word for the status."""
    list_field: ClassVar[str] = "data"
    page_query: ClassVar[Mapping[str, str]] = {"limit": "100"}
    after_field: ClassVar[str] = "after"
    """The query field that asks for the page after the last batch of one."""

    def __init__(self, http: Transport, base: URL, recipient: Recipient) -> None:
        self._http, self._base, self._recipient = http, base, recipient
        self._model = recipient.model

    @abstractmethod
    def _url(self, *parts: str) -> URL:
        """Return the address of all batches, or of one and a part of it."""

    @abstractmethod
    def _matches(self, batch: Mapping[str, Any], name: str, size: int, since: float) -> bool:
        """Return True if a listed batch has this name; where batches have none, if it has so many
        requests and was made after a moment, in seconds since the epoch."""

    @abstractmethod
    def _state(self, batch: Mapping[str, Any]) -> BatchState:
        """Return how a batch stands."""

    @abstractmethod
    def _answer(self, line: Mapping[str, Any]) -> BatchAnswer:
        """Return the answer in a line of the results."""

    async def find(self, name: str, size: int, since: float) -> list[BatchState]:
        """Return the batches that match, the oldest first. Lists begin with the last one made."""
        found: list[BatchState] = []
        query = dict(self.page_query)
        for _ in range(limits.BATCH_PAGES):
            page = await self._ask("GET", self._url().update_query(query))
            batches = listed_objects(page, self.list_field)
            matching = [batch for batch in batches if self._matches(batch, name, size, since)]
            found += map(self._state, matching)
            more = self._next_page(page, batches)
            if not more:
                break
            query |= more
        return found[::-1]

    def _next_page(
        self, page: Mapping[str, Any], batches: Sequence[Mapping[str, Any]]
    ) -> dict[str, str]:
        has_more = page.get("has_more") and batches
        return {self.after_field: text_of(batches[-1].get("id"))} if has_more else {}

    async def state(self, ident: str) -> BatchState:
        """Return how a batch stands."""
        return self._state(await self._batch(ident))

    def read(self, results: bytes) -> list[BatchAnswer]:
        """Return the answers in the results of a batch."""
        return [self._answer(line) for line in read_lines(results)]

    async def cancel(self, ident: str) -> None:
        """Have a batch end early."""
        await self._ask("POST", self._url(ident, "cancel"), ident=ident)

    async def _batch(self, ident: str) -> dict[str, Any]:
        return await self._ask("GET", self._url(ident), ident=ident)

    async def _ask(
        self, method: str, url: URL, body: bytes = b"", *, ident: str = ""
    ) -> dict[str, Any]:
        """Return the JSON object of a response; raises CallLost or ProviderRefused."""
        return parse_object(await self._send(method, url, body, JSON, ident=ident))

    async def _send(
        self,
        method: str,
        url: URL,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        ident: str = "",
    ) -> HttpResponse:
        """Return a response that is no error. Raises one that names the batch, if an id is given
        and the provider does not know it."""
        response = await self._http.send(method, url, body, headers)
        if 200 <= response.status < 300:
            return response
        raise self._error(read_error_response(response, self._http.scrub), ident)

    def _error(self, response: ErrorResponse, ident: str) -> CallError | ProviderRefused:
        refused = partial(refusal, response, self._recipient)
        if ident and response.status in (403, 404, 410):
            return refused("judges.unknown_batch", batch=ident)
        error = error_for(response, self._recipient, proven=False)
        if isinstance(error, CallRejected):
            return refused("judges.batch_rejected")
        return error

    def _make_state(
        self,
        ident: Any,
        status: Any,
        answered: Any,
        error: Any = None,
        lines: Mapping[int, str] | None = None,
    ) -> BatchState:
        """Return a state from decoded values that may be anything."""
        if not text_of(ident):
            raise CallLost("transport", "the provider named no id of the batch", billed=True)
        word = status if isinstance(status, str) else json.dumps(status)[:100]
        message = error.get("message") if is_object(error) else error
        return BatchState(
            id=ident,
            status=word,
            phase=self.phases.get(word.lower(), "unknown"),
            answered=number(answered),
            complaint=self._http.scrub(text_of(message)),
            lines=lines or {},
        )


def parse_object(response: HttpResponse) -> dict[str, Any]:
    """Return the JSON object of a response about batches. Raises CallLost for anything else."""
    text = response.body.decode("utf-8", "replace").removeprefix("\ufeff")
    try:
        value = load_json(text, limits.BATCH_ELEMENTS)
    except ValueError:
        value = None
    if not is_object(value):
        raise CallLost("transport", "the provider answered with no JSON object", billed=True)
    return value


def write_item(head: Mapping[str, Any], field: str, body: bytes) -> bytes:
    """Return an object of a few fields and, last, a body that is JSON already."""
    return compact(head).encode()[:-1] + f',"{field}":'.encode() + body + b"}"


def read_lines(data: bytes) -> Iterator[Any]:
    """Yield the objects of a file of lines; anything else is left out: its request has no answer. A
    line ends with a line feed alone: a text in it may hold other signs that end lines."""
    for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        try:
            value = load_json(line.decode("utf-8", "replace"))
        except ValueError:
            continue
        if is_object(value):
            yield value


def listed_objects(page: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the objects of a list that a provider may leave out if it is empty. Raises CallLost
    for a list that cannot be read: what stands in it might be made a second time."""
    values = page.get(key)
    if values is None:
        return []
    if not is_list(values):
        raise CallLost("transport", f"the provider's list of batches is none: {quote(values)}")
    return [value for value in values if is_object(value)]


def as_lines(values: Any) -> bytes:
    """Return the items of a decoded list as lines; none if it is no list."""
    return b"\n".join(json.dumps(item).encode() for item in (values if is_list(values) else []))


def number(value: Any) -> int:
    """Return a decoded value that should be a count or a time in seconds, as a number or as Google
    writes it; else 0."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 12:
        return int(value)
    return value if type(value) is int and 0 <= value < 10**12 else 0


def answer_of(ident: Any, status: int, body: Any) -> BatchAnswer:
    """Return an answer whose body is a decoded value."""
    return BatchAnswer(text_of(ident), status, json.dumps(body).encode())


def no_answer(ident: Any, reason: Any) -> BatchAnswer:
    """Return the answer to a request that the model never saw, or whose answer is nothing."""
    return BatchAnswer(text_of(ident), 0, absence=text_of(reason) or "no answer")
