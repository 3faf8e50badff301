"""Words in four languages: the same keys, the same places, and none that a page lacks."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from string import Formatter
from typing import Any, get_args

import pytest

import evenhand
import evenhand.words
from evenhand.data.layouts import JudgmentFile
from evenhand.data.layouts.benchmarks import arena_verdict, read_fastchat
from evenhand.data.layouts.tidy import ORDER_UNKNOWN
from evenhand.judges.embedded.judge import CAVEAT
from evenhand.judgment import FixCode, Reason
from evenhand.observation import Rule
from evenhand.results.report import FACETS
from evenhand.words import LANGUAGES, words

_GIVEN = re.compile(r'(?<!\w\[)"([a-z_]+)(?:"(?!:)|:\{)')
"""A string of a line about flags: no key of a dict, and only what is before a colon."""
OTHERS = [one for one in LANGUAGES if one != "en"]


def _texts(language: str) -> Iterator[tuple[str, list[str]]]:
    """The texts of a language's own file, but for notes, whose English is in the code."""
    file = resources.files("evenhand.words") / f"{language}.toml"
    for group, table in tomllib.loads(file.read_text(encoding="utf-8")).items():
        for key, value in table.items() if group != "note" else ():
            yield f"{group}.{key}", value if isinstance(value, list) else [value]


def _places(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


@pytest.mark.parametrize("language", OTHERS)
def test_every_language_has_the_same_keys_in_the_same_order(language: str) -> None:
    assert [key for key, _ in _texts(language)] == [key for key, _ in _texts("en")]


@pytest.mark.parametrize("language", OTHERS)
def test_every_language_fills_the_same_places(language: str) -> None:
    english = dict(_texts("en"))
    for key, texts in _texts(language):
        assert {frozenset(_places(one)) for one in texts} == {
            frozenset(_places(one)) for one in english[key]
        }, key


@pytest.mark.parametrize("language", OTHERS)
def test_nothing_long_is_left_in_english(language: str) -> None:
    english = dict(_texts("en"))
    same = [key for key, texts in _texts(language) if texts == english[key]]
    assert all(len(english[key][0]) <= 2 for key in same), same


def test_every_code_has_its_words() -> None:
    texts = words("en").texts
    assert set(texts["reason"]) == set(get_args(Reason))
    assert set(texts["fix"]) == set(get_args(FixCode))
    assert set(FACETS) <= set(texts["units"])


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_to_be_known_of_the_embedded_judge_has_its_words(language: str) -> None:
    """It is what a report without a key begins with."""
    said = words(language).gloss("caveat", CAVEAT)
    assert (said == CAVEAT) is (language == "en")


def test_every_flag_that_code_gives_has_its_words(tmp_path: Path) -> None:
    votes = tmp_path / "votes.jsonl"
    vote = {"question_id": 1, "model_a": "a", "model_b": "b", "winner": "tie (inconsistent)"}
    votes.write_text(json.dumps(vote | {"judge": "j", "turn": 1}) + "\n")
    given = {ORDER_UNKNOWN, arena_verdict("A>>B")[1]}
    given |= {one.flag for one in read_fastchat(JudgmentFile(path=votes)) if one.flag}
    rooms = [Path(evenhand.__file__).parent / one for one in ("kinds", "runs", "engine")]
    for path in (path for room in rooms for path in room.rglob("*.py")):
        lines = path.read_text(encoding="utf-8").splitlines()
        given |= {name for one in lines if "flags" in one for name in _GIVEN.findall(one)}
    assert {"strong", "inconsistent", "scores_missing", "masked", "not_validated"} <= given
    assert given <= set(words("en").texts["flag"])


def test_every_rule_and_every_way_to_settle_has_its_words() -> None:
    texts = words("en").texts
    assert set(texts["half"]) == set(texts["rule"]) == set(get_args(Rule))
    assert set(texts["settled"]) == {"stable", "resolved", "uncertain", "one_order"}


@pytest.mark.parametrize(
    ("n", "said"),
    [
        (1, "1 вопрос"),
        (2, "2 вопроса"),
        (5, "5 вопросов"),
        (11, "11 вопросов"),
        (21, "21 вопрос"),
        (22, "22 вопроса"),
        (112, "112 вопросов"),
        (1000, "1\xa0000 вопросов"),
    ],
)
def test_russian_counts_as_russian_does(n: int, said: str) -> None:
    assert words("ru").counted("question", n) == said


@pytest.mark.parametrize("language", LANGUAGES)
def test_numbers_are_written_in_the_way_of_the_language(language: str) -> None:
    say = words(language)
    comma = language == "ru"
    assert say.signed(0.214) == ("+0,21" if comma else "+0.21")
    assert say.signed(-0.5, 1) == ("\u22120,5" if comma else "\u22120.5")
    assert say.interval(0.08, 0.34) == ("[0,08;\u00a00,34]" if comma else "[0.08,\u00a00.34]")
    assert say.number(None) == "–" and say.interval(None, None) == ""
    assert say.interval(None, 2.0, 0) == ("[–;\u00a02]" if comma else "[–,\u00a02]")
    assert re.fullmatch(r"62\u00a0?% \[50[,;]\u00a075\]", say.share(0.62, 0.5, 0.75))
    assert say.share(None, None, None) == "–" and say.short(3.0) == "3"


def test_a_missing_translation_falls_back_to_english(monkeypatch: pytest.MonkeyPatch) -> None:
    tables: dict[str, dict[str, Any]] = {
        "en": {"unit": {"label": "a {thing}", "other": "other"}},
        "ja": {"unit": {"other": "ほか"}},
    }
    tags = {"tags": {"A": "a"}}
    monkeypatch.setattr(evenhand.words, "_read", lambda folder, name: {**tables[name], **tags})
    words.cache_clear()
    say = words("ja")
    words.cache_clear()
    assert (say("unit.other"), say("unit.label", thing="{thing}")) == ("ほか", "a {thing}")
    assert say.parts("unit.label", thing="x") == [("a ", ""), ("x", "thing")]


@pytest.mark.parametrize("package", ["evenhand.web", "evenhand.report.html"])
def test_templates_say_only_what_there_are_words_for(package: str) -> None:
    for file in (resources.files(package) / "templates").iterdir():
        for key in re.findall(r"""say\(["']([\w.]+)["'][,)]""", file.read_text(encoding="utf-8")):
            assert words("en")(key)
