"""Waiting for a state, however long a busy machine takes to reach it; never for a time."""

from __future__ import annotations

import time
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 600.0
"""Seconds after which a state will not come any more: far beyond what any machine needs."""
_PAUSE = 0.02


def awaited(look, what):
    """What `look` gives as soon as it is true; it is called again and again until then."""
    end = time.monotonic() + PATIENCE
    while not (value := look()):
        assert time.monotonic() < end, f"it never came: {what}"
        time.sleep(_PAUSE)
    return value
