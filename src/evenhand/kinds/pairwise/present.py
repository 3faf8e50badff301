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
)
from evenhand.kinds.pairwise.verdict import (
    CriterionComment,
    PairPass,
    PairVerdict,
    measure_pair,
    pair_passes,
)
from evenhand.units import Candidate, Pair

_TONES: dict[str, Tone] = {
    "A+": "first",
    "B+": "second",
    "A": "first",
    "B": "second",
    "uncertain": "warn",
}
_SHORT = {"A+": "A", "B+": "B", "tie": "="}


def present(pair: Pair, judgments: Sequence[Judgment]) -> ShownUnit:
    """A pair, and each judgment with its rounds."""
    return ShownUnit(
        unit=list(_unit(pair)),
        measured=measure_pair(pair),
        about=about_unit(pair.extras, pair.meta),
        judgments=[_judgment(judgment) for judgment in judgments],
    )


def _unit(pair: Pair) -> Iterator[Block]:
    # Of votes made elsewhere, the names alone may be known.
    if pair.topic:
        yield Text(label=Label("unit.topic"), text=pair.topic, short="Q")
    sides = zip("AB", (pair.first, pair.second), strict=True)
    yield Columns([[_candidate(side, candidate)] for side, candidate in sides])


def _candidate(side: str, candidate: Candidate) -> Block:
    label = Label("unit.candidate", {"side": side})
    note = " · ".join(filter(None, (candidate.id, candidate.model)))
    if not candidate.text:
        return Items(label=label, items=[note])
    return Text(label=label, text=candidate.text, note=note, short=side)


def _judgment(judgment: Judgment) -> ShownJudgment:
    verdict = judgment.value if isinstance(judgment, Verdict) else None
    assert verdict is None or isinstance(verdict, PairVerdict)
    passes = [pass_ for pass_ in pair_passes(judgment) if pass_.winner is not None]
    return ShownJudgment(
        line=[] if verdict is None else _line(verdict),
        brief=list(_brief(verdict, passes)),
        full=list(_full(verdict, passes)),
        reasons=[] if verdict is None else list(_reasons(verdict, passes)),
    )


def _reasons(verdict: PairVerdict, passes: Sequence[PairPass]) -> Iterator[Reason]:
    """The winner with what was said of it, and every criterion with the comments of its passes."""
    yield Reason("winner", verdict.winner, verdict.notes)
    for name, mark in verdict.criteria.items():
        said = [pass_.criteria[name].comment for pass_ in passes if name in pass_.criteria]
        yield Reason(name, mark, " / ".join(dict.fromkeys(filter(None, said))))


def _line(verdict: PairVerdict) -> list[Cell]:
    names = dict(zip("AB", verdict.candidates, strict=True))
    winner = verdict.winner
    text = f"{winner} {names[winner]}" if winner in names else winner
    how = "" if verdict.settled == winner else f" {verdict.settled}"
    marks = NO_BREAK.join(_SHORT.get(mark, mark) for mark in verdict.criteria.values())
    return [Cell(text, "strong"), Cell(f"{how}  {marks}")]


def _brief(verdict: PairVerdict | None, passes: Sequence[PairPass]) -> Iterator[Block]:
    """Every pass and what the rounds come to."""
    if passes:
        yield _passes(verdict, passes)
    elif verdict is not None:
        yield Table(head=[], rows=[_line(verdict)])
    if verdict is not None and verdict.unstable:
        yield Notice("* the orders differ, so that the criterion counts as a tie", "dim")
    if verdict is not None and verdict.notes:
        yield Notice(verdict.notes, "dim")


def _passes(verdict: PairVerdict | None, passes: Sequence[PairPass]) -> Table:
    several = len({pass_.judge for pass_ in passes}) > 1
    rows: list[list[Cell]] = []
    for pass_ in passes:
        marks: list[str] = [mark or "" for mark in pass_.marks.values()]
        judge = [pass_.judge] if several else []
        flags = " ".join([*pass_.flags, _sampled(pass_)]).strip()
        opening = [str(pass_.round), pass_.order, *judge, pass_.winner or ""]
        rows.append(cells([*opening, *marks, flags]))
    if verdict is not None:
        marks = [
            f"{mark}{'*' if criterion in verdict.unstable else ''}"
            for criterion, mark in verdict.criteria.items()
        ]
        judge = [""] if several else []
        last = ["", verdict.settled, *judge, verdict.winner, *marks, ""]
        rows.append([Cell(text, "strong") for text in last])
    by = ["judge"] if several else []
    return Table(head=["round", "order", *by, "winner", *passes[0].marks, ""], rows=rows)


