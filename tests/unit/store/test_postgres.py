"""A PostgreSQL store when its server goes away, comes back, refuses or is another one: every reply
is there once."""

import asyncio
import os
import re
from contextlib import closing

import pytest
from asyncpg import exceptions as pg

from evenhand.errors import StoreBusy, StoreError
from evenhand.store import postgres
from evenhand.store.address import read_address
from evenhand.store.ports import IncomingUnit
from evenhand.store.postgres import (
    PostgresSession,
    Server,
    postgres_store,
)
from evenhand.store.session import VERSION, escape_nul, restore_nul, to_postgres
from evenhand.store.verify import verify
from tests.cases import cases
from tests.contract.ledger_rows import call, key
from tests.contract.stores import begun
from tests.postgres import USER, new_store_url, own_server, shared_server
from tests.sentences import refused
from tests.waiting import PATIENCE

CUT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE application_name LIKE 'evenhand %' AND pid <> pg_backend_pid()"
)
"""End every session of ours."""


@pytest.fixture
def url():
    return new_store_url()


@pytest.fixture
def store(url):
    with closing(postgres_store(url)) as opened:
        yield opened


@pytest.fixture
def other(url):
    """The same store, opened once more."""
    with closing(postgres_store(url)) as opened:
        yield opened


def schema_of(url):
    return url.partition("schema=")[2]


def calls_in(server, url):
    rows = server.execute(f"SELECT key FROM {schema_of(url)}.calls ORDER BY key")
    return [str(name) for (name,) in rows]


# A server that goes away and comes back


async def test_sessions_that_are_ended_again_and_again_lose_and_double_nothing(url, store):
    server, number = shared_server(), 60
    async with store.ledger() as ledger:

        async def pay(place):
            assert await ledger.find(key(place)) is None
            await ledger.reserve("run1", key(place), "a", 9)
            await ledger.record(call(place), "a")

        paying = asyncio.gather(*(pay(place) for place in range(number)))
        cuts = 0
        while not paying.done() and cuts < 5:
            await asyncio.to_thread(server.execute, CUT)
            cuts += 1
        await paying
        assert cuts
        assert await ledger.find(key(0)) == call(0)
    assert calls_in(server, url) == [key(place) for place in range(number)]
    spent = store.archive.spent("run1")
    assert (spent.calls, spent.cost, spent.reserved) == (number, 5 * number, 0)


async def test_a_commit_whose_outcome_was_lost_is_made_once(url, store, monkeypatch):
    losses = 0
    do = PostgresSession._do

    async def commit_and_lose(self, work, is_repeatable):
        async def lose(connection):
            nonlocal losses
            result = await work(connection)
            if work.__name__ == "write" and not losses:
                losses += 1
                raise pg.ConnectionDoesNotExistError("closed in the middle of operation")
            return result

        return await do(self, lose, is_repeatable)

    monkeypatch.setattr(PostgresSession, "_do", commit_and_lose)
    async with store.ledger() as ledger:
        await asyncio.gather(*(ledger.record(call(place)) for place in range(3)))
    assert losses == 1
    assert calls_in(shared_server(), url) == [key(place) for place in range(3)]
    assert store.archive.spent("run1").cost == 15
    assert not any(row.aside for row in store.archive.calls([key(0)]).values())


async def test_a_server_that_crashes_and_is_started_anew_is_waited_for():
    server = own_server("full_page_writes=off")  # with fsync: what was confirmed must be there
    try:
        store = postgres_store(server.url("team"))
        async with store.ledger() as ledger:
            await ledger.record(call(1))
            await asyncio.to_thread(server.stop, "immediate")
            late = asyncio.gather(ledger.record(call(2)), ledger.find(key(1)))
            await asyncio.sleep(0.2)
            assert not late.done()
            await asyncio.to_thread(server.start)
            await late
        assert calls_in(server, server.url("team")) == [key(1), key(2)]
        assert store.archive.spent("run1").calls == 2  # the reader has another connection too
        store.close()
    finally:
        server.end()


