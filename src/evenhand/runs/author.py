"""Who starts a run."""

from __future__ import annotations

import getpass
import os
from contextlib import suppress

from evenhand.limits import AUTHOR_LENGTH
from evenhand.text import visible

VARIABLE = "EVENHAND_AUTHOR"


def author() -> str:
    """Return the name that the environment gives, else the login name, on a line; empty if there is
    none."""
    name = os.environ.get(VARIABLE, "")
    with suppress(OSError, KeyError, ImportError):  # a container may have no name for its user
        name = name or getpass.getuser()
    return " ".join(visible(name).split())[:AUTHOR_LENGTH]
