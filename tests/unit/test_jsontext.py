"""JSON that comes back as it went in, and the line on which a value stands."""

from __future__ import annotations

import json
import pickle
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand import jsontext

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    # Half of a surrogate pair is no text; the readers refuse it before it comes here.
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
NUMBERS = st.from_regex(
    r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True
)


@given(VALUES)
def test_what_is_written_is_read_back_equal(value):
    text = jsontext.dump(value)
    assert "\n" not in text
    assert jsontext.parse(text) == value == json.loads(text)


@given(st.lists(NUMBERS, min_size=1))
def test_every_number_keeps_its_spelling(numbers):
    text = '{"n":[' + ",".join(numbers) + "]}"
    value = jsontext.parse(text)
    assert jsontext.dump(value) == text
    assert value["n"] == [float(n) if set(n) & set(".eE") else int(n) for n in numbers]


def test_spelling_survives_pickling_and_a_mapping_that_is_no_dict():
    value = MappingProxyType(jsontext.parse('{"b":1.50,"a":[1e3,-0]}'))
    assert jsontext.dump(value) == '{"b":1.50,"a":[1e3,-0]}'
    assert jsontext.dump(pickle.loads(pickle.dumps(dict(value)))) == jsontext.dump(value)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ('{"a":1,"b":2}', '{ "a": 1, "b": 2 }', True),
        ('{"a":1,"b":2}', '{"b":2,"a":1}', False),
        ("1.50", "1.5", False),
        ("1e3", "1000.0", False),
        ("1.5", "1.5", True),
        ("1", "1.0", False),
        ("-0", "0", False),
        ("true", "1", False),
        ('"\\u00e9"', '"é"', True),
    ],
)
def test_equal_as_json_means_order_and_spelling(one, other, same):
    assert jsontext.same(jsontext.parse(one), jsontext.parse(other)) is same


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a":1,"a":1}', 'the key "a" stands twice'),
        ('[{"x":{"k":1,"b":2,"b":3,"k":4}}]', 'the key "k" stands twice'),
        ("[NaN]", "NaN is not a JSON number"),
        ("-Infinity", "-Infinity is not a JSON number"),
        ("[" * 100_000, "nested too deeply"),
        ("{'a': 1}", "Expecting property name"),
        ("9" * 5000, "limit"),
    ],
)
def test_what_says_two_things_or_nothing_is_refused(text, said):
    with pytest.raises(ValueError, match=said):
        jsontext.parse(text)


def test_a_key_that_stands_twice_among_very_many_is_found_in_linear_time():
    keys = ",".join(f'"{n}":0' for n in range(200_000))
    with pytest.raises(ValueError, match='the key "199999" stands twice'):
        jsontext.parse("{" + keys + ',"199999":1}')


DOCUMENT = """
{
  "dimensions": [
    {"id": "a", "note": "}],{\\"",
     "bands": [
       {"score": 1},

       {"score": 1}
     ]},
    {
      "id": "b"
    }
  ],
  "empty": {}, "list": []
}
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((), 2),
        (("dimensions",), 3),
        (("dimensions", 0, "id"), 4),
        (("dimensions", 0, "bands"), 5),
        (("dimensions", 0, "bands", 1, "score"), 8),
        (("dimensions", 1, "id"), 11),
        (("dimensions", 1, "bands"), 10),
        (("dimensions", 9), 3),
        (("empty", "x"), 14),
        (("list", 0), 14),
        (("dimensions", 0, "id", "deeper"), 4),
        (("nowhere", "at", "all"), 2),
    ],
)
def test_a_path_leads_to_its_line_or_that_of_what_is_left_of_it(path, line):
    assert jsontext.find_line(DOCUMENT, path) == line
