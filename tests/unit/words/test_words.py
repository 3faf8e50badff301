"""Words in four languages: the same keys, the same places, and every sentence told once with odd
values."""

from __future__ import annotations

import ast
import copy
import json
import pickle
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import resources
from pathlib import Path
from string import Formatter
from typing import Any, get_args

import numpy as np
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
from evenhand.words import LANGUAGES, Code, Names, Place, Places, Sentence, words

PACKAGE = Path(evenhand.__file__).parent
OTHERS = [language for language in LANGUAGES if language != "en"]
FILES = sorted(path.name for path in (PACKAGE / "words" / "en").glob("*.toml"))
NUMBERS = (0, 1, 2, 5, 21, 1_000_000)
NAMES = ("v2", "Ответ «а»", "通义千问", "さくら\u202e|{x}")
SPECS = {
    "percent",
    "signed",
    "money",
    "p",
    *(f"{sign}.{digits}f" for digits in range(7) for sign in ("", "+")),
}
_GIVEN = re.compile(r'(?<!\w\[)"([a-z_]+)(?:"(?!:)|:\{)')
"""A string of a line about flags: no key of a dict, and only what is before a colon."""
_ENGLISH = re.compile(r"(?:\b[a-z']{2,}\b ){3,}\b[a-z]{2,}")
"""Four plain words in a row."""
_CODE = re.compile(r"evenhand [a-z]+(?: -?[\w.-]+)*|`[^`]*`|pip install \S+")
"""Words that are typed as they stand, whatever the language."""


@cache
def texts_of(language: str, file: str) -> dict[str, tuple[str, ...]]:
    path = resources.files("evenhand.words") / language / file
    return dict(_flat(tomllib.loads(path.read_text(encoding="utf-8"))))


