"""`evenhand compare`: variants of one run, two runs, candidates of pairs, and what changed most."""

from __future__ import annotations

import json
import math
import re
import shlex
import statistics
from pathlib import Path

import pytest
from scipy import stats

from evenhand.words import words
from tests.cases import table_rows
from tests.sentences import is_told
from tests.suites import (
    TICK_JUDGE,
    answers,
    pair_row,
    passing,
    stored,
    write_answers,
    write_checklist,
    write_pairs,
    write_rows,
    write_suite,
)
from tests.unit.cli.conftest import values
from tests.unit.cli.weekly import (
    BY,
    LAST,
    ROWS,
    by_question,
    judged_folder,
    mean,
    paired,
    samples,
)
from tests.unit.stats.twin import naive_difference

SCORES = """
import json, re
ANSWER = re.compile(r"\\[\\[(model_output [0-9a-f]+)\\]\\]\\n(.*?)\\n\\[\\[/\\1\\]\\]", re.DOTALL)

async def read(messages, schema, params):
    text = ANSWER.search("\\n".join(m["content"] for m in messages))[2]
    correct, clear, tags = re.search(r"(\\d) (\\d) (\\w*)", text).groups()
    given = {"evidence": [text[:9]], "rationale": "fits"}
    scores = {"correct": given | {"score": int(correct)}, "clear": given | {"score": int(clear)}}
    reply = json.dumps({"scores": scores, "failure_tags": list(tags), "notes": ""})
    return "{}" if "broken" in text else reply
"""
READ = {"model": "python/judge:read"}
STOPPING = {
    "compare": {"by": ["prompt_variant"], "baseline": "v1"},
    "stop": {"alpha": 0.05},
}
V1 = {"by": "prompt_variant", "baseline": "v1"}
WEEKS = "compare latest --against latest~1"


def unit(question, variant, correct, clear=3, **more):
    meta = {"prompt_variant": variant, "question_id": f"q{question}", **more.get("meta", {})}
    text = f"Answered: {correct} {clear} {more.get('tags', '')} {more.get('said', '')}"
    return {"meta": meta, "question": f"Question {question}?", "model_output": text}


def units(number, **scores):
    """Questions, each answered by every variant with its score."""
    return [unit(q, name, score) for q in range(number) for name, score in scores.items()]


def judge(call, given, *judges, **rest):
    write_suite(Path(), given, *judges or (READ,), judge=SCORES, **rest)
    return call.run()


@pytest.fixture
def run(call):
    """Twenty questions under two prompts: v2 is more correct, and as clear."""
    given = [unit(q, "v1", 1 if q % 4 else 3, 3 if q % 3 else 5) for q in range(20)]
    given += [unit(q, "v2", 5 if q % 5 else 3, 3 if q % 3 else 5) for q in range(20)]
    return judge(call, given, seed=3)


def row_of(found, dimension="overall"):
    return next(row for row in found["rows"] if row["dimension"] == dimension)


def test_the_answer_comes_first_and_json_has_the_rows_of_the_contract(call, run):
    call.narrow()
    said = call(f"compare {run}")
    assert (said.code, said.err) == (0, "") and said.width <= 80
    first = said.answer.split(";")[0]
    assert is_told(said.answer, "answer.better_overall", variant="v2", baseline="v1")
    assert first.startswith("v2 ") and " 0." in first
    count = words("en").counted("question", 20)
    assert is_told(said.text, "answer.balance", higher=19, n=count, lower=0)
    assert is_told(said.text, "answer.by_better")
    assert not is_told(said.text, "terminal.unpaired")
    found = call.json(f"compare {BY}")
    assert [found[key] for key in ("run", "by", "baseline", "sequential", "selected")] == [
        *(run, "prompt_variant", "v1"),
        *(None, None),
    ]
    pinned = (
        "dimension variant n mean baseline_mean difference low high p p_adjusted effect outcome"
    )
    assert all(set(pinned.split()) <= set(row) for row in found["rows"])
    correct, clear, overall = found["rows"]
    assert [row["dimension"] for row in found["rows"]] == ["correct", "clear", "overall"]
    assert correct["n"] == 20
    assert correct["mean"] == pytest.approx((16 * 5 + 4 * 3) / 20)
    assert correct["baseline_mean"] == pytest.approx((15 * 1 + 5 * 3) / 20)
    assert (correct["outcome"], clear["outcome"]) == ("better", "not enough evidence")
    assert overall["difference"] == pytest.approx(correct["difference"] / 8)
    assert call.json(f"compare {BY}") == found


