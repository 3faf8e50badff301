"""An answer and its grades, as a person is shown them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from evenhand import jsontext
from evenhand.judgment import Judgment, Verdict
from evenhand.kinds.blocks import (
    NO_BREAK,
    Block,
    Cell,
    Gloss,
    Group,
    Items,
    Joined,
    Label,
    Named,
    Notice,
    Number,
    Piece,
    Reason,
    ShownJudgment,
    ShownUnit,
    Table,
    Text,
    about_unit,
    cells,
    labels,
    turn_blocks,
)
from evenhand.kinds.weighted.verdict import FULL_MARKS, Grade, measure_answer
from evenhand.units import Answer


def present(answer: Answer, judgments: Sequence[Judgment]) -> ShownUnit:
    """Return a task, the answer, and its grades."""
    unit: list[Block] = [
        Text(label=Label("unit.task"), text=answer.prompt, short="Q"),
        Text(label=Label("unit.answer"), text=answer.answer, short="A"),
    ]
    if answer.transcript is not None:
        unit = turn_blocks(answer.transcript)
    if answer.rubric:
        unit.append(Group(Label("unit.rubric"), [Text(text=answer.rubric)]))
    return ShownUnit(
        unit=unit,
        measured=measure_answer(answer),
        about=about_unit(answer.extras, answer.meta),
        judgments=list(map(_present_judgment, judgments)),
    )


def _present_judgment(judgment: Judgment) -> ShownJudgment:
    if not isinstance(judgment, Verdict):
        return ShownJudgment()
    grade = judgment.value
    assert isinstance(grade, Grade)
    # A person reads the reasons as the judge wrote them, before they were cut.
    uncut = judgment.passes[-1].uncut if judgment.passes else {}
    texts = {name: uncut.get(f"reasoning.{name}", text) for name, text in grade.reasoning.items()}
    points = {name: _format_points(score) for name, score in grade.score.items()}
    reasons = [Reason(name, points[name], texts.get(name, "")) for name in points]
    if grade.critical_fail:
        reasons.insert(0, Reason("critical fail", "0", grade.critical_fail_reason or ""))
        reason = Label("unit.critical", {"reason": grade.critical_fail_reason or ""})
        after = Cell(Joined(["  ", reason], ""), "bad")
    else:
        scores = "  ".join(f"{name}{NO_BREAK}{score}" for name, score in points.items())
        after = Cell(Joined([f"  {scores}", Gloss("confidence", grade.confidence)], "  "))
    total = Number(float(grade.total_score))
    of_marks = Label("unit.points", {"points": total, "of": str(FULL_MARKS)})
    return ShownJudgment(
        line=[Cell(of_marks, "strong"), after],
        blocks=list(_present_grade(grade, texts)),
        reasons=reasons,
    )


def _format_points(number: float) -> str:
    """Return points as a person reads them; what was rescaled has digits that say nothing."""
    return f"{number:.6g}" if isinstance(number, float) else jsontext.dump(number)


def _present_grade(grade: Grade, texts: Mapping[str, str]) -> Iterator[Block]:
    """Yield every dimension with its score and the reason, the total, type and confidence."""
    if grade.critical_fail:
        reason = Label("unit.critical", {"reason": grade.critical_fail_reason or ""})
        yield Notice(reason, "bad")
    rows: list[list[Cell]] = []
    for name, score in grade.score.items():
        most = Number(float(grade.weights[name])) if grade.weights else "–"
        points = Cell(Number(float(score)), "strong")
        rows.append(cells([Named(name), points, most, texts.get(name, "")]))
    total = Cell(Number(float(grade.total_score)), "strong")
    rows.append(cells([Label("unit.total"), total, str(FULL_MARKS), ""]))
    head = labels("dimension", "score", "of", "reason")
    yield Table(label=Label("unit.scores"), head=head, rows=rows)
    of_type = Gloss("task_type", grade.task_type) if grade.task_type else Label("unit.type_unknown")
    kind: list[Piece] = [Label("unit.type"), ": ", of_type]
    kind += [" ", Label("unit.inferred")] if grade.inferred_task_type else []
    sure: list[Piece] = [Label("unit.confidence"), ": ", Gloss("confidence", grade.confidence)]
    yield Items(items=[Joined(kind, ""), Joined(sure, "")])
