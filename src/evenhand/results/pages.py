"""The runs of a store and the list of a run's judgments: counts, progress, and pages found in the
database. Nothing here holds more than a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple

from msgspec import Raw, Struct
from msgspec.structs import replace

from evenhand import jsontext
from evenhand.engine.prices import dollars
from evenhand.errors import UsageError
from evenhand.jsontext import StoredText, stored_object
from evenhand.manifest import plain
from evenhand.report.html.units import JudgedRow
from evenhand.results.units import asked_row
from evenhand.runs.recorded import Recorded
from evenhand.store.archive import Archive
from evenhand.store.batches import BatchRow
from evenhand.store.ports import (
    Browsed,
    Counts,
    Cursor,
    PageRequest,
    Spent,
    StoredJudgment,
    StoredUnit,
)
from evenhand.text import visible
from evenhand.words import Sentence

WINDOW, REACH = 2_000, 50_000
"""Rows that are looked at for one of them, and for a page of them."""
RATE_CALLS, RATE_SECONDS = 2_000, 60.0
"""The rate of a run is that of its last calls, as far as they are not older."""
SUGGESTED_UNITS, SUGGESTED_VALUES = 200, 40
"""Values of fields are suggested from the first units of a run."""


class RunStatus(NamedTuple):
    """The progress of a run as far as it takes long to count."""

    counts: Counts
    spent: Spent
    batches: Sequence[BatchRow] = ()
    """Those that are under way."""


def standing(store: Archive, recorded: Recorded) -> RunStatus:
    """Count the judgments of a run and what it paid."""
    run = recorded.row.id
    batches = [batch for batch in store.batches(run) if batch.is_open]
    return RunStatus(recorded.counts(store), store.spent(run), batches)


def overview(recorded: Recorded, stands: RunStatus) -> dict[str, Any]:
    """Return a run as `runs --json` lists it."""
    row, manifest, judging = recorded.row, recorded.manifest, recorded.manifest.judging
    return {
        "run": row.id,
        "name": row.name,
        "author": manifest.author,
        "note": manifest.note,
        "tags": list(manifest.tags),
        "kind": recorded.kind_name,
        "created": row.created,
        "started": row.started,
        **_counts_of(stands),
        "judges": [judge.name for judge in recorded.judges],
        "protocol": manifest.protocol,
        "protocol_version": judging.protocol,
        "prompt": manifest.prompt,
        "language": judging.language,
        "seed": judging.seed,
        "settings": dict(recorded.settings),
        "evenhand": manifest.evenhand,
        "imported": plain(manifest.imported) if manifest.imported else None,
        "settled_from": manifest.settled_from,
        "rules": {change.name: change.json() for change in recorded.rule_changes},
        "selected": recorded.selection and recorded.selection.json(),
    }


def _counts_of(stands: RunStatus) -> dict[str, Any]:
    counts, spent, batches = stands
    return {
        "planned": counts.planned,
        "verdicts": counts.verdicts,
        "failures": dict(sorted(counts.failures.items())),
        "pending": counts.pending,
        "left_out": counts.left_out,
        "calls": spent.calls,
        "reasks": counts.reasks,
        "cost_usd": None if spent.unpriced else dollars(spent.cost),
        "usage": spent.usage,
        "batches": [batch.json() for batch in batches],
    }


def progress(store: Archive, recorded: Recorded, stands: RunStatus) -> dict[str, Any]:
    """Return the progress of a run: counts, calls a minute, and the time left at that rate."""
    run, counted = recorded.row.id, _counts_of(stands)
    moments = store.call_times(run, RATE_CALLS)
    rate = calls_a_minute(moments, recorded.row.started, datetime.now(UTC))
    judging = store.is_claimed(run)
    done = counted["verdicts"] + sum(counted["failures"].values())
    left = None
    if judging and rate and done:
        each = max(1, counted["calls"]) / done
        left = round(60 * counted["pending"] * each / rate)
    pace = {"calls_a_minute": rate, "seconds_left": left}
    return {"run": run, "judging": judging, **counted, **pace}


def calls_a_minute(moments: Sequence[str], started: str, now: datetime) -> float:
    """Calls a minute over the last minute, or over the time since the first call of this start."""
    begun = datetime.fromisoformat(started)
    times = [at for at in map(datetime.fromisoformat, moments) if at >= begun]
    ages = [(now - at).total_seconds() for at in times]
    recent = [age for age in ages if age <= RATE_SECONDS]
    if not recent:
        return 0.0
    covered = max(1.0, min(RATE_SECONDS, ages[-1]))
    return round(60 * len(recent) / covered, 1)


def judgment_rows(
    store: Archive, recorded: Recorded, browsed: Browsed, request: PageRequest
) -> tuple[list[tuple[StoredUnit, JudgedRow | None]], dict[str, str | None]]:
    """Return a page of judgments, each with its unit, None where a unit waits; and the places of
    the pages beside it."""
    selection = replace(browsed, planned=planned_judgments(recorded))
    page = store.judgment_page(recorded.row.id, selection, request)
    rows = [
        (unit, None if stored is None else asked_row(recorded, unit, stored))
        for unit, stored in page.rows
    ]
    places = [_place(*row) for row in page.rows]
    beyond = None if page.stopped is None else _write_place(page.stopped)
    return rows, _beside(request, places, page.more, beyond)


def planned_judgments(recorded: Recorded) -> int:
    """Return the number of judgments that each unit is to have; 0 for judgments made elsewhere,
    where nobody knows."""
    return 0 if recorded.imported else recorded.judgments_per_unit


def _place(unit: StoredUnit, stored: StoredJudgment | None) -> str:
    return _write_place(Cursor(unit.position, *((stored.judge, stored.repeat) if stored else ())))


def _write_place(place: Cursor) -> str:
    return ".".join(map(str, place))


def read_place(text: str) -> Cursor:
    """Return the cursor for a place as pages name it, `unit.judge.repeat`; raise UsageError for any
    other text."""
    try:
        unit, *rest = map(int, text.split("."))
        if len(rest) > 2 or not all(-2 <= number < 2**62 for number in (unit, *rest)):
            raise ValueError
        return Cursor(unit, *rest)
    except ValueError:
        raise UsageError(Sentence("results.no_place", place=text)) from None


def _beside(
    request: PageRequest, places: Sequence[str], more: bool, stopped: str | None
) -> dict[str, str | None]:
    """Return the places where the pages before and after this one begin, and where a search may go
    on that stopped before its page was full."""
    ahead = places[-1] if more else stopped
    behind = places[0] if places and request.place is not None else None
    if request.forward:
        return {"next": ahead, "previous": behind, "stopped": stopped}
    ahead = places[0] if more else stopped
    return {"next": places[-1] if places else None, "previous": ahead, "stopped": stopped}


class _Candidate(Struct):
    id: str


class _Filterable(Struct):
    """The parts of a unit that it can be filtered by."""

    meta: Raw = Raw(b"{}")
    candidates: tuple[_Candidate, ...] = ()


_filterable: StoredText[_Filterable] = StoredText(_Filterable, "a unit")


def suggestions(store: Archive, recorded: Recorded) -> dict[str, Any]:
    """Values to filter by, from the first units of a run: fields with their values, and
    candidates."""
    fields: dict[str, dict[str, None]] = {}
    candidates: dict[str, None] = {}
    for unit in islice(store.units(recorded.scope), SUGGESTED_UNITS):
        body = _filterable.read(unit.body)
        for name, value in stored_object(bytes(body.meta).decode(), "a unit").items():
            fields.setdefault(name, {})[jsontext.as_text(value)] = None
        candidates |= {candidate.id: None for candidate in body.candidates}
    choices = {
        name: plain_texts(values)
        for name, values in fields.items()
        if len(values) <= SUGGESTED_VALUES
    }
    known = plain_texts(candidates)[:SUGGESTED_VALUES]
    return {"fields": plain_texts(fields), "values": choices, "candidates": known}


def plain_texts(texts: Iterable[str]) -> list[str]:
    """Return the texts that a form can carry as they are: short, on a line, nothing hidden in
    them."""
    return [
        text
        for text in texts
        if 0 < len(text) <= 200 and text.isprintable() and visible(text) == text
    ]
