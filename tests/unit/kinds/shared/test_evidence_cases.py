"""Harmless changes of a quote are undone, and no invented quote is taken for one of the text."""

from __future__ import annotations

import pytest

from evenhand.kinds.evidence import SearchText, is_substantial_quote

ZH = "2024年5月，张三在北京买了3本书（共120元）。他说：“很好！”然后回家；第二天，他又来了……"
JA = "2024年に東京で3回の会議があった。参加者は120人（昨年比：20％増）、結果は良好！"
RU = "В 2024 году в Москве прошло 3 встречи: «Заря», «Восток» и другие… Итог — хороший."
EN = "In 2024 there were 3 meetings: “Dawn”, “East” and others… The result (so far) is good."
TWICE = "Ice floats. Water sinks. Ice floats. 共 3 天。共 3 天。"

MD = (
    "**会前**：先发 `agenda.md`……再等回复。结果是*很好*。\n"
    "* 3*4 in __all__ of snake_case, wait... Then __go__ on."
)

SNAPPED = [
    (MD, "`agenda.md`...再等回复", "`agenda.md`……再等回复"),
    (MD, "`agenda.md`…再等回复", "`agenda.md`……再等回复"),
    (MD, "wait… Then", "wait... Then"),
    (ZH, "“张三在北京”", "张三在北京"),
    (ZH, '"张三在北京"', "张三在北京"),
    (ZH, "「张三在北京」", "张三在北京"),
    (ZH, "『张三』", "张三"),
    (ZH, "'买了3本书'", "买了3本书"),
    (ZH, "张三在北京…", "张三在北京"),
    (ZH, "张三在北京……", "张三在北京"),
    (ZH, "张三在北京...", "张三在北京"),
    (ZH, "“张三在北京……”", "张三在北京"),
    (ZH, "“张三在北京”……", "张三在北京"),
    (ZH, "买了 3 本书", "买了3本书"),
    (ZH, "买了 3本书", "买了3本书"),
    (ZH, "2024 年 5 月", "2024年5月"),
    (ZH, "2024年5月,张三", "2024年5月，张三"),
    (ZH, "2024年5月, 张三", "2024年5月，张三"),
    (ZH, "(共120元)", "（共120元）"),
    (ZH, "3本书(共120元).", "3本书（共120元）。"),
    (ZH, "他说:“很好!”", "他说：“很好！”"),
    (ZH, '他说:"很好!"', "他说：“很好！”"),
    (ZH, "回家;第二天,他又来了", "回家；第二天，他又来了"),
    (ZH, "“买了 3 本书”", "买了3本书"),
    (ZH, "第二天,他又来了...", "第二天，他又来了"),
    (JA, "「東京で3回の会議」", "東京で3回の会議"),
    (JA, "『参加者は120人』", "参加者は120人"),
    (JA, "東京で 3 回の会議", "東京で3回の会議"),
    (JA, "2024 年に東京で", "2024年に東京で"),
    (JA, "参加者は120人(昨年比:20%増)", "参加者は120人（昨年比：20％増）"),
    (JA, "参加者は 120 人", "参加者は120人"),
    (JA, "結果は良好!", "結果は良好！"),
    (JA, "会議があった…", "会議があった"),
    (JA, "「会議があった…」", "会議があった"),
    (JA, "20%増", "20％増"),
    (JA, "会議があった.", "会議があった。"),
    (JA, "増),結果は良好", "増）、結果は良好"),
    (RU, '"прошло 3 встречи"', "прошло 3 встречи"),
    (RU, "«прошло 3 встречи»", "прошло 3 встречи"),
    (RU, "„прошло 3 встречи“", "прошло 3 встречи"),
    (RU, "прошло 3 встречи…", "прошло 3 встречи"),
    (RU, "прошло 3 встречи...", "прошло 3 встречи"),
    (RU, "«прошло 3 встречи...»", "прошло 3 встречи"),
    (RU, "«прошло 3 встречи»…", "прошло 3 встречи"),
    (RU, "в  Москве\nпрошло", "в Москве прошло"),
    (RU, '"Заря", "Восток"', "«Заря», «Восток»"),
    (RU, "и другие...", "и другие…"),
    (RU, "“Итог — хороший.”", "Итог — хороший."),
    (RU, "'Итог — хороший'", "Итог — хороший"),
    (EN, '"there were 3 meetings"', "there were 3 meetings"),
    (EN, "'there were 3 meetings'", "there were 3 meetings"),
    (EN, "`there were 3 meetings`", "there were 3 meetings"),
    (EN, "there were 3 meetings…", "there were 3 meetings"),
    (EN, "there were 3 meetings...", "there were 3 meetings"),
    (EN, "there were 3 meetings ...", "there were 3 meetings"),
    (EN, '"there were 3 meetings..."', "there were 3 meetings"),
    (EN, "The result （so far） is good", "The result (so far) is good"),
    (EN, "3 meetings： “Dawn”", "3 meetings: “Dawn”"),
    (EN, '"Dawn", "East"', "“Dawn”, “East”"),
    (EN, "and others... The", "and others… The"),
    (EN, "“The result (so far) is good.”", "The result (so far) is good."),
    (EN, "The  result", "The result"),
    (EN, "is good。", "is good."),
    (EN, "‘The result’", "The result"),
    (TWICE, "“Water sinks”", "Water sinks"),
]

