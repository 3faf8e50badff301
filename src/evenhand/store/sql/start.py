"""A run that starts, or starts again: itself, its judging and its units, inside a transaction."""

from __future__ import annotations

from evenhand.errors import StoreError
from evenhand.manifest import JudgingRecord, Manifest, judging_json, manifest_json
from evenhand.store.keys import digest
from evenhand.store.sql.intake import WaitingUnits
from evenhand.store.sql.session import Session
from evenhand.store.sql.verify import run_digest

_RUN = "SELECT no FROM runs WHERE id=:run"
_JUDGING = "SELECT no FROM judgings WHERE id=:judging"
_START = (
    "INSERT INTO runs (id, name, judging, manifest, created, started, starts)"
    " VALUES (?,?,?,?,?,?,?) ON CONFLICT (id) DO UPDATE SET"
    " manifest=excluded.manifest, started=excluded.started, starts=excluded.starts"
)
STAMP = "UPDATE runs SET digest=? WHERE no=?"
KEEP_TEXT = "INSERT INTO texts VALUES (?,?) ON CONFLICT (digest) DO NOTHING"
KEEP_JUDGING = "INSERT INTO judgings (id, record) VALUES (?,?) ON CONFLICT (id) DO NOTHING"


def start(
    session: Session,
    run: str,
    name: str,
    manifest: Manifest,
    waiting: WaitingUnits | None,
    at: str,
) -> None:
    """Note that a run starts at a time, with the units that wait unless it has its own; raises
    StoreError where it has none and none wait."""
    is_known = bool(session.rows(_RUN, {"run": run}))
    [(last,)] = session.rows("SELECT coalesce(MAX(starts), 0) FROM runs")
    judging, record = _judging(session, manifest.judging), manifest_json(manifest).decode()
    session.write(_START, [(run, name, judging, record, at, at, last + 1)])
    [(number,)] = session.rows(_RUN, {"run": run})
    if not is_known:
        if waiting is None:
            raise StoreError(f"the store has no run {run} any more", advice="Start it again.")
        waiting.join(number)
    session.write(STAMP, [(run_digest(session, number), number)])


def _judging(session: Session, judging: JudgingRecord) -> int:
    """The number of a judging, which is kept with its texts unless it is there."""
    rows = session.rows(_JUDGING, {"judging": judging.id})
    if not rows:
        digests = {name: digest(text) for name, text in judging.texts.items()}
        texts = {digests[name]: text for name, text in judging.texts.items()}
        session.write(KEEP_TEXT, list(texts.items()))
        session.write(KEEP_JUDGING, [(judging.id, judging_json(judging, digests).decode())])
        rows = session.rows(_JUDGING, {"judging": judging.id})
    return int(rows[0][0])
