"""What a person is shown of an answer and of its grades."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

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
    Summary,
    Table,
    Text,
    about_unit,
    cells,
    labels,
)
from evenhand.kinds.weighted.form import FULL_MARKS
from evenhand.kinds.weighted.unit import load_answer
from evenhand.kinds.weighted.verdict import Grade, measure_answer
from evenhand.units import Answer

UNSURE = "\nlow confidence: list them with show --only low-confidence"


def present(answer: Answer, judgments: Sequence[Judgment]) -> ShownUnit:
    """A task, the answer, and its grades."""
    return ShownUnit(
        unit=list(_unit(answer)),
        measured=measure_answer(answer),
        about=about_unit(answer.extras, answer.meta),
        judgments=[_judgment(judgment) for judgment in judgments],
    )


def _unit(answer: Answer) -> Iterator[Block]:
    yield Text(label=Label("unit.task"), text=answer.prompt, short="Q")
    yield Text(label=Label("unit.answer"), text=answer.answer, short="A")
    if answer.rubric:
        yield Group(Label("unit.rubric"), [Text(text=answer.rubric)])


def _judgment(judgment: Judgment) -> ShownJudgment:
    if not isinstance(judgment, Verdict):
        return ShownJudgment()
    grade = judgment.value
    assert isinstance(grade, Grade)
    texts = _whole_reasons(judgment, grade)
    return ShownJudgment(
        line=_line(grade),
        brief=[_brief(grade, texts)],
        full=list(_full(grade, texts)),
        reasons=list(_reasons(grade, texts)),
    )


def _whole_reasons(judgment: Judgment, grade: Grade) -> dict[str, str]:
    """Why each dimension earns what it earns, as the judge wrote it before it was cut."""
    uncut = judgment.passes[-1].uncut if judgment.passes else {}
    return {name: uncut.get(f"reasoning.{name}", text) for name, text in grade.reasoning.items()}


def _reasons(grade: Grade, texts: Mapping[str, str]) -> Iterator[Reason]:
    if grade.critical_fail:
        yield Reason("critical fail", "0", grade.critical_fail_reason or "")
    for name, score in grade.score.items():
        yield Reason(name, _points(score), texts.get(name, ""))


def _points(number: float) -> str:
    """As a person reads it; what was rescaled has digits that say nothing."""
    return f"{number:.6g}" if isinstance(number, float) else jsontext.dump(number)


def _line(grade: Grade) -> list[Cell]:
    total = Cell(f"{_points(grade.total_score)} of {FULL_MARKS}", "strong")
    if grade.critical_fail:
        return [total, Cell(f"  critical fail: {grade.critical_fail_reason}", "bad")]
    scores = "  ".join(f"{name}{NO_BREAK}{_points(score)}" for name, score in grade.score.items())
    return [total, Cell(f"  {scores}  {grade.confidence}")]


def _brief(grade: Grade, texts: Mapping[str, str]) -> Table:
    """Every dimension with its score and the reason, and the total."""
    weights = grade.weights or {}
    rows = [
        cells(
            [
                name,
                _points(score) + (f" of {_points(weights[name])}" if name in weights else ""),
                Cell(texts[name], "dim"),
            ]
        )
        for name, score in grade.score.items()
    ]
    inferred = ", inferred" if grade.inferred_task_type else ""
    about = f"type {grade.task_type or 'not known'}{inferred}; confidence {grade.confidence}"
    if grade.critical_fail:
        about += f"; critical fail: {grade.critical_fail_reason}"
    total = ["total", f"{_points(grade.total_score)} of {FULL_MARKS}", about]
    rows.append([Cell(text, "strong") for text in total])
    return Table(head=["dimension", "score", "reason"], rows=rows)


def _full(grade: Grade, texts: Mapping[str, str]) -> Iterator[Block]:
    weights = grade.weights or {}
    if grade.critical_fail:
        reason = Label("unit.critical", {"reason": grade.critical_fail_reason or ""})
        yield Notice(reason, "bad")
    rows = [
        cells(
            [
                Named(name),
                Cell(Number(float(score)), "strong"),
                Number(float(weights[name])) if name in weights else "–",
                texts.get(name, ""),
            ]
        )
        for name, score in grade.score.items()
    ]
    total = Cell(Number(float(grade.total_score)), "strong")
    rows.append(cells([Label("unit.total"), total, str(FULL_MARKS), ""]))
    head = labels("dimension", "score", "of", "reason")
    yield Table(label=Label("unit.scores"), head=head, rows=rows)
    yield Items(items=list(_about(grade)))


def _about(grade: Grade) -> Iterator[Piece]:
    """The type of the task, and how sure the judge was."""
    kind: Piece = grade.task_type or Label("unit.type_unknown")
    inferred: list[Piece] = [" ", Label("unit.inferred")] if grade.inferred_task_type else []
    yield Joined([Label("unit.type"), ": ", kind, *inferred], "")
    sure = Gloss("confidence", grade.confidence)
    yield Joined([Label("unit.confidence"), ": ", sure], "")


def summary(verdicts: Iterable[tuple[str, Verdict]]) -> Summary:
    """Totals by model and task type: mean, range, critical fails, low confidence."""
    groups: dict[tuple[str, str], list[Grade]] = {}
    for text, judgment in verdicts:
        grade = judgment.value
        assert isinstance(grade, Grade)
        model = str(load_answer(text).meta.get("model", ""))
        groups.setdefault((model, grade.task_type or ""), []).append(grade)
    every = [grade for grades in groups.values() for grade in grades]
    unsure = sum(grade.is_unsure for grade in every)
    blocks: list[Block] = [_totals(groups)] if every else []
    counts = {"critical_fails": sum(grade.critical_fail for grade in every)}
    note: list[Block] = [Notice(UNSURE)] if unsure else []
    return Summary([*blocks, *note], counts | {"low_confidence": unsure})


def _totals(groups: dict[tuple[str, str], list[Grade]]) -> Table:
    rows: list[list[Cell]] = []
    for (model, kind), grades in sorted(groups.items()):
        totals = sorted(grade.total_score for grade in grades)
        failed = sum(grade.critical_fail for grade in grades)
        unsure = sum(grade.is_unsure for grade in grades)
        mean = f"{sum(totals) / len(totals):.1f}"
        spread = f"{totals[0]:g} to {totals[-1]:g}"
        about = [model or "-", kind or "-", str(len(totals)), mean, spread]
        rows.append(cells([*about, str(failed), str(unsure)]))
    head = ["model", "type", "n", "mean", "range", "critical", "low conf."]
    return Table(head=head, rows=rows, right=(2, 3, 5, 6))
