"""The command line as a whole: help, version, bugs, Ctrl-C, and mistakes."""

from __future__ import annotations

import json
import signal
from typing import NamedTuple

import pytest

from evenhand.cli.common import wait
from evenhand.cli.main import COMMANDS
from tests.sentences import is_told
from tests.suites import JUDGE, RUBRIC, evenhand, write_suite


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)], ids=" ".join)
def test_every_command_has_help(call, command):
    said = call.ok(*command, "--help")
    assert said.out.startswith("Usage: evenhand")


def test_a_wrong_command_is_exit_2_and_says_what_was_meant(call):
    said = call("exprot")
    assert (said.code, said.out) == (2, "")
    assert "export" in said.err
    assert call("run --limit 0").code == 2


def test_the_console_script_tells_its_version(tmp_path):
    done = evenhand("--version", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "evenhand 0.1.0\n")


def test_a_bug_is_exit_70(call, tmp_path, monkeypatch):
    write_suite(tmp_path, 1)
    monkeypatch.setattr("evenhand.cli.run.load_suite", lambda *_: 1 / 0)
    said = call("run --json")
    assert (said.code, said.out) == (70, "")
    assert "bug" in said.err


TOP = {
    "name": '"mine"',
    "protocol": '"rubric"',
    "language": '"en"',
    "data": '["answers.csv"]',
    "rubric": '"rubric.json"',
}


JUDGES = '[[judges]]\nmodel = "python/judge:good"\n'


TABLE = "question,model,answer\nWhy?,m1,because\nWhy?,m2,so\n"


HEADINGS = """\
task_type: fact

# Critical Fail Conditions
- It is rude.

# Bonus remarks
- +10: it is short.
"""


class Mistake(NamedTuple):
    """A mistake, and a part of the answer to it: what was meant, or the key of a sentence."""

    says: str
    code: int = 2
    key: str = ""
    top: dict[str, str] | None = None
    """Keys of the suite, in place of the right ones."""
    judges: str = JUDGES
    more: str = ""
    table: str = TABLE
    command: tuple[str, ...] = ("run", "--dry-run")


def judge(model):
    return f'[[judges]]\nmodel = "{model}"\n'


MISTAKES = {
    "judge for judges": Mistake(
        "evenhand.toml:6: ",
        key="suite.unknown_key_near",
        judges='[[judge]]\nmodel = "embedded"\n',
    ),
    "a data file mistyped": Mistake(
        '"answers.csv"', key="data.no_file", top={"data": '["answer.csv"]'}
    ),
    "no provider, Claude": Mistake(
        'Did you mean "anthropic/claude-haiku-4-5"?', judges=judge("claude-haiku-4-5")
    ),
    "no provider, and the model mistyped": Mistake(
        'Did you mean "openai/gpt-4.1-mini"?', judges=judge("gpt-41-mini")
    ),
    "no provider": Mistake('Did you mean "openai/gpt-4.1-mini"?', judges=judge("gpt-4.1-mini")),
    "a provider mistyped": Mistake(
        'Did you mean "anthropic/claude-haiku-4-5"?', judges=judge("antropic/claude-haiku-4-5")
    ),
    "a maker in place of the provider": Mistake(
        'Did you mean "openrouter/meta-llama/llama-3"?', judges=judge("meta-llama/llama-3")
    ),
    "a model mistyped": Mistake(
        '"openai/gpt-4.1-mini"', 0, "runs.unknown_model", judges=judge("openai/gpt-41-mini")
    ),
    "a model mistyped, with a budget": Mistake(
        '"openai/gpt-4.1-mini"',
        key="runs.no_price_near",
        judges=judge("openai/gpt-4.1-minni"),
        more='[limits]\nbudget_usd = "5"\n',
    ),
    "no judges": Mistake('For example: [[judges]] model = "openai/gpt-4.1-mini"', judges=""),
    "a language by its name": Mistake(
        "evenhand.toml:3: ",
        key="suite.string_pattern_mismatch",
        top={"language": '"english"'},
    ),
    "a country's code": Mistake('"jp"', key="files.no_language", top={"language": '"jp"'}),
    "a protocol mistyped": Mistake(
        '"rubric"', key="files.no_protocol", top={"protocol": '"rubrics"'}
    ),
    "a table in place of the suite": Mistake(
        "Make a suite for it: evenhand init --data answers.csv",
        command=("run", "answers.csv", "--dry-run"),
    ),
    "a suite mistyped": Mistake(
        'Did you mean "evenhand.toml"?', command=("run", "evenhnd.toml", "--dry-run")
    ),
    "an option mistyped": Mistake("Did you mean '--judge'?", command=("run", "--jugde", "m")),
    "a command mistyped": Mistake('"run"', key="cli.no_command_near", command=("rnu",)),
    "a heading mistyped": Mistake(
        '"critical fail conditions"',
        key="kinds.misspelt_heading",
        command=("check", "--protocol", "weighted", "--rubric", "bad.md"),
    ),
    "a column that is mapped and not there": Mistake(
        '"answer"', 3, "data.in_no_row", more='[columns]\nmodel_output = "anser"\n'
    ),
    "a protocol mistyped on the command line": Mistake(
        '"rubric"', key="cli.no_choice_near", command=("init", "new", "--protocol", "rubrik")
    ),
    "two columns that fit, at the beginning": Mistake(
        "or init --map model_output=answer",
        3,
        table="question,answer,response\nWhy?,a,b\n",
        command=("init", "new", "--data", "answers.csv"),
    ),
    "no column for the answer": Mistake(
        '"question", "text"',
        3,
        "kinds.missing_field",
        table="question,text\nWhy?,a\n",
    ),
    "a task's name in Japanese": Mistake(
        'task_name = "課題名"',
        0,
        top={"protocol": '"weighted"', "rubric": '"task.md"'},
        table="課題名,質問,回答\nt1,なぜ？,だから\n",
    ),
    "a run by a wrong name": Mistake("evenhand run", 6, "runs.no_store", command=("show", "mine")),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_answered_with_what_was_meant(call, tmp_path, monkeypatch, name):
    mistake = MISTAKES[name]
    for variable in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    top = "".join(f"{key} = {value}\n" for key, value in (TOP | (mistake.top or {})).items())
    (tmp_path / "evenhand.toml").write_text(top + mistake.judges + mistake.more)
    (tmp_path / "answers.csv").write_text(mistake.table)
    (tmp_path / "rubric.json").write_text(json.dumps(RUBRIC))
    (tmp_path / "judge.py").write_text(JUDGE)
    (tmp_path / "task.md").write_text(HEADINGS)
    (tmp_path / "bad.md").write_text(HEADINGS.replace("Critical", "Critcal"))
    answer = call(*mistake.command)
    text = answer.err + answer.out
    assert mistake.says in text and (not mistake.key or is_told(text, mistake.key)), text
    assert answer.code == mistake.code
    assert "Traceback" not in answer.err


def test_ctrl_c_ends_work_at_once_though_it_never_waits():
    reached: list[str] = []

    async def read_for_long():
        signal.raise_signal(signal.SIGINT)
        reached.append("the end")

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        wait(read_for_long())
    assert reached == []
    assert signal.getsignal(signal.SIGINT) is before
