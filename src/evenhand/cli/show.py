"""`evenhand runs` and `evenhand show`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import click
from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from evenhand.cli.common import (
    about_run,
    archive_at,
    json_option,
    only_option,
    print_json,
    recorded,
    selecting_options,
    store_option,
    tell_run,
)
from evenhand.cli.views import run_figures, run_json, verdict_line
from evenhand.errors import UsageError, quoted
from evenhand.jsontext import stored_object
from evenhand.judgment import Judgment, Verdict
from evenhand.report.html.page import words
from evenhand.report.html.units import unit_blocks
from evenhand.report.terminal.blocks import block_lines
from evenhand.report.terminal.console import console, legend, table
from evenhand.report.terminal.tables import counted, cut, failure_line, safe
from evenhand.results.pages import overview, standing
from evenhand.results.pairs import judged_pairs
from evenhand.results.units import (
    full_rows,
    is_hash_of,
    judge_name,
    names_of,
    question_of,
    selector,
    unit_detail,
)
from evenhand.runs.recorded import Recorded, recorded_run
from evenhand.stats.pairwise import panel_winner
from evenhand.store.archive import Archive
from evenhand.store.ports import StoredUnit


@click.command("runs")
@store_option
@json_option
def runs_command(store: str | None, as_json: bool) -> None:
    """List the runs in the store, the one started last first."""
    opened = archive_at(store)
    try:
        opened.set_frozen(True)
        rows = [_overview(opened, recorded_run(opened, row)) for row in opened.runs()]
    finally:
        opened.close()
    if as_json:
        print_json({"runs": rows})
        return
    listing = table(
        *("run", "name", "verdicts", "failed", "pending", "cost", "started"),
        right=(2, 3, 4),
        whole=(0, 5, 6),
    )
    for row in rows:
        failed = sum(row["failures"].values())
        cost = "?" if row["cost_usd"] is None else f"${row['cost_usd']:.4g}"
        numbers = [str(row["verdicts"]), str(failed), str(row["pending"])]
        started = row["started"][5:16].replace("T", " ")
        listing.add_row(row["run"], safe(row["name"]), *numbers, cost, started)
    console().print(listing)
    for row in rows:
        if row["batches"]:
            console().print(f"run {row['run']}: {_batches(row['batches'])}: evenhand batches")


def _batches(batches: Sequence[Mapping[str, Any]]) -> str:
    """Return how many batches are under way, and how many questions wait in them."""
    waiting = sum(batch["open"] for batch in batches)
    number = f"{len(batches):,} batch{'' if len(batches) == 1 else 'es'}"
    return f"{number} under way, {counted(waiting, 'question')} without an answer"


def _overview(store: Archive, run: Recorded) -> dict[str, Any]:
    return overview(run, standing(store, run))


@click.command("show")
@click.argument("run", default="latest")
@click.argument("unit", required=False)
@only_option
@selecting_options
@store_option
@json_option
def show_command(
    run: str,
    unit: str | None,
    only: str | None,
    where: tuple[str, ...],
    without: tuple[str, ...],
    store: str | None,
    as_json: bool,
) -> None:
    """Show RUN (an id, a prefix, a suite's name, latest, latest~1), or one UNIT of it.

    A unit is shown with its text, the verdict (scores with their evidence marked, marks pass by
    pass, or grades with reasons), and each prompt with the raw reply and what was wrong with it.
    """
    if unit and only:
        raise click.UsageError("--only lists units: leave UNIT out")
    opened, run_record = recorded(store, run, where, without)
    try:
        if only:
            _show_only(opened, run_record, only, as_json)
        elif unit is None:
            _show_run(opened, run_record, as_json)
        else:
            _show_unit(opened, run_record, unit, as_json)
    finally:
        opened.close()


def _show_run(store: Archive, run: Recorded, as_json: bool) -> None:
    about, scope = _overview(store, run), run.scope
    if as_json:
        print_json(about | run_json(run.kind, store, scope, run.judge_groups, run.rule))
        return
    tell_run(run)
    out = console()
    out.print(legend(_about(about, run)))
    out.print()
    for part in run_figures(store, run, scope):
        out.print(part)
    out.print()
    _print_units(out, store, run)
    for caveat in sorted({judge.caveat for judge in run.judges} - {""}):
        out.print(f"\nNote: {caveat}")


def _about(about: Mapping[str, Any], run: Recorded) -> Iterator[tuple[str, str]]:
    """Yield what a run is, each as a name and what is said of it."""
    for key in ("protocol", "protocol_version", "language", "seed"):
        yield key, str(about[key])
    yield "started", f"{about['started'][:16].replace('T', ' ')} UTC"
    if about["prompt"]:
        yield "prompt", f"{about['prompt']} {about['protocol_version']}"
    yield "judges", _judges(about["judges"])
    if about["imported"]:
        files = ", ".join(about["imported"]["files"])
        yield "imported", f"{about['imported']['kind']}: {files}"
    if about["settled_from"]:
        yield "settled from", about["settled_from"]
        for change in run.rule_changes:
            yield "", str(change)
    failed = sum(about["failures"].values())
    excluded = f"; {about['left_out']:,} left out by no_self_judging"
    left_out = excluded if about["left_out"] else ""
    yield (
        "planned",
        f"{about['planned']:,} = {counted(about['verdicts'], 'verdict')}"
        f" + {counted(failed, 'failure')}"
        f" + {about['pending']:,} pending{left_out}",
    )
    if about["batches"]:
        yield "batches", _batches(about["batches"])


def _show_only(store: Archive, run: Recorded, only: str, as_json: bool) -> None:
    """Print the verdicts that `only` stands for, with what else their judge said."""
    is_wanted = selector(run, only)
    if as_json:
        print_json(about_run(run) | {"judgments": list(full_rows(store, run, is_wanted))})
        return
    tell_run(run)
    rows = table("unit", "result", "notes" if only == "notes" else "flags")
    for unit, stored in store.judgments(run.scope):
        judgment = run.judgment(stored)
        if is_wanted(judgment):
            notes = (judgment.output or {}).get("notes") or " ".join(judgment.flags)
            rows.add_row(cut(unit.id, ID_SHOWN), _result(run, unit.body, judgment), safe(notes))
    console().print(rows if rows.row_count else f"run {run.id} has none: {only}")


UNITS_SHOWN = 50
JUDGES_SHOWN = 20
QUESTION_SHOWN = 40
ID_SHOWN = 60
RESULT_SHOWN = 100
"""Columns of a terminal for why a unit of a list has no verdict."""


def _judges(names: Sequence[str]) -> str:
    more = f" and {len(names) - JUDGES_SHOWN} more" if len(names) > JUDGES_SHOWN else ""
    return ", ".join(names[:JUDGES_SHOWN]) + more


def _print_units(out: Console, store: Archive, run: Recorded) -> None:
    judgments = store.judgments(run.scope)
    several = run.judgments_per_unit > 1
    rows = table("unit", "question", *(["judge"] if several else []), "result", "flags")
    for unit, stored in islice(judgments, UNITS_SHOWN):
        judge = judge_name(run, stored) + (f" #{stored.repeat}" if stored.repeat else "")
        judgment = run.judgment(stored)
        flags = [flag for flag in judgment.flags if flag != "not_validated"]
        by = [safe(judge)] if several else []
        result = _result(run, unit.body, judgment)
        rows.add_row(
            cut(unit.id, ID_SHOWN), _question(run, unit), *by, result, safe(" ".join(flags))
        )
    if rows.row_count:
        out.print(rows)
    if next(judgments, None):
        all_of_them = f"evenhand export {run.row.id} --full -o verdicts.csv"
        out.print(f"the first {UNITS_SHOWN}; all of them: {all_of_them}", soft_wrap=True)


def _question(run: Recorded, unit: StoredUnit) -> str:
    """Return how the question of a unit begins, where its id is a hash that says nothing."""
    question = question_of(run.kind.present(run.kind.load(unit.body), []).unit)
    return cut(question, QUESTION_SHOWN) if is_hash_of(unit.id, question) else ""


def _result(run: Recorded, body: str, judgment: Judgment) -> Text:
    if isinstance(judgment, Verdict):
        return verdict_line(run.kind, body, judgment)
    return Text(_no_verdict(judgment), style="yellow")


def _no_verdict(judgment: Judgment, width: int = RESULT_SHOWN) -> str:
    """Return why there is no verdict, on a line of `width`."""
    if judgment.reason is None:
        return cut(f"left out: {judgment.detail}", width)
    return failure_line(f"failed: {judgment.reason}", judgment.reason, judgment.detail, width)


def _show_unit(store: Archive, run: Recorded, name: str, as_json: bool) -> None:
    detail = unit_detail(store, run, name)
    if detail is None or not detail.judged:
        name = _unit_with(store, run, name)
        detail = unit_detail(store, run, name)
        assert detail is not None
    unit, judged = detail
    if as_json:
        body = stored_object(unit.body, "a unit")
        rows = [entry.row for entry in judged]
        print_json({"run": run.id, "unit": body, "judgments": rows})
        return
    tell_run(run)
    out = console()
    out.print(Rule(Text(safe(name), style="bold"), align="left"))
    shown = run.kind.present(run.kind.load(unit.body), [entry.judgment for entry in judged])
    for part in block_lines(unit_blocks(shown, judged, words("en"), names_of(run))):
        out.print(part)
    if len(judged) > 1 and run.has_votes:
        (pair,) = judged_pairs(run.kind, store, run.scope, run.judge_groups, "uncertain", name)
        out.print(f"\nBy majority: {panel_winner(pair.votes)}")


def _unit_with(store: Archive, run: Recorded, part: str) -> str:
    """Return the judged unit that a unique part of its id names, in any case of letters; raise
    UsageError."""
    ids = dict.fromkeys(unit.id for unit, _ in store.judgments(run.scope))
    fitting = [ident for ident in ids if part.casefold() in ident.casefold()]
    begun = [ident for ident in fitting if ident.startswith(part)]
    for unique in (begun, fitting):
        if len(unique) == 1:
            return unique[0]
    listed = ", ".join(fitting[:3]) + (f" and {len(fitting) - 3} more" if len(fitting) > 3 else "")
    what = f"{len(fitting)} units have" if fitting else "no judged unit has"
    raise UsageError(
        f"{what} {quoted(part)} in the id, in run {run.row.id}",
        advice=f"Did you mean {listed}?" if fitting else f"List them: evenhand show {run.row.id}",
    )
