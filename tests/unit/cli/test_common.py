"""Options of every command that reads a run: which run is meant, which of its units, and answers as
wide as the terminal."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import evenhand
from tests.cases import cases, table_rows
from tests.sentences import is_told
from tests.suites import (
    TASK,
    ok_here,
    pair_row,
    stored,
    write_answers,
    write_pairs,
    write_rows,
    write_suite,
)
from tests.unit.cli.conftest import values
from tests.unit.cli.weekly import BY, JUDGE, READ, ROWS, by_question, mean, paired
from tests.unit.stats.twin import naive_difference

# `latest` is the run judged last in this store: no import, and no run copied from elsewhere

VOTES = [
    {"unit": unit, "judge": "ann", "first": "x", "second": "y", "winner": winner}
    for unit, winner in (("q1", "first"), ("q2", "second"))
]


def judged(call, count):
    """Judge so many pairs, and return the id of the run."""
    write_pairs(Path(), count, name="pairs")
    return call.run()


def copied(call):
    """Copy the store of a colleague, with a run of the same name, and return the run's id."""
    other = Path("colleague").absolute()
    write_pairs(other, 5, name="pairs")
    ok_here("run", cwd=other)
    call.json("store copy sqlite:colleague/evenhand.db sqlite:evenhand.db")
    return str(call.json("runs")["runs"][0]["run"])


def run_of(call, name):
    return str(call.json(f"show {name}")["run"])


def test_an_import_or_a_copy_is_not_latest_until_it_is_judged_here(call):
    first = judged(call, 3)
    theirs, labels = copied(call), call.take("votes", VOTES, "labels")
    call.take("votes", VOTES, "pairs")
    for name in ("latest", "pairs"):
        assert run_of(call, name) == first
    assert evenhand.open(store="sqlite:evenhand.db").id == first
    for run, name in ((labels, "labels"), (theirs, theirs)):
        assert run_of(call, name) == run
    second = judged(call, 4)
    assert {run_of(call, f"{name}~1") for name in ("latest", "pairs")} == {first}
    compared = call.json("compare latest --against latest~1")
    assert values(compared, "run against") == [second, first]
    call.refused("show latest~2")
    call.ok("store verify")
    assert judged(call, 5) == theirs
    assert [run_of(call, name) for name in ("latest", "latest~1")] == [theirs, second]


def test_a_store_without_a_run_judged_here_lists_what_it_has(call):
    run = call.take("votes", VOTES, "labels")
    for name in ("latest", "latest~1"):
        told = call.refused(f"show {name}")
        assert is_told(told, "runs.no_latest")
        assert f"{run} (labels)" in told
        with pytest.raises(evenhand.EvenhandError, match=run):
            evenhand.open(name, store="sqlite:evenhand.db")
    call.ok("leaderboard labels")


def test_the_first_line_of_what_reads_names_the_run(call, no_ci):
    run = judged(call, 3)
    Path("labels.csv").write_text("pair_id,winner,annotator\np1,A,ann\np2,B,ann\np3,A,ann\n")
    call.json("import labels.csv --for latest")
    for line in (
        *("show latest", "show latest p1", "leaderboard latest", "compare latest --by candidate"),
        *("agreement latest --against labels", "gate latest --max-failure-rate 0.5"),
        "settle latest",
    ):
        named = f"run {run} pairs against" if "agreement" in line else f"run {run}  pairs"
        assert call(line).out.startswith(named), line
        assert call.json(line)["run"] == run, line
    for line in ("report -o r.html", "export -o r.jsonl", "export -o -"):
        assert call(line).err.splitlines()[0] == f"run {run}  pairs"


# Selected units


def overall(found):
    return next(row for row in found["rows"] if row["dimension"] == "overall")


@cases
def test_a_comparison_is_of_the_units_that_were_selected(
    call, weeks, flags, where, without, number
):
    found = call.json(f"compare {BY} {flags}")
    units = {"where": where, "without": without, "units": number, "of": 240}
    assert found["selected"] == units
    rows = [
        row
        for row in ROWS
        for meta in [row.row["meta"] | {"language": "en"}]
        if all(meta[field] in values for field, values in where.items())
        and not any(meta[field] in values for field, values in without.items())
    ]
    pairs, row = list(paired(rows)), overall(found)
    assert row["n"] == len(pairs) == found["missing"]["v1"]["units"] == number / 2
    assert row["difference"] == pytest.approx(mean([gap for _, _, gap in pairs]))
    oracle = naive_difference(list(by_question(pairs).values()), 1.0)
    assert (row["low"], row["high"], row["p"]) == pytest.approx(oracle)


