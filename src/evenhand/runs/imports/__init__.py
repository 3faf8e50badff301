"""Judgments made elsewhere become a run like any other.

The run is kept whole or not at all, and the same files with the same settings are the same run.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from evenhand import jsontext
from evenhand.data.columns import Rows
from evenhand.data.files import require_file, stem_of
from evenhand.data.layouts import LAYOUTS, JudgmentFile, Layout, TidyRow
from evenhand.errors import DataError, UsageError
from evenhand.folders import open_plain
from evenhand.limits import ROWS_A_NOTICE
from evenhand.manifest import Imported as Facts
from evenhand.manifest import JudgeRecord, JudgingRecord, Manifest, Source
from evenhand.observation import Ends, Rule
from evenhand.runs.author import author
from evenhand.runs.imports.labels import LabelledRun
from evenhand.runs.imports.objects import ObjectRows, read_objects
from evenhand.runs.imports.scores import ScoreRows
from evenhand.runs.imports.tally import ImportTally
from evenhand.runs.imports.votes import VoteRows
from evenhand.runs.recorded import LABELS, find_run
from evenhand.store.ledger import Store
from evenhand.store.rows import run_id
from evenhand.words import Sentence, few

VERSION = 9
"""Of how rows are read: a change gives other runs."""
OBJECTS = "objects"
IMPORT_KINDS: dict[str, Layout] = {**LAYOUTS, OBJECTS: Layout(read_objects, ("unit",))}
VALUES_TOLD = 8
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRequest:
    """The data to take in: files, or rows in memory, of a kind; or labels of the units of a run."""

    tables: Sequence[Path | Rows]
    kind: str | None = None
    labels_for: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict[str, str])
    """New names of columns to old ones."""
    name: str | None = None
    judge: str | None = None
    """The judge of rows that name none."""
    on_conflict: Rule = "uncertain"
    note: str = ""
    tags: tuple[str, ...] = ()
    notify: Callable[[str], None] = lambda message: None
    """Told now and then how far it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """The run that an import made, and its counts."""

    run: str
    name: str
    kind: str
    shape: str
    tally: ImportTally
    key: Sequence[str]
    on_conflict: Rule
    columns: Mapping[str, str]
    """The columns that were found by their usual names: field to column."""
    labelled: LabelledRun | None = None
    """The run whose units were labelled."""

    def json(self) -> dict[str, Any]:
        """Return it as `--json` prints it."""
        tally = self.tally
        failures = dict(sorted(tally.failures.items()))
        summary: dict[str, Any] = {
            "run": self.run,
            "name": self.name,
            "kind": self.kind,
            "rows": tally.rows,
            "units": tally.units,
            "judges": len(tally.judges),
            "planned": tally.verdicts + sum(failures.values()),
            "verdicts": tally.verdicts,
            "failures": failures,
            "pending": 0,
            "repeats": max(tally.repeats.values(), default=0),
            "key": list(self.key),
            "columns": dict(self.columns),
            "meta_differs": dict(tally.differs.most_common()),
        }
        if tally.unreadable:
            summary["unreadable"] = dict(tally.unreadable.most_common())
        if self.shape == "votes":
            return summary | {
                "candidates": sorted(tally.candidates),
                "criteria": list(tally.names),
                "settled": dict(sorted(tally.settled.items())),
                "on_conflict": self.on_conflict,
            }
        quotes = {"quotes": tally.quotes, "quotes_found": tally.quotes_found}
        return summary | {
            "dimensions": list(tally.names),
            "missing_scores": dict(tally.missing),
            **(quotes if tally.quotes else {}),
        }


_Gathered = VoteRows | ScoreRows | ObjectRows


async def import_judgments(store: Store, request: ImportRequest) -> ImportResult:
    """Take judgments into a store as one run; raises UsageError and DataError."""
    with _without_collections():
        return await _import(store, request)


