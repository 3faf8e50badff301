"""Views of a run and its units that commands share, whatever its kind of judging."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from evenhand.engine.run import JudgeGroup
from evenhand.judgment import Judgment
from evenhand.kinds.kind import Kind, Voting
from evenhand.observation import Rule
from evenhand.report.html.page import words
from evenhand.report.html.units import kind_blocks
from evenhand.report.terminal.blocks import block_lines, cell_line
from evenhand.report.terminal.pairs import RANKED_FROM, criteria_line, pair_tables
from evenhand.results.pairs import figures_of_pairs
from evenhand.results.units import is_hash_of, names_of, topic_questions, verdicts_of
from evenhand.runs.recorded import Recorded
from evenhand.store.archive import Archive
from evenhand.store.ports import Scope


def run_figures(
    store: Archive, run: Recorded, scope: Scope, *, is_ranked: bool = False
) -> Iterator[RenderableType]:
    """Yield what the judgments of a scope of a run come to; `is_ranked` where a ranked table
    says how the candidates fared."""
    kind, measure = run.kind, run.kind.measure
    if not isinstance(measure, Voting):
        blocks = measure.summarise(verdicts_of(kind, store, scope)).blocks
        yield from block_lines(kind_blocks(blocks, words("en")))
        return
    figures = figures_of_pairs(kind, store, scope, run.judge_groups, run.rule)
    has_fronts = any(len(sets.candidates) > 2 for sets in figures.fronts.values())
    questions = topic_questions(kind, store, scope) if has_fronts else {}
    titles = {
        topic: question if is_hash_of(topic, question) else topic
        for topic, question in questions.items()
    }
    with_standings = not is_ranked or len(figures.standings) <= RANKED_FROM
    yield from pair_tables(figures, titles, with_standings=with_standings)
    if figures.first_rounds:
        yield ""
        yield from criteria_line(names_of(run))


def run_json(
    kind: Kind,
    store: Archive,
    scope: Scope,
    judge_groups: Sequence[JudgeGroup],
    rule: Rule = "uncertain",
) -> dict[str, Any]:
    """Return the figures of a run for `--json`, under the name of the kind; nothing where it has
    nothing to add."""
    measure = kind.measure
    if isinstance(measure, Voting):
        figures = figures_of_pairs(kind, store, scope, judge_groups, rule)
        return {kind.name: figures.json()}
    counts = measure.summarise(verdicts_of(kind, store, scope)).json
    return {kind.name: dict(counts)} if counts else {}


def verdict_line(kind: Kind, body: str, judgment: Judgment) -> Text:
    """Return a verdict on one line."""
    return cell_line(kind.present(kind.load(body), [judgment]).judgments[0].line)
