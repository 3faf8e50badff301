"""The answer of a run in one sentence or a few, each with its uncertainty."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evenhand.observation import PASSED
from evenhand.report.model import PassRate, Report
from evenhand.stats.comparison import OVERALL, Comparison, Decision, Row, VariantMean
from evenhand.stats.estimate import More
from evenhand.stats.expense import COST
from evenhand.stats.leaderboard import Board, BoardRow
from evenhand.text import visible
from evenhand.words import Words

VARIANTS_SHOWN, NAMES_SHOWN = 4, 6
OPEN_SHOWN = 3
UNDECIDED = "not enough evidence"
SMALL = 0.005
"""A difference below this would be 0.00 with two digits."""


@dataclass(frozen=True, slots=True)
class AnswerLine:
    """A sentence in pieces, each with the name of what it tells; `tone` is its outcome."""

    tone: str
    parts: Sequence[tuple[str, str]]

    @property
    def text(self) -> str:
        return "".join(part for part, _ in self.parts)


def answers(report: Report, say: Words) -> list[AnswerLine]:
    """Return the answer: what is better, what is worse, and what is not decided."""
    found: list[AnswerLine] = []
    if report.comparison:
        found = list(comparison_answers(report.comparison, report.kind.question_noun, say))
    if not found and report.board:
        found = list(board_answers(report.board, say))
    if not found and not report.is_pairs:
        found = [*_mean_answers(report.means, say), *_critical(report, say)]
    found += _pass_answers(report.passes, say)
    return found or [AnswerLine("", _nothing(report, say))]


def brackets_note(report: Report, say: Words) -> str:
    """Return the note on the brackets of the answer and on what counts as half a win."""
    sentences: list[str] = []
    board = report.board.rows if report.board else []
    bounded: list[Row | VariantMean | BoardRow] = [*report.means, *board]
    bounded += report.comparison.rows if report.comparison else ()
    if any(row.low is not None or row.high is not None for row in bounded):
        sentences.append(say("answer.level", level=say.percent(report.level)))
    if board:
        sentences.append(say.gloss("half", report.rule))
    return say("list.sentence").join(sentences)


def _nothing(report: Report, say: Words) -> list[tuple[str, str]]:
    """Return why there is no answer: nothing is judged yet, or all of it failed."""
    coverage = report.coverage
    failed = sum(coverage.failures.values())
    if failed and not coverage.verdicts and not coverage.pending:
        return say.parts("answer.all_failed", n=say.integer(failed))
    return say.parts("answer.nothing" if not coverage.verdicts else "answer.no_figure")


def _critical(report: Report, say: Words) -> Iterator[AnswerLine]:
    """Yield a sentence on the number of critical fails."""
    bars = [bar for bar in report.tags if bar.value == "critical"]
    if bars:
        failed, of = sum(bar.count for bar in bars), sum(bar.of for bar in bars)
        parts = say.parts("answer.critical", n=say.integer(failed), of=say.counted("sample", of))
        yield AnswerLine("worse", parts)


def _pass_answers(rates: Sequence[PassRate], say: Words) -> Iterator[AnswerLine]:
    """Yield how many judgments pass, of each variant."""
    for each in rates[:VARIANTS_SHOWN]:
        parts = say.parts(
            "answer.passed_of" if each.variant else "answer.passed",
            variant=visible(each.variant),
            n=say.integer(each.passed),
            of=say.integer(each.of),
            rate=say.percent(each.rate.value),
            interval=say.percents(each.rate.low, each.rate.high),
        )
        yield AnswerLine("", parts)


def comparison_answers(comparison: Comparison, noun: str, say: Words) -> Iterator[AnswerLine]:
    """Yield the sentences on each variant of a comparison, overall first; none for one without
    values. `noun` is what is asked: a question, a task, a topic."""
    found = _ComparisonAnswers(comparison, noun, say)
    yield from found.sentences()
    yield from found.passes()
    yield from found.expenses()


class _ComparisonAnswers:
    """Words a comparison."""

    def __init__(self, comparison: Comparison, noun: str, say: Words) -> None:
        self.comparison, self.noun, self.say = comparison, noun, say
        self.baseline = visible(comparison.baseline)
        self.counted = "candidate" if comparison.is_duel else "variant"

    def sentences(self) -> Iterator[AnswerLine]:
        """Yield a few variants of which something is decided, each by itself, then the undecided in
        one sentence: a wall of them would hide what matters."""
        rows = [row for row in self.comparison.rows if row.difference is not None]
        if self.comparison.is_duel:
            rows = [row for row in rows if row.dimension == OVERALL]
        names = list(dict.fromkeys(row.variant for row in rows))
        variants = [[row for row in rows if row.variant == name] for name in names]
        # Dimensions of many variants are a table's part.
        is_single = len(variants) == 1
        decided = [rows for rows in variants if self._is_decided(rows)]
        for rows in decided[:VARIANTS_SHOWN]:
            yield from self._say_variant(rows, with_dimensions=is_single)
        if more := len(decided[VARIANTS_SHOWN:]):
            count = self.say.counted(self.counted, more)
            yield AnswerLine("", self.say.parts("answer.more_decided", n=count))
        undecided = [rows for rows in variants if not self._is_decided(rows)]
        if len(undecided) == 1 or any(map(self._decision, undecided)):
            for rows in undecided[:VARIANTS_SHOWN]:
                yield from self._say_variant(rows, with_dimensions=is_single)
        elif undecided:
            yield from self._say_undecided([_first(rows) for rows in undecided])
        if self.comparison.is_duel:
            yield from self._explain([_first(rows) for rows in variants])

    def _explain(self, rows: Sequence[Row]) -> Iterator[AnswerLine]:
        """Yield what a reader needs who adds up the counts of pairs, or has seen the ranking."""
        shares = [(row, (row.n + row.higher - row.lower) / (2 * row.n)) for row in rows if row.n]
        if any(abs(share - (row.mean or 0.0)) >= SMALL for row, share in shares):
            yield AnswerLine("statistics", self.say.parts("answer.averaged"))
        if len(rows) > 1:
            parts = self.say.parts("answer.direct", baseline=self.baseline)
            yield AnswerLine("statistics", parts)

    def expenses(self) -> Iterator[AnswerLine]:
        """Yield what answers cost and how long they took, where the suite made them."""
        say, expenses = self.say, self.comparison.expenses
        before = {
            each.measure: each.mean for each in expenses if each.variant == self.comparison.baseline
        }
        told = [each for each in expenses if each.change is not None]
        for each in told[: 2 * VARIANTS_SHOWN]:
            write = self._thousand if each.measure == COST else say.number
            low, high = (None if end is None else 100 * end for end in (each.low, each.high))
            parts = say.parts(
                f"answer.{each.measure}",
                variant=visible(each.variant),
                baseline=self.baseline,
                before=write(before[each.measure]),
                after=write(each.mean),
                change=say.percent_change(each.change),
                interval=say.interval(low, high, 0),
            )
            yield AnswerLine("", parts)

    def _thousand(self, price: float) -> str:
        return self.say.money(1000 * price)

    def passes(self) -> Iterator[AnswerLine]:
        """Yield which variants pass more often than the baseline."""
        rows = [row for row in self.comparison.passes if row.dimension == PASSED and row.n]
        for row in rows[:VARIANTS_SHOWN]:
            difference, low, high = (
                None if end is None else 100 * end for end in (row.difference, row.low, row.high)
            )
            parts = self.say.parts(
                f"answer.pass_{_outcome_key(row)}",
                variant=visible(row.variant),
                baseline=self.baseline,
                before=self.say.percent(row.baseline_mean),
                after=self.say.percent(row.mean),
                n=self.say.counted(self.noun if row.n == row.clusters else "pair", row.n),
                difference=self.say.signed(difference, 0),
                interval=self.say.interval(low, high, 0),
            )
            yield AnswerLine("undecided" if row.outcome == UNDECIDED else row.outcome, parts)

    def _is_decided(self, rows: Sequence[Row]) -> bool:
        decision = self._decision(rows)
        return any(each.outcome != UNDECIDED for each in ([decision] if decision else rows))

    def _decision(self, rows: Sequence[Row]) -> Decision | None:
        """Return the decision of the run's own sequential test on a variant, if it has one: other
        tests of the same variant are no second answer."""
        variant = rows[0].variant
        tested = (row for row in self.comparison.rows if row.variant == variant)
        return next(filter(None, map(self.comparison.decision, tested)), None)

    def _say_variant(self, rows: Sequence[Row], *, with_dimensions: bool) -> Iterator[AnswerLine]:
        """Yield a sentence about a variant overall, what statistics add, and one about its
        dimensions; what the run's own test says, where it has one."""
        if decision := self._decision(rows):
            yield decision_answer(decision, self.noun, self.say)
            return
        first = _first(rows)
        yield self._sentence(first)
        if first.outcome == UNDECIDED and (parts := self._statistics(first)):
            yield AnswerLine("statistics", parts)
        rest = [row for row in rows if row is not first] if len(rows) > 2 else []
        if rest and with_dimensions:
            yield AnswerLine("dimensions", self._dimensions(rest))

    def _sentence(self, row: Row) -> AnswerLine:
        """Return the sentence on a variant on one dimension, or overall, or against a candidate."""
        say, key, digits = self.say, _outcome_key(row), digits_of(row)
        is_duel = self.comparison.is_duel
        if is_duel:
            key, interval = f"pair_{key}", say.percents(row.mean_low, row.mean_high)
        else:
            key = f"{key}_overall" if row.dimension == OVERALL else key
            interval = say.interval(row.low, row.high, digits)
        parts = say.parts(
            f"answer.{key}",
            variant=visible(row.variant),
            baseline=self.baseline,
            dimension=_dimension(row.dimension, say),
            before=say.number(row.baseline_mean, digits),
            after=say.number(row.mean, digits),
            scale=_scale(row.scale, say),
            difference=say.signed(row.difference, digits),
            interval=interval,
            balance=self._balance(row),
            margin=say.short((100 if is_duel else 1) * (self.comparison.margin or 0.0)),
            rate=say.percent(row.mean),
            n=say.counted("pair", row.n),
            higher=row.higher,
            lower=row.lower,
            even=row.n - row.higher - row.lower,
        )
        return AnswerLine("undecided" if row.outcome == UNDECIDED else row.outcome, parts)

    def _balance(self, row: Row) -> str:
        """Return on how many questions the variant is better, and on how many worse; pairs of
        answers are counted if a question has several."""
        say, values = self.say, {"higher": row.higher, "lower": row.lower}
        if row.n == row.clusters:
            return say("answer.balance", **values, n=say.counted(self.noun, row.n))
        return say("answer.balance_pairs", **values, n=say.counted("pair", row.n))

    def _statistics(self, row: Row) -> list[tuple[str, str]]:
        """Return what statistics say of an open question: what held it back, which difference can
        be excluded, and how many more would decide."""
        say, parts = self.say, list[list[tuple[str, str]]]()
        if self._is_held(row):
            parts.append(self._say_held(row))
        if not self.comparison.is_duel and row.low is not None and row.high is not None:
            distance = max(abs(row.low), abs(row.high))
            # Half of the scale excludes nothing that anybody feared.
            if row.scale is None or 2 * distance < row.scale[1] - row.scale[0]:
                names = {"variant": visible(row.variant), "baseline": self.baseline}
                excluded = say.number(distance, digits_of(row))
                parts.append(say.parts("answer.within", distance=excluded, **names))
        if row.more_questions:
            parts.append(self._say_needed(row.more_questions))
        return _space_out(parts, say)

    def _say_needed(self, more: More) -> list[tuple[str, str]]:
        """Return how many more questions would decide, and how to judge no more than those where
        some are not judged yet."""
        sentences = [[(self.say.gloss("needed", more), "")]]
        if any(count.pending for count in self.comparison.missing.values()):
            sentences.append(self.say.parts("answer.until_decided"))
        return _space_out(sentences, self.say)

    def _say_held(self, row: Row) -> list[tuple[str, str]]:
        """Return the sentence on a row that only the correction for several tests leaves open."""
        is_overall, rows = row.dimension == OVERALL, self.comparison.rows
        tested = [each for each in rows if each.p is not None]
        family = sum((each.dimension == OVERALL) == is_overall for each in tested)
        count = self.say.counted("comparison", family)
        way = "better" if (row.difference or 0) > 0 else "worse"
        return self.say.parts(f"answer.held_{way}", variant=visible(row.variant), n=count)

    def _is_held(self, row: Row) -> bool:
        """Return True if only the correction for several tests leaves a row open."""
        if row.p is None or row.p_adjusted is None or row.outcome != UNDECIDED:
            return False
        return row.p <= 1 - self.comparison.level + 1e-12 < row.p_adjusted

    def _say_undecided(self, rows: Sequence[Row]) -> Iterator[AnswerLine]:
        """Yield a sentence on several variants of which nothing is decided, with their figures."""
        say, names = self.say, {"baseline": self.baseline}
        if len(rows) > OPEN_SHOWN:
            parts = say.parts("answer.open_many", n=say.counted(self.counted, len(rows)), **names)
        else:
            figures = [
                say("answer.rate", candidate=visible(row.variant), rate=self._figure(row))
                for row in rows
            ]
            parts = say.parts("answer.open", variants=_join_few(figures, say), **names)
        yield AnswerLine("undecided", parts)
        for row in list(filter(self._is_held, rows))[:OPEN_SHOWN]:
            yield AnswerLine("statistics", self._say_held(row))
        order = list(say.glosses("needed"))
        needed = [row.more_questions for row in rows if row.more_questions]
        if needed:
            most = max(needed, key=order.index)
            yield AnswerLine("statistics", self._say_needed(most))

    def _figure(self, row: Row) -> str:
        if self.comparison.is_duel:
            return self.say.share(row.mean, row.mean_low, row.mean_high)
        return gap_text(row, self.say)

    def _dimensions(self, rows: Sequence[Row]) -> list[tuple[str, str]]:
        """Return the dimensions in parts of text, by outcome."""
        say, sentences = self.say, list[list[tuple[str, str]]]()
        for key in ("better", "worse", "same", "held", "none"):
            listed = [
                say("answer.rate", candidate=name, rate=gap_text(row, say))
                for row in rows
                for name in [_dimension(row.dimension, say)]
                if ("held" if self._is_held(row) else _outcome_key(row)) == key
            ]
            if listed:
                sentences.append(say.parts(f"answer.by_{key}", dimensions=_join_few(listed, say)))
        return _space_out(sentences, say)


