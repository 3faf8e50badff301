"""Faults that `lint` finds in a protocol, one at a time."""

from __future__ import annotations

import pytest

from evenhand.errors import UsageError
from evenhand.files.protocols import Finding, lint, protocol_texts
from evenhand.kinds import KINDS
from tests.cases import cases
from tests.sentences import refused


def copied(folder, kind):
    """A built-in protocol as the user's own."""
    for name, text in protocol_texts(kind).items():
        path = folder / "mine" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / "mine"


def edit(root, file, old, new):
    text = (root / file).read_text(encoding="utf-8")
    assert old in text
    (root / file).write_text(text.replace(old, new), encoding="utf-8")


def found(folder):
    return [
        f"{one.file}: {one.message.key} {list(one.message.values.values())}"
        for one in lint("mine", folder)
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_built_in_is_clean_and_so_is_a_copy(tmp_path, kind):
    assert lint(kind) == []
    copied(tmp_path, kind)
    assert found(tmp_path) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_prompt_that_is_missing_though_other_parts_speak_its_language(tmp_path, kind):
    (copied(tmp_path, kind) / "prompts" / "ja.md").unlink()
    said = found(tmp_path)
    assert said
    assert {one.partition(":")[0] for one in said} == {"prompts/ja.md"}


def test_a_language_in_which_a_table_says_nothing(tmp_path):
    root = copied(tmp_path, "pairwise")
    text = (root / "prompts" / "en.md").read_text(encoding="utf-8")
    (root / "prompts" / "de.md").write_text(text, encoding="utf-8")
    said = found(tmp_path)
    about = "protocol.toml: files.entry_without_text ['criteria'"
    assert [one for one in said if about in one] == [f"{about}, 'C{n}', 'de']" for n in range(1, 6)]


def test_no_prompt_at_all(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "protocol.toml").write_text('kind = "rubric"\n')
    assert found(tmp_path) == ["prompts: files.no_prompts []"]


@cases
def test_each_fault_is_found_with_its_file(tmp_path, kind, change, said):
    edit(copied(tmp_path, kind), *change)
    assert [one for one in found(tmp_path) if one.startswith(said)]


def test_a_rubric_beside_it_that_cannot_be_read(tmp_path):
    root = copied(tmp_path, "rubric")
    (root / "rubric.toml").write_text("[[dimensions]]\n")
    (said,) = found(tmp_path)
    assert said == "rubric.toml:1: kinds.empty_list ['bands']"


def test_there_is_nothing_to_lint(tmp_path):
    with refused(UsageError, "files.no_protocol"):
        lint("mine", tmp_path)
    (tmp_path / "mine").mkdir()
    with refused(UsageError, "kinds.no_protocol_file"):
        lint("mine", tmp_path)
    assert Finding("a", "b")._asdict() == {"file": "a", "message": "b"}
