"""Text that is not UTF-8 is refused, and its encoding named where it can be told."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.data import rows
from evenhand.data.likely import likely_encoding
from evenhand.data.read import FileForm
from evenhand.data.wider import decoder
from evenhand.errors import DataError
from tests.unit.data.texts_in_encodings import RUSSIAN as SHORT_RUSSIAN
from tests.unit.data.texts_in_encodings import TEXTS

RUSSIAN = "Почему небо голубое? Свет рассеивается в воздухе, и синий сильнее всего. Ёлка — «да»."
CHINESE = "为什么天空是蓝色的？因为阳光在空气中散射，蓝光散射得最多。模型的回答很好。"
JAPANESE = (
    "空はなぜ青いのですか。太陽の光が大気で散乱し、青い光が一番強く散らばるからです。カタカナ"
)
FRENCH = (
    "Pourquoi le ciel est-il bleu ? Parce que la lumière est diffusée, à l'évidence, où ça gêne."
)
GERMAN = "Warum ist der Himmel blau? Größe, Übung, Mäuse und schöne Straßen."

ENCODED = [
    (RUSSIAN, "cp1251", "cp1251"),
    (CHINESE, "gb18030", "gb18030"),
    (JAPANESE, "shift_jis", "shift_jis"),
    (JAPANESE, "euc-jp", "euc-jp"),
    (FRENCH, "latin-1", "cp1252"),
    (GERMAN, "latin-1", "cp1252"),
    *((text, "utf-16-le", "UTF-16LE") for text in (RUSSIAN, FRENCH)),
    (CHINESE, "utf-16-be", "UTF-16BE"),
    (RUSSIAN, "utf-16", "UTF-16"),
    (JAPANESE, "utf-32", "UTF-32"),
]
LAYOUTS = [
    ("a.jsonl", '{{"question":"{0}"}}\n{{"question":"{0}"}}\n'),
    ("a.json", '[{{"question":"{0}"}}]'),
    ("a.csv", 'question,model\n"{0}",m\n'),
]


@pytest.mark.parametrize(("name", "layout"), LAYOUTS)
@pytest.mark.parametrize(("text", "codec", "named"), ENCODED)
def test_the_likely_encoding_is_named(
    tmp_path: Path, name: str, layout: str, text: str, codec: str, named: str
) -> None:
    path = tmp_path / name
    path.write_bytes(layout.format(text).encode(codec))
    with pytest.raises(DataError) as caught:
        list(rows(path))
    assert f"looks like {named}" in caught.value.what
    assert "iconv" in caught.value.advice
    assert caught.value.where in (f"{path}:1", f"{path}:2")


def test_the_line_with_the_wrong_bytes_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes('{"a":"мир"}\n'.encode() + '{"a":"мир и дом"}\n'.encode("cp1251"))
    with pytest.raises(DataError, match=r"a\.jsonl:2: not UTF-8 text \(0xEC at byte 7"):
        list(rows(path))


@pytest.mark.parametrize("layout", ["{0}", '{{"question":"{0}","id":12}}\n', '"{0}",m\n'])
@pytest.mark.parametrize(("text", "codec", "name"), TEXTS)
def test_short_texts_are_told(text: str, codec: str, name: str | None, layout: str) -> None:
    assert likely_encoding(layout.format(text).encode(codec)) == name


@pytest.mark.parametrize("text", SHORT_RUSSIAN)
@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_utf_16_without_a_mark_is_told(tmp_path: Path, text: str, codec: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(f"question,model\n{text},m\n".encode(codec))
    with pytest.raises(DataError, match=f"looks like {codec.replace('utf-16-', 'UTF-16').upper()}"):
        list(rows(path))


def test_a_character_cut_at_the_end_of_the_sample_is_no_fault() -> None:
    for start in range(4):
        raw = ("x" * start + "はい、そうです。" * 1000).encode("shift_jis")
        assert likely_encoding(raw) == "shift_jis"


@pytest.mark.parametrize(
    "raw", [b"\x81\x20\x82\x20", b"a\xff\xfe\xfd\xd0\xc0", bytes(range(128, 256)), b"", b"plain"]
)
def test_bytes_that_fit_nothing_are_not_guessed_at(raw: bytes) -> None:
    assert likely_encoding(raw) is None


@pytest.mark.parametrize(
    ("encoding", "written"),
    [("shift_jis", "cp932"), ("gbk", "gb18030"), ("gb2312", "gbk"), ("euc-kr", "cp949")],
)
def test_signs_that_makers_added_to_an_encoding_are_read(
    tmp_path: Path, encoding: str, written: str
) -> None:
    """A table that Excel saved on a Japanese Windows has them in its header already."""
    text = {"cp932": "№ ① ㈱", "gb18030": "€ 𠮷 囍", "gbk": "囍 镕", "cp949": "뷁 똠"}[written]
    file = tmp_path / "table.csv"
    file.write_bytes(f"question,answer\n{text},{text}\n".encode(written))
    (row,) = rows(file, {}, form=FileForm(encoding=encoding))
    assert row.value == {"question": text, "answer": text}


@pytest.mark.parametrize(
    ("encoding", "raw", "text"),
    [
        ("shift_jis", "№〜−".encode("shift_jisx0213"), "№〜−"),
        ("shift_jis", "①".encode("cp932") + "〜−‖¢£¬".encode("shift_jis"), "①〜−‖¢£¬"),
        ("gb2312", "囍".encode("gbk") + "・―".encode("gb2312"), "囍・―"),
        ("gbk", "𠮷囍".encode("gb18030"), "𠮷囍"),
        ("euc_kr", "뷁".encode("cp949") + "뷁".encode("euc_kr"), "뷁뷁"),
        ("euc_kr", b"\xa4\xd4a", "\u3164a"),
    ],
)
def test_what_an_encoding_knows_is_read_by_it(encoding: str, raw: bytes, text: str) -> None:
    """Rows keep the text that they had, and with it their judgments; however they are cut."""
    raw, text = raw * 2 + b"\n", text * 2 + "\n"
    for cut in range(len(raw)):
        for size in (1, 3, len(raw)):
            file = decoder(encoding)
            pieces = [raw[:cut], *(raw[at : at + size] for at in range(cut, len(raw), size))]
            assert "".join(map(file.decode, pieces)) + file.decode(b"", True) == text


@pytest.mark.parametrize("encoding", ["shift_jis", "gb2312", "gbk", "euc_kr"])
@pytest.mark.parametrize("raw", [b"a\xff\x20 is nothing", b"a\x81"])
def test_what_neither_knows_is_refused(tmp_path: Path, encoding: str, raw: bytes) -> None:
    if (encoding, raw[1]) == ("shift_jis", 0xFF):
        raw = raw.replace(b"\xff", b"\x85")
    file = tmp_path / "table.csv"
    file.write_bytes(b"question\n" + raw)
    with pytest.raises(DataError, match=f"not {encoding} text"):
        list(rows(file, {}, form=FileForm(encoding=encoding)))
