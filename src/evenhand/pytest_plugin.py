"""The pytest plugin: an `evenhand` fixture that scores, grades and prefers inside tests.

All tests of a session share one store, so that a rerun is free, and one budget. The package is
imported when a test first asks for a judgment: collecting tests loads nothing, reads nothing and
sends nothing, and those who do not use the fixture pay for this file alone.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from decimal import Decimal

    from evenhand.engine.budget import CallBudget
    from evenhand.engine.progress import Tally
    from evenhand.engine.stop import Stop
    from evenhand.errors import EvenhandError
    from evenhand.judgment import Judgment

OPTIONS = {
    "judge": "The judge of tests that name none, e.g. openai/gpt-4.1-mini.",
    "store": "Where replies are kept, e.g. sqlite:judged.db. Default: in pytest's cache.",
    "budget": "Dollars that all tests together may spend; a test that needs more fails.",
    "language": "Of the judge's prompts where a test names none: ru, zh, ja or en.",
}


REQUIRE_KEY = (
    "Fail, not skip, a test whose judge has no key. Default: where CI is set in the environment."
)
_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Every setting is an option and a key of the ini file."""
    group = parser.getgroup("evenhand", "judging inside tests")
    for name, about in OPTIONS.items():
        group.addoption(f"--evenhand-{name}", metavar=name.upper(), help=about)
        parser.addini(f"evenhand_{name}", about, default="")
    group.addoption("--evenhand-require-key", action="store_true", help=REQUIRE_KEY)
    parser.addini("evenhand_require_key", REQUIRE_KEY, default="")


def pytest_configure(config: pytest.Config) -> None:
    """A budget or a switch that is none is told before any test runs."""
    dollars(_setting(config, "budget"))
    _requires_key(config)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of xdist tells the terminal's process what it did."""
    done, report = (
        session.config.stash.get(_DONE, None),
        getattr(session.config, "workeroutput", None),
    )
    if done and report is not None:
        report["evenhand"] = dict(done)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """What a worker of xdist did is counted here; one that crashed tells nothing."""
    report = getattr(node, "workeroutput", {}).get("evenhand", {})
    node.config.stash.setdefault(_DONE, Counter()).update(report)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """One line about calls and money, if a judge was asked for anything."""
    done = config.stash.get(_DONE, None)
    if done:
        terminalreporter.write_line(f"evenhand: {_summary(done, _setting(config, 'budget'))}")


@pytest.fixture
def evenhand(request: pytest.FixtureRequest) -> Evenhand:
    """Judges inside a test: `evenhand.score(question, output, rubric=...)`, `grade`, `prefer`."""
    stash = request.config.stash
    if _SESSION not in stash:
        stash[_SESSION] = _Session(request)
    return Evenhand(stash[_SESSION], request.node)


class Judged:
    """A judgment inside a test: `.scores["correct"]`, `.total_score`, `.winner`, and all that a
    Judgment has. Without a verdict there is nothing to compare, so those fail the test."""

    def __init__(self, judgment: Judgment) -> None:
        self.judgment = judgment

    def __getattr__(self, name: str) -> Any:
        return getattr(self.judgment, name)

    def __repr__(self) -> str:
        return f"<{_headline(self.judgment)}>"

    @property
    def scores(self) -> dict[str, float]:
        """Of a score or a grade, by dimension."""
        __tracebackhide__ = True
        return _scores(self._of("scores", "score"))

    @property
    def total_score(self) -> float:
        """Of a grade, out of 100."""
        __tracebackhide__ = True
        return float(self._of("total_score"))

    @property
    def critical_fail(self) -> bool:
        """Of a grade."""
        __tracebackhide__ = True
        return bool(self._of("critical_fail"))

    @property
    def winner(self) -> str:
        """Of a preference: `A` (the first), `B`, `tie` or `uncertain`."""
        __tracebackhide__ = True
        return str(self._of("winner"))

    def _of(self, *names: str) -> Any:
        __tracebackhide__ = True
        if self.judgment.output is None:
            pytest.fail(_headline(self.judgment))
        for name in names:
            if name in self.judgment.output:
                return self.judgment.output[name]
        # Not an AttributeError: Python would look for the name in the judgment.
        raise LookupError(f"a judgment of this kind has no {names[0]}; see its .output")


