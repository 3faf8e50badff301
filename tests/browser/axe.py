"""axe-core over a page: what keeps people out who read by ear, by keyboard or with weak eyes."""

from __future__ import annotations

from functools import cache
from importlib import resources

import pytest

IMPACTS = ("serious", "critical")
RUN = """async impacts => {
  const style = new CSSStyleSheet(); // what is out of sight is laid out as well
  style.replaceSync("* { content-visibility: visible !important; }");
  document.adoptedStyleSheets = [style];
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  document.adoptedStyleSheets = [];
  return violations.filter(({ impact }) => impacts.includes(impact)).flatMap(({ id, nodes }) =>
    nodes.map(({ target, html }) => `${id}: ${target.join(" ")} ${html.slice(0, 120)}`));
}"""


@cache
def _source():
    pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    return (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def axe_faults(page):
    """Return the serious and critical faults of a page, whose policy stays as it is."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(f"{_source()}; undefined")
    return page.evaluate(RUN, list(IMPACTS))
