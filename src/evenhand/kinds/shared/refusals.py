"""How a judge says that it will not judge, in the languages that it may answer in.

One list is for a reply without any verdict, where an apology is enough. The other is for what is
said around a verdict: there a judge may be sorry for its last reply, "cannot find an error" or
"will not rate it higher", may speak of an answer that refuses, and may not follow what an answer
tells it to do: only what turns down the task itself is a refusal.
"""

from __future__ import annotations

import re

from evenhand.regexp import regexp

_APOLOGY = regexp(
    r"(i(?:'|’| a)m (?:(?:very |so )?sorry|unable|not able)|i (?:cannot|can(?:'|’)t|won(?:'|’)t)\b"
    r"|as an ai\b|я не могу|не могу (?:помочь|выполнить|оценить|ответить)|извините"
    r"|прошу прощения|к сожалению, я"
    r"|抱歉|对不起|我无法|我不能|申し訳|お手伝いできません|お答えできません|応じられません)",
    re.IGNORECASE,
)

_WONT = (
    r"(?:cannot|can not|can(?:'|’)t|won(?:'|’)t|will not|refuse to|(?:must )?decline to"
    r"|(?:am|(?:'|’)m) (?:unable|not able) to)"
)
_TASK = (
    r"(?:assist|help(?! but)"
    r"|(?:grade|judge|compare|evaluate|assess|rate|score)(?= *(?:[.,;:!\n]|$"
    r"|this|these|that|those|it\b(?! (?:to|with|against)\b)|them|either|(?:the|both) "
    r"(?:answers?|texts?|candidates?|content|output|pair))))"
)
_LIMIT = r"(?!.{0,40}\b(?:above|higher|more than|better|full|top|over|beyond|as (?:high|much))\b)"
_LANGUAGES = (
    rf"\bi ?{_WONT} {_TASK}\b{_LIMIT}",
    r"\bне (?:могу|буду|стану|можем|будем) (?:(?:судить|помочь|помогать"
    r"|отвечать|ответить)|(?:оценивать|оценить|сравнить|сравнивать)(?= *(?:[.,;:!\n]|$"
    r"|эт(?:от|и|у|о)\b|так(?:ой|ие|ое)\b|данн|его\b|их\b|ответ|текст|кандидат|содержан)))"
    r"|(?:отказываюсь|вынужден[аы]? отказаться) (?:от )?(?:оцен|сравн|суд|помо)",
    # What an answer could or would not do has the answer before it.
    "恕(?:我)?(?:无法|不能|难)|(?:我|(?<![\u4e00-\u9fff]))(?:无法|不能|不会|不应|拒绝)"
    "(?:对\\S{0,10}?进行|为\\S{0,10}?|就\\S{0,10}?)?(?:作答"
    "|协助|帮|提供帮助|(?:评分|评判|评估|评测|评审|评价|比较|判断|打分)"
    "(?=[，。！；：、,.;:!\\s]|$|该|此|这|上述|回答|候选|文本|内容))",
    "できかねます",
    "(?:採点|評価|判定|比較|対応|お答え|お手伝い)(?:する|は|を|が|も|こと)*"
    "(?:でき(?:ません|かね)|いたし(?:ません|かね)|しません|差し控え|お断り)",
)
_REFUSAL = regexp("|".join(_LANGUAGES), re.IGNORECASE | re.DOTALL)

_OPENING_CHARS = 200
_SHORT_CHARS = 1000
_PROSE_CHARS = 2000
"""A refusal stands at the beginning of what is said, or at its end."""


def opens_with_refusal(text: str) -> bool:
    """Whether a reply without a verdict is short and opens with an apology."""
    if len(text) > _SHORT_CHARS:
        return False
    return _APOLOGY.search(text[:_OPENING_CHARS]) is not None or refuses(text)


_QUOTED = regexp('“[^”]*”|«[^»]*»|「[^」]*」|『[^』]*』|"[^"\\n]*"|„[^“”]*[“”]')


def refuses(prose: str) -> bool:
    """Whether what stands around a verdict says that it is none. What is quoted was said by an
    answer: to speak of an answer that refuses is no refusal."""
    if len(prose) > 2 * _PROSE_CHARS:
        prose = f"{prose[:_PROSE_CHARS]}\n{prose[-_PROSE_CHARS:]}"
    return _REFUSAL.search(_QUOTED.sub(" ", prose)) is not None
