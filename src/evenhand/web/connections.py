"""What a connection may take: so long to bring a request, so long to read the answer, and so many
at once that do neither.

Whoever opens connections and says nothing on them, or reads nothing, stands on the same machine as
the honest reader and has the same address. So nobody is turned away: the one that has been waited
for longest is closed to let the next one in.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """How long a connection is waited for, in seconds, and how many are waited for at once."""

    request_seconds: float = 10.0
    """From the first byte expected to the last one of the request's body."""
    reading_seconds: float = 120.0
    """For an answer that the other side does not take: a report may have many megabytes."""
    most: int = 64
    """Of those that owe a request, and of those that do not read."""


class _Waiting:
    """Connections that are waited for, oldest first, each no longer than so many seconds."""

    def __init__(self, seconds: float, most: int) -> None:
        self._seconds, self._most = seconds, most
        self._timers: dict[H11Protocol, asyncio.TimerHandle] = {}

    def add(self, connection: H11Protocol) -> None:
        """Begin to wait, unless that is done already; the oldest goes where there are too many."""
        if connection in self._timers:
            return
        self._timers[connection] = connection.loop.call_later(
            self._seconds, self._give_up, connection
        )
        if len(self._timers) > self._most:
            self._give_up(next(iter(self._timers)))

    def discard(self, connection: H11Protocol) -> None:
        """Wait no longer: what was waited for has come, or never will."""
        timer = self._timers.pop(connection, None)
        if timer is not None:
            timer.cancel()

    def _give_up(self, connection: H11Protocol) -> None:
        self.discard(connection)
        connection.transport.abort()


def bounded_connections(limits: ConnectionLimits) -> type[H11Protocol]:
    """The protocol of one server whose connections keep these limits together."""
    requests = _Waiting(limits.request_seconds, limits.most)
    readers = _Waiting(limits.reading_seconds, limits.most)

    class Connection(H11Protocol):
        """One connection: it owes a request, or is owed an answer."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            requests.add(self)

        def connection_lost(self, exc: Exception | None) -> None:
            requests.discard(self)
            readers.discard(self)
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._look()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            self._look()

        def pause_writing(self) -> None:
            super().pause_writing()
            readers.add(self)

        def resume_writing(self) -> None:
            super().resume_writing()
            readers.discard(self)

        def _look(self) -> None:
            cycle = self.cycle
            is_whole = cycle is not None and not cycle.more_body
            if is_whole and not cycle.response_complete:
                requests.discard(self)
            elif not self.transport.is_closing():
                requests.add(self)

    return Connection
