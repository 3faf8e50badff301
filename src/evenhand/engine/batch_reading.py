"""The answers of one batch, read one by one: what becomes of each of its items.

In whatever order they come: the first that is about an item counts, one of no item does not, and an
item without one has no answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from json import dumps
from typing import TYPE_CHECKING

from evenhand import jsontext
from evenhand.batch import BatchAnswer
from evenhand.engine.budget import beyond, excess_of, most_tokens
from evenhand.errors import AskAgain, CallError, CallLost, ProviderRefused, StoppedEarly
from evenhand.exchange import Reply, Schema
from evenhand.judgment import RETRIED_BY_NEXT_RUN
from evenhand.store.batches import BatchItem, ItemOutcome, OpenBatch, OpenItem
from evenhand.store.ports import Call

if TYPE_CHECKING:
    from evenhand.engine.batches import BatchDesk


def complaint_of(ident: str, message: str) -> BatchAnswer:
    """A refusal as if the request had been sent by itself."""
    return BatchAnswer(ident, 400, dumps({"error": {"message": message}}).encode())


class BatchReading:
    """The answers of one batch, read one by one."""

    def __init__(self, desk: BatchDesk, batch: OpenBatch, items: Mapping[str, OpenItem]) -> None:
        self._desk, self._batch, self._items = desk, batch, dict(items)
        self._read = desk.path.lines.batch_reader()
        self._schemas: dict[str, Schema] = {}
        self._answered: set[str] = set()
        self._doubled = self._unknown = 0
        self._outcomes: list[ItemOutcome] = []
        self.calls = 0
        self.fatal: ProviderRefused | None = None
        """Why the provider refuses every request alike."""
        self.excess: StoppedEarly | None = None

    def read(self, answer: BatchAnswer, *, is_line: bool = False) -> None:
        """One answer; the first of those that are about one item counts. `is_line` says that it is
        about a single line that kept a batch from being made."""
        it = self._items.pop(answer.id, None)
        if it is None:
            self._doubled += answer.id in self._answered
            self._unknown += answer.id not in self._answered
            return None
        self._answered.add(answer.id)
        key, desk = it.item.key, self._desk
        if not answer.status:
            return self._leave(key, answer.absence)
        try:
            reply = self._read(answer, self._schema(it.schema), jsontext.restored(it.item.sampling))
        except AskAgain:
            self._outcomes.append(ItemOutcome(key, None, "unanswered"))
        except CallLost as loss:
            self._leave(key, str(loss), may_be_billed=loss.billed)
        except CallError as error:
            if error.reason in RETRIED_BY_NEXT_RUN:
                return self._leave(key, str(error))
            desk.refused[key] = error
            self._outcomes.append(ItemOutcome(key, None, "refused", str(error)))
        except ProviderRefused as error:
            self.fatal = error
            # Where it refuses all alike, a batch may be made of them when that is mended.
            self._leave(key, error.what if is_line or self.calls else "")
        else:
            self._outcomes.append(ItemOutcome(key, self._call(it.item, reply)))
            self.calls += 1

    def _leave(self, key: str, detail: str, *, may_be_billed: bool = False) -> None:
        outcome = ItemOutcome(key, None, "unanswered", detail, may_be_billed)
        self._outcomes.append(outcome)

    @property
    def outcomes(self) -> list[ItemOutcome]:
        """What became of all items; one without a line has no answer."""
        while self._items:
            _, it = self._items.popitem()
            self._leave(it.item.key, "no line came")
        return self._outcomes

    @property
    def summary(self) -> str:
        """In words, what has come."""
        states = Counter(outcome.state for outcome in self._outcomes)
        parts = [f"{states['answered']:,} answered"]
        parts += [f"{states['refused']:,} refused"] if states["refused"] else []
        parts += [f"{states['unanswered']:,} without an answer"] if states["unanswered"] else []
        parts += [f"{self._doubled:,} lines came twice"] if self._doubled else []
        parts += [f"{self._unknown:,} lines of no question"] if self._unknown else []
        return ", ".join(parts)

    def _schema(self, text: str | None) -> Schema | None:
        if text is None:
            return None
        if text not in self._schemas:
            self._schemas[text] = Schema(jsontext.restored(text))
        return self._schemas[text]

    def _call(self, item: BatchItem, reply: Reply) -> Call:
        path = self._desk.path
        judge, usage = path.judge.name, reply.usage
        if path.price is None:
            most = most_tokens(usage, item.tokens, path.max_tokens)
            return Call(item.key, self._batch.run, judge, reply, None, most)
        bound = path.price.bound(item.tokens, path.max_tokens)
        cost = path.price.cost(usage)
        cost = bound if cost is None else cost
        excess = excess_of(usage, item.tokens, path.max_tokens)
        if excess or cost > bound:
            self.excess = beyond(excess, cost, bound)
        return Call(item.key, self._batch.run, judge, reply, cost)
