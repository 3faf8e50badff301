"""Tables as data of a suite: columns, shapes and formats, and rows that cannot be read."""

from __future__ import annotations

import json

import pytest

from evenhand.data.recognise import recognise
from evenhand.data.tables import Tables, TableSource
from evenhand.errors import DataError
from evenhand.kinds import KINDS
from tests.sentences import is_told, refused
from tests.suites import (
    pair_row,
    pairs,
    stored,
    write_pairs,
    write_rows,
)
from tests.unit.cli.tables import LONG, SKY, suite, units
from tests.unit.data.workbooks import write_workbook

ALONE = {"id": "x", "text": "alone"}


ANSWER = {"rubric": "model_output", "weighted": "answer", "checklist": "model_output"}


BAD_PAIRS = {
    "one candidate": ({"candidates": [ALONE]}, "kinds.few_candidates"),
    "empty text": ({"candidates": [ALONE, {"id": "y", "text": ""}]}, "kinds.empty_field"),
    "empty topic": ({"topic": ""}, "kinds.empty_field"),
    "no topic": ({"topic": None}, "kinds.no_text"),
    "two of an id": ({"pair_id": "p0"}, "store.repeated_ids"),
    "two candidates of an id": ({"candidates": [ALONE, ALONE]}, "kinds.same_candidate"),
    "an id that is made": ({"pair_id": "p0#c1~c2"}, "store.repeated_ids"),
    "language": ({"language": "tlh"}, "kinds.unknown_language"),
}


def test_one_row_per_answer_becomes_pairs(call, tmp_path):
    (tmp_path / "a.csv").write_text(LONG.replace(",", ";"))
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
def test_one_row_per_answer_becomes_samples_and_answers(call, tmp_path, protocol, ids):
    (tmp_path / "a.csv").write_text(LONG)
    suite(tmp_path, protocol, '["a.csv"]')
    read = units(call)
    assert len(read) == 4 and ids < read.keys()
    assert all(unit["meta"]["area"] in ("physics", "sums") for unit in read.values())
    compared = call("compare", "latest", "--by", "model", "--json").json
    assert {(row["variant"], row["n"]) for row in compared["rows"]} == {("m2", 2)}


def test_more_than_two_answers_are_all_pairs_and_a_lonely_topic_is_told(call, tmp_path):
    rows = LONG + "Why is the sky blue?,m3,worth 7,physics\nAlone?,m1,worth 1,none\n"
    (tmp_path / "a.csv").write_text(rows + "Why is the sky blue?,m4,,physics\n")
    suite(tmp_path, "pairwise", '["a.csv"]')
    ran = call("run", "--json")
    assert ran.json["planned"] == 4
    assert is_told(ran.err, "kinds.lonely_topics", n=1) and is_told(
        ran.err, "kinds.empty_answers", n=1
    )
    assert call("show", "latest", f"{SKY}#m2~m3").code == 0


def test_files_that_hold_the_same_questions_must_be_told_apart(call, tmp_path):
    for name in ("v1", "v2"):
        (tmp_path / f"{name}.csv").write_text("question,answer\nq one,a\nq two,b\n")
    suite(tmp_path, "rubric", '["v1.csv", "v2.csv"]')
    ran = call("run")
    assert ran.code == 3 and is_told(ran.err, "store.repeated_ids") and "(v1.csv:2, " in ran.err
    assert 'data = [{ file = "v1.csv", prompt_variant = "v1" }' in ran.err


def test_patterns_name_many_files(call, tmp_path):
    folder = tmp_path / "answers"
    folder.mkdir()
    for model in ("a", "b", "c"):
        (folder / f"{model}.csv").write_text(f"question,model,answer\nq,{model},worth 1\n")
    suite(tmp_path, "pairwise", '["answers/*.csv"]')
    assert call("run", "--json").json["planned"] == 3
    suite(tmp_path, "pairwise", '["answer/*.csv"]')
    ran = call("run")
    assert ran.code == 2 and is_told(ran.err, "suite.no_match", pattern="answer/*.csv")
    assert "evenhand.toml:3: " in ran.err


