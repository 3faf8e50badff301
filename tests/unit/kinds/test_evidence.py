"""Quotes are found where they stand in the judged text, and no invented one is."""

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenhand.kinds.evidence import (
    CUTS_MOST,
    FRAGMENT_CHARS,
    FRAGMENTS_MOST,
    SearchText,
    Span,
    fragments,
    is_substantial_quote,
)
from tests.unit.kinds.tables import cells
from tests.work import calls_of

# Letters that compose, marks in and out of order, jamo, kana, spaces, quotes, dots, an astral sign.
ODD = "aeÅ\u212bé\u0301\u0323\u0327가\u1100\u1161\u11a8\u1101ハ\u3099バか\u0cc6\u0cc2\u0cd5"
ODD += " \u00a0\u3000\n\"'«»“”„‘’「」『』….⋯𝄞😀x"
TEXTS = st.text(st.sampled_from(ODD), max_size=20) | st.text(max_size=12)


def locate(quote, text):
    return SearchText(text).locate(quote)


def folded(text):
    return re.sub(r"\s+", " ", unicodedata.normalize("NFC", text)).strip()


def unified(text):
    plain = re.sub("[\"'`´«»“”„‟‘’‚‛‹›「」『』〝〞〟＂＇]", '"', folded(text))
    return re.sub(r"(?:[…⋯]|\.{3})[…⋯.]*", "...", plain)


FORMS = {"exact": str, "folded": folded, "unified": unified}


@given(st.data(), TEXTS.filter(str.strip))
def test_an_exact_stretch_is_found_at_its_first_place(data, text):
    start = data.draw(st.integers(0, len(text) - 1))
    quote = text[start : data.draw(st.integers(start + 1, len(text)))]
    place = locate(quote, text)
    if not quote.strip():
        assert place is None
    else:
        assert place == Span(text.find(quote), text.find(quote) + len(quote), "exact")


@given(TEXTS, TEXTS)
@example("e", "e\u0301")
@example("wait.", "wait…")
def test_what_is_found_is_the_quote_and_what_is_not_is_not_there(quote, text):
    place = locate(quote, text)
    if place:
        form = FORMS[place.match]
        assert form(text[place.start : place.end]) == form(quote)
        assert 0 <= place.start < place.end <= len(text)
    elif quote.strip():
        assert quote not in text


@given(st.data(), TEXTS)
def test_a_stretch_in_another_normal_form_is_found(data, text):
    whole = unicodedata.normalize(data.draw(st.sampled_from(["NFC", "NFD"])), text)
    place = locate(whole, text)
    assert (place is None) == (not whole.strip())
    if place:
        assert folded(text[place.start : place.end]) == folded(text)


MATCHES = """
café au => un cafe\u0301 au lait => cafe\u0301 au => folded
cafe\u0301 => un café => café => folded
й => и\u0306 => и\u0306 => folded
각 => 가\u1100\u1161\u11a8 => \u1100\u1161\u11a8 => folded
ガ => カ\u3099 => カ\u3099 => folded
ハ\u309aン => パン => パン => folded
Å wide => 5\u212b  wide => \u212b  wide => folded
\u0ccb x => \u0cc6\u0cc2\u0cd5  x => \u0cc6\u0cc2\u0cd5  x => folded
a b => a\u00a0b => a\u00a0b => folded
東京 都 => 東京\u3000都 => 東京\u3000都 => folded
a  b => xa bx => a b => folded
"да" => слово «да»! => «да» => unified
“да” => слово „да“! => „да“ => unified
他说"好" => 他说“好”。 => 他说“好” => unified
「はい」と => 『はい』と => 『はい』と => unified
don't => I don’t => don’t => unified
wait... => wait… no => wait… => unified
wait… => wait... no => wait... => unified
等…… => 等...... => 等...... => unified
b => 😀b => b => exact
"""
KOREAN = unicodedata.normalize("NFD", "한국어")


@pytest.mark.parametrize(
    ("quote", "text", "snapped", "match"),
    [
        *cells(MATCHES),
        ("한국어", unicodedata.normalize("NFD", "저는 한국어를"), KOREAN, "folded"),
        ("one two", "so one\r\n   two.", "one\r\n   two", "folded"),
        ("  one\ntwo ", "one two", "one two", "folded"),
        ("𝄞 b", "😀𝄞\nb", "𝄞\nb", "folded"),
    ],
)
def test_a_match_below_exact_is_snapped_to_the_original(quote, text, snapped, match):
    place = locate(quote, text)
    assert place
    assert (text[place.start : place.end], place.match) == (snapped, match)
    assert place.start == text.index(snapped)


