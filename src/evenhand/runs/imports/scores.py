"""Scores to judgments of samples: the dimensions of one judge on one unit are one judgment.

A score that is missing is left out and counted; a judgment without any score is a failure. Rows
that stand double are repeats.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import Raw

from evenhand import jsontext
from evenhand.data.layouts.tidy import (
    SCORE_COLUMNS,
    Score,
    Shape,
    TidyRow,
    judge_of,
    judged_text,
    meta_of,
    read_score,
    text_of,
    unit_of,
)
from evenhand.judgment import Evidence, Failure, Judgment, Reason, Verdict, write_judgment
from evenhand.kinds.evidence import SearchText
from evenhand.kinds.rubric.verdict import DimensionScore, RubricVerdict, measure_judgment
from evenhand.limits import NOTES_CHARS
from evenhand.observation import Ends, Observation, ScoredUnit, describe_unit, observe_scores
from evenhand.runs.imports.labels import KnownUnit
from evenhand.runs.imports.tally import ImportTally
from evenhand.store.ports import IncomingUnit
from evenhand.units import joined_id

KNOWN = (
    *("model", "prompt_variant", "variant", "system", "run_id", "eval_set_variant", "candidate"),
    *("prompt", "turn"),
)
"""Columns that say what was judged: where one differs within a unit, there are several units."""
TAGS = "ABCDE"
"""The failure tags of the contract."""
_REASONS: tuple[Reason, ...] = ("schema", "out_of_range", "empty")
"""Of several reasons the first one of these is given."""


@dataclass(slots=True)
class _Answer:
    """A scored answer as its first row has it, with the scores by judge."""

    unit: str
    meta: dict[str, Any]
    where: str
    question: str
    answer: str
    scores: dict[int, list[Score]] = field(default_factory=dict[int, list[Score]])


class ScoreRows:
    """The scores of one import."""

    shape: Shape = "scores"

    def __init__(self, kind: str, key: Sequence[str], judge: str, known: Mapping[str, KnownUnit]):
        """Without a key it is found out. `known` are the units of another run that the scores are
        about; else the scores make theirs."""
        self.key, self._kind, self._judge, self._known = tuple(key), kind, judge, known
        self._columns = self.key or ("unit", *KNOWN)
        self.ends: Ends = {}
        """The ends of the scale of each dimension, as far as they are given."""
        self.tally = ImportTally()
        self._tags: set[str] = set()
        self._answers: dict[tuple[str, ...], _Answer] = {}
        """By what stands in the columns that may tell units apart."""

    def add(self, row: TidyRow) -> None:
        """Take in a row; raises DataError."""
        value, where = row.value, row.where
        unit, meta = unit_of(value, where, self._kind), meta_of(value, SCORE_COLUMNS)
        judge = self.tally.judge(judge_of(value, where, self._kind, self._judge))
        place = (unit, *[text_of(meta.get(name)) for name in self._columns[1:]])
        answer = self._answers.get(place)
        if answer is None:
            question, text = judged_text(value.get("question")), judged_text(value.get("answer"))
            answer = self._answers[place] = _Answer(unit, meta, where, question, text)
        elif meta != answer.meta:
            self.tally.compare(meta, answer.meta, self._columns)
        score = read_score(value)
        self.tally.rows += 1
        if score.failed == "schema":
            self.tally.count_unreadable(text_of(value.get("score")))
        if score.dimension is not None:
            self.tally.names.setdefault(score.dimension)
        self._tags.update(score.tags)
        answer.scores.setdefault(judge, []).append(score)

    def finish(self) -> None:
        """Find out what tells units apart, once all rows are there, and join what is one unit."""
        if not self.key:
            self.key = self._find_key()
        at = [self._columns.index(name) for name in self.key]
        joined: dict[tuple[str, ...], _Answer] = {}
        for place, answer in self._answers.items():
            own = joined.setdefault(tuple(place[index] for index in at), answer)
            if own is not answer:
                self.tally.compare(answer.meta, own.meta, self.key)
                for judge, scores in answer.scores.items():
                    own.scores.setdefault(judge, []).extend(scores)
        self._answers = joined
        self.tally.units = len(joined)

    def _find_key(self) -> tuple[str, ...]:
        """Return the unit and the known columns that differ within it; one that goes along with a
        column of the key tells nothing further apart."""
        found = [0]
        for index in range(1, len(self._columns)):
            more = {tuple(place[at] for at in (*found, index)) for place in self._answers}
            if len(more) > len({tuple(place[at] for at in found) for place in self._answers}):
                found.append(index)
        return tuple(self._columns[index] for index in found)

    def units(self, language: str) -> Iterator[IncomingUnit]:
        """Yield every unit with its judgments."""
        for place, answer in self._answers.items():
            ident, meta = answer.unit, answer.meta
            if len(self.key) > 1:
                ident, meta = joined_id(place), {"unit": ident, **meta}
            if known := self._known.get(ident):
                unit, raw = known.unit, known.meta
                ends: Ends = {**self.ends, **known.ends}
            else:
                unit, ends = _unit(ident, answer, meta, language), self.ends
                raw = Raw(jsontext.dumps_lossy(meta).encode())
            output, judgments = SearchText(answer.answer), []
            for judge, scores in answer.scores.items():
                own = [self._make_judgment(raw, output, each) for each in split_repeats(scores)]
                self.tally.count(judge, own)
                for repeat, judgment in enumerate(own):
                    observed = self._observe(judgment, ends)
                    judgments.append((judge, repeat, write_judgment(judgment, (), observed)))
            yield unit._replace(judgments=judgments)

    def _observe(self, judgment: Judgment, ends: Ends) -> list[Observation]:
        scored = measure_judgment(judgment)
        if scored is None:
            return []
        # Where no row has a tag, nobody knows if whoever gave the scores was asked for any.
        tags = sorted(self._tags | set(TAGS)) if self._tags else ()
        return list(observe_scores(scored, ends, tags))

    def _make_judgment(self, meta: Raw, output: SearchText, scores: Sequence[Score]) -> Judgment:
        failed = [score for score in scores if score.failed]
        if len(failed) == len(scores):
            detail = "; ".join(dict.fromkeys(score.detail for score in failed))
            reasons = {score.failed for score in failed}
            return Failure(reason=next(r for r in _REASONS if r in reasons), detail=detail)
        self.tally.missing.update(each.dimension for each in failed if each.dimension is not None)
        notes = "; ".join(f"{score.dimension or 'all'}: {score.detail}" for score in failed)
        flags, evidence = ["scores_missing"] if failed else [], list[Evidence]()
        by_dimension: dict[str, DimensionScore] = {}
        for score in scores:
            if score.score is None or score.dimension is None:
                continue
            found = _find_quotes(score, output)
            self.tally.quotes += len(score.quotes)
            self.tally.quotes_found += len(found)
            if len(found) < len(score.quotes):
                flags.append(f"quote_missing:{score.dimension}")
            evidence += found
            fragments = tuple(output.text[quote.start : quote.end] for quote in found)
            by_dimension[score.dimension] = DimensionScore(score.score, fragments, score.rationale)
        verdict = RubricVerdict(
            meta_json=meta,
            scores=by_dimension,
            failure_tags=tuple(dict.fromkeys(tag for score in scores for tag in score.tags)),
            notes=notes[:NOTES_CHARS],
        )
        return Verdict(value=verdict, flags=tuple(flags), evidence=tuple(evidence))


def _find_quotes(score: Score, output: SearchText) -> list[Evidence]:
    """Return where the quotes of a score stand in what was judged; others are no evidence."""
    spans = filter(None, map(output.locate, score.quotes))
    return [Evidence(score.dimension or "", span.start, span.end, span.match) for span in spans]


def _unit(ident: str, answer: _Answer, meta: Mapping[str, Any], language: str) -> IncomingUnit:
    """Return an answer as a unit of a run, its text as `load_sample` reads it."""
    texts = {"question": answer.question, "model_output": answer.answer}
    body = jsontext.dumps_lossy({"id": ident, **texts, "meta": meta})
    measured = ScoredUnit(meta, {}, len(answer.answer))
    description = describe_unit(measured, language)
    return IncomingUnit(ident, answer.where, body, description=description)


def split_repeats(scores: Iterable[Score]) -> list[list[Score]]:
    """Return the scores of each judgment: by the repeat that they name, and where a dimension
    stands twice in one, by the order in which they come. A score without a dimension is a judgment
    that failed as a whole: it hides in no other."""
    by_repeat: dict[str, list[list[Score]]] = {}
    counts: dict[tuple[str, str], int] = {}
    failed: list[list[Score]] = []
    for score in scores:
        if score.dimension is None:
            failed.append([score])
            continue
        judgments, place = by_repeat.setdefault(score.repeat, []), (score.repeat, score.dimension)
        number = counts[place] = counts.get(place, -1) + 1
        if number == len(judgments):
            judgments.append([])
        judgments[number].append(score)
    return [judgment for judgments in by_repeat.values() for judgment in judgments] + failed
