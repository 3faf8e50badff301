"""Four of the five stories of docs/start.md, by the page's own commands."""

from __future__ import annotations

import csv
import re
import signal
import subprocess

import pytest

from tests.crash.watching import counts, ended, until
from tests.provider import child
from tests.stories.tables import japanese_rows, prompt_answers, russian_rows, write_table
from tests.stories.telling import at_loopback, blocks, flowing, told

PAGE = "docs/start.md"
SIX = [f"модель-{letter}" for letter in "абвгде"]


@pytest.fixture
def url():
    with child("reading") as address:
        yield address


def test_is_the_new_prompt_better(tmp_path, url):
    prompt_answers(tmp_path)
    (script,) = blocks(PAGE, "Is the new prompt better?")
    out = flowing(told(script, tmp_path, at_loopback(url)))
    assert 'compared by prompt_variant: "v1", "v2"' in out
    assert "75 calls to send" in out and "About $" in out
    # Five answers are the same under both prompts: the same question is asked once.
    assert counts(url)["calls"] == 75
    sentence = re.search(
        r"v2 is better than v1 overall: .*?; better on 30 of 40 questions, worse on 5", out
    )
    assert sentence, out
    # Once by `run`, once by `compare`: the same words.
    assert out.count(sentence[0]) == 2
    (page,) = blocks(PAGE, "Is the new prompt better?", "")
    assert sentence[0] in flowing(page)
    assert "5 got worse, 30 got better, 40 compared" in out
    assert 'Question What is "bread" good for' in out and 'It is said of "bread", 1 times.' in out
    assert "worst 3:" in out and "worst 4:" not in out
    assert "<html" in (tmp_path / "prompts/report.html").read_text("utf-8")


def interrupted(script, folder, url, calls):
    """What a command that is stopped by Ctrl-C after so many calls says."""
    (command,) = script.strip().splitlines()
    process = subprocess.Popen(
        command.split(),
        cwd=folder,
        env=at_loopback(url),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert until(lambda: counts(url)["calls"] >= calls, process)
    process.send_signal(signal.SIGINT)
    code, _, errors = ended(process)
    assert code == 130, errors
    return errors


def test_which_of_six_models_is_best_and_can_the_judge_be_trusted(tmp_path, url):
    environ = at_loopback(url)
    table = [("Тема", "Модель", "Ответ"), *russian_rows(SIX)]
    write_table(tmp_path / "ответы.csv", table, separator=";", encoding="cp1251")
    first, resumed, seventh = blocks(PAGE, "Which of six models is best?")
    init, run = first.strip().splitlines()
    drafted = flowing(told(init, tmp_path, environ))
    assert "50 строк, протокол pairwise" in drafted and "cp1251" in drafted
    assert "evenhand run models" in interrupted(run, tmp_path, url, 200)
    paid = counts(url)
    assert 200 <= paid["calls"] == paid["answered"] < 1500
    board = flowing(told(resumed, tmp_path, environ))
    assert (counts(url)["calls"], counts(url)["most"]) == (1500, 1), "nothing is paid twice"
    assert re.search(r"750 \w+ \+ 0 \w+ \+ 0 \w+ = 750", board)
    assert f"{SIX[-1]} " in board
    more = [("Тема", "Модель", "Ответ"), *russian_rows([*SIX, "модель-ё"])]
    seven = [row for row in more if row[1] == "модель-ё"]
    with (tmp_path / "models/ответы.csv").open("a", encoding="cp1251", newline="") as file:
        csv.writer(file, delimiter=";").writerows(seven)
    again = flowing(told(seventh, tmp_path, environ))
    assert re.search(r"1\s050 вердикт", again)
    assert counts(url)["most"] == 1
    assert counts(url)["calls"] == 1500 + 2 * 50 * 6, "only the pairs of the new model are paid"
    trusted(tmp_path, environ)
    assert counts(url)["calls"] == 2100


def trusted(folder, environ):
    """Labels of people for pairs of the run: they share the judge's view of nine pairs of ten."""
    told("evenhand export latest -o verdicts.csv", folder / "models", environ)
    with (folder / "models/verdicts.csv").open(encoding="utf-8-sig", newline="") as file:
        verdicts = list(csv.DictReader(file))[::17][:60]  # of as many topics as there are
    other = {"A": "B", "B": "A", "tie": "A"}
    names = {"A": "1", "B": "2", "tie": "tie"}
    labels = [("pair_id", "annotator", "preference")]
    for number, row in enumerate(verdicts):
        winner = other[row["winner"]] if number % 10 == 0 else row["winner"]
        labels.append((row["pair_id"], "Аня" if number % 2 else "Боря", names[winner]))
    write_table(folder / "models/labels.csv", labels, separator=";")
    (script,) = blocks(PAGE, "Can the judge be trusted?")
    out = flowing(told(script, folder, environ))
    assert re.search(r"labels .* 90\s?% \[\d+; \d+\] .* 0,\d+ \[0,\d+; 0,\d+\]", out), out


def test_other_weights_cost_no_call(tmp_path, url):
    environ = at_loopback(url)
    table = [("質問", "モデル", "回答"), *japanese_rows()]
    write_table(tmp_path / "kaitou.csv", table, separator="\t", encoding="shift_jis")
    judge, settle = blocks(PAGE, "Other weights, no new call")
    graded = flowing(told(judge, tmp_path, environ))
    assert "24 行、プロトコル weighted" in graded and "cp932" in graded
    assert counts(url)["calls"] == 24
    (weights,) = blocks(PAGE, "Other weights, no new call", "toml")
    (tmp_path / "grades/weights.toml").write_text(weights, encoding="utf-8")
    out = flowing(told(settle, tmp_path, environ))
    assert counts(url)["calls"] == 24, "no new call"
    assert re.search(r"24 件 \+ \w+ 0 件 \+ \w+ 0 件 = \w+ 24 件", out)
    with (tmp_path / "grades/grades.csv").open(encoding="utf-8-sig", newline="") as file:
        grades = list(csv.DictReader(file))
    assert len({row["unit"] for row in grades}) == len(grades) == 24
    told("cd grades\nevenhand export latest -o contract.csv", tmp_path, environ)
    with (tmp_path / "grades/contract.csv").open(encoding="utf-8-sig", newline="") as file:
        assert {row["weights.logic_and_fact"] for row in csv.DictReader(file)} == {"80"}


def test_the_first_screen_of_the_readme(tmp_path, url):
    """But for the installation, and with the key that the fixture sets."""
    before, commands, questions = blocks("README.md", "Your own data", "")
    install, key = before.strip().splitlines()
    assert install.startswith("pip install") and key.startswith("export OPENAI_API_KEY")
    rows = [
        (f"Why is it so, {n}?", model, f"Because of {n}, says {model}. " * (1 + (model == "b")))
        for n in range(12)
        for model in "ab"
    ]
    write_table(tmp_path / "answers.csv", [("question", "model", "answer"), *rows])
    out = flowing(told(commands, tmp_path, at_loopback(url)))
    assert "24 calls to send" in out and "About $" in out
    assert out.count("b is better than a overall") == 2 and "best 3:" in out
    assert (tmp_path / "my-suite/report.html").exists()
    (tmp_path / "my-suite").rename(tmp_path / "first")
    write_table(tmp_path / "questions.csv", [("question",), ("Why is ice slippery?",)])
    for version in ("v1", "v2"):
        (tmp_path / f"{version}.md").write_text("Why? {{question}}")
    told(questions, tmp_path, at_loopback(url))
    assert "[answers]" in (tmp_path / "my-suite/evenhand.toml").read_text("utf-8")
