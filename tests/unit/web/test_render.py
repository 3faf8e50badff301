"""The templates of the interface insert nothing that is not escaped."""

from __future__ import annotations

import re
from importlib import resources

ROOM = resources.files("evenhand.web")


def test_no_template_marks_data_as_safe():
    for file in (ROOM / "templates").iterdir():
        source = file.read_text(encoding="utf-8")
        assert "|safe" not in source.replace(" ", "")
        assert "autoescape" not in source
        assert not re.search(r"\son\w+=", source), file.name
        assert not re.search(r"<script(?! src=)", source), file.name
        assert not re.search(r"\sstyle=", source), file.name
