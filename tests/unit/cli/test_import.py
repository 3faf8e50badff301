"""`evenhand import`: tables of votes, scores and verdicts, in the words of those who made them, and
the commands that read what came in."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from evenhand.data.write import write
from evenhand.files.replies import check_file
from evenhand.runs.imports import VERSION
from evenhand.words import words
from tests.cases import cases, table_rows
from tests.sentences import is_told
from tests.suites import pair_row, pairs, stored, write_pairs, write_rows, write_suite
from tests.unit.cli.conftest import NEWEST, values

SCHEMA = words("en").gloss("reason", "schema")
VOTES = [
    {"unit": f"q{i}", "judge": "j", "first": a, "second": b, "winner": winner, "area": "x"}
    for i, winners in enumerate(("aa", "ab", "bb", "a?"))
    for (a, b), winner in zip(("ab", "ba"), winners, strict=True)
]
SCORES = [
    {"unit": f"q{i}", "judge": "j", "dimension": d, "score": i, "model": m}
    for i in range(3)
    for m in ("m1", "m2")
    for d in ("clear", "true")
]


def take(call, kind, rows, options="", *words, file="rows.jsonl"):
    """What an import says of rows, or of the text of a table."""
    if isinstance(rows, str):
        Path(file).write_text(rows)
    else:
        write(Path(file), rows)
    return call.json(f"import {file} --kind {kind} {options}", *words)


def winners(run):
    return {row["unit"]: row["output"]["winner"] for row in stored(Path(), run) if row["output"]}


def test_votes_are_known_to_every_command(call):
    found = take(call, "votes", VOTES, "--name mine --tag people", file="votes.csv.gz")
    run = found.pop("run")
    assert found == {
        **{"name": "mine", "kind": "votes", "rows": 8, "units": 4, "judges": 1, "planned": 4},
        **{"verdicts": 3, "failures": {"schema": 1}, "unreadable": {"?": 1}, "pending": 0},
        **{"repeats": 1, "key": ["unit"], "columns": {}, "meta_differs": {}, "criteria": []},
        **{"candidates": ["a", "b"], "settled": {"stable": 2, "uncertain": 1}},
        "on_conflict": "uncertain",
    }
    (row,) = call.json("runs")["runs"]
    assert values(row, "run planned pending protocol tags") == [run, 4, 0, "votes", ["people"]]
    shown = call(f"show {run}").out
    assert is_told(shown, "cli.outcome", verdicts=3, failures=1, pending=0, planned=4)
    assert "votes.csv.gz" in shown and is_told(shown, "cli.failed", reason=SCHEMA)
    figures = call.json(f"show {run}")["pairwise"]
    assert figures["candidates"]["a"] == {"wins": 1, "losses": 1, "ties": 0, "uncertain": 1}
    unit = call.json(f"show {run} q1")
    assert unit["judgments"][0]["exchanges"] == [] and unit["unit"]["row"] == "q1"
    assert "uncertain" in call(f"show {run} q1").out
    assert "order 12 says A" in call(f"show {run} q3").text
    assert [row["winner"] for row in call.export(run)] == ["A", "uncertain", "B"]
    call(f"export {run} -o table.txt")
    assert "\nq0 | A" in Path("table.txt").read_text()
    call.refused(f"settle {run}", key="runs.nothing_to_settle", says=[run])


def test_scores_are_known_to_every_command(call):
    found = take(call, "scores", SCORES)
    run = found["run"]
    assert values(found, "name units verdicts") == ["rows", 6, 6]
    assert values(found, "key dimensions") == [["unit", "model"], ["clear", "true"]]
    assert "clear" in call(f"show {run}").out and "clear" in call(f"show {run} q1/m2").out
    assert "6 rows" in call(f"export {run} -o o.csv").err
    assert call(f"export {run} -o o.txt").code == 2
    said = call("import rows.jsonl --kind scores").out
    assert is_told(said, "cli.told_apart", names="unit, model")
    assert said.splitlines()[-1].endswith(" --by model")


def test_people_read_what_came_in(call):
    write(Path("votes.csv"), VOTES)
    said = call("import votes.csv --kind votes --on-conflict tie").out
    say = words("en")
    for key, told in (
        ("cli.imported", {"rows": 8, "units": 4, "judges": 1}),
        ("cli.failures", {"n": 1, "reason": SCHEMA}),
        ("cli.unreadable_values", {"values": '"?" (1)'}),
        ("cli.outcomes", {"rule": say.gloss("rule", "tie")}),
    ):
        assert is_told(said, key, **told), key
    settled = say.gloss("settled", "stable"), say.gloss("settled", "uncertain")
    assert all(text in said for text in (*settled, 'winner "?"', "evenhand leaderboard"))
    rows = [
        row
        | {"area": "xy"[i % 2], "first": "a", "second": "a", "judge": f"judge{i}"}
        | {f"c{k:02}": i for k in range(14)}
        for i, row in enumerate([*VOTES[:2], *(VOTES[0] | {"unit": f"u{i}"} for i in range(200))])
    ]
    write(Path("votes.csv"), rows)
    said = call("import votes.csv --kind votes").out
    assert all(is_told(said, "cli.differs", field=field, n=1) for field in ("area", "c10"))
    assert "c11" not in said and is_told(said, "cli.differs_more", n=3)
    assert is_told(said, "cli.candidates", n=1, names="a")
    shown = call("show", NEWEST).out
    assert "and 182 more" in shown and "judge199" not in shown


def test_what_cannot_be_done_is_said_and_leaves_no_run(call):
    write(Path("votes.csv"), VOTES)
    write(Path("tie.csv"), [VOTES[0], VOTES[1] | {"second": "tie"}])
    write(Path("none.csv"), [row | {"winner": "??"} for row in VOTES])
    Path("t.csv").write_text("foo,bar\n1,2\n")
    rows = [row | {"judge": {"seed": i, "model": "gpt"}} for i, row in enumerate(VOTES)]
    write(Path("judges.jsonl"), rows)
    Path("n.jsonl").write_text('{"a": 1}\n')
    for line, code, *says in table_rows(__file__, "what_cannot_be_done_is_said_and_leaves_no_run"):
        call.refused(f"import {line}", code=code, says=says)
    if Path("evenhand.db").exists():
        assert call.json("runs") == {"runs": []}
    # An object is no judge, but a name in it may be one.
    named = call.json("import judges.jsonl --kind votes --map judge=judge.model")
    assert named["judges"] == 1


def test_what_is_unreadable_is_counted_the_most_frequent_first_and_much_of_it_doubted(call):
    names = ["не знаю", "первее", "первее", "0", "первее", "0", "first", *"klmnopqrstuv"]
    rows = [VOTES[0] | {"unit": i, "winner": value} for i, value in enumerate(names)]
    write(Path("v.csv"), [*rows, *(VOTES[0] | {"unit": f"q{i}"} for i in range(20))])
    said = call("import v.csv --kind votes")
    assert '"первее" (3), "0" (2), "не знаю" (1), "k" (1),' in said.text
    assert is_told(said.out, "list.more", n=3) and not is_told(said.err, "cli.mostly_unread")
    write(Path("v.csv"), rows)
    assert is_told(call.ok("import v.csv --kind votes").err, "cli.mostly_unread")


def test_progress_is_told_on_stderr(call, monkeypatch):
    monkeypatch.setattr("evenhand.runs.imports.ROWS_A_NOTICE", 5)
    write(Path("s.csv"), [{"unit": i, "judge": "j", "score": 1} for i in range(12)])
    said = call("import s.csv --kind scores --json")
    told = ["5 rows read", "10 rows read", "5 units written", "10 units written"]
    assert said.err.splitlines() == told and said.json["rows"] == 12


def test_the_same_options_make_the_same_run_and_others_make_another(call, monkeypatch):
    """Runs also say by which version of the reader their rows were read."""
    options = ("", "--on-conflict tie", "--name other", "--judge b --map by=judge")
    runs = [take(call, "votes", VOTES, option)["run"] for option in options]
    assert len(set(runs)) == len(options)
    assert take(call, "votes", VOTES)["run"] == runs[0]
    monkeypatch.setattr("evenhand.runs.imports.VERSION", VERSION + 1)
    assert take(call, "votes", VOTES)["run"] not in runs
    call.ok("store verify")


# Columns by other names


@cases
def test_usual_names_are_read_and_said(call, kind, text, columns):
    Path("t.csv").write_text(text)
    judge = () if "judge" in columns else ("--judge", "people")
    said = call(f"import t.csv --kind {kind}", *judge, "--json")
    assert (said.json["columns"], said.json["failures"]) == (columns, {})
    assert all(f'{field} = "{column}"' in said.err for field, column in columns.items())


def test_a_name_that_the_user_gives_goes_before_a_usual_one(call):
    table = "id,item,rater,rating\nq1,i1,ann,3\n"
    said = take(call, "scores", table, "--map unit=item", file="t.csv")
    assert said["columns"] == {"judge": "rater", "score": "rating"}
    call.ok(f"show {said['run']} i1")
    flags = "--map unit=q --map first=one --map second=two --judge me --map"
    table = "q,one,two,verdict\nq1,B,A,A\n"
    said = take(call, "votes", table, flags, "winner = verdict", file="t.csv")
    assert call.json("runs")["runs"][0]["judges"] == ["me"]
    # The name of a candidate goes before what a word usually means.
    rows = call.json(f"leaderboard {said['run']}")["rows"]
    assert {row["candidate"]: row["wins"] for row in rows} == {"A": 1, "B": 0}


def test_columns_that_other_commands_know_by_name_are_only_columns_here(call):
    rows = [
        {"unit": f"q{i}/{model}", "judge": "j", "dimension": d, "score": (i + at) % 3}
        | {"question_id": f"q{i}", "topic": f"q{i}", "length": "long", "model": model}
        | ({"failure_tags": "A"} if model == "new" else {})
        for i in range(12)
        for model in ("old", "new")
        for at, d in enumerate(("accuracy", "style"))
    ]
    take(call, "scores", rows)
    asked = "compare rows --by model --baseline old"
    found = call.json(asked)["rows"]
    assert values(found[-1], "dimension difference") == ["overall", 0]
    assert "wins" not in call(f"{asked} --pair-by topic").out
    call.ok("report rows -o report.html")
    # What was judged about one question belongs together in every command.
    gate = call.json("gate rows --min-mean 0.1")["conditions"]
    assert {row["clusters"] for row in (*found, *gate)} == {12}


def test_judges_by_turns_leave_nothing_pending_and_topics_weigh_alike(call):
    rows = [
        {"unit": f"t{topic}-{pair}", "question_id": f"t{topic}", "judge": ("ann", "bob")[topic % 2]}
        | {"first": "old", "second": "new", "winner": "new" if topic < 40 else "old"}
        for topic in range(41)
        for pair in range(1 if topic < 40 else 200)
    ]
    take(call, "votes", rows)
    found = call.json("compare rows --baseline old --judge bob")
    assert values(found["missing"]["new"], "planned pending") == [20, 0]
    assert found["rows"][-1]["bounds"] == [1, 1]
    gate = call.json("gate rows --judge bob --baseline old --better")
    assert gate["outcome"] == "better"
    reason = call("gate rows --candidate new --min-win-rate 0.6 --json").json["reasons"][0]
    assert is_told(reason, "gate.of_pairs_grouped", n=240, clusters=41)


# SQL: the recipes of docs/import.md run as they stand

PAGE = Path(__file__).parents[3] / "docs" / "import.md"
RECIPES = re.findall(r"```sql\n-- (\w+): (\w+)\.csv.*\n([^`]*)```", PAGE.read_text("utf-8"))
TABLES = {
    "wide": "unit,judge,clear,correct\nq1,j,3,4\nq2,j,5,\n",
    "judges": "question_id,model,ann,bob\nq1,m1,3,4\nq1,m2,2,2\n",
    "arena": "id,model_a,model_b,pick\n1,x,y,A\n2,x,y,=\n3,x,y,?\n",
    "bare": "winner\nold\nnew\ntie\n",
    "orders": "id,winner_ab,winner_ba\n1,A,A\n2,A,B\n",
    "scores": "unit,judge,score\nq1,j,1\nq2,j,2\n",
    "areas": "unit,area\nq1,code\n",
    "grades": "unit,judge,model,score\nq1,j,a,4\nq1,j,b,5\nq2,j,a,3\nq2,j,b,3\n",
}
FOUND = {
    "wide": {"units": 2, "verdicts": 2, "missing_scores": {"correct": 1}},
    "judges": {"units": 2, "judges": 2, "verdicts": 4, "key": ["unit", "model"]},
    "arena": {"verdicts": 2, "failures": {"empty": 1}, "candidates": ["x", "y"]},
    "bare": {"units": 3, "verdicts": 3, "candidates": ["new", "old"]},
    "orders": {"settled": {"stable": 1, "uncertain": 1}},
    "scores": {"units": 2, "verdicts": 2},
    "grades": {"units": 2, "verdicts": 2, "candidates": ["a", "b"]},
}


@pytest.fixture
def tables(call):
    for name, text in TABLES.items():
        Path(f"{name}.csv").write_text(text)


def test_every_recipe_gives_what_it_says(call, tables):
    assert [name for _, name, _ in RECIPES] == list(FOUND)
    for kind, name, sql in RECIPES:
        done = call.json(f"import --kind {kind} --sql", sql)
        assert {key: done[key] for key in FOUND[name]} == FOUND[name]
        assert done["name"] == "query"
    # The columns of a second table are fields.
    sql = "select * from 'scores.csv' left join 'areas.csv' using (unit) order by unit"
    call("import --kind scores --name joined --sql", sql)
    assert call.json(f"show {NEWEST} --where area=code")["verdicts"] == 1


def test_a_query_that_gives_no_judgments_is_refused(call, tables):
    for sql, code, key in table_rows(__file__, "a_query_that_gives_no_judgments_is_refused"):
        call.refused("import --kind votes --sql", sql, code=code, key=key)
    call.refused("import --kind votes scores.csv --sql 'select 1'", key="cli.sql_alone")


# Other tools: what a file says beside its scores


def log(name, scores, **args):
    """A log of Inspect; None is a sample that ended in an error."""
    samples = [
        {"id": number, "epoch": 1, "input": f"question {number}"}
        | ({"scores": {"match": {"value": value}}} if value else {"error": "out of memory"})
        for number, value in enumerate(scores)
    ]
    about = {"model": "m", "task": "sums", "task_args": args}
    Path(name).write_text(json.dumps({"version": 2, "eval": about, "samples": samples}))


def test_logs_with_other_arguments_are_variants_and_an_errored_sample_failed(
    call,
):
    log("a.json", "CCIC", shots=0, cot=True)
    log("b.json", ["C", None, "C", "C"], shots=5, cot=True)
    log("c.json", "CCIC", shots=5, cot=True)
    keys = "units verdicts repeats failures"
    found = call.json("import a.json b.json --kind inspect")
    assert values(found, keys) == [8, 7, 1, {"schema": 1}]
    assert found["key"] == ["unit", "model", "task", "task_args.shots"]
    compared = call.ok(f"compare {NEWEST} --by task_args.shots --baseline 0")
    assert "0.333" in compared.out, compared.err
    for order in ("b.json c.json", "c.json b.json"):  # it hides in no repeat
        found = call.json(f"import {order} --kind inspect")
        assert values(found, keys) == [4, 7, 2, {"schema": 1}]
        assert found["key"] == ["unit", "model", "task"]


# Verdicts as teams store them

WEIGHTS = {"logic_and_fact": 60, "constraint_adherence": 30, "helpfulness_and_creativity": 10}
GRADE = {
    **{"task_name": "t", "task_type": "fact", "inferred_task_type": None, "weights": WEIGHTS},
    "score": dict(zip(WEIGHTS, (50, 20, 5), strict=True)),
    **{"total_score": 75, "reasoning": {}, "critical_fail": False, "critical_fail_reason": None},
    "confidence": "high",
}


def test_exported_pairs_come_back_and_keep_the_contract(call):
    write_pairs(Path(), pairs(6))
    run = call.run()
    for name in ("o.jsonl", "o.txt"):
        call(f"export {run} -o {name}")
        said = call.json(f"import {name} --kind objects --judge team")
        assert values(said, "units verdicts failures") == [6, 6, {}]
        assert winners(said["run"]) == winners(run)
    rows = [{"pair_id": f"p{n}", "winner": "B", "preference": n} for n in (0.75, 1, 7, -1)]
    said = take(call, "objects", rows, "--judge team")
    assert values(said, "verdicts failures") == [2, {"out_of_range": 2}]
    call.ok(f"leaderboard {said['run']}")


def test_imported_votes_are_exported_by_the_contract(call):
    names = {"first": "c1", "second": "c2"}
    votes = [
        {"unit": unit, "judge": judge, **names, **more}
        for judge in ("ann", "bob", "cyd")
        for unit, more in (
            ("p0", {"winner": "first"}),
            ("p0", {"first": "c2", "second": "c1", "winner": "first"}),
            ("p1", {"winner": "c2", "area": "x"}),
            ("p2", {"preference": 0.5}),
        )
    ]
    met = [
        {"unit": "t", "judge": "ann", "first": first, "second": second, "winner": first}
        for first, second in (("c1", "c2"), ("c3", "c1"), ("c2", "c3"))
    ]
    for rows, units, lines in ((votes, pairs(3), 9), (met, [pair_row("t", 1, 2, 3)], 3)):
        run = take(call, "votes", rows)["run"]
        write_rows(Path(), units, "pairs.jsonl")
        for name, number in (("v.jsonl", lines), ("v.txt", 3)):
            call(f"export {run} -o {name}")
            found = check_file("pairwise", "en", None, Path("pairs.jsonl"), Path(name))
            assert (found.problems, found.units, found.ok) == ([], number, number)


def test_exported_scores_come_back_and_agree_with_themselves(call):
    write_suite(Path(), 6)
    run = call.run()
    outputs = {row["unit"]: row["output"] for row in stored(Path())}
    rows = [{"unit": unit} | output for unit, output in outputs.items()]
    said = take(call, "objects", rows, "--judge team")
    back = {row["unit"]: row["output"]["scores"] for row in stored(Path(), said["run"])}
    assert back == {unit: output["scores"] for unit, output in outputs.items()}
    (row, *_) = call.json(f"agreement {run} --against {said['run']}")["rows"]
    assert row["agreement"]["value"] == 1


def test_grades_and_objects_that_are_none(call):
    bad = GRADE | {"task_name": "u", "score": "seventy"}
    high = GRADE | {"task_name": "v", "score": WEIGHTS | {"logic_and_fact": 61}}
    write_rows(Path(), [GRADE, bad, high], "g.jsonl")
    call.refused("import g.jsonl --kind objects", code=3, says=["--judge NAME"])
    said = call.json("import g.jsonl --kind objects --judge team")
    assert values(said, "verdicts failures") == [1, {"out_of_range": 1, "schema": 1}]
    outputs = [row["output"] for row in stored(Path(), said["run"]) if row["output"]]
    assert outputs == [GRADE]
    call.ok(f"show {said['run']}")
