"""The composition root: the one module that knows which judges and readers there are. A suite
becomes a plan; doors call this, and nobody imports it for a shape."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from msgspec import structs, to_builtins

from evenhand import jsontext
from evenhand.data.tables import QuestionFile, Tables, TableSource
from evenhand.engine.prices import FREE, Price, given_price, listed_price, similar_model
from evenhand.errors import UsageError
from evenhand.files.protocols import (
    builtin_protocols,
    custom_prompt_findings,
    find_protocol,
    read_custom_prompt,
    spoken_beside,
)
from evenhand.files.rubrics import TableUnits, suite_rubric
from evenhand.folders import read_text
from evenhand.judges import PROVIDERS, JudgeOptions, Provider, split_name
from evenhand.judges.credentials import Environment
from evenhand.kinds import KINDS
from evenhand.kinds.checks import Check, require_valid
from evenhand.kinds.conditions import ConditionError
from evenhand.kinds.kind import ReadyKind, Scoring
from evenhand.kinds.protocol import Protocol
from evenhand.runs.plan import AnswerStage, JudgeSetup, Plan
from evenhand.store.ports import IncomingUnit
from evenhand.suite import Suite
from evenhand.suite_file import ANSWERS_FILE, JudgeSpec, Settings, SuiteFile
from evenhand.words import Code, Sentence, few

if TYPE_CHECKING:
    from evenhand.data.columns import Rows
    from evenhand.judges.trust import Trust


def prepare(
    suite: Suite,
    environ: Mapping[str, str],
    notify: Callable[[str], None],
    sources: Sequence[TableSource] | None = None,
    trust: Trust | None = None,
) -> Plan:
    """Return the plan of a suite, ready to be judged on its own data or on these; raise UsageError.
    Nothing is sent or written, but which hosts the user trusts, where `trust` asks."""
    for name in environ.unread if isinstance(environ, Environment) else ():
        notify(Sentence("runs.not_from_env", name=name))
    sources = list(_sources(suite)) if sources is None else list(sources)
    prompt = suite.file.prompt
    prompt_files = read_custom_prompt(*suite.locate("prompt", prompt)) if prompt else None
    if suite.file.protocol not in builtin_protocols():
        suite.locate("protocol", suite.file.protocol)
    protocol = find_protocol(suite.file.protocol, suite.folder, prompt_files)
    spoken_beside(protocol, suite.file.language, str(suite.path or ""))
    settings = suite_settings(suite, protocol.kind)
    for finding in custom_prompt_findings(protocol, prompt or "", settings):
        notify(Sentence("runs.prompt_note", file=finding.file, message=finding.message))
    plan = Plan(
        suite=suite,
        protocol=protocol,
        settings=settings,
        rubric=suite_rubric(suite, protocol),
        setups=tuple(
            open_judge_setup(suite, spec, environ, notify, trust) for spec in suite.file.judges
        ),
        units=_table_units(suite, sources, protocol, notify),
        answers=_answer_stage(suite, sources, protocol, environ, notify, trust),
    )
    if suite.file.limits.budget_usd is not None:
        plan.know_prices()
    _refuse_namesakes(plan)
    _refuse_twins(plan.setups)
    if plan.manifest.judging.is_relay:
        _one_number_of_repeats(plan.setups)
    return plan


def _answer_stage(
    suite: Suite,
    sources: Sequence[TableSource],
    protocol: Protocol,
    environ: Mapping[str, str],
    notify: Callable[[str], None],
    trust: Trust | None,
) -> AnswerStage | None:
    """Return what a suite with `[answers]` does before it judges; raise UsageError."""
    spec = suite.file.answers
    if spec is None:
        return None
    from evenhand.runs.answers import answer_models, answer_plan

    models = answer_models(suite)
    setups = [open_judge_setup(suite, model, environ, notify, trust) for model in models]
    path = suite.locate("answers", ANSWERS_FILE).path

    def units_of(rows: Rows) -> Callable[[ReadyKind], Iterator[IncomingUnit]]:
        own = [
            replace(source, memory=rows) if source.path == path else source for source in sources
        ]
        return _table_units(suite, own, protocol, notify)

    return AnswerStage(
        plan=answer_plan(suite, setups),
        path=path,
        judges_cut=spec.on_cut == "judge",
        units_of=units_of,
    )


def open_judge_setup(
    suite: Suite,
    spec: JudgeSpec,
    environ: Mapping[str, str],
    notify: Callable[[str], None],
    trust: Trust | None,
) -> JudgeSetup:
    """Return a judge of a suite, opened; raise UsageError."""
    provider, model = _provider_and_model(spec.model)
    if provider.is_file(model):
        suite.locate("judges", model)
    if spec.ca_file is not None:
        suite.locate("judges", spec.ca_file)
    options = replace(judge_options(suite, spec, environ), notify=notify, trust=trust)
    judge = provider.open(options, model)
    price = _price(spec, provider, model)
    is_free_to_name = spec.base_url is not None or _has_address(provider, environ)
    # With a budget the error for the price asks the same.
    if price is None and suite.file.limits.budget_usd is None and not is_free_to_name:
        _doubt_model(provider, model, notify)
    return JudgeSetup(spec=spec, judge=judge, price=price)


def judge_options(suite: Suite, spec: JudgeSpec, environ: Mapping[str, str]) -> JudgeOptions:
    """Return the options that a suite sets for one of its judges, with nobody to notify."""
    return JudgeOptions(
        name=spec.model,
        base_url=spec.base_url,
        base_url_place=suite.address_place(spec.base_url),
        temperature=spec.temperature,
        max_tokens=spec.max_tokens,
        params=spec.params,
        stream=spec.stream,
        proxy=spec.proxy,
        proxy_place=suite.address_place(spec.proxy),
        ca_file=suite.folder / spec.ca_file if spec.ca_file else None,
        ca_file_place=suite.address_place(spec.ca_file),
        seed=suite.file.seed,
        attempt_seconds=suite.file.limits.attempt_seconds,
        folder=suite.folder,
        environment=environ,
        notify=lambda line: None,
    )


def _has_address(provider: Provider, environ: Mapping[str, str]) -> bool:
    """Return True if the environment sends the provider's requests elsewhere, to models of
    anyone."""
    return any(environ.get(name) for name in provider.url_names)


def _provider_and_model(name: str) -> tuple[Provider, str]:
    """Return a judge's name in its two parts; raise UsageError, with the listed model that a name
    without a provider was most likely meant to be."""
    try:
        return split_name(name)
    except UsageError as error:
        for provider in PROVIDERS.values():
            begins = name.casefold().startswith(provider.model_starts or ("\0",))
            if begins and (near := similar_model(provider.name, name)):
                error.advice = Sentence("judges.did_you_mean", near=f"{provider.name}/{near}")
        raise


def _doubt_model(provider: Provider, model: str, notify: Callable[[str], None]) -> None:
    """Say so where a model is in no price list and called nearly like one that is."""
    near = similar_model(provider.name, model)
    if near:
        near = f"{provider.name}/{near}"
        notify(Sentence("runs.unknown_model", provider=provider.name, model=model, near=near))


def _sources(suite: Suite) -> Iterator[TableSource]:
    """Yield the data files of a suite; raise UsageError."""
    join = None if suite.file.join is None else QuestionFile(*suite.locate("join", suite.file.join))
    for spec in suite.file.data:
        for path, root in suite.located_files("data", spec.file):
            yield TableSource(
                path=path,
                root=root,
                constants={**suite.path_fields(spec.file, path), **spec.constants},
                join=join,
                encoding=spec.encoding,
                sheet=spec.sheet,
            )


def _table_units(
    suite: Suite, sources: Sequence[TableSource], protocol: Protocol, notify: Callable[[str], None]
) -> Callable[[ReadyKind], Iterator[IncomingUnit]]:
    """Return what reads the units of a suite's tables, as often as it is called; it says once what
    is to be said of them."""
    told: set[str] = set()

    def tell(remark: str) -> None:
        if remark not in told:
            told.add(remark)
            notify(remark)

    def units(judging: ReadyKind) -> Iterator[IncomingUnit]:
        # A source keeps the rows that it has read: these are dropped with their last unit.
        fresh = [replace(source) for source in sources]
        form = KINDS[protocol.kind].table_form
        tables = Tables(fresh, suite.file.columns, form, tell, use=suite.file.use)
        language = suite.file.language
        return TableUnits(tables, protocol, suite.folder, language, notice=notify).read(judging)

    return units


def suite_settings(suite: Suite, kind: str) -> dict[str, Any]:
    """Return the settings of a suite that its kind has; raise UsageError for one that it has
    not."""
    values, names = suite.file.settings.model_dump(), KINDS[kind].settings
    defaults = Settings().model_dump()
    for name, value in values.items():
        if name not in names and value != defaults[name]:
            raise UsageError(
                Sentence("runs.no_setting", kind=kind, name=name, names=few(list(names), 20)),
                where=str(suite.path or ""),
            )
    settings = {name: values[name] for name in names} | {"use": suite.file.use}
    if suite.file.pass_ is not None:
        if not isinstance(KINDS[kind].measure, Scoring):
            what = Sentence("runs.no_pass", kind=kind, table=Code("[pass]"))
            raise UsageError(what, where=suite.where("pass"))
        settings["pass"] = suite.file.pass_.model_dump()
    # The default is left out: a run that says nothing of it stays the run that it was.
    if suite.file.judged != SuiteFile.model_fields["judged"].default:
        settings["judged"] = suite.file.judged
    if suite.file.checks:
        if KINDS[kind].judged_text is None:
            what = Sentence("runs.no_pass", kind=kind, table=Code("[[checks]]"))
            raise UsageError(what, where=suite.where("checks"))
        settings["checks"] = [to_builtins(check) for check in _read_checks(suite)]
    return settings


def _read_checks(suite: Suite) -> list[Check]:
    """Return the checks of a suite, a schema in the place of its file; raise UsageError."""
    checks: list[Check] = []
    for index, spec in enumerate(suite.file.checks):
        where, check = suite.where("checks", index), Check(**spec.model_dump())
        if spec.type == "json_schema" and isinstance(spec.value, str):
            check = structs.replace(check, value=_read_schema(suite, spec.value))
        if spec.name in (each.name for each in checks):
            raise UsageError(Sentence("runs.same_check", name=spec.name), where=where)
        try:
            require_valid(check)
        except ConditionError as error:
            raise UsageError(error.args[0], where=where) from None
        checks.append(check)
    return checks


def _read_schema(suite: Suite, name: str) -> Any:
    path, root = suite.locate("checks", name)
    text = read_text(path, root)
    try:
        jsontext.parse(text)
    except ValueError as error:
        raise UsageError(Sentence("kinds.not_json", error=error), where=str(path)) from None
    return json.loads(text)  # as plain numbers


def _refuse_namesakes(plan: Plan) -> None:
    """Refuse a check that is called like a dimension: who reads a table could not tell them
    apart."""
    for index, check in enumerate(plan.suite.file.checks):
        if check.name in plan.judging.dimensions:
            what = Sentence("runs.check_is_dimension", name=check.name)
            raise UsageError(what, where=plan.suite.where("checks", index))


def _price(spec: JudgeSpec, provider: Provider, model: str) -> Price | None:
    if spec.price is not None:
        return given_price(spec.price.input, spec.price.output, provider.cache_write_multiplier)
    return listed_price(provider.name, model) if provider.is_billed else FREE


def _refuse_twins(setups: Sequence[JudgeSetup]) -> None:
    """Two judges that are one and the same would answer each other's questions."""
    for index, setup in enumerate(setups):
        if any(setup.judge.identity == earlier.judge.identity for earlier in setups[:index]):
            raise UsageError(Sentence("runs.twin_judges", judge=setup.judge.name))


def _one_number_of_repeats(setups: Sequence[JudgeSetup]) -> None:
    """A relay is one judgment, so it cannot be repeated more often by one of its judges."""
    if len({setup.spec.repeats for setup in setups}) > 1:
        raise UsageError(Sentence("runs.relay_repeats"))
