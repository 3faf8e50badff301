"""How a text says who wrote it, in four languages, as patterns over lower-case text.

An introduction is found forward, from its first word over words that may stand in it to where a
name would begin; what follows the name then decides. So nothing is searched twice.
"""

from __future__ import annotations

from evenhand.kinds.shared.scan import search
from evenhand.regexp import regexp


def _run(words: str, between: str, *, letters: str = "") -> str:
    """Any number of these words, each whole."""
    whole = f"(?![{letters}])" if letters else ""
    return rf"(?:(?:{words}){whole}(?:{between})*+)*+"


_SPACE = r"[\s,:;(\"“«*_—–-]"

_VERB = r"(?:developed|created|made|trained|built|designed|provided|released|fine-tuned|engineered)"
_TEAM = r"company|team|researchers|engineers|scientists|people|folks"
_BY = rf"{_VERB}(?:\s+and\s+{_VERB})?\s+(?:by|at)(?:\s+the)?(?:\s+(?:{_TEAM}))?(?:\s+(?:at|of))?"
_ENGLISH = _run(
    rf"{_BY}|(?:ai|model|assistant|chat\s?bot|bot|llm)(?:\s+(?:from|by|of))?|an?|the|your|just|only"
    r"|actually|simply|really|indeed|specifically|currently|called|named|known\s+as|based\s+on"
    r"|powered\s+by|built\s+on|running\s+on|(?:version|instance)\s+of|artificial|intelligence|large"
    r"|language|multimodal|virtual|helpful|friendly|harmless|honest|conversational|advanced|powerful"
    r"|digital|generative|neural|network|new|like|such\s+as",
    _SPACE,
    letters="a-z",
)
_MADE = r"(?:создан|разработан|обучен|натренирован|сделан)"
_RUSSIAN = _run(
    rf"{_MADE}(?:н?ая|н?ый|н?ое|а|о)?|(?:создал|разработал|обучил)[аи]?|компани(?:я|ей|и)"
    r"|команд(?:а|ой)|специалистами|это|всего|лишь|просто|являюсь|именно|ваш|твой|больш(?:ая|ой)"
    r"|языков(?:ая|ой)|модел(?:ь|ью)|нейросет(?:ь|ью)|нейронная|сеть|чат-?бот(?:ом)?|бот"
    r"|(?:ии-?)?(?:ассистент|помощник)(?:ом)?|ии|искусственный|интеллект|виртуальный|голосовой"
    r"|генеративная|по\s+имени|под\s+названием|от|на\s+основе|на\s+базе",
    _SPACE,
    letters="а-яё",
)
_CHINESE = _run(
    "一个|一款|一种|一名|由|来自|基于|名为|叫做?|人工智能|智能|超?大规模|大型?|语言|模型|助手|助理|聊天|机器人"
    "|ai|的|[您你]的|被|虚拟",
    r"[\s,\"“「]",
)
_JAPANESE = _run(
    "人工知能|大規模|言語|モデル|アシスタント|ai|チャットボット|の|である|という|対話型|生成",
    r"[\s、,「]",
)

_CLAUSE = r"[.!?:;,(\"“*_>—–\n]"
_I = (
    r"(?<![a-z'])(?<!if )i(?:\s+am|'m|\s+was|,?\s+as|\s+run\s+on)|(?<![a-z])my\s+name\s+is"
    r"|(?<![a-z])call\s+me"
)
_BEFORE_AS = (
    *(r"\A{}", rf"{_CLAUSE}{{}}", rf"{_CLAUSE}\s{{}}", r"\s\s{}"),
    *(r"\band {}", r"\bbut {}", r"speaking {}"),
)


def _after_clause(word: str = "") -> str:
    """What holds right behind a word with which a clause begins."""
    return f"(?:{'|'.join(f'(?<={before.format(word)})' for before in _BEFORE_AS)})"


