"""The weighted contract applied to one reply: an output that keeps it, or the list of breaches.

Code supplies what code knows: the task's name and type, the weights, the total, and the zeroes
after a critical fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, TypeGuard, cast
from unicodedata import combining

from msgspec.structs import replace

from evenhand import jsontext
from evenhand.judgment import Fix, FixCode, Reason
from evenhand.kinds.check import Checked, Inspection, is_blank
from evenhand.kinds.protocol import Words
from evenhand.kinds.reply import JudgedText
from evenhand.kinds.shared.raw import plain_number
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
    """Hold one reply to the contract. A judge that fills a compact form need not give reasons."""
    check = _Check(words, task, is_compact)
    judged = JudgedText(task.answer)
    value = check.object_in(text, judged) if check.is_whole(finish) else None
    return check.done(None if value is None else check.reply(value))


def total_of(scores: Mapping[str, float]) -> float:
    """The sum of the scores, as exact as they are written."""
    return _number(sum(map(_decimal, scores.values()), Decimal()))


def under_weights(grade: Grade, weights: Mapping[str, float]) -> tuple[Grade, list[Fix]] | None:
    """A grade as other weights of its type have it, and each score that was rescaled. None where
    a dimension counts now that had no points to be given."""
    old = grade.weights or weights
    if any(weights[d] and not old[d] for d in weights) and not grade.critical_fail:
        return None
    score = {d: rescaled(points, old[d], weights[d]) for d, points in grade.score.items()}
    fixes = [Fix("rescaled", f"score.{d}") for d in score if score[d] != grade.score[d]]
    total = total_of(score)
    return replace(grade, weights=dict(weights), score=score, total_score=total), fixes


def failed_grade(task: Task, reason: str, ungraded: str) -> Grade:
    """The grade of an answer that fails by a condition that code decides."""
    weights = None if task.given is None else dict(task.given.weights)
    dimensions = list(task.types[0].weights)
    return Grade(
        task_name=task.name,
        task_type=task.given.id if task.given else None,
        inferred_task_type=None,
        weights=weights,
        score=dict.fromkeys(dimensions, 0),
        total_score=0,
        reasoning=dict.fromkeys(dimensions, ungraded),
        critical_fail=True,
        critical_fail_reason=reason,
        confidence="high",
    )


class _Check(Inspection):
    def __init__(self, words: Words, task: Task, is_compact: bool) -> None:
        super().__init__(words)
        self.task, self.is_compact = task, is_compact
        self.dimensions = tuple(task.types[0].weights)

    def reply(self, value: dict[str, Any]) -> Grade:
        """The grade that the reply's object gives, every part of it there."""
        self.keys(value, self._due(value), "", allowed=(*_ASKED, *_KNOWN))
        kind = self.task.given or self._inferred(value)
        failed = self._critical(value)
        scale = None if failed else self._scale(value, kind)
        score = self._scores(value, kind, scale, failed)
        grade = Grade(
            task_name=self.task.name,
            task_type=kind.id if kind else None,
            inferred_task_type=None if self.task.given or not kind else kind.id,
            weights=dict(kind.weights) if kind else None,
            score=score,
            total_score=0 if self.problems else total_of(score),
            reasoning=self._reasoning(value, failed),
            critical_fail=failed,
            critical_fail_reason=self._why(value) if failed else None,
            confidence=self._confidence(value),
        )
        self._restored(value, grade)
        return grade

    def _due(self, value: Mapping[str, Any]) -> list[str]:
        """What only the judge knows: not the type where it is given, a reason only for a critical
        fail, and nothing of what a critical fail ends."""
        failed = value.get("critical_fail") is True
        needless = {"reasoning", "score"} if failed else {"critical_fail_reason"}
        needless |= {"inferred_task_type"} if self.task.given else set()
        return [name for name in _ASKED if name not in needless]

    def _restored(self, value: Mapping[str, Any], grade: Grade) -> None:
        """Log what code put in the place of what the judge wrote, unless it is asked again."""
        if self.problems:
            return
        codes: dict[str, FixCode] = {"total_score": "total", "weights": "weights"}
        for name in (*_KNOWN, "inferred_task_type"):
            # 15.0 is the right sum of 10 and 5.
            if name in value and value[name] != getattr(grade, name):
                self.fix(codes.get(name, "meta"), name)
        types = (value.get("task_type"), value.get("inferred_task_type"))
        named = {kind.id for kind in map(self._type_of, types) if kind}
        rows = {kind.id for kind in self._types_with(value.get("weights"))}
        if named - {grade.task_type} or (rows and grade.task_type not in rows):
            self.flags.append("other_type")

    def _type_of(self, name: object) -> TaskType | None:
        """The type that a reply names, in whatever case."""
        spelled = name.strip().casefold() if isinstance(name, str) else None
        return next((kind for kind in self.task.types if kind.id.casefold() == spelled), None)

    def _types_with(self, weights: object) -> list[TaskType]:
        """The types that have these weights."""
        if not isinstance(weights, dict) or any(isinstance(w, bool) for w in weights.values()):
            return []
        return [kind for kind in self.task.types if kind.weights == weights]

    def _scale(self, value: Mapping[str, Any], kind: TaskType | None) -> TaskType | None:
        """The type on whose scale the scores stand: what the weights of the reply say, else the
        type that it names, else the one in force. None where that cannot be told."""
        named = self._named(value.get("task_type"), kind)
        weights = value.get("weights")
        if weights is None or weights == {}:
            return named
        scales = self._types_with(weights)
        if kind in scales:
            return kind
        if scales and _is_convertible(scales[0], kind):
            return scales[0]
        self._unknown_weights(weights, kind)
        return None

    def _named(self, name: object, kind: TaskType | None) -> TaskType | None:
        """The type that a reply names as the task's, else the one in force."""
        named = self._type_of(name)
        if named is not None and _is_convertible(named, kind):
            return self.task.scale or kind if named is kind else named
        if name is not None and (named or self.task.given):
            code: Reason = "out_of_range" if isinstance(name, str) else "schema"
            written, allowed = jsontext.dump(name), kind.id if kind else ""
            self.breach("type_unknown", code, "task_type", value=written, allowed=allowed)
            return None
        return self.task.scale or kind

    def _unknown_weights(self, weights: object, kind: TaskType | None) -> None:
        types = [kind] if kind else self.task.types
        self.breach(
            "weights_unknown",
            "out_of_range" if isinstance(weights, dict) else "schema",
            "weights",
            value=jsontext.dump(weights),
            allowed="; ".join(jsontext.dump(dict(task_type.weights)) for task_type in types),
        )

    def _inferred(self, value: Mapping[str, Any]) -> TaskType | None:
        named = value.get("inferred_task_type")
        for task_type in self.task.types:
            if task_type.id == named:
                return task_type
        is_ended = named is None and self.task.failed is not None
        if "inferred_task_type" in value and not is_ended:
            kind = "type_missing" if named is None else "type_unknown"
            code: Reason = "out_of_range" if isinstance(named, str) else "schema"
            allowed = ", ".join(task_type.id for task_type in self.task.types)
            written = jsontext.dump(named)
            self.breach(kind, code, "inferred_task_type", value=written, allowed=allowed)
        return None

    def _critical(self, value: Mapping[str, Any]) -> bool:
        failed, reason = value.get("critical_fail", False), value.get("critical_fail_reason")
        if not self.typed(failed, bool, "boolean", "critical_fail"):
            return False
        if not failed and self.task.failed is not None:
            self.fix("zeroed", "critical_fail")
            return True
        if failed and not self.task.has_conditions and self.task.failed is None:
            self.breach("critical_without_conditions", "schema", "critical_fail")
        blank = _is_blank(reason)
        if not blank and not isinstance(reason, str):
            self.typed(reason, str, "text", "critical_fail_reason")
        elif failed and blank and "critical_fail_reason" in value:
            self.breach("critical_reason_missing", "schema", "critical_fail_reason")
        elif not failed and not blank:
            self.breach("critical_reason_unasked", "schema", "critical_fail_reason")
        return bool(failed)

    def _why(self, value: Mapping[str, Any]) -> Any:
        reason = value.get("critical_fail_reason")
        return self.task.failed if _is_blank(reason) else reason

    def _scores(
        self,
        value: Mapping[str, Any],
        kind: TaskType | None,
        scale: TaskType | None,
        failed: bool,
    ) -> dict[str, int | float]:
        if failed:
            zeroes: dict[str, int | float] = dict.fromkeys(self.dimensions, 0)
            if value.get("score") != zeroes:
                self.fix("zeroed", "score")
            return zeroes
        scores = self.object_at(value["score"], "score") if "score" in value else None
        if scores is None:
            return {}
        self.keys(scores, self.dimensions, "score.")
        most = self._offered(scores, value.get("total_score"), kind, scale)
        return {d: self._score(scores[d], d, kind, most) for d in self.dimensions if d in scores}

    def _offered(
        self,
        scores: Mapping[str, Any],
        stated: object,
        kind: TaskType | None,
        scale: TaskType | None,
    ) -> Mapping[str, float] | None:
        """Return the most points of each dimension on the scale that the scores are on. The stated
        total is a check digit: where it cannot be their sum, it may be the weighted sum of scores
        from 0 to 1, 10 or 100."""
        if kind is None or scale is None:
            return None
        total, given = _total_in(stated), [scores.get(d) for d in self.dimensions]
        if total is None or not all(_is_number(score) and 0 <= score <= 100 for score in given):
            return scale.weights
        scores = {d: scores[d] for d in self.dimensions}
        flat = [dict.fromkeys(self.dimensions, most) for most in _FLAT_SCALES]
        for most in () if _is_mean(total, scores, kind, scale) else (scale.weights, *flat):
            is_flat = most is not scale.weights
            if is_flat and any(scores[d] > most[d] for d in self.dimensions):
                continue
            slack = _ROUNDING if is_flat else _SUM_SLACK
            if any(abs(total - sum_) <= slack for sum_ in _sums(scores, most, kind, scale)):
                self.flags += ["rescaled"] * is_flat
                return most
        self.breach(
            "total_off",
            "out_of_range",
            "total_score",
            value=jsontext.dump(stated),
            sum=jsontext.dump(total_of(scores)),
            allowed=jsontext.dump(dict(kind.weights)),
        )
        return scale.weights

    def _score(
        self,
        score: object,
        dimension: str,
        kind: TaskType | None,
        scale: Mapping[str, float] | None,
    ) -> int | float:
        path = f"score.{dimension}"
        if not _is_number(score):
            self.breach("score_not_number", "schema", path, value=jsontext.dump(score))
            return 0
        if kind is None or scale is None:
            return 0
        most, offered = kind.weights[dimension], scale[dimension]
        if not 0 <= score <= offered:
            self._beyond(path, score, offered, most)
            return 0
        if offered == most:
            return plain_number(score)
        self.fix("rescaled", path)
        return rescaled(score, offered, most)

    def _beyond(self, path: str, score: float, offered: float, most: float) -> None:
        """A score is beyond the scale on which it stands. The next reply need not name that scale
        again: what the judge is told holds for the task's own. A protocol from before there were
        words for it says less."""
        written, code = jsontext.dump(score), "score_over_other"
        if offered == most or code not in self.words.english:
            self.breach("score_over", "out_of_range", path, value=written, allowed=offered)
        else:
            self.breach(code, "out_of_range", path, value=written, offered=offered, allowed=most)

    def _reasoning(self, value: Mapping[str, Any], failed: bool) -> dict[str, str]:
        """The reasons, cut; after a critical fail there need be none."""
        reasons = value.get("reasoning")
        if failed:
            reasons = self._ended(reasons)
        elif "reasoning" not in value:
            return {}
        reasons_given = self.object_at(reasons, "reasoning")
        if reasons_given is None:
            return {}
        self.keys(reasons_given, self.dimensions, "reasoning.")
        return {
            d: self._reason(reasons_given[d], f"reasoning.{d}")
            for d in self.dimensions
            if d in reasons_given
        }

    def _ended(self, reasons: object) -> object:
        """The reasons beside a critical fail, with what it left out or blank filled in."""
        if reasons is not None and not isinstance(reasons, dict):
            return reasons
        texts = cast("dict[str, Any]", reasons or {})
        missing = [d for d in self.dimensions if _is_blank(texts.get(d))]
        if missing:
            self.fix("zeroed", "reasoning")
        return texts | dict.fromkeys(missing, self.words.phrases["ungraded"])

    def _reason(self, reason: object, path: str) -> str:
        if not self.typed(reason, str, "text", path):
            return ""
        text = cast("str", reason)
        if not self.is_compact:
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
            code: Reason = "out_of_range" if isinstance(confidence, str) else "schema"
            written, allowed = jsontext.dump(confidence), ", ".join(CONFIDENCE)
            self.breach("confidence_unknown", code, "confidence", value=written, allowed=allowed)
        return confidence


