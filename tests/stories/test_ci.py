"""The CI story end to end: the workflow of docs/ci.md and the action of this repository, executed
step by step for four pull requests that share a cached ledger."""

from __future__ import annotations

import csv
from xml.etree import ElementTree

import pytest

from tests.crash.watching import counts
from tests.provider import child
from tests.stories.telling import at_loopback, blocks, typed
from tests.stories.workflow import Job, workflow

PAGE = "docs/ci.md"
COMMENTED = "comment.md"
GH = f"""#!/usr/bin/env bash
set -e
[ -n "$GH_TOKEN" ] || [ -n "$1" ]
echo "$@" >> gh.log
case " $* " in *" --edit-last "*) [ -e {COMMENTED} ] || exit 1 ;; esac
cp "${{@: -1}}" {COMMENTED}
"""
PROGRAM = """
import csv
with open("evals/answers.csv", "w", newline="", encoding="utf-8") as file:
    table = csv.writer(file)
    table.writerow(["question", "variant", "answer"])
    for number in range({questions}):
        for variant, sentences in (("main", 2), ("change", {sentences})):
            text = " ".join(f"So it is with {{number}}, {{part}}." for part in range(sentences))
            end = "{mark}" if variant == "change" else "main"
            table.writerow([f"What of {{number}}?", variant, f"{{text}} {{end}}"])
"""


@pytest.fixture
def url():
    with child("reading") as address:
        yield address


def checkout(folder, *, questions, sentences, mark):
    """A repository whose program answers with so many sentences."""
    suite = folder / "evals"
    suite.mkdir(parents=True)
    (suite / "answer.py").write_text(
        PROGRAM.format(questions=questions, sentences=sentences, mark=mark)
    )
    (tables,) = blocks(PAGE, "A whole workflow for GitHub", "toml")
    top = 'name = "evals"\nprotocol = "rubric"\ndata = ["answers.csv"]\n'
    top += 'rubric = "Does the answer say enough?"\n[[judges]]\nmodel = "openai/gpt-4.1-mini"\n'
    (suite / "evenhand.toml").write_text(top + tables)
    (folder / "bin").mkdir()
    (folder / "bin/gh").write_text(GH)
    (folder / "bin/gh").chmod(0o755)
    return folder


def job(folder, url, cache, *, undecided="fail", key="k"):
    environ = at_loopback(url)
    del environ["OPENAI_API_KEY"]
    environ |= {
        "PATH": f"{folder / 'bin'}:{environ['PATH']}",
        "GITHUB_ACTIONS": "true",
        "CI": "true",
    }
    return Job(folder, environ, {"OPENAI_API_KEY": key} if key else {}, cache, undecided)


def test_pull_requests_pass_fail_or_leave_it_open(tmp_path, url):
    cache = tmp_path / "cached.db"
    good = checkout(tmp_path / "good", questions=80, sentences=3, mark="good")
    first = job(good, url, cache)
    assert first.run() == 0, first.output
    assert "passed" in (good / "evals/comment.md").read_text().splitlines()[0]
    assert first.values["steps.gate.outputs.outcome"] == "passed"
    assert counts(url)["calls"] == 160
    assert set(first.artefacts) == {"evenhand-report.html", "evenhand-gate.xml"}
    assert b"<html" in first.artefacts["evenhand-report.html"]
    suite = ElementTree.fromstring(first.artefacts["evenhand-gate.xml"])
    assert next(suite.iter("testcase"), None) is not None

    bad = checkout(tmp_path / "bad", questions=80, sentences=1, mark="bad")
    second = job(bad, url, cache)
    assert second.run() == 1, second.output
    assert (bad / "evals/comment.md").read_text().startswith("### Evenhand: failed")
    assert "<failure" in second.artefacts["evenhand-gate.xml"].decode()
    assert counts(url)["calls"] == 240, "the answers of main are in the cached ledger"


@pytest.mark.parametrize(("undecided", "code"), [("fail", 7), ("pass", 0)])
def test_not_enough_evidence_is_neither(tmp_path, url, undecided, code):
    few = checkout(tmp_path / "few", questions=10, sentences=2, mark="same")
    third = job(few, url, tmp_path / "cached.db", undecided=undecided)
    assert third.run() == code, third.output
    assert third.values["steps.gate.outputs.outcome"] == "undecided"
    comment = (few / "evals/comment.md").read_text()
    assert comment.startswith("### Evenhand: not enough evidence")
    assert ("::warning" in third.output) is (code == 0)
    assert set(third.artefacts) == {"evenhand-report.html", "evenhand-gate.xml"}
    assert "--edit-last" in (few / "evals/gh.log").read_text()


def test_a_fork_without_the_secret_sends_nothing(tmp_path, url):
    fork = checkout(tmp_path / "fork", questions=10, sentences=2, mark="fork")
    fourth = job(fork, url, tmp_path / "cached.db", key="")
    fourth.environ = {k: v for k, v in fourth.environ.items() if k != "OPENAI_BASE_URL"}
    assert fourth.run() == 4, fourth.output
    assert "OPENAI_API_KEY" in fourth.output
    assert "nothing was sent" in fourth.output.lower()
    assert counts(url)["calls"] == 0 and not fourth.artefacts


@pytest.mark.parametrize(("questions", "sentences", "code"), [(80, 1, 1), (10, 2, 0)])
def test_the_script_for_elsewhere_lets_a_lack_of_evidence_pass(
    tmp_path, url, questions, sentences, code
):
    folder = checkout(tmp_path / "here", questions=questions, sentences=sentences, mark="x")
    (script,) = blocks(PAGE, "Elsewhere")
    done = typed(f"python evals/answer.py\n{script}", folder, at_loopback(url))
    assert done.returncode == code, done.stdout + done.stderr
    assert (folder / "evals/gate.xml").exists() and (folder / "evals/report.html").exists()
    with (folder / "evals/answers.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 2 * questions


def test_the_workflow_asks_for_no_more_than_it_needs():
    parsed = workflow()
    assert parsed["permissions"] == {"contents": "read", "pull-requests": "write"}
    assert "pull_request_target" not in str(parsed)
