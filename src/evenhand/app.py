"""The one module that knows concrete classes: a suite becomes store, judges and engine.

`Prepared` is a suite made ready; `Recorded` is a run as the store remembers it, which needs no
file of the suite any more.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

from evenhand import jsontext
from evenhand.engine.prices import FREE, PICO, Price, given_price, listed_price
from evenhand.errors import DataError, StoreError, UsageError, quoted
from evenhand.exchange import Judge
from evenhand.judges import JudgeOptions, open_judge, split_name
from evenhand.ledger.keys import run_id
from evenhand.ledger.store import IncomingUnit, RunRow, Store
from evenhand.protocols.kind import Kind, RubricKind
from evenhand.protocols.load import Protocol, ProtocolError, load_protocol
from evenhand.protocols.rubric import RubricProtocol
from evenhand.protocols.rubrics import RubricError, build_rubric
from evenhand.protocols.samples import RowError
from evenhand.suite import JudgeSpec, Suite, find_line

COSTS_NOTHING = frozenset({"embedded", "python", "replay"})
"""Providers whose calls are not billed."""


def environment(folder: Path | None = None) -> dict[str, str]:
    """The environment over `.env` of the folder: what is really set wins."""
    from dotenv import dotenv_values

    found = dotenv_values((folder or Path.cwd()) / ".env")
    return {k: v for k, v in found.items() if v is not None} | dict(os.environ)


def open_store(url: str, folder: Path | None = None, *, must_exist: bool = False) -> Store:
    """The store behind a URL such as `sqlite:evenhand.db`; raises StoreError."""
    scheme, _, rest = url.partition(":")
    if scheme != "sqlite" or not rest:
        raise UsageError(
            f"the store {quoted(url)} is not of a known kind", advice="Use sqlite:FILE."
        )
    from evenhand.ledger.sqlite import SqliteStore

    if rest == ":memory:":
        return SqliteStore(None)
    path = (folder or Path()) / rest.removeprefix("//")
    if must_exist and not path.exists():
        raise StoreError(
            "there is no such store", where=str(path), advice="Judge something first: evenhand run"
        )
    return SqliteStore(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """A judge in a run: what the suite says of it, and the judge itself."""

    spec: JudgeSpec
    judge: Judge
    price: Price | None

    @property
    def entry(self) -> dict[str, Any]:
        """As the manifest keeps it."""
        judge = self.judge
        return {
            "name": judge.name,
            "identity": dict(judge.identity),
            "style": judge.style,
            "caveat": judge.caveat,
            "repeats": self.spec.repeats,
        }


class Prepared:
    """A suite ready to be judged. Making one sends nothing and writes nothing."""

    def __init__(
        self, suite: Suite, environ: Mapping[str, str], notify: Callable[[str], None]
    ) -> None:
        self.suite = suite
        self.protocol = find_protocol(suite.file.protocol, suite.folder)
        self.rubric = _read_rubric(suite)
        self.seats = [self._seat(spec, environ, notify) for spec in suite.file.judges]
        _known_prices(suite, self.seats)
        _different(self.seats)

    def _seat(
        self, spec: JudgeSpec, environ: Mapping[str, str], notify: Callable[[str], None]
    ) -> Seat:
        provider, model = split_name(spec.model)
        options = JudgeOptions(
            name=spec.model,
            base_url=spec.base_url,
            temperature=spec.temperature,
            max_tokens=spec.max_tokens,
            seed=self.suite.file.seed,
            attempt_seconds=self.suite.file.limits.attempt_seconds,
            folder=self.suite.folder,
            environment=environ,
            notify=notify,
        )
        return Seat(spec=spec, judge=open_judge(options), price=_price(spec, provider, model))

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """Every hash that matters, and the texts to judge again without the suite's files."""
        file = self.suite.file
        identity = {
            "name": file.name,
            "protocol": self.protocol.version,
            "language": file.language,
            "rubric": self.rubric,
            "judges": [{k: seat.entry[k] for k in ("identity", "repeats")} for seat in self.seats],
            "seed": file.seed,
            "settings": file.settings.model_dump(mode="json") | {"use": file.use},
        }
        return {
            "identity": identity,
            "judges": [seat.entry for seat in self.seats],
            "protocol": {"name": self.protocol.name, "texts": dict(self.protocol.texts)},
            "evenhand": version("evenhand"),
        }

    @cached_property
    def run(self) -> str:
        return run_id(self.manifest["identity"])

    @cached_property
    def kind(self) -> Kind:
        return kind_of(self.protocol, self.manifest["identity"])

    @property
    def judgments_per_unit(self) -> int:
        return sum(seat.spec.repeats for seat in self.seats)

    def units(self, limit: int | None = None) -> Iterator[IncomingUnit]:
        """The units of the data files, checked; raises DataError with file:line."""
        from evenhand.data.read import rows

        taken = 0
        for name in self.suite.file.data:
            for row in rows(self.suite.resolve(name), self.suite.file.columns):
                if taken == limit:
                    return
                taken += 1
                try:
                    ident, body = self.kind.read(row.value)
                except RowError as error:
                    raise DataError(str(error), where=row.where) from None
                yield IncomingUnit(ident, row.where, body)

    async def aclose(self) -> None:
        for seat in self.seats:
            await seat.judge.close()


class Recorded:
    """A run as the store remembers it."""

    def __init__(self, row: RunRow) -> None:
        self.row = row
        self.identity: Mapping[str, Any] = row.manifest["identity"]
        self.judges: Sequence[Mapping[str, Any]] = row.manifest["judges"]

    @cached_property
    def kind(self) -> Kind:
        kept = self.row.manifest["protocol"]
        return kind_of(load_protocol(kept["name"], kept["texts"]), self.identity)

    @property
    def judgments_per_unit(self) -> int:
        return sum(judge["repeats"] for judge in self.judges)


