"""Judgments made elsewhere become a run like any other.

The run is kept whole or not at all, and the same files with the same settings are the same run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

from msgspec import Struct

from evenhand.data.files import require_file, stem_of
from evenhand.data.foreign import LAYOUTS, Layout, TidyRow
from evenhand.data.foreign.chunks import Chunk, chunked, is_plain, plain_chunks
from evenhand.data.foreign.rows import Shape
from evenhand.data.foreign.shaping import Shaping, Wide
from evenhand.data.foreign.tidy import text_of
from evenhand.data.foreign.wide_tables import wide_of
from evenhand.errors import DataError, UsageError, quoted
from evenhand.folders import open_plain
from evenhand.limits import ROWS_A_NOTICE
from evenhand.manifest import Imported as Facts
from evenhand.manifest import JudgeRecord, JudgingRecord, Manifest, Source
from evenhand.measures import Rule, Unreadable
from evenhand.runs.imports.labels import KnownPairs
from evenhand.runs.imports.scores import ScoreRows
from evenhand.runs.imports.tally import Tally
from evenhand.runs.imports.votes import VoteRows
from evenhand.runs.recorded import LABELS, find_run
from evenhand.store.keys import run_id
from evenhand.store.ports import IncomingUnit, Store

VERSION = 7
"""Of how rows are read: a change gives other runs."""
TABLES = ("votes", "scores")
"""Kinds of files that are the user's own tables."""
VALUES_TOLD = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a command says beyond the files."""

    shaping: Shaping = field(default_factory=Shaping)
    """How a table is brought into our words."""
    name: str | None = None
    judge: str | None = None
    """Who judged, where the rows do not say."""
    key: Sequence[str] = ()
    """The columns that tell units apart; nothing: those of the layout, or found out."""
    on_conflict: Rule = "uncertain"
    on_unreadable: Unreadable = "fail"
    """Of votes: what becomes of a judgment one order of which cannot be read."""
    voters: str = ""
    """Of votes: each row on a unit is of another voter, and this is what they are called."""
    known: KnownPairs | None = None
    """The pairs that the files hold labels for."""
    notice: Callable[[str], None] = lambda message: None
    """Told now and then how far it is."""


class ImportRequest(Struct, frozen=True, kw_only=True):
    """What to take in, in plain values."""

    files: Sequence[str | Path]
    kind: str | None = None
    labels_for: str | None = None
    """The run whose pairs the files label, in place of a kind."""
    columns: Mapping[str, str] = {}
    values: Mapping[str, Mapping[str, str]] = {}
    missing: Sequence[str] = ()
    wide: Mapping[str, Sequence[str]] = {}
    options: Mapping[str, Any] = {}
    """Further fields of `Options`; and `where` and `failed`."""


async def import_request(store: Store, request: ImportRequest) -> Imported:
    """Take in what a request names; raises UsageError and DataError."""
    if (request.kind is None) == (request.labels_for is None):
        raise UsageError("say either of which kind the files are, or for which run they are labels")
    kind = request.kind or LABELS
    if request.kind is not None and kind not in LAYOUTS:
        raise UsageError(f"there is no kind {quoted(kind)}", advice=f"There are: {_kinds()}")
    if len(request.wide) > 1:
        raise UsageError("wide names one field, and the columns that are its values")
    wide = [Wide(name, tuple(columns)) for name, columns in request.wide.items()]
    further = dict(request.options)
    options = Options(
        shaping=Shaping(
            columns=request.columns,
            values=request.values,
            missing=request.missing,
            wide=wide[0] if wide else None,
            only=_only(further.pop("where", {})),
            failed=further.pop("failed", None),
        ),
        **further,
    )
    if request.labels_for is not None:
        known = KnownPairs(store.archive, find_run(store.archive, request.labels_for))
        options = replace(options, known=known)
    return await import_files(store, [Path(file) for file in request.files], kind, options)


def _only(where: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
    """By column the values of the rows that are read, one or several, as cells are spelled."""
    only: dict[str, tuple[str, ...]] = {}
    for name, of in where.items():
        texts = map(text_of, of if isinstance(of, list | tuple | Set) else (of,))
        # The same set is the same run.
        only[name] = tuple(sorted(texts) if isinstance(of, Set) else texts)
    return only


def _kinds() -> str:
    return ", ".join(LAYOUTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What came in."""

    run: str
    name: str
    kind: str
    shape: str
    tally: Tally
    key: Sequence[str]
    on_conflict: Rule
    wide: Wide | None = None
    """Columns that were taken for judges or dimensions without being told."""

    def json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        tally = self.tally
        failures = dict(sorted(tally.failures.items()))
        summary: dict[str, Any] = {
            "run": self.run,
            "name": self.name,
            "kind": self.kind,
            "rows": tally.rows,
            "units": tally.units,
            "judges": len(tally.repeats),
            "planned": tally.verdicts + sum(failures.values()),
            "verdicts": tally.verdicts,
            "failures": failures,
            "pending": 0,
            "repeats": max(tally.repeats, default=0),
            "key": list(self.key),
            "meta_differs": dict(tally.differs.most_common()),
        }
        if self.wide is not None:
            summary["wide"] = {self.wide.field: list(self.wide.columns)}
        if tally.spelled:
            summary["read_as"] = dict(tally.spelled.keys())
        if tally.unreadable:
            summary["unreadable"] = dict(tally.unreadable.most_common())
        if self.shape == "votes":
            outcomes = dict(sorted(tally.settled.items()))
            summary |= {
                "candidates": tally.candidates,
                "criteria": tally.names,
                "settled": outcomes,
            }
            return summary | {"on_conflict": self.on_conflict}
        quotes = {"quotes": tally.quotes, "quotes_found": tally.quotes_found}
        return summary | {
            "dimensions": tally.names,
            "missing_scores": dict(tally.missing),
            **(quotes if tally.quotes else {}),
        }