def test_every_command_is_of_the_selected_units_and_says_so(call, weeks):
    for flags, line in (
        ("--where model=big --where model=small", "model = big or small: 240"),
        ("--where question_id=q3", "question_id = q3: 24"),
        ("--without model=big", "model != big: 120"),
    ):
        shown = call(f"show {flags}")
        assert shown.answer.startswith(f"Only {line} of 240 units.\n")
    said = call("export -o out.jsonl --where eval_set_variant=hard --full")
    assert "Only eval_set_variant = hard: 120 of 240 units." in said.err
    units = {json.loads(line)["unit"] for line in Path("out.jsonl").read_text().splitlines()}
    assert units == {row.id for row in ROWS if row.eval_set == "hard"}
    call("export -o out.jsonl --where unit=r1/big/v1/hard/q0")
    (line,) = Path("out.jsonl").read_text().splitlines()
    assert json.loads(line)["meta"]["question_id"] == "q0"
    for model in ("big", "small"):
        flags = f"--variant v2 --min-mean 0.3 --where model={model}"
        gate = call.json(f"gate {BY} {flags}")
        rows = [row.overall for row in ROWS if (row.model, row.variant) == (model, "v2")]
        assert gate["conditions"][0]["value"] == pytest.approx(mean(rows))
        assert gate["selected"]["units"] == 120
        assert gate["notes"][0] == f"Only model = {model}: 120 of 240 units."


def test_a_name_that_is_not_there_is_told_with_those_that_are(call, weeks):
    lines = ("show", "compare", "export -o x.jsonl", "gate --min-mean 0.5", "agreement")
    for line in (*lines, "report -o x.html"):
        call.refused(f"{line} --where modle=big", says=['"model"?'])
    for text, key, told in table_rows(__file__, "conditions_that_select_nothing"):
        call.refused(f"show --where {text}", key=key, says=[told])
    call.refused("show --without model=bigg", says=['"big"?'])
    call.refused("show --without model", says=['--without "model"'])
    call.refused("show --without model=big --without model=small")


def test_values_may_be_empty_and_never_together(call):
    rows = [row.row for row in ROWS if (row.model == "big") == (row.eval_set == "hard")]
    for row in rows[:2]:
        row["meta"] = row["meta"] | {"region": "eu"}
    write_suite(Path(), rows, READ, judge=JUDGE)
    call.run()
    selected = call.json("show --where region=")["selected"]
    assert selected["units"] == len(rows) - 2
    assert call.json("show --where region=eu")["verdicts"] == 2
    flags = "--where model=big --where eval_set_variant=easy"
    call.refused(f"show {flags}", key="results.no_such_unit")


def test_pairs_are_selected_on_both_sides(call):
    worths = {"a": (3, 1), "b": (1, 3)}
    rows = [
        pair_row(f"{area}{i}", *worths[area], 2, meta={"area": area})
        for area in worths
        for i in range(3)
    ]
    write_pairs(Path(), rows)
    run = call.run()
    area = "--where area=a"
    board = call.json(f"leaderboard {area}")
    assert board["selected"] == {"where": {"area": ["a"]}, "without": {}, "units": 9, "of": 18}
    rates = {row["candidate"]: row["win_rate"] for row in board["rows"]}
    assert rates == {"c1": 1, "c3": 0.5, "c2": 0}
    assert sorted(board["fronts"]) == ["a0", "a1", "a2"]
    duel = call.json("compare --where candidate=c1 --where topic=b1")
    assert duel["selected"]["units"] == 2
    labels = [
        {"unit": row["pair_id"], "judge": "ann", "first": f"c{one}", "second": f"c{two}"}
        | {"winner": "first"}
        for row in rows
        for one, two in ("12", "13", "23")
    ]
    agreed = call.json(f"agreement {run} --against {call.take('votes', labels)} {area}")
    assert agreed["units"] == {"matched": 9, "only_run": 0, "only_against": 0}
    # Of a topic of area a: c1 beats c2 and c3, and c3 beats c2.
    assert agreed["rows"][0]["agreement"]["value"] == pytest.approx(2 / 3)


