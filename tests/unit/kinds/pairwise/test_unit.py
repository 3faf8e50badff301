"""Rows to pairs: ids, orders, and what is wrong with a row."""

import json
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.kinds.pairwise.unit import first_order, load_pair, pair_text, read_pairs
from evenhand.kinds.rows import RowError
from tests.cases import cases
from tests.sentences import refused
from tests.unit.kinds.contracts import assert_told, change

ROW = {
    "pair_id": "p",
    "topic": "Why?",
    "candidates": [{"id": "x", "text": "Because."}, {"id": "y", "text": "Therefore."}],
    "meta": {"run": 3},
}


def one(row):
    (pair,) = read_pairs(row)
    return pair


def candidates(*texts):
    return [{"id": f"c{i}", "text": text} for i, text in enumerate(texts, 1)]


def test_a_row_of_two_is_one_pair_under_its_own_id():
    pair = one(ROW | {"language": "ja", "reference": "R", "context": "C"})
    assert (pair.id, pair.row) == ("p", "p")
    assert (pair.topic, pair.texts) == ("Why?", ("Because.", "Therefore."))
    assert (pair.first.id, pair.second.id, pair.meta) == ("x", "y", {"run": 3})
    assert (pair.language, pair.extras) == ("ja", {"reference": "R", "context": "C"})


@pytest.mark.parametrize("number", [3, 4, 7])
def test_more_candidates_are_all_pairs_among_them(number):
    texts = [f"text {i}" for i in range(1, number + 1)]
    pairs = read_pairs(ROW | {"candidates": candidates(*texts)})
    expected = list(combinations(range(1, number + 1), 2))
    assert [pair.id for pair in pairs] == [f"p#c{i}~c{j}" for i, j in expected]
    assert [pair.texts for pair in pairs] == [(f"text {i}", f"text {j}") for i, j in expected]
    assert {pair.row for pair in pairs} == {"p"}


def test_an_id_beats_a_pair_id_and_numbers_are_ids_too():
    assert one(ROW | {"id": "mine"}).id == "mine"
    assert one(ROW | {"pair_id": 17}).id == "17"
    row = ROW | {"candidates": [{"text": "a"}, {"id": 5, "text": "b"}]}
    assert (one(row).first.id, one(row).second.id) == ("1", "5")


def test_the_model_behind_a_candidate_may_stand_apart_from_its_id():
    row = ROW | {
        "candidates": [
            {"id": "x", "text": "a", "model": "gpt-4o"},
            {"id": "y", "text": "b", "model": "claude"},
        ]
    }
    assert (one(row).first.model, one(row).second.model) == ("gpt-4o", "claude")


def test_candidates_may_come_from_the_columns_of_a_table():
    numbered = {"2": {"id": "y", "text": "second"}, "1": {"id": "x", "text": "first"}}
    assert one(ROW | {"candidates": numbered}).texts == ("first", "second")
    ten = {str(i): {"text": f"t{i}"} for i in range(1, 11)}
    texts = {pair.id: pair.texts for pair in read_pairs(ROW | {"candidates": ten})}
    assert texts["p#1~10"] == ("t1", "t10")


@cases
def test_a_wrong_row_is_refused_with_its_field(changes, told):
    with pytest.raises(RowError) as caught:
        read_pairs(json.loads(change(ROW, changes)))
    assert_told(caught.value, told)


@pytest.mark.parametrize(
    ("change", "ident"),
    [
        ({"pair_id": None, "meta": {"question_id": "q7"}}, "q7#x~y"),
        ({"pair_id": "", "topic": "Why?"}, "000f579acf#x~y"),
        ({"pair_id": "", "topic": "  Why?\n"}, "000f579acf#x~y"),
    ],
)
def test_a_row_without_an_id_is_called_by_its_question(change, ident):
    assert read_pairs(ROW | change)[0].id == ident


def test_a_missing_topic_is_told_with_the_columns_that_there_are():
    row = {key: value for key, value in ROW.items() if key != "topic"}
    with refused(RowError, "kinds.missing_field", '"topic".*"topics"'):
        read_pairs(row | {"topics": "Why?"})


def test_another_candidate_leaves_the_other_pairs_of_a_row_as_they_are():
    six, seven = (
        {
            pair.id: pair_text(pair)
            for pair in read_pairs(ROW | {"candidates": candidates(*"abcdefg"[:number])})
        }
        for number in (6, 7)
    )
    assert seven.items() >= six.items()
    assert set(seven) - set(six) == {f"p#c{i}~c7" for i in range(1, 7)}


def test_orders_are_drawn_from_the_seed_and_the_pair():
    pairs = [one(ROW | {"topic": f"Why {number}?"}) for number in range(200)]

    def orders(seed):
        return tuple(first_order(seed, pair) for pair in pairs)

    assert orders(5) == orders(5)
    assert len({orders(seed) for seed in range(20)}) == 20
    assert all(70 < orders(seed).count("12") < 130 for seed in range(20))


@given(seed=st.integers(), topic=st.text(), first=st.text(), second=st.text())
def test_the_same_text_comes_first_whichever_the_file_names_first(seed, topic, first, second):
    pair = one(ROW).with_texts(first, second)
    turned = pair.with_texts(second, first)
    shown = [
        each.texts if first_order(seed, each) == "12" else each.texts[::-1]
        for each in (pair, turned)
    ]
    assert shown[0] == shown[1]


texts = st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip)
values = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=4)


@given(
    topic=texts,
    answers=st.lists(texts, min_size=2, max_size=4),
    meta=st.dictionaries(st.text(), values, max_size=3),
    model=st.sampled_from(["", "gpt-4o"]),
)
def test_what_the_store_keeps_reads_back_equal(topic, answers, meta, model):
    row = ROW | {"topic": topic, "meta": meta, "reference": "r", "language": "zh"}
    row["candidates"] = [one | {"model": model} for one in candidates(*answers)]
    for pair in read_pairs(row):
        assert load_pair(pair_text(pair)) == pair
        assert "\n" not in pair_text(pair)
