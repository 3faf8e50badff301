"""The answer of a run in one sentence or a few, each with its uncertainty."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from evenhand.report.html.build import Difference, Mean, Report, Standing
from evenhand.report.html.page import Words, p_value
from evenhand.stats.comparison import OVERALL
from evenhand.stats.outcome import Decision
from evenhand.text import visible

VARIANTS_SHOWN = 4
MEANS_SHOWN = 6
NAMES_SHOWN = 6
OPEN_SHOWN = 3
"""So many undecided variants are named; more are counted, and the table has them."""
UNDECIDED = "not enough evidence"
SMALL = 0.005
"""A difference below this would be 0.00 with two digits."""


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


def brackets_note(report: Report, say: Words) -> str:
    """Return the note on the brackets of the answer and on what counts as half a win."""
    sentences: list[str] = []
    bounded: list[Difference | Mean | Standing] = [*report.differences, *report.means]
    bounded += report.standings
    if any(figure.low is not None or figure.high is not None for figure in bounded):
        sentences.append(say("answer.level", level=say.percent(report.method.level)))
    if report.is_pairs and report.standings:
        sentences.append(say.gloss("half", report.method.rule))
    return " ".join(sentences)


def _nothing(report: Report, say: Words) -> list[tuple[str, str]]:
    """Why there is no answer: nothing is judged yet, or all of it failed."""
    coverage = report.coverage
    failed = sum(coverage.failures.values())
    if failed and not coverage.verdicts and not coverage.pending:
        return say.parts("answer.all_failed", n=say.integer(failed))
    return say.parts("answer.nothing" if not coverage.verdicts else "answer.no_figure")


def _answers(report: Report, say: Words) -> Iterator[Sentence]:
    compared = list(_of_report(report, say))
    if compared:
        yield from compared
    elif report.is_pairs:
        yield from standing_answers(report.standings, say)
    else:
        yield from mean_answers(report.means, say)
        yield from _critical(report, say)


def _critical(report: Report, say: Words) -> Iterator[Sentence]:
    """Yield a sentence on the number of critical fails, if no table of variants gives it."""
    bars = [bar for bar in report.tags if bar.value == "critical"]
    if bars and not report.critical:
        failed, of = sum(bar.count for bar in bars), sum(bar.of for bar in bars)
        parts = say.parts("answer.critical", n=say.integer(failed), of=say.counted("sample", of))
        yield Sentence("worse", parts)


def _of_report(report: Report, say: Words) -> Iterator[Sentence]:
    noun = report.kind.question_noun
    return comparison_answers(report.differences, noun, say, is_duel=report.is_pairs)


def comparison_answers(
    differences: Sequence[Difference], noun: str, say: Words, *, is_duel: bool
) -> Iterator[Sentence]:
    """Yield the sentences on each variant of a comparison, overall first; none for one without
    values. `noun` is what is asked: a question, a task, a topic."""
    sequential = {row.variant: row for row in differences if row.sequential}
    if is_duel:
        duels = [row for row in differences if row.dimension == OVERALL and row.mean is not None]
        by_candidate = [[sequential.get(row.variant, row)] for row in duels]

        def duel_of(rows: Sequence[Difference]) -> list[Sentence]:
            return list(_duel(rows[0], noun, say))

        yield from _leading(by_candidate, duel_of, say, is_duel=True)
        return
    # What the run's own test decides is the answer; other tests of the same variant are no second.
    rows = [row for row in differences if row.value is not None]
    rows = [row for row in rows if sequential.get(row.variant, row) is row]
    by_variant = [[row for row in rows if row.variant == name] for name in _variants(rows)]
    # Dimensions of many variants are a table's part.
    is_single = len(by_variant) == 1

    def variant_of(rows: Sequence[Difference]) -> list[Sentence]:
        return list(_compared(rows, noun, say, with_dimensions=is_single))

    yield from _leading(by_variant, variant_of, say, is_duel=False)


def _variants(rows: Sequence[Difference | Mean]) -> list[str]:
    return list(dict.fromkeys(row.variant for row in rows))


def _leading(
    variants: Sequence[Sequence[Difference]],
    tell: Callable[[Sequence[Difference]], Iterable[Sentence]],
    say: Words,
    *,
    is_duel: bool,
) -> Iterator[Sentence]:
    """A few variants of which something is decided, each by itself, then the undecided in one
    sentence: a wall of them would hide what matters."""
    noun = "candidate" if is_duel else "variant"
    decided = [rows for rows in variants if _is_decided(rows)]
    for rows in decided[:VARIANTS_SHOWN]:
        yield from tell(rows)
    if more := len(decided[VARIANTS_SHOWN:]):
        yield Sentence("", say.parts("answer.more_decided", n=say.counted(noun, more)))
    undecided = [rows for rows in variants if not _is_decided(rows)]
    if len(undecided) == 1 or any(rows[0].sequential for rows in undecided):
        for rows in undecided[:VARIANTS_SHOWN]:
            yield from tell(rows)
    elif undecided:
        yield from _undecided([_first(rows) for rows in undecided], say, is_duel=is_duel)


def _undecided(rows: Sequence[Difference], say: Words, *, is_duel: bool) -> Iterator[Sentence]:
    """Several variants of which nothing is decided, with their figures."""
    figures = [
        f"{visible(row.variant)} ({_rate(row, say) if is_duel else gap_text(row, say)})"
        for row in rows
    ]
    baseline = visible(rows[0].baseline)
    if len(rows) > OPEN_SHOWN:
        count = say.counted("candidate" if is_duel else "variant", len(rows))
        parts = say.parts("answer.open_many", baseline=baseline, n=count)
    else:
        parts = say.parts("answer.open", baseline=baseline, variants=_listed(figures, say))
    yield Sentence("undecided", parts)
    if held := [visible(row.variant) for row in rows if row.held]:
        yield Sentence("statistics", say.parts("answer.held_of", variants=_listed(held, say)))


def _listed(texts: Sequence[str], say: Words, by: str = ", ") -> str:
    """A few texts on a line, and how many more there are."""
    more = len(texts) - NAMES_SHOWN
    rest = [say("page.and_more", n=more)] if more > 0 else []
    return by.join([*texts[:NAMES_SHOWN], *rest])


def _is_decided(rows: Sequence[Difference]) -> bool:
    return any(row.outcome != UNDECIDED for row in rows)


def _compared(
    rows: Sequence[Difference], noun: str, say: Words, *, with_dimensions: bool
) -> Iterator[Sentence]:
    """One variant: a sentence about it overall, what statistics add, and one about its dimensions;
    what the run's own test says, where it has one."""
    if rows[0].sequential:
        yield _stopped(rows[0].sequential, noun, say)
        return
    first = _first(rows)
    yield _sentence(first, noun, say)
    yield from _statistics(first, say, is_duel=False)
    rest = [row for row in rows if row is not first] if len(rows) > 2 else []
    if rest and with_dimensions:
        yield Sentence("dimensions", list(_dimensions(rest, say)))


