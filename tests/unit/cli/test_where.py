"""`--where FIELD=VALUE` on every command that reads a run."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from tests.suites import pair_row, write_pairs, write_suite
from tests.unit.cli.conftest import CallCommand
from tests.unit.cli.weekly import (
    JUDGE,
    READ,
    by_question,
    judged_folder,
    mean,
    paired,
    samples,
)
from tests.unit.stats.twin import naive_difference

ROWS = samples()
BY = ("--by", "prompt_variant", "--baseline", "v1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return judged_folder(tmp_path_factory.mktemp("weekly"), ROWS)


@pytest.fixture
def run(call: CallCommand, folder: Path, tmp_path: Path) -> None:
    copytree(folder, tmp_path, dirs_exist_ok=True)


def overall(found: Any) -> Any:
    return next(row for row in found["rows"] if row["dimension"] == "overall")


def test_a_comparison_is_of_the_units_that_were_selected(call: CallCommand, run: None) -> None:
    found = call("compare", *BY, "--where", "model=big", "--json").json
    assert found["selected"] == {
        "where": {"model": ["big"]},
        "without": {},
        "units": 120,
        "of": 240,
    }
    pairs = list(paired([row for row in ROWS if row.model == "big"]))
    row = overall(found)
    assert row["n"] == len(pairs) == 60
    assert row["difference"] == pytest.approx(mean([gap for _, _, gap in pairs]))
    oracle = naive_difference(list(by_question(pairs).values()), 1.0)
    assert (row["low"], row["high"], row["p"]) == pytest.approx(oracle)
    assert found["missing"]["v1"]["units"] == 60
    whole = call("compare", *BY, "--json").json
    assert whole["selected"] is None and overall(whole)["n"] == 120


def test_several_fields_all_hold_and_of_one_field_any_value(call: CallCommand, run: None) -> None:
    chosen = ("--where", "model=big", "--where", "run_id=r1", "--where", "meta.run_id=r3")
    found = call("compare", *BY, *chosen, "--json").json
    assert found["selected"]["where"] == {"model": ["big"], "run_id": ["r1", "r3"]}
    rows = [row for row in ROWS if row.model == "big" and row.run_id in ("r1", "r3")]
    assert found["selected"]["units"] == len(rows) == 80
    assert overall(found)["mean"] == pytest.approx(
        mean([row.overall for row in rows if row.variant == "v2"])
    )


def test_without_leaves_units_out(call: CallCommand, run: None) -> None:
    chosen = ("--where", "model=big", "--without", "run_id=r1", "--without", "question_id=q3")
    found = call("compare", *BY, *chosen, "--json").json
    assert found["selected"]["without"] == {"run_id": ["r1"], "question_id": ["q3"]}
    rows = [
        row
        for row in ROWS
        if row.model == "big" and row.run_id != "r1" and row.row["meta"]["question_id"] != "q3"
    ]
    assert found["selected"]["units"] == len(rows) < 80
    assert overall(found)["mean"] == pytest.approx(
        mean([row.overall for row in rows if row.variant == "v2"])
    )
    alone = call("show", "--without", "model=big", "--json").json
    assert alone["selected"]["units"] == 120
    said = call("show", "--without", "model=big")
    assert said.answer.splitlines()[0] == "Only model != big: 120 of 240 units."


def test_without_names_what_is_there(call: CallCommand, run: None) -> None:
    unknown = call("show", "--without", "model=bigg")
    assert unknown.code == 2 and 'Did you mean "big"?' in unknown.err
    bare = call("show", "--without", "model")
    assert bare.code == 2 and '--without "model" names no field and value' in bare.err
    nothing = call("show", "--without", "model=big", "--without", "model=small")
    assert nothing.code == 2


def test_language_and_length_are_fields_too(call: CallCommand, run: None) -> None:
    found = call("compare", *BY, "--where", "language=en", "--json").json
    assert found["selected"]["units"] == 240
    refused = call("compare", *BY, "--where", "length=1")
    assert refused.code == 2 and 'has "1" as its length' in refused.err


def test_it_is_said_what_was_selected(call: CallCommand, run: None) -> None:
    said = call("compare", *BY, "--where", "model=big", "--where", "model=small")
    assert said.answer.splitlines()[0] == "Only model = big or small: 240 of 240 units."
    shown = call("show", "--where", "question_id=q3")
    assert shown.answer.splitlines()[0] == "Only question_id = q3: 24 of 240 units."
    assert "24 = 24 verdicts + 0 failures + 0 pending" in shown.out
    assert "q4" not in shown.out


def test_an_export_holds_the_selected_units_alone(call: CallCommand, run: None) -> None:
    said = call("export", "-o", "out.jsonl", "--where", "eval_set_variant=hard", "--full")
    assert "Only eval_set_variant = hard: 120 of 240 units." in said.err
    rows = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert {row["unit"] for row in rows} == {row.id for row in ROWS if row.eval_set == "hard"}
    call("export", "-o", "out.jsonl", "--where", "unit=r1/big/v1/hard/q0")
    (line,) = Path("out.jsonl").read_text().splitlines()
    assert json.loads(line)["meta"]["question_id"] == "q0"


def test_a_gate_holds_the_selected_units_to_its_conditions(call: CallCommand, run: None) -> None:
    limit = ("--variant", "v2", "--min-mean", "0.3", "--json")
    for model in ("big", "small"):
        gate = call("gate", *BY, *limit, "--where", f"model={model}").json
        rows = [row for row in ROWS if (row.model, row.variant) == (model, "v2")]
        assert gate["conditions"][0]["value"] == pytest.approx(mean([r.overall for r in rows]))
        assert gate["selected"]["units"] == 120
        assert gate["notes"][0] == f"Only model = {model}: 120 of 240 units."


def test_a_report_is_of_the_selected_units_and_says_so(call: CallCommand, run: None) -> None:
    said = call("report", "-o", "part.html", "--where", "model=small", "--language", "ru")
    assert said.code == 0 and "Only model = small: 120 of 240 units." in said.err
    page = Path("part.html").read_text()
    assert "Только model = small: 120 из 240 объектов." in page
    assert "r1/big/" not in page


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("modle=big", 'Did you mean "model"?'),
        ("topic=x", "There are: unit, run_id, model"),
        ("model=bigg", 'Did you mean "big"?'),
        ("model=other", 'There are: "big", "small"'),
        ("model", "FIELD=VALUE"),
        ("=big", "FIELD=VALUE"),
    ],
)
@pytest.mark.parametrize("command", ["compare", "show", "export", "gate", "agreement", "report"])
def test_a_name_that_is_not_there_is_told_with_those_that_are(
    call: CallCommand, run: None, command: str, where: str, told: str
) -> None:
    more = {"export": ["-o", "x.jsonl"], "gate": ["--min-mean", "0.5"]}.get(command, [])
    said = call(command, *more, "--where", where)
    assert said.code == 2 and told in said.err


def test_values_that_are_never_together_are_an_error(call: CallCommand, tmp_path: Path) -> None:
    rows = [row.row for row in ROWS if (row.model == "big") == (row.eval_set == "hard")]
    write_suite(tmp_path, rows, READ, judge=JUDGE)
    call("run")
    said = call("show", "--where", "model=big", "--where", "eval_set_variant=easy")
    assert said.code == 2 and "leave one out" in said.err


def test_an_empty_value_selects_units_that_do_not_say(call: CallCommand, tmp_path: Path) -> None:
    rows = [row.row for row in ROWS[:6]]
    for row in rows[:2]:
        row["meta"] = row["meta"] | {"region": "eu"}
    write_suite(tmp_path, rows, READ, judge=JUDGE)
    call("run")
    assert call("show", "--where", "region=", "--json").json["selected"]["units"] == 4
    assert call("show", "--where", "region=eu", "--json").json["verdicts"] == 2


@pytest.fixture
def pairs(call: CallCommand, tmp_path: Path) -> str:
    worths = {"a": (3, 1), "b": (1, 3)}
    rows = [
        pair_row(f"{area}{i}", *worths[area], 2, meta={"area": area})
        for area in worths
        for i in range(3)
    ]
    write_pairs(tmp_path, rows)
    identity: str = call("run", "--json").json["run"]
    return identity


def test_a_leaderboard_ranks_by_the_selected_pairs(call: CallCommand, pairs: str) -> None:
    board = call("leaderboard", "--where", "area=a", "--json").json
    assert board["selected"] == {"where": {"area": ["a"]}, "without": {}, "units": 9, "of": 18}
    assert {row["candidate"]: row["win_rate"] for row in board["rows"]} == {
        "c1": 1,
        "c3": 0.5,
        "c2": 0,
    }
    assert sorted(board["fronts"]) == ["a0", "a1", "a2"]
    duel = call("compare", "--where", "candidate=c1", "--where", "topic=b1", "--json").json
    assert duel["selected"]["units"] == 2


def test_agreement_is_over_the_selected_units_of_both_sides(
    call: CallCommand, tmp_path: Path, pairs: str
) -> None:
    labels = [
        f"{area}{i},ann,c{pair[0]},c{pair[2]},first"
        for area in "ab"
        for i in range(3)
        for pair in ("1-2", "1-3", "2-3")
    ]
    table = "\n".join(["unit,judge,first,second,winner", *labels])
    (tmp_path / "labels.csv").write_text(table)
    other = call("import", "labels.csv", "--kind", "votes", "--json").json["run"]
    agreed = call("agreement", pairs, "--against", other, "--where", "area=a", "--json").json
    assert agreed["units"] == {"matched": 9, "only_run": 0, "only_against": 0}
    # Of a topic of area a: c1 beats c2 and c3, and c3 beats c2.
    assert agreed["rows"][0]["agreement"]["value"] == pytest.approx(2 / 3)
