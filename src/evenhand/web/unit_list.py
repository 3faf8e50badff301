"""The list of a run's judgments: filtered by choices with their numbers, sorted, page by page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from evenhand.report.html.page import Words
from evenhand.report.html.units import JudgedRow, beginning, unit_line
from evenhand.results import pages
from evenhand.results.judgment_index import Facets, UnitSort
from evenhand.results.pages import plain_texts
from evenhand.runs.recorded import Recorded
from evenhand.store.ports import Browsed, PageRequest, StoredUnit
from evenhand.web.api import CursorText, Filters, Number, Run, Text
from evenhand.web.desk import ROWS, Desk, page_request, read_filters
from evenhand.web.render import Renderer

SORTS: tuple[UnitSort, ...] = ("order", "lowest", "highest")
_TONES = {"failure": "bad", "pending": "dim", "left_out": "dim"}
_END = str(10**17)
"""A place behind every unit."""
Row = tuple[StoredUnit, JudgedRow | None]
Links = list[tuple[str, str | None]]


class _Listing(NamedTuple):
    """What a list is asked for."""

    recorded: Recorded
    browsed: Browsed
    query: Mapping[str, str]
    score: str
    sort: UnitSort


class _Page(NamedTuple):
    """A page of a list, and the way to those beside it; `stopped` where a search goes on, at
    `ahead`."""

    rows: Sequence[Row]
    links: Links
    stopped: str | None = None
    ahead: str | None = None
    is_ready: bool = True


class UnitList:
    """The page `/runs/RUN/units`."""

    def __init__(self, desk: Desk, renderer: Renderer) -> None:
        self._desk, self._render = desk, renderer

    def routes(self) -> APIRouter:
        router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
        router.add_api_route("/runs/{run}/units", self.page, response_model=None)
        return router

    def page(
        self,
        request: Request,
        run: Run,
        filters: Filters,
        score: Text = "",
        sort: UnitSort = "order",
        at: Number = 0,
        after: CursorText = "",
        before: CursorText = "",
    ) -> Response:
        """A page of a run's judgments."""
        recorded = self._desk.run(run)
        query = _query({**filters, "score": score, "sort": sort if sort != "order" else ""})
        listing = _Listing(recorded, read_filters(recorded, filters), query, score, sort)
        is_indexed = bool(score) or sort != "order"
        page = (
            self._indexed(listing, at)
            if is_indexed
            else self._paged(listing, page_request(after, before), at_end=before == _END)
        )
        words = self._render.words(request)
        say = words.naming_tags(recorded.tag_names(words.language))
        offered = self._desk.suggestions(recorded)
        values = dict.fromkeys(
            value for field_values in offered["values"].values() for value in field_values
        )
        return self._render(
            request,
            "units.html",
            say=say,
            place="",
            run=recorded,
            given={**filters, "score": score},
            sort=sort,
            sort_choices=[(name, say(f"view.sort_{name}")) for name in SORTS],
            filtered=bool(query),
            total=self._total(listing),
            choices=self._choices(listing, say),
            rows=[_line(recorded, say, listing.query, *row) for row in page.rows],
            several=recorded.judgments_per_unit > 1,
            page=page,
            offered=offered | {"all": list(values)[:200]},
        )

    def _paged(self, listing: _Listing, request: PageRequest, *, at_end: bool) -> _Page:
        """A page in the order of the run, found in the database."""
        with self._desk.stores.lent() as store:
            rows, beside = pages.judgment_rows(store, listing.recorded, listing.browsed, request)
        following = None if at_end else beside["next"]
        here = f"/runs/{listing.recorded.row.id}/units"

        def href(way: str, place: str | None) -> str | None:
            return None if place is None else _href(here, {**listing.query, way: place})

        links: Links = [
            ("first_page", _href(here, listing.query) if request.place else None),
            ("prev", href("before", beside["previous"])),
            ("next", href("after", following)),
            ("last_page", href("before", _END if following else None)),
        ]
        ahead = dict(links)["next" if request.forward else "prev"]
        return _Page(rows, links, beside["stopped"], ahead)

    def _indexed(self, listing: _Listing, at: int) -> _Page:
        """A page sorted by score, or of one score alone."""
        index = self._desk.index(listing.recorded, listing.browsed, listing.score)
        if index is None:
            return _Page([], [], is_ready=False)
        rows = self._desk.indexed_rows(listing.recorded, index.page(listing.sort, at, ROWS))
        here = f"/runs/{listing.recorded.row.id}/units"
        return _Page(rows, page_links(here, listing.query, at, index.size, "at"))

    def _total(self, listing: _Listing) -> int | None:
        """How many judgments there are that the filters leave, once it is counted."""
        if not listing.query:
            stands = self._desk.standing(listing.recorded)
            return stands.counts.planned + stands.counts.left_out if stands else None
        index = self._desk.index(listing.recorded, listing.browsed, listing.score)
        return None if index is None else index.size

    def _choices(self, listing: _Listing, say: Words) -> dict[str, list[tuple[str, str]]]:
        """What each filter offers: values with what they mean and how many judgments have them."""
        facets = self._desk.facets(listing.recorded)
        stands = self._desk.standing(listing.recorded)
        statuses: dict[str, int] = {}
        reasons: Mapping[str, int] = {}
        if stands is not None:
            counts, reasons = stands.counts, stands.counts.failures
            statuses = {
                "verdict": counts.verdicts,
                "failure": sum(reasons.values()),
                "pending": counts.pending,
                "left_out": counts.left_out,
            }
        choices = {
            "status": _offered(statuses, say, "view_status", listing.browsed.status),
            "reason": _offered(reasons, say, "reason", listing.browsed.reason, explains=True),
        }
        return choices | _facet_choices(facets, listing, say)


