"""Regular expressions that are compiled when they are first used.

Compiling all that the package may ever look for takes longer than many a command; most of them
look for nothing.
"""

from __future__ import annotations

import re
from typing import Any, cast

_METHODS = ("search", "match", "fullmatch", "split", "findall", "finditer", "sub", "subn")


class _LazyPattern:
    """Stands for a compiled expression: the first method that is asked for compiles it, and from
    then on all methods are those of the compiled one."""

    def __init__(self, source: str, flags: int) -> None:
        self.pattern, self._flags = source, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self._flags)
        vars(self).update({method: getattr(compiled, method) for method in _METHODS})
        return getattr(compiled, name)


def regexp(source: str, flags: int = 0) -> re.Pattern[str]:
    """The expression, not compiled yet. What is wrong with it is raised when it is used: for
    expressions that stand in the code, where a test uses each."""
    return cast("re.Pattern[str]", _LazyPattern(source, flags))
