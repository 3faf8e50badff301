"""Other rules for replies that are there: what a person says instead of a run's protocol, and what
becomes of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from msgspec import Struct
from msgspec.structs import replace

from evenhand import jsontext
from evenhand.data.files import require_file
from evenhand.errors import UsageError
from evenhand.folders import read_text
from evenhand.kinds import KINDS
from evenhand.kinds.protocol import Protocol, ProtocolError, protocol_toml
from evenhand.manifest import JudgingRecord, rubric_json
from evenhand.words import Code, Names, Sentence

_KEYS = {"priority": "priority", "max_rounds": "max_rounds", "weights": "types"}
"""Rules by the keys of a protocol that say them."""


_TABLES = {"pass": "[pass]", "checks": "[[checks]]"}
"""Settings that are tables of their own in a suite."""
_FORMS = {
    "toml": Code("fact = { logic_and_fact = 50, ... }"),
    "json": Code('{"fact": {"logic_and_fact": 50, ...}}'),
}
"""A file of weights in each format, as an example."""


class NewRules(Struct, frozen=True):
    """The rules that a run is to be settled under; what is left empty stays as it is."""

    protocol: Protocol | None = None
    """One whose rules are to hold, whatever its prompts are."""
    values: Mapping[str, Any] = {}
    """Single rules by name: `priority`, `max_rounds`, `weights`."""
    settings: Mapping[str, Any] | None = None
    """Those of a suite, where it says how to settle; then `rubric` is the suite's."""
    rubric: Any = None


class RuleChange(NamedTuple):
    """A rule by its name, as it was and as it is."""

    name: str
    old: Any
    new: Any

    def phrase(self, table: str = "") -> Sentence:
        """Return the change in words, after the name of the table of the suite."""
        name = Code(_TABLES.get(self.name) or f"{table} {self.name}".lstrip())
        return Sentence(
            "runs.differs_rule", name=name, new=_value_text(self.new), old=_value_text(self.old)
        )

    def json(self) -> dict[str, Any]:
        return {"old": self.old, "new": self.new}


