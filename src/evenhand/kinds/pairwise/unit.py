"""Pairs of input rows, or the sentence that says what is wrong with a row.

A row with more than two candidates is all pairs among them. What a pair holds does not depend on
the other candidates of its row, nor on where they and the row stand; only a row of two with an id
of its own says which of them is `A`.

Of a table with one row per answer, the rows of a topic are its candidates. A candidate is called by
its model and its prompt variant, as far as these set answers apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import combinations
from typing import Any

from msgspec.structs import replace

from evenhand.jsontext import StoredText, as_text
from evenhand.kinds.messages import (
    fill_question,
    holds_messages,
    plain_transcript,
    read_transcript,
)
from evenhand.kinds.rows import (
    EXTRAS,
    FieldError,
    Gathered,
    PlacedRow,
    RowError,
    UnitBody,
    check_id,
    common_fields,
    filled_text_of,
    is_given,
    type_name,
    unit_text,
    without_empty,
)
from evenhand.transcript import Judged, to_plain
from evenhand.units import (
    APART,
    TOPIC_ID,
    Candidate,
    Pair,
    filled_meta,
    joined_id,
    named_pair_id,
    own_pair_id,
    question_hash,
    topic_id,
)
from evenhand.words import Sentence

_TEXTS = ("topic",)
FIELDS = ("id", "pair_id", "topic", "candidates", "meta", "language", *EXTRAS)


def read_pairs(row: Mapping[str, Any], judged: Judged = "last") -> list[Pair]:
    """Return the pairs of a row; raises RowError."""
    row = without_empty(row, _TEXTS)
    fill_question(row, "topic", "answer", "candidates")
    topic = filled_text_of(row, "topic")
    candidates = _alike(_candidates(row, judged), topic, judged)
    check_id(row.get("pair_id"), "pair_id")
    common, ident = common_fields(row), topic_id(row)
    keeps_id = len(candidates) == 2 and bool(own_pair_id(row))
    if not keeps_id:
        candidates.sort(key=lambda candidate: candidate.id)
    return [
        Pair(
            id=ident if keeps_id else named_pair_id(ident, (first.id, second.id)),
            topic=topic,
            first=first,
            second=second,
            row=ident,
            **common,
        )
        for first, second in combinations(candidates, 2)
    ]


def ids_of_pairs(row: Mapping[str, Any]) -> list[str]:
    """Return the ids of the pairs of a row; none of a row that cannot be read."""
    try:
        return [pair.id for pair in read_pairs(row)]
    except RowError:
        return []


def is_one_text(pair: Pair) -> bool:
    """Return True if both candidates say the same: a tie, and no call."""
    first, second = pair.texts
    is_one_course = pair.first.transcript == pair.second.transcript
    return is_one_course and first.strip() == second.strip()


def first_order(seed: int, pair: Pair) -> str:
    """Return the order of a pair that counts first: `12`, or `21`, the second shown first. A
    coin falls for one of the two texts, whichever stands first in the file."""
    low, high = sorted(pair.texts)
    frames = b"".join(
        b"%d:%b," % (len(data), data)
        for data in (text.encode("utf-8", "surrogatepass") for text in (pair.topic, low, high))
    )
    coin = blake2b(f"{seed}:".encode() + frames, digest_size=1, person=b"evenhand-order-2")
    is_low_first = coin.digest()[0] % 2 == 0
    return "12" if is_low_first == (pair.first.text == low) else "21"


def pair_text(pair: Pair) -> str:
    """Return a pair as one line of JSON: what the store keeps; `load_pair` reads it back."""
    candidates = [
        {"id": each.id, "text": each.text}
        | ({"model": each.model} if each.model else {})
        | ({"transcript": to_plain(each.transcript)} if each.transcript else {})
        for each in (pair.first, pair.second)
    ]
    return unit_text(pair, "topic", candidates=candidates, row=pair.row, meta=pair.meta)


class _PairBody(UnitBody, frozen=True, kw_only=True):
    topic: str
    candidates: tuple[Candidate, Candidate]
    row: str
    lengths: tuple[int | None, int | None] | None = None


_body: StoredText[_PairBody] = StoredText(_PairBody, "a pair")


def load_pair(text: str) -> Pair:
    """Return the pair of a line that `pair_text` wrote."""
    body = _body.read(text)
    first, second = body.candidates
    return Pair(
        topic=body.topic,
        first=first,
        second=second,
        row=body.row,
        given_lengths=body.lengths,
        **body.fields,
    )


def _alike(candidates: list[Candidate], topic: str, judged: Judged) -> list[Candidate]:
    """Return candidates that are all transcripts, or all texts: where one is a transcript, a text
    is the answer to the topic."""
    found = [each.transcript for each in candidates if each.transcript is not None]
    if all(each.is_plain and each.question.strip() == topic.strip() for each in found):
        return [replace(each, transcript=None) for each in candidates]
    return [
        each
        if each.transcript is not None
        else replace(each, transcript=plain_transcript(topic, each.text, judged))
        for each in candidates
    ]


def _candidates(row: Mapping[str, Any], judged: Judged) -> list[Candidate]:
    value = row.get("candidates")
    # Columns of a table: candidates.1.text, candidates.2.text, ...
    if isinstance(value, dict) and all(key.isdecimal() for key in value):
        value = [value[key] for key in sorted(value, key=int)]
    if value is None:
        raise FieldError("candidates", "absent_field")
    if not isinstance(value, list):
        raise FieldError("candidates", "no_list", found=type_name(value))
    if len(value) < 2:
        raise FieldError("candidates", "few_candidates", n=len(value))
    candidates: dict[str, Candidate] = {}
    for number, each in enumerate(value, 1):
        candidate = _candidate(each, number, judged)
        if candidate.id in candidates:
            raise RowError(Sentence("kinds.same_candidate", number=number, name=candidate.id))
        candidates[candidate.id] = candidate
    return list(candidates.values())


def _candidate(value: Any, number: int, judged: Judged) -> Candidate:
    path = f"candidates.{number}"
    if not isinstance(value, (dict, Mapping)):  # dict first: the abstract test is slow
        raise FieldError(path, "no_candidate", found=type_name(value))
    ident, text = value.get("id"), value.get("text")
    check_id(ident, f"{path}.id")
    transcript = None
    if holds_messages(value, "text"):
        transcript = read_transcript(value["messages"], judged)
        text = transcript.text
    if text is None:
        raise FieldError(f"{path}.text", "absent_field")
    if not isinstance(text, str):
        raise FieldError(f"{path}.text", "no_text", found=type_name(text))
    if not text.strip():
        raise FieldError(f"{path}.text", "empty_field")
    model = value.get("model")
    # Without an id a candidate is known by its place: 1, 2, ...
    name = str(number if ident in (None, "") else ident)
    model = model if isinstance(model, str) else ""
    return Candidate(id=name, text=text, model=model, transcript=transcript)


# Tables with one row per answer

AUTHORS = ("model", "prompt_variant")
"""The meta fields that say whose answer it is."""
_LISTED = ("reference", "context")
"""Of these all belong to a topic, where its answers differ in them."""


def gather(rows: Iterable[PlacedRow]) -> Gathered:
    """Return the topics of a long table, each with its candidates; raise RowError. Topics with a
    single answer, and answers that are empty, are left out, and counted in the remarks."""
    answers = list(rows)
    filled = [
        row for row in answers if holds_messages(row.value, "answer") or _read_answer(row).strip()
    ]
    names = _author_fields(filled)
    topics: dict[tuple[str, str], list[PlacedRow]] = {}
    for row in filled:
        topics.setdefault(_topic_key(row), []).append(row)
    paired = [group for group in topics.values() if len(group) > 1]
    empty, lonely = len(answers) - len(filled), len(topics) - len(paired)
    if not paired:
        raise RowError(Sentence("kinds.no_pairs", topics=lonely, empty=empty))
    remarks: list[str] = []
    if empty:
        remarks.append(Sentence("kinds.empty_answers", n=empty))
    if lonely:
        remarks.append(Sentence("kinds.lonely_topics", n=lonely))
    if any(map(_shared_id, paired)):
        remarks.append(Sentence("kinds.shared_id"))
    for name in _LISTED:
        if number := sum(len(_distinct(group, name)) > 1 for group in paired):
            remarks.append(Sentence("kinds.several_values", n=number, field=name))
    return Gathered([_gather_topic(group, names) for group in paired], remarks)


def _read_answer(row: PlacedRow) -> str:
    """Return the text of an answer, empty where there is none; raise RowError."""
    answer = row.value.get("answer")
    if answer is None or isinstance(answer, str):
        return answer or ""
    raise FieldError("answer", "no_text", found=type_name(answer), where=row.where)


def _meta(row: PlacedRow) -> Mapping[str, Any]:
    meta = row.value.get("meta")
    return meta if isinstance(meta, Mapping) else {}


def _author_fields(rows: Sequence[PlacedRow]) -> list[str]:
    """Return the fields that take more than one value, else those that have one; raise RowError
    where nothing says whose an answer is."""
    values = {name: {joined_id(filled_meta(row.value, [name])) for row in rows} for name in AUTHORS}
    given = [name for name in AUTHORS if values[name] - {""}]
    if rows and not given:
        raise RowError(Sentence("kinds.no_author"))
    return [name for name in given if len(values[name]) > 1] or given


def _topic_key(row: PlacedRow) -> tuple[str, str]:
    """Return what tells runs of a question apart, and the question."""
    try:
        topic = filled_text_of(row.value, "topic")
    except RowError as error:
        error.where = row.where
        raise
    questions = [str(value) for value in filled_meta(row.value, ("question_id",))]
    return joined_id(filled_meta(row.value, APART)), questions[0] if questions else question_hash(
        topic
    )


def _gather_topic(group: Sequence[PlacedRow], names: Sequence[str]) -> PlacedRow:
    """Return the row of candidates that the answers to one topic make."""
    apart, question = _topic_key(group[0])
    value: dict[str, Any] = {TOPIC_ID: f"{apart}/{_shared_id(group) or question}".lstrip("/")}
    value |= {"topic": _distinct(group, "topic")[0], "candidates": _name_answers(group, names)}
    first, *others = map(_meta, group)
    value["meta"] = meta = {
        name: item
        for name, item in first.items()
        if name not in AUTHORS and all(other.get(name) == item for other in others)
    }
    # Runs of one question are several rows: what they are about must be the same in all of them.
    if apart and meta.get("question_id") in (None, ""):
        meta["question_id"] = question
    are_transcripts = any(holds_messages(row.value, "answer") for row in group)
    for name in ("language", *EXTRAS):
        if name == "messages" and are_transcripts:
            continue
        if filled := _distinct(group, name):
            value[name] = filled if name in _LISTED and filled[1:] else filled[0]
    return PlacedRow(value, group[0].where)


def _distinct(group: Sequence[PlacedRow], name: str) -> list[Any]:
    """Return the different values of a field in the rows of a topic, sorted; lists of them opened,
    where a judge may be shown several."""
    values = [row.value[name] for row in group if is_given(row.value.get(name))]
    if name in _LISTED and any(value != values[0] for value in values):
        values = [item for each in values for item in (each if isinstance(each, list) else [each])]
    distinct = [value for at, value in enumerate(values) if value not in values[:at]]
    return sorted(distinct, key=as_text)


def _shared_id(group: Sequence[PlacedRow]) -> str:
    """Return the id that is the same in all rows of a topic, and so its own; empty without one."""
    ids = {"" if ident is None else str(ident) for ident in (row.value.get("id") for row in group)}
    return ids.pop() if len(ids) == 1 else ""


def _name_answers(group: Sequence[PlacedRow], names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the answers to a topic as candidates; raise RowError where two have one name."""
    candidates: list[dict[str, Any]] = []
    origins: dict[str, str] = {}
    for row in group:
        values = filled_meta(row.value, names)
        # A name in one field is what people call it. Of several, what is joined must stay apart.
        ident = as_text(values[0]) if values and len(names) == 1 else joined_id(values)
        if not ident:
            raise RowError(Sentence("kinds.no_name"), where=row.where)
        if ident in origins:
            raise RowError(
                Sentence("kinds.same_answer", name=ident, first=origins[ident], second=row.where)
            )
        origins[ident] = row.where
        is_transcript = holds_messages(row.value, "answer")
        name, field = ("messages", "messages") if is_transcript else ("text", "answer")
        candidate = {"id": ident, name: row.value[field]}
        model = _meta(row).get("model")
        candidates.append(candidate | ({"model": model} if model and model != ident else {}))
    return candidates