def decision_answer(decision: Decision, noun: str, say: Words) -> AnswerLine:
    """Return the sentence on the decision of a run's sequential test."""
    is_rate = decision.measure == "win_rate"
    figure = say("chart.win_rate" if is_rate else "chart.difference")
    if not (is_rate and decision.dimension == OVERALL):
        figure = f"{figure} ({_dimension(decision.dimension, say)})"
    outcome = "none" if decision.outcome == UNDECIDED else decision.outcome
    parts = say.parts(
        f"answer.stopped_{outcome}",
        variant=visible(decision.variant),
        baseline=visible(decision.baseline),
        figure=figure,
        interval=(say.percents if is_rate else say.interval)(decision.low, decision.high),
        level=say.percent(1 - decision.alpha),
        n=say.integer(decision.questions),
        of=say.counted(noun, decision.of_questions),
    )
    return AnswerLine("undecided" if outcome == "none" else outcome, parts)


def _space_out(sentences: Sequence[list[tuple[str, str]]], say: Words) -> list[tuple[str, str]]:
    """Return sentences in one, with what stands between sentences in the language."""
    between = say("list.sentence"), ""
    return [part for sentence in sentences for part in (between, *sentence)][1:]


def _join_few(texts: Sequence[str], say: Words, between: str = "comma") -> str:
    """Return a few texts on a line, and how many more there are."""
    return say.join(texts[:NAMES_SHOWN], max(0, len(texts) - NAMES_SHOWN), between)


