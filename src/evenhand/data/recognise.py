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

from evenhand.errors import DataError, nearest, quoted
from evenhand.kinds.masking import family
from evenhand.kinds.rows import EXTRAS, TableForm
from evenhand.units import META_FIELDS

COLUMNS_LISTED = 20
_NEAR = 0.8
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_A_TEXT = re.compile(
    r"_(?:text|content|body|string)$|^(?:текст|содержание)_|(?:文本|内容|原文|全文|本文|テキスト|文)$"
)
"""What says only that a column holds a text: `question text`, `Текст вопроса`, 回答文."""
_REMARK = re.compile(r"_?\([^()]*\)$")
_NUMBER = re.compile(r"(?:_|(?<=[\u0400-\u04ff\u3040-\u30ff\u3400-\u9fff]))(?:[a-z]|\d{1,2})$")
"""What tells one of several alike from the others: `answer_2`, 回答A（GPT）."""
_GENITIVES = {
    "вопроса": "вопрос",
    "ответа": "ответ",
    "запроса": "запрос",
    "промпта": "промпт",
    "задания": "задание",
}
_TOPICS = frozenset({"topic", "тема", "主题", "トピック", "お題"})
"""A question beats a topic: where both are there, the topic is a label."""
_ABOUT_TEXT = frozenset(
    {"id", "ids", "no", "number", "index", "count", "len", "length", "tokens", "type", "lang"}
    | {"language", "url", "date", "time", "model", "score", "rating", "grade", "label", "correct"}
)
"""Last words of columns that tell something about an answer and are none."""
_PAIRS = (("1", "2"), ("a", "b"))


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
    found: dict[str, str] = {}
    for field in wanted:
        usual = (
            there[name] for name in (fold(field), *_usual("judgments")[field]) if name in there
        )
        if column := next(usual, ""):
            found[field] = column
    return found


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


def _is_longer_form(name: str, names: Collection[str]) -> bool:
    """Return True if a column is called by a usual name with more beside it: `customer question`,
    `Запрос пользователя`, 用户问题, 回答A. A usual name of something else is no longer form of
    it."""
    whole = fold(name)
    bare = _nominative(_A_TEXT.sub("", _NUMBER.sub("", _REMARK.sub("", whole))))
    if bare in _all_names():
        return bare != whole and bare in names
    if _CJK.search(bare):
        return any(bare.endswith(usual) for usual in names if _CJK.search(usual))
    words = bare.split("_")
    # English puts the noun last, Russian first.
    return words[-1] in names if bare.isascii() else words[0] in names


def _nominative(name: str) -> str:
    """Return a Russian name with its first word as it would stand alone."""
    first, *rest = name.split("_")
    return "_".join([_GENITIVES.get(first, first), *rest])


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
    spare: tuple[str, ...]
    """Columns of a flat table that no field takes: they are kept as meta."""
    remarks: tuple[str, ...]
    """Columns that somebody may have meant otherwise."""
    is_long: bool
    """True if the rows of one question are to be gathered."""
    is_flat: bool
    """True if the table has no `meta` of its own."""
    answers: tuple[AnswerColumn, ...] = ()
    """Columns that each hold an answer, where there are several."""
    is_pair: bool = False
    """True if such a row is a pair."""

    @property
    def line(self) -> str:
        """Return the guessed columns as a line for people; empty where nothing was guessed."""
        parts = [f"{field} = {quoted(name)}" for field, name in self.columns.items()]
        if self.answers:
            listed = ", ".join(quoted(each.column) for each in self.answers)
            parts.append(f"{'a row per pair' if self.is_pair else 'an answer each'}: {listed}")
        return ", ".join(parts)

    @property
    def author_field(self) -> str:
        """Return the field that tells the answers of one row apart."""
        named = any(each.author or family(each.label) for each in self.answers)
        return "model" if named else "prompt_variant"


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


def find_answers(names: Iterable[str]) -> tuple[AnswerColumn, ...]:
    """Return the columns that each hold an answer, if there are several."""
    columns = list(names)
    folded = {fold(name): name for name in columns}
    labels = {name: _answer_label(name) for name in columns}
    found = [(name, label) for name, label in labels.items() if label]
    if len(found) < 2 and {"a", "b"} <= folded.keys():
        found = [(folded[label], label) for label in ("a", "b")]
    if len(found) < 2:
        return ()
    authors = {
        label: folded.get(f"{noun}_{fold(label)}", "")
        for _, label in found
        for noun in reversed(usual_names("author_nouns"))
        if f"{noun}_{fold(label)}" in folded
    }
    return tuple(AnswerColumn(name, label, authors.get(label, "")) for name, label in found)


