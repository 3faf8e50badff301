"""One honest price: what `--dry-run` says is within a factor of 1.5 of what the run then costs,
where judges reply as judges do."""

from __future__ import annotations

import pytest

from tests.provider import Provider
from tests.stories.reader import reading
from tests.suites import at, judged, write_answers, write_pairs, write_suite
from tests.unit.runs.test_forecast import foreseen

PRICE = {"input": "0.40", "output": "1.60"}
NOT_FAR = 1.5
FICKLE = 5
"""A good judge contradicts itself in about one pair of so many."""
SENTENCES = {
    "en": "Salt keeps food from spoiling because it draws the water out of it.",
    "ru": "Соль не даёт продуктам портиться, потому что вытягивает из них воду.",
    "zh": "盐能防止食物变质，因为它会把水分吸出来。",
    "ja": "塩は水分を引き出すので、食べ物が傷むのを防ぎます。",
}


def rows(protocol, language, number, start=0):
    """Units whose texts are of different lengths."""
    made = []
    for i in range(start, start + number):
        question, text = f"{i}: {SENTENCES[language]}?", SENTENCES[language] * (1 + i % 4)
        longer = f"{text} {i} {SENTENCES[language]}"
        if protocol == "pairwise":
            candidates = [{"id": "a", "text": f"{i} {text}"}, {"id": "b", "text": longer}]
            made.append({"pair_id": f"p{i}", "topic": question, "candidates": candidates})
        elif protocol == "rubric":
            made.append({"id": f"s{i}", "question": question, "model_output": longer})
        else:
            task = {"task_name": f"t{i}", "prompt": question, "answer": longer}
            made.append(task | {"rubric": f"task_type: fact\n\n- +60: {SENTENCES[language]}\n"})
    return made


def write(folder, protocol, url, units, **more):
    writers = {"pairwise": write_pairs, "rubric": write_suite, "weighted": write_answers}
    judge = at(url, price=PRICE, max_tokens=4000)
    writers[protocol](folder, units, judge, **more)


async def told_and_true(folder):
    """What a run is said to cost, and what it costs."""
    forecast = await foreseen(folder)
    assert forecast.cost_likely is not None
    summary = await judged(folder)
    assert not summary.counts.failures and not summary.counts.pending
    return float(forecast.cost_likely), float(summary.tally.cost)


def is_near(told, true):
    return true / NOT_FAR <= told <= true * NOT_FAR


@pytest.mark.parametrize("language", SENTENCES)
@pytest.mark.parametrize("protocol", ["rubric", "pairwise", "weighted"])
async def test_ordinary_replies_are_priced(tmp_path, protocol, language):
    async with Provider(reading(fickle=FICKLE)) as provider:
        write(tmp_path, protocol, provider.url, rows(protocol, language, 20), language=language)
        told, true = await told_and_true(tmp_path)
    assert is_near(told, true), told / true
