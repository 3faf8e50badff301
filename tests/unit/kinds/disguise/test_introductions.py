"""Texts that say who wrote them without "I am": who speaks, who signs, what they are called."""

from __future__ import annotations

import random

import pytest

from evenhand.kinds.disguise import introductions
from evenhand.kinds.disguise.families import MASK, gives_itself_away, masked

CALLED = {
    "en": [
        "This is Claude.",
        "Hi, this is Claude, an AI assistant.",
        "Hello! This is your AI assistant Claude.",
        "Hi, Claude here!",
        "Claude here, happy to help.",
        "ChatGPT here.",
        "Hello there! Gemini here to help.",
        "Hope this helps.\n\n— Claude",
        "Hope this helps. — Claude",
        "Good luck!\n-- ChatGPT",
        "All done.\n*— Claude (Anthropic)*",
        "I'm an assistant called Bard.",
        "I am an AI chatbot named Copilot.",
        "Being an AI model developed by OpenAI, I cannot.",
    ],
    "ru": [
        "Привет, это Алиса.",
        "Здравствуйте! С вами GigaChat, ваш помощник.",
        "Claude на связи!",
        "Привет! ChatGPT на связи.",
        "Надеюсь, это поможет.\n— Claude",
        "Я ассистент по имени Bard.",
        "Будучи моделью OpenAI, я не могу.",
        "Как модель OpenAI, я не могу.",
        "Как модель компании OpenAI, я осторожна.",
    ],
    "zh": [
        "你好，这里是Claude。",
        "这里是通义千问。",
        "您好！这是您的智能助手豆包。",
        "你好，Claude在此。",
        "ChatGPT为您服务！",
        "希望有帮助。\n——Claude",
        "我是一个名为Bard的助手。",
        "我是一个叫Bard的聊天机器人。",
    ],
    "ja": [
        "OpenAI のモデルである私は",
        "OpenAIが開発したモデルである私は、答えます。",
        "Claudeである私は、そう思います。",
        "こんにちは、Claudeです。",
        "はじめまして。こちらはChatGPTです。",
        "Claudeと申します。",
        "以上です。\n—Claude",
        "以上です。\nClaudeより",
        "私はBardというAIです。",
    ],
}


@pytest.mark.parametrize(("language", "text"), [(k, t) for k, v in CALLED.items() for t in v])
def test_an_answer_that_says_who_it_is_gives_itself_away_and_is_masked(language, text):
    hidden = masked(text)
    assert gives_itself_away(text)
    assert MASK in hidden and not gives_itself_away(hidden)


# Another is meant: a person, a constellation, an item of a list, the source of a quote.
NOT_CALLED = {
    "en": [
        "This is Claude Monet's garden",
        "This is Claude Monet.",
        "This is Claude's answer.",
        "This is Gemini, the third sign of the zodiac.",
        "This is like ChatGPT.",
        "This is a llama.",
        "This is a model trained by Google.",
        "This is GPT-4 compared with Claude 3.",
        "We tried one more. This is Gemini.",
        "Gemini here means the constellation",
        "Gemini here, as in astrology, is a sign.",
        "The signs: Gemini here, Leo there.",
        "Say hi to Claude here.",
        "Hi Claude, here is my question.",
        "Models:\n— GPT-4\n— Claude",
        "Models:\n— Claude",
        "Who is the best?\n— Claude",
        "“Less is more.”\n— Claude",
        "The gardens bloom. — Claude Monet",
        "I compared two — GPT-4 and — Claude",
        "The best is — Claude",
        "I'm an assistant professor called Bard.",
        "I'm called Bard.",
        "I'm an assistant; Bard was another.",
        "My assistant is called Bard.",
        "Being an OpenAI employee, I know.",
    ],
    "ru": [
        "Это Алиса.",
        "Это ChatGPT.",
        "Говорит Алиса: «Пора».",
        "Алиса на связи с космосом.",
        "Модели:\n— GigaChat\n— Алиса",
        "Кто лучше?\n— Claude",
        "Как модель OpenAI устроена, я не знаю.",
        "Как модель OpenAI, так и модель Google ошибаются.",
    ],
    "zh": [
        "这是ChatGPT。",
        "你好，这里是豆包店。",
        "这里是豆包的做法。",
        "ChatGPT在此领域领先。",
    ],
    "ja": [
        "OpenAIのモデルであるGPT-4は便利です。",
        "ChatGPTです。",
        "こんにちは。ChatGPTですか。",
        "GPT-4はClaudeより",
        "ClaudeよりGPT-4が速い。",
        "Bardというツールは便利です。",
        "ChatGPTはOpenAIのチャットボットです。",
    ],
}


@pytest.mark.parametrize(("language", "text"), [(k, t) for k, v in NOT_CALLED.items() for t in v])
def test_an_answer_that_speaks_of_another_does_not(language, text):
    assert not gives_itself_away(text)


PIECES = (
    *(
        "I am",
        "i'm",
        "I was",
        "I, as",
        "I run on",
        "If I am",
        "My name is",
        "my",
        "call me",
        "As",
        "as a",
    ),
    *(
        "being",
        "This is",
        "Hello, this is",
        "Hi there!",
        "here",
        "there",
        "--",
        "\n-- ",
        "was",
        "is",
    ),
    *(
        "GPT-4",
        "Claude",
        "OpenAI",
        "Anthropic",
        "Gemini",
        "Copilot",
        "made by",
        "trained by",
        "called",
    ),
    *("a large language model", "assistant", "speaking", "and as", "but as", "the model", "*", '"'),
)


def test_a_text_passed_over_for_want_of_a_word_says_nothing_of_itself(monkeypatch):
    draw = random.Random(11)
    texts = {
        "".join(
            draw.choice(PIECES) + draw.choice((" ", " ", "", "\n", "  ", ", ", ". "))
            for _ in range(n)
        )
        for n in range(1, 9)
        for _ in range(1500)
    }
    quick = {text: gives_itself_away(text) for text in texts}
    monkeypatch.setattr(introductions, "may_stand_in", lambda low: True)
    assert quick == {text: gives_itself_away(text) for text in texts}
    assert 100 < sum(quick.values()) < len(texts) / 2
