"""The check of a reply about one output: its quotes stand in the output, its meta is the sample's
own, and what its reasons and notes are flagged for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from evenhand import jsontext
from evenhand.judgment import Evidence
from evenhand.kinds.evidence import SearchText, Span, is_substantial_quote
from evenhand.kinds.phrases import compares, guesses_source, join_reasons, says_nothing
from evenhand.kinds.protocol import JudgeWords
from evenhand.kinds.reply import TEXT, JudgedText, ReplyCheck, is_blank
from evenhand.limits import EVIDENCE_CHARS, EVIDENCE_MAX, NOTES_CHARS
from evenhand.text import hidden_characters
from evenhand.transcript import texts_of
from evenhand.units import Sample

REASON_CHARS = 160
"""The longest reason of a judge that fills a form."""
QUOTES: dict[str, Any] = {"type": "array", "items": TEXT}


def form_quotes(quotes: Sequence[str], nothing: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the schemas of evidence and reason for a judge that fills a form: one of these quotes;
    where there are none, no evidence, and the phrase that says so."""
    if not quotes:
        return {"const": []}, {"const": nothing}
    items = {"enum": quotes, "x-quote": True}
    evidence = {"type": "array", "items": items, "minItems": 1, "maxItems": 1}
    return evidence, {**TEXT, "maxLength": REASON_CHARS}


class _Place(NamedTuple):
    """A text in which quotes are sought: the judged text, or a part of a turn."""

    search: SearchText
    turn: int | None = None
    start: int = 0
    """The offset of the part in its turn."""


def _find(places: Sequence[_Place], quote: str) -> tuple[_Place, Span] | None:
    """Return the first place of a quote: one where it stands exactly, if there is any."""
    exact = [place for place in places if quote in place.search.text]
    found = ((place, place.search.locate(quote)) for place in exact[:1] or places)
    return next(((place, span) for place, span in found if span is not None), None)


class Sources:
    """The texts that a judge may quote from: evidence stands in the output, and in nothing else.
    One for each sample, so that its texts are folded once for all quotes of all replies."""

    def __init__(self, sample: Sample, rubric: str) -> None:
        transcript = sample.transcript
        turns = texts_of(transcript)
        parts = [] if transcript is None else transcript.parts
        self.turns = [_Place(SearchText(part.text), part.number, part.start) for part in parts]
        """All parts of a transcript."""
        self.outputs = [
            place for place, part in zip(self.turns, parts, strict=True) if part.is_judged
        ] or [_Place(SearchText(sample.model_output))]
        self.question = SearchText(sample.question)
        self.rubric = SearchText(rubric)
        self.judged = JudgedText(sample.model_output, *turns)
        self.texts = (sample.question, sample.model_output, *turns)

    def locate(self, quote: str) -> tuple[_Place, Span] | None:
        """Return where a quote stands in what is judged."""
        return _find(self.outputs, quote)

    def find_turn(self, quote: str) -> int | None:
        """Return the number of the turn that holds a quote, judged or not."""
        found = _find(self.turns, quote)
        return found[0].turn if found else None


class SampleCheck(ReplyCheck):
    """The check of one reply about one output."""

    ignores_case = False

    def __init__(
        self, words: JudgeWords, sample: Sample, sources: Sources, *, needs_reasons: bool
    ) -> None:
        """`needs_reasons` unless the judge fills a form."""
        super().__init__(words)
        self.sample, self.sources, self.needs_reasons = sample, sources, needs_reasons
        self.reasons: list[str] = []

    def compare_meta(self, meta: object, *, exposed: bool = False) -> None:
        """Note a meta that is not the sample's own, which stands in any case; a judge that was
        shown it must copy it."""
        if jsontext.same(meta, self.sample.meta):
            return
        if exposed:
            self.problem("meta_changed", "meta_changed", "meta")
        else:
            self.fix("meta", "meta")

    def take_reason(self, reason: str | None, path: str, *, is_needed: bool = True) -> str:
        """Return a reason, which is looked at with all others, and must not be blank."""
        if reason is None:
            return ""
        self.reasons.append(reason)
        if self.needs_reasons and is_needed:
            self.require_reason(reason, path)
        return reason

    def require_phrase(self, reason: str, path: str) -> None:
        """Require the phrase that stands where there is nothing to quote."""
        phrase = self.words.no_evidence
        if phrase.casefold() not in reason.casefold():
            self.problem("evidence_unsaid", "evidence_missing", path, phrase=phrase)

    def locate_quotes(self, name: str, quotes: Sequence[str] | None, path: str) -> tuple[str, ...]:
        """Return the quotes for a dimension or criterion as they stand in the output."""
        quotes = quotes or []
        if len(quotes) > EVIDENCE_MAX:
            self.problem("evidence_count", "schema", path)
        return tuple(
            self._locate(name, quote, f"{path}[{index}]")
            for index, quote in enumerate(quotes[:EVIDENCE_MAX])
        )

    def _locate(self, name: str, quote: str, path: str) -> str:
        phrase = self.words.no_evidence
        if not quote.strip():
            self.problem("evidence_blank", "schema", path, phrase=phrase)
            return ""
        place, span = self.sources.locate(quote) or (None, None)
        if place is None or span is None:
            problem, turn = self._find_source(quote)
            self.problem(problem, "evidence_missing", path, quote=quote, phrase=phrase, turn=turn)
            return quote
        output = place.search.text
        found = output[span.start : span.end]
        if not is_substantial_quote(found, output):
            self.problem("evidence_slight", "evidence_missing", path, quote=quote, phrase=phrase)
            return quote
        if span.match != "exact":
            self.fix("snapped", path)
            self.flags.append("snapped")
        if len(found) > EVIDENCE_CHARS:
            self.flags.append("long_evidence")
        start, end = place.start + span.start, place.start + span.end
        self.evidence.append(Evidence(name, start, end, span.match, place.turn))
        return found

    def _find_source(self, quote: str) -> tuple[str, int | None]:
        """Return the problem with a quote that the output does not hold, and the number of the
        turn that holds it."""
        if is_blank(quote):
            return "evidence_slight", None
        if turn := self.sources.find_turn(quote):
            return "evidence_from_turn", turn
        if self.sources.question.locate(quote):
            return "evidence_from_question", None
        is_rubric = self.sources.rubric.locate(quote)
        return "evidence_from_rubric" if is_rubric else "evidence_nowhere", None

    def flag_notes(self, notes: str) -> str:
        """Return the notes, flagged where there are any and where they are long; empty where they
        say that there is nothing to note."""
        if says_nothing(notes):
            if notes.strip():
                self.fix("unwrapped", "notes")
            return ""
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
        hidden = hidden_characters(*self.sources.texts)
        self.flags += [f"hidden_characters:{kind}" for kind in hidden]
