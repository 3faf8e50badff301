"""Which column of a table holds what, by the usual names of columns in four languages.

A field that stands there under its own name is left alone. Where two columns would fit a field that
is needed, nothing is guessed: the error lists all columns. Several columns of answers are a column
per model or version (`question, gpt-4o, claude`; `v1_answer, v2_answer`) or, where they are told
apart by 1 and 2 or A and B, a row per pair.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from evenhand.data.files import LISTED
from evenhand.errors import DataError
from evenhand.kinds.masking import family
from evenhand.kinds.rows import EXTRAS, TableForm
from evenhand.units import META_FIELDS
from evenhand.words import Sentence, few

_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_TOPICS = frozenset({"topic", "тема", "主题", "トピック", "お題"})
"""A question beats a topic: where both are there, the topic is a label."""
_ABOUT_TEXT = frozenset(
    {"id", "ids", "no", "number", "index", "count", "len", "length", "tokens", "type", "lang"}
    | {"language", "url", "date", "time", "model", "score", "rating", "grade", "label", "correct"}
)
"""Last words of columns that tell something about an answer and are none."""
_PAIRS = (("1", "2"), ("a", "b"))
_FLAT = {
    "meta.model": "model",
    "meta.prompt_variant": "variant",
    "meta.question_id": "question_id",
    "meta.run_id": "run_id",
    "meta.eval_set_variant": "eval_set",
    "id": "ident",
}
"""Fields of a table without a `meta` of its own, and where their usual names are listed."""
_MORE = (*EXTRAS, "rubric", "criteria", "language", "task_name")


@cache
def _usual(table: str = "data") -> dict[str, tuple[str, ...]]:
    text = files(__package__).joinpath("column_names.toml").read_text("utf-8")
    return {key: tuple(map(fold, names)) for key, names in tomllib.loads(text)[table].items()}


def usual_names(*keys: str) -> tuple[str, ...]:
    """Return what columns of these kinds are usually called, folded, the most usual first."""
    return tuple(name for key in keys for name in _usual()[key])


def judgment_columns(names: Iterable[str], wanted: Iterable[str]) -> dict[str, str]:
    """Return by field of a table of judgments the column that goes by its most usual name, of those
    wanted that have one."""
    there = {fold(name): name for name in names}
    found = {
        field: [there[n] for n in (fold(field), *_usual("judgments")[field]) if n in there]
        for field in wanted
    }
    return {field: columns[0] for field, columns in found.items() if columns}


def fold(name: str) -> str:
    """Return a column's name as it is compared."""
    wide = unicodedata.normalize("NFKC", name).casefold()
    return re.sub(r"[\s_\-]+", "_", wide.strip(" \t\ufeff:：?？*")).strip("_")


@cache
def _all_names() -> frozenset[str]:
    return frozenset(usual_names(*_usual()))


def is_usual_name(name: str) -> bool:
    """Return True if columns are usually called so."""
    return fold(name) in _all_names()


class AnswerColumn(NamedTuple):
    """One of several columns of answers: the name that tells it from the others, and the column
    that says whose answers these are, where there is one."""

    column: str
    label: str
    author: str = ""


class Recognition(NamedTuple):
    """The columns of a table, understood."""

    columns: Mapping[str, str]
    """Field to column, for fields that do not stand there under their own name."""
    spare: Sequence[str]
    """Columns of a flat table that no field takes: they are kept as meta."""
    is_long: bool
    """True if the rows of one question are to be gathered."""
    is_flat: bool
    """True if the table has no `meta` of its own."""
    answers: Sequence[AnswerColumn] = ()
    """Columns that each hold an answer, where there are several."""
    is_pair: bool = False
    """True if such a row is a pair."""


def fields_of(columns: Mapping[str, str], form: TableForm) -> dict[str, str]:
    """Return the columns that somebody named, by the fields of a kind: `model` is `meta.model`,
    `question` and `answer` are what the kind calls them."""
    names = {name: f"meta.{name}" for name in META_FIELDS}
    names |= {"variant": "meta.prompt_variant", "question": form.question, "answer": form.answer}
    # A field that was named itself is not filled from a second column.
    aliases = {name: field for name, field in names.items() if field not in columns}
    return {
        name if name in form.fields else aliases.get(name, name): column
        for name, column in columns.items()
    }