def test_a_pattern_leads_nowhere_else(call, tmp_path):
    folder = tmp_path / "suite"
    folder.mkdir()
    (tmp_path / "secret.csv").write_text("question,answer\nq,a\n")
    (folder / "link.csv").symlink_to(tmp_path / "secret.csv")
    for pattern in ("../*.csv", "*.csv", f"{tmp_path}/*.csv"):
        suite(folder, "rubric", f'["{pattern}"]')
        ran = call("run", "suite")
        assert ran.code == 2 and is_told(ran.err, "suite.outside"), pattern


def test_a_sheet_and_an_encoding_are_named_beside_the_file(call, tmp_path):
    write_workbook(tmp_path / "a.xlsx", {"Notes": [["x"], ["y"]], "Data": [["q"], ["why"]]})
    (tmp_path / "b.csv").write_bytes("вопрос;ответ\nпочему;потому\n".encode("cp1251"))
    suite(tmp_path, "rubric", '["b.csv"]')
    ran = call("run")
    assert ran.code == 3 and 'encoding = "cp1251"' in ran.err
    for encoding, says in (("cp9999", "cp9999"), ("ascii", "ascii"), ("rot13", "rot13")):
        suite(tmp_path, "rubric", f'[{{ file = "b.csv", encoding = "{encoding}" }}]')
        ran = call("run")
        assert ran.code in (2, 3) and says in ran.err
    suite(tmp_path, "rubric", '[{ file = "b.csv", encoding = "cp1251" }]')
    (unit,) = units(call).values()
    assert (unit["question"], unit["model_output"]) == ("почему", "потому")
    data = '[{ file = "a.xlsx", sheet = "Data", model_output = "same" }]'
    suite(tmp_path, "rubric", data, '[columns]\nquestion = "q"\n')
    (unit,) = units(call).values()
    assert (unit["question"], unit["model_output"]) == ("why", "same")


def test_an_answer_that_is_empty_or_endless_is_warned_about(call, tmp_path):
    rows = [{"question": f"q{i}", "answer": text} for i, text in enumerate(("", "x" * 100_001))]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    suite(tmp_path, "rubric", '["a.json"]')
    remarks = call("run", "--dry-run").err
    assert is_told(remarks, "data.empty_answers", n="1 answer")
    assert is_told(remarks, "data.long_answers", n="1 answer")


@pytest.mark.parametrize(
    ("rows", "key"),
    [
        ("question,answer\nq,worth 1\nq,worth 2\n", "kinds.no_author"),
        (
            "question,model,answer\nq,m1,worth 1\nr,m2,worth 2\n",
            "kinds.no_pairs",
        ),
        (
            "question,model,answer\nq,m1,worth 1\nq,m2,\n",
            "kinds.no_pairs",
        ),
        ("question,model,answer\nq,m1,worth 1\nq,m1,worth 2\n", "kinds.same_answer"),
    ],
)
def test_what_makes_no_pairs_says_why(call, tmp_path, rows, key):
    (tmp_path / "a.csv").write_text(rows)
    suite(tmp_path, "pairwise", '["a.csv"]')
    ran = call("run")
    assert ran.code == 3 and is_told(ran.err, key)


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        ("model\nopenai/gpt-4o\n100% pure\na%2Fb\n", {"openai/gpt-4o", "100% pure", "a%2Fb"}),
        ("model,variant\na/b,c\na,b/c\na/b,\n", {"a%2Fb/c", "a/b%2Fc", "a%2Fb"}),
    ],
    ids=["model", "variant"],
)
def test_a_candidate_is_called_as_its_model_is(call, tmp_path, rows, names):
    header, *lines = rows.splitlines()
    text = "".join(f"{line},q,worth {place}\n" for place, line in enumerate(lines))
    (tmp_path / "a.csv").write_text(f"{header},question,answer\n{text}")
    suite(tmp_path, "pairwise", '["a.csv"]')
    assert {one["id"] for unit in units(call).values() for one in unit["candidates"]} == names
    board = call("leaderboard", "latest", "--json").json["rows"]
    assert {row["candidate"] for row in board} == names


