"""The units of a run with their judgments, in the forms that commands, exports and pages need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from msgspec.structs import asdict

from evenhand.engine.loop import run_in_loop
from evenhand.engine.prices import dollars
from evenhand.errors import UsageError
from evenhand.judgment import Judgment, Verdict
from evenhand.kinds.blocks import Block, Columns, Text
from evenhand.kinds.kind import Kind, Scoring, Voting
from evenhand.observation import CHECK, PASSED, VotedUnit, is_passing, read_observations, read_pass
from evenhand.report.html.units import JudgedRow, beginning
from evenhand.report.terminal.summary import FailureDetail
from evenhand.runs.exchanges import exchanges
from evenhand.runs.recorded import Recorded
from evenhand.store.archive import Archive
from evenhand.store.ports import LedgerCall, Scope, StoredJudgment, StoredUnit
from evenhand.text import visible
from evenhand.units import question_hash
from evenhand.words import Code, Sentence

Selector = Callable[[StoredJudgment, Judgment], bool]
NAME_CHARS = 80
"""So much of the text of a criterion is its name."""


def selector(store: Archive, recorded: Recorded, only: str) -> Selector:
    """Return what `--only` selects; raise UsageError where the run has none such, and its kind
    never does."""
    measure, wanted = recorded.kind.measure, _spell(only)
    known = {"uncertain"}
    if isinstance(measure, Scoring):
        offered = {"notes": measure.has_notes, "low-confidence": measure.has_confidence}
        offered["critical"] = measure.has_critical_fails
        known = {name for name, is_offered in offered.items() if is_offered}

    def is_wanted(stored: StoredJudgment, judgment: Judgment) -> bool:
        return wanted in map(_spell, _marks(measure, stored, judgment))

    present = set[str]()
    for _, stored in store.judgments(recorded.scope) if wanted not in known else ():
        judgment = recorded.judgment(stored)
        if is_wanted(stored, judgment):
            return is_wanted
        present |= set(_marks(measure, stored, judgment))
    if wanted not in known:
        names = Code(", ".join(sorted(known | present)))
        raise UsageError(Sentence("results.no_such_mark", run=recorded.id, mark=only, names=names))
    return is_wanted


def _spell(name: str) -> str:
    return name.casefold().replace("_", "-")


def _marks(measure: Scoring | Voting, stored: StoredJudgment, judgment: Judgment) -> Iterator[str]:
    """Yield the names that `--only` knows a judgment by: its flags, also without what they are
    about, its result, and whether it passes."""
    for flag in judgment.flags:
        yield from dict.fromkeys((flag, flag.partition(":")[0]))
    if (passed := read_pass(stored.text.observations)) is not None:
        yield "pass" if passed else "fail"
    if judgment.reason:
        yield judgment.reason
    elif isinstance(measure, Voting):
        voted = measure.judgment(judgment)
        yield from filter(None, dict.fromkeys((voted.winner, voted.settled)))
    elif scored := measure.judgment(judgment):
        yield from ["notes"] * bool(scored.notes.strip())
        yield from ["low-confidence"] * (scored.confidence == "low")
        yield from ["critical"] * scored.is_critical


def texts_of(blocks: Iterable[Block]) -> Iterator[Text]:
    """Yield the texts of a unit as it is shown, also those that stand side by side."""
    for block in blocks:
        if isinstance(block, Text):
            yield block
        elif isinstance(block, Columns):
            for column in block.columns:
                yield from texts_of(column)


def letter_texts(blocks: Iterable[Block]) -> dict[str, str]:
    """Return the texts of a unit by their letters: the parts of a conversation that have one
    joined."""
    joined: dict[str, list[str]] = {}
    for text in texts_of(blocks):
        joined.setdefault(text.short, []).append(text.text)
    return {short: "\n\n".join(texts) for short, texts in joined.items()}


def question_of(blocks: Iterable[Block]) -> str:
    """Return the text that a unit is about, as every kind marks it; empty where nobody knows."""
    return next((text.text for text in texts_of(blocks) if text.short == "Q"), "")


def text_of(store: Archive, run: Recorded, name: str) -> str:
    """Return the beginning of what a unit is about, ready to be shown: of one without texts its
    topic or id."""
    shown = run.kind.present(run.kind.load(next(store.units(Scope(run.id), name)).body), [])
    topic = shown.measured.topic if isinstance(shown.measured, VotedUnit) else name
    return visible(beginning(shown) or topic)


def is_hash_of(ident: str, question: str) -> bool:
    """Return True if the id of a unit or topic holds the hash of its question."""
    return bool(question) and question_hash(question) in ident


def topic_questions(kind: Kind, store: Archive, scope: Scope) -> dict[str, str]:
    """Return the question of every topic of a run of pairs."""
    voting, questions = kind.measure, dict[str, str]()
    assert isinstance(voting, Voting), f"the kind {kind.name} has no topics"
    for stored in store.units(scope):
        topic = voting.unit(stored.body).topic
        if topic not in questions:
            questions[topic] = question_of(kind.present(kind.load(stored.body), []).unit)
    return questions


def names_of(recorded: Recorded, language: str | None = None) -> dict[str, str]:
    """Return the names of dimensions and criteria by id: in this language where there is one, else
    in that of the run."""
    rubric = recorded.rubric
    if isinstance(rubric, Mapping) and "dimensions" in rubric:
        return {row["id"]: str(row.get("name", "")) for row in rubric["dimensions"]}
    if isinstance(rubric, Mapping) and "criteria" in rubric:
        texts = {row["id"]: row["text"] for row in rubric["criteria"]}
        return {
            name: text if len(text) <= NAME_CHARS else text[: NAME_CHARS - 1].rstrip() + "…"
            for name, text in texts.items()
        }
    if recorded.imported:
        return {}
    tables, languages = (
        recorded.protocol.given,
        (language, recorded.manifest.judging.language, "en"),
    )
    rows = [*tables.get("criteria", ()), *tables.get("dimensions", ())]
    names = {row["id"]: next((str(row[n]) for n in languages if n in row), "") for row in rows}
    return {ident: _short(text) for ident, text in names.items()}


def _short(text: str) -> str:
    """Return the beginning of a description up to its colon; empty if it has none or is long."""
    for colon in (":", "："):
        head, separator, _ = text.partition(colon)
        if separator and len(head) <= 40:
            return head
    return ""


def verdicts_of(kind: Kind, store: Archive, scope: Scope) -> Iterator[tuple[str, Verdict]]:
    """Yield the verdicts of a scope, each with the text of its unit."""
    for unit, stored in store.judgments(scope):
        judgment = kind.read_judgment(stored.text)
        if isinstance(judgment, Verdict):
            yield unit.body, judgment


def failure_details(store: Archive, scope: Scope, kind: Kind) -> dict[str, FailureDetail]:
    """Return the detail of the first failure of each reason, and whether others differ from it."""
    details: dict[str, str] = {}
    varied: set[str] = set()
    for _, stored in store.judgments(scope):
        reason = stored.text.reason
        if reason is None or reason in varied:
            continue
        detail = kind.read_judgment(stored.text).detail
        if details.setdefault(reason, detail) != detail:
            varied.add(reason)
    return {
        reason: FailureDetail(detail, is_instance=reason in varied)
        for reason, detail in details.items()
    }


def contract_objects(
    store: Archive,
    recorded: Recorded,
    is_wanted: Selector = lambda stored, judgment: True,
) -> Iterator[Mapping[str, Any]]:
    """Yield the contract's own objects of all verdicts. A pair that several judged has several,
    each with its judge's name; the forms of the other kinds are closed."""
    several = isinstance(recorded.kind.measure, Voting) and recorded.judgments_per_unit > 1
    for _, stored in store.judgments(recorded.scope):
        judgment = recorded.judgment(stored)
        if judgment.output is None or not is_wanted(stored, judgment):
            continue
        by = {"judge": judge_name(recorded, stored), "repeat": stored.repeat} if several else {}
        yield {**judgment.output, **by}


