"""`Kind`: all that depends on the kind of judging. `ReadyKind`: a kind with the texts of a protocol
and the terms of a suite, ready to read rows and to judge units.

A kind is a folder that fills in one `Kind` record, and a line in the registry. Its units are frozen
values of its own type; outside of its folder they are only handed on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple

from msgspec import Struct, convert, field

from evenhand.exchange import Question
from evenhand.judgment import Failure, Judgment, JudgmentText, LeftOut, Verdict
from evenhand.kinds.blocks import Block, Label, Notice, Number, ShownUnit, UnitSummary, score_table
from evenhand.kinds.checks import Check, check_outcomes, flag_output
from evenhand.kinds.conversation import JudgingContext, PreparedProtocol
from evenhand.kinds.protocol import Protocol, ProtocolForm
from evenhand.kinds.rows import TableForm, check_language
from evenhand.limits import REPAIRS
from evenhand.observation import (
    OVERALL,
    Ends,
    Observation,
    Scored,
    ScoredUnit,
    UnitDescription,
    Voted,
    VotedUnit,
    describe_unit,
    observe_pass,
    observe_scores,
    observe_votes,
)

Unit = Any
"""A unit in the type of its kind; it has at least `id` and `language`."""


FAILED_FIRST = "failed a check that comes before the judge"
"""Begins the detail of a judgment for which no judge was asked; the check's name follows."""


class Terms(NamedTuple):
    """The settings of a suite, beyond its protocol, that can change a verdict."""

    language: str
    languages: Sequence[str]
    """All that units may be in."""
    seed: int
    rubric: Any
    """The rubric of all rows, as its file was read; None where each row brings its own."""
    settings: Mapping[str, Any]


class RubricTextError(ValueError):
    """A rubric's text that is wrong, on a line, or at a path of keys."""

    def __init__(self, message: str, *, line: int | None = None, path: tuple[str | int, ...] = ()):
        super().__init__(message)
        self.line, self.path = line, path


class Understood(NamedTuple):
    """A rubric as it was understood: for `--json`, and in lines for a person."""

    json: dict[str, Any]
    lines: Sequence[str]


class RubricForm(NamedTuple):
    """Reads the rubrics that a suite or a row may bring, in the form of one kind."""

    endings: tuple[str, ...]
    """Of the names of its files."""
    parse: Callable[[str, str, Protocol], Any]
    """The rubric of a file's text and ending, as a run keeps it; raises RubricTextError."""
    explain: Callable[[Any, Protocol], Understood]
    """Explain what a judge will be told of a rubric that was parsed."""
    beside: tuple[str, ...] = ()
    """Patterns of the files in a protocol's folder that are rubrics."""
    has_bands: bool = False
    """True if a rubric is made of dimensions with bands, so that a sentence needs some."""
    is_file: Callable[[object], bool] = lambda _: False
    """True if what a row has as its rubric is the name of a file."""


class TableLine(NamedTuple):
    """A line of a verdict table: its number, counted from one, the unit, and its output object."""

    number: int
    unit: str
    output: dict[str, Any]


class TableError(ValueError):
    """A line of a verdict table that is wrong."""

    def __init__(self, line_number: int, message: str) -> None:
        super().__init__(f"line {line_number}: {message}")
        self.line_number, self.message = line_number, message


class VerdictTable(NamedTuple):
    """Writes the verdicts of a run as a text, one line per unit, and reads them back."""

    header: Callable[[Sequence[str]], str]
    """The first line, of the names of the dimensions."""
    line: Callable[[str, str, Sequence[str], str], str]
    """One unit without its line break: id, winner, marks, notes."""
    sides: Callable[[str, str], str]
    """A line that names the two candidates of the units below it."""
    read: Callable[[Iterable[str], Sequence[str]], Iterator[TableLine]]
    """The lines of a table with these dimensions; raises TableError."""


class ExampleSuite(NamedTuple):
    """The bundled suite of a kind: the names of its files, and what it compares by."""

    data: str
    rubric: str | None = None
    by: str | None = None
    baseline: str | None = None


class ReplyLength(NamedTuple):
    """Tokens of a usual reply: of its JSON, and of English prose, once and per dimension.

    Prose of real judges, in published records: a reason for one grade takes 22 tokens in English
    (GPT-3.5, PandaLM), 34 in Japanese (Command R+, ELYZA tasks), 36 in Russian with the fragment
    that it quotes (Gemini 2.5 Pro, RuQualBench), 61 in Russian in a rubric of JSON (TruthfulQA); a
    whole comparison 100 in English (GPT-4, MT-Bench) and 178 in Japanese (GPT-3.5, Rakuda). A
    rationale with one or two quotes is about two such reasons.
    """

    form: int
    prose: int
    form_each: int
    prose_each: int


_USUAL_REPLY = ReplyLength(form=15, prose=0, form_each=20, prose_each=60)


