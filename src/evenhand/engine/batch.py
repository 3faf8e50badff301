"""The batches of one judge: created, found again, waited for, and their answers recorded.

The store knows everything first: a batch is noted before it is created, and its answers are
recorded before anybody reads them. So the next command can go on from wherever one died.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from json import dumps
from time import time
from typing import TypeVar

from evenhand import jsontext, limits
from evenhand.engine.call import RetryPolicy
from evenhand.engine.prices import BatchBudget, Price, price_call, usd
from evenhand.engine.progress import Tally
from evenhand.engine.stop import Stop, Stopped
from evenhand.errors import (
    AskAgain,
    CallError,
    CallLost,
    EvenhandError,
    ProviderRefused,
    StoppedEarly,
    UsageError,
)
from evenhand.exchange import (
    BatchAnswer,
    BatchEndpoint,
    BatchJudge,
    BatchRequest,
    BatchState,
    Question,
    Schema,
)
from evenhand.judgment import RETRIED_BY_NEXT_RUN
from evenhand.store.batches import Batches, BatchItem, BatchRow, ItemOutcome, NewBatch, item_id
from evenhand.store.ports import Call
from evenhand.words import Sentence, Value

_RECORDED_AT_ONCE = 500
T = TypeVar("T")


@dataclass(slots=True)
class _Chunk:
    """Questions that go into one batch."""

    requests: list[BatchRequest] = field(default_factory=list[BatchRequest])
    items: list[BatchItem] = field(default_factory=list[BatchItem])
    keys: set[str] = field(default_factory=set[str])
    size: int = 0


@dataclass(slots=True, kw_only=True)
class BatchSender:
    """Sends the questions of one judge by the batch, and takes in what comes back. A method that
    cannot go on requests the stop and raises Stopped."""

    judge: BatchJudge
    endpoint: BatchEndpoint
    run: str
    batch_store: Batches
    stop: Stop
    budget: BatchBudget
    retry: RetryPolicy
    price: Price | None
    max_tokens: int
    requests_most: int
    tally: Tally
    keep: Callable[[str, bytes], str]
    """Keeps a file of that name; returns its path."""
    notice: Callable[[str], None]
    """Told what is tried again."""
    tell: Callable[[str], None]
    """Told what became of a batch."""
    refused: dict[str, CallError] = field(default_factory=dict[str, CallError])
    """Questions that the provider will not answer, by their keys."""
    is_full: bool = False
    """True if the provider takes no more for now."""
    sent: int = 0
    """Questions of this wave that were sent."""
    _chunks: dict[Schema | None, _Chunk] = field(default_factory=dict[Schema | None, _Chunk])

    @property
    def place(self) -> str:
        """Return the provider and its address, which may be asked with any key of the account."""
        identity = self.judge.identity
        return f"{identity.get('provider', '')} {identity.get('base_url', '')}"

    # Sending

    @property
    def gathered(self) -> int:
        """Return the number of questions of this wave, sent or about to be."""
        return self.sent + sum(len(chunk.items) for chunk in self._chunks.values())

    def begin_wave(self) -> None:
        """Begin a wave."""
        self._chunks, self.sent, self.is_full = {}, 0, False

    async def add(self, key: str, question: Question, tokens: int) -> list[BatchRow]:
        """Add a question to the wave; return the batches that it filled, which are now created."""
        bounds = self.endpoint.bounds
        place = question.schema if bounds.is_one_schema else None
        chunk = self._chunks.setdefault(place, _Chunk())
        amount = self.price.bound(tokens, self.max_tokens) if self.price else 0
        if self.is_full or key in chunk.keys or not self.budget.try_reserve(amount):
            return []
        request = self.judge.batch_request(item_id(key), question)
        full: list[_Chunk] = []
        most_bytes = min(bounds.bytes, limits.BATCH_BYTES)
        if chunk.items and chunk.size + len(request.body) > most_bytes:
            full.append(chunk)
            chunk = self._chunks[place] = _Chunk()
        sampling = jsontext.compact(dict(request.sampling))
        chunk.requests.append(request)
        chunk.items.append(BatchItem(key, tokens, amount, sampling))
        chunk.keys.add(key)
        chunk.size += len(request.body)
        if len(chunk.items) >= min(bounds.requests, self.requests_most):
            full.append(self._chunks.pop(place))
        return await self._send_chunks(full)

    async def flush(self) -> list[BatchRow]:
        """Create batches of what is left of the wave."""
        chunks, self._chunks = list(self._chunks.values()), {}
        return await self._send_chunks(chunks)

    async def _send_chunks(self, chunks: Sequence[_Chunk]) -> list[BatchRow]:
        batches = [await self._send(chunk) for chunk in chunks if chunk.items]
        return [batch for batch in batches if batch is not None]

    async def _send(self, chunk: _Chunk) -> BatchRow | None:
        """Create a batch; return None where the provider takes none for now."""
        name, began, size = f"evenhand-{os.urandom(8).hex()}", time(), len(chunk.items)
        self.stop.check()
        batch = NewBatch(
            name=name, run=self.run, judge=self.judge.name, place=self.place, items=chunk.items
        )
        await self.batch_store.prepare(batch)
        try:
            state = await self._create(name, chunk.requests, began)
        except (ProviderRefused, UsageError) as error:
            await self.batch_store.close_batch(name, "void", "refused")
            raise self._end(error) from None
        if state is None:
            await self.batch_store.close_batch(name, "void", "not made")
            self.is_full = True
            return None
        made = await self.batch_store.attach(name, state.id, state.status)
        self.sent += size
        self.tally.sent += size
        about: dict[str, Value] = {"batch": state.id, "n": size, "judge": self.judge.name}
        if self.price:
            cost = float(usd(made.reserved))
            self.tell(Sentence("engine.batch_made_at_most", cost=cost, **about))
        else:
            self.tell(Sentence("engine.batch_made", **about))
        return made

    async def _create(
        self, name: str, requests: Sequence[BatchRequest], began: float
    ) -> BatchState | None:
        """Create a batch once: where no answer comes, look for it before trying again. Return None
        where the provider stays busy."""
        loss, may_exist = CallLost("transport", ""), False
        for attempts in range(1, limits.ATTEMPTS + 1):
            try:
                return await self.endpoint.create(name, requests)
            except CallLost as error:
                loss = error
            may_exist = may_exist or not (loss.is_busy or loss.is_unreachable)
            if may_exist and (found := await self._find(name, len(requests), began)):
                return found
            if _is_hopeless(loss):
                break
            self.notice(str(loss))
            await self.stop.sleep(self.retry.pause(loss, attempts))
        if loss.is_busy and not may_exist:
            return None
        raise self._end_unreachable(loss)

    async def _find(self, name: str, size: int, began: float) -> BatchState | None:
        """Return a batch that may have been created: it may be listed a moment later."""
        since = began - limits.BATCH_CLOCK_SECONDS
        for attempts in range(1, limits.BATCH_SEARCHES + 1):
            await self.stop.sleep(self.retry.pause(CallLost("timeout", ""), attempts))
            for state in await self._retry(lambda: self.endpoint.find(name, size, since)):
                if not await self.batch_store.is_known(state.id):
                    return state
        return None

    # Going on with what is there

    async def recover(self, batch: BatchRow) -> BatchRow | None:
        """Find a batch that may have been created before a crash; return None where it was not: its
        questions are open."""
        began = datetime.fromisoformat(batch.created).timestamp()
        state = await self._find(batch.name, batch.requests, began)
        if state is None:
            await self.batch_store.close_batch(batch.name, "void", "not made")
            return None
        return await self.batch_store.attach(batch.name, state.id, state.status)

    async def poll(self, batch: BatchRow) -> BatchRow | None:
        """Take in what a batch has answered; return it while it has not ended."""
        state = await self._retry(lambda: self.endpoint.state(batch.ident))
        if state.phase == "refused":
            await self._take_refusal(batch, state)
            return None
        if state.phase == "ended":
            results = await self._retry(lambda: self.endpoint.results(batch.ident))
            await self._take_results(batch, state, results)
            return None
        batch = await self.batch_store.attach(batch.name, batch.ident, state.status)
        if state.phase == "waiting":
            return batch
        self._end_at(batch, StoppedEarly, "batch_state_unknown", status=state.status)
        return None

    async def _take_results(self, batch: BatchRow, state: BatchState, results: bytes) -> None:
        """Record all that a batch has answered. One whose results are not what was asked for stays
        open: to ask again would be paid for again."""
        answers = self.endpoint.read(results)
        if len(answers) < state.answered and (answers or not results.strip()):
            self._end_at(batch, StoppedEarly, "batch_answers_missing", n=state.answered)
            return
        items = {item_id(item.key): item for item in await self.batch_store.open_items(batch.name)}
        # Where a part was recorded before a crash, some answers are of items that are closed.
        is_whole = len(items) == batch.requests
        if results.strip() and is_whole and not any(answer.id in items for answer in answers):
            if batch.run == self.run:
                kept = self.keep(f"{batch.name}-results.jsonl", results)
                self._end_at(batch, ProviderRefused, "batch_ids_unknown", file=kept)
            return
        reader = _AnswerReader(self, batch, items)
        # Replies first: they show that the judge works, and that an error is its question's own.
        for answer in sorted(answers, key=lambda answer: not 200 <= answer.status < 300):
            reader.read(answer)
        outcomes = reader.finish()
        for start in range(0, len(outcomes), _RECORDED_AT_ONCE):
            part = outcomes[start : start + _RECORDED_AT_ONCE]
            for call in await self.batch_store.take(batch.name, part):
                self.tally.unpriced += call.cost is None
                self.tally.cost += call.cost or 0
        await self.batch_store.close_batch(batch.name, "ended", state.status)
        if reader.overcharge is not None and self.budget.cap is not None:
            self.stop.request(reader.overcharge)
        counts = reader.counts
        key = (
            "batch_ended" if counts["answered"] == sum(counts.values()) else "batch_ended_with_gaps"
        )
        self.tell(Sentence(f"engine.{key}", batch=batch.ident, status=state.status, **counts))
        if reader.fatal is not None and not reader.is_proven:
            raise self._end(reader.fatal)

    async def _take_refusal(self, batch: BatchRow, state: BatchState) -> None:
        """Close a batch that was refused as a whole, perhaps for some of its lines, which then fail
        by themselves: nothing is billed."""
        items = await self.batch_store.open_items(batch.name)
        bad = {item_id(item.key): item for item in items if item.line in state.lines}
        said = state.complaint or next(iter(state.lines.values()), state.status)
        self.tell(Sentence("engine.batch_refused", batch=batch.ident, reason=said))
        reader = _AnswerReader(self, batch, bad, is_proven=True)
        for ident, item in bad.items():
            body = dumps({"error": {"message": state.lines[item.line]}}).encode()
            reader.read(BatchAnswer(ident, 400, body))
        await self.batch_store.take(batch.name, reader.finish())
        await self.batch_store.close_batch(batch.name, "ended", state.status)
        if not bad or len(bad) == len(items):
            raise self._end(
                ProviderRefused(Sentence("engine.batch_refused", batch=batch.ident, reason=said))
            )

    # What ends the command

    async def _retry(self, work: Callable[[], Awaitable[T]]) -> T:
        """Return the result of a request that is tried again where its answer is lost."""
        for attempts in count(1):
            self.stop.check()
            try:
                return await work()
            except CallLost as loss:
                if attempts >= limits.ATTEMPTS or _is_hopeless(loss):
                    raise self._end_unreachable(loss) from None
                self.notice(str(loss))
                await self.stop.sleep(self.retry.pause(loss, attempts))
            except EvenhandError as error:
                raise self._end(error) from None
        raise AssertionError

    def _end(self, error: EvenhandError) -> Stopped:
        """Request the stop; return what is to be raised."""
        self.stop.request(error)
        return Stopped()

    def _end_unreachable(self, loss: CallLost) -> Stopped:
        return self._end(
            StoppedEarly(
                Sentence("engine.batches_unreachable", judge=self.judge.name, reason=str(loss))
            )
        )

    def _end_at(
        self, batch: BatchRow, error: type[EvenhandError], key: str, **values: Value
    ) -> None:
        """End the run at a batch, and leave it open; one of another run is left alone."""
        if batch.run == self.run:
            raise self._end(error(Sentence(f"engine.{key}", batch=batch.ident, **values)))


def _is_hopeless(loss: CallLost) -> bool:
    return loss.is_final or (loss.retry_after or 0) > limits.RETRY_AFTER_MOST


class _AnswerReader:
    """Reads the answers of one batch, in whatever order they come: the first that is about an item
    counts, one of no item does not, and an item without one has no answer."""

    def __init__(
        self,
        sender: BatchSender,
        batch: BatchRow,
        items: Mapping[str, BatchItem],
        *,
        is_proven: bool = False,
    ) -> None:
        self._sender, self._batch, self._items = sender, batch, items
        self._read = sender.judge.batch_reader()
        self._outcomes: dict[str, ItemOutcome] = {}
        self.is_proven = is_proven
        """True if the provider answers other requests: an error is then its question's own."""
        self.fatal: ProviderRefused | None = None
        """The error with which the provider refuses every request alike."""
        self.overcharge: StoppedEarly | None = None

    def read(self, answer: BatchAnswer) -> None:
        """Read one answer."""
        if answer.id in self._items and answer.id not in self._outcomes:
            self._outcomes[answer.id] = self._outcome(self._items[answer.id], answer)

    def _outcome(self, item: BatchItem, answer: BatchAnswer) -> ItemOutcome:
        key, sender = item.key, self._sender
        if not answer.status:
            return ItemOutcome(key, None, "unanswered", answer.absence)
        try:
            reply = self._read(answer, jsontext.loads_trusted(item.sampling))
        except AskAgain:
            return ItemOutcome(key, None, "unanswered")
        except CallLost as loss:
            return ItemOutcome(key, None, "unanswered", str(loss), loss.billed)
        except CallError as error:
            if error.reason in RETRIED_BY_NEXT_RUN:
                return ItemOutcome(key, None, "unanswered", str(error))
            sender.refused[key] = error
            return ItemOutcome(key, None, "refused", str(error))
        except ProviderRefused as error:
            self.fatal = error
            # Where it refuses all alike, a batch may be made of them when that is mended.
            return ItemOutcome(key, None, "unanswered", error.what if self.is_proven else "")
        self.is_proven = True
        priced = price_call(sender.price, reply.usage, item.tokens, sender.max_tokens)
        self.overcharge = priced.overcharge or self.overcharge
        call = Call(key, self._batch.run, sender.judge.name, reply, priced.cost, priced.most)
        return ItemOutcome(key, call)

    def finish(self) -> list[ItemOutcome]:
        """Return the outcomes of all items; one without a line has no answer."""
        for ident, item in self._items.items():
            missing = ItemOutcome(item.key, None, "unanswered", "no line came")
            self._outcomes.setdefault(ident, missing)
        return list(self._outcomes.values())

    @property
    def counts(self) -> dict[str, int]:
        """Return how many questions were answered, refused and left without an answer."""
        states = Counter(outcome.state for outcome in self._outcomes.values())
        return {state: states[state] for state in ("answered", "refused", "unanswered")}
