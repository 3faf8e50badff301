"""The weighted contract: the verdict, a grade out of 100; the form of a reply, and the check of one
reply against it; and what statistics take of a grade and its answer.

Code supplies what code knows: the task's name and type, the weights, the total, and the zeroes
after a critical fail.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, NamedTuple, get_args

from msgspec import Struct
from msgspec.structs import asdict, replace

from evenhand import jsontext
from evenhand.judgment import Fix, FixCode, Judgment, JudgmentReader, Pass, Verdict
from evenhand.kinds.phrases import says_nothing
from evenhand.kinds.prompt import object_of
from evenhand.kinds.protocol import JudgeWords
from evenhand.kinds.reply import (
    ANYTHING,
    NUMBER,
    TEXT,
    Checked,
    JudgedText,
    ReplyCheck,
    allow,
    is_blank,
)
from evenhand.kinds.rows import plain_number
from evenhand.kinds.weighted.task_rubric import find_type
from evenhand.observation import Scored, ScoredUnit
from evenhand.units import Answer

Confidence = Literal["high", "medium", "low"]
CONFIDENCE: tuple[Confidence, ...] = get_args(Confidence)
FULL_MARKS = 100


class Grade(Struct, frozen=True, kw_only=True):
    """Points on every dimension and their sum. A critical fail is worth nothing."""

    task_name: str
    task_type: str | None
    """As the rubric gives it, or as the judge inferred it; None where code failed the answer before
    anybody was asked what type the task is of."""
    inferred_task_type: str | None
    weights: dict[str, int | float] | None
    """The most points of each dimension; None where there is no type."""
    score: dict[str, int | float]
    total_score: int | float
    reasoning: dict[str, str]
    critical_fail: bool
    critical_fail_reason: str | None
    confidence: Confidence

    @property
    def is_unsure(self) -> bool:
        """Return True if the grade was given with low confidence."""
        return self.confidence == "low"

    @property
    def output(self) -> dict[str, Any]:
        """The contract's own object."""
        return asdict(self)


READER = JudgmentReader(Grade, Pass)


# The form of a reply

REASONING_CHARS = 200
_KNOWN = ("task_name", "task_type", "weights", "total_score", "inferred_task_type")
"""Keys of the output that code supplies."""
_SUM_SLACK = 3
"""A stated total may be so far from the sum of the scores: further off is no slip."""
_FLAT_SCALES = (1, 10, 100)
"""Scales that judges grade every dimension on instead of its weight."""
_ROUNDING = 0.5
_STEPS = (0, 25, 50, 75, 100)
"""The scores of a judge that fills a form, in percent of a dimension's weight."""

Scores = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class TaskType:
    """A type of task: which tasks it means, and the most points of each dimension."""

    id: str
    text: str
    weights: Mapping[str, float]


class Task(NamedTuple):
    """The task as code knows it: its name, its type if the rubric names one, and whether there are
    critical-fail conditions that only the judge can decide."""

    name: str
    given: TaskType | None
    types: Sequence[TaskType]
    has_conditions: bool
    scale: TaskType | None = None
    """The type whose steps a form offered, where the judge was to infer its own."""
    texts: Sequence[str] = ()
    """The judged text, and all that stands beside it in a conversation."""
    failed: str | None = None
    """Why code failed the answer, where it did: what a reply from another tool is held to."""

    @property
    def dimensions(self) -> list[str]:
        """The ids of the dimensions, which all types share."""
        return list(self.types[0].weights)

    @property
    def type_ids(self) -> list[str]:
        return [task_type.id for task_type in self.types]


def reply_shape(dimensions: Sequence[str]) -> dict[str, Any]:
    """Return a reply as an example."""
    return {
        "inferred_task_type": None,
        "critical_fail": False,
        "critical_fail_reason": None,
        "reasoning": dict.fromkeys(dimensions, "..."),
        "score": dict.fromkeys(dimensions, 0),
        "confidence": "high",
    }


