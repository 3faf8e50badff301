"""A judge that answers with recorded replies, from a JSONL of `{"unit", "reply", ...}`.

A reply is found by unit, order, round and repeat (absent: "12", 1, 0); several rows with the same
four answer the question and its re-asks, in the order of the file. What the file holds, and not
where it lies, is the judge's identity.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from evenhand import limits
from evenhand.errors import DataError, NothingRecorded, ProviderRefused, quoted
from evenhand.exchange import Question, Reply, Style
from evenhand.folders import read_plain
from evenhand.jsontext import dump, parse
from evenhand.judges.sampling import storable

ADVICE = 'A row is {"unit": "...", "reply": "..."}; order, round, repeat and judge may be added.'


class ReplyKey(NamedTuple):
    """What tells recorded replies apart."""

    unit: str
    order: str
    round: int
    repeat: int


class ReplayJudge:
    """Replies recorded earlier or elsewhere. `judge` picks one where a file holds several."""

    style: Style = "full"
    slots: int | None = None
    caveat: str = ""
    unavailable_reason: ProviderRefused | None = None

    def __init__(self, name: str, path: Path, *, judge: str | None = None) -> None:
        data = _read(path)
        digest = hashlib.blake2b(data, digest_size=32).hexdigest()
        self.name = name
        self.account: Hashable = ("replay", str(path))
        self.identity: Mapping[str, Any] = {
            "provider": "replay",
            "content": f"blake2b:{digest}",
            "judge": judge,
            "by_unit": True,
        }
        self._path = path
        self._replies = _recorded(path, data, judge)

    async def answer(self, question: Question) -> Reply:
        """The recorded reply; a re-ask that was not recorded gets the last one again."""
        key = ReplyKey(question.unit, question.order, question.round, question.repeat)
        replies = self._replies.get(key)
        if not replies:
            raise NothingRecorded(self._missing(key))
        return Reply(text=replies[min(question.reask, len(replies) - 1)], model=self.name)

    def load(self) -> None:
        """Nothing to bring in."""

    async def close(self) -> None:
        """Nothing to give back."""

    def _missing(self, key: ReplyKey) -> str:
        where = f"order {key.order}, round {key.round}, repeat {key.repeat}"
        return f"no reply recorded for unit {quoted(key.unit)} ({where}) in {self._path}"


def _read(path: Path) -> bytes:
    try:
        return read_plain(path, most=limits.REPLAY_BYTES)
    except OSError as error:
        raise DataError(
            f"the recorded replies cannot be read: {error.strerror}",
            where=str(path),
            advice="Name the file as replay/FILE, as seen from the suite's folder.",
        ) from None


def _recorded(path: Path, data: bytes, judge: str | None) -> dict[ReplyKey, list[str]]:
    replies: dict[ReplyKey, list[str]] = {}
    judges: set[str] = set()
    for where, row in _rows(path, data):
        by = _field(row, "judge", "", where)
        if judge is not None and by not in ("", judge):
            continue
        judges.add(by)
        if len(judges - {""}) > 1:
            raise DataError(f"replies of several judges: {_listed(judges)}", where=where)
        replies.setdefault(_key(row, where), []).append(_reply(row, where))
    return replies


def _listed(judges: set[str]) -> str:
    return ", ".join(quoted(name) for name in sorted(judges - {""}))


def _rows(path: Path, data: bytes) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        where = f"{path}:{number}"
        if line.strip():
            yield where, _row(line, where)


def _row(line: bytes, where: str) -> dict[str, Any]:
    if len(line) > limits.LINE_BYTES:
        raise _bad(f"the line is longer than {limits.LINE_BYTES} bytes", where)
    try:
        row: Any = parse(line.decode())
    except ValueError as error:
        raise _bad(f"not JSON in UTF-8: {error}", where) from None
    if not isinstance(row, dict):
        raise _bad(f"not an object: {quoted(line.decode())}", where)
    return cast("dict[str, Any]", row)


def _key(row: Mapping[str, Any], where: str) -> ReplyKey:
    if not isinstance(row.get("unit"), str):
        raise _bad("`unit` is missing or is not a string", where)
    order = _field(row, "order", "12", where)
    if order not in ("12", "21"):
        raise _bad(f'`order` is "12" or "21", not {quoted(order)}', where)
    turn, repeat = _field(row, "round", 1, where), _field(row, "repeat", 0, where)
    if turn < 1 or repeat < 0:
        raise _bad("`round` counts from 1, `repeat` from 0", where)
    return ReplyKey(row["unit"], order, turn, repeat)


def _field(row: Mapping[str, Any], name: str, default: Any, where: str) -> Any:
    value = row.get(name)
    if value is None:
        return default
    if type(value) is not type(default):
        raise _bad(f"`{name}` is not a {type(default).__name__}: {quoted(value)}", where)
    return value


def _reply(row: Mapping[str, Any], where: str) -> str:
    reply = row.get("reply")
    if isinstance(reply, str):
        return storable(reply)
    if isinstance(reply, dict):
        return storable(dump(reply))
    raise _bad("`reply` is missing or is neither a string nor an object", where)


def _bad(what: str, where: str) -> DataError:
    return DataError(what, where=where, advice=ADVICE)
