"""A run on a real Ray cluster of two nodes, one of which is killed: the same verdicts, and
nothing of keys, units and replies in what Ray keeps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.crash.commands import Command, timeless
from tests.crash.ray_cluster import GUARDED, RayCluster, ray_cluster
from tests.crash.watching import counts
from tests.postgres import new_store_url, shared_server
from tests.provider import child
from tests.suites import at, evenhand, evenhand_here, samples, write_suite
from tests.waiting import awaited

pytest.importorskip("ray", reason="Ray is not installed")

KEY, PASSWORD = "sk-planted-4fK9qZ", "pw-planted-7Hq2"
NODE = {"OPENAI_API_KEY": KEY, "PGPASSWORD": PASSWORD, "EVENHAND_LEASE_SECONDS": "3"}
PLANTED_ANSWER = "Answer number"
PLANTED_REPLY = "rationale"


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    shared_server()  # leaves the tests out where there is none, before a cluster is started
    with ray_cluster(NODE | GUARDED) as started:
        yield started


def held_by_ray(folder: Path, text: str) -> list[str]:
    """The files of a cluster that hold a text."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [str(path) for path in files if text.encode() in path.read_bytes()]


def test_a_node_is_killed_and_the_run_goes_on_without_a_trace_in_ray(
    tmp_path: Path, cluster: RayCluster
) -> None:
    units, url = 60, new_store_url()
    with child(delay=0.05) as provider:
        write_suite(tmp_path, samples(units), at(provider), limits={"concurrency": 2})
        arguments = ("run", "--json", "--store", url, "--workers", "2")
        env = NODE | GUARDED
        run = Command("run", *arguments, "--ray", cluster.address, cwd=tmp_path, env=env)
        awaited(partial(lambda: counts(provider)["calls"] >= units // 4), "workers begin")
        cluster.kill_second_node()
        assert run.ended() == 0, run.said
        told = json.loads(run.printed)
        assert (told["planned"], told["verdicts"], told["pending"]) == (units, units, 0)
        assert len(counts(provider)["by_request"]) == units
        assert counts(provider)["calls"] <= units + 2
        alone = evenhand_here("run", "--json", cwd=tmp_path, env=NODE)
        assert json.loads(alone.stdout)["run"] == told["run"]
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


def test_a_cluster_that_answers_strangers_is_refused(tmp_path: Path, long: bool) -> None:
    if not long:
        pytest.skip("a second cluster is started with --long alone")
    url = new_store_url()
    with child() as provider, ray_cluster(NODE | {"RAY_AUTH_MODE": "disabled"}) as open_cluster:
        write_suite(tmp_path, 4, at(provider))
        arguments = ("run", "--json", "--store", url, "--ray", open_cluster.address)
        refused = evenhand(*arguments, cwd=tmp_path, env=NODE)
        assert refused.returncode == 2 and "without a token" in refused.stderr
        allowed = evenhand(*arguments, "--allow-insecure-ray", cwd=tmp_path, env=NODE)
        assert allowed.returncode == 0, allowed.stderr
        assert json.loads(allowed.stdout)["verdicts"] == 4


def test_what_cannot_be_is_told_before_anything_is_begun(tmp_path: Path) -> None:
    write_suite(tmp_path, 2)
    file = evenhand_here("run", "--ray", "auto", cwd=tmp_path)
    assert file.returncode == 2 and "PostgreSQL" in file.stderr
    alone = evenhand_here("run", "--workers", "2", cwd=tmp_path)
    assert alone.returncode == 2 and "--ray" in alone.stderr
    secret = "postgresql://judge:hidden-pw@127.0.0.1:9/x"
    told = evenhand_here("run", "--store", secret, "--ray", "127.0.0.1:9", cwd=tmp_path)
    assert told.returncode == 2 and "PGPASSWORD" in told.stderr
    assert "hidden-pw" not in told.stderr