def reply_schema(
    dimensions: Sequence[str], types: Sequence[TaskType], given: TaskType | None
) -> dict[str, Any]:
    """Return the schema of a reply; `given` is the task's type where the rubric names it."""
    ids = [task_type.id for task_type in types]
    return object_of(
        inferred_task_type={"type": "null"} if given else {"type": "string", "enum": ids},
        critical_fail={"type": "boolean"},
        critical_fail_reason={"type": ["string", "null"]},
        reasoning=object_of(**dict.fromkeys(dimensions, TEXT)),
        score=object_of(**dict.fromkeys(dimensions, NUMBER)),
        confidence={"type": "string", "enum": list(CONFIDENCE)},
    )


def compact_schema(
    dimensions: Sequence[str], types: Sequence[TaskType], given: TaskType | None
) -> dict[str, Any]:
    """Return the schema for a judge that fills a form: a few steps of each weight, nothing that it
    cannot decide. Where no type is given the steps are those of the first, which the check rescales
    to the inferred."""
    weights = (given or types[0]).weights
    ids = [task_type.id for task_type in types]
    reason = {**TEXT, "maxLength": REASONING_CHARS}
    return object_of(
        inferred_task_type={"const": None} if given else {"enum": ids},
        critical_fail={"const": False},
        critical_fail_reason={"const": None},
        reasoning=object_of(**dict.fromkeys(dimensions, reason)),
        score=object_of(**{name: {"enum": _steps(weights[name])} for name in dimensions}),
        confidence={"const": "low"},
    )


def _steps(weight: float) -> list[float]:
    number = int if isinstance(weight, int) else float
    exact = Decimal(str(weight))
    return list(dict.fromkeys(number(exact * step / 100) for step in _STEPS))


def failed_grade(task: Task, reason: str, ungraded: str) -> Grade:
    """Return the grade of an answer that fails by a condition that code decides."""
    return Grade(
        task_name=task.name,
        task_type=task.given.id if task.given else None,
        inferred_task_type=None,
        weights=dict(task.given.weights) if task.given else None,
        score=dict.fromkeys(task.dimensions, 0),
        total_score=0,
        reasoning=dict.fromkeys(task.dimensions, ungraded),
        critical_fail=True,
        critical_fail_reason=reason,
        confidence="high",
    )


def under_weights(grade: Grade, weights: Mapping[str, float]) -> tuple[Grade, list[Fix]] | None:
    """Return a grade under other weights of its type, and each score that was rescaled; None where
    a dimension counts now that had no points to be given."""
    old = grade.weights or weights
    if any(weights[d] and not old[d] for d in weights) and not grade.critical_fail:
        return None
    score = {d: rescale(points, old[d], weights[d]) for d, points in grade.score.items()}
    fixes = [Fix("rescaled", f"score.{d}") for d in score if score[d] != grade.score[d]]
    total = total_of(score)
    return replace(grade, weights=dict(weights), score=score, total_score=total), fixes


def check_reply(
    text: str, task: Task, words: JudgeWords, finish: str = "stop", *, is_compact: bool = False
) -> Checked[Grade]:
    """Return the grade of one reply, or its problems. A judge that fills a compact form need not
    give reasons."""
    check = _GradeCheck(words, task, needs_reasons=not is_compact)
    reply = check.read_object(text, finish, JudgedText(*task.texts))
    return check.result(None if reply is None else check.grade(reply))


