"""What languages are called by people who do not think of codes."""

from __future__ import annotations

_NAMES = {
    "en": ("english", "eng", "uk", "us", "gb", "английский", "英语", "英文", "英語"),
    "ru": ("russian", "rus", "русский", "рус", "俄语", "俄文", "ロシア語"),
    "zh": (
        "chinese",
        "cn",
        "chn",
        "zho",
        "mandarin",
        "китайский",
        "中文",
        "汉语",
        "中国語",
        "漢語",
    ),
    "ja": ("japanese", "jp", "jpn", "японский", "日语", "日文", "日本語"),
}


def meant_language(name: str) -> str | None:
    """The code that a language's name, country or other spelling was meant to be; None where that
    is not sure."""
    first = name.strip().casefold().replace("_", "-").partition("-")[0]
    for code, names in _NAMES.items():
        if first == code or first in names:
            return code if name != code else None
    return None
