"""Which family a name belongs to, where a text names models, and when it says who wrote it."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenhand.judges.embedded.models import DEFAULT, catalogue
from evenhand.kinds.disguise.families import (
    EMBEDDED,
    LONGEST_KEPT,
    MASK,
    _Naming,
    family,
    gives_itself_away,
    masked,
)
from evenhand.kinds.disguise.family_table import FAMILIES
from evenhand.kinds.shared.scan import CHUNK_CHARS, REACH_CHARS

NAMES = {
    "openai": "openai/gpt-4.1-mini gpt-4o chatgpt-4o-latest o1-mini openrouter/openai/o3"
    " gpt-oss-20b openai:gpt-5 text-davinci-003 gpt-3.5-turbo-0125 azure/gpt-4o gpt4_1106_preview",
    "anthropic": "openrouter/anthropic/claude-sonnet-4 anthropic:claude-3 claude-v1 anthropic/next"
    " anthropic.claude-3-sonnet-20240229-v1:0 claude-3-5-sonnet@20240620",
    "google": "google/gemini-2.5-pro gemma-2-9b-it palm-2 bard ollama/gemma3:4b flan-t5-xxl",
    "llama": "meta-llama/Llama-3.1-8B-Instruct ollama/llama3:8b vicuna-13b-v1.3 alpaca-13b"
    " koala-13b Llama-3.1-Nemotron-70B Hermes-3-Llama-3.1-8B saiga_llama3_8b Llama-3-ELYZA-JP-8B"
    " DeepSeek-R1-Distill-Llama-70B codellama-34b TinyLlama-1.1B Llama-3.1-Tulu-3-8B",
    "mistral": "mistral-large-latest open-mixtral-8x22b ministral-8b magistral-small codestral"
    " openrouter/mistralai/devstral-small Nous-Hermes-2-Mixtral-8x7B",
    "qwen": "Qwen2.5-Coder-1.5B embedded embedded/qwen2.5-coder-0.5b QwQ-32B 通义千问 ｑｗｅｎ2"
    " DeepSeek-R1-Distill-Qwen-7B embedded/models/Qwen3-4B-Q4_K_M.gguf",
    "deepseek": "deepseek-chat openrouter/deepseek/deepseek-r1:free DeepSeek-V3",
    "glm": "glm-4-9b chatglm2-6b 智谱清言 zai-org/GLM-4.5",
    "yi": "Yi-34B-Chat 01-ai/yi-large",
    "kimi": "moonshot-v1-8k kimi-k2",
    "baichuan": "Baichuan2-13B-Chat 百川",
    "internlm": "internlm2_5-7b-chat",
    "minimax": "abab6.5s-chat MiniMax-M1",
    "doubao": "doubao-pro-32k 豆包",
    "hunyuan": "hunyuan-large 混元",
    "ernie": "ERNIE-4.0-8K 文心一言",
    "grok": "grok-2 x-ai/grok-3",
    "cohere": "command-r-plus c4ai-command-r-v01 aya-23-8B",
    "phi": "phi-3-mini microsoft/Phi-4",
    "falcon": "falcon-40b-instruct",
    "gigachat": "GigaChat-Max ГигаЧат",
    "yandex": "yandexgpt-lite Алиса yandexgpt/latest",
    "t-bank": "T-lite-it-1.0 t-tech/T-pro-it-2.0",
    "vikhr": "Vikhr-7B-instruct",
    "saiga": "saiga_7b",
    "copilot": "copilot bing-chat",
    "nemotron": "nemotron-4-340b",
    "granite": "granite-3.1-8b",
    "ai2": "OLMo-2-13B tulu-30b",
    "jamba": "jamba-1.5-large",
    "amazon": "amazon.nova-pro-v1:0 titan-text-express",
    "stablelm": "stablelm-tuned-alpha-7b",
    "rinna": "rinna-3.6b",
    "elyza": "ELYZA-japanese-7b",
    "plamo": "plamo-13b",
    "swallow": "Swallow-70b",
    "calm": "calm3-22b-chat open-calm-7b",
    "sarashina": "sarashina2-13b",
    "nous": "nous-hermes-13b",
    "smollm": "embedded/smollm2-135m",
    "reka": "reka-core",
    "solar": "SOLAR-10.7B",
    "exaone": "EXAONE-3.5",
    "bloom": "bloomz-7b1",
    "dolly": "dolly-v2-12b",
    "moss": "moss-moon-003",
    "pangu": "pangu-alpha",
    "spark": "spark-max 讯飞星火",
    "skywork": "Skywork-13B",
    "eleuther": "gpt-j-6b pythia-12b gpt-neox-20b",
    "mpt": "mpt-30b-chat",
}


@pytest.mark.parametrize(("key", "name"), [(k, n) for k, v in NAMES.items() for n in v.split()])
def test_a_name_tells_its_family(key, name):
    assert family(name) == family(name.upper()) == key


SURE = [("openai/o1", "openai"), ("openai:o3", "openai"), ("azure/o1", "openai")]
SURE += [("openrouter/openai/o1", "openai"), ("o3-mini", "openai"), ("o1-2024-12-17", "openai")]
SURE += [("o4-mini-deep-research", "openai"), ("amazon nova", "amazon"), ("amazon/nova", "amazon")]
SURE += [("bedrock/nova", "amazon"), ("nova-lite", "amazon"), ("google/palm", "google")]
SURE += [("google/next", "google"), ("ollama/phi", "phi"), ("microsoft/phi", "phi")]
SURE += [("tiiuae/falcon-mamba-7b", "falcon"), ("openrouter/cohere/command", "cohere")]
SURE += [("command-a", "cohere"), ("solar-pro", "solar"), ("ByteDance-Seed/x", "doubao")]


@pytest.mark.parametrize(("name", "key"), SURE)
def test_a_word_is_a_model_where_its_maker_or_version_says_so(name, key):
    assert family(name) == key


def test_every_family_is_tried():
    assert {each.key for each in FAMILIES} == set(NAMES)


OTHERS = ["azure/my-deployment", "openai/my-model", "openai/default", "human/claude"]
OTHERS += ["human:Gemma", "replay/gpt-4.jsonl", "python/judges.gpt4:ask", "cgpt-4x"]
OTHERS += ["philosophy", "yiping", "gpt4all-13b-snoozy", "astral-7b", "v2", "baseline"]
OTHERS += ["promo1", "solarium", "commander", "llamafied", "embedded/mine.gguf"]
OTHERS += ["ollama/custom", "", "/", ":::"]
# Ordinary words and firms that make many things, with nothing beside them.
OTHERS += ["o1", "o3", "option-o1", "o1/2", "run_o4", "nova", "titan", "nova-run", "amazon-reviews"]
OTHERS += ["google-search", "yandex-search", "bing", "baidu-baike", "command", "phi", "falcon"]
OTHERS += [
    "spark",
    "solar",
    "bloom",
    "moss",
    "palm",
    "granite",
    "aya",
    "openai/nova",
    "azure/spark",
]


@pytest.mark.parametrize("name", OTHERS)
def test_other_names_tell_none(name):
    assert family(name) is None


def test_the_embedded_judge_is_the_default_of_the_catalogue():
    assert EMBEDDED == DEFAULT
    assert {family(f"embedded/{model.name}") for model in catalogue()} == {"qwen", "smollm"}


AWAY = {
    "en": [
        "As GPT-4, I cannot browse the web.",
        "I'm Claude, made by Anthropic.",
        "I’m Claude, an AI assistant.",
        "I am an AI model developed by OpenAI.",
        "as a large language model trained by Google",
        "As a large language model trained by Google, I have no feelings.",
        "As ChatGPT, I would say no.",
        "I am ChatGPT, a large language model trained by OpenAI.",
        "Hello! I'm an AI assistant named Claude.",
        "My name is Gemini.",
        "I was created by Anthropic to be helpful.",
        "As an AI language model developed by OpenAI, I don't have opinions.",
        "I am OpenAI's language model.",
        "As an OpenAI language model, I must be careful.",
        "As Claude, an assistant made by Anthropic, I prefer honesty.",
        "Well, as Llama 3, I think so.",
        "I am based on GPT-4.",
        "I'm Qwen, created by Alibaba Cloud.",
        "I'm DeepSeek-V3.",
        "I am Grok, built by xAI.",
        "I, as ChatGPT, cannot.",
        "**I am GPT\u20114o**",
        "I am Ｃｈａｔ\u200bＧＰＴ.",
    ],
    "ru": [
        "Как языковая модель GigaChat, я не могу.",
        "Как языковая модель GigaChat",
        "Я — YandexGPT",
        "Привет, меня зовут Алиса!",
        "Я языковая модель, созданная OpenAI.",
        "Я — большая языковая модель, разработанная компанией Сбер.",
        "Как ChatGPT, я стараюсь помочь.",
        "Меня создала компания Anthropic.",
        "Я — нейросеть ГигаЧат.",
        "Как нейросеть от Яндекса, я не имею мнения.",
        "Я Claude, ассистент.",
        "Как модель, обученная OpenAI, я осторожна.",
    ],
    "zh": [
        "我是通义千问。",
        "作为OpenAI训练的语言模型，我无法回答。",
        "作为ChatGPT，我认为如此。",
        "作为ChatGPT",
        "我是由阿里云开发的大规模语言模型。",
        "我是OpenAI开发的人工智能助手。",
        "你好，我叫豆包。",
        "我是一个由DeepSeek开发的AI助手。",
        "作为DeepSeek研发的模型，我会说明。",
        "我是文心一言，百度研发的模型。",
        "我的名字是Kimi。",
        "作为一个由百度研发的语言模型，我不能。",
        "我是来自OpenAI的语言模型。",
    ],
    "ja": [
        "私はGeminiです。",
        "私はOpenAIが開発したAIです。",
        "OpenAIが開発したAIです。",
        "OpenAIが開発したAI",
        "ChatGPTとして、お答えします。",
        "私はGoogleによって訓練された大規模言語モデルです。",
        "私はChatGPT、OpenAIによって訓練された言語モデルです。",
        "わたしはClaude（クロード）です。",
        "私の名前はClaudeです。",
        "私はDeepSeekが開発したAIです。",
        "私はAIアシスタントのClaudeです。",
        "Anthropicが開発したAIアシスタントとして、慎重に答えます。",
    ],
}
AWAY_CASES = [(language, text) for language, texts in AWAY.items() for text in texts]


@pytest.mark.parametrize(("language", "text"), AWAY_CASES)
def test_an_answer_that_says_who_it_is_gives_itself_away(language, text):
    assert gives_itself_away(text)


@pytest.mark.parametrize(("language", "text"), AWAY_CASES)
def test_what_gives_an_answer_away_is_masked(language, text):
    hidden = masked(text)
    assert MASK in hidden and not gives_itself_away(hidden)


KEPT = {
    "en": [
        "",
        "GPT-4 was released in 2023.",
        "I compared Claude with Gemini.",
        "As an AI language model, I have no opinions.",
        "I am an AI assistant.",
        "I use ChatGPT every day.",
        "I'm a ChatGPT user.",
        "I am Claude's biggest fan.",
        "I'm Claude Monet, a painter.",
        "As ChatGPT became popular, I stopped.",
        "As GPT-4, released in 2023, shows, scale helps.",
        "As a large language model, GPT-4 can write code.",
        "As a large language model trained by Google, PaLM 2 can translate.",
        "As a model trained by Google, it can translate.",
        "I am not ChatGPT.",
        "If I am ChatGPT, then so are you.",
        "It is as good as GPT-4, I think.",
        "I'm using a language model developed by OpenAI.",
        "I'm a Google engineer.",
        "I'm from Google.",
        "As an OpenAI employee, I know.",
        "ChatGPT is a language model trained by OpenAI.",
        "I'm a Gemini and my brother is a Leo.",
        "As Nova, I shine.",
        "I am Spark.",
        "I'm Copilot on this flight.",
        "As a command, I repeat.",
        "The Falcon 9 was made by SpaceX.",
        "I was trained by a monk.",
        "I'm comparing GPT-4, Claude 3 and Llama 3.",
        "I'm an AI model, ChatGPT is another.",
    ],
    "ru": [
        "Я пользуюсь ChatGPT.",
        "Я ChatGPT использую каждый день.",
        "Как GPT-4, так и Claude ошибаются.",
        "Как языковая модель GigaChat устроена внутри?",
        "Как языковая модель, я не имею мнения.",
        "Я пользуюсь моделью, созданной OpenAI.",
        "Языковая модель, созданная OpenAI, вышла в 2022 году.",
        "Меня зовут Алиса Селезнёва.",
        "Алиса упала в нору.",
        "Яндекс основан в 1997 году.",
        "Я и ChatGPT написали это.",
        "Если я ChatGPT, то кто ты?",
    ],
    "zh": [
        "我使用ChatGPT。",
        "我是ChatGPT的用户。",
        "我是用ChatGPT写的。",
        "ChatGPT是OpenAI开发的语言模型。",
        "作为ChatGPT的竞争对手，Claude也很强。",
        "作为一个语言模型，我没有感情。",
        "作为OpenAI开发的模型，GPT-4可以写代码。",
        "如果我是ChatGPT，我会这样回答。",
        "我是阿里云的工程师。",
        "我是OpenAI开发者。",
        "我喜欢吃豆包。",
        "我比较了通义千问和文心一言。",
    ],
    "ja": [
        "私はGeminiを使っています。",
        "私はChatGPTのユーザーです。",
        "ChatGPTはOpenAIが開発したAIです。",
        "OpenAIが開発したAI、ChatGPTは便利です。",
        "言語モデルとして、意見はありません。",
        "私はAIです。",
        "私はOpenAIが開発したツールを使っています。",
        "私はChatGPTが作成した文章を読みました。",
        "ChatGPTとして知られるモデルです。",
        "私はClaudeとGeminiを比べました。",
        "GPT-4は2023年に公開されました。",
    ],
}


@pytest.mark.parametrize(("language", "text"), [(k, t) for k, v in KEPT.items() for t in v])
def test_an_answer_that_merely_mentions_a_model_does_not(language, text):
    assert not gives_itself_away(text)


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("Ask GPT-4o-mini about it.", "Ask [model] about it."),
        ("Claude 3.5 Sonnet and Claude 3 Opus differ.", "[model] and [model] differ."),
        ("ChatGPT, gpt-3.5-turbo, GPT 4.", "[model], [model], [model]."),
        ("A GPT-4-based tool", "A [model]-based tool"),
        ("Gemini Pro beats Gemini 1.5 Flash", "[model] beats [model]"),
        ("Llama 3 70B Instruct", "[model]"),
        ("Qwen2.5-72B-Instruct, Mixtral-8x7B", "[model], [model]"),
        ("OpenAI's ChatGPT", "[model]'s [model]"),
        ("Claude (Anthropic)", "[model] ([model])"),
        ("Google Gemini and Amazon Nova", "[model] [model] and [model]"),
        ("Microsoft Copilot, Command R+, o1-mini", "[model], [model], [model]"),
        ("I'm Claude, made by Anthropic.", "I'm [model], made by [model]."),
        ("an assistant developed by Google", "an assistant developed by [model]"),
        ("ChatGPT is a chatbot by OpenAI", "[model] is a chatbot by [model]"),
        ("ChatGPT — чат-бот от OpenAI", "[model] — чат-бот от [model]"),
        ("Это модель компании Сбер", "Это модель компании [model]"),
        ("ChatGPT是OpenAI的聊天机器人", "[model]是[model]的聊天机器人"),
        ("ChatGPTはOpenAIのチャットボットです", "[model]は[model]のチャットボットです"),
        ("I'm an assistant called Bard.", "I'm an assistant called [model]."),
        ("… 🙂 café: G\u200bPT-4… e\u0301", "… 🙂 café: [model]… e\u0301"),
        ("通义千问和文心一言", "[model]和[model]"),
        ("阿里云的通义千问", "[model]的[model]"),
        ("我是由阿里云开发的模型", "我是由[model]开发的模型"),
        ("腾讯混元大模型", "[model]"),
        ("Модель GigaChat от Сбера", "Модель [model] от [model]"),
        ("Спросите у ГигаЧата.", "Спросите у [model]."),
        ("меня зовут Алиса", "меня зовут [model]"),
        ("OpenAIのChatGPTです", "[model]の[model]です"),
        ("ＧＰＴ－４と言う", "[model]と言う"),
        ("G\u200bPT-4 — да", "[model] — да"),
        ("G\u034fPT-4, G\ufe0fPT-4, G\u2800P\U000e0061T\u3164-4", "[model], [model], [model]"),
        ("[model] is MASKED", "[model] is MASKED"),
        # What anything else can be meant by stays.
        ("Claude Shannon and Claude Monet", None),
        ("the Gemini twins; a llama and an alpaca", None),
        ("a nova, a spark, solar power, a command, a falcon, the Bard", None),
        ("Falcon 9, Apollo and Gemini 8", None),
        ("the copilot read o1 and phi aloud: philosophy", None),
        ("Yi Jing, Yi people", None),
        ("cgpt-4x", None),
        ("Android was developed by Google.", None),
        ("OpenAI was founded in 2015.", None),
        ("Яндекс и Сбер — компании. Алиса упала в нору.", None),
        ("豆包和星火，百川归海", None),
        ("阿里云的股票", None),
        ("a book by OpenAI, a car from Google", None),
        ("グーグルの株", None),
        ("This is Claude Monet's garden", None),
        ("Gemini here means the constellation", None),
        ("Line one\r\n\tﬁne ½ Å e\u0301 İ", None),
    ],
)
def test_names_are_masked_and_nothing_else(text, hidden):
    assert masked(text) == (text if hidden is None else hidden)


@pytest.mark.parametrize(
    ("text", "topic", "hidden"),
    [
        ("GPT-4 by OpenAI; Claude 3", "What is ChatGPT?", "GPT-4 by OpenAI; [model]"),
        ("Claude 3 is newer", "Compare Claude and others", "Claude 3 is newer"),
        ("As ChatGPT, I use Google", "How do I use Google Sheets?", "As [model], I use Google"),
        ("通义千问很好", "介绍一下通义千问", "通义千问很好"),
        ("GigaChat и YandexGPT", "Расскажи о ГигаЧате", "GigaChat и [model]"),
    ],
)
def test_what_the_topic_is_about_stays(text, topic, hidden):
    assert masked(text, but=topic) == hidden


ODD = ["…", "é", "e\u0301", "\u0301" * 9, "🙂", "\u200b", "\u200b\u0301", "한", "ᄒ", "ᅡ", "ﬁ", "½"]
ODD += ["İ", "か\u3099", "，", "‑", "ﷺ", "ς", "Ｇ", "gpt", "-4", " ", "х", "智"]


def folded(text):
    """Every letter by itself, with the marks on it, and no hidden ones: what folding stands for."""
    letters = re.findall("(?s)[^\u0300-\u036f\u3099\u309a][\u0300-\u036f\u3099\u309a]{0,8}|.", text)
    hidden = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
    return "".join(unicodedata.normalize("NFKC", one) for one in letters if one not in hidden)


@given(st.lists(st.sampled_from(ODD), max_size=12).map("".join) | st.text(st.characters()))
def test_folding_odd_stretches_alone_is_folding_every_letter(text):
    plainer = str.maketrans("‐‑−’，：；！？（）", "---',:;!?()")
    assert _Naming(text).folded.translate(plainer) == folded(text).translate(plainer)


@given(st.lists(st.sampled_from(ODD), max_size=8).map("".join), st.sampled_from(["", " ", "."]))
def test_a_name_among_odd_characters_is_replaced_where_it_stands(odd, room):
    text = f"{odd} ChatGPT{room}"
    assert masked(text).endswith(f" {MASK}{room}")
    assert masked(f"ChatGPT: {odd}").startswith(f"{MASK}: ")


@pytest.mark.parametrize("odd", ["…", "é", "🙂"])
def test_one_odd_character_leaves_the_rest_of_a_text_unfolded(odd):
    naming = _Naming(f"{'plain words ' * 300}{odd}{' и слова' * 300}")
    assert sum(stretch.end - stretch.start for stretch in naming.odd) == 2


def test_texts_too_long_to_be_kept_are_read_alike():
    text = "I am ChatGPT. " + "Well… " * LONGEST_KEPT
    assert gives_itself_away(text)
    assert masked(text) == text.replace("ChatGPT", MASK)


PIECES = ["I am ", "As ", "GPT-4", "Claude", "Claude 3 Opus", "Gemini", "OpenAI"]
PIECES += ["Google", "'s ", ", "]
PIECES += ["made by ", "trained by ", "an AI model ", "I ", "that ", ". ", "\n", " ", "-", "(", ")"]
PIECES += ["я ", "Я — ", "как ", "модель ", "созданная ", "Сбер", "GigaChat"]
PIECES += ["Алиса", " от ", "Яндекса"]
PIECES += ["我是", "作为", "通义千问", "阿里云", "开发的", "由", "模型", "，", "豆包"]
PIECES += ["的", "2", ".5", "x"]
PIECES += ["私は", "として", "です", "が開発したAI", "、", "。", MASK, "Nova", "Amazon"]
PIECES += ["\u200b", "Ｇ", "İ"]
PIECES += ["This is ", "Hi, ", " here", "\n— ", "an assistant called ", "Bard"]
PIECES += ["である私", "这里是"]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=24).map("".join) | st.text(st.characters())


@given(TEXTS, st.integers(0, 60), st.sampled_from([CHUNK_CHARS, CHUNK_CHARS + REACH_CHARS]))
@example("I am Claude 3 Opus, made by Anthropic.", 20, CHUNK_CHARS)
def test_where_a_long_text_is_cut_into_chunks_makes_no_difference(text, before, place):
    prefix = "\n." * ((place - before) // 2)
    long, short = f"{prefix}\n{text}{prefix}", f"\n.\n{text}\n."
    assert gives_itself_away(long) == gives_itself_away(short)
    assert masked(long) == f"{prefix}\n{masked(short)[3:-2]}{prefix}"


@given(TEXTS, st.sampled_from(["", "ChatGPT", "Claude, 豆包 и Сбер"]))
@example("As Gemini, heir of PaLM 2.5, I", "")
@example("Gemini was made by Google. GPT-4 was made by Google.", "")
def test_masking_twice_is_masking_once(text, topic):
    once = masked(text, but=topic)
    assert masked(once, but=topic) == once


@given(TEXTS)
@example("gpt-4,claude (GPT) xgpt _gpt 4gpt\nllama")
def test_a_text_of_ascii_alone_is_searched_like_any_other(text):
    plain = text.encode("ascii", "ignore").decode()
    names = [mention.text for mention in _Naming(plain).mentions]
    assert names == [mention.text for mention in _Naming(f"{plain} я").mentions]


@given(TEXTS)
def test_the_rest_of_a_text_is_unaltered(text):
    """What remains between the marks stands in the text, in that order."""
    pattern = ".*?".join(map(re.escape, masked(text).split(MASK)))
    assert re.fullmatch(pattern, text, re.DOTALL)


@given(st.text(st.characters(categories=["Lo", "Mn", "Zs", "Po"])))
def test_a_text_without_names_is_left_as_it_is(text):
    if MASK not in masked(text):
        assert masked(text) == text


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
@pytest.mark.parametrize(
    "text", ["Я — ГигаЧат", "私はジェミニです", "I am ＣｈａｔＧＰＴ", "As Tülu 3, I"]
)
def test_normal_forms_are_alike(form, text):
    assert gives_itself_away(unicodedata.normalize(form, text))


HOSTILE = ["I am ", "As a ", "as ", "made by ", "an AI model ", "the ", "GPT-4", "GPT-4-"]
HOSTILE += ["Claude ", "OpenAI ", "As Claude, ", "I am Claude, ", "OpenAI's ", "Google "]
HOSTILE += ["-mini", "gpt", "1.", " ", "\n", ",", "(", "я ", "как модель ", "созданная "]
HOSTILE += ["меня зовут ", "我是", "作为", "由", "的", "大", "通义千问", "豆包", "私は", "の"]
HOSTILE += ["モデル"]
HOSTILE += ["This is ", "\nhi, ", "Claude here ", ".\n— Claude", "Claude (", "\n— ", "…é"]
HOSTILE += ["ChatGPTとして", "OpenAIが開発した", "\u0301", "\u200b", "İ", "a", "[model]"]


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_texts_are_read_in_linear_time(piece):
    """Each would take minutes if the time were the square of the length."""
    text = piece * (15_000 // len(piece))
    for whole in (text, f"As Claude{text}", f"{text}GPT-4 I"):
        gives_itself_away(whole)
        assert len(masked(whole)) <= len(MASK) * len(whole)
