"""What keeps a page safe: visible characters, escaping, marks that lose nothing."""

from __future__ import annotations

import itertools
import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.report.html import markdown
from evenhand.report.html.markdown import Stretch, mark_spans
from evenhand.report.html.page import environment, policy
from evenhand.text import visible
from evenhand.words import words


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\u202eb", "a\\u202eb"),
        ("a\x1b[31mb", "a\\u001b[31mb"),
        ("a\r\nb\tc", "a\\u000d\nb\tc"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("joined\u200dwords", "joined\\u200dwords"),
        ("\U0001f468\u200d\U0001f469", "\U0001f468\u200d\U0001f469"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("tag \U000e0041", "tag \\U000e0041"),
        ("\U0001f3f4\U000e0067\U000e0062\U000e007f", "\U0001f3f4\U000e0067\U000e0062\U000e007f"),
        ("half \ud800", "half \\ud800"),
        ("soft\u00adhyphen\u2028", "soft\\u00adhyphen\\u2028"),
        ("中文 и русский", "中文 и русский"),
    ],
)
def test_characters_that_hide_are_shown(text, shown):
    assert visible(text) == shown and visible(shown) == shown


@given(st.text(), st.lists(st.tuples(st.integers(-3, 40), st.integers(-3, 40), st.text())))
def test_marks_lose_nothing_and_cover_exactly_their_spans(text, spans):
    segments = mark_spans(text, spans)
    assert "".join(one.text for one in segments) == text
    place = 0
    for one in segments:
        for index in range(place, place + len(one.text)):
            over = {label for start, end, label in spans if start <= index < end}
            assert set(one.labels) == over
        place += len(one.text)


HIDES = re.compile(r"<i>([^<]*)</i>")
ELEMENT = re.compile(r"<[^>]*>")
OWN = re.compile(
    r"</?(?:p|ul|ol|li|blockquote|pre|code|em|strong|s|i|small|h5|h6|hr|table|thead|tbody|tr|th|td|ins"
    r'|mark)>|<table tabindex="0">|<mark(?: data-n="\d+")? title="[^"<>]*">'
)


def to_html(text, *ends):
    """Its HTML, with every other stretch between these offsets quoted as number 1."""
    cuts = [0, *ends, len(text)]
    parts = [text[start:end] for start, end in itertools.pairwise(cuts)]
    stretches = [Stretch(part, "1" * (n % 2), "about") for n, part in enumerate(parts) if part]
    return markdown.to_html(stretches, formatted=True)


PIECES = [*"[](){}<>!#|-*_~`+=:&\"'\t\n\\ a1é語", "\n\n", "**", "```", "    ", "- ", "1. ", "> "]
PIECES += ["|-|", "| a | b |\n|---|---|\n", "[x]: y", "<b>", "http://x.y"]


@given(st.lists(st.sampled_from(PIECES), max_size=60).map("".join), st.integers(0, 30))
def test_formatting_keeps_every_character_and_hides_no_word(text, cut):
    html, formatted = to_html(text, min(cut, len(text)))
    assert unescape(ELEMENT.sub("", html)) == text
    assert formatted or html == to_html(text, min(cut, len(text)))[0]
    assert all(OWN.fullmatch(tag) for tag in ELEMENT.findall(html)), html
    for hidden in HIDES.findall(html):
        assert not re.search(r"\w", unescape(hidden).replace("_", "")), html
    depth = []
    for tag in ELEMENT.findall(html.replace("<hr>", "")):
        name = tag.strip("</>").split()[0]
        if tag.startswith("</"):
            assert depth.pop() == name
        else:
            depth.append(name)
    assert not depth


def test_markdown_is_formatted_and_links_are_text():
    text = "# T\n\n**a** *b* `c`\nsnake_case_x 2 * 3\n\n- one\n  1. two\n\n> q\n\n"
    text += "```sh\nls\n\nps\n```\n\n| h |\n|---|\n| x |\n\n"
    text += "[go](https://x.y) ![p](https://x.y/p)\n\n[r]: https://x.y"
    html, formatted = to_html(text)
    shown = HIDES.sub("", html)
    assert formatted
    assert shown == (
        "<h5>T</h5><p><strong>a</strong> <em>b</em> <code>c</code>\nsnake_case_x 2 * 3</p>"
        "<ul><li>one<ol><li>1. two</li></ol></li></ul><blockquote><p>q</p></blockquote>"
        '<pre><small>sh</small>\nls\n\nps\n</pre><table tabindex="0">'
        "<thead><tr><th>h</th></tr></thead><tbody><tr><td>x</td></tr>"
        "</tbody></table><p>[go](https://x.y) ![p](https://x.y/p)</p><p>[r]: https://x.y</p>"
    )
    assert to_html("Plain, 2 * 3 _ 4.\n\nMore.") == ("Plain, 2 * 3 _ 4.\n\nMore.", False)


@pytest.mark.parametrize(
    ("text", "quote", "last"),
    [
        ("see **the quote** here\n- x", "**the quote**", "the quote"),
        ("```\nthe quote\n```\n", "quote\n``", "quote"),
    ],
)
def test_a_quote_across_formatting_has_its_number_once(text, quote, last):
    start = text.index(quote)
    html, _ = to_html(text, start, start + len(quote))
    marks = re.findall(r"<mark([^>]*)>([^<]*)</mark>", html)
    assert "".join(text for _, text in marks) == quote
    assert [text for given, text in marks if "data-n" in given] == [last]


OPENERS = ["[", "![", "`", "*", "**a", "_a ", "~~", "> ", "- ", "- a\n", "1. ", "|", "|a|\n", "<a "]
OPENERS += ["\\", "a|b\n-|-\n", "[a]: ", "\t-", "#", "|a" * 300 + "|\n" + "|-" * 300 + "|\n" * 300]


@pytest.mark.parametrize("opener", OPENERS)
def test_texts_of_openers_alone_are_read_in_linear_time(opener):
    """Quadratic time would be minutes here. A text of 100 KB is shown as it was written."""
    text = (opener * 20_000)[: markdown.FORMATTED_CHARS]
    html, _ = to_html(text)
    assert unescape(ELEMENT.sub("", html)) == text and len(html) < 20 * len(text)
    assert to_html((opener * 100_000)[:100_000])[1] is False


def test_templates_escape_all_they_insert_and_know_no_undefined():
    from jinja2 import UndefinedError

    made = environment(words("en"))
    hostile = "<img src=x onerror=\"x\" a='b'>&"
    assert "<img" not in made.from_string("{{ a }}").render(a=hostile)
    assert made.from_string("{{ a|visible }}").render(a="<\u202e>") == "&lt;\\u202e&gt;"
    assert made.from_string("{{ say('unit.by', judge=a) }}").render(a="<b>").endswith("&lt;b&gt;")
    with pytest.raises(UndefinedError):
        made.from_string("{{ b }}").render()


def test_no_template_marks_data_as_safe():
    loader = environment(words("en")).loader
    for name in loader.list_templates():
        source = loader.get_source(environment(words("en")), name)[0]
        assert "|safe" not in source.replace(" ", "") and "autoescape" not in source, name


def test_the_policy_names_hashes_and_nothing_else():
    said = policy(["a{}"], ["x()"])
    assert "default-src 'none'" in said and "unsafe" not in said and "http" not in said
    assert said.count("'sha256-") == 2
    assert policy([], []).endswith("style-src 'none'; script-src 'none'")
