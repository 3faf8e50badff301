"""A pytest plugin for a collection that is compared with another one: its clock is ahead by as
many days as EVENHAND_DAYS says, and its ids are written to the file that EVENHAND_IDS names."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

AHEAD = 86_400 * int(os.environ["EVENHAND_DAYS"])
_time, _time_ns = time.time, time.time_ns
time.time = lambda: _time() + AHEAD
time.time_ns = lambda: _time_ns() + AHEAD * 10**9


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    ids = [item.nodeid for item in items]
    Path(os.environ["EVENHAND_IDS"]).write_text(json.dumps(ids), encoding="utf-8")
