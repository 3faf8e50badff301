"""A gate as JUnit XML: a test case a condition.

A condition that is not met is a failure. One that lacks evidence is an error, not skipped: every
CI system shows errors beside failures, while skipped cases leave a report green. The same gate
gives the same bytes; the only time in it is when the run was started.
"""

from __future__ import annotations

import re
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from evenhand.report.terminal.gate import RESULTS
from evenhand.report.terminal.tables import safe
from evenhand.stats.conditions import Condition
from evenhand.stats.gate import Gate

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PROBLEMS = {"worse": "failure", "not enough evidence": "error"}


def junit(gate: Gate, *, run: str, name: str, started: str) -> bytes:
    """The file; `started` is a time in ISO 8601, of which the seconds are kept."""
    outcomes = [condition.outcome for condition in gate.conditions]
    root = Element("testsuites")
    suite = SubElement(
        root,
        "testsuite",
        name=_text(f"evenhand gate {name}"),
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
        SubElement(properties, "property", name=key, value=_text(value))
    for condition in gate.conditions:
        _case(suite, condition, name)
    SubElement(suite, "system-out").text = _text("\n".join(gate.notes))
    SubElement(suite, "system-err")
    indent(root)
    text: bytes = tostring(root, encoding="UTF-8", xml_declaration=True)
    return text + b"\n"


def _case(suite: Element, condition: Condition, name: str) -> None:
    parts = [condition.name, condition.variant, condition.dimension]
    case = SubElement(
        suite,
        "testcase",
        classname=_text(f"evenhand.gate.{name}"),
        name=_text(" ".join(part for part in parts if part)),
        time="0",
    )
    kind = _PROBLEMS.get(condition.outcome)
    if kind:
        problem = SubElement(case, kind, type=condition.outcome, message=_text(condition.reason))
        problem.text = _text(condition.reason)


def _text(text: str) -> str:
    """Text that XML can hold: what steers a terminal is shown, what is no character is left out."""
    return _NOT_XML.sub("", safe(text))