def test_the_suite_names_the_question_and_flags_beat_it(call):
    given = [
        unit(q, v, 1 + 2 * (v == "v2"), meta={"model": m})
        for q in range(6)
        for v in ("v1", "v2")
        for m in ("big", "small")
    ]
    judge(call, given)
    fields = '"prompt_variant", "model"'
    assert is_told(call.refused("compare"), "stats.several_fields", fields=fields)
    # The suite file is read as it stands now.
    with Path("evenhand.toml").open("a") as suite:
        suite.write('\n[compare]\nby = ["prompt_variant"]\nbaseline = "v2"\n')
    found = call.json("compare")
    assert values(found, "by baseline") == ["prompt_variant", "v2"]
    assert (found["rows"][0]["variant"], found["rows"][0]["difference"]) == ("v1", -2)
    for same in ("prompt_variant", "meta.prompt_variant"):
        again = call.json(f"compare --by {same}")
        assert values(again, "baseline rows") == ["v2", found["rows"]]
    assert call.json("compare --baseline v1")["baseline"] == "v1"
    # A baseline of the suite belongs to the suite's field.
    other = call.json("compare --by model")
    assert values(other, "by baseline") == ["model", "big"]
    assert any(is_told(note, "notes.no_baseline", variant="big") for note in other["notes"])
    both = call.json("compare --by model,prompt_variant --baseline 'small / v1'")
    assert {row["variant"] for row in both["rows"]} == {"big / v1", "big / v2", "small / v2"}


def test_what_cannot_be_compared_is_refused(call, weeks):
    by = "--by prompt_variant"
    for flags, key, *told in table_rows(__file__, "what_cannot_be_compared_is_refused"):
        call.refused(f"compare {flags}", key=key, says=told)
    for flags, told in ("--level 95", "0<x<1"), ("--margin 0", "x>0"):
        call.refused(f"compare {by} {flags}", says=[told])
    write_pairs(Path(), 1)
    call.run()
    call.refused(WEEKS, key="compare.two_kinds")
    write_pairs(Path(), [pair_row("another", 1, 2)])
    call.run()
    call.refused(WEEKS, key="stats.no_shared_unit")


def test_missing_judgments_tags_and_repeats_are_shown(call):
    call.narrow()
    given = [unit(q, "v1", 3, tags="B" if q < 3 else "") for q in range(12)]
    given += [unit(q, "v2", 5, tags="AB", said="broken" if q > 7 else "") for q in range(12)]
    judge(call, given, READ | {"repeats": 2}, settings={"repairs": 0})
    found = call.json("compare")
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
    said = call("compare")
    assert is_told(said.text, "notes.missing", variant="v2", share=1 / 3, base=0.0)
    assert is_told(said.text, "terminal.repeats", n=2) and said.width <= 80


def test_many_variants_stand_in_tables_that_fit_the_terminal(call):
    call.narrow()
    levels = {"base": 3, "good": 5, "bad": 1, "same": 3, "also good": 5}
    judge(call, units(12, **levels))
    said = call("compare --baseline base")
    heading = words("en")("terminal.against_on", dimension="overall", baseline="base", size="")
    ranked, table = said.answer.split(heading)
    ranked = ranked[ranked.index(words("en")("answer.overall_of", most=1)) :]
    for text, names in (
        (ranked, ["good", "also good", "base", "same", "bad"]),
        (table, ["good", "also good", "same", "bad"]),
    ):
        places = [text.index(f"\n{name} ") for name in names]
        assert places == sorted(places)
    assert said.width <= 80
    judge(call, units(6, **{"提示词的第一个版本" * 6: 1, "第二个版本\x1b[31m" * 8: 3}))
    wide = call("compare")
    assert "\x1b" not in wide.out and "\\u001b" in wide.out and wide.width <= 80


