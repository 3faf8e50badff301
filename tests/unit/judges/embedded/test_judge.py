"""The parent's side, against real child processes that are scripts instead of models."""

import asyncio
import contextlib
import os
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from evenhand import limits
from evenhand.errors import CallRejected, JudgeCrashed, ModelMissing, ProviderRefused, UsageError
from evenhand.exchange import Message, Question, Schema
from evenhand.judges import PROVIDERS, JudgeOptions, open_judge
from evenhand.judges.embedded import judge as module
from evenhand.judges.embedded.judge import COMMAND

PRELUDE = """
import json, os, sys
def tell(**line): print(json.dumps(line), flush=True)
load = json.loads(sys.stdin.readline())
REPLY = {"text": "{}", "finish": "stop", "odds": {"a": {"1": 0.0}},
         "usage": {"input_tokens": 3, "output_tokens": 2, "cached_tokens": 0}}
tell(ready={})
"""
ECHO = (
    PRELUDE
    + """
for line in sys.stdin:
    tell(beat=True)
    asked = json.loads(line)["ask"]
    tell(reply={**REPLY, "text": json.dumps([os.getpid(), asked])})
"""
)


def embedded(name, **options):
    return open_judge(JudgeOptions(name=name, **options))


QUESTION = Question(messages=(Message("user", "hello"),), schema=Schema({"const": 1}))


@pytest.fixture
def judge_of(tmp_path, monkeypatch):
    """A judge whose child runs a script."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "own.gguf").write_bytes(b"weights")

    def make(script, **options):
        monkeypatch.setattr(module, "COMMAND", (sys.executable, "-c", script))
        return embedded(f"embedded/{tmp_path}/own.gguf", **options)

    return make


def alive(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


async def test_a_question_goes_to_the_child_and_its_reply_comes_back(judge_of):
    judge = judge_of(ECHO, max_tokens=99, seed=5)
    reply = await judge.answer(QUESTION)
    asked = module.json.loads(reply.text)[1]
    await judge.close()
    assert reply.model == judge.name
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (3, 2)
    assert reply.odds == {"a": {"1": 0.0}}
    assert asked["messages"] == [{"role": "user", "content": "hello"}]
    assert (asked["schema"], asked["neutral"]) == ({"const": 1}, [])
    assert (asked["max_tokens"], asked["temperature"], asked["seed"]) == (99, 0.0, 5)
    assert asked["drawn"] is False
    assert reply.sampling == {"temperature": 0.0, "seed": 5}


async def test_a_later_round_is_drawn_warmer_and_with_another_seed(judge_of):
    judge = judge_of(ECHO, seed=5)
    reply = await judge.answer(replace(QUESTION, round=3))
    asked = module.json.loads(reply.text)[1]
    await judge.close()
    assert (asked["drawn"], asked["temperature"], asked["seed"]) == (True, 0.7, 7)
    assert reply.sampling == {"temperature": 0.7, "seed": 7}


async def test_one_child_serves_many_questions_one_after_the_other(judge_of):
    judge = judge_of(ECHO)
    replies = await asyncio.gather(*(judge.answer(QUESTION) for _ in range(5)))
    pids = {module.json.loads(reply.text)[0] for reply in replies}
    await judge.close()
    assert len(pids) == 1
    assert not alive(pids.pop())


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
async def test_the_child_has_none_of_the_users_keys_in_its_environment(judge_of, monkeypatch):
    secrets = {
        "OPENAI_API_KEY": "sk-secret-1",
        "AWS_SECRET_ACCESS_KEY": "secret-2",
        "EVENHAND_STORE": "postgresql://me:secret-3@host/db",
        "LLAMA_API_KEY": "secret-4",
        "HTTPS_PROXY": "http://me:secret-5@proxy",
    }
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("OMP_WAIT_POLICY", "PASSIVE")
    judge = judge_of(ECHO)
    pid = module.json.loads((await judge.answer(QUESTION)).text)[0]
    environ = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    await judge.close()
    names = {variable.partition("=")[0] for variable in environ}
    assert not names & set(secrets)
    assert "secret" not in " ".join(environ)
    assert {"PATH", "OMP_WAIT_POLICY"} <= names


async def test_weights_that_are_not_what_they_were_are_refused(judge_of):
    judge = judge_of(
        "import json, sys\njson.loads(sys.stdin.readline())\n"
        "print(json.dumps({'altered': 'its SHA-256 is another'}), flush=True)"
    )
    with pytest.raises(ProviderRefused, match="not what it was: its SHA-256 is another"):
        await judge.answer(QUESTION)
    await judge.close()


async def test_a_crash_fails_its_question_only(judge_of, tmp_path):
    judge = judge_of(
        PRELUDE
        + f"""
if not os.path.exists({str(tmp_path / "crashed")!r}):
    open({str(tmp_path / "crashed")!r}, "w").close()
    print("out of memory", file=sys.stderr, flush=True)
    os.abort()
