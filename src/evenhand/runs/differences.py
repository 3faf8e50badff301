"""How the files of a suite stand to what a run used: a protocol folder that was edited since,
another rubric. What was used is kept with the run, so nothing is wrong; but a reader should know.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import structs

from evenhand.errors import UsageError
from evenhand.files.protocols import builtin_protocols, find_protocol, own_prompt
from evenhand.files.rubrics import read_rubric
from evenhand.kinds import KINDS, load_protocol
from evenhand.kinds.shared.load import Protocol, ProtocolError
from evenhand.manifest import Compare, GateRule, JudgingRecord, Manifest, rubric_json
from evenhand.runs.plan import table_record
from evenhand.runs.recorded import Recorded
from evenhand.runs.rules import changed_rules, rules_of
from evenhand.suite import FILE, Suite, load_suite

_FILES_NAMED = 3


def protocol_differences(
    protocol: Protocol, used: Protocol, record: JudgingRecord | None = None
) -> list[str]:
    """What is other in a protocol than in one that was used, each as a few words: its rules, the
    texts that judges are shown. `record` says which rules were set instead of those used."""
    kind = KINDS[used.kind]
    rules = kind.rules(used, used) if record is None else rules_of(used, record)
    try:
        words = [str(change) for change in changed_rules(rules, kind.rules(protocol, used))]
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
            return (
                f"The suite here differs from what run {recorded.id} used: {listed}."
                " `settle` applies other rules without a call, `run` judges anew."
            )
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
    if differences := protocol_differences(protocol, used, record):
        yield f"protocol {file.protocol} ({', '.join(differences)})"
    if KINDS[used.kind].rubric_form is not None and file.rubric is not None:
        path, root = suite.located("rubric", file.rubric)
        if bytes(rubric_json(read_rubric(path, protocol, root))) != bytes(record.rubric_json):
            yield f"rubric {file.rubric}"


def with_present_suite(
    recorded: Recorded, folder: Path, environment: Mapping[str, str]
) -> Recorded:
    """The run with `[compare]` and `[gate]` of the suite in a folder as they stand there now, where
    that suite made it; what the run recorded holds where the file says nothing or cannot be read.
    What a run that was to stop early compares was fixed before it began."""
    suite = None
    with suppress(UsageError, OSError):
        suite = _suite_of(recorded, folder, environment)
    if suite is None:
        return recorded
    manifest, file = recorded.manifest, suite.file
    if file.compare is not None and not manifest.is_sequential:
        manifest = structs.replace(manifest, compare=table_record(file.compare, Compare))
    if file.gate is not None:
        manifest = structs.replace(manifest, gate=table_record(file.gate, GateRule))
    return Recorded(recorded.row, manifest, recorded.selection)


def _suite_of(recorded: Recorded, folder: Path, environment: Mapping[str, str]) -> Suite | None:
    """The suite in a folder, if the run was made by one of its name."""
    if not (folder / FILE).exists():
        return None
    suite = load_suite(folder, environment)
    return suite if suite.file.name == recorded.row.name else None
