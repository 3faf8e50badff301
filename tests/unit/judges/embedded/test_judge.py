"""The parent's side, against real child processes that are scripts instead of models."""

import asyncio
import contextlib
import json
import os
import sys
from importlib.resources import files
from pathlib import Path

import pytest
from msgspec.structs import replace

from evenhand import limits
from evenhand.errors import CallRejected, JudgeCrashed, ModelMissing, ProviderRefused, UsageError
from evenhand.exchange import Message, Question, Schema
from evenhand.judges import PROVIDERS, JudgeOptions, open_judge
from evenhand.judges.embedded import judge as module
from evenhand.judges.embedded.judge import COMMAND
from evenhand.kinds.prompt import Prompt
from tests.sentences import refused

PRELUDE = """
import json, os, sys
def tell(**line): print(json.dumps(line), flush=True)
load = json.loads(sys.stdin.readline())
REPLY = {"text": "{}", "finish": "stop", "odds": {"a": {"1": 0.0}},
         "usage": {"input_tokens": 3, "output_tokens": 2, "cached_tokens": 0}}
tell(ready={})
"""
ECHO = """
for line in sys.stdin:
    tell(beat=True)
    asked = json.loads(line)["ask"]
    tell(reply={**REPLY, "text": json.dumps([os.getpid(), asked])})
"""
QUESTION = Question(messages=(Message("user", "hello"),), schema=Schema({"const": 1}))


def embedded(name, **options):
    return open_judge(JudgeOptions(name=name, **options))


@pytest.fixture
async def judge_of(tmp_path, monkeypatch):
    """Judges whose children run a script, by default behind the prelude; they are closed."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "own.gguf").write_bytes(b"weights")
    made = []

    def make(script=ECHO, prelude=PRELUDE, **options):
        monkeypatch.setattr(module, "COMMAND", (sys.executable, "-c", prelude + script))
        made.append(embedded(f"embedded/{tmp_path}/own.gguf", **options))
        return made[-1]

    yield make
    for judge in made:
        await judge.close()


async def echoed(judge, **rest):
    """The reply; the process that gave it; and what it was asked."""
    reply = await judge.answer(replace(QUESTION, **rest))
    return reply, *json.loads(reply.text)


def is_alive(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


async def test_a_question_goes_to_the_child_and_its_reply_comes_back(judge_of):
    judge = judge_of(max_tokens=99, seed=5)
    reply, _, asked = await echoed(judge)
    assert (reply.model, reply.odds) == (judge.name, {"a": {"1": 0.0}})
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (3, 2)
    assert reply.sampling == {"temperature": 0.0, "seed": 5}
    assert asked == reply.sampling | {
        "messages": [{"role": "user", "content": "hello"}],
        "schema": {"const": 1},
        "neutral": [],
        "max_tokens": 99,
        "drawn": False,
    }
    # A later round is drawn, warmer and with another seed.
    reply, _, asked = await echoed(judge, round=3)
    assert reply.sampling == {"temperature": 0.7, "seed": 7}
    assert asked.items() >= (reply.sampling | {"drawn": True}).items()


async def test_one_child_serves_many_questions_one_after_the_other(judge_of):
    judge = judge_of()
    pids = {pid for _, pid, _ in await asyncio.gather(*(echoed(judge) for _ in range(5)))}
    await judge.close()
    assert [is_alive(pid) for pid in pids] == [False]


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
async def test_the_child_has_none_of_the_users_keys_in_its_environment(judge_of, monkeypatch):
    secrets = {
        "OPENAI_API_KEY": "sk-secret-1",
        "AWS_SECRET_ACCESS_KEY": "secret-2",
        "EVENHAND_STORE": "postgresql://me:secret-3@host/db",
        "LLAMA_API_KEY": "secret-4",
        "HTTPS_PROXY": "http://me:secret-5@proxy",
    }
    for name, value in {**secrets, "OMP_WAIT_POLICY": "PASSIVE"}.items():
        monkeypatch.setenv(name, value)
    _, pid, _ = await echoed(judge_of())
    environ = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    names = {variable.partition("=")[0] for variable in environ}
    assert not names & set(secrets) and {"PATH", "OMP_WAIT_POLICY"} <= names
    assert "secret" not in " ".join(environ)


LOADING = "import sys\nsys.stdin.readline()\n"
ALTERED = """print('{"altered": "its SHA-256 is another"}')"""
UNFIT = """print('{"failed": "not a GGUF file"}')"""


@pytest.mark.parametrize(
    ("script", "prelude", "error", "word"),
    [
        (ALTERED, LOADING, ProviderRefused, "own.gguf"),
        (UNFIT, LOADING, ProviderRefused, "not a GGUF file"),
        ("for _ in sys.stdin: print('hi', flush=True)", PRELUDE, JudgeCrashed, None),
        ("for _ in sys.stdin: tell(what=1)", PRELUDE, JudgeCrashed, None),
        ("sys.stdin.readline(); sys.exit(3)", PRELUDE, JudgeCrashed, "died"),
    ],
    ids=["altered", "unloadable", "no JSON", "unknown", "dead"],
)
async def test_what_the_child_says_of_itself_ends_the_run_or_the_question(
    judge_of, script, prelude, error, word
):
    with pytest.raises(error, match=word):
        await judge_of(script, prelude).answer(QUESTION)


async def test_a_crash_fails_its_question_only(judge_of, tmp_path):
    crashed = str(tmp_path / "crashed")
    judge = judge_of(
        f"""
