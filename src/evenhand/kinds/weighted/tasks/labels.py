"""The headings, labels and values by which a task rubric is read, in the four languages.

They are compared as letters and digits only, in lower case, so that spelling, numbering, emoji and
punctuation do not matter. `docs/weighted-rubrics.md` lists them for people.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal
from unicodedata import category, normalize

from evenhand.regexp import regexp

Section = Literal["type", "critical", "facts"]

CRITICAL = {
    "en": (
        "critical fail conditions, critical fail condition, critical fail criteria, "
        "critical fail, critical fails, critical failure conditions, critical failure criteria, "
        "critical failure, critical failures, critical errors, critical conditions, "
        "fatal errors, fatal conditions, fail conditions, failure conditions, "
        "automatic fail conditions, automatic fail, automatic failure, auto-fail, "
        "auto-fail conditions, instant fail, instant fail conditions, "
        "immediate fail conditions, hard fail, hard fail conditions, disqualifying conditions, "
        "disqualification conditions, disqualifiers, knockout criteria, knockout conditions, "
        "zero score conditions"
    ),
    "ru": (
        "критические ошибки, критическая ошибка, критические условия, критический провал, "
        "критические провалы, "
        "условия критического провала, критерии критического провала, условия провала, "
        "критерии провала, условия немедленного провала, условия автоматического провала, "
        "условия безусловного провала, условия незачёта, фатальные ошибки, недопустимые ошибки, "
        "условия дисквалификации, дисквалифицирующие условия, дисквалифицирующие ошибки, "
        "условия обнуления, обнуляющие условия, обнуляющие ошибки, стоп-факторы"
    ),
    "zh": (
        "致命错误条件, 致命错误, 致命失败条件, 致命失败, 致命条件, 严重失败条件, 关键失败条件, "
        "一票否决, 一票否决条件, 一票否决项, 否决条件, 否决项, 直接判零条件, 直接零分条件, "
        "零分条件, 0分条件, 失败条件, 取消资格条件, 红线, 红线条件, 致命錯誤條件, 致命錯誤, "
        "致命失敗條件, 一票否決, 一票否決條件, 一票否決項, 否決條件, 零分條件, 失敗條件, "
        "取消資格條件, 不合格条件, 不合格條件"
    ),
    "ja": (
        "致命的失格条件, 致命的な失格条件, 失格条件, 失格事項, 即失格条件, 一発失格条件, "
        "重大な失格条件, 致命的失敗条件, 致命的な失敗条件, 致命的失敗, 致命的エラー, "
        "致命的エラー条件, 致命的な誤り, 致命的欠陥, 不合格条件, 即不合格条件, 0点条件, "
        "零点条件, 足切り条件, クリティカルフェイル, クリティカルフェイル条件, "
        "クリティカルフェール, クリティカルフェール条件"
    ),
}

FACTS = {
    "en": (
        "facts for the grader, facts for graders, facts for grading, facts for the judge, "
        "facts for the evaluator, facts for the reviewer, grader facts, grading facts, "
        "judge facts, evaluator facts, factual information for the grader, "
        "factual information for graders, information for the grader, reference facts, "
        "ground truth, ground truth facts, known facts"
    ),
    "ru": (
        "факты для проверяющего, факты для проверяющих, факты для оценщика, факты для эксперта, "
        "факты для судьи, факты для оценки, факты для оценивания, факты для проверки, "
        "фактическая информация для проверяющего, фактические сведения для проверяющего, "
        "фактические данные для проверяющего, информация для проверяющего, "
        "сведения для проверяющего, справка для проверяющего, "
        "справочная информация для проверяющего, эталонные факты, справочные факты"
    ),
    "zh": (
        "供评分者参考的事实, 供评分者参考的事实信息, 供评分者使用的事实, 面向评分者的事实信息, "
        "给评分者的事实, 给评分者的事实信息, 评分者事实信息, 评分者参考事实, 评分员参考事实, "
        "供评分员参考的事实, 评分参考事实, 评分用事实, 评分依据事实, 评分事实依据, "
        "供评审参考的事实, 评审参考事实, 阅卷参考事实, 参考事实, 事实依据, 事实信息, "
        "供評分者參考的事實, 評分者事實資訊, 評分參考事實, 參考事實, 事實依據"
    ),
    "ja": (
        "採点者向け事実情報, 採点者向けの事実情報, 採点者向け事実, 採点者向けの事実, "
        "採点者用事実情報, 採点者のための事実情報, 採点者向け情報, 採点者向け参考情報, "
        "採点者向け参考事実, 採点用事実情報, 採点用の事実情報, 採点用の事実, 採点のための事実, "
        "評価者向け事実情報, 評価者向けの事実情報, 評価者向けの事実, 評価用事実情報, "
        "審査員向け事実情報, 事実情報, 参考事実"
    ),
}

TYPE = {
    "en": "task type, type of task, type of the task, task category, task kind",
    "ru": "тип задачи, тип задания, вид задачи, вид задания, категория задачи, категория задания",
    "zh": (
        "任务类型, 任务类别, 任务种类, 题目类型, 题目类别, 题型, 問題類型, 任務類型, 任務類別, "
        "題目類型, 題型"
    ),
    "ja": (
        "タスク種別, タスクの種別, タスクタイプ, タスクの種類, タスク類型, タスク分類, "
        "課題タイプ, 課題種別, 課題の種類, 問題タイプ, 問題の種類, 設問タイプ, 題目タイプ"
    ),
}

VALUES = {
    "fact": (
        "fact, facts, factual, fact based, knowledge, факт, факты, фактическое, фактическая, "
        "фактический, фактологическое, фактологическая, фактологический, фактуальное, "
        "фактуальная, знание, знания, на знание, на знания, 事实, 知识, 事實, 知識, 事実, "
        "事実確認, ファクト"
    ),
    "creative": (
        "creative, creation, creative writing, творческое, творческая, творческий, творчество, "
        "креативное, креативная, креативный, креатив, 创作, 创意, 创造, 創作, 創意, 創造, "
        "クリエイティブ"
    ),
    "speculative": (
        "speculative, speculation, умозрительное, умозрительная, умозрительный, спекулятивное, "
        "спекулятивная, спекулятивный, гипотетическое, гипотетическая, гипотетический, "
        "рассуждение, рассуждения, размышление, размышления, 推测, 思辨, 推想, 推測, 思辯, "
        "思索, 思弁, 考察"
    ),
}

NONE = (
    "none, no, nothing, n/a, null, not applicable, no conditions, no critical fail conditions, "
    "no facts, not given, нет, отсутствует, отсутствуют, не предусмотрены, не предусмотрено, "
    "не применимо, неприменимо, нет условий, таких условий нет, не указано, не указан, 无, 無, "
    "没有, 沒有, 暂无, 不适用, 不適用, 未指定, 无条件, なし, 無し, ない, 特になし, 特に無し, "
    "該当なし, ありません, 特にありません, 指定なし"
)

LABELS: dict[Section, dict[str, str]] = {"type": TYPE, "critical": CRITICAL, "facts": FACTS}

# As the beginning of a line of prose these say what happens, not that conditions follow.
_HEADING_ONLY = (
    "critical fail, critical failure, automatic fail, automatic failure, auto-fail, "
    "instant fail, hard fail, ground truth, критический провал, 红线, 一票否决, 一票否決, "
    "致命的失敗, 事実情報, 事实信息"
)


def key(text: str) -> str:
    """Letters and digits alone, in lower case: what labels are compared by."""
    return _spaced(text).replace(" ", "")


def _spaced(text: str) -> str:
    folded = normalize("NFKC", text).casefold().replace("ё", "е")
    letters = "".join(c if category(c)[0] in "LN" else " " for c in folded)
    return " ".join(letters.split())


def split(labels: str) -> list[str]:
    """The labels of one of the tables above."""
    return labels.split(", ")


def _keys(labels: Iterable[str]) -> frozenset[str]:
    return frozenset(key(label) for line in labels for label in split(line))


_SECTIONS: dict[str, Section] = {
    one: section for section, table in LABELS.items() for one in _keys(table.values())
}
_LOOSE = _keys([_HEADING_ONLY])
_NONE = _keys([NONE])
_NUMBERING = regexp(
    r"(?:(?:(?:step|part|section|часть|раздел|шаг|пункт) )?\d+(?: \d+)*|[ivx]+|[a-zа-я]"
    r"|[一二三四五六七八九十]+) |第 ?[\d一二三四五六七八九十]+ ?[章节節部項项条] ?"
)
# A longer line is prose, whatever it begins with.
HEADING_CHARS = 160
_REMARK = regexp(r"\s*[(（\[［][^()（）]*[)）\]］]\s*[:：]?\s*$")


def find_section(label: str, *, in_prose: bool = False) -> Section | None:
    """The section that a heading or label opens, whatever its numbering, remark or spelling."""
    if len(label) > HEADING_CHARS:
        return None
    for text in (label, _REMARK.sub("", label), *re.split(r"[/|／｜]", label)):
        spaced = _spaced(text)
        for spelling in (spaced, _unnumbered(spaced)):
            section = _SECTIONS.get(spelling.replace(" ", ""))
            if section and not (in_prose and spelling.replace(" ", "") in _LOOSE):
                return section
    return None


def _unnumbered(spaced: str) -> str:
    numbering = _NUMBERING.match(spaced)
    return spaced[numbering.end() :] if numbering else spaced


def says_none(text: str) -> bool:
    """Whether a text says that there is nothing to say: "none", or a dash alone."""
    label = key(text)
    return label in _NONE or (not label and any(dash in text for dash in "–—"))


# A type is often written with the noun it belongs to: "fact task", 事实类, 創作型.
_NOUNS = regexp(
    r"(?:type|task|тип|задача|задание|任务|任務|タスク|問題|課題|类型|類型|类|類|型|性|系|的|题|題)+$"
)


_WORDS = {one: name for name, words in VALUES.items() for one in _keys([words])}


def find_type(value: str, types: Iterable[str]) -> str | None:
    """The type that a word names: one of `types` itself, or a word for it in the four languages."""
    names = {key(name): name for name in types}
    label = key(value)
    for spelling in (label, _NOUNS.sub("", label)):
        name = names.get(spelling) or _WORDS.get(spelling)
        if name and key(name) in names:
            return names[key(name)]
    return None
