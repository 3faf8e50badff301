"""Calls as rows, and back."""

from __future__ import annotations

from typing import Any

import pytest

from evenhand.exchange import Reply
from evenhand.store.ports import Call
from evenhand.store.rows import call_row, ledger_call


@pytest.mark.parametrize(
    ("sampling", "kept"),
    [
        ({"temperature": 0.5, "seed": 7}, {"temperature": 0.5, "seed": 7}),
        ({"stop": ["a", "b"], "seed": 7}, {"stop": ["a", "b"], "seed": 7}),
        ({"bias": {"50256": -100}}, {"bias": {"50256": -100}}),
        ({"seed": float("nan"), "top_p": 1}, {"seed": "nan", "top_p": 1}),
        ({"seed": {1}}, {"seed": "{1}"}),
        ({("a", "b"): 1}, {"('a', 'b')": 1}),
        ({}, {}),
    ],
)
def test_a_reply_is_kept_whatever_its_judge_says_of_sampling(
    sampling: dict[Any, Any], kept: dict[str, Any]
) -> None:
    for _ in range(2):
        call = Call("key", "run", "judge", Reply(text="{}", model="m", sampling=sampling), 5)
        *columns, digest, at = call_row(call, "2026-01-01T00:00:00")
        found = ledger_call((1, at, None, digest, *columns))
        assert (found.call.reply.sampling, found.altered) == (kept, False)