def join_all(texts: Sequence[str], say: Words, most: int = NAMES_SHOWN) -> str:
    """Return a few texts on a line, the last after an "and"."""
    if not 1 < len(texts) <= most:
        return say.join(texts[:most], max(0, len(texts) - most))
    return say("list.and", first=say.join(texts[:-1]), last=texts[-1])


def _first(rows: Sequence[Row]) -> Row:
    """Return the row to state first: the only dimension, else overall, else the first row."""
    of_dimensions = [row for row in rows if row.dimension != OVERALL]
    if len(of_dimensions) == 1:
        return of_dimensions[0]
    return next((row for row in rows if row.dimension == OVERALL), rows[0])


def _outcome_key(row: Row) -> str:
    return "none" if row.outcome == UNDECIDED else row.outcome


def digits_of(row: Row) -> int:
    """Return two digits, of figures out of 100 none; one more where a difference or an end of its
    interval would read like none, or before and after would not add up to it."""
    least = 0 if is_of_hundred(row.scale) else 2
    if _reads_like_none(row, least):
        return least + 1
    return next((digits for digits in (least, least + 1) if _adds_up(row, digits)), least)


def _reads_like_none(row: Row, digits: int) -> bool:
    ends = (row.difference, row.low, row.high)
    return any(0 < abs(end or 0) < 0.5 * 0.1**digits for end in ends)


