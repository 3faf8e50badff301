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
from evenhand.errors import DataError, NothingRecorded
from evenhand.exchange import Judge, Question, Reply
from evenhand.folders import read_plain
from evenhand.jsontext import dump, parse
from evenhand.judges.providers import JudgeOptions, Provider
from evenhand.text import replace_surrogates
from evenhand.words import Sentence, few


class ReplyKey(NamedTuple):
    """The fields that tell recorded replies apart."""

    unit: str
    order: str
    round: int
    repeat: int


class ReplayJudge(Judge):
    """Replies recorded earlier or elsewhere."""

    def __init__(self, provider: Provider, options: JudgeOptions, file: str) -> None:
        self.name, self._path = options.name, options.folder / file
        data = _read_file(self._path)
        self.account: Hashable = (provider.name, str(self._path))
        self.identity: Mapping[str, Any] = {
            "provider": provider.name,
            "content": f"blake2b:{hashlib.blake2b(data, digest_size=32).hexdigest()}",
            "by_unit": True,
        }
        self._replies = _read_replies(self._path, data)

    async def answer(self, question: Question) -> Reply:
        """Return the recorded reply; a re-ask that was not recorded gets the last one again. Raises
        NothingRecorded."""
        key = ReplyKey(question.unit, question.order, question.round, question.repeat)
        replies = self._replies.get(key)
        if not replies:
            raise NothingRecorded
        return Reply(text=replies[min(question.reask, len(replies) - 1)], model=self.name)


def _read_file(path: Path) -> bytes:
    try:
        return read_plain(path, most=limits.REPLAY_BYTES)
    except OSError as error:
        raise DataError(
            Sentence("judges.replies_unreadable", reason=error.strerror), where=str(path)
        ) from None


def _read_replies(path: Path, data: bytes) -> dict[ReplyKey, list[str]]:
    """Return the replies of a file. Raises DataError with the line of a bad row."""
    replies: dict[ReplyKey, list[str]] = {}
    judges: set[str] = set()
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            key, reply, judge = _read_row(line)
            judges |= {judge} - {""}
            if len(judges) > 1:
                raise ValueError(Sentence("judges.several_judges", names=few(sorted(judges), 5)))
        except ValueError as error:
            advice = Sentence("judges.reply_row")
            raise DataError(error.args[0], where=f"{path}:{number}", advice=advice) from None
        replies.setdefault(key, []).append(reply)
    return replies


def _read_row(line: bytes) -> tuple[ReplyKey, str, str]:
    """Return the key, the reply and the judge of a row. Raises ValueError."""
    if len(line) > limits.LINE_BYTES:
        raise ValueError(Sentence("judges.long_line", n=limits.LINE_BYTES))
    try:
        row: Any = parse(line.decode())
    except ValueError as error:
        raise ValueError(Sentence("judges.not_json", reason=error)) from None
    if not isinstance(row, Mapping):
        raise ValueError(Sentence("judges.not_object", line=line.decode()))
    unit, reply = row.get("unit"), row.get("reply")
    if not isinstance(unit, str):
        raise ValueError(Sentence("judges.no_unit"))
    if not isinstance(reply, str | dict):
        raise ValueError(Sentence("judges.no_reply"))
    key = ReplyKey(
        unit, _field(row, "order", "12"), _field(row, "round", 1), _field(row, "repeat", 0)
    )
    if key.order not in ("12", "21") or key.round < 1 or key.repeat < 0:
        raise ValueError(Sentence("judges.bad_place"))
    text = reply if isinstance(reply, str) else dump(reply)
    return key, replace_surrogates(text), _field(row, "judge", "")


def _field(row: Mapping[str, Any], name: str, default: Any) -> Any:
    value = row.get(name)
    if value is not None and type(value) is not type(default):
        raise ValueError(Sentence("judges.bad_field", name=name, value=value))
    return default if value is None else value
