"""A Russian prompt that asks for a verdict table and a double run."""

import json
from itertools import pairwise

import pytest

from evenhand.files.protocols import find_protocol, lint_prompt, protocol_of_prompt
from tests.suites import CRITERIA
from tests.users_prompts.running import HERE, is_reask, judged_under, style_of

PROMPT = "sudya.md"
TOPICS = [
    tuple(json.loads(row))
    for row in (HERE / "topics_ru.jsonl").read_text(encoding="utf-8").splitlines()
]
"""A topic, a right answer and a wrong one."""
HEADER = "pair_id | winner | C1 | C2 | C3 | C4 | C5 | notes"
RULE = "--- | --- | --- | --- | --- | --- | --- | ---"


def rows():
    """Each topic three times: the right answer first, second, and against itself in other words."""
    made = []
    for number, (topic, right, wrong) in enumerate(TOPICS):
        equal, firm = f"{right} Вот и всё.", f"{wrong} Это известно всем."
        for turn, (first, second) in enumerate([(right, wrong), (firm, right), (right, equal)]):
            candidates = [{"id": "v1", "text": first}, {"id": "v2", "text": second}]
            row = {"pair_id": f"{number}-{turn}", "topic": topic, "candidates": candidates}
            made.append(json.dumps(row, ensure_ascii=False))
    return made


EXPECTED = {
    f"{number}-{turn}": "AB"[turn] if turn < 2 else "tie"
    for number in range(10)
    for turn in range(3)
}


def better(unit):
    """Which slot a judge that knows the truth finds better."""
    right = [text for _, text, _ in TOPICS]
    good = [any(text in unit[f"candidate_{i}"] for text in right) for i in (1, 2)]
    return "tie" if good[0] == good[1] else "A" if good[0] else "B"


def cells(winner):
    """The verdict in the contract's own words: C1 and C2 decide, C4 goes against."""
    if winner == "tie":
        return ["—", "tie", *["tie"] * 5, "Оба верны и опираются на одни и те же факты (C1, C2)."]
    worse = {"A": "B", "B": "A"}[winner]
    marks = [f"{winner}+", f"{winner}+", "tie", f"{worse}+", "tie"]
    return ["—", winner, *marks, f"По C1 и C2 {winner} точнее; {worse} короче, но неверен."]


def table(row, *, outer=True, header=True):
    lines = [*([HEADER, RULE] if header else []), " | ".join(row)]
    return "\n".join(f"| {line} |" if outer else line for line in lines)


def spoken(row, winners, marks):
    """The same verdict in other words."""
    return [row[0], winners[row[1]], *(marks[mark] for mark in row[2:7]), row[7]]


BETTER = {"A": "A лучше", "B": "B лучше", "tie": "tie (ничья)"}
SAME = {"A+": "A+", "B+": "B+", "tie": "tie"}
CYRILLIC = {"A": "А", "B": "В", "tie": "ничья"}
CYRILLIC_MARKS = {"A+": "А+", "B+": "В+", "tie": "tie"}


def reasoned(row):
    """Criterion by criterion first, then the table."""
    yes = {"A+": ("да", "нет"), "B+": ("нет", "да"), "tie": ("да", "да")}
    lines = [
        f"| {name} | {yes[mark][0]} | {yes[mark][1]} | {mark} | одной строкой: так и есть |"
        for name, mark in zip(CRITERIA, row[2:7], strict=True)
    ]
    head = "| Критерий | A | B | Отметка | Комментарий |\n|---|---|---|---|---|"
    final = table(spoken(row, BETTER, SAME))
    return "### Разбор\n\n" + "\n".join([head, *lines]) + f"\n\n### Итог\n\n{final}"


def as_object(row):
    names = ["pair_id", "winner", *CRITERIA, "notes"]
    value = dict(zip(names, row, strict=True))
    return f"```json\n{json.dumps(value, ensure_ascii=False, indent=2)}\n```"


