"""The pytest plugin: an `evenhand` fixture that judges inside tests.

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

    from evenhand.engine.prices import CallBudget
    from evenhand.engine.progress import Tally
    from evenhand.engine.stop import Stop
    from evenhand.results.judged import JudgedUnit

OPTIONS = {
    "judge": "The judge of tests that name none, e.g. openai/gpt-4.1-mini.",
    "store": "Where replies are kept, e.g. sqlite:judged.db. Default: in pytest's cache.",
    "budget": "Dollars that all tests together may spend; a test that needs more fails.",
    "language": "Of the judge's prompts where a test names none: ru, zh, ja or en.",
}
LINE_CHARS = 1000


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add every setting as an option and as a key of the ini file."""
    group = parser.getgroup("evenhand", "judging inside tests")
    for name, about in OPTIONS.items():
        group.addoption(f"--evenhand-{name}", metavar=name.upper(), help=about)
        parser.addini(f"evenhand_{name}", about, default="")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a budget that is not a number before any test runs."""
    dollars(_setting(config, "budget"))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the counts of an xdist worker to the process with the terminal."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["evenhand"] = dict(session.config.stash.get(_COUNTS, {}))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add the counts of an xdist worker; one that crashed has none."""
    counts = getattr(node, "workeroutput", {}).get("evenhand", {})
    node.config.stash.setdefault(_COUNTS, Counter()).update(counts)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Print one line about calls and money, if a judge was asked for anything."""
    counts = config.stash.get(_COUNTS, None)
    if counts:
        terminalreporter.write_line(f"evenhand: {_summary(counts, _setting(config, 'budget'))}")


@pytest.fixture
def evenhand(request: pytest.FixtureRequest) -> Evenhand:
    """Judges inside a test: `evenhand.score(question, output, rubric=...)`, `checklist`, `grade`,
    `prefer`; `evenhand.assert_passes(...)` of what they return."""
    stash = request.config.stash
    if _SESSION not in stash:
        stash[_SESSION] = _Session(request)
    return Evenhand(stash[_SESSION], request.node)


class Evenhand:
    """The functions of the package, with the session's judge, store and budget. A judge whose key
    is not set skips the test; in CI it fails it, for a lost secret must not look like success."""

    def __init__(self, session: _Session, item: pytest.Item) -> None:
        self._session, self._item = session, item

    def score(self, *texts: Any, **settings: Any) -> JudgedUnit:
        """Score one output, as `evenhand.score`."""
        __tracebackhide__ = True
        return self._judge("score", *texts, **settings)

    def checklist(self, *texts: Any, **settings: Any) -> JudgedUnit:
        """Check one output, as `evenhand.checklist`."""
        __tracebackhide__ = True
        return self._judge("checklist", *texts, **settings)

    def grade(self, *texts: Any, **settings: Any) -> JudgedUnit:
        """Grade one answer, as `evenhand.grade`."""
        __tracebackhide__ = True
        return self._judge("grade", *texts, **settings)

    def prefer(self, *texts: Any, **settings: Any) -> JudgedUnit:
        """Compare two answers, as `evenhand.prefer`."""
        __tracebackhide__ = True
        return self._judge("prefer", *texts, **settings)

    def assert_passes(self, judged: JudgedUnit, *, at_least: float | None = None) -> None:
        """Assert that one output passes, as `evenhand.assert_passes`."""
        __tracebackhide__ = True
        import evenhand

        evenhand.assert_passes(judged, at_least=at_least)

    def _judge(self, name: str, *texts: Any, **settings: Any) -> JudgedUnit:
        """Return a judgment, attached to the test: pytest shows it if the test fails."""
        __tracebackhide__ = True
        import evenhand
        from evenhand.errors import KeyMissing

        try:
            judged: JudgedUnit = getattr(evenhand, name)(*texts, **self._session.settings(settings))
        except evenhand.EvenhandError as error:
            failed = error
        else:
            self._item.add_report_section("call", "evenhand", "".join(_lines(judged)))
            return judged
        is_ci = os.environ.get("CI", "").lower() not in ("", "false", "no", "0")
        if isinstance(failed, KeyMissing) and not is_ci:
            self._session.counts["keyless"] += 1
            pytest.skip(f"{failed.what}. {failed.advice}")
        # Without the frames of the package.
        raise failed.with_traceback(None) from None


class _Session:
    """The settings and counts that all tests share."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        config = request.config
        self.counts = config.stash.setdefault(_COUNTS, Counter())
        self._defaults: dict[str, Any] = {"store": _store_url(request)}
        for name in ("judge", "language"):
            if value := _setting(config, name):
                self._defaults[name] = value
        self._dollars = dollars(_setting(config, "budget"))
        # The workers of xdist share the session's budget.
        self._workers = int(getattr(config, "workerinput", {}).get("workercount", 1))
        self._budget: CallBudget | None = None

    def settings(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of the session, overridden by those that a test gives."""
        from evenhand.engine.prices import PICO, CallBudget
        from evenhand.runs.judge import Options
        from evenhand.words import Sentence

        if self._dollars is not None and self._budget is None:
            cap = int(self._dollars * PICO) // self._workers
            self._budget = CallBudget(cap, advice=Sentence("api.session_budget"))
        options = Options(budget=self._budget, watch=self._watch)
        return {**self._defaults, "options": options, **given}

    @contextmanager
    def _watch(self, tally: Tally, planned: int, stop: Stop) -> Iterator[None]:
        try:
            yield
        finally:
            self.counts.update(sent=tally.sent, cached=tally.cached, failed=tally.failures)
            self.counts.update(cost=tally.cost, unpriced=tally.unpriced)


_SESSION = pytest.StashKey[_Session]()
_COUNTS = pytest.StashKey[Counter[str]]()


def _setting(config: pytest.Config, name: str) -> str:
    """Return a setting: command line beats environment, which holds only the judge, beats ini."""
    variable = os.environ.get("EVENHAND_JUDGE") if name == "judge" else None
    return config.getoption(f"evenhand_{name}") or variable or config.getini(f"evenhand_{name}")


def dollars(text: str) -> Decimal | None:
    """Return an amount of money, None for an empty text; raises the error that ends pytest."""
    from decimal import Decimal, InvalidOperation

    if not text:
        return None
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal(-1)
    if not amount.is_finite() or amount < 0:
        from evenhand.words import Sentence

        raise pytest.UsageError(Sentence("api.not_dollars", text=text))
    return amount


def _store_url(request: pytest.FixtureRequest) -> str:
    """Return the store that was named, wherever tests change to; else the one in pytest's cache,
    or, without a cache, one that lasts as long as the session."""
    config = request.config
    option = config.getoption("evenhand_store")
    scheme, _, path = (option or config.getini("evenhand_store")).partition(":")
    if scheme == "sqlite" and path != ":memory:":
        folder = config.invocation_params.dir if option else config.rootpath
        return f"sqlite:{folder / path.removeprefix('//')}"
    if scheme:
        return f"{scheme}:{path}"
    if cache := getattr(config, "cache", None):
        folder = Path(cache.mkdir("evenhand"))
    else:
        folder = request.getfixturevalue("tmp_path_factory").mktemp("evenhand")
    return f"sqlite:{folder / 'store.db'}"


def _summary(counts: Mapping[str, int], budget: str) -> str:
    from evenhand.engine.prices import dollars as to_dollars
    from evenhand.words import words

    say, cost = words("en", plain=True), to_dollars(counts["cost"])
    parts = [say("api.calls", sent=counts["sent"], cached=counts["cached"])]
    if counts["unpriced"]:
        parts.append(say("api.price_unknown"))
    elif budget:
        parts.append(say("api.cost_of", cost=cost, budget=float(budget)))
    else:
        parts.append(say("api.cost", cost=cost))
    parts += [say(f"api.{name}", n=counts[name]) for name in ("failed", "keyless") if counts[name]]
    return say.join(parts, between="semicolon")


def _lines(judged: JudgedUnit) -> Iterator[str]:
    """Yield the fields of a judgment, a line each. Every line begins with words of ours: what is
    judged is hostile, and the log of a build takes some lines for commands."""
    from evenhand.notebook import flat_fields
    from evenhand.report.terminal.tables import cut

    output = judged.output or {"reason": judged.reason, "detail": judged.detail}
    for name, value in flat_fields(output):
        yield f"  {cut(f'{name}: {value}', LINE_CHARS)}\n"
