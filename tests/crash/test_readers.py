"""Whoever reads a store while a run writes to it sees one state of it, and the run goes on."""

import json
import re
import subprocess
import sys

from evenhand.words import words
from tests.crash.watching import counts, ended, kept, until
from tests.provider import child
from tests.suites import at, evenhand, evenhand_here, started, write_suite

UNITS = 400


def test_exports_and_settles_during_a_run_see_one_state(tmp_path):
    with child(delay=0.02) as url:
        write_suite(tmp_path, UNITS, at(url), limits={"concurrency": 8})
        process = started("run", cwd=tmp_path)
        assert until(lambda: counts(url)["answered"] >= 40, process)
        shown = 0
        while process.poll() is None:
            shown = whole_export(tmp_path, at_least=shown)
            shown = whole_show(tmp_path, at_least=shown)
            # The run itself is held; what is settled from it by another rule is a run beside it.
            assert evenhand_here("settle", cwd=tmp_path).returncode in (0, 6)
            assert evenhand_here("store", "verify", cwd=tmp_path).returncode == 0
        code, _, message = ended(process)
        assert code == 0, message
        assert counts(url)["calls"] == UNITS == len(kept(tmp_path))
        assert whole_export(tmp_path, at_least=UNITS) == UNITS


def whole_export(folder, at_least):
    """How many verdicts an export holds: with what it says is pending, all that is planned."""
    outcome = evenhand_here("export", "latest", "-o", "out.jsonl", cwd=folder)
    assert outcome.returncode == 0, outcome.stderr
    rows = len((folder / "out.jsonl").read_text().splitlines())
    line = words("en")("cli.pending_not_written", n="([0-9]+)")
    pending = re.search(line, outcome.stderr)
    assert rows + (int(pending[1]) if pending else 0) == UNITS, outcome.stderr
    assert rows >= at_least
    return rows


def whole_show(folder, at_least):
    outcome = json.loads(evenhand_here("show", "latest", "--json", cwd=folder).stdout)
    assert outcome["verdicts"] + outcome["pending"] == UNITS
    assert outcome["verdicts"] >= at_least
    return int(outcome["verdicts"])


def test_a_reader_that_does_not_read_on_holds_no_state(tmp_path):
    """An export into a pipe that nobody empties: the log of a run beside it can begin anew."""
    write_suite(tmp_path, UNITS)
    assert evenhand("run", cwd=tmp_path).returncode == 0
    reader = started("export", "latest", "--full", "-o", "-", cwd=tmp_path)
    try:
        assert reader.stdout is not None
        assert reader.stdout.readline()
        assert until(lambda: is_free(tmp_path), reader)
    finally:
        reader.kill()
        ended(reader)


def is_free(folder):
    """Whether nobody reads an older state: then all of the log can be moved and dropped."""
    script = (
        "import sqlite3; c = sqlite3.connect('evenhand.db', timeout=0, isolation_level=None);"
        "c.execute('UPDATE runs SET starts=starts+1');"
        "print(c.execute('PRAGMA wal_checkpoint(TRUNCATE)').fetchone()[0])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=True
    )
    return answer.stdout == "0\n"
