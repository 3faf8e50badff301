"""A request as the provider got it, and what answers it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiohttp import web

if TYPE_CHECKING:
    from tests.provider.server import Provider


@dataclass(frozen=True)
class Call:
    """One request as it arrived."""

    provider: Provider
    number: int
    headers: Mapping[str, str]
    raw: bytes
    body: dict[str, Any]
    web: web.Request
    peer: Any
    """The client's address: equal for requests on one connection."""

    @property
    def schema(self) -> dict[str, Any] | None:
        """The schema asked for; where this request carries none, the last one that came."""
        asked = self.body.get("response_format", {}).get("json_schema")
        if asked:
            self.provider.schema = asked["schema"]
        return self.provider.schema

    @property
    def key(self) -> str:
        return self.headers.get("Authorization", "").removeprefix("Bearer ")


Behaviour = Callable[[Call], Awaitable[web.StreamResponse]]