def is_of_hundred(scale: tuple[float, float] | None) -> bool:
    """Return True if figures stand on a scale on which whole numbers are enough."""
    return scale is not None and scale[1] - scale[0] >= 100


def _adds_up(row: Row, digits: int) -> bool:
    if row.mean is None or row.baseline_mean is None or row.difference is None:
        return False
    before, after, gap = (round(x, digits) for x in (row.baseline_mean, row.mean, row.difference))
    return abs(after - before - gap) < 0.5 * 0.1**digits


def gap_text(row: Row, say: Words) -> str:
    """Return a difference with its interval. Of figures above 1 two digits are enough where before
    and after do not stand beside it."""
    most = max(abs(row.mean or 0), abs(row.baseline_mean or 0))
    is_small = _reads_like_none(row, 2)
    digits = digits_of(row) if most <= 1 or is_small or is_of_hundred(row.scale) else 2
    return f"{say.signed(row.difference, digits)} {say.interval(row.low, row.high, digits)}".strip()


def _scale(scale: tuple[float, float] | None, say: Words) -> str:
    """Return the scale that figures stand on; empty where it is not known."""
    if scale is None:
        return ""
    least, most = (say.short(end) for end in scale)
    return say("answer.of" if scale[0] == 0 else "answer.between", least=least, most=most)