def _is_blank(text: object) -> bool:
    return text is None or (isinstance(text, str) and is_blank(text))


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _total_in(stated: object) -> float | None:
    """Return the number that a reply states as its total, in words or not; None if there is none.
    Beyond all bounds one is as wrong as another."""
    if isinstance(stated, str) and (number := _NUMBER.search(stated[:REASONING_CHARS])):
        stated = float(number[0])
    return min(max(stated, -1000), 1000) if _is_number(stated) else None


def _sums(
    scores: Mapping[str, float], most: Mapping[str, float], kind: TaskType, scale: TaskType
) -> Iterator[float]:
    """Yield the sum of scores out of `most`, under the weights of the reply and of the task."""
    for weights in (scale.weights, kind.weights):
        yield total_of({d: rescaled(scores[d], most[d], weights[d]) for d in weights})


def _is_mean(total: float, scores: Mapping[str, float], kind: TaskType, scale: TaskType) -> bool:
    """Return True if a total is the weighted mean of scores up to 10, and not their sum. It is then
    out of 1, 10 or 100 as the scores are, and nothing says which: 9, 9, 9 and 9 may be 9 or 90."""
    if max(scores.values()) > _FLAT_SCALES[1] or abs(total - total_of(scores)) <= _ROUNDING:
        return False
    means = _sums(scores, dict.fromkeys(scores, _FLAT_SCALES[2]), kind, scale)
    return any(abs(total - mean) <= _ROUNDING for mean in means)


