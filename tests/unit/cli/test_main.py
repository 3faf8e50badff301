"""The command line as a whole: help, version, bugs, Ctrl-C, and mistakes."""

from __future__ import annotations

import json
import signal

import pytest

from evenhand.cli.common import wait
from evenhand.cli.main import COMMANDS
from tests.cases import cases
from tests.sentences import is_told
from tests.suites import JUDGE, RUBRIC, evenhand, write_suite
from tests.unit.cli.conftest import put


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


@cases
def test_a_mistake_is_answered_with_what_was_meant(
    call, monkeypatch, command, says, code, key, given
):
    """`given` is what stands in place of the right keys, judges, rest of the suite or table."""
    for variable in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    top = "".join(f"{key} = {value}\n" for key, value in (TOP | given.get("top", {})).items())
    put("evenhand.toml", top + given.get("judges", JUDGES) + given.get("more", ""))
    put("answers.csv", given.get("table", TABLE))
    put("rubric.json", json.dumps(RUBRIC))
    put("judge.py", JUDGE)
    put("task.md", HEADINGS)
    put("bad.md", HEADINGS.replace("Critical", "Critcal"))
    answer = call(command)
    text = answer.err + answer.out
    assert says in text and (not key or is_told(text, key)), text
    assert answer.code == code
    assert "Traceback" not in answer.err


def test_ctrl_c_ends_work_at_once_though_it_never_waits():
    reached = []

    async def read_for_long():
        signal.raise_signal(signal.SIGINT)
        reached.append("the end")

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        wait(read_for_long())
    assert reached == []
    assert signal.getsignal(signal.SIGINT) is before