def test_candidates_of_pairs_are_compared_with_the_baseline(call):
    rows = [pair_row(f"p{i}", 2, 9 if i else 1, topic=f"Topic {i}?") for i in range(12)]
    write_pairs(Path(), rows, compare={"baseline": "c1"})
    call.run()
    found = call.json("compare")
    assert values(found, "by baseline") == ["candidate", "c1"]
    assert {row["dimension"] for row in found["rows"]} == {"C1", "C2", "C3", "C4", "C5", "overall"}
    row = row_of(found)
    assert (row["mean"], row["difference"]) == pytest.approx((11 / 12, 10 / 12))
    assert row["outcome"] == "better"
    said = call("compare --by candidate").out
    assert is_told(said, "answer.pair_better", variant="c2", baseline="c1", rate="92%")
    for flags in ("--by model", "--pair-by topic"):
        call.refused(f"compare {flags}")


def test_answers_have_totals_and_critical_fails(call):
    rubric = "task_type: fact\n\n## Critical Fail Conditions\n- must_not_match: /Forbidden/\n"
    rows = [
        {"task_name": f"t{i}", "prompt": "Task?", "rubric": rubric, "meta": {"model": model}}
        | {"answer": "Forbidden." if model == "new" and i < 7 else "It is certain."}
        for i in range(9)
        for model in ("old", "new")
    ]
    write_answers(Path(), rows)
    call.run()
    found = call.json("compare --baseline old")
    assert found["pair_by"] == ["task_name"]
    (tag,) = found["tags"]
    assert values(tag, "tag baseline_rate outcome") == ["critical fail", 0, "worse"]
    assert tag["rate"] == pytest.approx(7 / 9)
    assert row_of(found)["outcome"] == "worse"


def test_a_fault_is_turned_round_and_said_so_by_every_command(call):
    judge = TICK_JUDGE.replace("place < 2 and", "(place < 2 or 'rude' in text) and")
    rows = passing(v1="+++0", v2="+++0")
    for row in rows[:2]:
        row["model_output"] += " It is rude."
    write_checklist(Path(), rows, "picky", judge=judge, compare=V1)
    free = words("en")("unit.free_of", dimension="rude")
    ran, compared = call("run"), call("compare")
    assert re.search(rf"v1 +{free} +3 +0\.33 ", ran.out), ran.out
    assert re.search(rf"{free} +0\.333 +1\.000 ", compared.out), compared.out
    assert is_told(compared.text, "notes.unscored")
    assert row_of(call.json("compare"), "rude")["baseline_mean"] == pytest.approx(1 / 3)
    call("report -o report.html")
    page = Path("report.html").read_text()
    assert page.count(free) > 3 and "<small>-0</small>" not in page and ">-0<" not in page


def test_pass_rates_are_told_in_percent_by_every_command(call):
    rows = passing(v1="+---" * 10, v2="+++-" * 10)
    write_checklist(Path(), rows, "picky", compare=V1)
    call.narrow()
    ran = call("run")
    for name, n in (("v1", 10), ("v2", 30)):
        assert is_told(
            ran.out, "answer.passed_of", variant=name, n=n, of=40, rate=f"{n * 10 // 4}%"
        )
    told = {"variant": "v2", "after": "75%", "before": "25%", "n": "40 questions"}
    compared = call("compare")
    call("report -o report.html")
    for text in (ran.out, compared.out, Path("report.html").read_text()):
        assert is_told(text, "answer.pass_better", difference="+50", **told)
    for tone, mark, n in (("good", "✓ pass", 40), ("bad", "✗ fail", 40)):
        assert text.count(f'<span class="side" dir="auto"><b class="{tone}">{mark}') == n
        assert f">{mark[2:]} ({n})</option>" in text
    assert is_told(compared.out, "terminal.passes") and compared.width <= 80
    assert is_told(call("compare --where question_id=q1").out, "answer.pass_none")
    (row,) = call.json("compare")["passes"]
    assert values(row, "dimension mean outcome") == ["pass", 0.75, "better"]
    # Without variants there is one rate; a run against another compares theirs.
    write_checklist(Path(), passing(v1="+++-"), "picky", name="other")
    assert is_told(call("run").out, "answer.passed", n=3, of=4, rate="75%")
    (row,) = call.json("compare other --against test")["passes"]
    assert values(row, "mean baseline_mean n") == [0.75, 0.25, 4]


