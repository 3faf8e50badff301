"""A pair and the judgments about it, as a person is shown them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from evenhand.judgment import Judgment, Verdict
from evenhand.kinds.blocks import (
    NO_BREAK,
    Block,
    Cell,
    Columns,
    Gloss,
    Items,
    Joined,
    Label,
    Named,
    Notice,
    Piece,
    Reason,
    Section,
    ShownJudgment,
    ShownUnit,
    Table,
    Text,
    Tone,
    about_unit,
    cells,
    labels,
    turn_blocks,
    winner_piece,
)
from evenhand.kinds.pairwise.verdict import (
    CriterionReply,
    PairPass,
    PairVerdict,
    measure_pair,
    pair_passes,
)
from evenhand.transcript import count_shared_turns
from evenhand.units import Candidate, Pair

_TONES: dict[str | None, Tone] = {"A+": "first", "B+": "second", "A": "first", "B": "second"}
_TONES["uncertain"] = "warn"
Names = tuple[str, str]
"""The candidates: a reader is told what the judge is not."""
_SHORT = {"A+": "A", "B+": "B", "tie": "="}


def present(pair: Pair, judgments: Sequence[Judgment]) -> ShownUnit:
    """Return a pair, and each judgment with its rounds."""
    topic = Text(label=Label("unit.topic"), text=pair.topic, short="Q")
    # Of votes made elsewhere, the names alone may be known.
    unit: list[Block] = [*([topic] if pair.topic else [])]
    sides = {"A": pair.first, "B": pair.second}
    turns = [each.transcript for each in sides.values() if each.transcript]
    shared = count_shared_turns(turns) if turns else 0
    if shared:
        unit = turn_blocks(turns[0], after=shared + 1)
    unit.append(Columns([_present_candidate(*side, shared) for side in sides.items()]))
    return ShownUnit(
        unit=unit,
        measured=measure_pair(pair),
        about=about_unit(pair.extras, pair.meta),
        judgments=[_present_judgment(each, (pair.first.id, pair.second.id)) for each in judgments],
    )


def _present_candidate(side: str, candidate: Candidate, shared: int) -> list[Block]:
    """Return the name and the text of a candidate, or its turns after those that it shares."""
    if candidate.text and candidate.transcript is None:
        return [Text(label=candidate.id, text=candidate.text, note=candidate.model, short=side)]
    name = Joined([candidate.id, candidate.model])
    turns = candidate.transcript and turn_blocks(candidate.transcript, side, first=shared + 1)
    return [Items(label=Label("unit.candidate"), items=[name]), *(turns or ())]


def _present_judgment(judgment: Judgment, names: Names) -> ShownJudgment:
    passes = [pass_ for pass_ in pair_passes(judgment) if pass_.winner is not None]
    rounds = list(_present_rounds(passes, names))
    if not isinstance(judgment, Verdict):
        return ShownJudgment(blocks=rounds)
    verdict = judgment.value
    assert isinstance(verdict, PairVerdict)
    name = dict(zip("AB", verdict.candidates, strict=True)).get(verdict.winner, "")
    how = "" if verdict.settled == verdict.winner else verdict.settled
    outcome = [winner_piece(verdict.winner, names)]
    outcome += [Gloss("settled", how)] if how else []
    marks = NO_BREAK.join(_SHORT[mark] for mark in verdict.criteria.values())
    return ShownJudgment(
        line=[
            Cell(f"{verdict.winner} {name}".strip(), "strong"),
            Cell(f"{' ' if how else ''}{how}  {marks}"),
        ],
        blocks=[
            Notice(Joined(outcome), _TONES.get(verdict.winner, "")),
            *rounds,
            *_present_marks(verdict, passes, names),
        ],
        reasons=list(_give_reasons(verdict, passes)),
    )


def _give_reasons(verdict: PairVerdict, passes: Sequence[PairPass]) -> Iterator[Reason]:
    """Yield the winner with its notes, and every criterion with the comments of its passes."""
    yield Reason("winner", verdict.winner, verdict.notes)
    for name, mark in verdict.criteria.items():
        said = [pass_.criteria[name].comment for pass_ in passes if name in pass_.criteria]
        yield Reason(name, mark, " / ".join(dict.fromkeys(filter(None, said))))


def _present_rounds(passes: Sequence[PairPass], names: Names) -> Iterator[Block]:
    """Yield every round, its two orders side by side."""
    by_judge = len({pass_.judge for pass_ in passes}) > 1
    for number, group in groupby(passes, key=lambda pass_: pass_.round):
        both = sorted(group, key=lambda pass_: pass_.order)
        tables = [[_present_pass(pass_, names, by_judge=by_judge)] for pass_ in both]
        yield Section(Label("unit.round", {"round": str(number)}), [Columns(tables)])


def _present_pass(pass_: PairPass, names: Names, *, by_judge: bool) -> Block:
    """Return one order: marks and the judge's comments on each criterion."""
    first = Label("unit.shown_first", {"name": names[pass_.order == "21"]})
    outcome: Piece = Joined([first, winner_piece(str(pass_.winner), names)], " → ")
    if pass_.flags and pass_.said is not None:
        said = dict(zip("AB", names, strict=True)).get(pass_.said)
        named = said or Gloss("verdict", pass_.said)
        own_winner = Label("unit.own_winner", {"winner": named})
        outcome = Joined([outcome, " (", own_winner, ")"], "")
    label = Joined([outcome, pass_.judge if by_judge else ""])
    if not pass_.criteria:
        text = pass_.explanation
        return Text(label=label, text=text) if text else Notice(label)
    meets = [Label("unit.meets", {"name": name}) for name in names]
    head = [*labels("criterion", "mark"), *meets, *labels("comment")]
    rows = [_present_criterion(name, reply, names) for name, reply in pass_.criteria.items()]
    return Table(label=label, head=head, rows=rows)


def _present_criterion(name: str, reply: CriterionReply, names: Names) -> list[Cell]:
    meets = [
        "" if met is None else Gloss("meets", str(met).lower())
        for met in (reply.first_meets, reply.second_meets)
    ]
    mark = Cell(_name_mark(reply.mark, names), _TONES.get(reply.mark, ""))
    return cells([Named(name), mark, *meets, reply.comment or ""])


def _name_mark(mark: str | None, names: Names) -> Piece:
    """Return who a criterion goes to, by name."""
    if mark in ("A+", "B+"):
        return f"{names[mark == 'B+']}{NO_BREAK}+"
    return Gloss("mark", mark or "none")


def _present_marks(
    verdict: PairVerdict, passes: Sequence[PairPass], names: Names
) -> Iterator[Block]:
    """Yield the marks settled from both orders, and notes that no order shows."""
    if verdict.criteria and len({pass_.order for pass_ in passes}) > 1:
        rows: list[list[Cell]] = []
        for name, mark in verdict.criteria.items():
            is_unstable = name in verdict.unstable
            more = [Label("unit.unstable")] if is_unstable else []
            tone: Tone = "warn" if is_unstable else _TONES.get(mark, "")
            rows.append(cells([Named(name), Cell(Joined([_name_mark(mark, names), *more]), tone)]))
        head = labels("criterion", "mark")
        yield Table(label=Label("unit.settled_marks"), head=head, rows=rows)
    if verdict.notes and not any(pass_.explanation and not pass_.criteria for pass_ in passes):
        yield Text(label=Label("unit.explanation"), text=verdict.notes)
