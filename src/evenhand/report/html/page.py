"""Shared parts of HTML pages: safe text, templates and their policy.

All judged text is hostile. Templates escape everything they insert, no filter marks data as safe
that it has not escaped, and characters that hide or turn text around are shown as escapes.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from importlib import resources
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from evenhand.errors import UsageError
from evenhand.report.html.markdown import to_html
from evenhand.report.html.units import compared_texts
from evenhand.text import visible
from evenhand.words import Code, Sentence, Words

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_ROOM = resources.files("evenhand.report.html")


def environment(say: Words, *packages: str) -> Environment:
    """Templates of this room and of further packages' `templates`, escaping all they insert."""
    require("jinja2", extra="view" if packages else "report")
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup  # comes with jinja2

    templates = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in (*packages, "evenhand.report.html")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters["visible"] = visible
    templates.filters["marks"] = Markup  # of charts: numbers and classes of this package alone
    templates.filters["html"] = _text_html
    for name in ("number", "short", "signed", "percent", "integer", "money", "moment"):
        templates.filters[name] = getattr(say, name)
    templates.globals |= {"say": say, "interval": say.interval, "share": say.share}
    templates.globals["compared"] = partial(compared_texts, say=say)
    return templates


def _text_html(block: Mapping[str, Any]) -> tuple[Markup, bool]:
    """Return the HTML of a text, and True if its Markdown has been formatted."""
    from markupsafe import Markup

    html, formatted = to_html(block["stretches"], formatted=block["formatted"])
    return Markup(html), formatted  # noqa: S704 - escaped, with elements of markdown.py alone


def require(*modules: str, extra: str = "report") -> None:
    """Raise UsageError where one of these, which come with an extra, is not installed."""
    for name in modules:
        if find_spec(name) is None:
            raise UsageError(Sentence("cli.package_missing", name=name, extra=Code(extra)))


def static(name: str) -> str:
    """The text of a file of `static/`."""
    return (_ROOM / "static" / name).read_text(encoding="utf-8")


def policy(styles: Sequence[str], scripts: Sequence[str]) -> str:
    """A content security policy that allows these inline texts, and nothing else at all."""
    return (
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; "
        f"style-src {_hashes(styles)}; script-src {_hashes(scripts)}"
    )


def _hashes(texts: Sequence[str]) -> str:
    hashes = [b64encode(sha256(text.encode()).digest()).decode() for text in texts]
    return " ".join(f"'sha256-{digest}'" for digest in hashes) or "'none'"
