"""How much work a call does, counted: what a clock would say differs from machine to machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def calls_of(work: Callable[..., Any], *given: Any) -> int:
    """How many functions, of Python and of C, are called while `work` is done."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work(*given)
    finally:
        sys.setprofile(before)
    return count
