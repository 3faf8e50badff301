"""The key of a provider appears nowhere: not in the store, the output, an export or a traceback."""

from __future__ import annotations

import base64
import json
import traceback
from pathlib import Path

import pytest
from aiohttp import web

from tests import provider as p
from tests.suites import at, evenhand, evenhand_here, judged, write_suite

KEY = "sk-proj-Zq8/w+3NfakeKEYfake0123456789"
ENV = {"OPENAI_API_KEY": KEY}
FORMS = (KEY, base64.b64encode(KEY.encode()).decode().rstrip("=")[:-1], KEY.encode().hex())


def spotless(text: str | bytes) -> None:
    raw = text.encode() if isinstance(text, str) else text
    for form in FORMS:
        assert form.encode() not in raw, form


def spotless_folder(folder: Path) -> None:
    """No file holds the key: store, journal, lock, export."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any(path.name.startswith("evenhand.db") for path in files)
    for path in files:
        spotless(path.read_bytes())


async def repeating(call: p.Call) -> web.StreamResponse:
    """A verdict that quotes the key back, in its notes and as its model's name."""
    assert call.key == KEY
    reply = json.loads(json.dumps(p.valid_reply(call.body, call.schema)))
    reply["notes"] = f"Your key is {call.key}, or {call.key.encode().hex()}"
    body = json.loads(p.completion(json.dumps(reply)))
    return web.json_response(body | {"model": f"model-{call.key}"})


async def nonsense(call: p.Call) -> web.StreamResponse:
    return web.Response(text=f"<html>{call.headers['Authorization']}</html>")


BEHAVIOURS: dict[str, p.Behaviour] = {
    "verdict": repeating,
    "401": p.echoing_key(401),
    "400": p.echoing_key(400),
    "429": p.echoing_key(429),
    "500": p.echoing_key(500),
    "307": p.echoing_key(307),
    "nonsense": nonsense,
    "reset": p.resetting(KEY.encode()),
}


@pytest.mark.parametrize("name", BEHAVIOURS)
async def test_an_echoed_key_is_kept_nowhere(tmp_path: Path, name: str) -> None:
    told: list[str] = []
    async with p.Provider(BEHAVIOURS[name]) as provider:
        write_suite(tmp_path, 2, at(provider.url), settings={"repairs": 1})
        summary = await judged(tmp_path, ENV, notice=told.append)
    assert provider.calls[0].key == KEY
    spotless("\n".join(told))
    if summary.stopped:
        spotless("".join(traceback.format_exception(summary.stopped)))
    spotless(repr(summary))
    spotless_folder(tmp_path)


@pytest.mark.parametrize("behaviour", ["fast", "echoing"])
def test_no_command_writes_the_key(tmp_path: Path, behaviour: str) -> None:
    with p.child(behaviour) as url:
        write_suite(tmp_path, 2, at(url))
        (tmp_path / ".env").write_text(f"OPENAI_API_KEY={KEY}\n")
        commands = [
            ["run", "--json"],
            ["run", "--dry-run"],
            ["runs", "--json"],
            ["show", "--json"],
            ["doctor"],
            ["export", "--full", "-o", "out.jsonl"],
            ["export", "--full", "-o", "-"],
        ]
        for command in commands:
            done = evenhand_here(*command, cwd=tmp_path)
            assert done.returncode in (0, 4), done.stderr
            spotless(done.stdout + done.stderr)
    (tmp_path / ".env").unlink()
    spotless_folder(tmp_path)


def test_a_bug_shows_no_key_in_its_traceback(tmp_path: Path) -> None:
    """A store that breaks under a judge that holds a key: exit 70 or not, the key stays inside."""
    write_suite(tmp_path, 1, at("http://127.0.0.1:9/v1"))
    broken = "import evenhand.runs.forecast as f\nf.token_guess = None\n"
    (tmp_path / "sitecustomize.py").write_text(broken)
    env = ENV | {"PYTHONPATH": str(tmp_path)}
    done = evenhand("run", "--dry-run", cwd=tmp_path, env=env)
    assert (done.returncode, "Traceback" in done.stderr) == (70, True), done.stderr
    spotless(done.stdout + done.stderr)


def test_a_key_in_the_suite_is_refused(tmp_path: Path) -> None:
    write_suite(tmp_path, 1, at("http://127.0.0.1:9/v1", api_key=KEY))
    done = evenhand("run", cwd=tmp_path)
    assert done.returncode == 2
    assert "api_key" in done.stderr
