"""The rubric contract: the verdict, a score on every dimension with its evidence; the form of a
reply, and the check of one reply against it; and what statistics take of a verdict and its sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct

from evenhand import jsontext
from evenhand.judgment import Judgment, JudgmentReader, Pass, Verdict
from evenhand.kinds.phrases import says_nothing
from evenhand.kinds.prompt import object_of
from evenhand.kinds.protocol import JudgeWords
from evenhand.kinds.reply import ANYTHING, TEXT, Checked, allow
from evenhand.kinds.rows import plain_number, raw_json
from evenhand.kinds.rubric.rubric import Dimension, Rubric, parse_rubric
from evenhand.kinds.sample_check import QUOTES, SampleCheck, Sources, form_quotes
from evenhand.kinds.samples import SampleVerdict, measure_sample
from evenhand.observation import Ends, Scored, ScoredUnit
from evenhand.units import Sample


class DimensionScore(Struct, frozen=True):
    """The score on one dimension, and what it rests on."""

    score: int | float
    evidence: tuple[str, ...]
    """Fragments of the judged output, word for word."""
    rationale: str


class RubricVerdict(SampleVerdict, frozen=True, kw_only=True):
    """A score on every dimension of the rubric."""

    scores: dict[str, DimensionScore]
    failure_tags: tuple[str, ...]
    notes: str

    @property
    def output(self) -> dict[str, Any]:
        """The contract's own object: meta, scores, failure_tags, notes."""
        scores = {
            dimension: {
                "score": score.score,
                "evidence": list(score.evidence),
                "rationale": score.rationale,
            }
            for dimension, score in self.scores.items()
        }
        return {
            "meta": self.meta,
            "scores": scores,
            "failure_tags": list(self.failure_tags),
            "notes": self.notes,
        }


READER = JudgmentReader(RubricVerdict, Pass)


# The form of a reply


def reply_shape(rubric: Rubric) -> dict[str, Any]:
    """Return a reply as an example, with the rubric's own ids."""
    score = {"evidence": ["..."], "rationale": "...", "score": 0}
    return {"scores": {d.id: score for d in rubric.dimensions}, "failure_tags": [], "notes": ""}


def reply_schema(rubric: Rubric, tags: Sequence[str]) -> dict[str, Any]:
    """Return the schema of a reply without meta."""
    scores = {
        d.id: object_of(
            evidence=QUOTES,
            rationale=TEXT,
            score={"type": "number", "enum": d.scores},
        )
        for d in rubric.dimensions
    }
    tag_list = {"type": "array", "items": {"type": "string", "enum": list(tags)}}
    return object_of(scores=object_of(**scores), failure_tags=tag_list, notes=TEXT)


def compact_schema(rubric: Rubric, quotes: list[str], no_evidence: str) -> dict[str, Any]:
    """Return the schema for a judge that fills a form: quotes enumerated, nothing that it cannot
    decide."""
    evidence, rationale = form_quotes(quotes, no_evidence)
    scores: dict[str, Any] = {}
    for dimension in rubric.dimensions:
        labels = {jsontext.dump(band.score): band.criteria for band in dimension.bands}
        score = {"enum": dimension.scores, "x-labels": labels}
        scores[dimension.id] = object_of(evidence=evidence, rationale=rationale, score=score)
    return object_of(scores=object_of(**scores), failure_tags={"const": []}, notes={"const": ""})


def with_meta(schema: Mapping[str, Any], meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a reply that copies meta first; whether it is copied is checked."""
    return object_of(meta=meta, **schema["properties"])


def check_reply(
    text: str,
    sample: Sample,
    rubric: Rubric,
    words: JudgeWords,
    finish: str = "stop",
    *,
    exposed: bool = False,
    asked_meta: bool = False,
    is_compact: bool = False,
    sources: Sources | None = None,
    tags: Sequence[str] = (),
) -> Checked[RubricVerdict]:
    """Return the verdict of one reply, or its problems.

    Args:
        exposed: the judge was shown meta, and must copy it.
        asked_meta: the prompt demands a copy of meta.
        is_compact: the judge fills a form, and need not give reasons.
        sources: those of the sample, where they are at hand already.
        tags: the failure tags that a verdict may have; by default those of the words.
    """
    sources = sources or Sources(sample, rubric.text)
    check = _RubricCheck(words, sample, sources, needs_reasons=not is_compact)
    reply = check.read_object(text, finish, check.sources.judged)
    if reply is None:
        return check.result(None)
    if exposed or asked_meta or "meta" in reply:
        check.compare_meta(reply.get("meta"), exposed=exposed)
    allowed_tags = tags or tuple(words.tags)
    match reply.get("failure_tags"):
        case [str(tag)] if tag not in allowed_tags and says_nothing(tag):
            check.fix("tags", "failure_tags")
            reply["failure_tags"] = []
    found = check.match(reply, allow(reply_schema(rubric, allowed_tags), meta=ANYTHING))
    scores = found.get("scores", {})
    verdict = RubricVerdict(
        meta_json=raw_json(sample.meta),
        scores={d.id: check.score(d, scores[d.id]) for d in rubric.dimensions if d.id in scores},
        failure_tags=check.sort_tags(found.get("failure_tags", []), allowed_tags),
        notes=check.flag_notes(found.get("notes", "")),
    )
    check.flag_reasons()
    return check.result(verdict)


class _RubricCheck(SampleCheck):
    def score(self, dimension: Dimension, parts: Mapping[str, Any]) -> DimensionScore:
        """Return the score of a dimension with its evidence."""
        path, quotes = f"scores.{dimension.id}", parts.get("evidence")
        # Without evidence it must hold the phrase, which is asked for there.
        rationale = self.take_reason(
            parts.get("rationale"), f"{path}.rationale", is_needed=quotes != []
        )
        if quotes == []:
            self.require_phrase(rationale, f"{path}.evidence")
            if parts.get("score") == dimension.ends[1]:
                self.flags.append(f"top_without_evidence:{dimension.id}")
        evidence = self.locate_quotes(dimension.id, quotes, f"{path}.evidence")
        return DimensionScore(plain_number(parts.get("score", 0)), evidence, rationale)

    def sort_tags(self, tags: list[str], allowed: Iterable[str]) -> tuple[str, ...]:
        """Return the tags as a set, in the order of the contract."""
        ordered = [tag for tag in allowed if tag in tags]
        if ordered != tags:
            self.fix("tags", "failure_tags")
        return tuple(ordered)


# Statistics


def measure(sample: Sample) -> ScoredUnit:
    """Return the fields of a sample, its length, and the ends and marks of its own rubric."""
    measured = measure_sample(sample, _ends_of_text)
    if sample.rubric is None:
        return measured
    own = parse_rubric(jsontext.dump(sample.rubric))
    return measured._replace(pass_scores=own.pass_scores)


def measure_judgment(judgment: Judgment) -> Scored | None:
    """Return the scores of a verdict; None where there is none."""
    if not isinstance(judgment, Verdict):
        return None
    verdict = judgment.value
    assert isinstance(verdict, RubricVerdict)
    scores = {name: float(score.score) for name, score in verdict.scores.items()}
    return Scored(scores, tags=verdict.failure_tags, notes=verdict.notes)


def ends_of(rubric: Rubric) -> Ends:
    """Return the worst and the best score of each dimension."""
    return {dimension.id: dimension.ends for dimension in rubric.dimensions}


@lru_cache(maxsize=64)
def _ends_of_text(text: str) -> Ends:
    return ends_of(parse_rubric(text))
