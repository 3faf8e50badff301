"""From an input row to its pairs, or the sentence that says what is wrong with the row.

A row with more than two candidates is all pairs among them. What a pair holds does not depend on
the other candidates of its row, nor on where they and the row stand; only a row of two with an id
of its own says which of them is `A`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from itertools import combinations
from typing import Any, cast

from msgspec import Raw

from evenhand import jsontext
from evenhand.jsontext import StoredText
from evenhand.kinds.rows import (
    EXTRAS,
    ExtrasBody,
    RowError,
    check_id,
    extras_of,
    filled_text_of,
    language_of,
    meta_of,
    named,
    raw_object,
    without_empty,
)
from evenhand.units import Candidate, Pair, named_pair_id, own_pair_id, topic_id

_TEXTS = ("topic",)
FIELDS = ("id", "pair_id", "topic", "candidates", "meta", "language", *EXTRAS)


def read_pairs(row: Mapping[str, Any]) -> list[Pair]:
    """Return the pairs of a row; raises RowError."""
    row = without_empty(row, _TEXTS)
    topic, candidates = filled_text_of(row, "topic", FIELDS), _candidates(row)
    for name in ("id", "pair_id"):
        check_id(row.get(name), name)
    meta, language, extras, ident = meta_of(row), language_of(row), extras_of(row), topic_id(row)
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
            meta=meta,
            language=language,
            extras=extras,
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
    return first.strip() == second.strip()


def first_order(seed: int, pair: Pair) -> str:
    """Which order of a pair counts first: `12`, or `21` with the second candidate shown first. A
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
    body: dict[str, Any] = {
        "id": pair.id,
        "topic": pair.topic,
        "candidates": [_candidate_value(pair.first), _candidate_value(pair.second)],
        "row": pair.row,
        "meta": pair.meta,
    }
    if pair.language is not None:
        body["language"] = pair.language
    for name, value in pair.extras.items():
        if value is not None:
            body[name] = value
    return jsontext.dump(body)


class _PairBody(ExtrasBody, frozen=True):
    id: str
    topic: str
    candidates: tuple[Candidate, Candidate]
    row: str
    meta: Raw
    language: str | None = None
    lengths: tuple[int | None, int | None] | None = None


_body: StoredText[_PairBody] = StoredText(_PairBody, "a pair")


def load_pair(text: str) -> Pair:
    """Return the pair of a line that `pair_text` wrote."""
    body = _body.read(text)
    first, second = body.candidates
    return Pair(
        id=body.id,
        topic=body.topic,
        first=first,
        second=second,
        row=body.row,
        given_lengths=body.lengths,
        meta=raw_object(body.meta),
        language=body.language,
        extras=body.extras,
    )


def _candidate_value(candidate: Candidate) -> dict[str, str]:
    value = {"id": candidate.id, "text": candidate.text}
    if candidate.model:
        value["model"] = candidate.model
    return value


def _candidates(row: Mapping[str, Any]) -> list[Candidate]:
    value = row.get("candidates")
    if isinstance(value, str):
        try:
            value = jsontext.parse(value)
        except ValueError as error:
            raise RowError(f'"candidates" is a text that is not JSON: {error}') from None
    if value is None:
        raise RowError('"candidates" is missing')
    if not isinstance(value, list) and isinstance(value, Mapping):
        value = _numbered(cast("Mapping[str, Any]", value))
    if not isinstance(value, list):
        raise RowError(f'"candidates" must be a list, and is {named(value)}')
    rows = cast("Sequence[object]", value)
    if len(rows) < 2:
        raise RowError(f'"candidates" must hold two or more answers, and holds {len(rows)}')
    candidates = [_candidate(candidate, i) for i, candidate in enumerate(rows)]
    ids: set[str] = set()
    for i, candidate in enumerate(candidates):
        if candidate.id in ids:
            raise RowError(f"candidates[{i}].id: two candidates are called {candidate.id!r}")
        ids.add(candidate.id)
    return candidates


def _numbered(columns: Mapping[str, Any]) -> object:
    """Candidates from the columns of a table: `candidates.1.text`, `candidates.2.text`, ..."""
    if not all(key.isdecimal() for key in columns):
        return columns
    return [columns[key] for key in sorted(columns, key=int)]


def _candidate(value: object, index: int) -> Candidate:
    path = f"candidates[{index}]"
    if not isinstance(value, (dict, Mapping)):  # dict first: the abstract test is slow
        raise RowError(f'"{path}" must be an object with "id" and "text", and is {named(value)}')
    fields = cast("Mapping[str, Any]", value)
    ident, text = fields.get("id"), fields.get("text")
    check_id(ident, f"{path}.id")
    if not isinstance(text, str):
        what = "is missing" if text is None else f"must be a text, and is {named(text)}"
        raise RowError(f'"{path}.text" {what}')
    if not text.strip():
        raise RowError(f'"{path}.text" is empty')
    # Without an id a candidate is known by its place: 1, 2, ...
    return Candidate(
        id=str(index + 1 if ident in (None, "") else ident), text=text, model=_model(fields)
    )


def _model(fields: Mapping[str, Any]) -> str:
    """The model behind a candidate, where the row names it apart from the id."""
    model, meta = fields.get("model"), fields.get("meta")
    if not model and meta is not None and isinstance(meta, Mapping):
        model = cast("Mapping[str, Any]", meta).get("model")
    return model if isinstance(model, str) else ""
