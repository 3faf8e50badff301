"""Which encoding bytes are likely in: the one whose decoding reads most like text.

Every encoding has a model of the text that is written in it, which gives each character its cost in
bits: little for letters that the language uses all the time, much for rare ones, and very much for
what no text has (private use, unassigned, control characters, runs of half-width katakana). The
same bytes are read by every model; the cheapest reading wins, unless even that one is dear.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Callable, Mapping
from math import log2
from typing import NamedTuple

SAMPLE_BYTES = 4096
BEFORE = 40
ASCII_BITS = 5.0
NO_TEXT = 30.0
_NOT_ASCII = re.compile(rb"[\x80-\xff]")

Bits = Callable[[str, str, str], float]
"""The cost of a character, with the one before it and the one after."""
MARKS = "«»—–“”„…"
MARK_BITS = 7.5
"""Marks of every language that is written with an alphabet."""
MIXED_BITS = 8.0
"""A letter of one alphabet beside a letter of another."""


def _shares(parts: Mapping[str, float]) -> dict[str, float]:
    """The cost of each character of groups that share a probability evenly."""
    return {c: -log2(share / len(chars)) for chars, share in parts.items() for c in chars}


_CYRILLIC = _shares(
    {"оеа": 0.27, "интс": 0.24, "рвлк": 0.16, "мдпу": 0.11, "яыьгзбч": 0.12, "йхжшюц": 0.05}
    | {"щэфъё": 0.012, "іїєґў": 0.004}
)


def _russian(char: str, before: str, after: str) -> float:
    lower = char.lower()
    if lower not in _CYRILLIC:
        return MARK_BITS if char in MARKS else 9.0 if char == "№" else 14.0
    bits = _CYRILLIC[lower] + MIXED_BITS * (_is_ascii_letter(before) + _is_ascii_letter(after))
    if char == lower:
        return bits
    # Within a word only what is written large as a whole has large letters after the first.
    in_word = before.islower() and before in _CYRILLIC
    return bits + (9.0 if in_word else 1.0 if before.isupper() else 3.0)


def _is_ascii_letter(char: str) -> bool:
    return char.isascii() and char.isalpha()


_LATIN = _shares(
    {
        "é": 0.18, "üöä": 0.26, "óáí": 0.16, "èàñúêçß": 0.18, "ãõôîûùâëïòìœæøåÖÄÜÉÈÀÅÓÁÍÚÑ": 0.06,
        "¿¡’‘€°§·´©®": 0.13, "ÂÆÇÊËÌÎÏÐÒÔÕØÙÛÝÞðýþÿŒšžŠŽ": 0.008,
        "¢£¤¥¦¨ª¬¯±²³µ¶¸¹º¼½¾×÷ƒˆ‰‹›†‡•™Ã": 0.012,
    }
)  # fmt: skip
_LATIN_RARE = -log2(0.12)
"""Of ten characters of such a text at most about one is beyond ASCII."""


def _western(char: str, before: str, after: str) -> float:
    if char in MARKS:
        return MARK_BITS
    if char not in _LATIN:
        return NO_TEXT
    in_a_row = 5.0 if char.isalpha() and before.isalpha() and before > "\x7f" else 0.0
    return _LATIN[char] + _LATIN_RARE + in_a_row


_HANZI = _shares(
    {
        "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过"
        "发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本"
        "前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很"
        "最重并物手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特代内信表化老给世位次度"
        "门任常先海通教儿原东声提立及比员解水名真论处走义各入几口认条平系气题活尔更别打女变四神总何电"
        "数安少报才结反受目太量再感建务做接必场件计管期市直德资命山金指克许统区保至队形社便空决治展马"
        "科司五基眼书非则听白却界达光放强即像难且权思王象完设式色路记南品住告类求据程北边死张该交规万"
        "取拉格望觉术领共确传师观清今切院让识候带导争运答案错误准确回内容模型语言请为": 0.6,
        "，。？！：；、“”‘’（）《》【】—…·": 0.1,
    }
)  # fmt: skip


def _chinese(char: str, before: str, after: str) -> float:
    return _hanzi(char) + _inside_word(before, after)


def _inside_word(before: str, after: str) -> float:
    """A character of two bytes may stand beside small letters, but hardly between them."""
    beside = [_is_ascii_letter(letter) and letter.islower() for letter in (before, after)]
    return MIXED_BITS if all(beside) else 2.0 * sum(beside)


def _hanzi(char: str) -> float:
    if char in _HANZI:
        return _HANZI[char]
    try:
        lead = char.encode("gb2312")[0]
    except UnicodeEncodeError:
        return NO_TEXT
    if 0xB0 <= lead <= 0xD7:
        return 13.5
    if 0xD8 <= lead <= 0xF7:
        return 19.0
    return 10.0 if lead == 0xA3 else 18.0


_KANJI = _shares(
    {
        "日一国人年大十二本中長出三時行見月分後前生五間上東四今金九入学高円子外八六下来気小七山話女北"
        "午百書先名川千水半男西電校語土木聞食車何南万毎白天母火右読友左休父雨会同事自社発者地業方新場"
        "員立開手力問代明動京目通言理体田主題意不作用度強公持野以思家世多正安院心界教文元重近考画海売"
        "知集別物使品計死特私始朝運終台広住無真有口少町料工建急止送切転研究楽起着病質待試族銀早映親験"
        "英医仕去味写字答夜音注帰歌悪図室歩風紙黒春赤青館屋色走秋夏習駅洋旅服回解": 0.22,
        "ぁあぃいぅうぇえぉおかがきぎくぐけげこごさざしじすずせぜそぞただちぢっつづてでとどなにぬねのは"
        "ばぱひびぴふぶぷへべぺほぼぽまみむめもゃやゅゆょよらりるれろわをん": 0.5,
        "ァアィイゥウェエォオカガキギクグケゲコゴサザシジスズセゼソゾタダチヂッツヅテデトドナニヌネノハ"
        "バパヒビピフブプヘベペホボポマミムメモャヤュユョヨラリルレロワヲンヴー": 0.12,
        "、。「」・！？（）『』　～…―": 0.08,
    }
)  # fmt: skip


def _japanese(char: str, before: str, after: str) -> float:
    return _kanji(char) + _inside_word(before, after)


def _kanji(char: str) -> float:
    if char in _KANJI:
        return _KANJI[char]
    if "\uff61" <= char <= "\uff9f":
        return 16.0
    try:
        lead = char.encode("euc_jp")[0]
    except UnicodeEncodeError:
        return NO_TEXT
    if 0xB0 <= lead <= 0xCF:
        return 14.5
    return 20.0 if 0xD0 <= lead <= 0xF4 else 11.0 if lead == 0xA3 else 17.0


_GREEK = _shares({"αοιετσν": 0.62, "ηυρπκμλςω": 0.24, "δγχθφβξζψ": 0.07, "άέήίόύώϊΐϋΰ": 0.07})


def _greek(char: str, before: str, after: str) -> float:
    lower = char.lower()
    if lower not in _GREEK:
        return MARK_BITS if char in MARKS else 14.0
    mixed = _is_ascii_letter(before) + _is_ascii_letter(after)
    return _GREEK[lower] + MIXED_BITS * mixed + (0.0 if char == lower else 3.0)


def _korean(char: str, before: str, after: str) -> float:
    return (12.0 if "가" <= char <= "힣" else 18.0) + _inside_word(before, after)


def _traditional(char: str, before: str, after: str) -> float:
    lead = char.encode("big5", "replace")[0]
    bits = 9.0 if 0xA1 <= lead <= 0xA3 else 13.0 if 0xA4 <= lead <= 0xC6 else 19.0
    return bits + _inside_word(before, after)


class Model(NamedTuple):
    """An encoding, and the text that is written in it."""

    name: str
    codec: str
    bits: Bits
    rare: float = 0.0
    """How much less often files are in it, in bits."""
    dearest: float = 7.2
    """Bits per byte beyond ASCII above which a reading is no text."""


MODELS = (
    Model("cp1252 (or latin-1)", "cp1252", _western, dearest=13.0),
    Model("cp1251", "cp1251", _russian),
    # Of Chinese the common characters (GB 2312) must do.
    Model("gb18030", "gb2312", _chinese),
    Model("shift_jis", "cp932", _japanese),
    Model("euc-jp", "euc_jp", _japanese, rare=2.0),
    Model("koi8-r", "koi8_r", _russian, rare=4.0),
    Model("cp866", "cp866", _russian, rare=4.0),
    Model("big5", "big5", _traditional, rare=2.0),
    Model("euc-kr", "euc_kr", _korean, rare=4.0),
    Model("cp1253", "cp1253", _greek, rare=6.0),
)
"""Of equals the first is taken."""


def likely_encoding(raw: bytes) -> str | None:
    """The encoding that bytes beyond ASCII are likely in; None where none reads like text."""
    readings = [(model, _read(raw, model)) for model in MODELS]
    model, reading = min(readings, key=lambda candidate: candidate[1].bits)
    return model.name if reading.bits_per_byte <= model.dearest else None


class Reading(NamedTuple):
    """What it costs to read bytes by a model, in all and for a byte of what is not ASCII."""

    bits: float
    bits_per_byte: float


def _read(raw: bytes, model: Model) -> Reading:
    first = _NOT_ASCII.search(raw)
    # Before the first byte that is not ASCII no character can be cut.
    start = max(0, first.start() - BEFORE) if first else 0
    sample = raw[start : start + SAMPLE_BYTES]
    decoder = codecs.getincrementaldecoder(model.codec)("replace")
    text = decoder.decode(sample, final=start + len(sample) == len(raw))
    whole, foreign, size = model.rare, 0.0, 0
    for before, char, after in zip("\n" + text, text, text[1:] + "\n", strict=False):
        if char.isascii():
            whole += ASCII_BITS
            continue
        is_text = char != "\ufffd" and unicodedata.category(char)[0] != "C"
        bits = model.bits(char, before, after) if is_text else NO_TEXT
        whole, foreign = whole + bits, foreign + bits
        size += len(char.encode(model.codec, "replace"))
    return Reading(whole, foreign / size if size else NO_TEXT)
