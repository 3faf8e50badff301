"""`demo`: the recorded part, the live part, and where it cannot go on."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest
from rich.cells import cell_len

from evenhand.cli.common import resume_advice
from evenhand.cli.demo import COMMANDS, CONTRADICTION, JUDGES, PEOPLE
from evenhand.kinds import KINDS
from evenhand.kinds.protocol import LANGUAGES
from evenhand.runs.stores import MEMORY
from evenhand.words import words
from tests.sentences import is_told
from tests.unit.cli.conftest import put

STORE = "sqlite:evenhand-demo/evenhand.db"


PUBLISHED = {"gpt4": 0.856, "claude": 0.709, "vicuna-13b": 0.348, "gpt35": 0.342, "bard": 0.245}
"""By GPT-4, as the records' authors give it: both orders pooled, a tie half a win."""


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_recorded_part_is_said_in_a_language_and_leaves_a_report(call, language, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    output = call(f"demo --recorded --language {language}")
    lines = output.out.splitlines()
    assert output.code == 0 and len(lines) <= 110
    assert not [line for line in lines if cell_len(line) > 80 and not line.startswith("$ ")]
    assert words(language)("demo.recorded") in output.out
    assert f'lang="{language}"' in Path("evenhand-demo/report.html").read_text("utf-8")


def test_the_commands_it_shows_can_be_called_in_its_folder(call, tmp_path, monkeypatch):
    output = call("demo --recorded").out
    monkeypatch.chdir(tmp_path / "evenhand-demo")
    for command in COMMANDS:
        _, _, rest = output.partition(f"$ evenhand {command}\n")
        again = call.ok(*command.split())
        assert rest.startswith(again.out)
    shown = call(*CONTRADICTION.split())
    assert f"evenhand {CONTRADICTION}" in output and "Assistant 1" in shown.out


def test_the_bundled_records_give_what_their_authors_published(call):
    call("demo --recorded")
    rates = f"--judge gpt-4 --on-conflict split --json --store {STORE}"
    rows = call(f"leaderboard {JUDGES} {rates}").json["rows"]
    assert {row["candidate"]: row["win_rate"] for row in rows} == pytest.approx(PUBLISHED, abs=6e-4)


def test_every_bundled_record_has_its_source_and_licence():
    folder = resources.files("evenhand.examples") / "published"
    sources = (folder / "SOURCES.md").read_text("utf-8")
    files = [entry for entry in folder.iterdir() if entry.name.endswith(".gz")]
    assert {entry.name for entry in files} == {f"{name}.jsonl.gz" for name in (JUDGES, PEOPLE)}
    for entry in files:
        (row,) = [line for line in sources.splitlines() if f"`{entry.name}`" in line]
        assert "MIT" in row or "Apache-2.0" in row
    assert sum(len(entry.read_bytes()) for entry in files) < 500_000


def test_a_folder_that_cannot_be_made_is_told_before_anything(call):
    put("evenhand-demo", "")
    output = call("demo --recorded")
    assert output.code == 2 and is_told(output.err, "cli.no_demo_folder") and not output.out


@pytest.mark.model
def test_the_live_part_warns_judges_and_fits_a_screen(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    output = call("demo --small --yes")
    assert output.code in (0, 1)
    live = output.out[output.out.index("2. Live") :]
    assert "no better than chance" in live and live.count("= 1 planned") == len(KINDS)


def test_where_it_cannot_go_on_it_ends_well(call, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    output = call.ok("demo --yes --small")
    assert "The live part is left out" in output.out
    assert resume_advice("sqlite:demo.db").startswith("To continue: ")
    assert "continue" not in resume_advice(MEMORY)
