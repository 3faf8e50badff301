"""The command line as a whole: help, version, bugs, Ctrl-C, and mistakes."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import NamedTuple

import pytest

from evenhand.cli.common import wait
from evenhand.cli.main import COMMANDS
from tests.suites import JUDGE, RUBRIC, evenhand, write_suite
from tests.unit.cli.conftest import CallCommand


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)], ids=" ".join)
def test_every_command_has_help(call: CallCommand, command: list[str]) -> None:
    said = call(*command, "--help")
    assert said.code == 0
    assert said.out.startswith("Usage: evenhand")


def test_a_wrong_command_is_exit_2_and_says_what_was_meant(call: CallCommand) -> None:
    said = call("exprot")
    assert (said.code, said.out) == (2, "")
    assert "export" in said.err
    assert call("run", "--limit", "0").code == 2


def test_the_console_script_tells_its_version(tmp_path: Path) -> None:
    done = evenhand("--version", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "evenhand 0.1.0\n")


def test_a_bug_is_exit_70(
    call: CallCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_suite(tmp_path, 1)
    monkeypatch.setattr("evenhand.cli.run.load_suite", lambda *_: 1 / 0)
    said = call("run", "--json")
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
    """A mistake, and a part of the answer to it."""

    says: str
    code: int = 2
    top: dict[str, str] | None = None
    """Keys of the suite, in place of the right ones."""
    judges: str = JUDGES
    more: str = ""
    table: str = TABLE
    command: tuple[str, ...] = ("run", "--dry-run")


def judge(model: str) -> str:
    return f'[[judges]]\nmodel = "{model}"\n'


MISTAKES = {
    "judge for judges": Mistake(
        'evenhand.toml:6: unknown key "judge"; did you mean "judges"?',
        judges='[[judge]]\nmodel = "embedded"\n',
    ),
    "a data file mistyped": Mistake('did you mean "answers.csv"?', top={"data": '["answer.csv"]'}),
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
        'did you mean "openai/gpt-4.1-mini"?', 0, judges=judge("openai/gpt-41-mini")
    ),
    "a model mistyped, with a budget": Mistake(
        'Did you mean "openai/gpt-4.1-mini"? If not, add to its [[judges]] entry',
        judges=judge("openai/gpt-4.1-minni"),
        more='[limits]\nbudget_usd = "5"\n',
    ),
    "no judges": Mistake('For example: [[judges]] model = "openai/gpt-4.1-mini"', judges=""),
    "a language by its name": Mistake(
        'evenhand.toml:3: language: "english" is not a language code\n  Built-in protocols speak',
        top={"language": '"english"'},
    ),
    "a country's code": Mistake("It speaks ru, zh, ja, en", top={"language": '"jp"'}),
    "a protocol mistyped": Mistake('Did you mean "rubric"?', top={"protocol": '"rubrics"'}),
    "a table in place of the suite": Mistake(
        "Make a suite for it: evenhand init --data answers.csv",
        command=("run", "answers.csv", "--dry-run"),
    ),
    "a suite mistyped": Mistake(
        'Did you mean "evenhand.toml"?', command=("run", "evenhnd.toml", "--dry-run")
    ),
    "an option mistyped": Mistake("Did you mean '--judge'?", command=("run", "--jugde", "m")),
    "a command mistyped": Mistake("Did you mean 'run'?", command=("rnu",)),
    "a heading mistyped": Mistake(
        'did you mean the heading "critical fail conditions"?',
        command=("check", "--protocol", "weighted", "--rubric", "bad.md"),
    ),
    "a column that is mapped and not there": Mistake(
        'did you mean "answer"?', 3, more='[columns]\nmodel_output = "anser"\n'
    ),
    "a protocol mistyped on the command line": Mistake(
        "Did you mean 'rubric'?", command=("init", "new", "--protocol", "rubrik")
    ),
    "two columns that fit, at the beginning": Mistake(
        "or init --map model_output=answer",
        3,
        table="question,answer,response\nWhy?,a,b\n",
        command=("init", "new", "--data", "answers.csv"),
    ),
    "no column for the answer": Mistake(
        '"model_output" is missing; there are "question", "text"',
        3,
        table="question,text\nWhy?,a\n",
    ),
    "a task's name in Japanese": Mistake(
        'task_name = "課題名"',
        0,
        top={"protocol": '"weighted"', "rubric": '"task.md"'},
        table="課題名,質問,回答\nt1,なぜ？,だから\n",
    ),
    "a run by a wrong name": Mistake(
        "there is no such store\n  Judge something first: evenhand run", 6, command=("show", "mine")
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_answered_with_what_was_meant(
    call: CallCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
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
    assert mistake.says in answer.err + answer.out
    assert answer.code == mistake.code
    assert "Traceback" not in answer.err


def test_ctrl_c_ends_work_at_once_though_it_never_waits() -> None:
    reached: list[str] = []

    async def read_for_long() -> None:
        signal.raise_signal(signal.SIGINT)
        reached.append("the end")

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        wait(read_for_long())
    assert reached == []
    assert signal.getsignal(signal.SIGINT) is before
