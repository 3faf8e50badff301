"""The rubric contract applied to one reply: an output that keeps it, or the list of problems.

Deterministic and total: the same text gives the same result, and nothing here raises on a reply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from evenhand import jsontext
from evenhand.judgment import Evidence
from evenhand.kinds.check import Checked, Inspection, is_blank
from evenhand.kinds.evidence import SearchText, is_substantial_quote
from evenhand.kinds.phrases import compares, guesses_source, join_reasons
from evenhand.kinds.protocol import Words
from evenhand.kinds.reply import JudgedText
from evenhand.kinds.rows import plain_number, raw_json
from evenhand.kinds.rubric.rubric import Dimension, Rubric
from evenhand.kinds.rubric.verdict import DimensionScore, RubricVerdict
from evenhand.limits import EVIDENCE_CHARS, EVIDENCE_MAX, NOTES_CHARS
from evenhand.units import Sample

_ASKED = ("scores", "failure_tags", "notes")
_INNER = ("evidence", "rationale", "score")


class Sources:
    """What a judge may quote from: evidence stands in the output, and in nothing else. One for
    each sample, so that its texts are folded once for all quotes of all replies."""

    def __init__(self, sample: Sample, rubric: Rubric) -> None:
        self.output = SearchText(sample.model_output)
        self.question = SearchText(sample.question)
        self.rubric = SearchText(rubric.text)
        self.judged = JudgedText(sample.model_output)


def check_reply(
    text: str | bytes,
    sample: Sample,
    rubric: Rubric,
    words: Words,
    finish: str = "stop",
    *,
    exposed: bool = False,
    asked_meta: bool = False,
    is_compact: bool = False,
    sources: Sources | None = None,
    tags: Sequence[str] | None = None,
) -> Checked[RubricVerdict]:
    """Return what the contract says of one reply.

    Args:
        exposed: the judge was shown meta, and must copy it.
        asked_meta: the prompt demands a copy of meta.
        is_compact: the judge fills a form, and need not give reasons.
        sources: those of the sample, where they are at hand already.
        tags: the failure tags that a verdict may have; by default those of the words.
    """
    check = _Check(words, sample, rubric, sources or Sources(sample, rubric))
    check.tags = tuple(words.tags) if tags is None else tags
    check.needs_reasons = not is_compact
    value = check.object_in(text, check.sources.judged) if check.is_whole(finish) else None
    if value is None:
        return check.done(None)
    check.keys(value, _ASKED, "", allowed=("meta",))
    check.meta(value, exposed=exposed, is_due=exposed or asked_meta or "meta" in value)
    return check.done(check.verdict(value))


class _Check(Inspection):
    tags: Sequence[str] = ()
    needs_reasons = True

    def __init__(self, words: Words, sample: Sample, rubric: Rubric, sources: Sources) -> None:
        super().__init__(words)
        self.sample, self.rubric, self.sources = sample, rubric, sources
        self.reasons: list[str] = []

    def meta(self, value: Mapping[str, Any], *, exposed: bool, is_due: bool) -> None:
        """Whatever came back, the sample's own meta stands; a judge that was shown it must copy
        it."""
        if not is_due or jsontext.same(value.get("meta"), self.sample.meta):
            return
        if exposed:
            self.breach("meta_changed", "meta_changed", "meta")
        else:
            self.fix("meta", "meta")

    def verdict(self, value: dict[str, Any]) -> RubricVerdict:
        """Return the verdict that the reply's object gives."""
        verdict = RubricVerdict(
            meta_json=raw_json(self.sample.meta),
            scores=self._scores(value.get("scores", {})),
            failure_tags=self._tags(value.get("failure_tags", [])),
            notes=self._notes(value.get("notes", "")),
        )
        said = join_reasons(self.reasons)
        if compares(said, self.sample.question, self.sample.model_output):
            self.flags.append("compares")
        if guesses_source(said, self.sample.question):
            self.flags.append("guesses_source")
        return verdict

    def _scores(self, value: object) -> dict[str, DimensionScore]:
        scores = self.object_at(value, "scores")
        if scores is None:
            return {}
        dimensions = self.rubric.dimensions
        self.keys(scores, [dimension.id for dimension in dimensions], "scores.")
        judged = [dimension for dimension in dimensions if dimension.id in scores]
        return {dimension.id: self._score(dimension, scores[dimension.id]) for dimension in judged}

    def _score(self, dimension: Dimension, value: object) -> DimensionScore:
        path = f"scores.{dimension.id}"
        parts = self.object_at(value, path)
        if parts is None:
            return DimensionScore(0, (), "")
        self.keys(parts, _INNER, f"{path}.")
        quotes, rationale = parts.get("evidence"), parts.get("rationale", "")
        if self.typed(rationale, str, "text", f"{path}.rationale"):
            self.reasons.append(rationale)
            # Without evidence it must hold the phrase, which is asked for there.
            if "rationale" in parts and self.needs_reasons and quotes != []:
                self.reason(rationale, f"{path}.rationale")
        evidence: tuple[str, ...] = ()
        if "evidence" in parts:
            evidence = self._quotes(dimension.id, quotes, str(rationale), f"{path}.evidence")
        score = self._band(dimension, parts["score"], f"{path}.score") if "score" in parts else 0
        if quotes == [] and score == max(dimension.scores):
            self.flags.append(f"top_without_evidence:{dimension.id}")
        return DimensionScore(score, evidence, rationale)

    def _band(self, dimension: Dimension, score: object, path: str) -> int | float:
        """Return the score, which must be that of a band."""
        written = jsontext.dump(score)
        if isinstance(score, bool) or not isinstance(score, int | float):
            self.breach("score_not_number", "schema", path, value=written)
            return 0
        for banded in dimension.scores:
            if banded == score:
                return plain_number(banded)
        allowed = ", ".join(map(jsontext.dump, dimension.scores))
        self.breach("score_off_bands", "out_of_range", path, value=written, allowed=allowed)
        return 0

    def _quotes(self, dimension: str, value: object, rationale: str, path: str) -> tuple[str, ...]:
        """Return the evidence, each fragment as it stands in the output. Without any the rationale
        must say so."""
        if not self.typed(value, list, "list", path):
            return ()
        quotes, phrase = cast("list[object]", value), self.words.no_evidence
        if not quotes and phrase.casefold() not in rationale.casefold():
            self.breach("evidence_unsaid", "evidence_missing", path, phrase=phrase)
        if len(quotes) > EVIDENCE_MAX:
            self.breach("evidence_count", "schema", path)
        return tuple(
            self._quote(dimension, quote, f"{path}[{index}]")
            for index, quote in enumerate(quotes[:EVIDENCE_MAX])
        )

    def _quote(self, dimension: str, quote: object, path: str) -> str:
        if not self.typed(quote, str, "text", path):
            return ""
        sought, phrase = cast("str", quote), self.words.no_evidence
        if not sought.strip():
            self.breach("evidence_blank", "schema", path, phrase=phrase)
            return ""
        output, place = self.sample.model_output, self.sources.output.locate(sought)
        found = "" if place is None else output[place.start : place.end]
        if place is None or not is_substantial_quote(found, output):
            kind = self._refuse(sought) if place is None else "evidence_slight"
            self.breach(kind, "evidence_missing", path, quote=sought, phrase=phrase)
            return sought
        if place.match != "exact":
            self.fix("snapped", path)
            self.flags.append("snapped")
        if len(found) > EVIDENCE_CHARS:
            self.flags.append("long_evidence")
        self.evidence.append(Evidence(dimension, place.start, place.end, place.match))
        return found

    def _refuse(self, quote: str) -> str:
        """Return why a quote that the output does not hold is no evidence."""
        if is_blank(quote):
            return "evidence_slight"
        if self.sources.question.locate(quote):
            return "evidence_from_question"
        return "evidence_from_rubric" if self.sources.rubric.locate(quote) else "evidence_nowhere"

    def _tags(self, value: object) -> tuple[str, ...]:
        if not self.typed(value, list, "list", "failure_tags"):
            return ()
        tags = cast("list[object]", value)
        unknown = [tag for tag in tags if tag not in self.tags]
        for tag in unknown:
            written, allowed = jsontext.as_text(tag), ", ".join(self.tags)
            self.breach("tag_unknown", "schema", "failure_tags", value=written, allowed=allowed)
        ordered = [tag for tag in self.tags if tag in tags]
        if not unknown and ordered != tags:
            self.fix("tags", "failure_tags")
        return tuple(ordered)

    def _notes(self, value: object) -> str:
        if not self.typed(value, str, "text", "notes"):
            return ""
        notes = cast("str", value)
        if not is_blank(notes):
            self.flags.append("has_notes")
        if len(notes) > NOTES_CHARS:
            self.flags.append("long_notes")
        self.reasons.append(notes)
        return notes
