"""`init` makes a suite that runs as it is, and refuses what `run` would."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evenhand.kinds import KINDS
from evenhand.kinds.protocol import LANGUAGES
from evenhand.suite import load_suite
from tests.sentences import is_told
from tests.suites import GRADE_JUDGE, PAIR_JUDGE, TICK_JUDGE, stored, write_rows
from tests.unit.data.workbooks import write_workbook

NAMES = {"rubric": "rubric.json", "weighted": "rubric.md", "checklist": "criteria.json"}


TABLES = {
    "en": ("question", "answer", "Why is the sky blue?", "Air scatters blue light most."),
    "ru": ("Вопрос", "Ответ", "Почему небо голубое?", "Воздух рассеивает синий свет сильнее."),
    "zh": ("问题", "回答", "天空为什么是蓝色的？", "空气对蓝光散射得最多。"),
    "ja": ("質問", "回答", "空はなぜ青いのですか。", "空気が青い光をよく散乱するからです。"),
}


FILLER = """
import json
async def f(messages, schema, params):
    scores = schema["properties"]["scores"]["properties"]
    low = {name: part["properties"]["score"]["enum"][0] for name, part in scores.items()}
    words = "no evidence found свидетельств не найдено 未找到相关证据 該当する根拠なし"
    filled = {n: {"evidence": [], "rationale": words, "score": s} for n, s in low.items()}
    return json.dumps({"scores": filled, "failure_tags": [], "notes": ""})
