"""Every shipped text calls a thing by the one word that `docs/internals/terms.md` has for it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from evenhand.kinds.protocol import LANGUAGES
from evenhand.words import words

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "evenhand"
PAGE = (ROOT / "docs" / "internals" / "terms.md").read_text(encoding="utf-8")
HIDDEN = re.compile(r"[\u00a0\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\r\t]")
LABELS = {
    "judge": ("chart.judge", "units.judges", "view.judge", "role.assistant"),
    "answer": ("unit.answer",),
    "candidate": ("chart.candidate", "units.candidates", "view.candidate"),
    "topic": ("unit.topic",),
    "task": ("unit.task",),
    "type": ("unit.type",),
    "reference": ("unit.reference",),
    "rubric": ("method.rubric", "view.rubric"),
    "dimension": ("unit.dimension", "chart.dimension"),
    "band": ("method.band",),
    "score": ("unit.score", "chart.score"),
    "criterion": ("unit.criterion", "chart.criterion"),
    "mark": ("unit.mark",),
    "rationale": ("unit.rationale",),
    "explanation": ("unit.explanation",),
    "tie": ("verdict.tie", "mark.tie"),
    "critical": ("verdict.critical",),
    "tag": ("view.tag",),
    "flag": ("units.flags", "view.flag"),
    "confidence": ("unit.confidence", "units.confidence", "view.confidence"),
    "verdict": ("units.verdicts",),
    "undecided": ("outcome.not enough evidence",),
    "unit": ("view.unit",),
    "variant": ("chart.variant", "units.variant"),
    "rating": ("chart.rating",),
}
"""Where a label is the name of a thing and nothing else."""
SPOKEN = {
    "pairwise": ("judge", "candidate", "criterion"),
    "rubric": ("judge", "answer", "rubric", "dimension", "band", "score"),
    "checklist": ("judge", "answer", "criterion"),
    "weighted": ("judge", "answer", "task", "user", "dimension", "score"),
}
"""What a prompt of each kind cannot do without."""
STEMS = {"ru": {"критерии оценки": "критери", "критерий": "критери", "уровень": "уровн"}}
"""The part of a word that none of its endings changes."""

each_language = pytest.mark.parametrize("language", LANGUAGES)


def _table(title):
    """The rows of one table of the page: what each language says, by the thing."""
    section = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    head, _, *rows = (
        [cell.strip().replace("\\*", "*") for cell in line.strip("|").split("|")] for line in lines
    )
    return {row[0].partition(":")[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}


WORDS, NOT_THESE = _table("Words"), _table("Not these")
KEPT = re.findall(r"`([^`]+)`", PAGE.partition("\n## Kept as they stand\n")[2])


class Shipped(NamedTuple):
    """A text as it ships, and the file it stands in."""

    file: str
    text: str


def _shipped(language):
    """Prompts, words and labels of one language, and the rubrics of its examples."""
    files = [
        *SOURCE.glob(f"kinds/builtin/*/prompts/**/{language}.md"),
        *SOURCE.glob(f"kinds/builtin/*/words/{language}.toml"),
        *SOURCE.glob(f"**/common/{language}.toml"),
        *SOURCE.glob(f"words/{language}/*.toml"),
        *SOURCE.glob(f"examples/*/{language}/*.md"),
        *SOURCE.glob(f"examples/*/{language}/*.json"),
        *SOURCE.glob(f"examples/*/{language}/*.toml"),
    ]
    for path in sorted(files):
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".toml":
            text = "\n".join(_values(tomllib.loads(text)))
        yield Shipped(str(path.relative_to(SOURCE)), text)
    for path in sorted(SOURCE.glob("kinds/builtin/*/protocol.toml")):
        told = re.findall(rf'^{language} = "(.*)"$', path.read_text("utf-8"), flags=re.MULTILINE)
        yield Shipped(str(path.relative_to(SOURCE)), "\n".join(told))


def _values(value):
    if isinstance(value, dict):
        for inner in value.values():
            yield from _values(inner)
    elif isinstance(value, list):
        yield from map(str, value)
    else:
        yield str(value)


def _prose(text):
    """A text without what is never translated: keys in backticks, places, and what is kept."""
    for name in KEPT:
        text = text.replace(name, "")
    return re.sub(r"`[^`\n]*`|\{+\w+\}+|<!--.*?-->", " ", text)


def _pattern(word, language):
    """A word of the page, its endings where it has a star; whole words where there are any."""
    stem = re.escape(word).replace(r"\*", r"\w*")
    return re.compile(stem if language in ("zh", "ja") else rf"\b{stem}\b", re.IGNORECASE)


@each_language
def test_no_text_uses_another_word_for_a_thing(language):
    texts = list(_shipped(language))
    assert len(texts) > 15
    faults = [
        f"{file}: {found[0]!r} for {thing}; docs/internals/terms.md says {WORDS[thing][language]!r}"
        for thing, spellings in NOT_THESE.items()
        for word in filter(None, spellings[language].split(", "))
        for file, text in texts
        for found in _pattern(word, language).finditer(_prose(text))
    ]
    assert not faults, "\n".join(faults)


@each_language
def test_no_word_of_the_page_is_among_those_not_to_be_used(language):
    for spellings in NOT_THESE.values():
        for word in filter(None, spellings[language].split(", ")):
            pattern = _pattern(word, language)
            assert pattern.search(word.replace("*", "")), word
            assert not [one for one in WORDS.values() if pattern.search(one[language])], word


@each_language
def test_labels_are_the_words_of_the_page(language):
    say = words(language)
    for thing, keys in LABELS.items():
        for key in keys:
            assert say(key).casefold() == WORDS[thing][language].casefold(), key


@each_language
@pytest.mark.parametrize("kind", SPOKEN)
def test_prompts_speak_in_the_words_of_the_page(language, kind):
    text = (SOURCE / f"kinds/builtin/{kind}/prompts/{language}.md").read_text("utf-8")
    for thing in SPOKEN[kind]:
        word = WORDS[thing][language]
        assert STEMS.get(language, {}).get(word, word) in _prose(text).casefold(), thing


@each_language
def test_shipped_text_holds_no_hidden_characters(language):
    faults = [file for file, text in _shipped(language) if HIDDEN.search(text)]
    assert not faults