def _first(rows: Sequence[Difference]) -> Difference:
    """Return the row to state first: the only dimension, else overall, else the first row."""
    of_dimensions = [row for row in rows if row.dimension != OVERALL]
    if len(of_dimensions) == 1:
        return of_dimensions[0]
    return next((row for row in rows if row.dimension == OVERALL), rows[0])


def _sentence(row: Difference, noun: str, say: Words) -> Sentence:
    """A variant on one dimension, or overall: from what to what, and on how many questions."""
    key, digits = _outcome_key(row), digits_of(row)
    parts = say.parts(
        f"answer.{key}_overall" if row.dimension == OVERALL else f"answer.{key}",
        variant=visible(row.variant),
        baseline=visible(row.baseline),
        dimension=visible(row.dimension),
        before=say.number(row.baseline_mean, digits),
        after=say.number(row.mean, digits),
        scale=_scale(row.scale, say),
        difference=say.signed(row.value, digits),
        interval=say.interval(row.low, row.high, digits),
        balance=_balance(row, noun, say),
        margin=say.short(row.margin or 0.0),
    )
    return Sentence(_tone(row), parts)


def _tone(row: Difference) -> str:
    return "undecided" if row.outcome == UNDECIDED else row.outcome


def _statistics(row: Difference, say: Words, *, is_duel: bool) -> Iterator[Sentence]:
    """Yield what statistics say of an open question, below it: what held it back, which difference
    can be excluded, and how many more would decide."""
    if row.outcome != UNDECIDED:
        return
    parts: list[tuple[str, str]] = []
    if row.held:
        parts += say.parts(
            "answer.held", p=p_value(say, row.p), adjusted=p_value(say, row.p_adjusted)
        )
    if not is_duel and row.low is not None and row.high is not None:
        excluded = max(abs(row.low), abs(row.high))
        parts += [(" ", "")] if parts else []
        parts += say.parts(
            "answer.within",
            variant=visible(row.variant),
            baseline=visible(row.baseline),
            distance=say.number(excluded, digits_of(row)),
        )
    if row.needed:
        parts += [(" ", "")] if parts else []
        parts.append((say.gloss("needed", row.needed), ""))
    if parts:
        yield Sentence("statistics", parts)


