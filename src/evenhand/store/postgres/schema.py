"""The tables of a PostgreSQL store, as named migrations. Each is applied once, in one transaction
with its name.

They are those of the SQLite store, by the same names; its schema says what they hold. What differs:

- At most one reply under a key answers (`calls_answering`). Should two processes pay for one key at
  the same time, the one that is committed first answers; the other is kept aside, with its cost.
- A row of `calls` is there once (`calls_once`), so that a write whose outcome was lost with its
  connection may simply be made again.
- Ids and names are of any length, so they are found by their hash.
- Nothing but `runs` refers to another table by a foreign key: a reference is checked, and locked,
  row by row, for rows that nothing ever removes. `store verify` looks for what belongs to nothing.
- A text cannot hold the character NUL: see `seal`.
"""

from __future__ import annotations

MIGRATIONS: tuple[tuple[str, str], ...] = (
    (
        "0001_content",
        """
        CREATE TABLE texts (
            digest TEXT PRIMARY KEY,
            text TEXT NOT NULL
        );
        CREATE TABLE judgings (
            no BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            record TEXT NOT NULL
        );
        CREATE TABLE units (
            no BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            digest BYTEA NOT NULL UNIQUE,
            id TEXT NOT NULL,
            body TEXT NOT NULL
        );
        CREATE INDEX units_by_id ON units USING hash (id);
        CREATE TABLE runs (
            no BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            name TEXT NOT NULL,
            judging BIGINT NOT NULL REFERENCES judgings(no),
            manifest TEXT NOT NULL,
            created TEXT NOT NULL,
            started TEXT NOT NULL,
            starts BIGINT NOT NULL UNIQUE,
            digest TEXT
        );
        CREATE INDEX runs_by_name ON runs USING hash (name);
        CREATE TABLE run_units (
            run BIGINT NOT NULL,
            position BIGINT NOT NULL,
            unit BIGINT NOT NULL,
            PRIMARY KEY (run, position)
        );
        CREATE UNIQUE INDEX run_units_by_unit ON run_units (unit, run);
        CREATE TABLE judgments (
            judging BIGINT NOT NULL,
            unit BIGINT NOT NULL,
            judge BIGINT NOT NULL,
            repeat BIGINT NOT NULL,
            status TEXT NOT NULL,
            reason TEXT,
            calls BIGINT NOT NULL,
            reasks BIGINT NOT NULL,
            body TEXT NOT NULL,
            digest TEXT,
            PRIMARY KEY (judging, unit, judge, repeat)
        );
        CREATE INDEX judgments_failed ON judgments (judging, unit) WHERE reason IS NOT NULL;
        CREATE TABLE calls (
            no BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            key TEXT NOT NULL,
            run TEXT NOT NULL,
            judge TEXT NOT NULL,
            reply TEXT NOT NULL,
            finish TEXT NOT NULL,
            model TEXT NOT NULL,
            odds TEXT NOT NULL,
            sampling TEXT NOT NULL,
            input_tokens BIGINT,
            output_tokens BIGINT,
            cached_tokens BIGINT NOT NULL,
            cost BIGINT,
            input_most BIGINT,
            output_most BIGINT,
            claimed TEXT,
            digest TEXT NOT NULL,
            at TEXT NOT NULL,
            aside TEXT
        );
        CREATE UNIQUE INDEX calls_answering ON calls (key) WHERE aside IS NULL;
        CREATE UNIQUE INDEX calls_once ON calls (key, at, digest);
        CREATE INDEX calls_of_run ON calls (run, no);
        CREATE TABLE reservations (
            key TEXT NOT NULL,
            attempt TEXT NOT NULL,
            run TEXT NOT NULL,
            amount BIGINT NOT NULL,
            PRIMARY KEY (key, attempt)
        );
        CREATE INDEX reservations_of_run ON reservations (run);
        CREATE TABLE sendings (
            name TEXT PRIMARY KEY,
            account TEXT NOT NULL,
            at DOUBLE PRECISION NOT NULL,
            tokens BIGINT NOT NULL
        );
        CREATE INDEX sendings_of_account ON sendings (account, at);
        """,
    ),
    (
        "0002_stored_tokens",
        "ALTER TABLE calls ADD COLUMN stored_tokens BIGINT",
    ),
    (
        "0003_batches",
        """
        CREATE TABLE batches (
            name TEXT PRIMARY KEY,
            run TEXT NOT NULL,
            judge TEXT NOT NULL,
            place TEXT NOT NULL,
            ident TEXT NOT NULL,
            stage TEXT NOT NULL,
            status TEXT NOT NULL,
            schemas TEXT NOT NULL,
            created TEXT NOT NULL,
            ended TEXT
        );
        CREATE INDEX batches_of_run ON batches (run);
        CREATE TABLE batch_items (
            batch TEXT NOT NULL,
            line BIGINT NOT NULL,
            key TEXT NOT NULL,
            tokens BIGINT NOT NULL,
            schema BIGINT,
            sampling TEXT NOT NULL,
            state TEXT NOT NULL,
            detail TEXT,
            PRIMARY KEY (batch, line)
        );
        CREATE INDEX batch_items_by_key ON batch_items (key, batch)
        """,
    ),
    (
        "0004_reasoning",
        "ALTER TABLE calls ADD COLUMN reasoning TEXT",
    ),
)