def test_a_margin_as_wide_as_the_scale_is_refused_in_report_too(call):
    judge(call, units(3, v1=1, v2=3), compare={"margin": 1.5})
    for command in (["compare"], ["report", "-o", "report.html"]):
        assert is_told(call.refused(*command), "compare.wide_margin", margin=1.5)


# Runs that were to stop once they were decided


def test_a_run_that_was_to_stop_early_tells_its_sequential_decision_first(
    call,
):
    judge(call, units(30, v1=1, v2=5), **STOPPING)
    found = call.json("compare")
    assert any(is_told(note, "notes.stopped") for note in found["notes"])
    assert row_of(found)["outcome"] == "better" and found["missing"]["v2"]["pending"] > 0
    decided = found["sequential"]
    assert values(decided, "outcome variant sequential") == ["better", "v2", True]
    decision, figures = decision_and_figures(call)
    assert is_told(decision, "answer.stopped_better", variant="v2", baseline="v1")
    assert not is_told(figures, "answer.better_overall")


def decision_and_figures(call):
    """What is said before and after the sentence on figures that only describe."""
    return call("compare").text.split(words("en")("terminal.descriptive"))


def test_two_tests_of_one_question_give_one_answer(call):
    """Six of six: enough for a test of a fixed number of units, too few for the sequential one."""
    judge(call, units(6, v1=1, v2=5), **STOPPING)
    found = call.json("compare")
    row = row_of(found)
    assert row["p_adjusted"] < 0.05
    assert row["outcome"] == found["sequential"]["outcome"] == "not enough evidence"
    assert values(row, "decided_by more_questions") == ["sequential", None]
    decision, figures = decision_and_figures(call)
    assert is_told(decision, "answer.stopped_none")
    assert not is_told(decision + figures, "answer.better_overall")
    for language in ("en", "ru"):
        call(f"report -o report.html --summary --language {language}")
        page = Path("report.html").read_text(encoding="utf-8")
        answer = page.split('<div class="answer">')[1].split("</div>")[0]
        assert is_told(re.sub("<[^>]*>", "", answer), "answer.stopped_none", language)
        assert answer.count("<p") == 1
    # Another question than the one to be decided is answered by its own test.
    for flags in (
        "--baseline v2",
        "--pair-by question_id",
        f"--judge {READ['model']}",
    ):
        other = call.json(f"compare {flags}")
        assert other["sequential"] is None
        assert {row["decided_by"] for row in other["rows"]} == {"fixed"}
        assert any(is_told(note, "notes.stopped") for note in other["notes"])


def test_a_variant_that_was_not_to_be_decided_has_a_sentence_of_its_own(call):
    judge(call, units(7, v1=1, v2=5, v3=5), **STOPPING | {"stop": {"alpha": 0.02, "variant": "v2"}})
    call.run("--to-the-end")
    call.run("--until-decided")
    decision, figures = decision_and_figures(call)
    assert is_told(decision, "answer.stopped_none", variant="v2", baseline="v1")
    assert "v3 is better than v1" in figures and "v2 is better" not in figures


# Little to compare


def test_units_without_a_partner_are_counted_and_said(call):
    shared = {"v1": range(40), "v2": range(10), "v3": range(5, 42)}
    judge(call, [unit(q, variant, 3) for variant, numbers in shared.items() for q in numbers])
    unpaired = {
        name: count["unpaired"] for name, count in call.json(f"compare {BY}")["missing"].items()
    }
    assert unpaired == {"v1": 35, "v2": 0, "v3": 2}  # 5 to 9 alone are answered by all three
    said = call(f"compare {BY}").text
    assert is_told(said, "terminal.unpaired", variants="v1 (35 units), v3 (2 units)")


def test_a_run_that_nothing_was_judged_in_has_no_figures(call):
    write_suite(Path(), units(3, v1=3, v2=3), "bad")
    assert call("run").code == 1
    found = call.ok("compare --json")
    assert "NaN" not in found.out
    assert [row["difference"] for row in found.json["rows"]] == [None]
    assert is_told(call("compare").out, "notes.because_nothing_shared")


