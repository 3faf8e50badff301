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
from evenhand.cli.language import speaker, terminal_words
from evenhand.errors import EvenhandError, StoreMissing, UsageError
from evenhand.judges import PROVIDERS, Provider, split_name
from evenhand.judges.credentials import environment, place_of
from evenhand.judges.trust import Trust, TrustedHosts, has_key, key_use
from evenhand.runs.prepare import judge_options
from evenhand.runs.stores import open_archive
from evenhand.store.address import shown_url
from evenhand.suite import FILE, Suite, load_suite
from evenhand.words import Code, Sentence

State = Literal["ok", "absent", "look"]
Finding = tuple[str, State, str | EvenhandError]
MARKS: dict[State, str] = {"ok": "ok  ", "absent": "--  ", "look": "LOOK"}
"""What is absent is not needed for everything."""


PACKAGES = {
    "sql": "duckdb",
    "schema": "jsonschema_rs",
    "xlsx": "python_calamine",
    "report": "jinja2",
    "postgres": "asyncpg",
    "view": "fastapi",
    "length": "sklearn",
}
"""A package of each extra that is no judge's."""


@click.command("doctor")
@json_option
def doctor_command(as_json: bool) -> int:
    """Check what is installed, which keys are set, the models, the suite and the store.

    Says how to get what is missing. Sends nothing. Exit code 0 if nothing needs a look, else 1.
    """
    findings = list(_findings())
    all_well = all(state != "look" for _, state, _ in findings)
    if as_json:
        rows = [
            {"what": w, "ok": state != "look", "said": str(detail)} for w, state, detail in findings
        ]
        print_json({"ok": all_well, "findings": rows})
    else:
        say = terminal_words()
        for what, state, detail in findings:
            said = say.message(detail) if isinstance(detail, str) else detail.text(say.message)
            click.echo(f"{MARKS[state]} {say.message(what)}: {said}")
    return 0 if all_well else 1


def _findings() -> Iterator[Finding]:
    versions = {"version": version("evenhand"), "python": platform.python_version()}
    yield "evenhand", "ok", Sentence("cli.version_on", **versions)
    is_new = sqlite3.sqlite_version_info >= (3, 35)
    yield "sqlite", "ok" if is_new else "look", sqlite3.sqlite_version
    for provider in PROVIDERS.values():
        if provider.package:
            what = Sentence("cli.judge_of", provider=provider.name)
            yield _extra(what, provider.package, provider.extra)
    for extra, package in PACKAGES.items():
        yield _extra(Sentence(f"cli.part_{extra}"), package, extra)
    yield from _models()
    environ = environment()
    for provider in PROVIDERS.values():
        if provider.is_billed:
            yield _key(provider, environ)
    yield from _check_trust()
    yield from _suite(environ)


def _extra(what: str, module: str, extra: str) -> Finding:
    if find_spec(module) is None:
        return what, "absent", Sentence("cli.not_installed", extra=extra)
    try:
        return what, "ok", f"{module} {version(module)}"
    except PackageNotFoundError:
        return what, "ok", Sentence("cli.installed", package=module)


def _key(provider: Provider, environ: Mapping[str, str]) -> Finding:
    for name in provider.key_names:
        if environ.get(name):
            place = place_of(environ, name)
            key = "cli.key_set" if place else "cli.key_in_environment"
            return name, "ok", Sentence(key, place=place)
    return provider.key_names[0], "absent", Sentence("cli.key_absent", provider=provider.name)


def _check_trust() -> Iterator[Finding]:
    hosts = TrustedHosts()
    what = Sentence("cli.trusted_hosts")
    try:
        names = hosts.hosts()
    except EvenhandError as error:
        yield what, "look", error
        return
    if names:
        yield what, "ok", f"{', '.join(names)} ({hosts.file})"


def _key_uses(suite: Suite, environ: Mapping[str, str]) -> Iterator[Finding]:
    """Yield where the key of each judge of a suite would go, and if it may."""
    for spec in suite.file.judges:
        provider, _ = split_name(spec.model)
        if not provider.wire:
            continue
        what = Sentence("cli.judge_of", provider=spec.model)
        use = key_use(provider, judge_options(suite, spec, environ))
        if not has_key(use, environ):
            continue
        try:
            Trust(TrustedHosts(), tell=lambda line: None).check(use)
        except UsageError as error:
            yield what, "look", error
            continue
        key = "cli.key_goes_plain" if use.is_plaintext else "cli.key_goes"
        yield what, "ok", Sentence(key, key=use.key_name, host=use.host)


def _models() -> Iterator[Finding]:
    from evenhand.judges.embedded import models

    for model in models.catalogue():
        path = models.find(model.name)
        absent = Sentence("cli.model_missing", name=model.name)
        what = Sentence("cli.model_of", name=model.name)
        yield what, "ok" if path else "absent", str(path) if path else absent


def _suite(environ: dict[str, str]) -> Iterator[Finding]:
    if not Path(FILE).exists():
        yield Sentence("cli.suite"), "absent", Sentence("cli.no_suite", file=FILE)
        return
    try:
        suite = load_suite(Path(FILE), environ)
        speaker().choose(suite.file.language)
        yield Sentence("cli.suite"), "ok", f"{FILE}: {suite.file.name}"
        yield from _key_uses(suite, environ)
        url = suite.store_url
        address = Code(shown_url(url))
        try:
            store = open_archive(url, suite.folder)
        except StoreMissing:
            yield Sentence("cli.store"), "absent", Sentence("cli.store_absent", store=address)
            return
        try:
            number = len(store.runs())
            yield Sentence("cli.store"), "ok", Sentence("cli.store_runs", store=address, n=number)
        finally:
            store.close()
    except EvenhandError as error:
        yield Sentence("cli.suite_or_store"), "look", error