async def test_a_standby_that_is_promoted_takes_over():
    server = own_server("wal_level=replica", "max_wal_senders=4", "hot_standby=on", "fsync=off")
    standby = server.standby()
    try:
        url = server.url("team").replace(
            f"127.0.0.1:{server.port}", f"127.0.0.1:{server.port},127.0.0.1:{standby.port}"
        )
        store = postgres_store(f"{url}&target_session_attrs=read-write")
        async with store.ledger() as ledger:
            await ledger.record(call(1))
            await asyncio.to_thread(standby.wait_for, server)
            await asyncio.to_thread(server.stop, "immediate")
            late = ledger.record(call(2))
            await asyncio.to_thread(standby.promote)
            await late
            assert await ledger.find(key(1)) == call(1)
        store.close()
        assert calls_in(standby, url) == [key(1), key(2)]
    finally:
        standby.end()
        server.end()


# A server that stays away, or refuses


@pytest.fixture
def impatient(monkeypatch):
    """A server is given up at once."""
    monkeypatch.setattr(postgres, "SERVER_AWAY_SECONDS", 0.0)


def refuse(url, code, message):
    """Have the server refuse every reply."""
    schema = schema_of(url)
    shared_server().execute(
        f"CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN RAISE EXCEPTION '{message}' USING ERRCODE='{code}'; END $$",
        f"CREATE TRIGGER refuse BEFORE INSERT ON {schema}.calls"
        f" FOR EACH ROW EXECUTE FUNCTION {schema}.refuse()",
    )


def allow(url):
    shared_server().execute(f"DROP FUNCTION {schema_of(url)}.refuse CASCADE")


@cases
@pytest.mark.usefixtures("impatient")
async def test_a_reply_that_cannot_be_written_is_told_and_nothing_follows_it(
    url, store, code, message
):
    async with store.ledger() as ledger:
        await ledger.record(call(1))
        await ledger.reserve("run1", key(2), "a", 9)
        refuse(url, code, message)
        with refused(StoreError, "store.cannot_write_server", re.escape(message)):
            await ledger.record(call(2), "a")
        allow(url)
        with refused(StoreError, "store.cannot_write_server"):
            await ledger.record(call(3))
    assert calls_in(shared_server(), url) == [key(1)]
    assert store.archive.spent("run1").reserved == 9  # it may be billed
    async with store.ledger() as ledger:
        await ledger.record(call(2), "a")
    assert verify(store.archive) == []


async def test_a_read_only_server_can_be_read(url, store):
    async with store.ledger() as ledger:
        scope = await begun(ledger, [IncomingUnit("u", "f:1", "{}")])
    reader = postgres_store(f"{url}&default_transaction_read_only=on", must_exist=True)
    assert [unit.id for unit in reader.archive.units(scope)] == ["u"]
    assert verify(reader.archive) == []
    with refused(StoreError, "store.read_only_server"):
        async with reader.ledger():
            pass
    reader.close()


# Several at once


async def test_of_two_who_pay_for_one_question_the_first_answers_and_both_count(store, other):
    async with store.ledger() as first, other.ledger() as second:
        await asyncio.gather(
            *(first.record(call(place, "run1", text="one")) for place in range(20)),
            *(second.record(call(place, "run2", text="two")) for place in reversed(range(20))),
        )
        for place in range(20):
            answers = [await ledger.find(key(place)) for ledger in (first, second)]
            assert answers[0] == answers[1] is not None
            kept = store.archive.calls([key(place)])[key(place)]
            assert (kept.call, kept.aside) == (answers[0], False)
    assert [store.archive.spent(run).cost for run in ("run1", "run2")] == [100, 100]
    assert verify(store.archive) == []


async def test_whoever_holds_a_run_is_named(store, other):
    async with store.ledger() as ledger, other.ledger() as beside, ledger.claim("run1"):
        with refused(StoreBusy, "store.busy_with", rf"\({os.getpid()}@"):
            async with beside.claim("run1"):
                pass


