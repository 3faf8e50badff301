"""What units are about, as a person knows them: the text of the question, not the hash that names
it where its row has no id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from evenhand.kinds.blocks import Block, Columns, Text
from evenhand.kinds.kind import Kind, Voting
from evenhand.store.ports import Archive, Scope
from evenhand.units import question_hash


def texts_of(blocks: Iterable[Block]) -> Iterator[Text]:
    """The texts of a unit as it is shown, also those that stand side by side."""
    for block in blocks:
        if isinstance(block, Text):
            yield block
        elif isinstance(block, Columns):
            for column in block.columns:
                yield from texts_of(column)


def question_of(blocks: Iterable[Block]) -> str:
    """The text that a unit is about, as every kind marks it; empty where nobody knows."""
    return next((text.text for text in texts_of(blocks) if text.short == "Q"), "")


def is_hash_of(ident: str, question: str) -> bool:
    """Whether a unit or topic is called by the hash of its question."""
    return bool(question) and question_hash(question) in ident


def topic_questions(kind: Kind, store: Archive, scope: Scope) -> dict[str, str]:
    """The question of every topic of a run of pairs."""
    voting, questions = kind.measure, dict[str, str]()
    assert isinstance(voting, Voting), f"the kind {kind.name} has no topics"
    for stored in store.units(scope):
        topic = voting.unit(stored.body).topic
        if topic not in questions:
            questions[topic] = question_of(kind.present(kind.load(stored.body), []).unit)
    return questions
