"""The commands on pairs: run, show, export, check, settle, and what is refused before a call."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

from evenhand.kinds.pairwise.table import read_lines
from tests import provider as p
from tests.suites import (
    CRITERIA,
    PAIR_JUDGE,
    at,
    evenhand,
    judged,
    pair_reply,
    pair_row,
    pairs,
    stored,
    write_pairs,
    write_rows,
)
from tests.unit.cli.conftest import CallCommand

COIN, FIRST, CONTENT = ({"model": f"python/judge:{name}"} for name in ("coin", "first", "content"))
BAD, OTHER = ({"model": f"python/judge:{name}"} for name in ("bad", "other"))
CIRCLE = """
import re
from judge import alike, blocks

async def circle(messages, schema, params):
    "Rock, paper, scissors."
    shown = blocks(messages)
    first, second = (int(re.search(r"\\d+", shown[f"candidate_{i}"])[0]) for i in (1, 2))
    if max(first, second) > 3:
        return alike("A" if first < second else "B")
    return alike("A" if (first - second) % 3 == 1 else "B")
"""


def test_run_prints_the_figures(call: CallCommand, tmp_path: Path) -> None:
    write_pairs(tmp_path, 6, FIRST)
    said = call("run")
    assert said.code == 0
    text = re.sub(r" +", " ", said.out)
    assert "verdicts 0 for A, 0 for B, 0 tie, 6 uncertain" in text
    assert "settled 0 at once, 0 in a later round" in text
    assert re.search(r"position consistency 0 % \[0, \d+\] of 6 first rounds", text)
    assert re.search(r"first slot preferred 100 % \[\d+, 100\] of 12 passes", text)
    assert "orders contradict C1 6, C2 6, C3 6, C4 6, C5 6" in text
    assert "later rounds took 24 calls" in text
    assert re.search(r"candidate +wins +losses +ties +uncertain", said.out)
    shown = re.sub(r" +", " ", call("show").out)
    assert "position consistency 0 %" in shown
    assert "p0 uncertain = = = = =" in shown


def test_run_tells_once_how_several_candidates_fared_and_what_the_criteria_are(
    call: CallCommand, tmp_path: Path
) -> None:
    write_pairs(tmp_path, [pair_row(f"p{number}", number, 7, 8) for number in range(3)], CONTENT)
    text = call("run").out
    assert len(re.findall(r"^candidate .* wins ", text, re.MULTILINE)) == 1
    assert text.index("C1 Factual correctness; C2 ") > text.index("orders contradict")
    assert "C1 Factual correctness; C2 " in call("show").out
    assert "C1 Factual correctness; C2 " in call("leaderboard").out


def test_json_has_the_same_figures_in_run_and_show(call: CallCommand, tmp_path: Path) -> None:
    write_pairs(tmp_path, 9, COIN, CONTENT)
    told = call("run", "--json").json
    figures = told["pairwise"]
    assert figures == call("show", "--json").json["pairwise"]
    assert sum(figures["outcomes"].values()) == told["verdicts"] == 18
    assert sum(figures["settled"].values()) == 18
    assert figures["first_rounds"] == figures["consistency"]["n"] == 18
    assert told["calls"] == figures["passes"] == 36 + figures["extra_calls"]
    assert figures["agreement"]["n"] == 9
    assert sum(figures["panel"].values()) == 9
    assert figures["candidates"].keys() == {"c1", "c2"}
    keys = {"value", "low", "high", "n"}
    for name in ("consistency", "first_slot", "agreement"):
        assert figures[name].keys() == keys


def test_show_a_pair_with_every_pass_and_how_it_was_drawn(
    call: CallCommand, tmp_path: Path
) -> None:
    write_pairs(tmp_path, 2, FIRST, seed=7)
    call("run")
    (judgment,) = call("show", "latest", "p1", "--json").json["judgments"]
    places = [(one["round"], one["order"]) for one in judgment["exchanges"]]
    assert sorted(places) == [(n, order) for n in (1, 2, 3) for order in ("12", "21")]
    drawn = [one["sampling"] for one in judgment["exchanges"]]
    assert drawn == [
        {"temperature": t, "seed": s} for t, s in ((0, 7), (0.7, 8), (0.7, 9)) for _ in "12"
    ]
    text = call("show", "latest", "p1").out
    assert re.search(
        r"Round 2, A shown first · python/judge:first · temperature 0.7 · seed 8", text
    )
    assert "Round 2" in text and "B shown first → B is better" in text
    assert re.search(r"C1 .*B\+ ", text)
    assert text.count("tie · the orders differ") == 5
    assert "An answer worth 1." in text


async def test_show_a_pair_whose_second_pass_was_lost(tmp_path: Path) -> None:
    """The first pass is shown; there is nothing that says in which round the other failed."""
    async with p.Provider([p.comparing(p.by_number), p.failing(503)]) as provider:
        write_pairs(tmp_path, 1, at(provider.url))
        await judged(tmp_path)
    said = evenhand("show", "latest", "p0", cwd=tmp_path)
    assert said.returncode == 0, said.stderr
    assert "Failed: transport" in said.stdout
    assert "Call 1" in said.stdout


def test_show_a_pair_that_was_left_out_failed_or_equal(call: CallCommand, tmp_path: Path) -> None:
    rows = pairs(2)
    rows[0]["candidates"][1]["text"] = rows[0]["candidates"][0]["text"]
    write_pairs(tmp_path, rows, BAD)
    call("run")
    equal, failed = call("show", "latest", "p0"), call("show", "latest", "p1")
    assert (equal.code, "equal_text" in equal.out) == (0, True)
    assert (failed.code, "Failed: schema" in failed.out) == (0, True)
    assert "Raw reply" in failed.out
    listed = call("show").out
    assert re.search(r"p0 +tie stable += = = = =", listed)


async def test_show_says_who_was_left_out(tmp_path: Path) -> None:
    row = pair_row("x", 3, 1)
    row["candidates"][0]["id"] = "gpt-4o"
    async with p.Provider(p.comparing(p.by_number)) as provider:
        judge = at(provider.url, model="openai/gpt-4.1-mini")
        write_pairs(tmp_path, [row], judge, settings={"no_self_judging": True})
        summary = await judged(tmp_path)
        assert provider.calls == []
    assert (summary.counts.planned, summary.counts.left_out) == (0, 1)
    for arguments in (("show",), ("show", "latest", "x")):
        said = evenhand(*arguments, cwd=tmp_path)
        assert said.returncode == 0, said.stderr
        assert "eft out: shares its family with a candidate" in said.stdout
    ran = evenhand("run", cwd=tmp_path)
    assert "1 left out" in ran.stdout


@pytest.mark.parametrize("ending", ["jsonl", "json", "csv", "parquet"])
@pytest.mark.parametrize("full", [False, True])
def test_export_writes_pairs_in_every_format(
    call: CallCommand, tmp_path: Path, ending: str, full: bool
) -> None:
    write_pairs(tmp_path, 3, COIN, BAD)
    call("run")
    out = tmp_path / f"out.{ending}"
    said = call("export", "latest", "-o", out.name, *(["--full"] if full else []))
    assert (said.code, said.out) == (0, "")
    expected = 6 if full else 3
    if ending == "csv":
        with out.open(newline="") as file:
            assert len(list(csv.DictReader(file))) == expected
    elif ending == "parquet":
        import pyarrow.parquet

        assert pyarrow.parquet.read_table(out).num_rows == expected
    else:
        text = out.read_text()
        rows = json.loads(text) if ending == "json" else [*map(json.loads, text.splitlines())]
        assert len(rows) == expected
        if full:
            assert {"passes", "flags", "reason", "output"} <= rows[0].keys()
            made = rows[0]["passes"][0]
            assert {"round", "order", "criteria", "winner", "said", "flags"} <= made.keys()
            assert [row["reason"] for row in rows] == [None, "schema"] * 3
            assert len(rows[1]["passes"]) == 6
        else:
            judges = [{key: row.pop(key) for key in ("judge", "repeat")} for row in rows]
            assert judges == [{"judge": "python/judge:coin", "repeat": 0}] * 3
            assert rows == [row["output"] for row in stored(tmp_path) if row["output"]]


def test_a_verdict_table_reads_back_the_same_and_keeps_the_contract(
    call: CallCommand, tmp_path: Path
) -> None:
    rows = [row | {"pair_id": f"a|b\\{i}\n "} for i, row in enumerate(pairs(20))]
    write_pairs(tmp_path, rows, COIN)
    call("run")
    assert "20 rows written" in call("export", "latest", "-o", "verdicts.txt").err
    with (tmp_path / "verdicts.txt").open(encoding="utf-8", newline="\n") as file:
        table = [row.output for row in read_lines(file, CRITERIA)]
    outputs = [row["output"] for row in stored(tmp_path)]
    assert table == [
        {name: one[name] for name in ("pair_id", "winner", "notes", "criteria")} for one in outputs
    ]
    assert {one["winner"] for one in table} >= {"A", "B"}
    checked = call(
        *("check", "--protocol", "pairwise", "--units", "pairs.jsonl"),
        *("--replies", "verdicts.txt", "--json"),
    )
    assert (checked.code, checked.json["units"], checked.json["ok"]) == (0, 20, 20)


@pytest.mark.parametrize(
    ("head", "code"),
    [
        ("pair_id | winner | C5 | C4 | C3 | C2 | C1 | notes", 0),
        ("pair_id | winner | style | C4 | C3 | C2 | C1 | notes", 3),
    ],
)
def test_a_table_is_checked_by_its_header(
    call: CallCommand, tmp_path: Path, head: str, code: int
) -> None:
    write_pairs(tmp_path, 1)
    line = "p0 | A | tie | B+ | tie | tie | A+ | so"
    (tmp_path / "verdicts.txt").write_text(f"{head}\n{line}\n", encoding="utf-8")
    files = ("--units", "pairs.jsonl", "--replies", "verdicts.txt")
    checked = call("check", "--protocol", "pairwise", *files)
    assert checked.code == code, checked.err
    assert code == 0 or ("verdicts.txt:1" in checked.err and "style" in checked.err)


def test_a_table_of_several_judges_has_the_majority(call: CallCommand, tmp_path: Path) -> None:
    write_pairs(tmp_path, 3, CONTENT, FIRST, {"model": "python/judge:late"})
    call("run")
    call("export", "latest", "-o", "verdicts.txt")
    lines = (tmp_path / "verdicts.txt").read_text().splitlines()
    assert lines[0] == "pair_id | winner | C1 | C2 | C3 | C4 | C5 | notes"
    assert [line.split(" | ")[1] for line in lines[1:]] == ["A", "B", "tie"]


NOTED_JUDGE = """

