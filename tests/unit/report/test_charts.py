"""Pictures of much: what is left out is a whole variant, and how much it is stands beside them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evenhand.kinds import KINDS
from evenhand.report.html.build import Bar, Mean, Report
from evenhand.report.html.charts import SHOWN, Figure, figures
from evenhand.report.html.page import words
from tests.unit.report.test_answer import COVERAGE, METHOD


def drawn(**more: Any) -> dict[str, Figure]:
    given: dict[str, Any] = {"run": "r", "name": "n", "kind": KINDS["rubric"], "language": "en"}
    given |= {"created": "", "started": "", "coverage": COVERAGE, "method": METHOD} | more
    return {one.name: one for one in figures(Report(**given), words("en"))}


def mean(variant: str, dimension: str) -> Mean:
    return Mean(dimension=dimension, variant=variant, n=3, value=0.5, low=0.4, high=0.6)


def test_of_many_variants_six_are_drawn_with_all_their_tags() -> None:
    bars = [Bar("", f"v{v}", tag, 1, 4) for tag in "ABC" for v in range(8)]
    made = drawn(tags=bars)["tags"]
    assert "and 6 more in the table" in made.about and len(made.rows) == 24
    assert [name for name, _ in made.legend] == [f"v{v}" for v in range(6)]
    for tag in "ABC":
        assert f">{tag} ·" in made.svg


def test_what_a_picture_of_means_leaves_out_is_counted() -> None:
    means = [mean(f"v{i}", name) for i in range(30) for name in ("true", "overall")]
    made = drawn(means=means)["means"]
    assert f"and {60 - SHOWN} more in the table" in made.about and len(made.rows) == 60
    plain = drawn(means=[mean(f"v{i}", name) for i in range(8) for name in ("a", "b")])["means"]
    assert "and 4 more in the table" in plain.about and len(plain.legend) == 6


def test_what_a_picture_of_contradictions_leaves_out_is_counted() -> None:
    method = replace(METHOD, rule="uncertain")
    found = {f"C{i}": 40 - i for i in range(SHOWN + 3)}
    made = drawn(kind=KINDS["pairwise"], method=method, contradictions=found)["contradictions"]
    assert "and 3 more in the table" in made.about
