"""A Report as one HTML file: no network, no external resource, readable without scripts.

The same report gives the same bytes. Styles and the one script are inline and allowed by their
hashes; data stands in a script element of JSON, which no text in it can leave.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evenhand import jsontext
from evenhand.report.html.answer import answers, brackets_note
from evenhand.report.html.build import Coverage, Report
from evenhand.report.html.charts import figures
from evenhand.report.html.pack import Facet, PackedUnits
from evenhand.report.html.page import (
    Words,
    environment,
    json_text,
    policy,
    static,
    words,
)
from evenhand.report.html.ranks import met_pairs, ranking
from evenhand.report.html.units import flag_gloss
from evenhand.text import visible

ROWS_A_PAGE = 50
CHOICES_MOST = 200
FACETS_PLACE = 5
"""Of the facets in a packed unit."""
VARIANTS_SHOWN = 6
_GLOSSED = {"verdicts": "verdict", "confidence": "confidence"}
_EXPLAINED = {"reasons": "reason", "tags": "tag"}


def render(report: Report) -> str:
    """The whole page."""
    say = words(report.language).naming_tags(report.tag_names)
    templates = environment(say)
    from markupsafe import Markup  # comes with jinja2

    style, script = static("page.css"), static("sort.js") + static("report.js")
    return templates.get_template("report.html").render(
        report=report,
        answers=answers(report, say),
        ranking=ranking(report, say),
        met_pairs=met_pairs(report),
        facts=list(_facts(report, say)),
        bar=_bar(report),
        brackets=brackets_note(report, say),
        caveats=list(dict.fromkeys(j.caveat for j in report.method.judges if j.caveat)),
        figures=list(figures(report, say)),
        glosses=_glosses(report.units, say),
        filters=list(_filters(report.units, say)) if report.units else [],
        method=list(_method(report, say)),
        rubric=_rubric(report.method.rubric),
        command=_command(report),
        show=f"evenhand show {report.run} UNIT",
        policy=policy([style], [script]),
        style=Markup(style),  # noqa: S704 - a file of this package
        script=Markup(script),  # noqa: S704 - a file of this package
        data=Markup(json_text(_data(report.units, say))) if report.units else "",  # noqa: S704
    )


def _facts(report: Report, say: Words) -> Iterator[tuple[str, str]]:
    coverage, method = report.coverage, report.method
    counted = say.counted(report.kind.noun, coverage.units)
    yield "judged", f"{counted}{_variants(report)}"
    yield "protocol", visible(method.protocol)
    judges = [
        say("facts.times", judge=visible(judge.name), n=judge.repeats)
        if judge.repeats > 1
        else visible(judge.name)
        for judge in method.judges
    ]
    yield "by", "\n".join(judges)
    created, started = say.moment(report.created), say.moment(report.started)
    again = say("facts.begun", created=created, started=started)
    yield "when", created if created == started else again
    if method.imported is None:  # what was judged elsewhere cost nothing here
        yield "cost", _cost(coverage, say)


def _cost(coverage: Coverage, say: Words) -> str:
    cost = coverage.cost_usd
    price = say("facts.price_unknown") if cost is None else say.money(cost)
    tokens = say(
        "facts.tokens",
        input=say.integer(coverage.input_tokens),
        output=say.integer(coverage.output_tokens),
    )
    if coverage.cached_tokens:
        tokens += say("facts.cached", cached=say.integer(coverage.cached_tokens))
    return f"{price} · {say.counted('call', coverage.calls)} · {tokens}"


def _variants(report: Report) -> str:
    """The names of what is compared, as far as a line holds them."""
    names = [visible(name) for name in report.variants[:VARIANTS_SHOWN]]
    more = " …" if len(report.variants) > VARIANTS_SHOWN else ""
    return f": {', '.join(names)}{more}" if len(names) > 1 else ""


def _bar(report: Report) -> list[tuple[str, int, int]]:
    """Verdicts, failures and pending as parts of a bar: name, number, width in thousandths."""
    coverage = report.coverage
    failed = sum(coverage.failures.values())
    parts = [("verdict", coverage.verdicts), ("failure", failed), ("pending", coverage.pending)]
    whole = max(1, coverage.planned)
    return [(name, n, round(1000 * n / whole)) for name, n in parts]


def _filters(units: PackedUnits, say: Words) -> Iterator[Mapping[str, Any]]:
    """Yield the filters for units: facets with more than one value, or any reason, flag or tag, and
    at most CHOICES_MOST values."""
    for place, facet in enumerate(units.facets):
        least = 1 if facet.name in ("reasons", "flags", "tags") else 2
        if least <= len(facet.values) <= CHOICES_MOST:
            yield {
                "place": place,
                "name": facet.name,
                "options": _counted(sorted(_options(facet, say), key=_by_text), units, place),
            }


def _by_text(option: tuple[int, str]) -> str:
    return option[1]


def _counted(
    options: Sequence[tuple[int, str]], units: PackedUnits, facet: int
) -> list[tuple[int, str]]:
    """Choices with the number of units that each finds."""
    numbers = Counter(place for unit in units.units for place in set(unit[FACETS_PLACE][facet]))
    return [(place, f"{text} ({numbers[place]:,})") for place, text in options]


def _options(facet: Facet, say: Words) -> Iterator[tuple[int, str]]:
    for place, value in enumerate(facet.values):
        if facet.name in _GLOSSED:
            yield place, say.gloss(_GLOSSED[facet.name], value)
        elif facet.name in _EXPLAINED:
            yield place, f"{value} · {say.gloss(_EXPLAINED[facet.name], value)}"
        else:
            yield place, value


def _glosses(units: PackedUnits | None, say: Words) -> dict[str, str]:
    """Return the meanings of tags and flags."""
    values = {facet.name: facet.values for facet in units.facets} if units else {}
    tags = {tag: say.gloss("tag", tag) for tag in values.get("tags", ())}
    return tags | {flag: flag_gloss(say, flag) for flag in values.get("flags", ())}


def _data(units: PackedUnits, say: Words) -> Mapping[str, Any]:
    """Return the data that the page's script needs."""
    names = ("count", "page", "none", "unit", "text", "result", "marks")
    labels = {name: say(f"units.{name}") for name in names}
    who = "candidates" if any(f.name == "candidates" and f.values for f in units.facets) else ""
    labels |= {"who": say(f"units.{who or 'variant'}"), "gap": say("unit.gap")}
    return {
        "rows": ROWS_A_PAGE,
        "words": labels,
        "glosses": _glosses(units, say),
        "strings": units.strings,
        "units": units.units,
    }


