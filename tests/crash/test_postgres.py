"""kill -9 of a process that judges on a PostgreSQL server, and of the server's sessions meanwhile:
nothing recorded is lost, nothing is paid twice beyond what was in flight."""

from __future__ import annotations

import json
import random
from pathlib import Path

from tests.crash.watching import counts, ended, until
from tests.postgres import new_store_url, shared_server
from tests.provider import child
from tests.suites import at, evenhand, started, write_suite

UNITS, WIDTH = 120, 16
CUT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE application_name LIKE 'evenhand %'"
)


def replies(url: str) -> dict[object, object]:
    schema = url.partition("schema=")[2]
    there = shared_server().execute(f"SELECT to_regclass('{schema}.calls') IS NOT NULL")
    if there != [(True,)]:
        return {}
    rows = shared_server().execute(f"SELECT key, reply FROM {schema}.calls")
    return {key: text for key, text, *_ in rows}


def test_killed_and_cut_off_at_random_moments(tmp_path: Path, long: bool) -> None:
    store, chance, kills = new_store_url(), random.Random(7), 20 if long else 3
    recorded: dict[object, object] = {}
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
