"""A first suite that makes the answers it judges."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evenhand.data.questions import read_questions
from evenhand.errors import UsageError
from evenhand.examples import MadeAnswers, suite_text
from evenhand.files.drafts import (
    NO_FIELD,
    ComparedField,
    Draft,
    draft_rubric,
    language_of,
    own_rubric_notes,
    protocol_with_bands,
    rubric_lines,
    suite_name,
    variant_lines,
)
from evenhand.files.ready_rubrics import needs_of, ready_rubrics
from evenhand.folders import is_within, read_text
from evenhand.kinds import DEFAULT_KIND, KINDS
from evenhand.kinds.answer.templates import QUESTION, ROW_KEYS, AnswerTemplate
from evenhand.kinds.rows import EXTRAS, PlacedRow
from evenhand.words import Sentence, few


def draft_answers(
    questions: Path,
    prompts: Sequence[Path],
    models: Sequence[str],
    folder: Path,
    *,
    protocol: str | None,
    language: str | None,
    judge: str,
    rubrics: Sequence[str],
) -> Draft:
    """Return a suite in a folder that makes the answers it judges; raise UsageError or DataError
    where its questions cannot be read, or do not fill its prompts."""
    protocol = protocol_with_bands(protocol) if rubrics else protocol or DEFAULT_KIND
    rows = read_questions(questions)
    _fill_prompts(prompts, rows[0])
    columns = {name: cell for name, cell in rows[0].value.items() if name not in ROW_KEYS}
    language = language or language_of(str(row.value[QUESTION]) for row in rows)
    ready = ready_rubrics(rubrics, language)
    rubric = draft_rubric(protocol, language, folder, ready, [questions.name])
    variants = NO_FIELD
    if not KINDS[protocol].table_form.gather:
        stems = [path.stem for path in prompts]
        compared = (ComparedField("prompt_variant", stems), ComparedField("model", models))
        variants = next((each for each in compared if len(each.values) > 1), NO_FIELD)
    needs = needs_of(ready)
    suite = suite_text(
        name=suite_name([questions]),
        protocol=protocol,
        language=language,
        data=[],
        rubric=rubric.file,
        judge=judge,
        by=variants.field,
        baseline=variants.values[0] if variants.field else None,
        use=[name for name in EXTRAS if name in (*columns, *needs)],
        answers=MadeAnswers(
            name_in(questions, folder), [name_in(path, folder) for path in prompts], models
        ),
    )
    lacking = [name for name in needs if name not in columns]
    about = {"protocol": protocol, "language": language}
    return Draft(
        files={"evenhand.toml": suite} | ({rubric.file: rubric.text} if rubric.file else {}),
        language=language,
        understood=Sentence(
            "files.understood", names=few([questions.name], 1), n=len(rows), **about
        ),
        fields=[
            (Sentence("files.columns"), ", ".join(columns)),
            *variant_lines(variants),
            *rubric_lines(ready),
        ],
        remarks=[
            *(Sentence("files.rubric_lacks", column=name) for name in lacking),
            *own_rubric_notes(rubric),
        ],
        first_rubric=rubric.file,
    )


def name_in(path: Path, folder: Path) -> str:
    """Return the name that a file has in a folder, to which one from elsewhere is copied."""
    if is_within(path, folder):
        return path.resolve().relative_to(folder.resolve()).as_posix()
    return path.name


def _fill_prompts(prompts: Sequence[Path], row: PlacedRow) -> None:
    """Raise UsageError for a prompt with a placeholder that no column of a row fills."""
    for path in prompts:
        try:
            AnswerTemplate.parse(read_text(path)).fill_row(row.value)
        except ValueError as error:
            raise UsageError(error.args[0], where=str(path)) from None
