"""Which event loop work runs in."""

from __future__ import annotations

import asyncio
import sys

import pytest

from evenhand.engine.loop import VARIABLE, run_in_loop


async def loop_module() -> str:
    return type(asyncio.get_running_loop()).__module__.partition(".")[0]


def test_work_runs_in_uvloop_where_it_is_installed() -> None:
    assert run_in_loop(loop_module()) == "uvloop"


def test_the_environment_is_a_way_back_to_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "asyncio")
    assert run_in_loop(loop_module()) == "asyncio"


def test_without_uvloop_it_is_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert run_in_loop(loop_module()) == "asyncio"
