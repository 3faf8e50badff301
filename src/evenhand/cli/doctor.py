"""`evenhand doctor`."""

from __future__ import annotations

import platform
import sqlite3
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

import click

from evenhand.cli.common import json_option, print_json
from evenhand.errors import EvenhandError, StoreMissing, UsageError
from evenhand.judges import PROVIDERS, Provider, split_name
from evenhand.judges.credentials import environment, place_of
from evenhand.judges.trust import Trust, TrustedHosts, has_key, key_use
from evenhand.runs.prepare import judge_options
from evenhand.runs.stores import open_archive
from evenhand.store.address import shown_url
from evenhand.suite import FILE, Suite, load_suite

State = Literal["ok", "absent", "look"]
Finding = tuple[str, State, str]
MARKS: dict[State, str] = {"ok": "ok  ", "absent": "--  ", "look": "LOOK"}
"""What is absent is not needed for everything."""


@click.command("doctor")
@json_option
def doctor_command(as_json: bool) -> int:
    """Say what is installed, what is missing and how to get it. Sends nothing."""
    findings = list(_findings())
    all_well = all(state != "look" for _, state, _ in findings)
    if as_json:
        rows = [{"what": w, "ok": state != "look", "said": detail} for w, state, detail in findings]
        print_json({"ok": all_well, "findings": rows})
    else:
        for what, state, detail in findings:
            click.echo(f"{MARKS[state]} {what}: {detail}")
    return 0 if all_well else 1


def _findings() -> Iterator[Finding]:
    yield "evenhand", "ok", f"{version('evenhand')} on Python {platform.python_version()}"
    is_new = sqlite3.sqlite_version_info >= (3, 35)
    yield "sqlite", "ok" if is_new else "look", sqlite3.sqlite_version
    for provider in PROVIDERS.values():
        if provider.package:
            yield _extra(f"{provider.name} judge", provider.package, provider.extra)
    yield _extra("parquet files, SQL", "duckdb", "sql")
    yield _extra("workbooks", "python_calamine", "xlsx")
    yield _extra("report", "jinja2", "report")
    yield _extra("PostgreSQL stores", "asyncpg", "postgres")
    yield _extra("web view", "fastapi", "view")
    yield _extra("win rates at equal lengths", "sklearn", "length")
    yield from _models()
    environ = environment()
    for provider in PROVIDERS.values():
        if provider.is_billed:
            yield _key(provider, environ)
    yield from _check_trust()
    yield from _suite(environ)


def _extra(what: str, module: str, extra: str) -> Finding:
    if find_spec(module) is None:
        return what, "absent", f'not installed; to get it: pip install "evenhand[{extra}]"'
    try:
        return what, "ok", f"{module} {version(module)}"
    except PackageNotFoundError:
        return what, "ok", f"{module} is there"


def _key(provider: Provider, environ: Mapping[str, str]) -> Finding:
    for name in provider.key_names:
        if environ.get(name):
            return name, "ok", f"set in {place_of(environ, name) or 'the environment'}"
    return provider.key_names[0], "absent", f"not set (needed for {provider.name} only)"


def _check_trust() -> Iterator[Finding]:
    hosts = TrustedHosts()
    try:
        names = hosts.hosts()
    except EvenhandError as error:
        yield "trusted hosts", "look", str(error)
        return
    if names:
        yield "trusted hosts", "ok", f"{', '.join(names)} ({hosts.file})"


def _key_uses(suite: Suite, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield where the key of each judge of a suite would go, and if it may."""
    for spec in suite.file.judges:
        provider, _ = split_name(spec.model)
        if not provider.wire:
            continue
        use = key_use(provider, judge_options(suite, spec, environ))
        if not has_key(use, environ):
            continue
        try:
            Trust(TrustedHosts(), tell=lambda line: None).check(use)
        except UsageError as error:
            yield f"judge {spec.model}", "look", str(error)
            continue
        way = ", over plain http" if use.is_plaintext else ""
        yield f"judge {spec.model}", "ok", f"{use.key_name} goes to {use.host}{way}"


def _models() -> Iterator[Finding]:
    from evenhand.judges.embedded import models

    for model in models.catalogue():
        path = models.find(model.name)
        state = str(path) if path else f"not here; to get it: evenhand models get {model.name}"
        yield f"model {model.name}", "ok" if path else "absent", state


def _suite(environ: dict[str, str]) -> Iterator[Finding]:
    if not Path(FILE).exists():
        yield "suite", "absent", f"no {FILE} here; to make one: evenhand init"
        return
    try:
        suite = load_suite(Path(FILE), environ)
        yield "suite", "ok", f"{FILE}: {suite.file.name}"
        yield from _key_uses(suite, environ)
        url = suite.store_url
        try:
            store = open_archive(url, suite.folder)
        except StoreMissing:
            yield "store", "absent", f"{shown_url(url)}: not made yet"
            return
        try:
            yield "store", "ok", f"{shown_url(url)}: {len(store.runs())} runs"
        finally:
            store.close()
    except EvenhandError as error:
        yield "suite or store", "look", str(error)