class Evenhand:
    """What the fixture gives: the functions of the package, with the session's judge, store and
    budget. A judge whose key is not set skips the test, or fails it where keys are required."""

    def __init__(self, session: _Session, item: pytest.Item) -> None:
        self._session, self._item = session, item

    def __repr__(self) -> str:
        return "<evenhand>"

    def score(self, question: str, output: str, **settings: Any) -> Judged:
        """As `evenhand.score`."""
        __tracebackhide__ = True
        return self._judged("score", question, output, **settings)

    def grade(self, prompt: str, answer: str, **settings: Any) -> Judged:
        """As `evenhand.grade`."""
        __tracebackhide__ = True
        return self._judged("grade", prompt, answer, **settings)

    def prefer(self, topic: str, first: str, second: str, **settings: Any) -> Judged:
        """As `evenhand.prefer`."""
        __tracebackhide__ = True
        return self._judged("prefer", topic, first, second, **settings)

    async def score_async(self, question: str, output: str, **settings: Any) -> Judged:
        """As `evenhand.score_async`."""
        __tracebackhide__ = True
        return await self._judged_async("score_async", question, output, **settings)

    async def grade_async(self, prompt: str, answer: str, **settings: Any) -> Judged:
        """As `evenhand.grade_async`."""
        __tracebackhide__ = True
        return await self._judged_async("grade_async", prompt, answer, **settings)

    async def prefer_async(self, topic: str, first: str, second: str, **settings: Any) -> Judged:
        """As `evenhand.prefer_async`."""
        __tracebackhide__ = True
        return await self._judged_async("prefer_async", topic, first, second, **settings)

    def _judged(self, name: str, *texts: str, **settings: Any) -> Judged:
        __tracebackhide__ = True
        import evenhand

        try:
            return self._recorded(
                getattr(evenhand, name)(*texts, **self._session.arguments(settings))
            )
        except evenhand.EvenhandError as error:
            failed = error
        raise self._ending(failed)

    async def _judged_async(self, name: str, *texts: str, **settings: Any) -> Judged:
        __tracebackhide__ = True
        import evenhand

        ask = getattr(evenhand, name)
        try:
            return self._recorded(await ask(*texts, **self._session.arguments(settings)))
        except evenhand.EvenhandError as error:
            failed = error
        raise self._ending(failed)

    def _recorded(self, judgment: Judgment) -> Judged:
        """Pytest shows the section if the test fails."""
        self._item.add_report_section("call", "evenhand", "\n".join(_lines(judgment)) + "\n")
        return Judged(judgment)

    def _ending(self, error: EvenhandError) -> BaseException:
        """What ends the test: an error without the frames of the package, or a skip."""
        from evenhand.errors import KeyMissing

        if isinstance(error, KeyMissing) and not self._session.requires_key:
            self._session.done["keyless"] += 1
            return pytest.skip.Exception(f"{error.what}. {error.advice}")
        return error.with_traceback(None)