async def import_files(
    store: Store, paths: Sequence[Path], kind: str, options: Options | None = None
) -> Imported:
    """Take the judgments of these files into the store, as one run; raises DataError."""
    options = options or Options()
    for path in paths:
        require_file(path)
    layout = LAYOUTS[kind] if options.known is None else Layout(options.known.read, ("unit",))
    options, wide = _with_wide(options, paths, kind)
    # A layout may leave out its judge, a table of the user's own must not.
    judge = options.judge or ("" if kind in TABLES else kind)
    rows = _rows(paths, layout, options)
    first = next(rows)
    key = options.key or layout.key
    if layout.key and not options.key:
        key = [*_present(key, first.value, len(paths) > 1), *layout.settings(paths)]
    gathered = _gathering(first.shape, kind, tuple(key), judge, options)
    if all(_is_plain(path, kind, options) for path in paths):
        gathered.fill(_plain_chunks(paths, first.shape, options))
    else:
        gathered.fill(chunked(chain([first], rows if kind in TABLES else _alike(rows, first))))
    name = options.name or stem_of(paths[0])
    async with store.ledger() as ledger:
        intake = await ledger.intake(_told(gathered, options.notice))
        if not gathered.tally.verdicts:
            raise _unreadable(gathered.tally, paths)
        # How often each judge judged is known only now.
        judging = _judging(gathered, paths, options)
        manifest = Manifest(
            judging=judging,
            protocol=gathered.shape,
            evenhand=version("evenhand"),
            imported=_facts(gathered, kind, paths, layout),
        )
        run = run_id(name, judging.id, intake.content)
        async with ledger.begin(run, name, manifest, intake):
            pass
    return Imported(
        run=run,
        name=name,
        kind=kind,
        shape=gathered.shape,
        tally=gathered.tally,
        key=gathered.key,
        on_conflict=options.on_conflict,
        wide=wide,
    )


def _gathering(
    shape: Shape, kind: str, key: tuple[str, ...], judge: str, options: Options
) -> VoteRows | ScoreRows:
    """Where rows of a shape are gathered into units; raises UsageError for an option that is not
    for them."""
    if shape == "votes":
        known, unreadable = options.known, options.on_unreadable
        return VoteRows(kind, key, judge, known, unreadable, options.voters)
    if options.voters:
        raise UsageError("--voters is for votes, and these are scores", advice="Leave it out.")
    return ScoreRows(kind, key, judge)


def _with_wide(options: Options, paths: Sequence[Path], kind: str) -> tuple[Options, Wide | None]:
    """The options with the columns that plainly are judges or dimensions, where nobody named any,
    and these. A column that an option names is none of them."""
    shaping = options.shaping
    if kind not in TABLES or options.known is not None or shaping.wide is not None:
        return options, None
    named = {
        *options.key,
        *shaping.only,
        shaping.failed or "",
    }
    wide = wide_of(paths[0], kind, shaping, has_judge=bool(options.judge), named=named)
    return (replace(options, shaping=replace(shaping, wide=wide)) if wide else options), wide


_PLAIN = {
    "votes": (("first", "second"), ("winner", "preference")),
    "scores": ((), ("score",)),
}
"""By kind, the columns that a table has whose cells can be read where they stand: all of some, and
one of others."""


def _is_plain(path: Path, kind: str, options: Options) -> bool:
    """Whether the cells of a file can be read where they stand, as those of a table of our own;
    scores may be spelled with a decimal comma where nothing else is a comma."""
    if kind not in _PLAIN or options.known is not None:
        return False
    if kind == "scores":
        return False
    return is_plain(path, options.shaping, *_PLAIN[kind])


