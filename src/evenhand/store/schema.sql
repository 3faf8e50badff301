-- The tables of a store. SQLite runs this file as it is; for PostgreSQL `postgres.py` swaps the
-- names of types. Change it, and `VERSION` in `session.py` goes up by one.
--
-- Texts, judgings and units are kept once, by content; a run names its judging and its units, and
-- judgments belong to a judging and a unit, so that runs share them. `digest` is a hash of what a
-- row holds. Money is whole picodollars (1 USD = 10^12), so that sums are exact. Times are UTC.

CREATE TABLE store (
    version INTEGER NOT NULL             -- of this schema
);

-- Prompts and other files of protocols, by the hash of their content.
CREATE TABLE texts (
    digest TEXT PRIMARY KEY,
    text TEXT NOT NULL
);

-- Everything that can change a verdict, except the data: protocol, judges, seed, settings (JSON).
CREATE TABLE judgings (
    no INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    record TEXT NOT NULL
);

-- The names of a judging's judges; one for all the judges of a relay.
CREATE TABLE judges (
    judging INTEGER NOT NULL REFERENCES judgings(no),
    judge INTEGER NOT NULL,              -- its index
    name TEXT NOT NULL,
    PRIMARY KEY (judging, judge)
) WITHOUT ROWID;

-- What is judged: an id of the user's, and the unit as JSON.
CREATE TABLE units (
    no INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,         -- of id and body
    id TEXT NOT NULL,
    body TEXT NOT NULL,
    subject TEXT NOT NULL,               -- the first candidate of a pair, else empty
    opponent TEXT NOT NULL,
    fields TEXT NOT NULL                 -- every field by its name, JSON
);
CREATE INDEX units_by_id ON units (id);

CREATE TABLE runs (
    no INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    judging INTEGER NOT NULL REFERENCES judgings(no),
    manifest TEXT NOT NULL,              -- JSON
    created TEXT NOT NULL,
    started TEXT NOT NULL,               -- the last time
    starts INTEGER NOT NULL UNIQUE,      -- the run started last has the greatest
    digest TEXT                          -- of this row and the order of the run's units
);
CREATE INDEX runs_by_name ON runs (name, starts);

-- The units of a run, in their order.
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
    judge INTEGER NOT NULL,              -- its index in the judging
    repeat INTEGER NOT NULL,
    status TEXT NOT NULL,                -- verdict, failure or left_out
    reason TEXT,                         -- of a failure
    calls INTEGER NOT NULL,              -- how many it took
    reasks INTEGER NOT NULL,             -- how many of these asked again
    body TEXT NOT NULL,                  -- JSON
    observations TEXT NOT NULL,          -- what it says in numbers, JSON: see the view below
    digest TEXT NOT NULL,
    PRIMARY KEY (judging, unit, judge, repeat)
) WITHOUT ROWID;
CREATE INDEX judgments_failed ON judgments (judging, unit) WHERE reason IS NOT NULL;

-- Every reply, as it came. A key may have several: the first that was not set aside answers.
CREATE TABLE calls (
    no INTEGER PRIMARY KEY,
    key TEXT NOT NULL,                   -- a hash of all that can change the answer
    run TEXT NOT NULL,                   -- the id of the run that paid
    judge TEXT NOT NULL,
    reply TEXT NOT NULL,
    finish TEXT NOT NULL,
    model TEXT NOT NULL,                 -- as the provider named it
    odds TEXT NOT NULL,                  -- log-probabilities, JSON
    sampling TEXT NOT NULL,              -- what was sent of temperature and seed, JSON
    input_tokens INTEGER,
    output_tokens INTEGER,
    cached_tokens INTEGER NOT NULL,      -- of the input, read from the provider's cache
    cost INTEGER,                        -- NULL: no price was known
    input_bound INTEGER,                 -- the most tokens, where they are not fully counted
    output_bound INTEGER,
    implausible_usage TEXT,              -- a usage that cannot be true, as the provider told it
    cache_write_tokens INTEGER,          -- of the input, stored in the provider's cache
    reasoning TEXT,                      -- what the judge wrote before its reply
    seconds REAL,                        -- from the request to the whole reply
    digest TEXT NOT NULL,
    at TEXT NOT NULL,
    aside TEXT                           -- when --retry-failures set it aside: it answers no more
);
CREATE UNIQUE INDEX calls_by_key ON calls (key, digest);
CREATE INDEX calls_of_run ON calls (run, no);