class _Session:
    """What all tests share. `done` counts what they did."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        config = request.config
        self.done = config.stash.setdefault(_DONE, Counter())
        self._store = _named_store(config) or _cached_store(request)
        self._defaults = {name: _setting(config, name) for name in ("judge", "language")}
        self._dollars = dollars(_setting(config, "budget"))
        self._workers = _workers(config)
        self.requires_key = _requires_key(config)
        self._budget: CallBudget | None = None

    def arguments(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """What a test says, over what the session has."""
        from evenhand.runs.judge import Options

        defaults = {name: value for name, value in self._defaults.items() if value}
        options = Options(budget=self._shared_budget(), watch=self._watch)
        return {**defaults, "store": self._store, "options": options, **settings}

    def _shared_budget(self) -> CallBudget | None:
        if self._dollars is not None and self._budget is None:
            from evenhand.engine.budget import CallBudget
            from evenhand.engine.prices import PICO

            self._budget = CallBudget(int(self._dollars * PICO) // self._workers, advice=_RAISE)
        return self._budget

    @contextmanager
    def _watch(self, tally: Tally, planned: int, stop: Stop) -> Iterator[None]:
        try:
            yield
        finally:
            self.done.update(sent=tally.sent, cached=tally.cached, failed=tally.failures)
            self.done.update(cost=tally.cost, unpriced=tally.unpriced)


_SESSION = pytest.StashKey[_Session]()
_DONE = pytest.StashKey[Counter[str]]()
_RAISE = (
    "All tests of the session share it; raise --evenhand-budget or evenhand_budget. What was paid"
    " for is kept: run the tests again, and only the rest is asked."
)


def _setting(config: pytest.Config, name: str) -> str:
    """Command line beats environment beats ini file; the judge alone has a variable."""
    variable = os.environ.get("EVENHAND_JUDGE") if name == "judge" else None
    return config.getoption(f"evenhand_{name}") or variable or config.getini(f"evenhand_{name}")


def _requires_key(config: pytest.Config) -> bool:
    """Whether a test without a key fails: command line beats ini file beats environment. In CI a
    secret that was lost must not look like a success."""
    word = config.getini("evenhand_require_key").strip().lower()
    if word and word not in _WORDS:
        raise pytest.UsageError(f"evenhand_require_key is true or false, and is {word!r}")
    if config.getoption("evenhand_require_key") or word:
        return bool(config.getoption("evenhand_require_key") or _WORDS[word])
    return _WORDS.get(os.environ.get("CI", "").lower(), bool(os.environ.get("CI")))


def dollars(text: str) -> Decimal | None:
    """An amount of money; raises the error that ends pytest with a message."""
    if not text:
        return None
    from decimal import Decimal, InvalidOperation

    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal(-1)
    if not amount.is_finite() or amount < 0:
        raise pytest.UsageError(f"the evenhand budget is an amount of dollars, and is {text!r}")
    return amount


def _workers(config: pytest.Config) -> int:
    """How many processes of xdist share the session; its variables are also seen by a pytest that a
    test starts, and is none of them."""
    return int(getattr(config, "workerinput", {}).get("workercount", 1))


def _named_store(config: pytest.Config) -> str:
    """The store that was named, wherever tests change to; empty if none was."""
    option = config.getoption("evenhand_store")
    folder = config.invocation_params.dir if option else config.rootpath
    url = option or config.getini("evenhand_store")
    scheme, _, path = url.partition(":")
    if scheme != "sqlite" or path == ":memory:":
        return str(url)
    return f"sqlite:{folder / path.removeprefix('//')}"


def _cached_store(request: pytest.FixtureRequest) -> str:
    """The store in pytest's cache; where there is none, it lasts as long as the session."""
    try:
        folder = Path(request.config.cache.mkdir("evenhand"))
    except (AttributeError, OSError):
        folder = request.getfixturevalue("tmp_path_factory").mktemp("evenhand")
    return f"sqlite:{folder / 'store.db'}"


def _summary(done: Mapping[str, int], budget: str) -> str:
    from evenhand.engine.prices import usd
    from evenhand.report.terminal.tables import counted

    cost = f"${usd(done['cost'])}" + (f" of ${budget}" if budget else "")
    parts = [
        f"{counted(done['sent'], 'call')} sent, {done['cached']} from the ledger",
        "price unknown" if done["unpriced"] else cost,
    ]
    if done["failed"]:
        parts.append(f"{done['failed']} without a verdict")
    if done["keyless"]:
        parts.append(f"{done['keyless']} skipped without a key")
    return "; ".join(parts)


def _scores(scores: Mapping[str, Any]) -> dict[str, float]:
    """Of a rubric, where a score has its reasons beside it, or of a grade."""
    return {
        name: score["score"] if isinstance(score, Mapping) else score
        for name, score in scores.items()
    }


def _headline(judgment: Judgment) -> str:
    """A judgment on one line."""
    from evenhand.report.terminal.tables import cut

    output = judgment.output
    if output is None:
        return cut(f"no verdict: {judgment.reason or judgment.status}: {judgment.detail}", _LINE)
    if "winner" in output:
        return f"winner {output['winner']}, {output['settled']}"
    scores = _scores(output.get("scores") or output["score"])
    listed = ", ".join(f"{name} {score}" for name, score in scores.items())
    total = f"{output['total_score']} of 100: " if "total_score" in output else ""
    return cut(total + listed, _LINE)


def _lines(judgment: Judgment) -> Iterator[str]:
    """A judgment with its reasons, a line each. Every line begins with words of ours: what is
    judged is hostile, and the log of a build takes some lines for commands."""
    from evenhand.report.terminal.tables import cut

    output = judgment.output or {}
    if "scores" not in output:
        yield _headline(judgment)
    for line in _reasons(output):
        yield f"  {cut(line, _LINE)}"


def _reasons(output: Mapping[str, Any]) -> Iterator[str]:
    for name, score in output.get("scores", {}).items():
        quotes = "".join(f" “{quote}”" for quote in score["evidence"])
        yield f"{name} {score['score']}: {score['rationale']}{quotes}"
    for name, reason in output.get("reasoning", {}).items():
        yield f"{name} {output['score'][name]}: {reason}"
    if output.get("critical_fail"):
        yield f"critical fail: {output['critical_fail_reason']}"
    for name, mark in output.get("criteria", {}).items():
        yield f"{name} {mark}"
    if output.get("notes"):
        yield f"notes: {output['notes']}"


_LINE = 1000
