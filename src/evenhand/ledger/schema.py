"""The tables, as named migrations. Each is applied once, in one transaction with its name.

Money is whole picodollars (1 USD = 10^12), so that sums are exact. `calls.run` is the run that
paid; a run that finds the reply there pays nothing. Should two processes pay for one key at
the same time, both replies are kept and the first counts. A reply that --retry-failures set `aside`
is kept, and its cost, but it answers no more.
"""

from __future__ import annotations

MIGRATIONS: tuple[tuple[str, str], ...] = (
    (
        "0001_ledger",
        """
        CREATE TABLE runs (
            id TEXT PRIMARY KEY,
            name TEXT NOT NULL,
            manifest TEXT NOT NULL,
            created TEXT NOT NULL,
            started TEXT NOT NULL,
            starts INTEGER NOT NULL
        );
        CREATE TABLE units (
            no INTEGER PRIMARY KEY,
            run TEXT NOT NULL REFERENCES runs(id),
            id TEXT NOT NULL,
            start INTEGER NOT NULL,
            origin TEXT NOT NULL,
            digest TEXT NOT NULL,
            body TEXT NOT NULL,
            UNIQUE (run, id)
        );
        CREATE INDEX units_in_order ON units (run);
        CREATE TABLE calls (
            no INTEGER PRIMARY KEY,
            key TEXT NOT NULL,
            run TEXT NOT NULL,
            judge TEXT NOT NULL,
            reply TEXT NOT NULL,
            finish TEXT NOT NULL,
            model TEXT NOT NULL,
            odds TEXT NOT NULL,
            input_tokens INTEGER,
            output_tokens INTEGER,
            cached_tokens INTEGER NOT NULL,
            cost INTEGER,
            digest TEXT NOT NULL,
            at TEXT NOT NULL,
            aside TEXT
        );
        CREATE INDEX calls_by_key ON calls (key);
        CREATE INDEX calls_of_run ON calls (run);
        CREATE TABLE judgments (
            unit INTEGER NOT NULL REFERENCES units(no),
            judge INTEGER NOT NULL,
            repeat INTEGER NOT NULL,
            status TEXT NOT NULL,
            reason TEXT,
            basis TEXT NOT NULL,
            calls INTEGER NOT NULL,
            reasks INTEGER NOT NULL,
            body TEXT NOT NULL,
            PRIMARY KEY (unit, judge, repeat)
        ) WITHOUT ROWID;
        CREATE TABLE reservations (
            key TEXT NOT NULL,
            attempt TEXT NOT NULL,
            run TEXT NOT NULL,
            amount INTEGER NOT NULL,
            PRIMARY KEY (key, attempt)
        ) WITHOUT ROWID;
        CREATE INDEX reservations_of_run ON reservations (run);
        """,
    ),
    ("0002_sampling", "ALTER TABLE calls ADD COLUMN sampling TEXT NOT NULL DEFAULT ''"),
    (
        "0003_failures",
        "CREATE INDEX judgments_failed ON judgments (unit, reason) WHERE reason IS NOT NULL",
    ),
)
