"""Characters that nobody sees, or that a terminal obeys: which there are, where writing needs them,
and how they are shown. Flags, terminals, reports and pages all go by this.

What writing needs is left as it is: flags and families of emoji, the form chosen for an emoji, an
ideograph or a sign, joiners within words of scripts that join, blanks within braille and fillers
within old Hangul. A soft hyphen is always named: readers see none, and words can be taken apart
with it.
"""

from __future__ import annotations

import json
import re

from evenhand.regexp import regexp

KINDS = (
    *("tags", "bidi", "variation", "zero_width"),
    *("soft_hyphen", "filler", "control", "format", "private_use"),
)
"""In the order in which they are told."""

_CLASSES = {
    "control": "\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff",
    "line": "\u2028\u2029",
    "soft_hyphen": "\u00ad",
    "format": "\u034f\u2065\u206a-\u206f\ufff0-\ufffb",
    "bidi": "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069",
    "filler": "\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0",
    "variation": "\u180b-\u180d\u180f\ufe00-\ufe0f",
    "zero_width": "\u180e\u200b\u2060-\u2064\ufeff",
    "joiner": "\u200c\u200d",
    "private_use": "\ue000-\uf8ff",
}
_BEYOND_START = 0x10000
_BEYOND = {
    "format": "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a",
    "variation": "\U000e0100-\U000e01ef",
    "tags": "\U000e0000-\U000e0fff",
    "private_use": "\U000f0000-\U0010ffff",
}
"""Those of other planes than the first; the first that has a character names it."""
UNSEEN = regexp(f"[{''.join(_CLASSES.values())}\U0001bca0-\U0001d17a\U000e0000-\U0010ffff]")
"""Finds each of them, and some between. Every text is searched for it, and each range beyond the
first plane costs as much as that plane."""
ASCII_CONTROLS = bytes((*range(0x09), *range(0x0B, 0x20), 0x7F))
"""Those of them that ASCII has: a text in it is searched for them byte by byte, much faster."""
_CLASS, _CLASS_BEYOND = (
    regexp("|".join(f"(?P<{name}>[{letters}])" for name, letters in classes.items()))
    for classes in (_CLASSES, _BEYOND)
)
IN_WORDS = "".join(
    letters
    for classes in (_CLASSES, _BEYOND)
    for name, letters in classes.items()
    if name not in ("control", "line", "private_use")
)
"""The set, for a regular expression, of what a word can be taken apart with unseen."""
_FLAG = regexp("\U0001f3f4[\U000e0061-\U000e007a]{1,8}\U000e007f")
_FLAG_CHARS = 10
_BRAILLE_CHARS = 40
"""How far from a blank the next dots may be."""

_IDEOGRAPH = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_EMOJI = "#*0-9\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff"
_MONGOLIAN = regexp("[\u1800-\u180a\u1810-\u18af]")
_VARIED = regexp(f"[{_IDEOGRAPH}{_EMOJI}\u1000-\u109f\ua840-\ua877\uff00-\uffef]")
_IDEOGRAPHS = regexp(f"[{_IDEOGRAPH}]")
_JOINING = regexp(
    "[\u0590-\u0dff\u0f00-\u109f\u1780-\u180a\u1810-\u18af\u1900-\u1cff\ua800-\uabff"
    "\ufb1d-\ufdff\ufe70-\ufefc\U00010a00-\U00011fff\U0001e800-\U0001e95f]"
)
_EMOJI_BEFORE, _EMOJI_AFTER = regexp(f"[{_EMOJI}\ufe0f]"), regexp(f"[{_EMOJI}]")
_LEADING_JAMO = regexp("[\u1100-\u115e\ua960-\ua97c]")
_VOWEL_JAMO = regexp("[\u1161-\u11a7\ud7b0-\ud7c6]")


def kind_of(match: re.Match[str]) -> str | None:
    """The kind of what UNSEEN found; None where writing needs it."""
    letter, text, at = match[0], match.string, match.start()
    group = (_CLASS if ord(letter) < _BEYOND_START else _CLASS_BEYOND).match(letter)
    kind = group and group.lastgroup
    before, after = text[max(0, at - 1) : at], text[at + 1 : at + 2]
    if kind == "line" or (letter == "\r" and after == "\n"):
        return None
    if kind == "joiner":
        return None if _joins(letter, before, after) else "zero_width"
    is_needed = (
        (kind == "variation" and _varies(letter, before))
        or (kind == "filler" and (_fills(letter, before, after) or _is_in_braille(text, at)))
        or (kind == "tags" and _is_in_flag(text, at))
    )
    return None if is_needed else kind


def _is_in_flag(text: str, at: int) -> bool:
    start = text.rfind("\U0001f3f4", max(0, at - _FLAG_CHARS), at)
    flag = _FLAG.match(text, start) if start >= 0 else None
    return flag is not None and flag.end() > at


def _is_in_braille(text: str, at: int) -> bool:
    """Whether dots stand near a blank, with nothing but blanks between."""
    if text[at] != "\u2800":
        return False
    before = text[max(0, at - _BRAILLE_CHARS) : at].rstrip("\u2800")[-1:]
    after = text[at : at + _BRAILLE_CHARS].lstrip("\u2800")[:1]
    return any("\u2800" < letter <= "\u28ff" for letter in (before, after))


def _joins(joiner: str, before: str, after: str) -> bool:
    if _JOINING.match(before):
        return True
    is_emoji = _EMOJI_BEFORE.match(before) and _EMOJI_AFTER.match(after)
    return joiner == "\u200d" and bool(is_emoji)


def _varies(selector: str, before: str) -> bool:
    if selector > "\uffff":
        return _IDEOGRAPHS.match(before) is not None
    pattern = _MONGOLIAN if selector < "\u1810" else _VARIED
    return pattern.match(before) is not None


def _fills(filler: str, before: str, after: str) -> bool:
    if filler == "\u115f":
        return _VOWEL_JAMO.match(after) is not None
    return filler == "\u1160" and _LEADING_JAMO.match(before) is not None


def visible(text: object) -> str:
    """A text in which nothing is hidden and nothing obeyed by a terminal: what writing does not
    need is shown as escapes. Line breaks and tabs are left."""
    text = str(text)
    return text if text.isascii() and text.isprintable() else UNSEEN.sub(_escaped, text)


def visible_json(text: str) -> str:
    """The same for a text in JSON, which stays equal: its own escapes are used."""
    return UNSEEN.sub(_escaped_json, text)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    if not _is_shown(match):
        return match[0]
    return f"\\u{code:04x}" if code < _BEYOND_START else f"\\U{code:08x}"


def _escaped_json(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1] if _is_shown(match) else match[0]


def _is_shown(match: re.Match[str]) -> bool:
    """Whether it is to be shown as an escape: also what hides nothing, but breaks lines."""
    return kind_of(match) is not None or match[0] in "\r\u2028\u2029"
