"""Parts of a report, each with defaults."""

from __future__ import annotations

from evenhand.kinds import KINDS
from evenhand.manifest import Manifest
from evenhand.report.model import Coverage, Report
from evenhand.stats.comparison import Comparison, Row, VariantMean
from evenhand.stats.leaderboard import Board, BoardRow

COVERAGE = Coverage(
    units=120,
    planned=240,
    verdicts=240,
    failures={},
    pending=0,
    left_out=0,
    calls=240,
    usage={},
    cost_usd=None,
)


def difference(dimension, outcome, **more):
    given = {"variant": "v2", "n": 120, "clusters": 120, "error": 0.06}
    given |= {"mean": 0.62, "mean_low": 0.55, "mean_high": 0.69, "baseline_mean": 0.38}
    given |= {"difference": 0.21, "low": 0.08, "high": 0.34, "p": 0.01, "p_adjusted": 0.02}
    given |= {"effect": 0.3, "higher": 70, "lower": 41, "scale": (0.0, 1.0)}
    given |= {"baseline_low": None, "baseline_high": None}
    return Row(dimension=dimension, outcome=outcome, **(given | more))


def compared(rows, **more):
    given = {"by": "prompt_variant", "baseline": "v1", "level": 0.95, "means": ()}
    return Comparison(rows=tuple(rows), **(given | more))


def plain_mean(dimension, variant="", n=9, **more):
    given = {"mean": 3.2, "low": 2.9, "high": 3.5}
    return VariantMean(dimension=dimension, variant=variant, n=n, clusters=n, **(given | more))


def board(rows):
    return Board(rows=list(rows), n=0, votes=0, topics=0, failed=0, dropped=0)


def make_report(kind="rubric", language="en", **more):
    given = {"run": "r", "name": "n", "created": "", "started": ""}
    given |= {"manifest": Manifest(), "coverage": COVERAGE, "rule": "uncertain"}
    return Report(kind=KINDS[kind], language=language, **(given | more))


def standing(name, rate, best, worst):
    more = {"wins": 1, "losses": 0, "ties": 0, "uncertain": 0, "pairs": 1}
    more |= {"low": 0.5, "high": 0.8, "rank_low": best, "rank_high": worst, "votes": 40}
    more |= {"failed": 0, "dropped": 0, "se": None, "points": 1.0, "average_win_rate": rate}
    return BoardRow(candidate=name, n=40, win_rate=rate, **more)
