"""`evenhand.toml` to a Suite: one place of precedence, every error with file and line.

Command line beats environment (`EVENHAND_...`) beats file beats default.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from evenhand import limits
from evenhand.errors import UsageError, nearest, quoted
from evenhand.folders import is_within, read_text
from evenhand.kinds.shared.languages import meant_language
from evenhand.kinds.shared.load import LANGUAGES
from evenhand.ledger.postgres.address import Address, is_postgres, read_address
from evenhand.tomltext import Loc, TomlError, find_line, parse_toml

FILE = "evenhand.toml"
_DATA_ENDINGS = (".csv", ".tsv", ".xlsx", ".json", ".jsonl", ".ndjson", ".parquet", ".gz")
_SETTINGS = frozenset(
    {"schema", "host", "port", "user", "dbname", "database", "password", "sslmode"}
    | {"target_session_attrs"}
)
"""What a suite's file may say of its PostgreSQL server, beside who it is."""
_PATTERN = re.compile(r"[*?\[]")


def _listed(value: object) -> object:
    return [value] if isinstance(value, str | dict) else value


def _flat(value: object, prefix: str = "") -> object:
    """Dotted keys as one name each: TOML makes tables of them where they are not quoted."""
    if not isinstance(value, dict):
        return value
    names: dict[str, object] = {}
    for key, inner in cast("dict[str, object]", value).items():
        if isinstance(inner, dict):
            names |= cast("dict[str, object]", _flat(inner, f"{prefix}{key}."))
        else:
            names[prefix + key] = inner
    return names


def _decimal(value: object) -> object:
    return str(value) if isinstance(value, float) else value


