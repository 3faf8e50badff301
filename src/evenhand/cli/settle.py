"""`evenhand settle`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import click
from msgspec.structs import replace

from evenhand.cli.common import (
    folder_notice,
    json_option,
    notice,
    print_json,
    run_argument,
    store_at,
    store_option,
    tell,
    tell_run,
    wait,
)
from evenhand.cli.language import speaker, terminal_words
from evenhand.files.protocols import find_protocol
from evenhand.files.rubrics import suite_rubric
from evenhand.judges.credentials import environment
from evenhand.limits import MAX_ROUNDS_MOST
from evenhand.report.terminal.console import console
from evenhand.report.terminal.summary import outcome_lines
from evenhand.runs.prepare import suite_settings
from evenhand.runs.recorded import Recorded, find_run
from evenhand.runs.rules import NewRules, RuleChange, changed_rules, read_weights_file, rules_of
from evenhand.runs.settle import settle_run
from evenhand.suite import Suite, load_suite
from evenhand.words import Sentence


@click.command("settle")
@run_argument
@click.option(
    "--protocol",
    metavar="DIR",
    help="Use the rules of this protocol, a built-in one or a folder. Default: the run's.",
)
@click.option(
    "--weights",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Weighted: use these weights by task type (.toml, .json). Default: the run's.",
)
@click.option(
    "--priority",
    metavar="C2,C1",
    help="Pairs: let these criteria decide, in this order. Default: the run's.",
)
@click.option(
    "--max-rounds",
    type=click.IntRange(1, MAX_ROUNDS_MOST),
    metavar="N",
    help="Pairs: count only the first N rounds. Default: the run's.",
)
@click.option(
    "--suite",
    metavar="SUITE",
    type=click.Path(path_type=Path),
    help="Use the pass marks, checks, settings and rubric of this suite. Default: the run's.",
)
@store_option
@json_option
def settle_command(
    run: str,
    protocol: str | None,
    weights: Path | None,
    priority: str | None,
    max_rounds: int | None,
    suite: Path | None,
    store: str | None,
    as_json: bool,
) -> None:
    """Recompute the verdicts of RUN from its stored replies, without a call.

    RUN is an id, the start of one, the name of a suite, or latest (the default).
    Without options it applies the present code to the same run. With new rules RUN stays as it
    is, and the result is a new run beside it. What would need a call becomes pending.

    \b
    evenhand settle latest --priority C2,C1
    evenhand settle latest --weights weights.toml
    evenhand settle latest --protocol my-protocol
    evenhand settle latest --suite evenhand.toml
    """
    values: dict[str, Any] = {}
    if weights is not None:
        values["weights"] = read_weights_file(weights)
    if priority is not None:
        values["priority"] = [name.strip() for name in priority.split(",") if name.strip()]
    if max_rounds is not None:
        values["max_rounds"] = max_rounds
    rules = NewRules(find_protocol(protocol) if protocol else None, values)
    with closing(store_at(store)) as opened:
        recorded = find_run(opened.archive, run)
        speaker().choose(recorded.manifest.judging.language)
        if suite is not None:
            rules = _with_suite(rules, recorded, load_suite(suite, environment()))
        summary = wait(settle_run(recorded, opened, rules))
        changes = _changes(recorded, find_run(opened.archive, summary.run))
    if protocol is None:
        folder_notice(recorded)
    source = recorded.id if summary.run != recorded.id else None
    if as_json:
        rules_changed = {change.name: change.json() for change in changes}
        print_json(summary.json() | {"settled_from": source, "rules": rules_changed})
        return
    tell_run(recorded)
    if source:
        tell("cli.settled_as", run=summary.run)
    say = terminal_words()
    for change in changes:
        click.echo(say.message(change.phrase()))
    console().print(outcome_lines(summary.json(), say))
    if summary.counts.pending:
        notice(Sentence("cli.not_settled", n=summary.counts.pending))
    if source:
        tell("cli.side_by_side", run=summary.run, source=source)


def _with_suite(rules: NewRules, recorded: Recorded, suite: Suite) -> NewRules:
    """Return the rules with the settings and the rubric of a suite; raise UsageError."""
    protocol = recorded.protocol
    settings = suite_settings(suite, protocol.kind)
    return replace(rules, settings=settings, rubric=suite_rubric(suite, protocol))


def _changes(recorded: Recorded, new_run: Recorded) -> list[RuleChange]:
    """Return the rules and settings by which the new run was settled and the old one was not."""
    protocol = recorded.protocol
    before, after = (
        {**record.settings, **rules_of(protocol, record)}
        for record in (recorded.manifest.judging, new_run.manifest.judging)
    )
    return changed_rules(before, after)
