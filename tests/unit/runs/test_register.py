"""Keys that come again are known, whether they are at hand or wait on the disk."""

from __future__ import annotations

import random
from contextlib import closing
from typing import NamedTuple

import pytest

from evenhand.runs.imports.met import Met
from evenhand.runs.imports.register import Register

Key = tuple[str, tuple[str, str]]


class Entry(NamedTuple):
    no: int
    text: str


@pytest.mark.parametrize("kept", [1, 7, 1 << 16])
def test_a_register_gives_what_a_dictionary_gives(
    monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    monkeypatch.setattr("evenhand.runs.imports.register.MEMO_ENTRIES", kept)
    draw, whole = random.Random(11), dict[Key, Entry]()
    with closing(Register[Key, Entry](Entry._make)) as register:
        for _ in range(60):
            keys = [(f"q{draw.randrange(50)}", ("é", draw.choice("xy"))) for _ in range(9)]
            assert register.entries(keys) == [whole.get(key) for key in keys]
            new = {key: Entry(len(key), key[0]) for key in keys if key not in whole}
            register.add(new, 100)
            whole |= new
            assert register.entries(keys) == [whole[key] for key in keys]
            assert all(isinstance(entry, Entry) for entry in register.entries(keys))


def test_long_keys_are_put_away_by_their_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evenhand.runs.imports.register.CHARS_AT_HAND", 10)
    with closing(Register[str, int](int)) as register:
        for number in range(5):
            register.add({f"key {number}": number + 1}, 5)
        assert register.entries([f"key {number}" for number in range(6)]) == [1, 2, 3, 4, 5, None]
        assert len(register._fresh) < 5


def test_keys_that_were_met_are_always_known_for_it() -> None:
    met, draw = Met(), random.Random(3)
    keys = [("q", draw.getrandbits(60), -number) for number in range(5_000)]
    assert not any(met.add(keys[:2_500]))
    assert met.has(keys) == [True] * 2_500 + [False] * 2_500
    assert met.add(keys[2_400:]) == [True] * 100 + [False] * 2_500
    assert all(met.has(keys))