def test_variants_without_a_shared_question_are_answered_in_a_sentence(call):
    judge(call, [unit(q, "v1" if q < 3 else "v2", 3) for q in range(6)])
    said = call("compare --by prompt_variant").out
    assert is_told(said, "terminal.nothing_shared", variant="v2", baseline="v1")
    judge(call, units(4, v1=3))
    call.refused("compare", key="stats.no_field")


def test_a_run_ends_with_the_answer_and_what_comes_next(call):
    call.narrow()
    write_suite(Path(), units(20, v1=1, v2=5), READ, judge=SCORES)
    out = call("run").out
    answer = out[out.index("v2 is better than v1 overall: 0.25 -> 0.75") :]
    assert call("compare").answer.splitlines()[0] in answer
    run = out.split()[1]
    for command in (f"compare {run} --by prompt_variant", f"report {run} -o report.html", "view"):
        assert f"evenhand {command}\n" in answer
    # A field that the data lack does not fail a run.
    write_suite(Path(), units(1, v1=3), READ, judge=SCORES, compare={"by": ["colour"]})
    said = call.ok("run")
    assert "colour" in said.err and "evenhand show" in said.out


def test_scores_that_are_all_the_same_have_a_difference_without_an_interval(
    call,
):
    rows = [{"unit": f"q{q}", "judge": "j", "variant": v, "score": 3} for q in "123" for v in "ab"]
    call.take("scores", rows)
    assert "3.00 -> 3.00 (+0.00); better on 0 of" in call("compare rows --by variant").text


def test_variants_are_the_same_within_a_margin_of_the_command_or_of_the_suite(
    call,
):
    given = [unit(q, v, 3 + (v == "v2") * (q % 3 - 1)) for q in range(30) for v in ("v1", "v2")]
    judge(call, given, compare={"margin": 0.4})
    for flags, margin, outcome in (
        ("--margin 0.001", 0.001, "not enough evidence"),
        ("", 0.4, "same"),
    ):
        found = call.json(f"compare {flags}")
        assert (found["margin"], row_of(found)["outcome"]) == (margin, outcome)
    assert "are the same" in call("compare").answer


def test_two_notes_are_shown_unless_all_are_asked_for(call):
    rows = [{"unit": f"q{q}", "judge": "j", "score": q % 4} for q in range(5)]
    given = [row | {"variant": v} for row in rows for v in ("v1", "v2")]
    call.take("scores", [*given, rows[1] | {"unit": "q9", "variant": "v2"}])
    by = "compare rows --by variant"
    few, every = (call(f"{by} {more}").out for more in ("", "--verbose"))
    notes = call.json(by)["notes"]
    assert few.count("Note: ") == 2 and every.count("Note: ") == len(notes) > 2
    assert "--verbose" in few and "--verbose" not in every


# Two runs


def test_grades_before_and_after_new_weights(call):
    rows = answers(8)
    for row in rows[4:]:
        row["rubric"] = row["rubric"].replace("fact", "creative")
    write_answers(Path(), rows)
    old = call.run()
    weights = {"logic_and_fact": 30, "constraint_adherence": 60, "helpfulness_and_creativity": 10}
    Path("weights.json").write_text(json.dumps({"fact": weights}))
    new = str(call.json(f"settle {old} --weights weights.json")["run"])
    found = call.json(f"compare {new} --against {old}")
    assert values(found, "by against") == ["run", old]
    assert found["baseline"].endswith(f" {old[:6]}")
    row = row_of(found)
    after, before = (
        [one["output"]["total_score"] / 100 for one in stored(Path(), run)] for run in (new, old)
    )
    assert values(row, "n baseline_mean") == [8, pytest.approx(mean(before))]
    assert row["difference"] == pytest.approx(mean(after) - mean(before)) != 0
    # The replies are the same: as shares of the points to be had no dimension differs, though
    # the weights of the other task type stay what they were.
    for row in found["rows"][:-1]:
        assert row["difference"] == pytest.approx(0, abs=1e-12), row["dimension"]
        assert values(row, "outcome scale") == ["not enough evidence", [0, 1]]
    assert not any(row["more_questions"] for row in found["rows"])
    said = call(f"compare {new} --against {old}").text
    assert f"{100 * mean(before):.0f} -> {100 * mean(after):.0f} out of 100" in said
    assert is_told(said, "notes.same_replies") and not is_told(said, "notes.judged_otherwise")


