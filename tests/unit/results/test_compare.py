"""What is missing of pairs in a comparison: judgments that are still to come count, and move the
bounds; pairs of others do not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from evenhand.cli.main import cli
from evenhand.errors import UsageError
from tests.sentences import is_told
from tests.suites import pair_reply, pair_row, write_pairs, write_rows, write_suite
from tests.unit.cli.conftest import values


def call(line):
    """What a command line says that must work."""
    result = CliRunner().invoke(cli, line.split())
    assert result.exit_code == 0, result.output
    return result.stdout


def compared(line):
    return json.loads(call(f"compare {line} --json"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def won(number, **meta):
    """Pairs that c2 wins, each on a topic of its own."""
    return [pair_row(f"p{i}", 2, 9, topic=f"Topic {i}?", meta=meta) for i in range(number)]


def test_pairs_that_are_not_judged_yet_are_pending_and_move_the_bounds(folder):
    write_pairs(folder, won(10))
    call("run . --limit 4")
    comparison = compared("latest --baseline c1")
    count = comparison["missing"]["c2"]
    assert values(count, "planned scored failed pending") == [10, 4, 0, 6]
    assert values(count, "units incomplete") == [10, 6]
    for row in comparison["rows"]:
        assert (row["n"], row["difference"]) == (4, 1)
        assert row["bounds"] == pytest.approx([2 * 4 / 10 - 1, 1])
    text = call("compare latest --baseline c1")
    assert not is_told(text, "terminal.all_scored") and "-0.200 to +1.000" in text
    call("run .")
    comparison = compared("latest --baseline c1")
    whole = dict.fromkeys(("units", "planned", "scored"), 10)
    whole |= dict.fromkeys(("incomplete", "failed", "pending", "unpaired"), 0)
    assert comparison["missing"]["c2"] | {"missing_scores": {}} == whole | {"missing_scores": {}}
    assert {tuple(row["bounds"]) for row in comparison["rows"]} == {(1.0, 1.0)}
    assert is_told(call("compare latest --baseline c1"), "terminal.all_scored", n=10)


def test_what_one_judge_has_still_to_say_is_pending(folder):
    good, again = "content", {"model": "python/judge:tie", "repeats": 2}
    write_pairs(folder, won(3), good, again)
    call("run . --limit 1")
    (count,) = compared("latest --baseline c1")["missing"].values()
    assert values(count, "planned scored pending") == [9, 3, 6]
    (count,) = compared("latest --baseline c1 --judge python/judge:tie")["missing"].values()
    assert values(count, "planned scored pending") == [6, 2, 4]


def test_only_pending_pairs_with_the_baseline_count(folder):
    write_pairs(folder, [pair_row(f"p{i}", 1, 2, 3, topic=f"Topic {i}?") for i in range(4)])
    call("run . --limit 6")  # of two topics all pairs, of two none
    missing = compared("latest --baseline c1")["missing"]
    assert {name: values(count, "scored pending") for name, count in missing.items()} == {
        "c2": [2, 2],
        "c3": [2, 2],
    }


def test_blocks_within_a_field_have_their_own_pending_pairs(folder):
    rows = won(6)
    for i, row in enumerate(rows):
        row["meta"] = {"area": "law" if i < 2 else "art"}
    write_pairs(folder, rows)
    call("run . --limit 3")
    blocks = compared("latest --baseline c1 --within area")["within"]["blocks"]
    assert [block["missing"]["c2"]["pending"] for block in blocks] == [0, 3]


def test_where_nothing_is_judged_there_is_nothing_to_compare(folder):
    write_pairs(folder, [*won(2, area="law"), pair_row("q", 2, 9, meta={"area": "art"})])
    call("run . --limit 2")
    assert refused("latest --where area=art").key == "stats.nothing_judged"


def test_a_report_says_what_pending_pairs_could_turn(folder):
    write_pairs(folder, won(20))
    call("run . --limit 8")
    call("report latest -o part.html")
    text = (folder / "part.html").read_text()
    assert is_told(text, "notes.fragile_better", low=-0.2, high=1.0)
    call("run .")
    call("report latest -o whole.html")
    assert not is_told((folder / "whole.html").read_text(), "notes.fragile_better")


def test_a_candidate_that_only_pending_pairs_have_is_in_a_comparison_without_figures(
    folder,
):
    write_pairs(folder, [*won(2), pair_row("q", 2, 9, 3, topic="Another?")])
    call("run . --limit 2")
    comparison = compared("latest --baseline c1")
    assert comparison["missing"]["c3"]["pending"] == 1
    assert {row["n"] for row in comparison["rows"] if row["variant"] == "c3"} == {0}
    call("compare latest")
    call("report latest -o report.html")


def run_of(options=""):
    return str(json.loads(call(f"run . --json {options}"))["run"])


def run_before_and_after(folder, rows, options="", judge="other"):
    """Two runs of the same pairs, the second by another judge."""
    write_pairs(folder, rows, name="before")
    before = run_of()
    write_pairs(folder, rows, judge, name="after")
    return before, run_of(options)


def counted(comparison, run):
    earlier, later = comparison["missing"].values()
    count = earlier if run == comparison["against"] else later
    return tuple(values(count, "planned scored failed pending incomplete"))


def test_pairs_of_other_candidates_are_not_missing_between_two_runs(folder):
    rows = [pair_row(f"p{i}", 1, 2, 3, topic=f"Topic {i}?") for i in range(4)]
    before, after = run_before_and_after(folder, rows)
    comparison = compared(f"{after} --against {before}")
    assert counted(comparison, after) == counted(comparison, before) == (12, 12, 0, 0, 0)
    assert not any(count["missing_scores"] for count in comparison["missing"].values())
    assert [row["difference"] for row in comparison["rows"]] == [1, 0, -1]
    for row in comparison["rows"]:
        assert row["n"] == 8
        assert row["bounds"] == pytest.approx([row["difference"]] * 2)
    assert is_told(call(f"compare {after} --against {before}"), "terminal.all_scored", n=24)


def test_pairs_that_one_of_two_runs_has_still_to_judge_are_pending(folder):
    rows = [pair_row(f"p{i}", 1, 2, 3, topic=f"Topic {i}?") for i in range(4)]
    before, after = run_before_and_after(folder, rows, "--limit 6")
    comparison = compared(f"{after} --against {before}")
    assert counted(comparison, before) == (12, 12, 0, 0, 0)
    assert counted(comparison, after) == (12, 6, 0, 6, 6)
    first = comparison["rows"][0]
    assert (first["n"], first["difference"]) == (4, 1)
    # It won no pair before. Now it wins four, and has four to come.
    assert first["bounds"] == pytest.approx([4 / 8, 1])


def test_pairs_of_candidates_that_one_run_alone_has_count_in_neither(folder):
    write_pairs(folder, won(3), name="before")
    before = run_of()
    more = pair_row("q", 1, 2, 3, 4, topic="Another?")  # of c3 and c4 nothing can be compared
    write_pairs(folder, [*won(3), more], name="after")
    after = run_of()
    comparison = compared(f"{after} --against {before}")
    assert counted(comparison, after) == (8, 8, 0, 0, 0)
    assert counted(comparison, before) == (3, 3, 0, 0, 0)
    unpaired = {name: count["unpaired"] for name, count in comparison["missing"].items()}
    assert unpaired == {"after": 5, "before": 0}


def write_replies(folder, units):
    """A judge that has replies for some pairs, each won by the second candidate."""
    replies = [
        {"unit": unit, "order": order, "reply": pair_reply(mark)}
        for unit in units
        for order, mark in (("12", "B+"), ("21", "A+"))
    ]
    write_rows(folder, replies, "replies.jsonl")
    return {"model": "replay/replies.jsonl"}


@pytest.mark.parametrize("names", [("old-x", "old-y"), ("c2", "c1")])
def test_a_pair_that_is_not_judged_yet_names_no_baseline(folder, names):
    """Which candidate is the first must not change when the rest is judged."""
    rows = [pair_row("z", 2, 9, topic="Z?"), *won(4)]
    for candidate, name in zip(rows[0]["candidates"], names, strict=True):
        candidate["id"] = name
    write_pairs(folder, rows, write_replies(folder, ["p0", "p1", "p2", "p3"]))
    call("run .")
    comparison = compared("latest")
    assert comparison["baseline"] == "c1"
    assert {(row["n"], row["difference"]) for row in comparison["rows"]} == {(4, 1)}
    call("report latest -o report.html")


def test_a_report_against_a_candidate_that_no_judged_pair_has_is_refused(folder):
    rows = won(4)
    rows[3]["candidates"][0]["id"] = "c3"
    write_pairs(folder, rows)
    call("run . --limit 3")
    result = CliRunner().invoke(cli, "report latest --baseline c3 -o r.html")
    assert isinstance(result.exception, UsageError) and "c3" in str(result.exception)


def test_what_other_judges_are_to_say_is_not_missing_from_one_of_two_runs(folder):
    judge, other = "content", "tie"
    write_pairs(folder / "before", won(3), judge, other)
    write_pairs(folder / "after", won(3), {"model": "python/judge:content", "repeats": 2})
    runs = [
        json.loads(call(f"run {name} --store sqlite:all.db --json"))["run"]
        for name in ("before", "after")
    ]
    options = "--judge python/judge:content --store sqlite:all.db"
    comparison = compared(f"{runs[1]} --against {runs[0]} {options}")
    assert [count["pending"] for count in comparison["missing"].values()] == [0, 0]
    assert {tuple(row["bounds"]) for row in comparison["rows"]} == {(0.0, 0.0)}


def gated(flags):
    """What a gate says, however it ends."""
    return json.loads(CliRunner().invoke(cli, f"gate latest {flags} --json").stdout)


def held(flags):
    """The only condition of a gate."""
    (condition,) = gated(flags)["conditions"]
    return dict[str, Any](condition)


def three_candidates(folder, judged):
    """Twelve topics of three candidates; of each only these pairs are judged, for the second."""
    rows = [pair_row(f"p{i}", 1, 2, 3, topic=f"Topic {i}?") for i in range(12)]
    units = [f"p{i}#{pair}" for i in range(12) for pair in judged]
    write_pairs(folder, rows, write_replies(folder, units))
    call("run .")


def test_a_gate_is_not_widened_by_pending_pairs_of_others(folder):
    three_candidates(folder, ["c1~c2"])
    (count,) = [compared("latest --baseline c1")["missing"]["c2"]]
    assert values(count, "scored pending") == [12, 0]
    for condition in ("--better", "--no-worse-than=0.1", "--min-win-rate=0.6"):
        said = held(f"--baseline c1 --candidate c2 {condition}")
        assert said["outcome"] == "better", said["reason"]


def test_a_gate_is_widened_by_pending_pairs_of_the_two(folder):
    write_pairs(folder, won(24))
    call("run . --limit 12")
    said = held("--baseline c1 --candidate c2 --min-win-rate 0.6")
    assert said["outcome"] == "not enough evidence"
    assert is_told(said["reason"], "gate.turned_rate", low=50.0, high=100.0)


def test_a_candidate_that_is_not_judged_yet_keeps_a_gate_on_all_open(folder):
    three_candidates(folder, ["c1~c2"])
    gate = gated("--baseline c1 --better")
    outcomes = {row["variant"]: row["outcome"] for row in gate["conditions"]}
    assert outcomes == {"c2": "better", "c3": "not enough evidence"}
    assert gate["outcome"] == "not enough evidence"


def test_a_win_rate_against_all_is_widened_by_pending_pairs_of_the_candidate(folder):
    three_candidates(folder, ["c1~c2", "c2~c3"])  # c2 wins one and loses one, c1 has one to come
    said = held("--candidate c2 --min-win-rate 0.3")
    assert (said["outcome"], said["value"], said["n"]) == ("better", 0.5, 24)
    assert is_told(said["reason"], "gate.of_pairs_grouped", n=24, clusters=12)
    said = held("--candidate c1 --min-win-rate 0.3")
    assert said["outcome"] == "not enough evidence"
    assert is_told(said["reason"], "gate.turned_rate", low=0.0, high=50.0)


def test_a_win_rate_against_all_counts_a_pair_once(folder):
    write_pairs(folder, won(12), {"model": "python/judge:content", "repeats": 2}, "other")
    call("run .")
    said = held("--candidate c2 --min-win-rate 0.3")
    (row,) = [
        row
        for row in json.loads(call("leaderboard latest --json"))["rows"]
        if row["candidate"] == "c2"
    ]
    assert (said["n"], said["value"]) == (row["n"], pytest.approx(row["win_rate"]))
    assert said["n"] == 12


def test_repeats_that_a_judge_has_still_to_give_are_pending_between_two_runs(folder):
    write_pairs(folder, won(3), name="before")
    before = run_of()
    judge = write_replies(folder, ["p0", "p1", "p2"]) | {"repeats": 3}  # of the first repeat alone
    write_pairs(folder, won(3), judge, "content", name="after")
    after = run_of()
    comparison = compared(f"{after} --against {before}")
    assert counted(comparison, after) == (12, 6, 0, 6, 3)
    options = "--judge python/judge:content"
    assert counted(compared(f"{after} --against {before} {options}"), after) == (3, 3, 0, 0, 0)
    write_pairs(folder, won(3), judge | {"repeats": 1}, name="once")
    once = run_of()
    comparison = compared(f"{after} --against {once} --judge replay/replies.jsonl")
    assert counted(comparison, after) == (9, 3, 0, 6, 3)
    assert counted(comparison, once) == (3, 3, 0, 0, 0)
    assert [row["bounds"] for row in comparison["rows"]] == [pytest.approx([0, 2 / 3])]


def refused(line):
    result = CliRunner().invoke(cli, f"compare {line}")
    assert isinstance(result.exception, UsageError), result.output
    return result.exception


def test_two_runs_of_which_nothing_is_judged_are_not_said_to_be_of_other_candidates(
    folder,
):
    rows = [*won(2, area="law"), pair_row("q", 2, 9, topic="Q?", meta={"area": "art"})]
    before, after = run_before_and_after(folder, rows, "--limit 2")
    for runs in (f"{after} --against {before}", f"{before} --against {after}"):
        said = refused(f"{runs} --where area=art")
        assert said.key == "compare.unjudged"
        assert said.what.values == {"run": after, "failed": 0, "pending": 1}


def test_a_judge_that_one_of_two_runs_lacks_is_said(folder):
    before, after = run_before_and_after(folder, won(2))
    for judge in ("python/judge:other", "nobody"):
        said = refused(f"{after} --against {before} --judge {judge}")
        assert said.key == "stats.no_judge"


@pytest.mark.parametrize("worths", [(2, 9), (1, 2, 3)])
def test_two_runs_of_pairs_say_nothing_of_an_overall_figure(folder, worths):
    rows = [pair_row(f"p{i}", *worths, topic=f"Topic {i}?") for i in range(6)]
    write_pairs(folder, rows, {"model": "python/judge:coin", "repeats": 2}, name="before")
    before = run_of()
    write_pairs(folder, rows, {"model": "python/judge:content", "repeats": 2}, name="after")
    after = run_of()
    comparison = compared(f"{after} --against {before}")
    wanted = {f"win rate of c{i + 1}" for i in range(len(worths) if len(worths) > 2 else 1)}
    assert {row["dimension"] for row in comparison["rows"]} == wanted
    assert not [note for note in comparison["notes"] if "overall" in note]
    assert "overall" not in call(f"compare {after} --against {before}")


REPLIES = "replies.jsonl"
REPLAY = f"replay/{REPLIES}"


def samples():
    return [
        {"id": f"{variant}/q{i}", "question": f"Question {i}?", "model_output": "worth 5 points"}
        | {"meta": {"prompt_variant": variant, "question_id": f"q{i}"}}
        for variant in ("v1", "v2")
        for i in range(3)
    ]


@pytest.fixture
def replies(folder):
    """The folder of a judge that has a reply to the first repeat of every sample."""
    given = {"evidence": ["worth 5"], "rationale": "so", "score": 5}
    reply = {"scores": {"correct": given, "clear": given}, "failure_tags": [], "notes": ""}
    write_rows(
        folder, [{"unit": row["id"], "reply": json.dumps(reply)} for row in samples()], REPLIES
    )
    return folder


def pending(comparison):
    counts = comparison["missing"].items()
    return {name: values(count, "scored pending") for name, count in counts}


def test_unfinished_repeats_of_one_judge_are_pending(replies):
    judge = {"model": REPLAY, "repeats": 3}
    write_suite(replies, samples(), judge, "good")
    call("run .")
    by = "latest --by prompt_variant --baseline v1"
    assert pending(compared(f"{by}")) == {"v1": [6, 6], "v2": [6, 6]}
    judged = compared(f"{by} --judge {REPLAY}")
    assert pending(judged) == {"v1": [3, 6], "v2": [3, 6]}
    assert judged["rows"][0]["bounds"] == pytest.approx([-8 / 3, 8 / 3])
    judged = compared(f"{by} --judge python/judge:good")
    assert pending(judged) == {"v1": [3, 0], "v2": [3, 0]}


def test_unfinished_repeats_of_one_judge_are_pending_between_two_runs(replies):
    write_suite(replies, samples(), {"model": REPLAY}, name="before")
    before = run_of()
    write_suite(replies, samples(), {"model": REPLAY, "repeats": 3}, name="after")
    judged = compared(f"{run_of()} --against {before} --judge {REPLAY}")
    assert pending(judged) == {"before": [6, 0], "after": [6, 12]}


def test_two_runs_of_which_nothing_is_judged_are_not_said_to_have_other_dimensions(
    replies,
):
    write_suite(replies, samples(), {"model": REPLAY}, name="before")
    before = run_of()
    write_suite(replies, samples(), "bad", name="after")
    after = json.loads(CliRunner().invoke(cli, "run . --json").stdout)["run"]
    said = refused(f"{after} --against {before}")
    assert said.key == "compare.unjudged"
    assert said.what.values == {"run": after, "failed": 6, "pending": 0}
