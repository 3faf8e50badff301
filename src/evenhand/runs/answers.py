"""The answers that a suite makes before it judges them: `[answers]`.

They are a run of their own in the same store, of the kind `answer`, named after the suite. What it
made is written as a table beside the suite, which is judged like any other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from math import ceil
from pathlib import Path
from typing import Any

from msgspec import structs

from evenhand.data.questions import read_questions
from evenhand.data.write import write
from evenhand.engine.prices import dollars
from evenhand.errors import DataError
from evenhand.files.outputs import check_output
from evenhand.folders import read_text
from evenhand.kinds import load_protocol
from evenhand.kinds.answer.kind import NAME, TEMPLATES, VARIANT, Asked, MadeAnswer, load_asked
from evenhand.kinds.kind import ReadyKind, Voting
from evenhand.kinds.rows import RowError
from evenhand.manifest import number_names
from evenhand.runs.judge import Options, Summary, judge_open
from evenhand.runs.made_answers import answer_of, read_made_answers
from evenhand.runs.plan import AnswerStage, JudgeSetup, Plan, Units
from evenhand.store.archive import Archive
from evenhand.store.ledger import Store
from evenhand.store.ports import Call, IncomingUnit
from evenhand.suite import Located, Suite
from evenhand.suite_file import AnswersSpec, ModelSpec
from evenhand.units import question_hash

FIRST_WAVE, WAVE_GROWTH = 20, 1.5
"""Questions that are asked before the first look at a comparison, and how many more each time."""


def answer_plan(suite: Suite, setups: Sequence[JudgeSetup]) -> Plan:
    """Return the plan of the answers of a suite by these models; raise UsageError."""
    spec = _answers(suite)
    keys = {"name": f"{suite.file.name} answers", "compare": None, "stop": None, "gate": None}
    texts = {"protocol.toml": f'kind = "{NAME}"\n', f"prompts/{suite.file.language}.md": ""}
    return Plan(
        suite=suite.with_file(suite.file.model_copy(update=keys)),
        protocol=load_protocol(NAME, texts | _templates(suite, spec)),
        settings={},
        rubric=None,
        setups=tuple(setups),
        units=_question_units(suite.locate("answers", spec.questions)),
    )


def answer_models(suite: Suite) -> list[ModelSpec]:
    """Return the models that answer, each with the repeats that the suite asks for."""
    spec = _answers(suite)
    repeats = {"repeats": spec.repeats} if spec.repeats > 1 else {}
    return [model.model_copy(update=repeats) for model in spec.models]


def _answers(suite: Suite) -> AnswersSpec:
    assert suite.file.answers is not None, "asked only of suites that make answers"
    return suite.file.answers


def _templates(suite: Suite, spec: AnswersSpec) -> dict[str, str]:
    """Return the text of each prompt by its name: the file's, without what all names share."""
    files = {name: suite.locate("answers", name) for name in spec.prompts}
    stems = {name: Path(name).stem for name in files}
    are_different = len(set(stems.values())) == len(stems)
    return {
        f"{TEMPLATES}{stems[name] if are_different else name}": read_text(*file)
        for name, file in files.items()
    }


def _question_units(located: Located) -> Units:
    def units(kind: ReadyKind) -> Iterator[IncomingUnit]:
        for row in read_questions(located.path, located.root):
            try:
                texts = kind.read(row.value)
            except RowError as error:
                raise DataError(error.args[0], where=row.where) from None
            for unit in texts:
                yield IncomingUnit(unit.id, row.where, unit.body, description=unit.description)

    return units


# Answers


