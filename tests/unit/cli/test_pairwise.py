"""The commands on pairs: run, show, export, check and settle; and the ids of pairs, which go by
their topic and the names of their candidates alone."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path

import pytest

from evenhand.kinds.pairwise.table import read_lines
from evenhand.units import question_hash
from tests import provider as p
from tests.cases import cases
from tests.suites import (
    CRITERIA,
    PAIR_JUDGE,
    at,
    judged,
    ok_here,
    pair_reply,
    pair_row,
    pairs,
    stored,
    write_pairs,
    write_rows,
)
from tests.unit.cli.conftest import put, values
from tests.unit.cli.tables import suite

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


def equal_pairs(number):
    """Pairs of which the first has the same text twice."""
    rows = pairs(number)
    rows[0]["candidates"][1]["text"] = rows[0]["candidates"][0]["text"]
    return rows


def test_people_read_the_figures(call):
    write_pairs(Path(), 6, "first")
    said = call.ok("run")
    for line in (
        r"verdicts 0 for A, 0 for B, 0 tied, 6 uncertain",
        r"both orders agree 0 ?% \[0, \d+\] of 6",
        r"first shown wins 100 ?% \[\d+, 100\] of 12",
        r"later rounds 24 calls",
        r"candidate wins losses ties uncertain",
    ):
        assert re.search(line, said.text), line
    assert "p0 uncertain = = = = =" in call("show").text
    write_pairs(Path(), [pair_row(f"p{number}", number, 7, 8) for number in range(3)], "content")
    text = call("run").out
    assert len(re.findall(r"^candidate .* wins ", text, re.MULTILINE)) == 1
    for told in (text, call("show").out, call("leaderboard").out):
        assert "C1 Factual correctness; C2 " in told


def test_json_has_the_same_figures_in_run_show_and_settle(call):
    write_pairs(Path(), 9, "coin", "content", "bad")
    told = call.json("run")
    figures = told["pairwise"]
    assert figures == call.json("show")["pairwise"]
    assert sum(figures["outcomes"].values()) == sum(figures["settled"].values()) == 18
    assert told["verdicts"] == figures["first_rounds"] == figures["consistency"]["n"] == 18
    assert sum(figures["panel"].values()) == 9
    assert figures["candidates"].keys() == {"c1", "c2"}
    for name in ("consistency", "first_slot"):
        assert figures[name].keys() == {"value", "low", "high", "n"}
    before = stored(Path())
    settled = call.json("settle latest")
    names = "planned verdicts failures pending left_out"
    assert settled["calls"] == 0 and values(settled, names) == values(told, names)
    assert stored(Path()) == before
    write_pairs(Path(), 9, "coin", name="alone")
    alone = call.json("run")
    assert alone["pairwise"]["passes"] == 18 + alone["pairwise"]["extra_calls"]


def test_show_a_pair_with_every_pass_and_how_it_was_drawn(call):
    write_pairs(Path(), 2, "first", seed=7)
    call.run()
    (judgment,) = call.json("show latest p1")["judgments"]
    passes = [(one["round"], one["order"], one["sampling"]) for one in judgment["exchanges"]]
    drawn = {1: (0, 7), 2: (0.7, 8), 3: (0.7, 9)}
    assert passes == [
        (n, order, {"temperature": t, "seed": s})
        for n, (t, s) in drawn.items()
        for order in ("12", "21")
    ]
    text = call("show latest p1").out
    assert "Round 2, c1 (shown first) · python/judge:first · temperature 0.7 · seed 8" in text
    assert "c2 (shown first) → c2 is better" in text and re.search(r"C1 .*c2.\+ ", text)
    assert text.count("tie · the orders differ") == 5 and "An answer worth 1." in text


def shown(folder, line):
    said = ok_here(line, cwd=folder)
    return said.stdout


async def test_show_a_pair_whose_second_pass_was_lost(tmp_path):
    """The first pass is shown; there is nothing that says in which round the other failed."""
    async with p.Provider([p.comparing(p.by_number), p.failing(503)]) as provider:
        write_pairs(tmp_path, 1, at(provider.url))
        await judged(tmp_path)
    said = shown(tmp_path, "show latest p0")
    assert "Failed: transport" in said and "Call 1" in said


def test_show_a_pair_that_failed_or_was_equal(call):
    write_pairs(Path(), equal_pairs(2), "bad")
    call("run")
    assert "equal_text" in call("show latest p0").out
    failed = call("show latest p1").out
    assert "Failed: schema" in failed and "Raw reply" in failed
    assert "p0 tie stable = = = = =" in call("show").text


async def test_show_says_who_was_left_out(tmp_path):
    row = pair_row("x", 3, 1)
    row["candidates"][0]["id"] = "gpt-4o"
    async with p.Provider(p.comparing(p.by_number)) as provider:
        judge = at(provider.url, model="openai/gpt-4.1-mini")
        write_pairs(tmp_path, [row], judge, settings={"no_self_judging": True})
        summary = await judged(tmp_path)
        assert provider.calls == []
    assert (summary.counts.planned, summary.counts.left_out) == (0, 1)
    for line in ("show", "show latest x"):
        assert "eft out: shares its family with a candidate" in shown(tmp_path, line)
    assert "1 left out" in shown(tmp_path, "run")


def test_export_writes_pairs(call):
    write_pairs(Path(), 3, "coin", "bad")
    call("run")
    rows = call.export()
    judges = [(row.pop("judge"), row.pop("repeat")) for row in rows]
    assert judges == [("python/judge:coin", 0)] * 3
    assert rows == [row["output"] for row in stored(Path()) if row["output"]]
    full = call.export("--full")
    assert {"passes", "flags", "reason", "output"} <= full[0].keys()
    made = full[0]["passes"][0].keys()
    assert {"round", "order", "criteria", "winner", "said", "flags"} <= made
    assert [row["reason"] for row in full] == [None, "schema"] * 3
    assert len(full[1]["passes"]) == 6


# Verdict tables


def table(call):
    """The verdict table of the latest run, read back."""
    call("export latest -o verdicts.txt")
    with Path("verdicts.txt").open(encoding="utf-8", newline="\n") as file:
        return [row.output for row in read_lines(file, CRITERIA)]


CHECK = "check --protocol pairwise --units pairs.jsonl --replies"


def check(call, rows):
    """What a check of replies about the pairs here says, and how it ends."""
    write_rows(Path(), rows, "replies.jsonl")
    said = call(f"{CHECK} replies.jsonl --json")
    return said.json, (said.code, *values(said.json, "units ok"))


def test_a_verdict_table_reads_back_the_same_and_keeps_the_contract(call):
    rows = [row | {"pair_id": f"a|b\\{i}\n "} for i, row in enumerate(pairs(20))]
    write_pairs(Path(), rows, "coin")
    call.run()
    keys = ("pair_id", "winner", "notes", "criteria")
    outputs = [{key: row["output"][key] for key in keys} for row in stored(Path())]
    assert table(call) == outputs and {one["winner"] for one in outputs} >= {"A", "B"}
    assert values(call.json(f"{CHECK} verdicts.txt"), "units ok") == [20, 20]


def test_a_verdict_table_says_who_a_and_b_are(call):
    named = [pair_row(f"p{i}", 1, 2) for i in range(4)]
    for row, names in zip(named, [("v1", "v2")] * 2 + [("#|", "v"), ("v2", "v1")], strict=True):
        for candidate, name in zip(row["candidates"], names, strict=True):
            candidate["id"] = name
    write_pairs(Path(), named, "coin")
    call.run()
    assert [row["pair_id"] for row in table(call)] == ["p0", "p1", "p2", "p3"]
    lines = Path("verdicts.txt").read_text(encoding="utf-8").splitlines()
    found = [line if line[0] == "#" else line.partition(" ")[0] for line in lines]
    sides = ["# A = v1, B = v2", "# A = #\\|, B = v", "# A = v2, B = v1"]
    assert found == ["pair_id", sides[0], "p0", "p1", sides[1], "p2", sides[2], "p3"]
    assert call.json(f"{CHECK} verdicts.txt")["ok"] == 4


def test_a_table_is_checked_by_its_header(call, three):
    put("v.txt", "pair_id | winner | C5 | C4 | C3 | C2 | C1 | notes\n" + LINE)
    call.ok(f"{CHECK} v.txt")


LINE = "p0 | A | tie | B+ | tie | tie | A+ | so\n"
NOTED_JUDGE = """