INVENTED = [
    (MD, "会前先发"),
    (MD, "会前：先发"),
    (MD, "34 in"),
    (MD, "snakecase"),
    (MD, "先发...再等回复"),
    (MD, "wait…on"),
    (MD, "*** 3*4"),
    ("**三天**内。__三天__内。", "`三天内`"),
    (ZH, "李四在北京"),
    (ZH, "“李四在北京”"),
    (ZH, "张三在上海"),
    (ZH, "张三……买了"),
    (ZH, "张三...120元"),
    (ZH, "张三不在北京"),
    (ZH, "张三在北 京"),
    (ZH, "买了4本书"),
    (ZH, "买了３本书"),
    (ZH, "买了三本书"),
    (ZH, "買了3本書"),
    (ZH, "2024年6月"),
    (ZH, "2 024年"),
    (ZH, "他说很好"),
    (ZH, "他说，很好"),
    (ZH, "回家，第二天"),
    (ZH, "“”"),
    (ZH, "……"),
    (ZH, "。"),
    (ZH, "……他又来了……然后"),
    (ZH, "他又来了！"),
    (JA, "大阪で3回の会議"),
    (JA, "「大阪で3回」"),
    (JA, "東京で4回の会議"),
    (JA, "東京で三回の会議"),
    (JA, "参加者は１２０人"),
    (JA, "参加者は120人。"),
    (JA, "会議がなかった"),
    (JA, "会議があった、参加者"),
    (JA, "結果は良好？"),
    (JA, "とうきょうで"),
    (JA, "東京で…良好"),
    (JA, "昨年比：30％増"),
    (RU, "прошло 4 встречи"),
    (RU, "«прошло 4 встречи»"),
    (RU, "прошло … встречи"),
    (RU, "прошло 3встречи"),
    (RU, "прошло3 встречи"),
    (RU, "Прошло 3 встречи"),
    (RU, "не прошло 3 встречи"),
    (RU, "Итог - хороший"),
    (RU, "Итог — плохой"),
    (RU, "в Mоскве"),
    (RU, "...другие"),
    (RU, "Заря, Восток"),
    (RU, "Итог хороший"),
    (RU, "«…»"),
    (EN, "there were 4 meetings"),
    (EN, '"there were 4 meetings"'),
    (EN, "there was 3 meetings"),
    (EN, "There were 3 meetings"),
    (EN, "there were ... meetings"),
    (EN, "there … others"),
    (EN, "therewere 3 meetings"),
    (EN, "there were 3 meetings. The result"),
    (EN, "3 meetings; “Dawn”"),
    (EN, "The result is good"),
    (EN, "[sic] The result"),
    (EN, "The result (so far) is good!"),
    (EN, "“Dawn and East”"),
    (EN, "tnere were 3 meetings"),
    (EN, "there\u200bwere 3 meetings"),
    (EN, "there were three meetings"),
    (EN, '"..."'),
    (TWICE, "“Ice floats”"),
    (TWICE, "Ice floats…"),
    (TWICE, "共3天"),
]


def test_there_are_enough_cases() -> None:
    assert len({(text, quote) for text, quote, _ in SNAPPED}) >= 60
    assert len(set(INVENTED)) >= 60


@pytest.mark.parametrize(("text", "quote", "snapped"), SNAPPED)
def test_a_harmless_change_is_snapped_to_the_text(text: str, quote: str, snapped: str) -> None:
    place = SearchText(text).locate(quote)
    assert place is not None
    assert text[place.start : place.end] == snapped
    assert (place.match == "exact") == (quote == snapped)


@pytest.mark.parametrize(("text", "quote"), INVENTED)
def test_an_invented_quote_is_not_found(text: str, quote: str) -> None:
    place = SearchText(text).locate(quote)
    is_evidence = place is not None and is_substantial_quote(text[place.start : place.end], text)
    assert not is_evidence


@pytest.mark.parametrize(
    ("quote", "text", "is_enough"),
    [
        ("的", "好的，再见", False),
        ("好的", "好的，再见", True),
        ("a的", "a的，再见", False),
        ("ab的", "ab的，再见", True),
        ("cat", "a cat sat", False),
        ("cats", "two cats", True),
        ("cats and", "two cats and dogs", True),
        ("cat s", "a cat sat", True),
        ("(cat)", "a (cat) sat", True),
        ("3,5", "it is 3,5 m", False),
        ("a b c", "a b c d e", False),
        ("!?…—", "so !?…—", False),
        ("No", "No", True),
        ("是", " 是\n", True),
        ("!", "!", False),
        ("", "", False),
    ],
)
def test_a_quote_must_be_able_to_show_something(quote: str, text: str, is_enough: bool) -> None:
    assert is_substantial_quote(quote, text) == is_enough
