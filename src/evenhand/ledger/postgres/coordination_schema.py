"""The tables and functions by which workers share a PostgreSQL store.

Everything is decided by `clock_timestamp()` of the server. A worker is alive until `workers.until`.
`walks` says how far the units of a run were handed out; `leases` holds those that are under way, or
were handed back, so that both stay small however large a run is. `retries` holds what had failed
when a run was opened and is to be tried again, `walks.retried` how far that was handed out.
`budgets.committed` bounds what a run has cost and may still cost without asking: it is counted anew
from the ledger before anything is refused. `pace_seconds` counts what an account was sent in each
second.
"""

from __future__ import annotations

PACE_SECONDS = 62
"""A request may be sent up to a second after its slot, and seconds are counted whole: what stands
in so many seconds is all that can have been sent within any 60."""

_TABLES = """
CREATE TABLE workers (
    id TEXT PRIMARY KEY,
    host TEXT NOT NULL,
    process BIGINT NOT NULL,
    run TEXT NOT NULL,
    note TEXT NOT NULL,
    began TIMESTAMPTZ NOT NULL,
    seen TIMESTAMPTZ NOT NULL,
    until TIMESTAMPTZ NOT NULL
);
CREATE TABLE open_runs (
    run TEXT PRIMARY KEY,
    number BIGINT NOT NULL,
    judging BIGINT NOT NULL,
    size BIGINT NOT NULL,
    unit_limit BIGINT,
    terms TEXT NOT NULL,
    opening BIGINT NOT NULL,
    opened TIMESTAMPTZ NOT NULL,
    stopped TEXT NOT NULL
);
CREATE TABLE walks (
    run TEXT NOT NULL,
    judge BIGINT NOT NULL,
    repeat BIGINT NOT NULL,
    position BIGINT NOT NULL,
    PRIMARY KEY (run, judge, repeat)
);
CREATE SEQUENCE fences;
CREATE TABLE leases (
    judging BIGINT NOT NULL,
    unit BIGINT NOT NULL,
    judge BIGINT NOT NULL,
    repeat BIGINT NOT NULL,
    fence BIGINT NOT NULL,
    worker TEXT,
    PRIMARY KEY (judging, unit, judge, repeat)
);
CREATE INDEX leases_of_worker ON leases (worker);
CREATE TABLE claims (
    key TEXT PRIMARY KEY,
    worker TEXT NOT NULL
);
CREATE INDEX claims_of_worker ON claims (worker);
CREATE TABLE budgets (
    run TEXT PRIMARY KEY,
    cap NUMERIC NOT NULL,
    unpriced NUMERIC NOT NULL,
    committed NUMERIC NOT NULL
);
CREATE TABLE allotments (
    run TEXT NOT NULL,
    worker TEXT NOT NULL,
    granted NUMERIC NOT NULL,
    spent NUMERIC NOT NULL,
    PRIMARY KEY (run, worker)
);
CREATE TABLE paces (
    account TEXT PRIMARY KEY,
    next TIMESTAMPTZ NOT NULL
);
CREATE TABLE pace_seconds (
    account TEXT NOT NULL,
    second BIGINT NOT NULL,
    requests BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    PRIMARY KEY (account, second)
);
CREATE TABLE shares (
    run TEXT NOT NULL,
    worker TEXT NOT NULL,
    work BIGINT[] NOT NULL,
    note TEXT NOT NULL,
    PRIMARY KEY (run, worker)
);
"""

_ALIVE = """
CREATE FUNCTION is_alive(p_worker TEXT) RETURNS BOOLEAN LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT 1 FROM workers WHERE id = p_worker AND until >= clock_timestamp())
$$;
"""

