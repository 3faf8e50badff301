"""The rubric contract applied to one reply: an output that keeps it, or the list of breaches.

Deterministic and total: the same text gives the same result, and nothing here raises on a reply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from typing import Any, cast

from msgspec import Struct

from evenhand import jsontext
from evenhand.judgment import Evidence
from evenhand.kinds.check import Checked, Inspection, is_blank
from evenhand.kinds.evidence import SearchText, Span, is_substantial_quote
from evenhand.kinds.protocol import Words
from evenhand.kinds.reply import JudgedText
from evenhand.kinds.rubric.rubric import Dimension, Rubric
from evenhand.kinds.rubric.verdict import DimensionScore, RubricVerdict
from evenhand.kinds.shared.asked_form import AskedForm
from evenhand.kinds.shared.raw import plain_number, raw_json
from evenhand.kinds.shared.remarks import compares, guesses_source, one_text
from evenhand.limits import EVIDENCE_CHARS, EVIDENCE_MAX, NOTES_CHARS
from evenhand.units import Sample

_ASKED = ("scores", "failure_tags", "notes")
_INNER = ("evidence", "rationale", "score")
_NAMES = (*_ASKED, *_INNER)


class AskedScore(Struct, forbid_unknown_fields=True):
    """What the judge is asked to say about one dimension."""

    evidence: tuple[str, ...]
    rationale: str
    score: int | float


class AskedReply(Struct, forbid_unknown_fields=True):
    """What the judge is asked to say."""

    scores: dict[str, AskedScore]
    failure_tags: list[str]
    notes: str


def _strings(reply: AskedReply) -> int:
    """How many strings stand in such a reply, its keys among them: three names and the notes, and
    for each dimension its own name, three more and the rationale."""
    quotes = sum([len(score.evidence) for score in reply.scores.values()])
    return 4 + 5 * len(reply.scores) + quotes + len(reply.failure_tags)


ASKED_FORM = AskedForm(AskedReply, _strings)


class Sources:
    """What a judge may quote from: evidence stands in the output, and in nothing else. One for
    each sample, so that its texts are folded once for all quotes of all replies; most replies quote
    to the letter and need none of them."""

    def __init__(self, sample: Sample, rubric: Rubric) -> None:
        self._sample, self._rubric = sample, rubric

    @cached_property
    def output(self) -> SearchText:
        return SearchText(self._sample.model_output)

    @cached_property
    def question(self) -> SearchText:
        return SearchText(self._sample.question)

    @cached_property
    def rubric(self) -> SearchText:
        return SearchText(self._rubric.text)


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
    """Hold one reply to the contract. `asked_meta` says that the prompt demands a copy of meta,
    `exposed` that the judge was shown it. A judge that fills a compact form need not give
    reasons. `sources` and `tags` follow from the sample and the words, where they are not at hand
    already."""
    sources = sources or Sources(sample, rubric)
    allowed = tuple(words.tags) if tags is None else tags
    begin = partial(
        _Check, sample, rubric, words, exposed, asked_meta, is_compact, sources, allowed
    )
    judged, check = JudgedText(sample.model_output), begin()
    is_whole = check.is_whole(finish)
    reply = ASKED_FORM.read(text) if is_whole and not (exposed or asked_meta) else None
    if reply is not None:
        verdict = check.plain(reply, judged)
        if verdict is not None:
            return check.done(verdict)
        check = begin()
    value = check.object_in(text, judged) if is_whole else None
    return check.done(None if value is None else check.reply(value))


class _Check(Inspection):
    def __init__(
        self,
        sample: Sample,
        rubric: Rubric,
        words: Words,
        exposed: bool,
        asked_meta: bool,
        is_compact: bool,
        sources: Sources,
        allowed_tags: Sequence[str],
    ) -> None:
        super().__init__(words)
        self.sample, self.rubric = sample, rubric
        self.exposed, self.asked_meta = exposed, asked_meta
        self.is_compact, self.sources, self.allowed_tags = is_compact, sources, allowed_tags
        self.reasons: list[str] = []

    def plain(self, reply: AskedReply, judged: JudgedText) -> RubricVerdict | None:
        """The verdict of a reply in the form asked for about which there is nothing to be told and
        nothing to be mended; None for any other, and for one that may have been copied."""
        scores: dict[str, DimensionScore] = {}
        for dimension in self.rubric.dimensions:
            score = self._plain_score(dimension, reply.scores.get(dimension.id))
            if score is None:
                return None
            scores[dimension.id] = score
        tags, rationales = reply.failure_tags, self.reasons
        if len(reply.scores) > len(scores) or tags != self._ordered(tags):
            return None
        if judged.may_give([*rationales, *tags, reply.notes], chain(_NAMES, scores)):
            return None
        verdict = RubricVerdict(
            meta_json=raw_json(self.sample.meta),
            scores=scores,
            failure_tags=tuple(tags),
            notes=self._notes(reply.notes),
        )
        self._remarks()
        return verdict

    def _plain_score(self, dimension: Dimension, part: AskedScore | None) -> DimensionScore | None:
        if part is None or not 0 < len(part.evidence) <= EVIDENCE_MAX:
            return None
        score = _banded(dimension, part.score)
        if score is None or (is_blank(part.rationale) and not self.is_compact):
            return None
        for quote in part.evidence:
            if not self._exact(dimension.id, quote):
                return None
        self.reasons.append(part.rationale)
        return DimensionScore(score, part.evidence, part.rationale)

    def _ordered(self, tags: list[Any]) -> list[str]:
        """The tags that are allowed, each once, in the order of the contract."""
        return [tag for tag in self.allowed_tags if tag in tags]

    def reply(self, value: dict[str, Any]) -> RubricVerdict:
        """The verdict that the reply's object gives, every part of it there."""
        self.keys(value, _ASKED, "", allowed=("meta",))
        self._meta(value)
        verdict = RubricVerdict(
            meta_json=raw_json(self.sample.meta),
            scores=self._scores(value.get("scores", {})),
            failure_tags=self._tags(value.get("failure_tags", [])),
            notes=self._notes(value.get("notes", "")),
        )
        self._remarks()
        return verdict

    def _meta(self, value: Mapping[str, Any]) -> None:
        """Whatever came back, the sample's own meta stands; a judge that was shown it must copy
        it."""
        is_due = self.exposed or self.asked_meta or "meta" in value
        if not is_due or jsontext.same(value.get("meta"), self.sample.meta):
            return
        if self.exposed:
            self.breach("meta_changed", "meta_changed", "meta")
        else:
            self.fix("meta", "meta")

    def _scores(self, value: object) -> dict[str, DimensionScore]:
        scores_given = self.object_at(value, "scores")
        if scores_given is None:
            return {}
        dimensions = self.rubric.dimensions
        self.keys(scores_given, [d.id for d in dimensions], "scores.")
        scores: dict[str, DimensionScore] = {}
        for dimension in dimensions:
            if dimension.id in scores_given:
                score = self._score(dimension, scores_given[dimension.id])
                if score is not None:
                    scores[dimension.id] = score
        return scores

    def _score(self, dimension: Dimension, value: object) -> DimensionScore | None:
        path = f"scores.{dimension.id}"
        parts = self.object_at(value, path)
        if parts is None:
            return None
        self.keys(parts, _INNER, f"{path}.")
        rationale, has_no_quotes = parts.get("rationale", ""), parts.get("evidence") == []
        if self.typed(rationale, str, "text", f"{path}.rationale") and "rationale" in parts:
            self._rationale(rationale, f"{path}.rationale", has_no_quotes)
        quotes: tuple[str, ...] = ()
        score = None
        if "evidence" in parts:
            quotes = self._quotes(dimension.id, parts["evidence"], rationale, f"{path}.evidence")
        if "score" in parts:
            score = self._band(dimension, parts["score"], f"{path}.score")
        if has_no_quotes and score == max(dimension.scores):
            self.flags.append(f"top_without_evidence:{dimension.id}")
        return None if score is None else DimensionScore(score, quotes, rationale)

    def _rationale(self, text: str, path: str, has_no_quotes: bool) -> None:
        # Without evidence it must hold the phrase, which is told where the evidence is missing.
        if not self.is_compact and not has_no_quotes:
            self.reason(text, path)
        self.reasons.append(text)

    def _remarks(self) -> None:
        """Flag what a judge of one sample has no business to say."""
        text = one_text(self.reasons)
        self.language_of(text)
        if compares(text, self.sample.question, self.sample.model_output):
            self.flags.append("compares")
        if guesses_source(text, self.sample.question):
            self.flags.append("guesses_source")

    def _band(self, dimension: Dimension, score: object, path: str) -> int | float | None:
        if isinstance(score, bool) or not isinstance(score, int | float):
            self.breach("score_not_number", "schema", path, value=jsontext.dump(score))
            return None
        banded = _banded(dimension, score)
        if banded is not None:
            return banded
        allowed = ", ".join(map(jsontext.dump, dimension.scores))
        self.breach(
            "score_off_bands", "out_of_range", path, value=jsontext.dump(score), allowed=allowed
        )
        return None

    def _quotes(
        self, dimension: str, value: object, rationale: object, path: str
    ) -> tuple[str, ...]:
        if not self.typed(value, list, "list", path):
            return ()
        quotes_given = cast("list[Any]", value)
        if not quotes_given:
            self._admitted(rationale, path)
        if len(quotes_given) > EVIDENCE_MAX:
            self.breach("evidence_count", "schema", path)
        quotes = [
            self._exact(dimension, quote) or self._quote(dimension, quote, f"{path}[{place}]")
            for place, quote in enumerate(quotes_given[:EVIDENCE_MAX])
        ]
        return tuple(quotes)

    def _exact(self, dimension: str, quote: object) -> str:
        """A quote that stands in the output letter for letter and can show something, as nearly all
        do; nothing for any other, of which more is to be said."""
        if not isinstance(quote, str):
            return ""
        output = self.sample.model_output
        start = output.find(quote)
        if start < 0 or not is_substantial_quote(quote, output):
            return ""
        if len(quote) > EVIDENCE_CHARS:
            self.flags.append("long_evidence")
        self.evidence.append(Evidence(dimension, start, start + len(quote), "exact"))
        return quote

    def _admitted(self, rationale: object, path: str) -> None:
        """Without evidence the rationale must say so."""
        phrase = self.words.no_evidence
        if phrase.casefold() not in str(rationale).casefold():
            self.breach("evidence_unsaid", "evidence_missing", path, phrase=phrase)

    def _quote(self, dimension: str, quote: object, path: str) -> str:
        if not self.typed(quote, str, "text", path):
            return ""
        sought = cast("str", quote)
        if not sought.strip():
            self.breach("evidence_blank", "schema", path, phrase=self.words.no_evidence)
            return ""
        place = self.sources.output.locate(sought)
        kind = self._refusal(sought, place)
        if place is None or kind:
            phrase = self.words.no_evidence
            self.breach(kind, "evidence_missing", path, quote=sought, phrase=phrase)
            return sought
        if place.match != "exact":
            self.fix("snapped", path)
            self.flags.append("snapped")
        if place.end - place.start > EVIDENCE_CHARS:
            self.flags.append("long_evidence")
        self.evidence.append(Evidence(dimension, place.start, place.end, place.match))
        return self._snapped(place)

    def _snapped(self, place: Span) -> str:
        return self.sample.model_output[place.start : place.end]

    def _refusal(self, quote: str, place: Span | None) -> str:
        """Why a quote is no evidence; nothing where it is."""
        if place is None:
            return "evidence_slight" if is_blank(quote) else self._nowhere(quote)
        is_evidence = is_substantial_quote(self._snapped(place), self.sample.model_output)
        return "" if is_evidence else "evidence_slight"

    def _nowhere(self, quote: str) -> str:
        if self.sources.question.locate(quote):
            return "evidence_from_question"
        return "evidence_from_rubric" if self.sources.rubric.locate(quote) else "evidence_nowhere"

    def _tags(self, value: object) -> tuple[str, ...]:
        if not self.typed(value, list, "list", "failure_tags"):
            return ()
        tags = cast("list[Any]", value)
        unknown = [tag for tag in tags if tag not in self.allowed_tags]
        for tag in unknown:
            written, allowed = jsontext.as_text(tag), ", ".join(self.allowed_tags)
            self.breach("tag_unknown", "schema", "failure_tags", value=written, allowed=allowed)
        ordered = self._ordered(tags)
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


def _banded(dimension: Dimension, score: float) -> int | float | None:
    """The score of a band as a plain number; None where no band has this one."""
    for band in dimension.bands:
        if band.score == score:
            return plain_number(band.score)
    return None
