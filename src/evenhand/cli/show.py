"""`evenhand runs` and `evenhand show`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from typing import TYPE_CHECKING, Any

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
from evenhand.errors import UsageError
from evenhand.jsontext import stored_object
from evenhand.judgment import Judgment, Verdict
from evenhand.kinds.kind import Scoring, Voting
from evenhand.report.html.units import kind_blocks, left_out_reason, unit_blocks
from evenhand.report.terminal.blocks import block_lines, cell_line
from evenhand.report.terminal.console import console, legend, paragraph, table
from evenhand.report.terminal.pairs import RANKED_FROM, criteria_line, pair_tables
from evenhand.report.terminal.summary import failure_line
from evenhand.report.terminal.tables import cut, safe
from evenhand.results.pages import overview, standing
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
from evenhand.stats.votes import voted_winner
from evenhand.store.archive import Archive
from evenhand.store.ports import Scope, StoredUnit
from evenhand.words import Sentence, few

if TYPE_CHECKING:
    from evenhand.stats.pairwise import PairSummary


@click.command("runs")
@store_option
@json_option
def runs_command(store: str | None, as_json: bool) -> None:
    """List the runs in the store, the last started first."""
    with closing(archive_at(store)) as archive:
        archive.set_frozen(True)
        rows = [_overview(archive, recorded_run(archive, row)) for row in archive.runs()]
    if as_json:
        print_json({"runs": rows})
        return
    say = terminal_words()
    heads = ("runs", "name", "verdicts", "failed_column", "pending", "cost_column", "started")
    listing = table(
        *(say(f"cli.{head}") for head in heads),
        right=(2, 3, 4),
        whole=(0, 5, 6),
    )
    for row in rows:
        failed = sum(row["failures"].values())
        numbers = [say.integer(n) for n in (row["verdicts"], failed, row["pending"])]
        cost, started = say.money(row["cost_usd"]), row["started"][5:16].replace("T", " ")
        listing.add_row(row["run"], safe(row["name"]), *numbers, cost, started)
    console().print(listing)
    labels = {r["run"]: " ".join([r["note"], *(f"#{tag}" for tag in r["tags"])]) for r in rows}
    console().print(
        legend((run, cut(label, LABEL_SHOWN)) for run, label in labels.items() if label)
    )
    for row in rows:
        if row["batches"]:
            console().print(say("cli.batches_of_run", run=row["run"], **_batches(row["batches"])))


def _batches(batches: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return how many batches are under way, and how many questions wait in them."""
    return {"n": len(batches), "waiting": sum(batch["open"] for batch in batches)}


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
    """Show RUN and its units, or one UNIT in full.

    RUN is an id, the start of one, the name of a suite, or latest (the
    default). latest~1 is the run of the same name
    before it. UNIT is an id or a part of one: it is shown with its texts, scores and reasons,
    every prompt, every raw reply and what was wrong with it.

    \b
    evenhand show                       the latest run
    evenhand show latest q17            one unit of it
    evenhand show --only fail           answers that do not pass
    evenhand show --only notes          verdicts with notes of the judge
    evenhand show --only uncertain      pairs that no round settled
    """
    if unit and only:
        raise click.UsageError(Sentence("cli.unit_and_only"))
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
    out, say = console(), terminal_words()
    out.print(legend((say(f"cli.{key}") if key else "", said) for key, said in _about(about, run)))
    out.print()
    for part in run_figures(store, run, scope):
        out.print(part)
    out.print()
    _print_units(out, store, run)
    for caveat in sorted({judge.caveat for judge in run.judges} - {""}):
        out.print(f"\n{say('cli.note', text=caveat)}")


def _about(about: Mapping[str, Any], run: Recorded) -> Iterator[tuple[str, str]]:
    """Yield what a run is, each as the key of a name and what is said of it."""
    say = terminal_words()
    for key in ("protocol", "protocol_version", "language", "seed"):
        yield f"about_{key}", str(about[key])
    yield "started", say.moment(about["started"])
    for key in ("author", "note"):
        if about[key]:
            yield f"about_{key}", about[key]
    if about["tags"]:
        yield "about_tags", say.join(about["tags"])
    if about["prompt"]:
        yield "about_prompt", f"{about['prompt']} {about['protocol_version']}"
    judges = about["judges"]
    yield "about_judges", say.join(judges[:JUDGES_SHOWN], max(0, len(judges) - JUDGES_SHOWN))
    if about["imported"]:
        files = say.join(about["imported"]["files"])
        yield "about_imported", f"{about['imported']['kind']}: {files}"
    if about["settled_from"]:
        yield "about_settled_from", about["settled_from"]
        for change in run.rule_changes:
            yield "", say.message(change.phrase())
    failures = sum(about["failures"].values())
    yield "about_counts", say("cli.outcome", **{**about, "failures": failures})
    if about["left_out"]:
        yield "", say("facts.left_out", n=about["left_out"])
    if about["batches"]:
        yield "about_batches", say("cli.batches_under_way", **_batches(about["batches"]))


