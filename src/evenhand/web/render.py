"""Templates filled in the language that the reader asked for."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse

from evenhand.report.html.page import LANGUAGES, Words, environment, words

if TYPE_CHECKING:
    from jinja2 import Environment

COOKIE = "evenhand-language"
_MORE: Any = resources.files("evenhand.web") / "words"


def language_of(request: Request) -> str:
    """The language of an answer: named in the address, chosen before, or wanted by the browser."""
    for choice in (request.query_params.get("lang"), request.cookies.get(COOKIE)):
        if choice in LANGUAGES:
            return choice
    for name in _ranked(request.headers.get("accept-language", "")):
        if name in LANGUAGES:
            return name
    return LANGUAGES[0]


def _ranked(header: str) -> list[str]:
    """The languages of an Accept-Language header, the most wanted first."""
    weighted: list[tuple[float, int, str]] = []
    for place, part in enumerate(header[:1000].split(",")):
        name, _, weight = part.partition(";")
        try:
            wish = float(weight.partition("=")[2] or 1)
        except ValueError:
            wish = 0.0
        weighted.append((-wish, place, name.strip().partition("-")[0].lower()))
    return [name for wish, _, name in sorted(weighted) if wish < 0]


class Renderer:
    """Pages from templates, in four languages."""

    def __init__(self) -> None:
        self._words = {language: words(language, _MORE) for language in LANGUAGES}
        self._templates: dict[str, Environment] = {
            language: environment(self._words[language], "evenhand.web") for language in LANGUAGES
        }

    def words(self, request: Request) -> Words:
        return self._words[language_of(request)]

    def __call__(
        self, request: Request, template: str, status: int = 200, **values: Any
    ) -> HTMLResponse:
        """A page."""
        language = language_of(request)
        query = [pair for pair in request.query_params.multi_items() if pair[0] != "lang"]
        switch = [(name, f"?{urlencode([*query, ('lang', name)])}") for name in LANGUAGES]
        page = self._templates[language].get_template(template)
        answer = HTMLResponse(page.render(languages=switch, **values), status_code=status)
        if request.query_params.get("lang") == language:
            answer.set_cookie(
                COOKIE, language, max_age=31_536_000, httponly=True, samesite="strict"
            )
        return answer

    def plain(self, template: str, **values: Any) -> str:
        """A page for a request that was turned away before anything of it was read."""
        page = self._templates[LANGUAGES[0]].get_template(template)
        return page.render(languages=[], place="", **values)
