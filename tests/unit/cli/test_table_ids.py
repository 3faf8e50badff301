"""What units of a table are called, and which of them are about the same question."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.suites import TASK, judged, stored, write_answers
from tests.unit.cli.conftest import CallCommand
from tests.unit.cli.tables import LONG, SKY, suite, units


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
    assert list(units(call)) == ["1#m1~m2"]


@pytest.mark.parametrize("name", ["id", "номер"])
@pytest.mark.parametrize(
    ("protocol", "told"),
    [
        ("rubric", "The ids of a.csv are those of questions (meta.question_id), for they repeat"),
        ("weighted", "The ids of a.csv are those of questions (meta.question_id), for they repeat"),
        ("pairwise", "An id that all answers to a topic share is the topic's"),
    ],
)
def test_ids_that_are_taken_for_those_of_questions_are_told(
    call: CallCommand, tmp_path: Path, name: str, protocol: str, told: str
) -> None:
    (tmp_path / "a.csv").write_text(f"{name},question,model,answer\n1,q,m1,x\n1,q,m2,y\n")
    suite(tmp_path, protocol, '["a.csv"]')
    assert call("run", "--dry-run").err.count(told) == 1
    done = call("init", "new", "--data", "a.csv", "--protocol", protocol)
    assert done.code == 0 and done.out.count(told) == 1
    (tmp_path / "a.csv").write_text(f"{name},question,model,answer\n1,q,m1,x\n2,q,m2,y\n")
    ran = call("run", "--dry-run")
    assert ran.code == 0 and told not in ran.err


def test_numbers_that_repeat_and_name_nothing_are_told(call: CallCommand, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("номер,question,answer\n1,q,x\n1,r,y\n")
    suite(tmp_path, "rubric", '["a.csv"]')
    ran = call("run", "--dry-run")
    told = '"номер" of a.csv names no rows, for it repeats where nothing else differs'
    assert ran.code == 0 and told in ran.err


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


async def test_a_task_is_called_by_its_name_where_that_is_enough(tmp_path: Path) -> None:
    rows = [{"task_name": name, "prompt": f"{name}?", "answer": "It is."} for name in ("t", "u")]
    write_answers(tmp_path, [row | {"rubric": TASK} for row in rows])
    await judged(tmp_path)
    assert [row["unit"] for row in stored(tmp_path)] == ["t", "u"]
    write_answers(tmp_path, [row | {"rubric": TASK, "model": "m"} for row in [*rows, rows[0]]])
    await judged(tmp_path)
    first, _, third = [str(row["unit"]) for row in stored(tmp_path)]
    assert first.startswith("t/m/") and third.endswith("#3"), "alike: the question and the row"


def test_a_run_or_variant_that_is_called_like_its_task_is_part_of_the_id(
    call: CallCommand, tmp_path: Path
) -> None:
    ids = [f"{task}/{run}/{variant}" for task in (1, 2) for run in (1, 2) for variant in (1, 2)]
    rows = [ident.replace("/", ",") + f",do {ident[0]},worth 1\n" for ident in ids]
    (tmp_path / "a.csv").write_text("task_name,run_id,variant,prompt,answer\n" + "".join(rows))
    suite(tmp_path, "weighted", '["a.csv"]')
    assert list(units(call)) == ids


@pytest.mark.parametrize("question", [1, "1"])
def test_a_question_that_a_task_is_named_after_is_named_once(
    call: CallCommand, tmp_path: Path, question: int | str
) -> None:
    rows = [
        {"question_id": question, "prompt": "q", "model": model, "answer": "worth 1"}
        for model in ("1", "m")
    ]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    suite(tmp_path, "weighted", '["a.json"]')
    assert list(units(call)) == ["1/1", "1/m"]


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


@pytest.mark.parametrize("numbers", [(0, 1), ("0", "1")])
@pytest.mark.parametrize("name", ["question_id", "id"])
def test_the_number_0_is_an_id_like_any_other(
    call: CallCommand, tmp_path: Path, name: str, numbers: tuple[int | str, ...]
) -> None:
    rows = [
        {name: number, "question": f"q {number}", "model": model, "answer": f"worth {worth}"}
        for number in numbers
        for worth, model in enumerate(("old", "new"))
    ]
    if name == "question_id":  # which says alone that these are one question
        rows = [row | {"question": f"{row['question']} of {row['model']}"} for row in rows]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    suite(tmp_path, "pairwise", '["a.jsonl"]')
    assert list(units(call)) == ["0#new~old", "1#new~old"]


def test_the_number_0_may_be_the_id_of_a_question_in_several_files(
    call: CallCommand, tmp_path: Path
) -> None:
    row = {"id": 0, "question": "q", "answer": "worth 1"}
    for name in ("v1", "v2"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    entries = [f'{{ file = "{name}.jsonl", prompt_variant = "{name}" }}' for name in ("v1", "v2")]
    suite(tmp_path, "rubric", f"[{', '.join(entries)}]")
    assert list(units(call)) == ["v1/0", "v2/0"]