_BEAT = """
CREATE FUNCTION beat(
    p_worker TEXT, p_host TEXT, p_process BIGINT, p_run TEXT, p_note TEXT, p_seconds FLOAT8,
    p_work BIGINT[]
) RETURNS BOOLEAN LANGUAGE plpgsql AS $$
DECLARE
    was_alive BOOLEAN;
    now_ TIMESTAMPTZ;
BEGIN
    SELECT until >= clock_timestamp() INTO was_alive FROM workers WHERE id = p_worker FOR UPDATE;
    now_ := clock_timestamp();
    INSERT INTO workers
    VALUES (p_worker, p_host, p_process, p_run, p_note, now_, now_,
            now_ + make_interval(secs => p_seconds))
    ON CONFLICT (id) DO UPDATE
    SET run = excluded.run, note = excluded.note, seen = excluded.seen, until = excluded.until;
    IF p_run <> '' THEN
        INSERT INTO shares VALUES (p_run, p_worker, p_work, p_note)
        ON CONFLICT (run, worker) DO UPDATE SET work = excluded.work, note = excluded.note;
    END IF;
    RETURN coalesce(was_alive, FALSE);
END $$;
"""

_RETRIES = """
CREATE TABLE retries (
    run TEXT NOT NULL,
    judge BIGINT NOT NULL,
    repeat BIGINT NOT NULL,
    position BIGINT NOT NULL,
    unit BIGINT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (run, judge, repeat, position)
);
ALTER TABLE walks ADD COLUMN retried BIGINT NOT NULL DEFAULT 0;
DROP FUNCTION IF EXISTS lease_units(TEXT, TEXT, BIGINT, BIGINT, TEXT[], BIGINT);
"""

# Of each row another one is looked up by a query of its own, and tables are not joined: how to join
# them would be the server's choice, which it makes by what it has counted of them, long ago or
# never.
_LEASE = """
CREATE FUNCTION lease_units(
    p_run TEXT, p_worker TEXT, p_judge BIGINT, p_repeat BIGINT, p_again BOOLEAN, p_most BIGINT
) RETURNS TABLE (unit BIGINT, place BIGINT, fence BIGINT) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    course open_runs;
    walked BIGINT;
    parts BIGINT;
    ahead BIGINT;
    units BIGINT[];
    places BIGINT[];
BEGIN
    -- Who opens the run anew is waited for: by the limit of before nothing may be left.
    SELECT * INTO course FROM open_runs WHERE run = p_run AND stopped = '' FOR SHARE;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    RETURN QUERY
    WITH free AS MATERIALIZED (
        SELECT l.unit, m.position FROM leases l CROSS JOIN LATERAL (
            SELECT position FROM run_units WHERE run = course.number AND unit = l.unit OFFSET 0
        ) m
        WHERE l.judging = course.judging AND l.judge = p_judge AND l.repeat = p_repeat
        AND (l.worker IS NULL OR l.worker <> ALL(
            ARRAY(SELECT w.id FROM workers w WHERE w.until >= clock_timestamp())
        ))
        AND m.position <= coalesce(course.unit_limit, course.size)
        AND p_again = coalesce((
            SELECT TRUE FROM judgments j WHERE j.judging = course.judging AND j.unit = l.unit
            AND j.judge = p_judge AND j.repeat = p_repeat
        ), FALSE)
        ORDER BY m.position LIMIT p_most FOR UPDATE OF l SKIP LOCKED
    )
    UPDATE leases l SET worker = p_worker, fence = nextval('fences') FROM free
    WHERE l.judging = course.judging AND l.unit = free.unit AND l.judge = p_judge
    AND l.repeat = p_repeat
    RETURNING l.unit, free.position, l.fence;
    IF FOUND THEN
        RETURN;
    END IF;
    INSERT INTO walks VALUES (p_run, p_judge, p_repeat, 0) ON CONFLICT DO NOTHING;
    SELECT CASE WHEN p_again THEN retried ELSE position END INTO walked FROM walks
    WHERE run = p_run AND judge = p_judge AND repeat = p_repeat FOR UPDATE;
    -- Towards the end everybody takes less, so that nobody waits for the last page of another.
    SELECT 2 * greatest(1, count(*)) INTO parts FROM workers
    WHERE run = p_run AND until >= clock_timestamp();
    ahead := course.size - walked;
    IF p_again THEN
        SELECT count(*) INTO ahead FROM (
            SELECT 1 FROM retries WHERE run = p_run AND judge = p_judge AND repeat = p_repeat
            AND position > walked LIMIT parts * p_most
        ) next;
    END IF;
    LOOP
        IF p_again THEN
            SELECT array_agg(open.unit), array_agg(open.position) INTO units, places FROM (
                SELECT r.unit, r.position FROM retries r
                WHERE r.run = p_run AND r.judge = p_judge AND r.repeat = p_repeat
                AND r.position > walked
                -- One that was judged since, in another run of this judging, is not taken.
                AND r.reason = (
                    SELECT j.reason FROM judgments j WHERE j.judging = course.judging
                    AND j.unit = r.unit AND j.judge = p_judge AND j.repeat = p_repeat
                )
                ORDER BY r.position LIMIT least(p_most, greatest(1, ahead / parts))
            ) open;
        ELSE
            SELECT array_agg(open.unit), array_agg(open.position) INTO units, places FROM (
                SELECT m.unit, m.position FROM run_units m
                WHERE m.run = course.number AND m.position > walked
                AND m.position <= coalesce(course.unit_limit, course.size)
                AND (
                    SELECT TRUE FROM judgments j WHERE j.judging = course.judging
                    AND j.unit = m.unit AND j.judge = p_judge AND j.repeat = p_repeat
                ) IS NULL
                ORDER BY m.position LIMIT least(p_most, greatest(1, ahead / parts))
            ) open;
        END IF;
        EXIT WHEN places IS NULL;
        walked := places[array_upper(places, 1)];
        RETURN QUERY
        WITH page AS MATERIALIZED (SELECT * FROM unnest(units, places) AS p (unit, position)),
        fresh AS (
            INSERT INTO leases
            SELECT course.judging, p.unit, p_judge, p_repeat, nextval('fences'), p_worker
            FROM page p ORDER BY p.position
            ON CONFLICT DO NOTHING RETURNING leases.unit, leases.fence
        )
        SELECT fresh.unit, p.position, fresh.fence FROM fresh JOIN page p ON p.unit = fresh.unit;
        EXIT WHEN FOUND;
    END LOOP;
    IF places IS NULL THEN
        walked := course.size;
    END IF;
    UPDATE walks SET position = CASE WHEN p_again THEN position ELSE walked END,
        retried = CASE WHEN p_again THEN walked ELSE retried END
    WHERE run = p_run AND judge = p_judge AND repeat = p_repeat;
END $$;
"""

