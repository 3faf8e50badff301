"""Several processes judge one run on a PostgreSQL store, and are killed, stopped, interrupted: no
judgment is lost, none is made twice, and no more is paid twice than was under way.

Real processes, a real server, a provider in a process of its own.
"""

from __future__ import annotations

import json
import random
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.crash.commands import Command, timeless
from tests.crash.watching import counts
from tests.postgres import new_store_url, shared_server
from tests.provider import child
from tests.suites import JUDGE, at, evenhand_here, samples, write_suite
from tests.waiting import awaited

UNITS, WIDTH = 24, 2
SOON = {"EVENHAND_LEASE_SECONDS": "2"}
"""How soon a worker that was killed is given up; on a busy machine one that was not may be, too."""


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    with child(delay=0.02) as url:
        yield url


class Place:
    """A suite whose run is judged on a store of its own."""

    def __init__(self, folder: Path, provider: str, start: int, units: int = UNITS) -> None:
        self.folder, self.provider, self.units = folder, provider, units
        self.url, self.env = new_store_url(), SOON
        self._schema = self.url.partition("schema=")[2]
        self._before, self._number = counts(provider), 0
        limits = {"concurrency": WIDTH, "budget_usd": "1"}
        price = {"input": 1, "output": 1}
        # Every place has questions of its own, which the provider tells apart.
        write_suite(folder, samples(units, start), at(provider, price=price), limits=limits)

    def command(self, *arguments: str) -> Command:
        self._number += 1
        name = f"{arguments[0]}{self._number}"
        return Command(name, *arguments, "--store", self.url, cwd=self.folder, env=self.env)

    def run(self) -> Command:
        return self.command("run", "--json")

    def worker(self, *options: str) -> Command:
        return self.command("worker", *options)

    @property
    def calls(self) -> int:
        """What the provider was sent since the place is there."""
        return int(counts(self.provider)["calls"] - self._before["calls"])

    @property
    def asked(self) -> int:
        """How many different questions that were."""
        return len(counts(self.provider)["by_request"]) - len(self._before["by_request"])

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return shared_server().execute(f'SET search_path = "{self._schema}"', sql)

    def number(self, what: str) -> int:
        return int(str(self.rows(f"SELECT count(*) FROM {what}")[0][0]))

    def replies(self) -> dict[str, str]:
        if not self.rows("SELECT to_regclass('calls')")[0][0]:
            return {}
        return dict(self.rows("SELECT key, reply FROM calls WHERE aside IS NULL"))  # type: ignore[arg-type]

    def complete(self, *, verified: bool = True) -> dict[str, Any]:
        """Run the same command to its end: everything is judged once, and all is well."""
        done = evenhand_here("run", "--json", "--store", self.url, cwd=self.folder, env=SOON)
        assert done.returncode == 0, done.stderr
        told: dict[str, Any] = json.loads(done.stdout)
        assert (told["planned"], told["verdicts"]) == (self.units, self.units)
        assert told["pending"] == 0 and not told["failures"]
        assert self.number("judgments") == self.units
        assert self.number("leases") == self.number("open_runs") == 0
        if verified:
            verdict = evenhand_here("store", "verify", "--store", self.url, cwd=self.folder)
            assert verdict.returncode == 0, verdict.stdout
        return told


def is_sent(place: Place, calls: int) -> bool:
    return place.calls >= calls


def test_killed_by_many_schedules(tmp_path: Path, provider: str, long: bool) -> None:
    """Four processes, of which one after the other is killed at a moment that chance chooses, and
    has a successor."""
    for number in range(200 if long else 20):
        place = Place(tmp_path / str(number), provider, 1000 * (number + 1))
        _killed(place, random.Random(number), verified=number % 10 == 0)


def _killed(place: Place, chance: random.Random, *, verified: bool) -> None:
    commands = [place.run()]
    awaited(partial(is_sent, place, 1), "the run begins")
    commands += [place.worker() for _ in range(3)]
    kills, replies = chance.randrange(1, 5), place.replies()
    for _ in range(kills):
        awaited(partial(is_sent, place, chance.randrange(place.units)), "some calls are sent")
        victim = chance.randrange(len(commands))
        commands.pop(victim).kill()
        now = place.replies()
        assert replies.items() <= now.items(), "a recorded reply is lost or altered"
        replies = now
        if chance.random() < 0.5:
            commands.append(place.worker())
    place.complete(verified=verified)
    for command in commands:
        command.kill()
    assert place.asked == place.units
    # A worker that the machine lets stand still is given up too; what it paid meanwhile is booked.
    late = place.rows("SELECT count(aside) FROM calls")[0][0]
    twice = place.calls - place.units - int(str(late))
    assert twice <= kills * WIDTH, "more was paid twice than was under way"
    assert replies.items() <= place.replies().items()


