"""A suite ready to be judged: what every part of a run needs of it, whoever made it ready."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from pydantic import BaseModel

from evenhand.data.columns import Rows
from evenhand.engine.prices import PICO, Price, similar_model
from evenhand.engine.run import JudgeGroup
from evenhand.errors import UsageError
from evenhand.exchange import Judge
from evenhand.files.protocols import judging_of
from evenhand.judges import split_name
from evenhand.judgment import bad_tries
from evenhand.kinds import KINDS
from evenhand.kinds.kind import Kind, ReadyKind
from evenhand.kinds.protocol import Protocol
from evenhand.manifest import (
    Compare,
    GateRule,
    JudgeRecord,
    JudgingRecord,
    Manifest,
    Stopping,
    rubric_json,
)
from evenhand.runs.author import author
from evenhand.runs.recorded import judge_groups
from evenhand.store.ports import IncomingUnit, Spent, StoredJudgment
from evenhand.suite import Suite
from evenhand.suite_file import JudgeSpec
from evenhand.words import Sentence


class JudgeSetup(Struct, frozen=True, kw_only=True):
    """A judge in a run: what the suite says of it, and the judge itself."""

    spec: JudgeSpec
    judge: Judge
    price: Price | None

    @property
    def batch_price(self) -> Price | None:
        """Return the price of its tokens in a batch; None where its price is not known."""
        address = str(self.judge.identity.get("base_url", ""))
        share = split_name(self.spec.model)[0].batch_share(address)
        return None if self.price is None else self.price.times(share)

    @property
    def record(self) -> JudgeRecord:
        """Return it as the manifest keeps it."""
        judge = self.judge
        return JudgeRecord(
            name=judge.name,
            identity=dict(judge.identity),
            style=judge.style,
            caveat=judge.caveat,
            repeats=self.spec.repeats,
        )


Units = Callable[[ReadyKind], Iterator[IncomingUnit]]
"""The units of data files, checked as they are read; raises DataError with file:line."""


class Plan(Struct, frozen=True, kw_only=True, dict=True):
    """A suite ready to be judged. Making one sends nothing and writes nothing."""

    suite: Suite
    protocol: Protocol
    settings: Mapping[str, Any]
    """Those that the kind has, and `use`."""
    rubric: object
    """The rubric of the suite; None if the units bring their own."""
    setups: tuple[JudgeSetup, ...]
    units: Units
    answers: AnswerStage | None = None
    """What is to be answered first, where the suite makes its own answers."""
    answers_run: str = ""
    """The run that made the answers which are judged."""
    used_beside: int = 0
    """Picodollars of the budget that other runs have used: answers and judgments share one."""
    recorded: Manifest | None = None
    """What a run recorded of itself, where it is continued from the store alone."""

    @property
    def name(self) -> str:
        return self.suite.file.name

    def _record(self) -> JudgingRecord:
        file = self.suite.file
        return JudgingRecord(
            protocol=self.protocol.version,
            texts=dict(self.protocol.texts),
            language=file.language,
            rubric_json=rubric_json(self.rubric),
            judges=tuple(setup.record for setup in self.setups),
            seed=file.seed,
            settings=self.settings,
        )

    @cached_property
    def manifest(self) -> Manifest:
        """Return the manifest: every hash that matters, and the texts to judge again without the
        suite's files."""
        if self.recorded is not None:
            return self.recorded
        file = self.suite.file
        return Manifest(
            judging=self._record(),
            protocol=self.protocol.name,
            prompt=file.prompt,
            evenhand=version("evenhand"),
            compare=table_record(file.compare, Compare),
            stop=table_record(file.stop, Stopping),
            gate=table_record(file.gate, GateRule),
            answers=self.answers_run,
            author=author(),
            leaves_out_cut=self.answers is not None and not self.answers.judges_cut,
        )

    @property
    def is_sequential(self) -> bool:
        """Return True if the run ends as soon as its comparison is decided."""
        return self.suite.file.stop is not None and self.suite.file.stop.until_decided

    @property
    def kind(self) -> Kind:
        return KINDS[self.protocol.kind]

    @cached_property
    def judging(self) -> ReadyKind:
        """Return the kind, made ready to judge the units."""
        return judging_of(self.protocol, self.manifest.judging)

    def bad_tries(self, stored: StoredJudgment) -> tuple[str, ...]:
        """Return the calls of a failure that are to be asked again."""
        return bad_tries(self.kind.read_judgment(stored.text), stored.calls)

    @property
    def judge_groups(self) -> list[JudgeGroup]:
        return judge_groups(self.manifest.judging)

    @property
    def judgments_per_unit(self) -> int:
        return sum(group.repeats for group in self.judge_groups)

    @property
    def budget_cap(self) -> int | None:
        """Return the budget in picodollars."""
        budget = self.suite.file.limits.budget_usd
        return None if budget is None else int(budget * PICO)

    def used(self, spent: Spent) -> int:
        """Return what was used of the budget of a run. Calls from before they had a price count as
        the most that they can have cost."""
        unpriced = sum(
            max((price.bound(*tokens) for price in self._prices(judge)), default=0)
            for judge, tokens in spent.unpriced_tokens.items()
        )
        return self.used_beside + spent.cost + spent.reserved + unpriced

    def _prices(self, judge: str) -> list[Price]:
        """Return the prices of the judges of this name; of all judges where none has it."""
        named = [setup for setup in self.setups if setup.judge.name == judge]
        return [setup.price for setup in named or self.setups if setup.price]

    def know_prices(self) -> None:
        """With a budget every price must be known; raises UsageError."""
        if self.answers is not None:
            self.answers.plan.know_prices()
        for index, setup in enumerate(self.setups):
            if setup.price is None:
                provider, model = split_name(setup.spec.model)
                near = similar_model(provider.name, model)
                raise UsageError(
                    Sentence(
                        "runs.no_price_near" if near else "runs.no_price",
                        judge=setup.judge.name,
                        near=f"{provider.name}/{near}",
                        entry=index + 1,
                    ),
                    where=str(self.suite.path or ""),
                )

    @property
    def all_setups(self) -> tuple[JudgeSetup, ...]:
        """Return all that may be asked anything: the models that answer first, then the judges."""
        return (*(self.answers.plan.setups if self.answers else ()), *self.setups)

    async def aclose(self) -> None:
        """Give back what the judges hold."""
        for setup in self.setups:
            await setup.judge.close()
        if self.answers is not None:
            await self.answers.plan.aclose()


class AnswerStage(Struct, frozen=True, kw_only=True):
    """What a suite does before it judges: the plan of its answers, the file that keeps them, and
    how rows become units to judge."""

    plan: Plan
    path: Path
    judges_cut: bool
    """False where answers that were cut off, filtered or refused are left out."""
    units_of: Callable[[Rows], Units]

    def judged_units(self, rows: Sequence[Mapping[str, Any]]) -> Units:
        """Return the units that these answers make. Where models answer several times, each time is
        a run of its own: an answer is held against those of its own time."""
        judged = [row for row in rows if self.judges_cut or row["finish"] == "stop"]
        if any(setup.spec.repeats > 1 for setup in self.plan.setups):
            judged = [{"run_id": row["repeat"], **row} for row in judged]
        return self.units_of(Rows(self.path.name, judged))


T = TypeVar("T")


def table_record(part: BaseModel | None, record: type[T]) -> T | None:
    """Return a table of the suite as the manifest keeps it."""
    return None if part is None else msgspec.convert(part.model_dump(), record)