"""


@pytest.fixture(autouse=True)
def no_keys(monkeypatch, tmp_path):
    for name in ("OPENAI", "ANTHROPIC", "GEMINI", "GOOGLE", "OPENROUTER"):
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)
    monkeypatch.setenv("EVENHAND_MODELS", str(tmp_path / "models"))


def write_table(folder, language):
    question, answer, asked, answered = TABLES[language]
    path = folder / "answers.csv"
    rows = [f"{asked};{model};worth {i} {answered}" for i, model in enumerate(("m1", "m2"))]
    path.write_text("\n".join([f"{question};model;{answer}", *rows]) + "\n", encoding="utf-8")
    return path


def judges(folder):
    """A judge of Python for each protocol."""
    texts = {"filler": FILLER, "pairs": PAIR_JUDGE, "grades": GRADE_JUDGE, "ticks": TICK_JUDGE}
    for name, text in texts.items():
        (folder / f"{name}.py").write_text(text)
    return {
        "rubric": "filler:f",
        "pairwise": "pairs:content",
        "weighted": "grades:good",
        "checklist": "ticks:good",
    }


@pytest.mark.parametrize("protocol", KINDS)
def test_a_log_of_chats_becomes_a_suite_that_runs(call, tmp_path, protocol):
    """The judge is shown the system prompt too."""
    _, _, asked, answered = TABLES["ja"]
    system = "短く答えること。"
    rows = [
        {"messages": [{"role": role, "content": text} for role, text in turns.items()], "model": m}
        for m, turns in (
            (m, {"system": system, "user": asked, "assistant": f"worth {m} {answered}"})
            for m in "12"
        )
    ]
    write_rows(tmp_path, rows, "chats.jsonl")
    done = call("init", "--data", "chats.jsonl", "--protocol", protocol)
    assert done.code == 0, done.err
    assert is_told(done.out, "files.understood", "ja", protocol=protocol, language="ja"), done.out
    assert is_told(done.out, "data.last_message", "ja", column="messages")
    judge = f"python/{judges(tmp_path)[protocol]}"
    ran = call("run", "--judge", judge, "--json")
    assert ran.code == 0 and ran.json["verdicts"] == (1 if protocol == "pairwise" else 2), ran.err
    assert system in call("show", "latest", stored(tmp_path)[0]["unit"]).out


@pytest.mark.parametrize("language", TABLES)
@pytest.mark.parametrize("protocol", KINDS)
def test_a_table_becomes_a_suite_that_runs(call, tmp_path, protocol, language):
    write_table(tmp_path, language)
    done = call("init", "--data", "answers.csv", "--protocol", protocol)
    assert done.code == 0, done.err
    assert is_told(done.out, "files.understood", language, protocol=protocol), done.out
    suite = load_suite(tmp_path, {}).file
    assert (suite.protocol, suite.language) == (protocol, language)
    judge = f"python/{judges(tmp_path)[protocol]}"
    ran = call("run", "--judge", judge, "--json")
    assert ran.code == 0 and ran.json["verdicts"] == (1 if protocol == "pairwise" else 2), ran.err
    if protocol != "pairwise":
        checked = ("check", "--protocol", protocol, "--rubric", NAMES[protocol])
        assert call(*checked).code == 0
        compared = call("compare", "latest", "--json").json
        assert (compared["by"], compared["baseline"]) == ("model", "m1")
    if protocol == "rubric" and language == "ru":
        assert "Верно ли то, что утверждается в ответе?" in (tmp_path / "rubric.json").read_text(
            "utf-8"
        )


@pytest.mark.parametrize(
    ("language", "encoding"),
    [("ru", "cp1251"), ("zh", "gb18030"), ("ja", "shift_jis"), ("ja", "euc-jp"), ("ru", "utf-16")],
)
def test_a_table_that_is_not_utf_8_is_read_as_what_reads_as_text_and_the_suite_says_so(
    call, tmp_path, language, encoding
):
    path = write_table(tmp_path, language)
    path.write_bytes(path.read_text("utf-8").encode(encoding))
    done = call("init", "--data", "answers.csv")
    assert done.code == 0, done.err
    assert is_told(done.out, "files.encoding", language) and is_told(
        done.out, "files.understood", language
    )
    judges(tmp_path)
    ran = call("run", "--judge", "python/filler:f", "--json")
    assert ran.code == 0 and ran.json["verdicts"] == 2, ran.err
    exported = call("show", "latest", "m1", "--json").json
    assert exported["unit"]["question"] == TABLES[language][2]


def test_a_table_elsewhere_is_copied_and_nothing_is_overwritten(call, tmp_path):
    write_table(tmp_path, "en")
    done = call("init", "mine", "--data", "answers.csv")
    assert done.code == 0 and is_told(done.out, "cli.copied", path="mine/answers.csv")
    assert (tmp_path / "mine/answers.csv").read_bytes() == (tmp_path / "answers.csv").read_bytes()
    assert call("run", "mine", "--dry-run").code == 0
    again = call("init", "mine", "--data", "answers.csv")
    assert again.code == 2 and is_told(again.err, "cli.present")
    assert "evenhand init DIR --data FILE" in again.err


def test_a_table_of_pairs_and_one_of_tasks_are_known_as_such(call, tmp_path):
    pair = {"topic": "t", "candidates": [{"id": "a", "text": "x"}, {"id": "b", "text": "y"}]}
    (tmp_path / "pairs.jsonl").write_text(json.dumps(pair))
    assert is_told(
        call("init", "p", "--data", "pairs.jsonl").out, "files.understood", protocol="pairwise"
    )
    task = {"task_name": "t", "prompt": "p", "answer": "a"}
    (tmp_path / "tasks.jsonl").write_text(json.dumps(task))
    assert is_told(
        call("init", "w", "--data", "tasks.jsonl").out, "files.understood", protocol="weighted"
    )


@pytest.mark.parametrize(
    ("header", "key"),
    [
        ("prompt,input,answer", "data.several_fit"),
        ("a,b,c", "files.no_column"),
        ("type of question,a question,b question", "files.no_column"),
    ],
)
def test_a_table_that_is_not_understood_makes_no_suite(call, tmp_path, header, key):
    (tmp_path / "a.csv").write_text(f"{header}\n1,2,3\n")
    done = call("init", "--data", "a.csv")
    assert done.code == 3 and is_told(done.err, key) and '"question"' in done.err
    assert all(name in done.err for name in header.split(","))
    assert not (tmp_path / "evenhand.toml").exists()


def test_the_judge_is_the_one_whose_key_is_set(call, tmp_path, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    assert "Judge: anthropic/" in call("init", "one").out
    forecast = call("run", "one", "--dry-run", "--json")
    assert forecast.code == 0 and forecast.json["price_usd"]["most"] > 0
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert "Judge: openai/" in call("init", "two").out
    assert "Judge: ollama/m" in call("init", "three", "--judge", "ollama/m").out
    assert call("init", "four", "--judge", "opnai/m").code == 2


def test_without_a_key_the_embedded_judge_is_offered_and_a_dry_run_needs_no_model(call, tmp_path):
    done = call("init")
    assert "Judge: embedded" in done.out and "evenhand models get " in done.out
    forecast = call("run", "--dry-run", "--json")
    assert forecast.code == 0 and forecast.json["calls"]["least"] > 0
    assert "evenhand models get " in forecast.json["lacking"][0]
    ran = call("run")
    assert ran.code == 2 and "evenhand models get " in ran.err


def test_files_that_nothing_else_sets_apart_are_variants_called_by_their_names(call, tmp_path):
    (tmp_path / "answers_v1.csv").write_text("question,answer\nWhy?,So.\nHow?,Thus.\n")
    (tmp_path / "answers_v2.csv").write_text("prompt;Ответ\nWhy?;Because.\nHow?;Like this.\n")
    data = ("--data", "answers_v1.csv", "--data", "answers_v2.csv")
    done = call("init", *data)
    assert done.code == 0, done.err
    assert is_told(done.out, "files.variants", field="prompt_variant", names='"v1", "v2"')
    suite = load_suite(tmp_path, {}).file
    assert suite.compare is not None and suite.compare.baseline == "v1"
    judges(tmp_path)
    ran = call("run", "--judge", "python/filler:f", "--json")
    assert ran.code == 0 and ran.json["verdicts"] == 4, ran.err
    assert call("compare", "--json").json["rows"][0]["n"] == 2
    paired = call("init", "p", "--protocol", "pairwise", *data)
    assert is_told(paired.out, "files.understood", n="2 rows", protocol="pairwise")


def test_files_in_which_a_column_sets_answers_apart_are_one_table(call, tmp_path):
    for number, name in enumerate(("may.csv", "june.csv")):
        (tmp_path / name).write_text(
            f"question,model,answer\nWhy {number}?,a,So.\nWhy {number}?,b,Thus.\n"
        )
    done = call("init", "--data", "may.csv", "--data", "june.csv")
    assert is_told(done.out, "files.variants", field="model", names='"a", "b"')
    assert [spec.file for spec in load_suite(tmp_path, {}).file.data] == ["may.csv", "june.csv"]
    (tmp_path / "more").mkdir()
    (tmp_path / "more/may.csv").write_text("question,answer\nWhy?,So.\n")
    twice = call("init", "two", "--data", "may.csv", "--data", "more/may.csv")
    assert twice.code == 2 and is_told(twice.err, "cli.same_names")


def test_a_table_called_like_a_rubric_keeps_its_name(call, tmp_path):
    rows = [{"question": "Why?", "answer": "So it is."}]
    (tmp_path / "rubric.json").write_text(json.dumps(rows))
    for arguments, folder in ((("mine",), tmp_path / "mine"), ((), tmp_path)):
        done = call("init", *arguments, "--data", "rubric.json")
        assert done.code == 0, done.err
        assert json.loads((folder / "rubric.json").read_text()) == rows
        draft = Path(*arguments) / "rubric-draft.json"
        assert is_told(done.out, "cli.first_rubric", path=draft)
        assert not is_told(done.out, "cli.own_rubric_stays")
        assert call("run", *arguments, "--dry-run").code == 0


ODD = {
    "ru": ("№;Запрос пользователя;Версия промпта;Ответ модели", "Где заказ {}?", "В пути {}."),
    "zh": ("序号;用户问题;模型名称;模型回答", "第{}个问题是什么？", "这是第{}个回答。"),
    "ja": ("番号;ユーザーの質問;モデル名;モデルの回答", "{}番は何ですか。", "{}番の回答です。"),
    "en": ("no;customer question;model;final answer", "Where is {}?", "On its way, {}."),
    "ru, texts": ("№ п/п;Текст вопроса;Модель;Текст ответа модели", "Где {}?", "В пути {}."),
    "zh, texts": ("编号;问题内容;模型;回答文本", "第{}个问题是什么？", "这是第{}个回答。"),
    "ja, texts": ("連番;質問文;モデル名;回答文", "{}番は何ですか。", "{}番の回答です。"),
    "en, texts": ("id;question_text;model;answer text", "Where is {}?", "On its way, {}."),
}


@pytest.mark.parametrize("language", ODD)
def test_numbers_of_questions_and_longer_names_are_understood_and_the_draft_runs(
    call, tmp_path, language
):
    header, question, answer = ODD[language]
    rows = [
        f"{number};{question.format(number)};{variant};{answer.format(number)} {variant}"
        for number in range(4)
        for variant in ("a", "b")
    ]
    (tmp_path / "odd.csv").write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    done = call("init", "--data", "odd.csv")
    assert done.code == 0, done.err
    judges(tmp_path)
    ran = call("run", "--judge", "python/filler:f", "--json")
    assert ran.code == 0 and ran.json["verdicts"] == 8, ran.err
    assert call("compare", "--json").json["rows"][0]["n"] == 4


@pytest.mark.parametrize("variants", [(False, True), (0, 1), (0.5, 1e-7)])
def test_a_variant_that_is_no_text_is_called_in_the_draft_as_compare_calls_it(
    call, tmp_path, variants
):
    rows = [
        {"question": f"Where is {number}?", "variant": variant, "answer": f"There {variant}."}
        for number in range(4)
        for variant in variants
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = call("init", "--data", "a.jsonl", "--protocol", "rubric")
    assert done.code == 0, done.err
    judges(tmp_path)
    assert call("run", "--judge", "python/filler:f").code == 0
    compared = call("compare", "--json")
    assert compared.code == 0, compared.err
    assert compared.json["baseline"] == json.dumps(variants[0])


def test_a_column_that_no_name_gives_away_is_named_with_map(call, tmp_path):
    (tmp_path / "a.csv").write_text("phrase,kind,said\nWhy?,x,So it is.\n")
    unmapped = call("init", "--data", "a.csv")
    assert unmapped.code == 3 and "--map question=COLUMN" in unmapped.err
    assert '"phrase", "kind", "said"' in unmapped.err
    done = call("init", "--data", "a.csv", "--map", "question=phrase", "--map", "model_output=said")
    assert done.code == 0, done.err
    assert load_suite(tmp_path, {}).file.columns == {"question": "phrase", "model_output": "said"}
    assert call("run", "--dry-run").code == 0
    assert call("init", "b", "--data", "a.csv", "--map", "question").code == 2


def test_a_file_per_variant_with_the_ids_of_questions_runs(call, tmp_path):
    for variant in ("v1", "v2"):
        rows = "".join(f"{number}\tq{number}\t{variant}\n" for number in (1, 2, 3))
        (tmp_path / f"same_{variant}.tsv").write_text(f"id\tquestion\tanswer\n{rows}")
    tables = [f"--data=same_{variant}.tsv" for variant in ("v1", "v2")]
    done = call("init", "same", *tables)
    assert done.code == 0 and 'prompt_variant: "v1", "v2"' in done.out
    assert is_told(done.out, "data.ids_of_questions", files='"same_v1.tsv" and 1 more')
    assert call("run", "same", "--dry-run", "--json").json["planned"] == 6


WHOSE = "Вопрос,Кто,Ответ\nПочему?,м1,worth 1\nПочему?,м2,worth 2\n"


@pytest.mark.parametrize("protocol", KINDS)
@pytest.mark.parametrize("field", ["model", "meta.model"])
def test_whose_an_answer_is_is_named_with_map(call, tmp_path, field, protocol):
    (tmp_path / "a.csv").write_text(WHOSE, encoding="utf-8")
    done = call("init", "--data", "a.csv", "--protocol", protocol, "--map", f"{field}=Кто")
    assert done.code == 0, done.err
    assert "model: «м1», «м2»\n" in done.out
    assert load_suite(tmp_path, {}).file.columns["meta.model"] == "Кто"
    assert call("run", "--dry-run").code == 0


def test_pairs_of_which_nothing_says_whose_they_are_ask_for_the_column(call, tmp_path):
    (tmp_path / "a.csv").write_text(WHOSE, encoding="utf-8")
    done = call("init", "--data", "a.csv", "--protocol", "pairwise")
    assert done.code == 3 and is_told(done.err, "files.no_author")
    assert '"Вопрос", "Кто", "Ответ"' in done.err and "--map model=COLUMN" in done.err
    assert not (tmp_path / "evenhand.toml").exists()


def test_how_far_a_long_table_is_read_is_told(call, tmp_path, monkeypatch):
    monkeypatch.setattr("evenhand.files.rubrics.ROWS_A_NOTICE", 5)
    rows = "".join(f"Why {i}?,m,Because of {i}.\n" for i in range(12))
    (tmp_path / "long.csv").write_text(f"question,model,answer\n{rows}")
    judge = f"python/{judges(tmp_path)['rubric']}"
    said = call("init", ".", "--data", "long.csv", "--judge", judge)
    assert said.code == 0 and len(said.err.splitlines()) == 2
    assert all(is_told(said.err, "runs.rows_read", n=f"{n} rows") for n in (5, 10))
    assert is_told(call("run", ".").err, "runs.rows_read", n="10 rows")


FIRST = {"question": "How much is 2+2?", "model": "m1", "answer": "worth 4"}


SECOND = {**FIRST, "model": "m2", "answer": "worth 5"}


TASK = {"question": "Why?", "answer": "worth 1"}


def begin(call, protocol, rows):
    Path("a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return call("init", "made", "--data", "a.jsonl", "--protocol", protocol, "--judge", "embedded")


@pytest.mark.parametrize("protocol", ["rubric", "weighted"])
@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"answer": None}, "kinds.no_text"),
        ({"answer": ["5"]}, "kinds.no_text"),
        ({"answer": {"text": "5"}}, "kinds.no_text"),
        ({"question": ""}, "kinds.empty_field"),
        ({"question": 7}, "kinds.no_text"),
        ({"id": 1.5}, "kinds.no_text"),
        ({"language": "fr"}, "kinds.unknown_language"),
    ],
)
def test_a_row_that_a_run_refuses_is_told_with_its_line_and_column(call, protocol, changes, key):
    done = begin(call, protocol, [FIRST, {**SECOND, **changes}])
    assert done.code == 3 and "a.jsonl:2: " in done.err and is_told(done.err, key), done.err
    assert any(f'"{name}' in done.err for name in (*changes, "fr"))
    assert not Path("made").exists()


def test_a_row_beyond_those_that_are_looked_at_first_is_told_too(call):
    rows = [{**TASK, "question": f"q{number}"} for number in range(300)]
    done = begin(call, "rubric", [*rows, {**TASK, "answer": None}])
    assert done.code == 3 and "a.jsonl:301: " in done.err and not Path("made").exists()


@pytest.mark.parametrize("protocol", KINDS)
def test_ids_that_repeat_are_told_with_both_lines_and_what_to_map(call, protocol):
    if protocol == "pairwise":
        candidates = [{"id": "a", "text": "worth 1"}, {"id": "b", "text": "worth 2"}]
        rows = [{"pair_id": "q1", "topic": "Why?", "candidates": candidates}] * 2
    else:
        rows = [{"id": "q1", **TASK}, {"id": "q1", **TASK, "answer": "worth 2"}]
    done = begin(call, protocol, rows)
    assert done.code == 3 and '"q1" (a.jsonl:1, a.jsonl:2)' in done.err
    assert "--map model=COLUMN" in done.err and not Path("made").exists()


def test_columns_inside_of_objects_are_listed_as_they_are_mapped(call):
    row = {"inputs": {"text": "Why?"}, "outputs": {"text": "worth 1"}}
    done = begin(call, "rubric", [row, {**row, "tags": ["x"]}])
    assert done.code == 3
    assert '"inputs.text", "outputs.text", "tags"' in done.err
    moves = ("--map", "question=inputs.text", "--map", "answer=outputs.text")
    assert call("init", "made", "--data", "a.jsonl", *moves).code == 0


@pytest.mark.parametrize("first", [[["about"], ["mine"]], []])
def test_a_sheet_that_is_named_becomes_a_suite_that_runs(call, tmp_path, first):
    """Also behind a cover without rows."""
    rows = [["question", "model", "answer"], ["Why?", "m", "worth 1 Because."]]
    write_workbook(tmp_path / "a.xlsx", {"Notes": first, "Ответы": rows})
    made = call("init", "made", "--data", "a.xlsx", "--sheet", "Ответы", "--protocol", "rubric")
    assert made.code == 0 and "Ответы" in made.out
    assert 'data = [{ file = "a.xlsx", sheet = "Ответы" }]' in (
        tmp_path / "made" / "evenhand.toml"
    ).read_text(encoding="utf-8")
    assert call("run", "made", "--dry-run").code == 0


@pytest.mark.parametrize(
    ("options", "code", "key"),
    [
        (("--data", "a.xlsx"), 3, "files.columns_of_sheet"),
        (("--data", "a.xlsx", "--sheet", "Dat"), 3, "data.no_sheet"),
        (("--data", "a.csv", "--sheet", "Data"), 2, "files.no_workbook"),
        (("--sheet", "Data"), 2, "cli.needs"),
    ],
)
def test_a_sheet_that_cannot_be_meant_is_refused(call, tmp_path, options, code, key):
    sheets = {"Notes": [["about"], ["mine"]], "Data": [["question", "answer"], ["q", "a"]]}
    write_workbook(tmp_path / "a.xlsx", sheets)
    (tmp_path / "a.csv").write_text("question,answer\nq,a\n")
    done = call("init", "made", *options)
    assert done.code == code and is_told(done.err, key) and not (tmp_path / "made").exists()


def test_a_rubric_of_a_row_is_read_where_the_run_will_read_it(call):
    rows = [{**TASK, "rubric": "task.md"}]
    Path("task.md").write_text("# Rubric\n\n## Points\n- It says why.\n")
    beside = begin(call, "weighted", rows)
    assert beside.code == 3 and is_told(beside.err, "files.no_rubric", path="made/task.md")
    assert "a.jsonl:1: " in beside.err
    assert not Path("made").exists()
    Path("made").mkdir()
    Path("task.md").rename("made/task.md")
    assert begin(call, "weighted", rows).code == 0
    assert call("run", "made", "--dry-run").code == 0


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("protocol", KINDS)
def test_an_example_runs_as_it_is(call, tmp_path, protocol, language):
    made = call("init", "--protocol", protocol, "--language", language)
    assert made.code == 0, made.err
    judge = judges(tmp_path)[protocol].replace("content", "tie")
    ran = call("run", "--judge", f"python/{judge}", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["verdicts"] == ran.json["planned"] > 0
    if protocol == "weighted":
        fails = ran.json["weighted"]["critical_fails"]
        assert fails >= 1 and ran.json["calls"] == ran.json["verdicts"] - fails
        types = {row["output"]["task_type"] for row in stored(tmp_path)}
        assert {"fact", "creative"} <= types
    assert call("init", "--protocol", protocol).code == 2


def test_what_is_there_stays_and_a_draft_is_written_beside(call, tmp_path):
    (tmp_path / "rubric.json").write_text("{}")
    write_table(tmp_path, "en")
    for arguments in ((), ("--data", "answers.csv")):
        done = call("init", *arguments)
        assert done.code == 0
        assert any(is_told(done.out, key) for key in ("cli.own_rubric_stays", "files.own_rubric"))
        assert load_suite(tmp_path, {}).file.rubric != "rubric.json"
        assert (tmp_path / "rubric.json").read_text() == "{}"
        assert call("run", "--dry-run").code == 0
        (tmp_path / "evenhand.toml").unlink()
    (tmp_path / "evenhand.toml").write_text("mine")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/samples.jsonl").write_text("{}")
    for where in (".", "mine"):
        refused = call("init", where)
        assert refused.code == 2 and "evenhand init DIR --data FILE" in refused.err
    assert (tmp_path / "evenhand.toml").read_text() == "mine"
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["samples.jsonl"]


@pytest.mark.parametrize(
    ("header", "understood"),
    [
        ("topic,candidate_1,candidate_2", ["topic topic", "candidates candidate_1, candidate_2"]),
        ("question,v1_answer,v2_answer", ["topic question", "answer v1_answer, v2_answer"]),
    ],
)
def test_the_columns_of_several_answers_are_named(call, tmp_path, header, understood):
    (tmp_path / "t.csv").write_text(f"{header}\nWhy?,Because.,So.\nHow?,Thus.,Well.\n")
    done = call("init", "s", "--data", "t.csv", "--protocol", "pairwise")
    assert done.code == 0, done.err
    assert {" ".join(line.split()) for line in done.out.splitlines()} >= set(understood)