def _answer_label(name: str) -> str:
    """Return whose answers a column holds, by its name; empty where it holds none."""
    whole, nouns = fold(name), usual_names("answer_nouns")
    if whole in _all_names() or whole.split("_")[-1] in _ABOUT_TEXT:
        return ""
    for noun in nouns:
        if _CJK.search(noun):
            pattern = rf"^{noun}[\s_\-]*|[\s_\-のの的]*{noun}$"
        else:
            pattern = rf"^{noun}[\s_\-]+|[\s_\-]+{noun}$"
        label = re.sub(pattern, "", name.strip(), flags=re.IGNORECASE).strip(" _-:()（）")
        if label and label != name.strip():
            return label
    return name if family(name) else ""


class _Role(NamedTuple):
    """A field, and what the column that holds it is usually called."""

    field: str
    names: tuple[str, ...]
    is_needed: bool = False
    """True if a second column that would fit is an error."""


def recognise(
    names: Sequence[str],
    mapped: Mapping[str, str],
    form: TableForm,
    where: str,
    *,
    inner: Sequence[str] = (),
    empty: Collection[str] = (),
) -> Recognition:
    """Return what the columns of a table hold; raises DataError. `mapped` are the fields that the
    user has named, each with its column, or an empty name where it is a constant; `inner` are
    dotted names inside objects, `empty` the columns without a value."""
    is_flat = "meta" not in names
    fields = {*names, *(field.partition(".")[0] for field in mapped)}
    is_long = form.gather is not None and form.several not in fields
    claimed = set(mapped.values())
    columns: dict[str, str] = {}
    roles = _roles(form, is_flat=is_flat, is_long=is_long)
    answers: tuple[AnswerColumn, ...] = ()
    for role in roles:
        is_extra = role.field in EXTRAS
        is_strict = is_extra or (is_long and role.is_needed)
        fits = _fitting(role, names, mapped, claimed, is_strict=is_strict)
        # Nobody is asked which context is meant: one is taken, and the others are named.
        fits = _first_filled(role, fits, empty) if is_extra else fits
        if role.field == form.answer and not fits and role.field not in mapped and is_flat:
            answers = find_answers(n for n in names if n not in claimed and n not in empty)
            claimed.update(each.column for each in answers)
            claimed.update(each.author for each in answers)
        if len(fits) == 1 and fits[0] != role.field:
            columns[role.field] = fits[0]
        elif len(fits) > 1 and role.is_needed:
            raise _which(role.field, fits, names, where)
        claimed.update(fits if len(fits) == 1 else ())
    labels = tuple(fold(each.label) for each in answers)
    is_pair = bool(form.several) and labels in _PAIRS
    used = {*form.fields, *claimed, *(name.partition(".")[0] for name in claimed)}
    spare = [name for name in names if name not in used]
    # Beside a `meta` of its own a row is the contract's, and its other columns are nobody's texts.
    guesses = _near(spare, _meanings(roles if is_flat else (), form), mapped)
    whole = {*form.fields, *claimed} - {"meta"}
    within = [name for name in inner if name.partition(".")[0] not in whole]
    guesses |= _extras_among(name for name in (*spare, *within) if name not in {*claimed, *empty})
    return Recognition(
        columns=columns,
        spare=tuple(spare) if is_flat else (),
        remarks=_remarks(guesses, names, {**mapped, **columns}),
        is_long=is_long and not is_pair,
        is_flat=is_flat,
        answers=answers,
        is_pair=is_pair,
    )


def _roles(form: TableForm, *, is_flat: bool, is_long: bool) -> list[_Role]:
    roles = [_Role(form.question, usual_names("question"), is_needed=True)]
    if form.gather is None or is_long:
        roles.append(_Role(form.answer, usual_names("answer"), is_needed=True))
    if is_flat:
        roles += [
            _Role("meta.model", usual_names("model"), is_needed=True),
            _Role("meta.prompt_variant", usual_names("variant")),
            _Role("meta.question_id", usual_names("question_id")),
            _Role("meta.run_id", usual_names("run_id")),
            _Role("meta.eval_set_variant", usual_names("eval_set")),
            _Role("id", usual_names("ident")),
        ]
    more = ("reference", "context", "messages", "rubric", "language", "task_name")
    return roles + [_Role(field, usual_names(field)) for field in more if field in form.fields]