def _value_text(value: object) -> str | None:
    """Return a rule or a setting as it is written in a suite; None for that of the kind."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ", ".join(cast("list[str]", value)) or "[]"
    if isinstance(value, Mapping) and all(isinstance(row, Mapping) for row in value.values()):
        rows = cast("Mapping[str, Mapping[str, float]]", value)
        return "; ".join(
            f"{kind} {'/'.join(jsontext.dump(weight) for weight in row.values())}"
            for kind, row in rows.items()
        )
    if isinstance(value, list | Mapping):
        return jsontext.dump(value)
    return None if value is None else str(value)


def rules_of(protocol: Protocol, record: JudgingRecord) -> dict[str, Any]:
    """Return the rules that a judging settles by: those of its protocol, or what was set
    instead."""
    kind, settings = KINDS[protocol.kind], record.settings
    rules = dict(kind.resettle_settings(protocol, protocol))
    unset = {name for name, value in kind.settings.items() if settings.get(name) == value}
    return rules | {name: settings[name] for name in rules if name in settings.keys() - unset}


def changed_rules(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[RuleChange]:
    """Return the rules that differ. Of weights, the types that do."""
    return [
        RuleChange(name, _differing(old.get(name), value), _differing(value, old.get(name)))
        for name in {**old, **new}
        if (value := new.get(name)) != old.get(name)
    ]


def _differing(value: object, beside: object) -> object:
    """Return the rows of a table that are other than those beside them; anything else as it is."""
    if not (isinstance(value, Mapping) and isinstance(beside, Mapping)):
        return value
    rows, others = cast("Mapping[str, Any]", value), cast("Mapping[str, Any]", beside)
    return {name: row for name, row in rows.items() if row != others.get(name)}


def under_rules(protocol: Protocol, record: JudgingRecord, new: NewRules) -> JudgingRecord:
    """Return the judging of the same prompts and judges that settles by new rules; raise UsageError
    where its kind has no such rule, or where other replies would be needed."""
    kind = KINDS[protocol.kind]
    if new.settings is not None:
        rubric = rubric_json(new.rubric)
        record = replace(record, settings=new.settings, rubric_json=rubric)
    own_rules, rules = dict(kind.resettle_settings(protocol, protocol)), rules_of(protocol, record)
    if new.protocol is not None:
        rules |= _rules_of_folder(new.protocol, protocol)
    for name, value in new.values.items():
        rules[name] = _check_rule(protocol, rules, name, value)
    settings = dict(record.settings)
    changed = {change.name for change in changed_rules(rules_of(protocol, record), rules)}
    for name in sorted(changed):
        settings[name] = value = rules[name]
        if value == own_rules[name]:
            del settings[name]
            settings |= {name: kind.settings[name]} if name in kind.settings else {}
    return replace(record, settings=settings)


def _rules_of_folder(new: Protocol, used: Protocol) -> Mapping[str, Any]:
    if new.kind != used.kind:
        kinds = {"kind": new.kind, "used": used.kind}
        raise UsageError(Sentence("runs.other_kind", protocol=new.name, **kinds))
    kind = KINDS[used.kind]
    try:
        for language in new.languages:
            kind.check_protocol(new, language)
        return kind.resettle_settings(new, used)
    except ProtocolError as error:
        raise UsageError(
            error.args[0],
            where=f"{new.name}/{error.file}",
            advice=Sentence("runs.judge_by_protocol"),
        ) from None


def _check_rule(protocol: Protocol, rules: Mapping[str, Any], name: str, value: Any) -> Any:
    """Return one rule as the kind reads it; raise UsageError."""
    kind = KINDS[protocol.kind]
    if name not in rules:
        names = Names([name for name in _KEYS if name in rules])
        raise UsageError(Sentence("runs.no_rule", kind=protocol.kind, rule=name, names=names))
    if name == "weights":
        value = _types_under(protocol, rules["weights"], value)
    edited = replace(protocol, given={**protocol.given, _KEYS[name]: value})
    try:
        return kind.resettle_settings(edited, protocol)[name]
    except ProtocolError as error:
        raise UsageError(error.args[0]) from None


def _types_under(
    protocol: Protocol, weights: Mapping[str, Any], new: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the table of task types with new weights; a type that is not named keeps its own."""
    for name in new:
        if name not in weights:
            names = Names(list(weights))
            raise UsageError(Sentence("runs.no_task_type", name=name, names=names))
    rows = {**weights, **new}
    return [{**row, "weights": rows[str(row["id"])]} for row in protocol.rows("types")]


def read_weights_file(path: Path) -> dict[str, Any]:
    """Weights by task type from a .toml or .json file, which may also be a protocol.toml; raises
    UsageError."""
    require_file(path)
    text = read_text(path)
    try:
        value: object = (
            jsontext.parse(text)
            if path.suffix.lower() == ".json"
            else protocol_toml(path.name, text)
        )
    except ValueError as error:
        reason = error.args[0]
        raise UsageError(
            Sentence("runs.weights_unreadable", reason=reason), where=str(path)
        ) from None
    rows = _rows_by_type(value)
    if not rows:
        raise UsageError(Sentence("runs.no_weights", **_FORMS), where=str(path))
    return rows


def _rows_by_type(value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {}
    table = cast("Mapping[str, Any]", value)
    if isinstance(table.get("types"), Sequence):
        rows = cast("Sequence[object]", table["types"])
        tables = [cast("Mapping[str, Any]", row) for row in rows if isinstance(row, Mapping)]
        return {str(row["id"]): row.get("weights") for row in tables if "id" in row}
    if isinstance(table.get("weights"), Mapping):
        table = cast("Mapping[str, Any]", table["weights"])
    return dict(table)
