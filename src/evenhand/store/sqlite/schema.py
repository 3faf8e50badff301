"""The tables, as named migrations. Each is applied once, in one transaction with its name.

Texts, judgings and units are kept once, by content; a run names its judging and its units, and
judgments belong to a judging and a unit, so that runs share them. `digest` is a hash of what a row
holds. Money is whole picodollars (1 USD = 10^12), so that sums are exact. `calls.run` is the run
that paid; a run that finds the reply there pays nothing. Should two processes pay for one key at
the same time, both replies are kept and the first counts. `claimed` is the usage of a reply as the
provider tells it, where that cannot be true; `stored_tokens` are those that its cache took in,
`reasoning` is what a judge thought before it replied. `sendings` are the requests of the last
minute, for rates that hold across starts; `account` is a hash. A reply that --retry-failures set
`aside` is kept, and its cost, but it answers no more."""

from __future__ import annotations

APPLICATION = 0x45564E48
"""`EVNH` in the header of the file: by this a store is told from other programs' databases."""

MIGRATIONS: tuple[tuple[str, str], ...] = (
    (
        "0001_content",
        """
        CREATE TABLE texts (
            digest TEXT PRIMARY KEY,
            text TEXT NOT NULL
        );
        CREATE TABLE judgings (
            no INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            record TEXT NOT NULL
        );
        CREATE TABLE units (
            no INTEGER PRIMARY KEY,
            digest BLOB NOT NULL UNIQUE,
            id TEXT NOT NULL,
            body TEXT NOT NULL
        );
        CREATE INDEX units_by_id ON units (id);
        CREATE TABLE runs (
            no INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            name TEXT NOT NULL,
            judging INTEGER NOT NULL REFERENCES judgings(no),
            manifest TEXT NOT NULL,
            created TEXT NOT NULL,
            started TEXT NOT NULL,
            starts INTEGER NOT NULL UNIQUE
        );
        CREATE INDEX runs_by_name ON runs (name, starts);
        CREATE TABLE run_units (
            run INTEGER NOT NULL REFERENCES runs(no),
            position INTEGER NOT NULL,
            unit INTEGER NOT NULL REFERENCES units(no),
            PRIMARY KEY (run, position)
        ) WITHOUT ROWID;
        CREATE UNIQUE INDEX run_units_by_unit ON run_units (unit, run);
        CREATE TABLE judgments (
            judging INTEGER NOT NULL REFERENCES judgings(no),
            unit INTEGER NOT NULL REFERENCES units(no),
            judge INTEGER NOT NULL,
            repeat INTEGER NOT NULL,
            status TEXT NOT NULL,
            reason TEXT,
            calls INTEGER NOT NULL,
            reasks INTEGER NOT NULL,
            body TEXT NOT NULL,
            PRIMARY KEY (judging, unit, judge, repeat)
        ) WITHOUT ROWID;
        CREATE INDEX judgments_failed ON judgments (judging, unit) WHERE reason IS NOT NULL;
        CREATE TABLE calls (
            no INTEGER PRIMARY KEY,
            key TEXT NOT NULL,
            run TEXT NOT NULL,
            judge TEXT NOT NULL,
            reply TEXT NOT NULL,
            finish TEXT NOT NULL,
            model TEXT NOT NULL,
            odds TEXT NOT NULL,
            sampling TEXT NOT NULL,
            input_tokens INTEGER,
            output_tokens INTEGER,
            cached_tokens INTEGER NOT NULL,
            cost INTEGER,
            input_most INTEGER,
            output_most INTEGER,
            digest TEXT NOT NULL,
            at TEXT NOT NULL,
            aside TEXT
        );
        CREATE INDEX calls_by_key ON calls (key);
        CREATE INDEX calls_of_run ON calls (run);
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
    (
        "0002_claimed",
        "ALTER TABLE calls ADD COLUMN claimed TEXT",
    ),
    (
        "0003_sendings",
        """
        CREATE TABLE sendings (
            name TEXT PRIMARY KEY,
            account TEXT NOT NULL,
            at REAL NOT NULL,
            tokens INTEGER NOT NULL
        ) WITHOUT ROWID;
        """,
    ),
    (
        "0004_digests",
        """
        ALTER TABLE judgments ADD COLUMN digest TEXT;
        ALTER TABLE runs ADD COLUMN digest TEXT
        """,
    ),
    (
        "0005_stored_tokens",
        "ALTER TABLE calls ADD COLUMN stored_tokens INTEGER",
    ),
    (
        "0006_batches",
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
        ) WITHOUT ROWID;
        CREATE INDEX batches_of_run ON batches (run);
        CREATE TABLE batch_items (
            batch TEXT NOT NULL REFERENCES batches(name),
            line INTEGER NOT NULL,
            key TEXT NOT NULL,
            tokens INTEGER NOT NULL,
            schema INTEGER,
            sampling TEXT NOT NULL,
            state TEXT NOT NULL,
            detail TEXT,
            PRIMARY KEY (batch, line)
        ) WITHOUT ROWID;
        CREATE INDEX batch_items_by_key ON batch_items (key, batch)
        """,
    ),
    (
        "0007_reasoning",
        "ALTER TABLE calls ADD COLUMN reasoning TEXT",
    ),
)