_AS = rf"{_after_clause()}(?:as|being)"
_YA = r"(?<![а-яё])(?<!если )(?:я|меня\s+зовут|меня(?=\s+(?:созд|разраб|обуч))|мо[её]\s+имя)"
# Greetings, where a text or a line begins.
_HI_ENGLISH = (
    r"(?:hi|hello|hey|greetings|good\s(?:morning|afternoon|evening|day))(?![a-z])"
    r"(?:\s+(?:there|everyone|all|again|folks))?[\s,!.—–-]++"
)
_HI_RUSSIAN = (
    r"(?:привет(?:ствую)?|здравствуй(?:те)?|добр(?:ый|ое|ого)\s(?:день|утро|вечер|дня))(?![а-яё])"
    r"[\s,!.—–-]++"
)
_HI_CHINESE = r"(?:[你您]好|大家好|嗨|哈[喽啰])[\s,!。~]*+"
_HI_JAPANESE = (
    r"(?:こんにちは|こんばんは|おはよう(?:ございます)?|はじめまして|初めまして|どうも)[\s、,!。]*+"
)
_BEGIN = r"(?:\A|(?<=\n))\s*+"
# Fewer words than after "I am": "This is like ChatGPT" is about another.
_ROLE = _run(
    r"your|the|ai|virtual|assistant|chat\s?bot|(?:large\s)?language\smodel", r"[\s,]", letters="a-z"
)
_ROLE_RUSSIAN = _run(
    r"ваш|твой|виртуальный|голосовой|(?:ии-?)?(?:ассистент|помощник)|нейросеть|чат-?бот"
    r"|языковая\sмодель",
    r"[\s,]",
    letters="а-яё",
)
_ROLE_CHINESE = _run("[您你]的|ai|智能|人工智能|助手|助理|聊天机器人", r"\s")
INTRODUCTION = regexp(
    rf"(?P<am>(?:{_I})\s++{_ENGLISH}"
    rf"|(?:{_YA})(?![а-яё]){_SPACE}*+{_RUSSIAN}"
    r"|(?<!如果)(?<!假如)(?<!假设)我(?:(?:就|只|其实|确实)?(?:是|叫|名叫)|的名字(?:是|叫)|由|被|来自)"
    rf"\s*+{_CHINESE})"
    rf"|(?P<as>{_AS}\s++{_ENGLISH}"
    rf"|(?<![а-яё])(?:как|будучи)\s++{_RUSSIAN}"
    rf"|(?:作为|身为)\s*+{_CHINESE})"
    rf"|(?P<ja>(?:私|わたし|わたくし|僕|ぼく)(?:は|の名前は)[、,]?\s*+{_JAPANESE})"
    rf"|(?P<this>{_BEGIN}(?:(?:{_HI_ENGLISH})?+this\s+is\s++{_ROLE}"
    rf"|(?:{_HI_RUSSIAN}это|(?:{_HI_RUSSIAN})?+(?:с\s+вами|на\s+связи|говорит))\s++{_ROLE_RUSSIAN}"
    rf"|(?:{_HI_CHINESE}这里?是|这里是)\s*+{_ROLE_CHINESE}))"
    rf"|(?P<hi>{_BEGIN}(?:{_HI_ENGLISH}|{_HI_RUSSIAN}|{_HI_CHINESE}|{_HI_JAPANESE}(?:こちらは)?))"
)

_CUES = (
    ("i", regexp(r"i(?<![a-z']i)(?:\s+am|'m|\s+was|,?\s+as|\s+run\s)")),
    ("my", regexp(r"my\s+name\s")),
    ("call", regexp(r"call\s+me")),
    ("as", regexp(rf"as{_after_clause('as')}\s")),
    ("being", regexp(rf"being{_after_clause('being')}\s")),
    ("this", regexp(r"this\s+is\s")),
    ("here", regexp(r"here(?<=\shere)")),
    ("--", regexp(r"--")),
)
"""In a text of ASCII: what an introduction begins with, what follows a name with which a text
begins, and what stands before a signature. What is found begins with its word: so it is found
fastest."""