class _GradeCheck(ReplyCheck):
    def __init__(self, words: JudgeWords, task: Task, *, needs_reasons: bool) -> None:
        super().__init__(words)
        self.task, self.needs_reasons = task, needs_reasons

    def grade(self, reply: dict[str, Any]) -> Grade | None:
        """Return the grade that the reply's object gives."""
        is_failed_by_judge = reply.get("critical_fail") is True
        is_failed = is_failed_by_judge or self.task.failed is not None
        reply = self._name(reply)
        found = self.match(reply, self._form(is_failed, is_failed_by_judge))
        self._check_critical_fail(found)
        task_type = self.task.given
        if task_type is None:
            inferred = found.get("inferred_task_type")
            task_type = next((each for each in self.task.types if each.id == inferred), None)
        if is_failed:
            score = dict.fromkeys(self.task.dimensions, 0.0)
            self._note_zeroes(found)
        else:
            score = self._score(found, task_type)
        reasoning = self._cut_reasons(found.get("reasoning", {}))
        if self.problems:
            return None
        reason = found.get("critical_fail_reason")
        grade = Grade(
            task_name=self.task.name,
            task_type=task_type.id if task_type else None,
            inferred_task_type=task_type.id if task_type and not self.task.given else None,
            weights=dict(task_type.weights) if task_type else None,
            score=score,
            total_score=total_of(score),
            reasoning=reasoning,
            critical_fail=is_failed,
            critical_fail_reason=(self.task.failed if is_blank(reason) else reason)
            if is_failed
            else None,
            confidence=found["confidence"],
        )
        self._note_replaced(found, grade)
        return grade

    def _name(self, reply: dict[str, Any]) -> dict[str, Any]:
        """Return the reply in the contract's own words for types, weights, and nothing."""
        ids = self.task.type_ids
        named = dict[str, Any]()
        for key in ("task_type", "inferred_task_type"):
            if isinstance(value := reply.get(key), str) and value.strip().casefold() not in ids:
                word = find_type(value, ids)
                named |= {key: word} if word or says_nothing(value) else {}
        weights = reply.get("weights")
        if isinstance(weights, dict) and any(
            isinstance(weight, str) for weight in weights.values()
        ):
            named["weights"] = {name: _read_percent(weight) for name, weight in weights.items()}
        reason = reply.get("critical_fail_reason")
        if isinstance(reason, str) and not is_blank(reason) and says_nothing(reason):
            named["critical_fail_reason"] = None
        for key in named:
            # A type that is named as none is another value, which is noted where it is replaced.
            if named[key] is not None or key == "critical_fail_reason":
                self.fix("unwrapped", key)
        return reply | named

    def _form(self, is_failed: bool, is_failed_by_judge: bool) -> dict[str, Any]:
        """Return the schema of what only the judge knows: not the type where it is given, a reason
        only for its own critical fail, and nothing of what a critical fail ends. The whole output
        is accepted as well."""
        task, dimensions = self.task, self.task.dimensions
        form = allow(
            reply_schema(dimensions, task.types, task.given),
            task_name=ANYTHING,
            task_type=ANYTHING,
            weights={"type": ["object", "null"]},
            total_score={"type": ["number", "null"]},
        )
        properties = form["properties"]
        needless = set[str]() if is_failed_by_judge else {"critical_fail_reason"}
        if task.given or task.failed:
            needless.add("inferred_task_type")
            properties["inferred_task_type"] = ANYTHING
        if is_failed:
            needless |= {"reasoning", "score"}
            properties |= dict.fromkeys(("reasoning", "score", "weights", "total_score"), ANYTHING)
        elif task.given:
            properties["task_type"] = {"type": ["string", "null"], "enum": task.type_ids}
        required = [name for name in form["required"] if name not in needless]
        return {**form, "required": required}

    def _check_critical_fail(self, found: Mapping[str, Any]) -> None:
        failed, reason = found.get("critical_fail"), found.get("critical_fail_reason")
        path = "critical_fail_reason"
        if failed is False and self.task.failed is not None:
            self.fix("zeroed", "critical_fail")
        elif failed and not self.task.has_conditions and self.task.failed is None:
            self.problem("critical_without_conditions", "schema", "critical_fail")
        elif failed and path in found and is_blank(reason):
            self.problem("critical_reason_missing", "schema", path)
        elif failed is False and not is_blank(reason):
            self.problem("critical_reason_unasked", "schema", path)

    def _note_zeroes(self, found: dict[str, Any]) -> None:
        """Put zeroes and a phrase in the place of what a critical fail ends."""
        if found.get("score") != dict.fromkeys(self.task.dimensions, 0):
            self.fix("zeroed", "score")
        reasons = found.get("reasoning")
        given = reasons if isinstance(reasons, dict) else {}
        texts = {d: given.get(d) for d in self.task.dimensions}
        ungraded = self.words.phrases["ungraded"]
        found["reasoning"] = {
            d: text if isinstance(text, str) and not is_blank(text) else ungraded
            for d, text in texts.items()
        }
        if found["reasoning"] != texts:
            self.fix("zeroed", "reasoning")

    def _score(self, found: Mapping[str, Any], task_type: TaskType | None) -> dict[str, float]:
        """Return the points of each dimension, on the scale of the task's type."""
        scores = found.get("score", {})
        scale = self._find_scale(found, task_type) if task_type else None
        if task_type is None or scale is None:
            return {}
        maxima = self._find_maxima(scores, found.get("total_score"), task_type, scale)
        return {
            name: self._rescale(f"score.{name}", points, maxima[name], task_type.weights[name])
            for name, points in scores.items()
        }

    def _rescale(self, path: str, points: float, most: float, weight: float) -> float:
        if not 0 <= points <= most:
            # The next reply need not name another scale again: what the judge is told holds for the
            # task's own.
            name = "score_over" if most == weight else "score_over_other"
            value = jsontext.dump(points)
            self.problem(name, "out_of_range", path, value=value, offered=most, allowed=weight)
            return 0
        if most == weight:
            return plain_number(points)
        self.fix("rescaled", path)
        return rescale(points, most, weight)

    def _find_scale(self, found: Mapping[str, Any], task_type: TaskType) -> TaskType | None:
        """Return the type on whose scale the scores stand: the one that has the reply's weights,
        else the one that it names, else the one in force; None where that cannot be told."""
        weights, named = found.get("weights"), found.get("task_type")
        if weights:
            scales = [each for each in (task_type, *self.task.types) if each.weights == weights]
        else:
            default = self.task.scale or task_type
            scales = [each for each in self.task.types if each.id == named != task_type.id]
            scales = scales or [default]
        scale = scales[0] if scales else None
        # A scale must say something of every dimension that counts.
        if scale and all(scale.weights[d] or not most for d, most in task_type.weights.items()):
            return scale
        path, written = ("weights", weights) if weights else ("task_type", named)
        allowed = jsontext.dump(dict(task_type.weights)) if weights else task_type.id
        name = "weights_unknown" if weights else "not_allowed"
        self.problem(name, "out_of_range", path, value=jsontext.dump(written), allowed=allowed)
        return None

    def _find_maxima(
        self, scores: Scores, total: float | None, task_type: TaskType, scale: TaskType
    ) -> Mapping[str, float]:
        """Return the most points of each dimension on the scale that the scores are on. The stated
        total is a check digit: where it cannot be their sum, it may be the weighted sum of scores
        from 0 to 1, 10 or 100."""
        is_whole = len(scores) == len(self.task.dimensions)
        if total is None or not is_whole or not all(0 <= n <= 100 for n in scores.values()):
            return scale.weights
        stated = min(max(total, -1000), 1000)  # Beyond all bounds one is as wrong as another.

        def is_sum(maxima: Scores, slack: float) -> bool:
            sums = (
                total_of({d: rescale(scores[d], maxima[d], weights[d]) for d in scores})
                for weights in (scale.weights, task_type.weights)
            )
            return any(abs(stated - sum_) <= slack for sum_ in sums)

        flat = [dict.fromkeys(scores, most) for most in _FLAT_SCALES]
        highest, sum_ = max(scores.values()), total_of(scores)
        # The weighted mean of scores up to 10 is out of 1, 10 or 100 as they are, and nothing says
        # which: 9, 9, 9 and 9 may be 9 or 90.
        is_small = highest <= _FLAT_SCALES[1] and abs(stated - sum_) > _ROUNDING
        if not (is_small and is_sum(flat[-1], _ROUNDING)):
            if is_sum(scale.weights, _SUM_SLACK):
                return scale.weights
            for most, maxima in zip(_FLAT_SCALES, flat, strict=True):
                if highest <= most and is_sum(maxima, _ROUNDING):
                    self.flags.append("rescaled")
                    return maxima
        allowed = jsontext.dump(dict(task_type.weights))
        about = {"value": jsontext.dump(total), "sum": jsontext.dump(sum_), "allowed": allowed}
        self.problem("total_off", "out_of_range", "total_score", **about)
        return scale.weights

    def _cut_reasons(self, reasons: Mapping[str, str]) -> dict[str, str]:
        for name, text in reasons.items():
            path = f"reasoning.{name}"
            if self.needs_reasons:
                self.require_reason(text, path)
            if len(text) > REASONING_CHARS:
                self.fix("cut", path)
                self.uncut[path] = text
        return {name: cut(text) for name, text in reasons.items()}

    def _note_replaced(self, found: Mapping[str, Any], grade: Grade) -> None:
        """Note what code put in the place of what the judge wrote, and a reply that speaks of
        another type of task."""
        codes: dict[str, FixCode] = {"total_score": "total", "weights": "weights"}
        for name in _KNOWN:
            # 15.0 is the right sum of 10 and 5.
            if name in found and found[name] != getattr(grade, name):
                self.fix(codes.get(name, "meta"), name)
        said = (found.get("task_type"), found.get("inferred_task_type"), found.get("weights"))
        others = [each for each in self.task.types if each.id in said or each.weights in said]
        if any(each.id != grade.task_type and each.weights != grade.weights for each in others):
            self.flags.append("other_type")


