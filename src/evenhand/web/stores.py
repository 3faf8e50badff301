"""Stores lent to requests, and figures that take long to make, kept while nothing changes."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from queue import Empty, Full, LifoQueue
from typing import Any, Generic, TypeVar

from evenhand.errors import EvenhandError, StoreError
from evenhand.store.ports import Archive, Store

T = TypeVar("T")
IDLE = 4
"""So many stores stay open for the next requests."""
FIGURES = 1024
"""So many figures are kept."""
AT_ONCE = 2
"""So many short ones are made at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long readers wait for what takes long to make, and how long making it again waits."""

    counts: float = 1.0
    """Seconds that a page waits for counts before it is shown without them, or with the last
    known ones."""
    figures: float = 0.7
    """The same for figures."""
    pause: float = 4.0
    """Figures of a store that changes all the time are made again after so many times the time
    that they took: counting never takes more than a part of one processor."""


class Stores:
    """One store a request: none is used by two threads at once."""

    def __init__(self, open_one: Callable[[], Store]) -> None:
        self._open = open_one
        self._idle: LifoQueue[Store] = LifoQueue(IDLE)

    @contextmanager
    def lent(self) -> Iterator[Archive]:
        """A store to read from for the time of a request, in one state; raises StoreError where it
        is gone."""
        store = self._idle_or_new()
        try:
            store.archive.set_frozen(True)
            yield store.archive
            store.archive.set_frozen(False)
        except StoreError:
            store.close()
            raise
        except BaseException:
            store.archive.set_frozen(False)
            self._give_back(store)
            raise
        self._give_back(store)

    def opened(self) -> Store:
        """One more, for whoever keeps it."""
        return self._open()

    def _give_back(self, store: Store) -> None:
        try:
            self._idle.put_nowait(store)
        except Full:
            store.close()

    def _idle_or_new(self) -> Store:
        with suppress(Empty):
            while True:
                store = self._idle.get_nowait()
                if store.archive.state() is not None:
                    return store
                store.close()
        return self._open()

    def close(self) -> None:
        with suppress(Empty):
            while True:
                self._idle.get_nowait().close()


@dataclass(slots=True)
class _Figure(Generic[T]):
    """A figure, what it was made of, and how long it took."""

    value: T | None = None
    error: EvenhandError | None = None
    source: object = None
    took: float = 0.0
    made_at: float = 0.0
    ready: threading.Event = field(default_factory=threading.Event)
    under_way: bool = False


class FigureCache:
    """Figures of a store, each made at most once per state of it, in a thread of its own. Whoever
    asks waits a little, and is then given the last known figure, or None."""

    def __init__(self, stores: Stores, pause: float) -> None:
        self._stores, self._pause = stores, pause
        self._lock = threading.Lock()
        self._figures: OrderedDict[Hashable, _Figure[Any]] = OrderedDict()
        self._watching: Store | None = None
        self._short, self._long = threading.Semaphore(AT_ONCE), threading.Semaphore(1)

    def get(
        self,
        key: Hashable,
        make: Callable[[Archive], T],
        wait: float,
        *,
        is_long: bool = False,
        of: object = None,
    ) -> T | None:
        """The figure under a key; raises what making it raised. Of the long ones, one is made at a
        time. Where it is made `of` another figure, it is made again when that one is, and not
        when the store changes."""
        with self._lock:
            state = self._state()
            figure = self._figures.setdefault(key, _Figure())
            self._figures.move_to_end(key)
            if len(self._figures) > FIGURES:
                self._figures.popitem(last=False)
            source = state if of is None else of
            if self._is_due(figure, source):
                figure.under_way = True
                figure.ready.clear()
                work = (figure, source, make, is_long)
                threading.Thread(target=self._make, args=work, daemon=True).start()
        figure.ready.wait(wait)
        if figure.error is not None:
            raise figure.error
        return figure.value

    def _state(self) -> int | None:
        if self._watching is not None:
            state = self._watching.archive.state()
            if state is not None:
                return state
            self._watching.close()
            self._watching = None
            self._figures.clear()
        self._watching = self._stores.opened()
        return self._watching.archive.state()

    def _is_due(self, figure: _Figure[Any], source: object) -> bool:
        if figure.under_way or figure.source is source or figure.source == source:
            return False
        return time.monotonic() - figure.made_at >= self._pause * figure.took

    def _make(
        self, figure: _Figure[T], source: object, make: Callable[[Archive], T], is_long: bool
    ) -> None:
        begun = time.monotonic()
        try:
            with self._long if is_long else self._short, self._stores.lent() as store:
                begun = time.monotonic()
                value = make(store)
            figure.value, figure.error = value, None
        except EvenhandError as error:
            figure.error = error
        except Exception as error:  # whoever asks must not wait for ever
            figure.error = EvenhandError(f"this cannot be computed: {type(error).__name__}")
        finally:
            figure.made_at = time.monotonic()
            figure.took = figure.made_at - begun
            figure.source, figure.under_way = source, False
            figure.ready.set()

    def close(self) -> None:
        if self._watching is not None:
            self._watching.close()