def may_stand_in(low: str) -> bool:
    """Whether a text of ASCII has any of the words without which it does not say who wrote it. They
    are found much faster than names are."""
    return any(word in low and search(cue, low) is not None for word, cue in _CUES)


_ZH_MODEL = r"(?:ai|人工智能|超?大?(?:型|规模)?(?:语言)?模型|(?:智能)?助手|助理|聊天机器人)"
_JA_MODEL = r"(?:ai|人工知能|(?:大規模)?(?:言語)?モデル|アシスタント|チャットボット)"
_ZH_MAKES = (
    r"(?:公司|团队|实验室|集团|旗下)?(?:自主|独立|所|精心)?"
    r"(?:开发|训练|研发|创造|创建|打造|推出|研制|设计|构建)(?![者人师])"
)
_JA_MAKES = (
    r"社?(?:が|によって|により|の手で)(?:独自に)?"
    r"(?:開発|訓練|作成|トレーニング|学習|構築|設計|提供|作)"
)
_CLOSED = r"[)\]*_\"”»」』]*+"
_AFTER_AM = regexp(
    rf"{_CLOSED}\s*+(?:\Z|[,.!?;:(—–、。]|-\s)|{_CLOSED}\n"
    r"|\s+(?:an?|the|and|from|by|here|developed|trained|created|made|built|speaking|model|ai"
    r"|assistant|language|large|от|разработ[а-я]*+|созда[а-я]*+|модель|нейросеть)(?![a-zа-яё])"
    rf"|的?{_ZH_MODEL}|由|我|{_ZH_MAKES}"
)
# Between commas, another word on the name before the text goes on as "I".
_ASIDE = r"(?:,(?!\s*так)(?:[^,.!?\n]|\.(?=\d))*+(?=,))?"
_AFTER_AS = regexp(
    rf"(?:\s+(?:model|ai|assistant|language))*+{_CLOSED}(?:\s*\([^()\n]{{0,60}}\))?{_ASIDE},?\s*+"
    r"(?:(?:i|my|я|мне|меня|у\s+меня|мой|моя)(?![a-zа-яё])|我)"
    rf"|\s*+(?:\Z|[,。(]\s*+(?![a-zа-яё])|我|的?{_ZH_MODEL}|{_ZH_MAKES}[一-龥]{{0,12}}?{_ZH_MODEL})"
)
_AFTER_KAK = regexp(rf"{_CLOSED}(?:\s+от\s+\S++)?\s*+(?:,(?!\s*так)|\Z)")
_JA_MADE_MODEL = (
    rf"\s?(?:{_JA_MAKES}[ぁ-んァ-ヶー一-龠]{{0,12}}?|の){_JA_MODEL}(?:アシスタント|モデル)?"
)
_JA_SELF = rf"{_JA_MADE_MODEL}(?:です|として|である(?![a-z])|\Z)"
_JA_ME = r"である(?:私|わたし|僕|ぼく)"
_AFTER_JA = regexp(
    rf"\s*{_CLOSED}(?:\([^()\n]{{0,20}}\))?\s*+(?:です|である|でございます|だ(?![とろが])|と申し|といい"
    rf"|と言い|と呼|という(?:名前の)?{_JA_MODEL}|。|\Z"
    rf"|[、,]\s*[a-zぁ-んァ-ヶー一-龠 ]{{0,40}}?{_JA_MODEL}(?:です|である))|{_JA_SELF}"
)
_JA_MADE = regexp(_JA_SELF)
_JA_MADE_ME = regexp(rf"{_JA_MADE_MODEL}{_JA_ME}")
_TOSHITE = regexp(rf"\s*{_CLOSED}(?:として(?:[、,は]|の私|お|ご|私|回答|答|\Z)|{_JA_ME}|と申し)")
_STOP = rf"{_CLOSED}\s*+(?:\Z|\n|[.!。](?![a-z\d]))"
_AFTER_THIS = regexp(
    rf"{_STOP}|\s+(?:here|speaking)(?![a-z]){_STOP}|,?\s+{_BY}(?![a-z])"
    r"|,\s+(?:an?|the|your)\s+(?:[a-z-]{1,20}\s+){0,4}?(?:ai|model|assistant|chat\s?bot)(?![a-z])"
    r"|,\s+(?:[а-яё-]{1,20}\s+){0,4}?(?:ии|модель|ассистент|помощник|нейросеть|чат-?бот)(?![а-яё])"
    rf"|,\s*[一-龥]{{0,12}}?{_ZH_MODEL}"
)
_HERE = regexp(
    rf"\s+(?:here|на\s+связи)(?![a-zа-яё])(?:{_STOP}|,\s+(?:your|ready|happy|an?|ваш)(?![a-zа-яё])"
    r"|\s+(?:to\s+help|at\s+your\s+service)(?![a-z]))"
    rf"|\s*(?:在此|在这里|为[您你]服务)(?:{_STOP}|,)"
)
_DESU = regexp(rf"\s*{_CLOSED}(?:です|でございます)(?![かがけ])")
_FIRST = ' \n\t*_"“'