async def noted(messages, schema, params):
    return content_of(messages).replace("by the criteria", "the greater | number")

async def contrary(messages, schema, params):
    winner = {"A": "B", "B": "A", "tie": "tie"}[better(messages)]
    return alike(winner).replace("by the criteria", "the lesser number")

def content_of(messages):
    return alike(better(messages))
"""
NOTED, CONTRARY = {"model": "python/judge:noted"}, {"model": "python/judge:contrary"}


def panel_table(call: CallCommand, folder: Path, *judges: dict[str, Any]) -> list[tuple[str, str]]:
    """Winner and notes of each line of the verdict table of a panel, read back."""
    write_pairs(folder, 3, *judges, judge=PAIR_JUDGE + NOTED_JUDGE)
    call("run")
    call("export", "latest", "-o", "verdicts.txt")
    with (folder / "verdicts.txt").open(encoding="utf-8", newline="\n") as file:
        return [(row.output["winner"], row.output["notes"]) for row in read_lines(file, CRITERIA)]


def test_a_table_of_several_judges_has_the_notes_of_one_that_says_the_same(
    call: CallCommand, tmp_path: Path
) -> None:
    rows = panel_table(call, tmp_path, CONTRARY, NOTED, {"model": "python/judge:content"})
    greater, lesser = "the greater | number", "the lesser number"
    assert rows == [("A", greater), ("B", greater), ("tie", lesser)]


def test_a_table_has_the_notes_of_both_sides_where_judges_contradict_each_other(
    call: CallCommand, tmp_path: Path
) -> None:
    rows = panel_table(call, tmp_path, NOTED, CONTRARY)
    greater, lesser = "the greater | number", "the lesser number"
    assert rows == [
        ("uncertain", f"A: {greater} B: {lesser}"),
        ("uncertain", f"A: {lesser} B: {greater}"),
        ("tie", greater),
    ]


def test_a_win_against_a_tie_has_the_notes_of_both(call: CallCommand, tmp_path: Path) -> None:
    rows = panel_table(call, tmp_path, NOTED, {"model": "python/judge:tie"})
    assert rows[0] == ("uncertain", "A: the greater | number tie: by the criteria")


def test_repeats_of_one_judge_have_notes_too(call: CallCommand, tmp_path: Path) -> None:
    rows = panel_table(call, tmp_path, NOTED | {"repeats": 3})
    assert rows == [(winner, "the greater | number") for winner in ("A", "B", "tie")]


def test_a_table_without_a_verdict_has_its_header(call: CallCommand, tmp_path: Path) -> None:
    write_pairs(tmp_path, 2, BAD)
    call("run")
    said = call("export", "latest", "-o", "verdicts.txt")
    assert "0 rows written" in said.err
    with (tmp_path / "verdicts.txt").open() as file:
        assert list(read_lines(file, CRITERIA)) == []


def test_fronts_of_rows_with_many_candidates(call: CallCommand, tmp_path: Path) -> None:
    rows = [
        pair_row("line", 5, 6, 7, topic="One?"),
        pair_row("circle", 1, 2, 3, 9, topic="Two?"),
        pair_row("two", 1, 2, topic="Three?"),
    ]
    write_pairs(tmp_path, rows, {"model": "python/circling:circle"})
    (tmp_path / "circling.py").write_text(CIRCLE)
    told = call("run", "--json").json
    assert told["verdicts"] == 10
    expected = {
        "line": {
            "candidates": ["c1", "c2", "c3"],
            "front": ["c1"],
            "pareto": ["c1"],
            "complete": True,
        },
        "circle": {
            "candidates": ["c1", "c2", "c3", "c4"],
            "front": ["c1", "c2", "c3"],
            "pareto": [],
            "complete": True,
        },
        "two": {
            "candidates": ["c1", "c2"],
            "front": ["c2"],
            "pareto": ["c2"],
            "complete": True,
        },
    }
    assert told["pairwise"]["fronts"] == expected
    assert call("show", "--json").json["pairwise"]["fronts"] == expected
    shown = re.sub(r" +", " ", call("show").out)
    assert "circle c1, c2, c3" in shown


def test_settle_reproduces_everything_without_a_call(call: CallCommand, tmp_path: Path) -> None:
    write_pairs(tmp_path, 8, COIN, BAD)
    ran = call("run", "--json").json
    before = stored(tmp_path)
    settled = call("settle", "latest", "--json").json
    assert settled["calls"] == 0
    for name in ("planned", "verdicts", "failures", "pending", "left_out"):
        assert settled[name] == ran[name]
    assert stored(tmp_path) == before


def test_dry_run_counts_two_calls_a_pair_and_every_round(call: CallCommand, tmp_path: Path) -> None:
    rows = pairs(4)
    rows[0]["candidates"][1]["text"] = rows[0]["candidates"][0]["text"]
    write_pairs(tmp_path, rows, CONTENT, {**OTHER, "repeats": 2})
    told = call("run", "--dry-run", "--json").json
    assert told["planned"] == 12
    # Three pairs by three judgments, two passes each; equal texts cost nothing.
    assert told["calls"] == {"least": 18, "most": 18 * 3 * 3}
    assert not (tmp_path / "evenhand.db").exists()


def test_dry_run_of_a_relay_is_bounded_by_its_dearest_judge(
    call: CallCommand, tmp_path: Path
) -> None:
    cheap, dear = ({"input": "1", "output": "1"}, {"input": "50", "output": "50"})
    prices = []
    for judges in (
        [{**CONTENT, "price": cheap}, {**OTHER, "price": dear}],
        [{**CONTENT, "price": cheap}, {**OTHER, "price": cheap}],
    ):
        write_pairs(tmp_path, 3, *judges, settings={"panel": "relay"})
        told = call("run", "--dry-run", "--json").json
        assert (told["planned"], told["calls"]["least"]) == (3, 6)
        prices.append(told["price_usd"])
    assert prices[0]["least"] == prices[1]["least"]
    assert prices[0]["most"] > 30 * prices[1]["most"]


def test_dry_run_asks_nothing_of_who_is_left_out(call: CallCommand, tmp_path: Path) -> None:
    row = pair_row("x", 3, 1)
    row["candidates"][0]["id"] = "gpt-4o"
    judges = [at("http://127.0.0.1:9/v1", model=f"openai/{m}") for m in ("gpt-4.1", "claude-3")]
    for panel, least in (("each", 2), ("relay", 2)):
        settings = {"no_self_judging": True, "panel": panel}
        write_pairs(tmp_path, [row], *judges, settings=settings)
        assert call("run", "--dry-run", "--json").json["calls"]["least"] == least


# check


def checked(call: CallCommand, tmp_path: Path, replies: list[dict[str, Any]]) -> Any:
    write_rows(tmp_path, pairs(3), "pairs.jsonl")
    write_rows(tmp_path, replies, "replies.jsonl")
    return call(
        *("check", "--protocol", "pairwise", "--units", "pairs.jsonl"),
        *("--replies", "replies.jsonl", "--json"),
    )


def test_check_holds_raw_replies_tables_and_verdicts_to_the_contract(
    call: CallCommand, tmp_path: Path
) -> None:
    verdict = {"pair_id": "p2", "winner": "uncertain", "criteria": dict.fromkeys(CRITERIA, "tie")}
    said = checked(
        call,
        tmp_path,
        [
            {"unit": "p0", "reply": pair_reply("A+")},
            {"unit": "p1", "reply": json.loads(pair_reply("B+")), "order": "21", "round": 2},
            {"unit": "p1", "reply": "any | A | A+ | tie | tie | tie | tie | because"},
            verdict,
            {"unit": "p2", "reply": f"```json\n{pair_reply('tie')}\n```"},
        ],
    )
    assert (said.code, said.json["units"], said.json["ok"]) == (0, 5, 5)
    assert [one["code"] for one in said.json["fixes"]] == ["unwrapped"]


def test_check_says_what_breaks_it(call: CallCommand, tmp_path: Path) -> None:
    verdict = {"pair_id": "p2", "winner": "nobody", "criteria": dict.fromkeys(CRITERIA, "tie")}
    said = checked(
        call,
        tmp_path,
        [
            {"unit": "p0", "reply": pair_reply("A++")},
            {"unit": "p1", "reply": pair_reply("A+"), "finish": "length"},
            verdict,
        ],
    )
    assert (said.code, said.json["units"], said.json["ok"]) == (1, 3, 0)
    found = [(one["unit"], one["code"], one["path"]) for one in said.json["problems"]]
    assert found == [
        *[("p0", "out_of_range", f"criteria.{c}.mark") for c in CRITERIA],
        ("p1", "truncated", ""),
        ("p2", "out_of_range", "winner"),
    ]


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ({"unit": "nobody", "reply": "{}"}, "no unit"),
        ({"reply": "{}"}, '"unit" is missing'),
        ({"winner": "A"}, "neither"),
    ],
)
def test_check_refuses_what_it_cannot_place(
    call: CallCommand, tmp_path: Path, row: dict[str, Any], what: str
) -> None:
    said = checked(call, tmp_path, [{"unit": "p0", "reply": pair_reply("A+")}, row])
    assert said.code == 3
    assert what in said.err
    assert "replies.jsonl:2" in said.err


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"pair_id | winner | C1 | notes\n", 1),
        (b"pair_id | winner | C1 | C2 | C3 | C4 | C5 | notes\np0 | A | A+ | tie |\n", 2),
        (b"\n\npair_id | winner | C1 | C2 | C3 | C4 | C5 | notes\n\xff\xfe | A\n", 4),
    ],
)
def test_check_of_a_spoilt_table_is_exit_3_with_its_line(
    call: CallCommand, tmp_path: Path, text: bytes, line: int
) -> None:
    write_rows(tmp_path, pairs(1), "pairs.jsonl")
    (tmp_path / "v.txt").write_bytes(text)
    said = call("check", "--protocol", "pairwise", "--units", "pairs.jsonl", "--replies", "v.txt")
    assert said.code == 3, said.err
    assert "v.txt" in said.err
    assert f":{line}" in said.err or line == 4


def test_init_makes_a_suite_of_pairs_that_runs(call: CallCommand, tmp_path: Path) -> None:
    for language in ("ru", "zh", "ja", "en"):
        said = call("init", language, "--protocol", "pairwise", "--language", language)
        assert said.code == 0, said.err
        (tmp_path / language / "judge.py").write_text(
            "import json\nfrom pathlib import Path\n"
            "async def tie(messages, schema, params):\n"
            "    return Path(__file__).with_name('reply').read_text()\n"
        )
        (tmp_path / language / "reply").write_text(pair_reply("tie"))
        ran = call("run", language, "--judge", "python/judge:tie", "--json")
        assert ran.code == 0, ran.err
        assert ran.json["verdicts"] == ran.json["planned"] >= 4