if not os.path.exists({crashed!r}):
    open({crashed!r}, "w").close()
    print("out of memory", file=sys.stderr, flush=True)
    os.abort()
for line in sys.stdin: tell(reply=REPLY)
"""
    )
    with pytest.raises(JudgeCrashed, match="out of memory"):
        await judge.answer(QUESTION)
    assert (await judge.answer(QUESTION)).text == "{}"


async def test_a_child_that_hangs_or_whose_question_is_cancelled_is_killed(
    judge_of, monkeypatch, tmp_path
):
    pid = tmp_path / "pid"
    os.mkfifo(pid)
    script = f"open({str(pid)!r}, 'w').write(str(os.getpid()))\nfor _ in sys.stdin: pass"
    for seconds, error in ((600, asyncio.CancelledError), (0.2, JudgeCrashed)):
        monkeypatch.setattr(limits, "EMBEDDED_ANSWER_SECONDS", seconds)
        task = asyncio.create_task(judge_of(script).answer(QUESTION))
        number = int(await asyncio.to_thread(pid.read_text))
        if error is asyncio.CancelledError:
            task.cancel()
        with pytest.raises(error):
            await task
        assert not is_alive(number)


async def test_a_prompt_too_long_is_rejected_and_the_child_lives_on(judge_of):
    judge, errors = judge_of("for _ in sys.stdin: tell(overflow=f'long {os.getpid()}')"), set()
    for _ in range(2):
        with pytest.raises(CallRejected) as raised:
            await judge.answer(QUESTION)
        errors.add((raised.value.reason, str(raised.value)))
    assert [reason for reason, _ in errors] == ["context_overflow"]


async def test_closing_a_judge_that_was_never_asked_does_nothing(judge_of):
    await judge_of("raise SystemExit").close()


async def test_the_real_child_ends_when_its_parent_is_gone():
    child = await asyncio.create_subprocess_exec(
        *COMMAND, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    child.stdin.close()
    assert await child.wait() == 0


def test_the_identity_holds_what_can_change_an_answer_and_not_the_threads(judge_of, monkeypatch):
    one = judge_of(temperature=None, max_tokens=7, seed=3)
    monkeypatch.setenv("EVENHAND_EMBEDDED_THREADS", "3")
    same, other = (judge_of(temperature=t, max_tokens=7, seed=3) for t in (0.0, 0.5))
    assert one.identity == same.identity != other.identity
    assert (one.identity["provider"], len(one.identity["weights"])) == ("embedded", 64)
    assert (one.style, one.slots) == ("compact", 1)
    assert "not validated" in one.caveat


def test_without_the_runtime_or_the_model_the_command_that_brings_it_is_given(
    monkeypatch, tmp_path
):
    absent = replace(PROVIDERS["embedded"], package="no_such_package")
    with refused(UsageError, "judges.not_installed", "no_such_package") as error:
        absent.open(JudgeOptions(name="embedded"), "")
    assert 'pip install "evenhand[embedded]"' in str(error.value)
    monkeypatch.setenv("EVENHAND_MODELS", str(tmp_path))
    for name, model in (("", "qwen2.5-coder-1.5b"), ("/smollm2-135m", "smollm2-135m")):
        lacks = embedded(f"embedded{name}").unavailable_reason
        assert isinstance(lacks, ModelMissing) and lacks.exit_code == 2
        assert f"evenhand models get {model}" in lacks.advice
    with refused(UsageError, "judges.no_model_file", "GGUF"):
        embedded("embedded/absent.gguf")


@pytest.mark.parametrize(("given", "threads"), [("3", 3), ("0", 4), ("many", 4), ("", 4)])
def test_all_cores_are_used_unless_told_otherwise(monkeypatch, given, threads):
    monkeypatch.setattr(module.os, "sched_getaffinity", lambda _: range(4), raising=False)
    monkeypatch.setenv("EVENHAND_EMBEDDED_THREADS", given)
    assert module.count_threads() == threads


@pytest.mark.parametrize("language", ["en", "ru", "zh", "ja"])
def test_the_compact_prompt_is_short_and_ends_with_instructions(language):
    folder = files("evenhand.kinds") / "builtin" / "rubric" / "prompts" / "compact"
    found = Prompt.parse(folder.joinpath(f"{language}.md").read_text(encoding="utf-8"))
    system, user = found.system, found.user
    assert (system.names, found.again.names) == (frozenset(), {"problems"})
    assert user.names == {"question", "model_output", "extras", "rubric"}
    assert user.parts[-2] == "rubric" and "JSON" in user.parts[-1]
    assert sum(map(len, (*system.parts, *user.parts))) < 450