def thinking(row):
    return (
        "<think>\nСначала C1. Может быть, — | B | B+ | tie | tie | tie | tie | ? Проверю факты.\n"
        f"</think>\n\n{table(spoken(row, BETTER, SAME), outer=False)}"
    )


def twice(row):
    """Both runs after all, as the prompt demands: what has to be asked again."""
    turned = [cell.translate(str.maketrans("AB", "BA")) for cell in row[:7]]
    return f"Прогон 1:\n{table(row)}\n\nПрогон 2 (ответы переставлены):\n{table([*turned, row[7]])}"


STYLES = [
    lambda row: table(row, outer=False),
    lambda row: table(row, header=False),
    lambda row: f"Вот результат:\n\n{table(spoken(row, BETTER, SAME))}\n\nУверенность высокая.",
    lambda row: f"```markdown\n{table(row)}\n```",
    lambda row: table(spoken(row, CYRILLIC, CYRILLIC_MARKS), outer=False),
    reasoned,
    as_object,
    thinking,
    twice,
]
"""Whole replies; what else may stand in a line is held to in unit/kinds/realistic."""


def reply(messages):
    unit = json.loads(messages[1]["content"])
    row = cells(better(unit))
    if is_reask(messages):
        return table(row, outer=False)
    return STYLES[style_of(messages, len(STYLES))](row)


SUITE = {"protocol": "pairwise", "language": "ru"}


async def test_no_pair_is_lost_and_few_are_asked_again(tmp_path):
    run = await judged_under(tmp_path, PROMPT, reply, rows(), SUITE)
    assert (run.summary.counts.planned, run.summary.counts.verdicts) == (30, 30)
    assert {unit: row["output"]["winner"] for unit, row in run.rows.items()} == EXPECTED
    assert {row["output"]["settled"] for row in run.rows.values()} == {"stable"}
    styles = run.styles(STYLES)
    assert set(styles) == set(STYLES), "the replies are to be varied"
    # Of two equal lines there is one verdict.
    assert 0 < run.reasks <= styles.count(twice)


async def test_the_prompt_is_sent_as_it_is_after_one_sentence_in_its_language(
    tmp_path,
):
    run = await judged_under(tmp_path, PROMPT, reply, rows()[:3], SUITE)
    sentence = find_protocol("pairwise").words("ru").phrases["one_order"]
    text = (HERE / PROMPT).read_text(encoding="utf-8").strip()
    for call in run.calls:
        system, user = call.body["messages"][:2]
        assert system == {"role": "system", "content": f"{sentence}\n\n{text}"}
        assert list(json.loads(user["content"])) == ["topic", "candidate_1", "candidate_2"]


async def test_a_double_run_is_asked_again_in_words_that_fit(tmp_path):
    def insisting(messages):
        row = cells(better(json.loads(messages[1]["content"])))
        return table(row) if is_reask(messages) else twice(row)

    run = await judged_under(tmp_path, PROMPT, insisting, rows()[:2], SUITE)
    assert run.summary.counts.verdicts == 2
    assert run.reasks == 4
    for text in run.asked_again:
        assert "ровно одну строку" in text
        assert "обратный порядок проверяется отдельно" in text
        assert "JSON" not in text


@pytest.mark.parametrize("said", ["", "A лучше: причина названа верно."])
async def test_a_reply_without_a_line_is_shown_the_header_that_is_wanted(tmp_path, said):
    def wordless(messages):
        row = cells(better(json.loads(messages[1]["content"].partition("\n\n")[0])))
        return table(row) if HEADER in messages[-1]["content"] else said

    run = await judged_under(tmp_path, PROMPT, wordless, rows()[:2], SUITE)
    assert run.summary.counts.verdicts == 2
    asked = [[message["role"] for message in call.body["messages"]] for call in run.calls]
    assert all(before != after for roles in asked for before, after in pairwise(roles))


def test_lint_knows_what_it_is_for_and_what_it_demands():
    assert protocol_of_prompt(HERE / PROMPT) == "pairwise"
    (finding,) = lint_prompt("pairwise", HERE / PROMPT)
    assert "asks for both orders" in finding.message
