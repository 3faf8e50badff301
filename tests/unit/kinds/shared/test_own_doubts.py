"""What is said of a prompt of the user's own before it is sent, and how it calls things."""

from __future__ import annotations

import pytest

from evenhand.files.protocols import find_protocol
from evenhand.kinds import KINDS
from evenhand.kinds.phrases import asks_both_orders
from evenhand.kinds.prompt import CustomPrompt, lint_custom_prompt
from evenhand.kinds.protocol import CUSTOM_PROMPT, LANGUAGES

RUBRIC = KINDS["rubric"].form.custom_prompt


@pytest.mark.parametrize(
    "demand",
    [
        "Сделай двойной прогон.",
        "Проведи двойной\nпрогон: (1,2) и (2,1).",
        "Оцени пару дважды, поменяв кандидатов местами.",
        "Сравни ответы в обоих порядках и выведи две строки.",
        "Затем повтори оценку в обратном порядке.",
        "Do a double run.",
        "Judge the pair in both orders.",
        "Compare the two twice.",
        "Swap the positions of the answers and judge again.",
        "Then repeat the comparison in the reversed order.",
        "请进行两次评判。",
        "请交换两个回答的顺序后再评一次。",
        "按正反顺序各输出一行。",
        "判断两遍，给出两行结果。",
        "両方の順序で判定してください。",
        "提示順を入れ替えてもう一度判定する。",
        "2回判定し、二行で出力すること。",
        "ダブルランを行うこと。",
    ],
)
def test_a_demand_for_both_orders_is_heard(demand: str) -> None:
    assert asks_both_orders(f"Ты судья.\n{demand}\nОтвечай таблицей.")


@pytest.mark.parametrize(
    "harmless",
    [
        "Порядок кандидатов случайный и ничего не значит.",
        "Перечитай ответ ещё раз и проверь факты дважды.",
        "The order is random. Double-check your reasoning.",
        "Do not swap the letters. Read both answers twice before you decide.",
        "Each order of magnitude counts. Do not compare again with other answers.",
        "顺序是随机的，不要受其影响。请仔细检查两遍。",
        "提示順に影響されないこと。二重チェックを怠らない。",
    ],
)
def test_what_only_speaks_of_orders_is_no_demand(harmless: str) -> None:
    assert not asks_both_orders(harmless)


def doubts(text: str, kind: str = "rubric", **settings: object) -> list[str]:
    form = KINDS[kind].form.custom_prompt
    assert form is not None
    return list(lint_custom_prompt(CustomPrompt.parse(text), kind, form, settings))


def test_a_placeholder_that_nothing_fills_is_named_with_the_one_that_was_meant() -> None:
    assert doubts("{{question}} {{ Model-Output }} {{output}} {{rubric}} {{tags}} {{shape}}") == []
    (doubt,) = doubts("{{questoin}}")
    assert doubt.startswith("{{questoin}} is no placeholder of the kind rubric")
    assert doubt.endswith("did you mean {{question}}?")
    (doubt,) = doubts("{{ warehouse }}")
    assert doubt.endswith(
        "known: question, model_output, rubric, answer, output, tags, shape, meta"
    )


def test_a_part_that_a_setting_sends_is_asked_for_where_it_is_not_sent() -> None:
    (doubt,) = doubts('Скопируй "meta" без изменений.')
    assert "set expose_meta = true under [settings]" in doubt
    assert doubts('Скопируй "meta" без изменений.', expose_meta=True) == []
    assert doubts("Не упоминай метаданные, metadata.") == []
    assert doubts('Copy "meta".', "weighted") == []


def test_what_the_suite_does_not_use_is_not_filled() -> None:
    assert doubts("{{reference}}") == []
    assert doubts("{{reference}}", use=["reference"]) == []
    assert doubts("{{ reference }}", use=[]) == [
        '{{ reference }} is not filled: the suite does not say use = ["reference"]'
    ]


def test_both_orders_are_a_matter_of_pairs() -> None:
    (doubt,) = doubts("Judge in both orders.", "pairwise")
    assert doubt.startswith("the prompt asks for both orders in one reply")
    assert doubts("Judge in both orders.") == []


@pytest.mark.parametrize(
    ("prompt", "name"),
    [
        ("Score it.", None),
        ("Score `model_output`:\n{{model_output}}", "model_output"),
        ("## Ответ модели\n\n{{model_output}}", "Ответ модели"),
        ("**Ответ модели:** {{ output }}", "Ответ модели"),
        ("【被评输出】\n{{answer}}", "被评输出"),
        ("モデルの出力：\n```\n{{answer}}\n```", "モデルの出力"),
        ("<response>\n{{answer}}\n</response>", "response"),
        ("Оцени ответ {{answer}} по критериям", "answer"),
        ("{{output}}", "output"),
        (f"{'x' * 60}: {{{{answer}}}}", "answer"),
    ],
)
def test_what_is_inserted_is_called_as_the_prompt_calls_it(prompt: str, name: str | None) -> None:
    assert RUBRIC is not None
    assert CustomPrompt.parse(prompt).part_names(RUBRIC).get("model_output") == name


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_re_ask_calls_it_so_too(language: str) -> None:
    def told(prompt: str) -> str:
        words = find_protocol("rubric", custom_prompt={CUSTOM_PROMPT: prompt}).words(language)
        return words.problem("evidence_nowhere", "evidence_missing", "x", quote="q").wording

    assert "`model_output`" in told("Score it.")
    assert "`被评{输出}`" in told("## 被评{输出}\n{{answer}}")
    assert "`model_output`" not in told("## 被评{输出}\n{{answer}}")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("problem", ["empty", "truncated", "filtered"])
def test_a_prompt_that_may_ask_for_a_table_is_not_told_of_json(language: str, problem: str) -> None:
    own = find_protocol("pairwise", custom_prompt={CUSTOM_PROMPT: "Сравни."}).words(language)
    built_in = find_protocol("pairwise").words(language)
    for wording in (own.problems[problem], own.english[problem]):
        assert "JSON" not in wording
        assert "`" not in wording
    assert own.problems[problem] != built_in.problems[problem]
