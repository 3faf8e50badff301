"""Paths that cannot be read or written are refused before anything is done. Text that is not UTF-8
is refused, and its encoding named where it can be told."""

from __future__ import annotations

import codecs

import pytest

from evenhand.data import rows, write
from evenhand.data.files import guess_encoding
from evenhand.errors import DataError, UsageError
from tests.cases import cases
from tests.sentences import refused


@pytest.mark.parametrize("name", ["a.txt", "a.xls", "a", "a.gz", "a.txt.gz", ".jsonl"])
def test_an_unknown_ending_lists_the_known_ones(tmp_path, name):
    (tmp_path / name).touch()
    for use in (rows, lambda p: write(p, [])):
        with pytest.raises(UsageError) as caught:
            use(tmp_path / name)
        for ending in (".jsonl", ".json", ".csv", ".parquet", ".gz"):
            assert ending in caught.value.advice


def test_a_missing_file_suggests_the_one_beside_it(tmp_path):
    (tmp_path / "samples.jsonl").touch()
    with refused(UsageError, "data.no_file") as caught:
        rows(tmp_path / "sample.jsonl")
    assert caught.value.advice.values["near"] == "samples.jsonl"


def test_a_missing_folder_and_a_folder_in_place_of_a_file_are_told(tmp_path):
    for use in (rows, lambda p: write(p, [])):
        with refused(UsageError, "data.no_folder"):
            use(tmp_path / "dta" / "a.jsonl")
        folder = tmp_path / "runs.jsonl"
        folder.mkdir(exist_ok=True)
        with refused(UsageError, "data.is_folder"):
            use(folder)


RUSSIAN = "Почему небо голубое? Свет рассеивается в воздухе, и синий сильнее всего. Ёлка и да."
CHINESE = "为什么天空是蓝色的？因为阳光在空气中散射，蓝光散射得最多。模型的回答很好。"
JAPANESE = (
    "空はなぜ青いのですか。太陽の光が大気で散乱し、青い光が一番強く散らばるからです。カタカナ"
)
FRENCH = (
    "Pourquoi le ciel est-il bleu ? Parce que la lumière est diffusée, à l'évidence, où ça gêne."
)
GERMAN = "Warum ist der Himmel blau? Größe, Übung, Mäuse und schöne Straßen."

ENCODED = [
    *((RUSSIAN, codec) for codec in ("cp1251", "koi8-r", "utf-16-le")),
    *((CHINESE, codec) for codec in ("gb18030", "utf-16-be")),
    *((JAPANESE, codec) for codec in ("cp932", "euc-jp")),
    *((text, "cp1252") for text in (FRENCH, GERMAN)),
]


@pytest.mark.parametrize(("text", "codec"), ENCODED)
def test_text_that_is_not_utf_8_is_refused_with_its_likely_encoding(tmp_path, text, codec):
    path = tmp_path / "a.csv"
    path.write_bytes(f'question,model\n"{text}",m\n'.encode(codec))
    guess = guess_encoding(path)
    assert guess is not None and codecs.lookup(guess).name == codecs.lookup(codec).name
    with refused(DataError, "data.looks_encoded", guess) as caught:
        rows(path)
    assert caught.value.where in (f"{path}:1", f"{path}:2")
    assert {row.value["question"] for row in rows(path, encoding=guess)} == {text}


def test_the_line_with_the_wrong_bytes_is_named(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes('{"a":"мир"}\n'.encode() + '{"a":"мир и дом"}\n'.encode("cp1251"))
    with refused(DataError, "data.not_utf8", r"a\.jsonl:2: .*0xEC"):
        rows(path)


def test_utf_8_is_no_guess(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f'question\n"{RUSSIAN}"\n', encoding="utf-8-sig")
    assert guess_encoding(path) is None
    assert [row.value for row in rows(path)] == [{"question": RUSSIAN}]


@cases
def test_signs_that_makers_added_to_an_encoding_are_read(tmp_path, encoding, written, text):
    """A table that Excel saved on a Japanese Windows has them in its header already."""
    file = tmp_path / "table.csv"
    file.write_bytes(f"question,answer\n{text},{text}\n".encode(written))
    (row,) = rows(file, encoding=encoding)
    assert row.value == {"question": text, "answer": text}


def test_what_an_encoding_does_not_know_is_refused(tmp_path):
    file = tmp_path / "table.csv"
    file.write_bytes(b"question\na\x81")
    with refused(DataError, "data.not_encoded", "gbk"):
        rows(file, encoding="gbk")


@pytest.mark.parametrize(
    ("text", "encoding"), [("Привет", "cp1251"), ("你好", "gb18030"), ("€5", "cp1252")]
)
def test_the_encoding_of_a_word_or_two_is_not_guessed(tmp_path, text, encoding):
    (tmp_path / "a.csv").write_bytes(f"question,answer\nWhat is this?,{text}\n".encode(encoding))
    assert guess_encoding(tmp_path / "a.csv") is None
