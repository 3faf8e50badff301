"""The pages of a run. Each is made whole by the server; the script only refreshes what is under
way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from evenhand import jsontext
from evenhand.errors import UsageError
from evenhand.report.html.render import shown_figures
from evenhand.report.html.units import unit_blocks
from evenhand.report.model import Report
from evenhand.results import pages
from evenhand.results.pages import WINDOW
from evenhand.results.side_by_side import Setting
from evenhand.results.units import names_of
from evenhand.runs.recorded import Recorded
from evenhand.stats.observations import NONE
from evenhand.store.ports import Cursor, PageRequest, StoredUnit
from evenhand.text import visible
from evenhand.web.leads import leads
from evenhand.web.lists import Filters, Links, RunName, Text, chips, link, selection
from evenhand.web.render import Renderer
from evenhand.web.service import FIGURES_AT_ONCE, ViewService
from evenhand.words import Words

_LAST = 2**31


class Pages:
    """All pages but the long lists."""

    def __init__(self, service: ViewService, renderer: Renderer) -> None:
        self._service, self._render = service, renderer

    def routes(self) -> APIRouter:
        router = APIRouter(default_response_class=HTMLResponse)
        pages: dict[str, Callable[..., Response]] = {
            "/runs/{run}": self.run,
            "/runs/{run}/unit": self.unit,
            "/runs/{run}/protocol": self.protocol,
            "/runs/{run}/report": self.report,
        }
        for path, page in pages.items():
            router.add_api_route(path, page, response_model=None)
        return router

    def run(
        self,
        request: Request,
        run: RunName,
        figures: bool = False,
        field: Text = "",
        value: Text = "",
    ) -> Response:
        """Show the counts of a run, and the figures of its judgments, or of those with a value of
        a field."""
        recorded = self._service.find_run(run)
        got = self._service.progress(recorded)
        verdicts = got["verdicts"] if got else 0
        where = [f"{field}={value}"] if field else []
        many = got is None or verdicts > FIGURES_AT_ONCE
        wanted = verdicts > 0 and (figures or bool(where) or not many)
        say = self._words(request, recorded)
        report, problem = self._figures(recorded, where, say) if wanted else (None, "")
        # Figures that were computed while a run was judged are soon computed again.
        behind = bool(report and not where and report.coverage.verdicts != verdicts)
        live = bool(got and got["judging"])
        offered = self._service.suggestions(recorded) if verdicts else None
        computing = wanted and not problem and (report is None or (behind and not live))
        here = f"/runs/{recorded.row.id}"
        shown = shown_figures(report, say) if report else {}
        if live and shown:
            waits = {"next": say("next.live"), "target": "", "where": ()}
            shown["screen"] = replace(shown["screen"], **waits)
        return self._render(
            request,
            "run.html",
            run=recorded,
            got=got,
            live=live,
            behind=behind,
            figures=report,
            **shown,
            lead=report and offered and leads(report, offered["fields"], field, value),
            computing=computing,
            waiting=got is None or computing or (live and not many),
            renews=got is None or computing or live,
            many=many and verdicts > 0,
            filters=chips(here, {"field": field, "value": value}, say),
            about=_about(recorded, say),
            caveats=sorted({judge.caveat for judge in recorded.judges} - {""}),
            duration=_duration,
            field=field,
            value=value,
            report_href=link(f"/runs/{recorded.row.id}/report", {"field": field, "value": value}),
            summary_href=link(
                f"/runs/{recorded.row.id}/report", {"field": field, "value": value, "summary": 1}
            ),
            offered=offered,
            problem=problem,
        )

    def _figures(
        self, run: Recorded, where: Sequence[str], say: Words
    ) -> tuple[Report | None, str]:
        """Return the figures, once they are there, and what is wrong with the selection."""
        try:
            return self._service.report(run, where), ""
        except UsageError as error:
            if not where:
                raise
            return None, error.text(say.message)

    def _words(self, request: Request, run: Recorded) -> Words:
        """Return the labels of a page about a run, its failure tags as its protocol names them."""
        say = self._render.words(request)
        return say.naming_tags(run.tag_names(say.language))

    def unit(
        self,
        request: Request,
        run: RunName,
        filters: Filters,
        id: Annotated[str, Query(max_length=20_000)],  # noqa: A002
    ) -> Response:
        """Show one unit with all that led to its judgments."""
        recorded = self._service.find_run(run)
        unit, judged = self._service.unit(recorded, id)
        say = self._words(request, recorded)
        shown = recorded.kind.present(
            recorded.kind.load(unit.body), [entry.judgment for entry in judged]
        )
        return self._render(
            request,
            "unit.html",
            run=recorded,
            name=id,
            shown_blocks=unit_blocks(shown, judged, say, names_of(recorded, say.language)),
            others=self._other_answers(recorded, id),
            paid=[call for entry in judged for call in entry.row["exchanges"]],
            pages=self._neighbours(recorded, filters, unit),
        )

    def _other_answers(self, run: Recorded, unit: str) -> list[tuple[str, str]]:
        """Return the links to the other answers to the question of a unit, once they are known."""
        stands = self._service.standing(run, 0)
        if stands is None or stands.counts.verdicts > FIGURES_AT_ONCE:
            return []
        with suppress(UsageError):  # a single variant
            if matrix := self._service.matrix(run, None, ()):
                at = matrix.units.index(unit) if unit in matrix.units else NONE
                return [
                    (visible(name), link(f"/runs/{run.row.id}/unit", {"id": matrix.units[other]}))
                    for name, other in matrix.other_answers(at)
                ]
        return []

    def _neighbours(self, run: Recorded, filters: Mapping[str, str], unit: StoredUnit) -> Links:
        """Return the ways to the list that a unit was opened from, to the units beside it there,
        and to the next that got worse, where something is compared."""
        no = unit.position
        here, browsed = f"/runs/{run.row.id}", selection(run, filters)
        links: Links = []
        with self._service.stores.borrow() as store:
            for name, forward in (("prev", False), ("next", True)):
                place = Cursor(no, _LAST, _LAST) if forward else Cursor(no)
                page = PageRequest(place=place, forward=forward, limit=1, reach=WINDOW)
                rows, _ = pages.judgment_rows(store, run, browsed, page)
                href = link(f"{here}/unit", {"id": rows[0][0].id, **filters}) if rows else None
                links.append((name, href))
        back = ("back", link(f"{here}/units", filters))
        try:
            table = self._service.side_by_side(run, Setting())
        except UsageError:  # a single variant
            return [links[0], back, links[1]]
        worse = table and table.next_worse(unit.id)
        href = link(f"{here}/unit", {"id": worse, **filters}) if worse else None
        return [links[0], back, links[1], ("next_worse", href)]

    def protocol(self, request: Request, run: RunName) -> Response:
        """Show the protocol of a run as it was used."""
        recorded, say = self._service.find_run(run), self._render.words(request)
        judging = recorded.manifest.judging
        # The prompt of the run's language first, then the other prompts, then the rest.
        own = ("own.md", f"prompts/{judging.language}.md")
        texts = sorted(
            judging.texts.items(),
            key=lambda file: (file[0] not in own, not file[0].startswith("prompts/"), file[0]),
        )
        if rubric := recorded.rubric:
            text = rubric if isinstance(rubric, str) else jsontext.dump(rubric)
            texts = [(say("view.rubric"), text), *texts]
        return self._render(
            request,
            "protocol.html",
            run=recorded,
            about=_about(recorded, say),
            texts=texts,
        )

    def report(
        self,
        request: Request,
        run: RunName,
        summary: bool = False,
        field: Text = "",
        value: Text = "",
    ) -> Response:
        """Send the report of a run, or of its units with a value of a field, as a file."""
        recorded = self._service.find_run(run)
        where = [f"{field}={value}"] if field else []
        language = self._render.words(request).language
        text = self._service.report_file(recorded, language, summary, where)
        name = f"report-{recorded.row.id}.html"
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        return Response(text, media_type="text/html; charset=utf-8", headers=headers)


def _about(run: Recorded, say: Words) -> list[tuple[str, str]]:
    """Return what a run is, in pairs of a label and a value."""
    manifest, judging = run.manifest, run.manifest.judging
    facts = {
        "kind": run.kind_name,
        "judges": ", ".join(run.names),
        "protocol": manifest.protocol,
        "version": judging.protocol,
        "prompt": manifest.prompt,
        "language": judging.language,
        "seed": judging.seed,
        "settings": jsontext.dump(run.settings),
        "started": say.moment(run.row.started),
        "author": manifest.author or None,
        "made_by": manifest.evenhand,
    }
    return [(say(f"view.{key}"), str(value)) for key, value in facts.items() if value is not None]


def _duration(seconds: int | None) -> str:
    if seconds is None:
        return "–"
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
