"""The first part of `evenhand demo`: published judgments, imported and read as any others.

Every figure comes out of the bundled records by the functions behind `import`, `leaderboard`,
`agreement`, `compare` and `report`; the words around them are in the reader's language.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from evenhand.cli.common import wait
from evenhand.cli.narration import Narration
from evenhand.errors import UsageError
from evenhand.judgment import Verdict
from evenhand.kinds.pairwise.unit import load_pair
from evenhand.kinds.pairwise.verdict import PairPass, PairVerdict, pair_passes
from evenhand.kinds.rubric.unit import load_sample
from evenhand.kinds.rubric.verdict import RubricVerdict
from evenhand.report.terminal.console import table
from evenhand.report.terminal.tables import safe
from evenhand.results.compare import compared
from evenhand.results.observations import observe
from evenhand.results.pairs import figures_of_pairs
from evenhand.results.ranked import ranked
from evenhand.runs.imports import Imported, ImportRequest, import_judgments
from evenhand.runs.recorded import Recorded, find_run
from evenhand.stats.agreement import AgreementOptions, agreement_of
from evenhand.stats.comparison import VariantMean
from evenhand.stats.pairwise import PairFigures
from evenhand.store.ports import Archive, Store
from evenhand.units import Pair, Sample

JUDGES, PEOPLE, JAPANESE, RUSSIAN = "vicuna-judges", "vicuna-people", "rakuda", "ruqual"
KINDS = {JUDGES: "votes", PEOPLE: "votes", JAPANESE: "votes", RUSSIAN: "scores"}
"""How each bundled file is imported."""
SOURCES = {
    JUDGES: "bcdnlp/PRD (MIT), lm-sys/FastChat (Apache-2.0)",
    JAPANESE: "yuzu-ai/japanese-llm-ranking (Apache-2.0)",
    RUSSIAN: "kristaller486/RuQualBench (MIT)",
}
SPOKEN = {"ja": JAPANESE, "ru": RUSSIAN}
"""The records in a language of their own."""
LINES = 2
"""Of a question, an answer or an explanation."""
EXPLANATION_LEAST = 50
"""Characters: less is a verdict without a reason."""
_FOLDER: Any = resources.files("evenhand.examples") / "published"


def show_published(store: Store, narration: Narration, folder: Path, url: str) -> None:
    """Import the published judgments, print what they come to, and write the reports into
    `folder`; `url` names the store to whoever goes on from here."""
    spoken = SPOKEN.get(narration.words.language)
    runs = {name: _imported(store, name) for name in (JUDGES, PEOPLE, spoken) if name}
    records = _Published(store.archive, narration)
    records.show_judges(runs[JUDGES], runs[PEOPLE])
    if spoken == RUSSIAN:
        unit = records.show_russian(runs[RUSSIAN])
    elif spoken == JAPANESE:
        unit = records.show_japanese(runs[JAPANESE])
    else:
        unit = records.show_contradiction(runs[JUDGES], runs[PEOPLE])
    narration.out.print()
    reported = [JUDGES, *([spoken] if spoken else [])]
    _write_reports(store.archive, [runs[name] for name in reported], folder, narration)
    narration.tell("commands", store=url)
    narration.command(f"evenhand leaderboard {JUDGES} --judge gpt-4")
    narration.command(f"evenhand agreement {JUDGES} --against {PEOPLE} --majority")
    run = find_run(store.archive, runs[reported[-1]].run)
    ids = [stored.id for stored in store.archive.units(run.scope)]
    narration.command(f"evenhand show {reported[-1]} {named_in_short(unit, ids)}")


def named_in_short(ident: str, ids: Sequence[str]) -> str:
    """Return an id as it is, or of a long one the shortest beginning, up to the end of a part, that
    no other id has."""
    if len(ident) <= SHORT_ID:
        return ident
    ends = (match.end() for match in re.finditer(r"[/#\-]|$", ident))
    others = [other for other in ids if other != ident]
    beginnings = (ident[:end] for end in ends)
    return next(start for start in beginnings if not any(o.startswith(start) for o in others))


def _imported(store: Store, name: str) -> Imported:
    with resources.as_file(_FOLDER / f"{name}.jsonl.gz") as path:
        request = ImportRequest(tables=[path], kind=KINDS[name], name=name)
        return wait(import_judgments(store, request))


def _write_reports(
    archive: Archive, runs: Sequence[Imported], folder: Path, narration: Narration
) -> None:
    """A page of each run, where the parts that make pages are installed."""
    try:
        from evenhand.results.report import ReportOptions, write_report

        folder.mkdir(parents=True, exist_ok=True)
        options = ReportOptions(language=narration.words.language)
        for run in runs:
            path = folder / f"{run.name}.html"
            write_report(path, archive, find_run(archive, run.run), options)
            narration.tell("report", file=path)
    except UsageError as error:
        narration.tell("no_report", why=error)


SHORT_ID = 40
"""An id of so many characters fits on a line with the command that shows it."""


class _Published:
    """The part of the demo that is about the imported runs."""

    def __init__(self, archive: Archive, narration: Narration) -> None:
        self.archive, self.narration = archive, narration

    def show_judges(self, judges: Imported, people: Imported) -> None:
        """Two judges and people: who leads, and how far each judge can be trusted."""
        narration = self.narration
        run, labels = (find_run(self.archive, imported.run) for imported in (judges, people))
        narration.heading("recorded")
        narration.say("vicuna", source=SOURCES[JUDGES])
        narration.out.print()
        boards = {name: self._win_rates(run, name) for name in run.names}
        boards[narration.word("people_name")] = self._win_rates(labels, None)
        self._print_win_rates(boards)
        narration.out.print()
        self._print_trust(run, labels)

    def _win_rates(self, run: Recorded, judge: str | None) -> dict[str, str]:
        """Return the win rate of each candidate with its interval, the best first."""
        rows, share = (
            ranked(self.archive, run, judge=judge).board.rows,
            self.narration.words.share,
        )
        return {row.candidate: share(row.win_rate, row.low, row.high) for row in rows}

    def _print_win_rates(self, boards: Mapping[str, Mapping[str, str]]) -> None:
        word = self.narration.word
        head = [word("win_rate", judge=judge) for judge in boards]
        grid = table(word("model"), *head, right=range(1, len(head) + 1))
        for candidate in next(iter(boards.values())):
            rates = [board.get(candidate, "") for board in boards.values()]
            grid.add_row(safe(candidate), *rates)
        self.narration.out.print(grid)

    def _print_trust(self, run: Recorded, labels: Recorded) -> None:
        narration, votes = self.narration, observe(self.archive, run)
        against = agreement_of(
            votes, observe(self.archive, labels), AgreementOptions(majority=True)
        )
        columns = ("judge", "both_orders", "first_place", "with_people", "kappa")
        grid = table(*map(narration.word, columns), right=range(1, len(columns)))
        for name, figures in self._figures(run).judges.items():
            row, number = against.row(judge=name).figures, narration.words.number
            orders = (narration.share(figures.consistency), narration.share(figures.first_slot))
            grid.add_row(
                name, *orders, narration.share(row["agreement"]), number(row["kappa"].value)
            )
        narration.out.print(grid)
        between = agreement_of(votes, None, AgreementOptions()).rows[0].figures
        narration.say(
            "between",
            **dict(zip(("first", "second"), run.names, strict=True)),
            share=narration.share(between["agreement"]),
            kappa=narration.words.number(between["kappa"].value),
        )

    def _figures(self, run: Recorded) -> PairFigures:
        return figures_of_pairs(run.kind, self.archive, run.scope, run.judge_groups, run.rule)

    def show_contradiction(self, imported: Imported, people: Imported | None = None) -> str:
        """Show a pair on which a judge's two orders name opposite winners, with both explanations;
        return its id."""
        run, narration = find_run(self.archive, imported.run), self.narration
        pair, passes = min(_contradictions(self.archive, run), key=lambda case: case.length)
        narration.heading("contradiction", judge=run.names[0])
        narration.quote("Q", pair.topic, LINES)
        for candidate in (pair.first, pair.second):
            narration.quote("·", f"{candidate.id}: {candidate.text}", LINES)
        for pass_ in passes:
            shown_first = pair.first if pass_.order == "12" else pair.second
            winner = pair.first if pass_.winner == "A" else pair.second
            narration.say("order", candidate=shown_first.id, winner=winner.id)
            narration.quote(" ", f"“{_conclusion(pass_.explanation)}”", LINES, end=True)
        if people and (votes := self._votes(people, pair)):
            narration.say("people", votes=votes)
        else:
            narration.say("uncertain")
        return pair.id

    def _votes(self, people: Imported, pair: Pair) -> str:
        """Return what people said of a pair, by candidate."""
        run, counts = find_run(self.archive, people.run), Counter[str]()
        for _, stored in self.archive.judgments(run.scope, pair.id):
            judgment = run.judgment(stored)
            if isinstance(judgment, Verdict) and isinstance(judgment.value, PairVerdict):
                names = dict(zip("AB", judgment.value.candidates, strict=True))
                counts[names.get(judgment.value.winner, self.narration.word("tie"))] += 1
        return ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))

    def show_japanese(self, imported: Imported) -> str:
        """Japanese matches: who leads, how the orders agree, and a contradiction; its id."""
        narration, run = self.narration, find_run(self.archive, imported.run)
        narration.out.print()
        narration.say("rakuda", source=SOURCES[JAPANESE])
        self._print_win_rates({run.names[0]: self._win_rates(run, None)})
        figures = self._figures(run)
        orders = {"both": figures.consistency, "first": figures.first_slot}
        narration.say(
            "rakuda_order", **{name: narration.share(share) for name, share in orders.items()}
        )
        return self.show_contradiction(imported)

    def show_russian(self, imported: Imported) -> str:
        """Russian answers: how many are free of mistakes, how many quotes stand in them, and one
        answer with its evidence; its id."""
        narration, run = self.narration, find_run(self.archive, imported.run)
        narration.out.print()
        narration.say("ruqual", source=SOURCES[RUSSIAN])
        self._print_means(compared(self.archive, run, ["model"]).means, list(imported.tally.names))
        tally = imported.tally
        narration.say("quotes", all=tally.quotes, found=tally.quotes_found)
        return self._show_evidence(run)

    def _print_means(self, means: Sequence[VariantMean], dimensions: Sequence[str]) -> None:
        """The share of answers without mistakes, by model; the fewest plain mistakes first."""
        narration = self.narration
        head = [narration.word("model"), *map(narration.word, dimensions)]
        grid = table(*head, right=range(1, len(head)))
        by_model: dict[str, dict[str, VariantMean]] = {}
        for mean in means:
            by_model.setdefault(mean.variant, {})[mean.dimension] = mean
        ranking = sorted(by_model, key=lambda model: -(by_model[model]["overall"].mean or 0))
        for model in ranking:
            row = [by_model[model][dimension] for dimension in dimensions]
            shares = [narration.words.share(mean.mean, mean.low, mean.high) for mean in row]
            grid.add_row(safe(model), *shares)
        narration.out.print(grid)

    def _show_evidence(self, run: Recorded) -> str:
        """Show the answer with the most quotes that stand in it; return its id."""
        narration = self.narration
        sample, judgment = max(_scored(self.archive, run), key=lambda row: row.quotes)
        assert isinstance(judgment.value, RubricVerdict)
        narration.heading("evidence", unit=sample.id)
        narration.quote("Q", sample.question, LINES)
        for name, score in judgment.value.scores.items():
            places = [place for place in judgment.evidence if place.dimension == name]
            for quote, place in zip(score.evidence, places, strict=True):
                where = f"“{quote}” [{place.start}:{place.end}]"
                narration.quote("·", f"{narration.word(name)}: {where}", 1)
            if places:
                narration.quote(" ", score.rationale, LINES)
        return sample.id


class _Contradiction(NamedTuple):
    """A pair and the two orders of one judge that name opposite winners."""

    pair: Pair
    passes: Sequence[PairPass]

    @property
    def length(self) -> int:
        """Return how much there is to read."""
        return sum(len(pass_.explanation) for pass_ in self.passes)


def _contradictions(archive: Archive, run: Recorded) -> Iterator[_Contradiction]:
    """Yield the contradictions of the run's first judge whose answers and explanations are
    there."""
    for unit, stored in archive.judgments(run.scope):
        if stored.judge:
            continue
        pair, passes = load_pair(unit.body), pair_passes(run.judgment(stored))
        lengths = [len(pass_.explanation) for pass_ in passes]
        has_texts = all(pair.texts) and min(lengths, default=0) >= EXPLANATION_LEAST
        if has_texts and {pass_.winner for pass_ in passes} == {"A", "B"}:
            yield _Contradiction(pair, passes)


class _ScoredSample(NamedTuple):
    """A sample and the verdict on it."""

    sample: Sample
    judgment: Verdict

    @property
    def quotes(self) -> int:
        return len(self.judgment.evidence)


def _scored(archive: Archive, run: Recorded) -> Iterator[_ScoredSample]:
    for unit, stored in archive.judgments(run.scope):
        judgment = run.judgment(stored)
        if isinstance(judgment, Verdict):
            yield _ScoredSample(load_sample(unit.body), judgment)


def _conclusion(explanation: str) -> str:
    """Return the last paragraph of an explanation, without the bare verdict that may follow it."""
    paragraphs = [part for part in re.split(r"\n\s*\n", explanation) if len(part.strip()) > 2]
    return paragraphs[-1] if paragraphs else explanation
