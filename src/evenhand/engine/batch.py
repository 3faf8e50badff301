"""The batches of one judge: created, found again, waited for, and their answers recorded.

The store knows everything first: a batch is noted before it is created, and its answers are
recorded before anybody reads them. So the next command can go on from wherever one died.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from json import dumps
from typing import TypeVar

from msgspec.structs import replace

from evenhand import jsontext, limits
from evenhand.engine.budget import BatchBudget, most_tokens, overcharged
from evenhand.engine.call import RetryPolicy
from evenhand.engine.prices import Price, usd
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
    quoted,
)
from evenhand.exchange import (
    BatchAnswer,
    BatchEndpoint,
    BatchJudge,
    BatchRequest,
    BatchState,
    Question,
    Reply,
    Schema,
    Usage,
)
from evenhand.judgment import RETRIED_BY_NEXT_RUN
from evenhand.store.batches import (
    FOUND,
    Batches,
    BatchItem,
    ItemOutcome,
    NewBatch,
    OpenBatch,
    OpenItem,
    item_id,
)
from evenhand.store.ports import Call

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
    _strangers: set[str] = field(default_factory=set[str])
    """Batches that were taken for ours by their size, and are another's."""

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

    async def add(self, key: str, question: Question, tokens: int) -> list[OpenBatch]:
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

    async def flush(self) -> list[OpenBatch]:
        """Create batches of what is left of the wave."""
        chunks, self._chunks = list(self._chunks.values()), {}
        return await self._send_chunks(chunks)

    async def _send_chunks(self, chunks: Sequence[_Chunk]) -> list[OpenBatch]:
        batches = [await self._send(chunk) for chunk in chunks if chunk.items]
        return [batch for batch in batches if batch is not None]

    async def _send(self, chunk: _Chunk) -> OpenBatch | None:
        """Create a batch; return None where the provider takes none for now."""
        name, began, size = f"evenhand-{os.urandom(8).hex()}", time.time(), len(chunk.items)
        self.stop.check()
        await self.batch_store.prepare(
            NewBatch(
                name=name,
                run=self.run,
                judge=self.judge.name,
                place=self.place,
                items=chunk.items,
            )
        )
        try:
            state = await self._create(name, chunk.requests, began)
        except (ProviderRefused, UsageError) as error:
            await self.batch_store.close_batch(name, "void", "refused")
            raise self._end(error) from None
        if state is None:
            await self.batch_store.close_batch(name, "void", "not made")
            self.is_full = True
            return None
        await self.batch_store.attach(name, state.id, state.status)
        self.sent += size
        self.tally.sent += size
        amount = sum(item.amount for item in chunk.items)
        price = f", at most ${usd(amount)}" if self.price else ""
        self.tell(f"batch {state.id}: {size:,} questions to {self.judge.name}{price}")
        return OpenBatch(
            *(name, self.run, self.judge.name, self.place, state.id, "waiting", began, size),
            is_sure=state.status != FOUND,
        )

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
            if may_exist and (found := await self._search(name, len(requests), began)):
                return found
            if self._is_hopeless(loss):
                break
            self.notice(str(loss))
            await self.stop.sleep(self.retry.pause(loss, attempts))
        if loss.is_busy and not may_exist:
            return None
        raise self._end_unreachable(loss)

    async def _search(self, name: str, size: int, began: float) -> BatchState | None:
        """Return a batch that may just have been created: it may be listed a moment later."""
        for attempts in range(1, limits.BATCH_SEARCHES + 1):
            await self.stop.sleep(self.retry.pause(CallLost("timeout", ""), attempts))
            if found := await self._find(name, size, began):
                return found
        return None

    async def _find(self, name: str, size: int, began: float) -> BatchState | None:
        since = began - limits.BATCH_CLOCK_SECONDS
        for ident in await self._retry(lambda: self.endpoint.find(name, size, since)):
            is_known = ident in self._strangers or await self.batch_store.is_known(ident)
            if ident and not is_known:
                state = await self._retry(partial(self.endpoint.state, ident))
                return state if self.endpoint.is_named else replace(state, status=FOUND)
        return None

    # Going on with what is there

    async def recover(self, batch: OpenBatch) -> OpenBatch | None:
        """Find a batch that may have been created before a crash; return None where it was not: its
        questions are open."""
        is_young = time.time() - batch.created < limits.BATCH_CLOCK_SECONDS
        find = self._search if is_young else self._find
        state = await find(batch.name, batch.size, batch.created)
        if state is None:
            await self.batch_store.close_batch(batch.name, "void", "not made")
            return None
        await self.batch_store.attach(batch.name, state.id, state.status)
        is_sure = state.status != FOUND
        return batch._replace(ident=state.id, stage="waiting", is_sure=is_sure)

    async def poll(self, batch: OpenBatch) -> OpenBatch | None:
        """Take in what a batch has answered; return it while it has not ended."""
        state = await self._retry(lambda: self.endpoint.state(batch.ident))
        if state.phase in ("waiting", "unknown"):
            if batch.is_sure:
                await self.batch_store.note(batch.name, state.status)
            if state.phase == "waiting":
                return batch
            self._end_unknown(batch, state)
            return None
        if state.phase == "refused":
            await self._take_refusal(batch, state)
            return None
        results = await self._retry(lambda: self.endpoint.results(batch.ident))
        answers = self.endpoint.read(results)
        if len(answers) < state.answered and (answers or not results.strip()):
            self._end_incomplete(batch, state)
            return None
        if await self._take_answers(batch, state, results, answers):
            return None
        if batch.is_sure:
            self._end_unmatched(batch, results)
            return None
        self._strangers.add(batch.ident)
        await self.batch_store.attach(batch.name, "", "")
        return await self.recover(batch)

    async def _take_answers(
        self, batch: OpenBatch, state: BatchState, results: bytes, answers: Sequence[BatchAnswer]
    ) -> bool:
        """Record all that a batch has answered. Return False where it holds results, and none of
        them is about a question of it."""
        items = {item_id(it.item.key): it for it in await self.batch_store.open_items(batch.name)}
        # Where a part was recorded before a crash, the batch is ours.
        is_whole = len(items) == batch.size
        if results.strip() and is_whole and not any(answer.id in items for answer in answers):
            return False
        reader = _AnswerReader(self, batch, items)
        # Replies first: they show that the judge works, and that an error is its question's own.
        for answer in sorted(answers, key=lambda answer: not 200 <= answer.status < 300):
            reader.read(answer)
        await self._record(batch, reader.finish())
        await self.batch_store.close_batch(batch.name, "ended", state.status)
        if reader.overcharge is not None and self.budget.cap is not None:
            self.stop.request(reader.overcharge)
        self.tell(f"batch {batch.ident} has ended ({state.status}): {reader.summary}")
        if reader.fatal is not None and not reader.calls:
            raise self._end(reader.fatal)
        return True

    async def _record(self, batch: OpenBatch, outcomes: Sequence[ItemOutcome]) -> None:
        for start in range(0, len(outcomes), _RECORDED_AT_ONCE):
            part = outcomes[start : start + _RECORDED_AT_ONCE]
            for call in await self.batch_store.take(batch.name, part):
                self.tally.unpriced += call.cost is None
                self.tally.cost += call.cost or 0

    async def _take_refusal(self, batch: OpenBatch, state: BatchState) -> None:
        """Close a batch that was refused as a whole, perhaps for some of its lines, which then fail
        by themselves: nothing is billed."""
        items = await self.batch_store.open_items(batch.name)
        bad = {item_id(it.item.key): it for it in items if it.line in state.lines}
        said = state.complaint or next(iter(state.lines.values()), state.status)
        self.tell(f"batch {batch.ident} was refused: {quoted(said)}")
        reader = _AnswerReader(self, batch, bad)
        for ident, it in bad.items():
            body = dumps({"error": {"message": state.lines[it.line]}}).encode()
            reader.read(BatchAnswer(ident, 400, body), is_line=True)
        await self.batch_store.take(batch.name, reader.finish())
        await self.batch_store.close_batch(batch.name, "ended", state.status)
        if not bad or len(bad) == len(items):
            raise self._end(
                ProviderRefused(
                    f"the provider refused the batch {quoted(batch.ident)}: {quoted(said)}",
                    advice="Nothing was billed. Mend that, or send less at a time (--limit), and"
                    " run the same command again.",
                )
            )

    # What ends the command

    async def _retry(self, work: Callable[[], Awaitable[T]]) -> T:
        """Return the result of a request that is tried again where its answer is lost."""
        for attempts in count(1):
            self.stop.check()
            try:
                return await work()
            except CallLost as loss:
                if attempts >= limits.ATTEMPTS or self._is_hopeless(loss):
                    raise self._end_unreachable(loss) from None
                self.notice(str(loss))
                await self.stop.sleep(self.retry.pause(loss, attempts))
            except EvenhandError as error:
                raise self._end(error) from None
        raise AssertionError

    def _is_hopeless(self, loss: CallLost) -> bool:
        return loss.is_final or (loss.retry_after or 0) > limits.RETRY_AFTER_MOST

    def _end(self, error: EvenhandError) -> Stopped:
        """Request the stop; return what is to be raised."""
        self.stop.request(error)
        return Stopped()

    def _end_unreachable(self, loss: CallLost) -> Stopped:
        return self._end(
            StoppedEarly(
                f"the batches of {self.judge.name} cannot be reached: {loss}",
                advice="Those under way go on there. Run the same command again: it continues where"
                " it stopped.",
            )
        )

    def _end_unknown(self, batch: OpenBatch, state: BatchState) -> None:
        """End the run at a batch in a state that is not documented; one of another run is left."""
        if batch.run != self.run:
            return
        raise self._end(
            StoppedEarly(
                f"the batch {quoted(batch.ident)} is in a state that is not known:"
                f" {quoted(state.status)}",
                advice="It is left as it is at the provider, and nothing is asked again. Run the"
                " same command again later to go on with it, or give it up: evenhand batches"
                f" forget {batch.ident}",
            )
        )

    def _end_incomplete(self, batch: OpenBatch, state: BatchState) -> None:
        """End the run at a batch whose results hold fewer answers than its state counts, and leave
        it open: what is missing was paid for, and may come later. One of another run is left."""
        if batch.run != self.run:
            return
        raise self._end(
            StoppedEarly(
                f"the batch {quoted(batch.ident)} has {state.answered:,} answers, and its results"
                " do not hold them all",
                advice="Nothing is asked again. Run the same command again later to go on with it,"
                f" or give it up: evenhand batches forget {batch.ident}",
            )
        )

    def _end_unmatched(self, batch: OpenBatch, results: bytes) -> None:
        """End the run at a batch of which no result has an id of ours, and leave it open: to ask
        again would be paid for again, and end the same way. One of another run is left."""
        if batch.run != self.run:
            return
        kept = self.keep(f"{batch.name}-results.jsonl", results)
        raise self._end(
            ProviderRefused(
                f"no result of the batch {quoted(batch.ident)} has an id that was sent, so that"
                " nobody can say which question it answers",
                advice=f"The results are kept in {kept}; nothing is asked again. Ask live, with the"
                " same command without --batch, or give the batch up: evenhand batches forget"
                f" {batch.ident}",
            )
        )


