"""The units that are judged. They are frozen and built by the loaders; nothing here reads a file.

A unit's `meta` and `id` identify it to people and to the statistics; they never reach a judge
unless the suite exposes them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from evenhand import jsontext
from evenhand.transcript import Transcript, texts_of

META_FIELDS = ("run_id", "model", "prompt_variant", "eval_set_variant", "question_id")
APART = ("run_id", "eval_set_variant")
"""The meta fields in which answers differ that are not held against each other."""
TOPIC_ID = "#topic"
"""The key of a row for an id of its topic that code has given: its pairs are named all the same."""


class Sample(Struct, frozen=True, kw_only=True):
    """One output to score on a rubric."""

    id: str
    question: str
    model_output: str
    transcript: Transcript | None = None
    """The conversation that question and output are taken from, where they are not all of it."""
    meta: Mapping[str, Any] = field(default_factory=dict)
    rubric: Mapping[str, Any] | None = None
    language: str | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)
    """`reference`, `context` and earlier `messages`, where the row has them."""


def sample_id(row: Mapping[str, Any]) -> str:
    """Return the id of a sample row: its `id`, else its meta fields joined by `/`, else a
    hash of its question."""
    if row.get("id") is not None:
        return str(row["id"])
    return joined_id(filled_meta(row)) or question_hash(row.get("question"))


def filled_meta(row: Mapping[str, Any], fields: Iterable[str] = META_FIELDS) -> list[object]:
    """Return the values of the meta fields that identify a row, in the order of the contract,
    without those that are not there."""
    meta: Any = row.get("meta")
    if not isinstance(meta, Mapping):  # what else it is, is told where the row is read
        return []
    return [meta[name] for name in fields if meta.get(name) not in (None, "")]


def joined_id(values: Iterable[object]) -> str:
    """Return one id of several values, joined by `/`; what is absent is empty."""
    texts = ["" if value is None else jsontext.as_text(value) for value in values]
    return "/".join([text.replace("%", "%25").replace("/", "%2F") for text in texts])


def question_hash(text: object) -> str:
    """Return a short name for a question that has none: the same wherever the question stands,
    however its white space is laid out; empty for what is no text."""
    if not isinstance(text, str):
        return ""
    folded = " ".join(unicodedata.normalize("NFC", text).split())
    data = folded.encode("utf-8", "surrogatepass")
    return blake2b(data, digest_size=5, person=b"evenhand-asked").hexdigest()


class Candidate(Struct, frozen=True, kw_only=True):
    """One answer of a pair. `id` and `model` are never shown to a judge."""

    id: str
    text: str
    model: str = ""
    transcript: Transcript | None = None

    def map_texts(self, change: Callable[[str], str]) -> Candidate:
        """Return this candidate with all that it says changed."""
        transcript = self.transcript and self.transcript.map_answers(change)
        return replace(self, text=change(self.text), transcript=transcript)


class Pair(Struct, frozen=True, kw_only=True):
    """Two answers to one topic. `A` is `first`: the one that the id names first, or, of a row of
    two with an id of its own, the first of the row."""

    id: str
    topic: str
    first: Candidate
    second: Candidate
    row: str
    """The id of its topic, which all pairs on it share."""
    given_lengths: tuple[int | None, int | None] | None = None
    """Of texts that are not here, in characters."""
    meta: Mapping[str, Any] = field(default_factory=dict)
    language: str | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)

    @property
    def texts(self) -> tuple[str, str]:
        return self.first.text, self.second.text

    @property
    def turn_texts(self) -> list[str]:
        """Return all that is said in the transcripts of both."""
        return texts_of(self.first.transcript, self.second.transcript)

    @property
    def lengths(self) -> tuple[int | None, int | None]:
        """Return the lengths of both texts in characters; None where nobody knows."""
        return self.given_lengths or (len(self.first.text) or None, len(self.second.text) or None)

    def map_answers(self, change: Callable[[str], str]) -> Pair:
        """Return this pair with what both candidates say changed."""
        return replace(
            self, first=self.first.map_texts(change), second=self.second.map_texts(change)
        )

    def with_texts(self, first: str, second: str) -> Pair:
        """Return this pair with other texts."""
        return replace(
            self, first=replace(self.first, text=first), second=replace(self.second, text=second)
        )


class Answer(Struct, frozen=True, kw_only=True):
    """One answer to grade out of 100."""

    id: str
    task_name: str
    prompt: str
    answer: str
    transcript: Transcript | None = None
    rubric: str | None = None
    """The task's own rubric, Markdown or TOML; None where the suite brings one for all."""
    meta: Mapping[str, Any] = field(default_factory=dict)
    language: str | None = None
    extras: Mapping[str, Any] = field(default_factory=dict)


def answer_id(row: Mapping[str, Any]) -> str:
    """Return the id of an answer row: its `id`, else the task's name and the meta fields that are
    there."""
    if row.get("id") is not None:
        return str(row["id"])
    task = task_name_of(row)
    # A question that the task is named after need not be named twice; a run of that name must.
    is_question = [task] == [str(value) for value in filled_meta(row, ("question_id",))]
    fields = [name for name in META_FIELDS if name != "question_id" or not is_question]
    rest = joined_id(filled_meta(row, fields))
    return f"{task}/{rest}" if rest else task


def task_name_of(row: Mapping[str, Any]) -> str:
    """Return the name of a task: its own, else its question's id, else a hash of its prompt."""
    for name in (row.get("task_name"), *filled_meta(row, ("question_id",))):
        if name not in (None, ""):
            return str(name)
    return question_hash(row.get("prompt"))


def own_pair_id(row: Mapping[str, Any]) -> str:
    """Return the id that a row of candidates brings, empty without one."""
    return next(
        (str(row[name]) for name in ("id", "pair_id") if row.get(name) not in (None, "")), ""
    )


def topic_id(row: Mapping[str, Any]) -> str:
    """Return the id of a row's topic: the row's own id, else its question's id or a hash of the
    topic, after the fields that tell repeated runs apart."""
    if row.get(TOPIC_ID) is not None:
        return str(row[TOPIC_ID])
    questions = [str(value) for value in filled_meta(row, ("question_id",))]
    question = questions[0] if questions else question_hash(row.get("topic"))
    apart = joined_id(filled_meta(row, APART))
    return own_pair_id(row) or (f"{apart}/{question}" if apart else question)


def named_pair_id(topic: str, names: Iterable[str]) -> str:
    """Return the id of a pair of candidates on a topic, the same whichever stands first."""
    low, high = sorted(names)
    return f"{topic}#{_encode_name(low)}~{_encode_name(high)}"


def pair_key(ident: str, names: Sequence[str]) -> str:
    """Return what a pair is known by in every run: the id that names its candidates. It may have
    another one where its row has no third candidate."""
    key = named_pair_id("", names)
    return ident if ident.endswith(key) else ident + key


@lru_cache(maxsize=1024)
def _encode_name(name: str) -> str:
    for sign in "%#~/":
        name = name.replace(sign, f"%{ord(sign):02X}")
    return name
