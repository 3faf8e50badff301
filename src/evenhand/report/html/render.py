"""A Report as one HTML file: no network, no external resource, readable without scripts.

The same report gives the same bytes. Styles and the one script are inline and allowed by their
hashes. What many units open to is compressed, and unpacked by the script.
"""

from __future__ import annotations

import shlex
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any
from zlib import compress

from evenhand import jsontext
from evenhand.manifest import plain
from evenhand.report.html.answer import AnswerLine, answers, brackets_note
from evenhand.report.html.breakdown import breakdowns
from evenhand.report.html.charts import figures, fill_rows, variant_colours
from evenhand.report.html.filters import Lead, UnitFilters
from evenhand.report.html.marks import Where
from evenhand.report.html.matrix import MatrixTable, matrix_table
from evenhand.report.html.page import environment, policy, static
from evenhand.report.html.ranking import Ranking, rank
from evenhand.report.html.screen import BarPart, FirstScreen, bar_parts, first_screen, lead_row
from evenhand.report.model import WARNINGS, ChangedSide, Coverage, Report
from evenhand.stats.observations import NONE
from evenhand.text import visible
from evenhand.words import Words, words

PLAIN_MOST = 1_200_000
"""Characters of opened units that stand in the file as they are; of more, they are compressed."""
VARIANTS_SHOWN = 6


def render(report: Report) -> str:
    """Return the whole page."""
    say = words(report.language).naming_tags(report.tag_names).naming_faults(report.faults)
    templates = environment(say)
    from markupsafe import Markup  # comes with jinja2

    style = static("page.css")
    script = static("sort.js") + static("matrix.js") + static("report.js")
    judges = report.manifest.judging.judges
    units = report.units or ()
    filters = UnitFilters(units, say)
    matrix = _matrix(report, say)
    page_of_unit: Any = templates.get_template("_unit.html").module
    others = _other_answers(report)
    drills = [page_of_unit.drill(unit.blocks, others.get(n)) for n, unit in enumerate(units)]
    is_large = sum(map(len, drills)) > PLAIN_MOST
    return templates.get_template("report.html").render(
        report=report,
        **shown_figures(report, say),
        lead=_leads(filters, matrix),
        unit_href=_unit_links(report),
        matrix=matrix,
        judges=judges,
        facts=list(_facts(report, say)),
        bar=_coverage_bar(report, say),
        caveats=list(dict.fromkeys(judge.caveat for judge in judges if judge.caveat)),
        filters=filters.filters,
        numbers=filters.fitting,
        drills=() if is_large else drills,
        packed=_pack(drills) if is_large else "",
        method=list(_method(report, say)),
        texts=_texts(report),
        rubric=_rubric(report.rubric),
        command=_command(report),
        show=f"evenhand show {report.run} {say('cli.unit').upper()}",
        policy=policy([style], [script]),
        style=Markup(style),  # noqa: S704 - a file of this package
        script=Markup(script),  # noqa: S704 - a file of this package
    )


def shown_figures(report: Report, say: Words) -> dict[str, Any]:
    """Return what report and view show of the figures alike; of two variants or candidates without
    a table, as the first screen has them."""
    ranking, charts, screen = rank(report, say), figures(report, say), first_screen(report, say)
    ranking = ranking if ranking is not None and len(ranking.rows) > 2 else None
    charts[""][1:1] = breakdowns(report, say)
    return {
        "screen": screen,
        "trust": say.join(
            (say.message(told) for told in report.trust if told.key not in WARNINGS),
            between="sentence",
        ),
        "answers": _sentences(report, screen, ranking, say),
        "brackets": brackets_note(report, say),
        "ranking": ranking,
        "charts": {group: fill_rows(among) for group, among in charts.items()},
        "colours": variant_colours(report),
    }


def _sentences(
    report: Report, screen: FirstScreen, ranking: Ranking | None, say: Words
) -> list[AnswerLine]:
    """Return the answer in words, without what the table or the first screen says."""
    comparison = report.comparison
    if ranking and comparison is None:
        return []
    told = replace(report, passes=()) if comparison and comparison.passes else report
    lines = answers(told, say)
    return [line for line in lines if line.tone != "dimensions" or not screen.dimensions]


def _unit_links(report: Report) -> Callable[[ChangedSide], str]:
    """Return what leads to the unit of a side; to nothing where this file does not have it."""
    listed = report.questions.listed if report.questions else {}

    def href(side: ChangedSide) -> str:
        place = listed.get(side.unit) if side.run == report.run else None
        return "" if place is None else f"#u{place}"

    return href


def _other_answers(report: Report) -> dict[int, list[tuple[str, str]]]:
    """Return the links to the other answers to the question of each unit, by its place."""
    if report.questions is None:
        return {}
    matrix, _, listed, _ = report.questions
    places = {number: listed[name] for number, name in enumerate(matrix.units) if name in listed}
    return {
        place: [
            (visible(name), f"#u{places[other]}")
            for name, other in matrix.other_answers(number)
            if other in places
        ]
        for number, place in places.items()
    }


def _matrix(report: Report, say: Words) -> MatrixTable | None:
    if report.questions is None:
        return None
    matrix, texts, listed, _ = report.questions

    def href(unit: int) -> str:
        place = listed.get(matrix.units[unit]) if unit != NONE else None
        return "" if place is None else f"#u{place}"

    row = lead_row(report.comparison) if report.comparison else None
    return matrix_table(matrix, texts, say, href, row.variant if row else "")


