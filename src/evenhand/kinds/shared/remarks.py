"""What a judge's reasons should not hold: a comparison with other samples or variants, and a guess
at who wrote an answer. Found by patterns in four languages, and only ever a flag.

What the judged texts themselves speak of is no such remark: an answer may compare variant A with
variant B, or be about a model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

from evenhand.kinds.masking import MASK, mask_names
from evenhand.regexp import regexp


class Cues:
    """Words of which one stands in every remark of some sort."""

    def __init__(self, *words: str) -> None:
        self._words = words
        self._ascii = tuple(word for word in words if word.isascii())

    def has_one_in(self, text: str) -> bool:
        return any(map(text.__contains__, self._ascii if text.isascii() else self._words))


_LETTER = r"(?-i:[A-Z])(?![A-Za-z0-9])|\d{1,3}(?![\d.,%])"

_EN_THING = r"(?:variants?|samples?|versions?|outputs?|answers?|responses?|candidates?|models?)"
_EN_OTHER = (
    rf"(?P<other>(?:(?:other|previous|earlier|preceding)\s+{_EN_THING}"
    rf"|{_EN_THING}\s+(?:{_LETTER})"
    r"|baseline)(?!\s+(?:of|value|year|level|period|rate|scenario)\b))\b"
)
_EN_THAN = (
    r"(?:better|worse|stronger|weaker|longer|shorter|clearer|(?:more|less)\s+\w{1,30})"
    r"(?:\s+\w{1,20})?\s+than"
)
_ENGLISH = (
    rf"\b(?:(?:compared|in\s+comparison|relative)\s+(?:to|with)|unlike|{_EN_THAN}|outperforms|beats"
    rf"|surpasses)\s+(?:the\s+|all\s+|any\s+|those\s+of\s+)*{_EN_OTHER}"
)

_RU_THING = r"(?:вариант|верси|образц|ответ|вывод|модел|кандидат)\w{0,4}"
_RU_OTHER = (
    rf"(?P<other>(?:(?:друг|остальн|предыдущ|прошл)\w{{1,4}}\s+{_RU_THING}"
    rf"|{_RU_THING}\s+(?:{_LETTER}|(?-i:[А-ЯЁ])(?!\w))"
    r"|вариант(?:ом|ами|а|ов)|baseline|бейзлайн\w{0,3}|базов\w{1,4}\s+(?:вариант|верси|модел)\w{0,4}"
    r"|(?-i:[AB])(?![A-Za-z0-9]))(?!\w))"
)
_RU_THAN = r"(?:лучше|хуже|сильнее|слабее|точнее|полнее|короче|длиннее|подробнее|понятнее)"
_RUSSIAN = (
    r"(?<!\w)(?:(?:по\s+сравнению|в\s+сравнении)\s+с|в\s+отличие\s+от"
    rf"|{_RU_THAN}(?:,?\s+чем)?(?:\s+[ув])?|превосходит|уступает)\s+{_RU_OTHER}"
)

_ZH_THING = "(?:变体|版本|样本|方案|候选|回答|输出|模型)"
_ZH_OTHER = (
    rf"(?P<other>(?:其他|其它|上一个?|前一个?|另一个?){_ZH_THING}|{_ZH_THING}\s*(?:{_LETTER})"
    r"|baseline|基线(?:版本|变体)?|(?-i:[A-Z])(?![A-Za-z0-9+]))"
)
_ZH_THAN = "相比于?|相较于?|比起|优于|劣于|不如|好于|胜过|逊于"
_CHINESE = (
    rf"(?:与|和|跟|同)\s*{_ZH_OTHER}\s*(?:相比|比较|对比|比起来)",
    rf"(?:{_ZH_THAN})\s*{_ZH_OTHER}",
)

_JA_THING = "(?:サンプル|バリアント|バージョン|回答|出力|案|モデル|候補)"
_JA_OTHER = (
    rf"(?P<other>(?:他|別|前|もう一方)の{_JA_THING}|{_JA_THING}\s*(?:{_LETTER})"
    r"|(?-i:[A-Z])\s*案|baseline|ベースライン|(?-i:[A-Z])(?![A-Za-z0-9+]))"
)
_JA_THAN = r"[とに]\s*(?:比べ|比較し)|よりも?\s*(?:優|劣|良|よ|悪|詳|正確|明確|長|短)"
_JAPANESE = rf"{_JA_OTHER}\s*(?:{_JA_THAN})"

_COMPARISONS = [
    regexp(pattern, re.IGNORECASE) for pattern in (_ENGLISH, _RUSSIAN, *_CHINESE, _JAPANESE)
]
# One of these stands in every comparison: they are found ten times faster than the patterns.
_COMPARING = Cues(
    *("compar", "relative", "unlike", "than", "outperforms", "beats", "surpasses", "сравнени"),
    *("отличие", "лучше", "хуже", "сильнее", "слабее", "точнее", "полнее", "короче", "длиннее"),
    *("подробнее", "понятнее", "превосходит", "уступает", "比", "相较", "优于", "劣于", "不如"),
    *("好于", "胜过", "逊于", "より"),
)
LONGEST = 8_000
"""So much of each of a judge's reasons is looked at: more is no reason."""


