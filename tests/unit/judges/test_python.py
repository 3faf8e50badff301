"""The user's own function as a judge."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evenhand.errors import CallLost, JudgeCrashed, ProviderRefused, UsageError
from evenhand.exchange import Judge
from evenhand.judges import PROVIDERS, JudgeOptions
from evenhand.judges.python import PythonJudge
from tests.unit.judges.conftest import SCHEMA, question


@pytest.fixture(autouse=True)
def _imports_are_undone() -> Iterator[None]:
    modules, path = dict(sys.modules), list(sys.path)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - set(modules):
        del sys.modules[name]


def judge(folder: Path, source: str, target: str = "mine:judge", **rest: Any) -> PythonJudge:
    (folder / "mine.py").write_text(source, encoding="utf-8")
    options = JudgeOptions(name=f"python/{target}", folder=folder, **rest)
    return PythonJudge(PROVIDERS["python"], options, target)


async def test_the_function_gets_messages_schema_and_params(tmp_path: Path) -> None:
    source = """
seen = []
async def judge(messages, schema, params):
    seen.append((messages, schema, params))
    return "well"
"""
    made: Judge = judge(tmp_path, source, temperature=0.0, max_tokens=9, seed=7)
    reply = await made.answer(question("Judge.", order="21", round=2, repeat=3, reask=1))
    await made.close()
    assert (reply.text, reply.finish) == ("well", "stop")
    assert reply.sampling == {"temperature": 0.7, "seed": 3008}
    [(messages, schema, params)] = sys.modules["mine"].seen
    assert messages[1] == {"role": "user", "content": "Judge."}
    assert all(type(message) is dict for message in messages)
    assert schema == SCHEMA
    assert params == {
        "temperature": 0.7,
        "max_tokens": 9,
        "seed": 3008,
        "round": 2,
        "repeat": 3,
        "reask": 1,
    }


async def test_a_parameter_that_is_not_set_is_not_recorded(tmp_path: Path) -> None:
    made = judge(tmp_path, "async def judge(messages, schema, params): return str(params['seed'])")
    reply = await made.answer(question())
    assert (reply.text, reply.sampling) == ("None", {})


async def test_modules_beside_it_can_be_imported(tmp_path: Path) -> None:
    (tmp_path / "beside_it.py").write_text("TEXT = 'well'")
    source = "import beside_it\nasync def judge(m, s, p): return beside_it.TEXT"
    assert (await judge(tmp_path, source).answer(question())).text == "well"


async def test_a_module_in_a_package_is_found(tmp_path: Path) -> None:
    (tmp_path / "pack_of_mine").mkdir()
    (tmp_path / "pack_of_mine" / "part.py").write_text("async def f(m, s, p): return 'well'")
    made = judge(tmp_path, "", "pack_of_mine.part:f")
    assert (await made.answer(question())).text == "well"


async def test_each_suite_has_its_own_module_of_one_name(tmp_path: Path) -> None:
    texts: list[str] = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        made = judge(tmp_path / name, f"async def judge(m, s, p): return {name!r}")
        texts.append((await made.answer(question())).text)
    assert texts == ["one", "two"]


def test_another_text_of_the_module_is_another_identity(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "c").mkdir()
    one = judge(tmp_path / "a", "def judge(m, s, p): return '1'")
    same = judge(tmp_path / "b", "def judge(m, s, p): return '1'")
    other = judge(tmp_path / "c", "def judge(m, s, p): return '2'")
    assert one.identity == same.identity != other.identity


# What goes wrong in the call


async def test_an_exception_is_a_crash_with_its_message_and_place(tmp_path: Path) -> None:
    source = "import json\nasync def judge(m, s, p):\n    return json.loads('oops')\n"
    with pytest.raises(JudgeCrashed) as crashed:
        await judge(tmp_path, source).answer(question())
    assert f"{tmp_path / 'mine.py'}:3" in str(crashed.value)
    assert "JSONDecodeError" in str(crashed.value)


async def test_what_is_no_string_is_a_crash(tmp_path: Path) -> None:
    with pytest.raises(JudgeCrashed, match="returned dict, not str"):
        await judge(tmp_path, "async def judge(m, s, p): return {}").answer(question())


async def test_too_few_arguments_are_a_crash(tmp_path: Path) -> None:
    with pytest.raises(JudgeCrashed, match="TypeError"):
        await judge(tmp_path, "async def judge(m): return ''").answer(question())


async def test_a_function_that_hangs_is_a_timeout(tmp_path: Path) -> None:
    source = "import asyncio\nasync def judge(m, s, p): await asyncio.Event().wait()"
    with pytest.raises(CallLost) as lost:
        await judge(tmp_path, source, attempt_seconds=0.05).answer(question())
    assert lost.value.reason == "timeout"


CRASHES = [
    "raise SystemExit(3)",
    "raise KeyboardInterrupt",
    "raise GeneratorExit",
    "raise StopIteration",
    "raise StopAsyncIteration",
    "raise BaseException('all of it')",
    "raise BaseExceptionGroup('two', [SystemExit(), KeyboardInterrupt()])",
    "import asyncio; raise asyncio.CancelledError",
    "raise Unspeakable",
    "import sys; sys.exit()",
    "return b'{}'",
    "return None",
    "return later()",
    "return Pretender()",
    "from evenhand.errors import AskAgain; raise AskAgain",
]
AROUND = """
class Unspeakable(Exception):
    def __str__(self): raise RuntimeError
