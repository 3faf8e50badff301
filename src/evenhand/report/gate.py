"""A gate as text: for a terminal, for the annotations of GitHub, for the summary of a job."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from evenhand.report.terminal import cut, safe
from evenhand.stats.deciding.conditions import Condition
from evenhand.stats.deciding.gate import Gate

WORDS = {"better": "met", "worse": "not met", "not enough evidence": "not enough evidence"}
_STYLES = {"better": "green", "worse": "red", "not enough evidence": "yellow"}
_COMMANDS = {"better": "notice", "worse": "error", "not enough evidence": "warning"}
_ANNOTATION = 2000
_MARKDOWN = str.maketrans({c: f"\\{c}" for c in "\\`*_{}[]()<>#+-.!|~"})


def headline(gate: Gate) -> str:
    """The outcome, and how it comes about."""
    count, outcomes = len(gate.conditions), [one.outcome for one in gate.conditions]
    if gate.outcome == "better":
        return "better: every condition is met"
    of = f"of {count} condition{'s' if count > 1 else ''}"
    if gate.outcome == "worse":
        failed = outcomes.count("worse")
        return f"worse: {failed} {of} {'is' if failed == 1 else 'are'} not met"
    return f"not enough evidence: {outcomes.count('not enough evidence')} {of} open"


def gate_lines(gate: Gate) -> Iterator[Text | Table]:
    """The outcome and every condition with its reason."""
    yield Text(headline(gate), style=f"bold {_STYLES[gate.outcome]}")
    rows = Table.grid(padding=(0, 2))
    rows.add_column(no_wrap=True)
    rows.add_column(overflow="fold")
    for one in gate.conditions:
        rows.add_row(Text(WORDS[one.outcome], style=_STYLES[one.outcome]), Text(safe(one.reason)))
    yield rows
    for note in gate.notes:
        yield Text(f"Note: {safe(note)}", style="dim")


def workflow_commands(gate: Gate, run: str) -> Iterator[str]:
    """Workflow commands of GitHub, one for each condition that is not met or open, and one for all
    together."""
    for one in gate.conditions:
        if one.outcome != "better":
            yield _command(one.outcome, f"evenhand gate: {one.name}", one.reason)
    yield _command(gate.outcome, "evenhand gate", f"{headline(gate)} (run {run})")


def _command(outcome: str, title: str, message: str) -> str:
    told = _data(safe(message)[:_ANNOTATION])
    return f"::{_COMMANDS[outcome]} title={_property(title)}::{told}"


def _data(text: str) -> str:
    """As GitHub's own toolkit escapes what follows a command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def markdown(gate: Gate, run: str, name: str) -> str:
    """The gate for the summary of a job."""
    lines = [
        f"### evenhand gate: {headline(gate)}",
        "",
        f"Run {_plain(run)}, {_plain(name)}.",
        "",
        "| condition | outcome | value | interval | threshold | n |",
        "|---|---|--:|---|--:|--:|",
        *(_row(one) for one in gate.conditions),
        "",
        *(f"- {_plain(one.reason)}" for one in gate.conditions),
        *(f"- Note: {_plain(note)}" for note in gate.notes),
        "",
    ]
    return "\n".join(lines) + "\n"


def _row(one: Condition) -> str:
    whom = " ".join(part for part in (one.variant, one.dimension) if part)
    interval = f"{_number(one.low)} to {_number(one.high)}" if one.low is not None else ""
    cells = [_plain(f"{one.name} {whom}".strip()), WORDS[one.outcome], _number(one.value), interval]
    return f"| {' | '.join([*cells, _number(one.threshold), str(one.n)])} |"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _plain(text: str) -> str:
    """Text on one line in which nothing is read as Markdown or HTML."""
    return cut(text, _ANNOTATION).translate(_MARKDOWN).replace("&", "&amp;")
