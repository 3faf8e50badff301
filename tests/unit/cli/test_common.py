"""What commands share: waiting for asynchronous work."""

from __future__ import annotations

import signal

import pytest

from evenhand.cli.common import wait


def test_ctrl_c_ends_work_at_once_though_it_never_waits() -> None:
    reached: list[str] = []

    async def read_for_long() -> None:
        signal.raise_signal(signal.SIGINT)
        reached.append("the end")

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        wait(read_for_long())
    assert reached == []
    assert signal.getsignal(signal.SIGINT) is before
