"""The user's own function as a judge."""

import sys

import pytest

from evenhand.errors import CallLost, JudgeCrashed, ProviderRefused, UsageError
from evenhand.judges import PROVIDERS, JudgeOptions
from evenhand.judges.python import PythonJudge
from tests.cases import cases
from tests.sentences import refused
from tests.unit.judges.questions import SCHEMA, question


@pytest.fixture(autouse=True)
def _imports_are_undone():
    modules, path = dict(sys.modules), list(sys.path)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - set(modules):
        del sys.modules[name]


@pytest.fixture
def judge(tmp_path):
    """A judge whose module `mine` has this source."""

    def make(source, target="mine:judge", folder="", **rest):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "mine.py").write_text(source, encoding="utf-8")
        options = JudgeOptions(name=f"python/{target}", folder=tmp_path / folder, **rest)
        return PythonJudge(PROVIDERS["python"], options, target)

    return make


def that(line, before=""):
    """The source of a judge that does one thing."""
    return f"{before}\nasync def judge(m, s, p): {line}"


async def said(judge):
    return (await judge.answer(question())).text


async def test_the_function_gets_messages_schema_and_params(judge):
    made = judge(
        that("seen.append((m, s, p)); return 'well'", "seen = []"),
        temperature=0.0,
        max_tokens=9,
        seed=7,
    )
    reply = await made.answer(question("Judge.", order="21", round=2, repeat=3, reask=1))
    await made.close()
    sampling = {"temperature": 0.7, "seed": 3008}
    assert (reply.text, reply.finish, reply.sampling) == ("well", "stop", sampling)
    [(messages, schema, params)] = sys.modules["mine"].seen
    assert messages[1] == {"role": "user", "content": "Judge."}
    assert all(type(message) is dict for message in messages)
    assert schema == SCHEMA
    assert params == sampling | {"max_tokens": 9, "round": 2, "repeat": 3, "reask": 1}


async def test_a_parameter_that_is_not_set_is_not_recorded(judge):
    reply = await judge(that("return str(p['seed'])")).answer(question())
    assert (reply.text, reply.sampling) == ("None", {})


async def test_modules_beside_it_and_in_packages_are_found(judge, tmp_path):
    (tmp_path / "beside_it.py").write_text("TEXT = 'well'")
    assert await said(judge(that("return beside_it.TEXT", "import beside_it"))) == "well"
    (tmp_path / "pack_of_mine").mkdir()
    (tmp_path / "pack_of_mine" / "part.py").write_text(that("return 'well'"))
    assert await said(judge("", "pack_of_mine.part:judge")) == "well"


async def test_each_suite_has_its_own_module_of_one_name_known_by_its_text(judge):
    folders = [("a", "one"), ("b", "one"), ("c", "two")]
    made = [judge(that(f"return {text!r}"), folder=folder) for folder, text in folders]
    assert made[0].identity == made[1].identity != made[2].identity
    assert [await said(one) for one in made] == ["one", "one", "two"]


# What goes wrong in the call


async def test_an_exception_is_a_crash_with_its_message_and_place(judge, tmp_path):
    with pytest.raises(JudgeCrashed) as crashed:
        await said(judge(that("return json.loads('oops')", "import json\n")))
    assert f"{tmp_path / 'mine.py'}:3" in str(crashed.value)
    assert "JSONDecodeError" in str(crashed.value)


async def test_a_function_that_hangs_is_a_timeout(judge):
    source = that("await asyncio.Event().wait()", "import asyncio")
    with pytest.raises(CallLost) as lost:
        await said(judge(source, attempt_seconds=0.05))
    assert lost.value.reason == "timeout"


AROUND = """
class Unspeakable(Exception):
    def __str__(self): raise RuntimeError
class Pretender:
    __class__ = str
async def later(): return later()
"""


@cases
async def test_whatever_is_raised_or_returned_ends_one_call(judge, line):
    made = judge(that(line, AROUND))
    for _ in range(2):
        with pytest.raises(JudgeCrashed):
            await said(made)
    await made.close()


async def test_too_few_arguments_are_a_crash(judge):
    with pytest.raises(JudgeCrashed, match="TypeError"):
        await said(judge("async def judge(m): return ''"))


MINE = """
class Mine(str):
    def __str__(self): raise SystemExit
    def encode(self, *_): raise SystemExit
"""


async def test_a_string_of_another_class_or_half_a_surrogate_is_its_text(judge):
    text = await said(judge(that("return Mine('well')", MINE)))
    assert (text, type(text)) == ("well", str)
    half = judge(that("return chr(0xD83D)"), folder="other")
    assert await said(half) == "\ufffd"


async def test_a_function_that_holds_its_thread_for_ever_is_a_timeout_of_one_call(judge):
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
    made = judge(source, attempt_seconds=0.05)
    with pytest.raises(CallLost) as lost:
        await said(made)
    assert lost.value.reason == "timeout"
    made._seconds = 600.0
    assert await said(made) == "well"


async def test_all_calls_share_one_event_loop(judge):
    """A client or a lock that the module keeps belongs to a loop."""
    made = judge(that("return str(id(asyncio.get_running_loop()))", "import asyncio"))
    assert len({await said(made) for _ in range(3)}) == 1


@pytest.mark.parametrize(
    ("raised", "error"),
    [
        ('CallLost("transport", "later", retry_after=3)', CallLost),
        ('ProviderRefused("no key")', ProviderRefused),
    ],
)
async def test_a_function_may_raise_the_call_errors_itself(judge, raised, error):
    with pytest.raises(error, match=r"later|no key"):
        await said(judge(that(f"raise {raised}", "from evenhand.errors import *")))


# What goes wrong before


@cases
def test_a_module_that_cannot_be_imported_is_told_with_its_line(
    judge, tmp_path, source, line, word
):
    with refused(UsageError, "judges.import_failed", word) as raised:
        judge(source).load()
    assert raised.value.where == f"{tmp_path / 'mine.py'}:{line}"
    assert "mine" not in sys.modules


@cases
def test_a_name_that_is_no_async_function_is_told(judge, source, target, key):
    with refused(UsageError, f"judges.{key}"):
        judge(source, target).load()


async def test_nothing_is_run_before_it_is_loaded_and_then_once(judge, tmp_path):
    ran = tmp_path / "ran"
    mark = f"import pathlib\nwith pathlib.Path({str(ran)!r}).open('a') as f: f.write('x')"
    made = judge(that("return 'yes'", mark))
    assert made.identity["source"] and not ran.exists()
    for _ in range(2):
        made.load()
        assert await said(made) == "yes"
    assert ran.read_text() == "x"