HOLDING = (
    JUDGE
    + """
import asyncio, os, pathlib

async def holding(messages, schema, params):
    if os.environ.get("HOLDS"):
        with pathlib.Path("began").open("a") as log:
            log.write(".")
        while not pathlib.Path("go").exists():
            await asyncio.sleep(0.01)
    return reply(messages)
"""
)


def test_a_worker_stopped_past_its_lease_is_fenced_and_its_calls_are_booked(
    tmp_path: Path, provider: str
) -> None:
    place = Place(tmp_path / "suite", provider, 400_000, units=2)
    judge = {"model": "python/judge:holding", "price": {"input": 1, "output": 1}}
    write_suite(place.folder, 2, judge, judge=HOLDING, limits={"concurrency": WIDTH})
    began = place.folder / "began"
    slow = Command(
        "slow",
        *("run", "--json", "--store", place.url),
        cwd=place.folder,
        env=SOON | {"HOLDS": "1"},
    )
    awaited(lambda: began.exists() and len(began.read_text()) == 2, "both calls are under way")
    slow.signal(signal.SIGSTOP)
    quick = place.worker("--run", "latest")
    assert quick.ended() == 0, quick.said
    assert (place.number("judgments"), place.number("calls")) == (2, 2)
    stamps = place.rows("SELECT unit, xmin::text FROM judgments ORDER BY unit")
    (place.folder / "go").touch()
    slow.signal(signal.SIGCONT)
    assert slow.ended() == 0, slow.said
    told = json.loads(slow.printed)
    assert (told["planned"], told["verdicts"], told["pending"]) == (2, 2, 0)
    # Its calls are booked beside those that answer; its judgments did not come in.
    assert place.rows("SELECT count(*), count(aside), count(cost) FROM calls") == [(4, 2, 4)]
    assert place.rows("SELECT unit, xmin::text FROM judgments ORDER BY unit") == stamps
    place.complete()


def test_ctrl_c_at_a_worker_and_at_the_run_hands_everything_back(
    tmp_path: Path, provider: str
) -> None:
    place = Place(tmp_path / "suite", provider, 500_000, units=200)
    run = place.run()
    awaited(partial(is_sent, place, 5), "the run begins")
    worker = place.worker("--run", "latest")
    awaited(lambda: place.number("workers") == 2, "a worker comes")
    worker.signal(signal.SIGINT)
    assert worker.ended() == 130, worker.said
    run.signal(signal.SIGINT)
    assert run.ended() == 130, run.said
    assert place.number("workers") == place.number("claims") == 0
    assert place.rows("SELECT count(*) FROM leases WHERE worker IS NOT NULL")[0][0] == 0
    assert place.number("open_runs") == 1, "whoever comes may go on"
    other = place.worker("--run", "latest")
    assert other.ended() == 0, other.said
    assert place.complete()["calls"] == 0
    assert (place.calls, place.asked) == (200, 200)


def test_a_worker_goes_on_after_its_driver_was_killed(tmp_path: Path, provider: str) -> None:
    place = Place(tmp_path / "suite", provider, 600_000, units=100)
    run = place.run()
    awaited(partial(is_sent, place, 5), "the run begins")
    run.kill()
    worker = place.worker("--run", "latest")
    assert worker.ended() == 0, worker.said
    assert place.complete()["calls"] == 0
    assert place.calls <= 100 + WIDTH


def test_two_runs_at_once_pay_a_question_once(tmp_path: Path, provider: str) -> None:
    places = [Place(tmp_path / name, provider, 700_000, units=60) for name in ("one", "two")]
    for place in places:
        place.url, place.env = places[0].url, {}
        suite = place.folder / "evenhand.toml"
        suite.write_text(suite.read_text().replace('"test"', f'"{place.folder.name}"', 1))
    runs = [place.run() for place in places]
    assert [run.ended() for run in runs] == [0, 0], [run.said for run in runs]
    told = [json.loads(run.printed) for run in runs]
    assert [summary["verdicts"] for summary in told] == [60, 60]
    assert places[0].calls == 60
    assert sum(summary["calls"] for summary in told) == 60


