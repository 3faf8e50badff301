"""What `evenhand demo` says about the models it judges with."""

from __future__ import annotations

import pytest

from evenhand.cli.common import resume_advice
from evenhand.cli.demo import SMALL, remark
from evenhand.judges.embedded import models
from evenhand.kinds import KINDS
from evenhand.runs.stores import MEMORY


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_measured_is_said_of_the_model_it_was_measured_with(kind: str) -> None:
    large, small = remark(kind, models.DEFAULT), remark(kind, SMALL)
    assert "no better than chance" in small and "no better than chance" in models.named(SMALL).use
    assert large != small and not any(letter.isdigit() for letter in small)
    assert "chance" not in large


def test_only_a_store_that_outlives_the_command_can_be_continued() -> None:
    assert resume_advice("sqlite:demo.db").startswith("To continue: ")
    assert "continue" not in resume_advice(MEMORY)
