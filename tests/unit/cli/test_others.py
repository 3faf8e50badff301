"""`init`, `check`, `doctor`, `protocols`, and the group itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evenhand.cli.main import COMMANDS
from evenhand.judges import PROVIDERS
from evenhand.kinds import KINDS
from tests.suites import RUBRIC, evenhand, samples, write_rows, write_suite
from tests.unit.cli.conftest import CallCommand


def scores(**changed: object) -> dict[str, object]:
    given = {"evidence": ["Answer number 0"], "rationale": "fits", "score": 3} | changed
    return {"scores": {"correct": given, "clear": given}, "failure_tags": [], "notes": ""}


@pytest.fixture
def replies(tmp_path: Path) -> list[str]:
    """The arguments of a check of three replies: in order, fenced, and wrong."""
    write_rows(tmp_path, samples(3), "units.jsonl")
    (tmp_path / "rubric.json").write_text(json.dumps(RUBRIC))
    fenced = f"```json\n{json.dumps(scores(evidence=['Answer number 1']))}\n```"
    given = {"u0": scores(), "u1": fenced, "u2": "{}"}
    rows = [{"unit": unit, "reply": reply} for unit, reply in given.items()]
    write_rows(tmp_path, rows, "replies.jsonl")
    named = "--units units.jsonl --replies replies.jsonl --rubric rubric.json"
    return ["check", *named.split()]


def test_check_finds_problems_and_fixes(call: CallCommand, replies: list[str]) -> None:
    said = call(*replies, "--json")
    assert said.code == 1
    assert (said.json["units"], said.json["ok"]) == (3, 2)
    assert {p["unit"] for p in said.json["problems"]} == {"u2"}
    assert all(p.keys() == {"unit", "code", "path", "message"} for p in said.json["problems"])
    assert said.json["fixes"] == [{"unit": "u1", "code": "unwrapped", "path": ""}]
    assert "u2: schema: scores: missing" in call(*replies).out


def test_check_of_good_replies_is_exit_0(
    call: CallCommand, replies: list[str], tmp_path: Path
) -> None:
    unit = samples(1)[0]
    del unit["id"]
    write_rows(tmp_path, [unit], "units.jsonl")
    write_rows(tmp_path, [{"meta": unit["meta"], **scores()}], "replies.jsonl")
    said = call(*replies, "--json")
    assert (said.code, said.json["ok"], said.json["problems"]) == (0, 1, [])


def test_check_of_an_unknown_unit_is_exit_3(
    call: CallCommand, replies: list[str], tmp_path: Path
) -> None:
    write_rows(tmp_path, [{"unit": "nobody", "reply": "{}"}], "replies.jsonl")
    said = call(*replies, "--json")
    assert (said.code, said.out) == (3, "")
    assert "replies.jsonl:1" in said.err


def test_check_of_a_rubric(call: CallCommand, tmp_path: Path) -> None:
    rubric = json.loads(json.dumps(RUBRIC))
    (tmp_path / "rubric.json").write_text(json.dumps(rubric, indent=1))
    assert call("check", "--rubric", "rubric.json", "--json").json["ok"] is True
    rubric["dimensions"][1]["id"] = "correct"
    (tmp_path / "rubric.json").write_text(json.dumps(rubric, indent=1))
    said = call("check", "--rubric", "rubric.json")
    assert said.code == 2
    assert "rubric.json:" in said.err
    assert call("check").code == 2


def test_a_rubric_with_half_a_surrogate_pair_is_exit_2(call: CallCommand, tmp_path: Path) -> None:
    rubric = json.loads(json.dumps(RUBRIC))
    rubric["dimensions"][1]["definition"] = "\ud800"
    (tmp_path / "rubric.json").write_text(json.dumps(rubric, indent=1))
    said = call("check", "--rubric", "rubric.json")
    assert (said.code, said.out) == (2, "")
    assert "rubric.json:23: a dimension holds what is no text or number" in said.err


@pytest.mark.parametrize("language", ["ru", "zh", "ja", "en"])
def test_what_init_makes_runs_as_it_is(call: CallCommand, tmp_path: Path, language: str) -> None:
    assert call("init", "suite", "--language", language).code == 0
    phrase = {"ru": "свидетельств не найдено", "zh": "未找到相关证据", "ja": "該当する根拠なし"}
    said = phrase.get(language, "no evidence found")
    judge = (
        "import json\nasync def f(messages, schema, params):\n"
        "    scores = schema['properties']['scores']['properties']\n"
        f"    given = {{'evidence': [], 'rationale': '{said}'}}\n"
        "    found = {k: given | {'score': v['properties']['score']['enum'][0]}"
        " for k, v in scores.items()}\n"
        "    return json.dumps({'scores': found, 'failure_tags': [], 'notes': ''})\n"
    )
    (tmp_path / "suite" / "filler.py").write_text(judge)
    told = call("run", "suite", "--judge", "python/filler:f", "--json")
    assert (told.code, told.json["failures"], told.json["pending"]) == (0, {}, 0)
    assert told.json["verdicts"] > 0


def test_init_overwrites_nothing(call: CallCommand, tmp_path: Path) -> None:
    (tmp_path / "evenhand.toml").write_text("mine")
    said = call("init")
    assert said.code == 2
    assert (tmp_path / "evenhand.toml").read_text() == "mine"
    assert [p.name for p in tmp_path.iterdir()] == ["evenhand.toml"]


def test_doctor_looks_at_the_suite_and_its_store(call: CallCommand, tmp_path: Path) -> None:
    found = call("doctor", "--json")
    assert (found.code, found.json["ok"]) == (0, True)
    assert "--   suite: no evenhand.toml here" in call("doctor").out
    write_suite(tmp_path, 1)
    call("run")
    assert "1 runs" in call("doctor").out
    (tmp_path / "evenhand.toml").write_text("nonsense = 1\n")
    said = call("doctor", "--json")
    assert (said.code, said.json["ok"]) == (1, False)
    assert any("evenhand.toml" in f["said"] for f in said.json["findings"] if not f["ok"])


def test_doctor_knows_the_key_of_every_provider_that_needs_one(
    call: CallCommand, monkeypatch: pytest.MonkeyPatch
) -> None:
    for provider in PROVIDERS.values():
        for name in provider.key_names:
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GOOGLE_API_KEY", "x" * 20)
    findings = {found["what"]: found["said"] for found in call("doctor", "--json").json["findings"]}
    assert findings["GOOGLE_API_KEY"] == "set in the environment"
    assert "GEMINI_API_KEY" not in findings
    assert "OLLAMA_API_KEY" not in findings
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY"):
        assert findings[name].startswith("not set")
    assert "xllamacpp" in findings["embedded judge"]


def test_protocols_are_listed_and_shown(call: CallCommand) -> None:
    listed = call("protocols", "--json").json["protocols"]
    assert [(one["name"], one["kind"]) for one in listed] == [(kind,) * 2 for kind in KINDS]
    for one in listed:
        assert set(one["languages"]) == {"ru", "zh", "ja", "en"}
        assert one["name"] in call("protocols").out
        shown = ("protocols", "show", one["name"], "--language", "ja")
        assert "{{" not in call(*shown).out
    assert call("protocols", "show", "rubrik").code == 2


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
