"""The long lists of a run: its judgments, and its questions with two answers side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query
from fastapi import Path as PathParameter
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from evenhand.errors import UsageError
from evenhand.kinds.kind import Voting
from evenhand.observation import OVERALL
from evenhand.report.html.answer import scaled_dimension
from evenhand.report.html.units import JudgedRow, beginning, unit_line
from evenhand.report.model import ChangedPair, ChangedSide
from evenhand.results import pages
from evenhand.results.compare import run_names
from evenhand.results.pages import REACH, plain_texts, read_place
from evenhand.results.report import name_variant
from evenhand.results.side_by_side import (
    NothingBeside,
    Setting,
    SideBySide,
    SideOnly,
    Sort,
)
from evenhand.runs.recorded import Recorded
from evenhand.stats.layout import USUAL
from evenhand.stats.matrix import Only
from evenhand.stats.votes import OUTCOMES
from evenhand.store.ports import Browsed, PageRequest, StoredUnit
from evenhand.text import visible
from evenhand.web.render import Renderer
from evenhand.web.service import ROWS, ViewService
from evenhand.words import Sentence, Words, few

RunName = Annotated[str, PathParameter(max_length=64)]
Text = Annotated[str, Query(max_length=2_000)]
Word = Annotated[str, Query(pattern="^[a-z_]*$", max_length=40)]
CursorText = Annotated[str, Query(pattern=r"^(\d{1,18}(\.-?\d{1,9}){0,2})?$", max_length=40)]
Number = Annotated[int, Query(ge=0, le=2**62)]
Status = Literal["", "verdict", "failure", "left_out", "pending"]
CHANGE_SORTS: tuple[Sort, ...] = ("worst", "best", "order")
_TONES = {"failure": "bad", "pending": "dim", "left_out": "dim"}
_END = str(10**17)
"""A cursor behind every unit."""
Row = tuple[StoredUnit, JudgedRow | None]
Links = list[tuple[str, str | None]]


def read_filters(
    status: Status = "",
    reason: Word = "",
    judge: Text = "",
    winner: Literal["", "A", "B", "tie", "uncertain"] = "",
    candidate: Text = "",
    opponent: Text = "",
    flag: Text = "",
    tag: Text = "",
    passed: Literal["", "true", "false"] = "",
    confidence: Literal["", "high", "medium", "low"] = "",
    field: Text = "",
    value: Text = "",
    text: Text = "",
) -> dict[str, str]:
    """Return the filters of a request; `field` and `value` are of the unit's meta."""
    return dict(locals())


Filters = Annotated[dict[str, str], Depends(read_filters)]


def selection(run: Recorded, filters: Mapping[str, Any]) -> Browsed:
    """Return the filters as the store takes them; raise UsageError for an unknown judge."""
    name = filters["judge"]
    if name and name not in run.names:
        raise UsageError(
            Sentence("web.no_judge", run=run.row.id, judge=name, names=few(run.names, 10))
        )
    return Browsed(**{**filters, "judge": run.names.index(name) if name else None})


def link(path: str, query: Mapping[str, Any]) -> str:
    """Return an address with the parameters that are set."""
    given = {name: str(value) for name, value in query.items() if value}
    return f"{path}?{urlencode(given)}" if given else path


_LABELS = {"baseline": "changed.baseline", "variant": "changed.variant", "against": "view.beside"}
_GLOSSED = {"status": "view_status", "winner": "verdict", "passed": "pass"}
_GLOSSED |= {"confidence": "confidence"}


