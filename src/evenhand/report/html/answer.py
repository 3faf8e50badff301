"""What a run says, in one sentence or a few, each with its uncertainty."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from evenhand.report.html.build import Difference, Mean, Report, Standing
from evenhand.report.html.page import Words, p_value, visible
from evenhand.stats.comparison.comparison import OVERALL
from evenhand.stats.decision.decision import Decision

VARIANTS_SHOWN = 4
MEANS_SHOWN = 6
NAMES_SHOWN = 6
UNDECIDED = "not enough evidence"


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
    return list(_answers(report, say)) or [Sentence("", _nothing(report, say))]


def _nothing(report: Report, say: Words) -> list[tuple[str, str]]:
    """Why there is no answer: nothing is judged yet, or all of it failed."""
    coverage = report.coverage
    failed = sum(coverage.failures.values())
    if failed and not coverage.verdicts and not coverage.pending:
        return say.parts("answer.all_failed", n=say.integer(failed))
    return say.parts("answer.nothing" if not coverage.verdicts else "answer.no_figure")


def _answers(report: Report, say: Words) -> Iterator[Sentence]:
    decided = {d.variant: d for d in report.differences if d.sequential}
    if report.is_pairs:
        differences = [
            d for d in report.differences if d.dimension == OVERALL and d.mean is not None
        ]
        duels = [[decided.get(difference.variant, difference)] for difference in differences]
        if duels:
            yield from _leading(duels, lambda rows: [_duel(rows[0], report, say)], "candidate", say)
        else:
            yield from _lead(report, say)
        return
    # What the run's own test decides is the answer; other tests of the same variant are no second.
    differences = [d for d in report.differences if d.value is not None]
    differences = [d for d in differences if decided.get(d.variant, d) is d]
    if not differences:
        yield from _means([mean for mean in report.means if mean.value is not None], report, say)
    by_variant = [[d for d in differences if d.variant == v] for v in _variants(differences)]
    yield from _leading(by_variant, lambda rows: _compared(rows, report, say), "variant", say)


def _variants(rows: Sequence[Difference | Mean]) -> list[str]:
    return list(dict.fromkeys(row.variant for row in rows))


def _leading(
    variants: Sequence[Sequence[Difference]],
    tell: Callable[[Sequence[Difference]], Iterable[Sentence]],
    noun: str,
    say: Words,
) -> Iterator[Sentence]:
    """A few variants, those first of which something is decided; of the others how many."""
    ordered = sorted(variants, key=lambda rows: not _is_decided(rows))
    for rows in ordered[:VARIANTS_SHOWN]:
        yield from tell(rows)
    if rest := ordered[VARIANTS_SHOWN:]:
        decided = sum(map(_is_decided, rest))
        key = "more_decided" if decided else "more_undecided"
        count = say.counted(noun, len(rest))
        yield Sentence("", say.parts(f"answer.{key}", n=count, decided=say.integer(decided)))


def _is_decided(rows: Sequence[Difference]) -> bool:
    return any(row.outcome != UNDECIDED for row in rows)


def _compared(rows: Sequence[Difference], report: Report, say: Words) -> Iterator[Sentence]:
    """One variant: a sentence for each dimension that is decided, one for all the others; what the
    run's own test says, where it has one."""
    if rows[0].sequential:
        yield _stopped(rows[0].sequential, report, say)
        return
    noun = report.kind.question_noun
    if len(rows) == 2:  # a single dimension is the overall figure too
        rows = [row for row in rows if row.dimension != OVERALL]
    ordered = sorted(rows, key=lambda row: (_key(row, report), row.dimension != OVERALL))
    for key, group in groupby(ordered, key=lambda row: _key(row, report)):
        differences = list(group)
        if key == "none":
            yield _undecided(differences, report, say)
            continue
        for row in differences:
            is_overall = row.dimension == OVERALL
            parts = say.parts(
                f"answer.{key}_overall" if is_overall and key != "held" else f"answer.{key}",
                variant=visible(row.variant),
                baseline=visible(row.baseline),
                dimension=_dimension(row.dimension, say),
                difference=say.signed(row.value),
                interval=_interval(row, report, say),
                n=say.counted(noun, row.questions),
                p=p_value(say, row.p_adjusted),
            )
            if key == "held":
                yield Sentence("undecided", [*parts, *_needed(row, say)])
            else:
                yield Sentence(key, parts)


def _key(difference: Difference, report: Report) -> str:
    """How a difference is told: decided, open, or open by the correction alone."""
    if difference.outcome != UNDECIDED:
        return difference.outcome
    low, high, middle = difference.low, difference.high, 0.0
    if report.is_pairs:
        low, high, middle = difference.mean_low, difference.mean_high, 0.5
    is_clear = low is not None and high is not None and not low <= middle <= high
    return "held" if is_clear and difference.p_adjusted is not None else "none"


def _interval(figure: Difference | Mean, report: Report, say: Words) -> str:
    """The interval; of a total, what it is out of."""
    interval = say.interval(figure.low, figure.high)
    is_total = report.full_marks is not None and figure.dimension == OVERALL
    return say("answer.of_hundred", interval=interval).strip() if is_total else interval


def _undecided(rows: Sequence[Difference], report: Report, say: Words) -> Sentence:
    first, is_short = rows[0], len(rows) <= 2
    listed = [
        _with_interval(row, report, say)
        if is_short or row.dimension == OVERALL
        else _dimension(row.dimension, say)
        for row in rows
    ]
    parts = say.parts(
        "answer.none",
        variant=visible(first.variant),
        baseline=visible(first.baseline),
        dimensions=", ".join(listed),
        n=say.counted(report.kind.question_noun, max(row.questions for row in rows)),
    )
    return Sentence("undecided", [*parts, *(_needed(first, say) if len(rows) == 1 else ())])


