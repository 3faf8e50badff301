"""The family of a model's name, names in a text, and texts that name their author."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.judges.embedded.models import DEFAULT, catalogue
from evenhand.kinds.masking import (
    EMBEDDED,
    MASK,
    families,
    family,
    mask_names,
    names_its_author,
)
from tests.unit.kinds.tables import cells, lines

FAMILIES = cells("""
openai => openai/gpt-4.1-mini gpt-4o chatgpt-4o-latest o1-mini openrouter/openai/o3 gpt-oss-20b
openai => openai:gpt-5 text-davinci-003 gpt-3.5-turbo-0125 azure/gpt-4o gpt4_1106_preview
anthropic => openrouter/anthropic/claude-sonnet-4 anthropic:claude-3 claude-v1 anthropic/next
anthropic => anthropic.claude-3-sonnet-20240229-v1:0 claude-3-5-sonnet@20240620
google => google/gemini-2.5-pro gemma-2-9b-it palm-2 bard ollama/gemma3:4b flan-t5-xxl
llama => meta-llama/Llama-3.1-8B-Instruct ollama/llama3:8b vicuna-13b-v1.3 alpaca-13b koala-13b
llama => Llama-3.1-Nemotron-70B Hermes-3-Llama-3.1-8B saiga_llama3_8b Llama-3-ELYZA-JP-8B
llama => DeepSeek-R1-Distill-Llama-70B codellama-34b TinyLlama-1.1B Llama-3.1-Tulu-3-8B
mistral => mistral-large-latest open-mixtral-8x22b ministral-8b magistral-small codestral
mistral => openrouter/mistralai/devstral-small Nous-Hermes-2-Mixtral-8x7B
qwen => Qwen2.5-Coder-1.5B embedded embedded/qwen2.5-coder-0.5b QwQ-32B 通义千问 ｑｗｅｎ2
qwen => DeepSeek-R1-Distill-Qwen-7B embedded/models/Qwen3-4B-Q4_K_M.gguf
deepseek => deepseek-chat openrouter/deepseek/deepseek-r1:free DeepSeek-V3
glm => glm-4-9b chatglm2-6b 智谱清言 zai-org/GLM-4.5
yi => Yi-34B-Chat 01-ai/yi-large
kimi => moonshot-v1-8k kimi-k2
baichuan => Baichuan2-13B-Chat 百川
internlm => internlm2_5-7b-chat
minimax => abab6.5s-chat MiniMax-M1
doubao => doubao-pro-32k 豆包
hunyuan => hunyuan-large 混元
ernie => ERNIE-4.0-8K 文心一言
grok => grok-2 x-ai/grok-3
cohere => command-r-plus c4ai-command-r-v01 aya-23-8B
phi => phi-3-mini microsoft/Phi-4
falcon => falcon-40b-instruct
gigachat => GigaChat-Max ГигаЧат
yandex => yandexgpt-lite Алиса yandexgpt/latest
t-bank => T-lite-it-1.0 t-tech/T-pro-it-2.0
vikhr => Vikhr-7B-instruct
saiga => saiga_7b
copilot => copilot bing-chat
nemotron => nemotron-4-340b
granite => granite-3.1-8b
ai2 => OLMo-2-13B tulu-30b
jamba => jamba-1.5-large
amazon => amazon.nova-pro-v1:0 titan-text-express
stablelm => stablelm-tuned-alpha-7b
rinna => rinna-3.6b
elyza => ELYZA-japanese-7b
plamo => plamo-13b
swallow => Swallow-70b
calm => calm3-22b-chat open-calm-7b
sarashina => sarashina2-13b
nous => nous-hermes-13b
smollm => embedded/smollm2-135m
reka => reka-core
solar => SOLAR-10.7B
exaone => EXAONE-3.5
bloom => bloomz-7b1
dolly => dolly-v2-12b
moss => moss-moon-003
pangu => pangu-alpha
spark => spark-max 讯飞星火
skywork => Skywork-13B
eleuther => gpt-j-6b pythia-12b gpt-neox-20b
mpt => mpt-30b-chat
""")


@pytest.mark.parametrize(("key", "name"), [(k, n) for k, v in FAMILIES for n in v.split()])
def test_a_name_tells_its_family(key, name):
    assert family(name) == family(name.upper()) == key


def test_every_family_is_tried():
    assert {each.key for each in families()} == {key for key, _ in FAMILIES}


SURE = cells("""
openai/o1 => openai
openai:o3 => openai
azure/o1 => openai
openrouter/openai/o1 => openai
o3-mini => openai
o1-2024-12-17 => openai
o4-mini-deep-research => openai
amazon nova => amazon
amazon/nova => amazon
bedrock/nova => amazon
nova-lite => amazon
google/palm => google
google/next => google
ollama/phi => phi
microsoft/phi => phi
tiiuae/falcon-mamba-7b => falcon
openrouter/cohere/command => cohere
command-a => cohere
solar-pro => solar
ByteDance-Seed/x => doubao
""")


@pytest.mark.parametrize(("name", "key"), SURE)
def test_a_word_is_a_model_where_its_maker_or_version_says_so(name, key):
    assert family(name) == key


NO_FAMILY = """
azure/my-deployment openai/my-model openai/default human/claude human:Gemma replay/gpt-4.jsonl
python/judges.gpt4:ask cgpt-4x philosophy yiping gpt4all-13b-snoozy astral-7b v2 baseline
promo1 solarium commander llamafied embedded/mine.gguf ollama/custom / ::: o1 o3 option-o1 o1/2
run_o4 nova titan nova-run amazon-reviews google-search yandex-search bing baidu-baike command
phi falcon spark solar bloom moss palm granite aya openai/nova azure/spark
"""
"""Hosts and people with names of models, words that hold one, and ordinary words."""


@pytest.mark.parametrize("name", ["", *NO_FAMILY.split()])
def test_other_names_tell_none(name):
    assert family(name) is None


def test_the_embedded_judge_is_the_default_of_the_catalogue():
    assert EMBEDDED == DEFAULT
    assert {family(f"embedded/{model.name}") for model in catalogue()} == {"qwen", "smollm"}


AUTHOR = lines("""
As GPT-4, I cannot browse the web.
I'm Claude, made by Anthropic.
I’m Claude, an AI assistant.
I am an AI model developed by OpenAI.
as a large language model trained by Google
As a large language model trained by Google, I have no feelings.
As ChatGPT, I would say no.
I am ChatGPT, a large language model trained by OpenAI.
Hello! I'm an AI assistant named Claude.
My name is Gemini.
As an AI language model developed by OpenAI, I don't have opinions.
I am OpenAI's language model.
As Claude, an assistant made by Anthropic, I prefer honesty.
Well, as Llama 3, I think so.
I am based on GPT-4.
I'm Qwen, created by Alibaba Cloud.
I'm DeepSeek-V3.
I am Grok, built by xAI.
I, as ChatGPT, cannot.
**I am GPT‑4o**
I am Ｃｈａｔ\u200bＧＰＴ.
This is Claude.
Hi, this is Claude, an AI assistant.
Hello! This is your AI assistant Claude.
Hi, Claude here!
Claude here, happy to help.
Hello there! Gemini here to help.
Hope this helps. — Claude
Being an AI model developed by OpenAI, I cannot.
Как языковая модель GigaChat, я не могу.
Как языковая модель GigaChat
Я — YandexGPT
Привет, меня зовут Алиса!
Я языковая модель, созданная OpenAI.
Я — большая языковая модель, разработанная компанией Сбер.
Как ChatGPT, я стараюсь помочь.
Меня создала компания Anthropic.
Я — нейросеть ГигаЧат.
Как нейросеть от Яндекса, я не имею мнения.
Я Claude, ассистент.
Как модель, обученная OpenAI, я осторожна.
Привет, это Алиса.
Здравствуйте! С вами GigaChat, ваш помощник.
Claude на связи!
Привет! ChatGPT на связи.
Будучи моделью OpenAI, я не могу.
Как модель OpenAI, я не могу.
Как модель компании OpenAI, я осторожна.
我是通义千问。
作为OpenAI训练的语言模型，我无法回答。
作为ChatGPT，我认为如此。
作为ChatGPT
我是由阿里云开发的大规模语言模型。
我是OpenAI开发的人工智能助手。
你好，我叫豆包。
我是一个由DeepSeek开发的AI助手。
作为DeepSeek研发的模型，我会说明。
我是文心一言，百度研发的模型。
我的名字是Kimi。
作为一个由百度研发的语言模型，我不能。
我是来自OpenAI的语言模型。
你好，这里是Claude。
这里是通义千问。
您好！这是您的智能助手豆包。
你好，Claude在此。
ChatGPT为您服务！
私はGeminiです。
私はOpenAIが開発したAIです。
ChatGPTとして、お答えします。
私はGoogleによって訓練された大規模言語モデルです。
私はChatGPT、OpenAIによって訓練された言語モデルです。
わたしはClaude（クロード）です。
私の名前はClaudeです。
私はDeepSeekが開発したAIです。
私はAIアシスタントのClaudeです。
Anthropicが開発したAIアシスタントとして、慎重に答えます。
OpenAI のモデルである私は
OpenAIが開発したモデルである私は、答えます。
Claudeである私は、そう思います。
こんにちは、Claudeです。
はじめまして。こちらはChatGPTです。
Claudeと申します。
""")
SIGNED = lines("""
Hope this helps./n/n— Claude
Good luck!/n-- ChatGPT
All done./n*— Claude (Anthropic)*
Надеюсь, это поможет./n— Claude
希望有帮助。/n——Claude
以上です。/n—Claude
""")
"""Here and below `/n` is a line break."""


def unescaped(texts):
    return [text.replace("/n", "\n") for text in texts]


@pytest.mark.parametrize("text", [*AUTHOR, *unescaped(SIGNED)])
def test_a_text_that_names_its_author_is_found_and_masked(text):
    hidden = mask_names(text)
    assert names_its_author(text)
    assert MASK in hidden and not names_its_author(hidden)


MENTIONS = lines("""
GPT-4 was released in 2023.
I compared Claude with Gemini.
As an AI language model, I have no opinions.
I am an AI assistant.
I use ChatGPT every day.
I'm a ChatGPT user.
I am Claude's biggest fan.
I'm Claude Monet, a painter.
As ChatGPT became popular, I stopped.
As GPT-4, released in 2023, shows, scale helps.
As a large language model, GPT-4 can write code.
I am not ChatGPT.
If I am ChatGPT, then so are you.
It is as good as GPT-4, I think.
I'm using a language model developed by OpenAI.
I'm a Google engineer.
As an OpenAI employee, I know.
ChatGPT is a language model trained by OpenAI.
I'm a Gemini and my brother is a Leo.
As Nova, I shine.
I am Spark.
I'm Copilot on this flight.
As a command, I repeat.
The Falcon 9 was made by SpaceX.
I was trained by a monk.
I'm comparing GPT-4, Claude 3 and Llama 3.
I'm an AI model, ChatGPT is another.
This is Claude Monet's garden
This is Claude Monet.
This is Claude's answer.
This is Gemini, the third sign of the zodiac.
This is like ChatGPT.
This is GPT-4 compared with Claude 3.
Gemini here means the constellation
Gemini here, as in astrology, is a sign.
The signs: Gemini here, Leo there.
Say hi to Claude here.
Hi Claude, here is my question.
Models:/n— GPT-4/n— Claude
Models:/n— Claude
Who is the best?/n— Claude
“Less is more.”/n— Claude
The gardens bloom. — Claude Monet
I compared two — GPT-4 and — Claude
The best is — Claude
I'm an assistant professor called Bard.
I'm called Bard.
I'm an assistant; Bard was another.
My assistant is called Bard.
Being an OpenAI employee, I know.
Я пользуюсь ChatGPT.
Я ChatGPT использую каждый день.
Как GPT-4, так и Claude ошибаются.
Как языковая модель GigaChat устроена внутри?
Как языковая модель, я не имею мнения.
Я пользуюсь моделью, созданной OpenAI.
Языковая модель, созданная OpenAI, вышла в 2022 году.
Меня зовут Алиса Селезнёва.
Алиса упала в нору.
Яндекс основан в 1997 году.
Я и ChatGPT написали это.
Если я ChatGPT, то кто ты?
Это Алиса.
Это ChatGPT.
Говорит Алиса: «Пора».
Алиса на связи с космосом.
Модели:/n— GigaChat/n— Алиса
Кто лучше?/n— Claude
Как модель OpenAI устроена, я не знаю.
Как модель OpenAI, так и модель Google ошибаются.
我使用ChatGPT。
我是ChatGPT的用户。
我是用ChatGPT写的。
ChatGPT是OpenAI开发的语言模型。
作为ChatGPT的竞争对手，Claude也很强。
作为一个语言模型，我没有感情。
作为OpenAI开发的模型，GPT-4可以写代码。
如果我是ChatGPT，我会这样回答。
我是阿里云的工程师。
我是OpenAI开发者。
我喜欢吃豆包。
我比较了通义千问和文心一言。
这是ChatGPT。
这里是豆包的做法。
ChatGPT在此领域领先。
私はGeminiを使っています。
私はChatGPTのユーザーです。
ChatGPTはOpenAIが開発したAIです。
OpenAIが開発したAI、ChatGPTは便利です。
言語モデルとして、意見はありません。
私はAIです。
私はOpenAIが開発したツールを使っています。
私はChatGPTが作成した文章を読みました。
ChatGPTとして知られるモデルです。
私はClaudeとGeminiを比べました。
GPT-4は2023年に公開されました。
OpenAIのモデルであるGPT-4は便利です。
ChatGPTです。
GPT-4はClaudeより
ClaudeよりGPT-4が速い。
Bardというツールは便利です。
ChatGPTはOpenAIのチャットボットです。
""")


@pytest.mark.parametrize("text", ["", *unescaped(MENTIONS)])
def test_a_text_that_merely_mentions_a_model_does_not(text):
    assert not names_its_author(text)


MASKED = cells("""
Ask GPT-4o-mini about it. => Ask [model] about it.
Claude 3.5 Sonnet and Claude 3 Opus differ. => [model] and [model] differ.
ChatGPT, gpt-3.5-turbo, GPT 4. => [model], [model], [model].
A GPT-4-based tool => A [model]-based tool
Gemini Pro beats Gemini 1.5 Flash => [model] beats [model]
Llama 3 70B Instruct => [model]
Qwen2.5-72B-Instruct, Mixtral-8x7B => [model], [model]
OpenAI's ChatGPT => [model]'s [model]
Claude (Anthropic) => [model] ([model])
Google Gemini and Amazon Nova => [model] [model] and [model]
Microsoft Copilot, Command R+, o1-mini => [model], [model], [model]
I'm Claude, made by Anthropic. => I'm [model], made by [model].
ChatGPT is a chatbot by OpenAI => [model] is a chatbot by [model]
ChatGPT — чат-бот от OpenAI => [model] — чат-бот от [model]
ChatGPT是OpenAI的聊天机器人 => [model]是[model]的聊天机器人
ChatGPTはOpenAIのチャットボットです => [model]は[model]のチャットボットです
… 🙂 café: G\u200bPT-4… e\u0301 => … 🙂 café: [model]… e\u0301
通义千问和文心一言 => [model]和[model]
阿里云的通义千问 => [model]的[model]
我是由阿里云开发的模型 => 我是由[model]开发的模型
腾讯混元大模型 => [model]
Модель GigaChat от Сбера => Модель [model] от [model]
Спросите у ГигаЧата. => Спросите у [model].
меня зовут Алиса => меня зовут [model]
OpenAIのChatGPTです => [model]の[model]です
ＧＰＴ－４と言う => [model]と言う
G\u200bPT-4 — да => [model] — да
G\u034fPT-4, G\ufe0fPT-4, G\u200bP\U000e0061T\u3164-4 => [model], [model], [model]
[model] is MASKED => [model] is MASKED
""")
KEPT = lines("""
Claude Shannon and Claude Monet
the Gemini twins; a llama and an alpaca
a nova, a spark, solar power, a command, a falcon, the Bard
Falcon 9, Apollo and Gemini 8
the copilot read o1 and phi aloud: philosophy
Yi Jing, Yi people
cgpt-4x
Android was developed by Google.
OpenAI was founded in 2015.
Яндекс и Сбер — компании. Алиса упала в нору.
豆包和星火，百川归海
阿里云的股票
a book by OpenAI, a car from Google
グーグルの株
This is Claude Monet's garden
Gemini here means the constellation
""")
KEPT.append("Line one\r\n\tﬁne ½ Å é İ")


@pytest.mark.parametrize(("text", "hidden"), MASKED)
def test_names_are_masked_and_nothing_else(text, hidden):
    assert mask_names(text) == hidden


@pytest.mark.parametrize("text", KEPT)
def test_a_text_without_a_name_stays(text):
    assert mask_names(text) == text


@pytest.mark.parametrize(
    ("text", "topic", "hidden"),
    cells("""
