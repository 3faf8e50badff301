"""The JSON API. Reading is free; what changes the store is a POST, and the guard lets it in only
with the token."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Security
from fastapi import Path as PathParameter
from fastapi.security import APIKeyHeader
from starlette.responses import JSONResponse

from evenhand import jsontext
from evenhand.files.protocols import builtin_protocols, find_protocol
from evenhand.kinds.protocol import Protocol
from evenhand.report.changes import pair_json
from evenhand.report.html.units import JudgedRow
from evenhand.results import pages
from evenhand.results.side_by_side import Only, Setting, Sort
from evenhand.store.ports import StoredUnit
from evenhand.web import shapes
from evenhand.web.desk import ROWS, Desk, NotFound, page_request, read_filters
from evenhand.web.guard import TOKEN_HEADER

Text = Annotated[str, Query(max_length=200)]
CursorText = Annotated[str, Query(pattern=r"^(\d{1,18}(\.-?\d{1,9}){0,2})?$", max_length=40)]
Code = Annotated[str, Query(pattern="^[a-z_]*$", max_length=40)]
Where = Annotated[
    tuple[Text, ...],
    Query(max_length=20, description="FIELD=VALUE; of one field that is given twice, either."),
]
Limit = Annotated[int, Query(ge=1, le=500)]
Number = Annotated[int, Query(ge=0, le=2**62)]
Run = Annotated[
    str, PathParameter(max_length=64, description="An id, a unique prefix of one, or latest.")
]
Status = Literal["", "verdict", "failure", "left_out", "pending"]

PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": shapes.Problem, "description": "What was asked for cannot be."},
    401: {"model": shapes.Problem, "description": "Elsewhere than on loopback: no token."},
    403: {"model": shapes.Problem, "description": "A foreign host, or another site's page."},
    404: {"model": shapes.Problem, "description": "There is no such thing in the store."},
    405: {"model": shapes.Problem, "description": "The method is not known here."},
    413: {"model": shapes.Problem, "description": "The request is too long."},
    422: {"model": shapes.Problem, "description": "A parameter is not of its form."},
    503: {"model": shapes.Problem, "description": "The store is busy, gone or damaged."},
}
LOCKED: dict[int | str, dict[str, Any]] = {
    401: {"model": shapes.Problem, "description": "The token is missing or wrong."},
    409: {"model": shapes.Problem, "description": "Another process judges the run."},
}

_TOKEN = APIKeyHeader(
    name=TOKEN_HEADER,
    scheme_name="token",
    description="Printed at start.",
    auto_error=False,  # the guard has looked at it before
)


class Json(JSONResponse):
    """A value as JSON, every number as it was spelled."""

    def render(self, content: Any) -> bytes:
        return jsontext.dump(content).encode("utf-8", "replace")


def filters(
    status: Status = "",
    reason: Code = "",
    judge: Text = "",
    winner: Literal["", "A", "B", "tie", "uncertain"] = "",
    candidate: Text = "",
    flag: Text = "",
    tag: Text = "",
    confidence: Literal["", "high", "medium", "low"] = "",
    field: Text = "",
    value: Text = "",
    text: Text = "",
) -> dict[str, Any]:
    """What a list of judgments is filtered by; `field` and `value` are of the unit's meta."""
    return dict(locals())


Filters = Annotated[dict[str, Any], Depends(filters)]


def row_json(unit: StoredUnit, judged: JudgedRow | None) -> dict[str, Any]:
    """A judgment, or the word that a unit waits for one."""
    if judged is not None:
        return judged.row
    empty: dict[str, Any] = {"evidence": [], "passes": [], "fixes": [], "flags": [], "calls": []}
    waits = {"unit": unit.id, "judge": None, "repeat": None, "status": "pending"}
    return {**waits, "reason": None, "detail": "", "output": None, **empty, "question": ""}


def protocol_json(protocol: Protocol) -> dict[str, Any]:
    """A protocol on a line."""
    names = ("name", "kind", "about", "version", "languages")
    return {name: getattr(protocol, name) for name in names}


def named_protocol(name: str) -> Protocol:
    """A built-in protocol; raises NotFound. No other name is looked for on the disk."""
    if name not in builtin_protocols():
        raise NotFound("there is no built-in protocol of this name")
    return find_protocol(name)


def routes(desk: Desk) -> APIRouter:
    """All of the API."""
    router = APIRouter(prefix="/api", responses=PROBLEMS, default_response_class=Json)
    _runs(router, desk)
    _differences(router, desk)
    _judgments(router, desk)
    _calls(router, desk)
    _protocols(router)
    return router


