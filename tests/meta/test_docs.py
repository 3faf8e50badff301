"""The documentation names everything there is, and its links lead somewhere."""

import re
from pathlib import Path

import pytest

from evenhand.cli.main import COMMANDS, cli
from evenhand.suite_file import (
    CompareSpec,
    GateSpec,
    JudgeSpec,
    Limits,
    Settings,
    StopSpec,
    SuiteFile,
)

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_is_documented(name: str) -> None:
    page = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
    assert f"\n## `evenhand {name}" in page
    command = cli.get_command(None, name)  # type: ignore[arg-type]
    assert command is not None and command.help
    for parameter in command.params:
        for option in parameter.opts:
            assert not option.startswith("--") or f"`{option}" in page, option


PARTS = [SuiteFile, JudgeSpec, Limits, Settings, CompareSpec, StopSpec, GateSpec]


@pytest.mark.parametrize("part", PARTS)
def test_every_key_of_a_suite_is_documented(part: type[SuiteFile]) -> None:
    page = (ROOT / "docs/suite.md").read_text(encoding="utf-8")
    missing = [key for key in part.model_fields if f"`{key}`" not in page]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target
