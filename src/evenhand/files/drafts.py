"""A first suite for a table that somebody has: what was understood of it, and the files to begin
with."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from itertools import chain, count, takewhile
from pathlib import Path
from typing import Any, NamedTuple

from evenhand.data.columns import flatten
from evenhand.data.files import guess_encoding, is_data_file
from evenhand.data.recognise import fields_of
from evenhand.data.tables import ROWS_LOOKED_AT, DataTable, Tables, TableSource, extras_in
from evenhand.errors import DataError, UsageError
from evenhand.examples import DataFile, example_rubric, suite_text
from evenhand.files.protocols import find_protocol, judging_of
from evenhand.files.ready_rubrics import (
    ReadyRubric,
    join_examples,
    join_rubrics,
    needs_of,
    ready_rubrics,
)
from evenhand.files.rubrics import TableUnits, rubric_in
from evenhand.jsontext import as_text
from evenhand.kinds import DEFAULT_KIND, KINDS
from evenhand.kinds.messages import has_tool_calls
from evenhand.kinds.rows import EXTRAS, TableForm, is_given
from evenhand.manifest import JudgingRecord, rubric_json
from evenhand.store.intake import repeated_ids
from evenhand.words import Code, Names, Sentence, few

_SCRIPTS = (
    ("ja", re.compile("[\u3040-\u30ff]")),
    ("ru", re.compile("[\u0400-\u04ff]")),
    ("zh", re.compile("[\u3400-\u9fff]")),
)
_SCRIPT_SHARE = 0.2
"""So many of the letters make a text one of a language; Japanese is written with fewer kana than
that and much that Chinese has too."""
_KANA_SHARE = 0.05
_VALUES_LISTED = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A suite for a table, yet to be written."""

    files: Mapping[str, str]
    """Name to text, the suite first."""
    language: str
    understood: str
    fields: Sequence[tuple[str, str]]
    """The columns that were found: what each holds, and its name."""
    remarks: Sequence[str]
    first_rubric: str
    """The name of the file with a rubric to begin with; empty where none is needed."""


class _Rubric(NamedTuple):
    """The rubric of a draft: the file to write, and the user's own that has its usual name."""

    file: str = ""
    text: str = ""
    present: str = ""


def draft_suite(
    data: Sequence[Path],
    folder: Path,
    columns: Mapping[str, str],
    *,
    protocol: str | None,
    language: str | None,
    judge: str,
    sheet: str | None,
    rubrics: Sequence[str],
    notice: Callable[[str], None],
) -> Draft:
    """Return what the columns of tables hold, and a suite in a folder for them, with a first
    rubric. Files in which nothing else sets answers apart are
    variants, called by their names. `columns` are fields that the user has named, `sheet` is that
    of workbooks, `rubrics` are names of ready ones; `notice` hears how far a long table is read.
    Raises UsageError or DataError where one cannot be read, also where two columns would fit."""
    sources = _sources(data, sheet)
    protocol = protocol_with_bands(protocol) if rubrics else protocol or _protocol(sources[0])
    form = KINDS[protocol].table_form
    columns = fields_of(columns, form)
    tables = [DataTable(source, columns, form) for source in sources]
    rows = list(_first_rows(tables, form))
    language = language or language_of(_texts(rows, form))
    variants = _variants(tables)
    if len(tables) > 1 and not variants.field:
        sources = _as_variants(sources)
        tables = [DataTable(source, columns, form) for source in sources]
        variants = _variants(tables)
    elif tables[0].recognition.is_long:
        _require_author(tables[0], rows)
    # Candidates of pairs are compared with each other, whatever sets them apart.
    compared = NO_FIELD if form.gather else variants
    ready = ready_rubrics(rubrics, language)
    rubric = draft_rubric(protocol, language, folder, ready, [path.name for path in data])
    lacking = _lacking(needs_of(ready), tables, rows)
    seen = extras_in(rows, form)
    use = [name for name in EXTRAS if name in (*seen, *lacking)]
    suite = suite_text(
        name=suite_name(data),
        protocol=protocol,
        language=language,
        data=[_data_file(source) for source in sources],
        rubric=rubric.file,
        judge=judge,
        columns={**columns, **_common_columns(tables)},
        by=compared.field,
        baseline=compared.values[0] if compared.field else None,
        use=use,
        judged=choose_judged(rows, form, ready),
    )
    files = {"evenhand.toml": suite} | ({rubric.file: rubric.text} if rubric.file else {})
    number, remarks = _read_through(
        sources, columns, protocol, language, rubric, folder, use, notice
    )
    names = few([path.name for path in data], _VALUES_LISTED)
    about = {"protocol": protocol, "language": language}
    found = chain.from_iterable(_column_lines(table, form, columns) for table in tables)
    fields = [*dict.fromkeys(found), *variant_lines(variants), *rubric_lines(ready)]
    remarks += [Sentence("files.rubric_lacks", column=name) for name in lacking]
    if seen:
        fields.append((Sentence("files.judge_sees"), ", ".join(seen)))
    remarks += own_rubric_notes(rubric)
    return Draft(
        files=files,
        language=language,
        understood=Sentence("files.understood", names=names, n=number, **about),
        fields=fields,
        remarks=remarks,
        first_rubric=rubric.file,
    )