def _needed(difference: Difference, say: Words) -> list[tuple[str, str]]:
    """How many more units would decide, where that can be said."""
    if not difference.needed:
        return []
    name = _dimension(difference.dimension, say)
    count = say.counted("unit", difference.needed)
    return [(" ", ""), *say.parts("answer.needed", n=count, dimension=name)]


def _with_interval(difference: Difference, report: Report, say: Words) -> str:
    figures = f"{say.signed(difference.value)} {_interval(difference, report, say)}".strip()
    return f"{_dimension(difference.dimension, say)} ({figures})"


def _dimension(name: str, say: Words) -> str:
    return say.gloss("dimension", name) if name == OVERALL else visible(name)


def _stopped(decision: Decision, report: Report, say: Words) -> Sentence:
    """What the sequential test of a run has decided."""
    is_rate = decision.measure == "win_rate"
    ends = say.percents if is_rate else say.interval
    interval = ends(decision.low, decision.high)
    figure = say("chart.win_rate" if is_rate else "chart.difference")
    if not (is_rate and decision.dimension == OVERALL):
        figure = f"{figure} ({_dimension(decision.dimension, say)})"
    if report.full_marks is not None and decision.dimension == OVERALL:
        interval = say("answer.of_hundred", interval=interval)
    parts = say.parts(
        f"answer.stopped_{decision.outcome if decision.outcome != UNDECIDED else 'none'}",
        variant=visible(decision.variant),
        baseline=visible(decision.baseline),
        figure=figure,
        interval=interval,
        level=say.percent(1 - decision.alpha),
        n=say.integer(decision.questions),
        of=say.counted(report.kind.question_noun, decision.of_questions),
    )
    tone = decision.outcome if decision.outcome != UNDECIDED else "undecided"
    return Sentence(tone, parts)


def _duel(difference: Difference, report: Report, say: Words) -> Sentence:
    if difference.sequential:
        return _stopped(difference.sequential, report, say)
    key = _key(difference, report)
    parts = say.parts(
        f"answer.pair_{key}",
        variant=visible(difference.variant),
        baseline=visible(difference.baseline),
        rate=say.percent(difference.mean),
        interval=say.percents(difference.mean_low, difference.mean_high),
        n=say.counted("comparison", difference.n),
        p=p_value(say, difference.p_adjusted),
    )
    return Sentence(difference.outcome if difference.outcome != UNDECIDED else "undecided", parts)


def _lead(report: Report, say: Words) -> Iterator[Sentence]:
    """Who leads, where only one may be the first; otherwise who all may be, where enough topics say
    so."""
    standings = [standing for standing in report.standings if standing.win_rate is not None]
    comparisons = sum(standing.n for standing in standings) // 2
    if len(standings) < 2:
        return
    if len({standing.set for standing in standings}) > 1:
        yield _unranked("never_met", standings, comparisons, say)
        return
    if not report.resampled:
        yield _unranked("too_few", standings, comparisons, say)
        return
    top = [
        standing for standing in standings if standing.rank_low is None or standing.rank_low <= 1
    ]
    if len(top) != 1 or top[0].rank_high != 1:
        yield _unranked("level_with", top or standings, comparisons, say)
        return
    first, second = top[0], next(standing for standing in standings if standing is not top[0])
    parts = say.parts(
        "answer.leads",
        candidate=visible(first.candidate),
        rate=say.percent(first.win_rate),
        interval=say.percents(first.low, first.high),
        n=say.counted("comparison", first.n),
        other=visible(second.candidate),
        other_rate=say.percent(second.win_rate),
        other_interval=say.percents(second.low, second.high),
    )
    yield Sentence("", parts)


def _unranked(key: str, top: Sequence[Standing], comparisons: int, say: Words) -> Sentence:
    """Candidates each of which may be the first, with their win rates."""
    listed = [
        f"{visible(standing.candidate)} {say.percent(standing.win_rate)} "
        f"{say.percents(standing.low, standing.high)}".strip()
        for standing in top[:NAMES_SHOWN]
    ]
    if len(top) > NAMES_SHOWN:
        listed.append(say("page.and_more", n=len(top) - NAMES_SHOWN))
    count = say.counted("comparison", comparisons)
    return Sentence("undecided", say.parts(f"answer.{key}", candidates="; ".join(listed), n=count))


def _means(means: Sequence[Mean], report: Report, say: Words) -> Iterator[Sentence]:
    """The means of each variant."""
    variants = _variants(means)
    for variant in variants[:VARIANTS_SHOWN]:
        variant_means = [mean for mean in means if mean.variant == variant]
        listed = [
            f"{_dimension(mean.dimension, say)} {say.number(mean.value)} "
            f"{_interval(mean, report, say)}".strip()
            for mean in variant_means[:MEANS_SHOWN]
        ]
        if len(variant_means) > MEANS_SHOWN:
            listed.append(say("page.and_more", n=len(variant_means) - MEANS_SHOWN))
        parts = say.parts(
            "answer.means_of" if variant else "answer.means",
            variant=visible(variant),
            n=say.counted("sample", max(mean.n for mean in variant_means)),
            means="; ".join(listed),
        )
        yield Sentence("", parts)
    if len(variants) > VARIANTS_SHOWN:
        count = say.counted("variant", len(variants) - VARIANTS_SHOWN)
        yield Sentence("", say.parts("answer.more_means", n=count))