def count_asked(stage: AnswerStage, plan: Plan, limit: int) -> int:
    """Return how many questions under a prompt must be answered so that there are as many units to
    judge as a limit allows."""
    prompts = max(1, len(_answers(plan.suite).prompts))
    answers = sum(setup.spec.repeats for setup in stage.plan.setups)
    if not isinstance(plan.kind.measure, Voting):
        return ceil(limit / answers)
    candidates = prompts * len(stage.plan.setups)
    times = min(setup.spec.repeats for setup in stage.plan.setups)
    pairs = max(1, candidates * (candidates - 1) // 2) * times
    return ceil(limit / pairs) * prompts


def answer_waves(plan: Plan, limit: int | None) -> Iterator[Plan]:
    """Yield the plan with more and more of its questions, in an order drawn by its seed: each is
    to be judged before more are asked."""
    by_question: dict[str, list[IncomingUnit]] = {}
    for unit in islice(plan.units(plan.judging), limit):
        by_question.setdefault(load_asked(unit.body).question, []).append(unit)
    seed = plan.suite.file.seed
    drawn = sorted(by_question, key=lambda question: question_hash(f"{seed}:{question}"))
    size, ended = FIRST_WAVE, False
    while not ended:
        ended = size >= len(drawn)
        units = [unit for question in drawn[:size] for unit in by_question[question]]
        yield structs.replace(plan, units=lambda kind, units=units: iter(units))
        size = ceil(size * WAVE_GROWTH)


async def require_judges(
    plan: Plan, stage: AnswerStage, archive: Archive, limit: int | None
) -> None:
    """Raise what keeps a judge from sending, before answers are paid for that it is to judge."""
    from evenhand.runs.forecast import forecast_calls

    lacking = [setup.judge.unavailable_reason for setup in plan.setups]
    for reason in filter(None, lacking):
        if await forecast_calls(stage.plan, archive, limit):
            raise reason


class OneBudget:
    """What the runs of one command have used of its budget: every wave of answers is a run, and
    what is judged of it another."""

    def __init__(self, plan: Plan, archive: Archive) -> None:
        self._plan, self._archive = plan, archive
        self._used: dict[str, int] = {}

    def add(self, run: str, used: int) -> None:
        """Note what a run has used by now."""
        self._used[run] = used

    def left(self, plan: Plan, run: str) -> Plan:
        """Return the plan of a run with what all others have used; of its answers, what was judged
        before is counted too."""
        for row in self._archive.runs(self._plan.name):
            if self._archive.manifest(row.id).answers == run:
                self._used[row.id] = self._plan.used(self._archive.spent(row.id))
        used = sum(used for other, used in self._used.items() if other != run)
        return structs.replace(plan, used_beside=used)


def guessed_rows(
    stage: AnswerStage, archive: Archive | None, limit: int | None
) -> list[dict[str, Any]]:
    """Return a row for each answer that there will be: as it is, or with words of a usual
    number."""
    rows: list[dict[str, Any]] = []
    for unit in islice(stage.plan.units(stage.plan.judging), limit):
        record = stage.plan.manifest.judging.id
        known = archive.known(record, unit.id, unit.body) if archive else []
        asked = load_asked(unit.body)
        made = {(each.judge, each.repeat): each for each in known}
        for judge, setup in enumerate(stage.plan.setups):
            for repeat in range(setup.spec.repeats):
                answer = _guess(len(rows))
                if each := made.get((judge, repeat)):
                    answer = answer_of(stage.plan.kind.read_judgment(each.text)) or answer
                row = _answer_row(asked, judge, repeat, answer, None, _names(stage.plan))
                rows.append(row)
    return rows


def _guess(number: int) -> MadeAnswer:
    """Return words of a usual number for an answer that is not there yet, unlike all others: the
    same answer to the same question would be judged once."""
    return MadeAnswer(answer=f"{number} " + "word " * 200, finish="stop")


def _names(plan: Plan) -> list[str]:
    return number_names([setup.judge.name for setup in plan.setups])


def write_answers(archive: Archive, stage: AnswerStage, run: str) -> list[dict[str, Any]]:
    """Write the answers of a run as a table, and return its rows; raise UsageError where another
    file is in the way."""
    check_output(stage.path)
    rows = list(answer_rows(archive, stage.plan, run))
    write(stage.path, rows)
    return rows


def count_finishes(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return how many answers ended in which way."""
    return dict(Counter(row["finish"] for row in rows))


def answer_rows(archive: Archive, plan: Plan, run: str) -> Iterator[dict[str, Any]]:
    """Yield the answers of a run as rows of a table, question by question."""
    names = _names(plan)
    for asked, stored, made, call in read_made_answers(archive, run):
        if made is not None:
            yield _answer_row(asked, stored.judge, stored.repeat, made, call, names)


def _answer_row(
    asked: Asked,
    judge: int,
    repeat: int,
    made: MadeAnswer,
    call: Call | None,
    names: Sequence[str],
) -> dict[str, Any]:
    variant = {VARIANT: asked.variant} if asked.variant else {}
    said = {"messages": made.messages} if made.messages else {"answer": made.answer}
    about = {"finish": made.finish, **_costs(call)}
    who = {"model": names[judge], **variant, "repeat": repeat + 1}
    return {**asked.row, **who, **said, **about}


def _costs(call: Call | None) -> dict[str, Any]:
    if call is None:
        return {}
    usage, cost = call.reply.usage, call.cost
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost_usd": None if cost is None else dollars(cost),
        "latency_s": call.reply.seconds,
    }


# Both in one command


async def answer_and_judge(
    plan: Plan, stage: AnswerStage, store: Store, options: Options
) -> Summary:
    """Make what is missing of the answers, then judge them, within one budget."""
    check_output(stage.path)
    await require_judges(plan, stage, store.archive, options.limit)
    limit = None if options.limit is None else count_asked(stage, plan, options.limit)
    # A cluster knows the judges of the suite, not its models.
    asking = replace(options, limit=limit, tell_changes=None, remote_engine=None)
    budget = OneBudget(plan, store.archive)
    made: Summary | None = None
    judged: Summary | None = None
    for answering in answer_waves(stage.plan, limit) if plan.is_sequential else [stage.plan]:
        last = await judge_open(answering, store, asking, budget.left)
        budget.add(last.run, answering.used(last.spent))
        rows = write_answers(store.archive, stage, last.run)
        summary = made = replace(_together(made, last), finishes=count_finishes(rows))
        if made.stopped or not rows:
            if judged is not None:
                summary = replace(judged, answers=made, stopped=made.stopped)
            break
        units = stage.judged_units(rows)
        judging = structs.replace(plan, units=units, answers_run=made.run)
        last = await judge_open(judging, store, options, budget.left)
        budget.add(last.run, plan.used(last.spent))
        judged = _together(judged, last)
        summary = replace(judged, answers=made)
        if summary.stopped or (summary.decided and summary.decided.is_decided):
            break
    return summary


def _together(earlier: Summary | None, last: Summary) -> Summary:
    """Return the summary of the last wave with the calls and the money of those before it."""
    if earlier is None:
        return last
    before, tally = earlier.tally, last.tally
    # What earlier waves sent, the last one found in the store.
    tally.cached = max(0, tally.cached - before.sent)
    tally.sent, tally.cost = tally.sent + before.sent, tally.cost + before.cost
    tally.unpriced += before.unpriced
    return replace(last, spent=earlier.spent + last.spent)
