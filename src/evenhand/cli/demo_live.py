"""The second part of `evenhand demo`: a few bundled units judged here and now by the embedded
judge."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from evenhand.cli.common import notice, resume_advice, wait
from evenhand.cli.narration import Narration
from evenhand.cli.views import verdict_line
from evenhand.cli.watch import Watcher
from evenhand.examples import example_files
from evenhand.judges.credentials import environment
from evenhand.judges.embedded import models
from evenhand.judgment import Failure, Judgment, Verdict
from evenhand.kinds import KINDS
from evenhand.kinds.kind import Kind
from evenhand.kinds.pairwise.verdict import PairVerdict
from evenhand.kinds.rubric.verdict import RubricVerdict
from evenhand.kinds.weighted.verdict import Grade
from evenhand.report.terminal.console import outcome_lines
from evenhand.results.units import texts_of
from evenhand.runs.judge import Options, Summary, judge_run
from evenhand.runs.prepare import prepare
from evenhand.runs.recorded import find_run
from evenhand.store.ports import Store
from evenhand.suite import load_suite

UNITS = 1
"""Of each protocol: a call takes some 20 s of one core, and nobody watches for long."""
QUOTES = 2
"""Of a unit."""
WRONG = frozenset({("rubric", "en"), ("rubric", "zh")})
"""The bundled answers that are wrong, by protocol and language. What is judged live is the first of
its file, whatever the model makes of it; the others are right, and so is the first of a pair."""
GOOD_SCORE, GOOD_GRADE = 3, 50
"""The middle of the scales: a higher score or grade calls an answer right."""


def judge_live(
    store: Store, narration: Narration, model: str, protocols: Sequence[str], url: str
) -> dict[str, Summary]:
    """Judge the first bundled units of each protocol and print what came of them; the summaries by
    protocol. Raises EvenhandError where it was stopped."""
    narration.heading("live", model=model)
    narration.say("caution" if model == models.DEFAULT else "at_chance")
    summaries: dict[str, Summary] = {}
    for protocol in protocols:
        summaries[protocol] = _judged(store, narration.words.language, model, protocol, url)
        _print(store, narration, summaries[protocol])
    return summaries


def _judged(store: Store, language: str, model: str, protocol: str, url: str) -> Summary:
    advice = resume_advice(url)
    with tempfile.TemporaryDirectory(prefix="evenhand-demo-") as folder:
        for name, text in example_files(protocol, language).items():
            is_data = name == KINDS[protocol].example.data
            lines = text.splitlines(keepends=True)
            Path(folder, name).write_text(
                "".join(lines[:UNITS] if is_data else lines), encoding="utf-8"
            )
        judges = [{"model": f"embedded/{model}" if model != models.DEFAULT else "embedded"}]
        plan = prepare(load_suite(Path(folder), {}, {"judges": judges}), environment(), notice)
        summary = wait(judge_run(plan, store, Options(watch=Watcher(advice).watch)))
    if summary.stopped:
        summary.stopped.advice = advice
        raise summary.stopped
    return summary


def _print(store: Store, narration: Narration, summary: Summary) -> None:
    recorded = find_run(store.archive, summary.run)
    for unit, stored in store.archive.judgments(recorded.scope):
        judgment = recorded.judgment(stored)
        narration.out.print()
        narration.quote("─", f"{recorded.kind_name}: {unit.id}", 1)
        _print_unit(narration, recorded.kind, unit.body, judgment)
        if isinstance(judgment, Verdict):
            _print_truth(narration, recorded.kind_name, judgment.value)
    narration.out.print(outcome_lines(summary.json()))


def _print_unit(narration: Narration, kind: Kind, body: str, judgment: Judgment) -> None:
    """A unit and its judgment: the beginning of each text, the verdict, and what it rests on."""
    texts = list(texts_of(kind.present(kind.load(body), [judgment]).unit))
    for text in texts:
        narration.quote(text.short or "·", text.text, 1)
    if isinstance(judgment, Failure):
        narration.quote("→", f"{judgment.reason}: {judgment.detail}", 1)
    elif isinstance(judgment, Verdict):
        narration.quote("→", verdict_line(kind, body, judgment).plain, 1)
    marks = [(text.text[mark.start : mark.end], mark) for text in texts for mark in text.marks]
    for quote, mark in marks[:QUOTES]:
        narration.quote(" ", f"{mark.title}: “{quote}” [{mark.start}:{mark.end}]", 1)


def _print_truth(narration: Narration, protocol: str, value: object) -> None:
    """Print what is true of a unit, and whether the judge saw it."""
    is_right = (protocol, narration.words.language) not in WRONG
    truth = (
        "truth_first" if protocol == "pairwise" else "truth_right" if is_right else "truth_wrong"
    )
    missed = "missed_pair" if protocol == "pairwise" else "missed_score"
    outcome = "agreed" if _calls_right(value) == is_right else missed
    narration.quote("=", f"{narration.word(truth)} {narration.word(outcome)}", 2)


def _calls_right(value: object) -> bool:
    """Return True if a verdict calls the answer, or the first of a pair, the right one."""
    match value:
        case PairVerdict():
            return value.winner == "A"
        case RubricVerdict():
            return next(iter(value.scores.values())).score > GOOD_SCORE
        case Grade():
            return value.total_score > GOOD_GRADE
        case _:
            raise TypeError(type(value))
