"""Published means, rates and differences through `evenhand import` and `evenhand compare`."""

from __future__ import annotations

import pytest

from tests.published.data import anchor, expected, folder, imported, queried, records
from tests.sentences import is_told
from tests.unit.cli.conftest import NEWEST

MAXIMA = {
    "Correctness": 3,
    "Explanation Correctness": 2,
    "Accuracy": 5,
    "Fluency": 3,
    "Logicality": 3,
    "Informativeness": 3,
}
JUDGES = ("GPT-4-Turbo", "GPT-4o", "GPT-4.1", "GPT-4.1-mini")


def means(found, dimension):
    """Of every variant the mean on a dimension, and of how many units it is."""
    return {
        one["variant"]: (one["mean"], one["n"])
        for one in found["means"]
        if one["dimension"] == dimension and one["n"]
    }


def shisa(call, score="score"):
    """Every judgment; -1 stands for a reply that was not parsed."""
    scores, categories = (
        folder() / "shisa_ja" / name for name in ("scores.csv.gz", "question_categories.csv")
    )
    columns = ", ".join(f'"{judge}"' for judge in JUDGES)
    sql = (
        f"select question_id as unit, * exclude question_id replace ({score} as score)"
        f" from (unpivot '{scores}' on {columns} into name judge value score)"
        f" left join '{categories}' using (question_id) order by unit, model, turn, judge"
    )
    return call("import --kind scores --sql", sql)


def shisa_cells(call):
    """Every published cell, as the command gives it: (model, turn, row, judge)."""
    found = {}
    rows = {
        ("model",): lambda m: (m, "", "Overall Average"),
        ("model", "turn"): lambda m, t: (m, "", f"Overall (Turn {t})"),
        ("model", "category"): lambda m, c: (m, "", f"{c} (Average)"),
        ("model", "category", "turn"): lambda m, c, t: (m, t, c),
    }
    for judge in JUDGES:
        for fields, name in rows.items():
            by = " ".join(f"--by {one}" for one in fields)
            compared = call(f"compare {NEWEST} {by} --judge {judge}")
            for variant, (mean, _) in means(compared, "score").items():
                found[(*name(*variant.split(" / ")), judge)] = mean
    return found


def published_cells():
    return {
        (row["model"], row["turn"], row["row"], judge): float(row[judge])
        for row in records("shisa_ja/published_cells.csv")
        for judge in JUDGES
    }


def test_japanese_cells_as_published_take_unparsed_replies_for_scores(call):
    target, published = anchor("shisa_ja.cells"), published_cells()
    shisa(call)
    found = shisa_cells(call)
    assert len(published) == target["value"]["cells"] and found.keys() == published.keys()
    apart = {key for key in found if abs(found[key] - published[key]) > target["tolerance"]}
    assert apart == set()


def test_japanese_cells_without_unparsed_replies_differ_where_there_are_any(call):
    """The trap: -1 says that a judge's reply was not parsed. Failures are no scores."""
    told = shisa(call, "nullif(score, -1)")
    lost = [
        (row["model"], judge)
        for row in records("shisa_ja/scores.csv.gz")
        for judge in JUDGES
        if row[judge] == "-1"
    ]
    assert sum(told["failures"].values()) == len(lost) > 0
    found, published = shisa_cells(call), published_cells()
    gaps = {key: found[key] - published[key] for key in found}
    apart = {key: gap for key, gap in gaps.items() if abs(gap) > 0.0051}
    assert len(apart) == 16 and {(key[0], key[3]) for key in apart} <= set(lost)
    # An unparsed reply taken for -1 can only lower a mean.
    assert min(apart.values()) > 0 and max(apart.values()) == pytest.approx(1.09, abs=0.006)


def test_chinese_totals_follow_from_the_means_by_subject(call):
    columns = ", ".join(f'"{name}"' for name in MAXIMA)
    sql = (
        "select question_uuid as unit, llm_name as model, 'gpt-4' as judge, subject, type,"
        f" dimension, score from FILE unpivot include nulls (score for dimension in ({columns}))"
    )
    queried(call, "llmeval2_zh/gpt4_scores.csv.gz", "scores", sql)
    compared = call(f"compare {NEWEST} --by model --by subject")
    points = {}
    for dimension, most in MAXIMA.items():
        for variant, (mean, n) in means(compared, dimension).items():
            got, of = points.get(variant, (0.0, 0.0))
            points[variant] = (got + mean * n, of + most * n)
    shares = {}
    for variant, (got, of) in points.items():
        shares.setdefault(variant.split(" / ")[0], []).append(100 * got / of)
    assert {len(one) for one in shares.values()} == {12}
    totals = {name: sum(one) / 12 for name, one in shares.items()}
    assert totals == expected("llmeval2.gpt4_totals")
    # No question is graded on every dimension, so there is no overall figure, and that is said.
    assert any(is_told(note, "notes.no_overall") for note in compared["notes"])
    # The trap: three published rows have means that the data do not give, with right totals.
    assert anchor("llmeval2.inconsistent_published_rows")["kind"] == "trap"
    compared = call(f"compare {NEWEST} --by model")
    correct, accurate = means(compared, "Correctness"), means(compared, "Accuracy")
    assert correct["zhigong"][0] < 2.072 - 0.01 and accurate["zhigong"][0] < 4.080 - 0.01