def _show_only(store: Archive, run: Recorded, only: str, as_json: bool) -> None:
    """Print the verdicts that `only` stands for, with what else their judge said."""
    is_wanted = selector(store, run, only)
    if as_json:
        print_json(about_run(run) | {"judgments": list(full_rows(store, run, is_wanted))})
        return
    tell_run(run)
    say, last = terminal_words(), "notes" if only == "notes" else "flags"
    rows = table(*(say(f"cli.{head}") for head in ("unit", "question", "result", last)))
    for unit, stored in store.judgments(run.scope):
        judgment = run.judgment(stored)
        if is_wanted(stored, judgment):
            notes = (judgment.output or {}).get("notes") or " ".join(judgment.flags)
            about = cut(unit.id, ID_SHOWN), _question(run, unit)
            rows.add_row(*about, _result(run, unit.body, judgment), safe(notes))
    none = say("results.no_such_mark", run=run.id, mark=only)
    console().print(rows if rows.row_count else none)


LABEL_SHOWN = 66
"""Columns of a terminal for the note and the tags of a run of the list."""
UNITS_SHOWN = 50
JUDGES_SHOWN = 20
QUESTION_SHOWN = 40
ID_SHOWN = 60
RESULT_SHOWN = 100
"""Columns of a terminal for why a unit of a list has no verdict."""


def _print_units(out: Console, store: Archive, run: Recorded) -> None:
    judgments = store.judgments(run.scope)
    several = run.judgments_per_unit > 1
    heads = ("unit", "question", *(["judge"] if several else []), "result", "flags")
    say = terminal_words()
    rows = table(*(say(f"cli.{head}") for head in heads))
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
        out.print(paragraph(say("cli.first_units", n=UNITS_SHOWN, run=run.row.id)))


def _question(run: Recorded, unit: StoredUnit) -> str:
    """Return how the question of a unit begins, where its id is a hash that says nothing."""
    question = question_of(run.kind.present(run.kind.load(unit.body), []).unit)
    return cut(question, QUESTION_SHOWN) if is_hash_of(unit.id, question) else ""


def _result(run: Recorded, body: str, judgment: Judgment) -> Text:
    if isinstance(judgment, Verdict):
        shown = run.kind.present(run.kind.load(body), [judgment])
        return cell_line(shown.judgments[0].line, terminal_words())
    return Text(_no_verdict(judgment), style="yellow")


def _no_verdict(judgment: Judgment, width: int = RESULT_SHOWN) -> str:
    """Return why there is no verdict, on a line of `width`."""
    say = terminal_words()
    if judgment.reason is None:
        detail = left_out_reason(judgment.detail, say)
        return cut(say("unit.left_out", detail=detail), width)
    return failure_line(judgment.reason, judgment.detail, say, width)


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
    say = terminal_words()
    for part in block_lines(unit_blocks(shown, judged, say, names_of(run, say.language))):
        out.print(part)
    measure = run.kind.measure
    if len(judged) > 1 and isinstance(measure, Voting):
        votes = [(entry.row["judge"], measure.judgment(entry.judgment)) for entry in judged]
        winner = voted_winner(votes) or "uncertain"
        out.print(f"\n{say('cli.majority', winner=winner)}")


def _unit_with(store: Archive, run: Recorded, part: str) -> str:
    """Return the judged unit that a unique part of its id names, in any case of letters; raise
    UsageError."""
    ids = dict.fromkeys(unit.id for unit, _ in store.judgments(run.scope))
    fitting = [ident for ident in ids if part.casefold() in ident.casefold()]
    begun = [ident for ident in fitting if ident.startswith(part)]
    for unique in (begun, fitting):
        if len(unique) == 1:
            return unique[0]
    found = {"run": run.row.id, "part": part}
    if not fitting:
        raise UsageError(Sentence("cli.no_such_unit", **found))
    names = few(fitting, 3)
    raise UsageError(Sentence("cli.several_units", n=len(fitting), names=names, **found))


def run_figures(
    store: Archive, run: Recorded, scope: Scope, *, is_ranked: bool = False
) -> Iterator[RenderableType]:
    """Yield what the judgments of a scope of a run come to; `is_ranked` where a ranked table
    says how the candidates fared."""
    kind, measure = run.kind, run.kind.measure
    if isinstance(measure, Scoring):
        blocks = measure.summarise(verdicts_of(kind, store, scope), run.rubric).blocks
        yield from block_lines(kind_blocks(blocks, terminal_words()))
        return
    figures = _summarise(store, run, scope)
    has_fronts = any(len(sets.candidates) > 2 for sets in figures.fronts.values())
    questions = topic_questions(kind, store, scope) if has_fronts else {}
    titles = {
        topic: question if is_hash_of(topic, question) else topic
        for topic, question in questions.items()
    }
    with_standings = not is_ranked or len(figures.standings) <= RANKED_FROM
    yield from pair_tables(figures, titles, terminal_words(), with_standings=with_standings)
    if figures.votes.orders.first_rounds:
        yield ""
        yield from criteria_line(names_of(run, terminal_words().language))


def run_json(store: Archive, run: Recorded, scope: Scope) -> dict[str, Any]:
    """Return the figures of a run for `--json`, under the name of the kind; nothing where it has
    nothing to add."""
    kind, measure = run.kind, run.kind.measure
    if isinstance(measure, Scoring):
        counts = measure.summarise(verdicts_of(kind, store, scope), run.rubric).json
        return {kind.name: dict(counts)} if counts else {}
    return {kind.name: _summarise(store, run, scope).json()}


def _summarise(store: Archive, run: Recorded, scope: Scope) -> PairSummary:
    """Return the figures of the judged pairs of a scope of a run."""
    # They need numpy, which runs of scores are shown without.
    from evenhand.results.observations import observe
    from evenhand.stats.pairwise import summarise_pairs

    table = observe(store, run)
    if scope.limit is not None:
        table = table.where(table.unit < scope.limit)
    return summarise_pairs(table)