class Pretender:
    __class__ = str
async def later(): return later()
async def judge(m, s, p):
    {}
"""


@pytest.mark.parametrize("line", CRASHES)
async def test_whatever_is_raised_or_returned_ends_one_call(tmp_path: Path, line: str) -> None:
    made = judge(tmp_path, AROUND.format(line))
    for _ in range(2):
        with pytest.raises(JudgeCrashed):
            await made.answer(question())
    await made.close()


async def test_a_string_of_another_class_is_its_text(tmp_path: Path) -> None:
    source = """
class Mine(str):
    def __str__(self): raise SystemExit
    def encode(self, *_): raise SystemExit
async def judge(m, s, p): return Mine("well")
"""
    text = (await judge(tmp_path, source).answer(question())).text
    assert (text, type(text)) == ("well", str)


async def test_a_function_that_holds_its_thread_for_ever_is_a_timeout_of_one_call(
    tmp_path: Path,
) -> None:
    """The event, which nobody sets, is waited for without giving anybody else a turn."""
    source = """
import threading
calls = []
async def judge(m, s, p):
    calls.append(1)
    if len(calls) == 1:
        threading.Event().wait()
    return "well"
"""
    made = judge(tmp_path, source, attempt_seconds=0.05)
    with pytest.raises(CallLost) as lost:
        await made.answer(question())
    assert lost.value.reason == "timeout"
    made._seconds = 600.0
    assert (await made.answer(question())).text == "well"


async def test_all_calls_share_one_event_loop(tmp_path: Path) -> None:
    """A client or a lock that the module keeps belongs to a loop."""
    source = """
import asyncio
async def judge(m, s, p): return str(id(asyncio.get_running_loop()))
"""
    made = judge(tmp_path, source)
    assert len({(await made.answer(question())).text for _ in range(3)}) == 1


async def test_a_timeout_of_its_own_is_a_crash(tmp_path: Path) -> None:
    with pytest.raises(JudgeCrashed, match="TimeoutError"):
        await judge(tmp_path, "async def judge(m, s, p): raise TimeoutError").answer(question())


async def test_a_function_may_raise_the_call_errors_itself(tmp_path: Path) -> None:
    source = """
from evenhand.errors import CallLost, ProviderRefused
async def lost(m, s, p): raise CallLost("transport", "later", retry_after=3)
async def refused(m, s, p): raise ProviderRefused("no key")
"""
    with pytest.raises(CallLost, match="later"):
        await judge(tmp_path, source, "mine:lost").answer(question())
    with pytest.raises(ProviderRefused, match="no key"):
        await judge(tmp_path, source, "mine:refused").answer(question())


async def test_a_lone_surrogate_becomes_storable(tmp_path: Path) -> None:
    made = judge(tmp_path, "async def judge(m, s, p): return chr(0xD83D)")
    assert (await made.answer(question())).text == "\ufffd"


# What goes wrong before


def test_a_function_that_is_not_async_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no coroutine function"):
        judge(tmp_path, "def judge(m, s, p): return 'well'").load()


@pytest.mark.parametrize(
    ("source", "line", "word"),
    [
        ("x = 1\nraise RuntimeError('oops')", 2, "oops"),
        ("x = 1\n\ndef judge(:", 3, "SyntaxError"),
        ("import no_such_module_anywhere", 1, "no_such_module_anywhere"),
        ("raise SystemExit(3)", 1, "SystemExit"),
        ("raise BaseException('oops')", 1, "oops"),
    ],
)
def test_a_module_that_cannot_be_imported_is_told_with_its_line(
    tmp_path: Path, source: str, line: int, word: str
) -> None:
    made = judge(tmp_path, source)
    with pytest.raises(UsageError) as raised:
        made.load()
    assert raised.value.where == f"{tmp_path / 'mine.py'}:{line}"
    assert word in str(raised.value)
    assert "mine" not in sys.modules


def test_a_missing_module_or_function_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no module"):
        judge(tmp_path, "", "absent_module:judge")
    made = judge(tmp_path, "judge = 3")
    with pytest.raises(UsageError, match="no function"):
        made.load()


async def test_nothing_is_run_before_it_is_loaded_and_then_once(tmp_path: Path) -> None:
    mark = (
        f"import pathlib\nwith pathlib.Path({str(tmp_path / 'ran')!r}).open('a') as f: f.write('x')"
    )
    made = judge(tmp_path, f"{mark}\nasync def judge(m, s, p): return 'yes'")
    assert made.identity["source"] and not (tmp_path / "ran").exists()
    for _ in range(2):
        made.load()
        assert (await made.answer(question())).text == "yes"
    assert (tmp_path / "ran").read_text() == "x"


@pytest.mark.parametrize("target", ["mine", "mine:", ":judge", "mine:judge()", "../mine:judge", ""])
def test_a_name_that_is_no_function_is_told(tmp_path: Path, target: str) -> None:
    with pytest.raises(UsageError, match="module:function"):
        judge(tmp_path, "", target)
