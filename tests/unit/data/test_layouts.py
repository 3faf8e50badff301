"""The layouts of other tools, in small samples of each, as tidy rows."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import pytest

from evenhand import limits
from evenhand.data.layouts import LAYOUTS, JudgmentFile
from evenhand.data.layouts.benchmarks import arena_verdict
from evenhand.data.layouts.logs import zip_module
from evenhand.data.layouts.tidy import lengths_of, read_candidate, read_score, read_vote
from evenhand.errors import DataError, UsageError
from tests.cases import cases
from tests.sentences import refused

arrow = pytest.importorskip("pyarrow")
DATA = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
ALPACA, PAIR, RESULT, FAILED, HEADER, SAMPLES = DATA.values()


def found(path, kind):
    return list(LAYOUTS[kind].read(JudgmentFile(path=path)))


def lines(folder, *rows):
    path = folder / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def said(rows):
    """Who won each vote, by name; the reason of a failure."""
    votes = [(row.value, read(row)) for row in rows]
    return [
        str(value[vote.side]) if vote.side in ("first", "second") else vote.side or vote.failed
        for value, vote in votes
    ]


def read(row):
    first, second = (read_candidate(row.value, name, row.where) for name in ("first", "second"))
    return read_vote(row.value, first, second)


def scored(rows):
    """The score of each dimension; of a failure its detail."""
    found = [read_score(row.value) for row in rows]
    return {one.dimension: one.detail if one.failed else one.score for one in found}


def test_alpacaeval(tmp_path):
    preferences = [1, 2, 1.5, 0, 1.25, None, 3, float("nan"), -1, "$ERROR$", ""]
    path = tmp_path / "annotations.json"
    path.write_text(json.dumps([ALPACA | {"preference": one} for one in preferences], indent=2))
    rows = found(path, "alpacaeval")
    assert said(rows) == [
        *("base", "new", "tie", "tie", "base", "empty", "schema", "empty"),
        *("schema", "schema", "empty"),
    ]
    votes = [read(row) for row in rows[:7]]
    assert [vote.preference for vote in votes] == [0, 1, 0.5, 0.5, 0.25, None, None]
    assert lengths_of(rows[0].value, ("", "")) == [10, 5]
    value = {"judge": "gpt4", "dataset": "koala", "instruction": "Name a river."}
    assert rows[0].value.items() >= value.items()
    assert len({row.value["unit"] for row in rows}) == 1


def test_fastchat_pairs_are_two_votes_in_opposite_orders(tmp_path):
    games = [("model_1", "model_1"), ("model_2", "tie"), ("error", "model_2")]
    games += [("$ERROR$", None), (-1, "-1")]
    rows = [PAIR | {"g1_winner": g1, "g2_winner": g2} for g1, g2 in games]
    made = found(lines(tmp_path, *rows), "fastchat")
    assert said(made) == ["a", "a", "b", "tie", "schema", "b", "schema", "empty", *["schema"] * 2]
    orders = [(row.value["first"], row.value["second"]) for row in made[:2]]
    assert orders == [("a", "b"), ("b", "a")]
    value = {"unit": 81, "judge": "gpt-4", "turn": 1, "judge_prompt": "pair-v2"}
    assert made[0].value.items() >= value.items() and "g1_judgment" not in made[0].value


def test_fastchat_votes_of_people_and_settled_ones(tmp_path):
    row = {"question_id": 1, "model_a": "a", "model_b": "b", "judge": "expert_1", "turn": 2}
    labels = ["model_a", "model_b", "tie", "tie (inconsistent)", "neither"]
    made = found(lines(tmp_path, *(row | {"winner": one} for one in labels)), "fastchat")
    assert said(made) == ["a", "b", "tie", "tie", "schema"]
    assert [one.flag for one in made] == ["", "", "", "inconsistent", ""]


def test_fastchat_grades(tmp_path):
    row = {"question_id": "11", "model": "m", "judge": ["gpt-4", "single-v1"], "turn": 1}
    scores = (8.5, 10, 0, -1, 100, -3)
    made = found(lines(tmp_path, *(row | {"score": one} for one in scores)), "fastchat")
    read = [read_score(one.value) for one in made]
    failed = ["", "", "", "schema", "out_of_range", "out_of_range"]
    assert [one.failed for one in read] == failed
    assert read[0].score == 8.5 and made[0].value["model"] == "m"
    assert "not parsed" in read[3].detail


def test_a_fastchat_file_of_another_kind_is_refused(tmp_path):
    with refused(DataError, "data.no_column", "g1_winner, winner, score"):
        found(lines(tmp_path, {"question_id": 1, "turns": ["a question"]}), "fastchat")
    with refused(DataError, "data.no_column", "question_id"):
        found(lines(tmp_path, {"model": "m", "score": 3}), "fastchat")


@cases
def test_an_arena_label_says_the_same_either_way_round(label, winner, flag):
    assert arena_verdict(label) == (winner, flag)
    assert arena_verdict(None) == (None, "")


def test_arena_hard(tmp_path):
    row = {"question_id": "q", "model": "m", "judge": "gpt-4"}
    games = [{"score": "A<<B", "judgment": "..."}, {"score": "B>A"}]
    failed = [{"score": None}, None, {"score": "$ERROR$"}, {"score": -1}, {"score": ""}, {}]
    second = {"uid": "u", "model": "m", "judge": "j", "baseline": "o3", "category": "hard"}
    rows = [row | {"games": games}, second | {"games": games}, row | {"games": failed}]
    made = found(lines(tmp_path, *rows, row | {"games": []}), "arena-hard")
    # The first game shows the baseline first, the second the model.
    assert said(made) == [
        *("m", "baseline", "m", "o3"),
        *("empty", "empty", "schema", "schema", "empty", "empty", "empty"),
    ]
    assert [one.flag for one in made[:5]] == ["strong", "", "strong", "", ""]
    assert made[2].value["unit"] == "u" and made[2].value["category"] == "hard"


def promptfoo(folder, whole):
    path = folder / "results.json"
    path.write_text(json.dumps(whole, indent=1))
    return found(path, "promptfoo")


def test_promptfoo(tmp_path):
    summary = {"version": 3, "prompts": [{"raw": "x"}], "results": [RESULT, FAILED], "stats": {}}
    made = promptfoo(tmp_path, {"evalId": "e", "results": summary, "config": {"tests": [1, "}"]}})
    scores = {"score": 0.75, "tone": 0.5, "contains": 1, "contains 2": 0, "latency": 1.0}
    assert scored(made[:-1]) == scores
    value = {"unit": 0, "model": "openai:gpt-5", "prompt": "Solve: {{sum}}"}
    assert made[0].value.items() >= value.items()
    assert scored(made[-1:]) == {None: "error: API error: 500"}
    assert made[-1].value["model"] == "echo"


def test_promptfoo_of_older_versions(tmp_path):
    old = {k: v for k, v in RESULT.items() if k not in ("testIdx", "failureReason")}
    made = promptfoo(tmp_path, {"version": 1, "results": [old], "table": {"body": []}})
    again = promptfoo(tmp_path, {"results": {"version": 2, "results": [old], "table": {}}})
    assert [one.value for one in made] == [one.value for one in again]
    assert len({one.value["unit"] for one in made}) == 1


def test_a_file_without_results_is_refused(tmp_path):
    with refused(DataError, "data.no_results"):
        promptfoo(tmp_path, {"prompts": []})
    with refused(DataError, "data.file_without_rows"):
        promptfoo(tmp_path, [])
    with refused(UsageError, "data.no_table_kind"):
        file = JudgmentFile(path=tmp_path / "results.json", columns={"a": "b"})
        next(LAYOUTS["promptfoo"].read(file))


def test_results_may_be_packed_and_damage_is_told(tmp_path):
    path = tmp_path / "results.json.gz"
    packed = gzip.compress(json.dumps({"results": [RESULT]}).encode())
    path.write_bytes(packed)
    assert len(found(path, "promptfoo")) == 5
    path.write_bytes(packed[:-20])
    with refused(DataError, "data.bad_gzip"):
        found(path, "promptfoo")


def packed(path, files, module=zipfile, method=8):
    with module.ZipFile(path, "w", method) as archive:
        for name, value in files.items():
            archive.writestr(name, json.dumps(value))
    return path


def check_inspect(made):
    by_sample = {}
    for one in made:
        by_sample.setdefault((one.value["unit"], one.value["repeat"]), []).append(one)
    assert scored(by_sample["s1", 1]) == {
        "match": 1,
        "graded/tone": 0.5,
        "graded/sense": 1,
        "length": 12,
        "words": 'score "maybe" is not a number',
    }
    assert scored(by_sample["s1", 2]) == {"match": 0}
    assert scored(by_sample[2, 1]) == {None: "error: out of memory"}
    assert scored(by_sample[3, 1]) == {"match": "there is no score"}
    assert scored(by_sample[4, 1]) == {None: "there is no score"}
    value = by_sample["s1", 1][0].value
    assert (value["model"], value["task"], value["input"]) == ("openai/gpt-4", "sums", "1+1?")
    assert value["metadata.area"] == "plus" and "metadata.deep" not in value


def _log(path):
    whole = HEADER | {"plan": {"steps": ["a", {"b": "}"}]}, "samples": SAMPLES, "n": 1.5}
    path.write_text(json.dumps(whole, indent=2))
    return path


def _zstandard(path):
    module = zip_module()
    packed(path, SUMMARIES, module, module.ZIP_ZSTANDARD)
    assert {entry.compress_type for entry in zipfile.ZipFile(path).infolist()} == {93}
    return path


PARTS = {f"samples/{i}.json": one for i, one in enumerate(SAMPLES)} | {"header.json": HEADER}
SUMMARIES = {"header.json": HEADER, "summaries.json": SAMPLES}
UNREAD = SUMMARIES | {"samples/s1_epoch_1.json": {"id": "not read"}}
LOGS = {
    "summaries.eval": lambda path: packed(path, UNREAD),
    "samples.eval": lambda path: packed(path, PARTS),
    "whole.json": _log,
    "zstandard.eval": _zstandard,
}


@pytest.mark.parametrize("name", LOGS)
def test_inspect_logs_of_every_form(tmp_path, name):
    check_inspect(found(LOGS[name](tmp_path / name), "inspect"))


def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "UNPACKED_BYTES", 100_000)
    bomb = [{"id": i, "input": "x" * 1000} for i in range(1000)]
    path = packed(tmp_path / "log.eval", {"header.json": HEADER, "summaries.json": bomb})
    assert path.stat().st_size < 20_000
    with refused(DataError, "data.log_too_large"):
        found(path, "inspect")


def test_an_archive_with_a_gigantic_sample_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "LINE_BYTES", 10_000)
    files = {"header.json": HEADER, "samples/1.json": {"id": "x" * 1_000_000}}
    with refused(DataError, "data.row_too_long"):
        found(packed(tmp_path / "log.eval", files), "inspect")


def test_a_damaged_archive_is_refused(tmp_path):
    path = packed(tmp_path / "log.eval", SUMMARIES)
    whole = path.read_bytes()
    middle = whole.find(b"summaries.json") + 30
    changed = whole[:middle] + b"\xff" * 8 + whole[middle + 8 :]
    for damaged in (whole[: len(whole) // 2], changed, b"no zip"):
        path.write_bytes(damaged)
        with refused(DataError, "data.bad_zip"):
            found(path, "inspect")


def test_an_archive_of_something_else_is_refused(tmp_path):
    with refused(DataError, "data.no_header_json"):
        found(packed(tmp_path / "log.eval", {"other.json": {}}), "inspect")
    with refused(DataError, "data.no_samples"):
        found(packed(tmp_path / "log.eval", {"header.json": HEADER}), "inspect")


# Errors of the other tool, and scores off its scale


def failures(rows):
    """The reason and detail of every row without a score."""
    read = [read_score(row.value) for row in rows]
    return [(score.failed, score.detail) for score in read if score.failed]


def graded(*components, score=0, **result):
    """A result of promptfoo whose assertions came out so."""
    grading = {"pass": score > 0.5, "score": score, "componentResults": list(components)}
    about = {"testIdx": 0, "provider": "echo", "failureReason": int(score <= 0.5)}
    return {**about, "score": score, "success": score > 0.5, "gradingResult": grading, **result}


def rubric(score, reason, **rest):
    """An assertion that a model graded."""
    assertion = {"type": "llm-rubric", "value": "is kind"}
    return {"pass": score > 0.5, "score": score, "reason": reason, "assertion": assertion, **rest}


NO_JSON = "Could not extract JSON from llm-rubric response"


@cases
def test_a_grader_of_promptfoo_that_failed_gives_no_score(tmp_path, reason, more, said):
    held = {"pass": True, "score": 1, "reason": "ok", "assertion": {"type": "contains"}}
    result = graded(held, rubric(0, reason, **more), score=0.5, namedScores={})
    [(failed, detail)] = failures(promptfoo(tmp_path, {"results": [result]}))
    assert failed == "schema" and said in detail


@pytest.mark.parametrize("reason", ["Error handling is missing.", "No output format is named.", ""])
def test_an_assertion_that_did_not_hold_is_a_score(tmp_path, reason):
    made = promptfoo(tmp_path, {"results": [graded(rubric(0, reason))]})
    assert scored(made) == {"score": 0, "llm-rubric": 0}


def test_a_grader_that_failed_without_components(tmp_path):
    grading = {"pass": False, "score": 0, "reason": NO_JSON}
    result = graded(gradingResult=grading, error=NO_JSON)
    assert failures(promptfoo(tmp_path, {"results": [result]})) == [("schema", f"error: {NO_JSON}")]


@pytest.mark.parametrize("score", [7, -0.5, 85.0])
def test_a_score_of_promptfoo_off_its_scale_is_a_failed_judgment(tmp_path, score):
    made = promptfoo(tmp_path, {"results": [graded(rubric(score, "good"), score=score)]})
    [(reason, detail)] = failures(made)
    assert (reason, len(made)) == ("out_of_range", 1)
    assert f"{score:g}" in detail and "0 to 1" in detail


def test_figures_of_promptfoo_that_no_assertion_gave_may_be_anything(tmp_path):
    result = graded(rubric(1, "good"), score=1, namedScores={"words": 212, "f1": 0.5})
    made = promptfoo(tmp_path, {"results": [result]})
    assert scored(made[:2] + made[3:]) == {"score": 1, "llm-rubric": 1, "f1": 0.5}
    assert failures(made)[0][0] == "out_of_range"


def test_assertions_of_promptfoo_that_share_a_metric_are_no_sum(tmp_path):
    """The tool adds them up, so that two that held were 2 of 1."""
    held = {"pass": True, "score": 1, "assertion": {"type": "contains", "metric": "tone"}}
    made = promptfoo(tmp_path, {"results": [graded(held, held, score=1, namedScores={"tone": 2})]})
    assert scored(made) == {"score": 1, "tone": 1}


def test_a_sample_of_inspect_that_ended_in_an_error_has_no_score(tmp_path):
    """Some scorers may have come before the error."""
    errored = {"id": 1, "epoch": 1, "scores": {"match": {"value": "I"}}, "error": "out of memory"}
    path = tmp_path / "log.json"
    path.write_text(json.dumps(HEADER | {"samples": [errored]}))
    assert failures(found(path, "inspect")) == [("schema", "error: out of memory")]


def test_arguments_of_inspect_are_fields(tmp_path):
    eval_ = {"model": "m", "task": "t", "task_args": {"shots": 5, "cot": None, "on": ["a"]}}
    eval_ |= {"solver": "plan", "solver_args": {"depth": 2}}
    path = tmp_path / "log.json"
    path.write_text(
        json.dumps({"eval": eval_, "samples": [{"id": 1, "scores": {"s": {"value": 1}}}]})
    )
    value = found(path, "inspect")[0].value
    assert (value["task_args.shots"], value["solver"], value["solver_args.depth"]) == (5, "plan", 2)
    assert (value["task_args.cot"], value["task_args.on"]) == ("null", '["a"]')
