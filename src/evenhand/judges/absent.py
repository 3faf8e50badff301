"""A judge of a run that cannot judge here: it is known by what the run recorded of it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from evenhand.errors import NothingRecorded, ProviderRefused
from evenhand.exchange import Question, Reply, Style


class AbsentJudge:
    """Has the name and identity of a judge, and answers nothing."""

    def __init__(self, name: str, identity: Mapping[str, Any], style: Style, caveat: str) -> None:
        self.name, self.identity, self.style, self.caveat = name, identity, style, caveat
        self.account: Hashable = name
        self.slots: int | None = None
        self.lacks: ProviderRefused | None = None

    def load(self) -> None:
        """There is no code of it here."""

    async def answer(self, question: Question) -> Reply:
        raise NothingRecorded(f"{self.name} is not here")

    async def close(self) -> None:
        """It holds nothing."""