@pytest.mark.parametrize("protocol", KINDS)
@pytest.mark.parametrize("number", ["0", "-1", "true", "6.50", "1e3", "123456789012345678901"])
def test_a_number_for_an_answer_is_judged_as_it_is_written(call, tmp_path, protocol, number):
    rows = [
        f'{{"question": "q", "model": "{m}", "answer": {n}}}'
        for m, n in (("a", number), ("b", 1), ("c", 2))
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(rows))
    suite(tmp_path, protocol, '["a.jsonl"]')
    unit = next(iter(units(call).values()))
    found = unit["candidates"][0]["text"] if protocol == "pairwise" else unit[ANSWER[protocol]]
    assert found == number


HEADERS = [
    ("question", "answer", "model"),
    ("Prompt", "Response", "LLM"),
    ("user input", "Model Output", "Bot"),
    ("Вопрос", "Ответ", "Нейросеть"),
    ("问题", "回答", "模型"),
    ("質問", "出力", "ボット名"),
]


@pytest.mark.parametrize("protocol", ["rubric", "weighted", "pairwise"])
@pytest.mark.parametrize("names", HEADERS)
def test_columns_are_known_by_their_usual_names_and_it_is_told(call, tmp_path, protocol, names):
    question, answer, model = names
    rows = f"{question};{answer};{model}\nq one;worth 1;m1\nq one;worth 2;m2\n"
    (tmp_path / "a.csv").write_text(rows, encoding="utf-8")
    suite(tmp_path, protocol, '["a.csv"]')
    ran = call("run", "--dry-run", "--json")
    assert ran.json["planned"] == (1 if protocol == "pairwise" else 2), ran.err
    (line,) = [line for line in ran.err.splitlines() if is_told(line, "data.columns")]
    assert f'meta.model = "{model}"' in line
    field = {"rubric": "question", "weighted": "prompt", "pairwise": "topic"}[protocol]
    assert (f'{field} = "{question}"' in line) is (question != field)


@pytest.mark.parametrize(
    ("header", "field", "first"),
    [
        ("prompt,input,answer", "question", "prompt"),
        ("question,answer,response", "model_output", "answer"),
        ("вопрос,ответ,вывод", "model_output", "ответ"),
        ("question,answer,model_name,llm", "meta.model", "model_name"),
    ],
)
def test_where_two_columns_fit_all_are_listed_and_nothing_is_sent(
    call, tmp_path, header, field, first
):
    width = header.count(",") + 1
    rows = f"{header}\n{','.join('abcd'[:width])}\n"
    (tmp_path / "a.csv").write_text(rows, encoding="utf-8")
    suite(tmp_path, "rubric", '["a.csv"]')
    ran = call("run")
    assert ran.code == 3 and is_told(ran.err, "data.several_fit", field=field)
    assert all(f'"{name}"' in ran.err for name in header.split(","))
    suite(tmp_path, "rubric", '["a.csv"]', f'[columns]\n{field} = "{first}"\n')
    ran = call("run", "--dry-run", "--json")
    assert ran.json["planned"] == 1, ran.err


def test_a_question_beats_a_topic(call, tmp_path):
    (tmp_path / "a.csv").write_text("topic,question,model,answer\nart,q,m1,1\nart,q,m2,2\n")
    suite(tmp_path, "pairwise", '["a.csv"]')
    assert 'topic = "question"' in call("run").err


def test_a_source_that_is_not_there_is_not_answered_with_one_that_is_in_use(call, tmp_path):
    (tmp_path / "a.csv").write_text("text1,note\nwhy,because\n")
    columns = '[columns]\nquestion = "text1"\nmodel_output = "text2"\n'
    suite(tmp_path, "rubric", '["a.csv"]', columns)
    ran = call("run")
    assert ran.code == 3 and is_told(ran.err, "data.in_no_row", name="text2")
    assert "Did you mean" not in ran.err and '"note"' in ran.err
    assert '"text1"' not in ran.err


