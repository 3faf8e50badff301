"""The batches of one judge: made, found again, waited for, and their answers recorded.

Whatever happens on the way, the store knows it first: a batch is noted before it is made, and its
answers are recorded before anybody reads them. So a command that dies leaves nothing that the next
one could not go on from.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import TypeVar

from msgspec.structs import replace

from evenhand import jsontext, limits
from evenhand.batch import BatchEndpoint, BatchJudge, BatchRequest, BatchState
from evenhand.engine.batch_reading import BatchReading, complaint_of
from evenhand.engine.prices import Price, usd
from evenhand.engine.retry import Patience
from evenhand.engine.stop import Stop, Stopped
from evenhand.engine.tally import Tally
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
from evenhand.exchange import Judge, Question
from evenhand.store.batches import (
    FOUND,
    Batches,
    BatchItem,
    NewBatch,
    OpenBatch,
    item_id,
)

_TOO_MUCH = re.compile(r"token_limit|enqueued|too (many|large)|limit (reached|exceeded)", re.I)
"""How a provider says that less at a time would do."""
_RECORDED_AT_ONCE = 500
T = TypeVar("T")


class Purse:
    """Money for batches: what is held for one is not there for the next. Without a cap everything
    is let through."""

    def __init__(self, cap: int | None) -> None:
        self.cap, self.used = cap, 0
        self.is_short = False
        """Whether something was turned away since the last count."""

    def count(self, used: int) -> None:
        """Begin anew with what was spent or held until now."""
        self.used, self.is_short = used, False

    def take(self, amount: int) -> bool:
        """Take an amount, if it is there."""
        if self.cap is not None and self.used + amount > self.cap:
            self.is_short = True
            return False
        self.used += amount
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPath:
    """All that the questions to one judge pass on their way through batches."""

    judge: Judge
    lines: BatchJudge
    endpoint: BatchEndpoint
    run: str
    book: Batches
    stop: Stop
    purse: Purse
    patience: Patience
    price: Price | None
    max_tokens: int
    requests_most: int
    tally: Tally
    keep: Callable[[str, bytes], str]
    """Keeps a file of that name; returns where."""
    notice: Callable[[str], None]
    """Told what is tried again."""
    tell: Callable[[str], None]
    """Told what became of a batch."""

    @property
    def place(self) -> str:
        """Who answers, and where: what any key of the account may ask for again."""
        return place_of(self.judge.identity)


def place_of(identity: Mapping[str, object]) -> str:
    """The provider and the address of a judge."""
    return f"{identity.get('provider', '')} {identity.get('base_url', '')}"


@dataclass(slots=True)
class Chunk:
    """Questions that go into one batch."""

    requests: list[BatchRequest] = field(default_factory=list[BatchRequest])
    items: list[BatchItem] = field(default_factory=list[BatchItem])
    schemas: dict[str, int] = field(default_factory=dict[str, int])
    keys: set[str] = field(default_factory=set[str])
    size: int = 0

    def add(
        self, request: BatchRequest, key: str, schema: str | None, tokens: int, amount: int
    ) -> None:
        """One more question."""
        number = None if schema is None else self.schemas.setdefault(schema, len(self.schemas))
        sampling = jsontext.compact(dict(request.sampling))
        self.requests.append(request)
        self.items.append(BatchItem(key, tokens, amount, number, sampling))
        self.keys.add(key)
        self.size += len(request.body)

    @property
    def amount(self) -> int:
        """The most that it can cost."""
        return sum(item.amount for item in self.items)


class BatchDesk:
    """Sends the questions of one judge by the batch, and takes in what comes back."""

    def __init__(self, path: BatchPath) -> None:
        self.path = path
        self.refused: dict[str, CallError] = {}
        """Questions that the provider will not answer, by their keys."""
        self.is_full = False
        """Whether the provider takes no more for now."""
        self.sent = 0
        bounds = path.endpoint.bounds
        self._most = min(bounds.requests, path.requests_most)
        self._bytes_most = min(bounds.bytes, limits.BATCH_BYTES)
        self._refusals = 0
        self._strangers: set[str] = set()
        self._unknown_looks: Counter[str] = Counter()
        """How often in a row a batch was in a state that nobody knows."""
        self._chunks: dict[str | None, Chunk] = {}

    # Sending

    @property
    def gathered(self) -> int:
        """Questions of this wave: those that were sent, and those that are about to be."""
        return self.sent + sum(len(chunk.items) for chunk in self._chunks.values())

    def begin(self) -> None:
        """Begin a wave."""
        self._chunks, self.sent, self.is_full = {}, 0, False

    async def add(self, key: str, question: Question, tokens: int) -> list[OpenBatch]:
        """Gather a question; the batches that were full, and are now made."""
        path = self.path
        schema = question.schema.data.decode("utf-8", "surrogatepass") if question.schema else None
        place = schema if path.endpoint.bounds.is_one_schema else None
        chunk = self._chunks.setdefault(place, Chunk())
        amount = path.price.bound(tokens, path.max_tokens) if path.price else 0
        if self.is_full or key in chunk.keys or not path.purse.take(amount):
            return []
        request = path.lines.batch_request(item_id(key), question)
        full: list[Chunk] = []
        if chunk.items and chunk.size + len(request.body) > self._bytes_most:
            full.append(chunk)
            chunk = self._chunks[place] = Chunk()
        chunk.add(request, key, schema, tokens, amount)
        if len(chunk.items) >= self._most:
            full.append(self._chunks.pop(place))
        return await self._sent(full)

    async def flush(self) -> list[OpenBatch]:
        """Make batches of what is left of a wave."""
        chunks, self._chunks = list(self._chunks.values()), {}
        return await self._sent(chunks)

    async def _sent(self, chunks: Sequence[Chunk]) -> list[OpenBatch]:
        batches = [await self._send(chunk) for chunk in chunks if chunk.items]
        return [batch for batch in batches if batch is not None]

    async def _send(self, chunk: Chunk) -> OpenBatch | None:
        """Make a batch; None where the provider takes none for now."""
        path, name, began = self.path, f"evenhand-{os.urandom(8).hex()}", time.time()
        path.stop.check()
        noted = NewBatch(
            name=name,
            run=path.run,
            judge=path.judge.name,
            place=path.place,
            schemas=list(chunk.schemas),
            items=chunk.items,
        )
        await path.book.prepare(noted)
        try:
            state = await self._created(name, chunk.requests, began)
        except (ProviderRefused, UsageError) as error:
            await path.book.close_batch(name, "void", "refused")
            raise self._ended(error) from None
        if state is None:
            await path.book.close_batch(name, "void", "not made")
            self.is_full = True
            return None
        await path.book.attach(name, state.id, state.status)
        size = len(chunk.items)
        self.sent += size
        path.tally.sent += size
        price = f", at most ${usd(chunk.amount)}" if path.price else ""
        path.tell(f"batch {state.id}: {size:,} questions to {path.judge.name}{price}")
        return OpenBatch(
            *(name, path.run, path.judge.name, path.place, state.id, "waiting", began, size),
            is_sure=state.status != FOUND,
        )

    async def _created(
        self, name: str, requests: Sequence[BatchRequest], began: float
    ) -> BatchState | None:
        """Have a batch made once. Where no answer comes it is looked for before it is made again;
        None where the provider stays busy."""
        path, loss = self.path, CallLost("transport", "")
        for tries in range(1, limits.ATTEMPTS + 1):
            try:
                return await path.endpoint.create(name, requests)
            except CallLost as error:
                loss = error
            may_exist = not (loss.is_busy or loss.is_unreachable)
            if may_exist and (found := await self._searched(name, len(requests), began)):
                return found
            if (loss.retry_after or 0) > limits.RETRY_AFTER_MOST or loss.is_final:
                break
            path.notice(str(loss))
            await path.stop.sleep(path.patience.pause(loss, tries))
        if loss.is_busy:
            return None
        raise self._away(loss)

    async def _searched(self, name: str, size: int, began: float) -> BatchState | None:
        """The batch that may have been made by a call that was not answered; a moment may pass
        before the provider lists it."""
        for tries in range(1, limits.BATCH_SEARCHES + 1):
            silence = CallLost("timeout", "")
            await self.path.stop.sleep(self.path.patience.pause(silence, tries))
            if found := await self._found(name, size, began):
                return found
        return None

    async def _found(self, name: str, size: int, began: float) -> BatchState | None:
        path, since = self.path, began - limits.BATCH_CLOCK_SECONDS
        for ident in await self._patiently(lambda: path.endpoint.find(name, size, since)):
            if ident and ident not in self._strangers and not await path.book.is_known(ident):
                state = await self._patiently(partial(path.endpoint.state, ident))
                return state if path.endpoint.is_named else replace(state, status=FOUND)
        return None

    # Going on with what is there

    async def recover(self, batch: OpenBatch) -> OpenBatch | None:
        """A batch that may have been made before a crash, found again; None where it was not: its
        questions are open."""
        path = self.path
        # One that was just made may not be listed yet.
        is_young = time.time() - batch.created < limits.BATCH_CLOCK_SECONDS
        look = self._searched if is_young else self._found
        state = await look(batch.name, batch.size, batch.created)
        if state is None:
            await path.book.close_batch(batch.name, "void", "not made")
            return None
        await path.book.attach(batch.name, state.id, state.status)
        is_sure = state.status != FOUND
        return batch._replace(ident=state.id, stage="waiting", is_sure=is_sure)

    async def look(self, batch: OpenBatch) -> OpenBatch | None:
        """See how a batch stands, and take in what has come; the batch that is still waited for,
        if it has not ended."""
        path = self.path
        state = await self._patiently(lambda: path.endpoint.state(batch.ident))
        if state.phase in ("waiting", "unknown"):
            if batch.is_sure:
                await path.book.note(batch.name, state.status)
            return self._waiting(batch, state)
        if state.phase == "refused":
            await self._take_refusal(batch, state)
            return None
        results = await self._patiently(lambda: path.endpoint.results(batch.ident))
        if await self._take_answers(batch, state, results):
            return None
        if batch.is_sure:
            self._end_unmatched(batch, results)
            return None
        self._strangers.add(batch.ident)
        await path.book.attach(batch.name, "", "")
        return await self.recover(batch)

    def _waiting(self, batch: OpenBatch, state: BatchState) -> OpenBatch | None:
        """Return a batch that is to be waited for; raises Stopped where nobody knows for what."""
        if state.phase == "waiting":
            self._unknown_looks.pop(batch.name, None)
            return batch
        self._unknown_looks[batch.name] += 1
        if self._unknown_looks[batch.name] < limits.BATCH_UNKNOWN_LOOKS:
            return batch
        if batch.run != self.path.run:
            return None
        raise self._ended(
            StoppedEarly(
                f"the batch {quoted(batch.ident)} is in a state that is not known:"
                f" {quoted(state.status)}",
                advice="It is left as it is at the provider, and nothing is asked again. Run the"
                " same command again later to go on with it, or give it up: evenhand batches"
                f" forget {batch.ident}",
            )
        )

    def _end_unmatched(self, batch: OpenBatch, results: bytes) -> None:
        """End the run at a batch of which no result can be told to a question. To ask again would
        be paid for again, and end the same way: the batch stays open. One of another run ends that
        run alone."""
        if batch.run != self.path.run:
            return
        kept = self.path.keep(f"{batch.name}-results.jsonl", results)
        raise self._ended(
            ProviderRefused(
                f"no result of the batch {quoted(batch.ident)} has an id that was sent, so that"
                " nobody can say which question it answers",
                advice=f"The results are kept in {kept}; nothing is asked again. Ask live, with the"
                " same command without --batch, or give the batch up: evenhand batches forget"
                f" {batch.ident}",
            )
        )

    async def _take_answers(self, batch: OpenBatch, state: BatchState, results: bytes) -> bool:
        """Record all that a batch has answered. Return False where it holds results, and none of
        them is about a question of it."""
        path, answers = self.path, self.path.endpoint.read(results)
        items = {item_id(it.item.key): it for it in await path.book.open_items(batch.name)}
        # Where a part was recorded before a crash, the batch is ours.
        is_whole = len(items) == batch.size
        if results.strip() and is_whole and not any(answer.id in items for answer in answers):
            return False
        reading = BatchReading(self, batch, items)
        # Replies first: they show that the judge works, and that an error is its question's own.
        for answer in sorted(answers, key=lambda answer: not 200 <= answer.status < 300):
            reading.read(answer)
        await self._record(batch, reading, state.status)
        path.tell(f"batch {batch.ident} has ended ({state.status}): {reading.summary}")
        if reading.fatal is not None and not reading.calls:
            raise self._ended(reading.fatal)
        self._refusals = 0
        return True

    async def _record(self, batch: OpenBatch, reading: BatchReading, status: str) -> None:
        path, outcomes = self.path, reading.outcomes
        for start in range(0, len(outcomes), _RECORDED_AT_ONCE):
            part = outcomes[start : start + _RECORDED_AT_ONCE]
            for call in await path.book.take(batch.name, part):
                if call.cost is None:
                    path.tally.unpriced += 1
                else:
                    path.tally.cost += call.cost
        await path.book.close_batch(batch.name, "ended", status)
        if reading.excess is not None and path.purse.cap is not None:
            path.stop.throw(reading.excess)

    async def _take_refusal(self, batch: OpenBatch, state: BatchState) -> None:
        """A batch that was refused as a whole, perhaps for some of its lines: nothing is billed."""
        path, items = self.path, await self.path.book.open_items(batch.name)
        bad = [it for it in items if it.line in state.lines]
        said = state.complaint or next(iter(state.lines.values()), state.status)
        path.tell(f"batch {batch.ident} was refused: {quoted(said)}")
        reading = BatchReading(self, batch, {item_id(it.item.key): it for it in bad})
        for it in bad:
            reading.read(complaint_of(item_id(it.item.key), state.lines[it.line]), is_line=True)
        await path.book.take(batch.name, reading.outcomes)
        await path.book.close_batch(batch.name, "ended", state.status)
        if bad and len(bad) < len(items):
            return
        if _TOO_MUCH.search(said):
            self._shrink(batch.size, said)
        elif not self._has_learnt(said):
            words = f"the provider refused the batch {quoted(batch.ident)}: {quoted(said)}"
            raise self._ended(
                ProviderRefused(
                    words, advice="Nothing was billed. Mend that, and run the same command again."
                )
            )

    def _shrink(self, size: int, complaint: str) -> None:
        """Make smaller batches from now on."""
        self._refusals, self._most = self._refusals + 1, max(1, size // 2)
        if size <= 1 or self._refusals >= limits.BATCH_REFUSALS:
            raise self._ended(
                StoppedEarly(
                    f"the provider takes no batch, however small: {quoted(complaint)}",
                    advice="Wait until other batches of the account have ended, and run the same"
                    " command again: it continues where it stopped.",
                )
            )

    def _has_learnt(self, complaint: str) -> bool:
        """Whether the judge knows now how to write such requests otherwise."""
        try:
            self.path.lines.batch_reader()(complaint_of("", complaint), None, {})
        except AskAgain:
            return True
        except (CallError, ProviderRefused):
            return False
        return False

    # Patience

    async def _patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """Try until there is an answer; throws the switch where the provider stays away."""
        path = self.path
        for tries in count(1):
            path.stop.check()
            try:
                return await work()
            except CallLost as loss:
                is_long = (loss.retry_after or 0) > limits.RETRY_AFTER_MOST
                if tries >= limits.ATTEMPTS or is_long or loss.is_final:
                    raise self._away(loss) from None
                path.notice(str(loss))
                await path.stop.sleep(path.patience.pause(loss, tries))
            except EvenhandError as error:
                raise self._ended(error) from None
        raise AssertionError

    def _away(self, loss: CallLost) -> Stopped:
        return self._ended(
            StoppedEarly(
                f"the batches of {self.path.judge.name} cannot be reached: {loss}",
                advice="Those under way go on there. Run the same command again: it continues where"
                " it stopped.",
            )
        )

    def _ended(self, error: EvenhandError) -> Stopped:
        """Throw the switch; what is to be raised."""
        self.path.stop.throw(error)
        return Stopped()
