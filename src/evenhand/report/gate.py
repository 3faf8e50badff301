"""A gate as text: for a terminal, for the annotations of GitHub, for the summary of a job, and as
JUnit XML.

In JUnit a condition is a test case. One that is not met is a failure. One that lacks evidence is an
error, not skipped: every CI system shows errors beside failures, while skipped cases leave a report
green. The same gate gives the same bytes; the only time in it is when the run was started.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from evenhand.report.terminal.answer import note_lines, trust_lines
from evenhand.report.terminal.console import paragraph
from evenhand.report.terminal.tables import cut, safe
from evenhand.stats.conditions import Condition
from evenhand.stats.gate import Gate
from evenhand.words import Words, words

RESULTS = {"better": "passed", "worse": "failed", "not enough evidence": "not enough evidence"}
"""The result of a gate, by the outcome of all its conditions together."""
_PASSING = frozenset({"every", "min_pass_rate"})
_STYLES = {"better": "green", "worse": "red", "not enough evidence": "yellow"}
_COMMANDS = {"better": "notice", "worse": "error", "not enough evidence": "warning"}
_ANNOTATION = 2000
_MARKDOWN = str.maketrans({c: f"\\{c}" for c in "\\`*_{}[]()<>#+-.!|~"})
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PROBLEMS = {"worse": "failure", "not enough evidence": "error"}


def _english() -> Words:
    """Return the words of what machines read: annotations, summaries, JUnit."""
    return words("en", plain=True)


def _in_english(message: str) -> str:
    return _english().message(message)


def headline(gate: Gate, say: Words) -> str:
    """The outcome, and how it comes about."""
    outcomes = [condition.outcome for condition in gate.conditions]
    result, of = RESULTS[gate.outcome], len(outcomes)
    if gate.outcome == "better":
        return say("gate.passed", n=of)
    key = "failed" if result == "failed" else "open"
    return say(f"gate.{key}", n=outcomes.count(gate.outcome), of=of)


def gate_lines(gate: Gate, say: Words) -> Iterator[RenderableType]:
    """The outcome and every condition with its reason."""
    yield Text(headline(gate, say), style=f"bold {_STYLES[gate.outcome]}")
    grid = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for condition in gate.conditions:
        label = Text(say.gloss("gate_outcome", condition.outcome), style=_STYLES[condition.outcome])
        grid.add_row(label, paragraph(say.message(condition.reason)))
    yield grid
    yield from trust_lines(gate.trust, say)
    yield from note_lines(gate.notes, say, None)
    unmet = {each.name for each in gate.conditions if each.outcome == "worse"}
    if unmet:
        yield paragraph(say("gate.next_fail" if unmet & _PASSING else "gate.next"))


def workflow_commands(gate: Gate, run: str) -> Iterator[str]:
    """Workflow commands of GitHub, one for each condition that is not met or open, and one for all
    together."""
    for condition in gate.conditions:
        if condition.outcome != "better":
            yield _command(
                condition.outcome, f"evenhand gate: {condition.name}", _in_english(condition.reason)
            )
    yield _command(gate.outcome, "evenhand gate", f"{headline(gate, _english())} (run {run})")


def _command(outcome: str, title: str, message: str) -> str:
    data = _data(safe(message)[:_ANNOTATION])
    return f"::{_COMMANDS[outcome]} title={_property(title)}::{data}"


def _data(text: str) -> str:
    """As GitHub's own toolkit escapes what follows a command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def markdown(gate: Gate, run: str, name: str) -> str:
    """The gate for the summary of a job."""
    lines = [
        f"### evenhand gate: {headline(gate, _english())}",
        "",
        f"Run {_plain(run)}, {_plain(name)}.",
        "",
        "| condition | outcome | value | interval | threshold | n |",
        "|---|---|--:|---|--:|--:|",
        *(_row(condition) for condition in gate.conditions),
        "",
        *(f"- {_plain(_in_english(condition.reason))}" for condition in gate.conditions),
        *(f"- Note: {_plain(_in_english(note))}" for note in gate.notes),
        "",
        _plain(" ".join(map(_in_english, gate.trust))),
        "",
    ]
    return "\n".join(lines) + "\n"


def _row(condition: Condition) -> str:
    whom = " ".join(part for part in (condition.variant, condition.dimension) if part)
    most = condition.points
    interval = (
        f"{_number(condition.low, most)} to {_number(condition.high, most)}"
        if condition.low is not None
        else ""
    )
    cells = [
        _plain(f"{condition.name} {whom}".strip()),
        _english().gloss("gate_outcome", condition.outcome),
        _number(condition.value, most),
        interval,
        _number(condition.threshold, most),
    ]
    return f"| {' | '.join([*cells, str(condition.n)])} |"


def _number(value: float | None, most: float) -> str:
    return "" if value is None else f"{value * most:.4g}"


def _plain(text: str) -> str:
    """Text on one line in which nothing is read as Markdown or HTML."""
    return cut(text, _ANNOTATION).translate(_MARKDOWN).replace("&", "&amp;")


def junit(gate: Gate, *, run: str, name: str, started: str) -> bytes:
    """The file; `started` is a time in ISO 8601, of which the seconds are kept."""
    outcomes = [condition.outcome for condition in gate.conditions]
    root = Element("testsuites")
    suite = SubElement(
        root,
        "testsuite",
        name=_xml_text(f"evenhand gate {name}"),
        package="evenhand",
        id="0",
        timestamp=started[:19],
        hostname="localhost",
        tests=str(len(outcomes)),
        failures=str(outcomes.count("worse")),
        errors=str(outcomes.count("not enough evidence")),
        skipped="0",
        time="0",
    )
    properties = SubElement(suite, "properties")
    values = {"run": run, "name": name, "outcome": gate.outcome, "result": RESULTS[gate.outcome]}
    values["level"] = f"{gate.level:g}"
    for key, value in values.items():
        SubElement(properties, "property", name=key, value=_xml_text(value))
    for condition in gate.conditions:
        _case(suite, condition, name)
    SubElement(suite, "system-out").text = _xml_text("\n".join(map(_in_english, gate.notes)))
    SubElement(suite, "system-err")
    indent(root)
    text: bytes = tostring(root, encoding="UTF-8", xml_declaration=True)
    return text + b"\n"


def _case(suite: Element, condition: Condition, name: str) -> None:
    parts = [condition.name, condition.variant, condition.dimension]
    case = SubElement(
        suite,
        "testcase",
        classname=_xml_text(f"evenhand.gate.{name}"),
        name=_xml_text(" ".join(part for part in parts if part)),
        time="0",
    )
    kind = _PROBLEMS.get(condition.outcome)
    if kind:
        problem = SubElement(
            case, kind, type=condition.outcome, message=_xml_text(_in_english(condition.reason))
        )
        problem.text = _xml_text(_in_english(condition.reason))


def _xml_text(text: str) -> str:
    """Text that XML can hold: what steers a terminal is shown, what is no character is left out."""
    return _NOT_XML.sub("", safe(text))
