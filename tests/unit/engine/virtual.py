"""Time that passes only when everybody waits: minutes of pacing in milliseconds."""

import asyncio
import heapq

from evenhand.engine.call import CallStack, RetryPolicy
from evenhand.engine.pacing import Pacer
from evenhand.engine.prices import CallBudget
from evenhand.engine.progress import Tally
from evenhand.engine.stop import Stop
from evenhand.exchange import Message, Question
from tests.suites import Scripted

TURNS = 40


class Clock:
    """The time, and who waits for it."""

    def __init__(self):
        self.now = 1000.0
        self._waiting = []
        self._number = 0

    def __call__(self):
        return self.now

    async def sleep(self, seconds, *signals):
        woken = asyncio.get_running_loop().create_future()
        for signal in signals:
            signal.add(woken)
        self._number += 1
        heapq.heappush(self._waiting, (self.now + seconds, self._number, woken))
        await woken

    async def run(self, *work):
        """Let `work` end, moving on to the next moment whenever all of it waits."""
        done = asyncio.gather(*work)
        while not done.done():
            for _ in range(TURNS):
                await asyncio.sleep(0)
            if not done.done():
                moment, _, woken = heapq.heappop(self._waiting)
                if not woken.done():
                    self.now = moment
                    woken.set_result(None)
        await done


class VirtualStop(Stop):
    """The switch, whose sleep goes by the virtual clock."""

    def __init__(self, clock):
        super().__init__()
        self._clock = clock

    async def sleep(self, seconds, *signals):
        self.check()
        assert seconds is not None
        await self._clock.sleep(seconds, *signals)
        self.check()


class EmptyLedger:
    """A ledger that knows no reply, and keeps none."""

    questions = None

    async def find(self, key):
        return None

    async def record(self, call, attempt=""):
        return None

    async def reserve(self, run, key, attempt, amount, *lost):
        return None

    async def release(self, key, attempt):
        return None


class VirtualCalls:
    """Calls on a virtual clock to a judge that answers as it is told, each with a question of its
    own."""

    def __init__(self, answer, retry=None):
        self.clock = Clock()
        self.stop = VirtualStop(self.clock)
        self._number = 0
        ledger = EmptyLedger()
        self._stack = CallStack(
            judge=Scripted(lambda question: answer()),
            run="run",
            ledger=ledger,
            stop=self.stop,
            tally=Tally(),
            pacer=Pacer(self.stop, clock=self.clock),
            retry=retry or RetryPolicy(call_seconds=1e9),
            budget=CallBudget(),
            price=None,
            max_tokens=1,
        )

    async def ask(self):
        self._number += 1
        await self._stack.ask(Question(messages=(Message("user", str(self._number)),)))
