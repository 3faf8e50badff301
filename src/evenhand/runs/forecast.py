"""Forecast of the calls and the cost of a run, before anything is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from evenhand.engine.prices import PICO, dollars, token_bound, token_guess
from evenhand.engine.run import FileOrder, JudgeGroup, Schedule, judging_context
from evenhand.engine.stop import Stopped
from evenhand.errors import ProviderRefused
from evenhand.exchange import Question, Reply, Usage
from evenhand.judgment import RETRIED_BY_NEXT_RUN
from evenhand.kinds.kind import ReadyKind
from evenhand.runs.judge import Begun, run_schedule
from evenhand.runs.plan import AnswerStage, JudgeSetup, Plan
from evenhand.runs.recorded import split_by_group
from evenhand.runs.stores import MEMORY, open_store
from evenhand.store.archive import Archive
from evenhand.store.ports import Scope, StoredJudgment, StoredUnit
from evenhand.store.rows import call_keys, run_id

OUTPUT_GUESS = 200
"""Tokens of a plain reply, for the lower end of a forecast."""
DIMENSIONS_GUESSED = 4
"""Where units bring their own rubrics."""
_PROSE = {"en": 1.0, "ru": 1.26, "zh": 1.18, "ja": 1.61}
"""Tokens of the same text against English, in OpenAI's o200k_base: of the bundled prompts, which
were written natively in each language."""
_REASKS = 1.03
_CONTRADICTIONS = 0.2
"""The share of rounds that contradict themselves: 31 % of the first GPT-4's on the Vicuna
questions, about half of that with newer judges."""


@dataclass(slots=True)
class Forecast:
    """The calls and tokens that a run would send, and the range of its price in picodollars."""

    run: str = ""
    planned: int = 0
    done: int = 0
    left_out: int = 0
    answered: int = 0
    calls_least: int = 0
    calls_most: int = 0
    input_tokens: int = 0
    output_tokens_most: int = 0
    cost_least: int | None = 0
    cost_most: int | None = 0
    cost_expected: float = 0.0
    """Of the calls that are sure and what follows from them, by what such calls take."""
    budget: int | None = None
    """What may be spent; None without a limit."""
    until_decided: bool = False
    """Whether the run may end at any moment: then nothing is sure to be sent."""
    answers: Forecast | None = None
    """Of the answers that are made first; its money is counted here too."""
    judges_asked: set[str] = field(default_factory=set[str])
    """The names of judges that the run may have to ask something."""

    def lacking(self, setups: Sequence[JudgeSetup]) -> list[ProviderRefused]:
        """Return the reasons that keep judges that would be asked from sending anything."""
        judges = [setup.judge for setup in setups if setup.judge.name in self.judges_asked]
        return [judge.unavailable_reason for judge in judges if judge.unavailable_reason]

    @property
    def cost_likely(self) -> int | None:
        """Return the likely cost, never above the most; None where a price is not known."""
        if self.cost_least is None or self.cost_most is None:
            return None
        return min(round(self.cost_expected), self.cost_most)

    def json(self) -> dict[str, Any]:
        likely = self.cost_likely
        sure = not self.until_decided
        answers = {} if self.answers is None else {"answers": self.answers.json()}
        return {
            "run": self.run,
            **answers,
            "until_decided": self.until_decided,
            "planned": self.planned,
            "done": self.done,
            "left_out": self.left_out,
            "cached": self.answered,
            "calls": {"least": self.calls_least * sure, "most": self.calls_most},
            "input_tokens": self.input_tokens,
            "output_tokens_most": self.output_tokens_most,
            "price_usd": {
                "least": None if self.cost_least is None else dollars(self.cost_least * sure),
                "likely": None if likely is None else dollars(likely),
                "most": None if self.cost_most is None else dollars(self.cost_most),
                "budget": None if self.budget is None else dollars(self.budget),
            },
        }


async def forecast(
    plan: Plan, archive: Archive | None, limit: int | None, *, retry_failures: bool = False
) -> Forecast:
    """Return a forecast of everything a run would do up to the first call of each judgment that is
    not in the ledger, and make no call. The data is read as by a run, into a store that
    vanishes."""
    result, budget_usd = Forecast(), plan.suite.file.limits.budget_usd
    result.budget = None if budget_usd is None else int(budget_usd * PICO)
    async with aclosing(plan):
        if plan.answers is not None:
            plan = await _look_at_answers(result, plan, plan.answers, archive, limit)
        await _look(result, plan, archive, limit, retry_failures)
    return result


async def _look_at_answers(
    result: Forecast, plan: Plan, stage: AnswerStage, archive: Archive | None, limit: int | None
) -> Plan:
    """Add what a suite's own answers would send and cost, and return the plan to judge them, those
    that are missing guessed to be of usual length."""
    from evenhand.runs.answers import count_asked, guessed_rows

    asked = None if limit is None else count_asked(stage, plan, limit)
    result.answers = made = Forecast()
    await _look(made, stage.plan, archive, asked, retry_failures=False)
    result.cost_least, result.cost_most = made.cost_least, made.cost_most
    result.cost_expected, result.judges_asked = made.cost_expected, set(made.judges_asked)
    rows = guessed_rows(stage, archive, asked)
    return replace(plan, units=stage.judged_units(rows))


async def forecast_calls(plan: Plan, archive: Archive, limit: int | None) -> int:
    """Return how many calls a run would send at least."""
    result = Forecast()
    await _look(result, plan, archive, limit, retry_failures=False)
    return result.calls_least


async def require_keys(
    plan: Plan, archive: Archive, limit: int | None, *, retry_failures: bool = False
) -> None:
    """Raise what keeps a judge from sending, unless all that it would be asked is in the ledger."""
    if not any(setup.judge.unavailable_reason for setup in plan.setups):
        return
    result = Forecast()

    def is_enough() -> bool:
        return bool(result.lacking(plan.setups))

    await _look(result, plan, archive, limit, retry_failures, is_enough)
    for lack in result.lacking(plan.setups):
        raise lack


async def _look(
    result: Forecast,
    plan: Plan,
    archive: Archive | None,
    limit: int | None,
    retry_failures: bool,
    is_enough: Callable[[], bool] = lambda: False,
) -> None:
    """Sum up what the units of a run would send, until it is enough."""
    beside = open_store(MEMORY)
    try:
        async with beside.ledger() as ledger:
            intake = await ledger.intake(plan.units(plan.judging))
            result.run = run_id(plan.name, plan.manifest.judging.id, intake.content)
            async with ledger.begin(result.run, plan.name, plan.manifest, intake):
                begun = Begun(Scope(result.run, limit), plan.manifest)
                schedule = run_schedule(plan, beside.archive, ledger, begun)
        ahead = _Lookahead(result, plan, archive or beside.archive, retry_failures)
        await ahead.add_all(schedule, lambda: beside.archive.units(begun.scope), is_enough)
    finally:
        beside.close()


class _Lookahead:
    """A forecast under way: the ledger answers as far as it can, and what is missing is summed."""

    def __init__(
        self, forecast: Forecast, plan: Plan, archive: Archive, retry_failures: bool
    ) -> None:
        self.forecast = forecast
        self._calls = _REASKS * sum(_CONTRADICTIONS**later for later in range(plan.judging.rounds))
        """For each question that opens a judgment, with re-asks and later rounds."""
        self._reply_tokens = _reply_tokens(plan.judging, plan.suite.file.language)
        self._judging, self._archive, self._record = plan.judging, archive, plan.manifest.judging.id
        self._retry_failures, self._bad_tries = retry_failures, plan.bad_tries
        self._tries = 1 + int(plan.settings.get("repairs", 0))
        judges = [(setup, call_keys(setup.judge.identity)) for setup in plan.setups]
        self._by_group = list(split_by_group(plan.judge_groups, judges))
        self._sent: set[str] = set()
        """The keys of calls that were counted: units alike ask the same question once."""

    async def add_all(
        self,
        schedule: Schedule,
        units: Callable[[], Iterator[StoredUnit]],
        is_enough: Callable[[], bool],
    ) -> None:
        """Count all units that are wanted, when what the store holds has been taken into
        account."""
        if not isinstance(schedule, FileOrder):
            self.forecast.until_decided = True
            for unit in units():
                for stored in self._find_known(unit):
                    schedule.note(unit.no, stored.judge, stored.repeat, stored.text)
        for unit in units():
            if is_enough():
                return
            if schedule.is_wanted(unit.no):
                await self.add(unit)

    def _find_known(self, unit: StoredUnit) -> list[StoredJudgment]:
        """Return the judgments of a unit by the same judging in any run."""
        return self._archive.known(self._record, unit.id, unit.body)

    async def add(self, unit: StoredUnit) -> None:
        """Count all judgments of one unit."""
        judged = {(stored.judge, stored.repeat): stored for stored in self._find_known(unit)}
        for group, judges in self._by_group:
            for repeat in range(group.repeats):
                stored = judged.get((group.index, repeat))
                if stored is not None and self._stands(stored):
                    self.forecast.answered += len(stored.calls)
                    self.forecast.done += stored.text.status != "left_out"
                    self._plan(is_left_out=stored.text.status == "left_out")
                else:
                    await self._judge(unit, group, repeat, judges, stored)

    def _stands(self, stored: StoredJudgment) -> bool:
        reason = stored.text.reason
        return reason is None or not (self._retry_failures or reason in RETRIED_BY_NEXT_RUN)

    def _plan(self, *, is_left_out: bool) -> None:
        self.forecast.left_out += is_left_out
        self.forecast.planned += not is_left_out

    async def _judge(
        self,
        unit: StoredUnit,
        group: JudgeGroup,
        repeat: int,
        judges: Sequence[tuple[JudgeSetup, Callable[[Question], str]]],
        before: StoredJudgment | None,
    ) -> None:
        """Judge a unit from the ledger; the questions that it cannot answer are to be sent."""
        is_set_aside = before and before.text.reason not in RETRIED_BY_NEXT_RUN
        aside = self._bad_tries(before) if before and is_set_aside else ()
        rounds: set[tuple[int, int]] = set()
        missing: list[Question] = []

        async def ask(question: Question) -> Reply:
            rounds.add((question.judge_index, question.round))
            key = judges[question.judge_index][1](replace(question, repeat=repeat))
            recorded = None if key in aside else self._archive.calls([key]).get(key)
            if recorded is None or recorded.aside:
                if key not in self._sent:
                    self._sent.add(key)
                    missing.append(question)
                raise Stopped
            self.forecast.answered += 1
            await asyncio.sleep(0)  # Ctrl-C is heard
            return recorded.call.reply

        try:
            context = judging_context(group, repeat, ask)
            judgment = await self._judging.judge(self._judging.load(unit.body), context)
            self._plan(is_left_out=judgment.status == "left_out")
        except Stopped:
            self._plan(is_left_out=False)
            if missing:
                openings = self._openings(unit.body, group, repeat)
                self._send([setup for setup, _ in judges], missing, len(rounds), openings)

    def _openings(self, body: str, group: JudgeGroup, repeat: int) -> dict[int, list[Question]]:
        """Return the questions of a round to each judge of a group that may be asked them."""
        whole, questions_of = judging_context(group, repeat, _no), dict[int, list[Question]]()
        unit = self._judging.load(body)
        for index in range(len(group.names)):
            only = slice(index, index + 1)
            alone = replace(whole, judges=group.names[only], styles=group.styles[only])
            questions_of[index] = [
                replace(question, judge_index=index)
                for question in self._judging.first_questions(unit, alone)
            ]
        return {index: questions for index, questions in questions_of.items() if questions}

    def _send(
        self,
        setups: Sequence[JudgeSetup],
        missing: Sequence[Question],
        rounds: int,
        openings: Mapping[int, Sequence[Question]],
    ) -> None:
        """Count the calls that are missing of the round that was begun last, and those that may
        follow: the re-asks of each pass, and later rounds, which in a relay may go to its dearest
        judge."""
        # A later round of a relay may be asked of any judge of it.
        self.forecast.judges_asked.update(setup.judge.name for setup in setups)
        for question in missing:
            setup = setups[question.judge_index]
            self._add_sure(setup, question)
            self._add_most([(setup, question)], range(self._tries - question.reask))
        for passes in zip(*openings.values(), strict=True):
            ways = [(setups[question.judge_index], question) for question in passes]
            self._add_most(ways, range(self._tries), self._judging.rounds - rounds)

    def _add_sure(self, setup: JudgeSetup, question: Question) -> None:
        forecast, guess = self.forecast, token_guess(question.messages)
        forecast.calls_least += 1
        forecast.input_tokens += guess
        if setup.price is None:
            forecast.cost_least = None
        elif forecast.cost_least is not None:
            written = min(OUTPUT_GUESS, setup.spec.max_tokens)
            usage = Usage(input_tokens=guess, output_tokens=written)
            forecast.cost_least += setup.price.cost(usage) or 0
            written = round(min(self._reply_tokens, setup.spec.max_tokens))
            forecast.cost_expected += self._calls * setup.price.bound(guess, written)

    def _add_most(
        self, ways: Sequence[tuple[JudgeSetup, Question]], tries: range, times: int = 1
    ) -> None:
        """A pass that goes one of some ways, with all its tries; so many times."""
        forecast, calls = self.forecast, len(tries) * times
        forecast.calls_most += calls
        forecast.output_tokens_most += calls * max(setup.spec.max_tokens for setup, _ in ways)
        costs = [_dearest(setup, token_bound(question), tries) for setup, question in ways]
        priced = [cost for cost in costs if cost is not None]
        if calls and len(priced) < len(costs):
            forecast.cost_least = forecast.cost_most = None
        elif forecast.cost_most is not None and priced:
            forecast.cost_most += times * max(priced)


def _dearest(setup: JudgeSetup, bound: int, tries: range) -> int | None:
    """Return the most that a pass can cost: each re-ask sends the conversation again, with the
    reply before it."""
    if setup.price is None:
        return None
    written, price = setup.spec.max_tokens, setup.price
    return sum(price.bound(bound + written * reask, written) for reask in tries)


def _reply_tokens(judging: ReadyKind, language: str) -> float:
    """Return about how many tokens a reply has, by what was measured of replies of its form."""
    dimensions = len(judging.dimensions) or len(judging.ends) or DIMENSIONS_GUESSED
    length = judging.kind.reply_length
    prose = length.prose + length.prose_each * dimensions
    return length.form + length.form_each * dimensions + prose * _PROSE.get(language, 1.0)


async def _no(question: Question) -> Reply:
    raise Stopped
