"""How often a judge was asked again is a figure of the run: the same in every summary, whichever
command sent the calls."""

from __future__ import annotations

from pathlib import Path

from tests.suites import JUDGE, write_pairs, write_suite
from tests.unit.cli.conftest import CallCommand
from tests.unit.web.serving import counts, served

BAD, SECOND = {"model": "python/judge:bad"}, {"model": "python/judge:second"}
ON_SECOND = """
async def second(messages, schema, params):
    "Keeps the contract when it is asked again."
    return reply(messages) if any(m["role"] == "assistant" for m in messages) else "{}"
"""


def test_reasks_are_counted_alike_by_every_command(call: CallCommand, tmp_path: Path) -> None:
    write_suite(tmp_path, 3, SECOND, BAD, judge=JUDGE + ON_SECOND)
    first = call("run", "--json").json
    assert (first["verdicts"], first["failures"]) == (3, {"schema": 3})
    assert (first["calls"], first["reasks"]) == (6 + 9, 3 + 6)
    again = call("run", "--json").json
    assert (again["calls"], again["reasks"]) == (0, 9)
    assert call("show", "--json").json["reasks"] == 9
    assert call("settle", first["run"], "--json").json["reasks"] == 9
    with served(tmp_path / "evenhand.db") as site:
        assert counts(site, "latest")["reasks"] == 9
    assert "from the ledger; 9 re-asks and $0 in all" in call("run").out


def test_reasks_are_those_of_the_units_that_a_command_is_about(
    call: CallCommand, tmp_path: Path
) -> None:
    write_pairs(tmp_path, 3, BAD)
    part = call("run", "--limit", "1", "--json").json
    assert (part["calls"], part["reasks"]) == (6, 4)
    whole = call("run", "--json").json
    assert (whole["calls"], whole["reasks"]) == (12, 12)
    assert call("show", "--json").json["reasks"] == 12
    assert call("run", "--limit", "1", "--json").json["reasks"] == 4
