"""What a run says, in one sentence or a few, each with its uncertainty."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from evenhand.report.build import Difference, Mean, Report, Standing
from evenhand.report.page import Words, visible

OVERALL = "overall"
VARIANTS_SHOWN = 4
MEANS_SHOWN = 6


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence in pieces, each with the name of what it tells; `tone` is its outcome."""

    tone: str
    parts: Sequence[tuple[str, str]]

    @property
    def text(self) -> str:
        return "".join(part for part, _ in self.parts)


def answers(report: Report, say: Words) -> list[Sentence]:
    """The answer: what is better, what is worse, and what is not decided."""
    return list(_answers(report, say)) or [Sentence("", say.parts("answer.nothing"))]


def _answers(report: Report, say: Words) -> Iterator[Sentence]:
    if report.kind == "pairwise":
        known = [d for d in report.differences if d.dimension == OVERALL and d.mean is not None]
        if known:
            yield from (_duel(one, say) for one in known[:VARIANTS_SHOWN])
        else:
            yield from _lead(report.standings, say)
        return
    noun = "task" if report.kind == "weighted" else "question"
    known = [d for d in report.differences if d.value is not None]
    if not known:
        yield from _means([one for one in report.means if one.value is not None], say)
    by_variant = {v: [d for d in known if d.variant == v] for v in _variants(known)}
    for rows in list(by_variant.values())[:VARIANTS_SHOWN]:
        yield from _compared(rows, noun, say)


def _variants(rows: Sequence[Difference]) -> list[str]:
    return list(dict.fromkeys(one.variant for one in rows))


def _compared(rows: Sequence[Difference], noun: str, say: Words) -> Iterator[Sentence]:
    """One variant: a sentence for each dimension that is decided, one for all the others."""
    if len(rows) == 2:  # a single dimension is the overall figure too
        rows = [one for one in rows if one.dimension != OVERALL]
    ordered = sorted(rows, key=lambda one: (one.outcome, one.dimension != OVERALL))
    for outcome, group in groupby(ordered, key=lambda one: one.outcome):
        given = list(group)
        if outcome == "not enough evidence":
            yield _undecided(given, noun, say)
            continue
        for one in given:
            key = f"{outcome}_overall" if one.dimension == OVERALL else outcome
            parts = say.parts(
                f"answer.{key}",
                variant=visible(one.variant),
                baseline=visible(one.baseline),
                dimension=_dimension(one.dimension, say),
                difference=say.signed(one.value),
                interval=say.interval(one.low, one.high),
                n=say.counted(noun, one.questions),
            )
            yield Sentence(outcome, parts)


def _undecided(rows: Sequence[Difference], noun: str, say: Words) -> Sentence:
    first, is_short = rows[0], len(rows) <= 2
    listed = [
        _with_interval(one, say)
        if is_short or one.dimension == OVERALL
        else _dimension(one.dimension, say)
        for one in rows
    ]
    parts = say.parts(
        "answer.none",
        variant=visible(first.variant),
        baseline=visible(first.baseline),
        dimensions=", ".join(listed),
        n=say.counted(noun, max(one.questions for one in rows)),
    )
    if len(rows) == 1 and first.needed:
        more = say.parts(
            "answer.needed",
            n=say.counted("unit", first.needed),
            dimension=_dimension(first.dimension, say),
        )
        parts = [*parts, (" ", ""), *more]
    return Sentence("undecided", parts)


def _with_interval(one: Difference, say: Words) -> str:
    figures = f"{say.signed(one.value)} {say.interval(one.low, one.high)}".strip()
    return f"{_dimension(one.dimension, say)} ({figures})"


def _dimension(name: str, say: Words) -> str:
    return say.gloss("dimension", name) if name == OVERALL else visible(name)


def _duel(one: Difference, say: Words) -> Sentence:
    key = {"better": "pair_better", "worse": "pair_worse"}.get(one.outcome, "pair_none")
    parts = say.parts(
        f"answer.{key}",
        variant=visible(one.variant),
        baseline=visible(one.baseline),
        rate=say.percent(one.mean),
        interval=_percents(one.mean_low, one.mean_high, say),
        n=say.counted("comparison", one.n),
    )
    return Sentence(one.outcome if key != "pair_none" else "undecided", parts)


def _lead(standings: Sequence[Standing], say: Words) -> Iterator[Sentence]:
    known = [one for one in standings if one.win_rate is not None]
    if len(known) < 2:
        return
    first, second = known[:2]
    parts = say.parts(
        "answer.leads",
        candidate=visible(first.candidate),
        rate=say.percent(first.win_rate),
        interval=_percents(first.low, first.high, say),
        n=say.counted("comparison", first.n),
        other=visible(second.candidate),
        other_rate=say.percent(second.win_rate),
        other_interval=_percents(second.low, second.high, say),
    )
    yield Sentence("", parts)


def _means(means: Sequence[Mean], say: Words) -> Iterator[Sentence]:
    if not means:
        return
    listed = [
        f"{_dimension(one.dimension, say)} {say.number(one.value)} "
        f"{say.interval(one.low, one.high)}".strip()
        for one in means[:MEANS_SHOWN]
    ]
    count = say.counted("sample", max(one.n for one in means))
    yield Sentence("", say.parts("answer.means", n=count, means="; ".join(listed)))


def _percents(low: float | None, high: float | None, say: Words) -> str:
    return "" if low is None or high is None else say.interval(100 * low, 100 * high, 0)