def test_the_budget_is_reached_by_all_together_and_everybody_is_told(
    tmp_path: Path, provider: str
) -> None:
    place = Place(tmp_path / "suite", provider, 800_000, units=100)
    suite = place.folder / "evenhand.toml"
    # A call costs 0.0011 of at most about 0.003.
    suite.write_text(suite.read_text().replace('"1"', '"0.05"'))
    commands = [place.run()]
    awaited(lambda: place.replies() != {}, "the run begins")
    commands += [place.worker("--run", "latest") for _ in range(3)]
    codes = [command.ended() for command in commands]
    assert codes[0] == 5 and "budget" in commands[0].said, commands[0].said
    assert set(codes[1:]) <= {0, 5}
    used = place.rows(
        "SELECT (SELECT coalesce(sum(cost), 0) FROM calls)"
        " + (SELECT coalesce(sum(amount), 0) FROM reservations)"
    )[0][0]
    assert 0.04 < float(str(used)) / 1e12 <= 0.05
    suite.write_text(suite.read_text().replace('"0.05"', '"1"'))
    place.complete()


def test_what_a_judge_of_another_machine_judges_is_left_to_others(
    tmp_path: Path, provider: str
) -> None:
    """Where its file is missing, or is another, a worker says so and judges the rest."""
    place = Place(tmp_path / "suite", provider, 900_000, units=6)
    both = [at(provider), {"model": "python/judge:holding"}]
    write_suite(place.folder, samples(6, 900_000), *both, judge=HOLDING)
    run = Command("held", "run", "--store", place.url, cwd=place.folder, env=SOON | {"HOLDS": "1"})
    awaited((place.folder / "began").exists, "the run begins")
    run.kill()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    arguments = ("worker", "--run", "latest", "--idle-exit", "3", "--store", place.url)
    worker = Command("worker", *arguments, cwd=elsewhere, env=SOON)
    assert worker.ended() == 0, worker.said
    assert "what python/judge:holding judges is left to others" in worker.said
    assert place.rows("SELECT judge, count(*) FROM judgments GROUP BY judge") == [(0, 6)]
    place.units = 12
    place.complete()


def test_a_worker_waits_for_its_run_to_be_opened_as_long_as_it_may_be_idle(
    tmp_path: Path, provider: str
) -> None:
    place = Place(tmp_path / "suite", provider, 930_000, units=4)
    place.complete()
    at_once = place.worker("--run", "latest")
    assert at_once.ended() == 0 and "is not open" in at_once.said
    waiting = place.worker("--run", "latest", "--idle-exit", "600")
    awaited(lambda: place.number("workers") > 0, "the worker is there")
    waiting.signal(signal.SIGTERM)
    assert waiting.ended() == 130 and "is not open" not in waiting.said


def test_every_way_gives_the_same_verdicts_and_the_same_report(
    tmp_path: Path, provider: str
) -> None:
    place = Place(tmp_path / "suite", provider, 950_000, units=30)
    file = evenhand_here("run", "--json", cwd=place.folder)
    assert file.returncode == 0, file.stderr
    run = place.run()
    awaited(lambda: place.replies() != {}, "the run begins")
    worker = place.worker("--run", "latest")
    assert (run.ended(), worker.ended()) == (0, 0), run.said + worker.said
    alone, together = json.loads(file.stdout), json.loads(run.printed)
    assert alone["run"] == together["run"]
    reports = []
    for flags in ((), ("--store", place.url)):
        page, table = (place.folder / f"{len(reports)}{end}" for end in (".html", ".jsonl"))
        for command in (("report", "-o", page), ("export", "--full", "-o", table)):
            done = evenhand_here(*map(str, command), *flags, cwd=place.folder)
            assert done.returncode == 0, done.stderr
        reports.append((timeless(page), table.read_bytes()))
    assert reports[0] == reports[1]


def test_a_run_that_stops_when_decided_is_judged_by_one_process(
    tmp_path: Path, provider: str
) -> None:
    place = Place(tmp_path / "suite", provider, 970_000, units=4)
    rows = [row | {"id": f"{name}-{row['id']}"} for name in "ab" for row in samples(4, 970_000)]
    for row in rows:
        row["meta"] = {"prompt_variant": row["id"][0], "question_id": row["id"][2:]}
    compare = {"by": "prompt_variant", "baseline": "a"}
    write_suite(place.folder, rows, at(provider), compare=compare, stop={"until_decided": True})
    done = evenhand_here("run", "--json", "--store", place.url, cwd=place.folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["decided"]
    assert place.number("open_runs") == 0, "workers have no part in it"
