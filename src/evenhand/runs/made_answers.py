"""The answers that a run has made, each with the call that gave it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from evenhand.judgment import Judgment, Verdict
from evenhand.kinds.answer.kind import READER, Asked, MadeAnswer, load_asked
from evenhand.store.archive import Archive
from evenhand.store.ports import Call, Scope, StoredJudgment

_PAGE = 500


class StoredAnswer(NamedTuple):
    """An answer with its question; no call where none was needed, no answer where none came."""

    asked: Asked
    stored: StoredJudgment
    made: MadeAnswer | None
    call: Call | None


def read_made_answers(archive: Archive, run: str) -> Iterator[StoredAnswer]:
    """Yield the answers of a run, question by question, failures too."""
    found = archive.judgments(Scope(run))
    while page := list(islice(found, _PAGE)):
        calls = archive.calls([key for _, stored in page for key in stored.calls])
        for unit, stored in page:
            call = next((calls[key].call for key in stored.calls if key in calls), None)
            made = answer_of(READER.read(stored.text))
            yield StoredAnswer(load_asked(unit.body), stored, made, call)


def answer_of(judgment: Judgment) -> MadeAnswer | None:
    """Return the answer of a judgment; None of a failure."""
    value = judgment.value if isinstance(judgment, Verdict) else None
    assert value is None or isinstance(value, MadeAnswer)
    return value