def draft_examples(
    rubrics: Sequence[str], folder: Path, *, protocol: str | None, language: str, judge: str
) -> Draft:
    """Return a suite in a folder for the examples of ready rubrics; raise UsageError."""
    protocol, data = protocol_with_bands(protocol), "samples.jsonl"
    ready = ready_rubrics(rubrics, language)
    rubric, samples = draft_rubric(protocol, language, folder, ready), join_examples(ready)
    suite = suite_text(
        name="-".join(each.name for each in ready),
        protocol=protocol,
        language=language,
        data=[DataFile(data)],
        rubric=rubric.file,
        judge=judge,
        use=needs_of(ready),
    )
    about = {"protocol": protocol, "language": language}
    names, rows = few([data], _VALUES_LISTED), samples.count("\n")
    return Draft(
        files={"evenhand.toml": suite, rubric.file: rubric.text, data: samples},
        language=language,
        understood=Sentence("files.understood", names=names, n=rows, **about),
        fields=list(rubric_lines(ready)),
        remarks=own_rubric_notes(rubric),
        first_rubric=rubric.file,
    )


def protocol_with_bands(protocol: str | None) -> str:
    """Return the protocol for ready rubrics; raise UsageError if the named one takes none."""
    form = KINDS[protocol or DEFAULT_KIND].rubric_form
    if protocol and not (form and form.has_bands):
        raise UsageError(Sentence("files.takes_no_dimensions", protocol=protocol))
    return protocol or DEFAULT_KIND


def choose_judged(
    rows: Sequence[Mapping[str, Any]], form: TableForm, ready: Sequence[ReadyRubric]
) -> str:
    """Return what of conversations with tool calls is judged: what the rubrics are about, all turns
    where they are about several things; empty where there are no tool calls."""
    has_calls = [has_tool_calls(row, form.answer, form.several) for row in rows]
    if not any(has_calls):
        return ""
    wanted = {each.judged for each in ready} or {"last"}
    wanted |= set() if all(has_calls) else {"last"}  # where there is no call, none can be judged
    return wanted.pop() if len(wanted) == 1 else "conversation"


