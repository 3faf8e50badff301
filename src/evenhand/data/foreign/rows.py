"""What every layout gives: a tidy row, of which shape it is, and where it stood."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from evenhand.data.columns import has_field, remove
from evenhand.data.files import did_you_mean, stem_of
from evenhand.data.foreign.shaping import FILE, ROW, SAID, Shaping
from evenhand.data.read import Row, rows
from evenhand.data.recognise import fold as folded
from evenhand.data.recognise import usual_names
from evenhand.errors import DataError, UsageError, quoted

Shape = Literal["votes", "scores"]
_UNIT = (
    *usual_names("question_id"),
    "pair_id",
    "prompt_id",
    "instruction_id",
    "example_id",
    *usual_names("ident"),
)
_JUDGE = (
    *("annotator", "annotator_id", "rater", "rater_id", "grader", "evaluator", "reviewer"),
    *("judge_model", "judge_name", "labeler", "оценщик", "судья", "评审", "标注者", "評価者"),
)
_NOUNS = ("model", "candidate", "assistant", "system", "chatbot", "модель", "模型", "モデル")
_USUAL: dict[str, dict[str, tuple[str, ...]]] = {
    "votes": {
        "unit": _UNIT,
        "judge": _JUDGE,
        "first": tuple(noun + end for noun in _NOUNS for end in ("_a", "_1", "a", "1")),
        "second": tuple(noun + end for noun in _NOUNS for end in ("_b", "_2", "b", "2")),
        "winner": ("verdict", "label", "choice", "vote", "preferred", "better", "result"),
    },
    "scores": {
        "unit": _UNIT,
        "judge": _JUDGE,
        "score": ("rating", "grade", "points", "mark", "оценка", "балл", "评分", "得分", "評点"),
    },
}
"""What others call the columns of a layout, which are not guessed at but proposed."""
NAMES_SHOWN = 20
ORDER_UNKNOWN = "order_unknown"
"""Of a verdict that does not say which candidate was shown first: it tells nothing of positions."""


class TidyRow(NamedTuple):
    """A tidy row. `flag` is what a layout says of the judgment beyond its columns."""

    shape: Shape
    value: Mapping[str, Any]
    where: str
    flag: str = ""


class NoScore(NamedTuple):
    """What stands in the place of a score where a layout knows why there is none."""

    reason: Literal["schema", "out_of_range"]
    detail: str


def on_scale(score: Any, low: float, high: float, name: str) -> Any:
    """Return a score as it is, or a NoScore where it is a number off its scale."""
    try:
        number = float(score)
    except (TypeError, ValueError, OverflowError):
        return score
    if not (number < low or number > high):  # NaN is neither
        return score
    return NoScore("out_of_range", f"{name} {number:g} is off the scale from {low:g} to {high:g}")


class _Source:
    """The rows of a data file that are read."""

    def __init__(self, path: Path, shaping: Shaping) -> None:
        self._path, self._shaping = path, shaping
        self._names: dict[str, None] = {}
        self._has_mark = False
        """Whether a row had the column that says why a judgment failed."""
        self.read = 0
        """How many rows were read."""

    def rows(self) -> Iterator[tuple[int, Row]]:
        """The rows with their numbers in the file; raises DataError."""
        shaping = self._shaping
        try:
            for number, row in enumerate(rows(self._path, shaping.columns, lenient=True), 1):
                if shaping.only or shaping.failed:
                    self._note(row.value)
                if shaping.reads(row.value):
                    self.read += 1
                    yield number, row
        except DataError as error:
            error.what = error.what.replace("that [columns] names", "that --map names")
            raise

    def _note(self, row: dict[str, Any]) -> None:
        self._names.update(dict.fromkeys(row))
        failed = self._shaping.failed
        self._has_mark = self._has_mark or (failed is not None and has_field(row, failed))

    def require_met(self) -> None:
        """Refuse rows of which none is to be read, and a column that none has."""
        shaping, where = self._shaping, str(self._path)
        columns = f"The columns are: {', '.join(map(quoted, self._names))}"
        if shaping.only and not self.read:
            wanted = " and ".join(f"{name}={'|'.join(of)}" for name, of in shaping.only.items())
            raise DataError(
                f"no row has {wanted}, which --where names", where=where, advice=columns
            )
        if shaping.failed and not self._has_mark:
            raise DataError(
                f"no row has a column {quoted(shaping.failed)}, which --failed names",
                where=where,
                advice=columns,
            )


def table(
    path: Path, shaping: Shaping, said: str | None = None, verdicts: Iterable[str] = SAID
) -> Iterator[Row]:
    """The rows of a data file in our words; NaN is read as a missing number. `said` is the column
    that holds what was said, in a table of the user's own; `verdicts` are all that may, which say
    nothing where a judgment failed."""
    columns = shaping.columns
    unmet, moved = set(shaping.values), set(columns.values()) - columns.keys()
    source, file = _Source(path, shaping), stem_of(path)
    for number, row in source.rows():
        silent = frozenset(verdicts) if shaping.fails(row.value) else frozenset[str]()
        for name in moved:
            remove(row.value, name)
        if shaping.is_plain:
            yield row
            continue
        names = {ROW: str(number), FILE: file}
        for value in shaping.shaped(row.value, said, row.where, names):
            unmet -= value.keys()
            yield Row(value | dict.fromkeys(silent & value.keys()), row.where)
    source.require_met()
    if unmet and source.read:
        raise DataError(
            f"no row has a column {quoted(min(unmet))}, which --value names", where=str(path)
        )


def no_table(shaping: Shaping, kind: str) -> None:
    """Refuse to rename or read otherwise in a layout that is no table."""
    if shaping.columns or not shaping.is_plain:
        raise UsageError(
            f"a file of the kind {kind} has no columns to rename",
            advice="Leave out --map, --value, --set, --missing, --wide, --where and --failed.",
        )


def require(row: Row, names: Iterable[str], kind: str) -> None:
    """Refuse a row without one of these columns."""
    for name in names:
        if name not in row.value:
            raise missing(name, row.value, row.where, kind)


def missing(name: str, there: Iterable[str], where: str, kind: str) -> DataError:
    """The error for a column that is not there, with the flag that would name it."""
    columns = [str(column) for column in there]
    near = did_you_mean(name, columns)
    # The nearest in spelling is often not the one meant, so all of them are shown.
    listed = ", ".join(quoted(column) for column in columns[:NAMES_SHOWN])
    rest = f" and {len(columns) - NAMES_SHOWN} more" if len(columns) > NAMES_SHOWN else ""
    flags = _renaming(columns, kind)
    rename = f"rename: {flags}" if f" {name}=" in flags else f"rename one: --map {name}=COLUMN"
    advice = f"the columns are: {listed}{rest}; {rename}"
    near = "" if flags else near
    return DataError(
        f"there is no column {quoted(name)}, which --kind {kind} needs",
        where=where,
        advice=f"{near} {advice}".strip(),
    )


def _renaming(columns: Iterable[str], kind: str) -> str:
    """The flags that name the columns of a layout by what they are usually called elsewhere."""
    there = {folded(column): column for column in columns}
    usual = {
        name: next((there[word] for word in map(folded, words) if word in there), "")
        for name, words in _USUAL.get(kind, {}).items()
        if folded(name) not in there
    }
    return " ".join(
        f"--map {name}={shlex.quote(column)}" for name, column in usual.items() if column
    )


def object_of(value: object) -> Mapping[str, Any]:
    """An object as it is, anything else as an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def list_of(value: object) -> list[Any]:
    """A list as it is, anything else as an empty one."""
    return value if isinstance(value, list) else []


def non_null(**columns: Any) -> dict[str, Any]:
    """The columns that have a value."""
    return {name: value for name, value in columns.items() if value is not None}


def short_hash(text: str) -> str:
    """A name for a text that is too long to be one."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def begin(text: str, most: int = 80) -> str:
    """The start of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
