"""Faults that `lint` finds in a protocol, one at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.errors import UsageError
from evenhand.files.protocols import Finding, lint, protocol_texts
from evenhand.kinds import KINDS


def copied(folder: Path, kind: str) -> Path:
    """A built-in protocol as the user's own."""
    for name, text in protocol_texts(kind).items():
        path = folder / "mine" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / "mine"


def change(root: Path, file: str, old: str, new: str) -> None:
    text = (root / file).read_text(encoding="utf-8")
    assert old in text
    (root / file).write_text(text.replace(old, new), encoding="utf-8")


def found(folder: Path) -> list[str]:
    return [f"{one.file}: {one.message}" for one in lint("mine", folder)]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_built_in_is_clean_and_so_is_a_copy(tmp_path: Path, kind: str) -> None:
    assert lint(kind) == []
    copied(tmp_path, kind)
    assert found(tmp_path) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_prompt_that_is_missing_though_other_parts_speak_its_language(
    tmp_path: Path, kind: str
) -> None:
    (copied(tmp_path, kind) / "prompts" / "ja.md").unlink()
    said = found(tmp_path)
    assert said
    assert {one.partition(":")[0] for one in said} == {"prompts/ja.md"}


def test_a_language_in_which_a_table_says_nothing(tmp_path: Path) -> None:
    root = copied(tmp_path, "pairwise")
    text = (root / "prompts" / "en.md").read_text(encoding="utf-8")
    (root / "prompts" / "de.md").write_text(text, encoding="utf-8")
    said = found(tmp_path)
    assert "protocol.toml: [[criteria]] C1 has no text in de" in said
    assert len([one for one in said if "no text in de" in one]) == 5


def test_no_prompt_at_all(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "protocol.toml").write_text('kind = "rubric"\n')
    assert found(tmp_path) == ["prompts: there is no prompt; write prompts/<language>.md"]


FAULTS = {
    "a unit that is not shown": (
        "pairwise",
        ("prompts/ru.md", "{{candidate_2}}", ""),
        "prompts/ru.md: {{candidate_2}} is missing: the judge would not see it",
    ),
    "unequal placeholders": (
        "weighted",
        ("prompts/zh.md", "{{facts}}", ""),
        "prompts/zh.md: {{facts}} is missing here and used in another language",
    ),
    "an unknown placeholder": (
        "rubric",
        ("prompts/en.md", "{{extras}}", "{{extra}}"),
        "prompts/en.md: {{extra}} is no placeholder of the kind rubric",
    ),
    "no list of problems": (
        "rubric",
        ("prompts/ja.md", "{{problems}}", ""),
        "prompts/ja.md: {{problems}} is missing in the section again",
    ),
    "no section": (
        "rubric",
        ("prompts/ja.md", "<!-- again -->", ""),
        "prompts/ja.md: the prompt has no section <!-- again -->",
    ),
    "a priority that names no criterion": (
        "pairwise",
        ("protocol.toml", '["C1", "C2", "C5"]', '["C1", "C6"]'),
        "protocol.toml: priority names 'C6', which is no criterion; known: C1, C2, C3, C4, C5",
    ),
    "rounds": (
        "pairwise",
        ("protocol.toml", "max_rounds = 3", "max_rounds = 0"),
        "protocol.toml: max_rounds must be a number from 1 to",
    ),
    "weights off 100": (
        "weighted",
        ("protocol.toml", "logic_and_fact = 60", "logic_and_fact = 61"),
        "protocol.toml: the weights of type fact add up to 101, not to 100",
    ),
    "a dimension without a weight": (
        "weighted",
        ("protocol.toml", "helpfulness_and_creativity = 10", "helpfulness = 10"),
        "protocol.toml: the weights of type fact must name each of",
    ),
    "a text that is missing": (
        "weighted",
        ("protocol.toml", 'ja = "事実検証型。', 'xx = "事実検証型。'),
        "protocol.toml: [[types]] fact has no text in ja",
    ),
    "words that are no TOML": (
        "pairwise",
        ("words/en.toml", "[problems]", "[problems"),
        "words/en.toml: not TOML",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found_with_its_file(tmp_path: Path, name: str) -> None:
    kind, (file, old, new), said = FAULTS[name]
    change(copied(tmp_path, kind), file, old, new)
    assert [one for one in found(tmp_path) if one.startswith(said)]


def test_a_rubric_beside_it_that_cannot_be_read(tmp_path: Path) -> None:
    root = copied(tmp_path, "rubric")
    (root / "rubric.toml").write_text("[[dimensions]]\n")
    (said,) = found(tmp_path)
    assert said.startswith("rubric.toml: ")


def test_there_is_nothing_to_lint(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no protocol is called"):
        lint("mine", tmp_path)
    (tmp_path / "mine").mkdir()
    with pytest.raises(UsageError, match=r"mine/protocol\.toml: the folder has no protocol\.toml"):
        lint("mine", tmp_path)
    assert Finding("a", "b")._asdict() == {"file": "a", "message": "b"}