def one_text(reasons: Iterable[str]) -> str:
    """All reasons of a reply to be looked at as one, so that no remark begins in one of them and
    ends in the next."""
    return "\n.\n".join([reason[:LONGEST] for reason in reasons])


def compares(text: str, *judged: str) -> bool:
    """Whether a reason holds an answer against other samples or variants, of which the judged texts
    say nothing."""
    if not _COMPARING.has_one_in(text.casefold()):
        return False
    others = {each["other"] for pattern in _COMPARISONS for each in pattern.finditer(text)}
    if not others:
        return False
    contents = [_Content(content) for content in judged]
    return any(not any(content.speaks_of(other) for content in contents) for other in others)


_INFLECTED = regexp("[а-яё]", re.IGNORECASE)
_STEM_CHARS = 6


class _Content:
    """A judged text, in which others than itself may be named."""

    def __init__(self, text: str) -> None:
        self.text = text

    def speaks_of(self, name: str) -> bool:
        """Whether the text names another, white space and case aside."""
        if _INFLECTED.search(name):
            return all(self._holds(word[:_STEM_CHARS]) for word in name.split())
        return self._holds(name)

    def _holds(self, name: str) -> bool:
        if len(name) == 1:
            alone = rf"(?<![A-Za-z0-9а-яё]){name}(?![A-Za-z0-9а-яё])"
            return re.search(alone, self.text) is not None
        return _joined(name) in self._words

    @cached_property
    def _words(self) -> str:
        return _joined(self.text)


def _joined(text: str) -> str:
    return "".join(text.casefold().split())


_M = re.escape(MASK)
_GUESSES = regexp(
    rf"(?:written|generated|produced|authored|composed)\s+by\s+(?:an?\s+|the\s+)?{_M}"
    rf"|(?:looks?|sounds?|reads?|seems?|feels?)\s+(?:like|as\s+if)\s+(?:\w{{1,12}}\s+){{0,4}}{_M}"
    rf"|(?:probably|likely|presumably|apparently|obviously)\s+(?:from\s+|by\s+|an?\s+)*{_M}"
    rf"|(?:typical\s+(?:of|for)|in\s+the\s+style\s+of)\s+{_M}|{_M}(?:-like|-style|'s\s+style)"
    rf"|(?:answer|response|candidate)\s+(?:a|b|1|2)\s+(?:is|was|comes\s+from)\s+{_M}"
    rf"|(?:написан|сгенерирован|составлен|подготовлен)\w{{0,3}}\s+(?:\w{{1,12}}\s+){{0,2}}{_M}"
    rf"|похож\w{{0,3}}\s+на\s+(?:\w{{1,12}}\s+)?{_M}|(?:стил\w{{1,3}}|почерк\w{{0,2}})\s+{_M}"
    rf"|(?:видимо|вероятно|скорее\s+всего|наверное)[,\s]+(?:это\s+)?{_M}"
    rf"|{_M}\s+(?:написал|сгенерировал)"
    rf"|(?:像是?|似乎是|可能是|应该是|疑似|出自)\s*{_M}|由\s*{_M}\s*(?:生成|写|撰写|输出)"
    rf"|{_M}\s*(?:生成的|写的|撰写的|的风格|的手笔)"
    rf"|{_M}\s*(?:が|による|によって)\s*(?:書|生成|作成|出力)"
    rf"|{_M}\s*(?:らしい|っぽい|のよう|の文体)|おそらく\s*{_M}",
    re.IGNORECASE,
)
# Without one of these in a text without case there is nothing to guess with. They are found ten
# times faster than the patterns above.
_CUES = Cues(
    *("written", "generated", "produced", "authored", "composed", "like", "probably", "presumably"),
    *(
        "apparently",
        "obviously",
        "typical",
        "style",
        "написа",
        "сгенерир",
        "составлен",
        "подготовлен",
    ),
    *("похож", "стил", "почерк", "видимо", "вероятно", "скорее", "наверное", "像", "似乎", "可能"),
    *(
        "应该",
        "疑似",
        "出自",
        "生成",
        "写",
        "输出",
        "风",
        "手笔",
        "書",
        "作成",
        "出力",
        "らしい",
        "っぽい",
    ),
    *("よう", "文体", "おそらく"),
)
_OTHER_CUE = regexp(r"(?:answer|response|candidate)\s+[ab12]\s|as\s+if\s")
_OTHER_WORDS = Cues("answer", "response", "candidate", "if")


def guesses_source(text: str, topic: str = "") -> bool:
    """Whether a reason guesses which model wrote an answer. A model that the topic names is what is
    talked about."""
    if not _has_cue(text.casefold()):
        return False
    hidden = mask_names(text, topic=topic)
    return hidden != text and _GUESSES.search(hidden) is not None


def _has_cue(text: str) -> bool:
    """Whether a text without case holds a word that every guess has one of."""
    if _CUES.has_one_in(text):
        return True
    return _OTHER_WORDS.has_one_in(text) and _OTHER_CUE.search(text) is not None