def test_a_table_of_the_contract_is_read_without_a_word(call, tmp_path):
    row = {"id": "a", "question": "q", "model_output": "text", "meta": {"model": "m"}}
    (tmp_path / "a.jsonl").write_text(json.dumps(row | {"answer": "another", "prompt": "v1"}))
    suite(tmp_path, "rubric", '["a.jsonl"]')
    ran = call("run", "--dry-run")
    assert "Columns" not in ran.err and "not used" not in ran.err


@pytest.mark.parametrize("quote", ["", '"'])
def test_dotted_keys_need_no_quotes_and_one_column_feeds_two_fields(call, tmp_path, quote):
    (tmp_path / "a.csv").write_text("q,a,who\nasked,answered,m1\n")
    columns = f'[columns]\nquestion = "q"\nmodel_output = "a"\n{quote}meta.model{quote} = "who"\n'
    columns += f'reference = "a"\n{quote}meta.question_id{quote} = "q"\n'
    suite(tmp_path, "rubric", '["a.csv"]', columns)
    (unit,) = units(call).values()
    assert unit["id"] == "m1/asked" and unit["reference"] == unit["model_output"] == "answered"


@pytest.mark.parametrize("protocol", ["rubric", "weighted"])
def test_a_row_without_the_answer_that_others_have_is_named_with_its_column(
    call, tmp_path, protocol
):
    """To map another column would be wrong advice: the column is known."""
    for name in ("Ответ", ANSWER[protocol]):
        row = {"Вопрос": "Сколько будет 2+2?", "Модель": "m1", name: "worth 4"}
        lacks = {key: value for key, value in row.items() if key != name}
        write_rows(tmp_path, [row, lacks, row], "miss.jsonl")
        suite(tmp_path, protocol, '["miss.jsonl"]')
        ran = call("run")
        assert ran.code == 3 and "[columns]" not in ran.err
        assert f'miss.jsonl:2: "{name}"' in ran.err


def test_a_column_that_is_in_use_is_not_what_was_meant(call, tmp_path):
    write_rows(tmp_path, [{"model_ouput": "Сколько?", "note": "12"}], "a.jsonl")
    suite(tmp_path, "rubric", '["a.jsonl"]', '[columns]\nquestion = "model_ouput"\n')
    ran = call("run")
    assert ran.code == 3 and is_told(ran.err, "kinds.missing_field", names='"model_ouput", "note"')
    assert "Did you mean" not in ran.err


def understood(kind, path, text):
    """The rows of a table, and what is said about it."""
    lines: list[str] = []
    path.write_text(text, encoding="utf-8")
    tables = Tables([TableSource(path=path)], {}, KINDS[kind].table_form, lines.append)
    return [row.value for _, row in tables.rows], lines


@pytest.mark.parametrize(
    ("header", "field", "names"),
    [
        ("Question,GPT-4o,Claude 3", "model", ["GPT-4o", "Claude 3"]),
        ("question,v1_answer,v2_answer", "prompt_variant", ["v1", "v2"]),
        ("question,gpt-4o answer,claude answer", "model", ["gpt-4o", "claude"]),
        ("Вопрос,Ответ новый,Ответ старый", "prompt_variant", ["новый", "старый"]),
        ("问题,旧版回答,新版回答", "prompt_variant", ["旧版", "新版"]),
        (" question , answer_old, answer_new ", "prompt_variant", ["old", "new"]),
    ],
)
def test_a_column_per_model_is_a_row_per_answer(tmp_path, header, field, names):
    rows, lines = understood("rubric", tmp_path / "a.csv", f"{header}\nWhy?,So.,Because.\n")
    assert [row["model_output"] for row in rows] == ["So.", "Because."]
    assert [row["meta"][field] for row in rows] == names
    assert len({row["meta"]["question_id"] for row in rows}) == 1
    assert any(is_told(line, "data.answer_in_each") for line in lines)