for line in sys.stdin: tell(reply=REPLY)
"""
    )
    with pytest.raises(JudgeCrashed, match="out of memory"):
        await judge.answer(QUESTION)
    assert (await judge.answer(QUESTION)).text == "{}"
    await judge.close()


async def test_a_child_that_hangs_is_killed(judge_of, monkeypatch, tmp_path):
    pid = tmp_path / "pid"
    judge = judge_of(
        PRELUDE + f"open({str(pid)!r}, 'w').write(str(os.getpid()))\nfor _ in sys.stdin: pass"
    )
    monkeypatch.setattr(limits, "EMBEDDED_ANSWER_SECONDS", 0.2)
    with pytest.raises(JudgeCrashed, match="said nothing"):
        await judge.answer(QUESTION)
    assert not alive(int(pid.read_text()))


async def test_a_cancelled_question_leaves_no_child(judge_of, tmp_path):
    pid = tmp_path / "pid"
    os.mkfifo(pid)
    judge = judge_of(
        PRELUDE + f"open({str(pid)!r}, 'w').write(str(os.getpid()))\nfor _ in sys.stdin: pass"
    )
    task = asyncio.create_task(judge.answer(QUESTION))
    number = int(await asyncio.to_thread(pid.read_text))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not alive(number)


async def test_a_prompt_too_long_is_rejected_and_the_child_lives_on(judge_of):
    judge = judge_of(PRELUDE + "for _ in sys.stdin: tell(overflow=f'too long {os.getpid()}')")
    with pytest.raises(CallRejected) as first:
        await judge.answer(QUESTION)
    with pytest.raises(CallRejected) as second:
        await judge.answer(QUESTION)
    await judge.close()
    assert first.value.reason == "context_overflow"
    assert str(first.value) == str(second.value)


async def test_weights_that_cannot_be_loaded_end_the_run(judge_of):
    judge = judge_of('print(\'{"failed": "not a GGUF file"}\')')
    with pytest.raises(ProviderRefused, match="not a GGUF file"):
        await judge.answer(QUESTION)


async def test_nonsense_from_the_child_is_a_crash(judge_of):
    for said in ("print('llama says hi')", "tell(what=1)"):
        judge = judge_of(f"{PRELUDE}\nfor _ in sys.stdin: {said}; sys.stdout.flush()")
        with pytest.raises(JudgeCrashed):
            await judge.answer(QUESTION)


async def test_closing_a_judge_that_was_never_asked_does_nothing(judge_of):
    await judge_of("raise SystemExit").close()


async def test_the_real_child_ends_when_its_parent_is_gone():
    child = await asyncio.create_subprocess_exec(
        *COMMAND, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    child.stdin.close()
    assert await child.wait() == 0


def test_the_identity_holds_what_can_change_an_answer_and_not_the_threads(judge_of, monkeypatch):
    one = judge_of(ECHO, temperature=None, max_tokens=7, seed=3)
    monkeypatch.setenv("EVENHAND_EMBEDDED_THREADS", "3")
    assert judge_of(ECHO, temperature=0.0, max_tokens=7, seed=3).identity == one.identity
    assert one.identity["provider"] == "embedded"
    assert len(one.identity["weights"]) == 64
    assert judge_of(ECHO, temperature=0.5, max_tokens=7, seed=3).identity != one.identity
    assert (one.style, one.slots) == ("compact", 1)
    assert "not validated" in one.caveat


def test_without_the_runtime_the_install_command_is_given():
    absent = replace(PROVIDERS["embedded"], package="no_such_package")
    with pytest.raises(UsageError, match="needs no_such_package, which is not installed") as error:
        absent.open(JudgeOptions(name="embedded"), "")
    assert 'pip install "evenhand[embedded]"' in str(error.value)


def test_without_the_model_the_fetch_command_is_given(monkeypatch, tmp_path):
    monkeypatch.setenv("EVENHAND_MODELS", str(tmp_path))
    for name, model in (
        ("embedded", "qwen2.5-coder-1.5b"),
        ("embedded/smollm2-135m", "smollm2-135m"),
    ):
        lacks = embedded(name).unavailable_reason
        assert isinstance(lacks, ModelMissing) and lacks.exit_code == 2
        assert f"evenhand models get {model}" in lacks.advice
    with pytest.raises(UsageError, match="GGUF"):
        embedded("embedded/absent.gguf")


@pytest.mark.parametrize(("given", "threads"), [("3", 3), ("0", 4), ("many", 4), ("", 4)])
def test_all_cores_are_used_unless_told_otherwise(monkeypatch, given, threads):
    monkeypatch.setattr(module.os, "sched_getaffinity", lambda _: range(4), raising=False)
    monkeypatch.setenv("EVENHAND_EMBEDDED_THREADS", given)
    assert module.count_threads() == threads
