"""`evenhand compare`, from a suite that was judged to the answer on the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

from tests.suites import pair_row, write_answers, write_pairs, write_suite
from tests.unit.cli.conftest import CallCommand

SCORES = """
import json, re
ANSWER = re.compile(r"\\[\\[(model_output [0-9a-f]+)\\]\\]\\n(.*?)\\n\\[\\[/\\1\\]\\]", re.DOTALL)

def scored(messages, wobble=0):
    text = ANSWER.search("\\n".join(m["content"] for m in messages))[2]
    correct, clear, tags = re.search(r"(\\d) (\\d) (\\w*)", text).groups()
    given = {"evidence": [text[:9]], "rationale": "fits"}
    scores = {"correct": given | {"score": int(correct)}, "clear": given | {"score": int(clear)}}
    return json.dumps({"scores": scores, "failure_tags": list(tags), "notes": ""})

async def read(messages, schema, params):
    return scored(messages)

async def flaky(messages, schema, params):
    reply = scored(messages)
    return "{}" if "broken" in str(messages) else reply
"""
READ = {"model": "python/judge:read"}


def unit(question: int, variant: str, correct: int, clear: int = 3, **more: Any) -> dict[str, Any]:
    meta = {"prompt_variant": variant, "question_id": f"q{question}", **more.get("meta", {})}
    text = f"Answered: {correct} {clear} {more.get('tags', '')} {more.get('said', '')}"
    return {"meta": meta, "question": f"Question {question}?", "model_output": text}


@pytest.fixture
def run(call: CallCommand, tmp_path: Path) -> str:
    """Twenty questions under two prompts: v2 is more correct, and as clear."""
    units = [unit(q, "v1", 1 if q % 4 else 3, 3 if q % 3 else 5) for q in range(20)]
    units += [unit(q, "v2", 5 if q % 5 else 3, 3 if q % 3 else 5) for q in range(20)]
    write_suite(tmp_path, units, READ, judge=SCORES, seed=3)
    found: str = call("run", "--json").json["run"]
    return found


def test_the_answer_comes_first_and_fits_the_terminal(
    call: CallCommand, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = call("compare", run, "--by", "prompt_variant", "--baseline", "v1")
    assert (said.code, said.err) == (0, "")
    lines = said.answer.splitlines()
    assert lines[0].startswith("v2 is better than v1 overall: 0.")
    sentence = " ".join(" ".join(lines[:4]).split())
    assert " -> 0." in sentence and " of 1 (+0." in sentence
    assert "; better on 19 of 20 questions, worse on 0. Better on correct (+" in sentence
    assert "Not enough evidence on clear (+0.00 [" in sentence
    assert "All 40 judgments have a score." in said.out
    assert " p (Holm) " in said.out
    assert max(map(cell_len, lines)) <= 80


def test_json_has_the_rows_of_the_contract(call: CallCommand, run: str) -> None:
    said = call("compare", "--by", "prompt_variant", "--baseline", "v1", "--json")
    found = said.json
    assert (found["run"], found["by"], found["baseline"]) == (run, "prompt_variant", "v1")
    pinned = (
        "dimension variant n mean baseline_mean difference low high p p_adjusted effect outcome"
    )
    assert all(set(pinned.split()) <= set(row) for row in found["rows"])
    rows = {row["dimension"]: row for row in found["rows"]}
    assert list(rows) == ["correct", "clear", "overall"]
    assert rows["correct"]["n"] == 20
    assert rows["correct"]["mean"] == pytest.approx((16 * 5 + 4 * 3) / 20)
    assert rows["correct"]["baseline_mean"] == pytest.approx((15 * 1 + 5 * 3) / 20)
    assert (rows["correct"]["outcome"], rows["clear"]["outcome"]) == (
        "better",
        "not enough evidence",
    )
    assert rows["overall"]["difference"] == pytest.approx(rows["correct"]["difference"] / 8)
    assert call("compare", "--by", "prompt_variant", "--baseline", "v1", "--json").out == said.out


def test_the_suite_names_the_question_and_flags_beat_it(call: CallCommand, tmp_path: Path) -> None:
    units = [
        unit(q, v, 1 + 2 * (v == "v2"), meta={"model": m})
        for q in range(6)
        for v in ("v1", "v2")
        for m in ("big", "small")
    ]
    compare = {"by": ["prompt_variant"], "baseline": "v2"}
    write_suite(tmp_path, units, READ, judge=SCORES, compare=compare)
    call("run")
    found = call("compare", "--json").json
    assert (found["by"], found["baseline"]) == ("prompt_variant", "v2")
    assert (found["rows"][0]["variant"], found["rows"][0]["difference"]) == ("v1", -2)
    for same in ("prompt_variant", "meta.prompt_variant"):
        again = call("compare", "--by", same, "--json").json
        assert (again["baseline"], again["rows"]) == ("v2", found["rows"])
    # A baseline of the suite belongs to the suite's field.
    other = call("compare", "--by", "model", "--json").json
    assert (other["by"], other["baseline"]) == ("model", "big")
    assert any("No baseline was named" in note for note in other["notes"])
    both = call(
        "compare", "--by", "model,prompt_variant", "--baseline", "small / v1", "--json"
    ).json
    assert {row["variant"] for row in both["rows"]} == {"big / v1", "big / v2", "small / v2"}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--by", "promt_variant"), 'Did you mean "prompt_variant"'),
        (("--by", "prompt_variant", "--baseline", "v3"), 'There are: "v1", "v2"'),
        (("--by", "prompt_variant", "--judge", "me"), "no judge is called"),
        (("--by", "prompt_variant", "--pair-by", "question"), 'Did you mean "question_id"'),
        (("--by", "prompt_variant", "--level", "95"), "0<x<1"),
        (("--by", "prompt_variant", "--on-conflict", "tie"), "runs of pairs"),
    ],
)
def test_what_nobody_has_is_a_usage_error(
    call: CallCommand, run: str, arguments: tuple[str, ...], told: str
) -> None:
    said = call("compare", run, *arguments)
    assert (said.code, said.out) == (2, "") and told in said.err


def test_missing_judgments_tags_and_repeats_are_shown(
    call: CallCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    units = [unit(q, "v1", 3, tags="B" if q < 3 else "") for q in range(12)]
    units += [unit(q, "v2", 5, tags="AB", said="broken" if q > 7 else "") for q in range(12)]
    flaky = {"model": "python/judge:flaky", "repeats": 2}
    write_suite(tmp_path, units, flaky, judge=SCORES, settings={"repairs": 0})
    call("run")
    found = call("compare", "--by", "prompt_variant", "--json").json
    assert found["missing"]["v2"] == {
        "units": 12,
        "incomplete": 4,
        "planned": 24,
        "scored": 16,
        "failed": 8,
        "pending": 0,
        "missing_scores": {},
        "unpaired": 0,
    }
    rates = {one["tag"]: (one["rate"], one["baseline_rate"]) for one in found["tags"]}
    assert rates["A"] == (1.0, 0.0) and rates["B"] == (1.0, 3 / 8)
    # A judge that reads the same each time does not waver.
    assert found["repeats"]["most"] == 2
    assert found["repeats"]["components"][0]["within"] == 0.0
    said = call("compare", "--by", "prompt_variant").out
    assert "Missing judgments differ" in said and "Repeats: up to 2" in said
    assert max(map(cell_len, said.splitlines())) <= 80


def test_wide_names_keep_the_table_within_the_terminal(
    call: CallCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    names = ("提示词的第一个版本" * 6, "第二个版本\x1b[31m" * 8)
    units = [unit(q, name, 1 + 2 * (q % 3)) for q in range(6) for name in names]
    write_suite(tmp_path, units, READ, judge=SCORES)
    call("run")
    said = call("compare", "--by", "prompt_variant").out
    assert "\x1b" not in said and "\\u001b" in said
    assert max(map(cell_len, said.splitlines())) <= 80


def test_many_variants_stand_in_a_table_a_dimension(
    call: CallCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    levels = {"base": 3, "good": 5, "bad": 1, "same": 3, "also good": 5}
    units = [unit(q, name, score) for q in range(12) for name, score in levels.items()]
    write_suite(tmp_path, units, READ, judge=SCORES)
    call("run")
    said = call("compare", "--by", "prompt_variant", "--baseline", "base").answer
    assert said.startswith("good is better than base overall: 0.50 -> 0.75 of 1 (+0.25 [")
    for sentence in ("bad is worse than base overall", "whether same is better or worse than"):
        assert sentence in " ".join(said.split())
    table = said[said.index("\noverall, against base") :]
    order = [table.index(f"\n{name} ") for name in ("good", "also good", "same", "bad")]
    assert order == sorted(order)
    ranked = said[said.index("overall (of 1)") : said.index("\noverall, against base")]
    names = [line.split("  ")[0] for line in ranked.splitlines()[2:] if line]
    assert names == ["good", "also good", "base", "same", "bad"]
    assert max(map(cell_len, said.splitlines())) <= 80


def test_candidates_of_pairs_are_compared_with_the_baseline(
    call: CallCommand, tmp_path: Path
) -> None:
    units = [pair_row(f"p{i}", 2, 9 if i else 1, topic=f"Topic {i}?") for i in range(12)]
    write_pairs(tmp_path, units, compare={"baseline": "c1"})
    call("run")
    found = call("compare", "--json").json
    rows = {row["dimension"]: row for row in found["rows"]}
    assert (found["by"], found["baseline"]) == ("candidate", "c1")
    assert set(rows) == {"C1", "C2", "C3", "C4", "C5", "overall"}
    assert rows["overall"]["mean"] == pytest.approx(11 / 12)
    assert rows["overall"]["difference"] == pytest.approx(10 / 12)
    assert rows["overall"]["outcome"] == "better"
    assert "c2 is better than c1: it wins 92 % [" in call("compare", "--by", "candidate").out
    assert call("compare", "--by", "candidate", "--json").json["notes"] == found["notes"]
    assert "12 topics" in call("compare").out
    for arguments in (("--by", "model"), ("--pair-by", "topic")):
        assert call("compare", *arguments).code == 2


def test_answers_have_totals_and_critical_fails(call: CallCommand, tmp_path: Path) -> None:
    rubric = "task_type: fact\n\n## Critical Fail Conditions\n- must_not_match: /Forbidden/\n"
    units = [
        {"task_name": f"t{i}", "prompt": "Task?", "rubric": rubric, "meta": {"model": model}}
        | {"answer": "Forbidden." if model == "new" and i < 7 else "It is certain."}
        for i in range(9)
        for model in ("old", "new")
    ]
    write_answers(tmp_path, units)
    assert call("run").code == 0
    found = call("compare", "--by", "model", "--baseline", "old", "--json").json
    assert found["pair_by"] == ["task_name"]
    (tag,) = found["tags"]
    assert (tag["tag"], tag["rate"], tag["baseline_rate"]) == (
        "critical fail",
        pytest.approx(7 / 9),
        0.0,
    )
    assert tag["outcome"] == "worse"
    overall = found["rows"][-1]
    assert overall["dimension"] == "overall" and overall["outcome"] == "worse"


def test_a_run_that_was_to_stop_early_tells_its_sequential_decision_first(
    call: CallCommand, tmp_path: Path
) -> None:
    units = [unit(q, v, 1 if v == "v1" else 5) for q in range(30) for v in ("v1", "v2")]
    compare = {"by": ["prompt_variant"], "baseline": "v1"}
    write_suite(tmp_path, units, READ, judge=SCORES, compare=compare, stop={"alpha": 0.05})
    call("run")
    found = call("compare", "--json").json
    assert any("sequential decision keeps its error" in note for note in found["notes"])
    assert found["rows"][-1]["outcome"] == "better"
    assert found["missing"]["v2"]["pending"] > 0
    decided = found["sequential"]
    assert (decided["outcome"], decided["variant"], decided["sequential"]) == ("better", "v2", True)
    said = " ".join(call("compare").answer.split())
    assert said.startswith("Decided: v2 is better than v1,")
    answer, figures = said.split("The figures below")
    assert "error at most 0.05" in answer
    assert "they only describe what was judged" in figures and "is better than" not in figures


STOPPING: dict[str, Any] = {
    "compare": {"by": ["prompt_variant"], "baseline": "v1"},
    "stop": {"alpha": 0.05},
}


@pytest.fixture
def parted(call: CallCommand, tmp_path: Path) -> None:
    """Six of six: enough for a test of a fixed number of units, too few for the sequential one."""
    units = [unit(q, v, 1 if v == "v1" else 5) for q in range(6) for v in ("v1", "v2")]
    write_suite(tmp_path, units, READ, judge=SCORES, **STOPPING)
    assert call("run", "--json").json["decided"]["outcome"] == "not enough evidence"


@pytest.mark.usefixtures("parted")
def test_two_tests_of_one_question_give_one_answer(call: CallCommand) -> None:
    found = call("compare", "--json").json
    rows = {row["dimension"]: row for row in found["rows"]}
    overall = rows["overall"]
    assert overall["p_adjusted"] < 0.05 and overall["outcome"] == "not enough evidence"
    assert overall["outcome"] == found["sequential"]["outcome"]
    assert (overall["decided_by"], overall["more_questions"]) == ("sequential", None)
    said = " ".join(call("compare").answer.split())
    assert said.startswith("Not enough evidence: v2 against v1,")
    assert "is better than" not in said
    assert "not enough evidence (sequential)" in said


@pytest.mark.usefixtures("parted")
def test_a_report_of_a_run_that_was_to_stop_gives_the_same_answer(
    call: CallCommand, tmp_path: Path
) -> None:
    for language, words in (("en", "Not enough evidence that"), ("ru", "не решено")):
        call("report", "-o", "report.html", "--summary", "--language", language)
        page = (tmp_path / "report.html").read_text(encoding="utf-8")
        answer = page.split('<div class="answer">')[1].split("</div>")[0]
        assert words in answer and answer.count("<p") == 1
    assert "the answer above is that decision" not in page


@pytest.mark.usefixtures("parted")
@pytest.mark.parametrize(
    "flags", [("--baseline", "v2"), ("--pair-by", "question_id"), ("--judge", READ["model"])]
)
def test_another_question_than_the_one_to_be_decided_is_answered_by_its_own_test(
    call: CallCommand, flags: tuple[str, ...]
) -> None:
    found = call("compare", *flags, "--json").json
    assert found["sequential"] is None
    assert {row["decided_by"] for row in found["rows"]} == {"fixed"}
    assert any("was to stop once its comparison was decided" in note for note in found["notes"])


def test_a_variant_that_was_not_to_be_decided_has_a_sentence_of_its_own(
    call: CallCommand, tmp_path: Path
) -> None:
    marks = {"v1": 1, "v2": 5, "v3": 5}
    units = [unit(q, v, mark) for q in range(7) for v, mark in marks.items()]
    rest = STOPPING | {"stop": {"alpha": 0.02, "variant": "v2"}}
    write_suite(tmp_path, units, READ, judge=SCORES, **rest)
    call("run")
    call("run", "--to-the-end")
    call("run", "--until-decided")
    answer, figures = " ".join(call("compare").answer.split()).split("The figures below")
    assert answer.startswith("Not enough evidence: v2 against v1,")
    assert "v2 is better" not in figures and "v3 is better than v1" in figures


def test_a_run_to_the_end_has_no_sequential_decision(call: CallCommand, run: str) -> None:
    assert call("compare", run, "--by", "prompt_variant", "--json").json["sequential"] is None


def test_one_judgment_is_said_in_the_singular(call: CallCommand, tmp_path: Path) -> None:
    write_suite(tmp_path, [unit(1, "v1", 3)], READ, judge=SCORES)
    call("run")
    said = call("compare", "--by", "prompt_variant").out
    assert "The one judgment has a score." in said


def test_units_without_a_partner_are_counted_and_said(call: CallCommand, tmp_path: Path) -> None:
    shared = {"v1": range(40), "v2": range(10), "v3": range(5, 42)}
    units = [unit(q, variant, 3) for variant, numbers in shared.items() for q in numbers]
    write_suite(tmp_path, units, READ, judge=SCORES)
    call("run")
    found = call("compare", "--by", "prompt_variant", "--baseline", "v1", "--json").json
    unpaired = {name: count["unpaired"] for name, count in found["missing"].items()}
    assert unpaired == {"v1": 35, "v2": 0, "v3": 2}  # 5 to 9 alone are answered by all three
    said = " ".join(call("compare", "--by", "prompt_variant", "--baseline", "v1").out.split())
    assert "Without a partner, so not in the difference: v1 35 units, v3 2 units." in said
    assert "Nothing is missing" not in said


def test_no_line_about_partners_where_all_have_one(call: CallCommand, run: str) -> None:
    assert "Without a partner" not in call("compare", run, "--by", "prompt_variant").out


def test_a_run_that_nothing_was_judged_in_says_so(call: CallCommand, tmp_path: Path) -> None:
    units = [unit(q, v, 3) for q in range(3) for v in ("v1", "v2")]
    broken = "async def read(messages, schema, params):\n    return '{}'\n"
    write_suite(tmp_path, units, READ, judge=broken, settings={"repairs": 0})
    call("run")
    found = call("compare", "--by", "prompt_variant", "--json")
    assert found.code == 0 and "NaN" not in found.out
    assert [row["difference"] for row in json.loads(found.out)["rows"]] == [None]
    assert "nothing to compute" in call("compare", "--by", "prompt_variant").out


def test_the_only_field_that_tells_variants_apart_is_taken(
    call: CallCommand, run: str, tmp_path: Path
) -> None:
    assert call("compare", run, "--json").json["by"] == "prompt_variant"
    models = {"m1": 1, "m2": 5}
    units = [
        unit(q, variant, score, meta={"model": model, "run_id": f"r{q % 2}"})
        for q in range(6)
        for variant in ("v1", "v2")
        for model, score in models.items()
    ]
    write_suite(tmp_path, units, READ, judge=SCORES)
    call("run")
    said = call("compare")
    assert (said.code, said.out) == (2, "")
    assert "the units differ in prompt_variant and model" in said.err
    assert "--by prompt_variant" in said.err


def test_variants_without_a_shared_question_are_answered_in_a_sentence(
    call: CallCommand, tmp_path: Path
) -> None:
    units = [unit(q, "v1" if q < 3 else "v2", 3) for q in range(6)]
    write_suite(tmp_path, units, READ, judge=SCORES)
    call("run")
    lines = call("compare", "--by", "prompt_variant").out.splitlines()
    sentence = "v2 and v1 share no scored question: there is nothing to compare."
    assert sentence in lines[:2], lines[:3]


def test_one_variant_leaves_nothing_to_compare(call: CallCommand, tmp_path: Path) -> None:
    write_suite(tmp_path, [unit(q, "v1", 3) for q in range(4)], READ, judge=SCORES)
    call("run")
    said = call("compare")
    assert said.code == 2 and "nothing to compare by" in said.err and "--by FIELD" in said.err


def test_run_ends_with_the_answer_and_what_comes_next(
    call: CallCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    units = [unit(q, v, s) for q in range(20) for v, s in (("v1", 1), ("v2", 5))]
    write_suite(tmp_path, units, READ, judge=SCORES)
    out = call("run").out
    run = out.split()[1]
    answer = out.index("v2 is better than v1 overall: 0.25 -> 0.75 of 1 (+0.50 [")
    assert f"evenhand compare {run}\n" in out[answer:]
    assert f"evenhand report {run} -o report.html\n" in out[answer:]
    assert "evenhand view\n" in out[answer:]
    first = call("compare").answer.splitlines()[0]
    assert first in out, "the same sentence"


def test_the_question_of_the_suite_file_is_read_as_it_stands_now(
    call: CallCommand, tmp_path: Path
) -> None:
    units = [unit(q, v, s) for q in range(8) for v, s in (("v1", 1), ("v2", 5), ("v3", 3))]
    write_suite(tmp_path, units, READ, judge=SCORES)
    run = call("run", "--json").json["run"]
    assert call("compare", "--json").json["baseline"] == "v1"
    file = tmp_path / "evenhand.toml"
    text = file.read_text()
    file.write_text(f'{text}\n[compare]\nbaseline = "v3"\n[gate]\nmin_mean = 0.9\n')
    assert call("compare", "--json").json["baseline"] == "v3"
    gate = call("gate", "--json")
    assert gate.json["run"] == run and "0.9" in " ".join(gate.json["reasons"])
    assert call("compare", "--baseline", "v2", "--json").json["baseline"] == "v2"


def test_a_field_that_the_data_lack_does_not_fail_a_run(call: CallCommand, tmp_path: Path) -> None:
    write_suite(tmp_path, [unit(0, "v1", 3)], READ, judge=SCORES, compare={"by": ["colour"]})
    said = call("run")
    assert said.code == 0 and "colour" in said.err and "evenhand show" in said.out


def test_scores_that_are_all_the_same_have_a_difference_without_an_interval(
    call: CallCommand, tmp_path: Path
) -> None:
    rows = [f"q{question},{variant},3" for question in range(3) for variant in ("v1", "v2")]
    (tmp_path / "scores.csv").write_text("\n".join(["unit,variant,score", *rows, ""]))
    call("import", "scores.csv", "--kind", "scores", "--judge", "j")
    said = " ".join(call("compare", "scores", "--by", "variant").out.split())
    assert "3.00 -> 3.00 (+0.00); better on 0 of" in said


def test_variants_are_the_same_within_a_margin_of_the_command_or_of_the_suite(
    call: CallCommand, tmp_path: Path
) -> None:
    units = [unit(q, v, 3 + (v == "v2") * (q % 3 - 1)) for q in range(30) for v in ("v1", "v2")]
    write_suite(tmp_path, units, READ, judge=SCORES, compare={"margin": 0.4})
    call("run")
    named = call("compare", "--by", "prompt_variant", "--margin", "0.001", "--json").json
    of_suite = call("compare", "--by", "prompt_variant", "--json").json
    assert (named["margin"], of_suite["margin"]) == (0.001, 0.4)
    outcomes = [found["rows"][-1]["outcome"] for found in (named, of_suite)]
    assert outcomes == ["not enough evidence", "same"]
    assert "are the same" in call("compare", "--by", "prompt_variant").answer
    assert call("compare", "--by", "prompt_variant", "--margin", "0").code == 2
    wide = call("compare", "--by", "prompt_variant", "--margin", "5")
    assert wide.code == 2 and "scale of overall" in wide.err


def test_two_notes_are_shown_unless_all_are_asked_for(call: CallCommand, tmp_path: Path) -> None:
    rows = [f"q{q},{v},{q % 4}" for q in range(5) for v in ("v1", "v2")] + ["q9,v2,1"]
    (tmp_path / "scores.csv").write_text("\n".join(["unit,variant,score", *rows, ""]))
    call("import", "scores.csv", "--kind", "scores", "--judge", "j")
    by = ("compare", "scores", "--by", "variant")
    few, every = (call(*by, *more) for more in ((), ("--verbose",)))
    notes = call(*by, "--json").json["notes"]
    assert few.out.count("Note: ") == 2 and every.out.count("Note: ") == len(notes) > 2
    assert "--verbose" in few.out and "--verbose" not in every.out