def _lacking(
    needs: Sequence[str], tables: Sequence[DataTable], rows: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Return the columns that are needed and not there; a conversation in place of a question
    holds the earlier messages."""
    held = {name for row in rows for name in needs if is_given(row.get(name))}
    if any(table.conversation for table in tables):
        held.add("messages")
    return [name for name in needs if name not in held]


def _read_through(
    sources: Sequence[TableSource],
    columns: Mapping[str, str],
    protocol: str,
    language: str,
    rubric: _Rubric,
    folder: Path,
    use: Sequence[str],
    notice: Callable[[str], None],
) -> tuple[int, list[str]]:
    """Read tables as a run will, so that what it would refuse is told before anything is written;
    return the number of rows, and what is to be told of them. Raises DataError."""
    kind, loaded, remarks = KINDS[protocol], find_protocol(protocol), list[str]()
    value = rubric_in(folder / rubric.file, rubric.text, loaded) if rubric.file else None
    settings = {**kind.settings, "use": use}
    record = JudgingRecord(language=language, rubric_json=rubric_json(value), settings=settings)
    judging = judging_of(loaded, record)
    tables = Tables(sources, columns, kind.table_form, remarks.append, tells_columns=False, use=use)
    units = TableUnits(tables, loaded, language=language, copied_to=folder, notice=notice)
    numbers = Counter(unit.id for unit in units.read(judging))
    if any(number > 1 for number in numbers.values()):
        error = repeated_ids((unit.id, unit.origin) for unit in units.read(judging))
        error.advice = Sentence("files.same_ids_advice")
        raise error
    return units.rows, remarks


def _first_rows(tables: Sequence[DataTable], form: TableForm) -> Iterator[Mapping[str, Any]]:
    """Rows to look at; raises DataError for a table in which question or answers are not found."""
    for table in tables:
        rows = [row.value for _, row in table.rows[:ROWS_LOOKED_AT]]
        _require_texts(table, rows, form)
        yield from rows


def _shared_beginning(data: Sequence[Path]) -> str:
    """The words that the names of all files begin with."""
    words = [re.split(r"(?<=[\W_])", path.name.split(".")[0]) for path in data]
    alike = takewhile(lambda places: len(set(places)) == 1, zip(*words, strict=False))
    return "".join(places[0] for places in alike)


def suite_name(data: Sequence[Path]) -> str:
    """Return a name for a suite on these files."""
    return _shared_beginning(data).strip("_-. ") or data[0].name.split(".")[0] or "evenhand"


def _as_variants(sources: Sequence[TableSource]) -> list[TableSource]:
    """Files with their names, less what all begin with, as prompt variants."""
    paths = [source.path for source in sources]
    shared = len(_shared_beginning(paths))
    rest = [path.name.split(".")[0][shared:] for path in paths]
    are_names = all(rest) and len(set(rest)) == len(rest)
    names = rest if are_names else [path.name for path in paths]
    return [
        replace(source, constants={"prompt_variant": name})
        for source, name in zip(sources, names, strict=True)
    ]


def _data_file(source: TableSource) -> DataFile:
    variant = source.constants.get("prompt_variant")
    return DataFile(source.path.name, source.encoding, source.sheet, variant)


def _common_columns(tables: Sequence[DataTable]) -> Mapping[str, str]:
    """The columns that were recognised; nothing where they differ from file to file, for a suite
    maps the columns of all its files alike."""
    first, *others = [table.recognition.columns for table in tables]
    return first if all(columns == first for columns in others) else {}


def _sources(data: Sequence[Path], sheet: str | None) -> list[TableSource]:
    sources = [_source(path, sheet) for path in data]
    if sheet and not any(source.sheet for source in sources):
        raise UsageError(Sentence("files.no_workbook"))
    return sources


def _source(data: Path, sheet: str | None) -> TableSource:
    """The file as it is, a workbook with the sheet that is meant; or, where it is a text that is
    not UTF-8, in the encoding in which it reads as text: a suite may be drafted on a guess, for it
    says what was guessed."""
    if data.name.endswith(".xlsx"):
        return TableSource(path=data, sheet=sheet)
    if not is_data_file(data) or not data.is_file() or data.name.endswith((".parquet", ".eval")):
        return TableSource(path=data)
    return TableSource(path=data, encoding=guess_encoding(data))


def _protocol(source: TableSource) -> str:
    """Return the protocol whose own fields a table has; samples to score, where nothing says
    more."""
    names = {name for row in source.sample for name in row}
    for name in KINDS:
        form = KINDS[name].table_form
        if {form.several, form.own_field} & names:
            return name
    several = next((name for name in KINDS if KINDS[name].table_form.several), DEFAULT_KIND)
    if _is_pair(source, KINDS[several].table_form):
        return several
    return DEFAULT_KIND


def _is_pair(source: TableSource, form: TableForm) -> bool:
    """Return True if the columns say that a row is a pair of answers."""
    try:
        table = DataTable(source, {}, form)
        return table.recognition.is_pair and table.column_of(form.question) is not None
    except DataError:
        return False


def _require_texts(table: DataTable, rows: Sequence[Mapping[str, Any]], form: TableForm) -> None:
    """Refuse a table in which the question or the answers are not found."""
    answers = (form.several,) if form.several and not table.recognition.is_long else (form.answer,)
    if table.conversation and table.conversation.has_answer:
        return
    for field in (form.question, *answers):
        if not any(field in row for row in rows):
            raise _unmapped_error(table, Sentence("files.no_column", field=field), field)


def _require_author(table: DataTable, rows: Sequence[Mapping[str, Any]]) -> None:
    """Refuse a table of answers to compare in which nothing says whose they are."""
    metas = [row.get("meta") or {} for row in rows]
    if not any(meta.get(name) for meta in metas for name in ("model", "prompt_variant")):
        raise _unmapped_error(table, Sentence("files.no_author"), "model")


def _unmapped_error(table: DataTable, what: str, field: str) -> DataError:
    """Return the error for a field that no column is called like: the columns, those inside of
    objects too, and where else they may be in a workbook."""
    names = dict.fromkeys(name for row in table.source.sample for name, _ in flatten(row))
    has_sheets = table.source.sheet is None and table.source.path.suffix == ".xlsx"
    key = "files.columns_of_sheet" if has_sheets else "files.columns_are"
    advice = Sentence(key, names=Names(list(names)), field=field)
    return DataError(what, where=str(table.source.path), advice=advice)


def _texts(rows: Sequence[Mapping[str, Any]], form: TableForm) -> Iterator[str]:
    for row in rows:
        for field in (form.question, form.answer):
            if isinstance(row.get(field), str):
                yield row[field]


def language_of(texts: Iterator[str]) -> str:
    """The language of the four that texts are written in, by their script."""
    letters = [letter for text in texts for letter in text[:2000] if letter.isalpha()]
    whole = "".join(letters)
    for language, script in _SCRIPTS:
        share = _KANA_SHARE if language == "ja" else _SCRIPT_SHARE
        if letters and len(script.findall(whole)) > share * len(letters):
            return language
    return "en"


class ComparedField(NamedTuple):
    """The field that sets answers apart, and its values; an empty field where none does."""

    field: str
    values: Sequence[str]


NO_FIELD = ComparedField("", ())


def _variants(tables: Sequence[DataTable]) -> ComparedField:
    values: dict[str, dict[str, None]] = {"prompt_variant": {}, "model": {}}
    for _, row in chain.from_iterable(table.rows for table in tables):
        meta = row.value.get("meta")
        for field, levels in values.items():
            value = meta.get(field) if isinstance(meta, Mapping) else None
            if value not in (None, ""):
                levels[as_text(value)] = None
    for field, several in values.items():
        if len(several) > 1:
            return ComparedField(field, list(several))
    return NO_FIELD


def draft_rubric(
    protocol: str,
    language: str,
    folder: Path,
    ready: Sequence[ReadyRubric] = (),
    data: Collection[str] = (),
) -> _Rubric:
    """Return a first rubric under a name that is free; an empty one where the protocol takes
    none."""
    form = KINDS[protocol].rubric_form
    if form is None:
        return _Rubric()
    if name := KINDS[protocol].example.rubric or "":
        text = join_rubrics(ready) if ready else example_rubric(protocol, language)
    else:
        first_task = resources.files("evenhand.files") / "first_task" / f"{language}.md"
        name, text = "rubric.md", first_task.read_text(encoding="utf-8")
    free = free_name(name, folder, data)
    return _Rubric(free, text, "" if free == name or name in data else name)


def own_rubric_notes(rubric: _Rubric) -> list[str]:
    return [Sentence("files.own_rubric", name=rubric.present)] if rubric.present else []


def free_name(name: str, folder: Path, taken: Collection[str] = ()) -> str:
    """A name for a new file of a folder: this one, or one like it where something lies there."""
    stem, ending = Path(name).stem, Path(name).suffix
    names = chain([name, f"{stem}-draft{ending}"], (f"{stem}-draft-{n}{ending}" for n in count(2)))
    return next(free for free in names if free not in taken and not (folder / free).exists())


def _column_lines(
    table: DataTable, form: TableForm, given: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield what was understood of the columns of a table, beside what the user has named: what
    each holds, and its name."""
    if table.source.encoding:
        yield Sentence("files.encoding"), table.source.encoding
    if table.source.sheet:
        yield Sentence("files.sheet"), table.source.sheet
    columns = {**given, **table.recognition.columns}
    if table.conversation:
        yield "messages", table.conversation.meaning
    answer = form.several if form.several and not table.recognition.is_long else form.answer
    if answers := table.recognition.answers:
        columns[answer] = ", ".join(each.column for each in answers)
    held = table.conversation.fields if table.conversation else ()
    for field in (form.question, answer):
        if field not in held:
            yield field, columns.pop(field, field)
    for field, column in columns.items():
        yield field, column
    if table.labels:
        yield "meta", ", ".join(table.labels)


def variant_lines(variants: ComparedField) -> Iterator[tuple[str, str]]:
    if variants.field:
        names = few(variants.values, _VALUES_LISTED)
        values = Sentence("files.variants", field=variants.field, names=names)
        yield Sentence("files.compared_by"), values


def rubric_lines(rubrics: Sequence[ReadyRubric]) -> Iterator[tuple[str, str]]:
    """Yield the names of ready rubrics, with what they ask and need."""
    for each in rubrics:
        about, needs = Code(each.about), Code(", ".join(each.needs))
        text = Sentence("files.rubric_needs", about=about, needs=needs) if needs else about
        yield each.name, text