def _fitting(
    role: _Role,
    names: Sequence[str],
    mapped: Mapping[str, str],
    claimed: Collection[str],
    *,
    is_strict: bool,
) -> list[str]:
    """Return the columns that may hold a field: the one of its own name alone, unless strict."""
    if role.field in mapped:
        return []
    plain = role.field.removeprefix("meta.")
    free = [name for name in names if name not in claimed]
    if plain in free and not is_strict:
        return [plain]
    exact = [name for name in free if fold(name) == fold(plain)]
    if len(exact) == 1 and not is_strict:
        return exact
    usual = {*role.names, fold(plain)}
    fits = [name for name in free if fold(name) in usual]
    if any(fold(name) not in _TOPICS for name in fits):
        fits = [name for name in fits if fold(name) not in _TOPICS]
    if fits or not role.is_needed:
        return fits
    # Only where one alone is a longer form of a usual name: what two may be is not guessed at.
    longer = [name for name in free if _is_longer_form(name, usual)]
    return longer if len(longer) == 1 else []


def _first_filled(role: _Role, fits: Sequence[str], empty: Collection[str]) -> list[str]:
    """Return the column with the most usual name of those that hold anything."""
    ranked = sorted(fits, key=lambda name: role.names.index(fold(name)))
    return ([name for name in ranked if name not in empty] or ranked)[:1]


def _which(field: str, fits: Sequence[str], names: Sequence[str], where: str) -> DataError:
    listed = ", ".join(quoted(name) for name in names[:COLUMNS_LISTED])
    more = f" and {len(names) - COLUMNS_LISTED} more" if len(names) > COLUMNS_LISTED else ""
    return DataError(
        f"{' and '.join(quoted(name) for name in fits)} would each fit as {quoted(field)}",
        where=where,
        advice=f'Say which: [columns] {field} = "{fits[0]}" in the suite, or init --map'
        f" {field}={fits[0]}  (the columns: {listed}{more})",
    )


def _meanings(roles: Sequence[_Role], form: TableForm) -> dict[str, str]:
    """Return by what a column may be called which field it is: the fields themselves, and the usual
    names of the question and the answer."""
    texts = (form.question, form.answer)
    usual = {name: role.field for role in roles if role.field in texts for name in role.names}
    return usual | {field: field for field in form.fields if field not in ("meta", "id")}


_Guess = tuple[str, str]
"""What a column may be called, and the field of that name."""


def _near(
    spare: Sequence[str], meanings: Mapping[str, str], mapped: Collection[str]
) -> dict[str, _Guess]:
    """Return the columns that are called nearly like a field, or as one is usually called; none of
    a field that the user has named a column for."""
    near = {name: nearest(fold(name), meanings, cutoff=_NEAR) for name in spare}
    return {
        name: (guess, meanings[guess])
        for name, guess in near.items()
        if guess is not None and meanings[guess] not in mapped
    }


def _extras_among(names: Iterable[str]) -> dict[str, _Guess]:
    """Return the columns, also inside objects, that hold what a judge may be shown."""
    fields = {name: field for field in EXTRAS for name in usual_names(field)}
    plain = {name: fold(name.rpartition(".")[2]) for name in names}
    return {name: (fields[last],) * 2 for name, last in plain.items() if last in fields}


def _remarks(
    guesses: Mapping[str, _Guess], names: Sequence[str], columns: Mapping[str, str]
) -> tuple[str, ...]:
    """Return a line for each column that is not used and may have been meant."""
    remarks: list[str] = []
    for name, (near, field) in guesses.items():
        is_there = field in names or field in columns
        beside = columns.get(field) or field
        remarks.append(
            f"the column {quoted(name)} is not used, {quoted(beside)} is"
            if is_there
            else f"the column {quoted(name)} is not used; did you mean {quoted(near)}?"
            f' Then say: [columns] {field} = "{name}"'
        )
    return tuple(remarks)
