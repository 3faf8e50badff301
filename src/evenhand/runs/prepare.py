"""The one module that knows concrete classes: a suite becomes store, judges and engine.

`Prepared` is a suite made ready; `Recorded` is a run as the store remembers it, which needs no
file of the suite any more.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

from evenhand.engine.prices import FREE, PICO, Price, given_price, listed_price
from evenhand.engine.run import BASIS, JudgeGroup, group_names
from evenhand.errors import DataError, StoreError, UsageError, quoted
from evenhand.exchange import Judge
from evenhand.files.protocols import (
    find_protocol,
    judging_of,
    own_prompt,
    spoken_beside,
    task_types,
)
from evenhand.files.rubrics import read_rubric_file, read_task_file, with_task_text
from evenhand.judges import JudgeOptions, Provider, split_name
from evenhand.judgment import Judgment, bad_tries
from evenhand.kinds import KINDS
from evenhand.kinds.kind import Judging, Kind
from evenhand.kinds.shared.load import Protocol, load_protocol
from evenhand.kinds.shared.rows import RowError
from evenhand.kinds.weighted.judging import WeightedJudging
from evenhand.ledger.keys import run_id
from evenhand.ledger.store import Counts, IncomingUnit, RunRow, Scope, Store, StoredJudgment
from evenhand.suite import JudgeSpec, Settings, Suite


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
        own = suite.file.prompt and own_prompt(suite.resolve(suite.file.prompt))
        self.protocol = find_protocol(suite.file.protocol, suite.folder, own or None)
        spoken_beside(self.protocol, suite.file.language, str(suite.path or ""))
        self.settings = _settings(suite, self.protocol.kind)
        self.rubric = _read_rubric(suite, self.protocol)
        self.seats = [self._seat(spec, environ, notify) for spec in suite.file.judges]
        if suite.file.limits.budget_usd is not None:
            self.know_prices()
        _different(self.seats)
        _one_number_of_repeats(self.seats, self.settings)

    def _seat(
        self, spec: JudgeSpec, environ: Mapping[str, str], notify: Callable[[str], None]
    ) -> Seat:
        provider, model = split_name(spec.model)
        options = JudgeOptions(
            name=spec.model,
            base_url=spec.base_url,
            temperature=spec.temperature,
            max_tokens=spec.max_tokens,
            probabilities=spec.probabilities,
            seed=self.suite.file.seed,
            attempt_seconds=self.suite.file.limits.attempt_seconds,
            folder=self.suite.folder,
            environment=environ,
            notify=notify,
        )
        judge = provider.open(options, model)
        return Seat(spec=spec, judge=judge, price=_price(spec, provider, model))

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
            "settings": self.settings,
        }
        return {
            "identity": identity,
            "judges": [seat.entry for seat in self.seats],
            "protocol": {"name": self.protocol.name, "texts": dict(self.protocol.texts)},
            "prompt": file.prompt,
            "evenhand": version("evenhand"),
            **self._questions(),
        }

    def _questions(self) -> dict[str, Any]:
        """What is to be concluded from the run; no verdict hangs on it, so its id does not."""
        asked = {name: getattr(self.suite.file, name) for name in ("compare", "stop", "gate")}
        return {name: one.model_dump(mode="json") for name, one in asked.items() if one is not None}

    def know_prices(self) -> None:
        """With a budget every price must be known; raises UsageError."""
        for index, seat in enumerate(self.seats):
            if seat.price is None:
                raise UsageError(
                    f"a budget is set, but the price of {quoted(seat.judge.name)} is not known",
                    where=str(self.suite.path or ""),
                    advice="Add to its [[judges]] entry, in dollars a million tokens:"
                    f' price = {{ input = "0.40", output = "1.60" }}  (entry {index + 1})',
                )

    @cached_property
    def run(self) -> str:
        return run_id(self.manifest["identity"])

    @property
    def kind(self) -> Kind:
        return KINDS[self.protocol.kind]

    @cached_property
    def judging(self) -> Judging:
        return judging_of(self.protocol, self.manifest["identity"])

    def bad_tries(self, stored: StoredJudgment) -> tuple[str, ...]:
        """The calls of a failure that are to be asked again."""
        return bad_tries(self.kind.read_judgment(stored.text), stored.calls)

    @property
    def judge_groups(self) -> list[JudgeGroup]:
        return judge_groups([seat.entry for seat in self.seats], self.settings)

    @property
    def judgments_per_unit(self) -> int:
        return sum(group.repeats for group in self.judge_groups)

    def units(self, limit: int | None = None) -> Iterator[IncomingUnit]:
        """The units of the data files, checked; raises DataError with file:line."""
        from evenhand.data.read import rows

        taken = asked = 0
        for name in self.suite.file.data:
            for row in rows(self.suite.resolve(name), self.suite.file.columns):
                if taken == limit:
                    return
                try:
                    units = self.judging.read(self._with_rubric(row.value, name), asked)
                except RowError as error:
                    raise DataError(str(error), where=row.where) from None
                for unit in units[: None if limit is None else limit - taken]:
                    yield IncomingUnit(unit.id, row.where, unit.body)
                    taken += 1
                    asked += unit.is_asked

    def _with_rubric(self, row: Mapping[str, Any], file: str) -> Mapping[str, Any]:
        """A row whose rubric may be the name of a file beside its own."""
        if not isinstance(self.judging, WeightedJudging):
            return row
        return with_task_text(row, self.suite.resolve(file).parent, self.judging.types)

    async def aclose(self) -> None:
        for seat in self.seats:
            await seat.judge.close()


class Recorded:
    """A run as the store remembers it."""

    def __init__(self, row: RunRow) -> None:
        self.row = row
        self.identity: Mapping[str, Any] = row.manifest["identity"]
        self.judges: Sequence[Mapping[str, Any]] = row.manifest["judges"]

    @property
    def imported(self) -> bool:
        """Whether its judgments were made elsewhere: then it has no protocol and no calls."""
        return "imported" in self.row.manifest

    @property
    def kind_name(self) -> str:
        """Of which kind its judgments are."""
        if self.imported:
            return {"votes": "pairwise", "scores": "rubric"}[self.row.manifest["protocol"]["name"]]
        return self.protocol.kind

    @cached_property
    def protocol(self) -> Protocol:
        kept = self.row.manifest["protocol"]
        return load_protocol(kept["name"], kept["texts"])

    @property
    def kind(self) -> Kind:
        return KINDS[self.kind_name]

    @cached_property
    def judging(self) -> Judging:
        return judging_of(self.protocol, self.identity)

    def judgment(self, stored: StoredJudgment) -> Judgment:
        """A judgment of the run as it was kept."""
        return self.kind.read_judgment(stored.text)

    @property
    def criteria(self) -> list[str]:
        """Of pairs: by what they were compared."""
        if self.imported:
            return list(self.row.manifest["imported"]["criteria"])
        return list(self.judging.dimensions)

    def counts(self, store: Store, scope: Scope | None = None) -> Counts:
        """How the run stands, or a part of it. Nobody knows what was planned of judgments made
        elsewhere, so what came in is all there is."""
        found = scope or Scope(self.row.id)
        counts = store.counts(found, self.judgments_per_unit, BASIS)
        if not self.imported:
            return counts
        return replace(counts, planned=counts.verdicts + sum(counts.failures.values()))

    @cached_property
    def judge_groups(self) -> list[JudgeGroup]:
        return judge_groups(self.judges, self.identity["settings"])

    @cached_property
    def names(self) -> list[str]:
        """Of the judge_groups."""
        return group_names(self.judge_groups)

    @property
    def judgments_per_unit(self) -> int:
        return sum(group.repeats for group in self.judge_groups)


def judge_groups(
    judges: Sequence[Mapping[str, Any]], settings: Mapping[str, Any]
) -> list[JudgeGroup]:
    """Who judges each unit: every judge on its own, or all of them as one relay."""
    relay = settings.get("panel") == "relay"
    made: list[JudgeGroup] = []
    turn = 0
    for group in [list(judges)] if relay else [[judge] for judge in judges]:
        made.append(
            JudgeGroup(
                index=len(made),
                names=tuple(judge["name"] for judge in group),
                styles=tuple(judge["style"] for judge in group),
                caveat="\n".join(sorted({judge["caveat"] for judge in group} - {""})),
                repeats=group[0]["repeats"],
                turn=turn,
            )
        )
        turn += made[-1].repeats
    return made


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


def _settings(suite: Suite, kind: str) -> dict[str, Any]:
    """The settings of a suite that its kind has; raises UsageError for one that it has not."""
    given, known = suite.file.settings.model_dump(mode="json"), KINDS[kind].settings
    defaults = Settings().model_dump(mode="json")
    for name, value in given.items():
        if name not in known and value != defaults[name]:
            raise UsageError(
                f"the protocol kind {kind} has no setting {quoted(name)}",
                where=str(suite.path or ""),
                advice=f"It has: {', '.join(known)}.",
            )
    return {name: given[name] for name in known} | {"use": suite.file.use}


def _read_rubric(suite: Suite, protocol: Protocol) -> object:
    """The rubric file of a suite, checked; None if the rows bring their own."""
    name = suite.file.rubric
    if name is None:
        return None
    if protocol.kind == "pairwise":
        raise UsageError(
            "a pairwise suite has no rubric",
            where=str(suite.path or ""),
            advice="Take the key out; criteria stand in the protocol.",
        )
    path = suite.resolve(name)
    if protocol.kind == "weighted":
        return read_task_file(path, task_types(protocol))
    return read_rubric_file(path)


def _price(spec: JudgeSpec, provider: Provider, model: str) -> Price | None:
    if spec.price is not None:
        return given_price(spec.price.input, spec.price.output)
    return listed_price(provider.name, model) if provider.is_billed else FREE


def _different(seats: Sequence[Seat]) -> None:
    """Two judges that are one and the same would answer each other's questions."""
    for index, seat in enumerate(seats):
        if any(seat.judge.identity == earlier.judge.identity for earlier in seats[:index]):
            raise UsageError(
                f"the judge {quoted(seat.judge.name)} is named twice",
                advice="To judge each unit several times, set repeats in its [[judges]] entry.",
            )


def _one_number_of_repeats(seats: Sequence[Seat], settings: Mapping[str, Any]) -> None:
    """A relay is one judgment, so it cannot be repeated more often by one of its judges."""
    if settings.get("panel") == "relay" and len({seat.spec.repeats for seat in seats}) > 1:
        raise UsageError("the judges of a relay must all have the same repeats")


def budget_cap(suite: Suite) -> int | None:
    """The budget in picodollars."""
    given = suite.file.limits.budget_usd
    return None if given is None else int(given * PICO)
