"""The commands `runs` and `show`: a run, its figures, and each unit with what its judges said."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.provider import Provider, completion, valid_reply
from tests.sentences import is_told
from tests.suites import (
    GRADE_JUDGE,
    answers,
    at,
    evenhand_here,
    judged,
    ok_here,
    pair_row,
    stored,
    write_answers,
    write_pairs,
    write_suite,
)
from tests.suites import JUDGE as RUBRIC_JUDGE
from tests.unit.cli.conftest import leaning, values


def test_runs_lists_what_the_store_holds(call, mixed):
    (row,) = call.json("runs")["runs"]
    assert values(row, "run planned verdicts failures") == [mixed, 6, 3, {"schema": 3}]
    assert mixed in call("runs").out
    said = call(f"show {mixed[:5]}").out
    counts = {"verdicts": "3 verdicts", "failures": "3 failures", "pending": "0 pending"}
    assert is_told(said, "cli.outcome", **counts, planned=6) and is_told(said, "cli.failed")
    assert call.json("show")["run"] == mixed
    for line in (f"show {mixed} nobody", "show ffff", "export x -o a.csv"):
        call.refused(line)


def test_show_a_unit_with_prompts_replies_checks_and_offsets(call, mixed):
    found = call.json(f"show {mixed} u1")
    good, bad = found["judgments"]
    output, spot = found["unit"]["model_output"], good["evidence"][0]
    quote = good["output"]["scores"]["correct"]["evidence"][0]
    assert (output[spot["start"] : spot["end"]], spot["match"]) == (quote, "exact")
    assert [one["reask"] for one in bad["exchanges"]] == [0, 1, 2]
    assert bad["exchanges"][0]["reply"] == "{}"
    assert output in bad["exchanges"][0]["messages"][-1]["content"]
    text = call(f"show {mixed} u1").out
    assert f"[{spot['start']}:{spot['end']}]" in text and "Failed: schema" in text


def test_without_a_store_reading_is_exit_6(call, tmp_path):
    for line in ("runs", "show", "settle", "store verify"):
        call.refused(line, code=6)
    assert list(tmp_path.iterdir()) == []


def test_at_80_columns_names_and_dates_stay_on_one_line_and_crashes_show_their_end(
    call, tmp_path, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "80")
    crash, long = {"model": "python/judge:crash"}, RUBRIC_JUDGE.replace("no luck", "no luck " * 20)
    write_suite(tmp_path, 3, crash, judge=long, name="prompt-v2-against-v1")
    call("run")
    listed = call("runs").out.splitlines()
    assert len(listed) == 3
    assert re.search(r"prompt-v2-against-v1 .* \d\d-\d\d \d\d:\d\d$", listed[2])
    shown = call("show").out
    assert re.search(r"^u1 +failed: .*: ….*$", shown, re.MULTILINE)
    assert 'no luck no luck "' in shown
    (header,) = (line for line in shown.splitlines() if line.lower().startswith("unit"))
    assert "dimension" not in shown.lower() and "judge" not in header.lower()


def test_show_parts_its_tables_and_tells_on_one_line_what_is_left_out(call, tmp_path):
    write_suite(tmp_path, 60)
    run = call.run()
    lines = call("show").out.splitlines()
    assert is_told(lines[-1], "cli.first_units", n="50 units", run=run)
    headers = [
        index for index, line in enumerate(lines) if re.match("dimension|unit", line, re.IGNORECASE)
    ]
    assert [lines[index - 1] for index in headers] == ["", ""]


def test_low_confidence_is_listed_by_show_too(call, tmp_path):
    write_answers(tmp_path, answers(6), "unsure")
    call("run")
    listed = call("show latest --only low-confidence").out
    assert "t1/m" in listed and "t4/m" in listed and "t0/m" not in listed
    call.refused("show latest --only notes")
    call.refused("export latest --only notes -o x.jsonl")


def test_only_takes_a_flag_or_a_result_and_names_those_there_are(call, tmp_path):
    leaning(tmp_path, 1)
    write_pairs(tmp_path / "equal", [pair_row("same", 1, 1)])
    call("run")
    listed = call.json("show latest --only uncertain")
    assert [row["output"]["winner"] for row in listed["judgments"]] == ["uncertain"]
    assert call("show latest --only self-contradiction").code == 2
    store = "--store sqlite:equal/evenhand.db"
    call("run equal")
    assert len(call.json(f"show latest {store} --only mark-contradicts")["judgments"]) == 1
    said = call(f"export latest {store} -o x.jsonl --only compares")
    assert said.code == 2 and "mark_contradicts:C1" in said.err
    assert call(f"show latest {store} --only uncertain").code == 0


def test_topics_of_two_candidates_have_fronts(call, tmp_path):
    rows = [pair_row("won", 5, 2), pair_row("tied", 3, 3), pair_row("three", 3, 2, 1)]
    write_pairs(tmp_path, rows)
    fronts = call.json("run")["pairwise"]["fronts"]
    both = ["c1", "c2"]
    found = {topic: sets["front"] for topic, sets in fronts.items()}
    assert found == {"won": ["c1"], "tied": both, "three": ["c1"]}
    assert (fronts["won"]["pareto"], fronts["tied"]["pareto"]) == (["c1"], both)
    assert call.json("leaderboard")["fronts"] == fronts
    assert call.json("show")["pairwise"]["fronts"] == fronts


def test_an_uncertain_pair_keeps_both_candidates(call, tmp_path):
    leaning(tmp_path)
    fronts = call.json("run")["pairwise"]["fronts"]
    assert [sets["front"] for sets in fronts.values()] == [["c1", "c2"]] * 2
    text = call("show").out
    assert is_told(text, "terminal.kept") and is_told(text, "terminal.kept_told", n=2)


THOUGHT = 'At first {"scores": 1}?\x00 Then no. 好'


async def thinking_aloud(call):
    from aiohttp import web

    reply = json.dumps(valid_reply(call.body, call.schema))
    body = completion(reply, reasoning_content=THOUGHT)
    return web.Response(body=body, content_type="application/json")


async def test_reasoning_is_shown_beside_the_reply_and_judged_nowhere(tmp_path):
    async with Provider(thinking_aloud) as provider:
        write_suite(tmp_path, 1, at(provider.url, params={"reasoning_effort": "high"}))
        await judged(tmp_path)
    assert provider.calls[0].body["reasoning_effort"] == "high"
    shown = evenhand_here("show latest u0 --json", cwd=tmp_path)
    exchange = json.loads(shown.stdout)["judgments"][0]["exchanges"][0]
    assert exchange["reasoning"] == THOUGHT and THOUGHT not in exchange["reply"]
    text = evenhand_here("show latest u0", cwd=tmp_path).stdout
    assert THOUGHT[-9:] in text
    ok_here("store verify", cwd=tmp_path)


def test_run_and_show_count_low_confidence_and_critical_fails(call, tmp_path):
    for number, calls in ((1, 1), (7, 5)):  # what code decides sends nothing
        write_answers(tmp_path, number, "unsure" if number > 1 else "good")
        ahead = call.json("run --dry-run")
        assert (ahead["planned"], ahead["calls"]["least"]) == (number, calls)
        if number == 1:
            assert "low-confidence" not in call("run").out
    done = call.json("run")
    assert len(call.json("show --only critical")["judgments"]) == 2
    by = {"must_not_match: /forbidden/i": 2}
    expected = {"critical_fails": 2, "low_confidence": 2, "critical_conditions": by}
    assert done["weighted"] == expected
    assert values(done, "verdicts calls") == [7, 5]
    assert call.json("show")["weighted"] == done["weighted"]
    for command in ("run", "show"):
        text = call(command).text
        assert "7 15 0 to 21" in text and is_told(text, "unit.critical_fails", n=2)
        assert "show --only low-confidence" in text
    assert "t0/m 21 of 100" in text and is_told(text, "unit.critical") and "forbidden/i" in text


def test_show_a_unit_with_its_prompts_and_reasons(call, tmp_path):
    write_answers(tmp_path, 3, "unsure")
    call("run")
    text = call.ok("show latest t1/m").text
    for part in (
        *("It is perhaps so.", " 7 60 so it is", "Total 21 100", "Raw reply"),
        "type of task: fact, confidence: low",
    ):
        assert part in text
    failed = call("show latest t2/m").text
    assert "Critical fail: Decided by code" in failed and "Raw reply" not in failed
    assert call.json("show latest t2/m")["judgments"][0]["exchanges"] == []


def test_what_was_cut_of_a_reasoning_can_still_be_read(call, tmp_path):
    reason = "The capital is right, and so is all else that was said of it. " * 5 + "It is brief."
    judge = GRADE_JUDGE.replace('"so it is"', repr(reason))
    write_answers(tmp_path, answers(1), judge=judge)
    call("run")
    (row,) = stored(tmp_path)
    cut = row["output"]["reasoning"]["logic_and_fact"]
    assert len(cut) <= 200 and cut.endswith("…")
    assert row["passes"][0]["uncut"]["reasoning.logic_and_fact"].endswith("It is brief.")
    assert call("show latest t0/m").text.count("It is brief.") >= 4
    call("report latest -o report.html")
    assert "It is brief." in Path("report.html").read_text()
