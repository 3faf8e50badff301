"""Checks by code, as a suite writes them."""

from __future__ import annotations

import sys
from typing import get_args

import pytest

from evenhand.kinds.checks import Check, meets, require_valid
from evenhand.kinds.conditions import ConditionError
from evenhand.suite_file import CheckType
from tests.cases import cases
from tests.sentences import keys, refused

LONG = {"a...b": "a" * 4000 + "b", "[[[...": "[" * 100_000}
"""Outputs too long for a table."""


@cases
def test_a_check_is_met_or_not(check, output, is_met):
    checked = Check(name="n", **check)
    require_valid(checked)
    assert meets(checked, LONG.get(output, output), "Paris") is is_met


def test_every_type_has_a_case():
    rows = test_a_check_is_met_or_not.pytestmark[0].args[1]
    assert {check["type"] for check, *_ in rows} == {*get_args(CheckType)}


def test_without_a_reference_nothing_equals_it_or_not():
    assert meets(Check(name="n", type="equals"), "Paris") is None


@cases
def test_a_check_that_cannot_be_decided_is_refused(check, key):
    with refused(ConditionError, f"kinds.{key}"):
        require_valid(Check(name="n", **check))


def test_a_schema_of_references_that_double_is_refused():
    doubled = {f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(30)}
    schema = {"$defs": doubled | {"d30": {}}, "$ref": "#/$defs/d0"}
    with refused(ConditionError, "kinds.check_schema"):
        require_valid(Check(name="n", type="json_schema", value=schema))


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    with pytest.raises(ConditionError) as caught:
        require_valid(Check(name="n", type="json_schema", value={"title": "of no other test"}))
    assert keys(caught.value.args) == ["kinds.no_jsonschema"]
