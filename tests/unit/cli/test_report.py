"""`evenhand report`: options of the command that reach the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.cli.weekly import BY, ROWS, paired


def test_it_lists_what_changed_most_and_names_the_units_it_is_of(call, weeks):
    flags = "--where model=small --language ru"
    said = call(f"report -o week.html {BY} {flags}")
    assert (said.code, said.out) == (0, "")
    assert "Only model = small: 120 of 240 units." in said.err
    page = Path("week.html").read_text()
    assert "Только model = small: 120 из 240 объектов." in page and "r1/big/" not in page
    section = page[page.index('<section id="changed">') : page.index('<section id="units">')]
    assert '<div class="pairs">' in section
    gaps = sorted(
        (gap, row.row["model_output"])
        for row, _, gap in paired([row for row in ROWS if row.model == "small"])
    )
    told = [float(value) for value in re.findall(r'data-difference="(.*?)"', section)]
    assert told == pytest.approx([gap for gap, _ in [*gaps[:10], *gaps[-10:]]])
    shown = [text for _, text in gaps if text in section and f"correct: {text}" in section]
    assert shown