def _leads(filters: UnitFilters, matrix: MatrixTable | None) -> Callable[[Where], Lead | None]:
    """Return what finds the way to units, and to the questions on which a variant changed."""

    def lead(where: Where) -> Lead | None:
        facet, value = where[0]
        if facet != "change":
            return filters.lead(where)
        n = matrix.ways[value] if matrix else 0
        return Lead("#matrix", only=value, n=n) if n else None

    return lead


def _facts(report: Report, say: Words) -> Iterator[tuple[str, str]]:
    counted, variants = say.counted(report.kind.noun, report.coverage.units), _variants(report, say)
    yield "judged", say("view.chip", name=counted, value=variants) if variants else counted
    yield "protocol", visible(report.manifest.protocol)
    judges = [
        say("facts.times", judge=visible(judge.name), n=judge.repeats)
        if judge.repeats > 1
        else visible(judge.name)
        for judge in report.manifest.judging.judges
    ]
    yield "by", "\n".join(judges)
    if other := report.against:
        yield "against", visible(f"{other.name} · {other.id} · {say.moment(other.started)}")
    created, started = say.moment(report.created), say.moment(report.started)
    again = say("facts.begun", created=created, started=started)
    yield "when", created if created == started else again
    if report.manifest.imported is None:  # what was judged elsewhere cost nothing here
        yield "cost", _cost(report.coverage, say)


def _cost(coverage: Coverage, say: Words) -> str:
    cost, usage = coverage.cost_usd, coverage.usage
    price = say("facts.price_unknown") if cost is None else say.money(cost)
    tokens = say(
        "facts.tokens",
        input=say.integer(usage["input_tokens"]),
        output=say.integer(usage["output_tokens"]),
    )
    if usage["cached_tokens"]:
        tokens += say("facts.cached", cached=say.integer(usage["cached_tokens"]))
    return f"{price} · {say.counted('call', coverage.calls)} · {tokens}"


def _variants(report: Report, say: Words) -> str:
    """Return the names of what is compared, as far as a line holds them."""
    names = dict.fromkeys(mean.variant for mean in report.means)
    if report.board:
        names = dict.fromkeys(sorted(row.candidate for row in report.board.rows))
    shown = [visible(name) for name in list(names)[:VARIANTS_SHOWN]]
    return say.join(shown, len(names) - len(shown)) if len(shown) > 1 else ""


def _coverage_bar(report: Report, say: Words) -> list[BarPart]:
    """Return verdicts, failures and pending as parts of a bar."""
    coverage = report.coverage
    counts = {"verdict": coverage.verdicts, "failure": sum(coverage.failures.values())}
    counts["pending"] = coverage.pending
    colours = {"verdict": "good", "failure": "bad", "pending": "even"}
    where: dict[str, Where] = {
        "failure": (("verdicts", "failed"),),
        "pending": (("verdicts", "pending"),),
    }
    return bar_parts(
        [
            (colours[name], say.counted(name, n), n, where.get(name, ()))
            for name, n in counts.items()
        ]
    )


def _pack(drills: Sequence[str]) -> str:
    """Return what units open to, compressed: its markup repeats so much that it takes a tenth."""
    return b64encode(compress("".join(drills).encode(), 9)).decode()


def _method(report: Report, say: Words) -> Iterator[tuple[str, str]]:
    manifest, comparison = report.manifest, report.comparison
    judging = manifest.judging
    yield "protocol", visible(manifest.protocol)
    yield "version", visible(judging.protocol)
    yield "prompt", visible(manifest.prompt or "")
    if manifest.imported is None:
        yield "language", visible(judging.language)
        yield "seed", str(judging.seed)
    else:
        yield "imported", visible(jsontext.dump(plain(manifest.imported)))
    yield "settings", visible(jsontext.dump(report.settings)) if report.settings else ""
    yield "rule", say.gloss("rule", report.rule) if report.rule else ""
    if comparison and not report.against:
        yield "by", visible(f"{comparison.by} ({comparison.baseline})")
    if comparison:
        yield "pair_by", visible(", ".join(comparison.pair_by))
    yield "evenhand", visible(manifest.evenhand)
    yield "tests", _tests(report, say)


def _tests(report: Report, say: Words) -> str:
    if not report.is_pairs:
        return say("method.tests_scores")
    orders = say(f"method.orders_{'both' if report.manifest.imported is None else 'imported'}")
    return say("method.tests_pairs", orders=orders, half=say.gloss("half", report.rule))


def _texts(report: Report) -> dict[str, str]:
    """Return the files of the protocol that the run used, in its language."""
    judging = report.manifest.judging
    endings = (f"/{judging.language}.md", f"/{judging.language}.toml")
    used = ("protocol.toml", "own.md")
    texts = sorted(judging.texts.items())
    return {name: text for name, text in texts if name in used or name.endswith(endings)}


def _rubric(rubric: object) -> Sequence[Mapping[str, Any]]:
    """Return the dimensions of a rubric; a task's own text is among the texts."""
    return rubric["dimensions"] if isinstance(rubric, Mapping) and "dimensions" in rubric else ()


def _command(report: Report) -> str:
    """Return the command that makes the report again."""
    arguments = ["evenhand", "report", report.run, "-o", "report.html"]
    comparison = None if report.against else report.comparison
    if comparison:
        fields = () if report.is_pairs else comparison.by_fields
        arguments += [part for name in fields for part in ("--by", name)]
        arguments += ["--baseline", comparison.baseline]
    return visible(shlex.join([*arguments, *report.arguments, "--language", report.language]))