def test_the_answers_of_a_row_are_the_candidates_of_a_topic(tmp_path):
    text = "Question,GPT-4o,Claude,Gemini\nWhy?,a,b,c\n"
    (row,), _ = understood("pairwise", tmp_path / "a.csv", text)
    assert {one["id"]: one["text"] for one in row["candidates"]} == {
        "GPT-4o": "a",
        "Claude": "b",
        "Gemini": "c",
    }


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("topic,candidate_1,candidate_2,area", ["1", "2"]),
        ("question,A,B,area", ["a", "b"]),
        ("prompt,answer_a,answer_b,area", ["a", "b"]),
        ("вопрос,ответ 1,ответ 2,area", ["1", "2"]),
    ],
)
def test_a_row_per_pair_is_a_pair(tmp_path, header, names):
    text = f"id,{header}\np7,Why?,one,two,code\n"
    (row,), lines = understood("pairwise", tmp_path / "a.csv", text)
    assert [one["text"] for one in row["candidates"]] == ["one", "two"]
    assert [one["id"].lower() for one in row["candidates"]] == names
    assert (row["id"], row["topic"], row["meta"]["area"]) == ("p7", "Why?", "code")
    assert any(is_told(line, "data.pair_in_row") for line in lines)


def test_the_models_of_a_pair_are_named_beside_its_answers(tmp_path):
    text = "question,model_a,answer_a,model_b,answer_b\nWhy?,m1,one,m2,two\n"
    (row,), _ = understood("pairwise", tmp_path / "a.csv", text)
    assert [one["id"] for one in row["candidates"]] == ["m1", "m2"]
    rows, _ = understood("rubric", tmp_path / "a.csv", text)
    assert [row["meta"]["model"] for row in rows] == ["m1", "m2"]


def test_columns_about_an_answer_are_no_answers():
    form = KINDS["rubric"].table_form
    names = ["question", "answer", "answer_length", "reference_answer", "GPT-4o"]
    assert recognise(names, {}, form, "a.csv").answers == []


@pytest.mark.parametrize("title", ["Results of March\n", "Results\n\nas of May\n", '"A",,\n'])
def test_a_title_above_the_header_is_stepped_over(tmp_path, title):
    text = f"{title}question,model,answer\nq,m1,a\nq,m2,b\n"
    rows, _ = understood("rubric", tmp_path / "a.csv", text)
    assert [row["model_output"] for row in rows] == ["a", "b"]


def test_fields_are_taken_from_paths_and_questions_are_joined(call, tmp_path):
    places = {(week, "m1", variant) for week in ("w1", "w2") for variant in ("old", "new")}
    for *folders, variant in places:
        folder = tmp_path.joinpath("runs", *folders)
        folder.mkdir(parents=True, exist_ok=True)
        rows = [{"question_id": n, "answer": f"{folders} {variant} {n}"} for n in (1, 2)]
        write_rows(folder, rows, f"{variant}.jsonl")
    (tmp_path / "questions.csv").write_text("id,question,area\n1,Why?,a\n2,How?,b\n")
    suite(tmp_path, "rubric", '["runs/{week}/{model}/{variant}.jsonl"]')
    path = tmp_path / "evenhand.toml"
    path.write_text('join = "questions.csv"\n' + path.read_text())
    metas = [unit["meta"] for unit in units(call).values()]
    found = [(m["week"], m["model"], m["prompt_variant"], m["area"]) for m in metas]
    assert sorted(found) == sorted((*place, area) for place in places for area in "ab")


def test_a_question_file_without_a_common_column_is_refused(tmp_path):
    from evenhand.data.tables import QuestionFile

    (tmp_path / "q.csv").write_text("number,question\n1,Why?\n")
    (tmp_path / "a.csv").write_text("model,answer\nm,So.\n")
    source = TableSource(path=tmp_path / "a.csv", join=QuestionFile(tmp_path / "q.csv"))
    with refused(DataError, "data.no_shared_column"):
        assert source.sample