def chips(here: str, query: Mapping[str, Any], say: Words) -> list[tuple[str, str]]:
    """Return the filters that are set, in words, each with the address of the page without it; a
    field and its value are one."""
    filters: list[tuple[str, str]] = []
    for name, value in query.items():
        rest = {**query, name: ""}
        text = str(value)
        if name == "field":
            rest["value"] = ""
            text = f"{value} = {query['value']}"
        elif name == "only":
            text = say(f"view.only_{value or 'all'}")
        elif name in _GLOSSED:
            text = say.gloss(_GLOSSED[name], text)
        elif name != "text":
            text = say("view.chip", name=say(_LABELS.get(name, f"view.{name}")), value=text)
        if value and not (name == "value" and query["field"]):
            filters.append((text, link(here, rest)))
    return [*filters, (say("view.clear"), here)] if len(filters) > 1 else filters


def unit_href(side: ChangedSide) -> str:
    """Return the address of the page of a unit."""
    return link(f"/runs/{side.run}/unit", {"id": side.unit})


def page_links(here: str, query: Mapping[str, Any], after: int, total: int, name: str) -> Links:
    """Return the ways from a page that begins with row `after` to the others."""

    def href(place: int) -> str:
        return link(here, {**query, name: place})

    following = after + ROWS if after + ROWS < total else None
    return [
        ("first_page", href(0) if after else None),
        ("prev", href(max(0, after - ROWS)) if after else None),
        ("next", href(following) if following else None),
        ("last_page", href((total - 1) // ROWS * ROWS) if following else None),
    ]


class _Page(NamedTuple):
    """A page of a list, and the ways to those beside it; `stopped` where a search goes on, at
    `ahead`."""

    rows: Sequence[Row]
    links: Links
    stopped: str | None
    ahead: str | None


class UnitList:
    """The page `/runs/RUN/units`."""

    def __init__(self, service: ViewService, renderer: Renderer) -> None:
        self._service, self._render = service, renderer

    def routes(self) -> APIRouter:
        router = APIRouter(default_response_class=HTMLResponse)
        router.add_api_route("/runs/{run}/units", self.page, response_model=None)
        return router

    def page(
        self,
        request: Request,
        run: RunName,
        filters: Filters,
        after: CursorText = "",
        before: CursorText = "",
    ) -> Response:
        """Show the judgments that filters leave, a page at a time."""
        recorded, words = self._service.find_run(run), self._render.words(request)
        query = {name: value for name, value in filters.items() if value}
        page = self._read(recorded, selection(recorded, filters), query, after, before)
        say = words.naming_tags(recorded.tag_names(words.language))
        offered = self._service.suggestions(recorded)
        by = self._variant_fields(recorded, offered["values"])
        rows = [_line(recorded, say, query, by, *row) for row in page.rows]
        choices = self._choices(recorded, say, query)
        if filters["passed"] or any(row["line"]["passed"] for row in rows):
            choices["passed"] = [(name, say.gloss("pass", name)) for name in ("true", "false")]
        values = dict.fromkeys(v for values in offered["values"].values() for v in values)
        return self._render(
            request,
            "units.html",
            say=say,
            run=recorded,
            given=filters,
            filters=chips(f"/runs/{recorded.id}/units", filters, say),
            choices=choices,
            rows=rows,
            several=recorded.judgments_per_unit > 1,
            has_names=any(row["who"] for row in rows),
            page=page,
            offered=offered | {"all": list(values)[:200]},
        )

    def _variant_fields(self, run: Recorded, values: Mapping[str, Sequence[str]]) -> Sequence[str]:
        """Return the fields that the answer of a run compares by; until it is there, the one that
        usually tells variants apart."""
        answer = self._service.answer(run)
        if answer and answer.report and answer.report.comparison:
            return answer.report.comparison.by_fields
        return [name for name in USUAL if len(values.get(name, ())) > 1][:1]

    def _read(
        self, run: Recorded, browsed: Browsed, query: Mapping[str, str], after: str, before: str
    ) -> _Page:
        """Return a page in the order of the run, found in the database."""
        here, place = f"/runs/{run.id}/units", None
        if before or after:
            place = read_place(before or after)
        request = PageRequest(place=place, forward=not before, limit=ROWS, reach=REACH)
        with self._service.stores.borrow() as store:
            rows, beside = pages.judgment_rows(store, run, browsed, request)
        following = None if before == _END else beside["next"]

        def href(way: str, place: str | None) -> str | None:
            return None if place is None else link(here, {**query, way: place})

        links: Links = [
            ("first_page", link(here, query) if place else None),
            ("prev", href("before", beside["previous"])),
            ("next", href("after", following)),
            ("last_page", href("before", _END if following else None)),
        ]
        return _Page(rows, links, beside["stopped"], dict(links)["prev" if before else "next"])

    def _choices(
        self, run: Recorded, say: Words, query: Mapping[str, str]
    ) -> dict[str, list[tuple[str, str]]]:
        """Return the values that each filter offers, with their meaning; of statuses and reasons
        with how many judgments have them."""
        stands, measure = self._service.standing(run), run.kind.measure
        offered: dict[str, list[tuple[str, str]]] = {}
        if stands is not None:
            counts = stands.counts
            statuses = {
                "verdict": counts.verdicts,
                "failure": sum(counts.failures.values()),
                "pending": counts.pending,
                "left_out": counts.left_out,
            }
            offered["status"] = _counted_choices(statuses, say, "view_status")
            offered["reason"] = _counted_choices(counts.failures, say, "reason")
        if isinstance(measure, Voting):
            offered["winner"] = [(name, say.gloss("verdict", name)) for name in OUTCOMES]
        elif measure.has_confidence:
            offered["confidence"] = list(say.glosses("confidence").items())
        for group, names in (("tag", run.tag_names()), ("flag", say.glosses("flag"))):
            offered[group] = [(name, f"{name} · {say.gloss(group, name)}") for name in names]
        for name, values in offered.items():
            chosen = query.get(name, "")
            if chosen not in dict(values):
                values += [(chosen, chosen) for chosen in plain_texts([chosen])]
        return offered


def _counted_choices(counts: Mapping[str, int], say: Words, group: str) -> list[tuple[str, str]]:
    return [
        (name, f"{say.gloss(group, name)} ({say.integer(number)})")
        for name, number in sorted(counts.items())
        if number
    ]


def _line(
    run: Recorded,
    say: Words,
    query: Mapping[str, str],
    by: Sequence[str],
    unit: StoredUnit,
    judged: JudgedRow | None,
) -> dict[str, Any]:
    """Return a judgment on a line; `who` are the candidates that met, and True for the winner, or
    the variant."""
    shown = run.kind.present(run.kind.load(unit.body), [])
    row: Mapping[str, Any] = {"judge": "", "repeat": 0, "status": "pending"}
    if judged is not None:
        row = judged.row
    line = unit_line(run.kind, unit.id, shown, [judged] if judged else [], say)
    names = line["candidates"] or name_variant(unit.id, shown.measured, by)
    return {
        "href": link(f"/runs/{run.row.id}/unit", {"id": unit.id, **query}),
        "who": [
            (name, [slot] == line["verdicts"]) for name, slot in zip(names, "AB", strict=False)
        ],
        "line": line,
        "text": beginning(shown),
        "judge": f"{row['judge']} #{row['repeat'] + 1}" if row["repeat"] else str(row["judge"]),
        "tone": _TONES.get(row["status"], ""),
    }


class ChangesPage:
    """The page `/runs/RUN/changes`: two variants, candidates or runs, a row per question."""

    def __init__(self, service: ViewService, renderer: Renderer) -> None:
        self._service, self._render = service, renderer

    def routes(self) -> APIRouter:
        router = APIRouter(default_response_class=HTMLResponse)
        router.add_api_route("/runs/{run}/changes", self.page, response_model=None)
        return router

    def page(
        self,
        request: Request,
        run: RunName,
        against: Text = "",
        baseline: Text = "",
        variant: Text = "",
        only: SideOnly = "",
        sort: Sort = "worst",
        after: Number = 0,
    ) -> Response:
        """Show two variants of a run, or a run and another one, side by side."""
        recorded, say = self._service.find_run(run), self._render.words(request)
        other = self._service.find_run(against) if against else None
        setting = Setting(baseline or None, variant or None, other)
        table, problem = self._table(recorded, setting, say)
        query: dict[str, Any] = {"against": against, "baseline": baseline, "variant": variant}
        query |= {"only": only, "sort": sort}
        here = f"/runs/{recorded.row.id}/changes"
        values: dict[str, Any] = {}
        if table:
            values = self._values(recorded, setting, table, table.rows(only, sort).tolist(), after)
            values["scale"] = "" if recorded.has_votes else _scale(table.dimension, recorded, say)
        return self._render(
            request,
            "changes.html",
            run=recorded,
            runs=[
                (one.row.id, f"{one.row.name} · {one.row.id}")
                for one in self._service.list_runs()
                if one.has_votes == recorded.has_votes and one.row.id != recorded.row.id
            ],
            against=other.row.id if other else "",
            table=table,
            problem=problem,
            computing=table is None and not problem,
            renews=table is None and not problem,
            filters=chips(here, {**query, "sort": ""}, say),
            only=only,
            sort=sort,
            only_choices=only_choices(table.counts.of if table else None, say),
            sort_choices=[(name, say(f"view.sort_{name}")) for name in CHANGE_SORTS],
            turned=link(here, {**query, "sort": "best" if sort == "worst" else "worst"}),
            unit_href=unit_href,
            pages=page_links(here, query, after, values.get("total", 0), "after"),
            **values,
        )

    def _table(self, run: Recorded, setting: Setting, say: Words) -> tuple[SideBySide | None, str]:
        """Return the table, once it is there, and what is wrong with the question."""
        try:
            return self._service.side_by_side(run, setting), ""
        except NothingBeside:
            return None, say("view.nothing_beside")
        except UsageError as error:
            return None, error.text(say.message)

    def _values(
        self, run: Recorded, setting: Setting, table: SideBySide, places: list[int], after: int
    ) -> dict[str, Any]:
        """Return the rows of a page and what stands above them."""
        names = _run_names(run, setting.against)
        page = self._service.pairs(run, setting, table, places[after : after + ROWS])
        if run.full_marks and table.dimension == OVERALL:
            page = [pair.out_of(run.full_marks) for pair in page]
        return {
            "sides": [names.get(side, side) for side in (table.variant, table.baseline)],
            "counts": table.counts,
            "own_variants": [(name, name) for name in plain_texts(table.variants)],
            "total": len(places),
            "pairs": [_rename(pair, names) for pair in page],
        }


def _run_names(run: Recorded, other: Recorded | None) -> dict[str, str]:
    """Return the names of two runs by id, as `compare` calls them."""
    if other is None:
        return {}
    first, second = run_names(run, other)
    return {run.id: first, other.id: second}


def _rename(pair: ChangedPair, names: Mapping[str, str]) -> ChangedPair:
    """Return a pair whose sides are called by the names of their runs."""
    baseline, variant = (
        replace(side, name=names.get(side.name, side.name))
        for side in (pair.baseline, pair.variant)
    )
    return replace(pair, baseline=baseline, variant=variant)


def _scale(dimension: str, run: Recorded, say: Words) -> str:
    scale = (0.0, float(run.full_marks or 1))
    return say("view.scale_of", dimension=visible(scaled_dimension(dimension, say, scale)))


def only_choices(
    counts: Mapping[SideOnly, int] | Mapping[Only, int] | None, say: Words
) -> list[tuple[str, str]]:
    """Return the filters, each with the number of rows that it leaves."""
    numbers: Mapping[Any, int] = counts or {}
    names = numbers or dict.fromkeys(("", "different", "failures"))
    labels = ((name, say(f"view.only_{name or 'all'}")) for name in names)
    return [
        (name, f"{label} ({say.integer(numbers[name])})" if numbers else label)
        for name, label in labels
    ]
