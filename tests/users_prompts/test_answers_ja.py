"""A Japanese prompt inside a Markdown fence, with rubrics of the tasks' own: critical-fail
conditions, facts for the grader, and a type that is not always given."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.files.protocols import lint_prompt, protocol_of_prompt
from tests.users_prompts.running import HERE, Messages, is_reask, judged_under, style_of

PROMPT = "saiten.md"
DIMENSIONS = ("logic_and_fact", "constraint_adherence", "helpfulness_and_creativity")
WEIGHTS = {"fact": (60, 30, 10), "creative": (30, 30, 40), "speculative": (40, 20, 40)}
TASKS = {
    "富士山の高さ": (
        "富士山の標高と、初めて測量した人物について簡潔に教えてください。専門用語は使わないでください。",
        """task_type: fact

## 採点者向け事実情報
- 標高は 3776 m（剣ヶ峰）。
- 1827 年に二宮敬作が測量したとされる。

## Critical Fail Conditions
- 標高を 4000 m 以上としている。

## 加点・減点
- 標高が正しければ +40。
- 測量者に触れていれば +20。
- 専門用語を使っていたら -10。
""",
    ),
    "俳句": (
        "秋の夕暮れを詠んだ俳句を一句作ってください。季語の解説は不要です。",
        """**task_type**: creative

### Critical Fail Conditions
- 俳句ではなく散文で答えている。

### 加点
- 五・七・五に収まっている：+30
- 季語が秋のものである：+20
### 減点
- 解説を付けている：-10
""",
    ),
    "もしもの東京": (
        "もし東京に川が一本もなかったら、街はどう発展したでしょうか。",
        """## 加点・減点
- 複数の観点（物流、水、防災など）から論じていれば加点。
- 根拠のない断定は減点。
""",
    ),
    "送別会の挨拶": (
        "異動する同僚への送別の言葉を三文で書いてください。冗談は入れないでください。",
        """task_type: creative

# Critical Fail Conditions
なし

# 加点・減点
- 三文であれば +30。
- 冗談があれば -20。
""",
    ),
    "消費税率": (
        "日本の現在の消費税率を、軽減税率も含めて教えてください。",
        """task_type：fact

## 採点者向け事実情報
標準税率は 10%、軽減税率は 8%（2019 年 10 月から）。

## Critical Fail Conditions
- 税率を一つも示していない。
- 廃止されたと述べている。