def test_what_is_blank_or_not_there_is_not_found():
    absent = """
nowhere => somewhere
Text => text
ab => a b
e x => e\u0301  x
wait.. => wait…
..b => …b
"""
    blank = [("", "text"), ("  \n", "a  \n b"), ("\u3000", "a\u3000b"), ("a b", "")]
    assert [pair for pair in (*cells(absent), *blank) if locate(*pair)] == []


def test_the_first_of_several_places_counts_and_a_better_match_beats_an_earlier_one():
    assert locate("a b", "x a\nb, a\nb") == Span(2, 5, "folded")
    assert locate("a b", "x a\nb, a b") == Span(7, 10, "exact")


HEAPS = dict(
    cells("""
marks out of order => \u0301\u0316
marks in order => \u0316
jamo => 한
vowels that may join => \u0cc6ೂೕ
ellipses => …
dots => .
""")
) | {"prose": "The “sky”\n is  blue… ", "marks on letters": "и\u0306 ", "spaces": " "}


@pytest.mark.parametrize("name", HEAPS)
def test_four_times_the_text_is_far_from_sixteen_times_the_work(name):
    """Counted in calls."""
    work = []
    for size in (12_000, 48_000):
        text = "e\u0301" + HEAPS[name] * (size // len(HEAPS[name]))
        work.append(calls_of(SearchText(text).locate, "nowhere to be found"))
    calls, more_calls = work
    assert more_calls < 6 * calls


@pytest.mark.parametrize("row", ["…", "...", "⋯ ", '"', "“”"])
def test_a_quote_of_endless_marks_is_stripped_in_linear_time(row):
    """In the square of the time it would take a minute."""
    text = SearchText("nothing of it here")
    for after in ("", "x"):
        few, many = (
            calls_of(text.locate, f"quote {row * number}{after}") for number in (4_000, 16_000)
        )
        assert many < 6 * few


def test_places_that_cut_something_are_not_tried_without_end():
    text = SearchText("\u0958" * 20_000)
    assert text.locate("\u0915") is None
    assert calls_of(text.locate, "\u0915") < 60 * CUTS_MOST


def test_a_text_is_folded_once_for_all_quotes():
    text = SearchText("и\u0306 “sky”\n is  blue… " * 1_000)
    first = calls_of(text.locate, "nowhere to be found")
    more = calls_of(lambda: [text.locate(f"nowhere to be found, {n}") for n in range(8)])
    assert first > 10_000 > 8 * 200 > more


def test_a_text_with_every_quote_word_for_word_is_never_folded():
    text = SearchText("и\u0306 “sky”\n is  blue… " * 1_000)
    assert calls_of(lambda: [text.locate("“sky”\n"), text.locate("blue…")]) < 30


def test_white_space_is_one_space_however_long_it_is():
    text = "a" + " " * 40_000 + "b"
    assert locate("a b", text) == Span(0, len(text), "folded")


def test_a_place_that_cuts_an_ellipsis_is_passed_over_for_one_that_does_not():
    assert locate("no..", "no…, " * 100 + "no….. No, no.\n.") is None
    assert locate("“no.”", "«no…» " * 100 + "«no.»") == Span(600, 605, "unified")
    assert locate("....", "………. …") == Span(0, 4, "unified")


PROSE = {
    "en": 'The sky is blue. "Really?" she asked; he said yes!\nIt takes 3.14 hours, no more',
    "ru": "Небо голубое. «Правда?» — спросила она; он кивнул!\nЭто всё…",
    "zh": "天空是蓝色的。“真的吗？”她问，他点头！\n就这些……",
    "ja": "空は青い。「本当？」と彼女は聞いた、彼は頷いた！\n以上です…",
}


@pytest.mark.parametrize("language", PROSE)
def test_sentences_are_fragments_in_every_language(language):
    found = fragments(PROSE[language])
    assert len(found) >= 4
    assert found[0] == re.split("(?<=[.。])", PROSE[language])[0]


@given(st.text() | st.text(st.sampled_from("ab ,;、。.!«»\n"), min_size=300))
@example("слово, " * 100)
@example("字" * 500)
def test_every_fragment_stands_in_the_text_to_the_letter(text):
    found = fragments(text)
    assert len(found) == len(set(found)) <= FRAGMENTS_MOST
    for part in found:
        assert locate(part, text) == Span(text.find(part), text.find(part) + len(part), "exact")
        assert len(part) <= FRAGMENT_CHARS
    if len(text) <= FRAGMENT_CHARS:
        assert bool(found) == any(map(str.isalnum, text))


JUDGED = dict(
    cells("""
ZH => 2024年5月，张三在北京买了3本书（共120元）。他说：“很好！”然后回家；第二天，他又来了……
JA => 2024年に東京で3回の会議があった。参加者は120人（昨年比：20％増）、結果は良好！
RU => В 2024 году в Москве прошло 3 встречи: «Заря», «Восток» и другие… Итог — хороший.
EN => In 2024 there were 3 meetings: “Dawn”, “East” and others… The result (so far) is good.
TWICE => Ice floats. Water sinks. Ice floats. 共 3 天。共 3 天。
""")
)

JUDGED["MD"] = (
    "**会前**：先发 `agenda.md`……再等回复。结果是*很好*。\n"
    "* 3*4 in __all__ of snake_case, wait... Then __go__ on."
)

SNAPPED = [
    *cells("""
MD => `agenda.md`...再等回复 => `agenda.md`……再等回复
MD => `agenda.md`…再等回复 => `agenda.md`……再等回复
MD => wait… Then => wait... Then
ZH => “张三在北京” => 张三在北京
ZH => "张三在北京" => 张三在北京
ZH => 「张三在北京」 => 张三在北京
ZH => 『张三』 => 张三
ZH => '买了3本书' => 买了3本书
ZH => 张三在北京… => 张三在北京
ZH => 张三在北京…… => 张三在北京
ZH => 张三在北京... => 张三在北京
ZH => “张三在北京……” => 张三在北京
ZH => “张三在北京”…… => 张三在北京
ZH => 买了 3 本书 => 买了3本书
ZH => 买了 3本书 => 买了3本书
ZH => 2024 年 5 月 => 2024年5月
ZH => 2024年5月,张三 => 2024年5月，张三
ZH => 2024年5月, 张三 => 2024年5月，张三
ZH => (共120元) => （共120元）
ZH => 3本书(共120元). => 3本书（共120元）。
ZH => 他说:“很好!” => 他说：“很好！”
ZH => 他说:"很好!" => 他说：“很好！”
ZH => 回家;第二天,他又来了 => 回家；第二天，他又来了
ZH => “买了 3 本书” => 买了3本书
ZH => 第二天,他又来了... => 第二天，他又来了
JA => 「東京で3回の会議」 => 東京で3回の会議
JA => 『参加者は120人』 => 参加者は120人
JA => 東京で 3 回の会議 => 東京で3回の会議
JA => 2024 年に東京で => 2024年に東京で
JA => 参加者は120人(昨年比:20%増) => 参加者は120人（昨年比：20％増）
JA => 参加者は 120 人 => 参加者は120人
JA => 結果は良好! => 結果は良好！
JA => 会議があった… => 会議があった
JA => 「会議があった…」 => 会議があった
JA => 20%増 => 20％増
JA => 会議があった. => 会議があった。
JA => 増),結果は良好 => 増）、結果は良好
RU => "прошло 3 встречи" => прошло 3 встречи
RU => «прошло 3 встречи» => прошло 3 встречи
RU => „прошло 3 встречи“ => прошло 3 встречи
RU => прошло 3 встречи… => прошло 3 встречи
RU => прошло 3 встречи... => прошло 3 встречи
RU => «прошло 3 встречи...» => прошло 3 встречи
RU => «прошло 3 встречи»… => прошло 3 встречи
RU => "Заря", "Восток" => «Заря», «Восток»
RU => и другие... => и другие…
RU => “Итог — хороший.” => Итог — хороший.
RU => 'Итог — хороший' => Итог — хороший
EN => "there were 3 meetings" => there were 3 meetings
EN => 'there were 3 meetings' => there were 3 meetings
EN => `there were 3 meetings` => there were 3 meetings
EN => there were 3 meetings… => there were 3 meetings
EN => there were 3 meetings... => there were 3 meetings
EN => there were 3 meetings ... => there were 3 meetings
EN => "there were 3 meetings..." => there were 3 meetings
EN => The result （so far） is good => The result (so far) is good
EN => 3 meetings： “Dawn” => 3 meetings: “Dawn”
EN => "Dawn", "East" => “Dawn”, “East”
EN => and others... The => and others… The
EN => “The result (so far) is good.” => The result (so far) is good.
EN => is good。 => is good.
EN => ‘The result’ => The result
TWICE => “Water sinks” => Water sinks
"""),
    ["RU", "в  Москве\nпрошло", "в Москве прошло"],
    ["EN", "The  result", "The result"],
]

INVENTED = [
    *cells("""
MD => 会前先发
MD => 会前：先发
MD => 34 in
MD => snakecase
MD => 先发...再等回复
MD => wait…on
MD => *** 3*4
ZH => 李四在北京
ZH => “李四在北京”
ZH => 张三在上海
ZH => 张三……买了
ZH => 张三...120元
ZH => 张三不在北京
ZH => 张三在北 京
ZH => 买了4本书
ZH => 买了３本书
ZH => 买了三本书
ZH => 買了3本書
ZH => 2024年6月
ZH => 2 024年
ZH => 他说很好
ZH => 他说，很好
ZH => 回家，第二天
ZH => “”
ZH => ……
ZH => 。
ZH => ……他又来了……然后
ZH => 他又来了！
JA => 大阪で3回の会議
JA => 「大阪で3回」
JA => 東京で4回の会議
JA => 東京で三回の会議
JA => 参加者は１２０人
JA => 参加者は120人。
JA => 会議がなかった
JA => 会議があった、参加者
JA => 結果は良好？
JA => とうきょうで
JA => 東京で…良好
JA => 昨年比：30％増
RU => прошло 4 встречи
RU => «прошло 4 встречи»
RU => прошло … встречи
RU => прошло 3встречи
RU => прошло3 встречи
RU => Прошло 3 встречи
RU => не прошло 3 встречи
RU => Итог - хороший
RU => Итог — плохой
RU => в Mоскве
RU => ...другие
RU => Заря, Восток
RU => Итог хороший
RU => «…»
EN => there were 4 meetings
EN => "there were 4 meetings"
EN => there was 3 meetings
EN => There were 3 meetings
EN => there were ... meetings
EN => there … others
EN => therewere 3 meetings
EN => there were 3 meetings. The result
EN => 3 meetings; “Dawn”
EN => The result is good
EN => [sic] The result
EN => The result (so far) is good!
EN => “Dawn and East”
EN => tnere were 3 meetings
EN => there were three meetings
EN => "..."
TWICE => “Ice floats”
TWICE => Ice floats…
TWICE => 共3天
"""),
    ["**三天**内。__三天__内。", "`三天内`"],
    ["EN", "there\u200bwere 3 meetings"],
]


@pytest.mark.parametrize(("text", "quote", "snapped"), SNAPPED)
def test_a_harmless_change_is_snapped_to_the_text(text, quote, snapped):
    place = locate(quote, JUDGED[text])
    assert JUDGED[text][place.start : place.end] == snapped
    assert (place.match == "exact") == (quote == snapped)


@pytest.mark.parametrize(("text", "quote"), INVENTED)
def test_an_invented_quote_is_not_found(text, quote):
    judged = JUDGED.get(text, text)
    place = locate(quote, judged)
    assert not place or not is_substantial_quote(judged[place.start : place.end], judged)


ENOUGH = """
好的 => 好的，再见
ab的 => ab的，再见
cats => two cats
cats and => two cats and dogs
cat s => a cat sat
(cat) => a (cat) sat
No => No
"""
SLIGHT = """
3,5 => it is 3,5 m
的 => 好的，再见
a的 => a的，再见
cat => a cat sat
a b c => a b c d e
!?…— => so !?…—
! => !
"""


def test_a_quote_must_be_able_to_show_something():
    assert all(is_substantial_quote(*row) for row in cells(ENOUGH))
    assert not any(is_substantial_quote(*row) for row in cells(SLIGHT))
    assert is_substantial_quote("是", " 是\n") and not is_substantial_quote("", "")