def test_two_runs_of_pairs_are_compared_by_the_names_of_their_candidates(
    call,
):
    rows = [pair_row(f"q{i}", 3, 2, 1, topic=f"T{i}?") for i in range(3)]
    write_pairs(Path(), rows)
    call.run()
    # One topic leaves, one comes, and the texts of another change places.
    rows = [pair_row("q0", 1, 2, 3, topic="T0?"), rows[1], pair_row("q9", 3, 2, 1, topic="T9?")]
    write_rows(Path(), rows, "pairs.jsonl")
    call.run()
    found = call.json(WEEKS)
    # On two topics each candidate is in four pairs; c1 won both of those on q0, and loses them now.
    assert {row["dimension"]: (row["n"], row["difference"]) for row in found["rows"]} == {
        "win rate of c1": (4, -0.5),
        "win rate of c2": (4, 0.0),
        "win rate of c3": (4, 0.5),
    }


def test_two_runs_of_imported_scores_without_a_stated_scale_are_compared_on_one(
    call,
):
    for name, plus in (("before", 0), ("after", 2)):
        rows = [
            {"unit": f"q{i}", "judge": "j", "dimension": d, "score": 1 + (i + at) % 3 + plus}
            for i in range(12)
            for at, d in enumerate(("accuracy", "style"))
        ]
        call.take("scores", rows, name)
    row = row_of(call.json("compare after --against before"))
    assert values(row, "difference outcome") == [pytest.approx(0.5), "better"]


# Two weeks of 240 samples, each answer against a computation of its own


def week_gaps(value="overall"):
    """Each sample of this week less the same of last week."""
    before = {row.id: row for row in LAST}
    return [(row, getattr(row, value) - getattr(before[row.id], value)) for row in ROWS]


def test_this_week_against_last_is_paired_by_unit(call, weeks):
    found = call.json(f"{WEEKS} --worst 50")
    new, old = call.json("runs")["runs"]
    assert values(found, "run against") == [new["run"], old["run"]]
    assert found["baseline"] == f"{old['name']} {old['run'][:6]}"
    assert row_of(found)["variant"] == f"{new['name']} {new['run'][:6]}"
    for value in ("overall", "correct"):
        gaps, row = week_gaps(value), row_of(found, value)
        assert values(row, "n clusters") == [240, 10]
        assert row["difference"] == pytest.approx(mean([gap for _, gap in gaps]))
        questions = [[gap for row, gap in gaps if row.question == q] for q in range(10)]
        span = row["scale"][1] - row["scale"][0]
        assert row["p"] == pytest.approx(naive_difference(questions, span)[2])
        assert row["low"] <= row["difference"] <= row["high"]
    changed = sum(row != last for row, last in zip(ROWS, LAST, strict=True))
    counts = {"same": 240 - changed, "changed": changed, "added": 0, "removed": 0}
    assert any(is_told(note, "notes.shared_texts", **counts) for note in found["notes"])
    moved = [*found["changed"]["worst"], *found["changed"]["best"]]
    oracle = {row.id: gap for row, gap in week_gaps() if gap}
    assert {pair["variant"]["unit"]: pair["difference"] for pair in moved} == pytest.approx(oracle)
    assert all(pair["variant"]["run"] != pair["baseline"]["run"] for pair in moved)


def test_weeks_with_run_ids_of_their_own_are_paired_by_other_fields(call):
    weeks = [
        [row._replace(run_id=f"{row.run_id}-{week}") for row in rows]
        for week, rows in (("a", LAST), ("b", ROWS))
    ]
    judged_folder(Path(), *weeks)
    call.refused(WEEKS, says=["--pair-by"])
    asked = f"{WEEKS} --pair-by model,prompt_variant,eval_set_variant,question_id"
    for flags, gaps, number in (
        ("", week_gaps(), 80),
        ("--where model=big", [one for one in week_gaps() if one[0].model == "big"], 40),
    ):
        row = row_of(call.json(f"{asked} {flags}"))
        assert row["n"] == number
        assert row["difference"] == pytest.approx(mean([gap for _, gap in gaps]))


