"""Reasons in another language than the prompt are told, and mixed ones are not."""

from __future__ import annotations

import pytest

from evenhand.kinds.shared.spoken import READ_CHARS, other_language, spoken

TEXTS = {
    "en": "The answer is correct and complete, and it keeps to the point from beginning to end.",
    "ru": "Ответ верен и полон, изложен последовательно и не отклоняется от заданного вопроса.",
    "zh": "回答正确而完整，论证清楚，没有偏离问题，语言也很简洁，没有多余的内容。",
    "ja": "回答は正確かつ十分で、論旨が明確であり、質問から逸れることなく簡潔に書かれている。",
}


@pytest.mark.parametrize("language", TEXTS)
def test_each_language_is_told_from_the_others(language: str) -> None:
    text = TEXTS[language]
    assert spoken(text) == language
    for other in TEXTS:
        assert other_language(text, other) == (None if other == language else language)


MIXED = [
    ("ru", f'Верно: «{TEXTS["en"]}» и "{TEXTS["en"]}" говорят об этом, а вывод сделан верно.'),
    ("zh", f"回答引用了“{TEXTS['en']}”，论证清楚，没有偏离问题，内容完整。"),
    ("ja", f"回答は「{TEXTS['zh']}」を引用し、論旨が明確であり、質問から逸れていない。"),
    ("ru", f"Код верен:\n```python\n{TEXTS['en'] * 5}\n```\nи работает так, как требуется."),
    ("ru", "Взяты `numpy array broadcasting` и Python, Django, REST API; ответ в целом верен."),
    ("en", "The poem «Я помню чудное мгновенье» is quoted in full, and its author is named."),
    ("ru", "OK"),
    ("ja", ""),
    ("zh", "1, 2, 3 + 4 = 10"),
    ("zh", "Good, верно, 正确"),
]


@pytest.mark.parametrize(("language", "text"), MIXED)
def test_quotes_code_terms_and_short_texts_are_no_other_language(language: str, text: str) -> None:
    assert other_language(text, language) is None


def test_a_prompt_whose_language_is_not_known_expects_none() -> None:
    assert other_language(TEXTS["ru"], "") is None


@pytest.mark.parametrize("language", TEXTS)
def test_only_the_beginning_is_read(language: str) -> None:
    """A reply of any length costs the same, whatever marks of quotation it leaves open."""
    beginning = TEXTS[language] * (READ_CHARS // len(TEXTS[language]) + 1)
    rest = " ".join(text for name, text in TEXTS.items() if name != language)
    assert spoken(beginning + rest * 400) == language


@pytest.mark.parametrize("mark", "«“„「『《")
def test_a_quotation_that_is_cut_off_is_no_other_language(mark: str) -> None:
    reasons = f"{TEXTS['ru']} {mark}{TEXTS['en'] * (READ_CHARS // len(TEXTS['en']) + 1)}"
    assert spoken(reasons) == "ru"