def find_answers(names: Iterable[str]) -> list[AnswerColumn]:
    """Return the columns that each hold an answer, if there are several."""
    folded = {fold(name): name for name in names}
    labels = {name: _answer_label(name) for name in folded.values()}
    found = {name: label for name, label in labels.items() if label}
    if len(found) < 2 and {"a", "b"} <= folded.keys():
        found = {folded[label]: label for label in ("a", "b")}
    nouns = usual_names("author_nouns")
    authors = {
        label: [folded[f"{n}_{fold(label)}"] for n in nouns if f"{n}_{fold(label)}" in folded]
        for label in found.values()
    }
    answers = [AnswerColumn(name, label, *authors[label][:1]) for name, label in found.items()]
    return answers if len(answers) > 1 else []


def _answer_label(name: str) -> str:
    """Return whose answers a column holds, by its name; empty where it holds none."""
    whole = fold(name)
    if whole in _all_names() or whole.split("_")[-1] in _ABOUT_TEXT:
        return ""
    for noun in usual_names("answer_nouns"):
        pattern = rf"^{noun}[\s_\-]+|[\s_\-]+{noun}$"
        if _CJK.search(noun):
            pattern = rf"^{noun}[\s_\-]*|[\s_\-のの的]*{noun}$"
        label = re.sub(pattern, "", name.strip(), flags=re.IGNORECASE).strip(" _-:()（）")
        if label and label != name.strip():
            return label
    return name if family(name) else ""


def recognise(
    names: Sequence[str],
    mapped: Mapping[str, str],
    form: TableForm,
    where: str,
    empty: Collection[str] = (),
) -> Recognition:
    """Return what the columns of a table hold; raises DataError. `mapped` are the fields that the
    user has named, each with its column, or an empty name where it is a constant; `empty` are the
    columns without a value."""
    is_flat = "meta" not in names
    fields = {*names, *(field.partition(".")[0] for field in mapped)}
    is_long = form.gather is not None and form.several not in fields
    roles = {form.question: "question"}
    roles |= {form.answer: "answer"} if form.gather is None or is_long else {}
    roles |= (_FLAT if is_flat else {}) | {name: name for name in _MORE if name in form.fields}
    claimed = set(mapped.values())
    columns: dict[str, str] = {}
    answers: list[AnswerColumn] = []
    for field, key in roles.items():
        if field in mapped:
            continue
        free = [name for name in names if name not in claimed]
        fits = _fitting(field, usual_names(key), free, empty, is_long=is_long)
        if len(fits) > 1 and field in (form.question, form.answer, "meta.model"):
            raise _which(field, fits, names, where)
        if field == form.answer and not fits and is_flat:
            answers = find_answers(name for name in free if name not in empty)
            claimed |= {name for each in answers for name in (each.column, each.author)}
        if len(fits) == 1:
            claimed.add(fits[0])
            columns |= {field: fits[0]} if fits[0] != field else {}
    is_pair = bool(form.several) and tuple(fold(each.label) for each in answers) in _PAIRS
    used = {*form.fields, *claimed, *(name.partition(".")[0] for name in claimed)}
    spare = [name for name in names if name not in used] if is_flat else []
    return Recognition(columns, spare, is_long and not is_pair, is_flat, answers, is_pair)


def _fitting(
    field: str, usual: Sequence[str], free: Sequence[str], empty: Collection[str], *, is_long: bool
) -> list[str]:
    """Return the columns that may hold a field: the one of its own name alone. A column that holds
    nothing stands back behind one that does."""
    plain = field.removeprefix("meta.")
    fits = [name for name in free if fold(name) in (*usual, fold(plain))]
    fits = [name for name in fits if name not in empty] or fits
    if is_long or plain not in _TOPICS:
        fits = [name for name in fits if fold(name) not in _TOPICS] or fits
    if field in EXTRAS:
        # Nobody is asked which context is meant: the most usual name is taken.
        return sorted(fits, key=lambda name: usual.index(fold(name)))[:1]
    own = [name for name in fits if name == plain] or [
        name for name in fits if fold(name) == fold(plain)
    ]
    return own if len(own) == 1 else fits


def _which(field: str, fits: Sequence[str], names: Sequence[str], where: str) -> DataError:
    listed = {"fits": few(fits, LISTED), "names": few(names, LISTED)}
    return DataError(
        Sentence("data.several_fit", field=field, first=fits[0], **listed), where=where
    )