def is_name(low: str, start: int, end: int, form: str, run: str) -> bool:
    """Whether a text introduces itself by the name from `start` to `end`."""
    if form == "am":
        return _AFTER_AM.match(low, end) is not None
    if form == "as":
        is_russian = run.startswith("как") and MODEL.search(run)
        after = _AFTER_KAK.match(low, end) if is_russian else None
        return (after or _AFTER_AS.match(low, end)) is not None
    if form == "ja":
        return _AFTER_JA.match(low, end) is not None
    if form == "this":
        return _AFTER_THIS.match(low, end) is not None
    if _TOSHITE.match(low, end) or is_signed(low, start, end):
        return True
    is_first = form == "hi" or (start < len(_FIRST) and not low[:start].strip(_FIRST))
    here = _HERE.match(low, end) if is_first else None
    return (here or (_DESU.match(low, end) if form == "hi" else None)) is not None


_LAST = regexp(rf"{_CLOSED}(?:\s*\([^()\n]*+\))?{_CLOSED}\.?\s*+\Z")
_DASH = regexp(r"(?:\n|(?<=[.!)])\s)\s*[*_]{0,2}(?:[—–]{1,2}|--)\s?[*_]{0,2}\Z")
_ITEM = regexp(r"\s*(?:[-—–•*]|\d{1,3}[.)])\s")
_YORI = regexp(r"\s?より\s*+\Z")
_NO_END = ("?", ":", ",", ";", '"', "”", "»", "'", "」", "』")


def is_signed(low: str, start: int, end: int) -> bool:
    """Whether a text ends with the name as its signature: no item of a list, no source of a quote,
    no answer to a question."""
    if _YORI.match(low, end):
        return low[max(0, start - 2) : start].rstrip(" ").endswith("\n")
    dash = _DASH.search(low, max(0, start - 12), start) if _LAST.match(low, end) else None
    if dash is None:
        return False
    body = low[: dash.start()].rstrip()
    line = body.rpartition("\n")[2]
    return bool(body) and not body.endswith(_NO_END) and not _ITEM.match(line)


MODEL = regexp(
    r"(?<![a-z])(?:ai|models?|chat ?bots?|assistants?|llms?)(?![a-z])|модел|нейросет|ассистент"
    rf"|помощник|чат-?бот|{_ZH_MODEL}|{_JA_MODEL}"
)
_BY_END = regexp(
    rf"(?:(?<![a-z])(?:by|at|of|from|the|{_TEAM})|{_MADE}[а-яё]{{0,3}}|созда[а-я]*|разработа[а-я]*"
    r"|обучил[аи]?|компани[а-я]+|команд[а-я]+|специалистами|(?<![а-яё])от|由|来自|被)[\s«\"(,]*\Z"
)
_OWN = regexp(
    r"(?:'s)?\s+(?:[a-z-]{1,20}\s+){0,3}?(?:ai|model|assistant|chat\s?bot)(?![a-z])"
    rf"|{_ZH_MAKES}[一-龥]{{0,12}}?{_ZH_MODEL}|的{_ZH_MODEL}"
)
_ZH_MADE = regexp(_ZH_MAKES)
_RUSSIAN_MODEL = regexp(r"(?:модел|нейросет|ассистент|помощник|бот)[а-яё]*\s+(?:компании\s+)?\Z")
_YA_NEXT = regexp(rf"{_CLOSED},\s*(?:я|мне|меня|у\s+меня|мой|моя)(?![а-яё])")
_OTHER = regexp(r",?\s*+(?:it|they|this|that|the|он|она|оно|它)(?![a-zа-яё])")
_GOES_ON = regexp(r"[^,.!?\n]{0,30},?\s*(?:i|my)(?![a-z])")


