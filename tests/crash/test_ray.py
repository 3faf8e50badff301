"""A run on a real Ray cluster of two nodes: actors, the driver and a node are killed, and there are
the same verdicts, no more money spent than there is, and nothing of keys, units and replies in what
Ray keeps."""

import json
import os
import random
import signal
from functools import partial

import pytest

from tests.crash.commands import Command, timeless
from tests.crash.ray_cluster import GUARDED, ray_cluster
from tests.crash.watching import counts
from tests.postgres import new_store_url, shared_server
from tests.provider import child
from tests.sentences import is_told
from tests.suites import (
    at,
    evenhand,
    evenhand_here,
    pair_row,
    samples,
    write_pairs,
    write_suite,
)
from tests.waiting import awaited

pytest.importorskip("ray", reason="Ray is not installed")

KEY, PASSWORD = "sk-planted-4fK9qZ", "pw-planted-7Hq2"
NODE = {"OPENAI_API_KEY": KEY, "PGPASSWORD": PASSWORD}
PLANTED_ANSWER = "Answer number"
PLANTED_REPLY = "rationale"


@pytest.fixture(scope="module")
def cluster():
    shared_server()  # leaves the tests out where there is none, before a cluster is started
    with ray_cluster(NODE | GUARDED) as started:
        yield started


