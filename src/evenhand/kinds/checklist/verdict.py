"""The checklist contract: the verdict, an answer to every criterion with its evidence; the form of
a reply, and the check of one reply against it; score and pass, which code works out."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct, to_builtins
from msgspec import field as stored

from evenhand.judgment import Judgment, JudgmentReader, Pass, Verdict
from evenhand.kinds.checklist.criteria import Checklist, Criterion, parse_checklist
from evenhand.kinds.prompt import object_of
from evenhand.kinds.reply import ANYTHING, TEXT, Checked, allow
from evenhand.kinds.rows import raw_json
from evenhand.kinds.sample_check import QUOTES, SampleCheck, form_quotes
from evenhand.kinds.samples import SampleVerdict, measure_sample
from evenhand.observation import Ends, Scored, ScoredUnit
from evenhand.units import Sample

SCORE_DIGITS = 4
_MET = {"type": ["boolean", "null"]}


class CriterionAnswer(Struct, frozen=True):
    """The answer to one criterion, and what it rests on."""

    met: bool | None
    """None where the criterion is not applicable."""
    evidence: tuple[str, ...]
    """Fragments of the judged output, word for word."""
    reason: str


class ChecklistVerdict(SampleVerdict, frozen=True, kw_only=True):
    """An answer to every criterion, and what code makes of them."""

    criteria: dict[str, CriterionAnswer]
    score: float | None
    """From 0 to 1; None where no criterion is applicable."""
    passed: bool | None = stored(name="pass")
    notes: str

    @property
    def output(self) -> dict[str, Any]:
        """The contract's own object: meta, criteria, score, pass, notes."""
        return {
            "meta": self.meta,
            "criteria": {
                name: to_builtins(answer) | {"evidence": list(answer.evidence)}
                for name, answer in self.criteria.items()
            },
            "score": self.score,
            "pass": self.passed,
            "notes": self.notes,
        }


READER = JudgmentReader(ChecklistVerdict, Pass)

Answers = Mapping[str, CriterionAnswer]


def score_answers(checklist: Checklist, answers: Answers) -> float | None:
    """Return the points met as a share of the positive points that are applicable; where there are
    faults alone, 1 without one and else 0. None where nothing is applicable."""
    applicable = _applicable(checklist, answers)
    met = sum(each.points for each in applicable if answers[each.id].met)
    most = sum(each.points for each in applicable if not each.is_fault)
    if not applicable:
        return None
    share = met / most if most else float(met >= 0)
    return round(min(1.0, max(0.0, share)), SCORE_DIGITS)


def passes(checklist: Checklist, answers: Answers, pass_share: float | None) -> bool | None:
    """Return True if every criterion that must be met is met, no fault that must not be there is,
    and the score reaches `pass_share`. Without that share, and without a criterion that says
    `must`, all of them must be met. None where nothing is applicable."""
    score = score_answers(checklist, answers)
    if score is None:
        return None
    must_all = pass_share is None and not any(each.must for each in checklist.criteria)
    return (pass_share is None or score >= pass_share) and all(
        answers[each.id].met != each.is_fault
        for each in _applicable(checklist, answers)
        if each.must or must_all
    )


def _applicable(checklist: Checklist, answers: Answers) -> list[Criterion]:
    return [each for each in checklist.criteria if answers[each.id].met is not None]


# The form of a reply


def reply_shape(checklist: Checklist) -> dict[str, Any]:
    """Return a reply as an example, with the checklist's own ids."""
    answer = {"evidence": ["..."], "reason": "...", "met": True}
    return {"criteria": {each.id: answer for each in checklist.criteria}, "notes": ""}


def reply_schema(checklist: Checklist) -> dict[str, Any]:
    """Return the schema of a reply."""
    answer = object_of(evidence=QUOTES, reason=TEXT, met=_MET)
    criteria = {each.id: answer for each in checklist.criteria}
    return object_of(criteria=object_of(**criteria), notes=TEXT)


def compact_schema(checklist: Checklist, quotes: list[str], nothing: str) -> dict[str, Any]:
    """Return the schema for a judge that fills a form: quotes enumerated, and no answer for which
    it would have to quote what is not there."""
    evidence, reason = form_quotes(quotes, nothing)
    criteria: dict[str, Any] = {}
    for each in checklist.criteria:
        answers = [True, False] if quotes or each.is_fault else [False]
        met = {"enum": answers, "x-labels": {"true": each.text}}
        criteria[each.id] = object_of(evidence=evidence, reason=reason, met=met)
    return object_of(criteria=object_of(**criteria), notes={"const": ""})


# The check


class ChecklistCheck(SampleCheck):
    """The check of one reply to a checklist."""

    def check_reply(
        self, text: str, checklist: Checklist, finish: str, pass_share: float | None
    ) -> Checked[ChecklistVerdict]:
        """Return the verdict of the reply, or its problems; `pass_share` is the lowest score that
        passes."""
        reply = self.read_object(text, finish, self.sources.judged)
        if reply is None:
            return self.result(None)
        if "meta" in reply:
            self.compare_meta(reply["meta"])
        form = allow(reply_schema(checklist), **dict.fromkeys(("meta", "score", "pass"), ANYTHING))
        found = self.match(reply, form)
        given = found.get("criteria", {})
        answers = {
            each.id: self.answer(each, given.get(each.id, {})) for each in checklist.criteria
        }
        verdict = ChecklistVerdict(
            meta_json=raw_json(self.sample.meta),
            criteria=answers,
            score=score_answers(checklist, answers),
            passed=passes(checklist, answers, pass_share),
            notes=self.flag_notes(found.get("notes", "")),
        )
        for name, value in (("score", verdict.score), ("pass", verdict.passed)):
            if name in reply and reply[name] != value:
                self.fix("total", name)
        self.flag_reasons()
        return self.result(verdict)

    def answer(self, criterion: Criterion, parts: Mapping[str, Any]) -> CriterionAnswer:
        """Return the answer to a criterion with its evidence."""
        path, quotes = f"criteria.{criterion.id}", parts.get("evidence")
        met = parts.get("met")
        reason = self.take_reason(parts.get("reason"), f"{path}.reason")
        if met and quotes == []:
            if not criterion.is_fault:
                self.problem("evidence_needed", "evidence_missing", f"{path}.evidence")
            else:
                # What an output leaves out cannot be quoted.
                self.require_phrase(reason, f"{path}.evidence")
                self.flags.append(f"fault_without_evidence:{criterion.id}")
        evidence = self.locate_quotes(criterion.id, quotes, f"{path}.evidence")
        return CriterionAnswer(met, evidence, reason)


# Statistics


def measure(sample: Sample) -> ScoredUnit:
    """Return the fields of a sample, the ends of its own criteria, and its length."""
    return measure_sample(sample, _ends_of_text)


def measure_judgment(judgment: Judgment) -> Scored | None:
    """Return the answers of a verdict as 1 and 0, its score and whether it passes; None where there
    is no verdict."""
    if not isinstance(judgment, Verdict):
        return None
    verdict = judgment.value
    assert isinstance(verdict, ChecklistVerdict)
    answers = verdict.criteria.items()
    met = {name: float(each.met) for name, each in answers if each.met is not None}
    return Scored(met, total=verdict.score, passed=verdict.passed, notes=verdict.notes)


def ends_of(checklist: Checklist) -> Ends:
    """Return the worse and the better answer to each criterion."""
    return {each.id: each.ends for each in checklist.criteria}


@lru_cache(maxsize=64)
def _ends_of_text(text: str) -> Ends:
    return ends_of(parse_checklist(text))
