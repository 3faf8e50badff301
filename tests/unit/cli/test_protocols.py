"""`protocols`: list, `new`, `show` and `lint`."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.kinds import KINDS
from evenhand.kinds.protocol import LANGUAGES
from tests.cases import cases
from tests.sentences import is_told
from tests.suites import (
    write_answers,
    write_checklist,
    write_pairs,
    write_suite,
)
from tests.unit.cli.conftest import put


def test_protocols_are_listed_and_shown(call):
    listed = call.json("protocols")["protocols"]
    assert [(one["name"], one["kind"]) for one in listed] == [(kind,) * 2 for kind in sorted(KINDS)]
    for one in listed:
        assert set(one["languages"]) == set(LANGUAGES)
        assert one["name"] in call("protocols").out
    assert call("protocols show rubrik").code == 2


WRITE = {
    "pairwise": write_pairs,
    "rubric": write_suite,
    "weighted": write_answers,
    "checklist": write_checklist,
}


SHOWN = {
    "pairwise": ("[[topic ", "[[candidate_1 ", "[[candidate_2 "),
    "rubric": ("[[question ", "[[model_output ", "[[rubric "),
    "checklist": ("[[question ", "[[model_output ", "[[criteria "),
    "weighted": ("[[prompt ", "[[answer ", "[[rubric "),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_protocol_lints_clean_and_runs(call, tmp_path, kind):
    made = call.ok(f"protocols new mine --from {kind}")
    for line in made.out.split("\n\n")[0].splitlines():
        assert (tmp_path / line).is_file()
    assert "protocols lint mine" in made.out
    linted = call("protocols lint mine")
    assert (linted.code, linted.out) == (0, "") and is_told(linted.err, "cli.no_findings")
    for language in LANGUAGES:
        WRITE[kind](tmp_path, 2, protocol="mine", language=language)
        ran = call.ok("run --json")
        assert (ran.json["verdicts"], ran.json["planned"]) == (2, 2)


def test_nothing_is_overwritten_and_an_origin_is_needed(call, tmp_path):
    Path("mine").mkdir()
    said = call("protocols new mine --from rubric")
    assert said.code == 2 and is_told(said.err, "cli.another_folder")
    assert list((tmp_path / "mine").iterdir()) == []
    assert call("protocols new other").code == 2
    assert call("protocols new other --from poetry").code == 2
    assert not Path("other").exists()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kind", KINDS)
def test_show_prints_the_prompt_as_a_judge_would_see_it(call, tmp_path, kind, language):
    call(f"protocols new mine --from {kind}")
    full = call.ok(f"protocols show {kind} --language {language}")
    assert full.out.startswith("system:\n") and "\nuser:\n" in full.out
    assert all(block in full.out for block in SHOWN[kind]) and "{{" not in full.out
    assert call(f"protocols show mine --language {language}").out == full.out
    compact = call.ok(f"protocols show {kind} --language {language} --compact")
    assert "{{" not in compact.out and len(compact.out) < len(full.out)
    if kind == "weighted":  # types that are not those of the examples
        path = tmp_path / "mine" / "protocol.toml"
        path.write_text(path.read_text("utf-8").replace('"fact"', '"recall"'), "utf-8")
        assert "[[answer " in call(f"protocols show mine --language {language}").out


@pytest.mark.parametrize("kind", KINDS)
def test_show_fills_a_prompt_of_the_users_own(call, kind):
    names = {"pairwise": "TOPIC", "weighted": "Task_Specific_Rubric"}
    name = names.get(kind, "Question")
    put("mine.md", f"Urteile: {{{{ {name} }}}} {{{{ nichts }}}}")
    said = call.ok(f"protocols show {kind} --prompt mine.md --language de")
    system, _, user = said.out.partition("user:\n")
    assert system.startswith("system:\nUrteile: ")
    assert "{{ nichts }}" in system
    assert name not in system
    assert user.startswith('{"')


@cases
def test_what_cannot_be_shown_or_linted_is_told(call, arguments, key, says):
    Path("empty").mkdir()
    put("fair.md", "Be fair.")
    done = call("protocols", *arguments)
    assert (done.code, done.out) == (2, "")
    assert says in done.err and is_told(done.err, key), done.err


def test_lint_tells_each_finding_on_a_line_and_as_json(call, tmp_path):
    call("protocols new mine --from weighted")
    path = tmp_path / "mine" / "protocol.toml"
    text = path.read_text(encoding="utf-8").replace("logic_and_fact = 60", "logic_and_fact = 70")
    path.write_text(text, encoding="utf-8")
    said = call("protocols lint mine")
    assert said.code == 1
    assert "mine/protocol.toml: " in said.out
    assert is_told(said.out, "kinds.weights_total", type="fact", total=110)
    found = call("protocols lint mine --json")
    assert (found.code, found.json["ok"]) == (1, False)
    assert found.json["findings"][0]["file"] == "protocol.toml"
    assert len(found.json["findings"]) == len(said.out.splitlines())
    clean = call("protocols lint weighted --json")
    assert (clean.code, clean.json) == (0, {"ok": True, "findings": []})


OWN_PROMPTS = {
    "pairwise": (
        "Сравни тезисы A и B: {{tema}}. Сделай двойной прогон.\nwinner: A, B, tie",
        ["kinds.unknown_placeholder", "kinds.both_orders"],
    ),
    "rubric": ('评分 model_output，原样返回 "meta"。failure_tags: []', ["kinds.unsent_part"]),
    "weighted": ("critical_fail と task_type を確認。{{ruburic}}", ["kinds.misspelt_placeholder"]),
}


@pytest.mark.parametrize("kind", OWN_PROMPTS)
def test_lint_of_a_prompt_of_the_users_own(call, kind):
    prompt, expected = OWN_PROMPTS[kind]
    put("mine.md", prompt)
    named = call(f"protocols lint {kind} --prompt mine.md")
    lines = named.out.splitlines()
    assert named.code == 1 and all(line.startswith("mine.md: ") for line in lines)
    assert all(is_told(line, key) for line, key in zip(lines, expected, strict=True))
    guessed = call("protocols lint --prompt mine.md")
    assert guessed.out == named.out
    assert is_told(guessed.err, "cli.prompt_of", protocol=kind)
    found = call("protocols lint --prompt mine.md --json")
    assert [row["file"] for row in found.json["findings"]] == ["mine.md"] * len(expected)
    put("mine.md", 'Score model_output; copy "meta" back.')
    clean = call("protocols lint rubric --prompt mine.md --expose-meta")
    assert (clean.code, clean.out) == (0, "") and is_told(clean.err, "cli.no_findings")


@pytest.mark.parametrize("arguments", [("run",), ("run", "--dry-run")])
def test_run_says_what_lint_says_of_a_prompt(call, tmp_path, arguments):
    prompt, expected = OWN_PROMPTS["pairwise"]
    put("mine.md", prompt)
    write_pairs(tmp_path, 1, "line", judge=LINE_JUDGE, prompt="mine.md")
    done = call.ok(*arguments)
    notes = [line for line in done.err.splitlines() if line.startswith("Note: mine.md: ")]
    assert len(notes) == len(expected)
    assert all(is_told(note, key) for key, note in zip(expected, notes, strict=True))


LINE_JUDGE = """
async def line(messages, schema, params):
    return "x | tie | tie | tie | tie | tie | tie | одинаково"
"""
