"""The ways from a figure of a run to its judgments and questions, by the filters of their pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evenhand.report.html.filters import Lead
from evenhand.report.html.marks import Where
from evenhand.report.model import Report
from evenhand.web.lists import link

_PARAMETERS = {"tags": "tag", "passed": "passed", "reasons": "reason"}
_STATUSES = {"failed": "failure", "pending": "pending"}


def leads(
    report: Report, fields: Sequence[str], field: str, value: str
) -> Callable[[Where], Lead | None]:
    """Return what finds the way to what a figure is about; None where no filter finds that alone.
    Units can be filtered by `fields`; with `field`, the figures are only of those that have a value
    of it."""
    by = report.comparison.by.removeprefix("meta.") if report.comparison else ""
    here = f"/runs/{report.run}"

    def lead(where: Where) -> Lead | None:
        if where[0][0] == "change":
            (_, only), (_, variant), (_, baseline) = where
            changes = {"baseline": baseline, "variant": variant, "only": only}
            return None if field else Lead(link(f"{here}/changes", changes))
        query = {"field": field, "value": value} if field else {}
        for facet, wanted in where:
            if facet == "variant" and not field and by in fields:
                query |= {"field": by, "value": wanted}
            elif facet == "candidates":
                query["opponent" if "candidate" in query else "candidate"] = wanted
            elif facet == "verdicts" and wanted in _STATUSES:
                query["status"] = _STATUSES[wanted]
            elif facet in _PARAMETERS:
                query[_PARAMETERS[facet]] = wanted
            else:
                return None
        return Lead(link(f"{here}/units", query))

    return lead
