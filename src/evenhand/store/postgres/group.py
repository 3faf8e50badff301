"""What has gathered to be written, as its net effect: a few statements, each over many rows.

Within a group the last word about a reservation, a sending or a judgment counts. Writing a group a
second time changes nothing, so that one whose commit was not confirmed may be written again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from evenhand.store.codec import CALL_COLUMNS, JUDGMENT_COLUMNS, CallRow
from evenhand.store.ports import Sending
from evenhand.store.postgres.seal import sealed
from evenhand.store.postgres.server import Connection

_CALL = f"{CALL_COLUMNS}, digest, at"
_TEXTS = frozenset(
    {
        *[
            "key",
            "run",
            "judge",
            "reply",
            "finish",
            "model",
            "odds",
            "sampling",
            "claimed",
            "reasoning",
            "digest",
            "at",
        ]
    }
)
_CALL_ARRAYS = ", ".join(
    f"${place}::{'text' if name in _TEXTS else 'bigint'}[]"
    for place, name in enumerate(_CALL.split(", "), start=1)
)
_RECORD = f"""
    WITH replies AS MATERIALIZED (
        SELECT * FROM unnest({_CALL_ARRAYS}) WITH ORDINALITY AS r ({_CALL}, place)
    ), answering AS (
        INSERT INTO calls ({_CALL}) SELECT {_CALL} FROM replies ORDER BY place
        ON CONFLICT DO NOTHING RETURNING key, at, digest
    )
    INSERT INTO calls ({_CALL}, aside) SELECT {_CALL}, at FROM replies r WHERE NOT EXISTS
        (SELECT 1 FROM answering a WHERE (a.key, a.at, a.digest)=(r.key, r.at, r.digest))
    ORDER BY place ON CONFLICT DO NOTHING
"""
"""Replies are kept once each; one whose question was answered before is kept set aside."""
_RESERVE = (
    "INSERT INTO reservations SELECT * FROM unnest($1::text[], $2::text[], $3::text[],"
    " $4::bigint[]) ON CONFLICT (key, attempt) DO UPDATE SET run=excluded.run,"
    " amount=excluded.amount"
)
_RELEASE = (
    "DELETE FROM reservations r USING unnest($1::text[], $2::text[]) AS u (key, attempt)"
    " WHERE r.key=u.key AND r.attempt=u.attempt"
)
_NOTE_SENDINGS = (
    "INSERT INTO sendings SELECT * FROM unnest($1::text[], $2::text[], $3::float8[],"
    " $4::bigint[]) ON CONFLICT (name) DO UPDATE SET tokens=excluded.tokens"
)
_FORGET_SENDINGS = "DELETE FROM sendings WHERE abs(at - $1) > 60"
_CORRECT_SENDINGS = (
    "UPDATE sendings s SET tokens=u.tokens FROM unnest($1::text[], $2::bigint[])"
    " AS u (name, tokens) WHERE s.name=u.name"
)
_DROP_SENDINGS = "DELETE FROM sendings WHERE name = ANY($1)"
_SETTLE = (
    f"INSERT INTO judgments ({JUDGMENT_COLUMNS}, digest) SELECT * FROM unnest($1::bigint[],"
    " $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::bigint[],"
    " $8::bigint[], $9::text[], $10::text[]) ON CONFLICT (judging, unit, judge, repeat)"
    " DO UPDATE SET status=excluded.status, reason=excluded.reason, calls=excluded.calls,"
    " reasks=excluded.reasks, body=excluded.body, digest=excluded.digest"
)
_FORGET = (
    "DELETE FROM judgments j USING unnest($1::bigint[], $2::bigint[], $3::bigint[],"
    " $4::bigint[]) AS u (judging, unit, judge, repeat)"
    " WHERE (j.judging, j.unit, j.judge, j.repeat)=(u.judging, u.unit, u.judge, u.repeat)"
)

Statement = tuple[str, list[list[Any]]]
Attempt = tuple[str, str]
"""A key, and the name of an attempt at it."""


class Group:
    """Rows for one commit, and who waits for it."""

    def __init__(self) -> None:
        self.calls: list[CallRow] = []
        self.reservations: dict[Attempt, tuple[str, int] | None] = {}
        self.judgments: dict[tuple[int, ...], tuple[Any, ...] | None] = {}
        self._sendings: dict[str, Sending] = {}
        self._counts: dict[str, int | None] = {}
        self._clock: float | None = None
        self.waiting: list[asyncio.Future[None]] = []

    def note_sending(self, sending: Sending) -> None:
        self._sendings[sending.name], self._clock = sending, sending.at

    def correct_sending(self, name: str, tokens: int | None) -> None:
        noted = self._sendings.pop(name, None)
        if noted is not None and tokens is not None:
            self._sendings[name] = noted._replace(tokens=tokens)
        else:
            self._counts[name] = tokens

    @property
    def releases(self) -> list[Attempt]:
        """The reservations that are closed."""
        return [attempt for attempt, money in self.reservations.items() if money is None]

    def is_empty(self) -> bool:
        return not any(
            (self.calls, self.reservations, self.judgments, self._sendings, self._counts)
        )

    async def write(self, connection: Connection) -> None:
        """Write all of it in one transaction."""
        statements = list(self._statements())
        if len(statements) == 1:  # a transaction by itself
            await connection.execute(statements[0][0], *statements[0][1])
            return
        async with connection.transaction():
            for sql, columns in statements:
                await connection.execute(sql, *columns)

    def _statements(self) -> Iterator[Statement]:
        """In the same order in every process, so that two do not wait for each other."""
        reserved = [(*attempt, *money) for attempt, money in self.reservations.items() if money]
        settled = [row for row in self.judgments.values() if row is not None]
        forgotten = [place for place, row in self.judgments.items() if row is None]
        counts = [(name, tokens) for name, tokens in self._counts.items() if tokens is not None]
        dropped = [(name,) for name, tokens in self._counts.items() if tokens is None]
        if self._clock is not None:
            yield _FORGET_SENDINGS, [self._clock]  # type: ignore[list-item]
        for sql, rows in (
            *((_NOTE_SENDINGS, self._sendings.values()), (_CORRECT_SENDINGS, counts)),
            *((_DROP_SENDINGS, dropped), (_FORGET, forgotten), (_SETTLE, settled)),
            *((_RELEASE, self.releases), (_RESERVE, reserved)),
        ):
            if rows:
                yield sql, _columns(sorted(rows))
        if self.calls:
            yield _RECORD, _columns(self.calls)


def _columns(rows: Iterable[Sequence[Any]]) -> list[list[Any]]:
    """Rows as one array for each column."""
    return [
        [sealed(value) if type(value) is str else value for value in column]
        for column in zip(*rows, strict=True)
    ]
