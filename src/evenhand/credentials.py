"""Addresses without the password in them, for wherever one is shown, logged or kept."""

from __future__ import annotations

import re

_START = (
    # A path may hold an @, and a store in a file has no password.
    r"(?:(?<![\w+.-])(?!sqlite:)[a-z][a-z0-9+.-]+:/{1,2}|(?<![^\s\"'=(,])//"
    r"|(?<!\w)postgres(?:ql)?:)"
)
_ADDRESS = re.compile(rf"({_START}).*@", re.IGNORECASE | re.DOTALL)
# Advice shows how an address looks, with words in the place of a name and a password.
_PLACEHOLDER = r"(?!/{0,2}(?:USER|me|user:password)@[^\s@]*(?:\s|$))"
_IN_TEXT = re.compile(rf"({_START}){_PLACEHOLDER}\S*@", re.IGNORECASE)
_SETTING = re.compile(r"([?&](?:ssl)?password=)[^&\s]*", re.IGNORECASE)
_HIDDEN = r"\1***"


def hide_in_address(address: str) -> str:
    """Return an address without what stands between its `//` and its last `@`."""
    return _ADDRESS.sub(rf"{_HIDDEN}@", _SETTING.sub(_HIDDEN, address))


def hide_credentials(text: str) -> str:
    """Return a text in which every address is without what stands between its `//` and its last
    `@`; an address ends at white space."""
    if "@" not in text and "password=" not in text:
        return text
    return _IN_TEXT.sub(rf"{_HIDDEN}@", _SETTING.sub(_HIDDEN, text))
