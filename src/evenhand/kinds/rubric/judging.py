"""The kind `rubric` made ready: samples judged in as many languages as they have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from msgspec import Struct

from evenhand import jsontext
from evenhand.exchange import Question
from evenhand.judgment import Judgment
from evenhand.kinds.check import Checked
from evenhand.kinds.kind import UnitText
from evenhand.kinds.rubric.measure import ends_of
from evenhand.kinds.rubric.protocol import RubricProtocol
from evenhand.kinds.rubric.unit import load_sample, read_sample, sample_text
from evenhand.kinds.rubric.verdict import RubricVerdict
from evenhand.kinds.shared.asking import Asking
from evenhand.kinds.shared.rows import RowError, check_language
from evenhand.measures import Ends
from evenhand.units import Sample, sample_id


class RubricJudging(Struct, frozen=True):
    """Rubric judging in as many languages as the units have."""

    kind: ClassVar[str] = "rubric"
    languages: Mapping[str, RubricProtocol]
    default: str
    rounds: int = 1

    @property
    def dimensions(self) -> list[str]:
        return list(self.ends)

    @property
    def ends(self) -> Ends:
        rubric = self.languages[self.default].rubric
        return {} if rubric is None else ends_of(rubric)

    def read(self, row: Mapping[str, Any]) -> list[UnitText]:
        has_rubric = self.languages[self.default].rubric is not None
        sample = read_sample(row, has_rubric=has_rubric)
        check_language(sample.language, self.languages)
        return [UnitText(sample.id, sample_text(sample))]

    def opening(self, body: str, asking: Asking) -> list[Question]:
        sample = load_sample(body)
        protocol = self.of(sample)
        return [protocol.question(sample, protocol.rubric_of(sample), asking.styles[0])]

    async def judge(self, body: str, asking: Asking) -> Judgment:
        sample = await asking.aside(partial(load_sample, body), len(body))
        return await self.of(sample).judge(sample, asking)

    def unit_keys(self, body: str) -> Sequence[str]:
        return [sample_id({"meta": load_sample(body).meta})]

    def output_key(self, output: Mapping[str, Any]) -> str | None:
        """The id that the meta of an output object makes."""
        if "scores" not in output:
            return None
        if not isinstance(output.get("meta"), Mapping):
            raise RowError('"meta" must be an object: it names the unit')
        return sample_id({"meta": output["meta"]})

    def check_elsewhere(self, body: str, text: str, finish: str) -> Checked[RubricVerdict]:
        sample = load_sample(body)
        return self.of(sample).check(text, sample, finish=finish)

    def check_output(self, body: str, output: dict[str, Any]) -> Checked[RubricVerdict]:
        return self.check_elsewhere(body, jsontext.dump(output), "stop")

    def of(self, sample: Sample) -> RubricProtocol:
        """The protocol in the sample's own language, else the suite's."""
        return self.languages[sample.language or self.default]
