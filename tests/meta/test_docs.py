"""The documentation names everything there is, its links lead somewhere, and it is fit to read."""

import re
from pathlib import Path
from runpy import run_path

import pytest

from evenhand.suite_file import (
    CheckSpec,
    CompareSpec,
    GateSpec,
    JudgeSpec,
    Limits,
    PassSpec,
    Settings,
    StopSpec,
    SuiteFile,
    keys_of,
)

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md")])
USERS = [page for page in PAGES if "internals" not in page.parts and page.stem != "CONTRIBUTING"]
"""The pages for users: no page of how Evenhand is built or tested."""
LONGEST = 120
HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)")
CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)

each_page = pytest.mark.parametrize(
    "page", PAGES, ids=lambda page: str(page.relative_to(ROOT)) if page in PAGES else None
)


def test_the_page_of_commands_is_their_help():
    script = run_path(str(ROOT / "scripts" / "commands_page.py"))
    page = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
    assert page == script["make_page"](), "run python scripts/commands_page.py"


PARTS = [
    SuiteFile,
    JudgeSpec,
    Limits,
    Settings,
    CompareSpec,
    StopSpec,
    GateSpec,
    PassSpec,
    CheckSpec,
]


@pytest.mark.parametrize("part", PARTS)
def test_every_key_of_a_suite_is_documented(part):
    page = (ROOT / "docs/suite.md").read_text(encoding="utf-8")
    missing = [key for key in keys_of(part) if f"`{key}`" not in page]
    assert not missing


@each_page
def test_links_between_pages_lead_somewhere(page):
    for target, anchor in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        path = page.parent / target if target else page
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), f"{target}#{anchor}"


def anchors(page):
    """Return the anchors of a page's headings, as they are made where repositories are shown."""
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    return {
        re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in HEADING.findall(text)
    }


@each_page
def test_no_line_is_too_long_to_read(page):
    long = [
        line
        for line in page.read_text(encoding="utf-8").splitlines()
        if len(line) > LONGEST and not line.startswith("|") and "://" not in line
    ]
    assert not long


@each_page
def test_no_page_names_single_tests(page):
    assert not re.search(r"test_\w+\.py::|::test_", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", USERS, ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_for_users_names_files_of_tests(page):
    assert not re.search(r"\btests[/.]\w|--long", page.read_text(encoding="utf-8"))


def test_the_index_leads_to_every_page():
    docs = ROOT / "docs"
    listed = {target for target, _ in LINK.findall((docs / "README.md").read_text("utf-8"))}
    pages = {str(page.relative_to(docs)) for page in docs.rglob("*.md")}
    assert pages - {"README.md"} <= listed