-- Money held for calls that were sent and have no reply yet, or lost theirs: it counts as spent.
CREATE TABLE reservations (
    key TEXT NOT NULL,
    attempt TEXT NOT NULL,               -- the name of a batch, or one made up
    run TEXT NOT NULL,
    amount INTEGER NOT NULL,
    judge TEXT NOT NULL DEFAULT '',      -- of a call without a price, and its most tokens
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    origin TEXT NOT NULL DEFAULT '',     -- the store that it was copied from
    PRIMARY KEY (key, attempt)
) WITHOUT ROWID;
CREATE INDEX reservations_of_run ON reservations (run);

-- The requests of the last minute, for rates that hold across starts; `account` is a hash.
CREATE TABLE sent_requests (
    name TEXT PRIMARY KEY,
    account TEXT NOT NULL,
    at REAL NOT NULL,                    -- seconds since 1970
    tokens INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE batches (
    name TEXT PRIMARY KEY,
    run TEXT NOT NULL,
    judge TEXT NOT NULL,
    place TEXT NOT NULL,                 -- provider and address
    ident TEXT NOT NULL,                 -- the provider's id; empty: perhaps never made
    stage TEXT NOT NULL,                 -- prepared, waiting, ended or void
    status TEXT NOT NULL,                -- in the provider's word
    created TEXT NOT NULL,
    ended TEXT
) WITHOUT ROWID;
CREATE INDEX batches_of_run ON batches (run);

CREATE TABLE batch_items (
    batch TEXT NOT NULL REFERENCES batches(name),
    line INTEGER NOT NULL,
    key TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    sampling TEXT NOT NULL,
    state TEXT NOT NULL,                 -- open, answered, refused or unanswered
    detail TEXT,
    PRIMARY KEY (batch, line)
) WITHOUT ROWID;
CREATE INDEX batch_items_by_key ON batch_items (key, batch);

-- For people (docs/store.md): what judgments say in numbers, a row for each measure; votes from
-- both sides.
CREATE VIEW judged_values AS
SELECT r.id AS run, u.id AS unit, n.name AS judge, j.repeat AS repeat,
    CAST(o.value ->> 4 AS INTEGER) AS pass, CAST(o.value ->> 5 AS INTEGER) AS position,
    u.subject AS subject, u.opponent AS opponent, o.value ->> 0 AS measure,
    CAST(o.value ->> 1 AS REAL) AS value, CAST(o.value ->> 2 AS REAL) AS points,
    CAST(o.value ->> 3 AS REAL) AS max_points
FROM runs r
JOIN run_units m ON m.run = r.no
JOIN units u ON u.no = m.unit
JOIN judgments j ON j.judging = r.judging AND j.unit = m.unit
JOIN judges n ON n.judging = j.judging AND n.judge = j.judge
CROSS JOIN json_each(j.observations) o;

CREATE VIEW observations AS
SELECT * FROM judged_values
UNION ALL
SELECT run, unit, judge, repeat, pass, 3 - position, opponent, subject, measure,
    CASE measure WHEN 'uncertain' THEN value ELSE 1 - value END, points, max_points
FROM judged_values WHERE opponent <> '';

-- The fields of the units of each run: every column of the user's table, language and length, and
-- the type of a task, given or inferred.
CREATE VIEW unit_fields AS
SELECT r.id AS run, u.id AS unit, f.key AS field, f.value AS value
FROM runs r
JOIN run_units m ON m.run = r.no
JOIN units u ON u.no = m.unit
CROSS JOIN json_each(u.fields) f
UNION
SELECT run, unit, 'task_type', substr(measure, 11) FROM judged_values
WHERE measure LIKE 'task_type:%';
