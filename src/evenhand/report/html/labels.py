"""Names as a picture has them: short, still different from each other, in lines, and how wide."""

from __future__ import annotations

import re
from collections.abc import Sequence
from unicodedata import east_asian_width

from evenhand.text import visible

FONT = 12.5
"""The size of letters."""
LABEL, LABEL_LINE, LABEL_LINES = 40, 16, 3
"""Columns of a name in a picture, of which one line has so many; the table beside it has all."""
LEGEND_LABEL = 160
"""Columns of a name in a legend: the page writes it, in as many lines as it takes."""
_ROOM = 1.1
"""A reader's font may be a tenth wider than the one that widths are of."""
_EMS = {
    **dict.fromkeys("fijlrtI.,:;'|!()[]/\\ -·", 0.34),
    **dict.fromkeys("mwMWОЖМФШЩЮжмфшщыю@%…—", 0.87),
}
"""Widths of letters that are far from most, in the size of the font."""
_EM, _CAPITAL_EM = 0.57, 0.7


def labels(names: Sequence[str], most: int = LABEL) -> list[str]:
    """Names short enough for a picture, and still different from each other."""
    short_names: list[str] = []
    for name in names:
        flat = " ".join(visible(name).split())
        short = flat if columns_of(flat) <= most else f"{_head(flat, most - 1)}…"
        number = 2
        while short in short_names:
            short = f"{_head(flat, most - 4)}… {number}"
            number += 1
        short_names.append(short)
    return short_names


def columns_of(text: str) -> int:
    """How wide a text is: two columns a character of Chinese or Japanese, one any other."""
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def text_width(text: str) -> float:
    """About how many pixels a text takes, more rather than less."""
    return FONT * _ROOM * sum(map(_em, visible(text)))


def widest(names: Sequence[str]) -> float:
    """The pixels that the widest line of all names takes."""
    return max((text_width(line) for name in names for line in name.split("\n")), default=0.0)


def _em(character: str) -> float:
    if east_asian_width(character) in "WF":
        return 1.0
    return _EMS.get(character) or (_CAPITAL_EM if character.isupper() else _EM)


def _head(text: str, most: int) -> str:
    """As much of a text as so many columns hold."""
    while columns_of(text) > most:
        text = text[:-1]
    return text


def wrapped(name: str) -> str:
    """A name in lines that are short enough for an axis, broken where words or parts of a name
    end."""
    lines: list[str] = []
    while columns_of(name) > LABEL_LINE and len(lines) < LABEL_LINES - 1:
        end = _line_end(name)
        lines.append(name[:end].rstrip())
        name = name[end:].lstrip()
    if columns_of(name) > LABEL_LINE:
        name = f"{_head(name.removesuffix('…'), LABEL_LINE - 1)}…"
    return "\n".join([*lines, name])


def _line_end(name: str) -> int:
    """Where the first line of a name ends: at a space or after what parts a name, unless it would
    be short and the word after it longer than a line; else anywhere."""
    whole = len(_head(name, LABEL_LINE))
    if name[whole : whole + 1] == " ":
        return whole
    space = name[:whole].rfind(" ")
    part = 1 + max(name[:whole].rfind(sign) for sign in "-_/.:·")
    end = max(space, part)
    has_line = end > 0 and columns_of(re.split(r"[ _/.:·-]", name[end:].lstrip())[0]) <= LABEL_LINE
    return end if end > whole // 3 or has_line else whole
