"""`init` makes a suite that runs as it is, and refuses what `run` would."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evenhand.kinds import KINDS
from evenhand.kinds.protocol import LANGUAGES
from evenhand.suite import load_suite
from tests.cases import cases
from tests.sentences import is_told
from tests.suites import GRADE_JUDGE, PAIR_JUDGE, TICK_JUDGE, stored, write_rows
from tests.unit.cli.conftest import put, values
from tests.unit.data.test_agent_logs import sample, write_eval
from tests.unit.data.workbooks import write_workbook

JUDGES = {
    **{"rubric": "filler:f", "pairwise": "pairs:tie", "weighted": "grades:good"},
    "checklist": "ticks:good",
}
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


pytestmark = pytest.mark.usefixtures("no_keys")


def write_table(folder, language):
    question, answer, asked, answered = TABLES[language]
    path = folder / "answers.csv"
    rows = [f"{asked};{model};worth {i} {answered}" for i, model in enumerate(("m1", "m2"))]
    path.write_text("\n".join([f"{question};model;{answer}", *rows]) + "\n", encoding="utf-8")
    return path


def run(call, protocol="rubric"):
    """What the suite says here that is judged by a judge of Python."""
    texts = {"filler": FILLER, "pairs": PAIR_JUDGE, "grades": GRADE_JUDGE, "ticks": TICK_JUDGE}
    for name, text in texts.items():
        put(f"{name}.py", text)
    return call.json(f"run --judge python/{JUDGES[protocol]}")


def write_data(text):
    """A table in a file of its kind, and its name."""
    name = "a.jsonl" if text.startswith("{") else "a.csv"
    put(name, text)
    return name


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
    done = call.ok(f"init --data chats.jsonl --protocol {protocol}")
    assert is_told(done.out, "files.understood", "ja", protocol=protocol, language="ja"), done.out
    assert is_told(done.out, "data.transcript", "ja", column="messages")
    assert run(call, protocol)["verdicts"] == (1 if protocol == "pairwise" else 2)
    assert system in call(f"show latest {stored(tmp_path)[0]['unit']}").out


def test_a_log_of_inspect_becomes_a_suite_that_runs(call, tmp_path):
    """Its tools are shown to the judge; what ended in an error is told by both commands."""
    samples = [sample("s1"), sample("s2", error={"message": "out of memory"})]
    (tmp_path / "there").mkdir()
    write_eval(tmp_path / "there" / "log.eval", samples)
    done = call.ok("init --data there/log.eval")
    assert is_told(done.out, "data.inspect_log", file="log.eval", n=1, task="orders")
    assert "s2: out of memory" in done.out
    assert load_suite(tmp_path, {}).file.use == ["reference"]
    assert run(call)["verdicts"] == 1
    assert "s2: out of memory" in call("run --judge python/filler:f").err
    shown = call("show latest s1").out
    assert 'find {"order":7}' in shown and "A secret plan." not in shown
    assert call.json("show latest s1")["unit"]["meta"]["task_args.shots"] == 3


@pytest.mark.parametrize("language", TABLES)
@pytest.mark.parametrize("protocol", KINDS)
def test_a_table_becomes_a_suite_that_runs(call, tmp_path, protocol, language):
    write_table(tmp_path, language)
    done = call.ok(f"init --data answers.csv --protocol {protocol}")
    assert is_told(done.out, "files.understood", language, protocol=protocol), done.out
    suite = load_suite(tmp_path, {}).file
    assert (suite.protocol, suite.language) == (protocol, language)
    assert run(call, protocol)["verdicts"] == (1 if protocol == "pairwise" else 2)
    if protocol != "pairwise":
        call.ok(f"check --protocol {protocol} --rubric {NAMES[protocol]}")
        assert values(call.json("compare latest"), "by baseline") == ["model", "m1"]
    if protocol == "rubric" and language == "ru":
        assert "Верно ли то, что утверждается в ответе?" in Path("rubric.json").read_text("utf-8")


@cases
def test_a_table_that_is_not_utf_8_is_read_as_what_reads_as_text_and_the_suite_says_so(
    call, tmp_path, language, encoding
):
    path = write_table(tmp_path, language)
    path.write_bytes(path.read_text("utf-8").encode(encoding))
    said = call.ok("init --data answers.csv").out
    assert is_told(said, "files.encoding", language)
    assert is_told(said, "files.understood", language)
    assert run(call)["verdicts"] == 2
    assert call.json("show latest m1")["unit"]["question"] == TABLES[language][2]


def test_a_table_elsewhere_is_copied_and_nothing_is_overwritten(call, tmp_path):
    write_table(tmp_path, "en")
    done = call.ok("init mine --data answers.csv")
    assert is_told(done.out, "cli.copied", path="mine/answers.csv")
    assert Path("mine/answers.csv").read_bytes() == Path("answers.csv").read_bytes()
    call.ok("run mine --dry-run")
    advice = ["evenhand init DIR --data FILE"]
    call.refused("init mine --data answers.csv", key="cli.present", says=advice)


@cases
def test_what_is_understood_of_a_table_is_said_and_runs(
    call, text, options, key, told, lines, columns
):
    said = call.ok(f"init made --data {write_data(text)} {options}").out
    assert is_told(said, key, told.get("language", "en"), **told), said
    flat = [" ".join(line.split()) for line in said.splitlines()]
    assert all(any(part in line for line in flat) for part in lines), said
    mapped = load_suite(Path("made"), {}).file.columns
    assert mapped.items() >= (columns or {}).items()
    call.ok("run made --dry-run")


@cases
def test_a_table_that_a_run_would_refuse_makes_no_suite(call, text, options, code, key, says):
    line = f"init made --data {write_data(text)} {options}"
    call.refused(line, code=code, key=key, says=says)
    assert not Path("made").exists()


def test_a_row_beyond_those_that_are_looked_at_first_is_told_too(call):
    rows = [{"question": f"q{number}", "answer": "worth 1"} for number in range(300)]
    write_rows(Path(), [*rows, {"question": "q", "answer": None}], "a.jsonl")
    call.refused("init made --data a.jsonl", code=3, says=["a.jsonl:301: "])
    assert not Path("made").exists()


def test_the_judge_is_the_one_whose_key_is_set(call, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    assert "Judge: anthropic/" in call("init one").out
    assert call.json("run one --dry-run")["price_usd"]["most"] > 0
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert "Judge: openai/" in call("init two").out
    assert "Judge: ollama/m" in call("init three --judge ollama/m").out
    call.refused("init four --judge opnai/m")


def test_without_a_key_the_embedded_judge_is_offered_and_a_dry_run_needs_no_model(
    call, tmp_path, monkeypatch
):
    monkeypatch.setenv("EVENHAND_MODELS", str(tmp_path / "models"))
    said = call("init").out
    assert "Judge: embedded" in said and "evenhand models get " in said
    forecast = call.json("run --dry-run")
    assert forecast["calls"]["least"] > 0 and "evenhand models get " in forecast["lacking"][0]
    call.refused("run", says=["evenhand models get "])


def test_files_that_nothing_else_sets_apart_are_variants_called_by_their_names(call, tmp_path):
    put("answers_v1.csv", "question,answer\nWhy?,So.\nHow?,Thus.\n")
    put("answers_v2.csv", "prompt;Ответ\nWhy?;Because.\nHow?;Like this.\n")
    data = "--data answers_v1.csv --data answers_v2.csv"
    said = call.ok(f"init {data}").out
    assert is_told(said, "files.variants", field="prompt_variant", names='"v1", "v2"')
    suite = load_suite(tmp_path, {}).file
    assert suite.compare.baseline == "v1"
    assert run(call)["verdicts"] == 4
    assert call.json("compare")["rows"][0]["n"] == 2
    said = call(f"init p --protocol pairwise {data}").out
    assert is_told(said, "files.understood", n="2 rows", protocol="pairwise")


def test_files_in_which_a_column_sets_answers_apart_are_one_table(call, tmp_path):
    for number, name in enumerate(("may.csv", "june.csv")):
        put(name, f"question,model,answer\nWhy {number}?,a,So.\nWhy {number}?,b,Thus.\n")
    said = call("init --data may.csv --data june.csv").out
    assert is_told(said, "files.variants", field="model", names='"a", "b"')
    assert [spec.file for spec in load_suite(tmp_path, {}).file.data] == ["may.csv", "june.csv"]
    Path("more").mkdir()
    put("more/may.csv", "question,answer\nWhy?,So.\n")
    call.refused("init two --data may.csv --data more/may.csv", key="cli.same_names")


@pytest.mark.parametrize("folder", ["mine", "."])
def test_a_table_called_like_a_rubric_keeps_its_name(call, folder):
    rows = [{"question": "Why?", "answer": "So it is."}]
    put("rubric.json", json.dumps(rows))
    said = call.ok(f"init {folder} --data rubric.json").out
    assert json.loads(Path(folder, "rubric.json").read_text()) == rows
    assert is_told(said, "cli.first_rubric", path=Path(folder, "rubric-draft.json"))
    assert not is_told(said, "cli.own_rubric_stays")
    call.ok(f"run {folder} --dry-run")


@cases
def test_numbers_of_questions_and_longer_names_are_understood_and_the_draft_runs(
    call, header, question, answer
):
    rows = [
        f"{number};{question.format(number)};{variant};{answer.format(number)} {variant}"
        for number in range(4)
        for variant in "ab"
    ]
    put("odd.csv", "\n".join([header, *rows]) + "\n")
    call.ok("init --data odd.csv")
    assert run(call)["verdicts"] == 8
    assert call.json("compare")["rows"][0]["n"] == 4


@pytest.mark.parametrize("variants", [(False, True), (0, 1), (0.5, 1e-7)])
def test_a_variant_that_is_no_text_is_called_in_the_draft_as_compare_calls_it(call, variants):
    rows = [
        {"question": f"Where is {number}?", "variant": variant, "answer": f"There {variant}."}
        for number in range(4)
        for variant in variants
    ]
    write_rows(Path(), rows, "a.jsonl")
    call.ok("init --data a.jsonl --protocol rubric")
    run(call)
    assert call.json("compare")["baseline"] == json.dumps(variants[0])


def test_a_file_per_variant_with_the_ids_of_questions_runs(call):
    for variant in ("v1", "v2"):
        rows = "".join(f"{number}\tq{number}\t{variant}\n" for number in (1, 2, 3))
        put(f"same_{variant}.tsv", f"id\tquestion\tanswer\n{rows}")
    said = call.ok("init same --data=same_v1.tsv --data=same_v2.tsv").out
    assert 'prompt_variant: "v1", "v2"' in said
    assert is_told(said, "data.ids_of_questions", files='"same_v1.tsv" and 1 more')
    assert call.json("run same --dry-run")["planned"] == 6


def test_how_far_a_long_table_is_read_is_told(call, monkeypatch):
    monkeypatch.setattr("evenhand.files.rubrics.ROWS_A_NOTICE", 5)
    rows = "".join(f"Why {i}?,m,Because of {i}.\n" for i in range(12))
    put("long.csv", f"question,model,answer\n{rows}")
    put("filler.py", FILLER)
    said = call.ok("init . --data long.csv --judge python/filler:f").err
    assert len(said.splitlines()) == 2
    assert all(is_told(said, "runs.rows_read", n=f"{n} rows") for n in (5, 10))
    assert is_told(call("run .").err, "runs.rows_read", n="10 rows")


@pytest.mark.parametrize("first", [[["about"], ["mine"]], []])
def test_a_sheet_that_is_named_becomes_a_suite_that_runs(call, tmp_path, first):
    """Also behind a cover without rows."""
    rows = [["question", "model", "answer"], ["Why?", "m", "worth 1 Because."]]
    write_workbook(tmp_path / "a.xlsx", {"Notes": first, "Ответы": rows})
    made = call.ok("init made --data a.xlsx --sheet Ответы --protocol rubric")
    assert "Ответы" in made.out
    data = 'data = [{ file = "a.xlsx", sheet = "Ответы" }]'
    assert data in Path("made/evenhand.toml").read_text("utf-8")
    call.ok("run made --dry-run")


@cases
def test_a_sheet_that_cannot_be_meant_is_refused(call, tmp_path, options, code, key):
    sheets = {"Notes": [["about"], ["mine"]], "Data": [["question", "answer"], ["q", "a"]]}
    write_workbook(tmp_path / "a.xlsx", sheets)
    call.refused(f"init made {options}", code=code, key=key)
    assert not Path("made").exists()


def test_a_rubric_of_a_row_is_read_where_the_run_will_read_it(call):
    row = {"question": "Why?", "answer": "worth 1", "rubric": "task.md"}
    write_rows(Path(), [row], "a.jsonl")
    put("task.md", "# Rubric\n\n## Points\n- It says why.\n")
    line = "init made --data a.jsonl --protocol weighted"
    beside = call.refused(line, code=3, says=["a.jsonl:1: "])
    assert is_told(beside, "files.no_rubric", path="made/task.md")
    assert not Path("made").exists()
    Path("made").mkdir()
    Path("task.md").rename("made/task.md")
    call.ok(line)
    call.ok("run made --dry-run")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("protocol", KINDS)
def test_an_example_runs_as_it_is(call, tmp_path, protocol, language):
    call.ok(f"init --protocol {protocol} --language {language}")
    ran = run(call, protocol)
    assert ran["verdicts"] == ran["planned"] > 0
    if protocol == "weighted":
        fails = ran["weighted"]["critical_fails"]
        assert fails >= 1 and ran["calls"] == ran["verdicts"] - fails
        types = {row["output"]["task_type"] for row in stored(tmp_path)}
        assert {"fact", "creative"} <= types
    call.refused(f"init --protocol {protocol}")


def test_what_is_there_stays_and_a_draft_is_written_beside(call, tmp_path):
    put("rubric.json", "{}")
    write_table(tmp_path, "en")
    for options in ("", "--data answers.csv"):
        said = call.ok(f"init {options}").out
        assert any(is_told(said, key) for key in ("cli.own_rubric_stays", "files.own_rubric"))
        assert load_suite(tmp_path, {}).file.rubric != "rubric.json"
        assert Path("rubric.json").read_text() == "{}"
        call.ok("run --dry-run")
        Path("evenhand.toml").unlink()
    put("evenhand.toml", "mine")
    Path("mine").mkdir()
    put("mine/samples.jsonl", "{}")
    for where in (".", "mine"):
        call.refused(f"init {where}", says=["evenhand init DIR --data FILE"])
    assert Path("evenhand.toml").read_text() == "mine"
    assert [path.name for path in Path("mine").iterdir()] == ["samples.jsonl"]