def _is_convertible(scale: TaskType, kind: TaskType | None) -> bool:
    """Whether scores on a scale say something of every dimension that counts under a type."""
    return kind is None or all(scale.weights[d] or not most for d, most in kind.weights.items())


def rescaled(score: float, old: float, new: float) -> float:
    """A score under one weight as a score under another."""
    if not old:
        return 0
    return _number(_decimal(score) * _decimal(new) / _decimal(old))


def _decimal(number: float) -> Decimal:
    """A number as its shortest spelling has it: 10.1 is not 10.0999..."""
    return Decimal(repr(float(number)))


def _number(exact: Decimal) -> float:
    return int(exact) if exact == exact.to_integral_value() else float(exact)


CUT_MARK = "…"
_WORDLESS = r"\u0e00-\u0eff\u3000-\u30ff\u3400-\u9fff\uf900-\uffef\U00020000-\U0003ffff"
_STARTED = re.compile(rf"(?<![^\s{_WORDLESS}])[^\s{_WORDLESS}]{{1,40}}\Z")
"""The beginning of a word that the cut would split."""
_CLAUSE = re.compile(r"[。！？；：，、」』）][^。！？；：，、」』）]{0,39}\Z")
"""The last clause of a script without words, from the mark before it on."""
_NOT_FIRST = frozenset("。！？；：，、」』）ーぁぃぅぇぉっゃゅょァィゥェォッャュョ々\u200d\ufe0f")
"""What belongs to the character before it."""


def cut(text: str) -> str:
    """A text of at most 200 code points, the mark that it was cut included; cut at a word where the
    script has words, else after a clause if one ends nearby."""
    if len(text) <= REASONING_CHARS:
        return text
    head, after = text[: REASONING_CHARS - 1], text[REASONING_CHARS - 1]
    # Nothing but a word of a script that has words is worth going back for.
    if _STARTED.fullmatch(after):
        started = _STARTED.search(head)
        short = head[: started.start()] if started else ""
    else:
        clause = None if after.isspace() else _CLAUSE.search(head)
        short = head[: clause.start() + 1] if clause else ""
    return (short.rstrip() or _whole_characters(head, after).rstrip()) + CUT_MARK


def _whole_characters(head: str, after: str) -> str:
    """The head without a character that goes on in what comes after."""
    end = len(head)
    while end > 0 and len(head) - end < 8 and (after in _NOT_FIRST or combining(after)):
        end -= 1
        after = head[end]
    return head[:end]
