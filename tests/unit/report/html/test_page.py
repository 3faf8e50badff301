"""What keeps a page safe: visible characters, escaping, marks that lose nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.report.html.page import environment, mark_spans, policy
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
