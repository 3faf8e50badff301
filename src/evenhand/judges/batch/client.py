"""Requests around batches: small ones that ask, long ones that carry files; and how answers that
are no batch become errors.

The requests of a batch are paid for when it is made. So whoever makes one hears by `billed` of a
lost call whether it may have been made.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from yarl import URL

from evenhand import limits
from evenhand.batch import BatchAnswer
from evenhand.errors import CallError, CallLost, CallRejected, ProviderRefused, quoted
from evenhand.jsontext import require_bounds
from evenhand.judges.error_response import (
    ErrorResponse,
    Recipient,
    error_for,
    read_error_response,
    retry_hints,
)
from evenhand.judges.reply import is_list, is_object, load_json
from evenhand.judges.transport import HttpResponse, Transport

JSON = {"Content-Type": "application/json"}
_UNKNOWN = frozenset((403, 404, 410))
"""How providers speak of a batch that the key may not see."""


class BatchClient:
    """Sends to the batches of one account."""

    def __init__(self, http: Transport, base: URL, recipient: Recipient) -> None:
        self._http, self.base, self._recipient = http, base, recipient

    @property
    def model(self) -> str:
        return self._recipient.model

    async def ask(self, method: str, url: URL, body: bytes = b"") -> Any:
        """The JSON of an answer; raises CallLost, CallRejected or ProviderRefused."""
        return self.read(await self.send(method, url, body, JSON))

    async def about(self, ident: str, method: str, url: URL, body: bytes = b"") -> Any:
        """The same of one batch; one that is not known here is told as such."""
        answered = await self.send(method, url, body, JSON, ident=ident)
        return self.read(answered)

    async def download(self, ident: str, url: URL) -> bytes:
        """A file of a batch."""
        return (await self.send("GET", url, ident=ident)).body

    async def send(
        self,
        method: str,
        url: URL,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        ident: str = "",
    ) -> HttpResponse:
        """An answer that is no complaint; about the batch of an id, if one is named."""
        answered = await self._http.send(method, url, body, headers)
        if 200 <= answered.status < 300:
            return answered
        complaint = read_error_response(answered, self._http.scrub)
        raise self._error(complaint, answered.headers, ident)

    def read(self, answered: HttpResponse) -> Any:
        """The value of a body that is JSON."""
        text = answered.body.decode("utf-8", "replace").removeprefix("\ufeff")
        try:
            require_bounds(text, limits.STORED_DEPTH, limits.BATCH_ELEMENTS)
            value = json.loads(text)
        except ValueError:
            value = None
        if not is_object(value):
            raise CallLost("transport", "the provider answered with no JSON object", billed=True)
        return value

    def scrub(self, text: object) -> str:
        """A text of the provider's that may be shown."""
        return self._http.scrub(str(text))

    def _error(
        self, complaint: ErrorResponse, headers: Mapping[str, str], ident: str
    ) -> CallError | ProviderRefused:
        if ident and complaint.status in _UNKNOWN:
            return self._unknown(ident, complaint)
        hints = retry_hints(complaint, headers, self._http.scrub)
        error = error_for(complaint, self._recipient, hints, proven=False)
        if isinstance(error, CallRejected):
            words = f"the provider takes no such batch: {error}"
            return ProviderRefused(words, advice=f"Check the model {quoted(self.model)}.")
        return error

    def _unknown(self, ident: str, complaint: ErrorResponse) -> ProviderRefused:
        recipient = self._recipient
        return ProviderRefused(
            f"the batch {quoted(ident)} is not known to this key at {recipient.base_url}:"
            f" HTTP {complaint.status}: {quoted(complaint.text)}",
            advice=f"Was it made with another account's key? Then set {recipient.key_name} to that"
            " one. If it is lost for good, give it up: evenhand batches forget"
            f" {ident}",
        )


def lines(data: bytes) -> Iterator[Any]:
    """The objects of a file of lines; what is none is left out: its request has no answer. A line
    ends with a line feed alone: a text in it may hold other signs that end lines."""
    for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        if not line.strip():
            continue
        try:
            value = load_json(line.decode("utf-8", "replace"))
        except ValueError:
            continue
        if is_object(value):
            yield value


def listed_objects(page: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """The objects of a list that a provider gives, which may be left out where it is empty. A list
    that cannot be read is no empty one: what stands in it might be made a second time."""
    values = page.get(key)
    if values is None:
        return []
    if not is_list(values):
        raise CallLost("transport", f"the provider's list of batches is none: {quoted(values)}")
    return [value for value in values if is_object(value)]


def text(value: Any) -> str:
    """A decoded value that should be a string; empty where it is none."""
    return value if isinstance(value, str) else ""


def status_of(value: Any) -> str:
    """Return the status of a batch; one that is no text as JSON, so that it can be told."""
    return value if isinstance(value, str) else json.dumps(value)[:100]


def as_lines(values: Any) -> bytes:
    """Return the objects of a list as lines."""
    items: list[Any] = values if is_list(values) else []
    return b"\n".join(json.dumps(item).encode() for item in items)


def number(value: Any) -> int:
    """A decoded value that should be a count or a time in seconds, as a number or as Google writes
    it; else 0."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 12:
        return int(value)
    return value if type(value) is int and 0 <= value < 10**12 else 0


def absent(ident: str, reason: Any) -> BatchAnswer:
    """A request that the model never saw, or whose answer is nothing."""
    return BatchAnswer(ident, 0, absence=str(reason) or "no answer")