def held_by_ray(folder, text):
    """The files of a cluster that hold a text."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [str(path) for path in files if text.encode() in path.read_bytes()]


def used(url):
    """What the calls of a store have cost or may cost, in dollars."""
    rows = shared_server().execute(
        f'SET search_path = "{url.partition("schema=")[2]}"',
        "SELECT (SELECT coalesce(sum(cost), 0) FROM calls)"
        " + (SELECT coalesce(sum(amount), 0) FROM reservations)",
    )
    return float(str(rows[0][0])) / 1e12


class Place:
    """A suite with a budget whose run is judged on the cluster."""

    def __init__(self, folder, provider, cluster, units):
        self.folder, self.provider, self.cluster, self.units = folder, provider, cluster, units
        self.url, self._number = new_store_url(), 0

    def write(self, budget, width):
        limits = {"concurrency": width, "budget_usd": budget}
        judge = at(self.provider, price={"input": 1, "output": 1})
        write_suite(self.folder, samples(self.units, 5000), judge, limits=limits)

    def run(self):
        self._number += 1
        arguments = ("run", "--json", "--store", self.url, "--workers", "2", "--ray")
        name, env = f"run{self._number}", NODE | GUARDED
        return Command(name, *arguments, self.cluster.address, cwd=self.folder, env=env)

    @property
    def calls(self):
        return int(counts(self.provider)["calls"])

    def await_calls(self, number):
        awaited(lambda: self.calls >= number, "some calls are sent")


def test_actors_and_the_driver_are_killed_and_no_more_is_spent_than_there_is(tmp_path, cluster):
    width, kills = 4, 0
    with child(delay=0.2) as provider:
        place = Place(tmp_path, provider, cluster, units=100)
        # A call costs 0.0011 of at most about 0.003.
        place.write("0.06", width)
        short = place.run()
        for _ in range(2):
            place.await_calls(place.calls + 6)
            os.kill(cluster.actors()[0], signal.SIGKILL)
            kills += 1
        assert short.ended() == 5 and "budget" in short.said, short.said
        assert is_told(short.said, "cluster.actor_died")
        assert 0.045 < used(place.url) <= 0.06
        assert place.calls * 0.0011 <= 0.06

        place.write("1", width)
        driver = place.run()
        place.await_calls(place.calls + 10)
        driver.kill()
        kills += 2
        stopped = place.run()
        place.await_calls(place.calls + 4)
        stopped.signal(signal.SIGINT)
        assert stopped.ended() == 130, stopped.said
        last = place.run()
        assert last.ended() == 0, last.said
        found = json.loads(last.printed)
        assert (found["planned"], found["verdicts"], found["pending"]) == (100, 100, 0)
        assert not found["failures"]
        assert len(counts(provider)["by_request"]) == 100
        assert place.calls <= 100 + kills * width // 2, "more was paid twice than was under way"
        assert used(place.url) <= 1
    verdict = evenhand_here("store", "verify", "--store", place.url, cwd=tmp_path)
    assert verdict.returncode == 0, verdict.stdout


def test_killed_at_random_moments(tmp_path, cluster, long):
    units, width = 60, 4
    for schedule in range(20 if long else 1):
        chance, allowed = random.Random(schedule), 0
        kills_node = schedule % 4 == 3
        with child(delay=0.2) as provider:
            folder = tmp_path / str(schedule)
            folder.mkdir()
            place = Place(folder, provider, cluster, units)
            place.write("1", width)
            run = place.run()
            for _ in range(chance.randint(1, 3)):
                place.await_calls(min(place.calls + chance.randint(1, 12), units - 8))
                if actors := cluster.actors():
                    os.kill(chance.choice(actors), signal.SIGKILL)
                    allowed += width // 2
            if kills_node:
                cluster.kill_second_node()
                allowed += width
            assert run.ended() == 0, run.said
            if kills_node:
                cluster.add_second_node()
            found, asked = json.loads(run.printed), counts(provider)["by_request"]
            twice = place.calls - units
            print(f"schedule {schedule}: {len(asked)} judged, {twice} paid twice of {allowed}")
            assert (found["verdicts"], found["pending"], len(asked)) == (units, 0, units)
            assert twice <= allowed, "more was paid twice than was under way"


def test_a_run_that_stops_when_it_is_decided_is_refused(tmp_path, cluster):
    tables = {"compare": {"baseline": "c1"}, "stop": {"until_decided": True}}
    rows = [pair_row(f"p{n}", 9, 2, topic=f"Topic {n}?") for n in range(3)]
    with child("by-number") as provider:
        write_pairs(tmp_path, rows, at(provider), **tables)
        arguments = ("run", "--store", new_store_url(), "--ray", cluster.address)
        run = Command("run", *arguments, cwd=tmp_path, env=NODE | GUARDED)
        assert run.ended() == 2 and "--to-the-end" in run.said
        assert not counts(provider)["by_request"]


def test_a_node_is_killed_and_the_run_goes_on_without_a_trace_in_ray(tmp_path, cluster):
    units, url = 60, new_store_url()
    with child(delay=0.05) as provider:
        write_suite(tmp_path, samples(units), at(provider), limits={"concurrency": 2})
        arguments = ("run", "--json", "--store", url, "--workers", "2")
        env = NODE | GUARDED
        run = Command("run", *arguments, "--ray", cluster.address, cwd=tmp_path, env=env)
        awaited(partial(lambda: counts(provider)["calls"] >= units // 4), "workers begin")
        cluster.kill_second_node()
        assert run.ended() == 0, run.said
        found = json.loads(run.printed)
        assert (found["planned"], found["verdicts"], found["pending"]) == (units, units, 0)
        assert len(counts(provider)["by_request"]) == units
        assert counts(provider)["calls"] <= units + 2
        alone = evenhand_here("run", "--json", cwd=tmp_path, env=NODE)
        assert json.loads(alone.stdout)["run"] == found["run"]
    pages = []
    for flags in ((), ("--store", url)):
        page = tmp_path / f"{len(pages)}.html"
        done = evenhand_here("report", "-o", str(page), *flags, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        pages.append(timeless(page))
    assert pages[0] == pages[1]
    assert (cluster.folder / "session_latest").exists()
    for planted in (KEY, PASSWORD, PLANTED_ANSWER, PLANTED_REPLY):
        assert held_by_ray(cluster.folder, planted) == []


def test_a_cluster_that_answers_strangers_is_refused(tmp_path, long):
    if not long:
        pytest.skip("a second cluster is started with --long alone")
    url = new_store_url()
    with child() as provider, ray_cluster(NODE | {"RAY_AUTH_MODE": "disabled"}) as open_cluster:
        write_suite(tmp_path, 4, at(provider))
        arguments = ("run", "--json", "--store", url, "--ray", open_cluster.address)
        refused = evenhand(*arguments, cwd=tmp_path, env=NODE)
        assert refused.returncode == 2 and is_told(refused.stderr, "cluster.no_token")
        allowed = evenhand(*arguments, "--allow-insecure-ray", cwd=tmp_path, env=NODE)
        assert allowed.returncode == 0, allowed.stderr
        assert json.loads(allowed.stdout)["verdicts"] == 4


def test_what_cannot_be_is_told_before_anything_is_begun(tmp_path):
    write_suite(tmp_path, 2)
    file = evenhand_here("run", "--ray", "auto", cwd=tmp_path)
    assert file.returncode == 2 and "PostgreSQL" in file.stderr
    alone = evenhand_here("run", "--workers", "2", cwd=tmp_path)
    assert alone.returncode == 2 and "--ray" in alone.stderr
    secret = "postgresql://judge:hidden-pw@127.0.0.1:9/x"
    unsafe = evenhand_here("run", "--store", secret, "--ray", "127.0.0.1:9", cwd=tmp_path)
    assert unsafe.returncode == 2 and "PGPASSWORD" in unsafe.stderr
    assert "hidden-pw" not in unsafe.stderr
