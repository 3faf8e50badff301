"""The questions of a run as a file in OpenAI's batch form, and the answers to them as another: for
`vllm run-batch` and whatever else reads and writes it.

A file holds a wave: all that can be asked before something is answered. Answers go through the same
keys and checks as if they had come over the network.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from evenhand.engine.call import AskFn, route
from evenhand.engine.prices import most_tokens, token_bound
from evenhand.engine.progress import Tally
from evenhand.engine.run import judge_unit
from evenhand.engine.stop import Stopped
from evenhand.errors import AskAgain, CallLost, DataError, ProviderRefused, UsageError
from evenhand.exchange import BatchAnswer, BatchJudge, Judge, Question
from evenhand.judges import JudgeOptions, split_name
from evenhand.judges.batch_client import read_lines
from evenhand.judges.batch_endpoints import batch_line, line_answer
from evenhand.judgment import RETRIED_BY_NEXT_RUN
from evenhand.limits import LINE_BYTES
from evenhand.manifest import JudgeRecord
from evenhand.runs.plan import Plan
from evenhand.runs.recorded import Recorded, split_by_group
from evenhand.store.archive import Archive
from evenhand.store.batches import item_id, item_key
from evenhand.store.ledger import Ledger, Store
from evenhand.store.ports import Call, Scope, StoredUnit
from evenhand.store.rows import call_keys, run_id
from evenhand.words import Sentence


@dataclass(slots=True)
class BatchFile:
    """The counts of a file of questions or answers."""

    questions: int = 0
    """Questions that are still without an answer."""
    answered: int = 0
    failed: int = 0
    """Answers that are none: errors, and what cannot be read."""
    doubled: int = 0
    unknown: int = 0
    verdicts: int = 0
    complaint: str = ""
    """What the first of the failed says."""

    def json(self) -> dict[str, int | str]:
        """Return it as `--json` prints it."""
        return {
            "answered": self.answered,
            "failed": self.failed,
            "doubled": self.doubled,
            "unknown": self.unknown,
            "verdicts": self.verdicts,
            "left": self.questions,
        }


async def begin_run(plan: Plan, store: Store) -> str:
    """Have the run of a plan and its data begin, and ask nothing; its id."""
    async with store.ledger() as ledger:
        intake = await ledger.intake(plan.units(plan.judging))
        run = run_id(plan.name, plan.manifest.judging.id, intake.content)
        async with ledger.begin(run, plan.name, plan.manifest, intake):
            return run


async def write_wave(recorded: Recorded, archive: Archive, write: Callable[[bytes], Any]) -> int:
    """Write every question that can be asked now and has no answer, a line each; how many. Raises
    UsageError for a judge of another protocol."""
    judges = chat_judges(recorded)
    seen: set[str] = set()

    def endpoint(record: JudgeRecord, judge: BatchJudge) -> AskFn:
        key_of = call_keys(record.identity)

        async def ask(question: Question) -> Call:
            key = key_of(question)
            known = archive.calls([key]).get(key)
            if known is not None and not known.aside and not known.altered:
                return known.call
            if key not in seen:
                seen.add(key)
                write(batch_line(judge.batch_request(item_id(key), question)) + b"\n")
            raise Stopped

        return ask

    pairs = zip(recorded.judges, judges, strict=True)
    endpoints = [endpoint(record, judge) for record, judge in pairs]
    for group, members in split_by_group(recorded.judge_groups, endpoints):
        for repeat in range(group.repeats):
            for unit in archive.units(recorded.scope):
                if _is_open(recorded, archive, unit, group.index, repeat):
                    await _try_unit(recorded, group, repeat, unit, route(members))
    return len(seen)


def _is_open(
    recorded: Recorded, archive: Archive, unit: StoredUnit, judge: int, repeat: int
) -> bool:
    """Return True if a unit waits for a judgment, or had one that is to be tried again."""
    for _, stored in archive.judgments(Scope(recorded.id), unit.id):
        if (stored.judge, stored.repeat) == (judge, repeat):
            return stored.text.reason in RETRIED_BY_NEXT_RUN
    return True


async def _try_unit(
    recorded: Recorded, group: Any, repeat: int, unit: StoredUnit, endpoint: AskFn
) -> Any:
    """Return the judgment of a unit; None where a question of it has no answer."""
    await asyncio.sleep(0)  # Ctrl-C is heard
    try:
        return await judge_unit(recorded.judging, group, repeat, unit, endpoint, Tally())
    except Stopped:
        return None


async def take_answers(recorded: Recorded, store: Store, path: Path) -> BatchFile:
    """Record the answers of a file and judge what they answer, as far as that goes. Raises
    DataError where the file holds none."""
    judges, result = chat_judges(recorded), BatchFile()
    with path.open("rb") as file:
        answers = _Answers(file, path, result)
        async with store.ledger() as ledger, ledger.claim(recorded.id):
            endpoints = [
                answers.endpoint(recorded.id, record, judge, ledger)
                for record, judge in zip(recorded.judges, judges, strict=True)
            ]
            for group, members in split_by_group(recorded.judge_groups, endpoints):
                for repeat in range(group.repeats):
                    for unit in store.archive.units(recorded.scope):
                        if not _is_open(recorded, store.archive, unit, group.index, repeat):
                            continue
                        settled = await _try_unit(recorded, group, repeat, unit, route(members))
                        if settled is not None:
                            result.verdicts += settled.judgment.status == "verdict"
                            await ledger.store_judgment(recorded.id, settled.stored)
            await ledger.flush()
    result.unknown, result.questions = answers.unused, len(answers.left)
    return result


@dataclass(slots=True)
class _Answers:
    """The answers in a file, found by their ids."""

    file: BinaryIO
    path: Path
    result: BatchFile
    _places: dict[str, int] = field(default_factory=dict[str, int])
    left: set[str] = field(default_factory=set[str])
    """Questions of the run that no line answers."""
    _used: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        place, total = 0, 0
        while line := self.file.readline(LINE_BYTES):
            for value in read_lines(line):
                ident, total = str(value.get("custom_id")), total + 1
                self.result.doubled += ident in self._places
                self._places.setdefault(ident, place)
            place = self.file.tell()
        if not any(map(item_key, self._places)):
            raise DataError(Sentence("runs.no_answers", n=total), where=str(self.path))

    @property
    def unused(self) -> int:
        """Lines that answer no question of the run."""
        return len(self._places) - len(self._used)

    def _answer(self, ident: str) -> BatchAnswer:
        self.file.seek(self._places[ident])
        [line] = read_lines(self.file.readline(LINE_BYTES))
        return line_answer(line)

    def endpoint(self, run: str, record: JudgeRecord, judge: BatchJudge, ledger: Ledger) -> AskFn:
        """Return an `ask` over the ledger, and over the file for what is not there yet."""
        key_of, read = call_keys(record.identity), judge.batch_reader()

        async def ask(question: Question) -> Call:
            key = key_of(question)
            ident, call = item_id(key), await ledger.find(key)
            if ident in self._places:
                self._used.add(ident)
            if call is not None:
                return call
            if ident not in self._places or ident in self.left:
                self.left.add(ident)
                raise Stopped
            sampling = judge.batch_request(ident, question).sampling
            answer = self._answer(ident)
            try:
                if not answer.status:
                    raise CallLost("transport", answer.absence)
                reply = read(answer, sampling)
            except (AskAgain, CallLost, ProviderRefused) as error:
                self.left.add(ident)
                self.result.failed += 1
                self.result.complaint = self.result.complaint or str(error)
                raise Stopped from None
            limit = int(record.identity["max_tokens"])
            most = most_tokens(reply.usage, token_bound(question), limit)
            call = Call(key, run, record.name, reply, None, most)
            await ledger.record(call)
            self.result.answered += 1
            return call

        return ask


def chat_judges(recorded: Recorded) -> list[BatchJudge]:
    """Return the judges of a run, opened from what it recorded of them, without a key; raise
    UsageError for one that does not speak chat completions."""
    if recorded.imported:
        raise UsageError(Sentence("runs.nothing_to_ask", run=recorded.id))
    return [_chat_judge(record) for record in recorded.judges]


def _chat_judge(record: JudgeRecord) -> BatchJudge:
    provider, _ = split_name(record.name)
    if not provider.is_chat:
        raise UsageError(Sentence("runs.not_chat", judge=record.name))
    judge = recorded_judge(record, {}, "")
    assert isinstance(judge, BatchJudge)
    return judge


def recorded_judge(record: JudgeRecord, environment: Any, place: str) -> Judge:
    """Return a judge as a run recorded it; its key, if one is wanted, comes from the environment.
    `place` is the store that names its address. Raise UsageError where it cannot be opened so."""
    provider, model = split_name(record.name)
    identity = record.identity
    address = str(identity.get("base_url", ""))
    options = JudgeOptions(
        name=record.name,
        base_url=None if address == provider.url else address,
        base_url_place=place,
        temperature=identity.get("temperature"),
        max_tokens=int(identity.get("max_tokens", 1)),
        params=identity.get("params", {}),
        seed=int(identity.get("seed", 0)),
        attempt_seconds=60.0,
        folder=Path(),
        environment=environment,
        notify=lambda line: None,
    )
    judge = provider.open(options, model)
    if address and judge.identity != dict(identity):
        raise UsageError(Sentence("runs.judge_moved", judge=record.name, address=address))
    return judge