def digits_of(row: Difference) -> int:
    """Two digits; three where a difference would read like none, or before and after would not add
    up to it."""
    if row.value and abs(row.value) < SMALL:
        return 3
    return next((digits for digits in (2, 3) if _adds_up(row, digits)), 2)


def _adds_up(row: Difference, digits: int) -> bool:
    if row.mean is None or row.baseline_mean is None or row.value is None:
        return False
    before, after, gap = (round(x, digits) for x in (row.baseline_mean, row.mean, row.value))
    return abs(after - before - gap) < 0.5 * 0.1**digits


def _scale(scale: tuple[float, float] | None, say: Words) -> str:
    """The scale that figures stand on, where it is known."""
    if scale is None:
        return ""
    least, most = (say.short(end) for end in scale)
    return say("answer.of" if scale[0] == 0 else "answer.between", least=least, most=most)


def _balance(row: Difference, noun: str, say: Words) -> str:
    """On how many questions the variant is better, and on how many worse."""
    return say(
        "answer.balance",
        higher=say.counted(_noun(row, noun), row.higher),
        lower=say.integer(row.lower),
        n=say.integer(row.n),
    )


def _noun(row: Difference, noun: str) -> str:
    """Return the noun of what a row counts: `noun`, or `pair` if a question has several."""
    return noun if row.n == row.questions else "pair"


def _dimensions(rows: Sequence[Difference], say: Words) -> Iterator[tuple[str, str]]:
    """Yield the dimensions in parts of text, by outcome: better, worse, the same, undecided."""
    is_first = True
    for key in ("better", "worse", "same", "held", "none"):
        of_outcome = [row for row in rows if ("held" if row.held else _outcome_key(row)) == key]
        if not of_outcome:
            continue
        dimensions = _listed([_with_interval(row, say) for row in of_outcome], say)
        yield from () if is_first else ((" ", ""),)
        yield from say.parts(f"answer.by_{key}", dimensions=dimensions)
        is_first = False


def _outcome_key(row: Difference) -> str:
    return "none" if row.outcome == UNDECIDED else row.outcome


def _with_interval(row: Difference, say: Words) -> str:
    return f"{_dimension(row.dimension, say)} ({gap_text(row, say)})"


def gap_text(row: Difference, say: Words) -> str:
    """A difference with its interval. Of figures above 1 two digits are enough where before and
    after do not stand beside it."""
    most = max(abs(row.mean or 0), abs(row.baseline_mean or 0))
    is_small = bool(row.value) and abs(row.value or 0) < SMALL
    digits = digits_of(row) if most <= 1 or is_small else 2
    interval = say.interval(row.low, row.high, digits)
    return f"{say.signed(row.value, digits)} {interval}".strip()


def _rate(row: Difference, say: Words) -> str:
    """A win rate with its interval."""
    return f"{say.percent(row.mean)} {say.percents(row.mean_low, row.mean_high)}".strip()


def _dimension(name: str, say: Words) -> str:
    return say.gloss("dimension", name) if name == OVERALL else visible(name)