class Scoring(Struct, frozen=True):
    """A kind whose verdicts are scores on dimensions: what statistics take of it."""

    unit: Callable[[str], ScoredUnit]
    """Of the text of a unit that a store keeps."""
    judgment: Callable[[Judgment], Scored | None]
    tags: Callable[[Protocol, Sequence[str]], Mapping[str, str]] = lambda *_: {}
    """The failure tags that a verdict under a protocol may have, each with its name in the first of
    some languages that has one."""
    full_marks: int | None = None
    """The highest total; None where verdicts have no total of their own."""
    has_critical_fails: bool = False
    condition: Callable[[str | None, Verdict], str] = lambda *_: ""
    """The critical-fail condition in a rubric that a verdict names; empty where it names none."""
    has_confidence: bool = False
    has_notes: bool = False
    has_pass: bool = False
    ends: Callable[[Any], Ends] = lambda _: {}
    """The worst and the best score of each dimension of a run's rubric."""

    def faults(self, rubric: Any) -> frozenset[str]:
        """Return the dimensions of a run's rubric that figures turn round: on which more is
        worse."""
        ends = {} if rubric is None else self.ends(rubric)
        return frozenset(name for name, (worst, best) in ends.items() if worst > best)

    def summarise(self, verdicts: Iterable[tuple[str, Verdict]], rubric: Any = None) -> UnitSummary:
        """Return the verdicts of a run in a few figures, from each and the text of its unit: mean
        and spread of each dimension, or of the total, by variant; and what should be looked at."""
        values: dict[tuple[str, str], list[float]] = {}
        conditions = Counter[str]()
        noted = critical = unsure = passed = 0
        shared = {} if rubric is None else self.ends(rubric)
        for text, verdict in verdicts:
            scored, unit = self.judgment(verdict), self.unit(text)
            assert scored is not None, "every verdict has scores"
            scores = scored.scores
            if self.full_marks is not None and scored.total is not None:
                # Grades say more together than each by itself; answers of yes and no do not.
                kept = scores if self.has_pass else {}
                scores = {**kept, "total": scored.total * self.full_marks}
            variant = str(unit.fields.get("prompt_variant") or unit.fields.get("model") or "")
            ends = {**shared, **unit.ends}
            for name, score in scores.items():
                worst, best = ends.get(name, (0.0, 1.0))
                turned = worst + best - score if worst > best else score
                values.setdefault((variant, name), []).append(turned)
            noted += bool(scored.notes.strip())
            critical += scored.is_critical
            if scored.is_critical:
                conditions[self.condition(unit.rubric or rubric, verdict)] += 1
            passed += scored.passed is True
            unsure += scored.confidence == "low"
        counts = {"notes": noted} if self.has_notes else {}
        counts |= {"critical_fails": critical} if self.has_critical_fails else {}
        counts |= {"low_confidence": unsure} if self.has_confidence else {}
        counts |= {"passed": passed} if self.has_pass else {}
        blocks: list[Block] = [score_table(values, self.faults(rubric))] if values else []
        found = [
            Label(f"unit.{_SUMMARY[name]}", {"n": Number(number)})
            for name, number in counts.items()
            if number and name in _SUMMARY
        ]
        blocks += [Notice("")] if found else []
        blocks += [Notice(label) for label in found]
        ranked = {name: number for name, number in conditions.most_common() if name}
        blocks += [
            Notice(Label("unit.critical_by", {"condition": condition, "n": Number(number)}))
            for condition, number in ranked.items()
        ]
        if ranked and conditions[""]:
            unnamed = {"n": Number(conditions[""])}
            blocks.append(Notice(Label("unit.critical_unnamed", unnamed)))
        named = {"critical_conditions": ranked} if ranked else {}
        return UnitSummary(blocks, {**counts, **named})


_SUMMARY = {
    "notes": "noted",
    "critical_fails": "critical_fails",
    "low_confidence": "unsure",
}


class Voting(Struct, frozen=True):
    """A kind whose verdicts are votes between two: what statistics take of it."""

    unit: Callable[[str], VotedUnit]
    """Of the text of a unit that a store keeps."""
    judgment: Callable[[Judgment], Voted]


class Kind(Struct, frozen=True, kw_only=True):
    """One kind of judging, as the registry has it."""

    name: str
    noun: str = "sample"
    """Its units, among the words that are counted."""
    question_noun: str = "question"
    """The question that units of several variants share, among the words that are counted."""
    settings: Mapping[str, Any] = field(default_factory=lambda: {"repairs": REPAIRS})
    """The settings that can change a verdict, with their defaults."""
    form: ProtocolForm
    table_form: TableForm
    rubric_form: RubricForm | None = None
    """Reads the rubric of a suite or a row; None where the kind takes none."""
    table: VerdictTable | None = None
    """Writes its verdicts as a table; None where they are not."""
    example: ExampleSuite
    reply_length: ReplyLength = _USUAL_REPLY
    imports: Literal["", "votes", "scores", "grades"] = ""
    """The judgments of other tools that are taken in as judgments of this kind."""

    # Units
    dump: Callable[[Unit], str]
    """A unit as the text that a store keeps."""
    load: Callable[[str], Unit]
    """The unit of such a text; raises StoreError."""
    unit_keys: Callable[[Unit], Sequence[str]]
    """The names by which an output object may call the unit: its id, or what of it the contract
    repeats."""
    output_key: Callable[[Mapping[str, Any]], str | None]
    """The name by which an output object calls its unit; None where it is not of the contract's
    form. Raises RowError."""

    judged_text: Callable[[Unit], str] | None = None
    """The text that checks by code are about; None where the kind takes none."""

    # Judging
    prepare: Callable[[Protocol, str, Terms], PreparedProtocol]
    """The protocol in one language; raises ProtocolError."""
    check_protocol: Callable[[Protocol, str], object] = lambda *_: None
    """Read the tables of a protocol in one language; raises ProtocolError."""
    resettle_settings: Callable[[Protocol, Protocol], Mapping[str, Any]] = lambda *_: {}
    """The settings under which replies to the prompts of the second protocol are settled by the
    rules of the first; raises ProtocolError where those rules need other replies."""

    # Judgments
    read_judgment: Callable[[JudgmentText], Judgment]
    """A judgment from the text that a store keeps; raises StoreError."""
    present: Callable[[Unit, Sequence[Judgment]], ShownUnit]
    """A unit and its judgments as a person is shown them."""
    measure: Scoring | Voting


