"""The ranked table below the answer: every variant or candidate on a row, the best first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evenhand.report.html.answer import scaled_dimension
from evenhand.report.html.build import Difference, Mean, Report, Standing
from evenhand.report.html.page import Words, visible
from evenhand.stats.comparison.comparison import OVERALL

ROWS_SHOWN = 12
_TONES = {"better": "good", "worse": "bad"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """A table of texts; `tones` colour the last column that every row has an outcome in."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    tones: Sequence[str]
    """One per row: `good`, `bad`, or nothing."""
    outcome: int | None
    """The column of the outcome; None where there is none."""
    more: int = 0
    """How many rows are left out."""
    note: str = ""
    """What the columns count, where that is not one thing."""


def ranking(report: Report, say: Words) -> Ranking | None:
    """The ranked table of a report; None where there is nothing to rank."""
    if report.is_pairs:
        return ranked_candidates(report.standings, say)
    return ranked_variants(report.means, report.differences, report.critical, say)


def ranked_variants(
    means: Sequence[Mean],
    differences: Sequence[Difference],
    critical: Mapping[str, float],
    say: Words,
) -> Ranking | None:
    """Variants by their overall mean; of a single dimension by that, which says the same."""
    name = _ranked_by(differences)
    of_name = [mean for mean in means if mean.dimension == name and mean.value is not None]
    if len(of_name) < 2:
        return None
    against = {row.variant: row for row in differences if row.dimension == name}
    ordered = sorted(of_name, key=lambda mean: -(mean.value or 0.0))
    heads = [say("ranks.place"), say("chart.variant"), scaled_dimension(name, say)]
    heads += [say("chart.difference"), say("ranks.higher"), say("ranks.lower")]
    heads.append(say("chart.outcome"))
    rows = [
        [str(place), *_variant_cells(mean, against.get(mean.variant), say)]
        for place, mean in enumerate(ordered, 1)
    ]
    if critical:
        heads.append(say.gloss("verdict", "critical"))
        for cells, mean in zip(rows, ordered, strict=True):
            cells.append(say.percent(critical.get(mean.variant)))
    tones = [_tone(against.get(mean.variant)) for mean in ordered]
    return _cut(Ranking(head=heads, rows=rows, tones=tones, outcome=6))


def _ranked_by(differences: Sequence[Difference]) -> str:
    dimensions = {row.dimension for row in differences} - {OVERALL}
    return dimensions.pop() if len(dimensions) == 1 else OVERALL


def _variant_cells(mean: Mean, row: Difference | None, say: Words) -> list[str]:
    name, value = visible(mean.variant), f"{say.number(mean.value)} "
    cells = [name, f"{value}{say.interval(mean.low, mean.high)}".strip()]
    if row is None:
        return [*cells, "", "", "", say("chart.baseline")]
    gap = f"{say.signed(row.value)} {say.interval(row.low, row.high)}".strip()
    outcome = say.gloss("outcome", row.outcome)
    return [*cells, gap, say.integer(row.higher), say.integer(row.lower), outcome]


def _tone(row: Difference | None) -> str:
    return _TONES.get(row.outcome, "") if row else ""


def ranked_candidates(standings: Sequence[Standing], say: Words) -> Ranking | None:
    """Candidates by their win rates; those that never met others have places among themselves."""
    rated = [standing for standing in standings if standing.win_rate is not None]
    if len(rated) < 2:
        return None
    heads = [say("ranks.place"), say("chart.candidate"), say("chart.win_rate"), say("chart.wins")]
    heads += [say.gloss("verdict", "tie"), say.gloss("verdict", "uncertain")]
    heads += [say("chart.losses"), say("ranks.n")]
    # Several judges or repeats: a pair counts once, by its panel, and every vote in the rate.
    has_votes = any(standing.n != standing.pairs for standing in rated)
    rows = [
        [
            _places(standing),
            visible(standing.candidate),
            say.share(standing.win_rate, standing.low, standing.high),
            *map(say.integer, (standing.wins, standing.ties, standing.uncertain)),
            *map(say.integer, (standing.losses, standing.pairs)),
            *([say.integer(standing.n)] if has_votes else []),
        ]
        for standing in rated
    ]
    note = say("ranks.votes_note") if has_votes else ""
    heads += [say("ranks.votes")] if has_votes else []
    return _cut(Ranking(head=heads, rows=rows, tones=[""] * len(rows), outcome=None, note=note))


def _places(standing: Standing) -> str:
    """The places that a candidate may have; nothing where nobody can say."""
    low, high = standing.rank_low, standing.rank_high
    if low is None or high is None:
        return ""
    return str(low) if low == high else f"{low}–{high}"


def _cut(ranking: Ranking) -> Ranking:
    """As many rows as a first screen holds."""
    more = max(0, len(ranking.rows) - ROWS_SHOWN)
    return Ranking(
        head=ranking.head,
        rows=ranking.rows[:ROWS_SHOWN],
        tones=ranking.tones[:ROWS_SHOWN],
        outcome=ranking.outcome,
        more=more,
        note=ranking.note,
    )
