"""`evenhand runs` and `evenhand show`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from typing import Any

import click
from rich.console import Console, RenderableType
from rich.rule import Rule
from rich.text import Text

from evenhand.cli.common import (
    about_run,
    archive_at,
    json_option,
    only_option,
    print_json,
    reading,
    selecting_options,
    store_option,
    tell_run,
)
from evenhand.cli.language import terminal_words
from evenhand.errors import UsageError, quote
from evenhand.jsontext import stored_object
from evenhand.judgment import Judgment, Verdict
from evenhand.kinds.kind import Scoring
from evenhand.report.html.units import kind_blocks, unit_blocks
from evenhand.report.terminal.blocks import block_lines, cell_line
from evenhand.report.terminal.console import console, legend, table
from evenhand.report.terminal.pairs import RANKED_FROM, criteria_line, pair_tables
from evenhand.report.terminal.summary import failure_line
from evenhand.report.terminal.tables import count_noun, cut, safe
from evenhand.results.pages import overview, standing
from evenhand.results.pairs import figures_of_pairs, judged_pairs
from evenhand.results.units import (
    full_rows,
    is_hash_of,
    judge_name,
    names_of,
    question_of,
    selector,
    topic_questions,
    unit_detail,
    verdicts_of,
)
from evenhand.runs.recorded import Recorded, recorded_run
from evenhand.stats.pairwise import panel_winner
from evenhand.store.archive import Archive
from evenhand.store.ports import Scope, StoredUnit
from evenhand.words import words


@click.command("runs")
@store_option
@json_option
def runs_command(store: str | None, as_json: bool) -> None:
    """List the runs in the store, the one started last first."""
    with closing(archive_at(store)) as archive:
        archive.set_frozen(True)
        rows = [_overview(archive, recorded_run(archive, row)) for row in archive.runs()]
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
    return f"{number} under way, {count_noun(waiting, 'question')} without an answer"


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
    with reading(store, run, where, without) as (archive, recorded):
        if only:
            _show_only(archive, recorded, only, as_json)
        elif unit is None:
            _show_run(archive, recorded, as_json)
        else:
            _show_unit(archive, recorded, unit, as_json)


def _show_run(store: Archive, run: Recorded, as_json: bool) -> None:
    about, scope = _overview(store, run), run.scope
    if as_json:
        print_json(about | run_json(store, run, scope))
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
        f"{about['planned']:,} = {count_noun(about['verdicts'], 'verdict')}"
        f" + {count_noun(failed, 'failure')}"
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
        shown = run.kind.present(run.kind.load(body), [judgment])
        return cell_line(shown.judgments[0].line)
    return Text(_no_verdict(judgment), style="yellow")


def _no_verdict(judgment: Judgment, width: int = RESULT_SHOWN) -> str:
    """Return why there is no verdict, on a line of `width`."""
    if judgment.reason is None:
        return cut(f"left out: {judgment.detail}", width)
    return failure_line(terminal_words(), judgment.reason, judgment.detail, width)


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
        f"{what} {quote(part)} in the id, in run {run.row.id}",
        advice=f"Did you mean {listed}?" if fitting else f"List them: evenhand show {run.row.id}",
    )


def run_figures(
    store: Archive, run: Recorded, scope: Scope, *, is_ranked: bool = False
) -> Iterator[RenderableType]:
    """Yield what the judgments of a scope of a run come to; `is_ranked` where a ranked table
    says how the candidates fared."""
    kind, measure = run.kind, run.kind.measure
    if isinstance(measure, Scoring):
        blocks = measure.summarise(verdicts_of(kind, store, scope)).blocks
        yield from block_lines(kind_blocks(blocks, words("en")))
        return
    figures = figures_of_pairs(kind, store, scope, run.judge_groups, run.rule)
    has_fronts = any(len(sets.candidates) > 2 for sets in figures.fronts.values())
    questions = topic_questions(kind, store, scope) if has_fronts else {}
    titles = {
        topic: question if is_hash_of(topic, question) else topic
        for topic, question in questions.items()
    }
    with_standings = not is_ranked or len(figures.standings) <= RANKED_FROM
    yield from pair_tables(figures, titles, with_standings=with_standings)
    if figures.first_rounds:
        yield ""
        yield from criteria_line(names_of(run))


def run_json(store: Archive, run: Recorded, scope: Scope) -> dict[str, Any]:
    """Return the figures of a run for `--json`, under the name of the kind; nothing where it has
    nothing to add."""
    kind, measure = run.kind, run.kind.measure
    if isinstance(measure, Scoring):
        counts = measure.summarise(verdicts_of(kind, store, scope)).json
        return {kind.name: dict(counts)} if counts else {}
    figures = figures_of_pairs(kind, store, scope, run.judge_groups, run.rule)
    return {kind.name: figures.json()}