_PERCENT = re.compile(r"\s*+(\d{1,3}(?:\.\d{1,2})?)\s*+[%％]?\s*")


def _read_percent(weight: object) -> object:
    """Return a weight that is written as text as its number; what is none as it is."""
    number = _PERCENT.fullmatch(weight) if isinstance(weight, str) else None
    return plain_number(float(number[1])) if number else weight


def total_of(scores: Scores) -> float:
    """Return the sum of the scores, as exact as they are written."""
    return _number(sum(map(_decimal, scores.values()), Decimal()))


def rescale(score: float, old: float, new: float) -> float:
    """Return a score under one weight as a score under another."""
    return _number(_decimal(score) * _decimal(new) / _decimal(old)) if old else 0


def _decimal(number: float) -> Decimal:
    """Return a number as its shortest spelling has it: 10.1 is not 10.0999..."""
    return Decimal(repr(float(number)))


def _number(exact: Decimal) -> float:
    return int(exact) if exact == exact.to_integral_value() else float(exact)


_WORDLESS = r"\s\u0e00-\u0eff\u3000-\u30ff\u3400-\u9fff\uf900-\uffef\U00020000-\U0003ffff"
_STARTED = re.compile(rf"(?<![^{_WORDLESS}])[^{_WORDLESS}]{{1,40}}\Z")
"""The beginning of a word that the cut would split, in a script that has words."""


