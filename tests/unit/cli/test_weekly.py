"""The questions of every week, put to 240 samples judged two weeks in a row, each answer against a
computation of its own."""

from __future__ import annotations

import math
import re
import shlex
import statistics
from collections.abc import Iterable
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from rich.cells import cell_len
from scipy import stats

from tests.suites import pair_row, write_pairs
from tests.unit.cli.conftest import CallCommand
from tests.unit.cli.weekly import (
    Scored,
    by_question,
    judged_folder,
    mean,
    paired,
    samples,
)
from tests.unit.stats.twin import naive_difference

LAST, ROWS = samples(), samples(gain=1)
BY = ("--by", "prompt_variant", "--baseline", "v1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return judged_folder(tmp_path_factory.mktemp("weekly"), LAST, ROWS)


@pytest.fixture
def weeks(call: CallCommand, folder: Path, tmp_path: Path) -> None:
    copytree(folder, tmp_path, dirs_exist_ok=True)


def row_of(found: Any, dimension: str = "overall") -> Any:
    return next(row for row in found["rows"] if row["dimension"] == dimension)


def week_gaps(value: str) -> list[tuple[Scored, float]]:
    """Each sample of this week less the same of last week."""
    before = {row.id: row for row in LAST}
    return [(row, getattr(row, value) - getattr(before[row.id], value)) for row in ROWS]


def test_this_week_against_last_is_paired_by_unit(call: CallCommand, weeks: None) -> None:
    found = call("compare", "latest", "--against", "latest~1", "--json").json
    runs = [run["run"] for run in call("runs", "--json").json["runs"]]
    assert (found["run"], found["against"]) == (runs[0], runs[1])
    name = call("runs", "--json").json["runs"][0]["name"]
    assert found["baseline"] == f"{name} {runs[1][:6]}"
    assert row_of(found)["variant"] == f"{name} {runs[0][:6]}"
    for value in ("overall", "correct"):
        gaps, row = week_gaps(value), row_of(found, value)
        assert (row["n"], row["clusters"]) == (240, 10)
        assert row["difference"] == pytest.approx(mean([gap for _, gap in gaps]))
        questions = [[gap for row, gap in gaps if row.question == q] for q in range(10)]
        span = row["scale"][1] - row["scale"][0]
        assert row["p"] == pytest.approx(naive_difference(questions, span)[2])
        assert row["low"] <= row["difference"] <= row["high"]
    changed = sum(row != last for row, last in zip(ROWS, LAST, strict=True))
    told = f"{240 - changed} have the same texts, {changed} have others; 0 are only in"
    assert any(told in note for note in found["notes"])


def test_weeks_with_run_ids_of_their_own_are_paired_by_other_fields(
    call: CallCommand, tmp_path: Path
) -> None:
    weeks = [
        [row._replace(run_id=f"{row.run_id}-{week}") for row in rows]
        for week, rows in (("a", LAST), ("b", ROWS))
    ]
    judged_folder(tmp_path, *weeks)
    said = call("compare", "latest", "--against", "latest~1")
    assert said.code == 2 and "--pair-by" in said.err
    fields = "model,prompt_variant,eval_set_variant,question_id"
    found = call("compare", "latest", "--against", "latest~1", "--pair-by", fields, "--json").json
    assert row_of(found)["n"] == 80
    assert row_of(found)["difference"] == pytest.approx(
        mean([gap for _, gap in week_gaps("overall")])
    )
    one_model = call(
        *("compare", "latest", "--against", "latest~1", "--pair-by", fields),
        *("--where", f"model={ROWS[0].model}", "--json"),
    ).json
    gaps = [gap for row, gap in week_gaps("overall") if row.model == ROWS[0].model]
    assert row_of(one_model)["difference"] == pytest.approx(mean(gaps))
    assert row_of(one_model)["n"] < 80


@pytest.mark.parametrize("field", ["model", "eval_set"])
def test_the_difference_inside_each_value_and_between_them(
    call: CallCommand, weeks: None, field: str
) -> None:
    name = {"eval_set": "eval_set_variant"}.get(field, field)
    found = call("compare", *BY, "--within", name, "--json").json
    assert row_of(found)["n"] == 120
    within = found["within"]
    assert within["field"] == name
    gaps = list(paired(ROWS))
    values = tuple(dict.fromkeys(getattr(row, field) for row in ROWS))
    assert [block["value"] for block in within["blocks"]] == list(values)
    means = {}
    for block in within["blocks"]:
        own = [gap for gap in gaps if getattr(gap[0], field) == block["value"]]
        row = row_of(block)
        means[block["value"]] = mean([gap for *_, gap in own])
        assert (row["n"], block["units"]) == (60, 120)
        assert row["difference"] == pytest.approx(means[block["value"]])
        oracle = naive_difference(list(by_question(own).values()), 1.0)
        assert (row["low"], row["high"], row["p"]) == pytest.approx(oracle)
        assert block["missing"]["v1"]["units"] == 60
    test = next(test for test in within["between"] if test["dimension"] == "overall")
    assert test["differences"] == pytest.approx(means)
    assert test["gap"] == pytest.approx(means[values[1]] - means[values[0]])
    sides = [
        [
            mean([gap for row, _, gap in gaps if (row.question, getattr(row, field)) == (q, value)])
            for q in range(10)
        ]
        for value in values
    ]
    known = stats.ttest_rel(sides[1], sides[0])
    interval = known.confidence_interval(0.95)
    assert test["p"] == test["p_adjusted"] == pytest.approx(known.pvalue)
    assert (test["low"], test["high"]) == pytest.approx((interval.low, interval.high))
    assert (test["outcome"] == "differs") == (test["p"] <= 0.05)


def test_blocks_fit_the_terminal(
    call: CallCommand, weeks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = call("compare", *BY, "--within", "model")
    assert said.code == 0
    assert "v2 against v1, by model: big 120 units, small 120 units" in said.out
    assert max(map(cell_len, said.out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((*BY, "--within", "prompt_variant"), "what the variants differ in"),
        ((*BY, "--within", "modle"), 'Did you mean "model"'),
        ((*BY, "--within", "unit"), "240 blocks"),
        (("--against", "latest~1", "--by", "model"), "Leave them out"),
        (("--against", "latest~2"), "there are no 2 runs"),
    ],
)
def test_what_cannot_be_asked_is_told(
    call: CallCommand, weeks: None, arguments: tuple[str, ...], told: str
) -> None:
    said = call("compare", *arguments)
    assert said.code == 2 and told in said.err


def test_pairs_inside_each_value(call: CallCommand, tmp_path: Path) -> None:
    worths = {"a": (3, 1), "b": (1, 3)}
    rows = [
        pair_row(f"{area}{i}", *worths[area], meta={"area": area})
        for area in "ab"
        for i in range(6)
    ]
    write_pairs(tmp_path, rows)
    call("run")
    found = call("compare", "--baseline", "c1", "--within", "area", "--json").json
    differences = {b["value"]: row_of(b)["difference"] for b in found["within"]["blocks"]}
    assert differences == {"a": -1, "b": 1}
    test = next(test for test in found["within"]["between"] if test["dimension"] == "overall")
    assert (test["gap"], test["outcome"]) == (2, "differs")


def test_what_got_worse_most_is_shown_with_both_answers_and_reasons(
    call: CallCommand, weeks: None
) -> None:
    changed = call("compare", *BY, "--worst", "5", "--json").json["changed"]
    gaps = sorted(paired(ROWS), key=lambda pair: pair[2])
    assert changed["dimension"] == "overall"
    assert (changed["n"], changed["worse"], changed["better"]) == (
        120,
        sum(gap < 0 for *_, gap in gaps),
        sum(gap > 0 for *_, gap in gaps),
    )
    for name, oracle in (("worst", gaps[:5]), ("best", gaps[::-1][:5])):
        pairs = changed[name]
        assert [pair["difference"] for pair in pairs] == pytest.approx([gap for *_, gap in oracle])
        for pair in pairs:
            _check_pair(pair)


def _check_pair(pair: Any) -> None:
    """Both sides of a pair against the data they come from."""
    before = next(row for row in ROWS if row.id == pair["baseline"]["unit"])
    after = next(row for row in ROWS if row.id == pair["variant"]["unit"])
    assert (before.variant, after.variant) == ("v1", "v2") and before[1:5] == after[1:5]
    assert pair["difference"] == pytest.approx(after.overall - before.overall)
    assert pair["question"] == before.row["question"]
    assert pair["fields"]["question_id"] == f"q{before.question}"
    assert "prompt_variant" not in pair["fields"]
    for row, side in ((before, pair["baseline"]), (after, pair["variant"])):
        assert side["output"] == row.row["model_output"]
        assert side["scores"] == {"correct": row.correct, "clear": row.clear}
        assert side["reasons"][0] == {
            "judge": "python/judge:read",
            "about": "correct",
            "score": str(row.correct),
            "text": f"correct: {row.row['model_output']}",
        }


def test_the_worst_stand_side_by_side_on_the_terminal(
    call: CallCommand, weeks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = call("compare", *BY, "--worst", "2")
    lines = said.out.splitlines()
    assert max(map(cell_len, lines)) <= 80
    start = next(at for at, line in enumerate(lines) if line.startswith("worst 1: -"))
    assert lines[start + 1].startswith("Q What is ")
    assert lines[start + 2].startswith("v1: ") and " v2: " in lines[start + 2]
    assert "best 2: +" in said.out
    assert ", unit " in lines[start + 2]
    last = next(line for line in lines if line.startswith("All of one"))
    command = last.partition("evenhand ")[2]
    assert call(*shlex.split(command)).code == 0


def test_questions_that_got_worse_over_all_their_runs(call: CallCommand, weeks: None) -> None:
    """A coarser pairing asks about questions instead of units."""
    asked = ("--pair-by", "question_id", "--worst", "3", "--json")
    changed = call("compare", *BY, *asked).json["changed"]
    means = [mean(gaps) for gaps in by_question(list(paired(ROWS))).values()]
    worst = sorted(value for value in means if value < -1e-9)[:3]
    assert worst
    assert [pair["difference"] for pair in changed["worst"]] == pytest.approx(worst)
    assert {pair["variant"]["units"] for pair in changed["worst"]} == {12}


def test_what_changed_most_since_last_week(call: CallCommand, weeks: None) -> None:
    changed = call("compare", "--against", "latest~1", "--worst", "50", "--json").json["changed"]
    oracle = {row.id: gap for row, gap in week_gaps("overall") if gap}
    pairs = [*changed["worst"], *changed["best"]]
    assert {pair["variant"]["unit"]: pair["difference"] for pair in pairs} == pytest.approx(oracle)
    assert all(pair["variant"]["run"] != pair["baseline"]["run"] for pair in pairs)


def test_pairs_that_a_candidate_lost(call: CallCommand, tmp_path: Path) -> None:
    worths = [(3, 1), (1, 3), (2, 1), (2, 2)]
    write_pairs(tmp_path, [pair_row(f"q{i}", *worth) for i, worth in enumerate(worths)])
    call("run")
    found = call("compare", "--baseline", "c1", "--worst", "9", "--json").json
    changed = found["changed"]
    assert (changed["n"], changed["worse"], changed["better"]) == (4, 2, 1)
    assert {pair["variant"]["unit"] for pair in changed["worst"]} == {"q0", "q2"}
    (best,) = changed["best"]
    assert (best["difference"], best["baseline"]["output"]) == (1, "An answer worth 1.")
    assert best["variant"]["output"] == "A reply worth 3."
    assert best["variant"]["reasons"][0]["about"] == "winner"
    assert call("compare", "--baseline", "c1", "--worst", "9").code == 0


def test_a_report_lists_what_changed_most(call: CallCommand, weeks: None) -> None:
    call("report", "-o", "week.html", *BY)
    page = Path("week.html").read_text()
    section = page[page.index('<section id="changed">') : page.index('<section id="units">')]
    gaps = sorted(gap for *_, gap in paired(ROWS))
    shown = [float(value) for value in re.findall(r'data-difference="(.*?)"', section)]
    assert shown == pytest.approx([*gaps[:10], *gaps[-10:]])
    row = next(row for row, _, gap in paired(ROWS) if gap == gaps[0])
    assert row.row["model_output"] in section and f"correct: {row.row['model_output']}" in section
    assert '<div class="pairs">' in section


def stability_oracle(rows: list[Scored], value: str) -> dict[str, Any]:
    """Variances over run ids, by hand: of 40 cells on 10 questions under each variant."""
    cells: dict[tuple[Any, ...], list[float]] = {}
    for row in rows:
        key = (row.variant, row.question, row.model, row.eval_set)
        cells.setdefault(key, []).append(getattr(row, value))
    by_variant: dict[str, dict[int, list[float]]] = {"v1": {}, "v2": {}}
    for (variant, question, *_), values in cells.items():
        by_variant[variant].setdefault(question, []).append(statistics.variance(values))

    def ratio(questions: Iterable[int]) -> tuple[float, float]:
        pooled = [
            mean([v for q in questions for v in by_variant[name][q]]) for name in ("v1", "v2")
        ]
        return pooled[0], pooled[1]

    base, variance = ratio(range(10))
    # By how much each question moves the logarithm of the ratio, of ten that weigh alike.
    moves = [
        mean(by_variant["v2"][q]) / variance / 10 - mean(by_variant["v1"][q]) / base / 10
        for q in range(10)
    ]
    error = math.sqrt(10 / 9 * sum(move**2 for move in moves))
    reach = math.exp(stats.t.ppf(0.975, 9) * error)
    return {
        "sd": math.sqrt(variance),
        "baseline_sd": math.sqrt(base),
        "ratio": variance / base,
        "low": variance / base / reach,
        "high": variance / base * reach,
        "p": 2 * stats.t.sf(abs(math.log(variance / base)) / error, 9),
    }


def test_how_far_answers_waver_over_repeated_runs(call: CallCommand, weeks: None) -> None:
    stability = call("compare", *BY, "--stability", "run_id", "--json").json["stability"]
    assert (stability["field"], stability["baseline"]) == ("run_id", "v1")
    rows = {row["dimension"]: row for row in stability["rows"]}
    assert list(rows) == ["correct", "clear", "overall"]
    for name, row in rows.items():
        oracle = stability_oracle(ROWS, name)
        assert {key: row[key] for key in oracle} == pytest.approx(oracle)
        assert (row["n"], row["clusters"]) == (40, 10)
    # The two dimensions are one family.
    first, second = sorted((rows["correct"]["p"], rows["clear"]["p"]))
    assert rows["correct"]["p"] == first
    assert rows["correct"]["p_adjusted"] == pytest.approx(min(1, 2 * first))
    assert rows["clear"]["p_adjusted"] == pytest.approx(max(2 * first, second))
    assert rows["correct"]["outcome"] == "worse"
    turned = call(
        "compare", "--by", "prompt_variant", "--baseline", "v2", "--stability", "run_id", "--json"
    ).json["stability"]["rows"][0]
    assert (turned["outcome"], turned["ratio"]) == (
        "better",
        pytest.approx(1 / rows["correct"]["ratio"]),
    )


def test_stability_fits_the_terminal_and_says_what_it_needs(
    call: CallCommand, weeks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = call("compare", *BY, "--stability", "meta.run_id")
    assert max(map(cell_len, said.out.splitlines())) <= 80
    assert "over run_id overall: variance x " in " ".join(said.out.split())
    told = {
        ("prompt_variant",): "what the variants differ in",
        ("runid",): 'Did you mean "run_id"',
        ("question_id", "--where", "question_id=q1"): "under two values",
    }
    for (field, *more), message in told.items():
        refused = call("compare", *BY, "--stability", field, *more)
        assert refused.code == 2 and message in refused.err
    weekly = call("compare", "--against", "latest~1", "--stability", "run_id")
    assert weekly.code == 2 and "about one run" in weekly.err


def test_answers_that_never_vary_have_no_ratio(call: CallCommand, tmp_path: Path) -> None:
    steady = [row._replace(correct=3, clear=3) if row.variant == "v1" else row for row in samples()]
    judged_folder(tmp_path, steady)
    row = call("compare", *BY, "--stability", "run_id", "--json").json["stability"]["rows"][0]
    assert (row["baseline_sd"], row["ratio"], row["low"]) == (0, None, None)
    assert (row["p"], row["outcome"]) == (None, "not enough evidence")
    assert call("compare", *BY, "--stability", "run_id").code == 0