def count_namesakes(store: Archive, recorded: Recorded) -> int:
    """Return the number of units that share their task's name, by which alone the contract's own
    objects of graded answers are told apart, with another; 0 in a kind without such names."""
    if recorded.imported or recorded.kind.table_form.own_field != "task_name":
        return 0
    units = map(recorded.kind.load, (unit.body for unit in store.units(recorded.scope)))
    names = Counter(name for unit in units for name in recorded.kind.unit_keys(unit))
    return sum(number for number in names.values() if number > 1)


def full_rows(
    store: Archive, recorded: Recorded, is_wanted: Selector = lambda stored, judgment: True
) -> Iterator[Mapping[str, Any]]:
    """Yield everything known about every judgment, failures included, and the question it is about:
    the id of a unit may be a hash of that."""
    for unit, stored in store.judgments(recorded.scope):
        if is_wanted(stored, recorded.judgment(stored)):
            yield asked_row(recorded, unit, stored).row


def with_pass_columns(rows: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Full rows for a table, where a list is one cell of JSON: what each order of each round said
    stands in columns of its own too, `pass.<round>.<order>`."""
    for row in rows:
        rounds: dict[str, dict[str, Any]] = {}
        for judged_pass in row["passes"]:
            if "criteria" in judged_pass:
                rounds.setdefault(str(judged_pass["round"]), {})[judged_pass["order"]] = {
                    name: judged_pass.get(name) for name in ("winner", "criteria", "explanation")
                }
        yield {**row, "pass": rounds} if rounds else row


def judge_name(recorded: Recorded, stored: StoredJudgment) -> str:
    """Return the name of the judge of a judgment."""
    return recorded.names[stored.judge]


def asked_row(recorded: Recorded, unit: StoredUnit, stored: StoredJudgment) -> JudgedRow:
    """Return a judgment, and its row as `export --full` writes it, with what was asked."""
    judgment, row = judged_row(recorded, unit, stored)
    question = question_of(recorded.kind.present(recorded.kind.load(unit.body), []).unit)
    return JudgedRow(judgment, row | {"question": question})


def judged_row(recorded: Recorded, unit: StoredUnit, stored: StoredJudgment) -> JudgedRow:
    """Return a judgment, and its row as `export --full` writes it but for the question, which
    stands with the unit where units are shown."""
    judgment = recorded.judgment(stored)
    row: dict[str, Any] = {
        "unit": unit.id,
        "judge": judge_name(recorded, stored),
        "repeat": stored.repeat,
        "status": judgment.status,
        "reason": judgment.reason,
        "detail": judgment.detail,
        "output": judgment.output,
        **_outcome(recorded.kind, passing_figures(stored.text.observations)),
        "evidence": [evidence.json() for evidence in judgment.evidence],
        "passes": [judged_pass.json() for judged_pass in judgment.passes],
        "fixes": [asdict(fix) for fix in judgment.fixes],
        "flags": list(judgment.flags),
        "calls": list(stored.calls),
    }
    return JudgedRow(judgment, row)


def passing_figures(observations: str) -> dict[str, bool]:
    """Return True or False by measure: of `pass`, and of the checks by code, where they are
    known."""
    seen = filter(lambda each: is_passing(each.measure), read_observations(observations))
    return {each.measure: bool(each.value) for each in seen}


def _outcome(kind: Kind, figures: Mapping[str, bool]) -> dict[str, Any]:
    """Return them as a row has them, in a kind of scores."""
    if isinstance(kind.measure, Voting):
        return {}
    checks = {name.removeprefix(CHECK): is_met for name, is_met in figures.items()}
    return {"pass": checks.pop(PASSED, None), "checks": checks}


class UnitDetail(NamedTuple):
    """A unit with its judgments, and each with its conversation."""

    unit: StoredUnit
    judged: list[JudgedRow]


def unit_detail(store: Archive, recorded: Recorded, name: str) -> UnitDetail | None:
    """Return one unit with all that led to its judgments; None if the run has none of that name."""
    for unit in store.units(Scope(recorded.id), name):
        stored = judgments_of_unit(store, recorded, unit)
        return UnitDetail(unit, [_to_row(store, recorded, unit, judgment) for judgment in stored])
    return None


def judgments_of_unit(store: Archive, recorded: Recorded, unit: StoredUnit) -> list[StoredJudgment]:
    """Return the judgments of a unit in a run."""
    return [stored for _, stored in store.judgments(Scope(recorded.id), unit.id)]


def _to_row(
    store: Archive, recorded: Recorded, unit: StoredUnit, stored: StoredJudgment
) -> JudgedRow:
    judgment, row = asked_row(recorded, unit, stored)
    if recorded.imported:
        return JudgedRow(judgment, row | {"exchanges": []})
    trace = [exchange.json() for exchange in run_in_loop(exchanges(recorded, store, unit, stored))]
    ledger = store.calls([exchange["key"] for exchange in trace])
    paid = [exchange | _call_record(ledger.get(exchange["key"])) for exchange in trace]
    return JudgedRow(judgment, row | {"exchanges": paid})


def _call_record(call: LedgerCall | None) -> dict[str, Any]:
    """Return when a call was made, and what it took."""
    if call is None:
        return {"no": None, "at": None, "cost_usd": None, "usage": None, "paid_by": None}
    usage, cost = call.call.reply.usage, call.call.cost
    return {
        "no": call.no,
        "at": call.at,
        "cost_usd": None if cost is None else dollars(cost),
        "usage": {
            "input_tokens": usage.input_tokens,
            "output_tokens": usage.output_tokens,
            "cached_tokens": usage.cached_tokens,
            "stored_tokens": usage.cache_write_tokens,
        },
        "paid_by": call.call.run,
    }