def _plain_chunks(paths: Sequence[Path], shape: Shape, options: Options) -> Iterator[Chunk]:
    number = 0
    for path in paths:
        for chunk in plain_chunks(path, options.shaping, shape, _PLAIN[shape][0]):
            begun, number = number // ROWS_A_NOTICE, number + chunk.size
            for told in range(begun + 1, number // ROWS_A_NOTICE + 1):
                options.notice(f"{told * ROWS_A_NOTICE:,} rows read")
            yield chunk


def _rows(paths: Sequence[Path], layout: Layout, options: Options) -> Iterator[TidyRow]:
    number = 0
    for path in paths:
        for row in layout.read(path, options.shaping):
            number += 1
            if number % ROWS_A_NOTICE == 0:
                options.notice(f"{number:,} rows read")
            yield row
    if not number and options.known is not None and options.known.left_out:
        raise options.known.none_known()
    if not number:
        raise UsageError("there is nothing to import", advice="Name a file that holds judgments.")


def _unreadable(tally: Tally, paths: Sequence[Path]) -> DataError:
    """Judgments none of which says anything are no run."""
    (reason, number), *_ = tally.failures.most_common(1) or [("empty", 0)]
    return DataError(
        f"no judgment can be read: {number:,} of {sum(tally.failures.values()):,} are {reason},"
        f" the first because {tally.details.get(reason, 'there is nothing')}",
        where=str(paths[0]),
        advice=f"{_values(tally)}Are --kind and --map right? Nothing was imported.",
    )


def _values(tally: Tally) -> str:
    values = [f"{value} {number:,}" for value, number in tally.unreadable.most_common(VALUES_TOLD)]
    if len(values) < 2:
        return ""
    return f"Unreadable are {', '.join(values)}: say what they mean with --value. "


def _told(gathered: VoteRows | ScoreRows, notice: Callable[[str], None]) -> Iterator[IncomingUnit]:
    """The units, told about as they go into the store."""
    for number, judged in enumerate(gathered.units(), 1):
        if number % ROWS_A_NOTICE == 0:
            notice(f"{number:,} units written")
        yield judged


def _present(key: Sequence[str], row: Mapping[str, Any], several: bool) -> list[str]:
    """The columns of a layout's key that its first row has; the file only if there are several."""
    there = [name for name in key if name == "unit" or name in row]
    return [name for name in there if name != "file" or several]


def _alike(rows: Iterator[TidyRow], first: TidyRow) -> Iterator[TidyRow]:
    """The rows, which must all be votes or all be scores."""
    for row in rows:
        if row.shape != first.shape:
            raise DataError(
                f"these are {row.shape}, and the rows from {quoted(first.where)} on are"
                f" {first.shape}",
                where=row.where,
                advice="Import them one after the other.",
            )
        yield row


def _judging(
    gathered: VoteRows | ScoreRows,
    paths: Sequence[Path],
    options: Options,
) -> JudgingRecord:
    """Who judged, what the files hold and how they were read: another file is another judging."""
    judges = zip(gathered.judges, gathered.tally.repeats, strict=True)
    shaping = options.shaping
    wide = shaping.wide
    return JudgingRecord(
        language="en" if options.known is None else options.known.language,
        protocol=f"imported:{gathered.shape}:{VERSION}",
        judges=tuple(JudgeRecord(name=name, repeats=repeats) for name, repeats in judges),
        source=Source(
            shape=gathered.shape,
            version=VERSION,
            content=_hash(paths),
            map=dict(shaping.columns),
            key=tuple(gathered.key),
            on_conflict=options.on_conflict,
            values=shaping.values,
            missing=tuple(shaping.missing),
            wide=None if wide is None else (wide.field, wide.columns),
            on_unreadable=options.on_unreadable,
            where={name: tuple(values) for name, values in shaping.only.items()},
            failed=shaping.failed or None,
            voters=options.voters or "",
        ),
    )


def _facts(
    gathered: VoteRows | ScoreRows, kind: str, paths: Sequence[Path], layout: Layout
) -> Facts:
    files, scale = tuple(path.name for path in paths), layout.scale or None
    return Facts(kind=kind, files=files, criteria=tuple(gathered.criteria), scale=scale)


def _hash(paths: Sequence[Path]) -> str:
    """Of what the files hold, whatever they are called."""
    whole = blake2b(digest_size=16)
    for path in paths:
        digest = blake2b(digest_size=16)
        with open_plain(path) as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
        whole.update(digest.digest())
    return f"blake2b:{whole.hexdigest()}"
