"""The child process: one model, one JSON object a line in, one or more out.

In: `{"load": {...}}` once, then `{"ask": {...}}` at a time. Out: `{"beat": true}` as a sign of life
while it works, then `{"ready": ...}`, `{"reply": ...}`, `{"overflow": ...}`, `{"unfit": ...}` or
`{"failed": ...}`; `{"altered": ...}` when the weights are not, or no longer, those that the parent
named. The real standard output is kept for these lines alone; whatever else prints goes
to standard error. When standard input closes, the process ends at once, in the middle of anything:
a parent that was killed leaves nobody behind.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from msgspec import to_builtins

if TYPE_CHECKING:
    from evenhand.judges.embedded.priors import Priors
    from evenhand.judges.embedded.runtime import Runtime
    from evenhand.judges.embedded.weights import Opened

Tell = Callable[[dict[str, Any]], None]


def main() -> None:
    """Serve the parent until it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    out = _own_stdout()

    def tell(line: dict[str, Any]) -> None:
        out.write(json.dumps(line) + "\n")
        out.flush()

    _serve(_lines(sys.stdin), tell)


def _serve(lines: Iterator[dict[str, Any]], tell: Tell) -> None:
    from evenhand.judges.embedded.alone import Favours
    from evenhand.judges.embedded.answering import answered
    from evenhand.judges.embedded.runtime import TooLongError
    from evenhand.judges.embedded.walk import SchemaError

    host, priors, opened = _loaded(next(lines)["load"], tell)
    favours = Favours()
    tell({"ready": {"context": host.context}})
    for line in lines:
        if opened.changed():  # what is mapped into memory has changed with it
            tell({"altered": "it was written to while it was in use"})
            return
        try:
            tell({"reply": to_builtins(answered(host, priors, favours, line["ask"]))})
        except TooLongError as error:
            tell({"overflow": str(error)})
        except SchemaError as error:
            tell({"unfit": str(error)})


def _loaded(request: dict[str, Any], tell: Tell) -> tuple[Runtime, Priors, Opened]:
    """The model, once its whole file was seen to be the one the parent named."""
    from evenhand.judges.embedded.priors import Priors
    from evenhand.judges.embedded.runtime import Runtime, Threads
    from evenhand.judges.embedded.weights import Opened

    try:
        opened = Opened(Path(request["path"]))
        threads = Threads(**request["threads"])
        host = Runtime(opened.path, threads, lambda: tell({"beat": True}))
        sha256 = opened.sha256()
    except Exception as error:
        tell({"failed": f"{type(error).__name__}: {error}"})
        os._exit(1)
    if sha256 != request["sha256"]:
        tell({"altered": f"its SHA-256 is {sha256}, not {request['sha256']}"})
        os._exit(1)
    return host, Priors(request["model"], Path(request["priors"])), opened


def _own_stdout() -> TextIO:
    """The pipe to the parent, taken away from everyone else in this process."""
    pipe = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(pipe, "w", encoding="utf-8")


def _lines(source: TextIO) -> Iterator[dict[str, Any]]:
    """What the parent says. A thread reads it, so that its end is noticed during any work."""
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        for line in source:
            waiting.put(line)
        os._exit(0)

    threading.Thread(target=read, daemon=True).start()
    while True:
        yield json.loads(waiting.get())


if __name__ == "__main__":
    main()
