"""A run whose judgments were made elsewhere is kept whole or not at all, by every store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from evenhand.errors import DataError
from evenhand.judgment import Failure, Verdict, write_judgment
from evenhand.kinds.rubric.verdict import RubricVerdict
from evenhand.ledger.store import IncomingUnit, JudgedUnit, Scope, Store
from tests.contract.stores import STORES, Open

TAG = "tag:"


@pytest.fixture(params=STORES)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    return STORES[request.param](tmp_path)


@pytest.fixture
def store(opened: Open) -> Iterator[Store]:
    made = opened()
    yield made
    made.close()


def judged(*idents: str, repeats: int = 1) -> list[JudgedUnit]:
    value = RubricVerdict(meta_json=Raw("{}"), scores={}, failure_tags=(), notes="")
    outcomes = [*[Verdict(value=value)] * repeats, Failure(reason="schema", detail="no")]
    judgments = [(0, i, write_judgment(one)) for i, one in enumerate(outcomes)]
    return [JudgedUnit(IncomingUnit(i, f"f:{i}", f'{{"id":"{i}"}}'), judgments) for i in idents]


def taken(store: Store, units: list[JudgedUnit], run: str = "run1") -> Scope:
    return store.take_in(run, "name", lambda: {"units": len(units)}, units, TAG)


def kept(store: Store, run: str = "run1") -> list[tuple[str, int, str]]:
    found = store.judgments(Scope(run), TAG)
    return [(unit.id, one.repeat, one.text.status) for unit, one in found]


def test_units_and_judgments_are_kept_in_their_order(store: Store) -> None:
    scope = taken(store, judged("b", "a"))
    assert kept(store) == [
        ("b", 0, "verdict"),
        ("b", 1, "failure"),
        ("a", 0, "verdict"),
        ("a", 1, "failure"),
    ]
    counts = store.counts(scope, 2, TAG)
    assert (counts.verdicts, counts.failures, counts.pending) == (2, {"schema": 2}, 0)
    assert store.verify() == []


def test_the_manifest_is_asked_for_after_the_last_unit(store: Store) -> None:
    seen: list[str] = []

    def units() -> Iterator[JudgedUnit]:
        for one in judged("a", "b"):
            seen.append(one.unit.id)
            yield one

    def manifest() -> Mapping[str, Any]:
        return {"seen": list(seen)}

    store.take_in("run1", "name", manifest, units(), TAG)
    assert store.runs()[0].manifest == {"seen": ["a", "b"]}


def test_taken_in_again_a_run_holds_what_came_last(store: Store) -> None:
    taken(store, judged("a", "b", repeats=2))
    taken(store, judged("c"), "run2")
    taken(store, judged("b"))
    assert kept(store) == [("b", 0, "verdict"), ("b", 1, "failure")]
    assert len(kept(store, "run2")) == 2
    assert [run.id for run in store.runs()] == ["run1", "run2"]


def test_on_an_error_nothing_is_kept(store: Store, opened: Open) -> None:
    taken(store, judged("a"))

    def broken() -> Iterator[JudgedUnit]:
        yield from judged("b", "c")
        raise DataError("the file ends here")

    with pytest.raises(DataError, match="ends here"):
        store.take_in("run1", "name", dict, broken(), TAG)
    with pytest.raises(DataError, match="unique"):
        taken(store, judged("d", "d"))
    other = opened()
    assert [ident for ident, *_ in kept(other)] == ["a", "a"]
    other.close()
    taken(store, judged("e"))
    assert [ident for ident, *_ in kept(store)] == ["e", "e"]