def find_run(store: Store, wanted: str) -> Recorded:
    """The run with an id, a unique prefix of one, or `latest`; raises UsageError."""
    runs = store.runs()
    if not runs:
        raise UsageError("the store holds no run", advice="Judge something first: evenhand run")
    found = runs[:1] if wanted == "latest" else [r for r in runs if r.id.startswith(wanted)]
    if len(found) == 1:
        return Recorded(found[0])
    what = "several runs begin" if found else "no run begins"
    raise UsageError(f"{what} with {quoted(wanted)}", advice="List them: evenhand runs")


def kind_of(protocol: Protocol, identity: Mapping[str, Any]) -> Kind:
    """The kind of judging that a run's identity describes; raises UsageError."""
    if identity["language"] not in protocol.languages:
        raise UsageError(
            f"the protocol {protocol.name} has no prompt in {quoted(identity['language'])}",
            advice=f"It speaks {', '.join(protocol.languages) or 'no language yet'}.",
        )
    try:
        spoken = {one: _rubric_protocol(protocol, one, identity) for one in protocol.languages}
    except ProtocolError as error:
        raise UsageError(str(error), where=f"{protocol.name}/{error.file}") from None
    return RubricKind(spoken, identity["language"])


def _rubric_protocol(
    protocol: Protocol, language: str, identity: Mapping[str, Any]
) -> RubricProtocol:
    settings, value = identity["settings"], identity["rubric"]
    return RubricProtocol(
        prompts=protocol.prompts(language),
        words=protocol.words(language),
        rubric=None if value is None else build_rubric(value),
        expose_meta=settings["expose_meta"],
        repairs=settings["repairs"],
        use=tuple(settings["use"]),
    )


def builtin_protocols() -> list[str]:
    """The names of the protocols that come with the package."""
    folder = resources.files("evenhand.protocols") / "builtin"
    return sorted(entry.name for entry in folder.iterdir() if entry.is_dir())


def find_protocol(name: str, folder: Path | None = None) -> Protocol:
    """A built-in protocol, or the one in a folder; raises UsageError with the file."""
    if name in builtin_protocols():
        root: Any = resources.files("evenhand.protocols") / "builtin" / name
    else:
        root = (folder or Path()) / name
        if not root.is_dir():
            known = ", ".join(builtin_protocols())
            raise UsageError(
                f"no protocol is called {quoted(name)}",
                advice=f"Built in: {known}. Otherwise name a folder with a protocol.toml.",
            )
    try:
        return load_protocol(name, dict(_texts(root)))
    except ProtocolError as error:
        raise UsageError(str(error), where=f"{name}/{error.file}") from None


def _texts(root: Any, prefix: str = "") -> Iterator[tuple[str, str]]:
    for entry in root.iterdir():
        name = f"{prefix}{entry.name}"
        if entry.is_dir():
            yield from _texts(entry, f"{name}/")
        elif entry.name.endswith((".toml", ".md")):
            yield name, entry.read_text(encoding="utf-8")


def _read_rubric(suite: Suite) -> object:
    """The rubric file of a suite, checked; None if the rows bring their own."""
    name = suite.file.rubric
    if name is None:
        return None
    return read_rubric_file(suite.resolve(name))


def read_rubric_file(path: Path) -> object:
    """The value of a .json or .toml rubric that parses; raises UsageError with file:line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the rubric cannot be read: {error}", where=str(path)) from None
    value = _parsed(path, text)
    try:
        build_rubric(value)
    except RubricError as error:
        line = _line(path, text, error.path)
        raise UsageError(str(error), where=f"{path}:{line}" if line else str(path)) from None
    return value


def _parsed(path: Path, text: str) -> object:
    import tomllib

    try:
        return tomllib.loads(text) if path.suffix == ".toml" else jsontext.parse(text)
    except ValueError as error:
        line = getattr(error, "lineno", None)
        where = f"{path}:{line}" if line else str(path)
        raise UsageError(f"not {path.suffix[1:].upper()}: {error}", where=where) from None


def _line(path: Path, text: str, loc: tuple[str | int, ...]) -> int | None:
    return find_line(text, loc) if path.suffix == ".toml" else jsontext.find_line(text, loc)


def _price(spec: JudgeSpec, provider: str, model: str) -> Price | None:
    if spec.price is not None:
        return given_price(spec.price.input, spec.price.output)
    return FREE if provider in COSTS_NOTHING else listed_price(provider, model)


def _known_prices(suite: Suite, seats: Sequence[Seat]) -> None:
    """With a budget every price must be known."""
    if suite.file.limits.budget_usd is None:
        return
    for index, seat in enumerate(seats):
        if seat.price is None:
            raise UsageError(
                f"a budget is set, but the price of {quoted(seat.judge.name)} is not known",
                where=str(suite.path or ""),
                advice="Add to its [[judges]] entry, in dollars a million tokens:"
                f' price = {{ input = "0.40", output = "1.60" }}  (entry {index + 1})',
            )


def _different(seats: Sequence[Seat]) -> None:
    """Two judges that are one and the same would answer each other's questions."""
    for index, seat in enumerate(seats):
        if any(seat.judge.identity == earlier.judge.identity for earlier in seats[:index]):
            raise UsageError(
                f"the judge {quoted(seat.judge.name)} is named twice",
                advice="To judge each unit several times, set repeats in its [[judges]] entry.",
            )


def budget_cap(suite: Suite) -> int | None:
    """The budget in picodollars."""
    given = suite.file.limits.budget_usd
    return None if given is None else int(given * PICO)
