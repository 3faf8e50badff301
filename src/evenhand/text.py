"""Characters that a reader does not see, or that a terminal obeys: found, named and shown."""

from __future__ import annotations

import json
import re

CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff"
"""Class of a regular expression: controls other than tab and line feed, and lone surrogates."""
INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
"""Class of a regular expression: characters that can split a word without being seen."""
_ESCAPED = "\u2028\u2029\ufdd0-\ufdef\ufffe\uffff\ue000-\uf8ff\U000f0000-\U0010ffff"
_SUSPECT = re.compile(f"[{CONTROLS}{INVISIBLE}{_ESCAPED}]")
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_HIDDEN = re.compile(
    # What writing needs has no name: flags of regions, joiners within emoji and scripts that join,
    # and the form chosen for an emoji or an ideograph.
    "\U0001f3f4[\U000e0061-\U000e007a]{1,8}\U000e007f"
    "|(?<=[\u0590-\u1fff\u2190-\ufdff\ufe0f\U00010000-\U0001ffff])[\u200c\u200d]"
    f"|(?<=[#*0-9\u00a9\u00ae\u1000-\u109f\u203c-\ufdff\uff00-\uffef\U0001f000-\U0003ffff])"
    f"[{_SELECTORS}]"
    "|(?<=[\u1800-\u18af])[\u180b-\u180f]"
    "|(?<=[\u1100-\u11ff])\u1160|\u115f(?=[\u1160-\u11a7])"
    f"|(?P<escaped>\r(?=\n)|[{_ESCAPED}])"
    f"|(?P<control>[{CONTROLS}])"
    "|(?P<bidi>[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069])"
    "|(?P<tags>[\U000e0000-\U000e007f])"
    f"|(?P<zero_width>[{INVISIBLE}])"
)
_BEYOND_BMP = 0x10000


def replace_surrogates(text: str) -> str:
    """Return `text` with lone surrogates, which no store and no file takes, replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def hidden_characters(*texts: str) -> list[str]:
    """Return the kinds of characters in some texts that could hide words from a reader: of
    `bidi`, `control`, `tags` and `zero_width`, those that are there."""
    suspects = [text for text in texts if _SUSPECT.search(text)]
    kinds = {match.lastgroup for text in suspects for match in _HIDDEN.finditer(text)}
    return sorted(kind for kind in kinds if kind not in (None, "escaped"))


def visible(text: object) -> str:
    """Return a text with escapes for all that is hidden or that a terminal obeys; line feeds and
    tabs are left."""
    text = str(text)
    return _HIDDEN.sub(_escape, text) if _SUSPECT.search(text) else text


def visible_json(text: str) -> str:
    """Return a JSON text of the same value, with JSON's own escapes for what is hidden."""
    return _HIDDEN.sub(_escape_json, text) if _SUSPECT.search(text) else text


def _escape(match: re.Match[str]) -> str:
    if match.lastgroup is None:
        return match[0]
    code = ord(match[0])
    return f"\\u{code:04x}" if code < _BEYOND_BMP else f"\\U{code:08x}"


def _escape_json(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1] if match.lastgroup else match[0]
