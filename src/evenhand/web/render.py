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


def spoken(request: Request) -> str:
    """The language of an answer: named in the address, chosen before, or wanted by the browser."""
    for asked in (request.query_params.get("lang"), request.cookies.get(COOKIE)):
        if asked in LANGUAGES:
            return asked
    for one in _ranked(request.headers.get("accept-language", "")):
        if one in LANGUAGES:
            return one
    return LANGUAGES[0]


def _ranked(header: str) -> list[str]:
    """The languages of an Accept-Language header, the most wanted first."""
    found: list[tuple[float, int, str]] = []
    for place, part in enumerate(header[:1000].split(",")):
        name, _, weight = part.partition(";")
        try:
            wish = float(weight.partition("=")[2] or 1)
        except ValueError:
            wish = 0.0
        found.append((-wish, place, name.strip().partition("-")[0].lower()))
    return [name for wish, _, name in sorted(found) if wish < 0]


class Renderer:
    """Pages from templates, in four languages."""

    def __init__(self) -> None:
        self._words = {one: words(one, _MORE) for one in LANGUAGES}
        self._templates: dict[str, Environment] = {
            one: environment(self._words[one], "evenhand.web") for one in LANGUAGES
        }

    def words(self, request: Request) -> Words:
        return self._words[spoken(request)]

    def __call__(
        self, request: Request, template: str, status: int = 200, **told: Any
    ) -> HTMLResponse:
        """A page."""
        language = spoken(request)
        query = [one for one in request.query_params.multi_items() if one[0] != "lang"]
        switch = [(one, f"?{urlencode([*query, ('lang', one)])}") for one in LANGUAGES]
        page = self._templates[language].get_template(template)
        answer = HTMLResponse(page.render(languages=switch, **told), status_code=status)
        if request.query_params.get("lang") == language:
            answer.set_cookie(
                COOKIE, language, max_age=31_536_000, httponly=True, samesite="strict"
            )
        return answer

    def plain(self, template: str, **told: Any) -> str:
        """A page for a request that was turned away before anything of it was read."""
        page = self._templates[LANGUAGES[0]].get_template(template)
        return page.render(languages=[], place="", **told)
