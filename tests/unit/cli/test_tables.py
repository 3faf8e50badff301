"""Tables go in as their users have them: laid out, named and separated in whatever way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.suites import (
    GRADE_JUDGE,
    JUDGE,
    PAIR_JUDGE,
    RUBRIC,
    TASK,
    judged,
    stored,
    write_answers,
)
from tests.unit.cli.conftest import CallCommand
from tests.unit.data.workbooks import write_workbook

LONG = """\
question,model,answer,area
Why is the sky blue?,m1,worth 5 of scattering,physics
Why is the sky blue?,m2,worth 3 of paint,physics
How much is 2+2?,m1,worth 1,sums
How much is 2+2?,m2,worth 9,sums
"""
SKY, SUM = "ba6ba125e6", "a687b20742"
JUDGES = {
    "rubric": "python/judge:good",
    "pairwise": "python/pair_judge:content",
    "weighted": "python/grade_judge:good",
}


def suite(folder: Path, protocol: str, data: str, more: str = "") -> None:
    """A suite on these data, with a judge of Python that needs no key."""
    for name, text in (("judge", JUDGE), ("pair_judge", PAIR_JUDGE), ("grade_judge", GRADE_JUDGE)):
        (folder / f"{name}.py").write_text(text)
    (folder / "rubric.json").write_text(json.dumps(RUBRIC))
    (folder / "task.md").write_text("The answer is right.\n")
    rubric = {"rubric": "rubric.json", "weighted": "task.md"}.get(protocol)
    (folder / "evenhand.toml").write_text(
        f'name = "tables"\nprotocol = "{protocol}"\ndata = {data}\n'
        + (f'rubric = "{rubric}"\n' if rubric else "")
        + f'judges = [{{ model = "{JUDGES[protocol]}" }}]\n{more}',
        encoding="utf-8",
    )


def units(call: CallCommand) -> dict[str, Any]:
    """The units of the run by id, as `show` has them."""
    ran = call("run", "--json")
    assert ran.code == 0, ran.err
    call("export", "latest", "--full", "-o", "full.jsonl")
    rows = [json.loads(line) for line in Path("full.jsonl").read_text("utf-8").splitlines()]
    return {row["unit"]: call("show", "latest", row["unit"], "--json").json["unit"] for row in rows}


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_one_row_per_answer_becomes_pairs(
    call: CallCommand, tmp_path: Path, separator: str
) -> None:
    (tmp_path / "a.csv").write_text(LONG.replace(",", separator))
    suite(tmp_path, "pairwise", '["a.csv"]')
    pairs = units(call)
    assert len(pairs) == 2
    sky = pairs[SKY]
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
    assert call("show", "latest", f"{SKY}#2-3").code == 0


HEADERS = [
    ("question", "answer", "model"),
    ("Prompt", "Response", "LLM"),
    ("user input", "Model Output", "model_name"),
    ("Вопрос", "Ответ", "Модель"),
    ("问题", "回答", "模型"),
    ("質問", "出力", "モデル名"),
]


@pytest.mark.parametrize("protocol", ["rubric", "weighted", "pairwise"])
@pytest.mark.parametrize("names", HEADERS)
def test_columns_are_known_by_their_usual_names_and_it_is_told(
    call: CallCommand, tmp_path: Path, protocol: str, names: tuple[str, str, str]
) -> None:
    question, answer, model = names
    rows = f"{question};{answer};{model}\nq one;worth 1;m1\nq one;worth 2;m2\n"
    (tmp_path / "a.csv").write_text(rows, encoding="utf-8")
    suite(tmp_path, protocol, '["a.csv"]')
    ran = call("run", "--dry-run", "--json")
    assert ran.json["planned"] == (1 if protocol == "pairwise" else 2), ran.err
    (line,) = [line for line in ran.err.splitlines() if line.startswith("Columns of a.csv: ")]
    assert f'meta.model = "{model}"' in line
    field = {"rubric": "question", "weighted": "prompt", "pairwise": "topic"}[protocol]
    assert (f'{field} = "{question}"' in line) is (question != field)


@pytest.mark.parametrize(
    ("header", "field", "fits"),
    [
        ("prompt,input,answer", "question", '"prompt" and "input"'),
        ("question,answer,response", "model_output", '"answer" and "response"'),
        ("вопрос,ответ,вывод", "model_output", '"ответ" and "вывод"'),
        ("question,answer,model_name,llm", "meta.model", '"model_name" and "llm"'),
    ],
)
def test_where_two_columns_fit_all_are_listed_and_nothing_is_sent(
    call: CallCommand, tmp_path: Path, header: str, field: str, fits: str
) -> None:
    width = header.count(",") + 1
    rows = f"{header}\n{','.join('abcd'[:width])}\n"
    (tmp_path / "a.csv").write_text(rows, encoding="utf-8")
    suite(tmp_path, "rubric", '["a.csv"]')
    ran = call("run")
    assert ran.code == 3 and f'{fits} would each fit as "{field}"' in ran.err
    assert all(f'"{name}"' in ran.err for name in header.split(","))
    first = fits.split('"')[1]
    suite(tmp_path, "rubric", '["a.csv"]', f'[columns]\n{field} = "{first}"\n')
    ran = call("run", "--dry-run", "--json")
    assert ran.json["planned"] == 1, ran.err


def test_a_topic_beside_a_question_is_asked_about(call: CallCommand, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("topic,question,model,answer\nart,q,m1,1\nart,q,m2,2\n")
    suite(tmp_path, "pairwise", '["a.csv"]')
    assert '"topic" and "question" would each fit as "topic"' in call("run").err


@pytest.mark.parametrize(
    ("column", "remark"),
    [
        ("rubrik", 'the column "rubrik" is not used; did you mean "rubric"?'),
        ("Question", 'the column "Question" is not used, "question" is'),
        ("referense", 'did you mean "reference"?'),
    ],
)
def test_a_column_near_a_known_name_is_told(
    call: CallCommand, tmp_path: Path, column: str, remark: str
) -> None:
    (tmp_path / "a.csv").write_text(f"question,model_output,{column}\nq,a,x\n")
    suite(tmp_path, "rubric", '["a.csv"]')
    assert remark in call("run", "--dry-run").err


@pytest.mark.parametrize(
    ("column", "remark"),
    [
        ("rubrik", 'the column "rubrik" is not used; did you mean "rubric"?'),
        ("Question", 'the column "Question" is not used, "question" is'),
        ("modeloutput", 'the column "modeloutput" is not used, "model_output" is'),
        ("refrence", 'did you mean "reference"?'),
    ],
)
def test_a_column_near_a_known_name_is_told_beside_a_meta_too(
    call: CallCommand, tmp_path: Path, column: str, remark: str
) -> None:
    row = {"question": "q", "model_output": "text", "meta": {"model": "m", column: 1}, column: "x"}
    (tmp_path / "a.jsonl").write_text(json.dumps(row))
    suite(tmp_path, "rubric", '["a.jsonl"]')
    told = call("run", "--dry-run").err
    assert told.count("is not used") == 1
    assert remark in told


def test_a_table_of_the_contract_is_read_without_a_word(call: CallCommand, tmp_path: Path) -> None:
    row = {"id": "a", "question": "q", "model_output": "text", "meta": {"model": "m"}}
    (tmp_path / "a.jsonl").write_text(json.dumps(row | {"answer": "another", "prompt": "v1"}))
    suite(tmp_path, "rubric", '["a.jsonl"]')
    ran = call("run", "--dry-run")
    assert "Columns" not in ran.err and "not used" not in ran.err


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


@pytest.mark.parametrize("quote", ["", '"'])
def test_dotted_keys_need_no_quotes_and_one_column_feeds_two_fields(
    call: CallCommand, tmp_path: Path, quote: str
) -> None:
    (tmp_path / "a.csv").write_text("q,a,who\nasked,answered,m1\n")
    columns = f'[columns]\nquestion = "q"\nmodel_output = "a"\n{quote}meta.model{quote} = "who"\n'
    columns += f'reference = "a"\n{quote}meta.question_id{quote} = "q"\n'
    suite(tmp_path, "rubric", '["a.csv"]', columns)
    (unit,) = units(call).values()
    assert unit["id"] == "m1/asked" and unit["reference"] == unit["model_output"] == "answered"


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


def test_rows_that_are_alike_are_told_apart_by_their_number(
    call: CallCommand, tmp_path: Path
) -> None:
    rows = "question,model,answer\nq one,m,first try\n,,\nq one,m,second try\n"
    (tmp_path / "a.csv").write_text(rows)
    suite(tmp_path, "rubric", '["a.csv"]')
    first, second = units(call)
    assert second == f"{first}#3"


def test_an_id_that_repeats_is_the_id_of_the_question(call: CallCommand, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,question,model,answer\n1,q,m1,x\n1,q,m2,y\n2,r,m1,z\n")
    suite(tmp_path, "rubric", '["a.csv"]')
    assert list(units(call)) == ["m1/1", "m2/1", "m1/2"]
    suite(tmp_path, "pairwise", '["a.csv"]')
    (tmp_path / "a.csv").write_text("id,question,model,answer\n1,q,m1,worth 1\n1,q,m2,worth 2\n")
    assert list(units(call)) == ["1"]


def test_rows_with_ids_of_their_own_are_compared_by_question(
    call: CallCommand, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("id,question,model,answer\n1,q,m1,x\n2,q,m2,y\n")
    suite(tmp_path, "rubric", '["a.csv"]')
    assert list(units(call)) == ["1", "2"]
    rows = call("compare", "latest", "--by", "model", "--json").json["rows"]
    assert {row["n"] for row in rows} == {1}


def test_ids_that_are_the_rows_own_and_repeat_are_refused(
    call: CallCommand, tmp_path: Path
) -> None:
    (tmp_path / "a.csv").write_text("id,question,answer\n1,q,x\n1,r,y\n")
    suite(tmp_path, "rubric", '["a.csv"]')
    ran = call("run")
    assert ran.code == 3 and "ids must be unique" in ran.err
    (tmp_path / "a.csv").write_text("id,question,answer\n1,q,x\n2,q,x\n1,r,y\n")
    suite(tmp_path, "rubric", '["a.csv", "a.csv"]')
    refused = call("run").err
    assert refused.count('"1" at') == refused.count('"2" at') == 1


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
        ("question,model,answer\nq,m1,worth 1\nr,m2,worth 2\n", "no topic has two answers"),
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


def test_a_unique_part_of_an_id_is_enough(call: CallCommand, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(LONG)
    suite(tmp_path, "rubric", '["a.csv"]')
    assert call("run").code == 0
    unit = call("show", "latest", f"M2/{SKY[:4]}", "--json")
    assert unit.json["unit"]["id"] == f"m2/{SKY}"
    ran = call("show", "latest", SKY)
    assert ran.code == 2 and f'2 units have "{SKY}" in the id' in ran.err
    assert f"Did you mean m1/{SKY}, m2/{SKY}?" in ran.err
    assert 'no judged unit has "m3" in the id' in call("show", "latest", "m3").err


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


async def test_a_task_is_called_by_its_name_where_that_is_enough(tmp_path: Path) -> None:
    rows = [{"task_name": name, "prompt": f"{name}?", "answer": "It is."} for name in ("t", "u")]
    write_answers(tmp_path, [row | {"rubric": TASK} for row in rows])
    await judged(tmp_path)
    assert [row["unit"] for row in stored(tmp_path)] == ["t", "u"]
    write_answers(tmp_path, [row | {"rubric": TASK, "model": "m"} for row in [*rows, rows[0]]])
    await judged(tmp_path)
    first, _, third = [str(row["unit"]) for row in stored(tmp_path)]
    assert first.startswith("t/m/") and third.endswith("#3"), "alike: the question and the row"


def write_variants(folder: Path, header: str, *tables: str) -> str:
    """A file per variant, v1 first, and the entry `data` for them."""
    for number, rows in enumerate(tables, 1):
        (folder / f"v{number}.csv").write_text(f"{header}\n{rows}", encoding="utf-8")
    names = [f"v{number}" for number in range(1, len(tables) + 1)]
    entries = [f'{{ file = "{name}.csv", prompt_variant = "{name}" }}' for name in names]
    return f"[{', '.join(entries)}]"


@pytest.mark.parametrize("header", ["id,question,answer", "номер,question,answer"])
@pytest.mark.parametrize(
    ("protocol", "ids"),
    [("rubric", ["v1/1", "v1/2", "v2/1", "v2/2"]), ("weighted", ["1/v1", "2/v1", "1/v2", "2/v2"])],
)
def test_ids_that_repeat_from_variant_to_variant_are_those_of_questions(
    call: CallCommand, tmp_path: Path, protocol: str, ids: list[str], header: str
) -> None:
    data = write_variants(
        tmp_path, header, "1,q,worth 1\n2,r,worth 3\n", "1,q,worth 2\n2,r,worth 4\n"
    )
    suite(tmp_path, protocol, data)
    ran = call("run", "--dry-run")
    assert ran.code == 0
    lines = [line for line in ran.err.splitlines() if "meta.question_id" in line]
    assert lines == [
        "The ids of v1.csv and 1 more are those of questions (meta.question_id), for they repeat"
        " from file to file"
    ]
    assert list(units(call)) == ids
    rows = call("compare", "latest", "--by", "prompt_variant", "--json").json["rows"]
    assert {(row["variant"], row["n"]) for row in rows} == {("v2", 2)}


def test_ids_of_rows_that_a_file_lays_out_with_meta_may_be_those_of_questions(
    call: CallCommand, tmp_path: Path
) -> None:
    row = {"id": 1, "question": "q", "model_output": "worth 1", "meta": {"area": "sums"}}
    for name in ("v1", "v2"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    entries = [f'{{ file = "{name}.jsonl", prompt_variant = "{name}" }}' for name in ("v1", "v2")]
    suite(tmp_path, "rubric", f"[{', '.join(entries)}]")
    assert list(units(call)) == ["v1/1", "v2/1"]


def test_ids_that_are_unique_over_all_files_stay(call: CallCommand, tmp_path: Path) -> None:
    data = write_variants(tmp_path, "id,question,answer", "1,q,x\n2,r,y\n", "3,q,x\n4,r,y\n")
    suite(tmp_path, "rubric", data)
    assert list(units(call)) == ["1", "2", "3", "4"]
    assert "ids of" not in call("run", "--dry-run").err


def test_numbers_of_rows_in_files_that_differ_in_length_are_not_those_of_questions(
    call: CallCommand, tmp_path: Path
) -> None:
    """Where v2 leaves a question out, its later numbers are those of other questions in v1."""
    data = write_variants(
        tmp_path, "№,question,answer", "1,q,worth 1\n2,r,worth 2\n3,s,worth 3\n", "1,q,x\n2,s,y\n"
    )
    suite(tmp_path, "rubric", data)
    ran = call("run", "--dry-run")
    assert "v1.csv and 1 more number rows, not questions" in ran.err
    read = units(call)
    questions: dict[str, set[str]] = {}
    for unit in read.values():
        questions.setdefault(unit["question"], set()).add(unit["meta"]["question_id"])
    assert len(read) == 5 and {len(ids) for ids in questions.values()} == {1}


def test_questions_of_one_id_that_are_worded_differently_are_told(
    call: CallCommand, tmp_path: Path
) -> None:
    data = write_variants(tmp_path, "id,prompt,answer", "1,Be brief: q,x\n", "1,Be long: q,y\n")
    suite(tmp_path, "rubric", data)
    ran = call("run", "--dry-run")
    assert ran.code == 0 and "; 1 of 1 have another text there" in ran.err
