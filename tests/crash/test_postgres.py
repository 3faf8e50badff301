"""kill -9 of a process that judges on a PostgreSQL server, and of the server's sessions meanwhile:
nothing recorded is lost, nothing is paid twice beyond what was in flight."""

import json
import random
import signal

from tests.crash.commands import Command
from tests.crash.watching import counts, ended, until
from tests.postgres import new_store_url, shared_server
from tests.provider import child
from tests.suites import at, evenhand, started, write_suite
from tests.waiting import awaited

UNITS, WIDTH = 120, 16
CUT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE application_name LIKE 'evenhand %'"
)
TRYING = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_try_advisory_lock(n)%'"


def replies(url):
    schema = url.partition("schema=")[2]
    there = shared_server().execute(f"SELECT to_regclass('{schema}.calls') IS NOT NULL")
    if there != [(True,)]:
        return {}
    rows = shared_server().execute(f"SELECT key, reply FROM {schema}.calls")
    return {key: text for key, text, *_ in rows}


def test_killed_and_cut_off_at_random_moments(tmp_path, long):
    store, chance, kills = new_store_url(), random.Random(7), 20 if long else 3
    recorded = {}
    allowed = 0
    with child(delay=0.01) as url:
        write_suite(tmp_path, UNITS, at(url), limits={"concurrency": WIDTH})
        for number in range(kills):
            moment = counts(url)["calls"] + chance.randrange(2 * UNITS // kills)
            process = started("run", "--json", "--store", store, cwd=tmp_path)
            if until(lambda moment=moment: counts(url)["calls"] >= moment, process):
                if number % 2:
                    shared_server().execute(CUT)
                else:
                    process.kill()
                    allowed += WIDTH
            ended(process)
            now = replies(store)
            assert recorded.items() <= now.items(), "a recorded reply is lost or altered"
            recorded = now
        done = evenhand("run", "--json", "--store", store, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["verdicts"] == UNITS
        seen = counts(url)
        assert len(seen["by_request"]) == len(replies(store)) == UNITS
        assert seen["calls"] - UNITS <= allowed
        assert evenhand("store", "verify", "--store", store, cwd=tmp_path).returncode == 0


def two_suites(folder, provider, store, units):
    """Suites of two names that ask the same questions."""
    folders = [folder / name for name in ("one", "two")]
    for path in folders:
        write_suite(path, units, at(provider), store={"url": store}, limits={"concurrency": 8})
        suite = path / "evenhand.toml"
        suite.write_text(suite.read_text().replace('"test"', f'"{path.name}"', 1))
    return folders


def test_two_runs_at_once_pay_a_question_once(tmp_path):
    with child(delay=0.02) as url:
        folders = two_suites(tmp_path, url, new_store_url(), 60)
        runs = [Command("run", "run", "--json", cwd=folder) for folder in folders]
        assert [run.ended() for run in runs] == [0, 0], [run.said for run in runs]
        told = [json.loads(run.printed) for run in runs]
        assert [summary["verdicts"] for summary in told] == [60, 60]
        assert counts(url)["calls"] == 60 == sum(summary["calls"] for summary in told)


def test_a_question_of_a_run_that_was_killed_is_asked_by_the_other(tmp_path):
    def is_waiting(process):
        sql = f"{TRYING} AND application_name LIKE 'evenhand {process}@%'"
        return shared_server().execute(sql) != [(0,)]

    with child(delay=2.0) as url:
        folders = two_suites(tmp_path, url, new_store_url(), 8)
        first = Command("run", "run", "--json", cwd=folders[0])
        awaited(lambda: counts(url)["calls"] == 8, "all questions are asked")
        first.signal(signal.SIGSTOP)
        second = Command("run", "run", "--json", cwd=folders[1])
        awaited(lambda: is_waiting(second.pid), "the second wants to ask")
        assert counts(url)["calls"] == 8
        first.kill()
        assert second.ended() == 0, second.said
        assert json.loads(second.printed)["verdicts"] == 8
        assert counts(url)["calls"] == 16
