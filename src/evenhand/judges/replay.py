"""A judge that answers with recorded replies, from a JSONL of `{"unit", "reply", ...}`.

A reply is found by unit, order, round and repeat (absent: "12", 1, 0); several rows with the same
four answer the question and its re-asks, in the order of the file. What the file holds, and not
where it lies, is the judge's identity.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from evenhand import limits
from evenhand.errors import DataError, NothingRecorded, ProviderRefused, quoted
from evenhand.exchange import Question, Reply, Style
from evenhand.folders import read_plain
from evenhand.jsontext import dump, parse
from evenhand.text import replace_surrogates

ADVICE = 'A row is {"unit": "...", "reply": "..."}; order, round, repeat and judge may be added.'


class ReplyKey(NamedTuple):
    """The fields that tell recorded replies apart."""

    unit: str
    order: str
    round: int
    repeat: int


class ReplayJudge:
    """Replies recorded earlier or elsewhere."""

    style: Style = "full"
    slots: int | None = None
    caveat: str = ""
    unavailable_reason: ProviderRefused | None = None

    def __init__(self, name: str, path: Path) -> None:
        data = _read_file(path)
        self.name, self._path = name, path
        self.account: Hashable = ("replay", str(path))
        self.identity: Mapping[str, Any] = {
            "provider": "replay",
            "content": f"blake2b:{hashlib.blake2b(data, digest_size=32).hexdigest()}",
            "by_unit": True,
        }
        self._replies = _read_replies(path, data)

    async def answer(self, question: Question) -> Reply:
        """Return the recorded reply; a re-ask that was not recorded gets the last one again. Raises
        NothingRecorded."""
        key = ReplyKey(question.unit, question.order, question.round, question.repeat)
        replies = self._replies.get(key)
        if not replies:
            raise NothingRecorded(
                f"no reply recorded for unit {quoted(key.unit)} (order {key.order},"
                f" round {key.round}, repeat {key.repeat}) in {self._path}"
            )
        return Reply(text=replies[min(question.reask, len(replies) - 1)], model=self.name)

    def load(self) -> None:
        """Nothing to bring in."""

    async def close(self) -> None:
        """Nothing to give back."""


def _read_file(path: Path) -> bytes:
    try:
        return read_plain(path, most=limits.REPLAY_BYTES)
    except OSError as error:
        raise DataError(
            f"the recorded replies cannot be read: {error.strerror}",
            where=str(path),
            advice="Name the file as replay/FILE, as seen from the suite's folder.",
        ) from None


def _read_replies(path: Path, data: bytes) -> dict[ReplyKey, list[str]]:
    """Return the replies of a file. Raises DataError with the line of a bad row."""
    replies: dict[ReplyKey, list[str]] = {}
    judges: set[str] = set()
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = _parse_row(line)
            judges |= {_field(row, "judge", "")} - {""}
            if len(judges) > 1:
                names = ", ".join(map(quoted, sorted(judges)))
                raise ValueError(f"replies of several judges: {names}")
            replies.setdefault(_key(row), []).append(_text(row))
        except ValueError as error:
            raise DataError(str(error), where=f"{path}:{number}", advice=ADVICE) from None
    return replies


def _parse_row(line: bytes) -> Mapping[str, Any]:
    if len(line) > limits.LINE_BYTES:
        raise ValueError(f"the line is longer than {limits.LINE_BYTES} bytes")
    try:
        row: Any = parse(line.decode())
    except ValueError as error:
        raise ValueError(f"not JSON in UTF-8: {error}") from None
    if not isinstance(row, Mapping):
        raise ValueError(f"not an object: {quoted(line.decode())}")
    return row


def _key(row: Mapping[str, Any]) -> ReplyKey:
    unit, order = row.get("unit"), _field(row, "order", "12")
    if not isinstance(unit, str):
        raise ValueError("`unit` is missing or is not a string")
    if order not in ("12", "21"):
        raise ValueError(f'`order` is "12" or "21", not {quoted(order)}')
    key = ReplyKey(unit, order, _field(row, "round", 1), _field(row, "repeat", 0))
    if key.round < 1 or key.repeat < 0:
        raise ValueError("`round` counts from 1, `repeat` from 0")
    return key


def _field(row: Mapping[str, Any], name: str, default: Any) -> Any:
    value = row.get(name)
    if value is not None and type(value) is not type(default):
        raise ValueError(f"`{name}` is not a {type(default).__name__}: {quoted(value)}")
    return default if value is None else value


def _text(row: Mapping[str, Any]) -> str:
    reply = row.get("reply")
    if not isinstance(reply, str | dict):
        raise ValueError("`reply` is missing or is neither a string nor an object")
    return replace_surrogates(reply if isinstance(reply, str) else dump(reply))
