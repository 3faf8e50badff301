"""What the engine needs of a protocol kind: read a row's units, and judge each through `ask`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from evenhand.exchange import Question
from evenhand.judgment import Judgment
from evenhand.kinds.pairwise.protocol import PairwiseProtocol
from evenhand.kinds.pairwise.unit import is_one_text, load_pair, pair_text, read_pairs
from evenhand.kinds.rubric.protocol import RubricProtocol
from evenhand.kinds.rubric.unit import load_sample, read_sample, sample_text
from evenhand.kinds.shared.asking import Asking
from evenhand.kinds.shared.rows import RowError
from evenhand.kinds.weighted.protocol import WeightedProtocol
from evenhand.kinds.weighted.unit import answer_text, load_answer, read_answer
from evenhand.units import Answer, Pair, Sample


class UnitText(NamedTuple):
    """A unit as it is stored; `is_asked` says that code alone cannot decide it."""

    id: str
    body: str
    is_asked: bool = True


class Kind(Protocol):
    """One kind of judging, ready for use. A new kind is one more class like this."""

    @property
    def rounds(self) -> int:
        """How often the questions that open a judgment may be asked in all."""
        ...

    def read(self, row: Mapping[str, Any], position: int) -> list[UnitText]:
        """The units in an input row; raises RowError. `position` counts the units of the rows
        before it that are asked about."""
        ...

    def opening(self, body: str, asking: Asking) -> list[Question]:
        """What will be asked about a unit whatever the replies; nothing where code decides."""
        ...

    async def judge(self, body: str, asking: Asking) -> Judgment:
        """The judgment of a unit in its stored text."""
        ...


@dataclass(frozen=True, slots=True)
class RubricKind:
    """Rubric judging in as many languages as the units have."""

    languages: Mapping[str, RubricProtocol]
    default: str
    rounds: int = 1

    def read(self, row: Mapping[str, Any], position: int = 0) -> list[UnitText]:
        has_rubric = self.languages[self.default].rubric is not None
        sample = read_sample(row, has_rubric=has_rubric)
        _check_language(sample.language, self.languages)
        return [UnitText(sample.id, sample_text(sample))]

    def opening(self, body: str, asking: Asking) -> list[Question]:
        sample = load_sample(body)
        spoken = self.of(sample)
        return [spoken.question(sample, spoken.rubric_of(sample), asking.styles[0])]

    async def judge(self, body: str, asking: Asking) -> Judgment:
        sample = load_sample(body)
        return await self.of(sample).judge(sample, asking.ask, asking.styles[0])

    def of(self, sample: Sample) -> RubricProtocol:
        """The protocol in the sample's own language, else the suite's."""
        return self.languages[sample.language or self.default]


@dataclass(frozen=True, slots=True)
class PairwiseKind:
    """Pairwise judging in as many languages as the units have."""

    languages: Mapping[str, PairwiseProtocol]
    default: str
    seed: int = 0

    @property
    def rounds(self) -> int:
        return self.languages[self.default].max_rounds

    @property
    def criteria(self) -> list[str]:
        """The ids of the criteria, which are the same in every language."""
        return [criterion.id for criterion in self.languages[self.default].criteria]

    def read(self, row: Mapping[str, Any], position: int = 0) -> list[UnitText]:
        pairs = read_pairs(row, position, self.seed)
        _check_language(pairs[0].language, self.languages)
        return [UnitText(pair.id, pair_text(pair), not is_one_text(pair)) for pair in pairs]

    def opening(self, body: str, asking: Asking) -> list[Question]:
        pair = load_pair(body)
        spoken = self.of(pair)
        shown, seats = spoken.shown(pair), spoken.seats(pair, asking.judges)
        if not seats or is_one_text(shown):
            return []
        return spoken.questions(shown, asking, seat=seats[0])

    async def judge(self, body: str, asking: Asking) -> Judgment:
        pair = load_pair(body)
        return await self.of(pair).judge(pair, asking)

    def of(self, pair: Pair) -> PairwiseProtocol:
        """The protocol in the pair's own language, else the suite's."""
        return self.languages[pair.language or self.default]


@dataclass(frozen=True, slots=True)
class WeightedKind:
    """Weighted judging in as many languages as the units have."""

    languages: Mapping[str, WeightedProtocol]
    default: str
    rounds: int = 1

    @property
    def types(self) -> tuple[str, ...]:
        """The task types that a rubric may name."""
        return tuple(one.id for one in self.languages[self.default].types)

    def read(self, row: Mapping[str, Any], position: int = 0) -> list[UnitText]:
        has_rubric = self.languages[self.default].rubric is not None
        answer = read_answer(row, self.types, has_rubric=has_rubric)
        _check_language(answer.language, self.languages)
        return [UnitText(answer.id, answer_text(answer))]

    def opening(self, body: str, asking: Asking) -> list[Question]:
        answer = load_answer(body)
        spoken = self.of(answer)
        return [] if spoken.decided(answer) else [spoken.question(answer, asking.styles[0])]

    async def judge(self, body: str, asking: Asking) -> Judgment:
        answer = load_answer(body)
        return await self.of(answer).judge(answer, asking.ask, asking.styles[0])

    def of(self, answer: Answer) -> WeightedProtocol:
        """The protocol in the answer's own language, else the suite's."""
        return self.languages[answer.language or self.default]


def _check_language(language: str | None, spoken: Mapping[str, object]) -> None:
    if language and language not in spoken:
        known = ", ".join(spoken)
        raise RowError(f'the protocol speaks {known}, and "language" is {language}')
