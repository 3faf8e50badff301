"""A Japanese prompt inside a Markdown fence, with rubrics of the tasks' own: critical-fail
conditions, facts for the grader, and a type that is not always given."""

import json
import tomllib
from dataclasses import dataclass

from evenhand.files.protocols import lint_prompt, protocol_of_prompt
from tests.users_prompts.running import HERE, is_reask, judged_under, style_of

PROMPT = "saiten.md"
DIMENSIONS = ("logic_and_fact", "constraint_adherence", "helpfulness_and_creativity")
WEIGHTS = {"fact": (60, 30, 10), "creative": (30, 30, 40), "speculative": (40, 20, 40)}
TASKS = tomllib.loads((HERE / "tasks_ja.toml").read_text(encoding="utf-8"))
FAILED = {task["failing"]: task["reason"] for task in TASKS.values() if "failing" in task}
TYPES = {name: task["type"] for name, task in TASKS.items() if "type" in task}
INFERRED = "speculative"


def rows():
    """Each answer of each task three times, with other white space at its end."""
    return [
        json.dumps(
            {"id": f"{name}-{number}-{turn}", "task_name": name, "prompt": task["prompt"]}
            | {"answer": f"{answer}{ending}", "rubric": task["rubric"]}
            | {"meta": {"model": f"m{turn}"}},
            ensure_ascii=False,
        )
        for name, task in TASKS.items()
        for number, answer in enumerate(task["answers"])
        for turn, ending in enumerate(("", " ", "\n"))
    ]


@dataclass(frozen=True)
class Asked:
    """A task as the judge got it."""

    name: str
    answer: str

    @property
    def type(self):
        return TYPES.get(self.name, INFERRED)

    @property
    def failure(self):
        return FAILED.get(self.answer.strip())


def asked(messages):
    unit = json.loads(messages[1]["content"])
    name = next(name for name, task in TASKS.items() if task["prompt"] == unit["prompt"])
    return Asked(name, unit["answer"])


def graded(unit):
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


def text(value, **layout):
    return json.dumps(value, ensure_ascii=False, **layout)


def wordy(unit):
    """Reasons longer than asked for, and a sum that is off."""
    value = graded(unit)
    long = "標高の数値は事実情報と一致しており、測量者にも触れている。" * 12
    value["reasoning"]["logic_and_fact"] = long
    return value | {"total_score": value["total_score"] + 3}


def ended(unit):
    """After a critical fail nothing more is said; else floats where the prompt shows integers."""
    value = graded(unit)
    if unit.failure is not None:
        return value | {"reasoning": {}, "score": {}, "total_score": 0}
    return value | {"score": {name: float(score) for name, score in value["score"].items()}}


def hasty(unit):
    """Points in words: what has to be asked again."""
    value = graded(unit)
    points = {name: f"{score}点" for name, score in value["score"].items()}
    return value if unit.failure is not None else value | {"score": points}


STYLES = [
    lambda unit: text(graded(unit)),
    lambda unit: f"```json\n{text(graded(unit), indent=2)}\n```",
    lambda unit: (
        f"<think>\nまず失格条件{{一つずつ}}を見る。次に加点。\n</think>\n{text(graded(unit))}"
    ),
    lambda unit: text(dict(reversed(graded(unit).items()))),
    lambda unit: text(wordy(unit)),
    lambda unit: text(ended(unit)),
    lambda unit: text(hasty(unit)),
]
PROSE = lambda unit: f"採点結果は次のとおりです。\n\n```json\n{text(graded(unit))}\n```\n以上です。"  # noqa: E731
"""Words around the object, against the prompt: they are asked again."""
STYLES += [PROSE]


def reply(messages):
    unit = asked(messages)
    if is_reask(messages):
        return text(graded(unit))
    return STYLES[style_of(messages, len(STYLES))](unit)


SUITE = {"protocol": "weighted", "language": "ja"}


async def test_no_answer_is_lost_and_every_grade_is_the_one_meant(tmp_path):
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
    styles = run.styles(STYLES)
    assert set(styles) == set(STYLES), "the replies are to be varied"
    # Of points in words, those of a critical fail need not be asked again.
    assert styles.count(PROSE) < run.reasks <= styles.count(PROSE) + styles.count(STYLES[-2])


async def test_the_prompt_is_sent_as_it_is_with_the_rubric_in_its_place(tmp_path):
    run = await judged_under(tmp_path, PROMPT, reply, rows()[:7:6], SUITE)
    before, _, after = (
        (HERE / PROMPT).read_text(encoding="utf-8").strip().partition("{{Task_Specific_Rubric}}")
    )
    rubrics = {task["rubric"] for task in TASKS.values()}
    for call in run.calls:
        system, user = call.body["messages"][:2]
        assert system["content"].startswith(before)
        assert system["content"].endswith(after)
        assert system["content"][len(before) : -len(after)] in rubrics
        assert list(json.loads(user["content"])) == ["prompt", "answer"]


def test_lint_knows_its_kind_and_finds_nothing():
    assert protocol_of_prompt(HERE / PROMPT) == "weighted"
    assert lint_prompt("weighted", HERE / PROMPT) == []
