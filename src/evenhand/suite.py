"""`evenhand.toml` to a Suite: one place of precedence, every error with file and line.

Command line beats environment (`EVENHAND_...`) beats file beats default.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping
from copy import copy
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pydantic import ValidationError

from evenhand import limits
from evenhand.errors import UsageError, nearest
from evenhand.folders import is_within, read_text
from evenhand.store.address import Address, is_postgres, read_address
from evenhand.suite_file import TABLES, SuiteFile, keys_of
from evenhand.tomltext import Loc, TomlError, find_line, parse_toml
from evenhand.units import META_FIELDS
from evenhand.words import Code, Sentence, words

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

FILE = "evenhand.toml"
_DATA_ENDINGS = (".csv", ".tsv", ".xlsx", ".json", ".jsonl", ".ndjson", ".parquet", ".eval", ".gz")
ROUTE_KEYS = ("base_url", "proxy", "ca_file")
"""The keys of a judge that say where its key is sent."""
_SETTINGS = frozenset(
    {"schema", "host", "port", "user", "dbname", "database", "password", "sslmode"}
    | {"target_session_attrs"}
)
"""What a suite's file may say of its PostgreSQL server, beside who it is."""
_FIELD = re.compile(r"\{(\w+)\}")
"""In a name of data files: a part of the path that is a field of all rows."""


class Located(NamedTuple):
    """A file that a suite names, and the folder it must lie in; None where it may lie anywhere."""

    path: Path
    root: Path | None


class Suite:
    """A suite and the folder its paths are relative to.

    `user_keys` are those set by the user, on the command line or in the environment; only what
    these name may lie outside of the folder. Without a file, all of it is the user's. `addresses`
    are those that the file gives to judges, each with its line.
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

    def with_file(self, file: SuiteFile) -> Suite:
        """Return the suite with other keys in its file."""
        changed = copy(self)
        changed.file = file
        return changed

    def locate(self, key: str, name: str) -> Located:
        """Return where a file lies that a key of the suite names; raises UsageError for one outside
        of the folder that the user has not named."""
        if "\0" in name:
            raise UsageError(
                Sentence("suite.no_file_name", key=key, name=name), where=self.where(key)
            )
        path = self.folder / name
        if self._allow_outside or key in self._user_keys:
            return Located(path, None)
        if not is_within(path, self.folder):
            flag = "--store" if key == "store" else "--allow-outside"
            what = Sentence("suite.outside", key=key, name=name, flag=Code(flag))
            raise UsageError(what, where=self.where(key))
        return Located(path, self.folder)

    def located_files(self, key: str, name: str) -> list[Located]:
        """Return where the files lie that a name or a pattern such as `answers/*.csv` stands for,
        sorted; raises UsageError where a pattern fits none, or one leads out of the folder."""
        name = _FIELD.sub("*", name)
        if not has_magic(name) or "\0" in name or (self.folder / name).exists():
            return [self.locate(key, name)]
        # Unlike that of Path, it takes absolute patterns too.
        names = glob(name, root_dir=self.folder, recursive=True)  # noqa: PTH207
        files = [str(path) for path in sorted(map(Path, names)) if (self.folder / path).is_file()]
        if not files:
            folder = str(self.folder.resolve())
            what = Sentence("suite.no_match", key=key, pattern=name, folder=folder)
            raise UsageError(what, where=self.where(key))
        return [self.locate(key, file) for file in files]

    def path_fields(self, name: str, path: Path) -> dict[str, str]:
        """Return the fields that a file's path holds where a name says `runs/{week}/{model}.csv`;
        one that stands twice must hold the same. Raises UsageError."""
        fields = _FIELD.findall(name)
        if not fields:
            return {}
        parts = re.split(r"(\{\w+\}|\*\*/|\*|\?)", name)
        patterns = {"*": "[^/]*", "**/": "(?:.*/)?", "?": "[^/]"}
        pattern = "".join(
            "([^/]+)" if _FIELD.fullmatch(part) else patterns.get(part, re.escape(part))
            for part in parts
        )
        match = re.fullmatch(pattern, os.path.relpath(path, self.folder))
        values = match.groups() if match else ()
        found = dict(zip(fields, values, strict=False))
        if [found.get(field) for field in fields] != list(values) or not match:
            raise UsageError(Sentence("suite.path_no_match", path=str(path), pattern=name))
        named = {"prompt_variant" if k == "variant" else k: v for k, v in found.items()}
        # What no meta field says, such as a week, tells runs of the same questions apart.
        runs = [value for name, value in named.items() if name not in META_FIELDS]
        return {**({"run_id": "/".join(runs)} if runs and "run_id" not in named else {}), **named}

    @property
    def store_url(self) -> str:
        """Return the address of the store; raises UsageError for a file outside of the folder."""
        url = self.file.store.url
        scheme, _, name = url.partition(":")
        if scheme == "sqlite" and name != ":memory:":
            self.locate("store", name.removeprefix("//"))
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
            key = "suite.strange_host" if strangers else "suite.strange_setting"
            name = strangers[0] if strangers else min(settings)
            raise UsageError(Sentence(key, name=name), where=self.where("store"))

    def address_place(self, url: str | None) -> str:
        """Return where the file gives a judge this `base_url`, `proxy` or `ca_file`, also for a
        judge that the command line names; empty where it does not, and the user does."""
        return self._addresses.get(url or "", "")

    def where(self, *loc: str | int) -> str:
        """Return the file and the line of a key; empty where there is no file."""
        return _line_of(self.path, _text(self.path), loc) if self.path else ""


def _line_of(path: Path, text: str, loc: Loc) -> str:
    """Return the file and, where it is known, the line of a key."""
    line = find_line(text, loc)
    return f"{path}:{line}" if line else str(path)


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
        raise UsageError(error.args[0], where=where) from None
    addresses = _addresses(values, path, text)
    overrides, environ = overrides or {}, _from_environment(environment)
    _merge(values, environ)
    _merge(values, overrides)

    def locate(loc: Loc) -> str:
        if _holds(overrides, loc):
            return Sentence("suite.command_line")
        if _holds(environ, loc):
            return "EVENHAND_" + "__".join(map(str, loc)).upper()
        return _line_of(path, text, loc)

    file = _validate(values, locate)
    keys = overrides.keys() | environ.keys()
    return Suite(file, path.parent, path, keys, allow_outside=allow_outside, addresses=addresses)


def _text(path: Path) -> str:
    if not path.exists():
        near = nearest(path.name, [file.name for file in path.parent.glob("*.toml")])
        key = "suite.no_suite_near" if near else "suite.no_suite"
        raise UsageError(Sentence(key, path=str(path), near=near))
    if path.suffix.lower() in _DATA_ENDINGS:
        raise UsageError(Sentence("suite.is_data", path=str(path)))
    return read_text(path)


def _addresses(values: Mapping[str, Any], path: Path, text: str) -> dict[str, str]:
    """Return each address, proxy and file of certificates that the file gives to a judge, with its
    line."""
    judges: Any = values.get("judges")
    lines: dict[str, str] = {}
    for index, judge in enumerate(judges if isinstance(judges, list) else ()):
        for key in ROUTE_KEYS:
            if isinstance(judge, dict) and isinstance(judge.get(key), str):
                lines[judge[key]] = _line_of(path, text, ("judges", index, key))
    return lines


def _merge(into: dict[str, Any], values: Mapping[str, Any]) -> None:
    for key, value in values.items():
        existing = into.get(key)
        if isinstance(value, Mapping) and isinstance(existing, dict):
            _merge(cast("dict[str, Any]", existing), cast("Mapping[str, Any]", value))
        else:
            into[key] = value


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return `EVENHAND_LIMITS__CONCURRENCY=8` as {"limits": {"concurrency": "8"}}. A variable that
    is no key of a suite may be anyone's, but not if it is one mistyped."""
    values: dict[str, Any] = {}
    for variable, value in environment.items():
        if not variable.startswith("EVENHAND_"):
            continue
        top, *rest = variable.removeprefix("EVENHAND_").lower().split("__")
        if len(rest) > limits.NAME_PARTS:
            raise UsageError(
                Sentence("suite.too_many_names", n=limits.NAME_PARTS), where=variable[:200]
            )
        if top in keys_of(SuiteFile):
            nested: Any = value
            for key in reversed(rest):
                nested = {key: nested}
            _merge(values, {top: nested})
        elif rest and (near := nearest(top, TABLES, cutoff=0.75)):
            meant = "__".join(["EVENHAND_" + near, *rest]).upper()
            name = ".".join([top, *rest])
            what = Sentence("suite.unknown_key_near", name=name, near=meant)
            raise UsageError(what, where=variable)
    return values