Money = Annotated[Decimal, BeforeValidator(_decimal), Field(ge=0, allow_inf_nan=False)]
DollarsAMillion = Annotated[Money, Field(le=limits.PRICE_MOST)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class PriceSpec(_Part):
    """Dollars a million tokens."""

    input: DollarsAMillion
    output: DollarsAMillion


class JudgeSpec(_Part):
    """One `[[judges]]` entry."""

    model: Annotated[str, Field(min_length=1)]
    """`provider/model`, e.g. `openai/gpt-4.1-mini` or `embedded`."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = 0.0
    """0 unless given."""
    repeats: Annotated[int, Field(ge=1, le=limits.REPEATS_MAX)] = 1
    max_tokens: Annotated[int, Field(ge=1, le=limits.MAX_TOKENS_MOST)] = limits.MAX_TOKENS
    base_url: str | None = None
    price: PriceSpec | None = None
    probabilities: bool = False
    """Ask for log-probabilities, and keep the odds of what was decided."""


class Limits(_Part):
    """`[limits]`: none of these changes a verdict, so none is part of the run."""

    concurrency: Annotated[int, Field(ge=1, le=limits.CONCURRENCY_MAX)] = limits.CONCURRENCY
    requests_per_minute: Annotated[int, Field(ge=1)] | None = None
    tokens_per_minute: Annotated[int, Field(ge=1)] | None = None
    budget_usd: Annotated[Money, Field(le=limits.BUDGET_MOST)] | None = None
    max_failure_rate: Annotated[float, Field(ge=0, le=1)] | None = None
    attempt_seconds: Annotated[float, Field(gt=0)] = limits.ATTEMPT_SECONDS
    call_seconds: Annotated[float, Field(gt=0)] = limits.CALL_SECONDS
    run_seconds: Annotated[float, Field(gt=0)] | None = None


class Settings(_Part):
    """`[settings]`: what can change a verdict."""

    repairs: Annotated[int, Field(ge=0, le=limits.REPAIRS_MAX)] = limits.REPAIRS
    expose_meta: bool = False
    """Rubric: send `meta` to the judge too."""
    max_rounds: Annotated[int, Field(ge=1, le=limits.MAX_ROUNDS_MOST)] | None = None
    """Pairwise: rounds a pair may take; the protocol's own number unless given."""
    blind: Literal["flag", "mask"] = "flag"
    """Pairwise: what is done about candidates that name their model."""
    no_self_judging: bool = False
    """Pairwise: leave out a judge that shares its family with a candidate."""
    panel: Literal["each", "relay"] = "each"
    """Pairwise: several judges each settle a pair, or take a round each."""


class CompareSpec(_Part):
    """`[compare]`: the question that the run answers first; `compare`, `gate` and `run
    --until-decided` take it from here."""

    by: Annotated[list[str], BeforeValidator(_listed)] = []
    """The field, or fields, that tell the variants apart; pairs are compared by candidate."""
    baseline: str | None = None


class StopSpec(_Part):
    """`[stop]`: judge in random order, and stop when the comparison is decided."""

    until_decided: bool = True

    alpha: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    """How often at most a difference may be found that is none."""
    dimension: str = "overall"
    variant: str | None = None
    """Which variant must be decided against the baseline; all of them unless given."""
    min_units: Annotated[int, Field(ge=1)] = 1
    """Decide on no fewer units."""


class GateSpec(_Part):
    """`[gate]`: the conditions that `evenhand gate` holds a run to."""

    dimension: Annotated[list[str], BeforeValidator(_listed), Field(min_length=1)] = ["overall"]
    variant: str | None = None
    candidate: str | None = None
    judge: str | None = None
    """Only what this judge said."""
    on_conflict: Literal["tie", "uncertain", "drop", "split"] | None = None
    level: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    better: bool = False
    no_worse_than: Annotated[float, Field(ge=0)] | None = None
    """How much lower than the baseline the mean may be."""
    min_mean: float | None = None
    min_win_rate: Annotated[float, Field(ge=0, le=1)] | None = None
    max_critical_fails: Annotated[int, Field(ge=0)] | None = None
    max_failure_rate: Annotated[float, Field(ge=0, le=1)] | None = None


class DataSpec(BaseModel):
    """A data file with what is true of all its rows: `{ file = "v1.csv", prompt_variant = "v1" }`.
    Every key beside `file` is a field; one that is none of the contract's belongs to `meta`."""

    model_config = ConfigDict(extra="allow", frozen=True, allow_inf_nan=False)

    file: Annotated[str, Field(min_length=1)]
    encoding: Annotated[str, Field(min_length=1)] | None = None
    """Of a text file that is not UTF-8, e.g. `cp1251`."""
    sheet: str | None = None
    """Of a workbook; its first one unless given."""
    __pydantic_extra__: dict[str, str | int | float | bool]

    @property
    def constants(self) -> dict[str, str | int | float | bool]:
        """Field to value."""
        return dict(self.__pydantic_extra__ or {})


DataEntry = Annotated[str, Field(min_length=1)] | Annotated[DataSpec, BeforeValidator(_flat)]


class StoreSpec(_Part):
    """`[store]`."""

    url: str = "sqlite:evenhand.db"


class SuiteFile(_Part):
    """The keys of `evenhand.toml`."""

    name: Annotated[str, Field(min_length=1)] = "evenhand"
    protocol: str
    language: Annotated[str, Field(pattern=r"^[a-z]{2,3}(-[A-Za-z]+)*$")] = "en"
    """ru, zh, ja or en; another one where the protocol or the prompt speaks it."""
    data: Annotated[list[DataEntry], BeforeValidator(_listed), Field(min_length=1)]
    """Files, or patterns such as `answers/*.csv`; or a file with constants."""
    rubric: str | None = None
    prompt: Annotated[str, Field(min_length=1)] | None = None
    """A judge prompt of your own, any text."""
    seed: int = 0
    use: list[Literal["reference", "context", "messages"]] = []
    judges: Annotated[list[JudgeSpec], Field(min_length=1)]
    limits: Limits = Limits()
    settings: Settings = Settings()
    store: StoreSpec = StoreSpec()
    compare: CompareSpec | None = None
    stop: StopSpec | None = None
    gate: GateSpec | None = None
    columns: Annotated[dict[str, str], BeforeValidator(_flat)] = {}


class Located(NamedTuple):
    """A file that a suite names, and the folder it must lie in; None where it may lie anywhere."""

    path: Path
    root: Path | None


class Suite:
    """A suite and the folder its paths are relative to.

    `user_keys` are those set by the user, on the command line or in the environment; only what
    these name may lie outside of the folder. Without a file, all of it is the user's. `addresses`
    are those that the file gives to judges, each with its place.
    """

    def __init__(
        self,
        file: SuiteFile,
        folder: Path,
        path: Path | None = None,
        user_keys: Collection[str] = (),
        *,
        allow_outside: bool = False,
        addresses: Mapping[str, str] | None = None,
    ) -> None:
        self.file, self.folder, self.path = file, folder, path
        self._addresses = addresses or {}
        self._user_keys, self._allow_outside = user_keys, allow_outside or path is None

    def located(self, key: str, name: str) -> Located:
        """Where a file lies that a key of the suite names; raises UsageError for one outside of the
        folder that the user has not named."""
        if "\0" in name:
            raise UsageError(f"{key}: {quoted(name)} is no name of a file", where=self._where(key))
        path = self.folder / name
        if self._allow_outside or key in self._user_keys:
            return Located(path, None)
        if not is_within(path, self.folder):
            flag = "--store" if key == "store" else "--allow-outside"
            raise UsageError(
                f"{key}: {quoted(name)} leads out of the suite's folder",
                where=self._where(key),
                advice=f"Put it into the folder; or, if you trust this suite, run it with {flag}.",
            )
        return Located(path, self.folder)

    def located_files(self, key: str, name: str) -> list[Located]:
        """Where the files lie that a name or a pattern such as `answers/*.csv` stands for, sorted;
        raises UsageError where a pattern fits none, or one leads out of the folder."""
        whole = self.folder / name
        if not _PATTERN.search(name) or "\0" in name or whole.exists():
            return [self.located(key, name)]
        pattern = str(whole.relative_to(whole.anchor)) if Path(name).is_absolute() else name
        start = Path(whole.anchor) if Path(name).is_absolute() else self.folder
        paths = sorted(path for path in start.glob(pattern) if path.is_file())
        if not paths:
            raise UsageError(
                f"{key}: no file fits {quoted(name)}",
                where=self._where(key),
                advice=f"Patterns start in the suite's folder, {quoted(self.folder.resolve())}.",
            )
        return [self.located(key, os.path.relpath(path, self.folder)) for path in paths]

    @property
    def store_url(self) -> str:
        """The store; raises UsageError where the file says that it lies outside of the folder."""
        url = self.file.store.url
        scheme, _, name = url.partition(":")
        if scheme == "sqlite" and name != ":memory:":
            self.located("store", name.removeprefix("//"))
        if is_postgres(url) and self.path is not None and "store" not in self._user_keys:
            self._require_trusted(read_address(url))
        return url

    def _require_trusted(self, address: Address) -> None:
        """Refuse a server that the file names and the user has not: it would be given the user's
        password, and files that its address names would be read."""
        from evenhand.judges.trust import TrustedHosts, host_named  # spares every other start

        trusted = TrustedHosts().hosts()
        strangers = [host for host in address.distant_hosts if host_named(host) not in trusted]
        settings = address.settings - _SETTINGS
        if strangers or settings:
            what = f"a host, {quoted(strangers[0])}," if strangers else f"{min(settings)}="
            allowed = (
                f" Or let it have passwords: --trust-host {strangers[0]}." if strangers else ""
            )
            raise UsageError(
                f"the store that the suite names has {what} which you have not named",
                where=self._where("store"),
                advice="If it is yours, name the store yourself: --store URL, or"
                f" EVENHAND_STORE__URL in the environment.{allowed}",
            )

    def address_place(self, url: str | None) -> str:
        """Where the file gives a judge this `base_url`, also for a judge that the command line
        names; empty where it does not, and the user does."""
        return self._addresses.get(url or "", "")

    def _where(self, key: str) -> str:
        line = find_line(_text(self.path), (key,)) if self.path else None
        return f"{self.path}:{line}" if line else str(self.path or "")


def load_suite(
    path: Path,
    environment: Mapping[str, str],
    overrides: Mapping[str, Any] | None = None,
    *,
    allow_outside: bool = False,
) -> Suite:
    """Read a suite file, or the one in a folder; raises UsageError with file:line. What it names
    must lie in its folder, unless overrides or the real environment name it."""
    path = path / FILE if path.is_dir() else path
    text = _text(path)
    try:
        values = parse_toml(text)
    except TomlError as error:
        where = f"{path}:{error.line}" if error.line else str(path)
        raise UsageError(str(error), where=where) from None
    addresses = _addresses(values, path, text)
    overrides, environ = overrides or {}, _from_environment(environment)
    _merge(values, environ)
    _merge(values, overrides)
    try:
        file = SuiteFile.model_validate(values)
        keys = overrides.keys() | environ.keys()
        return Suite(
            file, path.parent, path, keys, allow_outside=allow_outside, addresses=addresses
        )
    except ValidationError as error:
        first = _telling(error.errors(include_url=False))
        if _holds(overrides, first["loc"]):
            where = "the command line"
        elif _holds(environ, first["loc"]):
            where = "EVENHAND_" + "__".join(map(str, first["loc"])).upper()
        else:
            line = find_line(text, first["loc"])
            where = f"{path}:{line}" if line else str(path)
        raise _explained(first, where) from None


def _text(path: Path) -> str:
    if not path.exists():
        beside = path.parent.glob("*.toml") if path.parent.is_dir() else ()
        near = nearest(path.name, sorted(file.name for file in beside))
        raise UsageError(
            f"there is no suite file {quoted(path)}",
            advice=(f'Did you mean "{near}"? ' if near else "") + "Make one with: evenhand init",
        )
    if path.suffix.lower() in _DATA_ENDINGS:
        raise UsageError(
            f"{quoted(path)} is data, and no suite",
            advice=f"Make a suite for it: evenhand init --data {path}",
        )
    return read_text(path, "the suite")


def _addresses(values: Mapping[str, Any], path: Path, text: str) -> dict[str, str]:
    """Each `base_url` that stands in a suite's file, and where."""
    judges: Any = values.get("judges")
    places: dict[str, str] = {}
    for index, judge in enumerate(judges if isinstance(judges, list) else ()):
        url = judge.get("base_url") if isinstance(judge, dict) else None
        if isinstance(url, str):
            line = find_line(text, ("judges", index, "base_url"))
            places[url] = f"{path}:{line}" if line else str(path)
    return places


def _merge(into: dict[str, Any], values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        existing = into.get(key)
        if isinstance(value, Mapping) and isinstance(existing, dict):
            _merge(cast("dict[str, Any]", existing), cast("Mapping[str, Any]", value))
        else:
            into[key] = value


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """`EVENHAND_LIMITS__CONCURRENCY=8` as {"limits": {"concurrency": "8"}}."""
    values: dict[str, Any] = {}
    for variable, value in environment.items():
        top, *rest = variable.removeprefix("EVENHAND_").lower().split("__")
        if not variable.startswith("EVENHAND_"):
            continue
        if len(rest) > limits.NAME_PARTS:
            raise UsageError(f"more than {limits.NAME_PARTS} names", where=variable[:200])
        if top not in SuiteFile.model_fields:
            _no_table(variable, top, rest)
            continue
        nested: Any = value
        for key in reversed(rest):
            nested = {key: nested}
        _merge(values, {top: nested})
    return values


def _no_table(variable: str, top: str, rest: list[str]) -> None:
    """A variable that is no key of a suite may be anyone's, but not if it is one mistyped."""
    close = get_close_matches(top, list(_PARTS), n=1, cutoff=0.75)
    if rest and close:
        meant = "__".join(["EVENHAND_" + close[0], *rest]).upper()
        name = ".".join([top, *rest])
        raise UsageError(f"unknown key {quoted(name)}; did you mean {meant}?", where=variable)


def _holds(values: object, loc: Loc) -> bool:
    """Whether `values` has something at `loc`."""
    for part in loc:
        try:
            values = cast("Any", values)[part]
        except (LookupError, TypeError):
            return False
    return True


def _telling(faults: list[ErrorDetails]) -> ErrorDetails:
    """The fault to tell first: a key that is mistyped makes another one missing."""
    unknown = [fault for fault in faults if fault["type"] == "extra_forbidden"]
    missing = {fault["loc"][-1] for fault in faults if fault["type"] == "missing"}
    for fault in unknown:
        if nearest(str(fault["loc"][-1]), map(str, missing)):
            return fault
    return faults[0]


def suite_of_keys(keys: Mapping[str, Any]) -> SuiteFile:
    """A suite that no file holds; raises UsageError, which never tells the value of a key that
    nobody knows."""
    try:
        return SuiteFile.model_validate(keys)
    except ValidationError as error:
        raise _explained(_telling(error.errors(include_url=False)), "") from None


def _explained(first: ErrorDetails, where: str) -> UsageError:
    """What is wrong, where it stands, and what was meant."""
    loc = first["loc"]
    name = ".".join(map(str, loc))
    if first["type"] == "extra_forbidden":
        return UsageError(f"unknown key {quoted(name)}{_did_you_mean(loc)}", where=where)
    if first["type"] == "missing":
        return UsageError(f"the key {quoted(name)} is missing", where=where, advice=_needed(name))
    if loc == ("language",):
        return _no_language(str(first["input"]), where)
    message = first["msg"][0].lower() + first["msg"][1:]
    return UsageError(f"{name}: {message}, and is {quoted(first['input'])}", where=where)


def _needed(name: str) -> str:
    """How a key that must be there is written."""
    lines = {
        "judges": '[[judges]] model = "openai/gpt-4.1-mini"',
        "data": 'data = ["answers.csv"]',
        "protocol": 'protocol = "rubric"',
    }
    return f"For example: {lines[name]}" if name in lines else ""


def _no_language(name: str, where: str) -> UsageError:
    code = meant_language(name)
    meant = f'Did you mean "{code}"? ' if code else ""
    return UsageError(
        f"language: {quoted(name)} is no code of a language",
        where=where,
        advice=f"{meant}Built-in protocols speak {', '.join(LANGUAGES)}.",
    )


def _did_you_mean(loc: Loc) -> str:
    model: Any = SuiteFile
    for part in loc[:-1]:
        if not isinstance(part, int):
            model = _PARTS.get(part, SuiteFile)
    near = nearest(str(loc[-1]), model.model_fields, cutoff=0.5)
    return f'; did you mean "{near}"?' if near else f"; known: {', '.join(model.model_fields)}"


_PARTS: dict[str, type[_Part]] = {
    "judges": JudgeSpec,
    "limits": Limits,
    "settings": Settings,
    "store": StoreSpec,
    "price": PriceSpec,
    "compare": CompareSpec,
    "stop": StopSpec,
    "gate": GateSpec,
}


def suite_schema() -> dict[str, Any]:
    """The JSON Schema of the suite file, as shipped beside this module."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema"
    } | SuiteFile.model_json_schema()
