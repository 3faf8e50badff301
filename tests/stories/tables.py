"""Tables as people have them: odd on purpose."""

from __future__ import annotations

import csv

NOUNS = ("bread", "ice", "rain", "glass", "salt", "wind", "tea", "iron", "snow", "honey")
TOPICS = ("вода", "лёд", "дождь", "стекло", "соль", "ветер", "чай", "железо", "снег", "мёд")


def write_table(
    path,
    rows,
    *,
    separator=",",
    encoding="utf-8",
    end="\r\n",
):
    with path.open("w", encoding=encoding, newline="") as file:
        csv.writer(file, delimiter=separator, lineterminator=end).writerows(rows)


def sentences(text, number):
    """A text of so many sentences, quotes and a line break among them."""
    return "\n".join([f'It is said of "{text}", {part} times.' for part in range(1, number + 1)])


def prompt_answers(folder):
    """40 questions under two prompts: v2 says more to 30 of them, less to 5. No ids; semicolons in
    one file, commas and a byte order mark in the other, quotes and line breaks inside cells."""
    questions = [f'What is "{NOUNS[i % 10]}" good for; number {i}?' for i in range(40)]
    first = [2] * 40
    second = [3] * 30 + [1] * 5 + [2] * 5
    for version, numbers in (("v1", first), ("v2", second)):
        rows = [
            (question, "n/a" if i % 7 else "", sentences(NOUNS[i % 10], number))
            for i, (question, number) in enumerate(zip(questions, numbers, strict=True))
        ]
        write_table(
            folder / f"answers_{version}.csv",
            [("Prompt", "remark", "response"), *rows],
            separator=";" if version == "v1" else ",",
            encoding="utf-8" if version == "v1" else "utf-8-sig",
        )


def russian_rows(models):
    """Topics with an answer of each model, the later the better, but for every fifth topic."""
    rows = []
    for topic in range(50):
        for rank, model in enumerate(models):
            number = len(models) - rank if topic % 5 == 0 else rank + 1
            text = " ".join(f"Про «{TOPICS[topic % 10]}» сказано {rank}{i}." for i in range(number))
            rows.append((f"Что такое {TOPICS[topic % 10]}; вопрос {topic}?", model, text))
    return rows


def japanese_rows():
    """Answers of two models to twelve questions."""
    return [
        (f"第{i}問、「茶」とは何ですか。", model, "お茶は飲み物です。" * (1 + (i + j) % 4))
        for i in range(12)
        for j, model in enumerate(("甲", "乙"))
    ]
