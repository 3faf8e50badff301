"""What options of `evenhand import` do together, and what they leave as it was."""

from __future__ import annotations

from pathlib import Path

from tests.unit.cli.conftest import CallCommand


def test_a_table_without_further_options_is_the_run_that_it_always_was(
    call: CallCommand, tmp_path: Path
) -> None:
    """The ids were computed before there were `--where`, `--failed`, `--join`, `--voters` and
    `--votes-from-scores`: a store made then is not called altered."""
    lines = ("unit,judge,first,second,winner", "q1,a,old,new,new", "q2,a,new,old,tie", "")
    (tmp_path / "votes.csv").write_text("\n".join(lines))
    command = ("import", "votes.csv", "--kind", "votes", "--json")
    assert call(*command).json["run"] == "4bdbbf772f3e"
    assert call(*command, "--on-conflict", "tie").json["run"] == "a7149d0be134"
    others = ("--where", "unit=q1"), ("--voters", "v")
    runs = {call(*command, *other).json["run"] for other in others}
    assert len(runs) == 2 and not runs & {"4bdbbf772f3e", "a7149d0be134"}