_ALLOT = """
CREATE FUNCTION allot(
    p_run TEXT, p_worker TEXT, p_granted NUMERIC, p_amount NUMERIC, p_spent NUMERIC
) RETURNS TEXT LANGUAGE plpgsql AS $$
DECLARE
    purse budgets;
    granted_ NUMERIC;
    elsewhere NUMERIC;
BEGIN
    PERFORM set_config('synchronous_commit', 'on', TRUE);
    SELECT * INTO purse FROM budgets WHERE run = p_run FOR UPDATE;
    UPDATE allotments SET spent = greatest(spent, p_spent)
    WHERE run = p_run AND worker = p_worker RETURNING granted INTO granted_;
    IF granted_ = p_granted + p_amount THEN
        RETURN 'granted';  -- asked again by a worker that did not hear the answer
    ELSIF coalesce(granted_, 0) <> p_granted THEN
        RETURN 'void';
    END IF;
    IF purse.committed + p_amount > purse.cap THEN
        -- Count anew: what those who died had taken and not reserved is free again.
        DELETE FROM allotments WHERE run = p_run AND worker <> p_worker AND NOT is_alive(worker);
        SELECT coalesce(sum(granted - spent), 0) INTO purse.committed
        FROM allotments WHERE run = p_run;
        purse.committed := purse.committed + purse.unpriced
            + (SELECT coalesce(sum(cost::NUMERIC), 0) FROM calls WHERE run = p_run)
            + (SELECT coalesce(sum(amount::NUMERIC), 0) FROM reservations WHERE run = p_run);
    END IF;
    IF p_amount <= 0 OR purse.committed + p_amount <= purse.cap THEN
        INSERT INTO allotments VALUES (p_run, p_worker, p_amount, 0)
        ON CONFLICT (run, worker) DO UPDATE SET granted = allotments.granted + p_amount;
        UPDATE budgets SET committed = purse.committed + p_amount WHERE run = p_run;
        RETURN 'granted';
    END IF;
    UPDATE budgets SET committed = purse.committed WHERE run = p_run;
    SELECT coalesce(sum(granted - spent), 0) INTO elsewhere
    FROM allotments WHERE run = p_run AND worker <> p_worker;
    RETURN CASE WHEN elsewhere > 0 THEN 'wait' ELSE 'exhausted' END;
END $$;
CREATE FUNCTION reserve_money(
    p_run TEXT, p_worker TEXT, p_keys TEXT[], p_attempts TEXT[], p_amounts BIGINT[]
) RETURNS BOOLEAN LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'on', TRUE);
    PERFORM 1 FROM allotments WHERE run = p_run AND worker = p_worker FOR SHARE;
    IF NOT FOUND THEN
        RETURN FALSE;
    END IF;
    INSERT INTO reservations (key, attempt, run, amount)
    SELECT k, a, p_run, m FROM unnest(p_keys, p_attempts, p_amounts) AS given (k, a, m)
    ON CONFLICT (key, attempt) DO NOTHING;
    RETURN TRUE;
END $$;
"""

