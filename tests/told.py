"""A message that a command wrote, known by its key."""

import re
from string import Formatter

from evenhand.words import words

PLAIN = str.maketrans({"→": "->", "−": "-", "–": "-"})
"""Characters that a terminal is spared, and a page is not."""


def told(text, key, language="en", /, **values):
    """Return True if the text has the sentence of this key, with these values."""
    template = words(language)._text(key).translate(PLAIN)
    pattern = ""
    for literal, name, *_ in Formatter().parse(template):
        pattern += re.escape(" ".join(f"^{literal}$".split())[1:-1])
        if name is not None:
            pattern += re.escape(str(values.pop(name))) if name in values else ".*?"
    assert not values, f"{key} has no {set(values)}"
    return re.search(pattern, " ".join(text.translate(PLAIN).split())) is not None
