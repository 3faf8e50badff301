"""What an account has sent within the last minute, kept in the store: whoever starts next, after a
kill too, begins with the minute as it was left."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from time import time

from evenhand.store.keys import digest
from evenhand.store.ports import Ledger, Sending

MINUTE = 60.0


class Recent:
    """The requests of one account, each noted before it is sent."""

    def __init__(
        self, ledger: Ledger, account: str, sender: str = "", clock: Callable[[], float] = time
    ) -> None:
        """The names of its requests begin with `sender`."""
        self._ledger, self._account, self._sender, self._clock = ledger, account, sender, clock

    async def note(self, tokens: int) -> str:
        """Note a request that is about to be sent, durably; its name there."""
        sending = Sending(
            f"{self._sender}{os.urandom(6).hex()}", self._account, self._clock(), tokens
        )
        await self._ledger.note_sending(sending)
        return sending.name

    async def correct(self, name: str, tokens: int | None) -> None:
        """Note the true count of a request's tokens; None for one that was not sent."""
        await self._ledger.correct_sending(name, tokens)


def account_name(account: object) -> str:
    """What the store calls an account, the same in every process."""
    return digest(str(account))


def ages(sendings: Sequence[Sending], now: float) -> Iterator[tuple[float, int]]:
    """How long ago requests of the last minute were sent, in seconds, and their tokens. By a clock
    that ran backwards some are yet to come: they count as just sent."""
    for sending in sendings:
        age = max(0.0, now - sending.at)
        if age < MINUTE:
            yield age, sending.tokens
