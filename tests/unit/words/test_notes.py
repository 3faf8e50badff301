"""Notes beside figures: every one is said in every language, with the same values in its places."""

from __future__ import annotations

import ast
import copy
import json
import re
import tomllib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

import evenhand
from evenhand.notes import Note, Place, Places, Signed
from evenhand.words import LANGUAGES, words

OTHERS = [language for language in LANGUAGES if language != "en"]
OUTCOMES = ("better", "worse")
ENGLISH = re.compile(r"(?:\b[A-Za-z']{2,}\b[ ,.:;]+){2,}\b[A-Za-z]{2,}")
"""Three words in a row."""
TERMS = ("evenhand compare --pair-by", "evenhand leaderboard", "--missing", "gate")
"""What is typed as it stands in any language."""


def sentences(language: str) -> dict[str, str]:
    file = resources.files("evenhand.words") / f"{language}.toml"
    notes: dict[str, str] = tomllib.loads(file.read_text(encoding="utf-8"))["note"]
    return notes


def places(sentence: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(sentence) if name}


def _notes_in_code() -> Iterator[tuple[str, set[str]]]:
    """Each key that code makes a note of, with the names of its values."""
    room = Path(evenhand.__file__).parent
    for path in [*room.glob("stats/**/*.py"), *room.glob("results/*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Note":
                values = {keyword.arg for keyword in node.keywords if keyword.arg}
                for key in _keys(node.args[1]):
                    yield key, values


def _keys(node: ast.expr) -> list[str]:
    match node:
        case ast.Constant(value=str(key)):
            return [key]
        case ast.IfExp(body=body, orelse=orelse):
            return _keys(body) + _keys(orelse)
        case ast.JoinedStr(values=[ast.Constant(value=str(start)), *_]) if start != "because_":
            return [f"{start}{outcome}" for outcome in OUTCOMES]
        case ast.JoinedStr():
            from evenhand.stats.caveats import _REASONS

            return [f"because_{reason}" for reason in _REASONS]
        case _:
            raise AssertionError(ast.dump(node))


IN_CODE = dict(_notes_in_code())
FORMS = {
    "more": {"n"},
    "quote": {"name"},
    "place": {"variant", "dimensions"},
    "comma": set[str](),
    "semicolon": set[str](),
}
"""How names stand in a note."""


@pytest.mark.parametrize("language", OTHERS)
def test_every_note_of_the_code_is_said_and_no_other(language: str) -> None:
    assert set(sentences(language)) - set(FORMS) == set(IN_CODE)


@pytest.mark.parametrize("language", OTHERS)
def test_a_note_fills_no_place_that_it_has_no_value_for(language: str) -> None:
    first = sentences(OTHERS[0])
    for key, sentence in sentences(language).items():
        assert places(sentence) == places(first[key]), key
        assert places(sentence) <= (IN_CODE | FORMS)[key], key


@pytest.mark.parametrize("language", OTHERS)
def test_no_note_is_left_in_english(language: str) -> None:
    for key, sentence in sentences(language).items():
        assert not ENGLISH.search(re.sub("|".join(TERMS), "", sentence)), key


def test_values_are_written_in_the_way_of_the_language() -> None:
    note = Note("x", "missing", variant="v2", share=12.5, base=1200.0)
    assert "у {share} %".format(share="12,5") in words("ru").note(note)
    where = Places([Place("v2", ["C1", "overall"])], 3)
    note = Note("x", "fragile_better", where=where, low=Signed(-0.5), high=Signed(0.25))
    said = words("ru").note(note)
    assert "«v2» (C1, в целом) и ещё 3" in said and "от −0,5 до +0,25" in said
    assert "“v2”（C1、总体）" in words("zh").note(note)


def test_a_note_is_its_english_sentence_for_everybody_else() -> None:
    note = Note("No baseline was named.", "no_baseline", variant="{x}")
    assert json.dumps([note]) == '["No baseline was named."]' and words("en").note(note) == note
    again: Any = copy.deepcopy(note)
    assert (again, again.key, again.values) == (note, note.key, note.values)
    assert words("ru").note("Anything else.") == "Anything else."
    assert "«{x}»" in words("ru").note(note), "what a value holds is not filled again"
