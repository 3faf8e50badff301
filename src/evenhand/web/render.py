"""Templates filled in the language that the reader asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse

from evenhand.errors import EvenhandError
from evenhand.report.html.page import environment
from evenhand.words import LANGUAGES, Words, words

if TYPE_CHECKING:
    from jinja2 import Environment

COOKIE = "evenhand-language"


def language_of(request: Request) -> str:
    """Return the language named in the address, chosen before, or wanted by the browser."""
    accepted = request.headers.get("accept-language", "")[:1000].split(",")
    wanted = [part.partition(";")[0].strip().partition("-")[0].lower() for part in accepted]
    chosen = (request.query_params.get("lang"), request.cookies.get(COOKIE), *wanted)
    return next((name for name in chosen if name in LANGUAGES), LANGUAGES[0])


class Renderer:
    """Pages from templates, in four languages."""

    def __init__(self, **functions: Callable[..., Any]) -> None:
        """Templates may call the functions."""
        self._words = {language: words(language) for language in LANGUAGES}
        self._templates: dict[str, Environment] = {
            language: environment(self._words[language], "evenhand.web") for language in LANGUAGES
        }
        for templates in self._templates.values():
            templates.globals |= functions

    def words(self, request: Request) -> Words:
        """Return the words of the reader's language."""
        return self._words[language_of(request)]

    def __call__(self, request: Request, template: str, **values: Any) -> HTMLResponse:
        """Return a page."""
        language = language_of(request)
        query = [pair for pair in request.query_params.multi_items() if pair[0] != "lang"]
        switch = [(name, f"?{urlencode([*query, ('lang', name)])}") for name in LANGUAGES]
        page = self._templates[language].get_template(template)
        response = HTMLResponse(page.render(languages=switch, **values))
        if request.query_params.get("lang") == language:
            response.set_cookie(
                COOKIE, language, max_age=31_536_000, httponly=True, samesite="strict"
            )
        return response

    def error(self, request: Request, status: int, error: EvenhandError) -> HTMLResponse:
        """Return a page that says what went wrong. Of the request only its language is in it."""
        language = language_of(request)
        what, advice = map(self._words[language].message, (error.what, error.advice))
        page = self._templates[language].get_template("error.html")
        text = page.render(languages=[], code=status, what=what, advice=advice)
        return HTMLResponse(text, status_code=status)