@contextmanager
def _without_collections() -> Iterator[None]:
    """Pause the search for reference cycles: millions of rows hold none, and looking at them again
    and again takes a fifth of an import."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


async def _import(store: Store, request: ImportRequest) -> ImportResult:
    labelled = None
    if (request.kind is None) == (request.labels_for is None):
        raise UsageError(Sentence("runs.kind_or_labels"))
    kind = request.kind or LABELS
    if request.labels_for is not None:
        labelled = LabelledRun(store.archive, find_run(store.archive, request.labels_for))
        layout = Layout(labelled.read, ("unit",))
    elif kind in IMPORT_KINDS:
        layout = IMPORT_KINDS[kind]
    else:
        raise UsageError(Sentence("runs.no_kind", kind=kind, names=few(list(IMPORT_KINDS), 20)))
    files = [
        JudgmentFile(path=None, memory=table, columns=request.columns)
        if isinstance(table, Rows)
        else JudgmentFile(path=table, columns=request.columns)
        for table in request.tables
    ]
    for file in files:
        if file.path is not None:
            require_file(file.path)
    gathered = _gather(files, kind, layout, request, labelled)
    language = labelled.language if labelled else "en"
    name = request.name or stem_of(Path(files[0].name))
    async with store.ledger() as ledger:
        intake = await ledger.intake(
            _notify(gathered.units(language), "runs.units_written", request.notify)
        )
        if not gathered.tally.verdicts:
            raise _unreadable(gathered.tally, files)
        # How often each judge judged is known only now.
        judging = _judging(gathered, files, request, language)
        facts = Facts(
            kind=kind,
            files=tuple(Path(file.name).name for file in files),
            criteria=tuple(gathered.tally.names) if gathered.shape == "votes" else (),
            ends=gathered.ends,
        )
        manifest = Manifest(
            judging=judging,
            protocol=gathered.shape,
            evenhand=version("evenhand"),
            imported=facts,
            author=author(),
            note=request.note,
            tags=request.tags,
        )
        run = run_id(name, judging.id, intake.content)
        async with ledger.begin(run, name, manifest, intake):
            pass
    return ImportResult(
        run=run,
        name=name,
        kind=kind,
        shape=gathered.shape,
        tally=gathered.tally,
        key=gathered.key,
        on_conflict=request.on_conflict,
        columns=files[0].recognised,
        labelled=labelled,
    )


def _gather(
    files: Sequence[JudgmentFile],
    kind: str,
    layout: Layout,
    request: ImportRequest,
    labelled: LabelledRun | None,
) -> _Gathered:
    """Return the rows of all files by unit; raises DataError."""
    read = chain.from_iterable(map(layout.read, files))
    rows = _notify(read, "runs.rows_read", request.notify)
    first = next(rows, None)
    if first is None:
        if labelled and labelled.left_out:
            raise labelled.none_known()
        raise UsageError(Sentence("runs.nothing_to_import"))
    judge, known = request.judge or layout.judge, labelled.units if labelled else {}
    gathered: _Gathered
    if kind == OBJECTS:
        gathered = ObjectRows(first.flag, judge)
    else:
        make = VoteRows if first.shape == "votes" else ScoreRows
        gathered = make(kind, _present_key(layout, files, first), judge, known)
    for row in chain([first], rows):
        if row.shape != first.shape:
            raise DataError(
                Sentence("runs.mixed_rows", shape=row.shape, first=first.where, other=first.shape),
                where=row.where,
            )
        gathered.add(row)
    gathered.finish()
    gathered.ends = _ends(gathered, layout, labelled)
    return gathered


def _present_key(layout: Layout, files: Sequence[JudgmentFile], first: TidyRow) -> list[str]:
    """Return the columns of a layout's key that its first row has; the file only if there are
    several."""
    there = [name for name in layout.key if name == "unit" or name in first.value]
    if len(files) == 1 and "file" in there:
        there.remove("file")
    paths = [file.path for file in files if file.path is not None]
    return [*there, *layout.settings(paths)] if there else []


def _ends(gathered: _Gathered, layout: Layout, labelled: LabelledRun | None) -> Ends:
    """Return the ends of the scales that are given."""
    if layout.scale is not None:
        return dict.fromkeys(gathered.tally.names, layout.scale)
    return labelled.ends if labelled else {}


def _notify(things: Iterable[T], key: str, notify: Callable[[str], None]) -> Iterator[T]:
    """Yield rows or units, and tell now and then how many there were."""
    for number, thing in enumerate(things, 1):
        if number % ROWS_A_NOTICE == 0:
            notify(Sentence(key, n=number))
        yield thing


def _unreadable(tally: ImportTally, files: Sequence[JudgmentFile]) -> DataError:
    """Return the error for judgments none of which says anything: they are no run."""
    (reason, n), *_ = tally.failures.most_common(1) or [("empty", 0)]
    values = [value for value, _ in tally.unreadable.most_common()]
    message = Sentence(
        "runs.unreadable_values" if values else "runs.unreadable",
        n=n,
        total=tally.failures.total(),
        reason=reason,
        detail=tally.details.get(reason),
        values=few(values, VALUES_TOLD),
    )
    return DataError(message, where=files[0].name)


def _judging(
    gathered: _Gathered, files: Sequence[JudgmentFile], request: ImportRequest, language: str
) -> JudgingRecord:
    """Return the judges, what the files hold and how they were read: another file is another
    judging."""
    tally = gathered.tally
    return JudgingRecord(
        language=language,
        protocol=f"imported:{gathered.shape}:{VERSION}",
        judges=tuple(
            JudgeRecord(name=name, repeats=tally.repeats[number])
            for name, number in tally.judges.items()
        ),
        source=Source(
            shape=gathered.shape,
            version=VERSION,
            content=_hash(files),
            map=dict(request.columns),
            key=tuple(gathered.key),
            on_conflict=request.on_conflict,
        ),
    )


def _hash(files: Sequence[JudgmentFile]) -> str:
    """Return a hash of what the files hold, whatever they are called."""
    whole = blake2b(digest_size=16)
    for file in files:
        digest = blake2b(digest_size=16)
        if file.memory is not None:
            for row in file.memory.values():
                digest.update(jsontext.dumps_lossy(row).encode() + b"\n")
        else:
            assert file.path is not None
            with open_plain(file.path) as stream:
                while chunk := stream.read(1 << 20):
                    digest.update(chunk)
        whole.update(digest.digest())
    return f"blake2b:{whole.hexdigest()}"
