"""A report in another language than English says nothing of its own in English."""

import re
from html.parser import HTMLParser

import pytest

from evenhand.words import LANGUAGES

OTHERS = [language for language in LANGUAGES if language != "en"]
SENTENCE = re.compile(r"(?:\b[A-Za-z']{2,}\b[ ,.:;]+){2,}\b[A-Za-z]{2,}")
"""Three English words in a row."""
TYPED = re.compile(r"evenhand \w+(?: [-\w.]+)*|--[a-z-]+(?: -?\d+)?|Bradley-Terry|Enter|Escape")
"""What is typed, or called so in every language."""
DATA = {"text", "side", "soft", "bad"}
"""Classes of what stands there as it was recorded: judged texts, prompts and replies, and details
of failures, which follow their reason in the language."""
CELLS = {"script", "style", "code", "pre", "td", "dd"}
VOID = {"br", "meta", "link", "input", "img", "hr", "col", "path", "line", "rect", "circle", "use"}


class OwnTexts(HTMLParser):
    """The texts of a page that are its own."""

    def __init__(self):
        super().__init__()
        self._open = []
        self.texts = []
        self.recorded = []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            classes = set((dict(attrs).get("class") or "").split())
            self._open.append((tag, tag in CELLS or bool(DATA & classes)))

    def handle_endtag(self, tag):
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        is_data = any(is_data for _, is_data in self._open)
        (self.recorded if is_data else self.texts).append(data)


@pytest.mark.parametrize("language", OTHERS)
def test_a_report_says_nothing_of_its_own_in_english(place, language):
    said = place.call(
        *("report", "latest", "-o", "said.html", "--force", "--language", language),
        *place.world.by,
    )
    assert said.code == 0, said.err
    page = OwnTexts()
    page.feed((place.folder / "said.html").read_text(encoding="utf-8"))
    assert len(page.texts) > 100
    english = [text for text in page.texts if SENTENCE.search(TYPED.sub("", text))]
    assert english == [], "\n".join(english)
    assert "shares its family" not in "".join(page.recorded)