@pytest.mark.parametrize("name", BAD_PAIRS)
def test_bad_data_is_told_with_file_and_line_and_nothing_is_sent(call, tmp_path, name):
    change, key = BAD_PAIRS[name]
    first = pair_row("p0", 1, 2, 3) if "made" in name else pairs(1)[0]
    write_pairs(tmp_path, [first, pairs(2)[1] | change], {"model": "python/judge:crash"})
    done = call("run")
    assert (done.code, done.out) == (3, ""), done.err
    assert is_told(done.err, key) and "pairs.jsonl:2" in done.err, done.err


def test_a_table_with_other_columns_is_mapped(call, tmp_path):
    columns = {
        "pair_id": "no",
        "topic": "question",
        "candidates.1.text": "answer_a",
        "candidates.1.id": "model_a",
        "candidates.2.text": "answer_b",
        "candidates.2.id": "model_b",
        "meta.set": "split",
    }
    write_pairs(tmp_path, 1, data=["in.csv"], columns=columns)
    (tmp_path / "in.csv").write_text(
        "no,question,answer_a,answer_b,model_a,model_b,split\n"
        'q1,Why?,"worth 3, or so",worth 8,alpha,beta,test\n'
        "q2,How?,worth 7,worth 1,alpha,beta,test\n"
    )
    assert call("run").code == 0
    outputs = [row["output"] for row in stored(tmp_path)]
    assert [(one["pair_id"], one["winner"], one["candidates"]) for one in outputs] == [
        ("q1", "B", ["alpha", "beta"]),
        ("q2", "A", ["alpha", "beta"]),
    ]
    assert outputs[0]["meta"] == {"set": "test"}


def test_an_empty_cell_of_a_pair_is_told_by_its_line_and_column(call, tmp_path):
    for columns, name in (
        ({f"candidates.{i}.text": n for i, n in ((1, "old"), (2, "new"))}, "new"),
        ({}, "answer_b"),
    ):
        write_pairs(tmp_path, 1, data=["in.csv"], columns=columns)
        first = "old" if columns else "answer_a"
        rows = f"pair_id,topic,{first},{name}\nq1,Why?,one 1,two 2\nq2,Why?,one 1,\n"
        (tmp_path / "in.csv").write_text(rows)
        said = call("run")
        assert said.code == 3 and f'in.csv:3: "{name}"' in said.err
        assert "candidates" not in said.err


def test_two_answers_of_one_model_are_told_apart_by_a_number(call, tmp_path):
    write_pairs(tmp_path, 1, data=["in.csv"], columns={})
    (tmp_path / "in.csv").write_text(
        "topic,answer_a,answer_b,model_a,model_b\nWhy?,worth 3,worth 8,gpt-4o,gpt-4o\n"
    )
    assert call("run").code == 0
    (row,) = stored(tmp_path)
    assert row["output"]["candidates"] == ["gpt-4o (1)", "gpt-4o (2)"]


@pytest.mark.parametrize("protocol", KINDS)
@pytest.mark.parametrize("name", ["Вопрос", "Ответ"])
def test_a_cell_that_is_no_text_is_named_with_its_line_and_column(call, tmp_path, protocol, name):
    row = {"Вопрос": "Сколько будет 2+2?", "Модель": "m1", "Ответ": "worth 4"}
    for value, fault in ((["x"], "a list"), ({"text": "x"}, "an object")):
        write_rows(tmp_path, [row, row | {"Модель": "m2", name: value}], "a.jsonl")
        suite(tmp_path, protocol, '["a.jsonl"]')
        ran = call("run")
        assert ran.code == 3
        assert f'a.jsonl:2: "{name}"' in ran.err and is_told(ran.err, "kinds.no_text", found=fault)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"blind": True}, "settings.blind"),
        ({"expose_meta": True}, '"expose_meta"'),
        ({"max_round": 3}, " max_rounds?"),
    ],
)
def test_settings_that_are_none_of_pairs_are_told(call, tmp_path, settings, said):
    write_pairs(tmp_path, 2, settings=settings)
    done = call("run")
    assert (done.code, done.out) == (2, "") and said in done.err