async def noted(messages, schema, params):
    return alike(better(messages)).replace("by the criteria", "the greater | number")

async def contrary(messages, schema, params):
    winner = {"A": "B", "B": "A", "tie": "tie"}[better(messages)]
    return alike(winner).replace("by the criteria", "the lesser number")
"""


@cases
def test_a_table_has_the_verdict_of_the_panel_and_the_notes_of_those_that_say_it(
    call, judges, lines
):
    write_pairs(Path(), 3, *judges, judge=PAIR_JUDGE + NOTED_JUDGE)
    call("run")
    found = [[row["winner"], row["notes"]] for row in table(call)]
    assert found[: len(lines)] == lines and bool(found) == bool(lines)
    assert Path("verdicts.txt").read_text().startswith("pair_id | winner | C1 | C2 | C3 | C4 | C5")


def test_fronts_of_rows_with_many_candidates(call):
    rows = [
        pair_row("line", 5, 6, 7, topic="One?"),
        pair_row("circle", 1, 2, 3, 9, topic="Two?"),
        pair_row("two", 1, 2, topic="Three?"),
    ]
    write_pairs(Path(), rows, {"model": "python/circling:circle"})
    Path("circling.py").write_text(CIRCLE)
    told = call.json("run")
    fronts = {
        name: [[f"c{i + 1}" for i in range(number)], front, pareto, True]
        for name, number, front, pareto in (
            ("line", 3, ["c1"], ["c1"]),
            ("circle", 4, ["c1", "c2", "c3"], []),
            ("two", 2, ["c2"], ["c2"]),
        )
    }
    names = "candidates front pareto complete"
    found = told["pairwise"]["fronts"]
    assert {name: values(one, names) for name, one in found.items()} == fronts
    assert call.json("show")["pairwise"]["fronts"] == found
    assert "circle c1, c2, c3" in call("show").text


def test_dry_run_counts_two_calls_a_pair_and_every_round(call):
    write_pairs(Path(), equal_pairs(4), "content", {"model": "python/judge:other", "repeats": 2})
    told = call.json("run --dry-run")
    assert told["planned"] == 12
    # Three pairs by three judgments, two passes each; equal texts cost nothing.
    assert told["calls"] == {"least": 18, "most": 18 * 3 * 3}
    assert not Path("evenhand.db").exists()
    # A relay is bounded by its dearest judge.
    prices = []
    for price in ("50", "1"):
        judges = [
            {"model": f"python/judge:{name}", "price": {"input": each, "output": each}}
            for name, each in (("content", "1"), ("other", price))
        ]
        write_pairs(Path(), 3, *judges, settings={"panel": "relay"})
        told = call.json("run --dry-run")
        assert (told["planned"], told["calls"]["least"]) == (3, 6)
        prices.append(told["price_usd"])
    assert prices[0]["least"] == prices[1]["least"]
    assert prices[0]["most"] > 30 * prices[1]["most"]


# check


@pytest.fixture
def three(call):
    write_rows(Path(), pairs(3), "pairs.jsonl")


VERDICT = {"pair_id": "p2", "winner": "uncertain", "criteria": dict.fromkeys(CRITERIA, "tie")}


def test_check_holds_raw_replies_tables_and_verdicts_to_the_contract(call, three):
    good = [
        {"unit": "p0", "reply": pair_reply("A+")},
        {"unit": "p1", "reply": json.loads(pair_reply("B+")), "order": "21", "round": 2},
        {"unit": "p1", "reply": "any | A | A+ | tie | tie | tie | tie | because"},
        VERDICT,
        {"unit": "p2", "reply": f"```json\n{pair_reply('tie')}\n```"},
    ]
    found, ended = check(call, good)
    assert ended == (0, 5, 5)
    assert [one["code"] for one in found["fixes"]] == ["unwrapped"]
    broken = [
        {"unit": "p0", "reply": pair_reply("A++")},
        {"unit": "p1", "reply": pair_reply("A+"), "finish": "length"},
        VERDICT | {"winner": "nobody"},
    ]
    found, ended = check(call, broken)
    assert ended == (1, 3, 0)
    assert "0 of 3 keep the contract" in call(f"{CHECK} replies.jsonl").err
    assert [values(one, "unit code path") for one in found["problems"]] == [
        *[["p0", "out_of_range", f"criteria.{c}.mark"] for c in CRITERIA],
        ["p1", "truncated", ""],
        ["p2", "out_of_range", "winner"],
    ]


@cases
def test_check_refuses_what_it_cannot_place_with_its_line(call, three, file, text, says):
    good = json.dumps({"unit": "p0", "reply": pair_reply("A+")})
    put(file, text.replace("{good}", good))
    call.refused(f"{CHECK} {file}", code=3, says=says)


def test_check_refuses_a_table_that_is_not_utf_8(call, three):
    Path("v.txt").write_bytes(
        b"\n\npair_id | winner | C1 | C2 | C3 | C4 | C5 | notes\n\xff\xfe | A\n"
    )
    call.refused(f"{CHECK} v.txt", code=3, says=["v.txt"])


# The ids of pairs

WORTHS = {"zeta": 5, "alpha": 3, "mid": 9, "beta": 7}
"""The models in the order of the file, which is not that of their names."""
TOPICS = [f"Question {i}?" for i in range(5)]
HASHES = {topic: question_hash(topic) for topic in TOPICS}
Answers = Mapping[str, Mapping[str, str]]
"""By topic and model."""


def answers(*models, topics=TOPICS):
    """Answers whose worth changes from topic to topic, so that no two pairs come out alike."""
    return {
        topic: {
            model: f"{model} says worth {(WORTHS[model] * (int(topic[9]) + 1)) % 11}."
            for model in models
        }
        for topic in topics
    }


def write_table(rows):
    with Path("a.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


def write_long(data):
    rows = [[topic, *one] for topic, texts in data.items() for one in texts.items()]
    write_table([["question", "model", "answer"], *rows])
    suite(Path(), "pairwise", '["a.csv"]')


def write_wide(data):
    models = list(next(iter(data.values())))
    write_table([["topic", *models], *([topic, *texts.values()] for topic, texts in data.items())])
    names = ", ".join(f'"candidates.{i}.id" = "{model}"' for i, model in enumerate(models, 1))
    columns = "\n".join(f'"candidates.{i}.text" = "{model}"' for i, model in enumerate(models, 1))
    suite(Path(), "pairwise", f'[{{ file = "a.csv", {names} }}]', f"[columns]\n{columns}\n")


def list_rows(data, **rest):
    return [
        {"topic": topic, "candidates": [{"id": m, "text": text} for m, text in texts.items()]}
        | rest
        for topic, texts in data.items()
    ]


def write_row_list(rows):
    write_rows(Path(), rows, "a.jsonl")
    suite(Path(), "pairwise", '["a.jsonl"]')


def write_list(data):
    write_row_list(list_rows(data))


def write_row_per_pair(data):
    """A row for every two candidates of a topic, and none says which topic it is but its text."""
    write_row_list(
        [
            row
            for topic, texts in data.items()
            for two in combinations(texts.items(), 2)
            for row in list_rows({topic: dict(two)})
        ]
    )


def winners(run="latest"):
    """Of each pair the name of its winner."""
    outputs = {row["unit"]: row["output"] for row in stored(Path(), run)}
    names = {unit: dict(zip("AB", one["candidates"], strict=True)) for unit, one in outputs.items()}
    return {unit: names[unit].get(one["winner"], one["winner"]) for unit, one in outputs.items()}


def ids(*models):
    pairs = combinations(sorted(models), 2)
    return {f"{topic}#{a}~{b}" for a, b in pairs for topic in HASHES.values()}


def assert_nothing_changed(call, run, before):
    """Two runs have these pairs in common, and all of them came out alike."""
    rows = call.json(f"compare {run} --against {before}")["rows"]
    assert {(row["difference"], row["outcome"]) for row in rows} == {(0, "not enough evidence")}


@pytest.mark.parametrize(
    "write", [write_long, write_wide, write_list, write_row_per_pair], ids=lambda w: w.__name__
)
def test_other_candidates_and_another_order_leave_pairs_as_they_were(call, write):
    write(answers(*WORTHS))
    first = call.json("run")
    before = winners()
    assert before.keys() == ids(*WORTHS)
    for models in (("alpha", "mid", "beta"), ("zeta", "alpha")):
        write(answers(*models))
        ran = call.json("run")
        after = winners()
        assert ran["calls"] == 0 and after.keys() == ids(*models)
        assert after == {unit: before[unit] for unit in after}
        assert_nothing_changed(call, ran["run"], first["run"])
    assert ran["changed"] == {"added": 5, "removed": 15, "changed": 0}
    # Those that were dropped come back, in any order: the first run again, at no cost.
    for models, topics in (
        (sorted(WORTHS), TOPICS),
        (list(WORTHS)[::-1], TOPICS[::-1]),
        (list(WORTHS), TOPICS[2:] + TOPICS[:2]),
    ):
        write(answers(*models, topics=topics))
        ran = call.json("run")
        assert values(ran, "run calls") == [first["run"], 0]
        assert winners() == before
        assert ran["pairwise"]["fronts"] == first["pairwise"]["fronts"]


def test_rows_may_stand_anyhow(call):
    long = [
        {"question_id": topic[9], "question": topic, "model": model, "answer": text}
        for topic, texts in answers(*WORTHS).items()
        for model, text in texts.items()
    ]
    # One spelling of a question or the other: which one is shown must not hang on the order.
    long[3]["question"] = "Question 0, please?"
    runs = [
        row
        for name in ("r1", "r2")
        for row in list_rows(answers("zeta", "alpha"), meta={"run_id": name})
    ]
    for row in runs[5:]:
        row["candidates"][0]["text"] = "worth 0"
    for rows, unit in ((long, "0#alpha~beta"), (runs, f"r2/{HASHES[TOPICS[0]]}#alpha~zeta")):
        write_row_list(rows)
        first = call.json("run")
        assert unit in winners()
        for order in (rows[::-1], rows[7:] + rows[:7]):
            write_row_list(order)
            again = call.json("run")
            assert values(again, "run calls") == [first["run"], 0]
    # Two runs of a question are no two questions.
    found = call.json("compare latest")["rows"]
    assert {(row["n"], row["clusters"]) for row in found} == {(10, 5)}


def test_a_row_of_two_with_an_id_keeps_it_and_its_first_candidate_is_a(call):
    rows = [
        {"pair_id": f"p{i}", **row} for i, row in enumerate(list_rows(answers("zeta", "alpha")))
    ]
    write_row_list(rows)
    straight = call.run()
    before = winners()
    assert list(before) == [f"p{i}" for i in range(5)]
    for row in rows:
        row["candidates"].reverse()
    write_row_list(rows)
    turned = call.json("run")
    assert (turned["calls"], turned["changed"]["added"]) == (0, 0)
    # A and B have changed places, the winners have not.
    assert winners() == before
    for run, names in ((straight, ("zeta", "alpha")), (turned["run"], ("alpha", "zeta"))):
        assert {tuple(row["output"]["candidates"]) for row in stored(Path(), run)} == {names}
    assert_nothing_changed(call, turned["run"], straight)
    agreed = call.json(f"agreement {turned['run']} --against {straight}")
    assert agreed["rows"][0]["agreement"]["value"] == 1
    # A third candidate comes, and goes.
    third = [
        {"pair_id": f"p{i}", **row}
        for i, row in enumerate(list_rows(answers("mid", "zeta", "alpha")))
    ]
    write_row_list(third)
    call.run()
    assert "p0#alpha~mid" in winners()
    assert_nothing_changed(call, "latest", "latest~1")
    assert_nothing_changed(call, "latest~1", "latest")


def test_labels_and_votes_land_on_the_pair_that_they_name(call):
    """Whatever stood beside it when they were given, and in which order."""
    pair, topic = f"{HASHES[TOPICS[0]]}#alpha~mid", HASHES[TOPICS[1]]
    Path("labels.csv").write_text(
        f"pair_id,annotator,first,second,preference\n{pair},ann,,,1\n{pair},bob,mid,alpha,1\n"
        f"{topic},ann,zeta,alpha,2\n{topic},bob,alpha,zeta,zeta\n"
    )
    for models in (list(WORTHS), list(WORTHS)[::-1], ["mid", "alpha", "zeta"]):
        write_list(answers(*models))
        run = call.run()
        labels = call.json(f"import labels.csv --for {run}")["run"]
        outputs = [(row["unit"], row["judge"], row["output"]) for row in stored(Path(), labels)]
        assert {
            (unit, judge): output["candidates"]["AB".index(output["winner"])]
            for unit, judge, output in outputs
        } == {
            (pair, "human/ann"): "alpha",
            (pair, "human/bob"): "mid",
            (f"{topic}#alpha~zeta", "human/ann"): "alpha",
            (f"{topic}#alpha~zeta", "human/bob"): "zeta",
        }
    votes = [
        {"unit": name, "judge": "ann", "first": first, "second": second, "winner": "first"}
        for name in HASHES.values()
        for first, second in (("mid", "alpha"), ("zeta", "mid"))
    ]
    call.take("votes", votes)
    called = winners("rows").keys()
    assert called < ids("zeta", "alpha", "mid") and len(called) == 10
    assert call.json(f"agreement {run} --against rows")["rows"][0]["n"] == 10


def test_ids_stay_apart(call):
    names = ("a~b", "c", "a", "b~c", "x/y#z%")
    candidates = [{"id": name, "text": f"worth {i}"} for i, name in enumerate(names)]
    write_row_list([{"id": "q", "topic": "Why?", "candidates": candidates}])
    call.run()
    assert len(winners()) == 10
    assert {"q#a%7Eb~c", "q#a~b%7Ec", "q#a~x%2Fy%23z%25"} < winners().keys()
    # Rows that nothing tells apart have their number.
    rows = [*list_rows(answers("zeta", "alpha")), list_rows(answers("alpha", "zeta"))[0]]
    rows[-1]["candidates"][0]["text"] = "worth 1"
    write_row_list(rows)
    call.run()
    topic = HASHES[TOPICS[0]]
    assert {f"{topic}#alpha~zeta", f"{topic}#6#alpha~zeta"} < winners().keys()
    # Candidates without names are known by their places.
    rows = list_rows(answers("zeta", "alpha", "mid"))
    for row in rows:
        row["candidates"] = [{"text": candidate["text"]} for candidate in row["candidates"]]
    write_row_list(rows)
    call.run()
    assert winners().keys() == ids("1", "2", "3")


def test_the_verdict_table_and_the_fronts_go_by_names(call):
    given = answers("zeta", "alpha", "mid")
    write_list(given)
    call.run()
    # In the id of a pair A is the one that is named first.
    assert winners() == {
        row["pair_id"]: row["pair_id"].partition("#")[2].split("~")["AB".index(row["winner"])]
        for row in table(call)
    }
    fronts = call.json("leaderboard")["fronts"]
    for topic, texts in given.items():
        best = max(texts, key=lambda model: int(texts[model].split()[-1].rstrip(".")))
        assert fronts[HASHES[topic]] == {
            "candidates": ["alpha", "mid", "zeta"],
            "front": [best],
            "pareto": [best],
            "complete": True,
        }
