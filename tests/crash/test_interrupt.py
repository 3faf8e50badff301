"""Ctrl-C: nothing new is sent, what is under way is waited for; a second one leaves at once."""

import signal

import pytest

from tests.crash.watching import counts, ended, kept, until
from tests.provider import child
from tests.sentences import is_told
from tests.suites import at, evenhand, started, write_suite


def interrupted(folder, url, number, *flags):
    """A run that hears a signal in its midst: its exit code, and what it says."""
    write_suite(folder, 200, at(url), limits={"concurrency": 8})
    process = started("run", *flags, cwd=folder)
    assert until(lambda: counts(url)["calls"] >= 20, process)
    process.send_signal(number)
    code, _, said = ended(process)
    assert code == 130
    return said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_drains_and_says_how_to_go_on(tmp_path, number):
    with child(delay=0.05) as url:
        said = interrupted(tmp_path, url, number)
        assert is_told(said, "cli.continue", command="evenhand run"), said
        sent = counts(url)
        assert sent["calls"] == sent["answered"] == len(kept(tmp_path)) < 200
        assert evenhand("run", cwd=tmp_path).returncode == 0
        assert counts(url)["calls"] == 200


def test_an_interrupt_promises_nothing_where_nothing_is_kept(tmp_path):
    with child(delay=0.05) as url:
        said = interrupted(tmp_path, url, signal.SIGINT, "--store", "sqlite::memory:")
    assert is_told(said, "cli.begin_again", command="evenhand run"), said
    assert not is_told(said, "cli.continue"), said


def test_a_second_interrupt_leaves_at_once(tmp_path):
    with child("never") as url:
        write_suite(tmp_path, 10, at(url), limits={"concurrency": 4})
        process = started("run", "--limit", "9", cwd=tmp_path)
        assert until(lambda: counts(url)["calls"] == 4, process)
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        while not is_told(line := process.stderr.readline(), "cli.stopping"):
            assert line, "it said nothing"
        process.send_signal(signal.SIGINT)
        code, _, said = ended(process)
    assert code == 130 and is_told(said, "cli.continue", command="evenhand run --limit 9"), said
    assert evenhand("store", "verify", cwd=tmp_path).returncode == 0