def _holds(values: object, loc: Loc) -> bool:
    """Return True if there is a value at `loc`."""
    for part in loc:
        try:
            values = cast("Any", values)[part]
        except (LookupError, TypeError):
            return False
    return True


def suite_of_keys(keys: Mapping[str, Any]) -> SuiteFile:
    """Return a suite that no file holds; raises UsageError, which never quotes the value of an
    unknown key."""
    return _validate(keys, lambda loc: "")


def _validate(values: Mapping[str, Any], locate: Callable[[Loc], str]) -> SuiteFile:
    """Return the suite that keys make; raises UsageError for one of them that is wrong, with where
    `locate` finds it."""
    try:
        return SuiteFile.model_validate(values)
    except ValidationError as error:
        item = _first_error(error)
    loc = item["loc"]
    # Pydantic adds the choices of a union to it.
    while len(loc) > 1 and item["type"] != "missing" and not _holds(values, loc):
        loc = loc[:-1]
    example = f"suite.example_{loc[-1]}"
    has_example = len(loc) == 1 and words("en").has(example)
    advice = Sentence(example) if has_example else ""
    raise UsageError(_explain(item, loc), where=locate(loc), advice=advice)


def _first_error(error: ValidationError) -> ErrorDetails:
    """Return the error to tell first: a mistyped key explains why another one is missing."""
    errors = error.errors(include_url=False)
    missing = [str(item["loc"][-1]) for item in errors if item["type"] == "missing"]
    unknown = [item for item in errors if item["type"] == "extra_forbidden"]
    for item in unknown:
        if nearest(str(item["loc"][-1]), missing):
            return item
    return min(errors, key=lambda item: item["type"] not in ("missing", "extra_forbidden"))


def _explain(item: ErrorDetails, loc: Loc) -> Sentence:
    """Say which key is wrong, and what belongs there."""
    name = ".".join(map(str, loc))
    if item["type"] == "extra_forbidden":
        tables = [TABLES[str(step)] for step in loc[:-1] if step in TABLES]
        keys = keys_of(tables[-1] if tables else SuiteFile)
        if near := nearest(str(loc[-1]), keys, cutoff=0.5):
            return Sentence("suite.unknown_key_near", name=name, near=near)
        return Sentence("suite.unknown_key", name=name, keys=Code(", ".join(keys)))
    key = f"suite.{item['type']}"  # a sentence for each type of error that pydantic has
    values = {"value": str(item["input"]), "reason": item["msg"], **item.get("ctx", {})}
    return Sentence(key if words("en").has(key) else "suite.other_error", name=name, **values)
