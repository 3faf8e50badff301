"""The page that sets two variants or two runs side by side, a row per question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from evenhand.errors import UsageError
from evenhand.report.changes import ChangedPair, ChangedSide
from evenhand.report.html.answer import scaled_dimension
from evenhand.report.html.page import Words
from evenhand.results.pages import plain_texts
from evenhand.results.side_by_side import Counts, NothingBeside, Only, Setting, SideBySide, Sort
from evenhand.runs.recorded import Recorded
from evenhand.text import visible
from evenhand.web.api import Number, Run, Text
from evenhand.web.desk import ROWS, Desk
from evenhand.web.render import Renderer
from evenhand.web.unit_list import page_links

SORTS: tuple[Sort, ...] = ("worst", "best", "order")


def unit_href(side: ChangedSide) -> str:
    """Where a unit is shown with all that led to its judgments."""
    return f"/runs/{side.run}/unit?{urlencode({'id': side.unit})}"


class SideBySidePage:
    """Questions of a run with both of their answers: sorted, filtered, a page at a time."""

    def __init__(self, desk: Desk, renderer: Renderer) -> None:
        self._desk, self._render = desk, renderer

    def routes(self) -> APIRouter:
        router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
        router.add_api_route("/runs/{run}/changes", self.page, response_model=None)
        return router

    def page(
        self,
        request: Request,
        run: Run,
        against: Text = "",
        baseline: Text = "",
        variant: Text = "",
        only: Only = "",
        sort: Sort = "worst",
        after: Number = 0,
    ) -> Response:
        """Two variants of a run, or a run and an earlier one."""
        recorded, say = self._desk.run(run), self._render.words(request)
        setting = Setting(
            baseline=baseline or None,
            variant=variant or None,
            against=self._desk.run(against) if against else None,
        )
        table, problem = self._table(recorded, setting, say)
        query = {
            name: value
            for name, value in request.query_params.items()
            if value and name not in ("after", "lang")
        }
        values = self._rows(recorded, setting, table, only, sort, after) if table else {}
        names = _run_names(recorded, setting.against)
        here = f"/runs/{recorded.row.id}/changes"
        turned = {**query, "sort": "best" if sort == "worst" else "worst"}
        return self._render(
            request,
            "changes.html",
            place="",
            run=recorded,
            runs=self._others(recorded),
            against=setting.against.row.id if setting.against else "",
            own_variants=[(name, name) for name in plain_texts(table.variants)] if table else [],
            table=table,
            sides=[names.get(side, side) for side in (table.variant, table.baseline)]
            if table
            else (),
            counts=table.counts if table else None,
            scale="" if table is None or recorded.has_votes else _scale(table.dimension, say),
            problem=problem,
            computing=table is None and not problem,
            only=only,
            sort=sort,
            only_choices=_only_choices(table.counts if table else None, say),
            sort_choices=[(name, say(f"view.sort_{name}")) for name in SORTS],
            turned=f"{here}?{urlencode(turned)}",
            unit_href=unit_href,
            pages=page_links(here, query, after, values.get("total", 0)),
            **values,
        )

    def _table(
        self, recorded: Recorded, setting: Setting, say: Words
    ) -> tuple[SideBySide | None, str]:
        """What is set side by side, once it is there, and what is wrong with the question."""
        try:
            return self._desk.side_by_side(recorded, setting), ""
        except NothingBeside:
            return None, say("view.nothing_beside")
        except UsageError as error:
            return None, str(error)

    def _rows(
        self,
        recorded: Recorded,
        setting: Setting,
        table: SideBySide,
        only: Only,
        sort: Sort,
        after: int,
    ) -> dict[str, Any]:
        places = table.rows(only, sort)
        page = places[after : after + ROWS].tolist()
        names = _run_names(recorded, setting.against)
        pairs = [_called(pair, names) for pair in self._desk.pairs(recorded, setting, table, page)]
        return {"total": places.size, "pairs": pairs}

    def _others(self, recorded: Recorded) -> list[tuple[str, str]]:
        """Runs that a run can be set beside."""
        return [
            (other.row.id, f"{other.row.name} · {other.row.id}")
            for other in self._desk.runs()
            if other.has_votes == recorded.has_votes and other.row.id != recorded.row.id
        ]


def _run_names(run: Recorded, earlier: Recorded | None) -> dict[str, str]:
    """What two runs are called beside each other, by id: their names, with the ids where these are
    alike."""
    if earlier is None:
        return {}
    rows = (run.row, earlier.row)
    are_alike = rows[0].name == rows[1].name
    return {row.id: f"{row.name} · {row.id}" if are_alike else row.name for row in rows}


def _called(pair: ChangedPair, names: Mapping[str, str]) -> ChangedPair:
    """A pair whose sides are called by the names of their runs."""
    sides = [
        replace(side, name=names.get(side.name, side.name))
        for side in (pair.baseline, pair.variant)
    ]
    return replace(pair, baseline=sides[0], variant=sides[1])


def _scale(dimension: str, say: Words) -> str:
    """What the values are on."""
    return say("view.scale_of", dimension=visible(scaled_dimension(dimension, say)))


def _only_choices(counts: Counts | None, say: Words) -> list[tuple[str, str]]:
    """The filters, each with the number of rows that it leaves."""
    numbers = (
        {"": None, "different": None, "failures": None}
        if counts is None
        else {
            "": counts.n,
            "different": counts.different,
            "failures": counts.missing,
        }
    )
    return [
        (name, say(f"view.only_{name or 'all'}") + ("" if n is None else f" ({say.integer(n)})"))
        for name, n in numbers.items()
    ]