def _facet_choices(
    facets: Facets | None, listing: _Listing, say: Words
) -> dict[str, list[tuple[str, str]]]:
    if facets is None:
        return {}
    browsed = listing.browsed
    return {
        "winner": _offered(facets.winners, say, "verdict", browsed.winner),
        "score": _offered(facets.scores, say, "view_total", listing.score),
        "confidence": _offered(facets.confidence, say, "confidence", browsed.confidence),
        "tag": _offered(facets.tags, say, "tag", browsed.tag, explains=True),
        "flag": _offered(facets.flags, say, "flag", browsed.flag, explains=True),
    }


def _offered(
    counts: Mapping[str, int], say: Words, group: str, chosen: str, *, explains: bool = False
) -> list[tuple[str, str]]:
    """Values with their numbers, sorted; what is chosen is among them, if it can be read."""
    options: list[tuple[str, str]] = []
    values = {name for name, number in counts.items() if number} | set(plain_texts([chosen]))
    for value in sorted(values):
        gloss = say.gloss(group, value)
        text = f"{value} · {gloss}" if explains and gloss != value else gloss
        options.append((value, f"{text} ({say.integer(counts.get(value, 0))})"))
    return options


def page_links(
    here: str, query: Mapping[str, str], after: int, total: int, name: str = "after"
) -> Links:
    """The pages beside one that begins so far on."""

    def href(place: int) -> str:
        return _href(here, {**query, name: str(place)})

    last = (total - 1) // ROWS * ROWS if total else 0
    return [
        ("first_page", href(0) if after else None),
        ("prev", href(max(0, after - ROWS)) if after else None),
        ("next", href(after + ROWS) if after + ROWS < total else None),
        ("last_page", href(last) if after + ROWS < total else None),
    ]


def _query(filters: Mapping[str, Any]) -> dict[str, str]:
    """The filters that are set."""
    return {name: str(value) for name, value in filters.items() if value}


def _href(path: str, query: Mapping[str, str]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _line(
    recorded: Recorded,
    say: Words,
    query: Mapping[str, str],
    unit: StoredUnit,
    judged: JudgedRow | None,
) -> dict[str, Any]:
    """A judgment on a line."""
    unit_shown = recorded.kind.present(recorded.kind.load(unit.body), [])
    rows = [] if judged is None else [judged]
    return {
        "href": _href(f"/runs/{recorded.row.id}/unit", {"id": unit.id, **query}),
        "line": unit_line(recorded.kind, unit.id, unit_shown, rows, say),
        "text": beginning(unit_shown),
        "judge": _by(judged.row) if judged else "",
        "tone": _TONES.get(judged.row["status"] if judged else "pending", ""),
    }


def _by(row: Mapping[str, Any]) -> str:
    return f"{row['judge']} #{row['repeat'] + 1}" if row["repeat"] else str(row["judge"])