@pytest.mark.parametrize("field", ["model", "eval_set"])
def test_the_difference_inside_each_value_and_between_them(call, weeks, field):
    name = {"eval_set": "eval_set_variant"}.get(field, field)
    within = call.json(f"compare {BY} --within {name}")["within"]
    assert within["field"] == name
    gaps = list(paired(ROWS))
    values = list(dict.fromkeys(getattr(row, field) for row in ROWS))
    assert [block["value"] for block in within["blocks"]] == values
    means = {}
    for block in within["blocks"]:
        own = [gap for gap in gaps if getattr(gap[0], field) == block["value"]]
        row = row_of(block)
        means[block["value"]] = mean([gap for *_, gap in own])
        assert (row["n"], block["units"], block["missing"]["v1"]["units"]) == (60, 120, 60)
        assert row["difference"] == pytest.approx(means[block["value"]])
        oracle = naive_difference(list(by_question(own).values()), 1.0)
        assert (row["low"], row["high"], row["p"]) == pytest.approx(oracle)
    test = next(test for test in within["between"] if test["dimension"] == "overall")
    assert test["differences"] == pytest.approx(means)
    assert test["gap"] == pytest.approx(means[values[1]] - means[values[0]])
    assert test["low"] < test["gap"] < test["high"]
    assert (test["outcome"] == "differs") == (test["p"] <= 0.05)


def test_pairs_are_compared_inside_each_value_and_the_lost_ones_shown(call):
    worths = {"a": (3, 1), "b": (1, 3)}
    rows = [
        pair_row(f"{area}{i}", *worths[area], meta={"area": area})
        for area in "ab"
        for i in range(6)
    ]
    write_pairs(Path(), [*rows, pair_row("tie", 2, 2, meta={"area": "a"})])
    call.run()
    asked = "--baseline c1 --within area --worst 9"
    found = call.json(f"compare {asked}")
    differences = {
        block["value"]: row_of(block)["difference"] for block in found["within"]["blocks"]
    }
    assert differences == pytest.approx({"a": -6 / 7, "b": 1})
    test = next(test for test in found["within"]["between"] if test["dimension"] == "overall")
    assert test["outcome"] == "differs"
    changed = found["changed"]
    assert values(changed, "n worse better") == [13, 6, 6]
    assert {pair["variant"]["unit"] for pair in changed["worst"]} == {f"a{i}" for i in range(6)}
    best = changed["best"][0]
    assert (best["difference"], best["baseline"]["output"]) == (1, "An answer worth 1.")
    assert best["variant"]["output"] == "A reply worth 3."
    assert best["variant"]["reasons"][0]["about"] == "winner"
    call.ok(f"compare {asked}")


def test_what_got_worse_most_is_shown_with_both_answers_and_reasons(call, weeks):
    changed = call.json(f"compare {BY} --worst 5")["changed"]
    gaps = sorted(paired(ROWS), key=lambda pair: pair[2])
    counts = [120, sum(gap < 0 for *_, gap in gaps), sum(gap > 0 for *_, gap in gaps)]
    assert [changed[key] for key in ("n", "worse", "better")] == counts
    assert changed["dimension"] == "overall"
    units = {row.id: row for row in ROWS}
    for name, oracle in (("worst", gaps[:5]), ("best", gaps[::-1][:5])):
        assert [pair["difference"] for pair in changed[name]] == pytest.approx(
            [gap for *_, gap in oracle]
        )
        for pair in changed[name]:
            before, after = (units[pair[side]["unit"]] for side in ("baseline", "variant"))
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


STABILITIES = ("steadier", "less_steady", "open")


def test_blocks_stability_and_the_worst_side_by_side_fit_the_terminal(call, weeks):
    call.narrow()
    said = call(f"compare {BY} --worst 2 --within model --stability meta.run_id")
    assert said.width <= 80
    assert "big (120 units), small (120 units)" in said.text
    about = {"variant": "v2", "baseline": "v1", "field": "run_id", "dimension": "overall"}
    assert any(is_told(said.text, f"terminal.stability_{way}", **about) for way in STABILITIES)
    lines = said.out.splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("worst 1: -"))
    assert lines[start + 1].startswith("Question What is ")
    assert lines[start + 2].startswith("v1: ") and " v2: " in lines[start + 2]
    assert "best 2: +" in said.out
    command = said.text.rpartition("evenhand ")[2]
    assert call(*shlex.split(command)).code == 0


