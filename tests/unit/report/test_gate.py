"""A gate as JUnit XML: what CI systems read of it."""

from __future__ import annotations

import re
from xml.etree import ElementTree as Xml

from hypothesis import given
from hypothesis import strategies as st

from evenhand.report.gate import headline, junit, markdown, workflow_commands
from evenhand.stats.conditions import Condition
from evenhand.stats.gate import Gate
from evenhand.words import words
from tests.cases import cases

STARTED = "2026-03-01T10:20:30.123+00:00"
OUTCOMES = ["better", "worse", "not enough evidence"]


def made(outcome="worse", reason="So it is.", **about):
    given = {"value": 0.5, "low": 0.4, "high": 0.6, "threshold": 0.7, "n": 12}
    given |= {"clusters": 12, "dimension": "overall", "variant": "v2"}
    return Condition(name="min_mean", outcome=outcome, reason=reason, **given | about)


def gate(*conditions, notes=()):
    return Gate(conditions=conditions, level=0.95, notes=notes)


def written(one, name="test"):
    return junit(one, run="abc123", name=name, started=STARTED)


def test_a_case_a_condition_with_failures_and_errors_counted():
    root = Xml.fromstring(written(gate(*map(made, OUTCOMES))))
    (suite,) = root
    assert (root.tag, suite.tag) == ("testsuites", "testsuite")
    counted = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counted == {"tests": "3", "failures": "1", "errors": "1", "skipped": "0"}
    cases = suite.findall("testcase")
    assert [[child.tag for child in case] for case in cases] == [[], ["failure"], ["error"]]
    assert cases[0].attrib == {
        "classname": "evenhand.gate.test",
        "name": "min_mean v2 overall",
        "time": "0",
    }
    (failure,) = cases[1]
    assert failure.attrib == {"type": "worse", "message": "So it is."}
    assert failure.text == "So it is."


def test_the_form_is_that_of_the_strictest_schema_in_use():
    """As the schema of Ant's reports has it: which attributes must be there, in which order the
    parts stand, and how a time is written."""
    root = Xml.fromstring(written(gate(*map(made, OUTCOMES))))
    assert root.attrib == {}
    (suite,) = root
    needed = {"name", "timestamp", "hostname", "tests", "failures", "errors", "time"}
    assert needed | {"id", "package", "skipped"} == suite.attrib.keys()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.attrib["timestamp"])
    tags = [part.tag for part in suite]
    assert tags == ["properties", *["testcase"] * 3, "system-out", "system-err"]
    for case in suite.findall("testcase"):
        assert case.attrib.keys() == {"name", "classname", "time"}
        assert all(part.get("type") and part.tag in ("failure", "error") for part in case)
    properties = {p.get("name"): p.get("value") for p in suite.iter("property")}
    assert properties["run"] == "abc123"
    assert properties["outcome"] == "worse"
    assert properties["result"] == "failed"


HOSTILE = "]]></failure><testcase name='x'/>&lt;\"\x00\x1b[31m\u202e\ud83d\ufffe\uffff\n::error::x"


def test_hostile_text_stays_text():
    condition = made(reason=HOSTILE, variant=HOSTILE, dimension=HOSTILE)
    raw = written(gate(condition, notes=(HOSTILE,)), name=HOSTILE)
    (suite,) = Xml.fromstring(raw)
    (case,) = suite.findall("testcase")
    (failure,) = case
    assert failure.text == failure.get("message")
    assert "]]></failure><testcase name='x'/>&lt;\"\\u0000\\u001b[31m\\u202e" in (
        failure.text or ""
    )
    assert not re.search(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]", raw)


@given(st.text(alphabet=st.characters(), max_size=60))
def test_any_text_makes_xml_that_can_be_read(text):
    (suite,) = Xml.fromstring(written(gate(made(reason=text, variant=text)), name=text))
    assert len(suite.findall("testcase")) == 1


def test_the_same_gate_gives_the_same_bytes():
    one = gate(*map(made, OUTCOMES), notes=("Mind this.",))
    assert written(one) == written(one)
    assert written(one).startswith(b"<?xml version='1.0' encoding='UTF-8'?>\n<testsuites>")


@cases
def test_the_headline_counts(outcomes, key, counts):
    names = [name.replace("_", " ") for name in outcomes.split()]
    say = words("ru")
    assert headline(gate(*map(made, names)), say) == say(key, **counts)


def test_workflow_commands_are_escaped_as_github_wants():
    reason = "100 % of it\nis, so: bad\r::set-env::y"
    lines = list(workflow_commands(gate(made(reason=reason), made(OUTCOMES[2])), "abc"))
    assert lines == [
        "::error title=evenhand gate%3A min_mean::100 %25 of it%0Ais, so: bad\\u000d::set-env::y",
        "::warning title=evenhand gate%3A min_mean::So it is.",
        f"::error title=evenhand gate::{words('en')('gate.failed', n=1, of=2)} (run abc)",
    ]
    assert all("\n" not in line for line in lines)
    (met,) = workflow_commands(gate(made("better")), "abc")
    assert met.startswith("::notice title=evenhand gate::")


def test_nothing_in_a_summary_is_read_as_markup():
    hostile = "a|b <img src=x> `c` [d](e)\n# f & g"
    text = markdown(gate(made(reason=hostile, variant=hostile)), "abc", hostile)
    table = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(table) == 2
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 7 for line in table)
    assert not re.search(r"(?<!\\)[<`\[]", text)
    assert not [line for line in text.splitlines()[1:] if line.startswith("#")]