def _dimension(name: str, say: Words) -> str:
    return visible(say.dimension(name))


def scaled_dimension(name: str, say: Words, scale: tuple[float, float] | None = None) -> str:
    """Return a dimension; of what is overall, with its scale."""
    if name != OVERALL:
        return _dimension(name, say)
    return say("answer.overall_of", most=say.short(scale[1] if scale else 1))


def by_win_rate(board: Board) -> list[BoardRow]:
    """Return the candidates with a win rate, the one that wins most first."""
    rated = [row for row in board.rows if row.win_rate is not None]
    return sorted(rated, key=lambda row: (-(row.win_rate or 0.0), row.candidate))


def _rates(rows: Sequence[BoardRow], say: Words) -> str:
    """Return candidates, each with its win rate."""
    rates = [
        say("answer.rate", candidate=visible(row.candidate), rate=say.percent(row.win_rate))
        for row in rows
    ]
    return join_all(rates, say)


def board_answers(board: Board, say: Words) -> Iterator[AnswerLine]:
    """Yield who leads, where only one may be the first, or who all may be."""
    rows = by_win_rate(board)
    if len(rows) < 2:
        return
    top = [row for row in rows if row.rank_low is None or row.rank_low <= 1]
    is_apart = len({row.set for row in rows}) > 1
    if is_apart or len(top) != 1 or top[0].rank_high != 1:
        key, named = ("never_met", rows) if is_apart else ("level_with", top or rows)
        count = say.counted("pair", sum(row.n for row in rows) // 2)
        parts = say.parts(f"answer.{key}", candidates=_rates(named, say), n=count)
        yield AnswerLine("undecided", parts)
        if behind := [row for row in rows if row not in named]:
            yield AnswerLine("", say.parts("answer.behind", candidates=_rates(behind, say)))
        return
    first, second = top[0], next(row for row in rows if row is not top[0])
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
    yield AnswerLine("", parts)


def _mean_answers(means: Sequence[VariantMean], say: Words) -> Iterator[AnswerLine]:
    """Yield the means of each variant, overall first."""
    means = [mean for mean in means if mean.mean is not None]
    means = sorted(means, key=lambda mean: mean.dimension != OVERALL)
    variants = list(dict.fromkeys(mean.variant for mean in means))
    for variant in variants[:VARIANTS_SHOWN]:
        of_variant = [mean for mean in means if mean.variant == variant]
        listed = [
            f"{scaled_dimension(mean.dimension, say, mean.scale)}"
            f" {say.number(mean.mean, digits := 1 if is_of_hundred(mean.scale) else 2)}"
            f" {say.interval(mean.low, mean.high, digits)}".strip()
            for mean in of_variant
        ]
        parts = say.parts(
            "answer.means_of" if variant else "answer.means",
            variant=visible(variant),
            n=say.counted("sample", max(mean.n for mean in of_variant)),
            means=_join_few(listed, say, "semicolon"),
        )
        yield AnswerLine("", parts)
    if len(variants) > VARIANTS_SHOWN:
        count = say.counted("variant", len(variants) - VARIANTS_SHOWN)
        yield AnswerLine("", say.parts("answer.more_means", n=count))