def test_russian_rates_and_means(call):
    rows, models = [], ("gpt_20B", "llama", "llama_17B")
    for name in models:
        for row in records(f"ru_truthfulqa_judge/{name}.jsonl.gz"):
            judged = row["judge"]
            scores = {
                "truthfulness_rate": int(judged["truth_verdict"] == "correct"),
                "hallucination_rate": int(judged["contains_incorrect_claim"]),
                "mean_truth_score": judged["truth_score"],
                "mean_best_answer_score": judged["best_answer_score"],
                "mean_overall_score": judged["truth_score"] * judged["best_answer_score"] / 4,
            }
            about = {"unit": row["question_id"], "model": name, "judge": "judge"}
            rows += [about | {"dimension": d, "score": score} for d, score in scores.items()]
    imported(call, "scores", rows)
    compared = call(f"compare {NEWEST} --by model --baseline llama")
    for model in models:
        published = anchor(f"ru_truthfulqa.{model}")["value"]
        for dimension in published.keys() - {"n"}:
            mean, n = means(compared, dimension)[model]
            assert (mean, n) == (expected(f"ru_truthfulqa.{model}", dimension), published["n"])
    # `llama_17B` was judged on 63 of 200 questions, and is compared on these alone.
    assert {row["variant"]: row["n"] for row in compared["rows"]} == {
        "gpt_20B": 200,
        "llama_17B": 63,
    }
    assert compared["missing"]["llama"]["unpaired"] == 200 - 63


COUNTS = ("critical_mistakes", "mistakes", "additional_mistakes")


def test_russian_error_counts_of_every_run(call):
    sql = (
        "select dialog_id as unit, log as prompt_variant, 'gemini-2.5-pro' as judge, dimension,"
        " case when error is null or error = '' then score end as score"
        f" from FILE unpivot include nulls (score for dimension in ({', '.join(COUNTS)}, tokens))"
    )
    told = queried(call, "ruqual_ru/results.jsonl.gz", "scores", sql)
    errors = sum(bool(row["error"]) for row in records("ruqual_ru/results.jsonl.gz"))
    assert sum(told["failures"].values()) == errors
    compared = call(f"compare {NEWEST} --by prompt_variant")
    published = records("ruqual_ru/published_summaries.csv")
    target = anchor("ruqual.summaries")
    assert len(published) == target["value"]["runs"]
    sums = {d: {v: m * n for v, (m, n) in means(compared, d).items()} for d in (*COUNTS, "tokens")}
    for row in published:
        tokens = sums["tokens"][row["log"]]
        assert tokens == pytest.approx(int(row["total_tokens"]))
        for dimension in COUNTS:
            short = dimension.removesuffix("_mistakes")
            count = sums[dimension][row["log"]]
            assert count == pytest.approx(int(row[f"total_{short}"]))
            rate = float(row[f"{short}_per_1000"])
            assert 1000 * count / tokens == pytest.approx(rate, abs=target["tolerance"])


def test_a_second_judge_beside_the_first_on_russian_errors(call):
    sql = (
        "select unit, '{0}' as judge, dimension, score from (select row_number() over () as unit,"
        f" {', '.join(f'{{0}}_scores.{name} as {name}' for name in COUNTS)} from FILE)"
        f" unpivot include nulls (score for dimension in ({', '.join(COUNTS)}))"
    )
    runs = {
        who: queried(call, "ruqual_ru/judge_vs_judge.jsonl.gz", "scores", sql.format(who))["run"]
        for who in ("original", "new")
    }
    compared = call(f"compare {runs['new']} --against {runs['original']}")
    target = anchor("ruqual.judge_vs_judge")["value"]
    assert [row["dimension"] for row in compared["rows"]] == [*COUNTS, "overall"]
    for row in compared["rows"]:
        if row["dimension"] in COUNTS:
            total = target["total_diff"][row["dimension"]]
            assert row["difference"] * row["n"] == pytest.approx(total, abs=1e-9)
            short = row["dimension"].removesuffix("_mistakes")
            changes = target["comparison"]["mistakes" if short == row["dimension"] else short]
            same = row["n"] - row["higher"] - row["lower"]
            assert (row["higher"], row["lower"], same) == tuple(changes.values())