async def test_a_run_that_another_took_while_the_server_was_away_is_told(store, other):
    async with store.ledger() as ledger, other.ledger() as beside:
        scope = await begun(ledger, [IncomingUnit("u", "f:1", "{}")])
        [(number,)] = beside._writing.rows("SELECT pg_backend_pid()")
        async with ledger.claim(scope.run):
            shared_server().execute(f"{CUT} AND pid <> {number}")
            async with beside.claim(scope.run):
                with refused(StoreBusy, "store.busy"):
                    await ledger.record(call(1, run=scope.run))
        assert await ledger.find(key(1)) == call(1, run=scope.run)


async def test_runs_that_begin_at_the_same_moment_are_numbered_one_after_the_other(url, store):
    async def start(number):
        opened = postgres_store(url)
        try:
            async with opened.ledger() as ledger:
                units = [IncomingUnit(f"u{i}", f"f:{i}", "{}") for i in range(30)]
                return await begun(ledger, units[:: 1 if number % 2 else -1], f"name{number}")
        finally:
            await asyncio.to_thread(opened.close)

    await asyncio.gather(*map(start, range(6)))
    assert sorted(row.starts for row in store.archive.runs()) == [1, 2, 3, 4, 5, 6]
    assert verify(store.archive) == []


async def test_stores_that_are_made_at_the_same_moment_are_one(url):
    stores = await asyncio.gather(*(asyncio.to_thread(postgres_store, url) for _ in range(5)))
    for opened in stores:
        assert opened.archive.runs() == []
        opened.close()


# Texts, keys, statements


@pytest.mark.parametrize("text", ["", "a", "\0", "\x1a", "\x1aN", "\x1aS\0\x1a", "N\0S\x1aN\0"])
def test_every_text_comes_back(text):
    assert "\0" not in escape_nul(text)
    assert restore_nul(escape_nul(text)) == text


async def test_ids_of_any_length_and_with_any_character_are_found(store):
    ids = ["x" * 20_000, "x" * 20_001, "nul \0 and \x1a", "é" * 3_000]
    async with store.ledger() as ledger:
        units = [IncomingUnit(ident, "f:1", "{}") for ident in ids]
        scope = await begun(ledger, units, "n" * 9_000)
    assert [unit.id for unit in store.archive.units(scope)] == ids
    for ident in ids:
        [unit] = store.archive.units(scope, ident)
        assert unit.id == ident
    assert len(store.archive.runs("n" * 9_000)) == 1
    assert verify(store.archive) == []


async def test_a_reply_that_was_altered_answers_no_more_and_another_does(url, store):
    async with store.ledger() as ledger:
        await ledger.record(call(1))
        shared_server().execute(f"UPDATE {schema_of(url)}.calls SET reply='other'")
        assert await ledger.find(key(1)) is None
        await ledger.record(call(1, text="again"))
        assert await ledger.find(key(1)) == call(1, text="again")
    assert [one.key for one in verify(store.archive)] == ["store.altered_reply"]


async def test_lookups_of_one_turn_are_one_query(store, monkeypatch):
    queries = 0
    rows = PostgresSession.rows

    def counted(self, sql, values=None):
        nonlocal queries
        queries += 1
        return rows(self, sql, values)

    async with store.ledger() as ledger:
        await asyncio.gather(*(ledger.record(call(place)) for place in range(50)))
        monkeypatch.setattr(PostgresSession, "rows", counted)
        replies = await asyncio.gather(*(ledger.find(key(place)) for place in range(100)))
        assert [reply is not None for reply in replies] == [True] * 50 + [False] * 50
        assert queries == 1


async def test_a_store_of_another_version_is_refused(url, store):
    shared_server().execute(f"UPDATE {schema_of(url)}.store SET version={VERSION + 1}")
    with refused(StoreError, "store.other_version", f" {VERSION + 1},"):
        postgres_store(url)