def _runs(router: APIRouter, desk: Desk) -> None:
    @router.get("/runs", response_model=shapes.Runs)
    def runs() -> Json:
        """All runs, the one started last first."""
        return Json({"runs": [desk.overview(run) for run in desk.runs()]})

    @router.get("/runs/{run}", response_model=shapes.Run)
    def run_(run: Run) -> Json:
        """One run and how it stands."""
        return Json(desk.overview(desk.run(run)))

    @router.get("/runs/{run}/progress", response_model=shapes.Progress)
    def progress(run: Run) -> Json:
        """How a run gets on, as last counted."""
        recorded = desk.run(run)
        desk.overview(recorded)  # the first count is waited for
        return Json(desk.progress(recorded))

    @router.get("/runs/{run}/figures", response_model=shapes.Figures)
    def figures(run: Run, where: Where = ()) -> Json:
        """What the judgments of a run, or of the units that each FIELD=VALUE selects, come to; ask
        again while it is null."""
        return Json({"figures": desk.figures(desk.run(run), where)})

    @router.post(
        "/runs/{run}/settle",
        response_model=shapes.Settled,
        responses=LOCKED,
        dependencies=[Security(_TOKEN)],
    )
    def settle(run: Run) -> Json:
        """Recompute the judgments of a run from its stored replies, without a call."""
        return Json(desk.settle(desk.run(run)))


def _differences(router: APIRouter, desk: Desk) -> None:
    @router.get("/runs/{run}/changes", response_model=shapes.SideBySide)
    def changes(
        run: Run,
        against: Text = "",
        baseline: Text = "",
        variant: Text = "",
        only: Only = "",
        sort: Sort = "worst",
        after: Number = 0,
        limit: Limit = ROWS,
    ) -> Json:
        """Two variants of a run, or a run and an earlier one, question by question; ask again while
        it is null."""
        recorded = desk.run(run)
        earlier = desk.run(against) if against else None
        setting = Setting((), baseline or None, variant or None, earlier)
        table = desk.side_by_side(recorded, setting)
        if table is None:
            return Json({"changes": None})
        places = table.rows(only, sort)
        page = places[after : after + limit].tolist()
        names = {name: getattr(table, name) for name in ("by", "variant", "baseline", "dimension")}
        rows = [pair_json(pair) for pair in desk.pairs(recorded, setting, table, page)]
        following = after + limit if after + limit < places.size else None
        counts = table.counts._asdict() | {"total": int(places.size)}
        return Json({"changes": names | counts | {"rows": rows, "next": following}})

    @router.get("/compare", response_model=shapes.Differences)
    def compare(
        first: Text, second: Text, after: Number = 0, changed: bool = True, limit: Limit = ROWS
    ) -> Json:
        """Two runs over the units they share: what changed, and how far they agree."""
        first_run, second_run = desk.run(first), desk.run(second)
        with desk.stores.lent() as store:
            differences, ahead = pages.differences(
                store, first_run, second_run, after=after, changed_only=changed, limit=limit
            )
        rows = [
            {"unit": p.name, "same_text": p.same_text, "first": p.before, "second": p.after}
            for p in differences
        ]
        agreed = desk.agreement(first_run, second_run)
        return Json({"differences": rows, "agreement": agreed, "next": ahead})


def _judgments(router: APIRouter, desk: Desk) -> None:
    @router.get("/runs/{run}/judgments", response_model=shapes.Judgments)
    def judgments(
        run: Run,
        filters: Filters,
        after: CursorText = "",
        before: CursorText = "",
        limit: Limit = ROWS,
    ) -> Json:
        """A page of judgments, in the order of the units."""
        recorded = desk.run(run)
        browsed, page = read_filters(recorded, filters), page_request(after, before, limit)
        with desk.stores.lent() as store:
            rows, beside = pages.judgment_rows(store, recorded, browsed, page)
        return Json({"judgments": [row_json(*row) for row in rows], **beside})

    @router.get("/runs/{run}/unit", response_model=shapes.Unit)
    def unit(run: Run, id: Annotated[str, Query(max_length=20_000)]) -> Json:  # noqa: A002
        """One unit with its judgments, prompts, replies and what they cost."""
        return Json(desk.unit(desk.run(run), id).json())


def _calls(router: APIRouter, desk: Desk) -> None:
    @router.get("/runs/{run}/calls", response_model=shapes.Calls)
    def calls(
        run: Run,
        judge: Text = "",
        text: Text = "",
        after: CursorText = "",
        before: CursorText = "",
        limit: Limit = ROWS,
    ) -> Json:
        """A page of the calls that a run paid for, in the order in which they came; without a
        place, the last ones."""
        recorded = desk.run(run)
        page = page_request(after, before, limit, newest_first=True)
        with desk.stores.lent() as store:
            rows, beside = pages.call_rows(store, recorded.row.id, page, judge, text)
        return Json({"calls": rows, **beside})

    @router.get("/runs/{run}/calls/{no}", response_model=shapes.AskedCall)
    def call(run: Run, no: Annotated[int, PathParameter(ge=0, le=2**62)]) -> Json:
        """One call with its prompt."""
        return Json(desk.call(desk.run(run), no))


def _protocols(router: APIRouter) -> None:
    @router.get("/protocols", response_model=shapes.Protocols)
    def protocols() -> Json:
        """The built-in protocols."""
        lines = [protocol_json(find_protocol(name)) for name in builtin_protocols()]
        return Json({"protocols": lines})

    @router.get("/protocols/{name}", response_model=shapes.ProtocolTexts)
    def protocol(name: Annotated[str, PathParameter(max_length=64)]) -> Json:
        """A built-in protocol with its prompts."""
        details = named_protocol(name)
        return Json(protocol_json(details) | {"texts": dict(details.texts)})
