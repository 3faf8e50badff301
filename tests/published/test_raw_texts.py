"""MT-Bench comparisons from what the judges wrote: read, settled over several rounds, and held
against the published winners and against a count by hand."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

import pytest

from tests.published.data import records
from tests.published.recorded import Asked, judged, reply, topic, winner

ORDERS = {"ab": "12", "ba": "21"}
VERDICTS = {"[[A]]": "A", "[[B]]": "B", "[[C]]": "tie"}
Texts = dict[Asked, str]


class Source(NamedTuple):
    """Whose texts, and how many runs of them there are to make rounds of."""

    judge: str
    template: str
    rounds: int
    pairs: int


GPT4 = Source("gpt-4-0613-pair", "pair", 1, 900)
SOURCES = {
    "gpt-4": GPT4,
    "gpt-4, two runs": Source("gpt-4-0613-pair", "pair", 2, 348),
    "qwen rubric, three runs": Source("qwen2.5-3b-4bit-local", "rubric", 3, 150),
    "qwen bare": Source("qwen2.5-3b-4bit-local", "bare", 1, 150),
    "qwen cot": Source("qwen2.5-3b-4bit-local", "cot", 1, 150),
}


def texts_of(source):
    """The raw texts about the pairs that every run has; a run is a round."""
    rows = [
        row
        for row in records("mtbench_raw/judgments.jsonl.gz")
        if (row["judge"], row["condition"]) == (source.judge, "base")
        and row["template"].startswith(source.template)
        and row["sample"] < source.rounds
    ]
    runs = Counter(row["item_id"] for row in rows)
    return {
        Asked(row["item_id"], ORDERS[row["order"]], row["sample"] + 1): row["text"]
        for row in rows
        if runs[row["item_id"]] == 2 * source.rounds
    }


def read(text):
    """The reply that a text is, by FastChat's rule; one without a verdict stays as it is."""
    return next((reply(slot) for tag, slot in VERDICTS.items() if tag in text), text)


def settle(texts, rounds):
    pairs = list(dict.fromkeys(asked.pair for asked in texts))
    replies = {asked: read(text) for asked, text in texts.items()}
    found = judged([topic(pair, "a", "b") for pair in pairs], replies, rounds)
    return {one.row: one for one in found}


def by_hand(texts, pair, rounds):
    """The outcome of a pair and the round it came in, by the bracketed letters alone."""
    outcomes = {"AB": "A", "BA": "B", "CC": "tie"}
    for number in range(1, rounds + 1):
        letters = [
            "".join(re.findall(r"\[\[([ABC])\]\]", texts[Asked(pair, order, number)])[-1:])
            for order in ("12", "21")
        ]
        if "" in letters:
            return "failure", number
        if "".join(letters) in outcomes:
            return outcomes["".join(letters)], number
    return "uncertain", rounds


@pytest.mark.parametrize("name", SOURCES)
def test_mtbench_raw_texts_settle_as_counted_by_hand(name):
    source = SOURCES[name]
    texts = texts_of(source)
    found = settle(texts, source.rounds)
    hand = {pair: by_hand(texts, pair, source.rounds) for pair in found}
    assert len(found) == source.pairs
    assert {pair: winner(one) for pair, one in found.items()} == {
        pair: outcome for pair, (outcome, _) in hand.items()
    }
    how = Counter(
        "uncertain" if outcome == "uncertain" else "stable" if number == 1 else "resolved"
        for outcome, number in hand.values()
        if outcome != "failure"
    )
    assert Counter(one.vote.settled for one in found.values() if one.vote.winner) == how


def test_mtbench_raw_texts_settle_as_published_winner_by_winner():
    """What is uncertain here is `tie (inconsistent)` there, and so is a pair with a reply that
    names no winner, which fails here."""
    stored = {}
    turned = {"model_a": "B", "model_b": "A"}
    straight = {"model_a": "A", "model_b": "B"}
    for row in records("mtbench/gpt4_pair.jsonl.gz"):
        about, models = (row["question_id"], row["turn"]), (row["model_a"], row["model_b"])
        stored[*about, *models] = straight.get(row["winner"], row["winner"])
        stored[*about, *models[::-1]] = turned.get(row["winner"], row["winner"])
    items = {row["item_id"]: row for row in records("mtbench_raw/items.jsonl.gz")}
    fields = ("question_id", "turn", "model_a", "model_b")
    theirs, ours = {}, {}
    for pair, one in settle(texts_of(GPT4), 1).items():
        theirs[pair] = stored[tuple(items[pair][field] for field in fields)]
        ours[pair] = winner(one)
    assert (len(ours), Counter(ours.values())["failure"]) == (900, 1)
    unsettled = dict.fromkeys(("uncertain", "failure"), "tie (inconsistent)")
    assert {pair: unsettled.get(found, found) for pair, found in ours.items()} == theirs