def test_a_coarser_pairing_shows_questions_that_got_worse(call, weeks):
    changed = call.json(f"compare {BY} --pair-by question_id --worst 3")["changed"]
    means = [mean(gaps) for gaps in by_question(list(paired(ROWS))).values()]
    worst = sorted(value for value in means if value < -1e-9)[:3]
    assert worst
    assert [pair["difference"] for pair in changed["worst"]] == pytest.approx(worst)
    assert {pair["variant"]["units"] for pair in changed["worst"]} == {12}


def stability_oracle(value):
    """Variances over run ids, by hand: of 40 cells on 10 questions under each variant."""
    cells = {}
    for row in ROWS:
        key = (row.variant, row.question, row.model, row.eval_set)
        cells.setdefault(key, []).append(getattr(row, value))
    by_variant = {"v1": {}, "v2": {}}
    for (variant, question, *_), scores in cells.items():
        by_variant[variant].setdefault(question, []).append(statistics.variance(scores))

    def pooled(name, questions):
        return mean([v for q in questions for v in by_variant[name][q]])

    base, variance = (pooled(name, range(10)) for name in ("v1", "v2"))
    # By how much each question moves the logarithm of the ratio, of ten that weigh alike.
    moves = [(pooled("v2", [q]) / variance - pooled("v1", [q]) / base) / 10 for q in range(10)]
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


def test_stability_compares_variances_over_repeated_runs(call, weeks):
    asked = "--stability run_id"
    stability = call.json(f"compare {BY} {asked}")["stability"]
    assert values(stability, "field baseline") == ["run_id", "v1"]
    rows = {row["dimension"]: row for row in stability["rows"]}
    assert list(rows) == ["correct", "clear", "overall"]
    for name, row in rows.items():
        oracle = stability_oracle(name)
        assert {key: row[key] for key in oracle} == pytest.approx(oracle)
        assert values(row, "n clusters") == [40, 10]
    # The two dimensions are one family.
    correct, clear = rows["correct"], rows["clear"]
    assert correct["p_adjusted"] == pytest.approx(min(1, 2 * correct["p"]))
    assert clear["p_adjusted"] == pytest.approx(max(2 * correct["p"], clear["p"]))
    assert correct["outcome"] == "worse"
    turned = call.json(f"compare --by prompt_variant --baseline v2 {asked}")["stability"]["rows"][0]
    assert turned["outcome"] == "better"
    assert turned["ratio"] == pytest.approx(1 / correct["ratio"])


def test_answers_that_never_vary_have_no_ratio(call):
    steady = [row._replace(correct=3, clear=3) if row.variant == "v1" else row for row in samples()]
    judged_folder(Path(), steady)
    asked = f"compare {BY} --stability run_id"
    row = call.json(asked)["stability"]["rows"][0]
    assert [row[key] for key in ("baseline_sd", "ratio", "low", "p", "outcome")] == [
        *(0, None, None, None),
        "not enough evidence",
    ]
    assert call(asked).code == 0


def test_the_stability_of_grades_is_told_out_of_100(call):
    task = "task_type: fact\n\n## Critical Fail Conditions\n- must_not_match: /Forbidden/\n"
    rows = [
        {"task_name": f"t{q}", "prompt": "Task?", "rubric": task}
        | {"meta": {"model": model, "run_id": f"r{n}"}}
        | {"answer": "Forbidden." if (q + n) % (2 + (model == "new")) == 0 else "It is certain."}
        for q in range(6)
        for model in ("old", "new")
        for n in range(3)
    ]
    write_answers(Path(), rows, {"model": "python/judge:good", "repeats": 2})
    call.run()
    flags = "--by model --baseline old --stability run_id"
    found, said = call.json(f"compare {flags}"), call(f"compare {flags}").out
    overall, parts = found["stability"]["rows"][-1], found["repeats"]["components"][-1]
    assert overall["dimension"] == parts["dimension"] == "overall" and 0 < overall["sd"] < 1
    assert {f"{100 * overall[key]:.1f}" for key in ("baseline_sd", "sd")} <= set(said.split())
    assert 0 < parts["between"] < 1 and f"{10000 * parts['between']:.3f}" in said.split()
