"""The pages. Each is made whole by the server; the script only refreshes what is under way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from fastapi import Path as PathParameter
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from evenhand import jsontext
from evenhand.engine.prices import dollars
from evenhand.errors import UsageError
from evenhand.files.protocols import builtin_protocols, find_protocol
from evenhand.report.html.answer import answers, brackets_note
from evenhand.report.html.build import Report
from evenhand.report.html.charts import Figure
from evenhand.report.html.page import Words
from evenhand.report.html.ranks import met_pairs, ranking
from evenhand.report.html.units import unit_blocks
from evenhand.results import pages
from evenhand.results.names import names_of
from evenhand.results.pages import WINDOW
from evenhand.runs.recorded import Recorded
from evenhand.store.ports import Cursor, PageRequest
from evenhand.web.api import CursorText, Filters, Run, Text, named_protocol, protocol_json
from evenhand.web.desk import Desk, page_request, read_filters
from evenhand.web.render import Renderer
from evenhand.web.side_by_side import unit_href

FIGURES_AT_ONCE = 50_000
"""Up to so many judgments, figures are computed without being asked for."""
FIGURES_SECONDS = 20
"""So often the figures of a run under way are read again by an open page."""
_LAST = 2**31


class _RunFigures(NamedTuple):
    """What is shown of a run's judgments: the report, its pictures once they are drawn, and what
    was wrong with the selection."""

    report: Report | None = None
    charts: Sequence[tuple[Figure, str]] | None = None
    problem: str = ""


class Pages:
    """Every page of the site."""

    def __init__(self, desk: Desk, renderer: Renderer, store: str) -> None:
        self._desk, self._render, self._store = desk, renderer, store

    def routes(self) -> APIRouter:
        router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
        pages: dict[str, Callable[..., Response]] = {
            "/": self.runs,
            "/runs/{run}": self.run,
            "/runs/{run}/unit": self.unit,
            "/runs/{run}/calls": self.calls,
            "/runs/{run}/calls/{no}": self.call,
            "/runs/{run}/protocol": self.run_protocol,
            "/runs/{run}/report": self.report,
            "/compare": self.compare,
            "/protocols": self.protocols,
            "/protocols/{name}": self.protocol,
            "/api": self.api,
        }
        for path, page in pages.items():
            router.add_api_route(path, page, response_model=None)
        return router

    def runs(self, request: Request) -> Response:
        """All runs."""
        runs = self._desk.runs()
        standings = self._desk.standings(runs)
        with self._desk.stores.lent() as store:
            judging = [store.is_claimed(run.row.id) for run in runs]
        rows = list(zip(runs, standings, judging, strict=True))
        return self._render(
            request, "runs.html", place="runs", runs=rows, store=self._store, dollars=dollars
        )

    def run(
        self, request: Request, run: Run, figures: bool = False, field: Text = "", value: Text = ""
    ) -> Response:
        """One run: how it stands, and what its judgments, or those with a value of a field, come
        to."""
        recorded = self._desk.run(run)
        got = self._desk.progress(recorded)
        where = [f"{field}={value}"] if field else []
        many = got is None or got["verdicts"] > FIGURES_AT_ONCE
        computing = got is not None and got["verdicts"] > 0 and (figures or bool(where) or not many)
        say = self._words(request, recorded)
        report, charts, problem = self._figures(recorded, say, where, computing)
        computing = computing and not problem
        # What was computed while a run was judged is soon computed again.
        behind = (
            report is not None
            and got is not None
            and not where
            and report.coverage.verdicts != got["verdicts"]
        )
        live = got is not None and got["judging"]
        return self._render(
            request,
            "run.html",
            place="",
            run=recorded,
            got=got,
            live=live,
            behind=behind,
            figures=report,
            answers=answers(report, say) if report else [],
            brackets=brackets_note(report, say) if report else "",
            ranking=ranking(report, say) if report else None,
            met_pairs=met_pairs(report) if report else [],
            pair_href=lambda met: _href(
                f"/runs/{recorded.row.id}/changes",
                {"baseline": met.other, "variant": met.candidate},
            ),
            charts=[(f, Markup(svg)) for f, svg in charts or ()],  # noqa: S704
            computing=computing and (charts is None or (behind and not live)),
            again=FIGURES_SECONDS,
            many=many and got is not None and got["verdicts"] > 0,
            about=_about(recorded, say),
            caveats=sorted({judge.caveat for judge in recorded.judges} - {""}),
            duration=_duration,
            unit_href=unit_href,
            field=field,
            value=value,
            part=f"?{urlencode({'field': field, 'value': value})}" if where else "",
            offered=self._desk.suggestions(recorded) if got and got["verdicts"] else None,
            problem=problem,
        )

    def _figures(
        self, recorded: Recorded, say: Words, where: Sequence[str], computing: bool
    ) -> _RunFigures:
        if not computing:
            return _RunFigures()
        try:
            drawn = self._desk.charts(recorded, say, where)
            # Answer, tables and pictures are of the same verdicts.
            report, charts = drawn or (self._desk.report(recorded, where), None)
            return _RunFigures(report, charts)
        except UsageError as error:
            if not where:
                raise
            return _RunFigures(problem=str(error))

    def _words(self, request: Request, recorded: Recorded) -> Words:
        """The labels of a page about a run, its failure tags as its protocol names them."""
        say = self._render.words(request)
        return say.naming_tags(recorded.tag_names(say.language))

    def unit(
        self,
        request: Request,
        run: Run,
        filters: Filters,
        id: Annotated[str, Query(max_length=20_000)],  # noqa: A002
    ) -> Response:
        """One unit with all that led to its judgments."""
        recorded = self._desk.run(run)
        unit, judged = self._desk.unit(recorded, id)
        say = self._words(request, recorded)
        shown_unit = recorded.kind.present(
            recorded.kind.load(unit.body), [entry.judgment for entry in judged]
        )
        drill = unit_blocks(shown_unit, judged, say, names_of(recorded, say.language))
        return self._render(
            request,
            "unit.html",
            place="",
            run=recorded,
            name=id,
            drill=drill,
            paid=[call for entry in judged for call in entry.row["exchanges"]],
            pages=self._neighbours(recorded, filters, unit.position),
        )

    def _neighbours(
        self, recorded: Recorded, filters: dict[str, Any], no: int
    ) -> list[tuple[str, str | None]]:
        """The list that a unit was opened from, and the units beside it there."""
        here, query, browsed = (
            f"/runs/{recorded.row.id}",
            _query(filters),
            read_filters(recorded, filters),
        )
        links: list[tuple[str, str | None]] = []
        with self._desk.stores.lent() as store:
            for name, forward in (("prev", False), ("next", True)):
                spot = Cursor(no, _LAST, _LAST) if forward else Cursor(no)
                page = PageRequest(place=spot, forward=forward, limit=1, reach=WINDOW)
                rows, _ = pages.judgment_rows(store, recorded, browsed, page)
                href = _href(f"{here}/unit", {"id": rows[0][0].id, **query}) if rows else None
                links.append((name, href))
        return [links[0], ("back", _href(f"{here}/units", query)), links[1]]

    def calls(
        self,
        request: Request,
        run: Run,
        judge: Text = "",
        text: Text = "",
        after: CursorText = "",
        before: CursorText = "",
    ) -> Response:
        """A page of the calls that a run paid for, the latest first."""
        recorded = self._desk.run(run)
        page = page_request(after, before, newest_first=True)
        with self._desk.stores.lent() as store:
            rows, beside = pages.call_rows(store, recorded.row.id, page, judge, text)
        query = {k: v for k, v in {"judge": judge, "text": text}.items() if v}
        here = f"/runs/{recorded.row.id}/calls"
        newer = beside["next"] if after or before else None
        links = [
            ("first_page", _href(here, query) if after or before else None),
            ("prev", _page_href(here, query, "after", newer)),
            ("next", _page_href(here, query, "before", beside["previous"])),
        ]
        return self._render(
            request,
            "calls.html",
            place="",
            run=recorded,
            rows=rows[::-1],
            beside=beside,
            ahead=dict(links)["prev" if page.forward else "next"],
            judge=judge,
            text=text,
            judges=list(dict.fromkeys(judge_record.name for judge_record in recorded.judges)),
            pages=links,
        )

    def call(
        self, request: Request, run: Run, no: Annotated[int, PathParameter(ge=0, le=2**62)]
    ) -> Response:
        """One call with its prompt."""
        recorded = self._desk.run(run)
        call = self._desk.call(recorded, no)
        return self._render(request, "call.html", place="", run=recorded, call=call)

    def compare(self, request: Request, first: Text = "", second: Text = "") -> Response:
        """How far two runs agree over the units they share."""
        runs = self._desk.runs()
        first_run = self._desk.run(first) if first else None
        second_run = self._desk.run(second) if second else None
        problem, agreed = "", None
        if first_run and second_run:
            try:
                agreed = self._desk.agreement(first_run, second_run)
            except UsageError as error:
                problem = str(error)
        return self._render(
            request,
            "compare.html",
            place="compare",
            runs=runs,
            first=first_run or (runs[1] if len(runs) > 1 else None),
            second=second_run or (runs[0] if runs else None),
            has_votes=first_run.has_votes if first_run else False,
            asked=bool(first_run and second_run),
            problem=problem,
            agreed=agreed,
        )

    def protocols(self, request: Request) -> Response:
        """The built-in protocols, and those that runs used."""
        protocols = [find_protocol(name) for name in builtin_protocols()]
        used = [recorded for recorded in self._desk.runs() if not recorded.imported]
        return self._render(
            request, "protocols.html", place="protocols", protocols=protocols, used=used
        )

    def protocol(
        self, request: Request, name: Annotated[str, PathParameter(max_length=64)]
    ) -> Response:
        """A built-in protocol with its prompts."""
        protocol, say = named_protocol(name), self._render.words(request)
        line = protocol_json(protocol)
        about = [(say(f"view.{key}"), str(line[key])) for key in ("kind", "about", "version")]
        texts = _in_order(protocol.texts, say.language)
        return self._render(
            request,
            "protocol.html",
            place="protocols",
            run=None,
            name=name,
            about=about,
            texts=texts,
        )

    def run_protocol(self, request: Request, run: Run) -> Response:
        """The protocol of a run as it was used."""
        recorded, say = self._desk.run(run), self._render.words(request)
        texts = _in_order(recorded.manifest.judging.texts, recorded.manifest.judging.language)
        if rubric := recorded.rubric:
            text = jsontext.dump(rubric) if not isinstance(rubric, str) else rubric
            texts = [(say("view.rubric"), text), *texts]
        return self._render(
            request,
            "protocol.html",
            place="",
            run=recorded,
            name=recorded.manifest.protocol,
            about=_about(recorded, say),
            texts=texts,
        )

    def report(
        self,
        request: Request,
        run: Run,
        summary: bool = False,
        field: Text = "",
        value: Text = "",
    ) -> Response:
        """The report of a run, or of its units with a value of a field, as a file."""
        recorded = self._desk.run(run)
        where = [f"{field}={value}"] if field else []
        language = self._render.words(request).language
        text = self._desk.report_file(recorded, language, summary, where)
        name = f"report-{recorded.row.id}.html"
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return Response(text, media_type="text/html; charset=utf-8", headers=headers)

    def api(self, request: Request) -> Response:
        """What the API has, without a script from anywhere."""
        paths: Mapping[str, Any] = request.app.openapi()["paths"]
        calls = [
            {
                "method": method.upper(),
                "path": path,
                "about": " ".join(operation["description"].split()),
                "parameters": [parameter["name"] for parameter in operation.get("parameters", ())],
            }
            for path, methods in paths.items()
            for method, operation in methods.items()
        ]
        return self._render(request, "api.html", place="api", calls=calls)


def _about(recorded: Recorded, say: Words) -> list[tuple[str, str]]:
    """What a run is, in pairs of a label and a value."""
    row, manifest, judging = recorded.row, recorded.manifest, recorded.manifest.judging
    facts = [
        ("kind", recorded.kind_name),
        ("judges", ", ".join(recorded.names)),
        ("protocol", manifest.protocol),
        ("version", judging.protocol),
        ("prompt", manifest.prompt),
        ("language", judging.language),
        ("seed", judging.seed),
        ("settings", jsontext.dump(recorded.settings)),
        ("started", say.moment(row.started)),
        ("made_by", manifest.evenhand),
    ]
    return [(say(f"view.{key}"), str(value)) for key, value in facts if value is not None]


def _duration(seconds: int | None) -> str:
    if seconds is None:
        return "–"
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _query(filters: Mapping[str, Any]) -> dict[str, str]:
    """The filters that are set."""
    return {name: str(value) for name, value in filters.items() if value}


def _href(path: str, query: Mapping[str, str]) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _page_href(path: str, query: Mapping[str, str], way: str, place: str | None) -> str | None:
    return None if place is None else _href(path, {**query, way: place})


def _in_order(texts: Mapping[str, str], language: str) -> list[tuple[str, str]]:
    """The files of a protocol: the prompts of the language first, then prompts, then the rest."""

    def rank(name: str) -> tuple[bool, bool, str]:
        is_own = name in ("own.md", f"prompts/{language}.md")
        return (not is_own, not name.startswith("prompts/"), name)

    return [(name, texts[name]) for name in sorted(texts, key=rank)]