def is_maker(low: str, start: int, end: int, form: str, run: str) -> bool:
    """Whether a text says that whoever is named from `start` to `end` made it."""
    if form == "this":
        return False
    if form == "ja":
        return _JA_MADE.match(low, end) is not None
    if _JA_MADE_ME.match(low, end):
        return True
    if form in ("", "hi"):
        before = low[max(0, start - 2) : start].rstrip(" ")
        is_first = start == 0 or before[-1:] in ("。", "\n", "!", "?")
        return is_first and _JA_MADE.match(low, end) is not None
    owned = _OWN.match(low, end)
    if form == "am":
        return bool(_BY_END.search(run) or owned or _ZH_MADE.match(low, end))
    if _BY_END.search(run) and MODEL.search(run):
        return not _OTHER.match(low, end)
    if _RUSSIAN_MODEL.search(run):
        return _YA_NEXT.match(low, end) is not None
    is_chinese = owned is not None and not owned[0].isascii()
    return owned is not None and (is_chinese or _GOES_ON.match(low, owned.end()) is not None)


_CALLED = regexp(
    r"(?:(?<![a-z])(?:called|named|known\s+as)|по\s+имени|под\s+названием|名为|叫做?)[\s\"“«*_]*\Z"
)
_JA_CALLED = regexp(rf"\s*{_CLOSED}という(?:名前の)?{_JA_MODEL}")


def is_called(low: str, end: int, form: str, run: str) -> bool:
    """Whether a text calls itself a model by the word that ends at `end`."""
    if form == "ja":
        return _JA_CALLED.match(low, end) is not None
    if form != "am" or not _CALLED.search(run):
        return False
    is_model = MODEL.search(run) or _ZH_CALLED.match(low, end)
    return is_model is not None and _AFTER_AM.match(low, end) is not None


_ZH_CALLED = regexp(rf"\s*的{_ZH_MODEL}")
ARTICLE = regexp(r"(?<![a-z])an?\s+\Z")
SURNAME = regexp(r"\s[A-ZА-ЯЁ][a-zа-яё]")
BEFORE_SUBJECT = regexp(r"[^.!?。\n]{0,60}[,、]\s?")
MADE_BY = regexp(
    rf"(?<![a-z]){_BY}\s++"
    r"|(?<![a-z])(?:ai|models?|assistants?|chat\s?bots?|llms?)\s+(?:by|from)\s++(?:the\s++)?"
    rf"|(?:модел|нейросет|ассистент|помощник|чат-?бот)[а-яё]{{0,4}}\s++(?:от|компании)\s++[«\"]?"
    rf"|(?<![а-яё]){_MADE}[а-яё]{{0,5}}(?:\s+(?:компани[а-я]+|командой|специалистами))?\s++[«\"]?|由"
)
MAKES = regexp(rf"{_ZH_MAKES}的|{_JA_MAKES}|(?:公司)?的{_ZH_MODEL}|\s?の{_JA_MODEL}")
OWNS = regexp(r"(?:'s|の|的|社の|公司的|旗下的?)?\s*[«\"“]?")
OWNED = regexp(r"\s*[»\"”]?\s*(?:\(|,?\s*(?:by|from|от)\s+)")
SENTENCE_END = regexp(r"[.!?](?=\s|\Z)|[。\n]")
