"""The rubric contract: the verdict, a score on every dimension with its evidence; the form of a
reply, and the check of one reply against it; and what statistics take of a verdict and its sample.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Raw, Struct
from msgspec import field as stored

from evenhand import jsontext
from evenhand.judgment import Evidence, Judgment, JudgmentReader, Pass, Verdict
from evenhand.kinds.evidence import SearchText, is_substantial_quote
from evenhand.kinds.phrases import compares, guesses_source, join_reasons
from evenhand.kinds.prompt import object_of
from evenhand.kinds.protocol import JudgeWords
from evenhand.kinds.reply import ANYTHING, TEXT, Checked, JudgedText, ReplyCheck, allow, is_blank
from evenhand.kinds.rows import plain_number, raw_json, read_raw_object
from evenhand.kinds.rubric.rubric import Dimension, Rubric, parse_rubric
from evenhand.limits import EVIDENCE_CHARS, EVIDENCE_MAX, NOTES_CHARS
from evenhand.observation import Ends, Scored, ScoredUnit
from evenhand.text import hidden_characters
from evenhand.units import Sample

RATIONALE_CHARS = 160


class DimensionScore(Struct, frozen=True):
    """The score on one dimension, and what it rests on."""

    score: int | float
    evidence: tuple[str, ...]
    """Fragments of the judged output, word for word."""
    rationale: str


class RubricVerdict(Struct, frozen=True, kw_only=True):
    """A score on every dimension of the rubric. The sample's `meta` is kept byte for byte."""

    meta_json: Raw = stored(name="meta")
    scores: dict[str, DimensionScore]
    failure_tags: tuple[str, ...]
    notes: str

    @property
    def meta(self) -> dict[str, Any]:
        """The sample's own, key order and the spelling of numbers as they were."""
        return read_raw_object(self.meta_json)

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
            evidence={"type": "array", "items": TEXT},
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
    none: dict[str, Any] = {"const": []}
    evidence, rationale = none, dict[str, Any](const=no_evidence)
    if quotes:
        items = {"enum": quotes, "x-quote": True}
        evidence = {"type": "array", "items": items, "minItems": 1, "maxItems": 1}
        rationale = {**TEXT, "maxLength": RATIONALE_CHARS}
    scores: dict[str, Any] = {}
    for dimension in rubric.dimensions:
        labels = {jsontext.dump(band.score): band.criteria for band in dimension.bands}
        score = {"enum": dimension.scores, "x-labels": labels}
        scores[dimension.id] = object_of(evidence=evidence, rationale=rationale, score=score)
    return object_of(scores=object_of(**scores), failure_tags=none, notes={"const": ""})