def _method(report: Report, say: Words) -> Iterator[tuple[str, str]]:
    method = report.method
    yield "protocol", visible(method.protocol)
    yield "version", visible(method.version)
    yield "prompt", visible(method.prompt or "")
    if method.imported is None:
        yield "language", visible(method.language)
        yield "seed", str(method.seed)
    else:
        yield "imported", visible(jsontext.dump(method.imported))
    yield "report_seed", str(method.report_seed)
    yield "settings", visible(jsontext.dump(method.settings)) if method.settings else ""
    yield "rule", say.gloss("rule", method.rule) if method.rule else ""
    yield "by", visible(f"{method.by} ({method.baseline})") if method.by else ""
    yield "pair_by", visible(", ".join(method.pair_by))
    yield "evenhand", visible(method.evenhand)
    yield "tests", _tests(report, say)


def _tests(report: Report, say: Words) -> str:
    if not report.is_pairs:
        return say("method.tests_scores")
    orders = say(f"method.orders_{'both' if report.method.imported is None else 'imported'}")
    half = say.gloss("half", report.method.rule)
    return say("method.tests_pairs", orders=orders, half=half)


def _rubric(rubric: object) -> Sequence[Mapping[str, Any]]:
    """The dimensions of a rubric; a task's own text is among the texts."""
    return rubric["dimensions"] if isinstance(rubric, Mapping) and "dimensions" in rubric else ()


def _command(report: Report) -> str:
    """Return the command that makes the report again."""
    method, arguments = report.method, ["evenhand", "report", report.run, "-o", "report.html"]
    if not report.is_pairs and method.by:
        arguments += [part for name in method.by.split(" / ") for part in ("--by", name)]
    arguments += ["--baseline", method.baseline] if method.baseline else []
    arguments += ["--seed", str(method.report_seed), "--language", report.language]
    return visible(shlex.join(arguments))
