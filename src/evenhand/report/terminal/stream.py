"""The one door to a terminal: what is written through it can hide nothing and steers nothing,
whatever file, reply or name it came from. What is drawn by Evenhand itself, colours and a line that
is written over, goes past it, by `raw_stream`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from typing import IO, Any, TextIO, cast

from evenhand.text import visible


class GuardedStream:
    """A stream of text that shows control and hidden characters as escapes."""

    def __init__(self, stream: TextIO) -> None:
        self.unguarded = stream

    def write(self, text: str) -> int:
        """Write a text with nothing in it that a terminal obeys."""
        if not isinstance(text, str):
            raise TypeError("this is a stream of text")
        self.unguarded.write(visible(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unguarded, name)


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Redirect stdout and stderr through a GuardedStream each while the context is open."""
    with ExitStack() as stack:
        for stream, redirect in ((sys.stdout, redirect_stdout), (sys.stderr, redirect_stderr)):
            if stream is not None and not isinstance(stream, GuardedStream):
                stack.enter_context(redirect(cast("IO[str]", GuardedStream(stream))))
        yield


def raw_stream(stream: TextIO) -> TextIO:
    """The stream behind the door, for what Evenhand draws itself."""
    return stream.unguarded if isinstance(stream, GuardedStream) else stream
