"""The page `/runs/RUN/matrix`: every question by every variant or candidate."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from evenhand.errors import UsageError
from evenhand.report.html.matrix import MatrixTable, matrix_table
from evenhand.results.pages import plain_texts
from evenhand.results.side_by_side import NothingBeside
from evenhand.runs.recorded import Recorded
from evenhand.stats.matrix import MatrixSort, Only, QuestionMatrix
from evenhand.stats.observations import NONE
from evenhand.web.lists import Number, RunName, Text, chips, link, only_choices, page_links
from evenhand.web.render import Renderer
from evenhand.web.service import ROWS, ViewService
from evenhand.words import Words


class MatrixPage:
    """A row per question, a page at a time, in the order that is asked for."""

    def __init__(self, service: ViewService, renderer: Renderer) -> None:
        self._service, self._render = service, renderer

    def routes(self) -> APIRouter:
        router = APIRouter(default_response_class=HTMLResponse)
        router.add_api_route("/runs/{run}/matrix", self.page, response_model=None)
        return router

    def page(
        self,
        request: Request,
        run: RunName,
        baseline: Text = "",
        field: Text = "",
        value: Text = "",
        only: Only = "",
        sort: MatrixSort | None = None,
        after: Number = 0,
    ) -> Response:
        """Show the questions that the filters leave."""
        recorded, say = self._service.find_run(run), self._render.words(request)
        where = [f"{field}={value}"] if field else []
        matrix, problem = self._matrix(recorded, baseline, where, say)
        has_base = matrix is not None and matrix.base is not None
        sorts: tuple[MatrixSort, ...] = (*(("loss",) if has_base else ()), "spread", "order")
        sort = sort if sort in sorts else sorts[0]
        query: dict[str, Any] = {"baseline": baseline, "field": field, "value": value, "only": only}
        here = f"/runs/{recorded.row.id}/matrix"
        values: dict[str, Any] = {"total": 0, "table": None}
        if matrix is not None:
            places = matrix.rows(only, sort)
            part = matrix.of_rows(places[after : after + ROWS])
            values = {"table": self._table(recorded, part, say), "total": len(places)}
            values["counts"] = matrix.counts
            values["baselines"] = [(name, name) for name in plain_texts(matrix.names)]
            values["base"] = "" if matrix.base is None else matrix.names[matrix.base]
        return self._render(
            request,
            "matrix.html",
            run=recorded,
            problem=problem,
            computing=matrix is None and not problem,
            renews=matrix is None and not problem,
            filters=chips(here, query, say),
            field=field,
            value=value,
            only=only,
            sort=sort,
            only_choices=only_choices(values.get("counts"), say),
            sort_choices=[(name, say(f"view.sort_{name}")) for name in sorts],
            links={name: link(here, {**query, "sort": name}) for name in sorts},
            offered=self._service.suggestions(recorded),
            pages=page_links(here, {**query, "sort": sort}, after, values["total"], "after"),
            **values,
        )

    def _matrix(
        self, run: Recorded, baseline: str, where: list[str], say: Words
    ) -> tuple[QuestionMatrix | None, str]:
        """Return the matrix, once it is there, and what is wrong with the question."""
        try:
            return self._service.matrix(run, baseline or None, where), ""
        except NothingBeside:
            return None, say("view.nothing_beside")
        except UsageError as error:
            return None, error.text(say.message)

    def _table(self, run: Recorded, part: QuestionMatrix, say: Words) -> MatrixTable:
        texts = self._service.texts(run, [part.units[unit] for unit in part.first.tolist()])

        def href(unit: int) -> str:
            here = f"/runs/{run.row.id}/unit"
            return "" if unit == NONE else link(here, {"id": part.units[unit]})

        return matrix_table(part, texts, say, href)
