"""Units in compact form: what goes in comes out, and what is too long is cut with a mark."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evenhand.report.html import pack
from evenhand.report.html.pack import KINDS, PackedUnits, Packer, cut
from evenhand.report.html.units import (
    group_block,
    items_block,
    notice_block,
    section_block,
    table_block,
    text_block,
)

BLOCKS = [
    text_block("Question", [["one"], ["two", "1,2", "1 clear"], ["one"]], note="n"),
    {"kind": "columns", "columns": [[notice_block("left", "bad")], [notice_block("right")]]},
    table_block("Scores", ["a", "b"], [[["x", ""], ["5", "strong"]], [["x", ""], ["", ""]]]),
    items_block("Flags", [("snapped", "near")], "warn"),
    section_block("by", [group_block("Call 1", [text_block("", [["prompt"]], part="call")])]),
]
LINE = {
    "id": "u1",
    "who": "v1",
    "result": "5",
    "text": "Why?",
    "chips": ["A"],
    "flags": ["snapped"],
}


def _unpacked(packed: PackedUnits, place: int) -> list[dict[str, Any]]:
    """The blocks again, by a reader that shares no code with the writer."""
    say = packed.strings

    def block(made: list[Any]) -> dict[str, Any]:
        kind, rest = KINDS[made[0]], made[1:]
        if kind == "text":
            segments = [
                [say[one]] if isinstance(one, int) else [say[part] for part in one]
                for one in rest[3]
            ]
            label, note, part = (say[one] for one in rest[:3])
            return {
                "kind": kind,
                "label": label,
                "note": note,
                "segments": segments,
                "part": part,
            }
        if kind == "columns":
            return {"kind": kind, "columns": [[block(one) for one in c] for c in rest[0]]}
        if kind == "table":
            rows = [
                [[say[c], ""] if isinstance(c, int) else [say[c[0]], say[c[1]]] for c in row]
                for row in rest[2]
            ]
            return {
                "kind": kind,
                "label": say[rest[0]],
                "head": [say[h] for h in rest[1]],
                "rows": rows,
            }
        if kind == "items":
            items = [[say[part] for part in one] for one in rest[2]]
            return {"kind": kind, "label": say[rest[0]], "items": items, "tone": say[rest[1]]}
        if kind == "notice":
            return {"kind": kind, "text": say[rest[0]], "tone": say[rest[1]]}
        return {"kind": kind, "label": say[rest[0]], "blocks": [block(one) for one in rest[1]]}

    return [block(one) for one in json.loads(packed.units[place][6])]


def test_blocks_come_out_as_they_went_in() -> None:
    packer = Packer(["flags"], static=1)
    packer.add(LINE, BLOCKS)
    packer.add(LINE | {"id": "u2"}, BLOCKS[:1])
    packed = packer.packed(2)
    assert _unpacked(packed, 0) == BLOCKS and _unpacked(packed, 1) == BLOCKS[:1]
    assert [packed.strings[unit[0]] for unit in packed.units] == ["u1", "u2"]
    assert len(set(map(str, packed.strings))) == len(packed.strings)
    assert packed.facets[0].values == ["snapped"] and packed.units[1][5] == [[0]]
    assert [line["id"] for line, _ in packed.static_units] == ["u1"] and not packed.was_cut


@pytest.mark.parametrize("length", [0, 100, 140, 141, 5000])
def test_a_text_is_cut_in_the_middle_and_says_how_much_is_gone(length: int) -> None:
    text = "".join(chr(0x4E00 + i % 500) for i in range(length))
    made = cut(text, 100)
    if length <= 140:
        assert made == text
        return
    head, gone, tail = made
    assert text.startswith(head) and text.endswith(tail)
    assert len(head) + gone + len(tail) == length and len(head) + len(tail) == 100


def test_long_texts_are_cut_until_they_fit_and_marked_ones_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pack, "BYTES_MOST", 60_000)
    packer = Packer([], static=0)
    for i in range(30):
        own = text_block("Answer", [[f"{i} " + "слово " * 500], [f"quoted {i}", "1", "1 clear"]])
        asked = text_block("Prompt", [["shared " * 500], [f"{i} reply " * 300]], part="call")
        packer.add({"id": str(i), "who": "", "result": "", "text": "", "chips": []}, [own, asked])
    packed = packer.packed(30)
    size = len(json.dumps([packed.strings, packed.units], ensure_ascii=False).encode())
    assert packed.was_cut and size < 66_000
    shared = "shared " * 500
    assert shared in packed.strings  # one text for all of them is worth its room
    for i in range(30):
        segments = _unpacked(packed, i)[0]["segments"]
        assert isinstance(segments[0][0], list) and segments[1][0] == f"quoted {i}"
