"""Some units of a run, by the fields of what was judged. Every command that reads a run selects
here, and from then on the run is those units."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import groupby

from msgspec import structs

from evenhand.errors import UsageError, nearest, no_such_field, quoted
from evenhand.results.observations import unit_fields
from evenhand.runs.recorded import Recorded, Selection
from evenhand.store.archive import Archive
from evenhand.store.ports import ObservedRow, Scope

LISTED = 10
"""So many values of a field are listed where one is not there."""
_Texts = Mapping[str, tuple[str, ...]]
_Levels = Mapping[str, Mapping[str, None]]


def select(
    archive: Archive, run: Recorded, where: Sequence[str] = (), without: Sequence[str] = ()
) -> Recorded:
    """Return the run with only those units that each FIELD=VALUE of `where` holds for, of several
    values of one field any, and none of `without`. Raise UsageError for a field or value that no
    unit has, and if nothing is left."""
    if not where and not without:
        return run
    return _select(archive, run, _conditions("--where", where), _conditions("--without", without))


def _select(archive: Archive, run: Recorded, where: _Texts, without: _Texts) -> Recorded:
    levels: dict[str, dict[str, None]] = {}
    units, positions = 0, list[int]()
    for unit, fields in _units(archive, run.scope):
        texts = _texts(unit, fields)
        units += 1
        for name in texts:
            # Of fields that nobody asks about the name is enough.
            values = texts[name] if name in where or name in without else ()
            levels.setdefault(name, {}).update(dict.fromkeys(values))
        holds = (_holds(texts, condition) for condition in where.items())
        if all(holds) and not any(_holds(texts, condition) for condition in without.items()):
            positions.append(unit.position)
    for conditions in (where, without):
        _refuse_unknown(run, conditions, levels)
    selection = Selection(where=where, without=without, positions=tuple(positions), of=units)
    if not positions:
        raise UsageError(
            f"no unit of run {run.id} is all of it: {selection.condition}",
            advice="Each is there, but not together: leave one out.",
        )
    return Recorded(run.row, run.manifest, selection)


def _holds(texts: _Texts, condition: tuple[str, tuple[str, ...]]) -> bool:
    """Return True if a unit has one of the values of a field."""
    name, values = condition
    return not set(texts.get(name, ("",))).isdisjoint(values)


def same_units(
    archive: Archive, run: Recorded, other: Recorded, pair_by: Sequence[str] = ()
) -> Recorded:
    """Another run with only those units that a selected run has too, by their ids, or by topic and
    candidates; the other run as it is where nothing was selected. Units that are paired by fields
    have ids of their own in each run, so there the conditions are put to the other run as well:
    raises UsageError where it has no such field or value."""
    selection = run.selection
    if selection is None:
        return other
    if other.id == run.id:
        return run
    if pair_by:
        return _select(archive, other, selection.where, selection.without)
    keys = {key for each in _units(archive, run.scope) for key in _keys(*each)}
    places = [
        (unit.position, not keys.isdisjoint(_keys(unit, fields)))
        for unit, fields in _units(archive, other.scope)
    ]
    positions = tuple(position for position, is_there in places if is_there)
    part = structs.replace(selection, positions=positions, of=len(places))
    return Recorded(other.row, other.manifest, part)


def _units(archive: Archive, scope: Scope) -> Iterator[tuple[ObservedRow, dict[str, str]]]:
    """Yield a row of each unit, judged or not, and its fields."""
    for _, group in groupby(archive.observations(scope), key=lambda row: row.position):
        rows = list(group)
        yield rows[0], unit_fields(rows)


def _keys(unit: ObservedRow, fields: Mapping[str, str]) -> list[Hashable]:
    """Return the keys by which a unit is found in another run."""
    if not unit.subject:
        return [unit.unit]
    topic = fields.get("topic", "")
    return [unit.unit, (topic, *sorted((unit.subject, unit.opponent)))]


def _conditions(flag: str, texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the values that are asked for, by field; raise UsageError for what names none."""
    conditions: dict[str, tuple[str, ...]] = {}
    for condition in texts:
        name, equals, value = condition.partition("=")
        name = name.strip().removeprefix("meta.")
        if not name or not equals:
            raise UsageError(
                f"{flag} {quoted(condition)} names no field and value",
                advice=f"Write FIELD=VALUE, for instance {flag} model=gpt-4.1-mini",
            )
        conditions[name] = (*conditions.get(name, ()), value.strip())
    return conditions


def _texts(unit: ObservedRow, fields: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the values of each field of a unit, its id among them; a pair has two candidates."""
    texts: dict[str, tuple[str, ...]] = {"unit": (unit.unit,)}
    if unit.subject:
        texts["candidate"] = (unit.subject, unit.opponent)
    return texts | {name: (value,) for name, value in fields.items()}


def _refuse_unknown(run: Recorded, conditions: _Texts, levels: _Levels) -> None:
    for name, values in conditions.items():
        if name not in levels:
            raise no_such_field(name, levels)
        for value in values:
            # An empty value asks for units that do not say.
            if value and value not in levels[name]:
                raise _no_such_value(run, name, value, list(levels[name]))


def _no_such_value(run: Recorded, name: str, value: str, values: Sequence[str]) -> UsageError:
    near = nearest(value, values)
    more = f" and {len(values) - LISTED} more" if len(values) > LISTED else ""
    there = f"There are: {', '.join(map(quoted, values[:LISTED]))}{more}"
    return UsageError(
        f"no unit of run {run.id} has {quoted(value)} as its {name}",
        advice=f"Did you mean {quoted(near)}?" if near else there,
    )