def _sampled(pass_: PairPass) -> str:
    """Return the sampling of a later round."""
    drawn = pass_.sampling.items() if pass_.round > 1 else ()
    return " ".join(f"{name[:4]} {value:g}" for name, value in drawn)


def _full(verdict: PairVerdict | None, passes: Sequence[PairPass]) -> Iterator[Block]:
    if verdict is not None:
        yield Notice(_outcome(verdict), _TONES.get(verdict.winner, ""))
    several = len({pass_.judge for pass_ in passes}) > 1
    for number, group in groupby(passes, key=lambda pass_: pass_.round):
        both = sorted(group, key=lambda pass_: pass_.order)
        tables = [[_pass(pass_, by_judge=several)] for pass_ in both]
        yield Section(Label("unit.round", {"round": str(number)}), [Columns(tables)])
    if verdict is None:
        return
    if verdict.criteria and len({pass_.order for pass_ in passes}) > 1:
        yield _settled_marks(verdict)
    if verdict.notes and not any(_says_why(pass_) for pass_ in passes):
        yield Text(label=Label("unit.explanation"), text=verdict.notes)


def _says_why(pass_: PairPass) -> bool:
    """Return True if an order has an explanation and no marks to show."""
    return bool(pass_.explanation and not pass_.marks)


def _outcome(verdict: PairVerdict) -> Piece:
    names = dict(zip("AB", verdict.candidates, strict=True))
    winner: list[Piece] = [Gloss("verdict", verdict.winner)]
    winner += [names[verdict.winner]] if verdict.winner in names else []
    how: list[Piece] = [Gloss("settled", verdict.settled)]
    return Joined([*winner, *([] if verdict.settled == verdict.winner else how)])


def _pass(pass_: PairPass, *, by_judge: bool) -> Block:
    """One order: marks and what the judge said to each criterion, of A and B."""
    label: list[Piece] = [
        Joined([Gloss("order", pass_.order), Gloss("verdict", pass_.winner or "")], " → ")
    ]
    if pass_.flags and pass_.said is not None:
        own_winner = Label("unit.own_winner", {"winner": Gloss("verdict", pass_.said)})
        label = [Joined([*label, Joined(["(", own_winner, ")"], "")], " ")]
    label += [pass_.judge] if by_judge else []
    rows = [_criterion(name, mark, pass_) for name, mark in pass_.marks.items()]
    if _says_why(pass_):
        return Text(label=Joined(label), text=pass_.explanation)
    if not rows:
        return Notice(Joined(label))
    meets = [Label("unit.meets", {"side": side}) for side in "AB"]
    head = [*labels("criterion", "mark"), *meets, *labels("comment")]
    return Table(label=Joined(label), head=head, rows=rows)


def _criterion(name: str, mark: str | None, pass_: PairPass) -> list[Cell]:
    comment = pass_.criteria.get(name, CriterionComment())
    meets = [
        "" if met is None else Gloss("meets", str(met).lower())
        for met in (comment.first_meets, comment.second_meets)
    ]
    mark_cell = Cell(Gloss("mark", mark or "none"), _TONES.get(mark or "", ""))
    return cells([Named(name), mark_cell, *meets, comment.comment or ""])


def _settled_marks(verdict: PairVerdict) -> Table:
    """Return the marks settled from both orders."""
    rows: list[list[Cell]] = []
    for name, mark in verdict.criteria.items():
        is_unstable = name in verdict.unstable
        more = [Label("unit.unstable")] if is_unstable else []
        tone: Tone = "warn" if is_unstable else _TONES.get(mark, "")
        rows.append([Cell(Named(name)), Cell(Joined([Gloss("mark", mark), *more]), tone)])
    head = labels("criterion", "mark")
    return Table(label=Label("unit.settled_marks"), head=head, rows=rows)