## 加点
両方の税率を示していれば満点。
""",
    ),
}
ANSWERS = {
    "富士山の高さ": ["3776メートルで、江戸時代に二宮敬作が測りました。", "標高は4200mです。"],
    "俳句": ["秋の暮れ鴉一羽の帰り道", "秋の夕暮れはとても寂しくて美しいと思います。"],
    "もしもの東京": [
        "水運がないため城下町は内陸の街道沿いに発展し、物資は馬で運ばれたはずです。",
        "井戸と雨水に頼るので人口は増えず、火事のたびに街の形が変わったでしょう。",
    ],
    "送別会の挨拶": [
        "これまで本当にありがとうございました。新天地でのご活躍をお祈りします。またお会いしましょう。",
        "長い間お世話になりました。寂しくなります。どうぞお元気で。",
    ],
    "消費税率": ["標準は10%、食料品などは8%です。", "消費税は廃止されました。"],
}
FAILED = {
    "標高は4200mです。": "標高を 4000 m 以上としているため。",
    "秋の夕暮れはとても寂しくて美しいと思います。": "俳句ではなく散文で答えているため。",
    "消費税は廃止されました。": "廃止されたと述べているため。",
}
TYPES = {"富士山の高さ": "fact", "俳句": "creative", "送別会の挨拶": "creative", "消費税率": "fact"}
INFERRED = "speculative"


def rows() -> list[str]:
    """Each answer of each task three times, with other white space at its end."""
    return [
        json.dumps(
            {"id": f"{name}-{number}-{turn}", "task_name": name, "prompt": prompt}
            | {"answer": f"{answer}{ending}", "rubric": rubric, "meta": {"model": f"m{turn}"}},
            ensure_ascii=False,
        )
        for name, (prompt, rubric) in TASKS.items()
        for number, answer in enumerate(ANSWERS[name])
        for turn, ending in enumerate(("", " ", "\n"))
    ]


@dataclass(frozen=True)
class Asked:
    """A task as the judge got it."""

    name: str
    answer: str

    @property
    def type(self) -> str:
        return TYPES.get(self.name, INFERRED)

    @property
    def failure(self) -> str | None:
        return FAILED.get(self.answer.strip())


def asked(messages: Messages) -> Asked:
    unit = json.loads(messages[1]["content"])
    name = next(name for name, (prompt, _) in TASKS.items() if prompt == unit["prompt"])
    return Asked(name, unit["answer"])


def graded(unit: Asked) -> dict[str, Any]:
    """What a careful judge makes of it, in the form that the prompt asks for."""
    weights = dict(zip(DIMENSIONS, WEIGHTS[unit.type], strict=True))
    failed = unit.failure is not None
    score = {name: 0 if failed else most * 4 // 5 for name, most in weights.items()}
    reason = "失格条件に該当。" if failed else "ルーブリックの項目を満たしている。"
    return {
        "task_name": unit.name,
        "task_type": unit.type,
        "inferred_task_type": None if unit.name in TYPES else unit.type,
        "weights": weights,
        "score": score,
        "total_score": sum(score.values()),
        "reasoning": dict.fromkeys(DIMENSIONS, reason),
        "critical_fail": failed,
        "critical_fail_reason": unit.failure,
        "confidence": "high" if unit.name in TYPES else "medium",
    }


def text(value: dict[str, Any], **layout: Any) -> str:
    return json.dumps(value, ensure_ascii=False, **layout)


def wordy(unit: Asked) -> dict[str, Any]:
    """Reasons longer than asked for, and a sum that is off."""
    value = graded(unit)
    long = "標高の数値は事実情報と一致しており、測量者にも触れている。" * 12
    value["reasoning"]["logic_and_fact"] = long
    return value | {"total_score": value["total_score"] + 3}


def unnamed(unit: Asked) -> dict[str, Any]:
    """The name is not sent, so the judge makes one up; confidence in capitals."""
    value = graded(unit)
    return value | {"task_name": "不明", "confidence": value["confidence"].capitalize()}


def ended(unit: Asked) -> dict[str, Any]:
    """After a critical fail nothing more is said; else floats where the prompt shows integers."""
    value = graded(unit)
    if unit.failure is not None:
        return value | {"reasoning": {}, "score": {}, "total_score": 0}
    return value | {"score": {name: float(score) for name, score in value["score"].items()}}


def bare(unit: Asked) -> dict[str, Any]:
    """Only what the judge alone knows."""
    names = ("inferred_task_type", "critical_fail", "critical_fail_reason", "reasoning", "score")
    value = graded(unit)
    return {name: value[name] for name in (*names, "confidence")}


def hasty(unit: Asked) -> dict[str, Any]:
    """Points in words: what has to be asked again."""
    value = graded(unit)
    points = {name: f"{score}点" for name, score in value["score"].items()}
    return value if unit.failure is not None else value | {"score": points}


STYLES: list[Callable[[Asked], str]] = [
    lambda unit: text(graded(unit)),
    lambda unit: text(graded(unit), indent=2),
    lambda unit: f"```json\n{text(graded(unit), indent=2)}\n```",
    lambda unit: f"```\n{text(graded(unit))}\n```",
    lambda unit: (
        f"<think>\nまず失格条件{{一つずつ}}を見る。次に加点。\n</think>\n{text(graded(unit))}"
    ),
    lambda unit: text(dict(reversed(graded(unit).items()))),
    lambda unit: text(wordy(unit)),
    lambda unit: f"```json\n{text(wordy(unit))}\n```",
    lambda unit: text(unnamed(unit)),
    lambda unit: text(ended(unit)),
    lambda unit: text(bare(unit)),
    lambda unit: text(dict(sorted(graded(unit).items()))),
    lambda unit: text(hasty(unit)),
]
PROSE: list[Callable[[Asked], str]] = [
    lambda unit: f"採点結果は次のとおりです。\n\n```json\n{text(graded(unit))}\n```\n以上です。",
    lambda unit: f"**採点結果**\n\n{text(graded(unit))}",
    lambda unit: f"意図：簡潔さ。否定的制約：あり。\n\n{text(graded(unit), indent=1)}",
]
"""Words around the object, against the prompt: these are asked again."""
STYLES += PROSE


def reply(messages: Messages) -> str:
    unit = asked(messages)
    if is_reask(messages):
        return text(graded(unit))
    return STYLES[style_of(messages, len(STYLES))](unit)


SUITE = {"protocol": "weighted", "language": "ja"}


async def test_no_answer_is_lost_and_every_grade_is_the_one_meant(tmp_path: Path) -> None:
    run = await judged_under(tmp_path, PROMPT, reply, rows(), SUITE)
    assert (run.summary.counts.planned, run.summary.counts.verdicts) == (30, 30)
    answers = {row["id"]: Asked(row["task_name"], row["answer"]) for row in map(json.loads, rows())}
    for unit, row in run.rows.items():
        output, meant = row["output"], graded(answers[unit])
        same = ("task_name", "task_type", "inferred_task_type", "weights", "score", "total_score")
        for key in (*same, "critical_fail", "confidence"):
            assert output[key] == meant[key], (unit, key)
        assert bool(output["critical_fail_reason"]) == output["critical_fail"]
        assert all(0 < len(reason) <= 200 for reason in output["reasoning"].values())
    styles = [
        style_of(call.body["messages"], len(STYLES))
        for call in run.calls
        if not is_reask(call.body["messages"])
    ]
    assert len(set(styles)) >= 11, "the replies are to be varied"
    prose = sum(STYLES[style] in PROSE for style in styles)
    assert prose <= run.reasks <= prose + len(styles) / 10


async def test_the_prompt_is_sent_as_it_is_with_the_rubric_in_its_place(tmp_path: Path) -> None:
    run = await judged_under(tmp_path, PROMPT, reply, rows()[:7:6], SUITE)
    before, _, after = (
        (HERE / PROMPT).read_text(encoding="utf-8").strip().partition("{{Task_Specific_Rubric}}")
    )
    rubrics = {rubric for _, rubric in TASKS.values()}
    for call in run.calls:
        system, user = call.body["messages"][:2]
        assert system["content"].startswith(before)
        assert system["content"].endswith(after)
        assert system["content"][len(before) : -len(after)] in rubrics
        assert list(json.loads(user["content"])) == ["prompt", "answer"]


def test_lint_knows_its_kind_and_finds_nothing() -> None:
    assert protocol_of_prompt(HERE / PROMPT) == "weighted"
    assert lint_prompt("weighted", HERE / PROMPT) == []
