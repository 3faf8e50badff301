"""Judge the answers of language models with other language models, and trust the result.

    found = evenhand.prefer(topic, first, second, judge="openai/gpt-4.1-mini", language="ru")
    scores = evenhand.score(question, output, rubric=rubric, judge="openai/gpt-4.1-mini")
    found = evenhand.checklist(question, output, criteria=["Is it polite?"])
    grade = evenhand.grade(prompt, answer, rubric="task.md", judge="openai/gpt-4.1-mini")
    run = evenhand.run("evenhand.toml"); run.judgments()
    run = evenhand.run(dataframe, rubric="Is the answer polite?", judge="openai/gpt-4.1-mini")

Importing this package loads no optional dependency, reads no file and opens no connection.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand.api import (
        checklist,
        checklist_async,
        grade,
        grade_async,
        import_,
        import_async,
        open,  # noqa: A004
        prefer,
        prefer_async,
        run,
        run_async,
        score,
        score_async,
    )
    from evenhand.errors import EvenhandError, NoVerdictsWarning
    from evenhand.judgment import Failure, Judgment, LeftOut, Verdict
    from evenhand.kinds.checklist.verdict import ChecklistVerdict
    from evenhand.kinds.pairwise.verdict import PairVerdict
    from evenhand.kinds.rubric.verdict import RubricVerdict
    from evenhand.kinds.weighted.verdict import Grade
    from evenhand.results.judged import JudgedUnit, assert_passes
    from evenhand.results.run import Run

__all__ = [
    "ChecklistVerdict",
    "EvenhandError",
    "Failure",
    "Grade",
    "JudgedUnit",
    "Judgment",
    "LeftOut",
    "NoVerdictsWarning",
    "PairVerdict",
    "RubricVerdict",
    "Run",
    "Verdict",
    "assert_passes",
    "checklist",
    "checklist_async",
    "grade",
    "grade_async",
    "import_",
    "import_async",
    "open",
    "prefer",
    "prefer_async",
    "run",
    "run_async",
    "score",
    "score_async",
]

_HOMES = {
    "ChecklistVerdict": "evenhand.kinds.checklist.verdict",
    "EvenhandError": "evenhand.errors",
    "Failure": "evenhand.judgment",
    "Grade": "evenhand.kinds.weighted.verdict",
    "JudgedUnit": "evenhand.results.judged",
    "Judgment": "evenhand.judgment",
    "LeftOut": "evenhand.judgment",
    "NoVerdictsWarning": "evenhand.errors",
    "PairVerdict": "evenhand.kinds.pairwise.verdict",
    "RubricVerdict": "evenhand.kinds.rubric.verdict",
    "Run": "evenhand.results.run",
    "Verdict": "evenhand.judgment",
    "assert_passes": "evenhand.results.judged",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'evenhand' has no attribute {name!r}")
    return getattr(import_module(_HOMES.get(name, "evenhand.api")), name)


def __dir__() -> list[str]:
    return __all__
