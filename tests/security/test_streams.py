"""Whatever becomes of stdout and stderr, a command goes on to its end: nothing is lost of a run,
and the exit code is its own."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.suites import EVENHAND, JUDGE, environment, evenhand, samples, write_suite
from tests.waiting import PATIENCE

TEXTS = ["Ответ по существу.", "回答非常完整。", "答えはとても明快です。", "A plain answer, 🙂 é."]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run of texts in four languages, with a comparison."""
    folder = tmp_path_factory.mktemp("streams")
    rows = [
        row
        | {"model_output": TEXTS[i % 4], "question": f"Вопрос {i} 问题 質問?"}
        | {"meta": {"prompt_variant": f"v{i % 2}", "question_id": f"вопрос {i // 2}"}}
        for i, row in enumerate(samples(60))
    ]
    write_suite(folder, rows, name="проба", compare={"by": "prompt_variant"})
    outcome = evenhand("run", cwd=folder)
    assert outcome.returncode == 0, outcome.stderr
    return folder


def shell(line, cwd, env=None):
    """A line of bash in which `evenhand` is the command; its exit code is that of the first part of
    a pipe."""
    command = line.replace("evenhand ", f"{EVENHAND} ")
    return subprocess.run(
        ["bash", "-c", f"{command}; exit ${{PIPESTATUS[0]}}"],
        cwd=cwd,
        env=environment(env),
        capture_output=True,
        timeout=PATIENCE,
        check=False,
        encoding="utf-8",
    )


def settled(folder):
    outcome = evenhand("runs --json", cwd=folder)
    return int(json.loads(outcome.stdout)["runs"][0]["verdicts"])


READERS = ["show latest", "compare", "runs --json"]


@pytest.mark.parametrize("command", READERS)
def test_a_reader_who_had_enough_changes_nothing(folder, command):
    outcome = shell(f"evenhand {command} | head -c 1", folder)
    assert (outcome.returncode, outcome.stderr.count("Traceback")) == (0, 0), outcome.stderr
    assert "lost" not in outcome.stderr


def test_a_gate_keeps_its_exit_code_without_a_reader(folder):
    refused = shell("evenhand gate latest --min-mean 0.99 | head -c 0", folder)
    assert refused.returncode == evenhand("gate latest --min-mean 0.99", cwd=folder).returncode
    assert refused.returncode in (1, 7)


@pytest.mark.parametrize("command", ["show latest", "runs --json"])
def test_a_full_disk_is_told(folder, command):
    outcome = shell(f"evenhand {command} > /dev/full", folder)
    assert outcome.returncode == 2
    assert "No space left" in outcome.stderr
    assert "Traceback" not in outcome.stderr


@pytest.mark.parametrize(
    "streams", ["2>&-", "<&- >&- 2>&-", "2>/dev/full", ">/dev/full", "2>&1 | true"]
)
def test_a_run_goes_on_whatever_it_cannot_say(streams, tmp_path):
    write_suite(tmp_path, 30)
    outcome = shell(f"evenhand run {streams}", tmp_path)
    assert outcome.returncode == (2 if streams == ">/dev/full" else 0), outcome.stderr
    assert settled(tmp_path) == 30
    assert evenhand("store verify", cwd=tmp_path).returncode == 0


ONCE_SEEN = """
import json, os, time
{judge}
async def waiting(messages, schema, params):
    "Answers as soon as the reader of stderr is gone."
    import asyncio
    while not os.path.exists("gone"):
        await asyncio.sleep(0.01)
    return reply(messages)
"""


def test_a_reader_of_stderr_that_goes_away_in_mid_run_ends_nothing(tmp_path):
    judge = ONCE_SEEN.format(judge=JUDGE)
    write_suite(tmp_path, 20, {"model": "python/judge:waiting"}, judge=judge)
    reader, writer = os.pipe()
    with subprocess.Popen([EVENHAND, "run"], cwd=tmp_path, stderr=writer, stdout=writer) as process:
        os.close(writer)
        os.close(reader)
        (tmp_path / "gone").touch()
        assert process.wait(PATIENCE) == 0
    assert settled(tmp_path) == 20


POOR = [
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"PYTHONIOENCODING": "ascii"},
    {"PYTHONIOENCODING": "latin-1"},
    {"PYTHONIOENCODING": "shift_jis"},
]
SPOKEN = ["show latest u0", "compare", "report -o r.html", "doctor", "init данные", "run --dry-run"]
SPOKEN += ["protocols show rubric --language zh", "demo --recorded --language ja", "models"]
SPOKEN += ["gate latest --min-mean 0.1", "settle latest", "--help"]


@pytest.mark.parametrize("command", SPOKEN)
def test_no_command_stumbles_over_a_poor_locale(folder, command):
    outcome = shell(f"evenhand {command}", folder, POOR[0])
    assert outcome.returncode != 70, outcome.stderr
    assert "Traceback" not in outcome.stderr


@pytest.mark.parametrize("env", POOR, ids=lambda env: "-".join(env.values()))
def test_json_is_json_in_every_encoding(folder, env):
    outcome = evenhand_bytes("runs", "--json", cwd=folder, env=env)
    assert json.loads(outcome)["runs"][0]["name"] == "проба"


def evenhand_bytes(*arguments, cwd, env):
    """What a command prints, read as the encoding that it was told."""
    told = env.get("PYTHONIOENCODING", "utf-8")
    outcome = subprocess.run(
        [EVENHAND, *arguments], cwd=cwd, env=environment(env), capture_output=True, check=True
    )
    return outcome.stdout.decode("utf-8" if told == "ascii" else told)


def test_a_file_named_in_letters_that_the_locale_lacks_is_told_or_read(tmp_path):
    write_suite(tmp_path, data=["данные.jsonl"])
    (tmp_path / "samples.jsonl").rename(tmp_path / "данные.jsonl")
    outcome = shell("evenhand run", tmp_path, POOR[0])
    assert outcome.returncode in (0, 2)
    assert "Traceback" not in outcome.stderr


def test_a_folder_whose_name_is_not_utf8_works_or_is_told(tmp_path):
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    write_suite(folder)
    for command in ("run", "show latest", "report -o r.html", "export -o e.jsonl", "run --json"):
        outcome = shell(f"evenhand {command}", folder)
        assert outcome.returncode in (0, 2), (command, outcome.stderr)
        assert "Traceback" not in outcome.stderr
    beside = shell(f"evenhand run {os.fsencode(folder.name).decode('latin-1')!r}", tmp_path)
    assert beside.returncode == 2
