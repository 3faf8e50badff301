"""The key of a provider goes to its own host, in one header, and appears nowhere else: not in the
store, the output, an export or a traceback."""

from __future__ import annotations

import base64
import json
import traceback

import pytest
from aiohttp import web

from evenhand.errors import AskAgain, CallError, ProviderRefused
from tests import provider as p
from tests.dialects import Endpoint, echoing
from tests.suites import at, evenhand, evenhand_here, judged, write_suite
from tests.unit.judges.questions import opened, question

KEY = "sk-proj-Zq8/w+3NfakeKEYfake0123456789"
ENV = {"OPENAI_API_KEY": KEY}
FORMS = (KEY, base64.b64encode(KEY.encode()).decode().rstrip("=")[:-1], KEY.encode().hex())


def spotless(text):
    raw = text.encode() if isinstance(text, str) else text
    for form in FORMS:
        assert form.encode() not in raw, form


def spotless_folder(folder):
    """No file holds the key: store, journal, lock, export."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert any(path.name.startswith("evenhand.db") for path in files)
    for path in files:
        spotless(path.read_bytes())


async def repeating(call):
    """A verdict that quotes the key back, in its notes and as its model's name."""
    assert call.key == KEY
    reply = p.valid_reply(call.body, call.schema)
    notes = {"notes": f"Your key is {call.key}, or {call.key.encode().hex()}"}
    body = json.loads(p.completion(json.dumps({**reply, **notes})))
    return web.json_response(body | {"model": f"model-{call.key}"})


async def nonsense(call):
    return web.Response(text=f"<html>{call.headers['Authorization']}</html>")


BEHAVIOURS = {
    "verdict": repeating,
    **{str(status): p.echoing_key(status) for status in (401, 400, 429, 500, 307)},
    "nonsense": nonsense,
    "reset": p.resetting(KEY.encode()),
}


@pytest.mark.parametrize("name", BEHAVIOURS)
async def test_an_echoed_key_is_kept_nowhere(tmp_path, name):
    told = []
    async with p.Provider(BEHAVIOURS[name]) as provider:
        write_suite(tmp_path, 2, at(provider.url), settings={"repairs": 1})
        summary = await judged(tmp_path, ENV, notice=told.append)
    assert provider.calls[0].key == KEY
    stopped = traceback.format_exception(summary.stopped) if summary.stopped else []
    spotless("\n".join([*told, *stopped, repr(summary)]))
    spotless_folder(tmp_path)


@pytest.mark.parametrize("behaviour", ["fast", "echoing"])
def test_no_command_writes_the_key(tmp_path, behaviour):
    commands = ["run --json", "run --dry-run", "runs --json", "show --json", "doctor"]
    with p.child(behaviour) as url:
        write_suite(tmp_path, 2, at(url))
        (tmp_path / ".env").write_text(f"OPENAI_API_KEY={KEY}\n")
        for command in (*commands, "export --full -o out.jsonl", "export --full -o -"):
            done = evenhand_here(command, cwd=tmp_path)
            assert done.returncode in (0, 4), done.stderr
            spotless(done.stdout + done.stderr)
    (tmp_path / ".env").unlink()
    spotless_folder(tmp_path)


def test_a_bug_shows_no_key_in_its_traceback(tmp_path):
    write_suite(tmp_path, 1, at("http://127.0.0.1:9/v1"))
    broken = "import evenhand.runs.forecast as f\nf.token_guess = None\n"
    (tmp_path / "sitecustomize.py").write_text(broken)
    env = ENV | {"PYTHONPATH": str(tmp_path)}
    done = evenhand("run --dry-run", cwd=tmp_path, env=env)
    assert (done.returncode, "Traceback" in done.stderr) == (70, True), done.stderr
    spotless(done.stdout + done.stderr)


def test_a_key_in_the_suite_is_refused(tmp_path):
    write_suite(tmp_path, 1, at("http://127.0.0.1:9/v1", api_key=KEY))
    done = evenhand_here("run", cwd=tmp_path)
    assert (done.returncode, "api_key" in done.stderr) == (2, True)


# Providers beside OpenAI

KEYS = {
    "anthropic": ("ANTHROPIC_API_KEY", "x-api-key"),
    "google": ("GEMINI_API_KEY", "x-goog-api-key"),
    "openrouter": ("OPENROUTER_API_KEY", "Authorization"),
    "ollama": ("OLLAMA_API_KEY", "Authorization"),
    "azure": ("AZURE_OPENAI_API_KEY", "api-key"),
}
HEADERS = [header for _, header in KEYS.values()]


@pytest.fixture(params=KEYS)
def provider(request):
    return str(request.param)


def judge_at(provider, url):
    """A judge in an environment with keys of all providers."""
    others = {name: f"another-{name}" for name, _ in KEYS.values()}
    return opened(f"{provider}/m", url, environment={**others, KEYS[provider][0]: KEY})


async def answer_of(judge):
    """What the judge says, or all that a log would show of its error, with the local variables of
    Evenhand's frames."""
    try:
        return repr(await judge.answer(question()))
    except (CallError, ProviderRefused, AskAgain) as error:
        texts = ["ERROR", *traceback.format_exception(error)]
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if "evenhand" in frame.f_globals["__name__"]:
                texts += [repr(value) for value in frame.f_locals.values()]
        return "\n".join(texts)
    finally:
        await judge.close()


async def quoting(call):
    """A reply of any protocol that quotes the key, in its text and as its model's name."""
    key = next(call.headers[name] for name in HEADERS if name in call.headers)
    said = f"Your key is {key}, or {key.encode().hex()}"
    body = json.loads(p.completion(said))
    part = {"type": "text", "text": said}
    body |= {"content": [part], "candidates": [{"content": {"parts": [part]}}]}
    return web.json_response(body | {"model": key, "modelVersion": key, "provider": key})


async def test_the_key_stands_in_its_header_and_nowhere_else(provider):
    async with Endpoint(quoting) as endpoint:
        judge = judge_at(provider, endpoint.url)
        reply = await answer_of(judge)
    spotless(reply)
    assert "Your key is" in reply
    call = endpoint.calls[0]
    holding = [name.lower() for name, value in call.headers.items() if KEY in value]
    assert holding == [KEYS[provider][1].lower()]
    assert "another-" not in str(dict(call.headers))
    spotless(endpoint.path() + call.raw.decode())
    spotless(json.dumps(judge.identity) + repr(judge.identity) + repr(vars(judge)))


@pytest.mark.parametrize("status", [200, 307, 400, 401, 403, 404, 429, 500, 529])
async def test_an_error_that_quotes_the_key_is_masked(provider, status):
    async with Endpoint(echoing(*HEADERS, status=status)) as endpoint:
        told = await answer_of(judge_at(provider, endpoint.url))
    assert told.startswith("ERROR")
    spotless(told)


@pytest.mark.parametrize("behaviour", [p.resetting(KEY.encode()), p.saying(KEY)])
async def test_nonsense_that_quotes_the_key_is_masked(provider, behaviour):
    async with Endpoint(behaviour) as endpoint:
        spotless(await answer_of(judge_at(provider, endpoint.url)))


async def test_a_redirect_takes_no_key_along(provider):
    async with Endpoint(quoting) as other, Endpoint(p.redirecting(other.url)) as endpoint:
        assert "redirects" in await answer_of(judge_at(provider, endpoint.url))
    assert other.calls == []
