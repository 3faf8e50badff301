"""The weighted contract applied to one reply: a grade that keeps it, or the list of problems.

Code supplies what code knows: the task's name and type, the weights, the total, and the zeroes
after a critical fail.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, TypeGuard, cast

from msgspec.structs import replace

from evenhand import jsontext
from evenhand.judgment import Fix, FixCode, Reason
from evenhand.kinds.check import Checked, Inspection, is_blank
from evenhand.kinds.protocol import Words
from evenhand.kinds.reply import JudgedText
from evenhand.kinds.rows import plain_number
from evenhand.kinds.weighted.form import CONFIDENCE, REASONING_CHARS, TaskType
from evenhand.kinds.weighted.verdict import Grade

_ASKED = (
    "inferred_task_type",
    "critical_fail",
    "critical_fail_reason",
    "reasoning",
    "score",
    "confidence",
)
_KNOWN = ("task_name", "task_type", "weights", "total_score")
_SUM_SLACK = 3
"""How far a stated total may be from the sum of the scores: further off is no slip."""
_FLAT_SCALES = (1, 10, 100)
"""Scales that judges grade every dimension on instead of its weight."""
_ROUNDING = 0.5
_NUMBER = re.compile(r"-?\d{1,9}(?:\.\d{1,9})?")


class Task(NamedTuple):
    """What code knows of a task: its name, its type if the rubric names one, and whether there are
    critical-fail conditions that only the judge can decide."""

    name: str
    given: TaskType | None
    types: Sequence[TaskType]
    has_conditions: bool
    scale: TaskType | None = None
    """The type whose steps a form offered, where the judge was to infer its own."""
    answer: str = ""
    """What is judged."""
    failed: str | None = None
    """Why code failed the answer, where it did: what a reply made elsewhere is held to."""


def check_reply(
    text: str | bytes,
    task: Task,
    words: Words,
    finish: str = "stop",
    *,
    is_compact: bool = False,
) -> Checked[Grade]:
    """Return what the contract says of one reply. A judge that fills a compact form need not give
    reasons."""
    check = _Check(words, task, needs_reasons=not is_compact)
    value = check.object_in(text, JudgedText(task.answer)) if check.is_whole(finish) else None
    return check.done(None if value is None else check.grade(value))


def failed_grade(task: Task, reason: str, ungraded: str) -> Grade:
    """Return the grade of an answer that fails by a condition that code decides."""
    dimensions = list(task.types[0].weights)
    return Grade(
        task_name=task.name,
        task_type=task.given.id if task.given else None,
        inferred_task_type=None,
        weights=dict(task.given.weights) if task.given else None,
        score=dict.fromkeys(dimensions, 0),
        total_score=0,
        reasoning=dict.fromkeys(dimensions, ungraded),
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
    score = {d: rescaled(points, old[d], weights[d]) for d, points in grade.score.items()}
    fixes = [Fix("rescaled", f"score.{d}") for d in score if score[d] != grade.score[d]]
    total = total_of(score)
    return replace(grade, weights=dict(weights), score=score, total_score=total), fixes


class _Check(Inspection):
    def __init__(self, words: Words, task: Task, *, needs_reasons: bool) -> None:
        super().__init__(words)
        self.task, self.needs_reasons = task, needs_reasons
        self.dimensions = tuple(task.types[0].weights)

    def grade(self, value: dict[str, Any]) -> Grade:
        """Return the grade that the reply's object gives."""
        # What only the judge knows: not the type where it is given, a reason only for a critical
        # fail, and nothing of what a critical fail ends.
        is_failed = value.get("critical_fail") is True
        needless = {"reasoning", "score"} if is_failed else {"critical_fail_reason"}
        needless |= {"inferred_task_type"} if self.task.given else set()
        due = [name for name in _ASKED if name not in needless]
        self.keys(value, due, "", allowed=(*_ASKED, *_KNOWN))
        kind = self.task.given or self._inferred(value)
        failed = self._critical(value)
        score = self._zeroes(value) if failed else self._scores(value, kind)
        reason = value.get("critical_fail_reason")
        grade = Grade(
            task_name=self.task.name,
            task_type=kind.id if kind else None,
            inferred_task_type=None if self.task.given or not kind else kind.id,
            weights=dict(kind.weights) if kind else None,
            score=score,
            total_score=0 if self.problems else total_of(score),
            reasoning=self._reasoning(value, failed),
            critical_fail=failed,
            critical_fail_reason=(self.task.failed if _is_empty(reason) else reason)
            if failed
            else None,
            confidence=self._confidence(value),
        )
        if not self.problems:
            self._note_replaced(value, grade)
        return grade

    def _unknown(
        self, kind: str, path: str, value: object, allowed: str, expected: type = str
    ) -> None:
        """Note a value that is none of those allowed."""
        code: Reason = "out_of_range" if isinstance(value, expected) else "schema"
        self.breach(kind, code, path, value=jsontext.dump(value), allowed=allowed)

    def _inferred(self, value: Mapping[str, Any]) -> TaskType | None:
        """Return the type that the judge inferred."""
        name = value.get("inferred_task_type")
        for kind in self.task.types:
            if kind.id == name:
                return kind
        if "inferred_task_type" in value and (name is not None or self.task.failed is None):
            problem = "type_missing" if name is None else "type_unknown"
            allowed = ", ".join(kind.id for kind in self.task.types)
            self._unknown(problem, "inferred_task_type", name, allowed)
        return None

    def _critical(self, value: Mapping[str, Any]) -> bool:
        """Return True if the answer fails, by the judge or by code."""
        failed, reason = value.get("critical_fail", False), value.get("critical_fail_reason")
        if not self.typed(failed, bool, "boolean", "critical_fail"):
            return False
        if not failed and self.task.failed is not None:
            self.fix("zeroed", "critical_fail")
            return True
        if failed and not self.task.has_conditions and self.task.failed is None:
            self.breach("critical_without_conditions", "schema", "critical_fail")
        if not isinstance(reason, str | None):
            self.typed(reason, str, "text", "critical_fail_reason")
        elif failed and _is_empty(reason) and "critical_fail_reason" in value:
            self.breach("critical_reason_missing", "schema", "critical_fail_reason")
        elif not failed and not _is_empty(reason):
            self.breach("critical_reason_unasked", "schema", "critical_fail_reason")
        return bool(failed)

    def _zeroes(self, value: Mapping[str, Any]) -> dict[str, int | float]:
        zeroes: dict[str, int | float] = dict.fromkeys(self.dimensions, 0)
        if value.get("score") != zeroes:
            self.fix("zeroed", "score")
        return zeroes

    def _scores(self, value: Mapping[str, Any], kind: TaskType | None) -> dict[str, int | float]:
        """Return the points of each dimension, on the scale of the task's type."""
        scale = self._scale(value, kind)
        scores = self.object_at(value["score"], "score") if "score" in value else None
        if scores is None:
            return {}
        self.keys(scores, self.dimensions, "score.")
        numbers: dict[str, float] = {}
        for name in self.dimensions:
            if name in scores and _is_number(scores[name]):
                numbers[name] = scores[name]
            elif name in scores:
                written = jsontext.dump(scores[name])
                self.breach("score_not_number", "schema", f"score.{name}", value=written)
        if kind is None or scale is None:
            return {}
        most = self._offered(numbers, value.get("total_score"), kind, scale)
        return {
            name: self._score(f"score.{name}", number, most[name], kind.weights[name])
            for name, number in numbers.items()
        }

    def _score(self, path: str, score: float, offered: float, most: float) -> int | float:
        if not 0 <= score <= offered:
            # The next reply need not name another scale again: what the judge is told holds for the
            # task's own.
            kind = "score_over" if offered == most else "score_over_other"
            about = {"value": jsontext.dump(score), "offered": offered, "allowed": most}
            self.breach(kind, "out_of_range", path, **about)
            return 0
        if offered == most:
            return plain_number(score)
        self.fix("rescaled", path)
        return rescaled(score, offered, most)

    def _scale(self, value: Mapping[str, Any], kind: TaskType | None) -> TaskType | None:
        """Return the type on whose scale the scores stand: the one that the reply's weights are
        of, else the one that it names, else the one in force; None where that cannot be told."""
        scale, name = self.task.scale or kind, value.get("task_type")
        named = self._type_named(name)
        if named and _is_convertible(named, kind):
            scale = scale if named is kind else named
        elif name is not None and (named or self.task.given):
            self._unknown("type_unknown", "task_type", name, kind.id if kind else "")
            scale = None
        weights = value.get("weights")
        if weights is None or weights == {}:
            return scale
        scales = self._types_with(weights)
        if kind in scales:
            return kind
        if scales and _is_convertible(scales[0], kind):
            return scales[0]
        types = [kind] if kind else self.task.types
        allowed = "; ".join(jsontext.dump(dict(each.weights)) for each in types)
        self._unknown("weights_unknown", "weights", weights, allowed, dict)
        return None

    def _type_named(self, name: object) -> TaskType | None:
        """Return the type that a reply names, in whatever case."""
        spelled = name.strip().casefold() if isinstance(name, str) else None
        return next((kind for kind in self.task.types if kind.id.casefold() == spelled), None)

    def _types_with(self, weights: object) -> list[TaskType]:
        """Return the types that have these weights."""
        if not isinstance(weights, dict) or any(isinstance(w, bool) for w in weights.values()):
            return []
        return [kind for kind in self.task.types if kind.weights == weights]

    def _offered(
        self, scores: Mapping[str, float], stated: object, kind: TaskType, scale: TaskType
    ) -> Mapping[str, float]:
        """Return the most points of each dimension on the scale that the scores are on. The stated
        total is a check digit: where it cannot be their sum, it may be the weighted sum of scores
        from 0 to 1, 10 or 100."""
        total = _read_total(stated)
        is_whole = len(scores) == len(self.dimensions)
        if total is None or not is_whole or not all(0 <= n <= 100 for n in scores.values()):
            return scale.weights

        def is_sum(most: Mapping[str, float], slack: float) -> bool:
            sums = (
                total_of({d: rescaled(scores[d], most[d], weights[d]) for d in scores})
                for weights in (scale.weights, kind.weights)
            )
            return any(abs(total - sum_) <= slack for sum_ in sums)

        flat = [dict.fromkeys(scores, most) for most in _FLAT_SCALES]
        highest = max(scores.values())
        # The weighted mean of scores up to 10 is out of 1, 10 or 100 as they are, and nothing says
        # which: 9, 9, 9 and 9 may be 9 or 90.
        is_small = highest <= _FLAT_SCALES[1] and abs(total - total_of(scores)) > _ROUNDING
        if not (is_small and is_sum(flat[-1], _ROUNDING)):
            if is_sum(scale.weights, _SUM_SLACK):
                return scale.weights
            for most in flat:
                if highest <= most[self.dimensions[0]] and is_sum(most, _ROUNDING):
                    self.flags.append("rescaled")
                    return most
        written, allowed = jsontext.dump(stated), jsontext.dump(dict(kind.weights))
        about = {"value": written, "sum": jsontext.dump(total_of(scores)), "allowed": allowed}
        self.breach("total_off", "out_of_range", "total_score", **about)
        return scale.weights

    def _reasoning(self, value: Mapping[str, Any], failed: bool) -> dict[str, str]:
        """Return the reasons, cut; after a critical fail there need be none."""
        reasons = value.get("reasoning")
        if failed and isinstance(reasons, dict | None):
            texts = cast("dict[str, Any]", reasons or {})
            missing = [d for d in self.dimensions if _is_empty(texts.get(d))]
            if missing:
                self.fix("zeroed", "reasoning")
            reasons = texts | dict.fromkeys(missing, self.words.phrases["ungraded"])
        elif "reasoning" not in value:
            return {}
        given = self.object_at(reasons, "reasoning")
        if given is None:
            return {}
        self.keys(given, self.dimensions, "reasoning.")
        return {d: self._reason(given[d], f"reasoning.{d}") for d in self.dimensions if d in given}

    def _reason(self, reason: object, path: str) -> str:
        if not self.typed(reason, str, "text", path):
            return ""
        text = cast("str", reason)
        if self.needs_reasons:
            self.reason(text, path)
        if len(text) > REASONING_CHARS:
            self.fix("cut", path)
            self.uncut[path] = text
        return cut(text)

    def _confidence(self, value: Mapping[str, Any]) -> Any:
        confidence = value.get("confidence")
        level = confidence.strip().casefold() if isinstance(confidence, str) else None
        if level in CONFIDENCE:
            if level != confidence:
                self.fix("unwrapped", "confidence")
            return level
        if "confidence" in value:
            self._unknown("confidence_unknown", "confidence", confidence, ", ".join(CONFIDENCE))
        return confidence

    def _note_replaced(self, value: Mapping[str, Any], grade: Grade) -> None:
        """Note what code put in the place of what the judge wrote."""
        codes: dict[str, FixCode] = {"total_score": "total", "weights": "weights"}
        for name in (*_KNOWN, "inferred_task_type"):
            # 15.0 is the right sum of 10 and 5.
            if name in value and value[name] != getattr(grade, name):
                self.fix(codes.get(name, "meta"), name)
        types = (value.get("task_type"), value.get("inferred_task_type"))
        named = {kind.id for kind in map(self._type_named, types) if kind}
        rows = {kind.id for kind in self._types_with(value.get("weights"))}
        if named - {grade.task_type} or (rows and grade.task_type not in rows):
            self.flags.append("other_type")


def _is_empty(text: object) -> bool:
    return text is None or (isinstance(text, str) and is_blank(text))


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _read_total(stated: object) -> float | None:
    """Return the number that a reply states as its total, in words or not; None if there is none.
    Beyond all bounds one is as wrong as another."""
    if isinstance(stated, str) and (number := _NUMBER.search(stated[:REASONING_CHARS])):
        stated = float(number[0])
    return min(max(stated, -1000), 1000) if _is_number(stated) else None


def _is_convertible(scale: TaskType, kind: TaskType | None) -> bool:
    """Return True if scores on a scale say something of every dimension that counts in a type."""
    return kind is None or all(scale.weights[d] or not most for d, most in kind.weights.items())


def total_of(scores: Mapping[str, float]) -> float:
    """Return the sum of the scores, as exact as they are written."""
    return _number(sum(map(_decimal, scores.values()), Decimal()))


def rescaled(score: float, old: float, new: float) -> float:
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
