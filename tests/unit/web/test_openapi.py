"""The API keeps to its OpenAPI description, whatever it is asked."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.unit.web.serving import TOKEN, Site, served
from tests.waiting import PATIENCE

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


def test_every_answer_is_as_described(filled: Path, tmp_path: Path) -> None:
    store = Path(shutil.copy(filled, tmp_path))  # it is settled
    with served(store) as site:
        address = f"{site.url}/api/openapi.json"
        schema = schemathesis.openapi.from_url(address, wait_for_schema=PATIENCE)
        operations = [operation.ok() for operation in schema.get_all_operations()]
        assert len(operations) >= 12
        for operation in operations:
            hold_to(operation)


def hold_to(operation: Any) -> None:
    """Ask for anything that the description allows, and for much that it does not."""
    positive, negative = schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE
    asked = operation.as_strategy(generation_mode=positive)
    if any(True for _ in operation.iter_parameters()):
        asked |= operation.as_strategy(generation_mode=negative)

    @given(asked)
    @settings(max_examples=40, suppress_health_check=list(HealthCheck))
    def check(case: Any) -> None:
        # A run that is there, as often as not, so that what lies behind it is reached.
        if "run" in case.path_parameters and len(str(case.path_parameters["run"])) % 2:
            case.path_parameters["run"] = "latest"
        answer = case.call(headers={"x-evenhand-token": TOKEN}, timeout=PATIENCE)
        case.validate_response(answer, checks=CHECKS)
        if answer.status_code >= 400:
            assert answer.json().keys() == {"error", "advice"}

    check()


def test_the_description_names_every_call(site: Site) -> None:
    paths = site.json("/api/openapi.json")["paths"]
    posts = [path for path, methods in paths.items() if "post" in methods]
    assert posts == ["/api/runs/{run}/settle"]
    for path, methods in paths.items():
        for one in methods.values():
            assert one["description"], path
            assert "401" in one["responses"] or "post" not in methods


def test_the_description_names_the_token_and_what_is_refused(site: Site) -> None:
    told = site.json("/api/openapi.json")
    [(name, scheme)] = told["components"]["securitySchemes"].items()
    assert (scheme["type"], scheme["in"], scheme["name"]) == (
        "apiKey",
        "header",
        "x-evenhand-token",
    )
    for path, methods in told["paths"].items():
        for method, one in methods.items():
            assert one.get("security", []) == ([{name: []}] if method == "post" else []), path
            assert {"401", "403", "405", "413"} <= one["responses"].keys()


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/openapi.json", "/api/docs"])
def test_no_page_is_made_by_scripts_from_elsewhere(site: Site, path: str) -> None:
    assert site.get(path).status_code == 404
