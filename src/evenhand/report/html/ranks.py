"""The ranked table below the answer: every variant or candidate on a row, the best first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from evenhand.report.html.answer import digits_of, gap_text, scaled_dimension
from evenhand.report.html.build import Difference, Mean, Meeting, Report, Standing
from evenhand.report.html.page import Words
from evenhand.stats.comparison import OVERALL
from evenhand.text import visible

ROWS_SHOWN = 12
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
    note: str = ""
    """A note on what the columns count, if that is not one thing."""


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
    digits = max(map(digits_of, against.values()), default=2)
    if len(of_name) == 2 and len(against) == 1:
        of_name = [_paired(mean, *against.values()) for mean in of_name]
    ordered = sorted(of_name, key=lambda mean: -(mean.value or 0.0))
    # No places: what is not decided against the baseline has none, and nothing was tested between
    # the others.
    heads = [say("chart.variant"), scaled_dimension(name, say), say("chart.difference")]
    heads += [say("ranks.higher"), say("ranks.lower"), say("chart.outcome")]
    rows = [_variant_cells(mean, against.get(mean.variant), digits, say) for mean in ordered]
    if critical:
        heads.append(say.gloss("verdict", "critical"))
        for cells, mean in zip(rows, ordered, strict=True):
            cells.append(say.percent(critical.get(mean.variant)))
    tones = [_tone(against.get(mean.variant)) for mean in ordered]
    return _cut(Ranking(head=heads, rows=rows, tones=tones, name=0, outcome=5))


def _ranked_by(differences: Sequence[Difference]) -> str:
    dimensions = {row.dimension for row in differences} - {OVERALL}
    return dimensions.pop() if len(dimensions) == 1 else OVERALL


def _paired(mean: Mean, row: Difference) -> Mean:
    """The mean over the units that both variants have, so that the two differ by what is said."""
    if row.value is None:
        return mean
    if mean.variant == row.variant:
        return replace(mean, n=row.n, value=row.mean, low=row.mean_low, high=row.mean_high)
    low, high = row.baseline_low, row.baseline_high
    return replace(mean, n=row.n, value=row.baseline_mean, low=low, high=high)


def _variant_cells(mean: Mean, row: Difference | None, digits: int, say: Words) -> list[str]:
    name, value = visible(mean.variant), f"{say.number(mean.value, digits)} "
    cells = [name, f"{value}{say.interval(mean.low, mean.high, digits)}".strip()]
    if row is None:
        return [*cells, "", "", "", say("chart.baseline")]
    outcome = say.gloss("outcome", row.outcome)
    return [*cells, gap_text(row, say), say.integer(row.higher), say.integer(row.lower), outcome]


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
    # Several judges or repeats: a pair counts once, by its panel, and as their mean in the rate.
    has_votes = any(standing.votes > standing.n for standing in rated)
    rows = [
        [
            _places(standing),
            visible(standing.candidate),
            say.share(standing.win_rate, standing.low, standing.high),
            *map(say.integer, (standing.wins, standing.ties, standing.uncertain)),
            *map(say.integer, (standing.losses, standing.pairs)),
            *([say.integer(standing.votes)] if has_votes else []),
        ]
        for standing in rated
    ]
    note = say("ranks.votes_note") if has_votes else ""
    heads += [say("ranks.votes")] if has_votes else []
    tones = [""] * len(rows)
    return _cut(Ranking(head=heads, rows=rows, tones=tones, name=1, outcome=None, note=note))


def _places(standing: Standing) -> str:
    """The places that a candidate may have; nothing where nobody can say."""
    low, high = standing.rank_low, standing.rank_high
    if low is None or high is None:
        return ""
    return str(low) if low == high else f"{low}–{high}"


def met_pairs(report: Report) -> list[Meeting]:
    """Every two candidates that met, once, the one that won more first; in the order of their
    standings."""
    places = {standing.candidate: place for place, standing in enumerate(report.standings)}
    ahead = [
        meeting
        for meeting in report.meetings
        if (-meeting.rate, meeting.candidate) < (meeting.rate - 1, meeting.other)
    ]
    ends = len(places)
    return sorted(
        ahead, key=lambda m: (places.get(m.candidate, ends), places.get(m.other, ends), m.other)
    )


def _cut(ranking: Ranking) -> Ranking:
    """As many rows as a first screen holds."""
    rows, tones = ranking.rows[:ROWS_SHOWN], ranking.tones[:ROWS_SHOWN]
    return replace(ranking, rows=rows, tones=tones, more=len(ranking.rows) - len(rows))
