"""What the answers of a run took, where its suite made them: money and time of each variant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from evenhand.engine.prices import dollars
from evenhand.jsontext import as_text
from evenhand.kinds.answer.kind import VARIANT
from evenhand.runs.made_answers import StoredAnswer, read_made_answers
from evenhand.runs.recorded import Recorded, recorded_run
from evenhand.stats.expense import EXPENSES, Expense, compare_expenses
from evenhand.stats.variants import CANDIDATE
from evenhand.store.archive import Archive
from evenhand.units import joined_id
from evenhand.words import Sentence, few

SHOWN = 5

_AUTHORS = ("model", VARIANT)


def answer_expenses(
    store: Archive, run: Recorded, by: Sequence[str], baseline: str, level: float = 0.95
) -> tuple[Expense, ...]:
    """Return what the answers of each variant took; nothing where the run judged answers that were
    made elsewhere, or is compared by something else than who answered."""
    fields = [name.removeprefix("meta.") for name in by if name != CANDIDATE]
    answers = _answers_of(store, run)
    if answers is None or not set(fields) <= set(_AUTHORS):
        return ()
    found = list(_read_answers(store, answers))
    if run.has_votes:
        several = [name for name in _AUTHORS if len({author[name] for author, *_ in found}) > 1]
        fields = several or list(_AUTHORS)
    taken: dict[str, dict[str, dict[str, list[float]]]] = {name: {} for name in EXPENSES}
    for author, question, values in found:
        parts = [author[name] for name in fields]
        name = joined_id(parts) if run.has_votes and parts[1:] else " / ".join(parts)
        for measure, value in zip(EXPENSES, values, strict=True):
            if value is not None:
                taken[measure].setdefault(name, {}).setdefault(question, []).append(value)
    return tuple(
        expense
        for measure, each in taken.items()
        if each and any(value for answers in each.values() for value in answers.values())
        for expense in compare_expenses(measure, each, baseline, level)
    )


def count_unanswered(store: Archive, run: Recorded, by: Sequence[str]) -> dict[str, int]:
    """Return how many answers could not be made, or were left out because they are not complete, by
    variant; those that no variant can be named for under the empty name."""
    answers = _answers_of(store, run)
    if answers is None:
        return {}
    fields = [name.removeprefix("meta.") for name in by]
    fields = fields if set(fields) <= set(_AUTHORS) else []
    leaves_out = run.manifest.leaves_out_cut
    failed = (
        _author_of(each, answers)
        for each in read_made_answers(store, answers.id)
        if each.made is None or (leaves_out and each.made.finish != "stop")
    )
    return dict(Counter(" / ".join(author[name] for name in fields) for author in failed))


def unanswered_notes(store: Archive, run: Recorded, by: Sequence[str]) -> list[str]:
    """Return the note on answers that are in no figure, if there are any."""
    counts = count_unanswered(store, run, by)
    named = [f"{name} ({n})" if name else str(n) for name, n in counts.items()]
    return [Sentence("notes.unanswered", variants=few(named, SHOWN))] if named else []


def _answers_of(store: Archive, run: Recorded) -> Recorded | None:
    if not run.manifest.answers:
        return None
    row = next((row for row in store.runs() if row.id == run.manifest.answers), None)
    return None if row is None else recorded_run(store, row)


def _read_answers(
    store: Archive, answers: Recorded
) -> Iterator[tuple[dict[str, str], str, tuple[float | None, float | None]]]:
    """Yield of each answer who gave it, the question, its price and its seconds."""
    for each in read_made_answers(store, answers.id):
        if each.call is not None and each.made is not None:
            price = None if each.call.cost is None else dollars(each.call.cost)
            taken = (price, each.call.reply.seconds)
            yield _author_of(each, answers), as_text(each.asked.row), taken


def _author_of(answer: StoredAnswer, answers: Recorded) -> dict[str, str]:
    return {"model": answers.names[answer.stored.judge], VARIANT: answer.asked.variant}
