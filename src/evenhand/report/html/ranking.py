"""The ranked table below the answer: every variant or candidate on a row, the best first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from evenhand.observation import PASSED
from evenhand.report.html.answer import by_win_rate, digits_of, gap_text, scaled_dimension
from evenhand.report.html.marks import Where
from evenhand.report.model import Report
from evenhand.stats.comparison import OVERALL, Comparison, Outcome, Row, VariantMean
from evenhand.stats.leaderboard import Board, BoardRow
from evenhand.stats.variants import CRITICAL
from evenhand.text import visible
from evenhand.words import Words

RANKS_SHOWN = 12
_TONES = {"better": "good", "worse": "bad"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """A table of texts; `tones` colour the last column that every row has an outcome in."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    tones: Sequence[str]
    """One per row: `good`, `bad`, or nothing."""
    name: int
    """The column of the names."""
    outcome: int | None
    """The column of the outcome; None where there is none."""
    more: int = 0
    """The number of rows left out."""
    where: Sequence[Where] = ()
    """The units that each row is about."""
    note: str = ""
    """A note on what the columns count, if that is not one thing."""


def rank(report: Report, say: Words) -> Ranking | None:
    """Return the ranked table of a report; None where there is nothing to rank."""
    if report.board:
        return rank_candidates(report.board, say)
    return rank_variants(report.comparison, say) if report.comparison else None


def rank_variants(comparison: Comparison, say: Words) -> Ranking | None:
    """Return variants by their overall mean; of a single dimension by that, which says the same.
    There are no places: what is not decided against the baseline has none, and nothing was tested
    between the others."""
    name, means = main_dimension(comparison), ranked_means(comparison)
    if len(means) < 2:
        return None
    against = {row.variant: row for row in comparison.rows if row.dimension == name}
    digits = max(map(digits_of, against.values()), default=2)
    head = [
        say("chart.variant"),
        scaled_dimension(name, say, means[0].scale),
        say("chart.difference"),
    ]
    head += [say("ranks.higher"), say("ranks.lower"), say("chart.outcome")]
    rows = [_variant_cells(mean, against.get(mean.variant), digits, say) for mean in means]
    titles = {CRITICAL: say.gloss("verdict", "critical"), PASSED: say("chart.pass_rate")}
    for measure, title in titles.items():
        if rates := _rates(comparison, measure):
            head.append(title)
            for cells, mean in zip(rows, means, strict=True):
                cells.append(say.percent(rates.get(mean.variant)))
    outcomes: list[Outcome | str] = [
        against[mean.variant].outcome if mean.variant in against else "" for mean in means
    ]
    tones = [_TONES.get(outcome, "") for outcome in outcomes]
    where = [(("variant", mean.variant),) for mean in means]
    return _cut(Ranking(head=head, rows=rows, tones=tones, name=0, outcome=5, where=where))


def main_dimension(comparison: Comparison) -> str:
    """Return the dimension that variants are ranked by: the only one, else what is overall."""
    names = (row.dimension for row in comparison.rows if row.dimension != OVERALL)
    return next(names) if comparison.is_one_dimension else OVERALL


def main_means(means: Sequence[VariantMean]) -> list[VariantMean]:
    """Return the means of what is overall, else of the first dimension."""
    known = [mean for mean in means if mean.mean is not None]
    overall = [mean for mean in known if mean.dimension == OVERALL]
    return overall or [mean for mean in known if mean.dimension == known[0].dimension]


def ranked_means(comparison: Comparison) -> list[VariantMean]:
    """Return the means of that dimension, the best first; of two variants over what both have."""
    name = main_dimension(comparison)
    means = [mean for mean in comparison.means if mean.dimension == name and mean.mean is not None]
    rows = [row for row in comparison.rows if row.dimension == name]
    if len(means) == 2 and len(rows) == 1:
        means = [_shared_mean(mean, *rows) for mean in means]
    return sorted(means, key=lambda mean: -(mean.mean or 0.0))


def _shared_mean(mean: VariantMean, row: Row) -> VariantMean:
    """Return the mean over the units that both variants have, so that the two differ by what is
    said."""
    if row.difference is None:
        return mean
    if mean.variant == row.variant:
        return replace(mean, n=row.n, mean=row.mean, low=row.mean_low, high=row.mean_high)
    low, high = row.baseline_low, row.baseline_high
    return replace(mean, n=row.n, mean=row.baseline_mean, low=low, high=high)


def _variant_cells(mean: VariantMean, row: Row | None, digits: int, say: Words) -> list[str]:
    value = f"{say.number(mean.mean, digits)} {say.interval(mean.low, mean.high, digits)}".strip()
    cells = [visible(mean.variant), value]
    if row is None:
        return [*cells, "", "", "", say("chart.baseline")]
    outcome = say.gloss("outcome", row.outcome)
    return [*cells, gap_text(row, say), say.integer(row.higher), say.integer(row.lower), outcome]


def _rates(comparison: Comparison, measure: str) -> dict[str, float | None]:
    """Return the share of units of each variant that pass, or fail critically; empty where none
    can or none does."""
    rows = [row for row in (*comparison.tags, *comparison.passes) if row.dimension == measure]
    rates = {row.variant: row.mean for row in rows}
    return rates | ({comparison.baseline: rows[0].baseline_mean} if rows else {})


def rank_candidates(board: Board, say: Words) -> Ranking | None:
    """Return candidates by their win rates; those that never met others have places among
    themselves."""
    rated = by_win_rate(board)
    if len(rated) < 2:
        return None
    head = [say("ranks.place"), say("chart.candidate"), say("chart.win_rate"), say("chart.wins")]
    head += [say.gloss("verdict", "tie"), say.gloss("verdict", "uncertain")]
    head += [say("chart.losses"), say("ranks.n")]
    # Several judges or repeats: a pair counts once, by its panel, and as their mean in the rate.
    has_votes = any(row.votes > row.n for row in rated)
    rows = [
        [
            _places(row),
            visible(row.candidate),
            say.share(row.win_rate, row.low, row.high),
            *map(say.integer, (row.wins, row.ties, row.uncertain, row.losses, row.pairs)),
            *([say.integer(row.votes)] if has_votes else []),
        ]
        for row in rated
    ]
    note = say("ranks.votes_note") if has_votes else ""
    head += [say("ranks.votes")] if has_votes else []
    tones = [""] * len(rows)
    where = [(("candidates", row.candidate),) for row in rated]
    ranking = Ranking(
        head=head, rows=rows, tones=tones, name=1, outcome=None, where=where, note=note
    )
    return _cut(ranking)


def _places(row: BoardRow) -> str:
    """Return the places that a candidate may have; nothing where nobody can say."""
    if row.rank_low is None or row.rank_high is None:
        return ""
    return str(row.rank_low) if row.rank_low == row.rank_high else f"{row.rank_low}–{row.rank_high}"


def _cut(ranking: Ranking) -> Ranking:
    """Return as many rows as a first screen holds."""
    rows, tones = ranking.rows[:RANKS_SHOWN], ranking.tones[:RANKS_SHOWN]
    return replace(ranking, rows=rows, tones=tones, more=len(ranking.rows) - len(rows))