def scaled_dimension(name: str, say: Words) -> str:
    """A dimension; of what is overall, with its scale."""
    return say.gloss("dimension", "of_one") if name == OVERALL else visible(name)


def _stopped(decision: Decision, noun: str, say: Words) -> Sentence:
    """Return the sentence on the decision of a run's sequential test."""
    is_rate = decision.measure == "win_rate"
    ends = say.percents if is_rate else say.interval
    interval = ends(decision.low, decision.high)
    figure = say("chart.win_rate" if is_rate else "chart.difference")
    if not (is_rate and decision.dimension == OVERALL):
        figure = f"{figure} ({_dimension(decision.dimension, say)})"
    parts = say.parts(
        f"answer.stopped_{decision.outcome if decision.outcome != UNDECIDED else 'none'}",
        variant=visible(decision.variant),
        baseline=visible(decision.baseline),
        figure=figure,
        interval=interval,
        level=say.percent(1 - decision.alpha),
        n=say.integer(decision.questions),
        of=say.counted(noun, decision.of_questions),
    )
    tone = decision.outcome if decision.outcome != UNDECIDED else "undecided"
    return Sentence(tone, parts)


def _duel(row: Difference, noun: str, say: Words) -> Iterator[Sentence]:
    """A candidate against the baseline."""
    if row.sequential:
        yield _stopped(row.sequential, noun, say)
        return
    parts = say.parts(
        f"answer.pair_{_outcome_key(row)}",
        variant=visible(row.variant),
        baseline=visible(row.baseline),
        rate=say.percent(row.mean),
        interval=say.percents(row.mean_low, row.mean_high),
        n=say.counted("pair", row.n),
        higher=say.integer(row.higher),
        lower=say.integer(row.lower),
        margin=say.short(row.margin or 0.0),
    )
    yield Sentence(_tone(row), parts)
    yield from _statistics(row, say, is_duel=True)


def standing_answers(standings: Sequence[Standing], say: Words) -> Iterator[Sentence]:
    """Yield who leads, where only one may be the first, or who all may be."""
    standings = [standing for standing in standings if standing.win_rate is not None]
    pairs = sum(standing.n for standing in standings) // 2
    if len(standings) < 2:
        return
    if len({standing.set for standing in standings}) > 1:
        yield _unranked("never_met", standings, pairs, say)
        return
    top = [
        standing for standing in standings if standing.rank_low is None or standing.rank_low <= 1
    ]
    if len(top) != 1 or top[0].rank_high != 1:
        yield _unranked("level_with", top or standings, pairs, say)
        return
    first, second = top[0], next(standing for standing in standings if standing is not top[0])
    parts = say.parts(
        "answer.leads",
        candidate=visible(first.candidate),
        rate=say.percent(first.win_rate),
        interval=say.percents(first.low, first.high),
        n=say.counted("pair", first.n),
        other=visible(second.candidate),
        other_rate=say.percent(second.win_rate),
        other_interval=say.percents(second.low, second.high),
    )
    yield Sentence("", parts)


def _unranked(key: str, top: Sequence[Standing], pairs: int, say: Words) -> Sentence:
    """Candidates each of which may be the first, with their win rates."""
    rates = [
        f"{visible(standing.candidate)} {say.percent(standing.win_rate)} "
        f"{say.percents(standing.low, standing.high)}".strip()
        for standing in top
    ]
    candidates, count = _listed(rates, say, "; "), say.counted("pair", pairs)
    return Sentence("undecided", say.parts(f"answer.{key}", candidates=candidates, n=count))


def mean_answers(means: Sequence[Mean], say: Words) -> Iterator[Sentence]:
    """The means of each variant, overall first."""
    means = sorted(
        (mean for mean in means if mean.value is not None),
        key=lambda mean: mean.dimension != OVERALL,
    )
    variants = _variants(means)
    for variant in variants[:VARIANTS_SHOWN]:
        variant_means = [mean for mean in means if mean.variant == variant]
        listed = [
            f"{scaled_dimension(mean.dimension, say)} {say.number(mean.value)} "
            f"{say.interval(mean.low, mean.high)}".strip()
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
