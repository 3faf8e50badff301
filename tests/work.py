"""How much work a call does, counted: what a clock would say differs from machine to machine."""

from __future__ import annotations

import sys


def calls_of(work, *given, of=None):
    """How many functions, of Python and of C, are called while `work` is done; or how often the
    one function `of`, of Python, is."""
    count = 0
    code = None if of is None else of.__code__

    def note(frame, event, argument):
        nonlocal count
        if code is None:
            count += event in ("call", "c_call")
        else:
            count += event == "call" and frame.f_code is code

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work(*given)
    finally:
        sys.setprofile(before)
    return count