def _flat(table: dict[str, Any], before: str = "") -> Iterator[tuple[str, tuple[str, ...]]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{key}.")
        else:
            yield f"{before}{key}", tuple(value) if isinstance(value, list) else (value,)


def places(texts: tuple[str, ...]) -> set[str]:
    return {name for text in texts for _, name, _, _ in Formatter().parse(text) if name}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("language", OTHERS)
def test_every_language_has_the_same_keys_and_fills_the_same_places(
    language: str, file: str
) -> None:
    english, other = texts_of("en", file), texts_of(language, file)
    assert list(other) == list(english)
    for key, texts in other.items():
        assert places(texts) == places(english[key]), key
        assert not _ENGLISH.search(_CODE.sub("", " ".join(texts))), f"{key} is left in English"


def _told(language: str, file: str, key: str, text: str, n: int, name: str) -> str:
    say, room = words(language), file.removesuffix(".toml")
    values: dict[str, Any] = {}
    for _, place, spec, _ in Formatter().parse(text):
        if place:
            assert not spec or spec in SPECS or say.is_counted(spec) or say.glosses(spec), key
            is_number = spec in SPECS or say.is_counted(spec or "-") or place == "n"
            values[place] = n if is_number else name
    return say.tell(key if room == "labels" else f"{room}.{key}", values)


@pytest.mark.parametrize("file", [name for name in FILES if name != "labels.toml"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_message_is_told_with_odd_values(language: str, file: str) -> None:
    for key, texts in texts_of(language, file).items():
        for text in texts:
            for number, n in enumerate(NUMBERS):
                told = _told(language, file, key, text, n, NAMES[number % len(NAMES)])
                assert "\u202e" not in told and "  " not in told.strip().replace("\n  ", "\n"), key


def _messages_in_code() -> Iterator[tuple[str, str, set[str], bool]]:
    """Each key of a message in the code, with its place, its values, and whether all are named."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Sentence":
                values = {keyword.arg for keyword in node.keywords if keyword.arg}
                is_whole = all(keyword.arg for keyword in node.keywords)
                for key in _keys(node.args[0]):
                    yield key, f"{path.name}:{node.lineno}", values, is_whole


def _keys(node: ast.expr) -> list[str]:
    """Return the keys that an expression can be; of one that is put together, its beginning and an
    asterisk."""
    match node:
        case ast.Constant(value=str(key)):
            return [key]
        case ast.IfExp(body=body, orelse=orelse):
            return _keys(body) + _keys(orelse)
        case ast.JoinedStr(values=[ast.Constant(value=str(start)), *_]):
            return [f"{start}*"]
        case _:
            return []


def test_every_message_of_the_code_has_its_sentence_and_values() -> None:
    english = {
        f"{file.removesuffix('.toml')}.{key}": texts
        for file in FILES
        for key, texts in texts_of("en", file).items()
    }
    found = list(_messages_in_code())
    assert len(found) > 20
    for key, where, values, is_whole in found:
        if key.endswith("*"):
            assert any(name.startswith(key[:-1]) for name in english), f"{where}: {key}"
            continue
        assert key in english, f"{where}: {key}"
        advice = english.get(f"{key}_advice", ())
        assert not is_whole or places(english[key]) | places(advice) <= values, f"{where}: {key}"


def test_a_message_is_its_english_sentence_for_everybody_else() -> None:
    message = Sentence("notes.no_baseline", variant="{x}\u202e")
    assert json.loads(json.dumps([message])) == [str(message)]
    again: Any = pickle.loads(pickle.dumps(copy.deepcopy(message)))
    assert (again, again.key, again.values) == (message, message.key, message.values)
    assert words("ru").message("Anything else.") == "Anything else."
    assert "«{x}\\u202e»" in words("ru").message(message), "a value is not filled again"


def test_values_are_written_in_the_way_of_the_language() -> None:
    message = Sentence("notes.missing", variant="v2", share=0.125, base=1.0)
    assert "12\xa0%" in words("ru").message(message) and "12%" in words("ja").message(message)
    where = Places([Place("v2", ["C1", "overall"])], 3)
    message = Sentence("notes.fragile_better", where=where, low=-0.5, high=0.25)
    assert "«v2» (C1, в целом) и ещё 3" in words("ru").message(message)
    assert "от \u22120,50 до +0,25" in words("ru").message(message)
    assert "-0,50" in words("ru", plain=True).message(message)
    assert "“v2”（C1、总体）" in words("zh").message(message)
    many = Sentence("stats.there_are", names=Names(["a", "б"], 2))
    assert "«a», «б» и ещё 2" in words("ru").message(many)
    assert str(Sentence("stats.did_you_mean", near=Code("--by"))).count("--by") == 1


def test_a_message_hides_passwords_in_every_language() -> None:
    message = Sentence("stats.no_such_field", name="postgresql://me:secret@host/db")
    for language in LANGUAGES:
        assert "secret" not in words(language).message(message)


def test_a_terminal_has_no_characters_of_pages_and_names_as_they_are():
    say = words("en", plain=True)
    assert (say.number(None), say.signed(-0.5), say.interval(-1, None, 0)) == (
        "-",
        "-0.50",
        "[-1,\xa0-]",
    )
    told = say.message(Sentence("notes.no_baseline", variant="GPT–4 → 5"))
    assert "GPT–4 → 5" in told


def test_numbers_of_numpy_have_their_noun():
    message = Sentence("notes.trust_failed", n=np.int64(5))
    assert "5 judgments" in message and message.values == {"n": 5}


@pytest.mark.parametrize("key", ["nothing", "cli.nothing", "notes.conflicts.x", "outcome", "list"])
def test_what_is_no_sentence_is_not_had(key):
    assert not words("ja").has(key)


@pytest.mark.parametrize(
    ("dollars", "text"),
    [(None, "–"), (0, "$0"), (0.0006416, "less than $0.01"), (0.07, "$0.07"), (12.7, "$13")],
)
def test_money_is_dollars_and_cents(dollars: float | None, text: str) -> None:
    assert words("en").money(dollars) == text


def test_every_code_has_its_words() -> None:
    say = words("en")
    assert set(say.glosses("reason")) == set(get_args(Reason))
    assert set(say.glosses("fix")) == set(get_args(FixCode))
    assert set(FACETS) <= set(say.glosses("units"))


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
    rooms = [PACKAGE / room for room in ("kinds", "runs", "engine")]
    for path in (path for room in rooms for path in room.rglob("*.py")):
        lines = path.read_text(encoding="utf-8").splitlines()
        given |= {name for one in lines if "flags" in one for name in _GIVEN.findall(one)}
    assert {"strong", "inconsistent", "scores_missing", "masked", "not_validated"} <= given
    assert given <= set(words("en").glosses("flag"))


def test_every_rule_and_every_way_to_settle_has_its_words() -> None:
    say = words("en")
    assert set(say.glosses("half")) == set(say.glosses("rule")) == set(get_args(Rule))
    assert set(say.glosses("settled")) == {"stable", "resolved", "uncertain", "one_order"}


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
    english = {"counted": {}, "unit": {"label": "a {thing}", "other": "other"}}
    tables = {"en": english, "ja": evenhand.words._overlay(english, {"unit": {"other": "ほか"}})}
    monkeypatch.setattr(evenhand.words, "_table", lambda language, file: tables[language])
    say = words("ja")
    assert (say("unit.other"), say("unit.label", thing="{thing}")) == ("ほか", "a {thing}")
    assert say.parts("unit.label", thing="x") == [("a ", ""), ("x", "thing")]
    assert say.gloss("unit", "none") == "none" and not say.has("unit.none")
