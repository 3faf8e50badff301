"""What the tests of the weighted protocol judge: one answer, its rubrics, and replies to it."""

import json

from msgspec.structs import replace

from evenhand.files.protocols import find_protocol
from evenhand.kinds.weighted.kind import WeightedProtocol, read_types
from evenhand.kinds.weighted.verdict import Task, TaskType
from evenhand.units import Answer

DIMENSIONS = ("logic_and_fact", "constraint_adherence", "helpfulness_and_creativity")
WEIGHTS = {
    "fact": dict(zip(DIMENSIONS, (60, 30, 10), strict=True)),
    "creative": dict(zip(DIMENSIONS, (30, 30, 40), strict=True)),
    "speculative": dict(zip(DIMENSIONS, (40, 20, 40), strict=True)),
}
KEYS = [
    "task_name",
    "task_type",
    "inferred_task_type",
    "weights",
    "score",
    "total_score",
    "reasoning",
    "critical_fail",
    "critical_fail_reason",
    "confidence",
]
"""The output's keys in the specification's order."""

FACT = "task_type: fact\n\n- +60 if it is right\n\n## Critical Fail Conditions\n\n- It lies.\n"
PLAIN = "- +60 if it is right\n"
"""A rubric that names neither a type nor a condition."""

ANSWER = Answer(
    id="capital/m-7",
    task_name="capital",
    prompt="What is the capital of France?",
    answer="It is Paris.",
    rubric=FACT,
    meta={"model": "m-7"},
)


def under(rubric, answer=ANSWER.answer):
    """The answer with another rubric, or another text."""
    return replace(ANSWER, rubric=rubric, answer=answer)


def protocol(language="en", **settings):
    """The built-in protocol in one language."""
    builtin = find_protocol("weighted")
    return WeightedProtocol(
        prompts=builtin.prompts(language),
        words=builtin.words(language),
        dimensions=builtin.read_table("dimensions", language),
        types=read_types(builtin, language),
        **settings,
    )


def reply(*scores, **changes):
    """A reply in the shape that is asked for; a change to `...` leaves the key out."""
    given = {
        "inferred_task_type": None,
        "critical_fail": False,
        "critical_fail_reason": None,
        "reasoning": dict.fromkeys(DIMENSIONS, "so it is"),
        "score": dict(zip(DIMENSIONS, scores or (50, 20, 5), strict=True)),
        "confidence": "high",
    }
    return {key: value for key, value in (given | changes).items() if value is not ...}


def said(*scores, **changes):
    """The same as text."""
    return json.dumps(reply(*scores, **changes), ensure_ascii=False)


def task_of(*rows, given=True, has_conditions=True):
    """A task with types of these weights, the first of which is given."""
    types = [TaskType(f"t{number}", "text", row) for number, row in enumerate(rows)]
    return Task("task", types[0] if given else None, types, has_conditions)
