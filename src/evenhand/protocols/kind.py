"""What the engine needs of a protocol kind: read a unit, and judge it through `ask`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from evenhand.exchange import Ask, Style
from evenhand.judgment import Judgment
from evenhand.protocols.rubric import RubricProtocol
from evenhand.protocols.samples import RowError, load_sample, read_sample, sample_text
from evenhand.units import Sample


class Kind(Protocol):
    """One kind of judging, ready for use. A new kind is one more class like this."""

    def read(self, row: Mapping[str, Any]) -> tuple[str, str]:
        """The id and the stored text of the unit in an input row; raises RowError."""
        ...

    async def judge(self, body: str, ask: Ask, style: Style) -> Judgment:
        """The judgment of a unit in its stored text."""
        ...


@dataclass(frozen=True, slots=True)
class RubricKind:
    """Rubric judging in as many languages as the units have."""

    languages: Mapping[str, RubricProtocol]
    default: str

    def read(self, row: Mapping[str, Any]) -> tuple[str, str]:
        has_rubric = self.languages[self.default].rubric is not None
        sample = read_sample(row, has_rubric=has_rubric)
        if sample.language and sample.language not in self.languages:
            known = ", ".join(self.languages)
            raise RowError(f'the protocol speaks {known}, and "language" is {sample.language}')
        return sample.id, sample_text(sample)

    async def judge(self, body: str, ask: Ask, style: Style) -> Judgment:
        sample = load_sample(body)
        return await self.of(sample).judge(sample, ask, style)

    def of(self, sample: Sample) -> RubricProtocol:
        """The protocol in the sample's own language, else the suite's."""
        return self.languages[sample.language or self.default]
