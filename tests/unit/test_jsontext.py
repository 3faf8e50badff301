"""JSON that comes back as it went in, and the line on which a value stands."""

from __future__ import annotations

import json
import pickle
from types import MappingProxyType

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenhand import jsontext
from evenhand.limits import STORED_DEPTH
from tests.cases import cases
from tests.sentences import refused
from tests.work import calls_of

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


@given(VALUES | st.text())
@example(["\ud83d", 2**63, -(2**63) - 1, {1: 1.5, "": [{}, ()]}])
def test_whichever_writer_is_the_fastest_the_text_is_the_same(value):
    assert jsontext.dump(value) == jsontext.compact(value)


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


@cases
def test_equal_as_json_means_order_and_spelling(one, other, same):
    assert jsontext.same(jsontext.parse(one), jsontext.parse(other)) is same


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ('{"a":1,"a":1}', jsontext.DuplicateKey, '"a"'),
        ('[{"x":{"k":1,"b":2,"b":3,"k":4}}]', jsontext.DuplicateKey, '"k"'),
        ("[NaN]", jsontext.NotFinite, "NaN"),
        ("-Infinity", jsontext.NotFinite, "-Infinity"),
        ("[" * 100_000, jsontext.TooDeep, "64"),
        ("{'a': 1}", json.JSONDecodeError, "Expecting property name"),
        ('{"a":', jsontext.Truncated, "Expecting value"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_says_two_things_or_nothing_is_refused(text, error, message):
    with pytest.raises(ValueError, match=message) as refused:
        jsontext.parse(text)
    assert type(refused.value) is error
    named = getattr(refused.value, "name", None) or getattr(refused.value, "text", None)
    assert named is None or named in message


@pytest.mark.parametrize(
    "number", ["9" * 300, "9" * 301, "-" + "9" * 5000, "1e999", "-0", "1e-400"]
)
def test_a_number_of_any_size_is_kept_as_it_was_spelled(number):
    value = jsontext.parse(number)
    assert jsontext.dump([value]) == f"[{number}]"
    assert float(value) == float(number)


@cases
def test_what_was_written_is_restored_as_the_strict_reader_reads_it(text):
    assert repr(jsontext.loads_trusted(text)) == repr(jsontext.parse(text))
    assert jsontext.dump(jsontext.loads_trusted(text)) == jsontext.dump(jsontext.parse(text))


READERS = [jsontext.parse, jsontext.parse_lenient, jsontext.loads_trusted]


NESTED = {"lists": ("[", "]"), "objects": ('{"a":', "}"), "both": ('[{"a":[[],', "]}]")}


def nested(depth, kind, core="1.50"):
    opening, closing = NESTED[kind]
    return opening * depth + core + closing * depth


@pytest.mark.parametrize("kind", ["lists", "objects"])
@pytest.mark.parametrize("core", ["1.50", "1", "[]"])
def test_what_nests_as_deep_as_may_be_is_read_and_written(kind, core):
    text = nested(STORED_DEPTH - (core == "[]"), kind, core)
    assert jsontext.dump(jsontext.loads_trusted(text)) == text


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("depth", [STORED_DEPTH + 1, 10**5])
def test_what_nests_deeper_is_refused_before_it_is_read(read, kind, depth):
    for text in (nested(depth, kind), NESTED[kind][0] * depth):
        with pytest.raises(jsontext.TooDeep):
            read(text)


def test_a_door_may_allow_less():
    assert jsontext.parse("[[1]]", 2) == [[1]]
    with refused(jsontext.TooDeep, "json.too_deep", "2"):
        jsontext.parse("[[[]]]", 2)


@pytest.mark.parametrize("core", [1, jsontext.ExactNumber("1.50"), MappingProxyType({})])
@pytest.mark.parametrize("depth", [STORED_DEPTH + 1, 10**5])
def test_what_could_not_be_read_back_is_not_written(core, depth):
    lists = objects = core
    for _ in range(depth):
        lists, objects = [lists], {"a": objects}
    for value in (lists, objects):
        with pytest.raises(jsontext.TooDeep):
            jsontext.dump(value)


@pytest.mark.parametrize("core", ["1", "1.50"])
@pytest.mark.parametrize("kind", ["lists", "objects"])
def test_writing_takes_four_times_the_work_for_four_times_the_depth(core, kind):
    shallow, deep = (
        calls_of(jsontext.dump, jsontext.loads_trusted(nested(depth, kind, core)))
        for depth in (STORED_DEPTH // 4, STORED_DEPTH)
    )
    assert deep <= 4 * shallow


VALID = VALUES.filter(lambda value: isinstance(value, dict | list))


@given(st.data(), VALID, st.booleans(), st.sampled_from([None, 1]))
def test_a_text_that_breaks_off_is_told_as_such(data, value, is_ascii, indent):
    text = json.dumps(value, ensure_ascii=is_ascii, indent=indent)
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    with pytest.raises(jsontext.Truncated):
        jsontext.parse(cut)


@cases
def test_what_nothing_could_follow_to_make_it_json_is_not_cut_off(text):
    with pytest.raises(json.JSONDecodeError) as refused:
        jsontext.parse(text)
    assert type(refused.value) is json.JSONDecodeError


def test_the_swift_writer_has_null_for_what_json_has_not():
    numbers = [jsontext.ExactNumber("1e999"), float("nan"), jsontext.ExactNumber("1.50"), 10**400]
    assert json.loads(jsontext.dumps_lossy(numbers)) == [None, None, 1.5, 10**400]


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


@cases
def test_a_path_leads_to_its_line_or_that_of_what_is_left_of_it(path, line):
    assert jsontext.find_line(DOCUMENT, path) == line


CROWDS = {
    "empty lists": lambda number: "[" + ",".join(["[]"] * number) + "]",
    "empty objects": lambda number: "[" + ",".join(["{}"] * number) + "]",
    "numbers": lambda number: "[" + ",".join(["1"] * number) + "]",
    "members": lambda number: "{" + ",".join(f'"{i}":1' for i in range(number)) + "}",
    "strings": lambda number: "[" + ",".join(['"a,[{"'] * number) + "]",
}


@pytest.mark.parametrize("crowd", CROWDS)
@pytest.mark.parametrize("read", [jsontext.parse, jsontext.parse_lenient])
def test_more_values_than_may_be_are_refused_before_any_is_built(read, crowd):
    assert len(read(CROWDS[crowd](40), 4, 100)) == 40
    text = CROWDS[crowd](101)
    with refused(jsontext.TooMany, "json.too_many", "100"):
        read(text, 4, 100)


def test_nothing_is_built_of_what_is_refused():
    def refused():
        with pytest.raises(jsontext.TooMany):
            jsontext.parse(CROWDS["empty objects"](101), 4, 100)

    assert calls_of(refused, of=jsontext._pairs) == 0


def test_marks_in_strings_are_no_values_and_do_not_nest():
    text = json.dumps({"code": ", [{" * 10**5, 'k"[[[,\\': ['"' + "{" * 100 + "\\,"]})
    compact = json.dumps(json.loads(text), separators=(",", ":"))
    assert jsontext.dump(jsontext.parse(text, 2, 4)) == compact
    assert jsontext.parse("[" + ",".join(["[[]]"] * 1000) + "]", 3) == [[[]]] * 1000


def test_a_key_that_stands_twice_among_very_many_is_found_in_linear_time():
    keys = ",".join(f'"{n}":0' for n in range(200_000))
    with refused(ValueError, "json.duplicate_key", '"199999"'):
        jsontext.parse("{" + keys + ',"199999":1}')