_ADMIT = f"""
CREATE FUNCTION admit(
    p_account TEXT, p_requests BIGINT, p_tokens BIGINT, p_ahead FLOAT8, p_each BIGINT[]
) RETURNS TABLE (waits FLOAT8[], seconds BIGINT[], pause FLOAT8) LANGUAGE plpgsql AS $$
DECLARE
    slot FLOAT8;
    now_ FLOAT8;
    oldest BIGINT;
    requests_ NUMERIC;
    tokens_ NUMERIC;
    size BIGINT;
BEGIN
    INSERT INTO paces VALUES (p_account, clock_timestamp()) ON CONFLICT DO NOTHING;
    SELECT extract(epoch FROM next) INTO slot FROM paces WHERE account = p_account FOR UPDATE;
    now_ := extract(epoch FROM clock_timestamp());
    slot := greatest(slot, now_);
    waits := ARRAY[]::FLOAT8[];
    seconds := ARRAY[]::BIGINT[];
    pause := 0;
    DELETE FROM pace_seconds p WHERE p.account = p_account AND p.second < now_ - 2 * {PACE_SECONDS};
    FOREACH size IN ARRAY p_each LOOP
        IF p_requests IS NOT NULL AND slot > now_ + p_ahead THEN
            pause := slot - now_ - p_ahead;
            EXIT;
        END IF;
        SELECT min(p.second), coalesce(sum(p.requests), 0), coalesce(sum(p.tokens), 0)
        INTO oldest, requests_, tokens_ FROM pace_seconds p
        WHERE p.account = p_account AND p.second > floor(slot) - {PACE_SECONDS};
        IF requests_ + 1 > p_requests OR tokens_ + size > p_tokens THEN
            pause := greatest(0.05, coalesce(oldest, floor(slot)) + {PACE_SECONDS} - now_);
            EXIT;
        END IF;
        INSERT INTO pace_seconds VALUES (p_account, floor(slot), 1, size)
        ON CONFLICT (account, second) DO UPDATE
        SET requests = pace_seconds.requests + 1, tokens = pace_seconds.tokens + size;
        waits := waits || (slot - now_);
        seconds := seconds || floor(slot)::BIGINT;
        slot := slot + coalesce({PACE_SECONDS}::FLOAT8 / p_requests, 0);
    END LOOP;
    UPDATE paces SET next = to_timestamp(slot) WHERE account = p_account;
    RETURN NEXT;
END $$;
"""

MIGRATIONS: tuple[tuple[str, str], ...] = (
    ("coordination_0001", "".join((_TABLES, _ALIVE, _BEAT, _ALLOT, _ADMIT))),
    ("coordination_0002_retries", "".join((_RETRIES, _LEASE))),
)
