"""Differences between the files of a suite and those that a run used: a protocol folder that was
edited since, another rubric. What was used is kept with the run, so nothing is wrong; but a reader
should know.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import structs

from evenhand.errors import UsageError
from evenhand.files.protocols import builtin_protocols, find_protocol, read_custom_prompt
from evenhand.files.rubrics import is_rubric_text, suite_rubric
from evenhand.folders import read_text
from evenhand.kinds import KINDS
from evenhand.manifest import Compare, GateRule, JudgeRecord, Manifest, rubric_json
from evenhand.runs.plan import table_record
from evenhand.runs.recorded import Recorded
from evenhand.runs.rules import RuleChange, changed_rules
from evenhand.suite import FILE, Suite, load_suite
from evenhand.tomltext import TomlError, parse_toml
from evenhand.words import Code, Sentence, few

_FILES_NAMED = 3


def judging_differences(manifest: Manifest, before: Manifest) -> list[str]:
    """Return the parts of a judging that are not those of the one before, a phrase each."""
    record, old = manifest.judging, before.judging
    words: list[str] = []
    if record.protocol != old.protocol:
        words.append(_protocol_words(manifest.protocol, record.texts, old.texts))
    if bytes(record.rubric_json) != bytes(old.rubric_json):
        words.append(Sentence("runs.differs_rubric"))
    words += [
        RuleChange(name, getattr(old, name), getattr(record, name)).phrase()
        for name in ("language", "seed")
        if getattr(record, name) != getattr(old, name)
    ]
    names, old_names = ([judge.name for judge in each.judges] for each in (record, old))
    if names != old_names:
        words.append(RuleChange("model", old_names, names).phrase("[[judges]]"))
    else:
        words += filter(None, map(_judge_words, record.judges, old.judges))
    changes = changed_rules(old.settings, record.settings)
    kept = [change for change in changes if change.name in (*old.settings, "pass", "checks")]
    return words + [change.phrase("[settings]") for change in kept]


def _protocol_words(name: str, texts: Mapping[str, str], used: Mapping[str, str]) -> str:
    """Return a protocol with those of its files that differ."""
    files = sorted(file for file in texts.keys() | used.keys() if texts.get(file) != used.get(file))
    return Sentence("runs.differs_protocol", name=name, files=few(files, _FILES_NAMED))


def _judge_words(judge: JudgeRecord, before: JudgeRecord) -> str:
    """Return a judge with the names of what is set otherwise; empty where nothing is."""
    now, then = ({**one.identity, "repeats": one.repeats} for one in (judge, before))
    # The seed of a judge is that of the suite, which is told as such.
    keys = [key for key in now | then if key != "seed" and now.get(key) != then.get(key)]
    if not keys:
        return ""
    return Sentence("runs.differs_judge", judge=judge.name, keys=Code(", ".join(keys)))


def folder_differences(
    recorded: Recorded, folder: Path, environment: Mapping[str, str]
) -> list[str]:
    """Return the parts of the suite in a folder that are not what its run used, a phrase each:
    protocol and rubric."""
    if not recorded.imported:
        with suppress(UsageError, OSError):
            return list(_differences(recorded, folder, environment))
    return []


def _differences(recorded: Recorded, folder: Path, environment: Mapping[str, str]) -> Iterator[str]:
    suite = _suite_of(recorded, folder, environment)
    if suite is None:
        return
    file, used = suite.file, recorded.protocol
    prompt = read_custom_prompt(*suite.locate("prompt", file.prompt)) if file.prompt else None
    if file.protocol not in builtin_protocols():
        suite.locate("protocol", file.protocol)
    protocol = find_protocol(file.protocol, suite.folder, prompt)
    if protocol.texts != used.texts:
        yield _protocol_words(file.protocol, protocol.texts, used.texts)
    has_rubric = protocol.kind == used.kind and KINDS[used.kind].rubric_form is not None
    given = file.rubric if file.criteria is None else file.criteria
    if has_rubric and given is not None:
        rubric = rubric_json(suite_rubric(suite, protocol))
        if bytes(rubric) != bytes(recorded.manifest.judging.rubric_json):
            is_file = isinstance(given, str) and not is_rubric_text(given)
            name = "differs_rubric_file" if is_file else "differs_rubric"
            yield Sentence(f"runs.{name}", file=given)


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
        name = parse_toml(read_text(path)).get("name")
    except (UsageError, TomlError):
        return None
    return name if isinstance(name, str) else None
