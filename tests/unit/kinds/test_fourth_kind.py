"""A kind that is one folder and one line goes through every command that reads and judges."""

import json
import shutil
from pathlib import Path

import pytest

from evenhand.kinds import KINDS
from evenhand.words import words
from tests.suites import write_rows
from tests.unit.cli.conftest import CallCommand, call  # noqa: F401 - a fixture
from tests.unit.web.serving import served

PROTOCOL = Path(__file__).parents[2] / "fourth_kind" / "protocol"
JUDGE = """
import json

async def good(messages, schema, params):
    text = messages[1]["content"]
    if "mute" in text:
        return "{}"
    return json.dumps({"why": "it says so", "supported": "v2" in text})
"""


@pytest.fixture
def claims(monkeypatch):
    """The registry with one line more."""
    monkeypatch.setitem(KINDS.modules, "claim", "tests.fourth_kind.kind")


@pytest.fixture
def judged(claims, call, tmp_path):  # noqa: F811
    rows = [
        {"id": f"{variant}-{number}", "claim": f"Claim {number}", "text": f"A text of {variant}."}
        | {"meta": {"prompt_variant": variant, "question_id": f"q{number}"}}
        for number in range(6)
        for variant in ("v1", "v2")
    ]
    rows.append(rows[0] | {"id": "mute", "text": "mute", "meta": {"prompt_variant": "v1"}})
    write_rows(tmp_path, rows, "claims.jsonl")
    (tmp_path / "judge.py").write_text(JUDGE)
    shutil.copytree(PROTOCOL, tmp_path / "protocol")
    (tmp_path / "evenhand.toml").write_text(
        'name = "claims"\nprotocol = "protocol"\nlanguage = "en"\ndata = ["claims.jsonl"]\n'
        '[[judges]]\nmodel = "python/judge:good"\n[compare]\nby = "prompt_variant"\n'
        'baseline = "v1"\n'
    )
    return tmp_path


def test_it_is_judged_shown_exported_checked_compared_and_reported(
    call,  # noqa: F811
    judged,
):
    ran = call("run", "--json")
    assert ran.code == 0, ran.err
    assert (ran.json["verdicts"], ran.json["failures"]) == (12, {"schema": 1})
    assert call("run", "--json").json["calls"] == 0

    shown = call("show").out
    assert "supported" in shown and words("en").gloss("reason", "schema") in shown
    unit = call("show", "latest", "v2-3").out
    assert "Claim 3" in unit and "supported: it says so" in unit

    assert call("export", "-o", "out.jsonl").code == 0
    rows = [json.loads(line) for line in (judged / "out.jsonl").read_text().splitlines()]
    assert rows[0] == {"claim": "Claim 0", "supported": False, "why": "it says so"}
    assert call("export", "-o", "full.csv", "--full").code == 0

    replies = [{"unit": "v1-0", "reply": '{"why": "", "supported": 1}'}]
    write_rows(judged, replies, "replies.jsonl")
    files = ("--units", "claims.jsonl", "--replies", "replies.jsonl")
    checked = call("check", "--protocol", "protocol", *files, "--json")
    assert [problem["path"] for problem in checked.json["problems"]] == ["supported"]

    compared = call("compare", "--json")
    assert compared.code == 0, compared.err
    overall = next(row for row in compared.json["rows"] if row["dimension"] == "overall")
    assert (overall["mean"], overall["baseline_mean"]) == (1.0, 0.0)
    gate = call("gate", "--better", "--json")
    assert gate.code in (0, 7), gate.err
    assert call("settle", "latest").code == 0

    assert call("report", "-o", "report.html").code == 0
    page = (judged / "report.html").read_text(encoding="utf-8")
    assert "Claim 3" in page and "supported: it says so" in page


def test_its_pages_can_be_looked_at(call, judged):  # noqa: F811
    assert call("run").code == 0
    with served(judged / "evenhand.db") as site:
        for page in ("", "/units", "/unit?id=v2-3", "/changes", "/protocol"):
            answer = site.get(f"/runs/latest{page}")
            assert answer.status_code == 200, answer.text
        assert "supported: it says so" in site.get("/runs/latest/unit?id=v2-3").text
        overview = site.get("/runs/latest").text
    assert "claim" in overview and "v1" in overview and "v2" in overview
