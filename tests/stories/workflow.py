"""Enough of GitHub Actions to execute the workflow of docs/ci.md, with the action of this
repository, step after step as a runner would; what `uses` something of GitHub's own is played
here."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tests.stories.telling import ROOT, blocks
from tests.waiting import PATIENCE

ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
CALL = re.compile(r"hashFiles\(format\('\{0\}/(.*?)', (.*?)\)\)")
NAME = re.compile(r"(?:inputs|steps|github|secrets|env)(?:\.[\w-]+)+")


def workflow():
    """The workflow that the page tells to copy."""
    (text,) = blocks("docs/ci.md", "A whole workflow for GitHub", "yaml")
    return yaml.safe_load(text)


@dataclass
class Job:
    """One run of the workflow in a checkout."""

    folder: Path
    environ: Mapping[str, str]
    secrets: Mapping[str, str]
    cache: Path
    undecided: str = "fail"
    values: dict[str, str] = field(default_factory=dict)
    outcomes: dict[str, str] = field(default_factory=dict)
    output: str = ""
    artefacts: dict[str, bytes] = field(default_factory=dict)
    failed: int = 0

    def run(self):
        """The exit code of the step that failed, or 0."""
        (job,) = workflow()["jobs"].values()
        for step in job["steps"]:
            if "run" in step:
                self._script(step, step["run"], {})
            elif "evenhand" in step["uses"]:
                self._action(step)
        return self.failed

    def _action(self, step):
        defaults = {name: str(of.get("default", "")) for name, of in ACTION["inputs"].items()}
        given = {name: str(value) for name, value in step["with"].items()}
        for name, value in (defaults | given | {"undecided": self.undecided}).items():
            self.values[f"inputs.{name}"] = self._filled(value)
        environ = {name: self._filled(value) for name, value in step["env"].items()}
        for each in ACTION["runs"]["steps"]:
            if not self._is_due(each):
                self.outcomes[each.get("id", "")] = "skipped"
            elif "run" in each and each["name"] != "Install":
                self._script(each, each["run"], environ)
            elif "uses" in each:
                self._played(each)

    def _script(self, step, script, environ):
        files = {
            name: self.folder / f".{name}" for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")
        }
        own = {name: self._filled(str(value)) for name, value in step.get("env", {}).items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=self.folder / self._filled(step.get("working-directory", ".")),
            env={**self.environ, **environ, **own, **{name: str(at) for name, at in files.items()}},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        self.output += done.stdout + done.stderr
        self.failed = self.failed or done.returncode
        self.outcomes[step.get("id", "")] = "failure" if done.returncode else "success"
        if files["GITHUB_OUTPUT"].exists():
            for line in files["GITHUB_OUTPUT"].read_text().splitlines():
                name, _, value = line.partition("=")
                self.values[f"steps.{step.get('id')}.outputs.{name}"] = value

    def _played(self, step):
        paths = [self.folder / path for path in self._filled(step["with"].get("path", "")).split()]
        if "cache/restore" in step["uses"] and self.cache.exists():
            shutil.copyfile(self.cache, paths[0])
        elif "cache/save" in step["uses"]:
            shutil.copyfile(paths[0], self.cache)
        elif "upload-artifact" in step["uses"]:
            self.artefacts = {path.name: path.read_bytes() for path in paths}

    def _filled(self, text):
        return EXPRESSION.sub(lambda match: self._value(match[1]), text)

    def _value(self, name):
        kind, _, rest = name.partition(".")
        if kind == "secrets":
            return self.secrets.get(rest, "")
        if (step := re.fullmatch(r"steps\.(\w+)\.outcome", name)) is not None:
            return self.outcomes.get(step[1], "")
        known = {"github.event_name": "pull_request", "github.event.pull_request.number": "7"}
        return self.values.get(name) or known.get(name, "")

    def _is_due(self, step):
        condition = step.get("if", "success()")
        condition = CALL.sub(self._hash, condition)
        condition = NAME.sub(lambda match: repr(self._value(match[0])), condition)
        words = condition.replace("&&", " and ").replace("||", " or ")
        state = {"always": lambda: True, "success": lambda: not self.failed}
        return bool(eval(words, {"__builtins__": {}}, state))

    def _hash(self, match):
        path = self.folder / self._value(match[2]) / match[1]
        return repr("digest" if path.exists() else "")