class _AnswerReader:
    """Reads the answers of one batch, in whatever order they come: the first that is about an item
    counts, one of no item does not, and an item without one has no answer."""

    def __init__(
        self, sender: BatchSender, batch: OpenBatch, items: Mapping[str, OpenItem]
    ) -> None:
        self._sender, self._batch, self._items = sender, batch, dict(items)
        self._read = sender.judge.batch_reader()
        self._outcomes: dict[str, ItemOutcome] = {}
        self._doubled = self._unknown = 0
        self.calls = 0
        """Replies so far."""
        self.fatal: ProviderRefused | None = None
        """The error with which the provider refuses every request alike."""
        self.overcharge: StoppedEarly | None = None

    def read(self, answer: BatchAnswer, *, is_line: bool = False) -> None:
        """Read one answer; with `is_line`, the error of a line that kept a batch from being
        created."""
        if answer.id in self._outcomes:
            self._doubled += 1
        elif answer.id in self._items:
            outcome = self._outcome(self._items[answer.id], answer, is_line=is_line)
            self._outcomes[answer.id] = outcome
        else:
            self._unknown += 1

    def _outcome(self, it: OpenItem, answer: BatchAnswer, *, is_line: bool) -> ItemOutcome:
        key = it.item.key
        if not answer.status:
            return ItemOutcome(key, None, "unanswered", answer.absence)
        try:
            reply = self._read(answer, jsontext.loads_trusted(it.item.sampling))
        except AskAgain:
            return ItemOutcome(key, None, "unanswered")
        except CallLost as loss:
            return ItemOutcome(key, None, "unanswered", str(loss), loss.billed)
        except CallError as error:
            if error.reason in RETRIED_BY_NEXT_RUN:
                return ItemOutcome(key, None, "unanswered", str(error))
            self._sender.refused[key] = error
            return ItemOutcome(key, None, "refused", str(error))
        except ProviderRefused as error:
            self.fatal = error
            # Where it refuses all alike, a batch may be made of them when that is mended.
            detail = error.what if is_line or self.calls else ""
            return ItemOutcome(key, None, "unanswered", detail)
        self.calls += 1
        return ItemOutcome(key, self._call(it.item, reply))

    def finish(self) -> list[ItemOutcome]:
        """Return the outcomes of all items; one without a line has no answer."""
        for ident, it in self._items.items():
            missing = ItemOutcome(it.item.key, None, "unanswered", "no line came")
            self._outcomes.setdefault(ident, missing)
        return list(self._outcomes.values())

    @property
    def summary(self) -> str:
        """Return in words what has come."""
        states = Counter(outcome.state for outcome in self._outcomes.values())
        parts = [f"{states['answered']:,} answered"]
        parts += [f"{states['refused']:,} refused"] if states["refused"] else []
        parts += [f"{states['unanswered']:,} without an answer"] if states["unanswered"] else []
        parts += [f"{self._doubled:,} lines came twice"] if self._doubled else []
        parts += [f"{self._unknown:,} lines of no question"] if self._unknown else []
        return ", ".join(parts)

    def _call(self, item: BatchItem, reply: Reply) -> Call:
        sender, usage, price = self._sender, reply.usage, self._sender.price
        cost, bound = None, most_tokens(usage, item.tokens, sender.max_tokens)
        if price is not None:
            most, cost, bound = (
                price.bound(item.tokens, sender.max_tokens),
                price.cost(usage),
                Usage(),
            )
            cost = most if cost is None else cost
            error = overcharged(usage, item.tokens, sender.max_tokens, cost, most)
            self.overcharge = error or self.overcharge
        return Call(item.key, self._batch.run, sender.judge.name, reply, cost, bound)
