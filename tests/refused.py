"""An error, known by the key of its message."""

import re
from contextlib import contextmanager

import pytest


@contextmanager
def refused(kind, key, says=""):
    """The block raises an error of this kind and key; a user reads what `says` matches."""
    with pytest.raises(kind) as caught:
        yield caught
    assert caught.value.args[0].key == key
    assert re.search(says, str(caught.value))