async def test_a_commit_is_durable_whatever_the_user_is_used_to(url, store):
    for asked, kept in (("off", "on"), ("remote_apply", "remote_apply")):
        connection = await Server(read_address(f"{url}&synchronous_commit={asked}")).open()
        assert await connection.fetchval("SHOW synchronous_commit") == kept
        await connection.close()
    assert store.archive.runs() == []


def test_a_shared_statement_is_said_in_postgresqls_words():
    assert to_postgres("SELECT a FROM t CROSS JOIN u ON u.a=:x WHERE b=:y OR c=:x") == (
        "SELECT a FROM t JOIN u ON u.a=$1 WHERE b=$2 OR c=$1",
        ("x", "y"),
    )
    assert to_postgres("INSERT INTO t VALUES (?,?)")[0] == "INSERT INTO t VALUES ($1,$2)"
    listed = "IN (SELECT value FROM json_each(:a))"
    assert to_postgres(f"x {listed} AND y NOT {listed}")[0] == "x = ANY($1) AND y <> ALL($1)"


def test_a_server_that_does_not_run_is_told():
    with refused(StoreError, "store.cannot_connect"):
        postgres_store(f"postgresql://{USER}@127.0.0.1:9/x")


async def test_a_question_is_asked_by_one_process_at_a_time(store):
    async with store.ledger() as one, store.ledger() as two:
        first, second = one.questions, two.questions
        assert first is not None and second is not None
        assert await asyncio.gather(*(first.take(key(n)) for n in range(3))) == [True] * 3
        assert await first.take(key(0)) is False
        asked = await asyncio.gather(*(second.take(key(n)) for n in range(5)))
        assert asked == [False, False, False, True, True]
        first.give_back(key(1))
        async with asyncio.timeout(PATIENCE):
            while not await second.take(key(1)):
                await asyncio.sleep(0.01)
        assert await first.take(key(1)) is False


async def test_questions_stay_locked_on_a_new_connection_and_are_free_when_it_ends(
    store,
):
    async with store.ledger() as one:
        assert one.questions is not None
        async with store.ledger() as two:
            assert two.questions is not None and await two.questions.take(key(1))
            shared_server().execute(CUT)
            assert await two.questions.take(key(2))  # connects anew
            assert await one.questions.take(key(1)) is False
        assert await one.questions.take(key(1)) and await one.questions.take(key(2))


async def test_a_question_given_up_while_it_is_locked_is_free(store):
    async with store.ledger() as one, store.ledger() as two:
        assert one.questions is not None and two.questions is not None
        asking = asyncio.create_task(one.questions.take(key(1)))
        await asyncio.sleep(0)
        asking.cancel()
        async with asyncio.timeout(PATIENCE):
            while not await two.questions.take(key(1)):
                await asyncio.sleep(0.01)


async def test_a_lock_whose_release_is_not_answered_ends_with_its_connection(
    url, store, monkeypatch
):
    monkeypatch.setattr(postgres, "STATEMENT_SECONDS", 0.5)
    monkeypatch.setattr(postgres, "_UNLOCK", "SELECT pg_sleep(3) FROM unnest($1::bigint[])")
    server = Server(read_address(url))
    with closing(server.connect()) as one, closing(server.connect()) as two:
        assert one.try_locks(["a", "b"]) == {"a", "b"}
        one.unlock(["a"])
        async with asyncio.timeout(PATIENCE):
            while not two.try_locks(["a"]):
                await asyncio.sleep(0.01)
        one.rows("SELECT 1")  # connects anew, with the lock that it keeps
        assert two.try_locks(["b"]) == set()


async def test_a_statement_that_the_driver_refuses_is_told_at_once(url, store):
    with closing(Server(read_address(url)).connect(patience=2)) as session:
        before = session.rows("SELECT pg_backend_pid()")
        with pytest.raises(StoreError):
            session.rows("SELECT no FROM runs WHERE no=$1")  # it lacks a value
        assert session.rows("SELECT pg_backend_pid()") == before, "it was not the connection"
