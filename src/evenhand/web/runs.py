"""The first page: the runs of a store, each with its answer in a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from evenhand.engine.prices import dollars
from evenhand.kinds import ANSWERS
from evenhand.report.html.screen import first_screen
from evenhand.results.pages import RunStatus, plain_texts
from evenhand.runs.recorded import Recorded
from evenhand.web.lists import Number, Text, chips, page_links
from evenhand.web.render import Renderer
from evenhand.web.service import ROWS, RunReport, ViewService
from evenhand.words import Words

CHOICES_MOST = 200


class ListedRun(NamedTuple):
    """A run of the list; its counts and headline are None while they are being made."""

    run: Recorded
    stands: RunStatus | None
    is_judging: bool
    headline: str | None


class RunList:
    """The page `/`."""

    def __init__(self, service: ViewService, renderer: Renderer, store: str) -> None:
        self._service, self._render, self._store = service, renderer, store

    def routes(self) -> APIRouter:
        router = APIRouter(default_response_class=HTMLResponse)
        router.add_api_route("/", self.page, response_model=None)
        return router

    def page(
        self,
        request: Request,
        text: Text = "",
        suite: Text = "",
        author: Text = "",
        tagged: Text = "",
        after: Number = 0,
    ) -> Response:
        """Show the runs that the filters leave, the one started last first."""
        say, runs = self._render.words(request), self._service.list_runs()
        query = {"text": text, "suite": suite, "author": author, "tagged": tagged}
        fitting = [run for run in runs if _fits(run, query)]
        rows = self._rows(fitting[after : after + ROWS], say)
        is_live = any(row.is_judging for row in rows)
        is_ready = all(row.stands and row.headline is not None for row in rows)
        return self._render(
            request,
            "runs.html",
            store=self._store,
            is_empty=not runs,
            rows=rows,
            total=len(fitting),
            query=query,
            choices=_choices(runs, query),
            filters=chips("/", query, say),
            dollars=dollars,
            pages=page_links("/", query, after, len(fitting), "after"),
            is_live=is_live,
            is_ready=is_ready,
            renews=is_live or not is_ready,
        )

    def _rows(self, runs: Sequence[Recorded], say: Words) -> list[ListedRun]:
        runs = self._service.with_present_suite(runs)
        standings = self._service.standings(runs)
        answers = self._service.answers(runs)
        headlines = [headline(*each, say) for each in zip(answers, standings, strict=True)]
        with self._service.stores.borrow() as store:
            judging = [store.is_claimed(run.row.id) for run in runs]
        return list(map(ListedRun, runs, standings, judging, headlines))


def headline(answer: RunReport | None, stands: RunStatus | None, say: Words) -> str | None:
    """Return the answer of a run in a sentence; None while it is being made, and nothing where
    it is not to be made yet."""
    if answer is None or stands is None:
        return None
    if answer.report and answer.report.kind.name == ANSWERS:
        return say.counted("sample", stands.counts.verdicts)
    if answer.report:
        return first_screen(answer.report, say).headline
    if stands.counts.verdicts:
        return ""
    failed = sum(stands.counts.failures.values())
    is_over = failed and not stands.counts.pending
    return say("answer.all_failed", n=say.integer(failed)) if is_over else say("answer.nothing")


def _labels(run: Recorded) -> dict[str, Sequence[str]]:
    manifest = run.manifest
    return {"suite": [run.row.name], "author": [manifest.author], "tagged": manifest.tags}


def _fits(run: Recorded, query: Mapping[str, str]) -> bool:
    """Return True if a run has all that is asked for."""
    labels, manifest = _labels(run), run.manifest
    searched = (run.row.name, run.id, manifest.note, manifest.author, *manifest.tags, *run.names)
    is_found = query["text"].casefold() in "\n".join(searched).casefold()
    return is_found and all(not query[name] or query[name] in labels[name] for name in labels)


def _choices(runs: Sequence[Recorded], query: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the values that each filter offers: where there are several, or one is chosen."""
    choices: dict[str, list[str]] = {}
    for name in ("suite", "author", "tagged"):
        values = {value for run in runs for value in _labels(run)[name]} | {query[name]}
        offered = plain_texts(sorted(values))[:CHOICES_MOST]
        if len(offered) > (name != "tagged") or query[name]:
            choices[name] = offered
    return choices
