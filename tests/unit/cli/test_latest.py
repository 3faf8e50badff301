"""`latest` is the run judged last in this store: no import, and no run copied from elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

import evenhand
from tests.suites import evenhand_here, write_pairs
from tests.unit.cli.conftest import CallCommand, Said

VOTES = "unit,judge,first,second,winner\nq1,ann,x,y,first\nq2,ann,x,y,second\n"


def judged(call: CallCommand, folder: Path, count: int = 3) -> str:
    """Judge so many pairs, and return the id of the run."""
    write_pairs(folder, count, name="pairs")
    ran = call("run", "--json")
    assert ran.code == 0, ran.err
    return str(ran.json["run"])


def imported(call: CallCommand, folder: Path, name: str = "labels") -> str:
    (folder / f"{name}.csv").write_text(VOTES)
    came = call("import", f"{name}.csv", "--kind", "votes", "--json")
    assert came.code == 0, came.err
    return str(came.json["run"])


def copied(call: CallCommand, folder: Path, count: int = 5) -> str:
    """Copy the store of a colleague, with a run of the same name, and return the run's id."""
    other = folder / "colleague"
    other.mkdir()
    write_pairs(other, count, name="pairs")
    assert evenhand_here("run", cwd=other).returncode == 0
    copy = call("store", "copy", "sqlite:colleague/evenhand.db", "sqlite:evenhand.db", "--json")
    assert copy.code == 0, copy.err
    return str(call("runs", "--json").json["runs"][0]["run"])


def test_an_import_is_not_latest(call: CallCommand, tmp_path: Path) -> None:
    run = judged(call, tmp_path)
    labels = imported(call, tmp_path)
    assert call("show", "--json").json["run"] == run
    assert evenhand.open(store=f"sqlite:{tmp_path / 'evenhand.db'}").id == run
    assert call("show", "labels", "--json").json["run"] == labels


def test_a_copied_run_is_not_latest_until_it_is_judged_here(
    call: CallCommand, tmp_path: Path
) -> None:
    run = judged(call, tmp_path)
    theirs = copied(call, tmp_path)
    assert theirs != run
    assert call("show", "--json").json["run"] == run
    assert call("show", "pairs", "--json").json["run"] == run
    assert call("show", theirs, "--json").json["run"] == theirs
    assert call("store", "verify").code == 0
    assert judged(call, tmp_path, 5) == theirs
    assert call("show", "--json").json["run"] == theirs
    assert call("show", "latest~1", "--json").json["run"] == run


def test_the_run_before_latest_was_judged_here_too(call: CallCommand, tmp_path: Path) -> None:
    first = judged(call, tmp_path)
    copied(call, tmp_path)
    imported(call, tmp_path, "pairs")
    latest = judged(call, tmp_path, 4)
    assert call("show", "latest~1", "--json").json["run"] == first
    assert call("show", "pairs~1", "--json").json["run"] == first
    compared = call("compare", "latest", "--against", "latest~1", "--json").json
    assert (compared["run"], compared["against"]) == (latest, first)
    assert call("show", "latest~2").code == 2


@pytest.mark.parametrize("name", ["latest", "latest~1"])
def test_a_store_without_a_run_judged_here_lists_what_it_has(
    call: CallCommand, tmp_path: Path, name: str
) -> None:
    run = imported(call, tmp_path)
    told = call("show", name)
    assert told.code == 2
    assert "imported or copied" in told.err and f"{run} (labels)" in told.err
    with pytest.raises(evenhand.EvenhandError, match=run):
        evenhand.open(name, store=f"sqlite:{tmp_path / 'evenhand.db'}")
    assert call("leaderboard", "labels").code == 0


READING = {
    "show": [],
    "leaderboard": [],
    "compare": ["--by", "candidate"],
    "agreement": ["--against", "labels"],
    "gate": ["--max-failure-rate", "0.5"],
    "settle": [],
}


def first_line(said: Said, *, stderr: bool = False) -> str:
    assert said.code == 0, said.err
    return (said.err if stderr else said.out).splitlines()[0]


def test_the_first_line_of_what_reads_names_the_run(
    call: CallCommand, no_ci: None, tmp_path: Path
) -> None:
    run = judged(call, tmp_path)
    Path("labels.csv").write_text("pair_id,winner,annotator\np1,A,ann\np2,B,ann\np3,A,ann\n")
    assert call("import", "labels.csv", "--for", "latest").code == 0
    named = f"run {run}  pairs"
    for command, options in READING.items():
        begins = f"run {run} pairs against" if command == "agreement" else named
        assert first_line(call(command, "latest", *options)).startswith(begins), command
        assert call(command, "latest", *options, "--json").json["run"] == run, command
    assert first_line(call("show", "latest", "p1")) == named
    assert call("show", "latest", "p1", "--json").json["run"] == run
    assert first_line(call("report", "-o", "r.html"), stderr=True) == named
    assert first_line(call("export", "-o", "r.jsonl"), stderr=True) == named
    assert first_line(call("export", "-o", "-"), stderr=True) == named
