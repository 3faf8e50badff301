"""A pytest plugin for a collection that is compared with an earlier one: its clock is a day ahead,
and the ids it collects are written to the file that EVENHAND_IDS names."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

DAY = 86_400
_time, _time_ns = time.time, time.time_ns
time.time = lambda: _time() + DAY
time.time_ns = lambda: _time_ns() + DAY * 10**9


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ids = [item.nodeid for item in items]
    Path(os.environ["EVENHAND_IDS"]).write_text(json.dumps(ids), encoding="utf-8")