GPT-4 by OpenAI; Claude 3 => What is ChatGPT? => GPT-4 by OpenAI; [model]
Claude 3 is newer => Compare Claude and others => Claude 3 is newer
As ChatGPT, I use Google => How do I use Google Sheets? => As [model], I use Google
通义千问很好 => 介绍一下通义千问 => 通义千问很好
GigaChat и YandexGPT => Расскажи о ГигаЧате => GigaChat и [model]
"""),
)
def test_what_the_topic_is_about_stays(text, topic, hidden):
    assert mask_names(text, topic=topic) == hidden


ODD = [*"…é🙂\u200b한ﬁ½İ，‑Ｇ 智", "e\u0301", "か\u3099"]


@given(st.lists(st.sampled_from(ODD), max_size=8).map("".join), st.sampled_from(["", " ", "."]))
def test_a_name_among_odd_characters_is_replaced_where_it_stands(odd, room):
    assert mask_names(f"{odd} ChatGPT{room}").endswith(f" {MASK}{room}")
    assert mask_names(f"ChatGPT: {odd}").startswith(f"{MASK}: ")


PIECES = [
    "I am ",
    "As ",
    "GPT-4",
    "Claude",
    "Claude 3 Opus",
    "Gemini",
    "OpenAI",
    "Google",
    "'s ",
    ", ",
    "made by ",
    "trained by ",
    "an AI model ",
    "I ",
    "that ",
    ". ",
    "\n",
    " ",
    "-",
    "(",
    ")",
    "я ",
    "Я — ",
    "как ",
    "модель ",
    "созданная ",
    "Сбер",
    "GigaChat",
    "Алиса",
    " от ",
    "Яндекса",
    "我是",
    "作为",
    "通义千问",
    "阿里云",
    "开发的",
    "由",
    "模型",
    "，",
    "豆包",
    "的",
    "2",
    ".5",
    "x",
    "私は",
    "として",
    "です",
    "が開発したAI",
    "、",
    "。",
    "[model]",
    "Nova",
    "Amazon",
    "\u200b",
    "Ｇ",
    "İ",
    "This is ",
    "Hi, ",
    " here",
    "\n— ",
    "an assistant called ",
    "Bard",
    "である私",
    "这里是",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=24).map("".join) | st.text(st.characters())


@given(TEXTS)
def test_the_rest_of_a_text_is_unaltered(text):
    pattern = ".*?".join(map(re.escape, mask_names(text).split(MASK)))
    assert re.fullmatch(pattern, text, re.DOTALL)


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
@pytest.mark.parametrize(
    "text", ["Я — ГигаЧат", "私はジェミニです", "I am ＣｈａｔＧＰＴ", "As Tülu 3, I"]
)
def test_normal_forms_are_alike(form, text):
    assert names_its_author(unicodedata.normalize(form, text))


HOSTILE = [
    "I am ",
    "As a ",
    "as ",
    "made by ",
    "an AI model ",
    "the ",
    "GPT-4",
    "GPT-4-",
    "Claude ",
    "OpenAI ",
    "As Claude, ",
    "I am Claude, ",
    "OpenAI's ",
    "Google ",
    "-mini",
    "gpt",
    "1.",
    " ",
    "\n",
    ",",
    "(",
    "я ",
    "как модель ",
    "созданная ",
    "меня зовут ",
    "我是",
    "作为",
    "由",
    "的",
    "大",
    "通义千问",
    "豆包",
    "私は",
    "の",
    "モデル",
    "This is ",
    "\nhi, ",
    "Claude here ",
    ".\n— Claude",
    "Claude (",
    "\n— ",
    "…é",
    "ChatGPTとして",
    "OpenAIが開発した",
    "́",
    "\u200b",
    "İ",
    "a",
    "[model]",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_texts_are_read_in_linear_time(piece):
    """Each would take minutes if the time were the square of the length."""
    text = piece * (40_000 // len(piece))
    for whole in (text, f"As Claude{text}", f"{text}GPT-4 I"):
        names_its_author(whole)
        assert len(mask_names(whole)) <= len(MASK) * len(whole)
