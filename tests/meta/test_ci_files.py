"""What other repositories take from this one: the action and the hooks, run as they stand."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.cases import cases
from tests.suites import RUBRIC, samples, write_suite

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
ENVIRONMENT = os.environ | {
    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
}


def step(name, folder, **environment):
    """A step of the action, by its name, as GitHub's shell would run it."""
    (script,) = [each["run"] for each in ACTION["runs"]["steps"] if each.get("name") == name]
    files = {"GITHUB_OUTPUT": "output", "GITHUB_STEP_SUMMARY": "summary"}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=folder,
        env=ENVIRONMENT | {key: str(folder / file) for key, file in files.items()} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def write(folder, **gate):
    """A suite of two variants whose judge is a function."""
    rows = [
        row | {"meta": {"prompt_variant": f"v{i % 2}", "question_id": f"q{i // 2}"}}
        for i, row in enumerate(samples(16))
    ]
    compare = {"by": "prompt_variant", "baseline": "v0"}
    return write_suite(folder, rows, compare=compare, gate=gate)


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    folder = write(tmp_path_factory.mktemp("ci"))
    result = step("Judge", folder)
    assert result.returncode == 0, result.stderr
    return folder


@cases
def test_the_action_passes_fails_or_leaves_it_open(
    judged, tmp_path, gate, undecided, code, outcome
):
    shutil.copytree(judged, tmp_path, dirs_exist_ok=True)
    result = step("Gate", write(tmp_path, **gate), GATE="", UNDECIDED=undecided)
    assert result.returncode == code, result.stderr
    assert (tmp_path / "output").read_text() == f"outcome={outcome}\n"
    assert (tmp_path / "summary").read_text().startswith("### evenhand gate: ")
    assert (tmp_path / "evenhand-gate.md").read_text().startswith("### Evenhand: ")
    assert "<testsuite" in (tmp_path / "evenhand-gate.xml").read_text()
    assert ("::warning" in result.stdout) is (outcome == "undecided" and code == 0)


def test_the_action_ends_with_the_code_of_a_mistake(tmp_path):
    result = step("Gate", write(tmp_path), GATE="--modle x", UNDECIDED="")
    assert result.returncode == 2 and not (tmp_path / "output").exists()


def test_inputs_reach_no_script_as_text():
    """What a stranger may write into a pull request must not become a command."""
    for each in ACTION["runs"]["steps"]:
        assert "${{" not in each.get("run", ""), each["name"]


def hook(ident, folder, *files):
    (entry,) = [each["entry"] for each in HOOKS if each["id"] == ident]
    command = f"{entry} {' '.join(files)}"
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, env=ENVIRONMENT, capture_output=True, check=False
    ).returncode


def test_the_hook_for_rubrics_fails_for_one_that_cannot_be_read(tmp_path):
    (tmp_path / "rubric.json").write_text(json.dumps(RUBRIC))
    (tmp_path / "rubric-bad.json").write_text('{"dimensions": []}')
    assert hook("evenhand-rubric", tmp_path, "rubric.json") == 0
    assert hook("evenhand-rubric", tmp_path, "rubric-bad.json", "rubric.json") == 1


def test_the_hook_for_protocols_lints_the_folder_of_a_prompt(tmp_path):
    new = [sys.executable, "-m", "evenhand", "protocols", "new", "mine", "--from", "rubric"]
    subprocess.run(new, cwd=tmp_path, check=True, capture_output=True)
    assert hook("evenhand-protocol", tmp_path, "mine/protocol.toml", "mine/prompts/en.md") == 0
    (tmp_path / "mine/prompts/en.md").write_text("{{nothing_fills_this}}")
    assert hook("evenhand-protocol", tmp_path, "mine/prompts/en.md") == 1


@cases
def test_hooks_look_at_their_files_alone(path, ident):
    matching = [each["id"] for each in HOOKS if re.search(each["files"], path)]
    assert matching == ([ident] if ident else [])


def test_the_workflow_of_the_docs_uses_inputs_that_the_action_has():
    page = (ROOT / "docs/ci.md").read_text("utf-8")
    workflow = yaml.safe_load(page.split("```yaml\n")[1].split("```")[0])
    (uses,) = [each for each in workflow["jobs"]["judge"]["steps"] if "with" in each]
    assert set(uses["with"]) <= set(ACTION["inputs"])
