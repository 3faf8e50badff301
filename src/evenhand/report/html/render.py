"""A Report as one HTML file: no network, no external resource, readable without scripts.

The same report gives the same bytes. Styles and the one script are inline and allowed by their
hashes.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evenhand import jsontext
from evenhand.report.html.answer import answers, brackets_note
from evenhand.report.html.build import Coverage, ListedUnit, Report
from evenhand.report.html.charts import figures
from evenhand.report.html.page import Words, environment, policy, static, words
from evenhand.report.html.ranks import met_pairs, ranking
from evenhand.text import visible

CHOICES_MOST = 200
VARIANTS_SHOWN = 6
_CODES = ("reasons", "flags", "tags")
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
        filters=dict(_filters(report.units or (), say)),
        method=list(_method(report, say)),
        rubric=_rubric(report.method.rubric),
        command=_command(report),
        show=f"evenhand show {report.run} UNIT",
        policy=policy([style], [script]),
        style=Markup(style),  # noqa: S704 - a file of this package
        script=Markup(script),  # noqa: S704 - a file of this package
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


def _filters(
    units: Sequence[ListedUnit], say: Words
) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield the filters for units, each with its values and how many units have them: facets with
    more than one value, or any reason, flag or tag, and at most CHOICES_MOST values."""
    for facet in units[0].facets if units else ():
        counts = Counter(value for unit in units for value in set(unit.facets[facet]))
        if (1 if facet in _CODES else 2) <= len(counts) <= CHOICES_MOST:
            options = [
                (value, f"{_choice(facet, value, say)} ({n:,})") for value, n in counts.items()
            ]
            yield facet, sorted(options, key=lambda option: option[1])


def _choice(facet: str, value: str, say: Words) -> str:
    if facet in _GLOSSED:
        return say.gloss(_GLOSSED[facet], value)
    return f"{value} · {say.gloss(_EXPLAINED[facet], value)}" if facet in _EXPLAINED else value


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
    arguments += ["--language", report.language]
    return visible(shlex.join(arguments))
