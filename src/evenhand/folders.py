"""Files that someone else may have named: opened only where they are plain, lie within the folder
they may lie in, and are no larger than such a file is.

What lies where is asked of the file that was opened, not of its name: a link that is changed in
between leads nowhere.
"""

from __future__ import annotations

import os
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO

from evenhand.errors import UsageError
from evenhand.limits import TEXT_FILE_BYTES
from evenhand.words import Sentence


def is_within(path: Path, root: Path) -> bool:
    """Return True if a path stays in a folder, whatever `..` and links it goes through; it need not
    exist."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def open_plain(path: Path, root: Path | None = None) -> BinaryIO:
    """Return a plain file, open for reading; with a root, one that lies in it. Raise UsageError for
    any other, and OSError where it cannot be opened."""
    # A pipe would be waited for without end.
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    file = os.fdopen(number, "rb")
    try:
        status = os.fstat(number)
        if not S_ISREG(status.st_mode):
            raise UsageError(Sentence("files.not_plain"), where=str(path))
        if root is not None:
            real = Path(os.path.realpath(path))
            is_it = os.path.samestat(real.lstat(), status)
            if not is_it or not real.is_relative_to(os.path.realpath(root)):
                raise outside(path, root)
    except BaseException:
        file.close()
        raise
    return file


def outside(path: Path, root: Path) -> UsageError:
    """Return the error for a file that does not lie where it may."""
    return UsageError(Sentence("files.outside", path=str(path), folder=str(root)))


def read_plain(path: Path, root: Path | None = None, most: int = TEXT_FILE_BYTES) -> bytes:
    """Return all of a plain file that is no larger than `most` bytes; raise as `open_plain`
    does."""
    with open_plain(path, root) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise UsageError(Sentence("files.too_large", megabytes=most / 1024**2), where=str(path))
    return data


def read_text(path: Path, root: Path | None = None) -> str:
    """Return the text of a file; raise UsageError."""
    try:
        return read_plain(path, root).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(Sentence("files.unreadable", reason=reason), where=str(path)) from None
