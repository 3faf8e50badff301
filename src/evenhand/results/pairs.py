"""The verdict table of judged pairs, of every kind whose verdicts are votes between two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from evenhand.judgment import Judgment, Verdict
from evenhand.kinds.kind import Voting
from evenhand.observation import Voted
from evenhand.runs.recorded import Recorded
from evenhand.stats.votes import voted_marks, voted_winner
from evenhand.store.archive import Archive


def verdict_lines(store: Archive, recorded: Recorded) -> Iterator[str]:
    """Yield the verdict table, one line per pair: what the majority says where several judged
    it. Before a line whose candidates are others than those above it, they are named."""
    kind, criteria, names, named = recorded.kind, recorded.criteria, recorded.names, ""
    table, measure = kind.table, kind.measure
    assert table is not None, f"the kind {kind.name} has no verdict table"
    assert isinstance(measure, Voting), f"the kind {kind.name} has no votes"
    yield table.header(criteria)
    for _, group in groupby(store.judgments(recorded.scope), key=lambda row: row[0].no):
        units, texts = zip(*group, strict=True)
        judgments = [kind.read_judgment(stored.text) for stored in texts]
        votes = [
            (names[stored.judge], measure.judgment(judgment))
            for stored, judgment in zip(texts, judgments, strict=True)
        ]
        winner = voted_winner(votes)
        if winner is not None:
            sides = table.sides(*measure.unit(units[0].body).candidates)
            notes = _panel_notes(judgments, votes, winner)
            row = table.line(units[0].id, winner, voted_marks(votes, criteria), notes)
            yield row if sides == named else f"{sides}\n{row}"
            named = sides


def _panel_notes(
    judgments: Sequence[Judgment], votes: Sequence[tuple[str, Voted]], winner: str
) -> str:
    """Return the notes of the first verdict that says what the panel says; where that is uncertain
    because verdicts differ, those of each side, after what it says."""
    sides: dict[str, str] = {}
    for judgment, (_, vote) in zip(judgments, votes, strict=True):
        if isinstance(judgment, Verdict) and vote.winner is not None:
            sides.setdefault(vote.winner, str(judgment.output.get("notes", "")))
    if winner != "uncertain" or len(sides) == 1:
        return sides.get(winner, "")
    opposed = [side for side in ("A", "B") if side in sides]
    shown = opposed if len(opposed) == 2 else sides
    return " ".join(f"{side}: {sides[side]}" for side in shown if sides[side])
