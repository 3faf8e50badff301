"""`evenhand agreement`: what it takes, prints and refuses."""

from __future__ import annotations

import csv
import json
import unicodedata
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.suites import write_suite
from tests.unit.cli.conftest import CallCommand

Take = Callable[..., str]


@pytest.fixture
def take(call: CallCommand, tmp_path: Path) -> Take:
    """Imports rows; gives the id of the run."""

    def taken(kind: str, head: str, rows: Iterable[Iterable[Any]]) -> str:
        with (tmp_path / "rows.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([head.split(), *rows])
        found: str = call("import", "rows.csv", "--kind", kind, "--json").json["run"]
        return found

    return taken


@pytest.fixture
def judged(take: Take) -> str:
    """Two judges on sixty pairs of two candidates."""
    rows = [
        (f"q{k}", judge, "old", "new", ("old", "new", "tie")[(k * step) % 7 % 3], "xy"[k % 2])
        for k in range(60)
        for judge, step in (("a", 1), ("b", 2))
    ]
    return take("votes", "unit judge first second winner area", rows)


@pytest.fixture
def labelled(take: Take) -> str:
    rows = [
        (f"q{k}", "human/ann", "new", "old", ("old", "new", "tie")[k % 7 % 3])
        for k in range(0, 60, 2)
    ]
    return take("votes", "unit judge first second winner", rows)


def test_against_labels_as_json(call: CallCommand, judged: str, labelled: str) -> None:
    said = call("agreement", judged, "--against", labelled, "--by", "area", "--json")
    found = said.json
    assert said.code == 0
    assert (found["run"], found["against"], found["ties"]) == (judged, labelled, "keep")
    assert found["units"] == {"matched": 30, "only_run": 30, "only_against": 0}
    assert found["failures"] == {"run": 0, "against": 0}
    assert [(row["judge"], row["variant"], row["n"]) for row in found["rows"]] == [
        (None, None, 60),
        ("a", None, 30),
        ("b", None, 30),
        (None, "x", 60),
        (None, "y", 0),
    ]
    row = found["rows"][1]
    assert row["agreement"] == {
        "value": 1.0,
        "low": pytest.approx(0.87, abs=0.02),
        "high": 1.0,
        "n": 30,
        "why": "",
    }
    assert row["confusion"]["labels"] == ["new", "old", "tie"]
    names = {"candidate", "variant", "naive", "corrected", "low", "high", "labels", "judged"}
    assert names <= set(found["corrected"][0])
    assert {row["candidate"] for row in found["corrected"]} == {"new", "old"}


def test_the_same_store_gives_the_same_bytes(call: CallCommand, judged: str, labelled: str) -> None:
    asked = ("agreement", judged, "--against", labelled, "--by", "area", "--json")
    first = call(*asked).out
    assert first == call(*asked).out
    assert "NaN" not in first and "Infinity" not in first


def test_among_the_judges_of_a_run(call: CallCommand, judged: str) -> None:
    found = call("agreement", judged, "--json").json
    (row,) = found["rows"]
    assert (found["against"], row["judge"], row["other"], row["n"]) == (None, "a", "b", 60)


@pytest.mark.parametrize("name", [":b", "{}:b"])
def test_against_a_judge_of_the_same_run(call: CallCommand, judged: str, name: str) -> None:
    found = call("agreement", judged, "--against", name.format(judged), "--json").json
    assert found["against"] == f"{judged}:b"
    assert found["rows"][0]["n"] == 60
    assert found["rows"][0]["verdict"]


def test_a_judge_with_a_colon_in_its_name(call: CallCommand, take: Take) -> None:
    rows = [(f"q{k}", j, "x", "y", "x") for k in range(3) for j in ("v:1", "v:2")]
    run = take("votes", "unit judge first second winner", rows)
    found = call("agreement", run, "--against", f"{run[:6]}:v:1", "--json").json
    assert (found["against"], found["rows"][0]["n"]) == (f"{run}:v:1", 3)


def widest(text: str) -> int:
    wide = {"W": 2, "F": 2}
    return max(
        sum(wide.get(unicodedata.east_asian_width(c), 1) for c in line)
        for line in text.splitlines()
    )


def test_everything_fits_eighty_columns(
    call: CallCommand, judged: str, labelled: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = call("agreement", judged, "--against", labelled, "--by", "area")
    assert widest(said.out) <= 80
    for part in ("Cohen's kappa", "0.", "run \\ other", "corrected", "30 of 60"):
        assert part in said.out
    assert "30 units matched, 30 only in the run, 0 only in the other" in said.out


def test_scores_of_many_dimensions_with_wide_names_fit_too(
    call: CallCommand, take: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    names = ["事実の正確さと論理の一貫性", "полнота ответа на вопрос", "tone", "\x1b[31mred"]
    runs = [
        take(
            "scores",
            "unit judge dimension score",
            [(f"u{k}", who, d, (k * step) % 5 + 1) for k in range(30) for d in names],
        )
        for who, step in (("j", 1), ("人間", 3))
    ]
    said = call("agreement", runs[0], "--against", runs[1])
    assert said.code == 0
    assert widest(said.out) <= 80
    assert "\x1b[31m" not in said.out
    one = call("agreement", runs[0], "--against", runs[1], "--json").json
    assert [row["dimension"] for row in one["rows"]] == [*names, "overall"]


def test_the_own_run_of_a_suite_against_imported_labels(
    call: CallCommand, tmp_path: Path, take: Take
) -> None:
    write_suite(tmp_path, 4)
    run = call("run", "--json").json["run"]
    units = [row["unit"] for row in exported(call, run)]
    labels = take(
        "scores", "unit judge dimension score", [(u, "ann", "correct", 5) for u in units[:3]]
    )
    found = call("agreement", run, "--against", labels, "--json").json
    assert found["units"] == {"matched": 3, "only_run": 1, "only_against": 0}
    assert found["rows"][0]["bias"]["value"] == -2.0
    assert found["corrected"][0]["labels_alone"] == 5.0
    assert "only one side has: clear" in found["notes"]


def exported(call: CallCommand, run: str) -> list[dict[str, Any]]:
    call("export", run, "-o", "out.jsonl", "--full")
    return [json.loads(line) for line in Path("out.jsonl").read_text("utf-8").splitlines()]


def test_what_is_wrong_is_said_and_is_exit_2(
    call: CallCommand, take: Take, judged: str, labelled: str
) -> None:
    scores = take("scores", "unit judge dimension score", [("u", "j", "fit", 1)])
    for arguments, said in (
        (("--against", ":c"), 'no judge "c"'),
        (("--against", judged), "against itself"),
        (("--against", "ffffff"), "no run begins"),
        (("--against", scores), "of scores"),
        (("--against", labelled, "--by", "aera"), 'Did you mean "area"'),
        (("--judge", "z"), 'no judge "z"'),
        (("--majority",), "--against"),
        (("--level", "1"), "--level"),
    ):
        result = call("agreement", judged, *arguments)
        assert (result.code, result.out) == (2, ""), arguments
        assert said in result.err
    for arguments in (("--ties", "drop"), ("--on-conflict", "tie")):
        assert call("agreement", scores, *arguments).code == 2


def test_one_judge_and_no_repeat_is_words(call: CallCommand, labelled: str) -> None:
    said = call("agreement", labelled)
    assert said.code == 0
    assert "nothing to hold these judgments against: no unit was rated twice" in said.out
    assert "undefined" not in said.out
    assert "Note" not in said.out


def test_sides_without_a_unit_in_common_are_told_apart_by_their_ids(
    call: CallCommand, judged: str, take: Take
) -> None:
    other = take(
        "votes", "unit judge first second winner", [("elsewhere", "ann", "old", "new", "new")]
    )
    told = call("agreement", judged, "--against", other)
    assert (told.code, told.out) == (2, "")
    assert '"q0"' in told.err
    assert '"elsewhere"' in told.err
