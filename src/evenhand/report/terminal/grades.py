"""Graded answers as text for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from evenhand.kinds.weighted.verdict import Grade
from evenhand.report.terminal.tables import safe, table


def grades_table(rows: Mapping[tuple[str, str], Sequence[Grade]]) -> Table:
    """Totals by model and task type: mean, range, critical fails, low confidence."""
    made = table("model", "type", "n", "mean", "range", "critical", "low conf.", right=(2, 3, 5, 6))
    for (model, kind), grades in sorted(rows.items()):
        totals = sorted(grade.total_score for grade in grades)
        failed = sum(grade.critical_fail for grade in grades)
        unsure = sum(grade.is_unsure for grade in grades)
        made.add_row(
            safe(model or "-"),
            safe(kind or "-"),
            str(len(totals)),
            f"{sum(totals) / len(totals):.1f}",
            f"{totals[0]:g} to {totals[-1]:g}",
            str(failed),
            str(unsure),
        )
    return made


def grade_result(output: Mapping[str, Any]) -> Text:
    """A grade on one line."""
    if output["critical_fail"]:
        text = Text("0 of 100", style="bold")
        return text.append(f"  critical fail: {safe(output['critical_fail_reason'])}", style="red")
    scores = "  ".join(f"{safe(name)} {score}" for name, score in output["score"].items())
    text = Text(f"{output['total_score']} of 100", style="bold")
    return text.append(f"  {scores}  {output['confidence']}", style="not bold")


def task_block(unit: Mapping[str, Any]) -> Table:
    """The task and the answer."""
    block = Table.grid(padding=(0, 1))
    block.add_column(style="bold")
    block.add_column(overflow="fold")
    block.add_row("Q", Text(safe(unit["prompt"])))
    block.add_row("A", Text(safe(unit["answer"])))
    return block


def grade_table(output: Mapping[str, Any]) -> Table:
    """Every dimension with its score and the reason."""
    made, weights = table("dimension", "score", "reason"), output["weights"] or {}
    for name, score in output["score"].items():
        most = f" of {weights[name]}" if name in weights else ""
        reason = Text(safe(output["reasoning"][name]), style="dim")
        made.add_row(safe(name), f"{score}{most}", reason)
    kind = output["task_type"] or "not known"
    inferred = ", inferred" if output["inferred_task_type"] else ""
    about = f"type {kind}{inferred}; confidence {output['confidence']}"
    if output["critical_fail"]:
        about += f"; critical fail: {output['critical_fail_reason']}"
    made.add_row("total", f"{output['total_score']} of 100", safe(about), style="bold")
    return made
