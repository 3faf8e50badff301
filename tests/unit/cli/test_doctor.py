"""The command `doctor`."""

from __future__ import annotations

from evenhand.judges import PROVIDERS
from tests.sentences import is_told
from tests.suites import write_suite
from tests.unit.cli.conftest import put


def test_doctor_looks_at_the_suite_and_its_store(call, tmp_path):
    found = call("doctor --json")
    assert (found.code, found.json["ok"]) == (0, True)
    assert is_told(call("doctor").out, "cli.no_suite", file="evenhand.toml")
    write_suite(tmp_path, 1)
    call("run")
    assert is_told(call("doctor").out, "cli.store_runs", n="1 run")
    put("evenhand.toml", "nonsense = 1\n")
    said = call("doctor --json")
    assert (said.code, said.json["ok"]) == (1, False)
    assert any("evenhand.toml" in f["said"] for f in said.json["findings"] if not f["ok"])


def test_doctor_knows_the_key_of_every_provider_that_needs_one(call, monkeypatch):
    for provider in PROVIDERS.values():
        for name in provider.key_names:
            monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GOOGLE_API_KEY", "x" * 20)
    findings = {found["what"]: found["said"] for found in call.json("doctor")["findings"]}
    assert findings["GOOGLE_API_KEY"] == "set in the environment"
    assert "GEMINI_API_KEY" not in findings
    assert "OLLAMA_API_KEY" not in findings
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY"):
        assert findings[name].startswith("not set")
    assert "xllamacpp" in findings["embedded judge"]
