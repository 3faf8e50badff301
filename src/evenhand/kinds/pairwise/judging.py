"""The kind `pairwise` made ready: pairs judged in as many languages as they have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from evenhand.exchange import Question
from evenhand.judgment import Judgment
from evenhand.kinds.check import Checked
from evenhand.kinds.kind import UnitText
from evenhand.kinds.pairwise.protocol import PairwiseProtocol
from evenhand.kinds.pairwise.unit import is_one_text, load_pair, pair_text, read_pairs
from evenhand.kinds.pairwise.verdict import PairReply, PairVerdict
from evenhand.kinds.shared.asking import Asking
from evenhand.kinds.shared.rows import check_language
from evenhand.measures import Ends
from evenhand.units import Pair, named_pair_id


@dataclass(frozen=True, slots=True)
class PairwiseJudging:
    """Pairwise judging in as many languages as the units have."""

    kind: ClassVar[str] = "pairwise"
    languages: Mapping[str, PairwiseProtocol]
    default: str

    @property
    def rounds(self) -> int:
        return self.languages[self.default].max_rounds

    @property
    def dimensions(self) -> list[str]:
        """The ids of the criteria, which are the same in every language."""
        return [criterion.id for criterion in self.languages[self.default].criteria]

    @property
    def ends(self) -> Ends:
        return {}

    def read(self, row: Mapping[str, Any]) -> list[UnitText]:
        pairs = read_pairs(row)
        check_language(pairs[0].language, self.languages)
        return [UnitText(pair.id, pair_text(pair)) for pair in pairs]

    def opening(self, body: str, asking: Asking) -> list[Question]:
        pair = load_pair(body)
        protocol = self.of(pair)
        visible, seats = protocol.shown(pair), protocol.seats(pair, asking.judges)
        if not seats or is_one_text(visible):
            return []
        return protocol.questions(visible, asking, seat=seats[0])

    async def judge(self, body: str, asking: Asking) -> Judgment:
        pair = await asking.aside(partial(load_pair, body), len(body))
        return await self.of(pair).judge(pair, asking)

    def unit_keys(self, body: str) -> Sequence[str]:
        """Return its id, and the one that names its candidates, as a topic with more of them or an
        import of votes has it, unless `A` would be the other one there."""
        pair = load_pair(body)
        named = named_pair_id(pair.row, (pair.first.id, pair.second.id))
        return [pair.id] if pair.second.id < pair.first.id else [pair.id, named]

    def output_key(self, output: Mapping[str, Any]) -> str | None:
        """The id of the pair."""
        return str(output["pair_id"]) if "pair_id" in output else None

    def check_elsewhere(self, body: str, text: str, finish: str) -> Checked[PairReply]:
        pair = load_pair(body)
        return self.of(pair).check_elsewhere(text, pair, finish=finish)

    def check_output(self, body: str, output: dict[str, Any]) -> Checked[PairVerdict]:
        """A settled verdict, which has no replies any more."""
        return self.of(load_pair(body)).check_verdict(output)

    def of(self, pair: Pair) -> PairwiseProtocol:
        """The protocol in the pair's own language, else the suite's."""
        return self.languages[pair.language or self.default]
