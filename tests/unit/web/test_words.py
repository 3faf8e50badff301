"""The words of the interface: the same keys in every language, and none that pages lack."""

from __future__ import annotations

import re
import tomllib
from importlib import resources
from typing import Any

import pytest

from evenhand.report.html.page import LANGUAGES, words

ROOM = resources.files("evenhand.web")
TABLES = {
    one: tomllib.loads((ROOM / "words" / f"{one}.toml").read_text(encoding="utf-8"))
    for one in LANGUAGES
}


def keys(table: dict[str, Any]) -> dict[str, set[str]]:
    """Every key with the places that its text has."""
    return {
        f"{name}.{key}": set(re.findall(r"{(\w+)}", text))
        for name, inner in table.items()
        for key, text in inner.items()
    }


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_the_same_keys_and_places(language: str) -> None:
    assert keys(TABLES[language]) == keys(TABLES["en"])


@pytest.mark.parametrize("language", [one for one in LANGUAGES if one != "en"])
def test_words_are_of_their_language(language: str) -> None:
    same = {
        key for key, text in TABLES[language]["view"].items() if text == TABLES["en"]["view"][key]
    }
    assert not same


def test_templates_say_only_what_there_are_words_for() -> None:
    every = words("en", ROOM / "words")  # type: ignore[arg-type]
    for file in (ROOM / "templates").iterdir():
        for key in re.findall(r"""say\(["']([\w.]+)["'][,)]""", file.read_text(encoding="utf-8")):
            assert every(key)


def test_no_template_marks_data_as_safe() -> None:
    for file in (ROOM / "templates").iterdir():
        source = file.read_text(encoding="utf-8")
        assert "|safe" not in source.replace(" ", "")
        assert "autoescape" not in source
        assert not re.search(r"\son\w+=", source), file.name
        assert not re.search(r"<script(?! src=)", source), file.name
        assert not re.search(r"\sstyle=", source), file.name
