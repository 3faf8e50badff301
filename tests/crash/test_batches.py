"""A command that judges by the batch dies, at every point that has a name: the next one goes on,
nothing recorded is lost, and nothing is paid for twice."""

import asyncio
import json

import pytest

from evenhand.store.batches import Batches
from tests.batch_provider import KEYS, BatchProvider, Faults
from tests.crash.watching import ended, kept
from tests.suites import evenhand, started, write_suite
from tests.unit.runs.test_batch import PRICE, asked, by_batch, missing, prefixed

UNITS = 12
NOTES = ("prepare", "attach", "take", "close_batch")
"""What is written down of a batch, in its order."""


class Killed(BaseException):
    """The end of a process, as its store sees it."""


def _dying(patch, note, moment):
    """Have the process die before or after something is noted of a batch, once."""
    write = getattr(Batches, note)

    async def dying(self, *words):
        patch.undo()
        if moment == "before":
            raise Killed
        await write(self, *words)
        raise Killed

    patch.setattr(Batches, note, dying)


@pytest.mark.parametrize("provider", ["openai", "anthropic", "google", "openrouter"])
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("note", NOTES)
async def test_dies_around_each_note(tmp_path, note, moment, provider, monkeypatch):
    async with BatchProvider() as server:
        write_suite(tmp_path, UNITS, server.judge(provider, price=PRICE))
        _dying(monkeypatch, note, moment)
        with pytest.raises(Killed):
            await by_batch(tmp_path)
        before = kept(tmp_path)
        done = await by_batch(tmp_path)
        again = await by_batch(tmp_path)
    assert before.items() <= kept(tmp_path).items()
    assert (done.counts.verdicts, done.counts.pending, done.spent.calls) == (UNITS, 0, UNITS)
    assert (server.paid.total(), set(server.paid.values())) == (UNITS, {1})
    assert len(server.batches) == 1
    assert (done.spent.reserved, again.tally.sent) == (0, 0)


COMMAND = ("run", "--batch", "--batch-then-live", "1")


async def killed_when_held(folder, server):
    """A real process and kill -9, while the provider holds its answer."""
    keys = "".join(f"{name}=sk-x-0123456789\n" for name in KEYS.values())
    (folder / ".env").write_text(keys)
    process = started(*COMMAND, cwd=folder)
    await asyncio.wait_for(server.held.wait(), 60)
    process.kill()
    await asyncio.to_thread(ended, process)


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize("point", ["upload", "create", "state", "download"])
async def test_killed_while_the_provider_holds_its_answer(tmp_path, provider, point):
    """A real process and kill -9."""
    if (provider, point) == ("anthropic", "upload"):
        pytest.skip("Anthropic takes no files")
    async with BatchProvider(faults=Faults(**{point: ["held"]})) as server:
        write_suite(tmp_path, UNITS, server.judge(provider, price=PRICE))
        await killed_when_held(tmp_path, server)
        before = kept(tmp_path)
        done = await asyncio.to_thread(evenhand, *COMMAND, "--json", cwd=tmp_path)
        verified = await asyncio.to_thread(evenhand, "store", "verify", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["planned"], told["verdicts"], told["pending"]) == (UNITS, UNITS, 0)
    assert before.items() <= kept(tmp_path).items()
    assert (server.paid.total(), set(server.paid.values()), server.live) == (UNITS, {1}, 0)
    assert len(server.batches) == 1
    assert verified.returncode == 0, verified.stdout


@pytest.mark.parametrize("point", ["state", "download"])
async def test_killed_beside_results_of_other_ids_nothing_is_paid_for_again(tmp_path, point):
    """A real process and kill -9; the one after it ends, and asks nothing."""
    strange = Faults(**{point: ["held"]}, lines=prefixed)
    async with BatchProvider(faults=strange) as server:
        write_suite(tmp_path, UNITS, server.judge("anthropic"))
        await killed_when_held(tmp_path, server)
        for _ in range(2):
            done = await asyncio.to_thread(evenhand, *COMMAND, cwd=tmp_path)
            assert done.returncode == 4, done.stderr
            assert "results.jsonl" in done.stderr
    assert asked(server) == UNITS


async def test_killed_after_a_part_was_recorded_the_rest_is_asked_live(tmp_path, monkeypatch):
    """What was answered proves that the batch is ours, and what it left is asked once."""
    monkeypatch.setattr("evenhand.engine.batch._RECORDED_AT_ONCE", UNITS // 2)
    async with BatchProvider(faults=Faults(lines=missing)) as server:
        write_suite(tmp_path, UNITS, server.judge("anthropic", price=PRICE))
        with monkeypatch.context() as patch:
            _dying(patch, "take", "after")
            with pytest.raises(Killed):
                await by_batch(tmp_path, then_live=1)
        done = await by_batch(tmp_path, then_live=1)
    assert (done.counts.verdicts, done.counts.pending) == (UNITS, 0)
    assert (server.live, len(server.batches), set(server.paid.values())) == (UNITS // 2, 1, {1})


async def test_ctrl_c_in_a_real_process_leaves_the_batch_and_says_how_to_go_on(
    tmp_path,
):
    import signal

    async with BatchProvider(faults=Faults(looks=10**6)) as server:
        write_suite(tmp_path, UNITS, server.judge("google"))
        process = started("run", "--batch", "--batch-then-live", "0", cwd=tmp_path)
        while not any(path.startswith("GET") for path in server.seen):
            await asyncio.sleep(0.01)
        process.send_signal(signal.SIGINT)
        code, _, told = await asyncio.to_thread(ended, process)
        server.faults.looks = 0
        done = await asyncio.to_thread(
            evenhand, "run", "--batch", "--batch-then-live", "0", "--json", cwd=tmp_path
        )
    assert code == 130, told
    assert "Batches at the provider: 1" in told and "To continue: evenhand run --batch" in told
    assert json.loads(done.stdout)["verdicts"] == UNITS
    assert len(server.batches) == 1
