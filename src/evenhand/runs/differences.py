"""Differences between the files of a suite and those that a run used: a protocol folder that was
edited since, another rubric. What was used is kept with the run, so nothing is wrong; but a reader
should know.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import structs

from evenhand import jsontext
from evenhand.errors import UsageError
from evenhand.files.protocols import builtin_protocols, find_protocol, read_custom_prompt
from evenhand.files.rubrics import read_rubric
from evenhand.folders import read_text
from evenhand.kinds import KINDS, load_protocol
from evenhand.kinds.protocol import Protocol, ProtocolError
from evenhand.manifest import (
    Compare,
    GateRule,
    JudgeRecord,
    JudgingRecord,
    Manifest,
    rubric_json,
)
from evenhand.runs.plan import table_record
from evenhand.runs.recorded import Recorded
from evenhand.runs.rules import RuleChange, changed_rules, rules_of, value_text
from evenhand.suite import FILE, Suite, load_suite
from evenhand.suite_file import JudgeSpec, Settings
from evenhand.tomltext import TomlError, parse_toml

_FILES_NAMED = 3


def protocol_differences(
    protocol: Protocol, used: Protocol, set_elsewhere: Collection[str] = ()
) -> list[str]:
    """Return the differences of a protocol from one that was used, each as a few words: its rules,
    but for those that are set elsewhere, and the texts that judges are shown."""
    kind = KINDS[used.kind]
    try:
        changes = changed_rules(
            kind.resettle_settings(used, used), kind.resettle_settings(protocol, used)
        )
        words = [str(change) for change in changes if change.name not in set_elsewhere]
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
    """Return the differences of a judging from the one before, each as a few words with its place
    in the suite; none where it is the same."""
    record, old = manifest.judging, before.judging
    protocol = load_protocol(manifest.protocol, record.texts)
    used = load_protocol(before.protocol, old.texts)
    if protocol.kind != used.kind:
        return [f"protocol {protocol.name} in place of {used.name}"]
    words: list[str] = []
    if record.protocol != old.protocol:
        words.append(
            f"protocol {protocol.name} ({', '.join(protocol_differences(protocol, used))})"
        )
    if bytes(record.rubric_json) != bytes(old.rubric_json):
        words.append("rubric")
    words += [
        str(RuleChange(name, getattr(old, name), getattr(record, name)))
        for name in ("language", "seed")
        if getattr(record, name) != getattr(old, name)
    ]
    words += _judge_differences(record.judges, old.judges)
    return words + list(_setting_differences(protocol, record, used, old))


def _judge_differences(judges: Sequence[JudgeRecord], before: Sequence[JudgeRecord]) -> list[str]:
    """Return the differences of `[[judges]]` from before: other judges, or other settings of
    one."""
    names, old_names = ([judge.name for judge in panel] for panel in (judges, before))
    if names != old_names:
        return [f"[[judges]] {RuleChange('model', old_names, names)}"]
    words: list[str] = []
    for judge, old in zip(judges, before, strict=True):
        now, then = ({**one.identity, "repeats": one.repeats} for one in (judge, old))
        # The seed of a judge is that of the suite, which is told as such.
        keys = [key for key in now | then if key != "seed" and now.get(key) != then.get(key)]
        changes = [_judge_change(key, then.get(key), now.get(key)) for key in keys]
        if changes:
            words.append(f"[[judges]] {judge.name}: {', '.join(changes)}")
    return words


def _judge_change(key: str, old: object, new: object) -> str:
    """Return a key of a judge with both values, or what else of it is other, by name: a hash says
    no more to anybody."""
    if key == "params":
        return f"params {jsontext.dump(new or {})} in place of {jsontext.dump(old or {})}"
    if key in JudgeSpec.model_fields:
        unset = JudgeSpec.model_fields[key].default
        return str(RuleChange(key, unset if old is None else old, unset if new is None else new))
    return f"another {key}"


def _setting_differences(
    protocol: Protocol, record: JudgingRecord, used: Protocol, old: JudgingRecord
) -> Iterator[str]:
    """Yield the settings that are other than before; one that is not set is what the protocol
    says."""
    rules, old_rules = rules_of(protocol, record), rules_of(used, old)
    for name, value in record.settings.items():
        if name in old.settings and value != old.settings[name]:
            change = RuleChange(
                name, old_rules.get(name, old.settings[name]), rules.get(name, value)
            )
            yield _setting_words(change, is_set=value is not None)


def _setting_words(change: RuleChange, *, is_set: bool) -> str:
    """Return a changed setting, and where it stands in the suite."""
    place = "[settings] " if change.name in Settings.model_fields else ""
    if change.new == change.old:
        verb = "now set to" if is_set else "no longer set:"
        return f"{place}{change.name} {verb} {value_text(change.new)}, as the protocol has it"
    return f"{place}{change}{'' if is_set else ' (no longer set: as the protocol has it)'}"


def folder_note(recorded: Recorded, folder: Path, environment: Mapping[str, str]) -> str | None:
    """Return a sentence where the suite in a folder is that of the run, and its protocol or rubric
    is not what the run used; None where there is nothing to say."""
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
    prompt = read_custom_prompt(*suite.located("prompt", file.prompt)) if file.prompt else None
    if file.protocol not in builtin_protocols():
        suite.located("protocol", file.protocol)
    protocol = find_protocol(file.protocol, suite.folder, prompt)
    if protocol.kind != used.kind:
        yield f"its protocol is of the kind {protocol.kind}"
        return
    record = recorded.manifest.judging
    # Who settled a run by other rules knows that the suite has others.
    is_settled = recorded.manifest.settled_from is not None
    rules = {} if is_settled else _rules_set(used, record, file.settings)
    if differences := protocol_differences(protocol, used, rules):
        yield f"protocol {file.protocol} ({', '.join(differences)})"
    with suppress(ProtocolError):  # then what is asked for is other
        present = KINDS[used.kind].resettle_settings(protocol, used)
        new = {name: rules[name] if rules[name] is not None else present[name] for name in rules}
        for change in changed_rules(rules_of(used, record), new):
            yield _setting_words(change, is_set=rules[change.name] is not None)
    if KINDS[used.kind].rubric_form is not None and file.rubric is not None:
        path, root = suite.located("rubric", file.rubric)
        if bytes(rubric_json(read_rubric(path, protocol, root))) != bytes(record.rubric_json):
            yield f"rubric {file.rubric}"


def _rules_set(used: Protocol, record: JudgingRecord, settings: Settings) -> dict[str, Any]:
    """Return the rules that `[settings]` say, or said for a run, as they are set now."""
    values = settings.model_dump()
    return {
        name: values[name]
        for name in KINDS[used.kind].resettle_settings(used, used)
        if name in values and (values[name] is not None or record.settings.get(name) is not None)
    }


def with_present_suite(recorded: Recorded, place: Path, environment: Mapping[str, str]) -> Recorded:
    """Return the run with `[compare]` and `[gate]` of a suite file, or of the one in a folder, as
    they stand there now, where that suite made it. Raise UsageError for a file that cannot be
    read."""
    suite = _suite_of(recorded, place, environment)
    return recorded if suite is None else with_tables(recorded, suite)


def with_tables(recorded: Recorded, suite: Suite) -> Recorded:
    """Return the run with `[compare]` and `[gate]` of a suite, where it says something; else with
    what the run recorded. What a run that was to stop early compares was fixed before it began."""
    manifest, file = recorded.manifest, suite.file
    if file.compare is not None and not manifest.is_sequential:
        manifest = structs.replace(manifest, compare=table_record(file.compare, Compare))
    if file.gate is not None:
        manifest = structs.replace(manifest, gate=table_record(file.gate, GateRule))
    return Recorded(recorded.row, manifest, recorded.selection)


def _suite_of(recorded: Recorded, place: Path, environment: Mapping[str, str]) -> Suite | None:
    """Return the suite of a file or folder, if the run was made by one of its name; else None."""
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
    """Return the name that a suite file gives itself, whatever else is wrong with it; None where it
    says none that can be read."""
    try:
        name = parse_toml(read_text(path, "the suite")).get("name")
    except (UsageError, TomlError):
        return None
    return name if isinstance(name, str) else None
