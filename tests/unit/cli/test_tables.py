"""Tables go in as their users have them: laid out, separated and put into files in whatever way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evenhand.units import question_hash
from tests.unit.cli.conftest import CallCommand
from tests.unit.cli.tables import LONG, SKY, SUM, suite, units
from tests.unit.data.workbooks import write_workbook


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_one_row_per_answer_becomes_pairs(
    call: CallCommand, tmp_path: Path, separator: str
) -> None:
    (tmp_path / "a.csv").write_text(LONG.replace(",", separator))
    suite(tmp_path, "pairwise", '["a.csv"]')
    pairs = units(call)
    assert len(pairs) == 2
    sky = pairs[f"{SKY}#m1~m2"]
    assert sky["topic"] == "Why is the sky blue?" and sky["meta"] == {"area": "physics"}
    assert [candidate["id"] for candidate in sky["candidates"]] == ["m1", "m2"]
    board = call("leaderboard", "latest", "--json").json
    assert {row["candidate"] for row in board["rows"]} == {"m1", "m2"}


@pytest.mark.parametrize(
    ("protocol", "ids"),
    [("rubric", {f"m1/{SKY}", f"m2/{SKY}"}), ("weighted", {f"{SKY}/m1", f"{SKY}/m2"})],
)
def test_one_row_per_answer_becomes_samples_and_answers(
    call: CallCommand, tmp_path: Path, protocol: str, ids: set[str]
) -> None:
    (tmp_path / "a.csv").write_text(LONG)
    suite(tmp_path, protocol, '["a.csv"]')
    read = units(call)
    assert len(read) == 4 and ids < read.keys()
    assert all(unit["meta"]["area"] in ("physics", "sums") for unit in read.values())
    compared = call("compare", "latest", "--by", "model", "--json").json
    assert {(row["variant"], row["n"]) for row in compared["rows"]} == {("m2", 2)}


def test_more_than_two_answers_are_all_pairs_and_a_lonely_topic_is_told(
    call: CallCommand, tmp_path: Path
) -> None:
    rows = LONG + "Why is the sky blue?,m3,worth 7,physics\nAlone?,m1,worth 1,none\n"
    (tmp_path / "a.csv").write_text(rows + "Why is the sky blue?,m4,,physics\n")
    suite(tmp_path, "pairwise", '["a.csv"]')
    ran = call("run", "--json")
    assert ran.json["planned"] == 4
    assert "1 topic has one answer and makes no pair" in ran.err
    assert "1 answer is empty and meets no other" in ran.err
    assert call("show", "latest", f"{SKY}#m2~m3").code == 0


def test_a_file_per_variant_is_told_apart_by_constants_and_paired_by_question(
    call: CallCommand, tmp_path: Path
) -> None:
    for variant in ("v1", "v2"):
        answers = "".join(f"question {i},answer {i} of {variant}\n" for i in range(3))
        (tmp_path / f"{variant}.csv").write_text("prompt,output\n" + answers)
    entries = ", ".join(f'{{ file = "{v}.csv", prompt_variant = "{v}" }}' for v in ("v1", "v2"))
    suite(tmp_path, "rubric", f"[{entries}]")
    read = units(call)
    assert len(read) == 6 and all(unit["id"][:3] in ("v1/", "v2/") for unit in read.values())
    rows = call("compare", "latest", "--by", "prompt_variant", "--json").json["rows"]
    assert {(row["variant"], row["n"]) for row in rows} == {("v2", 3)}


def test_files_that_hold_the_same_questions_must_be_told_apart(
    call: CallCommand, tmp_path: Path
) -> None:
    for name in ("v1", "v2"):
        (tmp_path / f"{name}.csv").write_text("question,answer\nq one,a\nq two,b\n")
    suite(tmp_path, "rubric", '["v1.csv", "v2.csv"]')
    ran = call("run")
    assert ran.code == 3 and "v1.csv:2 and " in ran.err
    assert 'data = [{ file = "v1.csv", prompt_variant = "v1" }' in ran.err


def test_patterns_name_many_files(call: CallCommand, tmp_path: Path) -> None:
    folder = tmp_path / "answers"
    folder.mkdir()
    for model in ("a", "b", "c"):
        (folder / f"{model}.csv").write_text(f"question,model,answer\nq,{model},worth 1\n")
    suite(tmp_path, "pairwise", '["answers/*.csv"]')
    assert call("run", "--json").json["planned"] == 3
    suite(tmp_path, "pairwise", '["answer/*.csv"]')
    ran = call("run")
    assert ran.code == 2 and 'evenhand.toml:3: data: no file fits "answer/*.csv"' in ran.err


def test_a_pattern_leads_nowhere_else(call: CallCommand, tmp_path: Path) -> None:
    folder = tmp_path / "suite"
    folder.mkdir()
    (tmp_path / "secret.csv").write_text("question,answer\nq,a\n")
    (folder / "link.csv").symlink_to(tmp_path / "secret.csv")
    for pattern in ("../*.csv", "*.csv", f"{tmp_path}/*.csv"):
        suite(folder, "rubric", f'["{pattern}"]')
        ran = call("run", "suite")
        assert ran.code == 2 and "leads out of the suite's folder" in ran.err, pattern


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.xlsx", "a.jsonl", "a.json"])
def test_all_formats_read_alike(call: CallCommand, tmp_path: Path, name: str) -> None:
    header, *lines = (line.split(",") for line in LONG.splitlines())
    rows = [dict(zip(header, line, strict=True)) for line in lines]
    path = tmp_path / name
    if name.endswith(".xlsx"):
        write_workbook(path, {"Sheet": [header, *lines]})
    elif name.endswith(".jsonl"):
        path.write_text("\n".join(map(json.dumps, rows)))
    elif name.endswith(".json"):
        path.write_text(json.dumps(rows))
    else:
        path.write_text(LONG.replace(",", "\t" if name.endswith("tsv") else ","))
    suite(tmp_path, "rubric", f'["{name}"]')
    read = units(call)
    assert sorted(read) == sorted(f"{m}/{q}" for m in ("m1", "m2") for q in (SKY, SUM))
    assert read[f"m1/{SKY}"]["model_output"] == "worth 5 of scattering"


def test_a_sheet_and_an_encoding_are_named_beside_the_file(
    call: CallCommand, tmp_path: Path
) -> None:
    write_workbook(tmp_path / "a.xlsx", {"Notes": [["x"], ["y"]], "Data": [["q"], ["why"]]})
    (tmp_path / "b.csv").write_bytes("вопрос;ответ\nпочему;потому\n".encode("cp1251"))
    suite(tmp_path, "rubric", '["b.csv"]')
    ran = call("run")
    assert ran.code == 3 and 'encoding = "cp1251"' in ran.err
    suite(tmp_path, "rubric", '[{ file = "b.csv", encoding = "cp1251" }]')
    (unit,) = units(call).values()
    assert (unit["question"], unit["model_output"]) == ("почему", "потому")
    data = '[{ file = "a.xlsx", sheet = "Data", model_output = "same" }]'
    suite(tmp_path, "rubric", data, '[columns]\nquestion = "q"\n')
    (unit,) = units(call).values()
    assert (unit["question"], unit["model_output"]) == ("why", "same")


@pytest.mark.parametrize(
    ("encoding", "says"),
    [("cp9999", 'no encoding "cp9999"'), ("ascii", "not ascii text"), ("rot13", "no encoding")],
)
def test_an_encoding_that_is_none_or_wrong_is_told(
    call: CallCommand, tmp_path: Path, encoding: str, says: str
) -> None:
    (tmp_path / "b.csv").write_bytes("вопрос;ответ\nпочему;потому\n".encode("cp1251"))
    suite(tmp_path, "rubric", f'[{{ file = "b.csv", encoding = "{encoding}" }}]')
    ran = call("run")
    assert ran.code in (2, 3) and says in ran.err


def test_an_answer_that_is_empty_or_endless_is_warned_about(
    call: CallCommand, tmp_path: Path
) -> None:
    rows = [{"question": f"q{i}", "answer": text} for i, text in enumerate(("", "x" * 100_001))]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    suite(tmp_path, "rubric", '["a.json"]')
    remarks = call("run", "--dry-run").err
    assert "1 answer is empty" in remarks
    assert "1 answer is longer than 100,000 characters" in remarks


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ("question,answer\nq,worth 1\nq,worth 2\n", "no column says whose answer it is"),
        (
            "question,model,answer\nq,m1,worth 1\nr,m2,worth 2\n",
            "no topic has two answers: 2 topics with one answer each;",
        ),
        (
            "question,model,answer\nq,m1,worth 1\nq,m2,\n",
            "no topic has two answers: 1 topic with one answer, and 1 empty answer;",
        ),
        ("question,model,answer\nq,m1,worth 1\nq,m1,worth 2\n", '"m1" answers the same topic at'),
    ],
)
def test_what_makes_no_pairs_says_why(
    call: CallCommand, tmp_path: Path, rows: str, says: str
) -> None:
    (tmp_path / "a.csv").write_text(rows)
    suite(tmp_path, "pairwise", '["a.csv"]')
    ran = call("run")
    assert ran.code == 3 and says in ran.err


def test_variants_of_one_model_are_candidates(call: CallCommand, tmp_path: Path) -> None:
    rows = "prompt;model;version;output\nq;m;v1;worth 1\nq;m;v2;worth 2\n"
    (tmp_path / "a.csv").write_text(rows)
    suite(tmp_path, "pairwise", '["a.csv"]')
    (unit,) = units(call).values()
    assert [candidate["id"] for candidate in unit["candidates"]] == ["v1", "v2"]
    assert {candidate["model"] for candidate in unit["candidates"]} == {"m"}


RUNS = "".join(
    f"q{question},{model},{run},{model} is worth {worth}\n"
    for question in (1, 2)
    for run in range(10)
    for model, worth in (("old", 1), ("new", 2))
)


def test_runs_of_one_question_are_no_questions_of_their_own(
    call: CallCommand, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("question,model,run_id,answer\n" + RUNS)
    suite(tmp_path, "pairwise", '["a.csv"]')
    pairs = units(call)
    assert len(pairs) == 20 and next(iter(pairs)) == f"0/{question_hash('q1')}#new~old"
    questions = {(pair["topic"], pair["meta"]["question_id"]) for pair in pairs.values()}
    assert questions == {(text, question_hash(text)) for text in ("q1", "q2")}
    compared = call("compare", "latest", "--baseline", "old", "--json").json["rows"]
    assert {(row["n"], row["clusters"]) for row in compared} == {(20, 2)}
    assert {row["outcome"] for row in compared} == {"not enough evidence"}
    board = call("leaderboard", "latest", "--json").json
    assert board["topics"] == 2
    # What `run` and `show` say of the orders is as sure as what the leaderboard does.
    orders = call("show", "latest", "--json").json["pairwise"]["consistency"]
    assert orders["low"] == pytest.approx(board["consistency_low"])
    assert call("gate", "latest", "--candidate", "new", "--baseline", "old", "--better").code == 7


def test_rows_of_one_topic_are_no_questions_of_their_own(call: CallCommand, tmp_path: Path) -> None:
    """The same where a row holds both answers, and for rows that nothing tells apart."""
    rows = [
        {
            "topic": f"q{topic}",
            "candidates": [
                {"id": name, "text": f"{name} is worth {worth} in {run}"}
                for name, worth in (("old", 1), ("new", 2))
            ],
            "meta": {"run_id": run},
        }
        for topic in (1, 2)
        for run in range(10)
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    suite(tmp_path, "pairwise", '["a.jsonl"]')
    pairs = units(call)
    assert len(pairs) == 20 and next(iter(pairs)) == f"0/{question_hash('q1')}#new~old"
    questions = {(pair["topic"], pair["meta"]["question_id"]) for pair in pairs.values()}
    assert questions == {(text, question_hash(text)) for text in ("q1", "q2")}
    compared = call("compare", "latest", "--baseline", "old", "--json").json["rows"]
    assert {(row["n"], row["clusters"]) for row in compared} == {(20, 2)}
    # A run alone is called as it is among others; without runs a topic needs no id beside its own.
    once = [row for row in rows if row["meta"] == {"run_id": 0}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in once))
    assert units(call).items() < pairs.items()
    for row in once:
        row["meta"] = {}
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in once))
    assert [pair["meta"] for pair in units(call).values()] == [{}] * 2


def test_runs_of_questions_that_have_ids_keep_them(call: CallCommand, tmp_path: Path) -> None:
    rows = [f"{line[1]},{line}\n" for line in RUNS.splitlines()]
    (tmp_path / "a.csv").write_text("question_id,question,model,run_id,answer\n" + "".join(rows))
    suite(tmp_path, "pairwise", '["a.csv"]')
    assert {pair["meta"]["question_id"] for pair in units(call).values()} == {"1", "2"}


def test_a_candidate_is_called_as_its_model_is(call: CallCommand, tmp_path: Path) -> None:
    rows = "question,model,answer\nq,openai/gpt-4o,worth 1\nq,100% pure,worth 2\nq,a%2Fb,worth 3\n"
    (tmp_path / "a.csv").write_text(rows)
    suite(tmp_path, "pairwise", '["a.csv"]')
    read = units(call).values()
    names = {candidate["id"] for unit in read for candidate in unit["candidates"]}
    assert names == {"openai/gpt-4o", "100% pure", "a%2Fb"}
    board = call("leaderboard", "latest", "--json").json["rows"]
    assert {row["candidate"] for row in board} == names


def test_a_candidate_of_a_model_and_a_variant_keeps_them_apart(
    call: CallCommand, tmp_path: Path
) -> None:
    rows = "question,model,variant,answer\nq,a/b,c,worth 1\nq,a,b/c,worth 2\nq,a/b,,worth 3\n"
    (tmp_path / "a.csv").write_text(rows)
    suite(tmp_path, "pairwise", '["a.csv"]')
    read = units(call).values()
    names = {candidate["id"] for unit in read for candidate in unit["candidates"]}
    assert names == {"a%2Fb/c", "a/b%2Fc", "a%2Fb"}


NUMBERS = {"0": 0, "5": 5, "-1": -1, "true": True}


@pytest.mark.parametrize(("text", "answer"), NUMBERS.items())
def test_an_answer_that_is_a_number_is_its_text_and_not_taken_for_empty(
    call: CallCommand, tmp_path: Path, text: str, answer: object
) -> None:
    """As it is in a table of texts and in a workbook."""
    answers = {"a": answer, "b": "worth 1", "c": "worth 2"}
    rows = [{"question": "q", "model": name, "answer": text} for name, text in answers.items()]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    suite(tmp_path, "pairwise", '["a.json"]')
    texts = {candidate["text"] for unit in units(call).values() for candidate in unit["candidates"]}
    assert texts == {text, "worth 1", "worth 2"}


@pytest.mark.parametrize("protocol", ["rubric", "weighted"])
@pytest.mark.parametrize("number", ["42", "0", "6.50", "1e3", "123456789012345678901"])
def test_a_number_for_an_answer_is_judged_as_it_is_written(
    call: CallCommand, tmp_path: Path, protocol: str, number: str
) -> None:
    row = f'{{"id": "sum", "question": "How much?", "answer": {number}}}\n'
    (tmp_path / "a.jsonl").write_text(row)
    suite(tmp_path, protocol, '["a.jsonl"]')
    assert call("run", "--dry-run").code == 0
    call("run")
    unit = call("show", "latest", "sum", "--json").json["unit"]
    assert unit["model_output" if protocol == "rubric" else "answer"] == number


def test_replies_made_elsewhere_are_checked_against_any_table(
    call: CallCommand, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text(LONG)
    suite(tmp_path, "rubric", '["a.csv"]')
    score = {"evidence": ["worth 5"], "rationale": "so", "score": 3}
    reply = {"scores": {"correct": score, "clear": score}, "failure_tags": [], "notes": ""}
    line = {"unit": f"m1/{SKY}", "reply": json.dumps(reply)}
    (tmp_path / "replies.jsonl").write_text(json.dumps(line))
    arguments = ["--protocol", "rubric", "--rubric", "rubric.json", "--units", "a.csv"]
    checked = call("check", *arguments, "--replies", "replies.jsonl", "--json")
    assert checked.json["ok"] == 1 and not checked.json["problems"]
