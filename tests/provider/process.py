"""The provider in a process of its own, which knows its behaviour by name."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

from tests.provider import faults
from tests.provider.answers import by_number, comparing, valid
from tests.provider.call import Behaviour
from tests.provider.changes import fenced, quoting, thinking
from tests.provider.server import Provider

ROOT = Path(__file__).resolve().parents[2]
READING = "reading"
"""The behaviour that reads what it judges; a number behind it is how wordy it is."""
BEHAVIOURS: dict[str, Behaviour] = {
    "fast": valid(),
    "first": comparing(lambda call: "A"),
    "by-number": comparing(by_number),
    "fenced": valid(fenced),
    "thinking": valid(thinking),
    "fabricating": valid(quoting("words that stand nowhere in the answer")),
    "slow": faults.pausing(0.2),
    "never": faults.never(),
    "busy": faults.busy("1"),
    "down": faults.failing(503),
    "quota": faults.out_of_quota(),
    "unauthorized": faults.failing(401, "Incorrect API key provided.", code="invalid_api_key"),
    "echoing": faults.echoing_key(),
    "resetting": faults.resetting(),
    "html": faults.HTML,
    "empty": faults.EMPTY,
    "flooding": faults.flooding(),
    "refusing-schema": faults.refusing_schema(),
    "refusing-temperature": faults.refusing_temperature(),
    "overflowing": faults.overflowing(),
}


def child(
    behaviour: str = "fast", *, delay: float = 0.0, certificate: str = ""
) -> contextlib.AbstractContextManager[str]:
    """The provider in a process of its own; gives its URL, ends with the block or its parent. With
    a certificate, which only `fast` can have, it speaks https."""
    command = [sys.executable, "-m", "tests.provider", "--behaviour", behaviour, "--piped"]
    options = ["--delay", str(delay), "--certificate", certificate]
    return served_by([*command, *options])


@contextlib.contextmanager
def served_by(command: Sequence[str]) -> Generator[str]:
    """The URL that a command prints, which serves until the block ends or its input does."""
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def named_provider(name: str, delay: float, certificate: str) -> Any:
    """A provider that behaves as the name says, each time after a delay."""
    if name == "fast":
        from tests.fast_provider import FastProvider

        return FastProvider(delay=delay, certificate=certificate)
    if name.startswith(READING):
        from tests.stories.reader import reading

        behaviour = reading(int(name.removeprefix(READING) or 1))
    else:
        behaviour = BEHAVIOURS[name]
    return Provider(faults.pausing(delay, behaviour) if delay else behaviour, keep=False)
