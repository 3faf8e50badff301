"""The kind `weighted` made ready: answers graded in as many languages as they have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from evenhand import jsontext
from evenhand.exchange import Question
from evenhand.judgment import Judgment
from evenhand.kinds.check import Checked
from evenhand.kinds.kind import UnitText
from evenhand.kinds.shared.asking import Asking
from evenhand.kinds.shared.rows import check_language
from evenhand.kinds.weighted.protocol import WeightedProtocol
from evenhand.kinds.weighted.unit import answer_text, load_answer, read_answer
from evenhand.kinds.weighted.verdict import Grade
from evenhand.measures import Ends
from evenhand.units import Answer


@dataclass(frozen=True, slots=True)
class WeightedJudging:
    """Weighted judging in as many languages as the units have."""

    kind: ClassVar[str] = "weighted"
    languages: Mapping[str, WeightedProtocol]
    default: str
    rounds: int = 1

    @property
    def types(self) -> tuple[str, ...]:
        """The task types that a rubric may name."""
        return tuple(task_type.id for task_type in self.languages[self.default].types)

    @property
    def dimensions(self) -> list[str]:
        return [dimension.id for dimension in self.languages[self.default].dimensions]

    @property
    def ends(self) -> Ends:
        """From nothing to the most points that a type of task has."""
        types = self.languages[self.default].settled_types
        return {
            name: (0.0, max(float(task_type.weights[name]) for task_type in types))
            for name in self.dimensions
        }

    def read(self, row: Mapping[str, Any]) -> list[UnitText]:
        has_rubric = self.languages[self.default].rubric is not None
        answer = read_answer(row, self.types, has_rubric=has_rubric)
        check_language(answer.language, self.languages)
        return [UnitText(answer.id, answer_text(answer))]

    def opening(self, body: str, asking: Asking) -> list[Question]:
        answer = load_answer(body)
        protocol = self.of(answer)
        return [] if protocol.decided(answer) else [protocol.question(answer, asking.styles[0])]

    async def judge(self, body: str, asking: Asking) -> Judgment:
        answer = await asking.aside(partial(load_answer, body), len(body))
        return await self.of(answer).judge(answer, asking)

    def unit_keys(self, body: str) -> Sequence[str]:
        return [load_answer(body).task_name]

    def output_key(self, output: Mapping[str, Any]) -> str | None:
        """The name of the task."""
        return str(output["task_name"]) if "task_name" in output else None

    def check_elsewhere(self, body: str, text: str, finish: str) -> Checked[Grade]:
        answer = load_answer(body)
        return self.of(answer).check_elsewhere(text, answer, finish=finish)

    def check_output(self, body: str, output: dict[str, Any]) -> Checked[Grade]:
        return self.check_elsewhere(body, jsontext.dump(output), "stop")

    def of(self, answer: Answer) -> WeightedProtocol:
        """The protocol in the answer's own language, else the suite's."""
        return self.languages[answer.language or self.default]