def cut(text: str) -> str:
    """Return a text of at most 200 code points, the mark that it was cut included; cut at a word
    where the script has words."""
    if len(text) <= REASONING_CHARS:
        return text
    head, after = text[: REASONING_CHARS - 1], text[REASONING_CHARS - 1]
    started = _STARTED.search(head) if _STARTED.fullmatch(after) else None
    short = head[: started.start()].rstrip() if started else ""
    return (short or head.rstrip()) + "…"


# Statistics


def measure_answer(answer: Answer) -> ScoredUnit:
    """Return the fields of an answer, and its length."""
    fields = {"task_name": answer.task_name, **answer.meta}
    return ScoredUnit(fields, {}, len(answer.answer), rubric=answer.rubric)


def measure_judgment(judgment: Judgment) -> Scored | None:
    """Return the points of a grade; None where there is none. Where code failed an answer whose
    type nobody knows, the grade does not say the most points of each dimension."""
    if not isinstance(judgment, Verdict):
        return None
    grade = judgment.value
    assert isinstance(grade, Grade)
    return Scored(
        scores={name: float(score) for name, score in grade.score.items()},
        most={name: float(weight) for name, weight in (grade.weights or {}).items()},
        total=float(grade.total_score) / FULL_MARKS,
        is_critical=grade.critical_fail,
        confidence=grade.confidence,
        inferred_type=grade.inferred_task_type or "",
    )
