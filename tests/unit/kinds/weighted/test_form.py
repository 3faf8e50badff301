"""Dimensions, types and weights as a protocol gives them, and the text that ships with the kind."""

from __future__ import annotations

import pytest

from evenhand.kinds import load_protocol
from evenhand.kinds.protocol import Protocol, ProtocolError
from evenhand.kinds.weighted.kind import KIND, read_types
from evenhand.kinds.weighted.verdict import compact_schema

OWN = """
kind = "weighted"

[[dimensions]]
id = "taste"
en = "Is it tasty?"

[[dimensions]]
id = "cost"
en = "Is it cheap?"

[[types]]
id = "soup"
weights = { taste = 33.3, cost = 66.7 }
en = "Something to spoon."

[[types]]
id = "cake"
weights = { taste = 100, cost = 0 }
en = "Something sweet."
"""


def own(text: str = OWN) -> Protocol:
    return load_protocol("mine", {"protocol.toml": text})


def test_weights_may_be_decimals_and_zero():
    dimensions = own().ids("dimensions")
    soup, cake = read_types(own(), "en")
    assert (soup.weights, cake.weights) == (
        {"taste": 33.3, "cost": 66.7},
        {"taste": 100, "cost": 0},
    )
    score = compact_schema(dimensions, (soup, cake), cake)["properties"]["score"]["properties"]
    assert score["cost"] == {"enum": [0]}
    score = compact_schema(dimensions, (soup, cake), soup)["properties"]["score"]["properties"]
    assert score["taste"] == {"enum": [0, 8.325, 16.65, 24.975, 33.3]}


WRONG = {
    "off 100": (
        OWN.replace("66.7", "66.8"),
        "the weights of type soup add up to 100.1, not to 100",
    ),
    "just off": (OWN.replace("66.7", "66.6999"), "type soup add up to 99.9999, not to 100"),
    "another row": (OWN.replace("taste = 100", "taste = 99"), "weights of type cake add up to 99"),
    "a dimension missing": (OWN.replace(", cost = 0 }", " }"), "type cake must name each of taste"),
    "a dimension more": (OWN.replace("cost = 0", "cost = 0, x = 0"), "type cake must name each of"),
    "no weights": (OWN.replace("weights = { taste = 100, cost = 0 }\n", ""), "type cake must name"),
    "negative": (OWN.replace("100, cost = 0", "101, cost = -1"), "type cake: the weight of cost"),
    "text": (
        OWN.replace("cost = 0", 'cost = "0"'),
        "type cake: the weight of cost must be a number",
    ),
    "true": (OWN.replace("cost = 0", "cost = true"), "type cake: the weight of cost must be"),
    "nan": (OWN.replace("cost = 0", "cost = nan"), "the weights of type cake add up to NaN"),
    "infinite": (OWN.replace("cost = 0", "cost = inf"), "weights of type cake add up to Infinity"),
    "two types of a name": (OWN.replace('"cake"', '"soup"'), "two of [[types]] are called soup"),
    "two dimensions": (OWN.replace('"cost"', '"taste"'), "two of [[dimensions]] are called taste"),
    "no id": (OWN.replace('id = "cake"\n', ""), "[[types]] 2 needs an id"),
    "an id with a stop": (OWN.replace('"cake"', '"a.b"'), "[[types]] 2 needs an id, without full"),
    "no text": (
        OWN.replace('en = "Is it cheap?"\n', ""),
        '[[dimensions]] cost has no text in "en"',
    ),
    "no types": (OWN.partition("[[types]]")[0], "needs [[types]]"),
    "types no list": (OWN.partition("[[types]]")[0] + "[types]\n", "needs [[types]]"),
    "no dimensions": ('kind = "weighted"\n', "needs [[dimensions]]"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_names_the_row(name):
    text, said = WRONG[name]
    with pytest.raises(ProtocolError) as caught:
        KIND.check_protocol(own(text), "en")
    assert said in str(caught.value)
    assert caught.value.file == "protocol.toml"