class UnitText(NamedTuple):
    """A unit as it is stored."""

    id: str
    body: str
    description: UnitDescription


class ReadyKind:
    """A kind with the texts of a protocol and the terms of a suite."""

    def __init__(self, kind: Kind, protocol: Protocol, terms: Terms) -> None:
        """Prepare every language; raises ProtocolError."""
        self.kind = kind
        self.load = kind.load
        self._default = terms.language
        self._languages = {
            language: kind.prepare(protocol, language, terms) for language in terms.languages
        }
        default = self._languages[terms.language]
        self.dimensions, self.rounds = default.dimension_ids, default.rounds
        self.ends = default.ends
        rule, marks = terms.settings.get("pass", {}), default.pass_marks
        shares = [each for each in (marks.overall, rule.get("min_overall")) if each is not None]
        self._marks = marks._replace(overall=max(shares, default=None))
        self._must_all = rule.get("all", True)
        self._checks = convert(terms.settings.get("checks", []), list[Check])
        self._tags: Sequence[str] = ()
        if isinstance(kind.measure, Scoring):
            self._tags = list(kind.measure.tags(protocol, [terms.language]))

    def protocol_of(self, unit: Unit) -> PreparedProtocol:
        """Return the protocol in the unit's own language, else the suite's."""
        return self._languages[unit.language or self._default]

    def read(self, row: Mapping[str, Any]) -> list[UnitText]:
        """Return the units of an input row as they are stored; raises RowError."""
        units = self._languages[self._default].read(row)
        for unit in units:
            check_language(unit.language, self._languages)
        return [self._unit_text(unit) for unit in units]

    def _unit_text(self, unit: Unit) -> UnitText:
        body = self.kind.dump(unit)
        measured = self.kind.measure.unit(body)
        given_type = self.protocol_of(unit).given_type(unit)
        description = describe_unit(measured, unit.language or self._default, given_type)
        return UnitText(unit.id, body, description)

    def first_questions(self, unit: Unit, context: JudgingContext) -> list[Question]:
        """Return the questions about a unit that are asked whatever the replies."""
        return self.protocol_of(unit).first_questions(unit, context)

    async def judge(self, unit: Unit, context: JudgingContext) -> Judgment:
        """Return the judgment of a unit, flagged with the checks that it fails. Where one of them
        comes first, no judge is asked."""
        protocol, judged = self.protocol_of(unit), self.kind.judged_text
        if judged is None or not self._checks:
            return await protocol.judge(unit, context)
        text, reference = judged(unit), unit.extras.get("reference")
        flags = await context.offload(
            partial(flag_output, self._checks, text, reference), len(text)
        )
        outcomes = zip(self._checks, check_outcomes(self._checks, flags), strict=True)
        for check, outcome in outcomes:
            if check.first and outcome.is_met is False:
                return LeftOut(detail=f"{FAILED_FIRST}: {check.name}", flags=tuple(flags))
        judgment = await protocol.judge(unit, context)
        return replace(judgment, flags=(*judgment.flags, *flags))

    def observe(self, body: str, judgment: Judgment) -> list[Observation]:
        """Return what a judgment of a unit, given as it is stored, says in numbers."""
        measure = self.kind.measure
        if isinstance(measure, Voting):
            return list(observe_votes(measure.judgment(judgment)))
        scored, unit = measure.judgment(judgment), measure.unit(body)
        if isinstance(judgment, Failure):
            return []
        ends = {**self.ends, **unit.ends}
        pass_scores = unit.pass_scores if unit.ends else self._marks.scores
        marks = self._marks._replace(scores=pass_scores if self._must_all else {})
        critical = measure.has_critical_fails
        rows: list[Observation] = []
        if scored is not None:
            rows += observe_scores(scored, ends, self._tags, has_critical_fails=critical)
        overall = next((row.value for row in rows if row.measure == OVERALL), None)
        checks = check_outcomes(self._checks, judgment.flags)
        return [*rows, *observe_pass(scored, overall, ends, marks, checks)]