def with_meta(schema: Mapping[str, Any], meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a reply that copies meta first; whether it is copied is checked."""
    return object_of(meta=meta, **schema["properties"])


class Sources:
    """The texts that a judge may quote from: evidence stands in the output, and in nothing else.
    One for each sample, so that its texts are folded once for all quotes of all replies."""

    def __init__(self, sample: Sample, rubric: Rubric) -> None:
        self.output = SearchText(sample.model_output)
        self.question = SearchText(sample.question)
        self.rubric = SearchText(rubric.text)
        self.judged = JudgedText(sample.model_output)


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
    check = _RubricCheck(words, sample, sources or Sources(sample, rubric))
    check.needs_reasons = not is_compact
    reply = check.read_object(text, finish, check.sources.judged)
    if reply is None:
        return check.result(None)
    if exposed or asked_meta or "meta" in reply:
        check.compare_meta(reply.get("meta"), exposed=exposed)
    allowed_tags = tags or tuple(words.tags)
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


class _RubricCheck(ReplyCheck):
    ignores_case = False
    needs_reasons = True

    def __init__(self, words: JudgeWords, sample: Sample, sources: Sources) -> None:
        super().__init__(words)
        self.sample, self.sources = sample, sources
        self.reasons: list[str] = []

    def compare_meta(self, meta: object, *, exposed: bool) -> None:
        """Note a meta that is not the sample's own, which stands in any case; a judge that was
        shown it must copy it."""
        if jsontext.same(meta, self.sample.meta):
            return
        if exposed:
            self.problem("meta_changed", "meta_changed", "meta")
        else:
            self.fix("meta", "meta")

    def score(self, dimension: Dimension, parts: Mapping[str, Any]) -> DimensionScore:
        """Return the score of a dimension with its evidence."""
        path, phrase = f"scores.{dimension.id}", self.words.no_evidence
        quotes, rationale = parts.get("evidence"), parts.get("rationale")
        if rationale is not None:
            self.reasons.append(rationale)
            # Without evidence it must hold the phrase, which is asked for there.
            if self.needs_reasons and quotes != []:
                self.require_reason(rationale, f"{path}.rationale")
        if quotes == []:
            if phrase.casefold() not in (rationale or "").casefold():
                self.problem(
                    "evidence_unsaid", "evidence_missing", f"{path}.evidence", phrase=phrase
                )
            if parts.get("score") == dimension.ends[1]:
                self.flags.append(f"top_without_evidence:{dimension.id}")
        elif quotes is not None and len(quotes) > EVIDENCE_MAX:
            self.problem("evidence_count", "schema", f"{path}.evidence")
        evidence = tuple(
            self._locate(dimension.id, quote, f"{path}.evidence[{index}]")
            for index, quote in enumerate((quotes or [])[:EVIDENCE_MAX])
        )
        return DimensionScore(plain_number(parts.get("score", 0)), evidence, rationale or "")

    def _locate(self, dimension: str, quote: str, path: str) -> str:
        """Return a quote as it stands in the output."""
        output, phrase = self.sample.model_output, self.words.no_evidence
        if not quote.strip():
            self.problem("evidence_blank", "schema", path, phrase=phrase)
            return ""
        span = self.sources.output.locate(quote)
        found = "" if span is None else output[span.start : span.end]
        if span is None or not is_substantial_quote(found, output):
            name = self._find_source(quote) if span is None else "evidence_slight"
            self.problem(name, "evidence_missing", path, quote=quote, phrase=phrase)
            return quote
        if span.match != "exact":
            self.fix("snapped", path)
            self.flags.append("snapped")
        if len(found) > EVIDENCE_CHARS:
            self.flags.append("long_evidence")
        self.evidence.append(Evidence(dimension, span.start, span.end, span.match))
        return found

    def _find_source(self, quote: str) -> str:
        """Return the problem with a quote that the output does not hold."""
        if is_blank(quote):
            return "evidence_slight"
        if self.sources.question.locate(quote):
            return "evidence_from_question"
        return "evidence_from_rubric" if self.sources.rubric.locate(quote) else "evidence_nowhere"

    def sort_tags(self, tags: list[str], allowed: Iterable[str]) -> tuple[str, ...]:
        """Return the tags as a set, in the order of the contract."""
        ordered = [tag for tag in allowed if tag in tags]
        if ordered != tags:
            self.fix("tags", "failure_tags")
        return tuple(ordered)

    def flag_notes(self, notes: str) -> str:
        """Return the notes, flagged where there are any and where they are long."""
        if not is_blank(notes):
            self.flags.append("has_notes")
        if len(notes) > NOTES_CHARS:
            self.flags.append("long_notes")
        self.reasons.append(notes)
        return notes

    def flag_reasons(self) -> None:
        """Flag comparisons, guesses at the source, and hidden characters in what was judged."""
        question, output = self.sample.question, self.sample.model_output
        said = join_reasons(self.reasons)
        if compares(said, question, output):
            self.flags.append("compares")
        if guesses_source(said, question):
            self.flags.append("guesses_source")
        self.flags += [f"hidden_characters:{kind}" for kind in hidden_characters(question, output)]


# Statistics


def measure_sample(sample: Sample) -> ScoredUnit:
    """Return the fields of a sample, the ends of its own rubric, and its length."""
    ends: Ends = {} if sample.rubric is None else _ends_of_text(jsontext.dump(sample.rubric))
    return ScoredUnit(sample.meta, ends, len(sample.model_output))


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
