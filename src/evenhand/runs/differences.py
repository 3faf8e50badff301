"""How the files of a suite stand to what a run used: a protocol folder that was edited since,
another rubric. What was used is kept with the run, so nothing is wrong; but a reader should know.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import structs

from evenhand.errors import UsageError
from evenhand.files.protocols import builtin_protocols, find_protocol, own_prompt
from evenhand.files.rubrics import read_rubric
from evenhand.folders import read_text
from evenhand.kinds import KINDS, load_protocol
from evenhand.kinds.shared.load import Protocol, ProtocolError
from evenhand.manifest import Compare, GateRule, JudgingRecord, Manifest, rubric_json
from evenhand.runs.plan import table_record
from evenhand.runs.recorded import Recorded
from evenhand.runs.rules import changed_rules, rules_of
from evenhand.suite import FILE, Suite, load_suite
from evenhand.tomltext import TomlError, parse_toml

_FILES_NAMED = 3


def protocol_differences(
    protocol: Protocol,
    used: Protocol,
    record: JudgingRecord | None = None,
    settings: Mapping[str, Any] = MappingProxyType({}),
) -> list[str]:
    """What is other in a protocol than in one that was used, each as a few words: its rules, the
    texts that judges are shown. `record` says which rules were set instead of those used, and
    `settings` which are set instead of the protocol's own."""
    kind = KINDS[used.kind]
    rules = kind.rules(used, used) if record is None else rules_of(used, record)
    try:
        present = dict(kind.rules(protocol, used))
        present |= {name: settings[name] for name in present if settings.get(name) is not None}
        words = [str(change) for change in changed_rules(rules, present)]
    except ProtocolError:
        words = ["what is asked for"]
    names = sorted(
        name
        for name in protocol.texts.keys() | used.texts.keys()
        if name != "protocol.toml" and protocol.texts.get(name) != used.texts.get(name)
    )
    if names:
        more = f" and {len(names) - _FILES_NAMED} more" if len(names) > _FILES_NAMED else ""
        words.append(", ".join(names[:_FILES_NAMED]) + more)
    if not words and protocol.texts.get("protocol.toml") != used.texts.get("protocol.toml"):
        words.append("protocol.toml")
    return words


def judging_differences(manifest: Manifest, before: Manifest) -> list[str]:
    """What of a judging is other than before, each as a few words; nothing where it is the same."""
    record, old = manifest.judging, before.judging
    words: list[str] = []
    if record.protocol != old.protocol:
        protocol = load_protocol(manifest.protocol, record.texts)
        used = load_protocol(before.protocol, old.texts)
        if protocol.kind != used.kind:
            words.append(f"protocol {protocol.name}")
        else:
            changes = protocol_differences(protocol, used)
            words.append(f"protocol {protocol.name} ({', '.join(changes)})")
    if bytes(record.rubric_json) != bytes(old.rubric_json):
        words.append("rubric")
    if record.judges != old.judges:
        words.append(f"judges {', '.join(judge.name for judge in record.judges)}")
    for name in ("language", "seed"):
        if getattr(record, name) != getattr(old, name):
            words.append(f"{name} {getattr(record, name)}")
    words += [
        f"{name} {value}"
        for name, value in record.settings.items()
        if value != old.settings.get(name) and name in old.settings
    ]
    return words


def folder_note(recorded: Recorded, folder: Path, environment: Mapping[str, str]) -> str | None:
    """A sentence where the suite in a folder is that of the run, and its protocol or rubric is not
    what the run used; None where there is nothing to say."""
    if recorded.imported:
        return None
    with suppress(UsageError, OSError):
        differences = list(_differences(recorded, folder, environment))
        if differences:
            listed = "; ".join(differences)
            return f"The suite here differs from what run {recorded.id} used: {listed}."
    return None


def _differences(recorded: Recorded, folder: Path, environment: Mapping[str, str]) -> Iterator[str]:
    suite = _suite_of(recorded, folder, environment)
    if suite is None:
        return
    file, used = suite.file, recorded.protocol
    prompt = own_prompt(*suite.located("prompt", file.prompt)) if file.prompt else None
    if file.protocol not in builtin_protocols():
        suite.located("protocol", file.protocol)
    protocol = find_protocol(file.protocol, suite.folder, prompt)
    if protocol.kind != used.kind:
        yield f"its protocol is of the kind {protocol.kind}"
        return
    record = recorded.manifest.judging
    # Who settled a run by other rules knows that the suite has others.
    is_settled = recorded.manifest.settled_from is not None
    rules_set = (None, {}) if is_settled else (record, structs.asdict(file.settings))
    if differences := protocol_differences(protocol, used, *rules_set):
        yield f"protocol {file.protocol} ({', '.join(differences)})"
    if KINDS[used.kind].rubric_form is not None and file.rubric is not None:
        path, root = suite.located("rubric", file.rubric)
        if bytes(rubric_json(read_rubric(path, protocol, root))) != bytes(record.rubric_json):
            yield f"rubric {file.rubric}"


def with_present_suite(recorded: Recorded, place: Path, environment: Mapping[str, str]) -> Recorded:
    """The run with `[compare]` and `[gate]` of a suite file, or of the one in a folder, as they
    stand there now, where that suite made it. Raises UsageError for a file that cannot be read."""
    suite = _suite_of(recorded, place, environment)
    return recorded if suite is None else with_tables(recorded, suite)


def with_tables(recorded: Recorded, suite: Suite) -> Recorded:
    """The run with `[compare]` and `[gate]` of a suite, where it says something; else with what the
    run recorded. What a run that was to stop early compares was fixed before it began."""
    manifest, file = recorded.manifest, suite.file
    if file.compare is not None and not manifest.is_sequential:
        manifest = structs.replace(manifest, compare=table_record(file.compare, Compare))
    if file.gate is not None:
        manifest = structs.replace(manifest, gate=table_record(file.gate, GateRule))
    return Recorded(recorded.row, manifest, recorded.selection)


def _suite_of(recorded: Recorded, place: Path, environment: Mapping[str, str]) -> Suite | None:
    """The suite of a file or folder, if the run was made by one of its name."""
    path = place / FILE if place.is_dir() else place
    if not path.exists():
        return None
    try:
        suite = load_suite(path, environment)
    except UsageError:
        if _written_name(path) in (None, recorded.row.name):
            raise
        return None
    return suite if suite.file.name == recorded.row.name else None


def _written_name(path: Path) -> str | None:
    """The name that a suite file gives itself, whatever else is wrong with it; None where it says
    none that can be read."""
    try:
        name = parse_toml(read_text(path, "the suite")).get("name")
    except (UsageError, TomlError):
        return None
    return name if isinstance(name, str) else None
