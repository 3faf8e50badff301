"""How each protocol kind is shown: its figures, a judgment on one line, a unit in full."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from rich.console import RenderableType
from rich.text import Text

from evenhand import jsontext
from evenhand.engine.group import JudgeGroup
from evenhand.kinds.rubric.unit import load_sample
from evenhand.ledger.ports import Archive, Scope
from evenhand.measures import Rule
from evenhand.report.terminal.grades import grade_result, grade_table, grades_table, task_block
from evenhand.report.terminal.pairs import (
    figures_table,
    fronts_table,
    judges_table,
    pair_block,
    pair_result,
    passes_table,
    standings_table,
)
from evenhand.report.terminal.tables import answer_block, safe, scores_table, verdict_table
from evenhand.results.rows import figures_of_pairs, grades, score_values


class View(Protocol):
    """What commands show of one kind."""

    def figures(
        self,
        store: Archive,
        scope: Scope,
        judge_groups: Sequence[JudgeGroup],
        rule: Rule = "uncertain",
    ) -> Iterator[RenderableType]:
        """What the judgments of a scope come to."""
        ...

    def json(
        self,
        store: Archive,
        scope: Scope,
        judge_groups: Sequence[JudgeGroup],
        rule: Rule = "uncertain",
    ) -> dict[str, Any]:
        """The same for `--json`."""
        ...

    def result(self, output: Mapping[str, Any]) -> Text:
        """A verdict on one line."""
        ...

    def unit(self, body: str, row: Mapping[str, Any]) -> Iterator[RenderableType]:
        """A unit and its judgment; `row` is a full export row."""
        ...


class RubricView:
    def figures(
        self,
        store: Archive,
        scope: Scope,
        judge_groups: Sequence[JudgeGroup],
        rule: Rule = "uncertain",
    ) -> Iterator[RenderableType]:
        if scores := score_values(store, scope):
            yield scores_table(scores)

    def json(
        self,
        store: Archive,
        scope: Scope,
        judge_groups: Sequence[JudgeGroup],
        rule: Rule = "uncertain",
    ) -> dict[str, Any]:
        return {}

    def result(self, output: Mapping[str, Any]) -> Text:
        scores = output["scores"].items()
        return Text(" ".join(f"{safe(name)} {given['score']}" for name, given in scores))

    def unit(self, body: str, row: Mapping[str, Any]) -> Iterator[RenderableType]:
        sample = load_sample(body)
        if sample.question:  # there are no texts of what was judged elsewhere
            yield answer_block(sample.question, sample.model_output, row)
        if row["output"] is not None:
            yield verdict_table(row)


class PairwiseView:
    def figures(
        self,
        store: Archive,
        scope: Scope,
        judge_groups: Sequence[JudgeGroup],
        rule: Rule = "uncertain",
    ) -> Iterator[RenderableType]:
        found = figures_of_pairs(store, scope, judge_groups, rule)
        if found.standings:
            yield standings_table(found)
            yield ""
            yield figures_table(found)
        if found.judges:
            yield ""
            yield judges_table(found)
        if found.fronts:
            yield ""
            yield fronts_table(found)

    def json(
        self,
        store: Archive,
        scope: Scope,
        judge_groups: Sequence[JudgeGroup],
        rule: Rule = "uncertain",
    ) -> dict[str, Any]:
        return {"pairwise": figures_of_pairs(store, scope, judge_groups, rule).json()}

    def result(self, output: Mapping[str, Any]) -> Text:
        return pair_result(output)

    def unit(self, body: str, row: Mapping[str, Any]) -> Iterator[RenderableType]:
        yield pair_block(jsontext.parse(body))
        if passes := passes_table(row):
            yield passes
        elif row["output"] is not None:
            yield pair_result(row["output"])
        if row["output"] is not None and row["output"]["notes"]:
            yield Text(safe(row["output"]["notes"]), style="dim")


class WeightedView:
    def figures(
        self,
        store: Archive,
        scope: Scope,
        judge_groups: Sequence[JudgeGroup],
        rule: Rule = "uncertain",
    ) -> Iterator[RenderableType]:
        if found := grades(store, scope):
            yield grades_table(found)
            if any(grade.is_unsure for group in found.values() for grade in group):
                yield "\nlow confidence: list them with export --only low-confidence"

    def json(
        self,
        store: Archive,
        scope: Scope,
        judge_groups: Sequence[JudgeGroup],
        rule: Rule = "uncertain",
    ) -> dict[str, Any]:
        every = [grade for group in grades(store, scope).values() for grade in group]
        return {
            "weighted": {
                "critical_fails": sum(grade.critical_fail for grade in every),
                "low_confidence": sum(grade.is_unsure for grade in every),
            }
        }

    def result(self, output: Mapping[str, Any]) -> Text:
        return grade_result(output)

    def unit(self, body: str, row: Mapping[str, Any]) -> Iterator[RenderableType]:
        yield task_block(jsontext.parse(body))
        if row["output"] is not None:
            yield grade_table(row["output"])


VIEWS: dict[str, View] = {
    "pairwise": PairwiseView(),
    "rubric": RubricView(),
    "weighted": WeightedView(),
}