def test_answers_to_one_task_go_by_their_fields_in_every_command(call):
    rows = [
        {"task_name": "capital", "prompt": "Capital?", "answer": f"It is certain, {run}."}
        | {"rubric": TASK, "meta": {"run_id": run, "model": "m", "prompt_variant": variant}}
        for variant in ("v1", "v2")
        for run in ("r1", "r2", "r3")
    ]
    write_answers(Path(), rows)
    call.run()
    assert {row["n"] for row in call.json("compare")["rows"]} == {3}
    (judgment,) = call.json("show latest capital/r2/m/v2")["judgments"]
    assert judgment["unit"] == "capital/r2/m/v2"
    outputs = [(row["unit"], row["output"]) for row in stored(Path())]
    check = "check --protocol weighted --units answers.jsonl --replies r.jsonl"
    write_rows(Path(), [output for _, output in outputs], "r.jsonl")
    call.refused(check, code=3, says=['"capital": 6', '"unit"'])
    write_rows(Path(), [{"unit": unit} | output for unit, output in outputs], "r.jsonl")
    assert call.json(check)["ok"] == 6


# Tables that fit, with names that can be told apart

JUDGES = (
    *("openai/gpt-4.1-mini-2025-04-14", "openai/gpt-4.1-mini-2025-07-01", "openai/gpt-4.1"),
    "human/ann",
)
CANDIDATES = (
    "meta-llama/llama-3.3-70b-instruct-turbo-v1",
    "meta-llama/llama-3.3-70b-instruct-turbo-v2",
    "クエン三号大規模言語モデル",
)
VARIANTS = ("prompt-variant-long-name-one", "prompt-variant-long-name-two")
COMMANDS = {
    "votes": ("show rows", "leaderboard rows", "compare rows --worst 2"),
    "scores": (
        *("show rows", "compare rows --by prompt_variant --within part"),
        f"gate rows --by prompt_variant --baseline {VARIANTS[0]} --better",
    ),
}


def wide_rows(kind):
    chance = random.Random(3)
    if kind == "votes":
        return [
            {"unit": f"q{question}-{one}{two}", "judge": judge}
            | {"first": shown[0], "second": shown[1]}
            | {"winner": chance.choices([*shown, "tie"], [5, 3, 1])[0]}
            for question in range(6)
            for one, two in ((0, 1), (0, 2), (1, 2))
            for judge in JUDGES
            for shown in ([CANDIDATES[one], CANDIDATES[two]], [CANDIDATES[two], CANDIDATES[one]])
        ]
    dimensions = ("constraint_adherence", "helpfulness_and_creativity", "とても長い日本語の評価軸")
    return [
        {"unit": f"q{question}/{variant}", "question_id": f"q{question}", "judge": judge}
        | {"dimension": dimension, "score": chance.randint(1, 5), "prompt_variant": variant}
        | {"part": "one" if question < 6 else "two"}
        for question in range(12)
        for variant in VARIANTS
        for judge in JUDGES
        for dimension in dimensions
    ]


@pytest.mark.parametrize("kind", COMMANDS)
def test_tables_fit_and_names_that_begin_alike_are_told_apart(call, no_ci, kind):
    call.take(kind, wide_rows(kind))
    agreement = ("agreement rows", "agreement rows --against :human/ann")
    for command in (*COMMANDS[kind], *agreement):
        for width in (80, 120):
            call.narrow(width)
            said = call(command)
            lines = said.out.splitlines()
            assert len(lines) > 3 and said.width <= width, command
            assert all(line == line.rstrip() for line in lines), command
            # Names are put on several lines, never cut: so they can be told apart.
            assert "…" not in said.out, command
    if kind == "scores":  # one judge alone is told in a sentence what is needed
        call.take(kind, [row for row in wide_rows(kind) if row["judge"] == JUDGES[2]], "alone")
        lines = call("agreement alone").out.splitlines()
        assert is_told(lines[1], "agreement.matched_among", n=0, alone=24)
        assert not any("none" in line or "─" in line for line in lines)
